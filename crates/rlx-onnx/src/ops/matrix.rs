//! Matrix products.

use rlx_ir::Value;
use rlx_ir::op::elementwise::BinaryOp;

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Gemm", &[1, 6, 7, 9, 11, 13], gemm), //
    onnx("MatMul", &[1, 9, 13], matmul),
];

fn matmul(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    for (i, value) in [x, y].into_iter().enumerate() {
        if cx.rank(value) == 0 {
            return Err(cx.bad_input(i, "number of axes", "at least 1", 0));
        }
    }
    Ok(cx.builder().matmul(x, y)?.into())
}

fn gemm(cx: &mut NodeContext<'_, '_>) -> Handled {
    Ok(gemm_value(cx)?.into())
}

/// α · A′ · B′ + β · C, with A′ and B′ transposed where asked.
pub(super) fn gemm_value(cx: &mut NodeContext<'_, '_>) -> Result<Value, NodeProblem> {
    let (mut x, mut y) = (cx.input(0)?, cx.input(1)?);
    let addend = cx.optional(2)?;
    let (alpha, beta) = (cx.float("alpha", 1.0)?, cx.float("beta", 1.0)?);
    let (transpose_x, transpose_y) = (cx.flag("transA", false)?, cx.flag("transB", false)?);
    for (i, value) in [x, y].into_iter().enumerate() {
        let rank = cx.rank(value);
        if rank != 2 {
            return Err(cx.bad_input(i, "number of axes", 2, rank));
        }
    }
    let b = cx.builder();
    if transpose_x {
        x = b.matrix_transpose(x)?;
    }
    if transpose_y {
        y = b.matrix_transpose(y)?;
    }
    let mut result = b.matmul(x, y)?;
    if alpha != 1.0 {
        result = b.mul_scalar(result, alpha)?;
    }
    if let Some(mut addend) = addend.filter(|_| beta != 0.0) {
        if beta != 1.0 {
            addend = b.mul_scalar(addend, beta)?;
        }
        let addend = b.broadcast_to(addend, &b.shape(result))?;
        result = b.binary(BinaryOp::Add, result, addend)?;
    }
    Ok(result)
}
