//! Order along an axis: extremes, the greatest k, running sums, unique elements.

use rlx_ir::builder::Carried;
use rlx_ir::op::elementwise::{BinaryOp, CompareOp};
use rlx_ir::op::index::{Combine, NonZero, OutOfBounds, ScatterAlong};
use rlx_ir::op::reduce::{ArgReduce, ArgReduceOp, Cumulative, CumulativeOp, ReduceOp, Sort, TopK};
use rlx_ir::{Builder, DType, Dim, TypeError, Value};

use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("ArgMax", &[1, 11, 12, 13], |cx| arg_reduce(cx, ArgReduceOp::ArgMax)),
    onnx("ArgMin", &[1, 11, 12, 13], |cx| arg_reduce(cx, ArgReduceOp::ArgMin)),
    onnx("CumProd", &[26], |cx| cumulative(cx, CumulativeOp::Prod)),
    onnx("CumSum", &[11, 14], |cx| cumulative(cx, CumulativeOp::Sum)),
    onnx("TopK", &[1, 10, 11, 24], top_k),
    onnx("Unique", &[11, 28], unique),
];

fn arg_reduce(cx: &mut NodeContext<'_, '_>, op: ArgReduceOp) -> Handled {
    let x = cx.input(0)?;
    let (axis, rank) = (cx.int("axis", 0)?, cx.rank(x));
    let axis = cx.axis(axis, rank)?;
    let (keep_dims, last) = (cx.flag("keepdims", true)?, cx.flag("select_last_index", false)?);
    Ok(cx.builder().push1(ArgReduce { op, axis, keep_dims, last }, &[x])?.into())
}

fn cumulative(cx: &mut NodeContext<'_, '_>, op: CumulativeOp) -> Handled {
    let x = cx.input(0)?;
    let (axis, rank) = (cx.constant_int(1, "the axis")?, cx.rank(x));
    let axis = cx.axis(axis, rank)?;
    let (exclusive, reverse) = (cx.flag("exclusive", false)?, cx.flag("reverse", false)?);
    Ok(cx.builder().push1(Cumulative { op, axis, exclusive, reverse }, &[x])?.into())
}

fn top_k(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let k = if cx.since() < 10 { cx.required_int("k")?.into() } else { cx.dim(1, "k")? };
    let (axis, rank) = (cx.int("axis", -1)?, cx.rank(x));
    let axis = cx.axis(axis, rank)?;
    let (smallest, unsorted) = (!cx.flag("largest", true)?, !cx.flag("sorted", true)?);
    Ok(cx.builder().push(TopK { k, axis, smallest, unsorted }, &[x])?.to_vec().into())
}

/// Unique elements, or slices along an axis: they are sorted (stably, so that the first of equals leads its group),
/// groups are counted, and what was asked for is gathered from them.
fn unique(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let sorted = cx.flag("sorted", true)?;
    let (axis, rank) = (cx.optional_int("axis")?, cx.rank(x));
    let axis = axis.map(|axis| cx.axis(axis, rank)).transpose()?;
    let b = cx.builder();
    let dims = b.shape(x);
    let (slices, along) = match axis {
        None => {
            let count = dims.element_count();
            (b.reshape(x, std::slice::from_ref(&count))?, count)
        }
        Some(axis) => (b.move_axis(x, axis, 0)?, dims[axis].clone()),
    };
    let width = Dim::product(&b.shape(slices)[1..]);
    let rows = b.reshape(slices, &[along.clone(), width.clone()])?;
    let order = sorted_rows(b, rows, &along, &width)?;
    let mut groups = Groups::of(b, rows, order, &along)?;
    if !sorted {
        groups.by_first_occurrence(b)?;
    }
    let unique = b.take(slices, groups.first, 0)?;
    let unique = match axis {
        None => unique,
        Some(axis) => b.move_axis(unique, 0, axis)?,
    };
    Ok(vec![unique, groups.first, groups.of_row, groups.counts].into())
}

