//! The passes, in order.

use crate::options::CompileOptions;
use crate::precision::PrecisionPolicy;
use crate::program::{self, Program};
use crate::report::{CompileReport, CompositeRecord, Fate, PassRecord};
use crate::rewrite::subgraphs;
use crate::target::Target;
use crate::{fuse, legalise, precision, raise, simplify};
use rlx_ir::{Graph, Op, TypeError, VerifyError, verify};
use std::cell::RefCell;
use std::collections::BTreeMap;
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

/// Adds how many composites of each name a graph has, those of subgraphs included.
fn count_composites(graph: &Graph, counts: &mut BTreeMap<&'static str, usize>) {
    for (_, node) in graph.nodes() {
        if let Op::Composite(composite) = &node.op {
            *counts.entry(composite.name()).or_default() += 1;
        }
        subgraphs(&node.op).into_iter().for_each(|g| count_composites(g, counts));
    }
}

/// The composites that a pass from `before` to `after` recognised.
fn raised(before: &Graph, after: &Graph) -> Vec<CompositeRecord> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    count_composites(before, &mut old);
    count_composites(after, &mut new);
    let more = |(name, times): (&'static str, usize)| {
        let times = times.saturating_sub(old.get(name).copied().unwrap_or(0));
        (times > 0).then_some(CompositeRecord { name, fate: Fate::Raised, times })
    };
    new.into_iter().filter_map(more).collect()
}

type Pass<'a> = dyn Fn(&Graph, &mut Vec<String>) -> Result<Graph, TypeError> + 'a;

/// The graph after every pass of the pipeline that goes from graph to graph.
pub fn optimise(
    graph: &Graph,
    target: &dyn Target,
    options: &CompileOptions,
) -> Result<(Graph, CompileReport), CompileError> {
    let fold = options.fold_elements;
    let composites: RefCell<Vec<CompositeRecord>> = RefCell::default();
    let mut passes: Vec<(&'static str, Box<Pass<'_>>)> = Vec::new();
    passes.push(("simplify", Box::new(move |g, _| simplify::simplify(g, fold))));
    if options.raise {
        passes.push(("raise", Box::new(raise::raise)));
    }
    if options.precision != PrecisionPolicy::Declared {
        let policy = &options.precision;
        passes.push(("precision", Box::new(move |g, notes| precision::apply(g, policy, notes))));
    }
    passes.push(("legalise", Box::new(|g, _| legalise::legalise(g, target, &mut composites.borrow_mut()))));
    passes.push(("simplify", Box::new(move |g, _| simplify::simplify(g, fold))));
    if options.fuse {
        passes.push(("fuse", Box::new(|g, notes| fuse::fuse(g, target, notes))));
    }
    let mut report = CompileReport { target: target.name().to_string(), ..CompileReport::default() };
    let mut graph = graph.clone();
    for (name, pass) in passes {
        let nodes_before = count_nodes(&graph);
        let start = Instant::now();
        let mut notes = Vec::new();
        let after = pass(&graph, &mut notes).map_err(|source| CompileError::Type { pass: name, source })?;
        let time = start.elapsed();
        if name == "raise" {
            composites.borrow_mut().extend(raised(&graph, &after));
        }
        graph = after;
        if options.verify {
            verify(&graph).map_err(|source| CompileError::Verify { pass: name, source: Box::new(source) })?;
        }
        report.passes.push(PassRecord { name, time, nodes_before, nodes_after: count_nodes(&graph), notes });
    }
    report.composites = composites.take();
    report.composites.sort();
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
