//! Decompositions: what they must multiply back to, and the values and signs of numpy and LAPACK.

use rlx_eval::numeric::linalg::{
    Extent, LinalgError, Matrix, Triangle, TriangularForm, cholesky, determinant, lu, qr, svd,
    symmetric_eigen, triangular_solve,
};

use crate::{f64_of, numbers, records};

const GOLDENS: &str = include_str!("../golden/numeric/linalg.txt");
const CASES: [&str; 4] = ["tall", "wide", "square", "single"];
const SIZES: [(usize, usize); 12] =
    [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (2, 2), (5, 3), (3, 5), (8, 8), (17, 17), (30, 11)];

fn golden(case: &str, name: &str) -> Option<Matrix> {
    let words = records(GOLDENS).find(|words| words[0] == case && words[1] == name)?;
    let size = |word: &str| word.parse().expect("a size");
    let entries = words[4..].iter().filter(|word| !word.is_empty()).map(|word| f64_of(word)).collect();
    Some(
        Matrix::new(size(words[2]), size(words[3]), entries)
            .expect("as many entries as rows and columns say"),
    )
}

fn matrix(rows: usize, columns: usize) -> Matrix {
    Matrix::new(rows, columns, numbers(rows * columns)).expect("the right length")
}

fn product(lhs: &Matrix, rhs: &Matrix) -> Matrix {
    lhs.product(rhs).expect("sizes that fit")
}

/// A symmetric matrix with the eigenvalues `diagonal`.
fn symmetric(diagonal: &[f64]) -> Matrix {
    let size = diagonal.len();
    let q = qr(&matrix(size, size), Extent::Complete).q;
    let scaled = Matrix::from_fn(size, size, |row, column| q[(row, column)] * diagonal[column]);
    let full = product(&scaled, &q.transposed());
    Matrix::from_fn(size, size, |row, column| (full[(row, column)] + full[(column, row)]) / 2.0)
}

#[track_caller]
fn assert_close(found: &Matrix, expected: &Matrix, tolerance: f64) {
    assert_eq!((found.rows(), found.columns()), (expected.rows(), expected.columns()));
    for (a, b) in found.data().iter().zip(expected.data()) {
        assert!((a - b).abs() <= tolerance, "{a} {b} in {found:?} and {expected:?}");
    }
}

#[track_caller]
fn assert_orthonormal_columns(matrix: &Matrix) {
    let gram = product(&matrix.transposed(), matrix);
    assert_close(&gram, &Matrix::identity(matrix.columns()), 1e-14);
}

fn close_values(found: &[f64], expected: &Matrix) {
    assert_close(&Matrix::new(1, found.len(), found.to_vec()).expect("a row"), expected, 1e-14);
}

#[test]
fn numpy_and_lapack_give_the_same_values_and_signs() {
    for case in CASES {
        let a = golden(case, "a").expect("an input");
        close_values(
            &svd(&a, Extent::Reduced).expect("convergence").values,
            &golden(case, "singular_values").expect("recorded"),
        );
        let decomposed = qr(&a, Extent::Complete);
        assert_close(&decomposed.q, &golden(case, "q").expect("recorded"), 1e-14);
        assert_close(&decomposed.r, &golden(case, "r").expect("recorded"), 1e-14);
        let decomposed = lu(&a);
        assert_close(&decomposed.packed, &golden(case, "lu").expect("recorded"), 1e-14);
        let pivots: Vec<f64> = decomposed.pivots.iter().map(|&pivot| pivot as f64).collect();
        close_values(&pivots, &golden(case, "pivots").expect("recorded"));
        if let Some(expected) = golden(case, "determinant") {
            close_values(&[determinant(&a).expect("square")], &expected);
            let size = a.rows();
            close_values(
                &symmetric_eigen(&a).expect("convergence").values,
                &golden(case, "eigenvalues").expect("recorded"),
            );
            let gram = product(&a, &a.transposed());
            let positive = Matrix::from_fn(size, size, |row, column| {
                gram[(row, column)] + if row == column { 1.0 } else { 0.0 }
            });
            assert_close(
                &cholesky(&positive).expect("positive definite"),
                &golden(case, "cholesky").expect("recorded"),
                1e-14,
            );
        }
    }
}

