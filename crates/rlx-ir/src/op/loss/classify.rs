//! Losses of class labels.

use super::{Reduction, widened};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::activation::{log_sigmoid, softplus};
use crate::op::axes::broadcasts_to;
use crate::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use crate::op::index::{GatherAlong, OutOfBounds};
use crate::op::softmax::log_softmax;
use crate::op::{CompositeDef, OpDef, Real};
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// Negative log likelihood: −w\[t\] · x\[t\] for the target class t of each position; the mean divides by Σ w\[t\].
    /// Operands: x, log-probabilities \[n, c, d…\] (or \[c\]); targets, i32 or i64 \[n, d…\]; class weights w \[c\] if they
    /// are there. A target outside 0 … c − 1 is an error at run time. C1: x is floating point. C2: targets are i32 or
    /// i64. C3: x has at least one axis, and targets its sizes without the class axis. C4: w has x's element type and c
    /// elements.
    pub struct NllLoss = "nll_loss" {
        /// A target that counts as no loss and no weight.
        ignore_index: Option<i64>,
        /// What becomes of the positions' losses.
        reduction: Reduction,
    }
}

operation! {
    /// Negative log likelihood of log_softmax(x) along the class axis. Operands: x, scores \[n, c, d…\] (or \[c\]); targets,
    /// i32 or i64 \[n, d…\], or probabilities of x's type and sizes; class weights w \[c\] if they are there. With smoothing
    /// ε the target is (1 − ε) · target + ε/c. Losses of probabilities p are −Σ w·p·log_softmax(x), and their mean is over
    /// positions. Results: the loss, and log_softmax(x) if `log_probabilities`. C1 to C4 as `nll_loss`.
    /// C5: 0 ≤ ε ≤ 1. C6: no ignored index with probabilities.
    pub struct SoftmaxCrossEntropy = "softmax_cross_entropy" {
        /// A target that counts as no loss and no weight.
        ignore_index: Option<i64>,
        /// ε (Szegedy et al. 2016).
        label_smoothing: Real,
        /// What becomes of the positions' losses.
        reduction: Reduction,
        /// Whether log_softmax(x) is a result.
        log_probabilities: bool,
    }
}

operation! {
    /// −(t · max(ln x, −100) + (1 − t) · max(ln(1 − x), −100)) · w. Operands: probabilities x, targets t, weights w if they
    /// are there. C1: x is floating point. C2: t and w have x's element type. C3: t has x's sizes. C4: w broadcasts to
    /// them.
    pub struct BinaryCrossEntropy = "binary_cross_entropy" {
        /// What becomes of the elements' losses.
        reduction: Reduction,
    }
}

operation! {
    /// (1 − t) · x + (1 + (q − 1) · t) · softplus(−x), times w. Operands: scores x, targets t, then weights w if `weight`,
    /// then weights of the positive class q (else 1) if `positive_weight`. C1: x is floating point. C2: all have x's
    /// element type. C3: t has x's sizes. C4: w and q broadcast to them.
    pub struct BinaryCrossEntropyWithLogits = "binary_cross_entropy_with_logits" {
        /// Whether there are weights.
        weight: bool,
        /// Whether there are weights of the positive class.
        positive_weight: bool,
        /// What becomes of the elements' losses.
        reduction: Reduction,
    }
}

/// The class axis of a tensor of this rank.
fn class_axis(rank: usize) -> usize {
    usize::from(rank > 1)
}

/// C1, C3 for x, C4: x, and its sizes without the class axis.
fn scores<'a>(cx: &Infer<'a>) -> Result<(&'a TensorType, Shape), TypeError> {
    cx.arity_between(2, 3)?;
    let x = cx.float("C1", 0)?;
    cx.rank_at_least("C3", 0, 1)?;
    let axis = class_axis(x.rank());
    if cx.count() == 3 {
        cx.same_dtype("C4", 2, 0)?;
        cx.same_dims("C4", 2, &x.dims()[axis..=axis])?;
    }
    Ok((x, x.shape.without(&[axis])))
}

