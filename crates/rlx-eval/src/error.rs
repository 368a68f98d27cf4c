//! What can go wrong when a graph runs.

use rlx_ir::{DimError, Locations, TensorType, TypeError};

/// Why a graph did not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// The graph does not lower to primitives.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// An input was not given.
    #[error("input {name:?} ({expected}) is not set")]
    MissingInput {
        /// Its name.
        name: String,
        /// Its type.
        expected: Box<TensorType>,
    },
    /// The graph has no input of this name.
    #[error("there is no input {name:?}; the inputs are {known:?}")]
    UnknownInput {
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// An input has another element type or rank.
    #[error("input {name:?}: expected {expected}, found {found}")]
    InputType {
        /// Its name.
        name: String,
        /// The declared type.
        expected: Box<TensorType>,
        /// What was given.
        found: Box<TensorType>,
    },
    /// An input's sizes do not fit.
    #[error("input {name:?}: expected {expected}, found {found}: {cause}")]
    InputSize {
        /// Its name.
        name: String,
        /// The declared type.
        expected: Box<TensorType>,
        /// What was given.
        found: Box<TensorType>,
        /// Which size, and why.
        cause: DimError,
    },
    /// An operation failed.
    #[error("{op}{}: {fault}", at(.locations))]
    Node {
        /// The operation's name.
        op: String,
        /// Where it comes from.
        locations: Locations,
        /// What happened.
        fault: Box<Fault>,
    },
}

fn at(locations: &Locations) -> String {
    let names: Vec<String> = locations.iter().map(|l| format!("{l:?}")).collect();
    if names.is_empty() { String::new() } else { format!(" (node {})", names.join(", ")) }
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// A size has no value or is no size.
    #[error(transparent)]
    Size(#[from] DimError),
    /// A relation of sizes does not hold.
    #[error("{error} (sizes are {lhs} and {rhs})")]
    Check {
        /// What the type rule asks for.
        error: TypeError,
        /// The left size.
        lhs: i64,
        /// The right size.
        rhs: i64,
    },
    /// An index outside its axis.
    #[error("index {index} is out of range for axis {axis} of size {size}")]
    IndexOutOfRange {
        /// The index.
        index: i64,
        /// The axis.
        axis: usize,
        /// Its size.
        size: usize,
    },
    /// An integer division or remainder by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// A bound value is below its least.
    #[error("a size of {value} was computed; at least {min} is needed")]
    BelowMinimum {
        /// The value.
        value: i64,
        /// The least allowed.
        min: i64,
    },
    /// The results would need more memory than allowed.
    #[error("{needed} bytes are needed with {live} in use; the limit is {limit}")]
    Memory {
        /// Bytes of the results.
        needed: u128,
        /// Bytes in use.
        live: usize,
        /// The limit.
        limit: usize,
    },
    /// A loop ran longer than allowed.
    #[error("the loop did not end within {limit} trips")]
    Trips {
        /// The limit.
        limit: u64,
    },
    /// A matrix operation failed.
    #[error(transparent)]
    Linalg(#[from] crate::numeric::linalg::LinalgError),
    /// Block-quantised bytes are malformed.
    #[error(transparent)]
    Dequantise(#[from] crate::quant::DequantiseError),
    /// A result is not of the type that the graph declares: a fault of the operation.
    #[error("result {output} is {found}, declared {declared}")]
    Result {
        /// Which result.
        output: usize,
        /// The declared type.
        declared: TensorType,
        /// What came out.
        found: String,
    },
    /// An element type that the oracle does not compute with.
    #[error("{what} is not computed on {found}")]
    Unsupported {
        /// The operation.
        what: String,
        /// The element type.
        found: String,
    },
    /// A user's operation failed.
    #[error("{0}")]
    Custom(String),
    /// A node of a subgraph failed.
    #[error("in its subgraph: {0}")]
    Subgraph(Box<EvalError>),
}
