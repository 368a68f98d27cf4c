//! Cases of determinants, inverses, solutions, powers and exponentials. Gauss–Jordan elimination and Taylor series in f64
//! judge what the operations get from factorisations.

use crate::array::Array;
use crate::case::{Case, f32s, f64s, for_dtypes, op_case};
use crate::golden::golden;
use crate::random::Domain;
use crate::tolerance::{Tolerance, epsilon};
use rlx_ir::DType;

/// What outside references give; recorded by `references/cases/scipy_matrices.py`.
const RECORDED: &str = include_str!("../../golden/solve.case");

const SOLVED: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];

/// What a factorisation in f32 or f64, rounded to the type, may be off, for results of about `size` and matrices of
/// condition numbers below about 100.
fn stable(dtype: DType, size: f64) -> Tolerance {
    let factor = if matches!(dtype, DType::F32 | DType::F64) { 400.0 } else { 1.0 };
    Tolerance::Within { absolute: factor * epsilon(dtype) * size, relative: factor * epsilon(dtype) }
}

/// The matrices of the last two axes, and the sizes before them.
fn matrices(x: &Array) -> (Vec<usize>, Vec<Array>) {
    let rank = x.dims.len();
    let (batch, matrix) = x.dims.split_at(rank - 2);
    let n = matrix[0] * matrix[1];
    let count: usize = batch.iter().product();
    (batch.to_vec(), (0..count).map(|i| Array::new(matrix, &x.data[i * n..(i + 1) * n])).collect())
}

/// The matrices side by side again.
fn batched(batch: &[usize], all: Vec<Array>, matrix: [usize; 2]) -> Array {
    let dims: Vec<usize> = batch.iter().copied().chain(matrix).collect();
    Array::new(dims, all.into_iter().flat_map(|m| m.data).collect::<Vec<_>>())
}

fn product(x: &Array, y: &Array) -> Array {
    Array::from_fn([x.dims[0], y.dims[1]], |at| {
        (0..x.dims[1]).map(|k| x.at(&[at[0], k]) * y.at(&[k, at[1]])).sum()
    })
}

fn identity(n: usize) -> Array {
    Array::from_fn([n, n], |at| f64::from(u8::from(at[0] == at[1])))
}

/// The determinant, and X with A·X = B, by elimination with complete row exchange.
fn eliminated(a: &Array, right: &Array) -> (f64, Array) {
    let (n, k) = (a.dims[0], right.dims[1]);
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| a.at(&[i, j])).chain((0..k).map(|j| right.at(&[i, j]))).collect())
        .collect();
    let mut det = 1.0;
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|i, j| rows[*i][column].abs().total_cmp(&rows[*j][column].abs()))
            .unwrap_or(column);
        if pivot != column {
            rows.swap(pivot, column);
            det = -det;
        }
        let of = rows[column].clone();
        det *= of[column];
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = if i == column { 0.0 } else { row[column] / of[column] };
            row.iter_mut().zip(&of).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let x = Array::from_fn([n, k], |at| rows[at[0]][n + at[1]] / rows[at[0]][at[0]]);
    (det, x)
}

/// Matrices with 4 added to each diagonal element: well conditioned, of either sign of determinant by row order.
fn well_conditioned(op: &str, name: &str, attributes: &str, dtype: DType, right: &str) -> Case {
    let right = if right.is_empty() { String::new() } else { format!(", {dtype}{right}") };
    let case = op_case(op, name, attributes, &format!("{dtype}[b, n, n]{right}")).sizes([("b", 3), ("n", 5)]);
    let mut random = crate::random::Random::named(name);
    let data = (0..75).map(|i| {
        // A shifted diagonal, so that rows must be exchanged.
        let (row, column) = (i % 25 / 5, i % 5);
        random.range(-1.0, 1.0) + if (row + i / 25) % 5 == column { 4.0 } else { 0.0 }
    });
    case.input(Array::new([3, 5, 5], data.collect::<Vec<_>>()).to_literal(dtype))
        .random(Domain::Range(-1.0, 1.0))
}

