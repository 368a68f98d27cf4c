//! State-space models: recurrences with a state that decays, as scans, in f32 for narrower floats.

use super::activation::{Softplus, Swish};
use super::contract::Dot;
use super::elementwise::{BinaryOp, UnaryOp};
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Carried, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types};
use crate::{names, operation};

type Built = Result<Value, TypeError>;

names! {
    /// The optional operands of the state-space scans, after the state.
    pub enum ScanOperand {
        /// D: what of the input goes straight to the result.
        Skip = "skip",
        /// Added to the step sizes.
        StepBias = "step_bias",
        /// The result is multiplied by z · sigmoid(z).
        Gate = "gate",
    }
}

operation! {
    /// The selective scan (Mamba; Gu & Dao 2023). For each token: S = e^(Δ·A) · S + Δ·x ⊗ B, y = S·C + D·x.
    /// Operands: x and Δ \[batch, tokens, channels\], A \[channels, n\], B and C \[batch, tokens, n\], the state S
    /// \[batch, channels, n\], then those listed: D and the step bias \[channels\], the gate of x's sizes. Results: y of
    /// x's type and sizes, the last state of the state's type.
    /// C1: floating point. C2: x has rank 3, A rank 2. C3: sizes agree. C4: each optional operand is listed once.
    pub struct SelectiveScan = "selective_scan" {
        /// The optional operands that follow the state, in this order.
        operands: Vec<ScanOperand>,
        /// Step sizes are ln(1 + e^Δ), after the bias.
        softplus: bool,
    }
}

operation! {
    /// The scan of Mamba-2 (Dao & Gu 2024), with one decay a head. For each token and head h of group g:
    /// S = e^(Δ·A) · S + Δ·x ⊗ B\[g\], y = S·C\[g\] + D·x. Operands: x \[batch, tokens, heads, width\],
    /// Δ \[batch, tokens, heads\], A \[heads\], B and C \[batch, tokens, groups, n\], the state S
    /// \[batch, heads, width, n\], then those listed: D and the step bias \[heads\], the gate of x's sizes. Results: y of
    /// x's type and sizes, the last state of the state's type.
    /// C1: floating point. C2: x and B have rank 4. C3: sizes agree. C4: each optional operand is listed once.
    /// C5: groups divide the heads.
    pub struct HeadwiseScan = "headwise_scan" {
        /// The optional operands that follow the state, in this order.
        operands: Vec<ScanOperand>,
        /// Step sizes are ln(1 + e^Δ), after the bias.
        softplus: bool,
    }
}

/// C1 and C4: floating-point operands, the optional ones listed once. Returns how many come before them.
fn scan_operands(cx: &Infer<'_>, listed: &[ScanOperand]) -> Result<usize, TypeError> {
    const REQUIRED: usize = 6;
    cx.arity(REQUIRED + listed.len())?;
    for i in 0..cx.count() {
        cx.float("C1", i)?;
    }
    for (i, operand) in listed.iter().enumerate() {
        let again = listed[..i].contains(operand);
        let what = format!("optional operand {}", operand.name());
        cx.ensure(!again, "C4", Some(REQUIRED + i), &what, "once", "again")?;
    }
    Ok(REQUIRED)
}

/// C3: the sizes of the optional operands.
fn optional_sizes(
    cx: &Infer<'_>,
    listed: &[ScanOperand],
    first: usize,
    per_channel: &Dim,
    x: &[Dim],
) -> Result<(), TypeError> {
    for (i, operand) in listed.iter().enumerate() {
        match operand {
            ScanOperand::Skip | ScanOperand::StepBias => {
                cx.same_dims("C3", first + i, std::slice::from_ref(per_channel))?;
            }
            ScanOperand::Gate => cx.same_dims("C3", first + i, x)?,
        }
    }
    Ok(())
}

impl OpDef for SelectiveScan {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let first = scan_operands(cx, &self.operands)?;
        let x = cx.rank("C2", 0, 3)?;
        let a = cx.rank("C2", 2, 2)?;
        let [batch, tokens, channels] = [0, 1, 2].map(|i| x.shape[i].clone());
        let n = a.shape[1].clone();
        cx.same_dims("C3", 1, x.dims())?;
        cx.same_dims("C3", 2, &[channels.clone(), n.clone()])?;
        for i in [3, 4] {
            cx.same_dims("C3", i, &[batch.clone(), tokens.clone(), n.clone()])?;
        }
        cx.same_dims("C3", 5, &[batch, channels.clone(), n])?;
        optional_sizes(cx, &self.operands, first, &channels, x.dims())?;
        Ok(Types::from_iter([x.clone(), cx.operand(5)?.clone()]))
    }
}