/// The order of the rows, lexicographically: sorted by the last column first, each sort being stable.
fn sorted_rows(b: &mut Builder, rows: Value, along: &Dim, width: &Dim) -> Result<Value, TypeError> {
    let order = b.iota(DType::I64, std::slice::from_ref(along), 0)?;
    let columns = b.matrix_transpose(rows)?;
    let sorted = b.scan(&[order], &[columns], &[], width, true, |b, trip| {
        let order = trip.carried[0];
        let keys = b.take(trip.scanned[0], order, 0)?;
        let sorted = b.push(Sort { axis: 0, descending: false }, &[keys, order])?;
        Ok(Carried { carried: vec![sorted[1]], stacked: Vec::new() })
    })?;
    Ok(sorted.carried[0])
}

/// Groups of equal rows.
struct Groups {
    /// The first row of each group.
    first: Value,
    /// The group of each row.
    of_row: Value,
    /// The number of rows in each group.
    counts: Value,
    /// The number of groups.
    number: Dim,
}

impl Groups {
    fn of(b: &mut Builder, rows: Value, order: Value, along: &Dim) -> Result<Groups, TypeError> {
        let dims = [along.clone()];
        // A row begins a group if it differs from the one before it in order.
        let sorted = b.take(rows, order, 0)?;
        let place = b.iota(DType::I64, &dims, 0)?;
        let before = b.add_scalar(place, -1.0)?;
        let before = b.binary_scalar(BinaryOp::Max, before, 0.0)?;
        let previous = b.take(sorted, before, 0)?;
        let differs = b.compare(CompareOp::Ne, sorted, previous)?;
        let differs = b.reduce(ReduceOp::Any, differs, &[1], false)?;
        let is_first = b.compare_scalar(CompareOp::Eq, place, 0.0)?;
        let begins = b.binary(BinaryOp::Or, differs, is_first)?;
        let number = b.fresh_symbol("unique");
        let starts = b.push1(NonZero { count: number.clone() }, &[begins])?;
        let number = Dim::from(number);
        let starts = b.index_axis(starts, 0, &Dim::ZERO)?;
        let first = b.take(order, starts, 0)?;
        let begins = b.cast(begins, DType::I64)?;
        let counter = Cumulative { op: CumulativeOp::Sum, axis: 0, exclusive: false, reverse: false };
        let group = b.push1(counter, &[begins])?;
        let group = b.add_scalar(group, -1.0)?;
        let zeros = b.like(0.0, place)?;
        let of_row = scattered(b, Combine::Replace, [zeros, order, group])?;
        let t = rlx_ir::TensorType::new(DType::I64, vec![number.clone()]);
        let none = b.full(0.0, &t)?;
        let ones = b.like(1.0, place)?;
        let counts = scattered(b, Combine::Add, [none, group, ones])?;
        Ok(Groups { first, of_row, counts, number })
    }

    /// Numbers the groups by their first rows instead of by their elements.
    fn by_first_occurrence(&mut self, b: &mut Builder) -> Result<(), TypeError> {
        let dims = [self.number.clone()];
        let place = b.iota(DType::I64, &dims, 0)?;
        let sorted = b.push(Sort { axis: 0, descending: false }, &[self.first, place])?;
        let (first, order) = (sorted[0], sorted[1]);
        let zeros = b.like(0.0, place)?;
        let renumbered = scattered(b, Combine::Replace, [zeros, order, place])?;
        self.first = first;
        self.of_row = b.take(renumbered, self.of_row, 0)?;
        self.counts = b.take(self.counts, order, 0)?;
        Ok(())
    }
}

fn scattered(b: &mut Builder, combine: Combine, operands: [Value; 3]) -> Result<Value, TypeError> {
    let op = ScatterAlong { axis: 0, combine, oob: OutOfBounds::Error, wrap: false };
    b.push1(op, &operands)
}
