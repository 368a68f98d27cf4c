//! Cases of linear algebra: LAPACK's results where they are unique, and the defining equations where not.

use crate::Array;
use crate::case::{Case, Stage, f32s, for_dtypes, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::DType;

const RECORDED: &str = include_str!("../../golden/linalg.case");
const WIDE: &[DType] = &[DType::F32, DType::F64];

/// The product of the matrices in the last two axes of arrays of three.
fn product(x: &Array, y: &Array) -> Array {
    let inner = x.dims[2];
    Array::from_fn([x.dims[0], x.dims[1], y.dims[2]], |i| {
        (0..inner).map(|k| x.at(&[i[0], i[1], k]) * y.at(&[i[0], k, i[2]])).sum()
    })
}

fn transposed(x: &Array) -> Array {
    x.transpose(&[0, 2, 1])
}

/// An error if any elements of the arrays differ by more than `allowed`.
fn agree(what: &str, found: &Array, wanted: &Array, allowed: f64) -> Result<(), String> {
    if found.dims != wanted.dims {
        return Err(format!("{what}: sizes {:?}, expected {:?}", found.dims, wanted.dims));
    }
    match found
        .data
        .iter()
        .zip(&wanted.data)
        .position(|(f, w)| (f - w).abs() > allowed || f.is_nan() != w.is_nan())
    {
        Some(at) => Err(format!(
            "{what}: element {at} is {:?}, expected {:?} within {allowed:e}",
            found.data[at], wanted.data[at]
        )),
        None => Ok(()),
    }
}

fn identity(like: &Array) -> Array {
    let n = like.dims[2];
    Array::from_fn([like.dims[0], n, n], |i| f64::from(u8::from(i[1] == i[2])))
}

/// The rounding error allowed in an equation of matrices of moderate numbers.
fn error(dtype: DType) -> f64 {
    200.0 * crate::tolerance::epsilon(dtype)
}

fn square_cases(op: &str, cases: &mut Vec<Case>) {
    cases.extend([
        op_case(op, "half", "", "f16[2, 2]").fails_build("C1"),
        op_case(op, "not_square", "", "f32[2, 3]").fails_build("C2"),
        op_case(op, "vector", "", "f32[2]").fails_build("C2"),
        op_case(op, "symbolic_not_square", "", "f32[n, m]")
            .sizes([("n", 2), ("m", 3)])
            .random(Domain::Normal)
            .fails(Stage::Run, "C2"),
    ]);
}

/// Cases of `cholesky`.
pub(super) fn cholesky() -> Vec<Case> {
    let mut cases = golden(RECORDED, "cholesky");
    cases.extend([
        op_case("cholesky", "upper_triangle_is_not_read", "", "f32[2, 2]")
            .input(f32s([2, 2], [4.0, f32::NAN, 2.0, 5.0]))
            .values([f32s([2, 2], [2.0, 0.0, 1.0, 2.0])]),
        op_case("cholesky", "not_positive_definite", "", "f32[2, 2]")
            .input(f32s([2, 2], [1.0, 2.0, 2.0, 1.0]))
            .fails(Stage::Run, "positive definite"),
        op_case("cholesky", "empty", "", "f32[3, 0, 0]").random(Domain::Normal).formula(|x| x[0].clone()),
    ]);
    square_cases("cholesky", &mut cases);
    cases
}

/// Cases of `triangular_solve`.
pub(super) fn triangular_solve() -> Vec<Case> {
    let mut cases = golden(RECORDED, "triangular_solve");
    let flags = "upper=false, transpose=false, unit_diagonal=false";
    cases.extend([
        op_case("triangular_solve", "other_triangle_is_not_read", flags, "f32[2, 2], f32[2, 1]")
            .inputs([f32s([2, 2], [2.0, f32::NAN, 1.0, 4.0]), f32s([2, 1], [2.0, 9.0])])
            .values([f32s([2, 1], [1.0, 2.0])]),
        op_case("triangular_solve", "no_right_sides", flags, "f32[2, 2], f32[2, 0]")
            .random(Domain::Normal)
            .formula(|_| Array::new([2, 0], [])),
        op_case("triangular_solve", "half", flags, "f16[2, 2], f16[2, 1]").fails_build("C1"),
        op_case("triangular_solve", "types_differ", flags, "f32[2, 2], f64[2, 1]").fails_build("C1"),
        op_case("triangular_solve", "not_square", flags, "f32[2, 3], f32[2, 1]").fails_build("C2"),
        op_case("triangular_solve", "rows_differ", flags, "f32[2, 2], f32[3, 1]").fails_build("C3"),
        op_case("triangular_solve", "batches_differ", flags, "f32[4, 2, 2], f32[5, 2, 1]").fails_build("C3"),
    ]);
    cases
}

/// Cases of `lu`.
pub(super) fn lu() -> Vec<Case> {
    let mut cases = golden(RECORDED, "lu");
    for (m, n) in [(1, 1), (5, 5), (6, 3), (3, 6)] {
        cases.extend(for_dtypes(WIDE, |dtype| {
            op_case("lu", &format!("factors_{m}_{n}"), "", &format!("{dtype}[2, {m}, {n}]"))
                .random(Domain::Normal)
                .without_views()
                .accumulated(8 * m.max(n))
                .property(move |x, y| {
                    let (packed, rows) = (&y[0], &y[1]);
                    let k = m.min(n);
                    let lower = Array::from_fn([2, m, k], |i| {
                        if i[1] == i[2] {
                            1.0
                        } else if i[1] > i[2] {
                            packed.at(i)
                        } else {
                            0.0
                        }
                    });
                    let upper = Array::from_fn([2, k, n], |i| if i[1] <= i[2] { packed.at(i) } else { 0.0 });
                    let exchanged = Array::from_fn([2, m, n], |i| {
                        x[0].at(&[i[0], rows.at(&[i[0], i[1]]) as usize, i[2]])
                    });
                    agree("L·U", &product(&lower, &upper), &exchanged, error(dtype))
                })
        }));
    }
    cases.extend([
        op_case("lu", "half", "", "f16[2, 2]").fails_build("C1"),
        op_case("lu", "vector", "", "f32[2]").fails_build("C2"),
    ]);
    cases
}

/// Cases of `qr`.
pub(super) fn qr() -> Vec<Case> {
    let mut cases = golden(RECORDED, "qr");
    for full in [false, true] {
        for (m, n) in [(1, 1), (5, 5), (6, 3), (3, 6)] {
            cases.extend(for_dtypes(WIDE, |dtype| {
                op_case(
                    "qr",
                    &format!("factors_{m}_{n}_{full}"),
                    &format!("full={full}"),
                    &format!("{dtype}[2, {m}, {n}]"),
                )
                .random(Domain::Normal)
                .without_views()
                .within(crate::Tolerance::Within { absolute: 4.0 * error(dtype), relative: 0.0 })
                .property(move |x, y| {
                    let (q, r) = (&y[0], &y[1]);
                    agree("Q·R", &product(q, r), &x[0], error(dtype))?;
                    agree("Qᵀ·Q", &product(&transposed(q), q), &identity(q), error(dtype))?;
                    agree(
                        "R below its diagonal",
                        r,
                        &Array::from_fn(r.dims.clone(), |i| if i[1] > i[2] { 0.0 } else { r.at(i) }),
                        0.0,
                    )
                })
            }));
        }
    }
    cases.extend([
        op_case("qr", "half", "full=false", "f16[2, 2]").fails_build("C1"),
        op_case("qr", "vector", "full=false", "f32[2]").fails_build("C2"),
    ]);
    cases
}

/// Cases of `eigh`.
pub(super) fn eigh() -> Vec<Case> {
    let mut cases = golden(RECORDED, "eigh");
    for n in [1, 2, 5, 8] {
        cases.extend(for_dtypes(WIDE, |dtype| {
            op_case("eigh", &format!("vectors_{n}"), "", &format!("{dtype}[2, {n}, {n}]"))
                .random(Domain::Normal)
                .without_views()
                .within(crate::Tolerance::Within { absolute: 40.0 * error(dtype), relative: 0.0 })
                .property(move |x, y| {
                    let (values, vectors) = (&y[0], &y[1]);
                    let symmetric =
                        Array::from_fn([2, n, n], |i| x[0].at(&[i[0], i[1].max(i[2]), i[1].min(i[2])]));
                    let scaled = Array::from_fn([2, n, n], |i| vectors.at(i) * values.at(&[i[0], i[2]]));
                    agree("A·V", &product(&symmetric, vectors), &scaled, error(dtype))?;
                    agree("Vᵀ·V", &product(&transposed(vectors), vectors), &identity(vectors), error(dtype))?;
                    let ascending = values.data.chunks(n).all(|row| row.windows(2).all(|w| w[0] <= w[1]));
                    if ascending { Ok(()) } else { Err(format!("values do not ascend: {:?}", values.data)) }
                })
        }));
    }
    cases.push(
        op_case("eigh", "diagonal", "", "f64[2, 2]")
            .input(crate::f64s([2, 2], [3.0, f64::NAN, 0.0, 1.0]))
            .values([crate::f64s([2], [1.0, 3.0]), crate::f64s([2, 2], [0.0, 1.0, 1.0, 0.0])]),
    );
    square_cases("eigh", &mut cases);
    cases
}

/// Cases of `svd`.
pub(super) fn svd() -> Vec<Case> {
    let mut cases = Vec::new();
    for full in [false, true] {
        for (m, n) in [(1, 1), (5, 5), (6, 3), (3, 6)] {
            cases.extend(for_dtypes(WIDE, |dtype| {
                op_case(
                    "svd",
                    &format!("factors_{m}_{n}_{full}"),
                    &format!("full={full}"),
                    &format!("{dtype}[2, {m}, {n}]"),
                )
                .random(Domain::Normal)
                .without_views()
                // Vectors of close values turn freely; the equations are what counts.
                .declared_types_only()
                .property(move |x, y| {
                    let (u, s, vt) = (&y[0], &y[1], &y[2]);
                    let k = m.min(n);
                    let sigma = Array::from_fn([2, u.dims[2], vt.dims[1]], |i| {
                        if i[1] == i[2] && i[1] < k { s.at(&[i[0], i[1]]) } else { 0.0 }
                    });
                    agree("U·S·Vᵀ", &product(&product(u, &sigma), vt), &x[0], error(dtype))?;
                    agree("Uᵀ·U", &product(&transposed(u), u), &identity(u), error(dtype))?;
                    agree("Vᵀ·V", &product(vt, &transposed(vt)), &identity(&transposed(vt)), error(dtype))?;
                    let descending = s
                        .data
                        .chunks(k)
                        .all(|row| row.windows(2).all(|w| w[0] >= w[1]) && row.iter().all(|v| *v >= 0.0));
                    if descending { Ok(()) } else { Err(format!("values do not descend to 0: {:?}", s.data)) }
                })
            }));
        }
    }
    cases.extend([
        op_case("svd", "half", "full=false", "f16[2, 2]").fails_build("C1"),
        op_case("svd", "vector", "full=false", "f32[2]").fails_build("C2"),
    ]);
    cases
}
