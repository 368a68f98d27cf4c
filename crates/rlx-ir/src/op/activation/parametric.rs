//! Activation functions with parameters, of one tensor.

use super::formula::{clamp, softplus, swish};
use super::{Built, in_wide};
use crate::builder::{Builder, Values};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use crate::op::{Attributes, CompositeDef, OpDef, Real};
use crate::operation;

operation! {
    /// y = x for x ≥ 0, alpha · x below. C1: x is floating point.
    pub struct LeakyRelu = "leaky_relu" {
        /// The slope below 0.
        alpha: Real,
    }
}

operation! {
    /// y = x for x > 0, alpha · (eˣ − 1) below. C1: x is floating point.
    pub struct Elu = "elu" {
        /// The negative of the limit at −∞.
        alpha: Real,
    }
}

operation! {
    /// y = x for x > 0, alpha · (e^(x/alpha) − 1) below (Barron 2017). C1: x is floating point. C2: alpha ≠ 0.
    pub struct Celu = "celu" {
        /// The scale below 0.
        alpha: Real,
    }
}

operation! {
    /// y = gamma · (x for x > 0, alpha · (eˣ − 1) below) (Klambauer et al. 2017). C1: x is floating point.
    pub struct Selu = "selu" {
        /// The scale below 0.
        alpha: Real,
        /// The scale of all.
        gamma: Real,
    }
}

operation! {
    /// y = x · sigmoid(alpha · x): SiLU with alpha = 1, the quick GELU with alpha = 1.702. C1: x is floating point.
    pub struct Swish = "swish" {
        /// The scale inside.
        alpha: Real,
    }
}

operation! {
    /// y = ln(1 + e^(beta·x)) / beta; x itself where beta · x exceeds the threshold. C1: x is floating point.
    /// C2: beta ≠ 0.
    pub struct Softplus = "softplus" {
        /// The sharpness.
        beta: Real,
        /// Where PyTorch switches to x; none never does.
        threshold: Option<Real>,
    }
}

operation! {
    /// y = min(max(alpha · x + beta, 0), 1). C1: x is floating point.
    pub struct HardSigmoid = "hard_sigmoid" {
        /// The slope.
        alpha: Real,
        /// The value at 0.
        beta: Real,
    }
}

operation! {
    /// y = min(max(x, low), high). C1: x is floating point.
    pub struct HardTanh = "hard_tanh" {
        /// The least result.
        low: Real,
        /// The greatest result.
        high: Real,
    }
}

operation! {
    /// y = 0 for |x| ≤ lambda, x − bias above, x + bias below: hard shrinkage with bias = 0, soft shrinkage with
    /// bias = lambda. C1: x is floating point. C2: lambda ≥ 0.
    pub struct Shrink = "shrink" {
        /// Half the width of what becomes 0.
        lambda: Real,
        /// What the rest moves toward 0.
        bias: Real,
    }
}

operation! {
    /// y = value for x ≤ threshold, x above: the thresholded ReLU with value = 0. C1: x is floating point.
    pub struct Threshold = "threshold" {
        /// The greatest x that is replaced.
        threshold: Real,
        /// What replaces it.
        value: Real,
    }
}

operation! {
    /// y = ln(x / (1 − x)), x first limited to eps … 1 − eps. C1: x is floating point. C2: 0 ≤ eps ≤ ½.
    pub struct Logit = "logit" {
        /// The limit; none leaves x as it is, NaN outside 0 … 1.
        eps: Option<Real>,
    }
}

/// A function of one floating-point tensor, element by element.
trait Elementwise: Attributes {
    /// The constraints on the attributes.
    fn constraints(&self, _: &Infer<'_>) -> Result<(), TypeError> {
        Ok(())
    }

    /// The function on a tensor in f32 or f64.
    fn apply(&self, b: &mut Builder, x: Value) -> Built;
}

macro_rules! elementwise {
    ($($op:ident),*) => {$(
        impl OpDef for $op {
            fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
                cx.arity(1)?;
                let x = cx.float("C1", 0)?;
                self.constraints(cx)?;
                Ok(one(x.clone()))
            }
        }

        impl CompositeDef for $op {
            fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
                in_wide(b, operands[0], |b, x| self.apply(b, x))
            }
        }
    )*};
}
elementwise!(LeakyRelu, Elu, Celu, Selu, Swish, Softplus, HardSigmoid, HardTanh, Shrink, Threshold, Logit);

/// x where it is positive, else `negative` of min(x, 0), so that no branch overflows where it is not taken.
fn positive_or(b: &mut Builder, x: Value, negative: impl FnOnce(&mut Builder, Value) -> Built) -> Built {
    let positive = b.compare_scalar(CompareOp::Gt, x, 0.0)?;
    let limited = b.binary_scalar(BinaryOp::Min, x, 0.0)?;
    let below = negative(b, limited)?;
    b.select(positive, x, below)
}

