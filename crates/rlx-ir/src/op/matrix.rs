//! Matrices built, cut and combined: identity, triangles, diagonals, traces, outer products. The last two axes are the
//! matrix unless said otherwise. The solvers are in [`solve`](super::solve).

use super::elementwise::{BinaryOp, CompareOp};
use super::index::{Gather, OutOfBounds};
use super::{Axis, CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

operation! {
    /// 1 where column − row = diagonal, else 0. C1: a number type or bool. C2: sizes are not negative.
    pub struct Eye = "eye" {
        /// The element type.
        dtype: DType,
        /// The number of rows.
        rows: Dim,
        /// The number of columns.
        columns: Dim,
        /// Which diagonal: 0 the main one, above it positive.
        diagonal: Dim,
    }
}

names! {
    /// Which triangle stays.
    pub enum TriangleOp {
        /// Where column − row ≤ diagonal.
        Lower = "tril",
        /// Where column − row ≥ diagonal.
        Upper = "triu",
    }
}

operation! {
    /// x inside the triangle, else 0. C1: a number type or bool. C2: x has at least two axes.
    pub struct Triangle: TriangleOp {
        /// The triangle's edge: 0 the main diagonal, above it positive.
        diagonal: Dim,
    }
}

operation! {
    /// The elements with index on `axis2` − index on `axis1` = offset, along a new last axis. C1: x has at least two axes.
    /// C2: axes are distinct and in −rank … rank − 1. C3: the diagonal exists: −rows ≤ offset ≤ columns.
    pub struct Diagonal = "diagonal" {
        /// Which diagonal: 0 the main one, above it positive.
        offset: i64,
        /// The axis of the rows.
        axis1: Axis,
        /// The axis of the columns.
        axis2: Axis,
    }
}

operation! {
    /// A square matrix with the elements of x's last axis on a diagonal, zeros elsewhere. C1: a number type or bool.
    /// C2: x has at least one axis.
    pub struct DiagonalMatrix = "diagonal_matrix" {
        /// Which diagonal: 0 the main one, above it positive.
        offset: i64,
    }
}

operation! {
    /// Σ of the main diagonal of the last two axes. C1: a number type. C2: x has at least two axes.
    pub struct Trace = "trace" {}
}

operation! {
    /// x · yᵀ of vectors \[…, m\] and \[…, n\]: \[…, m, n\]. C1: a number type. C2: y has x's element type. C3: both have at
    /// least one axis, and the same batch sizes.
    pub struct Outer = "outer" {}
}

operation! {
    /// The vector product x × y along an axis of size 3: z₀ = x₁·y₂ − x₂·y₁ and so on in turn.
    /// C1: an integer or floating-point type. C2: y has x's type. C3: −rank ≤ axis < rank. C4: the axis has size 3.
    pub struct Cross = "cross" {
        /// The axis of the vectors' components.
        axis: Axis,
    }
}

fn number_or_bool<'a>(cx: &Infer<'a>, label: &'static str) -> Result<&'a TensorType, TypeError> {
    cx.of(label, 0, "a number type or bool", is_number_or_bool)
}

fn is_number_or_bool(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_int() || dtype.is_complex() || dtype == DType::Bool
}

/// column − row − diagonal along the last two axes, compared with 0.
fn beside_diagonal(
    b: &mut Builder,
    dims: &[Dim],
    diagonal: &Dim,
    compare: CompareOp,
) -> Result<Value, TypeError> {
    let rank = dims.len();
    let rows = b.iota(DType::I64, dims, rank - 2)?;
    let columns = b.iota(DType::I64, dims, rank - 1)?;
    let diagonal = b.dim_value(diagonal)?;
    let diagonal = b.broadcast_to(diagonal, dims)?;
    let edge = b.add(rows, diagonal)?;
    b.compare(compare, columns, edge)
}

/// 0 of any number type, or false.
fn zeros(b: &mut Builder, t: &TensorType) -> Result<Value, TypeError> {
    if !t.dtype.is_complex() {
        return b.full(0.0, t);
    }
    let zero = b.scalar(0.0, DType::F32)?;
    let zero = b.cast(zero, t.dtype)?;
    b.broadcast_to(zero, t.dims())
}

impl OpDef for Eye {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(0)?;
        let accepts = is_number_or_bool(self.dtype);
        cx.ensure(accepts, "C1", None, "element type", "a number type or bool", self.dtype)?;
        for size in [&self.rows, &self.columns] {
            cx.at_most("C2", None, "size is negative", &Dim::ZERO, size)?;
        }
        Ok(one(TensorType::new(self.dtype, vec![self.rows.clone(), self.columns.clone()])))
    }
}