/// C2 and C3 for targets that are indices.
fn index_targets(cx: &Infer<'_>, positions: &Shape) -> Result<(), TypeError> {
    cx.index("C2", 1)?;
    cx.same_dims("C3", 1, positions)
}

impl OpDef for NllLoss {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let (x, positions) = scores(cx)?;
        index_targets(cx, &positions)?;
        Ok(one(x.with_shape(self.reduction.shape(positions))))
    }
}

impl OpDef for SoftmaxCrossEntropy {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let (x, positions) = scores(cx)?;
        let target = cx.operand(1)?;
        if target.dtype.is_float() {
            cx.same_dtype("C2", 1, 0)?;
            cx.same_dims("C3", 1, x.dims())?;
            let none = self.ignore_index.is_none();
            cx.ensure(none, "C6", None, "ignored index", "none", format!("{:?}", self.ignore_index))?;
        } else {
            index_targets(cx, &positions)?;
        }
        let smoothing = self.label_smoothing.get();
        cx.ensure((0.0..=1.0).contains(&smoothing), "C5", None, "label smoothing", "0 to 1", smoothing)?;
        let mut types = one(x.with_shape(self.reduction.shape(positions)));
        if self.log_probabilities {
            types.push(x.clone());
        }
        Ok(types)
    }
}

/// The targets of each position: safe indices, and the weights (0 where ignored).
struct Labels {
    index: Value,
    weight: Value,
    axis: usize,
}

impl Labels {
    /// From index targets of scores `x` (in the wide type) and class weights.
    fn new(
        b: &mut Builder,
        x: Value,
        targets: Value,
        weights: Option<Value>,
        ignore_index: Option<i64>,
    ) -> Result<Labels, TypeError> {
        let (dtype, axis) = (b.dtype(x), class_axis(b.rank(x)));
        let targets = b.cast(targets, DType::I64)?;
        let positions = b.type_of(targets).clone();
        let one = b.full(1.0, &positions.with_dtype(dtype))?;
        let mut labels = Labels { index: targets, weight: one, axis };
        let kept = match ignore_index {
            Some(ignored) => {
                let ignored = b.constant(crate::literal::Literal::scalar(ignored));
                let ignored = b.broadcast_to(ignored, positions.dims())?;
                let kept = b.compare(CompareOp::Ne, targets, ignored)?;
                let zero = b.full(0.0, &positions)?;
                labels.index = b.select(kept, targets, zero)?;
                Some(kept)
            }
            None => None,
        };
        if let Some(weights) = weights {
            let weights = along_classes(b, x, weights)?;
            labels.weight = labels.pick(b, weights)?;
        }
        if let Some(kept) = kept {
            let zero = b.full(0.0, &positions.with_dtype(dtype))?;
            labels.weight = b.select(kept, labels.weight, zero)?;
        }
        Ok(labels)
    }

    /// The target's element of each position.
    fn pick(&self, b: &mut Builder, x: Value) -> Result<Value, TypeError> {
        let index = b.unsqueeze(self.index, self.axis)?;
        let gather = GatherAlong { axis: self.axis, oob: OutOfBounds::Error, wrap: false };
        let picked = b.push1(gather, &[x, index])?;
        b.squeeze(picked, &[self.axis])
    }

    /// x where the position counts, else 0: an ignored position's NaN must not show.
    fn weighted(&self, b: &mut Builder, losses: Value) -> Result<Value, TypeError> {
        let none = b.compare_scalar(CompareOp::Eq, self.weight, 0.0)?;
        let product = b.mul(losses, self.weight)?;
        let zero = b.like(0.0, losses)?;
        b.select(none, zero, product)
    }

    /// The reduction, whose mean is by weight.
    fn reduce(&self, b: &mut Builder, losses: Value, reduction: Reduction) -> Result<Value, TypeError> {
        if reduction != Reduction::Mean {
            return reduction.apply(b, losses);
        }
        let total = Reduction::Sum.apply(b, losses)?;
        let weight = Reduction::Sum.apply(b, self.weight)?;
        b.div(total, weight)
    }
}

