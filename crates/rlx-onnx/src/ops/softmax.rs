//! Softmax, its logarithm, and hardmax.

use rlx_ir::Dim;
use rlx_ir::op::Axis;
use rlx_ir::op::softmax::{Softmax, SoftmaxOp};

use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Hardmax", &[1, 11, 13], |cx| softmax(cx, SoftmaxOp::Hardmax)),
    onnx("LogSoftmax", &[1, 11, 13], |cx| softmax(cx, SoftmaxOp::LogSoftmax)),
    onnx("Softmax", &[1, 11, 13], |cx| softmax(cx, SoftmaxOp::Softmax)),
];

/// Along one axis. Before opset 13 along all axes from the given one on, as if they were one.
fn softmax(cx: &mut NodeContext<'_, '_>, op: SoftmaxOp) -> Handled {
    let x = cx.input(0)?;
    let flattens = cx.since() < 13;
    let axis = cx.int("axis", if flattens { 1 } else { -1 })?;
    let dims = cx.shape(x);
    let axis = cx.axis(axis, dims.rank())?;
    let b = cx.builder();
    if !flattens || axis + 1 == dims.rank() {
        return Ok(b.push1(Softmax { op, axis: Axis(axis as i64) }, &[x])?.into());
    }
    let rows = [Dim::product(&dims[..axis]), Dim::product(&dims[axis..])];
    let rows = b.reshape(x, &rows)?;
    let y = b.push1(Softmax { op, axis: Axis(1) }, &[rows])?;
    Ok(b.reshape(y, &dims)?.into())
}
