//! rlx-eval

pub mod numeric;
pub mod quant;
