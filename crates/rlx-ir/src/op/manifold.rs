//! Layers on symmetric positive definite (SPD) matrices: the manifold networks of Huang & Van Gool, "A Riemannian network
//! for SPD matrix learning" (2017), and Brooks et al., "Riemannian batch normalization for SPD neural networks" (2019).
//! Matrices are the last two axes, f32 or f64; only lower triangles count. A matrix that is not positive definite gives
//! NaN where a logarithm or a root is taken.

use super::elementwise::{BinaryOp, UnaryOp};
use super::linalg::{Cholesky, Eigh, TriangularSolve};
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

type Built = Result<Value, TypeError>;

operation! {
    /// The bilinear map W·X·Wᵀ for W \[m, n\] (operand 1) and each X \[…, n, n\] (operand 0). C1: f32 or f64, the same for
    /// both. C2: X is square. C3: W has two axes, n columns.
    pub struct BiMap = "bi_map" {}
}

names! {
    /// Functions of the eigenvalues.
    pub enum SpectralMapOp {
        /// The matrix logarithm (LogEig).
        Log = "log_eig",
        /// The matrix exponential of a symmetric matrix (ExpEig).
        Exp = "exp_eig",
        /// The matrix square root.
        Sqrt = "sqrt_eig",
        /// The inverse of the matrix square root.
        InverseSqrt = "inverse_sqrt_eig",
    }
}

operation! {
    /// U·f(Λ)·Uᵀ for X = U·Λ·Uᵀ. C1: f32 or f64. C2: X is square.
    pub struct SpectralMap: SpectralMapOp {}
}

operation! {
    /// U·max(Λ, eps)·Uᵀ for X = U·Λ·Uᵀ: the rectifier of eigenvalues. C1: f32 or f64. C2: X is square.
    pub struct ReEig = "re_eig" {
        /// The least eigenvalue.
        eps: Real,
    }
}

operation! {
    /// √Σ ln² λᵢ, λ the eigenvalues of X⁻¹·Y: the affine-invariant distance of X (operand 0) and Y (operand 1), \[…\].
    /// An X that is not positive definite is an error at run time. C1: f32 or f64. C2: X is square. C3: Y has X's type.
    pub struct AffineInvariantDistance = "affine_invariant_distance" {}
}

operation! {
    /// X^½·(X^−½·Y·X^−½)ᵗ·X^½: the point at t on the geodesic from X (operand 0) to Y (operand 1). C1: f32 or f64.
    /// C2: X is square. C3: Y has X's type.
    pub struct SpdGeodesic = "spd_geodesic" {
        /// 0 at X, 1 at Y.
        t: Real,
    }
}

operation! {
    /// The Riemannian (Karcher) mean M of matrices X \[k, …, n, n\] (operand 0) with weights \[k\] that sum to 1 (operand 1,
    /// or 1/k): from the arithmetic mean on, M ← M^½·exp(Σ w·ln(M^−½·X·M^−½))·M^½. C1: f32 or f64. C2: X is square.
    /// C3: X has a first axis before its matrix axes. C4: weights have X's element type and k elements. C5: at most 64
    /// iterations.
    pub struct KarcherMean = "karcher_mean" {
        /// How many steps are taken.
        iterations: u32,
    }
}

operation! {
    /// Riemannian batch normalisation: G^½·(M^−½·X·M^−½)·G^½ for X \[b, n, n\], with M the Karcher mean of the batch in
    /// training, the running mean R otherwise. Operands: X, G \[n, n\], R \[n, n\]. Results: y, and in training the point at
    /// 1 − momentum on the geodesic from R to M as the next running mean. C1: f32 or f64, the same for all. C2: X has three
    /// axes and is square. C3: G and R are \[n, n\]. C4: at most 64 iterations.
    pub struct SpdBatchNorm = "spd_batch_norm" {
        /// Whether the batch's own mean is used.
        training: bool,
        /// The share of the running mean that stays.
        momentum: Real,
        /// The Karcher mean's steps.
        iterations: u32,
    }
}

/// Each step is some twenty nodes and an eigendecomposition; the mean converges in ten or so.
const MOST_ITERATIONS: u32 = 64;

