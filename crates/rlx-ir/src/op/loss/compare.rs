//! Losses and likenesses of two tensors.

use super::{Reduction, widened};
use crate::builder::{Builder, Values};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use crate::op::{Axis, CompositeDef, OpDef, Real};
use crate::types::TensorType;
use crate::{names, operation};

names! {
    /// Losses of a difference without parameters.
    pub enum ElementLossOp {
        /// (x − t)².
        SquaredError = "mse_loss",
        /// |x − t|.
        AbsoluteError = "l1_loss",
    }
}

operation! {
    /// The loss of each element of x (operand 0) by a target t (operand 1). C1: x is floating point. C2: t has x's type.
    pub struct ElementLoss: ElementLossOp {
        /// What becomes of the elements' losses.
        reduction: Reduction,
    }
}

operation! {
    /// ½ d² for d = |x − t| ≤ delta, delta · (d − ½ delta) above (Huber 1964). C1: x is floating point. C2: t has x's
    /// type. C3: delta > 0.
    pub struct HuberLoss = "huber_loss" {
        /// Where the loss turns linear.
        delta: Real,
        /// What becomes of the elements' losses.
        reduction: Reduction,
    }
}

operation! {
    /// ½ d² / beta for d = |x − t| < beta, d − ½ beta from there on (Girshick 2015). C1: x is floating point. C2: t has
    /// x's type. C3: beta ≥ 0.
    pub struct SmoothL1Loss = "smooth_l1_loss" {
        /// Where the loss turns linear.
        beta: Real,
        /// What becomes of the elements' losses.
        reduction: Reduction,
    }
}

operation! {
    /// t · (ln t − x), 0 where t = 0, for log-probabilities x (operand 0) and probabilities t (operand 1); if
    /// `log_target`, eᵗ · (t − x). C1: x is floating point. C2: t has x's type.
    pub struct KlDivergence = "kl_divergence" {
        /// Whether the target is a logarithm too.
        log_target: bool,
        /// What becomes of the elements' losses.
        reduction: Reduction,
    }
}

operation! {
    /// Σ x·y / (max(|x|, eps) · max(|y|, eps)) along an axis, which goes. C1: x is floating point. C2: y has x's type.
    /// C3: −rank ≤ axis < rank.
    pub struct CosineSimilarity = "cosine_similarity" {
        /// The axis of one vector.
        axis: Axis,
        /// The least norm.
        eps: Real,
    }
}

operation! {
    /// 1 − cos(x, y) where the sign s is 1, max(0, cos(x, y) − margin) where it is −1, along the last axis. Operands:
    /// x \[…, d\], y \[…, d\], s \[…\]. Squared norms are increased by 1e-12. C1: x is floating point. C2: y has x's type.
    /// C3: x has at least one axis; s has x's element type and its sizes but the last.
    pub struct CosineEmbeddingLoss = "cosine_embedding_loss" {
        /// The likeness below which unlike pairs cost nothing.
        margin: Real,
        /// What becomes of the pairs' losses.
        reduction: Reduction,
    }
}

/// C0, C1 and C2: two tensors of one floating-point type.
fn pair<'a>(cx: &Infer<'a>) -> Result<&'a TensorType, TypeError> {
    cx.arity(2)?;
    let x = cx.float("C1", 0)?;
    cx.same_type("C2", 1, 0)?;
    Ok(x)
}

/// `pair`, reduced.
fn reduced_pair(cx: &Infer<'_>, reduction: Reduction) -> Result<Types, TypeError> {
    let x = pair(cx)?;
    Ok(one(x.with_shape(reduction.shape(x.shape.clone()))))
}

impl OpDef for ElementLoss {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        reduced_pair(cx, self.reduction)
    }
}

impl OpDef for HuberLoss {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let types = reduced_pair(cx, self.reduction)?;
        cx.ensure(self.delta.get() > 0.0, "C3", None, "delta", "above 0", self.delta.get())?;
        Ok(types)
    }
}

impl OpDef for SmoothL1Loss {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let types = reduced_pair(cx, self.reduction)?;
        cx.ensure(self.beta.get() >= 0.0, "C3", None, "beta", "at least 0", self.beta.get())?;
        Ok(types)
    }
}

impl OpDef for KlDivergence {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        reduced_pair(cx, self.reduction)
    }
}

impl OpDef for CosineSimilarity {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let x = pair(cx)?;
        let axis = self.axis.resolve(cx, "C3", x.rank())?;
        Ok(one(x.with_shape(x.shape.without(&[axis]))))
    }
}

impl OpDef for CosineEmbeddingLoss {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let x = cx.float("C1", 0)?;
        cx.same_type("C2", 1, 0)?;
        cx.rank_at_least("C3", 0, 1)?;
        cx.same_dtype("C3", 2, 0)?;
        let pairs = x.shape.without(&[x.rank() - 1]);
        cx.same_dims("C3", 2, &pairs)?;
        Ok(one(x.with_shape(self.reduction.shape(pairs))))
    }
}

