//! Gathers, scatters, and indices of elements.

use rlx_ir::op::elementwise::{BinaryOp, CompareOp};
use rlx_ir::op::index::{
    Combine, Gather, GatherAlong, NonMaxSuppression, NonZero, OutOfBounds, Scatter, ScatterAlong,
};
use rlx_ir::{DType, Dim, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Compress", &[9, 11, 28], compress),
    onnx("Gather", &[1, 11, 13], gather),
    onnx("GatherElements", &[11, 13], gather_elements),
    onnx("GatherND", &[11, 12, 13], gather_nd),
    onnx("NonMaxSuppression", &[10, 11], non_max_suppression),
    onnx("NonZero", &[9, 13], non_zero),
    onnx("ReverseSequence", &[10, 28], reverse_sequence),
    onnx("Scatter", &[9, 11], scatter_elements),
    onnx("ScatterElements", &[11, 13, 16, 18], scatter_elements),
    onnx("ScatterND", &[11, 13, 16, 18], scatter_nd),
    onnx("TensorScatter", &[24], tensor_scatter),
];

fn axis_of(cx: &mut NodeContext<'_, '_>, x: Value, default: i64) -> Result<usize, NodeProblem> {
    let (axis, rank) = (cx.int("axis", default)?, cx.rank(x));
    cx.axis(axis, rank)
}

fn gather(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let axis = axis_of(cx, x, 0)?;
    Ok(cx.builder().take(x, indices, axis)?.into())
}

fn gather_elements(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let axis = axis_of(cx, x, 0)?;
    let op = GatherAlong { axis, oob: OutOfBounds::Error, wrap: true };
    Ok(cx.builder().push1(op, &[x, indices])?.into())
}

/// The axes after the batch that the last axis of the indices speaks of.
fn indexed_axes(
    cx: &mut NodeContext<'_, '_>,
    x: Value,
    indices: Value,
    batch: usize,
) -> Result<Vec<usize>, NodeProblem> {
    let (rank, tuple) = (cx.rank(x), cx.shape(indices).last().and_then(Dim::as_size));
    let tuple = tuple.ok_or_else(|| {
        NodeProblem::Unsupported(
            "indices whose last axis has an open size, which decides the rank".to_owned(),
        )
    })?;
    let fits = batch.checked_add(tuple).is_some_and(|n| n <= rank);
    if !fits {
        return Err(cx.bad_input(
            1,
            "size of the last axis",
            format!("at most {}", rank - batch.min(rank)),
            tuple,
        ));
    }
    Ok((batch..batch + tuple).collect())
}

fn gather_nd(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let batch = cx.int("batch_dims", 0)?;
    let batch = usize::try_from(batch).map_err(|_| cx.bad_attribute("batch_dims", "at least 0", batch))?;
    let axes = indexed_axes(cx, x, indices, batch)?;
    let op = Gather { axes, batch, oob: OutOfBounds::Error, wrap: true };
    Ok(cx.builder().push1(op, &[x, indices])?.into())
}

fn combine(cx: &NodeContext<'_, '_>) -> Result<Combine, NodeProblem> {
    Ok(match cx.string("reduction", "none")?.as_str() {
        "none" => Combine::Replace,
        "add" => Combine::Add,
        "mul" => Combine::Mul,
        "max" => Combine::Max,
        "min" => Combine::Min,
        other => return Err(cx.bad_attribute("reduction", "none, add, mul, max or min", other)),
    })
}

fn scatter_elements(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices, updates) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (axis, combine) = (axis_of(cx, x, 0)?, combine(cx)?);
    let op = ScatterAlong { axis, combine, oob: OutOfBounds::Error, wrap: true };
    Ok(cx.builder().push1(op, &[x, indices, updates])?.into())
}

fn scatter_nd(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices, updates) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let combine = combine(cx)?;
    let axes = indexed_axes(cx, x, indices, 0)?;
    let op = Scatter { axes, batch: 0, combine, oob: OutOfBounds::Error, wrap: true };
    Ok(cx.builder().push1(op, &[x, indices, updates])?.into())
}

