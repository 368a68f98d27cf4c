//! Dense linear algebra on small row-major matrices of `f64`.
//!
//! Plain, backward-stable textbook algorithms (Golub and Van Loan, "Matrix Computations", 4th edition, cited as
//! GVL) whose results are unique: where mathematics leaves a sign or an order open, each function says which it
//! takes. Matrices with no rows or columns are fine everywhere.

mod cholesky;
mod eigen;
mod lu;
mod matrix;
mod qr;
mod svd;
mod triangular;

pub use cholesky::cholesky;
pub use eigen::{SymmetricEigen, symmetric_eigen};
pub use lu::{Lu, determinant, lu};
pub use matrix::Matrix;
pub use qr::{Extent, Qr, qr};
pub use svd::{Svd, svd};
pub use triangular::{Triangle, TriangularForm, triangular_solve};

use thiserror::Error;

/// Why a decomposition or a solution does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinalgError {
    /// The numbers of rows and columns do not fit.
    #[error(
        "{operand}: expected {expected_rows} rows and {expected_columns} columns, found {rows} and {columns}"
    )]
    Shape {
        /// Which matrix.
        operand: &'static str,
        /// The rows it should have.
        expected_rows: usize,
        /// The columns it should have.
        expected_columns: usize,
        /// The rows it has.
        rows: usize,
        /// The columns it has.
        columns: usize,
    },
    /// The leading minor that ends at `pivot` (counted from 0) is not positive; also for NaN.
    #[error("the matrix is not positive definite: pivot {pivot} is not positive")]
    NotPositiveDefinite {
        /// The row and column of the first pivot that is not positive.
        pivot: usize,
    },
    /// A pivot is exactly zero, so that there is no solution or more than one.
    #[error("the matrix is singular: pivot {pivot} is zero")]
    Singular {
        /// The row and column of the pivot.
        pivot: usize,
    },
    /// An entry is NaN or infinite, where an iteration would not end.
    #[error("the matrix is not finite: entry ({row}, {column}) is NaN or infinite")]
    NotFinite {
        /// The row of the first such entry.
        row: usize,
        /// The column of the first such entry.
        column: usize,
    },
    /// The iteration did not end; no finite matrix is known to bring this about with Jacobi's methods.
    #[error("no convergence after {sweeps} sweeps")]
    NoConvergence {
        /// Sweeps over all pairs of columns that were done.
        sweeps: usize,
    },
}

/// Sweeps after which Jacobi's methods give up. They converge quadratically and need about ten.
const MAX_SWEEPS: usize = 60;

/// Fails unless `matrix` is square.
fn ensure_square(operand: &'static str, matrix: &Matrix) -> Result<(), LinalgError> {
    ensure_shape(operand, matrix, matrix.rows(), matrix.rows())
}

/// Fails unless `matrix` has these numbers of rows and columns.
fn ensure_shape(
    operand: &'static str,
    matrix: &Matrix,
    expected_rows: usize,
    expected_columns: usize,
) -> Result<(), LinalgError> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if (rows, columns) == (expected_rows, expected_columns) {
        Ok(())
    } else {
        Err(LinalgError::Shape { operand, expected_rows, expected_columns, rows, columns })
    }
}

/// Fails at the first entry, row after row, that is NaN or infinite.
fn ensure_finite(matrix: &Matrix) -> Result<(), LinalgError> {
    match matrix.data().iter().position(|entry| !entry.is_finite()) {
        Some(at) => Err(LinalgError::NotFinite { row: at / matrix.columns(), column: at % matrix.columns() }),
        None => Ok(()),
    }
}

/// The rotation (cosine, sine) by at most 45° that makes the symmetric matrix [[app, apq], [apq, aqq]]
/// diagonal (GVL, section 8.5.2), with its tangent. `apq` must not be zero.
fn jacobi_rotation(app: f64, apq: f64, aqq: f64) -> (f64, f64, f64) {
    let cotangent_of_double = (aqq - app) / (2.0 * apq);
    let tangent = 1_f64.copysign(cotangent_of_double)
        / (cotangent_of_double.abs() + libm::hypot(1.0, cotangent_of_double));
    let cosine = 1.0 / libm::hypot(1.0, tangent);
    (cosine, tangent * cosine, tangent)
}

/// Turns the columns `p` and `q` of `matrix`: p becomes c·p − s·q, and q becomes s·p + c·q.
fn rotate_columns(matrix: &mut Matrix, (p, q): (usize, usize), (cosine, sine): (f64, f64)) {
    for row in 0..matrix.rows() {
        let (at_p, at_q) = (matrix[(row, p)], matrix[(row, q)]);
        matrix[(row, p)] = cosine * at_p - sine * at_q;
        matrix[(row, q)] = sine * at_p + cosine * at_q;
    }
}

/// Whether the entry of greatest magnitude in a column (the first of several) is negative.
fn leading_entry_is_negative(matrix: &Matrix, column: usize) -> bool {
    let mut leading = 0.0_f64;
    for row in 0..matrix.rows() {
        if matrix[(row, column)].abs() > leading.abs() {
            leading = matrix[(row, column)];
        }
    }
    leading < 0.0
}

/// Changes the sign of a column.
fn negate_column(matrix: &mut Matrix, column: usize) {
    for row in 0..matrix.rows() {
        matrix[(row, column)] = -matrix[(row, column)];
    }
}

/// The power of two next to the greatest magnitude, or 1 where that is zero: dividing by it is
/// exact and keeps squares from overflowing.
fn power_of_two_scale(matrix: &Matrix) -> f64 {
    let greatest = matrix.data().iter().fold(0.0_f64, |greatest, entry| greatest.max(entry.abs()));
    if greatest == 0.0 {
        return 1.0;
    }
    let (_, exponent) = libm::frexp(greatest);
    // Kept among the normal numbers, so that the reciprocal is exact as well.
    libm::ldexp(1.0, exponent.clamp(f64::MIN_EXP, f64::MAX_EXP - 1))
}