/// The errors of all operations on square matrices.
fn not_square(op: &str, attributes: &str, more: &str) -> [Case; 3] {
    [
        op_case(op, "integers", attributes, &format!("i32[3, 3]{more}").replace("f32", "i32"))
            .fails_build("C1"),
        op_case(op, "not_square", attributes, &format!("f32[3, 2]{more}")).fails_build("C2"),
        op_case(op, "vector", attributes, &format!("f32[3]{more}")).fails_build("C2"),
    ]
}

/// Cases of `det`.
pub(super) fn det() -> Vec<Case> {
    let mut cases = for_dtypes(SOLVED, |dtype| {
        well_conditioned("det", "batch", "", dtype, "")
            .formula(|x| {
                let (batch, all) = matrices(&x[0]);
                Array::new(batch, all.iter().map(|a| eliminated(a, &identity(5)).0).collect::<Vec<_>>())
            })
            .within(stable(dtype, 100.0))
    });
    cases.extend([
        op_case("det", "row_exchange_changes_the_sign", "", "f64[2, 2]")
            .input(f64s([2, 2], [0.0, 1.0, 1.0, 0.0]))
            .values([f64s([], [-1.0])]),
        op_case("det", "three_exchanges", "", "f64[3, 3]")
            .input(f64s([3, 3], [0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 0.0, 5.0, 0.0]))
            .values([f64s([], [30.0])]),
        op_case("det", "singular", "", "f32[2, 2]")
            .input(f32s([2, 2], [1.0, 2.0, 2.0, 4.0]))
            .values([f32s([], [0.0])])
            // A zero of either sign.
            .within(Tolerance::Within { absolute: 0.0, relative: 0.0 }),
        op_case("det", "of_nothing_is_1", "", "f32[0, 0]").random(Domain::Normal).values([f32s([], [1.0])]),
    ]);
    cases.extend(not_square("det", "", ""));
    cases.extend(golden(RECORDED, "det"));
    cases
}

/// Cases of `slog_det`.
pub(super) fn slog_det() -> Vec<Case> {
    let mut cases = for_dtypes(SOLVED, |dtype| {
        well_conditioned("slog_det", "batch", "", dtype, "")
            .formulas(|x| {
                let (batch, all) = matrices(&x[0]);
                let det =
                    Array::new(batch, all.iter().map(|a| eliminated(a, &identity(5)).0).collect::<Vec<_>>());
                vec![det.map(f64::signum), det.map(|d| d.abs().ln())]
            })
            .within(stable(dtype, 1.0))
    });
    cases.extend([
        op_case("slog_det", "beyond_the_range_of_det", "", "f32[3, 3]")
            .input(f32s([3, 3], [0.0, 1e30, 0.0, 1e30, 0.0, 0.0, 0.0, 0.0, 1e30]))
            .values([f32s([], [-1.0]), f32s([], [3.0 * 30.0 * std::f32::consts::LN_10])])
            .within(Tolerance::Within { absolute: 0.0, relative: 1e-6 }),
        op_case("slog_det", "singular", "", "f32[2, 2]")
            .input(f32s([2, 2], [1.0, 2.0, 2.0, 4.0]))
            .values([f32s([], [0.0]), f32s([], [f32::NEG_INFINITY])])
            // A zero of either sign.
            .within(Tolerance::Within { absolute: 0.0, relative: 0.0 }),
    ]);
    cases.extend(not_square("slog_det", "", ""));
    cases.extend(golden(RECORDED, "slog_det"));
    cases
}

/// Cases of `inverse`.
pub(super) fn inverse() -> Vec<Case> {
    let mut cases = for_dtypes(SOLVED, |dtype| {
        well_conditioned("inverse", "batch", "", dtype, "")
            .formula(|x| {
                let (batch, all) = matrices(&x[0]);
                batched(&batch, all.iter().map(|a| eliminated(a, &identity(5)).1).collect(), [5, 5])
            })
            .within(stable(dtype, 1.0))
    });
    cases.push(
        op_case("inverse", "nothing", "", "f32[2, 0, 0]")
            .random(Domain::Normal)
            .values([f32s([2, 0, 0], [])]),
    );
    cases.extend(not_square("inverse", "", ""));
    cases.extend(golden(RECORDED, "inverse"));
    cases
}

