//! The compiler: passes from graph to graph, then from graph to a [`Program`] of steps over planned buffers.
//!
//! [`compile`] runs the [`pipeline`]: simplify, raise, precision, legalise, fuse, then lays out views and buffers
//! ([`program`]) for a [`Target`]. Memory is placed when sizes are bound ([`plan`]). Every pass is recorded with its
//! time, its node counts and its reasons ([`report`]), and the graph is verified after it.

pub mod fuse;
pub mod legalise;
pub mod options;
pub mod pipeline;
pub mod plan;
pub mod precision;
pub mod program;
pub mod raise;
pub mod region;
pub mod report;
pub mod rewrite;
pub mod simplify;
pub mod target;

pub use options::CompileOptions;
pub use pipeline::{CompileError, Compiled, compile};
pub use precision::PrecisionPolicy;
pub use program::Program;
pub use report::CompileReport;
pub use target::Target;
