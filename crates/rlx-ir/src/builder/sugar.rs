//! Short forms for what decompositions and importers write often. Nothing here is more than a few `push`es.

use super::Builder;
use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::literal::{Element, Literal};
use crate::op::Real;
use crate::op::contract::Dot;
use crate::op::elementwise::{Binary, BinaryOp, Cast, Compare, CompareOp, Select, Unary, UnaryOp};
use crate::op::index::{Gather, OutOfBounds};
use crate::op::movement::{Broadcast, Concat, Pad, Reshape, Reverse, Slice, Transpose};
use crate::op::reduce::{Reduce, ReduceOp};
use crate::op::source::{BindDim, DimValue, Iota};
use crate::types::{Shape, TensorType};
use half::{bf16, f16};

type Built = Result<Value, TypeError>;

impl Builder {
    /// The shape of a value.
    pub fn shape(&self, x: Value) -> Shape {
        self.type_of(x).shape.clone()
    }

    /// The element type of a value.
    pub fn dtype(&self, x: Value) -> DType {
        self.type_of(x).dtype
    }

    /// The number of axes of a value.
    pub fn rank(&self, x: Value) -> usize {
        self.type_of(x).rank()
    }

    /// One size of a value; `axis` must be below its rank.
    pub fn dim(&self, x: Value, axis: usize) -> Dim {
        self.type_of(x).shape[axis].clone()
    }

    /// A scalar constant of any number type or bool, rounded or saturated from f64.
    pub fn scalar(&mut self, value: f64, dtype: DType) -> Built {
        let literal = match dtype {
            DType::F64 => Literal::scalar(value),
            DType::F32 => Literal::scalar(value as f32),
            DType::F16 => Literal::scalar(f16::from_f64(value)),
            DType::BF16 => Literal::scalar(bf16::from_f64(value)),
            DType::I64 => Literal::scalar(value as i64),
            DType::I32 => Literal::scalar(value as i32),
            DType::I16 => Literal::scalar(value as i16),
            DType::I8 => Literal::scalar(value as i8),
            DType::U64 => Literal::scalar(value as u64),
            DType::U32 => Literal::scalar(value as u32),
            DType::U16 => Literal::scalar(value as u16),
            DType::U8 => Literal::scalar(value as u8),
            DType::Bool => Literal::scalar(value != 0.0),
            // The narrow floats and complex types have no Rust form: the cast rounds.
            _ => {
                let wide = self.constant(Literal::scalar(value as f32));
                return self.push1(Cast { to: dtype, saturate: true, round: None }, &[wide]);
            }
        };
        Ok(self.constant(literal))
    }

    /// A constant vector.
    pub fn vector<T: Element>(&mut self, elements: &[T]) -> Value {
        self.constant(Literal::vector(elements))
    }

    /// A constant of this value in the sizes and element type of `x`.
    pub fn like(&mut self, value: f64, x: Value) -> Built {
        let t = self.type_of(x).clone();
        self.full(value, &t)
    }

    /// A constant of this value with this type.
    pub fn full(&mut self, value: f64, t: &TensorType) -> Built {
        let scalar = self.scalar(value, t.dtype)?;
        self.broadcast_to(scalar, t.dims())
    }

    /// 0, 1, 2 … along an axis.
    pub fn iota(&mut self, dtype: DType, dims: &[Dim], axis: usize) -> Built {
        let (start, step) = (Real::new(0.0), Real::new(1.0));
        self.push1(Iota { ty: TensorType::new(dtype, dims), axis, start, step }, &[])
    }

    /// A size as an i64 scalar.
    pub fn dim_value(&mut self, dim: &Dim) -> Built {
        self.push1(DimValue { dim: dim.clone() }, &[])
    }

    /// A size as a scalar of any number type.
    pub fn dim_as(&mut self, dim: &Dim, dtype: DType) -> Built {
        let value = self.dim_value(dim)?;
        self.cast(value, dtype)
    }

    /// A size in the sizes and element type of `x`.
    pub fn dim_like(&mut self, dim: &Dim, x: Value) -> Built {
        let t = self.type_of(x).clone();
        let value = self.dim_as(dim, t.dtype)?;
        self.broadcast_to(value, t.dims())
    }

