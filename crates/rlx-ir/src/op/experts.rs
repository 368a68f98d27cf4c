//! Mixtures of experts: choosing experts for each token, and running the tokens through them.

use super::activation::GateFunction;
use super::contract::Dot;
use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::gated::apply_gate;
use super::index::{Combine, Gather, GatherAlong, OutOfBounds, Scatter};
use super::norm::statistics_dtype;
use super::reduce::{Cumulative, CumulativeOp, ReduceOp, TopK};
use super::softmax::{Softmax, SoftmaxOp};
use super::{Axis, CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};

type Built = Result<Value, TypeError>;

names! {
    /// How router logits become the weights of the chosen experts.
    pub enum RoutingScore {
        /// The softmax over all experts.
        Softmax = "softmax",
        /// The softmax over the chosen experts only.
        ChosenSoftmax = "chosen_softmax",
        /// 1 / (1 + e^(−logit)), each for itself.
        Sigmoid = "sigmoid",
    }
}

operation! {
    /// The k experts of each token, and their weights. Operands: logits \[tokens, experts\], then if `bias` a bias
    /// \[experts\] that is added to the scores for choosing only (Wang et al. 2024). The greatest scores are chosen, lower
    /// indices first among equals. Results: weights \[tokens, k\] of the logits' type, experts i64 \[tokens, k\].
    /// C1: logits are floating point, the bias too. C2: rank 2. C3: 0 ≤ k ≤ experts. C4: the bias has one element an
    /// expert.
    pub struct Routing = "routing" {
        /// How many experts a token has.
        k: Dim,
        /// What the weights are.
        score: RoutingScore,
        /// The chosen weights are divided by their sum.
        renormalise: bool,
        /// The factor of the weights; 1 without it.
        scale: Option<Real>,
        /// Whether there is a bias.
        bias: bool,
    }
}

operation! {
    /// y\[t\] = Σⱼ w\[t, j\] · FFN_e(x\[t\]), e = experts\[t, j\] (Shazeer et al. 2017), with FFN_e(x) =
    /// f(x·U_e) · D_e, or (f(x·G_e) ⊙ x·U_e) · D_e if gated. Experts never see tokens of others.
    /// Operands: x \[tokens, width\], w \[tokens, k\], experts i32 or i64 \[tokens, k\], U \[experts, width, inner\],
    /// D \[experts, inner, width out\], then if `gated` G, of U's sizes. The result is \[tokens, width out\] of x's type.
    /// C1: x is floating point; U, D and G have its type; w is floating point. C2: ranks. C3: sizes agree. An expert
    /// outside is an error at run time.
    pub struct MixtureOfExperts = "mixture_of_experts" {
        /// f.
        activation: GateFunction,
        /// Whether f is a gate, with a matrix of its own.
        gated: bool,
        /// How many (token, choice) pairs an expert takes, in order of tokens, then choices; further ones give 0
        /// (Fedus et al. 2021). All without it.
        capacity: Option<Dim>,
    }
}

impl OpDef for Routing {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(if self.bias { 2 } else { 1 })?;
        let logits = cx.float("C1", 0)?;
        cx.rank("C2", 0, 2)?;
        let (tokens, experts) = (logits.shape[0].clone(), logits.shape[1].clone());
        cx.at_most("C3", None, "k is negative", &Dim::ZERO, &self.k)?;
        cx.at_most("C3", None, "k exceeds the experts", &self.k, &experts)?;
        if self.bias {
            cx.float("C1", 1)?;
            cx.same_dims("C4", 1, &[experts])?;
        }
        let weights = logits.with_shape(vec![tokens, self.k.clone()]);
        let chosen = weights.with_dtype(DType::I64);
        Ok(Types::from_iter([weights, chosen]))
    }
}