/// Cases of `solve`.
pub(super) fn solve() -> Vec<Case> {
    let mut cases = for_dtypes(SOLVED, |dtype| {
        well_conditioned("solve", "batch", "", dtype, "[b, n, 2]")
            .formula(|x| {
                let ((batch, all), (_, right)) = (matrices(&x[0]), matrices(&x[1]));
                batched(&batch, all.iter().zip(&right).map(|(a, r)| eliminated(a, r).1).collect(), [5, 2])
            })
            .within(stable(dtype, 1.0))
    });
    cases.extend(not_square("solve", "", ", f32[3, 1]"));
    cases.extend([
        op_case("solve", "mixed_types", "", "f32[3, 3], f64[3, 1]").fails_build("C1"),
        op_case("solve", "other_rows", "", "f32[3, 3], f32[2, 1]").fails_build("C3"),
        op_case("solve", "other_batch", "", "f32[2, 3, 3], f32[3, 1]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "solve"));
    cases
}

/// The least-squares solution of a matrix of full column rank, by the normal equations.
fn normal_equations(a: &Array, right: &Array) -> Array {
    let transposed = a.transpose(&[1, 0]);
    eliminated(&product(&transposed, a), &product(&transposed, right)).1
}

/// Cases of `lstsq`.
pub(super) fn least_squares() -> Vec<Case> {
    let mut cases = for_dtypes(SOLVED, |dtype| {
        op_case("lstsq", "more_rows_than_columns", "", &format!("{dtype}[b, 7, 3], {dtype}[b, 7, 2]"))
            .sizes([("b", 2)])
            .random(Domain::Range(-1.0, 1.0))
            .formula(|x| {
                let ((batch, all), (_, right)) = (matrices(&x[0]), matrices(&x[1]));
                batched(&batch, all.iter().zip(&right).map(|(a, r)| normal_equations(a, r)).collect(), [3, 2])
            })
            .within(stable(dtype, 2.0))
    });
    cases.extend([
        op_case("lstsq", "least_norm_among_many", "", "f64[1, 2], f64[1, 1]")
            .inputs([f64s([1, 2], [3.0, 4.0]), f64s([1, 1], [25.0])])
            .values([f64s([2, 1], [3.0, 4.0])])
            .within(Tolerance::Within { absolute: 1e-13, relative: 0.0 }),
        op_case("lstsq", "rank_one", "rcond=1e-6", "f64[2, 2], f64[2, 1]")
            .inputs([f64s([2, 2], [1.0, 1.0, 1.0, 1.0]), f64s([2, 1], [1.0, 3.0])])
            .values([f64s([2, 1], [1.0, 1.0])])
            .within(Tolerance::Within { absolute: 1e-13, relative: 0.0 }),
        op_case("lstsq", "integers", "", "i32[3, 3], i32[3, 1]").fails_build("C1"),
        op_case("lstsq", "vector", "", "f32[3], f32[3, 1]").fails_build("C2"),
        op_case("lstsq", "other_rows", "", "f32[3, 2], f32[2, 1]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "lstsq"));
    cases
}

/// Cases of `pinv`.
pub(super) fn pseudo_inverse() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, m, n) in [("tall", 7, 3), ("wide", 3, 7)] {
        cases.extend(for_dtypes(SOLVED, |dtype| {
            op_case("pinv", name, "", &format!("{dtype}[b, {m}, {n}]"))
                .sizes([("b", 2)])
                .random(Domain::Range(-1.0, 1.0))
                .formula(move |x| {
                    let (batch, all) = matrices(&x[0]);
                    let inverse = |a: &Array| {
                        if m > n {
                            normal_equations(a, &identity(m))
                        } else {
                            normal_equations(&a.transpose(&[1, 0]), &identity(n)).transpose(&[1, 0])
                        }
                    };
                    batched(&batch, all.iter().map(inverse).collect(), [n, m])
                })
                .within(stable(dtype, 2.0))
        }));
    }
    cases.extend([
        op_case("pinv", "of_zeros_is_zeros", "", "f32[2, 3]")
            .input(f32s([2, 3], [0.0; 6]))
            .values([f32s([3, 2], [0.0; 6])]),
        op_case("pinv", "small_singular_value_counts_as_0", "rcond=0.5", "f64[2, 2]")
            .input(f64s([2, 2], [4.0, 0.0, 0.0, 1.0]))
            .values([f64s([2, 2], [0.25, 0.0, 0.0, 0.0])])
            .within(Tolerance::Within { absolute: 1e-15, relative: 0.0 }),
        op_case("pinv", "integers", "", "i32[3, 3]").fails_build("C1"),
        op_case("pinv", "vector", "", "f32[3]").fails_build("C2"),
    ]);
    cases.extend(golden(RECORDED, "pinv"));
    cases
}

/// Cases of `matrix_power`.
pub(super) fn matrix_power() -> Vec<Case> {
    let mut cases = Vec::new();
    for exponent in [0i64, 1, 2, 5, -1, -3] {
        let name = format!("power_{}", exponent.rem_euclid(100));
        cases.extend(for_dtypes(&[DType::F32, DType::F64], |dtype| {
            well_conditioned("matrix_power", &name, &format!("exponent={exponent}"), dtype, "")
                .formula(move |x| {
                    let (batch, all) = matrices(&x[0]);
                    let power = |a: &Array| {
                        let base = if exponent < 0 { eliminated(a, &identity(5)).1 } else { a.clone() };
                        (0..exponent.unsigned_abs()).fold(identity(5), |power, _| product(&power, &base))
                    };
                    batched(&batch, all.iter().map(power).collect(), [5, 5])
                })
                .within(stable(dtype, 6f64.powi(exponent.max(0) as i32)))
        }));
    }
    cases.extend(not_square("matrix_power", "exponent=2", ""));
    cases.extend(golden(RECORDED, "matrix_power"));
    cases
}

/// Cases of `matrix_exp`.
pub(super) fn matrix_exp() -> Vec<Case> {
    /// Σ Aᵏ/k! of A/2⁴, squared four times.
    fn exponential(a: &Array) -> Array {
        let small = a.map(|x| x / 16.0);
        let (mut sum, mut term) = (identity(a.dims[0]), identity(a.dims[0]));
        for k in 1..40 {
            term = product(&term, &small).map(|x| x / f64::from(k));
            sum = sum.zip(&term, |s, t| s + t);
        }
        (0..4).fold(sum, |power, _| product(&power, &power))
    }
    let mut cases = Vec::new();
    for (name, range) in [("small", 0.5), ("squared", 6.0)] {
        cases.extend(for_dtypes(&[DType::F32, DType::F64], |dtype| {
            op_case("matrix_exp", name, "", &format!("{dtype}[b, n, n]"))
                .sizes([("b", 2), ("n", 4)])
                .random(Domain::Range(-range, range))
                .formula(|x| {
                    let (batch, all) = matrices(&x[0]);
                    batched(&batch, all.iter().map(exponential).collect(), [4, 4])
                })
                .within(stable(dtype, range.exp()))
        }));
    }
    cases.extend([
        op_case("matrix_exp", "of_zeros_is_the_identity", "", "f32[2, 2]")
            .input(f32s([2, 2], [0.0; 4]))
            .values([f32s([2, 2], [1.0, 0.0, 0.0, 1.0])]),
        op_case("matrix_exp", "nilpotent", "", "f64[2, 2]")
            .input(f64s([2, 2], [0.0, 1000.0, 0.0, 0.0]))
            .values([f64s([2, 2], [1.0, 1000.0, 0.0, 1.0])])
            .within(Tolerance::Within { absolute: 1e-12, relative: 1e-12 }),
        op_case("matrix_exp", "matrices_of_different_norms", "", "f64[2, 1, 1]")
            .input(f64s([2, 1, 1], [-1.0, 100.0]))
            .values([f64s([2, 1, 1], [(-1.0f64).exp(), 100.0f64.exp()])])
            .within(Tolerance::Within { absolute: 0.0, relative: 1e-12 }),
    ]);
    cases.extend(not_square("matrix_exp", "", ""));
    cases.extend(golden(RECORDED, "matrix_exp"));
    cases
}
