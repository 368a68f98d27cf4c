//! Why a model cannot be imported. Every error names the nodes it is about.

use rlx_ir::{LiteralError, TypeError};
use thiserror::Error;

use crate::proto::DataType;
use crate::tensor::TensorError;

/// An error of importing a model.
#[derive(Debug, Error)]
pub enum ImportError {
    /// Operators that this importer does not have, all of them.
    #[error("operators that are not supported: {}", list(.0))]
    MissingOperators(Vec<MissingOperator>),
    /// A node uses a domain for which the model (or the function that the node is in) imports no operator set.
    #[error("node {node:?}: {domain:?} has no operator set in this model")]
    UnknownDomain {
        /// The node.
        node: String,
        /// Its domain.
        domain: String,
    },
    /// The operator set of `ai.onnx` is newer than the importer knows; what its operators mean is not known.
    #[error("operator set {version} of ai.onnx is newer than {newest}")]
    OpsetVersion {
        /// The version asked for.
        version: i64,
        /// The newest known.
        newest: i64,
    },
    /// A name is read but nothing produces it.
    #[error("{reader}: {name:?} is not defined")]
    Undefined {
        /// The node, or the graph output, that reads it.
        reader: String,
        /// The name.
        name: String,
    },
    /// Two nodes, inputs or initializers of one graph have the same name for a value.
    #[error("graph {graph:?}: {name:?} is defined twice (again by {by})")]
    Duplicate {
        /// The graph.
        graph: String,
        /// The name.
        name: String,
        /// What defines it the second time.
        by: String,
    },
    /// Nodes that need each other's results.
    #[error("graph {graph:?}: nodes {nodes:?} form a cycle")]
    Cycle {
        /// The graph.
        graph: String,
        /// Some nodes of the cycle.
        nodes: Vec<String>,
    },
    /// A function that calls itself, directly or through others.
    #[error("function {function} calls itself")]
    Recursion {
        /// Its domain and name.
        function: String,
    },
    /// Two functions have one identity.
    #[error("function {function} is defined twice")]
    DuplicateFunction {
        /// Its domain and name.
        function: String,
    },
    /// An input or initializer cannot be used.
    #[error("{what} {name:?}: {problem}")]
    Interface {
        /// "input", "pinned input", "initializer" or "output".
        what: &'static str,
        /// Its name.
        name: String,
        /// What is wrong.
        problem: Box<NodeProblem>,
    },
    /// A node cannot be imported.
    #[error("node {node:?} ({operator}): {problem}")]
    Node {
        /// Its name; the operator and the first output where it has none.
        node: String,
        /// Domain, type and operator set version.
        operator: String,
        /// What is wrong.
        problem: Box<NodeProblem>,
    },
    /// The model asks for more than a limit of [`crate::ImportLimits`].
    #[error("{what} above the limit of {limit} (at {at})")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// The node.
        at: String,
    },
    /// The finished graph is not well formed.
    #[error("{0}")]
    Graph(#[from] TypeError),
}

/// An operator that a model uses and the importer does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOperator {
    /// The domain; empty for ONNX's own.
    pub domain: String,
    /// The type.
    pub operator: String,
    /// The operator set version of the model.
    pub version: i64,
    /// The nodes, with the path of the subgraphs and functions they are in.
    pub nodes: Vec<String>,
}

/// How many nodes of one missing operator a message names; the error holds all.
const NAMED: usize = 4;

fn list(missing: &[MissingOperator]) -> String {
    let each = missing.iter().map(|m| {
        let domain = if m.domain.is_empty() { "ai.onnx" } else { &m.domain };
        let nodes = m.nodes[..m.nodes.len().min(NAMED)].join(", ");
        let more = match m.nodes.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{domain}:{} (opset {}; nodes {nodes}{more})", m.operator, m.version)
    });
    each.collect::<Vec<_>>().join("; ")
}

/// What is wrong with one node; [`ImportError::Node`] adds which.
#[derive(Debug, Error)]
pub enum NodeProblem {
    /// A required input is left out.
    #[error("input {operand} is missing")]
    MissingInput {
        /// Its position.
        operand: usize,
    },
    /// An input is a sequence, an optional or text where a tensor is needed, or the reverse.
    #[error("input {operand} is {found}, expected {expected}")]
    InputKind {
        /// Its position.
        operand: usize,
        /// What is needed.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// An input's type, rank or sizes are not what the operator takes.
    #[error("input {operand}: {what}: expected {expected}, found {found}")]
    Input {
        /// Its position.
        operand: usize,
        /// Which property.
        what: &'static str,
        /// What is needed.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A required attribute is absent.
    #[error("attribute {name:?} is missing")]
    MissingAttribute {
        /// Its name.
        name: String,
    },
    /// An attribute has another type.
    #[error("attribute {name:?} is of type {found}, expected {expected}")]
    AttributeType {
        /// Its name.
        name: String,
        /// The type it must have.
        expected: &'static str,
        /// The type it has.
        found: String,
    },
    /// An attribute's value is not one that the operator takes.
    #[error("attribute {name:?}: expected {expected}, found {found}")]
    AttributeValue {
        /// Its name.
        name: String,
        /// What is needed.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The value of an input decides the shape or structure of the graph, so it must be known at import.
    #[error("{}", needs_constant(*operand, what, graph_inputs))]
    NeedsConstant {
        /// The input's position.
        operand: usize,
        /// What it decides.
        what: String,
        /// The inputs of the model that it is computed from; pinning them ([`crate::ImportOptions::pinned`]) makes it known.
        graph_inputs: Vec<String>,
    },
    /// An axis is outside the rank.
    #[error("axis {axis} is outside a rank of {rank}")]
    Axis {
        /// The axis.
        axis: i64,
        /// The rank.
        rank: usize,
    },
    /// An element type that RLX does not have.
    #[error("element type {0:?} is not supported")]
    ElementType(DataType),
    /// A combination of inputs and attributes that is right but not supported.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The node has more outputs than its operator gives.
    #[error("the node names {found} outputs, the operator gives {expected}")]
    OutputCount {
        /// Outputs that the operator gives.
        expected: usize,
        /// Outputs that the node names.
        found: usize,
    },
    /// An operation of RLX refuses.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A tensor of the file cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A constant has no form in RLX.
    #[error(transparent)]
    Literal(#[from] LiteralError),
    /// A node of a subgraph or function cannot be imported.
    #[error(transparent)]
    Within(Box<ImportError>),
}

fn needs_constant(operand: usize, what: &str, graph_inputs: &[String]) -> String {
    let from = match graph_inputs {
        [] => String::new(),
        inputs => format!("; it is computed from the inputs {}", inputs.join(", ")),
    };
    format!("input {operand} must be known at import, because it decides {what}{from}")
}

impl From<ImportError> for NodeProblem {
    fn from(error: ImportError) -> NodeProblem {
        NodeProblem::Within(Box::new(error))
    }
}

impl ImportError {
    /// The inputs of the model to pin, if that is what the error asks for.
    pub fn needs_pinned(&self) -> Option<&[String]> {
        match self {
            ImportError::Node { problem, .. } => problem.needs_pinned(),
            ImportError::Interface { problem, .. } => problem.needs_pinned(),
            _ => None,
        }
    }
}

impl NodeProblem {
    fn needs_pinned(&self) -> Option<&[String]> {
        match self {
            NodeProblem::NeedsConstant { graph_inputs, .. } if !graph_inputs.is_empty() => Some(graph_inputs),
            NodeProblem::Within(error) => error.needs_pinned(),
            _ => None,
        }
    }
}
