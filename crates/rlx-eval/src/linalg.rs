//! Linear algebra, matrix by matrix, in f64 and rounded once.

use crate::error::Fault;
use crate::numeric::linalg::{self, Extent, Matrix, Triangle, TriangularForm};
use crate::oracle::Context;
use crate::tensor::Tensor;
use rlx_ir::op::linalg::{Qr, Svd, TriangularSolve};

/// The matrices of a batch.
fn matrices(x: &Tensor) -> Result<Vec<Matrix>, Fault> {
    let [batch @ .., m, n] = x.dims.as_slice() else { return Ok(Vec::new()) };
    let count: usize = batch.iter().product();
    (0..count).map(|i| Ok(Matrix::new(*m, *n, x.as_floats()[i * m * n..][..m * n].to_vec())?)).collect()
}

/// Result `i`, from the elements of all matrices.
fn result(cx: &Context<'_>, i: usize, elements: Vec<f64>) -> Result<Tensor, Fault> {
    let dtype = cx.dtype(i);
    let elements = elements.into_iter().map(|x| cx.round(dtype, x)).collect();
    Ok(Tensor::floats(dtype, cx.dims(i)?, elements))
}

pub(crate) fn cholesky(cx: &Context<'_>, x: &Tensor) -> Result<Vec<Tensor>, Fault> {
    let mut all = Vec::new();
    for matrix in matrices(x)? {
        all.extend(linalg::cholesky(&matrix)?.into_data());
    }
    Ok(vec![result(cx, 0, all)?])
}

pub(crate) fn triangular_solve(
    cx: &Context<'_>,
    op: &TriangularSolve,
    a: &Tensor,
    b: &Tensor,
) -> Result<Vec<Tensor>, Fault> {
    let form = TriangularForm {
        triangle: if op.upper { Triangle::Upper } else { Triangle::Lower },
        transposed: op.transpose,
        unit_diagonal: op.unit_diagonal,
    };
    let mut all = Vec::new();
    for (a, b) in matrices(a)?.iter().zip(matrices(b)?) {
        all.extend(linalg::triangular_solve(a, &b, form)?.into_data());
    }
    Ok(vec![result(cx, 0, all)?])
}

pub(crate) fn lu(cx: &Context<'_>, x: &Tensor) -> Result<Vec<Tensor>, Fault> {
    let (mut packed, mut rows) = (Vec::new(), Vec::new());
    for matrix in matrices(x)? {
        let lu = linalg::lu(&matrix);
        rows.extend(lu.permutation().into_iter().map(|r| r as i64));
        packed.extend(lu.packed.into_data());
    }
    Ok(vec![result(cx, 0, packed)?, Tensor::i64s(cx.dims(1)?, rows)])
}

pub(crate) fn qr(cx: &Context<'_>, op: &Qr, x: &Tensor) -> Result<Vec<Tensor>, Fault> {
    let extent = if op.full { Extent::Complete } else { Extent::Reduced };
    let (mut q, mut r) = (Vec::new(), Vec::new());
    for matrix in matrices(x)? {
        let factors = linalg::qr(&matrix, extent);
        q.extend(factors.q.into_data());
        r.extend(factors.r.into_data());
    }
    Ok(vec![result(cx, 0, q)?, result(cx, 1, r)?])
}

pub(crate) fn eigh(cx: &Context<'_>, x: &Tensor) -> Result<Vec<Tensor>, Fault> {
    let (mut values, mut vectors) = (Vec::new(), Vec::new());
    for matrix in matrices(x)? {
        let eigen = linalg::symmetric_eigen(&matrix)?;
        values.extend(eigen.values);
        vectors.extend(eigen.vectors.into_data());
    }
    Ok(vec![result(cx, 0, values)?, result(cx, 1, vectors)?])
}

pub(crate) fn svd(cx: &Context<'_>, op: &Svd, x: &Tensor) -> Result<Vec<Tensor>, Fault> {
    let extent = if op.full { Extent::Complete } else { Extent::Reduced };
    let (mut u, mut s, mut vt) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in matrices(x)? {
        let factors = linalg::svd(&matrix, extent)?;
        u.extend(factors.u.into_data());
        s.extend(factors.values);
        vt.extend(factors.vt.into_data());
    }
    Ok(vec![result(cx, 0, u)?, result(cx, 1, s)?, result(cx, 2, vt)?])
}
