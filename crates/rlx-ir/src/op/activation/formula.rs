//! The arithmetic of activation functions, on tensors in f32 or f64.

use super::Built;
use crate::builder::Builder;
use crate::graph::Value;
use crate::op::double_word::DoubleWord;
use crate::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// min(max(x, low), high).
pub(crate) fn clamp(b: &mut Builder, x: Value, low: f64, high: f64) -> Built {
    let x = b.binary_scalar(BinaryOp::Max, x, low)?;
    b.binary_scalar(BinaryOp::Min, x, high)
}

/// Beyond this, and its negative, sigmoid, Φ and their like are constant in f64 or x dominates; it keeps products finite.
const FAR: f64 = 1e4;

/// Factors of double words stay below this, in f32 too.
const GREATEST_FACTOR: f64 = 1e30;

/// Φ(x) = erfc(−x/√2) / 2; the low word of the argument enters through the derivative.
pub(super) fn normal_cdf(b: &mut Builder, x: Value) -> Built {
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
pub(super) fn swish(b: &mut Builder, x: Value, alpha: f64) -> Built {
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
pub(super) fn gelu_tanh(b: &mut Builder, x: Value) -> Built {
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
pub(super) fn mish(b: &mut Builder, x: Value) -> Built {
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
pub(super) fn tanh_shrink(b: &mut Builder, x: Value) -> Built {
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
