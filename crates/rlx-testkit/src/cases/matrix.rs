//! Cases of matrices built, cut and combined.

use crate::array::Array;
use crate::case::{Case, FLOATS, f32s, for_dtypes, i32s, i64s, literal, op_case};
use crate::random::Domain;
use rlx_ir::DType;

/// Cases of `eye`.
pub(super) fn eye() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::BF16, DType::I8, DType::Bool] {
        for diagonal in [-2i64, 0, 1, 9] {
            let attributes = format!("dtype={dtype}, rows=3, columns=5, diagonal={diagonal}");
            let expected =
                Array::from_fn([3, 5], |at| f64::from(u8::from(at[1] as i64 - at[0] as i64 == diagonal)));
            let name = format!("{dtype}_{}", diagonal.rem_euclid(100));
            cases.push(op_case("eye", &name, &attributes, "").values([expected.to_literal(dtype)]));
        }
    }
    cases.extend([
        op_case("eye", "no_rows", "dtype=f32, rows=0, columns=3, diagonal=0", "").values([f32s([0, 3], [])]),
        op_case("eye", "text", "dtype=string, rows=2, columns=2, diagonal=0", "").fails_build("C1"),
        op_case("eye", "negative_rows", "dtype=f32, rows=-1, columns=2, diagonal=0", "").fails_build("C2"),
        op_case("eye", "operand", "dtype=f32, rows=1, columns=2, diagonal=0", "f32[]").fails_build("C0"),
    ]);
    cases
}

/// Cases of `tril` and `triu`.
pub(super) fn triangle() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, upper) in [("tril", false), ("triu", true)] {
        for diagonal in [-9i64, -1, 0, 2, 9] {
            let name = format!("diagonal_{}", diagonal.rem_euclid(100));
            cases.extend(for_dtypes(&[DType::F32, DType::BF16, DType::I64, DType::Bool], |dtype| {
                op_case(op, &name, &format!("diagonal={diagonal}"), &format!("{dtype}[b, 4, n]"))
                    .sizes([("b", 2), ("n", 5)])
                    .random(Domain::Range(1.0, 9.0))
                    .formula(move |x| {
                        Array::from_fn(x[0].dims.clone(), |at| {
                            let offset = at[2] as i64 - at[1] as i64;
                            let inside = if upper { offset >= diagonal } else { offset <= diagonal };
                            if inside { x[0].at(at) } else { 0.0 }
                        })
                    })
            }));
        }
        cases.extend([
            op_case(op, "symbolic_diagonal", "diagonal=n - 2", "f32[n, n]")
                .sizes([("n", 3)])
                .random(Domain::Constant(1.0))
                .formula(move |x| {
                    Array::from_fn(x[0].dims.clone(), |at| {
                        let offset = at[1] as i64 - at[0] as i64;
                        f64::from(u8::from(if upper { offset >= 1 } else { offset <= 1 }))
                    })
                }),
            op_case(op, "nan_outside_goes", "diagonal=0", "f32[2, 2]")
                .input(f32s([2, 2], [1.0, f32::NAN, f32::NAN, 1.0]))
                .values([if upper {
                    f32s([2, 2], [1.0, f32::NAN, 0.0, 1.0])
                } else {
                    f32s([2, 2], [1.0, 0.0, f32::NAN, 1.0])
                }]),
            op_case(op, "empty", "diagonal=0", "f32[0, 3]").random(Domain::Normal).values([f32s([0, 3], [])]),
            op_case(op, "block_format", "diagonal=0", "q8_0[2, 32]").fails_build("C1"),
            op_case(op, "vector", "diagonal=0", "f32[3]").fails_build("C2"),
        ]);
    }
    cases
}