    /// Sizes as an i64 vector.
    pub fn dims_value(&mut self, dims: &[Dim]) -> Built {
        if dims.is_empty() {
            return Ok(self.vector::<i64>(&[]));
        }
        let mut parts = Vec::with_capacity(dims.len());
        for dim in dims {
            let value = self.dim_value(dim)?;
            parts.push(self.reshape(value, &[Dim::ONE])?);
        }
        self.concat(&parts, 0)
    }

    /// An i64 scalar as a size: the expression that it is known to be, else a fresh symbol bound when it runs.
    pub fn bind_dim(&mut self, value: Value, hint: &str, min: i64) -> Result<Dim, TypeError> {
        if let Some([known]) = self.known(value) {
            return Ok(known.clone());
        }
        let symbol: Symbol = self.fresh_symbol(hint);
        self.push1(BindDim { symbol: symbol.clone(), min }, &[value])?;
        Ok(symbol.into())
    }

    /// f(x).
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Built {
        self.push1(Unary { op }, &[x])
    }

    /// f(x, y) on operands of one type.
    pub fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Built {
        self.push1(Binary { op }, &[x, y])
    }

    /// x ∘ y on operands of one type.
    pub fn compare(&mut self, op: CompareOp, x: Value, y: Value) -> Built {
        self.push1(Compare { op }, &[x, y])
    }

    /// c ? x : y.
    pub fn select(&mut self, c: Value, x: Value, y: Value) -> Built {
        self.push1(Select {}, &[c, x, y])
    }

    /// x with another element type.
    pub fn cast(&mut self, x: Value, to: DType) -> Built {
        self.push1(Cast { to, saturate: true, round: None }, &[x])
    }

    /// x + y.
    pub fn add(&mut self, x: Value, y: Value) -> Built {
        self.binary(BinaryOp::Add, x, y)
    }

    /// x − y.
    pub fn sub(&mut self, x: Value, y: Value) -> Built {
        self.binary(BinaryOp::Sub, x, y)
    }

    /// x · y.
    pub fn mul(&mut self, x: Value, y: Value) -> Built {
        self.binary(BinaryOp::Mul, x, y)
    }

    /// x / y.
    pub fn div(&mut self, x: Value, y: Value) -> Built {
        self.binary(BinaryOp::Div, x, y)
    }

    /// The greater of x and y.
    pub fn max(&mut self, x: Value, y: Value) -> Built {
        self.binary(BinaryOp::Max, x, y)
    }

    /// The lesser of x and y.
    pub fn min(&mut self, x: Value, y: Value) -> Built {
        self.binary(BinaryOp::Min, x, y)
    }

    /// f(x, c) with a number c.
    pub fn binary_scalar(&mut self, op: BinaryOp, x: Value, c: f64) -> Built {
        let c = self.like(c, x)?;
        self.binary(op, x, c)
    }

    /// x + c.
    pub fn add_scalar(&mut self, x: Value, c: f64) -> Built {
        self.binary_scalar(BinaryOp::Add, x, c)
    }

    /// x · c.
    pub fn mul_scalar(&mut self, x: Value, c: f64) -> Built {
        self.binary_scalar(BinaryOp::Mul, x, c)
    }

    /// x ∘ c with a number c.
    pub fn compare_scalar(&mut self, op: CompareOp, x: Value, c: f64) -> Built {
        let c = self.like(c, x)?;
        self.compare(op, x, c)
    }

    /// Other sizes, the same elements.
    pub fn reshape(&mut self, x: Value, dims: &[Dim]) -> Built {
        self.push1(Reshape { dims: dims.to_vec() }, &[x])
    }

    /// Axes in another order.
    pub fn transpose(&mut self, x: Value, perm: &[usize]) -> Built {
        self.push1(Transpose { perm: perm.to_vec() }, &[x])
    }

    /// The last two axes exchanged; the rank must be at least 2.
    pub fn matrix_transpose(&mut self, x: Value) -> Built {
        let rank = self.rank(x);
        let mut perm: Vec<usize> = (0..rank).collect();
        if rank >= 2 {
            perm.swap(rank - 2, rank - 1);
        }
        self.transpose(x, &perm)
    }

