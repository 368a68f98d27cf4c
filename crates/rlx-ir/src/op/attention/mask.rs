//! Which keys a query of [`Attention`](super::Attention) sees, as one bool tensor, and which pages are in use.

use super::{Attention, AttentionOperand, Built, Sizes};
use crate::builder::Builder;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::op::elementwise::{BinaryOp, CompareOp};
use crate::types::Shape;

/// An integer tensor as i64, its axes at `axes` of the scores' sizes.
fn placed(b: &mut Builder, x: Value, scores: &Shape, axes: &[usize]) -> Built {
    let x = b.cast(x, DType::I64)?;
    b.broadcast_in(x, scores, axes)
}

/// A window's reach as a number; beyond 2⁶⁰ it is as good as none, and sums with positions stay in i64.
fn reach(window: usize) -> f64 {
    window.min(1 << 60) as f64
}

fn both(b: &mut Builder, x: Option<Value>, y: Value) -> Result<Option<Value>, TypeError> {
    match x {
        Some(x) => b.binary(BinaryOp::And, x, y).map(Some),
        None => Ok(Some(y)),
    }
}

impl Attention {
    /// bool \[batch, heads, queries, keys\]; none if every query sees every key.
    pub(super) fn visible(
        &self,
        b: &mut Builder,
        operands: &[Value],
        lengths: Option<Value>,
        sizes: &Sizes,
    ) -> Result<Option<Value>, TypeError> {
        let scores = sizes.scores();
        let mut visible = None;
        if let Some(keep) = self.optional(operands, AttentionOperand::KeepMask) {
            visible = Some(b.broadcast_to(keep, &scores)?);
        }
        let windowed = self.causal || self.window_left.is_some() || self.window_right.is_some();
        if lengths.is_none() && !windowed {
            return Ok(visible);
        }
        let key = b.iota(DType::I64, &scores, 3)?;
        if let Some(lengths) = lengths {
            let lengths = placed(b, lengths, &scores, &[0])?;
            let valid = b.compare(CompareOp::Lt, key, lengths)?;
            visible = both(b, visible, valid)?;
        }
        if !windowed {
            return Ok(visible);
        }
        let query = self.query_positions(b, operands, &scores)?;
        let mut upper = self.window_right.map(reach);
        if self.causal {
            upper = Some(0.0);
        }
        if let Some(right) = upper {
            let last = b.add_scalar(query, right)?;
            let within = b.compare(CompareOp::Le, key, last)?;
            visible = both(b, visible, within)?;
        }
        if let Some(left) = self.window_left {
            let first = b.add_scalar(query, -reach(left))?;
            let within = b.compare(CompareOp::Ge, key, first)?;
            visible = both(b, visible, within)?;
        }
        Ok(visible)
    }

    /// Each query's position among the keys, i64 in the scores' sizes.
    fn query_positions(&self, b: &mut Builder, operands: &[Value], scores: &Shape) -> Built {
        if let Some(positions) = self.optional(operands, AttentionOperand::Positions) {
            return placed(b, positions, scores, &[0, 2]);
        }
        let index = b.iota(DType::I64, scores, 2)?;
        match self.optional(operands, AttentionOperand::Offset) {
            Some(offset) => {
                let axes: &[usize] = if b.rank(offset) == 0 { &[] } else { &[0] };
                let offset = placed(b, offset, scores, axes)?;
                b.add(index, offset)
            }
            None => Ok(index),
        }
    }
}

/// The page table with 0 in place of the entries whose pages lie wholly past the lengths.
pub(super) fn pages_in_use(b: &mut Builder, table: Value, lengths: Option<Value>, page_size: &Dim) -> Built {
    let table = b.cast(table, DType::I64)?;
    let Some(lengths) = lengths else { return Ok(table) };
    let dims = b.shape(table);
    let lengths = placed(b, lengths, &dims, &[0])?;
    let index = b.iota(DType::I64, &dims, 1)?;
    let size = b.dim_value(page_size)?;
    let size = b.broadcast_to(size, &dims)?;
    let first_key = b.mul(index, size)?;
    let used = b.compare(CompareOp::Lt, first_key, lengths)?;
    let zero = b.like(0.0, table)?;
    b.select(used, table, zero)
}