impl CompositeDef for Eye {
    fn decompose(&self, b: &mut Builder, _: &[Value]) -> Result<Values, TypeError> {
        let dims = [self.rows.clone(), self.columns.clone()];
        let on = beside_diagonal(b, &dims, &self.diagonal, CompareOp::Eq)?;
        Ok(Values::from_slice(&[b.cast(on, self.dtype)?]))
    }
}

impl OpDef for Triangle {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = number_or_bool(cx, "C1")?;
        cx.rank_at_least("C2", 0, 2)?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Triangle {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let t = b.type_of(x).clone();
        let compare = match self.op {
            TriangleOp::Lower => CompareOp::Le,
            TriangleOp::Upper => CompareOp::Ge,
        };
        let inside = beside_diagonal(b, t.dims(), &self.diagonal, compare)?;
        let zero = zeros(b, &t)?;
        Ok(Values::from_slice(&[b.select(inside, x, zero)?]))
    }
}

/// How far a diagonal starts below and right of the corner.
fn starts(offset: i64) -> (Dim, Dim) {
    (Dim::constant(offset.saturating_neg().max(0)), Dim::constant(offset.max(0)))
}

impl Diagonal {
    /// The two axes, counted from the front.
    fn axes(&self, rank: usize) -> Option<(usize, usize)> {
        let pair = (self.axis1.of_rank(rank)?, self.axis2.of_rank(rank)?);
        (pair.0 != pair.1).then_some(pair)
    }

    /// How many elements the diagonal has.
    fn length(&self, rows: &Dim, columns: &Dim) -> Dim {
        let (down, right) = starts(self.offset);
        (rows.clone() - down).min(&(columns.clone() - right))
    }
}

impl OpDef for Diagonal {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.rank_at_least("C1", 0, 2)?;
        let axes = (self.axis1.resolve(cx, "C2", x.rank())?, self.axis2.resolve(cx, "C2", x.rank())?);
        cx.ensure(axes.0 != axes.1, "C2", None, "axes", "distinct axes", axes.0)?;
        let length = self.length(&x.shape[axes.0], &x.shape[axes.1]);
        cx.at_most("C3", Some(0), "the diagonal lies outside", &Dim::ZERO, &length)?;
        let mut shape = x.shape.without(&[axes.0, axes.1]);
        shape.push(length);
        Ok(one(x.with_shape(shape)))
    }
}

/// The main diagonal, or that at `offset`, of the axes `rows` and `columns`, along a new last axis.
fn diagonal(b: &mut Builder, x: Value, op: &Diagonal, axes: (usize, usize)) -> Result<Value, TypeError> {
    let length = op.length(&b.dim(x, axes.0), &b.dim(x, axes.1));
    let index = b.iota(DType::I64, &[length, Dim::ONE], 0)?;
    let (down, right) = starts(op.offset);
    let mut tuple = Vec::with_capacity(2);
    for start in [down, right] {
        let start = b.dim_value(&start)?;
        let start = b.broadcast_to(start, &b.shape(index))?;
        tuple.push(b.add(index, start)?);
    }
    // Index tuples are in the order of the axes.
    if axes.0 > axes.1 {
        tuple.reverse();
    }
    let tuple = b.concat(&tuple, 1)?;
    let sorted = vec![axes.0.min(axes.1), axes.0.max(axes.1)];
    let gather = Gather { axes: sorted, batch: 0, oob: OutOfBounds::Error, wrap: false };
    let picked = b.push1(gather, &[x, tuple])?;
    let last = b.rank(picked) - 1;
    b.move_axis(picked, 0, last)
}

impl CompositeDef for Diagonal {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let axes = self.axes(b.rank(operands[0])).unwrap_or((0, 1));
        Ok(Values::from_slice(&[diagonal(b, operands[0], self, axes)?]))
    }
}

