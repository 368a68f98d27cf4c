//! Activation functions of one tensor. Narrow floats are computed in f32 and rounded once; formulas keep their relative
//! accuracy near 0 and in the tails.

use super::axes::broadcasts_to;
use super::double_word::DoubleWord;
use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::norm::statistics_dtype;
use super::{Attributes, Axis, CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

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

operation! {
    /// y = x for x ≥ 0, alpha · x below. C1: x is floating point.
    pub struct LeakyRelu = "leaky_relu" {
        /// The slope below 0.
        alpha: Real,
    }
}

operation! {
    /// y = x for x ≥ 0, slope · x below. Operands: x, slope. C1: x is floating point. C2: slope has x's element type.
    /// C3: slope broadcasts to x's sizes.
    pub struct PRelu = "prelu" {}
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

names! {
    /// The function of a gated unit's gate.
    pub enum GateFunction {
        /// 1 / (1 + e^(−x)): GLU (Dauphin et al. 2017).
        Sigmoid = "sigmoid",
        /// x · sigmoid(x): SwiGLU (Shazeer 2020).
        Silu = "silu",
        /// GELU: GEGLU.
        Gelu = "gelu",
        /// GELU by tanh.
        GeluTanh = "gelu_tanh",
        /// max(x, 0): ReGLU.
        Relu = "relu",
        /// x: the bilinear unit.
        Identity = "identity",
    }
}

operation! {
    /// y = a · f(g), where a and g are the halves of x along an axis. C1: x is floating point. C2: −rank ≤ axis < rank.
    /// C3: the axis has an even size.
    pub struct Glu = "glu" {
        /// The axis that is halved.
        axis: Axis,
        /// f.
        gate: GateFunction,
        /// The first half is the gate, not the second.
        gate_first: bool,
    }
}

operation! {
    /// y = min(max(x, low), high). Operands: x, then low if `low`, then high if `high`. Where low > high, y = high; NaN
    /// stays. C1: x is an integer or floating point. C2: bounds are scalars of x's type.
    pub struct Clip = "clip" {
        /// Whether there is a lower bound.
        low: bool,
        /// Whether there is an upper bound.
        high: bool,
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

/// min(max(x, low), high).
pub(crate) fn clamp(b: &mut Builder, x: Value, low: f64, high: f64) -> Built {
    let x = b.binary_scalar(BinaryOp::Max, x, low)?;
    b.binary_scalar(BinaryOp::Min, x, high)
}

/// x where it is positive, else `negative` of min(x, 0), so that no branch overflows where it is not taken.
fn positive_or(b: &mut Builder, x: Value, negative: impl FnOnce(&mut Builder, Value) -> Built) -> Built {
    let positive = b.compare_scalar(CompareOp::Gt, x, 0.0)?;
    let limited = b.binary_scalar(BinaryOp::Min, x, 0.0)?;
    let below = negative(b, limited)?;
    b.select(positive, x, below)
}

/// Beyond this, and its negative, sigmoid, Φ and their like are constant in f64 or x dominates; it keeps products finite.
const FAR: f64 = 1e4;

/// Factors of double words stay below this, in f32 too.
const GREATEST_FACTOR: f64 = 1e30;

/// Φ(x) = erfc(−x/√2) / 2; the low word of the argument enters through the derivative.
fn normal_cdf(b: &mut Builder, x: Value) -> Built {
    let near = clamp(b, x, -FAR, FAR)?;
    let (x_word, c) = (DoubleWord::of(b, near)?, DoubleWord::constant(b, -FRAC_1_SQRT_2, near)?);
    let argument = x_word.mul(b, c)?;
    let tail = b.unary(UnaryOp::Erfc, argument.high)?;
    let square = b.mul(argument.high, argument.high)?;
    let square = b.unary(UnaryOp::Neg, square)?;
    let density = b.unary(UnaryOp::Exp, square)?;
    let density = b.mul_scalar(density, FRAC_2_SQRT_PI)?;
    let correction = b.mul(density, argument.low)?;
    let tail = b.sub(tail, correction)?;
    b.mul_scalar(tail, 0.5)
}

/// sigmoid(high + low) = s + s·(1 − s)·low.
fn sigmoid_of(b: &mut Builder, argument: DoubleWord) -> Built {
    let s = b.unary(UnaryOp::Sigmoid, argument.high)?;
    let negated = b.unary(UnaryOp::Neg, argument.high)?;
    let rest = b.unary(UnaryOp::Sigmoid, negated)?;
    let relative = b.mul(rest, argument.low)?;
    let factor = b.add_scalar(relative, 1.0)?;
    b.mul(s, factor)
}

/// x · sigmoid(alpha · x).
fn swish(b: &mut Builder, x: Value, alpha: f64) -> Built {
    let s = if alpha == 1.0 {
        b.unary(UnaryOp::Sigmoid, x)?
    } else {
        let bound = (FAR + FAR / alpha.abs()).min(GREATEST_FACTOR);
        let near = clamp(b, x, -bound, bound)?;
        let (x_word, alpha) = (DoubleWord::of(b, near)?, DoubleWord::constant(b, alpha, near)?);
        let argument = x_word.mul(b, alpha)?;
        sigmoid_of(b, argument)?
    };
    b.mul(x, s)
}

/// x/2 · (1 + tanh u) = x · sigmoid(2u), which keeps its digits where tanh u nears −1.
fn gelu_tanh(b: &mut Builder, x: Value) -> Built {
    let near = clamp(b, x, -FAR, FAR)?;
    let scale = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
    let x_word = DoubleWord::of(b, near)?;
    let square = x_word.mul(b, x_word)?;
    let cubic = DoubleWord::constant(b, scale * 0.044715, near)?;
    let linear = DoubleWord::constant(b, scale, near)?;
    let slope = square.mul(b, cubic)?.add(b, linear)?;
    let argument = slope.mul(b, x_word)?;
    let s = sigmoid_of(b, argument)?;
    b.mul(x, s)
}

/// tanh(ln(1 + e)) = n / (n + 2) with n = e·(e + 2), e = eˣ: no term cancels.
fn mish(b: &mut Builder, x: Value) -> Built {
    // From 20 on n / (n + 2) is 1 in f64, and e² stays finite in f32.
    let near = b.binary_scalar(BinaryOp::Min, x, 20.0)?;
    let e = b.unary(UnaryOp::Exp, near)?;
    let shifted = b.add_scalar(e, 2.0)?;
    let n = b.mul(e, shifted)?;
    let below = b.add_scalar(n, 2.0)?;
    let tanh = b.div(n, below)?;
    b.mul(x, tanh)
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e^(−|x|)).
pub(crate) fn softplus(b: &mut Builder, x: Value) -> Built {
    let positive = b.binary_scalar(BinaryOp::Max, x, 0.0)?;
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    let negated = b.unary(UnaryOp::Neg, magnitude)?;
    let e = b.unary(UnaryOp::Exp, negated)?;
    let rest = b.unary(UnaryOp::Log1p, e)?;
    b.add(positive, rest)
}

/// −ln(1 + e^(−x)).
pub(crate) fn log_sigmoid(b: &mut Builder, x: Value) -> Built {
    let negated = b.unary(UnaryOp::Neg, x)?;
    let y = softplus(b, negated)?;
    b.unary(UnaryOp::Neg, y)
}

/// x − tanh x. Near 0 by Lambert's continued fraction tanh x = x / (1 + q), q = x² / (3 + x² / (5 + …)), as x·q / (1 + q).
fn tanh_shrink(b: &mut Builder, x: Value) -> Built {
    /// Above this the difference loses less than one bit.
    const NEAR: f64 = 2.0;
    /// The last partial denominator: the fraction is exact in f64 for |x| ≤ 2.
    const LAST: u32 = 27;
    let near = clamp(b, x, -NEAR, NEAR)?;
    let square = b.mul(near, near)?;
    let mut q = b.mul_scalar(square, 1.0 / f64::from(LAST))?;
    for partial in (3..LAST).step_by(2).rev() {
        let below = b.add_scalar(q, f64::from(partial))?;
        q = b.div(square, below)?;
    }
    let below = b.add_scalar(q, 1.0)?;
    let ratio = b.div(q, below)?;
    let inside = b.mul(near, ratio)?;
    let tanh = b.unary(UnaryOp::Tanh, x)?;
    let outside = b.sub(x, tanh)?;
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    let is_near = b.compare_scalar(CompareOp::Lt, magnitude, NEAR)?;
    b.select(is_near, inside, outside)
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

impl OpDef for PRelu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.float("C1", 0)?;
        cx.same_dtype("C2", 1, 0)?;
        broadcasts_to(cx, "C3", 1, x.dims())?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for PRelu {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let slope = b.broadcast_to(operands[1], &b.shape(x))?;
        // One product and a selection: rounded once in every type.
        let scaled = b.mul(x, slope)?;
        let positive = b.compare_scalar(CompareOp::Ge, x, 0.0)?;
        Ok(Values::from_slice(&[b.select(positive, x, scaled)?]))
    }
}

impl OpDef for Glu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        let half = x.shape[axis].floor_div(&2.into());
        cx.equal("C3", Some(0), "size of the halved axis", &(half.clone() * 2), &x.shape[axis])?;
        Ok(one(x.with_shape(x.shape.with_dim(axis, half))))
    }
}

impl CompositeDef for Glu {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let dtype = b.dtype(x);
        let axis = self.axis.of_rank(b.rank(x)).unwrap_or(0);
        let half = b.dim(x, axis).floor_div(&2.into());
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let first = b.slice_axis(wide, axis, &0.into(), &half)?;
        let second = b.slice_axis(wide, axis, &half, &half)?;
        let (value, gate) = if self.gate_first { (second, first) } else { (first, second) };
        let gate = match self.gate {
            GateFunction::Sigmoid => b.unary(UnaryOp::Sigmoid, gate)?,
            GateFunction::Silu => swish(b, gate, 1.0)?,
            GateFunction::Gelu => ActivationOp::Gelu.apply(b, gate)?,
            GateFunction::GeluTanh => ActivationOp::GeluTanh.apply(b, gate)?,
            GateFunction::Relu => ActivationOp::Relu.apply(b, gate)?,
            GateFunction::Identity => gate,
        };
        let y = b.mul(value, gate)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for Clip {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1 + usize::from(self.low) + usize::from(self.high))?;
        let x = cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?;
        for i in 1..cx.count() {
            cx.same_dtype("C2", i, 0)?;
            cx.rank("C2", i, 0)?;
        }
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Clip {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let mut y = operands[0];
        let dims = b.shape(y);
        let ops = [(self.low, BinaryOp::Max), (self.high, BinaryOp::Min)];
        for ((_, op), bound) in ops.into_iter().filter(|(present, _)| *present).zip(&operands[1..]) {
            let bound = b.broadcast_to(*bound, &dims)?;
            y = b.binary(op, y, bound)?;
        }
        Ok(Values::from_slice(&[y]))
    }
}
