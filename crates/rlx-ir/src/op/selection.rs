//! Composites whose result size depends on values: elements under a condition, distinct elements.

use super::elementwise::{BinaryOp, CompareOp};
use super::index::{Combine, NonZero, OutOfBounds, Scatter};
use super::reduce::{ArgReduce, ArgReduceOp, Cumulative, CumulativeOp, ReduceOp, Sort};
use super::unfold::counter;
use super::{Axis, CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::{Dim, Symbol};
use crate::dtype::{DType, DTypeClass};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// The slices of x along an axis where the condition (operand 1, bool \[k\]) is true; without an axis, of the
    /// flat x. C1: −rank ≤ axis < rank. C2: a bool vector no longer than the axis.
    pub struct Compress = "compress" {
        /// The axis.
        axis: Option<Axis>,
        /// The symbol bound to how many are chosen.
        count: Symbol,
    }
}

operation! {
    /// The distinct elements of x (without an axis: of the flat x), or its distinct slices along an axis. Four
    /// results: they themselves; the index (i64) of the first of each; for each element or slice of x, the index of
    /// its equal among the distinct; how often each occurs. In ascending order (slices: lexicographic), or in that
    /// of their first occurrence. NaN equals nothing. C1: an ordered type. C2: −rank ≤ axis < rank.
    pub struct Unique = "unique" {
        /// The axis.
        axis: Option<Axis>,
        /// In the order of first occurrence.
        unsorted: bool,
        /// The symbol bound to how many there are.
        count: Symbol,
    }
}

impl OpDef for Compress {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.operand(0)?;
        cx.dtype("C2", 1, DType::Bool)?;
        let condition = cx.rank("C2", 1, 1)?;
        let count = Dim::from(self.count.clone());
        let (along, shape) = match self.axis {
            None => (x.shape.element_count(), Shape::from(vec![count])),
            Some(axis) => {
                let axis = axis.resolve(cx, "C1", x.rank())?;
                (x.shape[axis].clone(), x.shape.with_dim(axis, count))
            }
        };
        cx.at_most("C2", Some(1), "length of the condition", &condition.shape[0], &along)?;
        Ok(one(x.with_shape(shape)))
    }
}

impl CompositeDef for Compress {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (mut x, condition) = (operands[0], operands[1]);
        let axis = match self.axis.and_then(|a| a.of_rank(b.rank(x))) {
            Some(axis) => axis,
            None => {
                let count = b.shape(x).element_count();
                x = b.reshape(x, &[count])?;
                0
            }
        };
        let chosen = b.push1(NonZero { count: self.count.clone() }, &[condition])?;
        let chosen = b.index_axis(chosen, 0, &Dim::ZERO)?;
        Ok(Values::from_slice(&[b.take(x, chosen, axis)?]))
    }
}

impl OpDef for Unique {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.of("C1", 0, "an ordered type", |d| {
            !matches!(d.class(), DTypeClass::Complex | DTypeClass::String | DTypeClass::Block)
        })?;
        let count = Dim::from(self.count.clone());
        let (along, shape) = match self.axis {
            None => (x.shape.element_count(), Shape::from(vec![count.clone()])),
            Some(axis) => {
                let axis = axis.resolve(cx, "C2", x.rank())?;
                (x.shape[axis].clone(), x.shape.with_dim(axis, count.clone()))
            }
        };
        let each = TensorType::new(DType::I64, vec![count]);
        let inverse = TensorType::new(DType::I64, vec![along]);
        Ok(Types::from_iter([x.with_shape(shape), each.clone(), inverse, each]))
    }
}

/// The order of rows \[n, k\] from the lexicographically least up, stable: each row's place is the number of rows
/// before it.
fn row_order(b: &mut Builder, rows: Value) -> Result<Value, TypeError> {
    let shape = b.shape(rows);
    let (n, k) = (shape[0].clone(), shape[1].clone());
    let all = [n.clone(), n.clone(), k.clone()];
    let left = b.broadcast_in(rows, &all, &[0, 2])?;
    let right = b.broadcast_in(rows, &all, &[1, 2])?;
    let differs = b.compare(CompareOp::Ne, left, right)?;
    let less = b.compare(CompareOp::Lt, right, left)?;
    // One more column in which nothing differs, so that equal rows and rows without columns have a first difference.
    let column = [n.clone(), n.clone(), Dim::ONE];
    let never = b.full(0.0, &TensorType::new(DType::Bool, column.as_slice()))?;
    let always = b.full(1.0, &TensorType::new(DType::Bool, column.as_slice()))?;
    let stops = b.concat(&[differs, always], 2)?;
    let less = b.concat(&[less, never], 2)?;
    let arg = ArgReduce { op: ArgReduceOp::ArgMax, axis: 2, keep_dims: true, last: false };
    let first = b.push1(arg, &[stops])?;
    let end = b.dim_like(&k, first)?;
    let equal = b.compare(CompareOp::Eq, first, end)?;
    let pick = super::index::GatherAlong { axis: 2, oob: OutOfBounds::Error, wrap: false };
    let less = b.push1(pick, &[less, first])?;
    let (less, equal) = (b.squeeze(less, &[2])?, b.squeeze(equal, &[2])?);
    let pairs = [n.clone(), n.clone()];
    let (i, j) = (counter(b, &pairs, 0, 1)?, counter(b, &pairs, 1, 1)?);
    let earlier = b.compare(CompareOp::Lt, j, i)?;
    let tie = b.binary(BinaryOp::And, equal, earlier)?;
    let before = b.binary(BinaryOp::Or, less, tie)?;
    let before = b.cast(before, DType::I64)?;
    let place = b.sum(before, &[1], false)?;
    let index = counter(b, std::slice::from_ref(&n), 0, 1)?;
    let zeros = b.like(0.0, index)?;
    scattered(b, zeros, place, index, Combine::Replace)
}

