//! The CPU backend: loads a [`Program`](rlx_opt::Program), packs its weights, and runs it in [`Instance`]s.
//!
//! - [`target`]: what the compiler asks of this backend;
//! - [`kernel`]: the seam between steps and kernels, [`kernels`] the kernels by family;
//! - [`load`]: a program made ready to run, shared by all its instances;
//! - [`instance`]: sizes bound, memory placed, steps run;
//! - [`sentinel`]: what finds kernels that write beyond their results;
//! - [`memory`], [`mod@array`]: the leaf modules that hold the raw memory.

pub mod array;
pub mod error;
pub mod instance;
pub mod kernel;
pub mod kernels;
pub mod load;
pub mod memory;
pub mod pool;
pub mod sentinel;
pub mod target;
pub mod weights;

pub use error::RunError;
pub use instance::{Input, Instance, MemoryUse, Occupant, Outputs, RunControl, SegmentPlan};
pub use load::Loaded;
pub use pool::Pool;
pub use target::Cpu;
pub use weights::WeightStore;