/// C1 and C2: operand 0, its batch sizes and its size.
fn square<'a>(cx: &Infer<'a>) -> Result<(&'a TensorType, Shape, Dim), TypeError> {
    let x = cx.of("C1", 0, "f32 or f64", |d| matches!(d, DType::F32 | DType::F64))?;
    cx.rank_at_least("C2", 0, 2)?;
    let batch = x.rank() - 2;
    cx.equal("C2", Some(0), "the matrix is not square", &x.shape[batch], &x.shape[batch + 1])?;
    Ok((x, Shape::from(&x.shape[..batch]), x.shape[batch].clone()))
}

fn steps(cx: &Infer<'_>, label: &'static str, iterations: u32) -> Result<(), TypeError> {
    let expected = format!("at most {MOST_ITERATIONS}");
    cx.ensure(iterations <= MOST_ITERATIONS, label, None, "iterations", expected, iterations)
}

impl OpDef for BiMap {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (x, batch, n) = square(cx)?;
        cx.same_dtype("C1", 1, 0)?;
        let w = cx.rank("C3", 1, 2)?;
        cx.equal("C3", Some(1), "columns of the map", &n, &w.shape[1])?;
        let m = &w.shape[0];
        Ok(one(x.with_shape(batch.iter().chain([m, m]).cloned().collect::<Shape>())))
    }
}

impl OpDef for SpectralMap {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(one(square(cx)?.0.clone()))
    }
}

impl OpDef for ReEig {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(one(square(cx)?.0.clone()))
    }
}

impl OpDef for AffineInvariantDistance {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (x, batch, _) = square(cx)?;
        cx.same_type("C3", 1, 0)?;
        Ok(one(x.with_shape(batch)))
    }
}

impl OpDef for SpdGeodesic {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = square(cx)?.0;
        cx.same_type("C3", 1, 0)?;
        Ok(one(x.clone()))
    }
}

impl OpDef for KarcherMean {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(1, 2)?;
        let (x, ..) = square(cx)?;
        cx.rank_at_least("C3", 0, 3)?;
        if cx.count() == 2 {
            cx.same_dtype("C4", 1, 0)?;
            cx.same_dims("C4", 1, &x.dims()[..1])?;
        }
        steps(cx, "C5", self.iterations)?;
        Ok(one(x.with_shape(&x.dims()[1..])))
    }
}

impl OpDef for SpdBatchNorm {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let (x, ..) = square(cx)?;
        cx.rank("C2", 0, 3)?;
        for i in 1..3 {
            cx.same_dtype("C1", i, 0)?;
            cx.same_dims("C3", i, &x.dims()[1..])?;
        }
        steps(cx, "C4", self.iterations)?;
        let mut types = one(x.clone());
        if self.training {
            types.push(cx.operand(2)?.clone());
        }
        Ok(types)
    }
}

/// Eigenvalues \[…, n\] and eigenvectors of symmetric matrices.
struct Spectrum {
    values: Value,
    vectors: Value,
}

impl Spectrum {
    fn of(b: &mut Builder, x: Value) -> Result<Spectrum, TypeError> {
        let results = b.push(Eigh {}, &[x])?;
        Ok(Spectrum { values: results[0], vectors: results[1] })
    }

    /// U·diag(values)·Uᵀ.
    fn with_values(&self, b: &mut Builder, values: Value) -> Built {
        let last = b.rank(values).saturating_sub(1);
        let rows = b.unsqueeze(values, last)?;
        let rows = b.broadcast_to(rows, &b.shape(self.vectors))?;
        let scaled = b.mul(self.vectors, rows)?;
        let transposed = b.matrix_transpose(self.vectors)?;
        b.matmul(scaled, transposed)
    }

    /// U·f(Λ)·Uᵀ.
    fn map(&self, b: &mut Builder, f: UnaryOp) -> Built {
        let values = b.unary(f, self.values)?;
        self.with_values(b, values)
    }
}

/// A·X·A for symmetric A.
fn congruence(b: &mut Builder, a: Value, x: Value) -> Built {
    let product = b.matmul(a, x)?;
    b.matmul(product, a)
}

/// X^½·(X^−½·Y·X^−½)ᵗ·X^½.
fn geodesic(b: &mut Builder, x: Value, y: Value, t: f64) -> Built {
    let spectrum = Spectrum::of(b, x)?;
    let root = spectrum.map(b, UnaryOp::Sqrt)?;
    let inverse_root = spectrum.map(b, UnaryOp::Rsqrt)?;
    let centred = congruence(b, inverse_root, y)?;
    let centred = Spectrum::of(b, centred)?;
    let powers = b.binary_scalar(BinaryOp::Pow, centred.values, t)?;
    let moved = centred.with_values(b, powers)?;
    congruence(b, root, moved)
}

