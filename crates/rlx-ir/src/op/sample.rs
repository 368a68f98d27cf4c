//! Random numbers as functions of random bits: each operation takes a key (u64 \[2\]: seed and stream) and a counter
//! (u64 scalar) as its last two operands, and gives the same numbers for the same ones. Numbers are made in f32 and
//! rounded once.

use super::activation::clamp;
use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::random::RandomBits;
use super::reduce::{Cumulative, CumulativeOp, ReduceOp};
use super::softmax::softmax;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::TensorType;

operation! {
    /// low + (high − low) · u, with u the top 24 bits of a word · 2⁻²⁴, element i from word i. Rounding may give high.
    /// Operands: key, counter. C1: u64 operands. C2: their sizes. C3: the type is floating point; its sizes are not
    /// negative.
    pub struct RandomUniform = "random_uniform" {
        /// The result's type.
        ty: TensorType,
        /// The least number.
        low: Real,
        /// The number that is not reached.
        high: Real,
    }
}

operation! {
    /// mean + deviation · z, with z standard normal by Box and Muller (1958): words 2i and 2i + 1 give elements 2i and
    /// 2i + 1 as √(−2 ln u₁) times the cosine and the sine of 2π·u₂. u₁ lies in (0, 1\], u₂ in \[0, 1).
    /// Operands: key, counter. C1: u64 operands. C2: their sizes. C3: the type is floating point; its sizes are not
    /// negative.
    pub struct RandomNormal = "random_normal" {
        /// The result's type.
        ty: TensorType,
        /// The mean.
        mean: Real,
        /// The standard deviation.
        deviation: Real,
    }
}

operation! {
    /// 1 with probability p, else 0: whether u < p. Operands: p, key, counter. C1: u64 key and counter. C2: their sizes.
    /// C3: p is floating point. C4: the result is a number or bool.
    pub struct Bernoulli = "bernoulli" {
        /// The result's element type.
        to: DType,
    }
}

operation! {
    /// Draws class indices, with replacement: the index of the first running sum of softmax(x) above u. Operands: x,
    /// unnormalised log-probabilities \[b, c\], key, counter. The result is \[b, samples\]. C1: u64 key and counter.
    /// C2: their sizes. C3: x is floating point with two axes, and c is at least 1. C4: the result is i32 or i64.
    /// C5: samples is not negative.
    pub struct Multinomial = "multinomial" {
        /// How many are drawn for each row.
        samples: Dim,
        /// The result's element type.
        to: DType,
    }
}

operation! {
    /// y = x / (1 − ratio) where u ≥ ratio, else 0; x itself outside training. Operands: x, ratio (a scalar), training
    /// (a bool scalar), key, counter. Results: y, and whether each element was kept (bool). C1: u64 key and counter.
    /// C2: their sizes. C3: x is floating point. C4: ratio is a floating-point scalar. C5: training is a bool scalar.
    pub struct Dropout = "dropout" {}
}

/// C1 and C2: the last two of `count` operands are a key and a counter.
fn keyed(cx: &Infer<'_>, count: usize) -> Result<(), TypeError> {
    cx.arity(count)?;
    cx.dtype("C1", count - 2, DType::U64)?;
    cx.dtype("C1", count - 1, DType::U64)?;
    cx.same_dims("C2", count - 2, &[2.into()])?;
    cx.rank("C2", count - 1, 0)?;
    Ok(())
}

/// C3 of the distributions without operands of their own.
fn drawn(cx: &Infer<'_>, ty: &TensorType) -> Result<Types, TypeError> {
    keyed(cx, 2)?;
    cx.ensure(ty.dtype.is_float(), "C3", None, "element type", "a floating-point type", ty.dtype)?;
    for dim in ty.dims() {
        cx.at_most("C3", None, "size is negative", &Dim::ZERO, dim)?;
    }
    Ok(one(ty.clone()))
}

