//! Normalisations of images and signals by channel: batch, instance and group norm. Channels are one axis, the others
//! are batch and space.

use super::{affine, standardise, standardise_by, statistics_dtype};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::elementwise::UnaryOp;
use crate::op::statistics::variance;
use crate::op::{Axis, CompositeDef, OpDef, Real};
use crate::operation;
use crate::types::TensorType;

operation! {
    /// y = (x − mean) / sqrt(variance + eps) · scale + bias, over the channels of a group and all spatial axes of one
    /// sample (Wu & He 2018). x is \[n, c, s…\]; operands: x, scale \[c\] if it is there, bias \[c\] if it is there too.
    /// C1: x is floating point. C2: x has at least two axes. C3: scale and bias are floating point and have c elements.
    /// C4: groups are at least 1 and divide c.
    pub struct GroupNorm = "group_norm" {
        /// How many groups the channels form.
        groups: usize,
        /// Added to the variance.
        eps: Real,
    }
}

operation! {
    /// y = (x − mean) / sqrt(variance + eps) · scale + bias, over the spatial axes of one channel of one sample
    /// (Ulyanov et al. 2016). x is \[n, c, s…\]; operands: x, scale \[c\] if it is there, bias \[c\] if it is there too.
    /// C1: x is floating point. C2: x has at least two axes. C3: scale and bias are floating point and have c elements.
    pub struct InstanceNorm = "instance_norm" {
        /// Added to the variance.
        eps: Real,
    }
}

operation! {
    /// y = (x − mean) / sqrt(variance + eps) · scale + bias with given statistics (Ioffe & Szegedy 2015). Operands: x,
    /// scale, bias, mean, variance. C1: x is floating point. C2: −rank ≤ axis < rank.
    /// C3: the others are floating point and have the axis's size.
    pub struct BatchNorm = "batch_norm" {
        /// The channel axis.
        axis: Axis,
        /// Added to the variance.
        eps: Real,
    }
}

operation! {
    /// `batch_norm` with the statistics of all axes but the channel axis. Operands: x, scale, bias, running mean,
    /// running variance. Results: y, and the running statistics r · momentum + s · (1 − momentum), where s is the mean and
    /// the variance of x; y uses the biased variance. C1 to C3 as `batch_norm`.
    pub struct BatchNormTraining = "batch_norm_training" {
        /// The channel axis.
        axis: Axis,
        /// Added to the variance.
        eps: Real,
        /// The share of the running statistics that stays (PyTorch's momentum is 1 less this).
        momentum: Real,
        /// The running variance takes in the variance over n − 1 (PyTorch), not over n (ONNX).
        unbiased: bool,
    }
}

/// C1 to C3 of group and instance norm.
fn channels_second<'a>(cx: &Infer<'a>) -> Result<&'a TensorType, TypeError> {
    cx.arity_between(1, 3)?;
    let x = cx.float("C1", 0)?;
    cx.rank_at_least("C2", 0, 2)?;
    for i in 1..cx.count() {
        cx.float("C3", i)?;
        cx.same_dims("C3", i, &x.dims()[1..2])?;
    }
    Ok(x)
}

impl OpDef for GroupNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let x = channels_second(cx)?;
        cx.ensure(self.groups >= 1, "C4", None, "groups", "at least 1", self.groups)?;
        let groups = Dim::from(self.groups);
        let whole = x.shape[1].floor_div(&groups) * groups;
        cx.equal("C4", Some(0), "channels are no multiple of the groups", &whole, &x.shape[1])?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for GroupNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (dtype, shape) = (b.dtype(x), b.shape(x));
        let groups = Dim::from(self.groups);
        let mut dims = vec![shape[0].clone(), groups.clone(), shape[1].floor_div(&groups)];
        dims.extend(shape[2..].iter().cloned());
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let grouped = b.reshape(wide, &dims)?;
        let axes: Vec<usize> = (2..dims.len()).collect();
        let normal = standardise(b, grouped, &axes, self.eps.get())?.value;
        let normal = b.reshape(normal, &shape)?;
        let y = affine(b, normal, &operands[1..], &[1])?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for InstanceNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        Ok(one(channels_second(cx)?.clone()))
    }
}

