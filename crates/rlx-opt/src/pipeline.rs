//! The passes, in order.

use crate::options::CompileOptions;
use crate::program::{self, Program};
use crate::report::{CompileReport, PassRecord};
use crate::rewrite::subgraphs;
use crate::target::Target;
use crate::{fuse, legalise, simplify};
use rlx_ir::{Graph, TypeError, VerifyError, verify};
use std::time::Instant;

/// Why a graph does not compile.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A pass built something ill-typed.
    #[error("pass {pass}: {source}")]
    Type {
        /// The pass.
        pass: &'static str,
        /// What.
        source: TypeError,
    },
    /// A pass left a graph that does not verify.
    #[error("after pass {pass}: {source}")]
    Verify {
        /// The pass.
        pass: &'static str,
        /// What.
        source: Box<VerifyError>,
    },
    /// A state cannot be updated where it lies.
    #[error("state {name:?} of {bytes} bytes would be copied in each run: {reason}")]
    StateCopy {
        /// The input's name.
        name: String,
        /// Its size.
        bytes: String,
        /// What stands in the way.
        reason: String,
    },
}

/// A program with the graph that it was made from and the account of how.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The graph after the last pass; each `call` in it is a region.
    pub graph: Graph,
    /// The steps.
    pub program: Program,
    /// What was done.
    pub report: CompileReport,
}

/// The nodes of a graph, those of subgraphs included.
pub fn count_nodes(graph: &Graph) -> usize {
    let inner = |op| subgraphs(op).into_iter().map(|g| count_nodes(g)).sum::<usize>();
    graph.nodes().map(|(_, node)| 1 + inner(&node.op)).sum()
}

type Pass<'a> = dyn Fn(&Graph, &mut Vec<String>) -> Result<Graph, TypeError> + 'a;

/// The graph after every pass of the pipeline that goes from graph to graph.
pub fn optimise(
    graph: &Graph,
    target: &dyn Target,
    options: &CompileOptions,
) -> Result<(Graph, CompileReport), CompileError> {
    let fold = options.fold_elements;
    let mut passes: Vec<(&'static str, Box<Pass<'_>>)> = Vec::new();
    passes.push(("simplify", Box::new(move |g, _| simplify::simplify(g, fold))));
    passes.push(("legalise", Box::new(|g, notes| legalise::legalise(g, target, notes))));
    passes.push(("simplify", Box::new(move |g, _| simplify::simplify(g, fold))));
    if options.fuse {
        passes.push(("fuse", Box::new(|g, notes| fuse::fuse(g, target, notes))));
    }
    let mut report = CompileReport { target: target.name().to_string(), passes: Vec::new() };
    let mut graph = graph.clone();
    for (name, pass) in passes {
        let nodes_before = count_nodes(&graph);
        let start = Instant::now();
        let mut notes = Vec::new();
        graph = pass(&graph, &mut notes).map_err(|source| CompileError::Type { pass: name, source })?;
        let time = start.elapsed();
        if options.verify {
            verify(&graph).map_err(|source| CompileError::Verify { pass: name, source: Box::new(source) })?;
        }
        report.passes.push(PassRecord { name, time, nodes_before, nodes_after: count_nodes(&graph), notes });
    }
    Ok((graph, report))
}

/// Compiles `graph` for `target`.
pub fn compile(
    graph: &Graph,
    target: &dyn Target,
    options: &CompileOptions,
) -> Result<Compiled, CompileError> {
    let (graph, mut report) = optimise(graph, target, options)?;
    let start = Instant::now();
    let mut notes = Vec::new();
    let program = program::build(&graph, target, &mut notes)?;
    report.passes.push(PassRecord {
        name: "layout and schedule",
        time: start.elapsed(),
        nodes_before: count_nodes(&graph),
        nodes_after: program.steps.len(),
        notes,
    });
    Ok(Compiled { graph, program, report })
}
