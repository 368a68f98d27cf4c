//! Reductions that are made of sums and maxima: means, norms, log-sums, variances. Over several axes at once; floats
//! narrower than f32 are computed in f32 and rounded once. Over no axis, each element is its own group.

use super::axes::{axes_of_rank, resolve_axes};
use super::elementwise::{BinaryOp, UnaryOp};
use super::norm::statistics_dtype;
use super::reduce::{ReduceOp, reduced_shape};
use super::{Axis, CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};

names! {
    /// One number for many.
    pub enum SummaryOp {
        /// Σ x / n; NaN if empty. Integers: the quotient truncates, and an empty mean is an error at run time.
        Mean = "reduce_mean",
        /// Σ |x|.
        L1 = "reduce_l1",
        /// √Σ x².
        L2 = "reduce_l2",
        /// ln Σ x.
        LogSum = "reduce_log_sum",
        /// ln Σ eˣ, the greatest element taken out first; −∞ if empty.
        LogSumExp = "reduce_log_sum_exp",
        /// Σ x².
        SumSquare = "reduce_sum_square",
    }
}

names! {
    /// How far elements lie from their mean.
    pub enum SpreadOp {
        /// Σ (x − mean)² / max(n − ddof, 0).
        Variance = "variance",
        /// The square root of the variance.
        StandardDeviation = "standard_deviation",
    }
}

operation! {
    /// Combines the elements along axes. C1: x is floating point (mean, L1, sum of squares: or an integer).
    /// C2: axes are distinct and in −rank … rank − 1.
    pub struct Summary: SummaryOp {
        /// The axes.
        axes: Vec<Axis>,
        /// Whether reduced axes stay, with size 1.
        keep_dims: bool,
    }
}

operation! {
    /// The spread along axes; NaN or infinite where n ≤ ddof. C1: x is floating point. C2: axes are distinct and in
    /// −rank … rank − 1.
    pub struct Spread: SpreadOp {
        /// The axes.
        axes: Vec<Axis>,
        /// What is taken off the count: 0 for the biased variance, 1 for the unbiased one.
        ddof: Real,
        /// Whether reduced axes stay, with size 1.
        keep_dims: bool,
    }
}

impl OpDef for Summary {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = match self.op {
            SummaryOp::Mean | SummaryOp::L1 | SummaryOp::SumSquare => {
                cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?
            }
            _ => cx.float("C1", 0)?,
        };
        let axes = resolve_axes(cx, "C2", &self.axes, x.rank())?;
        Ok(one(x.with_shape(reduced_shape(&x.shape, &axes, self.keep_dims))))
    }
}

impl OpDef for Spread {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        let axes = resolve_axes(cx, "C2", &self.axes, x.rank())?;
        Ok(one(x.with_shape(reduced_shape(&x.shape, &axes, self.keep_dims))))
    }
}

/// The logarithm of the sum of exponentials, in the operand's type. The greatest element is taken out, unless it is
/// infinite: then the sum is 0 or infinite by itself.
fn log_sum_exp(b: &mut Builder, x: Value, axes: &[usize], keep_dims: bool) -> Result<Value, TypeError> {
    let greatest = b.reduce(ReduceOp::Max, x, axes, true)?;
    let finite = b.unary(UnaryOp::IsFinite, greatest)?;
    let zero = b.like(0.0, greatest)?;
    let shift = b.select(finite, greatest, zero)?;
    let shift_all = b.broadcast_to(shift, &b.shape(x))?;
    let shifted = b.sub(x, shift_all)?;
    let e = b.unary(UnaryOp::Exp, shifted)?;
    let sum = b.sum(e, axes, keep_dims)?;
    let log = b.unary(UnaryOp::Log, sum)?;
    let shift = b.reshape(shift, &b.shape(log))?;
    b.add(log, shift)
}

/// The mean of (x − mean)² with `ddof` taken off the count, in the operand's type.
pub(crate) fn variance(
    b: &mut Builder,
    x: Value,
    axes: &[usize],
    ddof: f64,
    keep_dims: bool,
) -> Result<Value, TypeError> {
    let shape = b.shape(x);
    let mean = b.mean(x, axes, true)?;
    let mean = b.broadcast_to(mean, &shape)?;
    let deviation = b.sub(x, mean)?;
    let square = b.mul(deviation, deviation)?;
    if ddof == 0.0 {
        return b.mean(square, axes, keep_dims);
    }
    let sum = b.sum(square, axes, keep_dims)?;
    let count = Dim::product(axes.iter().filter_map(|a| shape.get(*a)));
    let count = b.dim_as(&count, b.dtype(x))?;
    let count = b.add_scalar(count, -ddof)?;
    let count = b.binary_scalar(BinaryOp::Max, count, 0.0)?;
    let count = b.broadcast_to(count, &b.shape(sum))?;
    b.div(sum, count)
}

impl CompositeDef for Summary {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (dtype, keep) = (b.dtype(x), self.keep_dims);
        let axes = axes_of_rank(&self.axes, b.rank(x));
        let wide = if dtype.is_float() { b.cast(x, statistics_dtype(dtype))? } else { x };
        let y = match self.op {
            SummaryOp::Mean => b.mean(wide, &axes, keep)?,
            SummaryOp::L1 => {
                let magnitude = b.unary(UnaryOp::Abs, wide)?;
                b.sum(magnitude, &axes, keep)?
            }
            SummaryOp::L2 | SummaryOp::SumSquare => {
                let square = b.mul(wide, wide)?;
                let sum = b.sum(square, &axes, keep)?;
                if self.op == SummaryOp::L2 { b.unary(UnaryOp::Sqrt, sum)? } else { sum }
            }
            SummaryOp::LogSum => {
                let sum = b.sum(wide, &axes, keep)?;
                b.unary(UnaryOp::Log, sum)?
            }
            SummaryOp::LogSumExp => log_sum_exp(b, wide, &axes, keep)?,
        };
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl CompositeDef for Spread {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let dtype = b.dtype(x);
        let axes = axes_of_rank(&self.axes, b.rank(x));
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let mut y = variance(b, wide, &axes, self.ddof.get(), self.keep_dims)?;
        if self.op == SpreadOp::StandardDeviation {
            y = b.unary(UnaryOp::Sqrt, y)?;
        }
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}
