//! The messages of an ONNX file, as of onnx 1.23.2 (`proto/onnx/*.proto`).
//!
//! All are prost types: they can be built, encoded and decoded. Files from outside go through [`crate::load`], which
//! scans them first, because decoding alone does not bound the memory that a hostile file takes. `bytes` fields and
//! the numeric fields of [`TensorProto`] share the buffer that was decoded.

mod data_type;
pub(crate) mod field;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, reason = "generated; the .proto files document the fields")]
#[allow(clippy::all, reason = "generated")]
mod generated;
mod packed;
pub(crate) mod schema;
mod tensor_message;
pub(crate) mod wire;

pub use data_type::DataType;
pub use generated::*;
pub use packed::PackedValues;
pub use tensor_message::{DataLocation, Segment, TensorProto};
