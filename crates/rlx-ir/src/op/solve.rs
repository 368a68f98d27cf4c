//! What follows from factorisations: determinants, inverses, solutions, powers and exponentials of matrices. The last two
//! axes are the matrix, the axes before are batch. f16 and bf16 are computed in f32 and rounded once.

use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::index::{GatherAlong, OutOfBounds};
use super::linalg::{Lu, Svd, TriangularSolve};
use super::matrix::{Diagonal, Eye};
use super::norm::statistics_dtype;
use super::reduce::ReduceOp;
use super::{Axis, CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

type Built = Result<Value, TypeError>;

operation! {
    /// The determinant \[…\]. C1: floating point. C2: square.
    pub struct Det = "det" {}
}

operation! {
    /// The sign and the logarithm of the magnitude of the determinant, both \[…\]; 0 and −∞ for a singular matrix.
    /// C1: floating point. C2: square.
    pub struct SlogDet = "slog_det" {}
}

operation! {
    /// A⁻¹; infinities or NaN for a singular matrix. C1: floating point. C2: square.
    pub struct Inverse = "inverse" {}
}

operation! {
    /// X with A·X = B for A (operand 0) and B \[…, n, k\] (operand 1), by LU with partial pivoting. C1: floating point, the
    /// same for both. C2: A is square. C3: batch and row sizes agree.
    pub struct Solve = "solve" {}
}

operation! {
    /// The X of least |X| among those of least |A·X − B|, for A \[…, m, n\] (operand 0) and B \[…, m, k\] (operand 1), by the
    /// singular values. C1: floating point, the same for both. C2: A has at least two axes. C3: batch and row sizes agree.
    pub struct LeastSquares = "lstsq" {
        /// Singular values up to this times the greatest count as 0; none is eps · max(m, n).
        rcond: Option<Real>,
    }
}

operation! {
    /// The Moore–Penrose inverse \[…, n, m\] of A \[…, m, n\]. C1: floating point. C2: A has at least two axes.
    pub struct PseudoInverse = "pinv" {
        /// Singular values up to this times the greatest count as 0; none is eps · max(m, n).
        rcond: Option<Real>,
    }
}

operation! {
    /// Aᵖ by repeated squaring; of the inverse if p < 0, the identity if p = 0. C1: floating point. C2: square.
    pub struct MatrixPower = "matrix_power" {
        /// p.
        exponent: i64,
    }
}

operation! {
    /// e^A = Σ Aᵏ/k! by scaling, Padé approximant and squaring (Higham 2005); for norms up to 5·2¹⁶. C1: floating point.
    /// C2: square.
    pub struct MatrixExp = "matrix_exp" {}
}

/// C1 and C2 of operations on square matrices: A, its batch sizes, its size.
fn square<'a>(cx: &Infer<'a>) -> Result<(&'a TensorType, Shape, Dim), TypeError> {
    let a = cx.float("C1", 0)?;
    cx.rank_at_least("C2", 0, 2)?;
    let batch = a.rank() - 2;
    cx.equal("C2", Some(0), "the matrix is not square", &a.shape[batch], &a.shape[batch + 1])?;
    Ok((a, Shape::from(&a.shape[..batch]), a.shape[batch].clone()))
}

/// \[batch…, m, n\].
fn with_matrix(batch: &[Dim], m: &Dim, n: &Dim) -> Shape {
    batch.iter().chain([m, n]).cloned().collect()
}

impl OpDef for Det {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (a, batch, _) = square(cx)?;
        Ok(one(a.with_shape(batch)))
    }
}

impl OpDef for SlogDet {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (a, batch, _) = square(cx)?;
        Ok(Types::from_iter([a.with_shape(batch.clone()), a.with_shape(batch)]))
    }
}

impl OpDef for Inverse {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(one(square(cx)?.0.clone()))
    }
}

impl OpDef for MatrixPower {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(one(square(cx)?.0.clone()))
    }
}

impl OpDef for MatrixExp {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(one(square(cx)?.0.clone()))
    }
}

