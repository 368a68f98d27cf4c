//! Normalisations. Statistics are taken in f32 for narrower floats; the variance is the biased one, and eps is inside
//! the root.

use super::{Axis, CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::elementwise::UnaryOp;
use crate::operation;

operation! {
    /// y = x / sqrt(mean(x²) + eps) · scale, over the axes from `axis` on (Zhang & Sennrich 2019).
    /// Operands: x, scale. C1: x is floating point. C2: −rank ≤ axis < rank.
    /// C3: scale has x's element type and its sizes from `axis` on.
    pub struct RmsNorm = "rms_norm" {
        /// The first normalised axis.
        axis: Axis,
        /// Added to the mean square.
        eps: Real,
    }
}

/// The type in which statistics of this type are taken: f64 stays, all narrower floats use f32.
pub(crate) fn statistics_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

impl OpDef for RmsNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.float("C1", 0)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        cx.same_dtype("C3", 1, 0)?;
        cx.same_dims("C3", 1, &x.dims()[axis..])?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for RmsNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, scale) = (operands[0], operands[1]);
        let (dtype, shape) = (b.dtype(x), b.shape(x));
        let axes: Vec<usize> = (self.axis.of_rank(shape.rank()).unwrap_or(0)..shape.rank()).collect();
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let square = b.mul(wide, wide)?;
        let mean = b.mean(square, &axes, true)?;
        let shifted = b.add_scalar(mean, self.eps.get())?;
        let inverse = b.unary(UnaryOp::Rsqrt, shifted)?;
        let inverse = b.broadcast_to(inverse, &shape)?;
        let normal = b.mul(wide, inverse)?;
        let scale = b.cast(scale, statistics_dtype(dtype))?;
        let scale = b.broadcast_to(scale, &shape)?;
        let scaled = b.mul(normal, scale)?;
        Ok(Values::from_slice(&[b.cast(scaled, dtype)?]))
    }
}
