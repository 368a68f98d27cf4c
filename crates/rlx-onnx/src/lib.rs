//! ONNX files to RLX graphs.
//!
//! [`load`] opens a file within limits and decodes its messages ([`proto`]); [`tensor`] and [`sparse`] read the
//! weights in it; [`external`] finds those that are in other files. The weights share the mapped file.

pub mod external;
pub mod file;
pub mod load;
mod map;
pub mod proto;
mod scan;
pub mod sparse;
pub mod tensor;

pub use file::MemoryMode;
pub use load::{LoadError, LoadOptions, ModelFile};
pub use proto::wire::WireProblem;
pub use scan::ScanError;
