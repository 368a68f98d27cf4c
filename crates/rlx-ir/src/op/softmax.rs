//! Softmax and its relatives along one axis, computed in f32 for narrower floats; the greatest element is subtracted
//! first. A row of all −∞ gives NaN.

use super::elementwise::{CompareOp, UnaryOp};
use super::norm::statistics_dtype;
use super::reduce::{ArgReduce, ArgReduceOp, ReduceOp};
use super::{Axis, CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};

names! {
    /// Functions that compare the elements of an axis.
    pub enum SoftmaxOp {
        /// e^xᵢ / Σ e^xⱼ.
        Softmax = "softmax",
        /// xᵢ − ln Σ e^xⱼ.
        LogSoftmax = "log_softmax",
        /// e^(−xᵢ) / Σ e^(−xⱼ).
        Softmin = "softmin",
        /// 1 at the first greatest element, else 0.
        Hardmax = "hardmax",
    }
}

operation! {
    /// y of x's type. C1: x is floating point. C2: −rank ≤ axis < rank. C3: hardmax needs an axis that is not empty.
    pub struct Softmax: SoftmaxOp {
        /// The axis.
        axis: Axis,
    }
}

impl OpDef for Softmax {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        if self.op == SoftmaxOp::Hardmax {
            cx.at_most("C3", Some(0), "the axis is empty", &1.into(), &x.shape[axis])?;
        }
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Softmax {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let dtype = b.dtype(x);
        let axis = self.axis.of_rank(b.rank(x)).unwrap_or(0);
        let wide = b.cast(x, statistics_dtype(dtype))?;
        let y = match self.op {
            SoftmaxOp::Softmax => softmax(b, wide, axis)?,
            SoftmaxOp::LogSoftmax => log_softmax(b, wide, axis)?,
            SoftmaxOp::Softmin => {
                let negated = b.unary(UnaryOp::Neg, wide)?;
                softmax(b, negated, axis)?
            }
            SoftmaxOp::Hardmax => {
                let op = ArgReduceOp::ArgMax;
                let greatest = b.push1(ArgReduce { op, axis, keep_dims: true, last: false }, &[x])?;
                let dims = b.shape(x);
                let greatest = b.broadcast_to(greatest, &dims)?;
                let index = b.iota(DType::I64, &dims, axis)?;
                let hit = b.compare(CompareOp::Eq, index, greatest)?;
                b.cast(hit, dtype)?
            }
        };
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

/// x less its greatest element along the axis.
fn shifted(b: &mut Builder, x: Value, axis: usize) -> Result<Value, TypeError> {
    let greatest = b.reduce(ReduceOp::Max, x, &[axis], true)?;
    let greatest = b.broadcast_to(greatest, &b.shape(x))?;
    b.sub(x, greatest)
}

/// Softmax in the operand's type.
pub(crate) fn softmax(b: &mut Builder, x: Value, axis: usize) -> Result<Value, TypeError> {
    let shifted = shifted(b, x, axis)?;
    let e = b.unary(UnaryOp::Exp, shifted)?;
    let sum = b.sum(e, &[axis], true)?;
    let sum = b.broadcast_to(sum, &b.shape(x))?;
    b.div(e, sum)
}

/// The logarithm of softmax in the operand's type.
pub(crate) fn log_softmax(b: &mut Builder, x: Value, axis: usize) -> Result<Value, TypeError> {
    let shifted = shifted(b, x, axis)?;
    let e = b.unary(UnaryOp::Exp, shifted)?;
    let sum = b.sum(e, &[axis], true)?;
    let log = b.unary(UnaryOp::Log, sum)?;
    let log = b.broadcast_to(log, &b.shape(x))?;
    b.sub(shifted, log)
}