impl Elementwise for LeakyRelu {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let scaled = b.mul_scalar(x, self.alpha.get())?;
        let positive = b.compare_scalar(CompareOp::Ge, x, 0.0)?;
        b.select(positive, x, scaled)
    }
}

impl Elementwise for Elu {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        positive_or(b, x, |b, x| {
            let e = b.unary(UnaryOp::Expm1, x)?;
            b.mul_scalar(e, self.alpha.get())
        })
    }
}

impl Elementwise for Celu {
    fn constraints(&self, cx: &Infer<'_>) -> Result<(), TypeError> {
        cx.ensure(self.alpha.get() != 0.0, "C2", None, "alpha", "not 0", self.alpha.get())
    }

    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        positive_or(b, x, |b, x| {
            let scaled = b.binary_scalar(BinaryOp::Div, x, self.alpha.get())?;
            let e = b.unary(UnaryOp::Expm1, scaled)?;
            b.mul_scalar(e, self.alpha.get())
        })
    }
}

impl Elementwise for Selu {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let y = Elu { alpha: self.alpha }.apply(b, x)?;
        b.mul_scalar(y, self.gamma.get())
    }
}

impl Elementwise for Swish {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        swish(b, x, self.alpha.get())
    }
}

impl Elementwise for Softplus {
    fn constraints(&self, cx: &Infer<'_>) -> Result<(), TypeError> {
        cx.ensure(self.beta.get() != 0.0, "C2", None, "beta", "not 0", self.beta.get())
    }

    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let beta = self.beta.get();
        let scaled = b.mul_scalar(x, beta)?;
        let y = softplus(b, scaled)?;
        let y = b.binary_scalar(BinaryOp::Div, y, beta)?;
        let Some(threshold) = self.threshold else { return Ok(y) };
        let beyond = b.compare_scalar(CompareOp::Gt, scaled, threshold.get())?;
        b.select(beyond, x, y)
    }
}

impl Elementwise for HardSigmoid {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let scaled = b.mul_scalar(x, self.alpha.get())?;
        let shifted = b.add_scalar(scaled, self.beta.get())?;
        clamp(b, shifted, 0.0, 1.0)
    }
}

impl Elementwise for HardTanh {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        clamp(b, x, self.low.get(), self.high.get())
    }
}

impl Elementwise for Shrink {
    fn constraints(&self, cx: &Infer<'_>) -> Result<(), TypeError> {
        cx.ensure(self.lambda.get() >= 0.0, "C2", None, "lambda", "at least 0", self.lambda.get())
    }

    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let magnitude = b.unary(UnaryOp::Abs, x)?;
        let inside = b.compare_scalar(CompareOp::Le, magnitude, self.lambda.get())?;
        let positive = b.compare_scalar(CompareOp::Gt, x, 0.0)?;
        let above = b.add_scalar(x, -self.bias.get())?;
        let below = b.add_scalar(x, self.bias.get())?;
        let outside = b.select(positive, above, below)?;
        let zero = b.like(0.0, x)?;
        b.select(inside, zero, outside)
    }
}

impl Elementwise for Threshold {
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let replaced = b.compare_scalar(CompareOp::Le, x, self.threshold.get())?;
        let value = b.like(self.value.get(), x)?;
        b.select(replaced, value, x)
    }
}

impl Elementwise for Logit {
    fn constraints(&self, cx: &Infer<'_>) -> Result<(), TypeError> {
        let eps = self.eps.map_or(0.0, Real::get);
        cx.ensure((0.0..=0.5).contains(&eps), "C2", None, "eps", "0 to 0.5", eps)
    }

    /// Around ½ by 2 artanh(2x − 1), whose argument is exact there; outside by ln x − ln(1 − x).
    fn apply(&self, b: &mut Builder, x: Value) -> Built {
        let x = match self.eps {
            Some(eps) => clamp(b, x, eps.get(), 1.0 - eps.get())?,
            None => x,
        };
        let doubled = b.mul_scalar(x, 2.0)?;
        let centred = b.add_scalar(doubled, -1.0)?;
        let artanh = b.unary(UnaryOp::Atanh, centred)?;
        let inside = b.mul_scalar(artanh, 2.0)?;
        let log = b.unary(UnaryOp::Log, x)?;
        let negated = b.unary(UnaryOp::Neg, x)?;
        let complement = b.unary(UnaryOp::Log1p, negated)?;
        let outside = b.sub(log, complement)?;
        let distance = b.unary(UnaryOp::Abs, centred)?;
        let central = b.compare_scalar(CompareOp::Le, distance, 0.5)?;
        b.select(central, inside, outside)
    }
}