/// C1 and C3 for operand 1: \[batch…, rows, k\]; its last size.
fn right_side(cx: &Infer<'_>, batch: &[Dim], rows: &Dim) -> Result<Dim, TypeError> {
    cx.same_dtype("C1", 1, 0)?;
    let right = cx.rank("C3", 1, batch.len() + 2)?;
    let k = right.shape[batch.len() + 1].clone();
    cx.same_dims("C3", 1, &with_matrix(batch, rows, &k))?;
    Ok(k)
}

impl OpDef for Solve {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (_, batch, n) = square(cx)?;
        right_side(cx, &batch, &n)?;
        Ok(one(cx.operand(1)?.clone()))
    }
}

impl OpDef for LeastSquares {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let a = cx.float("C1", 0)?;
        cx.rank_at_least("C2", 0, 2)?;
        let (batch, matrix) = a.dims().split_at(a.rank() - 2);
        let k = right_side(cx, batch, &matrix[0])?;
        Ok(one(a.with_shape(with_matrix(batch, &matrix[1], &k))))
    }
}

impl OpDef for PseudoInverse {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let a = cx.float("C1", 0)?;
        cx.rank_at_least("C2", 0, 2)?;
        let (batch, matrix) = a.dims().split_at(a.rank() - 2);
        Ok(one(a.with_shape(with_matrix(batch, &matrix[1], &matrix[0]))))
    }
}

/// `f` on the operands in f32 or f64, its results rounded to operand 0's type.
fn in_wide(
    b: &mut Builder,
    operands: &[Value],
    f: impl FnOnce(&mut Builder, &[Value]) -> Result<Values, TypeError>,
) -> Result<Values, TypeError> {
    let dtype = b.dtype(operands[0]);
    let wide = operands.iter().map(|v| b.cast(*v, statistics_dtype(dtype))).collect::<Result<Vec<_>, _>>()?;
    let results = f(b, &wide)?;
    results.into_iter().map(|v| b.cast(v, dtype)).collect()
}

/// The packed LU factors and what the determinant is made of.
struct Factors {
    packed: Value,
    rows: Value,
}

impl Factors {
    fn of(b: &mut Builder, a: Value) -> Result<Factors, TypeError> {
        let results = b.push(Lu {}, &[a])?;
        Ok(Factors { packed: results[0], rows: results[1] })
    }

    /// The diagonal of U, \[…, n\].
    fn pivots(&self, b: &mut Builder) -> Built {
        b.push1(Diagonal { offset: 0, axis1: Axis(-2), axis2: Axis(-1) }, &[self.packed])
    }

    /// 1 or −1: whether the row exchanges are even, by counting the pairs that are out of order.
    fn parity(&self, b: &mut Builder, dtype: DType) -> Built {
        let dims = b.shape(self.rows);
        let last = dims.rank() - 1;
        let mut pairs = dims.clone();
        pairs.push(dims[last].clone());
        let first = b.unsqueeze(self.rows, last + 1)?;
        let first = b.broadcast_to(first, &pairs)?;
        let second = b.unsqueeze(self.rows, last)?;
        let second = b.broadcast_to(second, &pairs)?;
        let swapped = b.compare(CompareOp::Gt, first, second)?;
        let i = b.iota(DType::I64, &pairs, last)?;
        let j = b.iota(DType::I64, &pairs, last + 1)?;
        let ordered = b.compare(CompareOp::Lt, i, j)?;
        let swapped = b.binary(BinaryOp::And, swapped, ordered)?;
        let swapped = b.cast(swapped, DType::I64)?;
        let count = b.sum(swapped, &[last, last + 1], false)?;
        let odd = b.binary_scalar(BinaryOp::And, count, 1.0)?;
        let odd = b.cast(odd, dtype)?;
        let doubled = b.mul_scalar(odd, -2.0)?;
        b.add_scalar(doubled, 1.0)
    }

    /// X with A·X = `right`.
    fn solve(&self, b: &mut Builder, right: Value) -> Built {
        let axis = b.rank(right) - 2;
        let rows = b.unsqueeze(self.rows, axis + 1)?;
        let rows = b.broadcast_to(rows, &b.shape(right))?;
        let gather = GatherAlong { axis, oob: OutOfBounds::Error, wrap: false };
        let permuted = b.push1(gather, &[right, rows])?;
        let lower = TriangularSolve { upper: false, transpose: false, unit_diagonal: true };
        let y = b.push1(lower, &[self.packed, permuted])?;
        b.push1(TriangularSolve { upper: true, transpose: false, unit_diagonal: false }, &[self.packed, y])
    }
}