#[test]
fn cholesky_multiplies_back_and_reads_the_lower_triangle_only() {
    for size in [0, 1, 2, 7, 20] {
        let diagonal: Vec<f64> = (0..size).map(|index| 0.5 + index as f64).collect();
        let a = symmetric(&diagonal);
        let spoiled =
            Matrix::from_fn(size, size, |row, column| if row < column { f64::NAN } else { a[(row, column)] });
        let lower = cholesky(&spoiled).expect("positive definite");
        assert_close(&product(&lower, &lower.transposed()), &a, 1e-13);
    }
}

#[test]
fn cholesky_names_the_first_pivot_that_is_not_positive() {
    let indefinite = Matrix::new(3, 3, vec![4.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0]).expect("nine");
    assert_eq!(cholesky(&indefinite), Err(LinalgError::NotPositiveDefinite { pivot: 1 }));
    for entry in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let single = Matrix::new(1, 1, vec![entry]).expect("one");
        assert_eq!(cholesky(&single), Err(LinalgError::NotPositiveDefinite { pivot: 0 }), "{entry}");
    }
}

#[test]
fn triangular_systems_are_solved_in_every_form() {
    for size in [0, 1, 2, 9] {
        let a = Matrix::from_fn(size, size, |row, column| {
            let entry = matrix(size, size)[(row, column)];
            if row == column { entry + 3.0 } else { entry }
        });
        let x = matrix(size, 4);
        for triangle in [Triangle::Lower, Triangle::Upper] {
            for transposed in [false, true] {
                for unit_diagonal in [false, true] {
                    let form = TriangularForm { triangle, transposed, unit_diagonal };
                    let kept = Matrix::from_fn(size, size, |row, column| {
                        let inside = match triangle {
                            Triangle::Lower => row > column,
                            Triangle::Upper => row < column,
                        };
                        match (row == column, inside) {
                            (true, _) if unit_diagonal => 1.0,
                            (true, _) | (_, true) => a[(row, column)],
                            _ => 0.0,
                        }
                    });
                    let kept = if transposed { kept.transposed() } else { kept };
                    let found = triangular_solve(&a, &product(&kept, &x), form).expect("regular");
                    assert_close(&found, &x, 1e-12);
                }
            }
        }
    }
}

#[test]
fn a_zero_on_the_diagonal_is_singular_unless_the_diagonal_counts_as_ones() {
    let a = Matrix::new(2, 2, vec![1.0, 0.0, 5.0, 0.0]).expect("four");
    let rhs = Matrix::new(2, 1, vec![1.0, 7.0]).expect("two");
    let form = TriangularForm { triangle: Triangle::Lower, transposed: false, unit_diagonal: false };
    assert_eq!(triangular_solve(&a, &rhs, form), Err(LinalgError::Singular { pivot: 1 }));
    let unit = TriangularForm { unit_diagonal: true, ..form };
    assert_eq!(triangular_solve(&a, &rhs, unit).expect("regular").data(), [1.0, 2.0]);
}

#[test]
fn lu_multiplies_back_to_the_permuted_matrix() {
    for (rows, columns) in SIZES {
        let a = matrix(rows, columns);
        let decomposed = lu(&a);
        let permutation = decomposed.permutation();
        let permuted = Matrix::from_fn(rows, columns, |row, column| a[(permutation[row], column)]);
        assert_close(&product(&decomposed.lower(), &decomposed.upper()), &permuted, 1e-13);
        assert!(decomposed.lower().data().iter().all(|entry| entry.abs() <= 1.0));
    }
}

#[test]
fn lu_solves_regular_systems_and_refuses_singular_ones() {
    let a = matrix(8, 8);
    let x = matrix(8, 3);
    assert_close(&lu(&a).solve(&product(&a, &x)).expect("regular"), &x, 1e-12);
    let singular = Matrix::new(2, 2, vec![1.0, 2.0, 2.0, 4.0]).expect("four");
    let rhs = Matrix::zeros(2, 1);
    assert_eq!(lu(&singular).solve(&rhs), Err(LinalgError::Singular { pivot: 1 }));
    assert_eq!(determinant(&singular), Ok(0.0));
}

