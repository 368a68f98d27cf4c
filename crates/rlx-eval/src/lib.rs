//! rlx-eval

pub mod quant;
