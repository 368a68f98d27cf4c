//! Linear attention: a matrix per head in place of the keys and values seen so far, updated token by token.

use crate::builder::{Builder, Carried, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types};
use crate::op::axes::broadcasts_to;
use crate::op::contract::Dot;
use crate::op::elementwise::UnaryOp;
use crate::op::norm::statistics_dtype;
use crate::op::{CompositeDef, OpDef, Real};
use crate::types::TensorType;
use crate::{names, operation};

type Built = Result<Value, TypeError>;

names! {
    /// How a token changes the state S \[key width, value width\].
    pub enum LinearAttentionRule {
        /// S + k ⊗ v (Katharopoulos et al. 2020).
        Linear = "linear",
        /// e^g · S + k ⊗ v (RetNet, GLA, RWKV-6).
        Gated = "gated",
        /// S + β · k ⊗ (v − Sᵀk) (the delta rule; Schlag et al. 2021).
        Delta = "delta",
        /// D + β · k ⊗ (v − Dᵀk) with D = e^g · S (gated delta net; Yang et al. 2024).
        GatedDelta = "gated_delta",
    }
}

impl LinearAttentionRule {
    /// Whether the state decays.
    fn gated(self) -> bool {
        matches!(self, LinearAttentionRule::Gated | LinearAttentionRule::GatedDelta)
    }

    /// Whether the write is what the state does not yet hold.
    fn corrects(self) -> bool {
        matches!(self, LinearAttentionRule::Delta | LinearAttentionRule::GatedDelta)
    }
}

operation! {
    /// For each token t in order, S is updated by the rule, then y\[t\] = scale · Sᵀq\[t\]; all in f32 for narrower floats.
    /// Operands: q \[batch, heads, tokens, width\], k \[batch, kv heads, tokens, width\],
    /// v \[batch, kv heads, tokens, value width\], the state \[batch, kv heads, width, value width\], then for the gated
    /// rules the logarithmic decay g, which broadcasts to k's sizes, then for the delta rules β, which broadcasts to
    /// \[batch, kv heads, tokens, 1\]. Query head h reads the state of kv head h / (heads / kv heads). Results:
    /// y \[batch, heads, tokens, value width\] of q's type and the last state, of the state's type.
    /// C1: q is floating point; k, v, g and β have its type; the state is floating point. C2: ranks 4.
    /// C3: sizes agree. C4: kv heads divide the heads.
    pub struct LinearAttention = "linear_attention" {
        /// The rule.
        rule: LinearAttentionRule,
        /// The factor of the result; 1/√width without it.
        scale: Option<Real>,
    }
}

impl OpDef for LinearAttention {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let (gated, corrects) = (self.rule.gated(), self.rule.corrects());
        cx.arity(4 + usize::from(gated) + usize::from(corrects))?;
        let q = cx.float("C1", 0)?;
        let state = cx.float("C1", 3)?;
        for i in 0..cx.count() {
            if i != 3 {
                cx.same_dtype("C1", i, 0)?;
            }
            cx.rank("C2", i, 4)?;
        }
        let (k, v) = (cx.operand(1)?, cx.operand(2)?);
        let [batch, heads, tokens, width] = [0, 1, 2, 3].map(|i| &q.shape[i]);
        let (kv_heads, value_width) = (&k.shape[1], &v.shape[3]);
        let dims = |d: [&Dim; 4]| d.map(Dim::clone);
        cx.same_dims("C3", 1, &dims([batch, kv_heads, tokens, width]))?;
        cx.same_dims("C3", 2, &dims([batch, kv_heads, tokens, value_width]))?;
        cx.same_dims("C3", 3, &dims([batch, kv_heads, width, value_width]))?;
        if gated {
            broadcasts_to(cx, "C3", 4, &dims([batch, kv_heads, tokens, width]))?;
        }
        if corrects {
            broadcasts_to(cx, "C3", cx.count() - 1, &dims([batch, kv_heads, tokens, &Dim::ONE]))?;
        }
        cx.at_most("C4", Some(1), "no kv heads", &Dim::ONE, kv_heads)?;
        let rest = heads.modulo(kv_heads);
        cx.equal("C4", Some(1), "kv heads do not divide the heads", &Dim::ZERO, &rest)?;
        let y = dims([batch, heads, tokens, value_width]);
        Ok(Types::from_iter([q.with_shape(y.as_slice()), state.clone()]))
    }
}

