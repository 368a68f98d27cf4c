//! The numeric leaf functions of the oracle: what one element, one axis or one matrix becomes.
//!
//! Nothing here knows graphs, tensors or dtypes. Values travel in *carriers* that hold every value of the
//! declared type exactly: `f64` for all floats, `i64` and `u64` with a bit width for integers, and
//! `(f64, f64)` for complex numbers. The caller rounds to the declared type after each elementary operation
//! ([`minifloat`] for the small floats, `as f32` for f32).
//!
//! Transcendental functions come from the `libm` crate and never from the platform's C library, so that the
//! oracle gives the same bits on every machine.

pub mod fft;
pub mod float;
pub mod linalg;
pub mod minifloat;
pub mod philox;
pub mod special;
pub mod wrap;