#[test]
fn determinants_have_the_sign_of_the_permutation() {
    assert_eq!(determinant(&Matrix::zeros(0, 0)), Ok(1.0));
    let exchange = Matrix::new(2, 2, vec![0.0, 1.0, 1.0, 0.0]).expect("four");
    assert_eq!(determinant(&exchange), Ok(-1.0));
    let cycle = Matrix::from_fn(3, 3, |row, column| if (row + 1) % 3 == column { 2.0 } else { 0.0 });
    assert_eq!(determinant(&cycle), Ok(8.0));
}

#[test]
fn qr_multiplies_back_with_orthonormal_columns() {
    for (rows, columns) in SIZES {
        for extent in [Extent::Reduced, Extent::Complete] {
            let a = matrix(rows, columns);
            let decomposed = qr(&a, extent);
            let width = if extent == Extent::Reduced { rows.min(columns) } else { rows };
            assert_eq!(decomposed.q.columns(), width);
            assert_orthonormal_columns(&decomposed.q);
            assert_close(&product(&decomposed.q, &decomposed.r), &a, 1e-13);
            for row in 0..width {
                assert!((0..row.min(columns)).all(|column| decomposed.r[(row, column)] == 0.0));
            }
        }
    }
}

#[test]
fn a_column_that_is_zero_below_the_diagonal_is_not_reflected() {
    let a = Matrix::new(2, 2, vec![3.0, 1.0, 0.0, -2.0]).expect("four");
    let decomposed = qr(&a, Extent::Reduced);
    assert_eq!(decomposed.q, Matrix::identity(2));
    assert_eq!(decomposed.r, a);
    let zero = qr(&Matrix::zeros(3, 2), Extent::Complete);
    assert_eq!((zero.q, zero.r), (Matrix::identity(3), Matrix::zeros(3, 2)));
}

#[test]
fn symmetric_matrices_have_ascending_values_and_normalised_vectors() {
    let spectra: [&[f64]; 6] = [
        &[],
        &[-3.0],
        &[2.0, 2.0],
        &[1.0, -1.0, 0.0, 5.0, 5.0],
        &[1e-12, 1.0, 1e6, -1e6],
        &[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0],
    ];
    for spectrum in spectra {
        let a = symmetric(spectrum);
        let size = spectrum.len();
        let scale = spectrum.iter().fold(1.0_f64, |greatest, value| greatest.max(value.abs()));
        let found = symmetric_eigen(&a).expect("convergence");
        let mut expected = spectrum.to_vec();
        expected.sort_by(f64::total_cmp);
        for (value, expected) in found.values.iter().zip(&expected) {
            assert!((value - expected).abs() < 1e-14 * scale, "{value} {expected}");
        }
        assert_orthonormal_columns(&found.vectors);
        let scaled =
            Matrix::from_fn(size, size, |row, column| found.vectors[(row, column)] * found.values[column]);
        assert_close(&product(&scaled, &found.vectors.transposed()), &a, 1e-13 * scale);
        for column in 0..size {
            let entries = (0..size).map(|row| found.vectors[(row, column)]);
            let leading = entries.fold(
                0.0_f64,
                |leading, entry| {
                    if entry.abs() > leading.abs() { entry } else { leading }
                },
            );
            assert!(leading > 0.0);
        }
    }
}

#[test]
fn eigenvalues_at_the_ends_of_the_exponent_range_neither_overflow_nor_vanish() {
    for scale in [1e300, 1e-300] {
        let a = Matrix::new(2, 2, vec![scale, 2.0 * scale, 2.0 * scale, scale]).expect("four");
        let values = symmetric_eigen(&a).expect("convergence").values;
        assert!((values[0] / scale + 1.0).abs() < 1e-14 && (values[1] / scale - 3.0).abs() < 1e-14);
        let values = svd(&a, Extent::Reduced).expect("convergence").values;
        assert!((values[0] / scale - 3.0).abs() < 1e-14 && (values[1] / scale - 1.0).abs() < 1e-14);
    }
}

