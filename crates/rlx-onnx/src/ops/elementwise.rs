//! Arithmetic on elements: operands are broadcast together as numpy does.

use rlx_ir::op::elementwise::BinaryOp;

use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Add", &[7, 13, 14], |cx| binary(cx, BinaryOp::Add)),
    onnx("Div", &[7, 13, 14], |cx| binary(cx, BinaryOp::Div)),
    onnx("Mul", &[7, 13, 14], |cx| binary(cx, BinaryOp::Mul)),
    onnx("Sub", &[7, 13, 14], |cx| binary(cx, BinaryOp::Sub)),
];

fn binary(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    Ok(cx.builder().broadcasting(op, x, y)?.into())
}