impl OpDef for HeadwiseScan {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let first = scan_operands(cx, &self.operands)?;
        let x = cx.rank("C2", 0, 4)?;
        let written = cx.rank("C2", 3, 4)?;
        let [batch, tokens, heads, width] = [0, 1, 2, 3].map(|i| x.shape[i].clone());
        let (groups, n) = (written.shape[2].clone(), written.shape[3].clone());
        cx.same_dims("C3", 1, &[batch.clone(), tokens.clone(), heads.clone()])?;
        cx.same_dims("C3", 2, std::slice::from_ref(&heads))?;
        for i in [3, 4] {
            cx.same_dims("C3", i, &[batch.clone(), tokens.clone(), groups.clone(), n.clone()])?;
        }
        cx.same_dims("C3", 5, &[batch, heads.clone(), width, n])?;
        optional_sizes(cx, &self.operands, first, &heads, x.dims())?;
        cx.at_most("C5", Some(3), "no groups", &Dim::ONE, &groups)?;
        let rest = heads.modulo(&groups);
        cx.equal("C5", Some(3), "groups do not divide the heads", &Dim::ZERO, &rest)?;
        Ok(Types::from_iter([x.clone(), cx.operand(5)?.clone()]))
    }
}

/// What both scans share: everything around the recurrence itself.
struct Around<'a> {
    listed: &'a [ScanOperand],
    softplus: bool,
    operands: &'a [Value],
    /// The type of the recurrence.
    wide: DType,
    /// The axis of x that channels or heads lie along.
    channel_axis: usize,
}

impl Around<'_> {
    fn new<'a>(b: &Builder, listed: &'a [ScanOperand], softplus: bool, operands: &'a [Value]) -> Around<'a> {
        let wide = operands.iter().any(|v| b.dtype(*v) == DType::F64);
        let wide = if wide { DType::F64 } else { DType::F32 };
        Around { listed, softplus, operands, wide, channel_axis: 2 }
    }

    fn operand(&self, b: &mut Builder, i: usize) -> Built {
        b.cast(self.operands[i], self.wide)
    }

    fn optional(&self, b: &mut Builder, which: ScanOperand) -> Result<Option<Value>, TypeError> {
        match self.listed.iter().position(|o| *o == which) {
            Some(i) => self.operand(b, 6 + i).map(Some),
            None => Ok(None),
        }
    }

    /// The step sizes.
    fn steps(&self, b: &mut Builder) -> Built {
        let mut steps = self.operand(b, 1)?;
        if let Some(bias) = self.optional(b, ScanOperand::StepBias)? {
            let bias = b.broadcast_in(bias, &b.shape(steps), &[self.channel_axis])?;
            steps = b.add(steps, bias)?;
        }
        if self.softplus {
            steps = b.push1(Softplus { beta: 1.0.into(), threshold: None }, &[steps])?;
        }
        Ok(steps)
    }

    /// Skip, gate, and the results' types.
    fn finish(&self, b: &mut Builder, mut y: Value, state: Value) -> Result<Values, TypeError> {
        let x = self.operand(b, 0)?;
        let dims = b.shape(x);
        if let Some(skip) = self.optional(b, ScanOperand::Skip)? {
            let skip = b.broadcast_in(skip, &dims, &[self.channel_axis])?;
            let straight = b.mul(skip, x)?;
            y = b.add(y, straight)?;
        }
        if let Some(gate) = self.optional(b, ScanOperand::Gate)? {
            let gate = b.push1(Swish { alpha: 1.0.into() }, &[gate])?;
            y = b.mul(y, gate)?;
        }
        let (y_type, state_type) = (b.dtype(self.operands[0]), b.dtype(self.operands[5]));
        Ok(Values::from_slice(&[b.cast(y, y_type)?, b.cast(state, state_type)?]))
    }
}

