//! Random bits: the one source of randomness.

use super::OpDef;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::TensorType;

operation! {
    /// Philox 4×32-10 (Salmon et al. 2011): u32 bits, a pure function of the key (operand 0, u64 \[2\]) and the
    /// counter (operand 1, a u64 scalar). C1: u64 operands. C2: their sizes.
    pub struct RandomBits = "random_bits" {
        /// The result's sizes.
        dims: Vec<Dim>,
    }
}

impl OpDef for RandomBits {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        cx.dtype("C1", 0, DType::U64)?;
        cx.dtype("C1", 1, DType::U64)?;
        cx.same_dims("C2", 0, &[2.into()])?;
        cx.rank("C2", 1, 0)?;
        for dim in &self.dims {
            cx.at_most("C2", None, "size is negative", &Dim::ZERO, dim)?;
        }
        Ok(one(TensorType::new(DType::U32, self.dims.as_slice())))
    }
}
