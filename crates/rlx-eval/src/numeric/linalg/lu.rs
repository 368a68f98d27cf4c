//! LU decomposition with partial pivoting, and what follows from it.

use super::{LinalgError, Matrix, Triangle, TriangularForm, ensure_shape, ensure_square, triangular_solve};

/// P·A = L·U of a matrix of m rows and n columns, with k = min(m, n).
#[derive(Debug, Clone, PartialEq)]
pub struct Lu {
    /// m × n: U on and above the diagonal, L without its diagonal of ones below (as LAPACK's `getrf`).
    pub packed: Matrix,
    /// For each step i < k the row that was exchanged with row i, counted from 0.
    pub pivots: Vec<usize>,
}

/// Gaussian elimination with partial pivoting (GVL, algorithm 3.4.1): the pivot is the entry of greatest
/// magnitude, the first of several.
///
/// Singular matrices have a decomposition too, with zeros on the diagonal of U.
pub fn lu(matrix: &Matrix) -> Lu {
    let mut packed = matrix.clone();
    let steps = matrix.rows().min(matrix.columns());
    let mut pivots = Vec::with_capacity(steps);
    for step in 0..steps {
        let mut pivot = step;
        for row in step + 1..matrix.rows() {
            if packed[(row, step)].abs() > packed[(pivot, step)].abs() {
                pivot = row;
            }
        }
        pivots.push(pivot);
        packed.swap_rows(step, pivot);
        let divisor = packed[(step, step)];
        if divisor == 0.0 {
            // The column below is zero as well: there is nothing to eliminate.
            continue;
        }
        for row in step + 1..matrix.rows() {
            let factor = packed[(row, step)] / divisor;
            packed[(row, step)] = factor;
            for column in step + 1..matrix.columns() {
                packed[(row, column)] -= factor * packed[(step, column)];
            }
        }
    }
    Lu { packed, pivots }
}

impl Lu {
    /// For each row of P·A the row of A it is: row i of L·U is row `permutation()[i]` of A.
    pub fn permutation(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.packed.rows()).collect();
        for (step, &pivot) in self.pivots.iter().enumerate() {
            rows.swap(step, pivot);
        }
        rows
    }

    /// L: m × k, ones on the diagonal and zeros above.
    pub fn lower(&self) -> Matrix {
        Matrix::from_fn(self.packed.rows(), self.pivots.len(), |row, column| match row.cmp(&column) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => self.packed[(row, column)],
        })
    }

    /// U: k × n, zeros below the diagonal.
    pub fn upper(&self) -> Matrix {
        Matrix::from_fn(self.pivots.len(), self.packed.columns(), |row, column| {
            if row > column { 0.0 } else { self.packed[(row, column)] }
        })
    }

    /// X with A·X = B.
    ///
    /// # Errors
    /// [`LinalgError::Shape`] if A is not square or `rhs` has another number of rows,
    /// [`LinalgError::Singular`] for a zero pivot.
    pub fn solve(&self, rhs: &Matrix) -> Result<Matrix, LinalgError> {
        ensure_square("matrix", &self.packed)?;
        ensure_shape("right-hand side", rhs, self.packed.rows(), rhs.columns())?;
        let permutation = self.permutation();
        let permuted =
            Matrix::from_fn(rhs.rows(), rhs.columns(), |row, column| rhs[(permutation[row], column)]);
        let lower = TriangularForm { triangle: Triangle::Lower, transposed: false, unit_diagonal: true };
        let upper = TriangularForm { triangle: Triangle::Upper, transposed: false, unit_diagonal: false };
        triangular_solve(&self.packed, &triangular_solve(&self.packed, &permuted, lower)?, upper)
    }

    /// The product of the pivots, with the sign of the permutation; that of no pivots is 1.
    ///
    /// # Errors
    /// [`LinalgError::Shape`] if A is not square.
    pub fn determinant(&self) -> Result<f64, LinalgError> {
        ensure_square("matrix", &self.packed)?;
        let steps = self.pivots.iter().enumerate();
        Ok(steps.fold(1.0, |product, (step, &pivot)| {
            let signed = if pivot == step { product } else { -product };
            signed * self.packed[(step, step)]
        }))
    }
}

/// The determinant of a square matrix, by [`lu`]; 1 for the matrix without rows.
///
/// # Errors
/// [`LinalgError::Shape`] if the matrix is not square.
pub fn determinant(matrix: &Matrix) -> Result<f64, LinalgError> {
    ensure_square("matrix", matrix)?;
    lu(matrix).determinant()
}
