//! Solving with a triangular matrix.

use super::{LinalgError, Matrix, ensure_shape, ensure_square};

/// Which triangle of a matrix is meant; the other is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// How a triangular matrix is stored and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriangularForm {
    /// The triangle that is read.
    pub triangle: Triangle,
    /// Whether the transpose of that triangle is meant.
    pub transposed: bool,
    /// Whether the diagonal counts as ones, whatever stands there.
    pub unit_diagonal: bool,
}

/// X with T·X = B, where T is the triangle of `matrix` that `form` names (GVL, algorithms 3.1.1 and 3.1.2).
///
/// X·T = B is solved as Tᵀ·Xᵀ = Bᵀ.
///
/// # Errors
/// [`LinalgError::Shape`] if `matrix` is not square or `rhs` has another number of rows,
/// [`LinalgError::Singular`] for a zero on the diagonal.
pub fn triangular_solve(matrix: &Matrix, rhs: &Matrix, form: TriangularForm) -> Result<Matrix, LinalgError> {
    ensure_square("triangular matrix", matrix)?;
    ensure_shape("right-hand side", rhs, matrix.rows(), rhs.columns())?;
    let size = matrix.rows();
    if !form.unit_diagonal
        && let Some(pivot) = (0..size).find(|&pivot| matrix[(pivot, pivot)] == 0.0)
    {
        return Err(LinalgError::Singular { pivot });
    }
    let entry = |row: usize, column: usize| {
        if form.transposed { matrix[(column, row)] } else { matrix[(row, column)] }
    };
    let lower = (form.triangle == Triangle::Lower) != form.transposed;
    let mut solution = rhs.clone();
    for step in 0..size {
        let (row, solved) = if lower { (step, 0..step) } else { (size - 1 - step, size - step..size) };
        for column in 0..rhs.columns() {
            let known: f64 = solved.clone().map(|inner| entry(row, inner) * solution[(inner, column)]).sum();
            let rest = rhs[(row, column)] - known;
            solution[(row, column)] = if form.unit_diagonal { rest } else { rest / entry(row, row) };
        }
    }
    Ok(solution)
}