/// Writes a block along an axis of a cache, for each sample at its own index.
fn tensor_scatter(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (cache, update) = (cx.input(0)?, cx.input(1)?);
    let starts = cx.optional(2)?;
    let axis = axis_of(cx, cache, -2)?;
    if axis == 0 {
        return Err(cx.bad_attribute("axis", "another axis than the batch", 0));
    }
    let circular = match cx.string("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        other => return Err(cx.bad_attribute("mode", "linear or circular", other)),
    };
    let (dims, size) = (cx.shape(update), cx.shape(cache)[axis].clone());
    if dims.rank() <= axis {
        return Err(cx.bad_input(1, "number of axes", format!("above {axis}"), dims.rank()));
    }
    let b = cx.builder();
    let mut place = b.iota(DType::I64, &dims, axis)?;
    if let Some(starts) = starts {
        let starts = b.cast(starts, DType::I64)?;
        let starts = b.broadcast_in(starts, &dims, &[0])?;
        place = b.add(place, starts)?;
    }
    if circular {
        let size = b.dim_value(&size)?;
        let size = b.broadcast_to(size, &dims)?;
        place = b.binary(BinaryOp::Rem, place, size)?;
    }
    let op = ScatterAlong { axis, combine: Combine::Replace, oob: OutOfBounds::Error, wrap: false };
    Ok(b.push1(op, &[cache, place, update])?.into())
}

/// The slices (of the flat tensor without an axis) whose condition holds.
fn compress(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (mut x, condition) = (cx.input(0)?, cx.input(1)?);
    let axis = match cx.optional_int("axis")? {
        Some(axis) => {
            let rank = cx.rank(x);
            cx.axis(axis, rank)?
        }
        None => {
            let flat = [cx.shape(x).element_count()];
            x = cx.builder().reshape(x, &flat)?;
            0
        }
    };
    let b = cx.builder();
    let count = b.fresh_symbol("kept");
    let indices = b.push1(NonZero { count }, &[condition])?;
    let indices = b.index_axis(indices, 0, &Dim::ZERO)?;
    Ok(b.take(x, indices, axis)?.into())
}

fn non_zero(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let b = cx.builder();
    let count = b.fresh_symbol("nonzero");
    Ok(b.push1(NonZero { count }, &[x])?.into())
}

fn non_max_suppression(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (boxes, scores) = (cx.input(0)?, cx.input(1)?);
    let center_point = match cx.int("center_point_box", 0)? {
        0 => false,
        1 => true,
        other => return Err(cx.bad_attribute("center_point_box", "0 or 1", other)),
    };
    let dtype = cx.dtype(boxes);
    let defaults = [(DType::I64, 0.0), (dtype, 0.0), (dtype, f64::NEG_INFINITY)];
    let mut operands = vec![boxes, scores];
    for (i, (dtype, default)) in defaults.into_iter().enumerate() {
        let given = cx.optional(2 + i)?;
        let b = cx.builder();
        operands.push(match given {
            Some(value) => {
                let scalar = b.reshape(value, &[])?;
                b.cast(scalar, dtype)?
            }
            None => b.scalar(default, dtype)?,
        });
    }
    let b = cx.builder();
    let count = b.fresh_symbol("chosen");
    Ok(b.push1(NonMaxSuppression { center_point, count }, &operands)?.into())
}

/// The first `lengths\[b\]` steps of each sample in reverse order.
fn reverse_sequence(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, lengths) = (cx.input(0)?, cx.input(1)?);
    let (time, batch, dims) = (cx.int("time_axis", 0)?, cx.int("batch_axis", 1)?, cx.shape(x));
    let (time, batch) = (cx.axis(time, dims.rank())?, cx.axis(batch, dims.rank())?);
    let b = cx.builder();
    let lengths = b.cast(lengths, DType::I64)?;
    let lengths = b.broadcast_in(lengths, &dims, &[batch])?;
    let step = b.iota(DType::I64, &dims, time)?;
    let last = b.add_scalar(lengths, -1.0)?;
    let mirrored = b.sub(last, step)?;
    let inside = b.compare(CompareOp::Lt, step, lengths)?;
    let source = b.select(inside, mirrored, step)?;
    let op = GatherAlong { axis: time, oob: OutOfBounds::Error, wrap: false };
    Ok(b.push1(op, &[x, source])?.into())
}
