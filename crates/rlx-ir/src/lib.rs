//! rlx-ir

pub mod block;

pub use block::BlockFormat;