/// Contracts `lhs_axis` with `rhs_axis` after two batch axes.
fn per_head(b: &mut Builder, lhs: Value, lhs_axis: usize, rhs: Value, rhs_axis: usize) -> Built {
    let dot = Dot::along(2, lhs_axis, rhs_axis);
    b.push1(dot, &[lhs, rhs])
}

/// \[batch, heads, tokens, …\] in the wide type, repeated to `dims`, tokens first.
fn tokens_first(b: &mut Builder, x: Value, wide: DType, dims: &[Dim]) -> Built {
    let x = b.cast(x, wide)?;
    let x = b.broadcast_to(x, dims)?;
    b.move_axis(x, 2, 0)
}

impl CompositeDef for LinearAttention {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (rule, dtype) = (self.rule, b.dtype(operands[0]));
        let wide = statistics_dtype(dtype);
        let (q_dims, k_dims, v_dims) = (b.shape(operands[0]), b.shape(operands[1]), b.shape(operands[2]));
        let [batch, heads, tokens, width] = [0, 1, 2, 3].map(|i| q_dims[i].clone());
        let (kv_heads, value_width) = (k_dims[1].clone(), v_dims[3].clone());
        let groups = heads.floor_div(&kv_heads);
        let state = b.cast(operands[3], wide)?;

        let q = b.cast(operands[0], wide)?;
        let q = b.mul_scale(q, self.scale, &width)?;
        let grouped = [batch.clone(), kv_heads.clone(), groups, tokens.clone(), width.clone()];
        let q = b.reshape(q, &grouped)?;
        let q = b.move_axis(q, 3, 0)?;
        let mut scanned = vec![q];
        for i in [1, 2] {
            let dims = b.shape(operands[i]);
            scanned.push(tokens_first(b, operands[i], wide, &dims)?);
        }
        if rule.gated() {
            let g = tokens_first(b, operands[4], wide, &k_dims)?;
            scanned.push(b.unary(UnaryOp::Exp, g)?);
        }
        if rule.corrects() {
            scanned.push(tokens_first(b, operands[operands.len() - 1], wide, &v_dims)?);
        }
        let results = b.scan(&[state], &scanned, &[], &tokens, false, |b, trip| {
            let mut state = trip.carried[0];
            let dims = b.shape(state);
            let [q, k, mut v] = [trip.scanned[0], trip.scanned[1], trip.scanned[2]];
            if rule.gated() {
                let decay = b.broadcast_in(trip.scanned[3], &dims, &[0, 1, 2])?;
                state = b.mul(state, decay)?;
            }
            if rule.corrects() {
                let held = per_head(b, state, 2, k, 2)?;
                let missing = b.sub(v, held)?;
                v = b.mul(trip.scanned[trip.scanned.len() - 1], missing)?;
            }
            let k = b.broadcast_in(k, &dims, &[0, 1, 2])?;
            let v = b.broadcast_in(v, &dims, &[0, 1, 3])?;
            let written = b.mul(k, v)?;
            state = b.add(state, written)?;
            let read = per_head(b, q, 3, state, 2)?;
            Ok(Carried { carried: vec![state], stacked: vec![read] })
        })?;
        // [tokens, batch, kv heads, groups, value width]
        let y = b.move_axis(results.stacked[0], 0, 3)?;
        let y = b.reshape(y, &[batch, heads, tokens, value_width])?;
        let y = b.cast(y, dtype)?;
        let state = b.cast(results.carried[0], b.dtype(operands[3]))?;
        Ok(Values::from_slice(&[y, state]))
    }
}

impl Builder {
    /// x · scale, or x / √width without one.
    pub(super) fn mul_scale(&mut self, x: Value, scale: Option<Real>, width: &Dim) -> Built {
        let t: TensorType = self.type_of(x).clone();
        let scale = match (scale, width.as_const()) {
            (Some(scale), _) => self.scalar(scale.get(), t.dtype)?,
            (None, Some(width)) => self.scalar(1.0 / (width as f64).sqrt(), t.dtype)?,
            (None, None) => {
                let width = self.dim_as(width, t.dtype)?;
                self.unary(UnaryOp::Rsqrt, width)?
            }
        };
        let scale = self.broadcast_to(scale, t.dims())?;
        self.mul(x, scale)
    }
}
