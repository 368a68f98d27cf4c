//! Normalisations. Statistics are taken in f32 for narrower floats; the variance is the biased one, and eps is inside
//! the root.

mod channel;
mod layer;
mod response;

pub use channel::{BatchNorm, BatchNormTraining, GroupNorm, InstanceNorm};
pub use layer::{LayerNorm, RmsNorm, SkipNorm, SkipNormOp};
pub use response::{LpNormalize, Lrn, MeanVarianceNorm};

use super::elementwise::UnaryOp;
use super::statistics::variance;
use crate::builder::Builder;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;

/// The type in which statistics of this type are taken: f64 stays, all narrower floats use f32.
pub(crate) fn statistics_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// A tensor less its mean, over its standard deviation, with these statistics (the reduced axes kept).
struct Standardised {
    value: Value,
    mean: Value,
    inverse_deviation: Value,
}

/// (x − mean) / √(variance + eps) over `axes`, in the operand's type.
fn standardise(b: &mut Builder, x: Value, axes: &[usize], eps: f64) -> Result<Standardised, TypeError> {
    let mean = b.mean(x, axes, true)?;
    let variance = variance(b, x, axes, 0.0, true)?;
    let shifted = b.add_scalar(variance, eps)?;
    let inverse_deviation = b.unary(UnaryOp::Rsqrt, shifted)?;
    let value = standardise_by(b, x, mean, inverse_deviation)?;
    Ok(Standardised { value, mean, inverse_deviation })
}

/// (x − mean) · inverse_deviation, both broadcast to x.
fn standardise_by(
    b: &mut Builder,
    x: Value,
    mean: Value,
    inverse_deviation: Value,
) -> Result<Value, TypeError> {
    let shape = b.shape(x);
    let mean = b.broadcast_to(mean, &shape)?;
    let centred = b.sub(x, mean)?;
    let inverse_deviation = b.broadcast_to(inverse_deviation, &shape)?;
    b.mul(centred, inverse_deviation)
}

/// x · scale + shift, where either may be absent, each cast to x's type and laid along the axes `axes` of x.
fn affine(b: &mut Builder, x: Value, parameters: &[Value], axes: &[usize]) -> Result<Value, TypeError> {
    let (dtype, shape) = (b.dtype(x), b.shape(x));
    let mut y = x;
    for (i, parameter) in parameters.iter().enumerate() {
        let wide = b.cast(*parameter, dtype)?;
        let laid = b.broadcast_in(wide, &shape, axes)?;
        y = if i == 0 { b.mul(y, laid)? } else { b.add(y, laid)? };
    }
    Ok(y)
}
