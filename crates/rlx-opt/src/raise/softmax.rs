//! Softmax and log-softmax from their formulas.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of};
use rlx_ir::Value;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::reduce::ReduceOp;
use rlx_ir::op::softmax::{Softmax, SoftmaxOp};

/// x less its greatest element: x and the axis.
fn shifted(c: &Chain<'_>, v: Value, name: &'static str) -> Found<(Value, usize)> {
    let parts = c.attempt(|| {
        let (x, greatest) = c.binary(v, BinaryOp::Sub)?;
        let (of, axes) = c.reduced(c.carried(greatest)?, ReduceOp::Max)?;
        require(of == x)?;
        Ok((x, axes))
    });
    match parts {
        Ok((x, [axis])) => Ok((x, *axis)),
        Ok(_) => Err(Miss::Near(name, "it runs over several axes")),
        Err(_) => Err(Miss::Near(name, "the greatest element is not subtracted first: it may overflow")),
    }
}

/// `e / Σ e` with `e = exp(x − max x)`.
pub(super) fn softmax(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (e, below) = c.binary(root, BinaryOp::Div)?;
    let argument = c.unary(e, UnaryOp::Exp)?;
    let (of, axes) = c.reduced(c.carried(below)?, ReduceOp::Sum)?;
    require(of == e)?;
    let (x, axis) = shifted(c, argument, "softmax")?;
    require_of(axes == [axis], "softmax", "the axes of sum and maximum differ")?;
    let op = Softmax { op: SoftmaxOp::Softmax, axis: (axis as i64).into() };
    Ok(Raised::new("softmax", move |b| b.push1(op, &[x])))
}

/// `s − ln Σ exp s` with `s = x − max x`.
pub(super) fn log_softmax(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    if let Ok(p) = c.attempt(|| c.unary(root, UnaryOp::Log))
        && matches!(c.composite(p), Ok(rlx_ir::Composite::Softmax(s)) if s.op == SoftmaxOp::Softmax)
    {
        return Err(Miss::Near("log_softmax", "the logarithm of a rounded softmax is −∞ where that is 0"));
    }
    let (argument, log) = c.binary(root, BinaryOp::Sub)?;
    let sum = c.unary(c.carried(log)?, UnaryOp::Log)?;
    let (e, axes) = c.reduced(sum, ReduceOp::Sum)?;
    let of = c.unary(e, UnaryOp::Exp)?;
    require(of == argument)?;
    let (x, axis) = shifted(c, argument, "log_softmax")?;
    require_of(axes == [axis], "log_softmax", "the axes of sum and maximum differ")?;
    let op = Softmax { op: SoftmaxOp::LogSoftmax, axis: (axis as i64).into() };
    Ok(Raised::new("log_softmax", move |b| b.push1(op, &[x])))
}