/// Whole numbers 0 … 2²⁴ − 1 as f32, from the top bits of random words.
fn top_bits(b: &mut Builder, dims: &[Dim], key: Value, counter: Value) -> Result<Value, TypeError> {
    let words = b.push1(RandomBits { dims: dims.to_vec() }, &[key, counter])?;
    let top = b.binary_scalar(BinaryOp::Shr, words, 8.0)?;
    b.cast(top, DType::F32)
}

/// 2⁻²⁴.
const STEP: f64 = 1.0 / 16_777_216.0;

/// Uniform numbers in \[0, 1) as f32.
fn uniform(b: &mut Builder, dims: &[Dim], key: Value, counter: Value) -> Result<Value, TypeError> {
    let whole = top_bits(b, dims, key, counter)?;
    b.mul_scalar(whole, STEP)
}

impl OpDef for RandomUniform {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        drawn(cx, &self.ty)
    }
}

impl CompositeDef for RandomUniform {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let u = uniform(b, self.ty.dims(), operands[0], operands[1])?;
        let scaled = b.mul_scalar(u, self.high.get() - self.low.get())?;
        let y = b.add_scalar(scaled, self.low.get())?;
        Ok(Values::from_slice(&[b.cast(y, self.ty.dtype)?]))
    }
}

impl OpDef for RandomNormal {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        drawn(cx, &self.ty)
    }
}

impl CompositeDef for RandomNormal {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let count = self.ty.shape.element_count();
        let pairs = count.ceil_div(&2.into());
        let whole = top_bits(b, &[pairs.clone(), 2.into()], operands[0], operands[1])?;
        let first = b.slice_axis(whole, 1, &Dim::ZERO, &Dim::ONE)?;
        let second = b.slice_axis(whole, 1, &Dim::ONE, &Dim::ONE)?;
        // u₁ + 1 step lies in (0, 1], so that the logarithm is finite.
        let first = b.add_scalar(first, 1.0)?;
        let first = b.mul_scalar(first, STEP)?;
        let log = b.unary(UnaryOp::Log, first)?;
        let square = b.mul_scalar(log, -2.0)?;
        let radius = b.unary(UnaryOp::Sqrt, square)?;
        let angle = b.mul_scalar(second, STEP * std::f64::consts::TAU)?;
        let cos = b.unary(UnaryOp::Cos, angle)?;
        let sin = b.unary(UnaryOp::Sin, angle)?;
        let both = [b.mul(radius, cos)?, b.mul(radius, sin)?];
        let both = b.concat(&both, 1)?;
        let flat = b.reshape(both, &[pairs * 2])?;
        let taken = b.slice_axis(flat, 0, &Dim::ZERO, &count)?;
        let z = b.reshape(taken, self.ty.dims())?;
        let scaled = b.mul_scalar(z, self.deviation.get())?;
        let y = b.add_scalar(scaled, self.mean.get())?;
        Ok(Values::from_slice(&[b.cast(y, self.ty.dtype)?]))
    }
}

impl OpDef for Bernoulli {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        keyed(cx, 3)?;
        let p = cx.float("C3", 0)?;
        let accepts = self.to.is_float() || self.to.is_int() || self.to == DType::Bool;
        cx.ensure(accepts, "C4", None, "element type", "a number type or bool", self.to)?;
        Ok(one(p.with_dtype(self.to)))
    }
}

impl CompositeDef for Bernoulli {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let p = b.cast(operands[0], DType::F32)?;
        let u = uniform(b, &b.shape(p), operands[1], operands[2])?;
        let hit = b.compare(CompareOp::Lt, u, p)?;
        Ok(Values::from_slice(&[b.cast(hit, self.to)?]))
    }
}