/// The identity in the type and sizes of the square matrices `like`.
fn identity(b: &mut Builder, like: Value) -> Built {
    let t = b.type_of(like).clone();
    let n = t.shape[t.rank() - 1].clone();
    let eye = Eye { dtype: t.dtype, rows: n.clone(), columns: n, diagonal: Dim::ZERO };
    let eye = b.push1(eye, &[])?;
    b.broadcast_to(eye, t.dims())
}

impl CompositeDef for Det {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| {
            let factors = Factors::of(b, operands[0])?;
            let pivots = factors.pivots(b)?;
            let last = b.rank(pivots) - 1;
            let product = b.reduce(ReduceOp::Prod, pivots, &[last], false)?;
            let parity = factors.parity(b, b.dtype(product))?;
            Ok(Values::from_slice(&[b.mul(product, parity)?]))
        })
    }
}

impl CompositeDef for SlogDet {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| {
            let factors = Factors::of(b, operands[0])?;
            let pivots = factors.pivots(b)?;
            let last = b.rank(pivots) - 1;
            let signs = b.unary(UnaryOp::Sign, pivots)?;
            let sign = b.reduce(ReduceOp::Prod, signs, &[last], false)?;
            let parity = factors.parity(b, b.dtype(sign))?;
            let magnitudes = b.unary(UnaryOp::Abs, pivots)?;
            let logs = b.unary(UnaryOp::Log, magnitudes)?;
            Ok(Values::from_slice(&[b.mul(sign, parity)?, b.sum(logs, &[last], false)?]))
        })
    }
}

fn inverse(b: &mut Builder, a: Value) -> Built {
    let right = identity(b, a)?;
    Factors::of(b, a)?.solve(b, right)
}

impl CompositeDef for Inverse {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| Ok(Values::from_slice(&[inverse(b, operands[0])?])))
    }
}

impl CompositeDef for Solve {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| {
            let x = Factors::of(b, operands[0])?.solve(b, operands[1])?;
            Ok(Values::from_slice(&[x]))
        })
    }
}

/// V·Σ⁺·(Uᵀ·B): small singular values count as 0. `None` for B = 1.
fn pseudo_solve(b: &mut Builder, a: Value, right: Option<Value>, rcond: Option<Real>) -> Built {
    let (dtype, dims) = (b.dtype(a), b.shape(a));
    let rank = dims.rank();
    let parts = b.push(Svd { full: false }, &[a])?;
    let (u, s, vt) = (parts[0], parts[1], parts[2]);
    let greatest = b.reduce(ReduceOp::Max, s, &[rank - 2], true)?;
    let factor = match rcond {
        Some(rcond) => b.scalar(rcond.get(), dtype)?,
        None => {
            let eps = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
            let size = b.dim_as(&dims[rank - 2].max(&dims[rank - 1]), dtype)?;
            b.mul_scalar(size, eps)?
        }
    };
    let factor = b.broadcast_to(factor, &b.shape(greatest))?;
    let limit = b.mul(greatest, factor)?;
    let limit = b.broadcast_to(limit, &b.shape(s))?;
    let counts = b.compare(CompareOp::Gt, s, limit)?;
    let one = b.like(1.0, s)?;
    let zero = b.like(0.0, s)?;
    let reciprocal = b.div(one, s)?;
    let reciprocal = b.select(counts, reciprocal, zero)?;
    let mut right = {
        let ut = b.matrix_transpose(u)?;
        match right {
            Some(right) => b.matmul(ut, right)?,
            None => ut,
        }
    };
    let reciprocal = b.unsqueeze(reciprocal, rank - 1)?;
    let reciprocal = b.broadcast_to(reciprocal, &b.shape(right))?;
    right = b.mul(right, reciprocal)?;
    let v = b.matrix_transpose(vt)?;
    b.matmul(v, right)
}

