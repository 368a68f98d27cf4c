//! The runtime: a [`Session`] on a [`Device`] compiles graphs to [`Executable`]s, which take and give [`Tensor`]s.
//!
//! ```
//! use rlx_ir::text;
//! use rlx_runtime::{Device, Session, Tensor};
//!
//! let graph = text::parse("rlx 1 graph \"g\"(%x: f32[n]) { %y = exp(%x) return \"y\" = %y }")?;
//! let session = Session::new(Device::cpu())?;
//! let executable = session.compile(&graph, &Default::default())?;
//! let outputs = executable.run(&[("x", Tensor::from_slice([2], &[0.0f32, 1.0])?)])?;
//! assert_eq!(outputs["y"].to_vec::<f32>(), Some(vec![1.0, 2.7182817]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod device;
mod error;
mod executable;
mod machine;
pub mod report;
mod session;
mod slots;
mod state;
mod tensor;

pub use device::Device;
pub use error::{Error, RunError};
pub use executable::{Executable, RunOptions};
pub use machine::{Cache, DeviceInfo, devices};
pub use report::Report;
pub use rlx_cpu::MemoryUse;
pub use rlx_opt::{CompileOptions, CompileReport, PrecisionPolicy};
pub use session::Session;
pub use slots::Slots;
pub use state::State;
pub use tensor::{Outputs, Tensor, TensorError};
