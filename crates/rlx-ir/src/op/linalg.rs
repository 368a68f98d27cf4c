//! Linear algebra on the last two axes; the axes before are batch.

use super::OpDef;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// L lower triangular with L·Lᵀ = A for symmetric positive definite A (only its lower triangle is read).
    /// A matrix that is not positive definite is an error at run time. C1: f32 or f64. C2: square.
    pub struct Cholesky = "cholesky" {}
}

operation! {
    /// X with A·X = B for triangular A (operand 0), B operand 1. C1: f32 or f64. C2: A square. C3: batch and row
    /// sizes agree.
    pub struct TriangularSolve = "triangular_solve" {
        /// Reads the upper triangle of A, not the lower.
        upper: bool,
        /// Solves Aᵀ·X = B.
        transpose: bool,
        /// Takes the diagonal of A as ones.
        unit_diagonal: bool,
    }
}

operation! {
    /// Row exchanges p (i64) and the packed factors with A\[p\] = L·U by partial pivoting: results are the packed
    /// \[…, m, n\] (L below the diagonal, its ones not stored, U from it on) and p \[…, m\]. C1: f32 or f64. C2: rank ≥ 2.
    pub struct Lu = "lu" {}
}

operation! {
    /// Q orthonormal and R upper triangular with Q·R = A, signs as Householder reflections give them (LAPACK).
    /// Results \[…, m, k\] and \[…, k, n\] with k = min(m, n), or m if `full`. C1: f32 or f64. C2: rank ≥ 2.
    pub struct Qr = "qr" {
        /// A square Q.
        full: bool,
    }
}

operation! {
    /// Eigenvalues (ascending) \[…, n\] and eigenvectors (columns) \[…, n, n\] of a symmetric matrix, of which the
    /// lower triangle is read; each vector's component of largest magnitude is positive. C1: f32 or f64. C2: square.
    pub struct Eigh = "eigh" {}
}

operation! {
    /// A = U·diag(s)·Vᵀ with s descending: results U \[…, m, k\], s \[…, min(m, n)\], Vᵀ \[…, k, n\] with k = min(m, n), or
    /// square U and Vᵀ if `full`. C1: f32 or f64. C2: rank ≥ 2.
    pub struct Svd = "svd" {
        /// Square U and Vᵀ.
        full: bool,
    }
}

fn matrix<'a>(cx: &Infer<'a>, i: usize) -> Result<(&'a TensorType, Shape, Dim, Dim), TypeError> {
    let a = cx.of("C1", i, "f32 or f64", |d| matches!(d, DType::F32 | DType::F64))?;
    cx.rank_at_least("C2", i, 2)?;
    let batch = a.rank() - 2;
    Ok((a, Shape::from(&a.shape[..batch]), a.shape[batch].clone(), a.shape[batch + 1].clone()))
}

fn square<'a>(cx: &Infer<'a>) -> Result<(&'a TensorType, Shape, Dim), TypeError> {
    let (a, batch, m, n) = matrix(cx, 0)?;
    cx.equal("C2", Some(0), "the matrix is not square", &m, &n)?;
    Ok((a, batch, m))
}

fn append(batch: &Shape, dims: &[&Dim]) -> Shape {
    batch.iter().chain(dims.iter().copied()).cloned().collect()
}

impl OpDef for Cholesky {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(one(square(cx)?.0.clone()))
    }
}

impl OpDef for TriangularSolve {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (_, batch, n) = square(cx)?;
        let (b, _, _, k) = matrix(cx, 1)?;
        cx.same_dtype("C1", 1, 0)?;
        cx.same_dims("C3", 1, &append(&batch, &[&n, &k]))?;
        Ok(one(b.clone()))
    }
}

impl OpDef for Lu {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (a, batch, m, _) = matrix(cx, 0)?;
        Ok(Types::from_iter([a.clone(), TensorType::new(DType::I64, append(&batch, &[&m]))]))
    }
}

impl OpDef for Qr {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (a, batch, m, n) = matrix(cx, 0)?;
        let k = if self.full { m.clone() } else { m.min(&n) };
        Ok(Types::from_iter([
            a.with_shape(append(&batch, &[&m, &k])),
            a.with_shape(append(&batch, &[&k, &n])),
        ]))
    }
}

impl OpDef for Eigh {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (a, batch, n) = square(cx)?;
        Ok(Types::from_iter([a.with_shape(append(&batch, &[&n])), a.clone()]))
    }
}

impl OpDef for Svd {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (a, batch, m, n) = matrix(cx, 0)?;
        let least = m.min(&n);
        let (u, v) = if self.full { (m.clone(), n.clone()) } else { (least.clone(), least.clone()) };
        Ok(Types::from_iter([
            a.with_shape(append(&batch, &[&m, &u])),
            a.with_shape(append(&batch, &[&least])),
            a.with_shape(append(&batch, &[&v, &n])),
        ]))
    }
}