impl CompositeDef for InstanceNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let dtype = b.dtype(x);
        let axes: Vec<usize> = (2..b.rank(x)).collect();
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let normal = standardise(b, wide, &axes, self.eps.get())?.value;
        let y = affine(b, normal, &operands[1..], &[1])?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

/// C1 to C3 of the batch norms: x, and the type of each channel vector.
fn channel_vectors<'a>(cx: &Infer<'a>, axis: Axis) -> Result<&'a TensorType, TypeError> {
    cx.arity(5)?;
    let x = cx.float("C1", 0)?;
    let axis = axis.resolve(cx, "C2", x.rank())?;
    for i in 1..5 {
        cx.float("C3", i)?;
        cx.same_dims("C3", i, &x.dims()[axis..=axis])?;
    }
    Ok(x)
}

impl OpDef for BatchNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        Ok(one(channel_vectors(cx, self.axis)?.clone()))
    }
}

impl OpDef for BatchNormTraining {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let x = channel_vectors(cx, self.axis)?;
        Ok(Types::from_iter([x.clone(), cx.operand(3)?.clone(), cx.operand(4)?.clone()]))
    }
}

/// (x − mean) / √(variance + eps) · scale + bias, all but x along one axis; rounded once to x's type.
fn normalise_channels(
    b: &mut Builder,
    operands: &[Value],
    axis: usize,
    eps: f64,
    [mean, variance]: [Value; 2],
) -> Result<Value, TypeError> {
    let x = operands[0];
    let (dtype, shape) = (b.dtype(x), b.shape(x));
    let wide = b.cast(x, statistics_dtype(dtype))?;
    let shifted = b.add_scalar(variance, eps)?;
    let inverse = b.unary(UnaryOp::Rsqrt, shifted)?;
    let mean = b.broadcast_in(mean, &shape, &[axis])?;
    let inverse = b.broadcast_in(inverse, &shape, &[axis])?;
    let normal = standardise_by(b, wide, mean, inverse)?;
    let y = affine(b, normal, &operands[1..3], &[axis])?;
    b.cast(y, dtype)
}

impl CompositeDef for BatchNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = statistics_dtype(b.dtype(operands[0]));
        let axis = self.axis.of_rank(b.rank(operands[0])).unwrap_or(0);
        let given = [b.cast(operands[3], dtype)?, b.cast(operands[4], dtype)?];
        Ok(Values::from_slice(&[normalise_channels(b, operands, axis, self.eps.get(), given)?]))
    }
}

impl CompositeDef for BatchNormTraining {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let axis = self.axis.of_rank(b.rank(x)).unwrap_or(0);
        let axes: Vec<usize> = (0..b.rank(x)).filter(|a| *a != axis).collect();
        let wide = b.cast(x, statistics_dtype(b.dtype(x)))?;
        let mean = b.mean(wide, &axes, false)?;
        let biased = variance(b, wide, &axes, 0.0, false)?;
        let y = normalise_channels(b, operands, axis, self.eps.get(), [mean, biased])?;
        let taken_in = if self.unbiased { variance(b, wide, &axes, 1.0, false)? } else { biased };
        let mut results = Values::from_slice(&[y]);
        for (running, new) in [(operands[3], mean), (operands[4], taken_in)] {
            let dtype = b.dtype(running);
            let old = b.cast(running, b.dtype(new))?;
            let kept = b.mul_scalar(old, self.momentum.get())?;
            let share = b.mul_scalar(new, 1.0 - self.momentum.get())?;
            let sum = b.add(kept, share)?;
            results.push(b.cast(sum, dtype)?);
        }
        Ok(results)
    }
}