impl CompositeDef for Routing {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let wide = statistics_dtype(dtype);
        let softmax = Softmax { op: SoftmaxOp::Softmax, axis: Axis(-1) };
        let logits = b.cast(operands[0], wide)?;
        let scores = match self.score {
            RoutingScore::Softmax => b.push1(softmax.clone(), &[logits])?,
            RoutingScore::ChosenSoftmax => logits,
            RoutingScore::Sigmoid => b.unary(UnaryOp::Sigmoid, logits)?,
        };
        let ranked = if self.bias {
            let bias = b.cast(operands[1], wide)?;
            let bias = b.broadcast_to(bias, &b.shape(scores))?;
            b.add(scores, bias)?
        } else {
            scores
        };
        let top = TopK { k: self.k.clone(), axis: 1, smallest: false, unsorted: false };
        let chosen = b.push(top, &[ranked])?[1];
        let along = GatherAlong { axis: 1, oob: OutOfBounds::Error, wrap: false };
        let mut weights = b.push1(along, &[scores, chosen])?;
        if self.score == RoutingScore::ChosenSoftmax {
            weights = b.push1(softmax, &[weights])?;
        }
        if self.renormalise {
            let total = b.sum(weights, &[1], true)?;
            let total = b.broadcast_to(total, &b.shape(weights))?;
            weights = b.div(weights, total)?;
        }
        if let Some(scale) = self.scale {
            weights = b.mul_scalar(weights, scale.get())?;
        }
        Ok(Values::from_slice(&[b.cast(weights, dtype)?, chosen]))
    }
}

impl OpDef for MixtureOfExperts {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(if self.gated { 6 } else { 5 })?;
        let x = cx.float("C1", 0)?;
        cx.float("C1", 1)?;
        cx.index("C1", 2)?;
        for i in 3..cx.count() {
            cx.same_dtype("C1", i, 0)?;
        }
        cx.rank("C2", 0, 2)?;
        let chosen = cx.rank("C2", 2, 2)?;
        let up = cx.rank("C2", 3, 3)?;
        let down = cx.rank("C2", 4, 3)?;
        let (tokens, width) = (x.shape[0].clone(), x.shape[1].clone());
        let (experts, inner) = (up.shape[0].clone(), up.shape[2].clone());
        for i in [1, 2] {
            cx.same_dims("C3", i, &[tokens.clone(), chosen.shape[1].clone()])?;
        }
        cx.same_dims("C3", 3, &[experts.clone(), width, inner.clone()])?;
        cx.same_dims("C3", 4, &[experts, inner, down.shape[2].clone()])?;
        if self.gated {
            cx.same_dims("C3", 5, up.dims())?;
        }
        if let Some(capacity) = &self.capacity {
            cx.at_most("C3", None, "capacity is negative", &Dim::ZERO, capacity)?;
        }
        Ok(one(x.with_shape(vec![tokens, down.shape[2].clone()])))
    }
}

impl CompositeDef for MixtureOfExperts {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, experts) = (operands[0], b.dim(operands[3], 0));
        let dtype = b.dtype(x);
        let chosen = b.cast(operands[2], DType::I64)?;
        let chosen = in_range(b, chosen, &experts)?;
        let y = match &self.capacity {
            Some(capacity) => self.dispatched(b, operands, chosen, capacity)?,
            None => self.everywhere(b, operands, chosen)?,
        };
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

/// Σⱼ weights\[t, j\] · rows\[t, j, …\], in the type of the rows.
fn weighted_sum(b: &mut Builder, weights: Value, rows: Value) -> Built {
    let weights = b.cast(weights, b.dtype(rows))?;
    let dot = Dot::along(1, 1, 1);
    b.push1(dot, &[weights, rows])
}

impl MixtureOfExperts {
    /// \[experts, n, width\] through each expert: \[experts, n, width out\] in the wide type.
    fn feed_forward(&self, b: &mut Builder, operands: &[Value], x: Value) -> Built {
        let wide = statistics_dtype(b.dtype(x));
        let product =
            |b: &mut Builder, x: Value, w: Value| b.push1(Dot { out: Some(wide), ..Dot::matmul(3) }, &[x, w]);
        let mut inner = product(b, x, operands[3])?;
        if self.gated {
            let gate = product(b, x, operands[5])?;
            let gate = apply_gate(b, self.activation, None, gate)?;
            inner = b.mul(gate, inner)?;
        } else {
            inner = apply_gate(b, self.activation, None, inner)?;
        }
        let down = b.cast(operands[4], wide)?;
        product(b, inner, down)
    }