/// The vector `base` with `updates` at `indices`.
fn scattered(
    b: &mut Builder,
    base: Value,
    indices: Value,
    updates: Value,
    combine: Combine,
) -> Result<Value, TypeError> {
    let tuples = b.unsqueeze(indices, 1)?;
    let scatter = Scatter { axes: vec![0], batch: 0, combine, oob: OutOfBounds::Error, wrap: false };
    b.push1(scatter, &[base, tuples, updates])
}

impl CompositeDef for Unique {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let shape = b.shape(x);
        let axis = self.axis.and_then(|a| a.of_rank(shape.rank()));
        let n = axis.map_or(shape.element_count(), |a| shape[a].clone());
        let index = counter(b, std::slice::from_ref(&n), 0, 1)?;
        // The sorted elements \[n\] or rows \[n, k\], and where each was.
        let (sorted, order) = match axis {
            None => {
                let flat = b.reshape(x, std::slice::from_ref(&n))?;
                let both = b.push(Sort { axis: 0, descending: false }, &[flat, index])?;
                (both[0], both[1])
            }
            Some(axis) => {
                let first = b.move_axis(x, axis, 0)?;
                let width = Dim::product(shape.without(&[axis]).iter());
                let rows = b.reshape(first, &[n.clone(), width])?;
                let order = row_order(b, rows)?;
                (b.take(rows, order, 0)?, order)
            }
        };
        // An element begins a group if it is the first or differs from the one before.
        let before = b.add_scalar(index, -1.0)?;
        let zero = b.like(0.0, index)?;
        let before = b.max(before, zero)?;
        let previous = b.take(sorted, before, 0)?;
        let mut begins = b.compare(CompareOp::Ne, sorted, previous)?;
        if axis.is_some() {
            begins = b.reduce(ReduceOp::Any, begins, &[1], false)?;
        }
        let is_first = b.compare(CompareOp::Eq, index, zero)?;
        let begins = b.binary(BinaryOp::Or, begins, is_first)?;
        let counted = b.cast(begins, DType::I64)?;
        let running = Cumulative { op: CumulativeOp::Sum, axis: 0, exclusive: false, reverse: false };
        let group = b.push1(running, &[counted])?;
        let group = b.add_scalar(group, -1.0)?;
        let starts = b.push1(NonZero { count: self.count.clone() }, &[begins])?;
        let starts = b.index_axis(starts, 0, &Dim::ZERO)?;
        let mut values = b.take(sorted, starts, 0)?;
        let mut firsts = b.take(order, starts, 0)?;
        let mut inverse = scattered(b, zero, order, group, Combine::Replace)?;
        let ones = b.like(1.0, index)?;
        let none = b.like(0.0, firsts)?;
        let mut counts = scattered(b, none, group, ones, Combine::Add)?;
        if self.unsorted {
            let count = b.shape(firsts);
            let place = counter(b, &count, 0, 1)?;
            let both = b.push(Sort { axis: 0, descending: false }, &[firsts, place])?;
            firsts = both[0];
            values = b.take(values, both[1], 0)?;
            counts = b.take(counts, both[1], 0)?;
            let rank = scattered(b, none, both[1], place, Combine::Replace)?;
            inverse = b.take(rank, inverse, 0)?;
        }
        if let Some(axis) = axis {
            let mut dims = shape.without(&[axis]).to_vec();
            dims.insert(0, self.count.clone().into());
            let rows = b.reshape(values, &dims)?;
            values = b.move_axis(rows, 0, axis)?;
        }
        Ok(Values::from_slice(&[values, firsts, inverse, counts]))
    }
}