/// Σ w·X over the first axis; 1/k each without weights.
fn arithmetic_mean(b: &mut Builder, x: Value, weights: Option<Value>) -> Built {
    let Some(weights) = weights else { return b.mean(x, &[0], false) };
    let weights = b.broadcast_in(weights, &b.shape(x), &[0])?;
    let weighted = b.mul(x, weights)?;
    b.sum(weighted, &[0], false)
}

fn karcher_mean(b: &mut Builder, x: Value, weights: Option<Value>, iterations: u32) -> Built {
    let mut mean = arithmetic_mean(b, x, weights)?;
    for _ in 0..iterations {
        let spectrum = Spectrum::of(b, mean)?;
        let root = spectrum.map(b, UnaryOp::Sqrt)?;
        let inverse_root = spectrum.map(b, UnaryOp::Rsqrt)?;
        let centred = congruence(b, inverse_root, x)?;
        let tangents = Spectrum::of(b, centred)?.map(b, UnaryOp::Log)?;
        let step = arithmetic_mean(b, tangents, weights)?;
        let step = Spectrum::of(b, step)?.map(b, UnaryOp::Exp)?;
        mean = congruence(b, root, step)?;
    }
    Ok(mean)
}

impl CompositeDef for BiMap {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, w) = (operands[0], operands[1]);
        let left = b.matmul(w, x)?;
        let transposed = b.matrix_transpose(w)?;
        Ok(Values::from_slice(&[b.matmul(left, transposed)?]))
    }
}

impl CompositeDef for SpectralMap {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let f = match self.op {
            SpectralMapOp::Log => UnaryOp::Log,
            SpectralMapOp::Exp => UnaryOp::Exp,
            SpectralMapOp::Sqrt => UnaryOp::Sqrt,
            SpectralMapOp::InverseSqrt => UnaryOp::Rsqrt,
        };
        let spectrum = Spectrum::of(b, operands[0])?;
        Ok(Values::from_slice(&[spectrum.map(b, f)?]))
    }
}

impl CompositeDef for ReEig {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let spectrum = Spectrum::of(b, operands[0])?;
        let values = b.binary_scalar(BinaryOp::Max, spectrum.values, self.eps.get())?;
        Ok(Values::from_slice(&[spectrum.with_values(b, values)?]))
    }
}

impl CompositeDef for AffineInvariantDistance {
    /// With X = L·Lᵀ, L⁻¹·Y·L⁻ᵀ is symmetric and has the eigenvalues of X⁻¹·Y.
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let factor = b.push1(Cholesky {}, &[operands[0]])?;
        let solve = TriangularSolve { upper: false, transpose: false, unit_diagonal: false };
        let left = b.push1(solve.clone(), &[factor, operands[1]])?;
        let left = b.matrix_transpose(left)?;
        let both = b.push1(solve, &[factor, left])?;
        let spectrum = Spectrum::of(b, both)?;
        let log = b.unary(UnaryOp::Log, spectrum.values)?;
        let square = b.mul(log, log)?;
        let last = b.rank(square).saturating_sub(1);
        let sum = b.sum(square, &[last], false)?;
        Ok(Values::from_slice(&[b.unary(UnaryOp::Sqrt, sum)?]))
    }
}

impl CompositeDef for SpdGeodesic {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        Ok(Values::from_slice(&[geodesic(b, operands[0], operands[1], self.t.get())?]))
    }
}

impl CompositeDef for KarcherMean {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let mean = karcher_mean(b, operands[0], operands.get(1).copied(), self.iterations)?;
        Ok(Values::from_slice(&[mean]))
    }
}

impl CompositeDef for SpdBatchNorm {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let [x, bias, running] = [0, 1, 2].map(|i| operands[i]);
        let mean = if self.training { karcher_mean(b, x, None, self.iterations)? } else { running };
        let inverse_root = Spectrum::of(b, mean)?.map(b, UnaryOp::Rsqrt)?;
        let centred = congruence(b, inverse_root, x)?;
        let root = Spectrum::of(b, bias)?.map(b, UnaryOp::Sqrt)?;
        let mut results = Values::from_slice(&[congruence(b, root, centred)?]);
        if self.training {
            results.push(geodesic(b, running, mean, 1.0 - self.momentum.get())?);
        }
        Ok(results)
    }
}
