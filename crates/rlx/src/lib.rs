//! RLX: a machine-learning compiler and runtime. This crate is the way in: it gathers the graph ([`ir`]), the importer
//! of ONNX files ([`onnx`]), the compiler ([`opt`]) and the runtime ([`Session`], [`Executable`], [`Tensor`]), models as
//! files ([`Model`]), the files that tensors come from and go to ([`io`]), and the oracle ([`eval`]), by which results
//! are judged.
//!
//! ```
//! use rlx::{CompileOptions, Device, Model, Session, Tensor};
//!
//! let graph = rlx::ir::text::parse("rlx 1 graph \"g\"(%x: f32[n]) { %y = exp(%x) return \"y\" = %y }")?;
//! let model = Model::from(graph);
//! let session = Session::new(Device::cpu())?;
//! let executable = model.compile(&session, &CompileOptions::default())?;
//! let outputs = executable.run(&[("x", Tensor::from_slice([2], &[0.0f32, 1.0])?)])?;
//! assert_eq!(outputs["y"].to_vec::<f32>(), Some(vec![1.0, 2.7182817]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod io;
mod model;

pub use model::{Model, ModelError, ModelOptions, write_text};
pub use rlx_eval as eval;
pub use rlx_ir as ir;
pub use rlx_onnx as onnx;
pub use rlx_opt as opt;
pub use rlx_runtime::{
    Cache, CompileOptions, CompileReport, Device, DeviceInfo, Error, Executable, MemoryUse, Outputs, Report,
    RunError, RunOptions, Session, Slots, State, Tensor, TensorError, devices, report,
};

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