impl OpDef for DiagonalMatrix {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = number_or_bool(cx, "C1")?;
        let x = x.with_shape(cx.rank_at_least("C2", 0, 1)?.dims());
        let n = x.shape[x.rank() - 1].clone() + Dim::constant(self.offset.saturating_abs());
        let mut shape = x.shape.with_dim(x.rank() - 1, n.clone());
        shape.push(n);
        Ok(one(x.with_shape(shape)))
    }
}

impl CompositeDef for DiagonalMatrix {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let t = b.type_of(x).clone();
        let (down, right) = starts(self.offset);
        let last = t.rank() - 1;
        let n = t.shape[last].clone() + &down + &right;
        let mut dims = t.shape.with_dim(last, n.clone());
        dims.push(n);
        // Row i holds x[i − down] in column i + offset: each column's element repeated down its column.
        let zero = zeros(b, &TensorType::scalar(t.dtype))?;
        let pad = crate::op::movement::Pad {
            low: (0..=last).map(|i| if i == last { right.clone() } else { Dim::ZERO }).collect(),
            high: (0..=last).map(|i| if i == last { down.clone() } else { Dim::ZERO }).collect(),
        };
        let row = b.push1(pad, &[x, zero])?;
        let row = b.unsqueeze(row, last)?;
        let all = b.broadcast_to(row, &dims)?;
        let on = beside_diagonal(b, &dims, &Dim::constant(self.offset), CompareOp::Eq)?;
        let zero = zeros(b, &t.with_shape(dims))?;
        Ok(Values::from_slice(&[b.select(on, all, zero)?]))
    }
}

impl OpDef for Trace {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.number("C1", 0)?;
        cx.rank_at_least("C2", 0, 2)?;
        Ok(one(x.with_shape(&x.dims()[..x.rank() - 2])))
    }
}

impl CompositeDef for Trace {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let rank = b.rank(operands[0]);
        let main = Diagonal { offset: 0, axis1: Axis(-2), axis2: Axis(-1) };
        let elements = diagonal(b, operands[0], &main, (rank - 2, rank - 1))?;
        Ok(Values::from_slice(&[b.sum(elements, &[rank - 2], false)?]))
    }
}

impl OpDef for Outer {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.number("C1", 0)?;
        cx.same_dtype("C2", 1, 0)?;
        cx.rank_at_least("C3", 0, 1)?;
        let y = cx.rank("C3", 1, x.rank())?;
        let last = x.rank() - 1;
        let n = y.shape[last].clone();
        cx.same_dims("C3", 1, &x.shape.with_dim(last, n.clone()))?;
        let mut shape: Shape = x.shape.clone();
        shape.push(n);
        Ok(one(x.with_shape(shape)))
    }
}

impl CompositeDef for Outer {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, y) = (operands[0], operands[1]);
        let last = b.rank(x) - 1;
        let mut dims = b.shape(x);
        dims.push(b.dim(y, last));
        let x = b.unsqueeze(x, last + 1)?;
        let x = b.broadcast_to(x, &dims)?;
        let y = b.unsqueeze(y, last)?;
        let y = b.broadcast_to(y, &dims)?;
        Ok(Values::from_slice(&[b.binary(BinaryOp::Mul, x, y)?]))
    }
}

impl OpDef for Cross {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?;
        cx.same_type("C2", 1, 0)?;
        let axis = self.axis.resolve(cx, "C3", x.rank())?;
        cx.equal("C4", Some(0), "components of a vector", &3.into(), &x.shape[axis])?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Cross {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let axis = self.axis.of_rank(b.rank(operands[0])).unwrap_or(0);
        let component = |b: &mut Builder, operand: usize, i: i64| {
            b.slice_axis(operands[operand], axis, &i.into(), &Dim::ONE)
        };
        let mut parts = Vec::with_capacity(3);
        for (i, j) in [(1, 2), (2, 0), (0, 1)] {
            let (xi, yj) = (component(b, 0, i)?, component(b, 1, j)?);
            let (xj, yi) = (component(b, 0, j)?, component(b, 1, i)?);
            let (plus, minus) = (b.mul(xi, yj)?, b.mul(xj, yi)?);
            parts.push(b.sub(plus, minus)?);
        }
        let z = b.concat(&parts, axis)?;
        // The axis may be a symbol that is 3 when it runs; its parts then have constant sizes.
        let dims = b.shape(operands[0]);
        Ok(Values::from_slice(&[b.reshape(z, &dims)?]))
    }
}
