//! Gated units of two operands, and matrix products whose weights are made of parts: low-rank additions and codebooks.

use super::activation::{Activation, ActivationOp, GateFunction, Swish};
use super::contract::Dot;
use super::elementwise::UnaryOp;
use super::index::{Gather, OutOfBounds};
use super::norm::statistics_dtype;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// y = f(g) · x, where g and x are two operands, the gate first (SwiGLU, GEGLU, ReGLU; Shazeer 2020).
    /// C1: the gate is floating point. C2: both operands have one type. C3: `alpha` goes with silu only.
    pub struct Gated = "gated" {
        /// f.
        gate: GateFunction,
        /// The scale inside the sigmoid of silu; 1 without it.
        alpha: Option<Real>,
    }
}

operation! {
    /// y = x·W + scale · (x·A)·B, the low-rank addition rounded with the rest once (LoRA; Hu et al. 2021).
    /// Operands: x \[…, k\], W \[k, n\], A \[k, r\], B \[r, n\]. C1: x is floating point, and all have its type.
    /// C2: x has at least one axis, the others two. C3: sizes agree.
    pub struct LoraMatmul = "lora_matmul" {
        /// The factor of the addition (alpha / r).
        scale: Real,
    }
}

operation! {
    /// y = x · Wᵀ with a weight that is looked up inside the product: W\[o, j·d + e\] = C\[g(j), I\[o, j\], e\], learned
    /// centroids C, where the m columns of I are shared out evenly among the groups: g(j) = ⌊j · groups / m⌋.
    /// Operands: x \[…, m·d\], indices I \[n, m\], centroids C \[groups, count, d\] (one group of width 1: a table of
    /// numbers; more: product quantisation, Jégou et al. 2011).
    /// C1: x is floating point, and centroids have its type; indices are u8. C2: x has at least one axis, indices 2,
    /// centroids 3. C3: sizes agree. C4: groups divide m. An index of `count` or more is an error at run time.
    pub struct CodebookMatmul = "codebook_matmul" {}
}

/// f(x) of a gate, in x's type.
pub(crate) fn apply_gate(
    b: &mut Builder,
    gate: GateFunction,
    alpha: Option<Real>,
    x: Value,
) -> Result<Value, TypeError> {
    let activation = |b: &mut Builder, op| b.push1(Activation { op }, &[x]);
    match gate {
        GateFunction::Sigmoid => b.unary(UnaryOp::Sigmoid, x),
        GateFunction::Silu => b.push1(Swish { alpha: alpha.unwrap_or(Real::new(1.0)) }, &[x]),
        GateFunction::Gelu => activation(b, ActivationOp::Gelu),
        GateFunction::GeluTanh => activation(b, ActivationOp::GeluTanh),
        GateFunction::Relu => activation(b, ActivationOp::Relu),
        GateFunction::Identity => Ok(x),
    }
}

impl OpDef for Gated {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let gate = cx.float("C1", 0)?;
        cx.same_type("C2", 1, 0)?;
        let fits = self.alpha.is_none() || self.gate == GateFunction::Silu;
        cx.ensure(fits, "C3", None, "alpha", "silu", self.gate.name())?;
        Ok(one(gate.clone()))
    }
}

impl CompositeDef for Gated {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let gate = b.cast(operands[0], statistics_dtype(dtype))?;
        let x = b.cast(operands[1], statistics_dtype(dtype))?;
        let gate = apply_gate(b, self.gate, self.alpha, gate)?;
        let y = b.mul(gate, x)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

/// The last axis of x contracted with an axis of a matrix, in the wide type.
fn contract_last(b: &mut Builder, x: Value, matrix: Value, axis: usize) -> Result<Value, TypeError> {
    let dot = Dot { out: Some(statistics_dtype(b.dtype(x))), ..Dot::along(0, b.rank(x) - 1, axis) };
    b.push1(dot, &[x, matrix])
}

/// x's type with another last size.
fn with_last(x: &TensorType, last: Dim) -> TensorType {
    x.with_shape(x.shape.with_dim(x.rank() - 1, last))
}

impl OpDef for LoraMatmul {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(4)?;
        let x = cx.float("C1", 0)?;
        cx.rank_at_least("C2", 0, 1)?;
        for i in 1..4 {
            cx.same_dtype("C1", i, 0)?;
            cx.rank("C2", i, 2)?;
        }
        let (k, n) = (x.shape[x.rank() - 1].clone(), cx.operand(1)?.shape[1].clone());
        let r = cx.operand(2)?.shape[1].clone();
        cx.same_dims("C3", 1, &[k.clone(), n.clone()])?;
        cx.same_dims("C3", 2, &[k, r.clone()])?;
        cx.same_dims("C3", 3, &[r, n.clone()])?;
        Ok(one(with_last(x, n)))
    }
}

impl CompositeDef for LoraMatmul {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let [x, weight, down, up] = [0, 1, 2, 3].map(|i| operands[i]);
        let dtype = b.dtype(x);
        let base = contract_last(b, x, weight, 0)?;
        let low = contract_last(b, x, down, 0)?;
        let up = b.cast(up, b.dtype(low))?;
        let addition = contract_last(b, low, up, 0)?;
        let addition = b.mul_scalar(addition, self.scale.get())?;
        let y = b.add(base, addition)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for CodebookMatmul {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let x = cx.float("C1", 0)?;
        cx.rank_at_least("C2", 0, 1)?;
        cx.dtype("C1", 1, DType::U8)?;
        cx.same_dtype("C1", 2, 0)?;
        let indices = cx.rank("C2", 1, 2)?;
        let centroids = cx.rank("C2", 2, 3)?;
        let (columns, groups) = (&indices.shape[1], &centroids.shape[0]);
        let k = columns * &centroids.shape[2];
        cx.equal("C3", Some(0), "last size", &k, &x.shape[x.rank() - 1])?;
        cx.at_most("C4", Some(2), "no groups", &Dim::ONE, groups)?;
        let rest = columns.modulo(groups);
        cx.equal("C4", Some(2), "groups do not divide the columns", &Dim::ZERO, &rest)?;
        Ok(one(with_last(x, indices.shape[0].clone())))
    }
}

impl CompositeDef for CodebookMatmul {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let [x, indices, centroids] = [0, 1, 2].map(|i| operands[i]);
        let index_dims = b.shape(indices);
        let (outputs, columns) = (index_dims[0].clone(), index_dims[1].clone());
        let groups = b.dim(centroids, 0);
        let per_group = columns.floor_div(&groups);
        let indices = b.cast(indices, DType::I32)?;
        let indices = b.reshape(indices, &[outputs.clone(), groups, per_group, Dim::ONE])?;
        let indices = b.transpose(indices, &[1, 0, 2, 3])?;
        let gather = Gather { axes: vec![1], batch: 1, oob: OutOfBounds::Error, wrap: false };
        // [groups, outputs, columns of the group, width]
        let blocks = b.push1(gather, &[centroids, indices])?;
        let blocks = b.transpose(blocks, &[1, 0, 2, 3])?;
        let dims = Shape::from(vec![outputs, b.dim(x, b.rank(x) - 1)]);
        let weight = b.reshape(blocks, &dims)?;
        let y = contract_last(b, x, weight, 1)?;
        Ok(Values::from_slice(&[b.cast(y, b.dtype(x))?]))
    }
}
