//! The graph of tensor operations that RLX compiles: typed, in static single assignment form, with symbolic sizes.
//!
//! A [`Graph`] is made by a [`Builder`], which infers every type from the [operation table](op), checked by
//! [`verify()`], written and read as [text], and lowered to primitives by [`lower()`].
//!
//! ```
//! use rlx_ir::{Builder, DType, Dim, TensorType, op::elementwise::UnaryOp, text};
//!
//! let mut b = Builder::new("main");
//! let x = b.input("x", TensorType::new(DType::F32, vec![Dim::symbol("batch"), 4.into()]))?;
//! let y = b.unary(UnaryOp::Exp, x)?;
//! let graph = b.finish([("y", y)])?;
//! assert_eq!(text::parse(&text::print(&graph)), Ok(graph));
//! # Ok::<(), rlx_ir::TypeError>(())
//! ```

pub mod block;
pub mod builder;
pub mod dim;
pub mod dtype;
pub mod error;
pub mod export;
pub mod graph;
pub mod hash;
pub mod infer;
pub mod literal;
pub mod lower;
pub mod op;
pub mod text;
pub mod types;
pub mod verify;

pub use block::BlockFormat;
pub use builder::{Builder, ConstantFolder, Values};
pub use dim::{Bindings, Dim, DimError, Symbol, SymbolInfo, Symbols};
pub use dtype::{DType, DTypeClass};
pub use error::{Locations, TypeError};
pub use graph::{Graph, Node, NodeId, Value};
pub use hash::structural_hash;
pub use literal::{Element, Literal, LiteralError};
pub use lower::{lower, lower_typed};
pub use op::{Composite, Op, Primitive};
pub use types::{Shape, TensorType};
pub use verify::{VerifyError, verify};
