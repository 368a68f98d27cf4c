//! Normalisations over the last axes of each position: layer norm, RMS norm, and both behind a residual sum.

use super::{affine, standardise, statistics_dtype};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::axes::broadcasts_to;
use crate::op::elementwise::UnaryOp;
use crate::op::reduce::reduced_shape;
use crate::op::{Axis, CompositeDef, OpDef, Real};
use crate::types::TensorType;
use crate::{names, operation};

operation! {
    /// y = x / sqrt(mean(x²) + eps) · scale, over the axes from `axis` on (Zhang & Sennrich 2019).
    /// Operands: x, and scale if it is there. C1: x is floating point. C2: −rank ≤ axis < rank.
    /// C3: scale is floating point and has x's sizes from `axis` on.
    pub struct RmsNorm = "rms_norm" {
        /// The first normalised axis.
        axis: Axis,
        /// Added to the mean square.
        eps: Real,
    }
}

operation! {
    /// y = (x − mean) / sqrt(variance + eps) · scale + bias, over the axes from `axis` on (Ba et al. 2016).
    /// Operands: x, scale if it is there, bias if it is there too. Results: y, and if `statistics` the mean and
    /// 1 / sqrt(variance + eps), of size 1 along the normalised axes, in f32 (f64 for an f64 x).
    /// C1: x is floating point. C2: −rank ≤ axis < rank. C3: scale and bias are floating point and have x's sizes from
    /// `axis` on.
    pub struct LayerNorm = "layer_norm" {
        /// The first normalised axis.
        axis: Axis,
        /// Added to the variance.
        eps: Real,
        /// Whether the mean and the inverse deviation are results.
        statistics: bool,
    }
}

names! {
    /// Which norm follows a residual sum.
    pub enum SkipNormOp {
        /// `layer_norm` of the sum.
        LayerNorm = "skip_layer_norm",
        /// `rms_norm` of the sum.
        RmsNorm = "skip_rms_norm",
    }
}

operation! {
    /// s = x + skip (+ bias), y = norm(s) · scale (+ shift) over the last axis. The norm sees s before it is rounded to
    /// x's type. Operands: x, skip, scale, then shift if `shift`, then bias if `bias`. Results: y and s, of x's type.
    /// C1: x is floating point, and all operands have its element type. C2: x has at least one axis.
    /// C3: skip broadcasts to x's sizes. C4: scale, shift and bias have the size of the last axis.
    pub struct SkipNorm: SkipNormOp {
        /// Added to the variance or the mean square.
        eps: Real,
        /// Whether something is added to the scaled result.
        shift: bool,
        /// Whether the sum has a third term.
        bias: bool,
    }
}

impl OpDef for RmsNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(1, 2)?;
        let x = cx.float("C1", 0)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        parameters_fit(cx, &x.dims()[axis..])?;
        Ok(one(x.clone()))
    }
}

/// C3: operands from 1 on are floating point and have these sizes.
fn parameters_fit(cx: &Infer<'_>, dims: &[Dim]) -> Result<(), TypeError> {
    for i in 1..cx.count() {
        cx.float("C3", i)?;
        cx.same_dims("C3", i, dims)?;
    }
    Ok(())
}

/// The axes from `axis` on.
fn last_axes(axis: Axis, rank: usize) -> Vec<usize> {
    (axis.of_rank(rank).unwrap_or(0)..rank).collect()
}

/// x / sqrt(mean(x²) + eps) over `axes`, in the operand's type.
fn rms_normalise(b: &mut Builder, x: Value, axes: &[usize], eps: f64) -> Result<Value, TypeError> {
    let square = b.mul(x, x)?;
    let mean = b.mean(square, axes, true)?;
    let shifted = b.add_scalar(mean, eps)?;
    let inverse = b.unary(UnaryOp::Rsqrt, shifted)?;
    let inverse = b.broadcast_to(inverse, &b.shape(x))?;
    b.mul(x, inverse)
}

impl CompositeDef for RmsNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let dtype = b.dtype(x);
        let axes = last_axes(self.axis, b.rank(x));
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let normal = rms_normalise(b, wide, &axes, self.eps.get())?;
        let scaled = affine(b, normal, &operands[1..], &axes)?;
        Ok(Values::from_slice(&[b.cast(scaled, dtype)?]))
    }
}

impl OpDef for LayerNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(1, 3)?;
        let x = cx.float("C1", 0)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        parameters_fit(cx, &x.dims()[axis..])?;
        let mut types = one(x.clone());
        if self.statistics {
            let axes: Vec<usize> = (axis..x.rank()).collect();
            let dims = reduced_shape(&x.shape, &axes, true);
            let statistic = TensorType::new(statistics_dtype(x.dtype), dims);
            types.extend([statistic.clone(), statistic]);
        }
        Ok(types)
    }
}

impl CompositeDef for LayerNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let dtype = b.dtype(x);
        let axes = last_axes(self.axis, b.rank(x));
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let normal = standardise(b, wide, &axes, self.eps.get())?;
        let y = affine(b, normal.value, &operands[1..], &axes)?;
        let mut results = Values::from_slice(&[b.cast(y, dtype)?]);
        if self.statistics {
            results.extend([normal.mean, normal.inverse_deviation]);
        }
        Ok(results)
    }
}

impl OpDef for SkipNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3 + usize::from(self.shift) + usize::from(self.bias))?;
        let x = cx.float("C1", 0)?;
        for i in 1..cx.count() {
            cx.same_dtype("C1", i, 0)?;
        }
        cx.rank_at_least("C2", 0, 1)?;
        broadcasts_to(cx, "C3", 1, x.dims())?;
        for i in 2..cx.count() {
            cx.same_dims("C4", i, &x.dims()[x.rank() - 1..])?;
        }
        Ok(Types::from_iter([x.clone(), x.clone()]))
    }
}

impl CompositeDef for SkipNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (dtype, shape) = (b.dtype(x), b.shape(x));
        let mut sum = b.cast(x, statistics_dtype(dtype))?;
        let mut terms = vec![operands[1]];
        if self.bias {
            terms.extend(operands.last());
        }
        for term in terms {
            let wide = b.cast(term, statistics_dtype(dtype))?;
            let all = b.broadcast_to(wide, &shape)?;
            sum = b.add(sum, all)?;
        }
        let last = [shape.rank().saturating_sub(1)];
        let normal = match self.op {
            SkipNormOp::LayerNorm => standardise(b, sum, &last, self.eps.get())?.value,
            SkipNormOp::RmsNorm => rms_normalise(b, sum, &last, self.eps.get())?,
        };
        let parameters = &operands[2..3 + usize::from(self.shift)];
        let y = affine(b, normal, parameters, &last)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?, b.cast(sum, dtype)?]))
    }
}
