//! What runs a graph: the seam between the case table and the backends.

use crate::case::Stage;
use rlx_ir::{Graph, Literal};

/// Why a backend gave no results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    /// When it happened.
    pub stage: Stage,
    /// What the user would read.
    pub message: String,
}

/// Something that runs graphs and is judged by the case table. What can be switched (fusion, threads) is part of the
/// value: with fusion and without are two backends of two names.
pub trait Backend: Sync {
    /// The name in reports.
    fn name(&self) -> &str;

    /// The outputs of a graph on inputs given in order.
    fn run(&self, graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError>;

    /// The depth of the tree by which a sum of `terms` terms is formed: the longest way of a term through additions.
    /// `terms` itself for a plain loop.
    fn summation_depth(&self, terms: usize) -> usize {
        terms
    }
}