impl CompositeDef for LeastSquares {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| {
            let x = pseudo_solve(b, operands[0], Some(operands[1]), self.rcond)?;
            Ok(Values::from_slice(&[x]))
        })
    }
}

impl CompositeDef for PseudoInverse {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| {
            Ok(Values::from_slice(&[pseudo_solve(b, operands[0], None, self.rcond)?]))
        })
    }
}

impl CompositeDef for MatrixPower {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        in_wide(b, operands, |b, operands| {
            let mut square = if self.exponent < 0 { inverse(b, operands[0])? } else { operands[0] };
            let mut rest = self.exponent.unsigned_abs();
            let mut power = None;
            while rest > 0 {
                if rest % 2 == 1 {
                    power = Some(match power {
                        Some(power) => b.matmul(power, square)?,
                        None => square,
                    });
                }
                rest /= 2;
                if rest > 0 {
                    square = b.matmul(square, square)?;
                }
            }
            let power = match power {
                Some(power) => power,
                None => identity(b, operands[0])?,
            };
            Ok(Values::from_slice(&[power]))
        })
    }
}

impl CompositeDef for MatrixExp {
    /// e^A = (e^(A/2ˢ))^(2ˢ), with s by the 1-norm of each matrix and e^(A/2ˢ) ≈ p(A/2ˢ) / p(−A/2ˢ).
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        /// Coefficients of the [13/13] Padé approximant: (26 − k)! · 13! / (26! · k! · (13 − k)!), times a common factor.
        const PADE: [f64; 14] = [
            64_764_752_532_480_000.0,
            32_382_376_266_240_000.0,
            7_771_770_303_897_600.0,
            1_187_353_796_428_800.0,
            129_060_195_264_000.0,
            10_559_470_521_600.0,
            670_442_572_800.0,
            33_522_128_640.0,
            1_323_241_920.0,
            40_840_800.0,
            960_960.0,
            16_380.0,
            182.0,
            1.0,
        ];
        /// The greatest norm for which the approximant is exact in f64 (Higham 2005, table 2.3).
        const REACH: f64 = 5.371920351148152;
        /// Squarings that are there; matrices of small norm leave them out.
        const SQUARINGS: u32 = 16;
        in_wide(b, operands, |b, operands| {
            let a = operands[0];
            let dims = b.shape(a);
            let rank = dims.rank();
            let magnitudes = b.unary(UnaryOp::Abs, a)?;
            let columns = b.sum(magnitudes, &[rank - 2], true)?;
            let norm = b.reduce(ReduceOp::Max, columns, &[rank - 1], true)?;
            // 2^i for the number i of doublings of the reach that stay below the norm.
            let mut doublings = Vec::new();
            let mut scale = b.like(1.0, norm)?;
            let half = b.like(0.5, norm)?;
            let one = b.like(1.0, norm)?;
            for i in 0..SQUARINGS {
                let above = b.compare_scalar(CompareOp::Gt, norm, REACH * 2f64.powi(i as i32))?;
                let factor = b.select(above, half, one)?;
                scale = b.mul(scale, factor)?;
                doublings.push(above);
            }
            let scale = b.broadcast_to(scale, &dims)?;
            let a = b.mul(a, scale)?;
            let a2 = b.matmul(a, a)?;
            let mut power = identity(b, a)?;
            let mut even = power;
            let mut odd = b.mul_scalar(power, PADE[1] / PADE[0])?;
            for pair in PADE[2..].chunks_exact(2) {
                power = b.matmul(power, a2)?;
                let term = b.mul_scalar(power, pair[0] / PADE[0])?;
                even = b.add(even, term)?;
                let term = b.mul_scalar(power, pair[1] / PADE[0])?;
                odd = b.add(odd, term)?;
            }
            let odd = b.matmul(a, odd)?;
            let above = b.add(even, odd)?;
            let below = b.sub(even, odd)?;
            let mut result = Factors::of(b, below)?.solve(b, above)?;
            for above in doublings {
                let squared = b.matmul(result, result)?;
                let above = b.broadcast_to(above, &dims)?;
                result = b.select(above, squared, result)?;
            }
            Ok(Values::from_slice(&[result]))
        })
    }
}