/// Cases of `diagonal`.
pub(super) fn diagonal() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, (offset, rows, columns)) in
        [(0i64, 0usize, 1usize), (1, 1, 2), (-2, 2, 0), (2, 2, 0), (-1, 0, 2)].into_iter().enumerate()
    {
        let attributes = format!("offset={offset}, axis1={rows}, axis2={}", columns as i64 - 3);
        cases.extend(for_dtypes(&[DType::F32, DType::F16, DType::I64, DType::Bool], |dtype| {
            op_case("diagonal", &format!("axes_{i}"), &attributes, &format!("{dtype}[a, 4, 5]"))
                .sizes([("a", 3)])
                .random(Domain::Range(-9.0, 9.0))
                .formula(move |x| {
                    let dims = &x[0].dims;
                    let (down, right) = ((-offset).max(0) as usize, offset.max(0) as usize);
                    let length = (dims[rows] - down).min(dims[columns] - right);
                    let other = 3 - rows - columns;
                    Array::from_fn([dims[other], length], |at| {
                        let mut index = [0; 3];
                        index[other] = at[0];
                        index[rows] = at[1] + down;
                        index[columns] = at[1] + right;
                        x[0].at(&index)
                    })
                })
        }));
    }
    cases.extend([
        op_case("diagonal", "at_the_edge_is_empty", "offset=3, axis1=0, axis2=1", "f32[2, 3]")
            .random(Domain::Normal)
            .values([f32s([0], [])]),
        op_case("diagonal", "vector", "offset=0, axis1=0, axis2=1", "f32[3]").fails_build("C1"),
        op_case("diagonal", "equal_axes", "offset=0, axis1=0, axis2=-2", "f32[3, 3]").fails_build("C2"),
        op_case("diagonal", "bad_axis", "offset=0, axis1=0, axis2=2", "f32[3, 3]").fails_build("C2"),
        op_case("diagonal", "outside", "offset=4, axis1=0, axis2=1", "f32[2, 3]").fails_build("C3"),
    ]);
    cases
}

/// Cases of `diagonal_matrix`.
pub(super) fn diagonal_matrix() -> Vec<Case> {
    let mut cases = Vec::new();
    for offset in [0i64, 2, -1] {
        cases.extend(for_dtypes(&[DType::F32, DType::F16, DType::I64, DType::Bool], |dtype| {
            let name = format!("offset_{}", offset.rem_euclid(100));
            op_case("diagonal_matrix", &name, &format!("offset={offset}"), &format!("{dtype}[b, n]"))
                .sizes([("b", 2), ("n", 3)])
                .random(Domain::Range(-9.0, 9.0))
                .formula(move |x| {
                    let n = 3 + offset.unsigned_abs() as usize;
                    Array::from_fn([2, n, n], |at| {
                        let (row, column) = (at[1] as i64, at[2] as i64);
                        let element = row - (-offset).max(0);
                        if column - row == offset && (0..3).contains(&element) {
                            x[0].at(&[at[0], element as usize])
                        } else {
                            0.0
                        }
                    })
                })
        }));
    }
    cases.extend([
        op_case("diagonal_matrix", "nothing", "offset=0", "f32[0]")
            .random(Domain::Normal)
            .values([f32s([0, 0], [])]),
        op_case("diagonal_matrix", "infinity_stays_on_the_diagonal", "offset=0", "f32[2]")
            .input(f32s([2], [f32::INFINITY, 1.0]))
            .values([f32s([2, 2], [f32::INFINITY, 0.0, 0.0, 1.0])]),
        op_case("diagonal_matrix", "block_format", "offset=0", "q8_0[32]").fails_build("C1"),
        op_case("diagonal_matrix", "scalar", "offset=0", "f32[]").fails_build("C2"),
    ]);
    cases
}

