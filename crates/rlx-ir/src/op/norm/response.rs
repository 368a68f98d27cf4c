//! Normalisations by size rather than by learned scale: local response, Lp, mean and variance.

use super::statistics_dtype;
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::axes::{axes_of_rank, resolve_axes};
use crate::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use crate::op::reduce::ReduceOp;
use crate::op::statistics::variance;
use crate::op::window::{ReduceWindow, WindowOp};
use crate::op::{Axis, CompositeDef, OpDef, Real};
use crate::operation;

operation! {
    /// y = x / (bias + alpha/size · Σ x²)^beta, the sum over the `size` neighbouring channels, ⌊(size − 1)/2⌋ of them
    /// before (Krizhevsky et al. 2012). x is \[n, c, s…\]. C1: x is floating point. C2: x has at least two axes.
    /// C3: size is at least 1.
    pub struct Lrn = "lrn" {
        /// How many channels are summed.
        size: usize,
        /// The weight of the sum.
        alpha: Real,
        /// The exponent.
        beta: Real,
        /// Added to the sum.
        bias: Real,
    }
}

operation! {
    /// y = x / max((Σ |x|ᵖ)^(1/p), eps) over `axes`; 0 where the denominator is 0. C1: x is floating point.
    /// C2: axes are distinct and in −rank … rank − 1. C3: p > 0, ∞ for the greatest magnitude.
    pub struct LpNormalize = "lp_normalize" {
        /// The axes of one vector.
        axes: Vec<Axis>,
        /// The exponent.
        p: Real,
        /// The least denominator.
        eps: Real,
    }
}

operation! {
    /// y = (x − mean) / (√variance + eps) over `axes`. C1: x is floating point. C2: axes are distinct and in
    /// −rank … rank − 1.
    pub struct MeanVarianceNorm = "mean_variance_norm" {
        /// The axes of the statistics.
        axes: Vec<Axis>,
        /// Added to the deviation (ONNX: 1e-9).
        eps: Real,
    }
}

impl OpDef for Lrn {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        cx.rank_at_least("C2", 0, 2)?;
        cx.ensure(self.size >= 1, "C3", None, "size", "at least 1", self.size)?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Lrn {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (dtype, rank) = (b.dtype(x), b.rank(x));
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let square = b.mul(wide, wide)?;
        let along = |of_channels: Dim, of_others: Dim| -> Vec<Dim> {
            (0..rank).map(|i| if i == 1 { of_channels.clone() } else { of_others.clone() }).collect()
        };
        let before = (self.size - 1) / 2;
        let low = along(before.into(), Dim::ZERO);
        let high = along((self.size - 1 - before).into(), Dim::ZERO);
        let window = ReduceWindow {
            op: WindowOp::Sum,
            window: along(self.size.into(), Dim::ONE),
            strides: vec![1; rank],
            dilations: vec![1; rank],
            padding: low.into_iter().zip(high).collect(),
        };
        let zero = b.scalar(0.0, b.dtype(wide))?;
        let sum = b.push1(window, &[square, zero])?;
        let scaled = b.mul_scalar(sum, self.alpha.get() / self.size as f64)?;
        let shifted = b.add_scalar(scaled, self.bias.get())?;
        let below = b.binary_scalar(BinaryOp::Pow, shifted, self.beta.get())?;
        let y = b.div(wide, below)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for LpNormalize {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        resolve_axes(cx, "C2", &self.axes, x.rank())?;
        cx.ensure(self.p.get() > 0.0, "C3", None, "p", "above 0", self.p.get())?;
        Ok(one(x.clone()))
    }
}

/// (Σ |x|ᵖ)^(1/p) over `axes`, which stay with size 1, in the operand's type.
fn lp_norm(b: &mut Builder, x: Value, axes: &[usize], p: f64) -> Result<Value, TypeError> {
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    if p == f64::INFINITY {
        let greatest = b.reduce(ReduceOp::Max, magnitude, axes, true)?;
        // The greatest of nothing is −∞, its norm 0.
        return b.binary_scalar(BinaryOp::Max, greatest, 0.0);
    }
    if p == 1.0 {
        return b.sum(magnitude, axes, true);
    }
    if p == 2.0 {
        let square = b.mul(x, x)?;
        let sum = b.sum(square, axes, true)?;
        return b.unary(UnaryOp::Sqrt, sum);
    }
    let power = b.binary_scalar(BinaryOp::Pow, magnitude, p)?;
    let sum = b.sum(power, axes, true)?;
    b.binary_scalar(BinaryOp::Pow, sum, 1.0 / p)
}

impl CompositeDef for LpNormalize {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (dtype, shape) = (b.dtype(x), b.shape(x));
        let axes = axes_of_rank(&self.axes, shape.rank());
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let norm = lp_norm(b, wide, &axes, self.p.get())?;
        let limited = b.binary_scalar(BinaryOp::Max, norm, self.eps.get())?;
        let below = b.broadcast_to(limited, &shape)?;
        let quotient = b.div(wide, below)?;
        let empty = b.compare_scalar(CompareOp::Eq, below, 0.0)?;
        let zero = b.like(0.0, wide)?;
        let y = b.select(empty, zero, quotient)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for MeanVarianceNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        resolve_axes(cx, "C2", &self.axes, x.rank())?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for MeanVarianceNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (dtype, shape) = (b.dtype(x), b.shape(x));
        let axes = axes_of_rank(&self.axes, shape.rank());
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let mean = b.mean(wide, &axes, true)?;
        let mean = b.broadcast_to(mean, &shape)?;
        let centred = b.sub(wide, mean)?;
        let variance = variance(b, wide, &axes, 0.0, true)?;
        let deviation = b.unary(UnaryOp::Sqrt, variance)?;
        let below = b.add_scalar(deviation, self.eps.get())?;
        let below = b.broadcast_to(below, &shape)?;
        let y = b.div(centred, below)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}
