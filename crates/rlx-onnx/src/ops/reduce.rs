//! Reductions along axes.

use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::reduce::ReduceOp;
use rlx_ir::{Builder, DType, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family. The axes are an attribute before opset 18 (of ReduceSum: 13), an input since.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("ReduceL1", &[1, 11, 13, 18], |cx| composite(cx, l1)),
    onnx("ReduceL2", &[1, 11, 13, 18], |cx| composite(cx, l2)),
    onnx("ReduceLogSum", &[1, 11, 13, 18, 28], |cx| composite(cx, log_sum)),
    onnx("ReduceLogSumExp", &[1, 11, 13, 18, 28], |cx| composite(cx, log_sum_exp)),
    onnx("ReduceMax", &[1, 11, 12, 13, 18, 20], |cx| extreme(cx, ReduceOp::Max, ReduceOp::Any)),
    onnx("ReduceMean", &[1, 11, 13, 18], mean),
    onnx("ReduceMin", &[1, 11, 12, 13, 18, 20], |cx| extreme(cx, ReduceOp::Min, ReduceOp::All)),
    onnx("ReduceProd", &[1, 11, 13, 18], |cx| plain(cx, ReduceOp::Prod)),
    onnx("ReduceSum", &[1, 11, 13], |cx| plain(cx, ReduceOp::Sum)),
    onnx("ReduceSumSquare", &[1, 11, 13, 18], |cx| composite(cx, sum_square)),
];

/// What is reduced, along which axes, and whether they stay. Without axes it is all of them, or none if
/// `noop_with_empty_axes`.
fn operands(cx: &mut NodeContext<'_, '_>) -> Result<(Value, Vec<usize>, bool), NodeProblem> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let axes = cx.ints_or_input("axes", 1)?.unwrap_or_default();
    let keep_dims = cx.flag("keepdims", true)?;
    let axes = match axes.as_slice() {
        [] if cx.flag("noop_with_empty_axes", false)? => Vec::new(),
        [] => (0..rank).collect(),
        axes => cx.axes(axes, rank)?,
    };
    Ok((x, axes, keep_dims))
}

fn plain(cx: &mut NodeContext<'_, '_>, op: ReduceOp) -> Handled {
    let (x, axes, keep_dims) = operands(cx)?;
    Ok(cx.builder().reduce(op, x, &axes, keep_dims)?.into())
}

fn extreme(cx: &mut NodeContext<'_, '_>, op: ReduceOp, of_bools: ReduceOp) -> Handled {
    let (x, axes, keep_dims) = operands(cx)?;
    let op = if cx.dtype(x) == DType::Bool { of_bools } else { op };
    Ok(cx.builder().reduce(op, x, &axes, keep_dims)?.into())
}

fn mean(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, axes, keep_dims) = operands(cx)?;
    Ok(cx.builder().mean(x, &axes, keep_dims)?.into())
}

type Reduction = fn(&mut Builder, Value, &[usize], bool) -> Result<Value, TypeError>;

/// A reduction with steps around it, computed in f32 for narrower floats and in f64 for integers.
fn composite(cx: &mut NodeContext<'_, '_>, reduction: Reduction) -> Handled {
    let (x, axes, keep_dims) = operands(cx)?;
    let b = cx.builder();
    let dtype = b.dtype(x);
    let wide = match dtype {
        DType::F64 | DType::F32 => dtype,
        float if float.is_float() => DType::F32,
        _ => DType::F64,
    };
    let x = b.cast(x, wide)?;
    let reduced = reduction(b, x, &axes, keep_dims)?;
    Ok(b.cast(reduced, dtype)?.into())
}

fn l1(b: &mut Builder, x: Value, axes: &[usize], keep_dims: bool) -> Result<Value, TypeError> {
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    b.sum(magnitude, axes, keep_dims)
}

fn l2(b: &mut Builder, x: Value, axes: &[usize], keep_dims: bool) -> Result<Value, TypeError> {
    let sum = sum_square(b, x, axes, keep_dims)?;
    b.unary(UnaryOp::Sqrt, sum)
}

fn sum_square(b: &mut Builder, x: Value, axes: &[usize], keep_dims: bool) -> Result<Value, TypeError> {
    let square = b.mul(x, x)?;
    b.sum(square, axes, keep_dims)
}

fn log_sum(b: &mut Builder, x: Value, axes: &[usize], keep_dims: bool) -> Result<Value, TypeError> {
    let sum = b.sum(x, axes, keep_dims)?;
    b.unary(UnaryOp::Log, sum)
}

/// m + ln Σ e^(x − m) with the greatest x as m, unless that is an infinity.
fn log_sum_exp(b: &mut Builder, x: Value, axes: &[usize], keep_dims: bool) -> Result<Value, TypeError> {
    let greatest = b.reduce(ReduceOp::Max, x, axes, true)?;
    let finite = b.unary(UnaryOp::IsFinite, greatest)?;
    let zero = b.like(0.0, greatest)?;
    let shift = b.select(finite, greatest, zero)?;
    let shift_all = b.broadcast_to(shift, &b.shape(x))?;
    let shifted = b.binary(BinaryOp::Sub, x, shift_all)?;
    let powers = b.unary(UnaryOp::Exp, shifted)?;
    let sum = log_sum(b, powers, axes, true)?;
    let result = b.add(sum, shift)?;
    if keep_dims { Ok(result) } else { b.squeeze(result, axes) }
}