/// Checks what every singular value decomposition has to be.
#[track_caller]
fn assert_decomposes(a: &Matrix, extent: Extent) {
    let found = svd(a, extent).expect("convergence");
    let (rows, columns) = (a.rows(), a.columns());
    let rank = rows.min(columns);
    let widths = if extent == Extent::Reduced { (rank, rank) } else { (rows, columns) };
    assert_eq!((found.u.columns(), found.vt.rows(), found.values.len()), (widths.0, widths.1, rank));
    assert_orthonormal_columns(&found.u);
    assert_orthonormal_columns(&found.vt.transposed());
    assert!(found.values.is_sorted_by(|first, second| first >= second));
    assert!(found.values.iter().all(|&value| value >= 0.0));
    let scaled = Matrix::from_fn(rows, rank, |row, column| found.u[(row, column)] * found.values[column]);
    let right = found.vt.transposed().first_columns(rank).transposed();
    let scale = found.values.first().copied().unwrap_or(0.0);
    assert_close(&product(&scaled, &right), a, 1e-14 * scale.max(f64::MIN_POSITIVE));
    for column in 0..rank {
        let entries = (0..rows).map(|row| found.u[(row, column)]);
        let leading =
            entries.fold(0.0_f64, |leading, entry| if entry.abs() > leading.abs() { entry } else { leading });
        assert!(leading > 0.0);
    }
}

#[test]
fn singular_value_decompositions_multiply_back_with_orthonormal_vectors() {
    for (rows, columns) in SIZES {
        assert_decomposes(&matrix(rows, columns), Extent::Reduced);
        assert_decomposes(&matrix(rows, columns), Extent::Complete);
    }
}

#[test]
fn singular_vectors_of_rank_deficient_and_graded_matrices_stay_orthonormal() {
    let outer = product(&matrix(7, 2), &matrix(2, 5));
    let ones = Matrix::from_fn(6, 6, |_, _| 1.0);
    let graded =
        Matrix::from_fn(6, 4, |row, column| matrix(6, 4)[(row, column)] * 10_f64.powi(-8 * column as i32));
    for a in [outer, ones, graded, Matrix::zeros(4, 3), Matrix::identity(5)] {
        for extent in [Extent::Reduced, Extent::Complete] {
            assert_decomposes(&a, extent);
            assert_decomposes(&a.transposed(), extent);
        }
    }
}

#[test]
fn nan_and_infinity_are_refused_rather_than_iterated_on() {
    for entry in [f64::NAN, f64::INFINITY] {
        let a = Matrix::new(2, 2, vec![1.0, 0.0, entry, 1.0]).expect("four");
        let error = LinalgError::NotFinite { row: 1, column: 0 };
        assert_eq!(symmetric_eigen(&a), Err(error));
        assert_eq!(svd(&a, Extent::Reduced), Err(error));
        // The upper triangle is not read.
        let expected = symmetric_eigen(&Matrix::identity(2));
        assert_eq!(symmetric_eigen(&Matrix::new(2, 2, vec![1.0, entry, 0.0, 1.0]).expect("four")), expected);
    }
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let wide = Matrix::zeros(2, 3);
    let shape = |error: Option<LinalgError>| matches!(error, Some(LinalgError::Shape { .. }));
    assert!(shape(cholesky(&wide).err()));
    assert!(shape(symmetric_eigen(&wide).err()));
    assert!(shape(determinant(&wide).err()));
    assert!(shape(lu(&Matrix::identity(2)).solve(&Matrix::zeros(3, 1)).err()));
    let form = TriangularForm { triangle: Triangle::Upper, transposed: false, unit_diagonal: true };
    assert!(shape(triangular_solve(&wide, &Matrix::zeros(2, 1), form).err()));
    assert!(shape(triangular_solve(&Matrix::identity(2), &Matrix::zeros(3, 1), form).err()));
    assert!(shape(wide.product(&wide).err()));
    assert!(shape(Matrix::new(2, 2, vec![0.0; 3]).err()));
    assert!(shape(Matrix::new(usize::MAX, 2, Vec::new()).err()));
}
