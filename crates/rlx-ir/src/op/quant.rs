//! Quantised formats.

use super::OpDef;
use crate::dtype::{DType, DTypeClass};
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::operation;

operation! {
    /// The numbers that a block-quantised tensor stands for, as ggml defines them, rounded once from f32.
    /// C1: a block format. C2: the result is floating point.
    pub struct Dequantise = "dequantise" {
        /// The result's element type.
        to: DType,
    }
}

impl OpDef for Dequantise {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.of("C1", 0, "a block format", |d| d.class() == DTypeClass::Block)?;
        cx.ensure(self.to.is_float(), "C2", None, "result type", "a floating-point type", self.to)?;
        Ok(one(x.with_dtype(self.to)))
    }
}
