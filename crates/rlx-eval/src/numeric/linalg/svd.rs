//! Singular value decomposition.

use super::{
    Extent, LinalgError, MAX_SWEEPS, Matrix, ensure_finite, jacobi_rotation, leading_entry_is_negative,
    negate_column, power_of_two_scale, rotate_columns,
};

/// A = U·diag(values)·Vᵀ with orthonormal columns in U and V, for A of m rows and n columns and k = min(m, n).
#[derive(Debug, Clone, PartialEq)]
pub struct Svd {
    /// m × k (reduced) or m × m (complete). In each of the first k columns the entry of greatest magnitude
    /// (the first of several) is positive.
    pub u: Matrix,
    /// The k singular values, descending, none negative.
    pub values: Vec<f64>,
    /// k × n (reduced) or n × n (complete): V transposed.
    pub vt: Matrix,
}

/// The singular value decomposition, by one-sided Jacobi rotations (Hestenes, 1958; GVL, section 8.6.3).
///
/// Vectors of equal singular values are some orthonormal basis of their space, and so are the columns that only
/// complete a basis.
///
/// # Errors
/// [`LinalgError::NotFinite`] for NaN or infinity in the matrix, [`LinalgError::NoConvergence`] should the
/// iteration not end.
pub fn svd(matrix: &Matrix, extent: Extent) -> Result<Svd, LinalgError> {
    ensure_finite(matrix)?;
    // Columns are rotated, of which there may not be more than rows.
    let wide = matrix.rows() < matrix.columns();
    let tall = if wide { matrix.transposed() } else { matrix.clone() };
    let (rows, columns) = (tall.rows(), tall.columns());
    let scale = power_of_two_scale(&tall);
    let mut work = tall.scaled(1.0 / scale);
    let mut rotations = Matrix::identity(columns);
    orthogonalise_columns(&mut work, &mut rotations)?;

    let norms: Vec<f64> = (0..columns).map(|column| column_product(&work, column, column).sqrt()).collect();
    let mut order: Vec<usize> = (0..columns).collect();
    order.sort_by(|&first, &second| norms[second].total_cmp(&norms[first]));
    let values: Vec<f64> = order.iter().map(|&index| norms[index] * scale).collect();
    let mut right = Matrix::from_fn(columns, columns, |row, column| rotations[(row, order[column])]);
    let width = match extent {
        Extent::Reduced => columns,
        Extent::Complete => rows,
    };
    let rank = order.iter().filter(|&&index| norms[index] > 0.0).count();
    let mut left = Matrix::from_fn(rows, width, |row, column| {
        if column < rank { work[(row, order[column])] / norms[order[column]] } else { 0.0 }
    });
    complete_basis(&mut left, rank);

    let (first, second) = if wide { (&mut right, &mut left) } else { (&mut left, &mut right) };
    for column in 0..columns {
        if leading_entry_is_negative(first, column) {
            negate_column(first, column);
            negate_column(second, column);
        }
    }
    let (u, v) = if wide { (right, left) } else { (left, right) };
    Ok(Svd { u, values, vt: v.transposed() })
}

/// Rotates pairs of columns of `work` until all are orthogonal, and those of `rotations` along with them.
/// Columns whose squares would underflow become zero.
fn orthogonalise_columns(work: &mut Matrix, rotations: &mut Matrix) -> Result<(), LinalgError> {
    /// Squared norm, beside entries of magnitude up to one, below which a column is as good as zero.
    const NEGLIGIBLE: f64 = 1e-280;
    let tolerance = f64::EPSILON * (work.rows().max(1) as f64).sqrt();
    for _ in 0..MAX_SWEEPS {
        let mut rotated = false;
        for p in 0..work.columns() {
            for q in p + 1..work.columns() {
                let squares = [p, q].map(|column| {
                    let square = column_product(work, column, column);
                    if square < NEGLIGIBLE {
                        (0..work.rows()).for_each(|row| work[(row, column)] = 0.0);
                        0.0
                    } else {
                        square
                    }
                });
                let product = column_product(work, p, q);
                if product.abs() <= tolerance * squares[0].sqrt() * squares[1].sqrt() {
                    continue;
                }
                rotated = true;
                let (cosine, sine, _) = jacobi_rotation(squares[0], product, squares[1]);
                rotate_columns(work, (p, q), (cosine, sine));
                rotate_columns(rotations, (p, q), (cosine, sine));
            }
        }
        if !rotated {
            return Ok(());
        }
    }
    Err(LinalgError::NoConvergence { sweeps: MAX_SWEEPS })
}

/// Fills the columns from `known` on so that all are orthonormal, given that those before are.
///
/// Takes, for each, the unit vector that the columns so far span least, without its part in their span
/// (subtracted twice, since once leaves rounding errors of the size of the first remainder).
fn complete_basis(basis: &mut Matrix, known: usize) {
    let rows = basis.rows();
    for column in known..basis.columns() {
        let spanned = |row: usize| -> f64 { (0..column).map(|other| basis[(row, other)].powi(2)).sum() };
        let Some(start) = (0..rows).min_by(|&first, &second| spanned(first).total_cmp(&spanned(second)))
        else {
            return;
        };
        basis[(start, column)] = 1.0;
        for _ in 0..2 {
            for other in 0..column {
                let part = column_product(basis, other, column);
                for row in 0..rows {
                    basis[(row, column)] -= part * basis[(row, other)];
                }
            }
        }
        let norm = column_product(basis, column, column).sqrt();
        for row in 0..rows {
            basis[(row, column)] /= norm;
        }
    }
}

/// The dot product of two columns.
fn column_product(matrix: &Matrix, first: usize, second: usize) -> f64 {
    (0..matrix.rows()).map(|row| matrix[(row, first)] * matrix[(row, second)]).sum()
}
