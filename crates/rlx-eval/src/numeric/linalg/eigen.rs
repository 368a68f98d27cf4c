//! Eigenvalues and eigenvectors of symmetric matrices.

use super::{
    LinalgError, MAX_SWEEPS, Matrix, ensure_finite, ensure_square, jacobi_rotation,
    leading_entry_is_negative, negate_column, power_of_two_scale, rotate_columns,
};

/// A = V·diag(values)·Vᵀ with orthogonal V.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricEigen {
    /// The eigenvalues, ascending.
    pub values: Vec<f64>,
    /// Column i is the unit eigenvector of `values[i]`; its entry of greatest magnitude (the first of several)
    /// is positive.
    pub vectors: Matrix,
}

/// The eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's cyclic method (GVL, algorithm 8.5.3).
///
/// Only the lower triangle is read. Eigenvectors of equal eigenvalues are some orthonormal basis of their
/// space, and those of nearly equal ones are as little determined.
///
/// # Errors
/// [`LinalgError::Shape`] if the matrix is not square, [`LinalgError::NotFinite`] for NaN or infinity in
/// the lower triangle, [`LinalgError::NoConvergence`] should the iteration not end.
pub fn symmetric_eigen(matrix: &Matrix) -> Result<SymmetricEigen, LinalgError> {
    ensure_square("matrix", matrix)?;
    let size = matrix.rows();
    let lower =
        Matrix::from_fn(size, size, |row, column| if row < column { 0.0 } else { matrix[(row, column)] });
    ensure_finite(&lower)?;
    let scale = power_of_two_scale(&lower);
    let mut work =
        Matrix::from_fn(size, size, |row, column| lower[(row.max(column), row.min(column))] / scale);
    let mut vectors = Matrix::identity(size);
    diagonalise(&mut work, &mut vectors)?;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&first, &second| work[(first, first)].total_cmp(&work[(second, second)]));
    let values = order.iter().map(|&index| work[(index, index)] * scale).collect();
    let mut vectors = Matrix::from_fn(size, size, |row, column| vectors[(row, order[column])]);
    for column in 0..size {
        if leading_entry_is_negative(&vectors, column) {
            negate_column(&mut vectors, column);
        }
    }
    Ok(SymmetricEigen { values, vectors })
}

/// Rotates `work` until it is diagonal, and `vectors` along with it.
fn diagonalise(work: &mut Matrix, vectors: &mut Matrix) -> Result<(), LinalgError> {
    let size = work.rows();
    for _ in 0..MAX_SWEEPS {
        let mut rotated = false;
        for p in 0..size {
            for q in p + 1..size {
                let (app, apq, aqq) = (work[(p, p)], work[(p, q)], work[(q, q)]);
                // An entry that changes neither of its diagonal entries counts as zero.
                if app.abs() + apq.abs() / 16.0 == app.abs() && aqq.abs() + apq.abs() / 16.0 == aqq.abs() {
                    work[(p, q)] = 0.0;
                    work[(q, p)] = 0.0;
                    continue;
                }
                rotated = true;
                let (cosine, sine, tangent) = jacobi_rotation(app, apq, aqq);
                rotate_columns(work, (p, q), (cosine, sine));
                // The rows follow from the columns by symmetry, and the corner in closed form.
                for other in 0..size {
                    work[(p, other)] = work[(other, p)];
                    work[(q, other)] = work[(other, q)];
                }
                work[(p, p)] = app - tangent * apq;
                work[(q, q)] = aqq + tangent * apq;
                work[(p, q)] = 0.0;
                work[(q, p)] = 0.0;
                rotate_columns(vectors, (p, q), (cosine, sine));
            }
        }
        if !rotated {
            return Ok(());
        }
    }
    Err(LinalgError::NoConvergence { sweeps: MAX_SWEEPS })
}