/// Class weights \[c\] in the type and sizes of `x`.
fn along_classes(b: &mut Builder, x: Value, weights: Value) -> Result<Value, TypeError> {
    let wide = b.cast(weights, b.dtype(x))?;
    b.broadcast_in(wide, &b.shape(x), &[class_axis(b.rank(x))])
}

impl CompositeDef for NllLoss {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let x = widened(b, operands[0])?;
        let labels = Labels::new(b, x, operands[1], operands.get(2).copied(), self.ignore_index)?;
        let picked = labels.pick(b, x)?;
        let losses = b.unary(UnaryOp::Neg, picked)?;
        let losses = labels.weighted(b, losses)?;
        let loss = labels.reduce(b, losses, self.reduction)?;
        Ok(Values::from_slice(&[b.cast(loss, dtype)?]))
    }
}

impl SoftmaxCrossEntropy {
    /// The loss of index targets: (1 − ε) · w\[t\] · (−log p\[t\]) + ε/c · Σ w · (−log p).
    fn of_indices(&self, b: &mut Builder, log_p: Value, operands: &[Value]) -> Result<Value, TypeError> {
        let weights = operands.get(2).copied();
        let labels = Labels::new(b, log_p, operands[1], weights, self.ignore_index)?;
        let picked = labels.pick(b, log_p)?;
        let losses = b.unary(UnaryOp::Neg, picked)?;
        let mut losses = labels.weighted(b, losses)?;
        let smoothing = self.label_smoothing.get();
        if smoothing != 0.0 {
            let classes = b.dim(log_p, labels.axis);
            let uniform = match weights {
                Some(weights) => {
                    let weights = along_classes(b, log_p, weights)?;
                    b.mul(log_p, weights)?
                }
                None => log_p,
            };
            let uniform = b.sum(uniform, &[labels.axis], false)?;
            let share = self.share_of_each(b, &classes, uniform)?;
            let spread = b.mul(uniform, share)?;
            let kept = match self.ignore_index {
                Some(ignored) => {
                    let ignored = b.constant(crate::literal::Literal::scalar(ignored));
                    let targets = b.cast(operands[1], DType::I64)?;
                    let ignored = b.broadcast_to(ignored, &b.shape(targets))?;
                    let kept = b.compare(CompareOp::Ne, targets, ignored)?;
                    let zero = b.like(0.0, spread)?;
                    b.select(kept, spread, zero)?
                }
                None => spread,
            };
            losses = b.mul_scalar(losses, 1.0 - smoothing)?;
            losses = b.sub(losses, kept)?;
        }
        labels.reduce(b, losses, self.reduction)
    }

    /// ε/c in the sizes of `like`.
    fn share_of_each(&self, b: &mut Builder, classes: &Dim, like: Value) -> Result<Value, TypeError> {
        let count = b.dim_as(classes, b.dtype(like))?;
        let smoothing = b.like(self.label_smoothing.get(), count)?;
        let share = b.div(smoothing, count)?;
        b.broadcast_to(share, &b.shape(like))
    }

    /// The loss of probabilities: −Σ w · ((1 − ε) · p + ε/c) · log p'.
    fn of_probabilities(
        &self,
        b: &mut Builder,
        log_p: Value,
        operands: &[Value],
    ) -> Result<Value, TypeError> {
        let axis = class_axis(b.rank(log_p));
        let mut target = widened(b, operands[1])?;
        let smoothing = self.label_smoothing.get();
        if smoothing != 0.0 {
            let classes = b.dim(log_p, axis);
            let share = self.share_of_each(b, &classes, log_p)?;
            target = b.mul_scalar(target, 1.0 - smoothing)?;
            target = b.add(target, share)?;
        }
        if let Some(weights) = operands.get(2) {
            let weights = along_classes(b, log_p, *weights)?;
            target = b.mul(target, weights)?;
        }
        let products = b.mul(target, log_p)?;
        let sum = b.sum(products, &[axis], false)?;
        let losses = b.unary(UnaryOp::Neg, sum)?;
        self.reduction.apply(b, losses)
    }
}

