//! ONNX files to RLX graphs.
//!
//! [`load`] opens a file within limits and decodes its messages ([`proto`]); [`tensor`] and [`sparse`] read the
//! weights in it; [`external`] finds those that are in other files. The weights share the mapped file.
//! [`import()`] makes a graph of the model: [`values`] says what names stand for on the way, the table of operators
//! ([`coverage()`]) what each node becomes.

mod attributes;
pub mod data;
pub mod error;
pub mod external;
pub mod file;
mod functions;
pub mod import;
mod interface;
pub mod literal;
pub mod load;
mod map;
mod missing;
mod node;
mod ops;
mod order;
pub mod proto;
mod registry;
mod scan;
mod scope;
pub mod sparse;
mod subgraph;
pub mod tensor;
pub mod values;

pub use error::{ImportError, MissingOperator, NodeProblem};
pub use file::MemoryMode;
pub use import::{Assumption, ImportLimits, ImportOptions, Imported, OutputForm, import};
pub use load::{LoadError, LoadOptions, ModelFile};
pub use proto::wire::WireProblem;
pub use registry::{Coverage, NEWEST_OPSET, coverage};
pub use scan::ScanError;
pub use values::Constant;