    /// Axis `from` moved to position `to`.
    pub fn move_axis(&mut self, x: Value, from: usize, to: usize) -> Built {
        let mut perm: Vec<usize> = (0..self.rank(x)).filter(|i| *i != from).collect();
        perm.insert(to.min(perm.len()), from);
        self.transpose(x, &perm)
    }

    /// Repeated to these sizes, aligned at the last axis.
    pub fn broadcast_to(&mut self, x: Value, dims: &[Dim]) -> Built {
        self.push1(Broadcast { dims: dims.to_vec() }, &[x])
    }

    /// A tensor whose axes are axes `axes` of a tensor of sizes `dims`, repeated along the others.
    pub fn broadcast_in(&mut self, x: Value, dims: &[Dim], axes: &[usize]) -> Built {
        let own = self.shape(x);
        let mut with_ones = vec![Dim::ONE; dims.len()];
        for (axis, dim) in axes.iter().zip(own.iter()) {
            if let Some(slot) = with_ones.get_mut(*axis) {
                *slot = dim.clone();
            }
        }
        let x = self.reshape(x, &with_ones)?;
        self.broadcast_to(x, dims)
    }

    /// Both repeated to their common sizes, as numpy does. Sizes that cannot meet are an error of the broadcast.
    pub fn broadcast_together(&mut self, x: Value, y: Value) -> Result<(Value, Value), TypeError> {
        let dims = broadcast_dims(&self.shape(x), &self.shape(y));
        Ok((self.broadcast_to(x, &dims)?, self.broadcast_to(y, &dims)?))
    }

    /// f(x, y) after broadcasting both.
    pub fn broadcasting(&mut self, op: BinaryOp, x: Value, y: Value) -> Built {
        let (x, y) = self.broadcast_together(x, y)?;
        self.binary(op, x, y)
    }

    /// Without the axes of size 1 in `axes`.
    pub fn squeeze(&mut self, x: Value, axes: &[usize]) -> Built {
        let dims = self.shape(x).without(axes);
        self.reshape(x, &dims)
    }

    /// With a new axis of size 1 at position `axis`.
    pub fn unsqueeze(&mut self, x: Value, axis: usize) -> Built {
        let mut dims = self.shape(x).to_vec();
        dims.insert(axis.min(dims.len()), Dim::ONE);
        self.reshape(x, &dims)
    }

    /// Elements start … start + size of one axis.
    pub fn slice_axis(&mut self, x: Value, axis: usize, start: &Dim, size: &Dim) -> Built {
        self.slice_strided(x, axis, start, size, 1)
    }

    /// `size` elements of one axis from `start` by `step`.
    pub fn slice_strided(&mut self, x: Value, axis: usize, start: &Dim, size: &Dim, step: i64) -> Built {
        let shape = self.shape(x);
        let mut slice = Slice {
            starts: vec![Dim::ZERO; shape.rank()],
            sizes: shape.to_vec(),
            steps: vec![1; shape.rank()],
        };
        if axis < shape.rank() {
            (slice.starts[axis], slice.sizes[axis], slice.steps[axis]) = (start.clone(), size.clone(), step);
        }
        self.push1(slice, &[x])
    }

    /// One element of an axis, which goes.
    pub fn index_axis(&mut self, x: Value, axis: usize, index: &Dim) -> Built {
        let one = self.slice_axis(x, axis, index, &Dim::ONE)?;
        self.squeeze(one, &[axis])
    }

    /// An axis cut into parts of these sizes.
    pub fn split(&mut self, x: Value, axis: usize, sizes: &[Dim]) -> Result<Vec<Value>, TypeError> {
        let mut start = Dim::ZERO;
        sizes
            .iter()
            .map(|size| {
                let part = self.slice_axis(x, axis, &start, size)?;
                start = &start + size;
                Ok(part)
            })
            .collect()
    }

    /// One after the other along an axis.
    pub fn concat(&mut self, parts: &[Value], axis: usize) -> Built {
        self.push1(Concat { axis }, parts)
    }