/// `loss` of the widened operands 0 and 1, reduced, in operand 0's type.
fn of_pair(
    b: &mut Builder,
    operands: &[Value],
    reduction: Reduction,
    loss: impl FnOnce(&mut Builder, Value, Value) -> Result<Value, TypeError>,
) -> Result<Values, TypeError> {
    let (x, target) = (widened(b, operands[0])?, widened(b, operands[1])?);
    let losses = loss(b, x, target)?;
    let loss = reduction.apply(b, losses)?;
    Ok(Values::from_slice(&[b.cast(loss, b.dtype(operands[0]))?]))
}

/// |x − t|.
fn distance(b: &mut Builder, x: Value, target: Value) -> Result<Value, TypeError> {
    let difference = b.sub(x, target)?;
    b.unary(UnaryOp::Abs, difference)
}

impl CompositeDef for ElementLoss {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        of_pair(b, operands, self.reduction, |b, x, target| {
            let d = distance(b, x, target)?;
            match self.op {
                ElementLossOp::SquaredError => b.mul(d, d),
                ElementLossOp::AbsoluteError => Ok(d),
            }
        })
    }
}

impl CompositeDef for HuberLoss {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let delta = self.delta.get();
        of_pair(b, operands, self.reduction, |b, x, target| {
            let d = distance(b, x, target)?;
            let square = b.mul(d, d)?;
            let near = b.mul_scalar(square, 0.5)?;
            let shifted = b.add_scalar(d, -0.5 * delta)?;
            let far = b.mul_scalar(shifted, delta)?;
            let is_near = b.compare_scalar(CompareOp::Le, d, delta)?;
            b.select(is_near, near, far)
        })
    }
}

impl CompositeDef for SmoothL1Loss {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let beta = self.beta.get();
        of_pair(b, operands, self.reduction, |b, x, target| {
            let d = distance(b, x, target)?;
            if beta == 0.0 {
                return Ok(d);
            }
            let square = b.mul(d, d)?;
            let near = b.mul_scalar(square, 0.5)?;
            let near = b.binary_scalar(BinaryOp::Div, near, beta)?;
            let far = b.add_scalar(d, -0.5 * beta)?;
            let is_near = b.compare_scalar(CompareOp::Lt, d, beta)?;
            b.select(is_near, near, far)
        })
    }
}

impl CompositeDef for KlDivergence {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        of_pair(b, operands, self.reduction, |b, x, target| {
            if self.log_target {
                let weight = b.unary(UnaryOp::Exp, target)?;
                let difference = b.sub(target, x)?;
                return b.mul(weight, difference);
            }
            let log = b.unary(UnaryOp::Log, target)?;
            let difference = b.sub(log, x)?;
            let product = b.mul(target, difference)?;
            let empty = b.compare_scalar(CompareOp::Eq, target, 0.0)?;
            let zero = b.like(0.0, target)?;
            b.select(empty, zero, product)
        })
    }
}

/// Σ x·y along an axis, which goes.
fn inner(b: &mut Builder, x: Value, y: Value, axis: usize) -> Result<Value, TypeError> {
    let product = b.mul(x, y)?;
    b.sum(product, &[axis], false)
}

impl CompositeDef for CosineSimilarity {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let axis = self.axis.of_rank(b.rank(operands[0])).unwrap_or(0);
        let eps = self.eps.get();
        of_pair(b, operands, Reduction::None, |b, x, y| {
            let mut cosine = inner(b, x, y, axis)?;
            for vector in [x, y] {
                let square = inner(b, vector, vector, axis)?;
                let norm = b.unary(UnaryOp::Sqrt, square)?;
                let norm = b.binary_scalar(BinaryOp::Max, norm, eps)?;
                cosine = b.div(cosine, norm)?;
            }
            Ok(cosine)
        })
    }
}

impl CompositeDef for CosineEmbeddingLoss {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        /// What PyTorch adds to the squared norms.
        const EPS: f64 = 1e-12;
        let sign = widened(b, operands[2])?;
        of_pair(b, operands, self.reduction, |b, x, y| {
            let axis = b.rank(x).saturating_sub(1);
            let mut cosine = inner(b, x, y, axis)?;
            for vector in [x, y] {
                let square = inner(b, vector, vector, axis)?;
                let square = b.add_scalar(square, EPS)?;
                let norm = b.unary(UnaryOp::Sqrt, square)?;
                cosine = b.div(cosine, norm)?;
            }
            let one = b.like(1.0, cosine)?;
            let alike = b.sub(one, cosine)?;
            let excess = b.add_scalar(cosine, -self.margin.get())?;
            let unlike = b.binary_scalar(BinaryOp::Max, excess, 0.0)?;
            let zero = b.like(0.0, cosine)?;
            let is_alike = b.compare_scalar(CompareOp::Eq, sign, 1.0)?;
            let is_unlike = b.compare_scalar(CompareOp::Eq, sign, -1.0)?;
            let rest = b.select(is_unlike, unlike, zero)?;
            b.select(is_alike, alike, rest)
        })
    }
}
