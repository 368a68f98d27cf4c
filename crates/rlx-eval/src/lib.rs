//! The oracle: every primitive by plain loops, in the declared type and in f64. It judges every backend and is never
//! optimised; composites run through their decompositions.
//!
//! Elements are held in carriers (f64 for every float, i64 and u64 for integers, pairs for complex numbers). A result
//! is rounded (or wrapped) to its declared type after each elementary operation, which for +, −, ×, ÷ and √ gives the
//! same bits as computing in that type (Figueroa 1995: f64 has more than twice the digits). [`Precision::Wide`] leaves
//! the rounding of floats out: the reference from which tolerances are measured.
//!
//! ```
//! use rlx_ir::{Literal, text};
//!
//! let graph = text::parse("rlx 1 graph \"g\"(%x: f32[n]) { %y = exp(%x) return \"y\" = %y }")?;
//! let y = rlx_eval::evaluate(&graph, &[Literal::vector(&[0.0f32, 1.0])])?;
//! assert_eq!(y[0].to_vec::<f32>(), Some(vec![1.0, 2.7182817]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contract;
mod control;
mod elementwise;
mod error;
mod fold;
mod index;
mod linalg;
mod movement;
mod oracle;
mod precision;
mod primitive;
mod quantised;
mod random;
mod reduce;
mod sort;
mod source;
mod spectral;
mod suppression;
mod tensor;
mod window;

pub mod numeric;
pub mod quant;

pub use elementwise::{float_binary, float_unary};
pub use error::{EvalError, Fault};
pub use fold::OracleFolder;
pub use oracle::{EvalOptions, Oracle, check_holds, evaluate, evaluate_primitive};
pub use precision::Precision;