/// One token of the recurrence: S = decay ⊙ S + written ⊗ B, read as S·C. S has the sizes of the decay; its first
/// `batch` axes are those that B and C have too, its last one is n.
fn next_token(
    b: &mut Builder,
    batch: usize,
    state: Value,
    decay: Value,
    [written, into, out]: [Value; 3],
) -> Result<Carried, TypeError> {
    let dims = b.shape(state);
    let n = dims.len() - 1;
    let all_but_n: Vec<usize> = (0..n).collect();
    let shared: Vec<usize> = (0..batch).chain([n]).collect();
    let kept = b.mul(decay, state)?;
    let written = b.broadcast_in(written, &dims, &all_but_n)?;
    let into = b.broadcast_in(into, &dims, &shared)?;
    let added = b.mul(written, into)?;
    let state = b.add(kept, added)?;
    let y = b.push1(Dot::along(batch, n, batch), &[state, out])?;
    Ok(Carried { carried: vec![state], stacked: vec![y] })
}

impl CompositeDef for SelectiveScan {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let around = Around::new(b, &self.operands, self.softplus, operands);
        let tokens = b.dim(operands[0], 1);
        let x = around.operand(b, 0)?;
        let steps = around.steps(b)?;
        let written = b.mul(steps, x)?;
        let mut scanned = vec![steps, written, around.operand(b, 3)?, around.operand(b, 4)?];
        for value in &mut scanned {
            *value = b.move_axis(*value, 1, 0)?;
        }
        let (a, state) = (around.operand(b, 2)?, around.operand(b, 5)?);
        let results = b.scan(&[state], &scanned, &[a], &tokens, false, |b, trip| {
            let [step, written, into, out] = [0, 1, 2, 3].map(|i| trip.scanned[i]);
            let state = trip.carried[0];
            let dims = b.shape(state);
            let a = b.broadcast_in(trip.captured[0], &dims, &[1, 2])?;
            let step = b.broadcast_in(step, &dims, &[0, 1])?;
            let exponent = b.mul(step, a)?;
            let decay = b.unary(UnaryOp::Exp, exponent)?;
            next_token(b, 1, state, decay, [written, into, out])
        })?;
        let y = b.move_axis(results.stacked[0], 0, 1)?;
        around.finish(b, y, results.carried[0])
    }
}

impl CompositeDef for HeadwiseScan {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let around = Around::new(b, &self.operands, self.softplus, operands);
        let (dims, written_dims) = (b.shape(operands[0]), b.shape(operands[3]));
        let [batch, tokens, heads, width] = [0, 1, 2, 3].map(|i| dims[i].clone());
        let (groups, n) = (written_dims[2].clone(), written_dims[3].clone());
        let x = around.operand(b, 0)?;
        let steps = around.steps(b)?;
        let a = around.operand(b, 2)?;
        let a = b.broadcast_in(a, &b.shape(steps), &[2])?;
        let exponents = b.mul(steps, a)?;
        let decays = b.unary(UnaryOp::Exp, exponents)?;
        let steps = b.broadcast_in(steps, &dims, &[0, 1, 2])?;
        let written = b.binary(BinaryOp::Mul, steps, x)?;
        // Heads are cut into groups, so that a group's B and C meet all of its heads.
        let per_group = heads.floor_div(&groups);
        let cut = |rest: &[Dim]| {
            let mut dims = vec![batch.clone(), tokens.clone(), groups.clone(), per_group.clone()];
            dims.extend_from_slice(rest);
            dims
        };
        let decays = b.reshape(decays, &cut(&[]))?;
        let written = b.reshape(written, &cut(std::slice::from_ref(&width)))?;
        let mut scanned = vec![decays, written, around.operand(b, 3)?, around.operand(b, 4)?];
        for value in &mut scanned {
            *value = b.move_axis(*value, 1, 0)?;
        }
        let state = around.operand(b, 5)?;
        let state_dims = [batch.clone(), groups.clone(), per_group.clone(), width.clone(), n.clone()];
        let state = b.reshape(state, &state_dims)?;
        let results = b.scan(&[state], &scanned, &[], &tokens, false, |b, trip| {
            let [decay, written, into, out] = [0, 1, 2, 3].map(|i| trip.scanned[i]);
            let state = trip.carried[0];
            let dims = b.shape(state);
            let decay = b.broadcast_in(decay, &dims, &[0, 1, 2])?;
            next_token(b, 2, state, decay, [written, into, out])
        })?;
        let y = b.move_axis(results.stacked[0], 0, 1)?;
        let y = b.reshape(y, &dims)?;
        let state = b.reshape(results.carried[0], &[batch, heads, width, n])?;
        around.finish(b, y, state)
    }
}