impl OpDef for Multinomial {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        keyed(cx, 3)?;
        let x = cx.float("C3", 0)?;
        cx.rank("C3", 0, 2)?;
        cx.at_most("C3", Some(0), "there is no class", &Dim::ONE, &x.shape[1])?;
        let accepts = matches!(self.to, DType::I32 | DType::I64);
        cx.ensure(accepts, "C4", None, "element type", "i32 or i64", self.to)?;
        cx.at_most("C5", None, "samples", &Dim::ZERO, &self.samples)?;
        Ok(one(TensorType::new(self.to, vec![x.shape[0].clone(), self.samples.clone()])))
    }
}

impl CompositeDef for Multinomial {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = b.cast(operands[0], DType::F32)?;
        let (rows, classes) = (b.dim(x, 0), b.dim(x, 1));
        let p = softmax(b, x, 1)?;
        let running = Cumulative { op: CumulativeOp::Sum, axis: 1, exclusive: false, reverse: false };
        let running = b.push1(running, &[p])?;
        let total = b.reduce(ReduceOp::Max, running, &[1], true)?;
        let u = uniform(b, &[rows.clone(), self.samples.clone()], operands[1], operands[2])?;
        let total_of_samples = b.broadcast_to(total, &b.shape(u))?;
        let point = b.mul(u, total_of_samples)?;
        // The classes that a point has passed; one whose sum is the total is never passed, for rounding may put a point
        // on the total.
        let all = [rows, self.samples.clone(), classes];
        let running = b.unsqueeze(running, 1)?;
        let running = b.broadcast_to(running, &all)?;
        let point = b.unsqueeze(point, 2)?;
        let point = b.broadcast_to(point, &all)?;
        let total = b.unsqueeze(total, 2)?;
        let total = b.broadcast_to(total, &all)?;
        let reached = b.compare(CompareOp::Le, running, point)?;
        let inside = b.compare(CompareOp::Lt, running, total)?;
        let passed = b.binary(BinaryOp::And, reached, inside)?;
        let passed = b.cast(passed, self.to)?;
        Ok(Values::from_slice(&[b.sum(passed, &[2], false)?]))
    }
}

impl OpDef for Dropout {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        keyed(cx, 5)?;
        let x = cx.float("C3", 0)?;
        cx.float("C4", 1)?;
        cx.rank("C4", 1, 0)?;
        cx.dtype("C5", 2, DType::Bool)?;
        cx.rank("C5", 2, 0)?;
        Ok(Types::from_iter([x.clone(), x.with_dtype(DType::Bool)]))
    }
}

impl CompositeDef for Dropout {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let [x, ratio, training, key, counter] = [0, 1, 2, 3, 4].map(|i| operands[i]);
        let (dtype, shape) = (b.dtype(x), b.shape(x));
        if let Some([known]) = b.known(training)
            && known.as_const() == Some(0)
        {
            let kept = b.full(1.0, &TensorType::new(DType::Bool, shape))?;
            return Ok(Values::from_slice(&[x, kept]));
        }
        let ratio = b.cast(ratio, DType::F32)?;
        let ratio = clamp(b, ratio, 0.0, 1.0)?;
        let one = b.like(1.0, ratio)?;
        let share = b.sub(one, ratio)?;
        let ratio = b.broadcast_to(ratio, &shape)?;
        let u = uniform(b, &shape, key, counter)?;
        let drawn = b.compare(CompareOp::Ge, u, ratio)?;
        let wide = b.cast(x, super::norm::statistics_dtype(dtype))?;
        let share = b.cast(share, b.dtype(wide))?;
        let share = b.broadcast_to(share, &shape)?;
        let scaled = b.div(wide, share)?;
        let scaled = b.cast(scaled, dtype)?;
        let zero = b.like(0.0, x)?;
        let dropped = b.select(drawn, scaled, zero)?;
        let training = b.broadcast_to(training, &shape)?;
        let y = b.select(training, dropped, x)?;
        let outside = b.unary(UnaryOp::Not, training)?;
        let kept = b.binary(BinaryOp::Or, drawn, outside)?;
        Ok(Values::from_slice(&[y, kept]))
    }
}
