//! QR decomposition by Householder reflections.

use super::Matrix;

/// How many columns an orthogonal factor gets where the matrix leaves a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Those that the product needs: min(rows, columns).
    Reduced,
    /// A complete orthonormal basis: a square factor.
    Complete,
}

/// A = Q·R with orthonormal columns in Q and an upper triangular R.
#[derive(Debug, Clone, PartialEq)]
pub struct Qr {
    /// m × k (reduced, k = min(m, n)) or m × m (complete).
    pub q: Matrix,
    /// k × n (reduced) or m × n (complete).
    pub r: Matrix,
}

/// The QR decomposition of a matrix of m rows and n columns (GVL, algorithm 5.2.1).
///
/// Signs are those of LAPACK's `geqrf`, and so of numpy and PyTorch: each reflection takes the column x below
/// and on the diagonal to −sign(x₀)·‖x‖ (a zero counts as positive), and is left out where x is already zero
/// below the diagonal. The diagonal of R may thus have either sign.
pub fn qr(matrix: &Matrix, extent: Extent) -> Qr {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let steps = rows.min(columns);
    let mut r = matrix.clone();
    // Reflections I − τ v vᵀ; v is zero above its step and one at it.
    let mut reflections: Vec<(f64, Vec<f64>)> = Vec::with_capacity(steps);
    for step in 0..steps {
        let head = r[(step, step)];
        let tail = (step + 1..rows).fold(0.0, |norm, row| libm::hypot(norm, r[(row, step)]));
        if tail == 0.0 {
            reflections.push((0.0, Vec::new()));
            continue;
        }
        let norm = -libm::hypot(head, tail).copysign(head);
        let vector: Vec<f64> =
            (step..rows).map(|row| if row == step { 1.0 } else { r[(row, step)] / (head - norm) }).collect();
        let factor = (norm - head) / norm;
        reflect(&mut r, (factor, &vector), step, step + 1);
        r[(step, step)] = norm;
        for row in step + 1..rows {
            r[(row, step)] = 0.0;
        }
        reflections.push((factor, vector));
    }
    let width = match extent {
        Extent::Reduced => steps,
        Extent::Complete => rows,
    };
    let mut q = Matrix::from_fn(rows, width, |row, column| if row == column { 1.0 } else { 0.0 });
    for (step, (factor, vector)) in reflections.iter().enumerate().rev() {
        reflect(&mut q, (*factor, vector), step, step);
    }
    Qr { q, r: Matrix::from_fn(width, columns, |row, column| r[(row, column)]) }
}

/// Applies I − τ v vᵀ, where v begins at row `top`, to the columns from `left` on.
fn reflect(matrix: &mut Matrix, (factor, vector): (f64, &[f64]), top: usize, left: usize) {
    for column in left..matrix.columns() {
        let products = vector.iter().enumerate();
        let dot: f64 = products.map(|(offset, entry)| entry * matrix[(top + offset, column)]).sum();
        for (offset, entry) in vector.iter().enumerate() {
            matrix[(top + offset, column)] -= factor * dot * entry;
        }
    }
}