impl CompositeDef for SoftmaxCrossEntropy {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let x = widened(b, operands[0])?;
        let axis = class_axis(b.rank(x));
        let log_p = log_softmax(b, x, axis)?;
        let loss = if b.dtype(operands[1]).is_float() {
            self.of_probabilities(b, log_p, operands)?
        } else {
            self.of_indices(b, log_p, operands)?
        };
        let mut results = Values::from_slice(&[b.cast(loss, dtype)?]);
        if self.log_probabilities {
            results.push(b.cast(log_p, dtype)?);
        }
        Ok(results)
    }
}

/// C1 to C4 of the binary losses.
fn binary(cx: &Infer<'_>, reduction: Reduction) -> Result<Types, TypeError> {
    let x = cx.float("C1", 0)?;
    for i in 1..cx.count() {
        cx.same_dtype("C2", i, 0)?;
    }
    cx.same_dims("C3", 1, x.dims())?;
    for i in 2..cx.count() {
        broadcasts_to(cx, "C4", i, x.dims())?;
    }
    Ok(one(x.with_shape(reduction.shape(x.shape.clone()))))
}

impl OpDef for BinaryCrossEntropy {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(2, 3)?;
        binary(cx, self.reduction)
    }
}

impl OpDef for BinaryCrossEntropyWithLogits {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2 + usize::from(self.weight) + usize::from(self.positive_weight))?;
        binary(cx, self.reduction)
    }
}

/// 1 − x.
fn complement(b: &mut Builder, x: Value) -> Result<Value, TypeError> {
    let one = b.like(1.0, x)?;
    b.sub(one, x)
}

/// The losses times weights that broadcast, reduced, in this type.
fn finish(
    b: &mut Builder,
    mut losses: Value,
    weights: Option<Value>,
    reduction: Reduction,
    dtype: DType,
) -> Result<Values, TypeError> {
    if let Some(weights) = weights {
        let weights = widened(b, weights)?;
        let weights = b.broadcast_to(weights, &b.shape(losses))?;
        losses = b.mul(losses, weights)?;
    }
    let loss = reduction.apply(b, losses)?;
    Ok(Values::from_slice(&[b.cast(loss, dtype)?]))
}

impl CompositeDef for BinaryCrossEntropy {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        /// PyTorch's bound of the logarithms, so that a loss stays finite.
        const LEAST_LOG: f64 = -100.0;
        let (x, target) = (widened(b, operands[0])?, widened(b, operands[1])?);
        let log = b.unary(UnaryOp::Log, x)?;
        let log = b.binary_scalar(BinaryOp::Max, log, LEAST_LOG)?;
        let negated = b.unary(UnaryOp::Neg, x)?;
        let log_rest = b.unary(UnaryOp::Log1p, negated)?;
        let log_rest = b.binary_scalar(BinaryOp::Max, log_rest, LEAST_LOG)?;
        let hit = b.mul(target, log)?;
        let rest = complement(b, target)?;
        let miss = b.mul(rest, log_rest)?;
        let sum = b.add(hit, miss)?;
        let losses = b.unary(UnaryOp::Neg, sum)?;
        finish(b, losses, operands.get(2).copied(), self.reduction, b.dtype(operands[0]))
    }
}

impl CompositeDef for BinaryCrossEntropyWithLogits {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, target) = (widened(b, operands[0])?, widened(b, operands[1])?);
        // −t·q·ln σ(x) − (1 − t)·ln(1 − σ(x)): no two large terms cancel.
        let log_hit = log_sigmoid(b, x)?;
        let mut hit = b.mul(target, log_hit)?;
        if self.positive_weight {
            let q = operands[2 + usize::from(self.weight)];
            let q = widened(b, q)?;
            let q = b.broadcast_to(q, &b.shape(x))?;
            hit = b.mul(hit, q)?;
        }
        let rest = complement(b, target)?;
        let log_miss = softplus(b, x)?;
        let miss = b.mul(rest, log_miss)?;
        let losses = b.sub(miss, hit)?;
        let weights = self.weight.then(|| operands[2]);
        finish(b, losses, weights, self.reduction, b.dtype(operands[0]))
    }
}
