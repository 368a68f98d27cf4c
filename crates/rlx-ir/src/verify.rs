//! The verifier: whether a graph keeps the rules that every pass relies on. A builder cannot make a graph that breaks
//! them; a fault in a pass can.

use crate::error::TypeError;
use crate::graph::{Graph, NodeId, Value};
use crate::infer::Infer;
use crate::op::{Op, Primitive};
use rustc_hash::FxHashSet;

/// The first rule that a graph breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// An operand is not defined before its user.
    #[error("node {node:?}: operand {operand} ({value:?}) is not defined before it")]
    Order {
        /// The user.
        node: NodeId,
        /// Which operand.
        operand: usize,
        /// The value.
        value: Value,
    },
    /// A type rule refuses a node.
    #[error("node {node:?}: {error}")]
    Type {
        /// The node.
        node: NodeId,
        /// What the rule says.
        error: TypeError,
    },
    /// A node's types are not what its rule gives.
    #[error("node {node:?}: types {found}, but its rule gives {expected}")]
    Stale {
        /// The node.
        node: NodeId,
        /// What the rule gives.
        expected: String,
        /// What the node has.
        found: String,
    },
    /// The inputs are not the first nodes, or an input node is not listed.
    #[error("inputs must be the first nodes, each listed once (node {node:?})")]
    Inputs {
        /// The node at fault.
        node: NodeId,
    },
    /// Two inputs or two outputs have one name.
    #[error("the {what} {name:?} occurs twice")]
    Name {
        /// "input" or "output".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An output or a state names what is not there.
    #[error("{what} does not exist")]
    Dangling {
        /// What it is.
        what: String,
    },
    /// A subgraph breaks a rule.
    #[error("in graph {name:?}: {error}")]
    Subgraph {
        /// The subgraph's name.
        name: String,
        /// What it breaks.
        error: Box<VerifyError>,
    },
}

/// Checks a graph and its subgraphs.
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    names(graph)?;
    for (id, node) in graph.nodes() {
        let listed = graph.inputs().get(id.index()) == Some(&Value { node: id, output: 0 });
        if matches!(node.op, Op::Primitive(Primitive::Input(_))) != listed {
            return Err(VerifyError::Inputs { node: id });
        }
        for (operand, value) in node.operands.iter().enumerate() {
            let defined = value.node < id && (value.output as usize) < graph.node(value.node).types.len();
            if !defined {
                return Err(VerifyError::Order { node: id, operand, value: *value });
            }
        }
        for subgraph in subgraphs(&node.op) {
            verify(subgraph).map_err(|error| VerifyError::Subgraph {
                name: subgraph.name().to_string(),
                error: Box::new(error),
            })?;
        }
        let operands: Vec<_> = node.operands.iter().map(|v| graph.type_of(*v)).collect();
        let inferred = node
            .op
            .infer(&Infer::new(node.op.name(), &operands, graph.symbols()))
            .map_err(|e| VerifyError::Type { node: id, error: e.at(&node.locations) })?;
        if inferred != node.types {
            let (expected, found) = (format!("{inferred:?}"), format!("{:?}", node.types));
            return Err(VerifyError::Stale { node: id, expected, found });
        }
    }
    for output in graph.outputs() {
        let there = output.value.node.index() < graph.nodes().len()
            && (output.value.output as usize) < graph.node(output.value.node).types.len();
        if !there {
            return Err(VerifyError::Dangling { what: format!("the value of output {:?}", output.name) });
        }
    }
    for state in graph.states() {
        if state.input >= graph.inputs().len() || state.output >= graph.outputs().len() {
            return Err(VerifyError::Dangling { what: format!("state {} -> {}", state.input, state.output) });
        }
    }
    Ok(())
}

fn names(graph: &Graph) -> Result<(), VerifyError> {
    let mut seen = FxHashSet::default();
    for value in graph.inputs() {
        if value.node.index() >= graph.nodes().len() {
            return Err(VerifyError::Dangling { what: format!("input {value:?}") });
        }
        let name = graph.input_name(*value);
        if !seen.insert(name) {
            return Err(VerifyError::Name { what: "input", name: name.to_string() });
        }
    }
    seen.clear();
    for output in graph.outputs() {
        if !seen.insert(&output.name) {
            return Err(VerifyError::Name { what: "output", name: output.name.to_string() });
        }
    }
    Ok(())
}

/// The graphs inside an operation.
pub fn subgraphs(op: &Op) -> Vec<&Graph> {
    match op {
        Op::Primitive(Primitive::If(op)) => vec![&op.then_branch, &op.else_branch],
        Op::Primitive(Primitive::While(op)) => vec![&op.body],
        Op::Primitive(Primitive::Scan(op)) => vec![&op.body],
        Op::Primitive(Primitive::Call(op)) => vec![&op.body],
        _ => Vec::new(),
    }
}