/// Cases of `trace`.
pub(super) fn trace() -> Vec<Case> {
    let formula = |x: &[Array]| {
        let (batch, rows, columns) = (x[0].dims[0], x[0].dims[1], x[0].dims[2]);
        Array::from_fn([batch], |b| (0..rows.min(columns)).map(|i| x[0].at(&[b[0], i, i])).sum())
    };
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("trace", "batch", "", &format!("{dtype}[b, m, 5]"))
            .sizes([("b", 2), ("m", 7)])
            .random(Domain::Normal)
            .formula(formula)
            .summed(5)
    });
    cases.extend([
        op_case("trace", "integers", "", "i64[2, 2]")
            .input(i64s([2, 2], [1, 2, 3, 4]))
            .values([i64s([], [5])]),
        op_case("trace", "empty", "", "f32[0, 0]").random(Domain::Normal).values([f32s([], [0.0])]),
        op_case("trace", "bools", "", "bool[2, 2]").fails_build("C1"),
        op_case("trace", "vector", "", "f32[2]").fails_build("C2"),
    ]);
    cases
}

/// Cases of `cross`.
pub(super) fn cross() -> Vec<Case> {
    let mut cases = for_dtypes(&[DType::F32, DType::F64, DType::I64], |dtype| {
        op_case("cross", "first_axis", "axis=0", &format!("{dtype}[k, n], {dtype}[k, n]"))
            .sizes([("k", 3), ("n", 5)])
            .random(Domain::Whole(-9, 9))
            .formula(|x| {
                Array::from_fn([3, 5], |at| {
                    let (i, j, n) = ((at[0] + 1) % 3, (at[0] + 2) % 3, at[1]);
                    x[0].at(&[i, n]) * x[1].at(&[j, n]) - x[0].at(&[j, n]) * x[1].at(&[i, n])
                })
            })
    });
    cases.extend([
        op_case("cross", "unit_vectors", "axis=-1", "f16[2, 3], f16[2, 3]")
            .inputs([
                literal(DType::F16, [2, 3], [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
                literal(DType::F16, [2, 3], [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
            ])
            .values([literal(DType::F16, [2, 3], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])]),
        op_case("cross", "no_vectors", "axis=0", "f32[3, 0], f32[3, 0]")
            .random(Domain::Normal)
            .values([f32s([3, 0], [])]),
        op_case("cross", "bools", "axis=0", "bool[3], bool[3]").fails_build("C1"),
        op_case("cross", "mixed_types", "axis=0", "f32[3], f64[3]").fails_build("C2"),
        op_case("cross", "no_such_axis", "axis=1", "f32[3], f32[3]").fails_build("C3"),
        op_case("cross", "four_components", "axis=0", "f32[4], f32[4]").fails_build("C4"),
    ]);
    cases
}

/// Cases of `outer`.
pub(super) fn outer() -> Vec<Case> {
    let mut cases =
        for_dtypes(&[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8], |dtype| {
            op_case("outer", "batch", "", &format!("{dtype}[b, m], {dtype}[b, n]"))
                .sizes([("b", 2), ("m", 3), ("n", 5)])
                .random(Domain::Whole(0, 9))
                .formula(|x| {
                    Array::from_fn([2, 3, 5], |at| x[0].at(&[at[0], at[1]]) * x[1].at(&[at[0], at[2]]))
                })
        });
    cases.extend([
        op_case("outer", "vectors", "", "i32[2], i32[3]")
            .inputs([i32s([2], [1, 2]), i32s([3], [3, 4, 5])])
            .values([i32s([2, 3], [3, 4, 5, 6, 8, 10])]),
        op_case("outer", "complex", "", "c64[1], c64[1]")
            .inputs([literal(DType::C64, [1, 2], [0.0, 1.0]), literal(DType::C64, [1, 2], [0.0, 1.0])])
            .values([literal(DType::C64, [1, 1, 2], [-1.0, 0.0])]),
        op_case("outer", "nothing", "", "f32[0], f32[3]").random(Domain::Normal).values([f32s([0, 3], [])]),
        op_case("outer", "bools", "", "bool[2], bool[2]").fails_build("C1"),
        op_case("outer", "mixed_types", "", "f32[2], f64[2]").fails_build("C2"),
        op_case("outer", "scalar", "", "f32[], f32[]").fails_build("C3"),
        op_case("outer", "other_batch", "", "f32[2, 3], f32[3, 3]").fails_build("C3"),
    ]);
    cases
}