    /// Every token through every expert; what was not chosen is selected out.
    fn everywhere(&self, b: &mut Builder, operands: &[Value], chosen: Value) -> Built {
        let (x, weights) = (operands[0], operands[1]);
        let (tokens, width, experts) = (b.dim(x, 0), b.dim(x, 1), b.dim(operands[3], 0));
        let x = b.broadcast_to(x, &[experts.clone(), tokens.clone(), width])?;
        let outputs = self.feed_forward(b, operands, x)?;
        let wide = b.dtype(outputs);

        let dims = [tokens.clone(), b.dim(chosen, 1), experts.clone()];
        let expert = b.iota(DType::I64, &dims, 2)?;
        let chosen = b.broadcast_in(chosen, &dims, &[0, 1])?;
        let hit = b.compare(CompareOp::Eq, expert, chosen)?;
        let weights = b.cast(weights, wide)?;
        let weights = b.broadcast_in(weights, &dims, &[0, 1])?;
        let zero = b.like(0.0, weights)?;
        let weights = b.select(hit, weights, zero)?;
        let weights = b.sum(weights, &[1], false)?;

        let rows = b.transpose(outputs, &[1, 0, 2])?;
        let row_dims = b.shape(rows);
        let hit = b.reduce(ReduceOp::Any, hit, &[1], false)?;
        let hit = b.broadcast_in(hit, &row_dims, &[0, 1])?;
        let zero = b.like(0.0, rows)?;
        let rows = b.select(hit, rows, zero)?;
        weighted_sum(b, weights, rows)
    }

    /// Each (token, choice) pair through its expert only, as far as the expert has seats.
    fn dispatched(&self, b: &mut Builder, operands: &[Value], chosen: Value, capacity: &Dim) -> Built {
        let x = operands[0];
        let (tokens, width) = (b.dim(x, 0), b.dim(x, 1));
        let (k, experts) = (b.dim(chosen, 1), b.dim(operands[3], 0));
        let seats = seats(b, chosen, &experts)?;
        let rows = b.broadcast_in(x, &[tokens.clone(), k.clone(), width.clone()], &[0, 2])?;
        let rows = b.reshape(rows, &[tokens.clone() * &k, width.clone()])?;
        let empty = b.scalar(0.0, b.dtype(x))?;
        let empty = b.broadcast_to(empty, &[experts, capacity.clone(), width])?;
        // Seats beyond the capacity do not exist, and what goes there is dropped.
        let (axes, oob) = (vec![0, 1], OutOfBounds::Drop);
        let scatter = Scatter { axes: axes.clone(), batch: 0, combine: Combine::Replace, oob, wrap: false };
        let seated = b.push1(scatter, &[empty, seats, rows])?;
        let outputs = self.feed_forward(b, operands, seated)?;
        let zero = b.scalar(0.0, b.dtype(outputs))?;
        let gather = Gather { axes, batch: 0, oob, wrap: false };
        let rows = b.push1(gather, &[outputs, seats, zero])?;
        let rows = b.reshape(rows, &[tokens, k, b.dim(outputs, 2)])?;
        weighted_sum(b, operands[1], rows)
    }
}

/// \[pairs, 2\]: each pair's expert, and how many earlier pairs chose that expert.
fn seats(b: &mut Builder, chosen: Value, experts: &Dim) -> Built {
    let pairs = b.shape(chosen).element_count();
    let chosen = b.reshape(chosen, std::slice::from_ref(&pairs))?;
    let dims = [pairs, experts.clone()];
    let expert = b.iota(DType::I64, &dims, 1)?;
    let of_pair = b.broadcast_in(chosen, &dims, &[0])?;
    let hit = b.compare(CompareOp::Eq, expert, of_pair)?;
    let hit = b.cast(hit, DType::I64)?;
    let op = CumulativeOp::Sum;
    let earlier = b.push1(Cumulative { op, axis: 0, exclusive: true, reverse: false }, &[hit])?;
    let own = b.binary(BinaryOp::Mul, hit, earlier)?;
    let seat = b.sum(own, &[1], false)?;
    let parts = [b.unsqueeze(chosen, 1)?, b.unsqueeze(seat, 1)?];
    b.concat(&parts, 1)
}

/// The indices themselves; an error at run time if one is no expert, which the dropping scatter would hide.
fn in_range(b: &mut Builder, chosen: Value, experts: &Dim) -> Built {
    let index = b.iota(DType::I64, std::slice::from_ref(experts), 0)?;
    let tuples = b.unsqueeze(chosen, 2)?;
    let gather = Gather { axes: vec![0], batch: 0, oob: OutOfBounds::Error, wrap: false };
    b.push1(gather, &[index, tuples])
}
