//! The look over the whole model before anything is built: operators that the table does not have, all at once, and
//! functions that call themselves.

use indexmap::IndexMap;
use rustc_hash::FxHashSet;

use crate::error::{ImportError, MissingOperator};
use crate::functions::{self, Functions};
use crate::import::{Opsets, node_name};
use crate::proto::{FunctionProto, GraphProto, NodeProto};
use crate::registry::{self, normal_domain};

struct Walk<'a, 'm> {
    functions: &'a Functions<'m>,
    max_depth: usize,
    missing: IndexMap<(String, String, i64), Vec<String>>,
    /// Functions that were looked through, and those whose calls are being followed.
    seen: FxHashSet<*const FunctionProto>,
    open: Vec<*const FunctionProto>,
}

/// Looks at every node of the graph, its subgraphs, and the functions that they call.
pub(crate) fn check(
    graph: &GraphProto,
    opsets: &Opsets,
    functions: &Functions<'_>,
    max_depth: usize,
) -> Result<(), ImportError> {
    let mut walk =
        Walk { functions, max_depth, missing: IndexMap::new(), seen: FxHashSet::default(), open: Vec::new() };
    walk.nodes(&graph.node, opsets, "", 0)?;
    if walk.missing.is_empty() {
        return Ok(());
    }
    let all = walk.missing.into_iter().map(|((domain, operator, version), nodes)| MissingOperator {
        domain,
        operator,
        version,
        nodes,
    });
    Err(ImportError::MissingOperators(all.collect()))
}

/// The error of one node whose operator the table does not have.
pub(crate) fn one(node: &NodeProto, version: i64, place: &str) -> ImportError {
    ImportError::MissingOperators(vec![MissingOperator {
        domain: normal_domain(node.domain()).to_owned(),
        operator: node.op_type().to_owned(),
        version,
        nodes: vec![place.to_owned()],
    }])
}

impl Walk<'_, '_> {
    fn nodes(
        &mut self,
        nodes: &[NodeProto],
        opsets: &Opsets,
        path: &str,
        depth: usize,
    ) -> Result<(), ImportError> {
        if depth > self.max_depth {
            let at = path.to_owned();
            return Err(ImportError::Limit {
                what: "nesting of subgraphs and functions",
                limit: self.max_depth,
                at,
            });
        }
        for node in nodes {
            let place = format!("{path}{}", node_name(node));
            if let Some(function) = functions::find(self.functions, node) {
                self.function(function, &place, depth)?;
            } else {
                let Some(version) = opsets.version(node.domain()) else {
                    return Err(ImportError::UnknownDomain { node: place, domain: node.domain().to_owned() });
                };
                if registry::find(node.domain(), node.op_type(), version).is_none() {
                    let domain = normal_domain(node.domain()).to_owned();
                    let key = (domain, node.op_type().to_owned(), version);
                    self.missing.entry(key).or_default().push(place.clone());
                }
            }
            for attribute in &node.attribute {
                for graph in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
                    self.nodes(&graph.node, opsets, &format!("{place}/{}/", attribute.name()), depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn function(&mut self, function: &FunctionProto, place: &str, depth: usize) -> Result<(), ImportError> {
        let identity = std::ptr::from_ref(function);
        if self.open.contains(&identity) {
            return Err(ImportError::Recursion { function: functions::shown(function) });
        }
        if !self.seen.insert(identity) {
            return Ok(());
        }
        self.open.push(identity);
        let opsets = Opsets::new(&function.opset_import)?;
        self.nodes(&function.node, &opsets, &format!("{place}/"), depth + 1)?;
        self.open.pop();
        Ok(())
    }
}
