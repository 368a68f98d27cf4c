//! Activation functions of several tensors, or of parts of one: learned slopes, gated units, bounds.

use crate::builder::{Builder, Values};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::axes::broadcasts_to;
use crate::op::elementwise::{BinaryOp, CompareOp};
use crate::op::gated::Gated;
use crate::op::{Axis, CompositeDef, OpDef};
use crate::{names, operation};

operation! {
    /// y = x for x ≥ 0, slope · x below. Operands: x, slope. C1: x is floating point. C2: slope has x's element type.
    /// C3: slope broadcasts to x's sizes.
    pub struct PRelu = "prelu" {}
}

names! {
    /// The function of a gated unit's gate.
    pub enum GateFunction {
        /// 1 / (1 + e^(−x)): GLU (Dauphin et al. 2017).
        Sigmoid = "sigmoid",
        /// x · sigmoid(x): SwiGLU (Shazeer 2020).
        Silu = "silu",
        /// GELU: GEGLU.
        Gelu = "gelu",
        /// GELU by tanh.
        GeluTanh = "gelu_tanh",
        /// max(x, 0): ReGLU.
        Relu = "relu",
        /// x: the bilinear unit.
        Identity = "identity",
    }
}

operation! {
    /// y = a · f(g), where a and g are the halves of x along an axis. C1: x is floating point. C2: −rank ≤ axis < rank.
    /// C3: the axis has an even size.
    pub struct Glu = "glu" {
        /// The axis that is halved.
        axis: Axis,
        /// f.
        gate: GateFunction,
        /// The first half is the gate, not the second.
        gate_first: bool,
    }
}

operation! {
    /// y = min(max(x, low), high). Operands: x, then low if `low`, then high if `high`. Where low > high, y = high; NaN
    /// stays. C1: x is an integer or floating point. C2: bounds are scalars of x's type.
    pub struct Clip = "clip" {
        /// Whether there is a lower bound.
        low: bool,
        /// Whether there is an upper bound.
        high: bool,
    }
}

impl OpDef for PRelu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.float("C1", 0)?;
        cx.same_dtype("C2", 1, 0)?;
        broadcasts_to(cx, "C3", 1, x.dims())?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for PRelu {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let slope = b.broadcast_to(operands[1], &b.shape(x))?;
        // One product and a selection: rounded once in every type.
        let scaled = b.mul(x, slope)?;
        let positive = b.compare_scalar(CompareOp::Ge, x, 0.0)?;
        Ok(Values::from_slice(&[b.select(positive, x, scaled)?]))
    }
}

impl OpDef for Glu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        let half = x.shape[axis].floor_div(&2.into());
        cx.equal("C3", Some(0), "size of the halved axis", &(half.clone() * 2), &x.shape[axis])?;
        Ok(one(x.with_shape(x.shape.with_dim(axis, half))))
    }
}

impl CompositeDef for Glu {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let axis = self.axis.of_rank(b.rank(x)).unwrap_or(0);
        let half = b.dim(x, axis).floor_div(&2.into());
        let first = b.slice_axis(x, axis, &0.into(), &half)?;
        let second = b.slice_axis(x, axis, &half, &half)?;
        let (value, gate) = if self.gate_first { (second, first) } else { (first, second) };
        b.push(Gated { gate: self.gate, alpha: None }, &[gate, value])
    }
}

impl OpDef for Clip {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1 + usize::from(self.low) + usize::from(self.high))?;
        let x = cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?;
        for i in 1..cx.count() {
            cx.same_dtype("C2", i, 0)?;
            cx.rank("C2", i, 0)?;
        }
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Clip {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let mut y = operands[0];
        let dims = b.shape(y);
        let ops = [(self.low, BinaryOp::Max), (self.high, BinaryOp::Min)];
        for ((_, op), bound) in ops.into_iter().filter(|(present, _)| *present).zip(&operands[1..]) {
            let bound = b.broadcast_to(*bound, &dims)?;
            y = b.binary(op, y, bound)?;
        }
        Ok(Values::from_slice(&[y]))
    }
}
