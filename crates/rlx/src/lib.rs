//! RLX: a machine-learning compiler and runtime. This crate is the way in: it gathers the graph ([`ir`]), the oracle
//! ([`eval`]), the ONNX importer ([`onnx`]), models as files ([`Model`]) and the files that tensors come from and go to
//! ([`io`]).

pub mod io;
mod model;

pub use model::{Model, ModelError, ModelOptions, write_text};
pub use rlx_eval as eval;
pub use rlx_ir as ir;
pub use rlx_onnx as onnx;
