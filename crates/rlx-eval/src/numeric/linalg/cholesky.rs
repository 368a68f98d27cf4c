//! Cholesky's decomposition.

use super::{LinalgError, Matrix, ensure_square};

/// The lower triangular L with positive diagonal and A = L·Lᵀ (GVL, algorithm 4.2.1).
///
/// Only the lower triangle of `matrix` is read; the upper triangle of the result is zero. The upper factor of
/// A = Uᵀ·U is the transpose.
///
/// # Errors
/// [`LinalgError::Shape`] if the matrix is not square, [`LinalgError::NotPositiveDefinite`] with the first
/// pivot that is not a positive finite number.
pub fn cholesky(matrix: &Matrix) -> Result<Matrix, LinalgError> {
    ensure_square("matrix", matrix)?;
    let size = matrix.rows();
    let mut lower = Matrix::zeros(size, size);
    for column in 0..size {
        let products = |row: usize, lower: &Matrix| -> f64 {
            (0..column).map(|inner| lower[(row, inner)] * lower[(column, inner)]).sum()
        };
        let pivot = matrix[(column, column)] - products(column, &lower);
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(LinalgError::NotPositiveDefinite { pivot: column });
        }
        let root = libm::sqrt(pivot);
        lower[(column, column)] = root;
        for row in column + 1..size {
            lower[(row, column)] = (matrix[(row, column)] - products(row, &lower)) / root;
        }
    }
    Ok(lower)
}
