//! Activation functions. Narrow floats are computed in f32 and rounded once; formulas keep their relative accuracy near 0
//! and in the tails.
//!
//! Here are the functions without parameters; `parametric` holds those with, `operand` those of several tensors, `formula`
//! the arithmetic.

mod formula;
mod operand;
mod parametric;

pub(crate) use formula::{clamp, log_sigmoid, softplus};
pub use operand::{Clip, GateFunction, Glu, PRelu};
pub use parametric::{
    Celu, Elu, HardSigmoid, HardTanh, LeakyRelu, Logit, Selu, Shrink, Softplus, Swish, Threshold,
};

use super::elementwise::{BinaryOp, UnaryOp};
use super::norm::statistics_dtype;
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};
use formula::{gelu_tanh, mish, normal_cdf, tanh_shrink};

type Built = Result<Value, TypeError>;

names! {
    /// Activations without parameters.
    pub enum ActivationOp {
        /// max(x, 0).
        Relu = "relu",
        /// min(max(x, 0), 6).
        Relu6 = "relu6",
        /// max(x, 0)² (So et al. 2021).
        SquaredRelu = "squared_relu",
        /// x · Φ(x), with Φ the normal distribution function (Hendrycks & Gimpel 2016).
        Gelu = "gelu",
        /// x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
        GeluTanh = "gelu_tanh",
        /// x · tanh(softplus(x)) (Misra 2019).
        Mish = "mish",
        /// x / (1 + |x|).
        Softsign = "softsign",
        /// x · min(max(x + 3, 0), 6) / 6.
        HardSwish = "hard_swish",
        /// −ln(1 + e^(−x)).
        LogSigmoid = "log_sigmoid",
        /// x − tanh x.
        TanhShrink = "tanh_shrink",
        /// 1 / x.
        Reciprocal = "reciprocal",
    }
}

operation! {
    /// y = f(x). C1: x is floating point (relu: or an integer).
    pub struct Activation: ActivationOp {}
}
/// `f` in the wide type, rounded once.
fn in_wide(
    b: &mut Builder,
    x: Value,
    f: impl FnOnce(&mut Builder, Value) -> Built,
) -> Result<Values, TypeError> {
    let dtype = b.dtype(x);
    let wide = b.cast(x, statistics_dtype(dtype))?;
    let y = f(b, wide)?;
    Ok(Values::from_slice(&[b.cast(y, dtype)?]))
}

impl ActivationOp {
    /// The function on a tensor in f32 or f64.
    pub(crate) fn apply(self, b: &mut Builder, x: Value) -> Built {
        match self {
            ActivationOp::Relu => b.binary_scalar(BinaryOp::Max, x, 0.0),
            ActivationOp::Relu6 => clamp(b, x, 0.0, 6.0),
            ActivationOp::SquaredRelu => {
                let y = b.binary_scalar(BinaryOp::Max, x, 0.0)?;
                b.mul(y, y)
            }
            ActivationOp::Gelu => {
                let cdf = normal_cdf(b, x)?;
                b.mul(x, cdf)
            }
            ActivationOp::GeluTanh => gelu_tanh(b, x),
            ActivationOp::Mish => mish(b, x),
            ActivationOp::Softsign => {
                let magnitude = b.unary(UnaryOp::Abs, x)?;
                let below = b.add_scalar(magnitude, 1.0)?;
                b.div(x, below)
            }
            ActivationOp::HardSwish => {
                let shifted = b.add_scalar(x, 3.0)?;
                let gate = clamp(b, shifted, 0.0, 6.0)?;
                let product = b.mul(x, gate)?;
                b.binary_scalar(BinaryOp::Div, product, 6.0)
            }
            ActivationOp::LogSigmoid => log_sigmoid(b, x),
            ActivationOp::TanhShrink => tanh_shrink(b, x),
            ActivationOp::Reciprocal => {
                let one = b.like(1.0, x)?;
                b.div(one, x)
            }
        }
    }
}

impl OpDef for Activation {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = match self.op {
            ActivationOp::Relu => {
                cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?
            }
            _ => cx.float("C1", 0)?,
        };
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Activation {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        match self.op {
            // Exact in every type.
            ActivationOp::Relu => Ok(Values::from_slice(&[self.op.apply(b, operands[0])?])),
            op => in_wide(b, operands[0], |b, x| op.apply(b, x)),
        }
    }
}
