//! What can go wrong in a session.

pub use rlx_cpu::RunError;
use rlx_opt::CompileError;

/// Why a session, an executable or a run could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The graph does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The threads could not be started.
    #[error("starting threads: {0}")]
    Threads(String),
}