    /// Elements of `value` (a number) around each axis.
    pub fn pad(&mut self, x: Value, low: &[Dim], high: &[Dim], value: f64) -> Built {
        let value = self.scalar(value, self.dtype(x))?;
        self.push1(Pad { low: low.to_vec(), high: high.to_vec() }, &[x, value])
    }

    /// In reverse order along axes.
    pub fn reverse(&mut self, x: Value, axes: &[usize]) -> Built {
        self.push1(Reverse { axes: axes.to_vec() }, &[x])
    }

    /// Combined along axes.
    pub fn reduce(&mut self, op: ReduceOp, x: Value, axes: &[usize], keep_dims: bool) -> Built {
        self.push1(Reduce { op, axes: axes.to_vec(), keep_dims, accum: None }, &[x])
    }

    /// The sum along axes.
    pub fn sum(&mut self, x: Value, axes: &[usize], keep_dims: bool) -> Built {
        self.reduce(ReduceOp::Sum, x, axes, keep_dims)
    }

    /// The mean along axes of floats: NaN where there is nothing.
    pub fn mean(&mut self, x: Value, axes: &[usize], keep_dims: bool) -> Built {
        let shape = self.shape(x);
        let count = Dim::product(axes.iter().filter_map(|a| shape.get(*a)));
        let sum = self.sum(x, axes, keep_dims)?;
        let count = self.dim_as(&count, self.dtype(x))?;
        let count = self.broadcast_to(count, &self.shape(sum))?;
        self.div(sum, count)
    }

    /// A matrix product of the last two axes; leading axes broadcast as in numpy, vectors as numpy's matmul.
    pub fn matmul(&mut self, x: Value, y: Value) -> Built {
        let (x_vector, y_vector) = (self.rank(x) == 1, self.rank(y) == 1);
        let mut x = if x_vector { self.unsqueeze(x, 0)? } else { x };
        let mut y = if y_vector { self.unsqueeze(y, 1)? } else { y };
        let (xs, ys) = (self.shape(x), self.shape(y));
        let batch = broadcast_dims(&xs[..xs.rank().saturating_sub(2)], &ys[..ys.rank().saturating_sub(2)]);
        for (value, shape) in [(&mut x, &xs), (&mut y, &ys)] {
            let matrix = &shape[shape.rank().saturating_sub(2)..];
            let dims: Vec<Dim> = batch.iter().chain(matrix).cloned().collect();
            *value = self.broadcast_to(*value, &dims)?;
        }
        let rank = self.rank(x);
        let mut product = self.push1(Dot::matmul(rank), &[x, y])?;
        if x_vector {
            product = self.squeeze(product, &[rank - 2])?;
        }
        if y_vector {
            product = self.squeeze(product, &[self.rank(product) - 1])?;
        }
        Ok(product)
    }

    /// x with its axis `axis` replaced by the axes of `indices`: numpy's `take`. Indices outside are an error.
    pub fn take(&mut self, x: Value, indices: Value, axis: usize) -> Built {
        let indices_rank = self.rank(indices);
        let tuples = self.unsqueeze(indices, indices_rank)?;
        let gather = Gather { axes: vec![axis], batch: 0, oob: OutOfBounds::Error, wrap: true };
        let picked = self.push1(gather, &[x, tuples])?;
        // The index axes come first; they belong where the axis was.
        let rank = self.rank(picked);
        let perm: Vec<usize> = (indices_rank..indices_rank + axis)
            .chain(0..indices_rank)
            .chain(indices_rank + axis..rank)
            .collect();
        self.transpose(picked, &perm)
    }
}

/// The sizes that two lists of sizes broadcast to, aligned at the last. Where they cannot meet, the left one's stands
/// (the broadcast that follows names the error).
pub fn broadcast_dims(x: &[Dim], y: &[Dim]) -> Vec<Dim> {
    let rank = x.len().max(y.len());
    let at = |dims: &[Dim], i: usize| (i + dims.len()).checked_sub(rank).map(|j| dims[j].clone());
    (0..rank)
        .map(|i| match (at(x, i), at(y, i)) {
            (Some(a), Some(b)) => {
                let both = a.bcast(&b);
                if both.is_overflow() { a } else { both }
            }
            (Some(a), None) | (None, Some(a)) => a,
            (None, None) => Dim::ONE,
        })
        .collect()
}
