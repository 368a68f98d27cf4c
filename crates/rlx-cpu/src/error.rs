//! What can go wrong when a program runs.

use rlx_eval::{EvalError, Fault};

/// Why a run did not give its results.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// An input does not fit, or an operation failed. The vocabulary is the oracle's, so that backends fail alike.
    #[error(transparent)]
    Failed(#[from] EvalError),
    /// The memory that the sizes ask for is above the cap, or the system has none.
    #[error("{needed} bytes are needed; {reason}")]
    Memory {
        /// Bytes needed.
        needed: usize,
        /// The cap that they exceed, or what the system said.
        reason: String,
    },
    /// The caller cancelled the run.
    #[error("the run was cancelled after {steps} steps")]
    Cancelled {
        /// Steps that had run.
        steps: usize,
    },
    /// The deadline passed.
    #[error("the deadline passed after {steps} steps")]
    Deadline {
        /// Steps that had run.
        steps: usize,
    },
    /// A sentinel is not intact: a fault of a kernel.
    #[error("step {step} (kernel {kernel}) wrote beyond its memory")]
    Overrun {
        /// The operation of the step.
        step: String,
        /// Its kernel.
        kernel: &'static str,
    },
    /// An output's memory, given by the caller, does not fit.
    #[error("output {name:?}: the run gives {found}, the memory given is for {expected}")]
    OutputType {
        /// The output's name.
        name: String,
        /// What the memory is for.
        expected: String,
        /// What came out.
        found: String,
    },
}

impl RunError {
    /// As the failure of a subgraph inside an operation.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            RunError::Failed(error) => Fault::Subgraph(Box::new(error)),
            other => Fault::Custom(other.to_string()),
        }
    }
}
