//! Cases of primitives along axes: reductions, cumulative operations, arg-reductions.

use super::elementwise::{integers, wrapped};
use crate::Array;
use crate::array::for_each_index;
use crate::case::{
    Case, FLOATS, INTEGERS, Stage, bools, case, f32s, for_dtypes, for_sizes, i32s, i64s, literal, op_case,
};
use crate::random::Domain;
use rlx_ir::DType;

/// The elements of each group that is reduced to one, in row-major order of the groups that stay.
fn groups(x: &Array, axes: &[usize]) -> (Vec<usize>, Vec<Vec<f64>>) {
    let kept: Vec<usize> = (0..x.dims.len()).filter(|axis| !axes.contains(axis)).collect();
    let dims: Vec<usize> = kept.iter().map(|axis| x.dims[*axis]).collect();
    let mut groups = vec![Vec::new(); dims.iter().product()];
    let stays = Array::from_fn(dims.clone(), |_| 0.0);
    for_each_index(&x.dims, |index| {
        let at: Vec<usize> = kept.iter().map(|axis| index[*axis]).collect();
        groups[stays.offset(&at)].push(x.at(index));
    });
    (dims, groups)
}

fn reduced(
    axes: &'static [usize],
    keep: bool,
    f: fn(&[f64]) -> f64,
) -> impl Fn(&[Array]) -> Array + Send + Sync + Clone {
    move |x| {
        let (dims, groups) = groups(&x[0], axes);
        let kept =
            (0..x[0].dims.len()).map(|axis| if axes.contains(&axis) { 1 } else { x[0].dims[axis] }).collect();
        Array::new(if keep { kept } else { dims }, groups.iter().map(|g| f(g)).collect::<Vec<_>>())
    }
}

fn sum(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |s, v| s + v)
}

fn product(x: &[f64]) -> f64 {
    x.iter().product()
}

fn greatest(x: &[f64]) -> f64 {
    if x.iter().any(|v| v.is_nan()) { f64::NAN } else { x.iter().copied().fold(f64::NEG_INFINITY, f64::max) }
}

fn least(x: &[f64]) -> f64 {
    -greatest(&x.iter().map(|v| -v).collect::<Vec<_>>())
}

/// Cases of the reductions.
pub(super) fn reduce() -> Vec<Case> {
    let mut cases = Vec::new();
    type Function = (&'static str, fn(&[f64]) -> f64, bool);
    let functions: [Function; 4] = [
        ("reduce_sum", sum, false),
        ("reduce_prod", product, false),
        ("reduce_max", greatest, true),
        ("reduce_min", least, true),
    ];
    for (op, f, exact) in functions {
        let judged = |case: Case, terms: usize| if exact { case } else { case.summed(terms) };
        let layouts: [(&str, &str, &'static [usize], bool, usize); 6] = [
            ("last", "axes=[2]", &[2], false, 5),
            ("first", "axes=[0]", &[0], false, 3),
            ("middle_kept", "axes=[1], keep_dims=true", &[1], true, 4),
            ("outer_two", "axes=[0, 2]", &[0, 2], false, 15),
            ("all", "axes=[0, 1, 2]", &[0, 1, 2], false, 60),
            ("none", "", &[], false, 1),
        ];
        for (name, attributes, axes, keep, terms) in layouts {
            cases.extend(for_dtypes(FLOATS, |dtype| {
                judged(
                    op_case(op, name, attributes, &format!("{dtype}[3, n, 5]"))
                        .sizes([("n", 4)])
                        .random(Domain::AwayFromZero(0.5, 1.5))
                        .formula(reduced(axes, keep, f)),
                    terms,
                )
            }));
        }
        cases.extend(for_dtypes(FLOATS, |dtype| {
            judged(
                op_case(op, "special", "axes=[1]", &format!("{dtype}[20, 6]"))
                    .random(Domain::Range(0.5, 2.0).special())
                    .formula(reduced(&[1], false, f)),
                6,
            )
        }));
        cases.extend(for_sizes(64, |n| {
            judged(
                op_case(op, "size", "axes=[1]", "f32[3, n]")
                    .sizes([("n", n)])
                    .random(Domain::AwayFromZero(0.9, 1.1))
                    .formula(reduced(&[1], false, f)),
                n,
            )
        }));
        cases.push(judged(
            op_case(op, "no_rows", "axes=[1]", "f32[0, 3]").random(Domain::Normal).formula(reduced(
                &[1],
                false,
                f,
            )),
            3,
        ));
        cases.extend([
            op_case(op, "bad_axis", "axes=[2]", "f32[2, 3]").fails_build("C2"),
            op_case(op, "axes_out_of_order", "axes=[1, 0]", "f32[2, 3]").fails_build("C2"),
            op_case(op, "repeated_axis", "axes=[1, 1]", "f32[2, 3]").fails_build("C2"),
            op_case(op, "bool", "axes=[0]", "bool[2]").fails_build("C1"),
            op_case(op, "narrower_accumulator", "axes=[0], accum=f16", "f32[2]").fails_build("C3"),
            op_case(op, "accumulator_of_another_class", "axes=[0], accum=i64", "f32[2]").fails_build("C3"),
        ]);
    }
    cases.extend(integer_reductions());
    cases.extend(accumulation());
    cases.extend(truth());
    cases
}

fn integer_reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    let functions: [(&str, fn(i128, i128) -> i128, fn(i128, i128) -> i128); 4] = [
        // Start and combination; the type's ends are known by its width.
        ("reduce_sum", |_, _| 0, |a, b| a + b),
        ("reduce_prod", |_, _| 1, |a, b| i128::from((a as i64).wrapping_mul(b as i64))),
        ("reduce_max", |least, _| least, i128::max),
        ("reduce_min", |_, greatest| greatest, i128::min),
    ];
    for (op, start, f) in functions {
        for n in [0, 1, 6] {
            cases.extend(for_dtypes(INTEGERS, |dtype| {
                let case = op_case(op, &format!("whole_{n}"), "axes=[1]", &format!("{dtype}[5, n]"))
                    .sizes([("n", n)])
                    .random(Domain::Extreme.special());
                let bits = dtype.bits().unwrap_or(0);
                let signed = dtype.class() == rlx_ir::DTypeClass::Signed;
                let (low, high) = if signed {
                    (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1)
                } else {
                    (0, (1 << bits) - 1)
                };
                let x = integers(&case.inputs[0]);
                let values: Vec<i128> = (0..5)
                    .map(|row| x[row * n..(row + 1) * n].iter().fold(start(low, high), |a, b| f(a, *b)))
                    .collect();
                case.values([wrapped(dtype, &[5], &values)])
            }));
        }
    }
    cases.extend([
        op_case("reduce_max", "i64", "axes=[0]", "i64[3]")
            .input(i64s([3], [1, 2, 3]))
            .values([i64s([], [3])]),
        op_case("reduce_min", "i64", "axes=[0]", "i64[3]")
            .input(i64s([3], [1, 2, 3]))
            .values([i64s([], [1])]),
        op_case("reduce_sum", "wider_accumulator", "axes=[0], accum=i64", "i32[2]")
            .input(i32s([2], [i32::MAX, i32::MAX]))
            .values([i64s([], [4294967294])]),
        op_case("reduce_sum", "own_accumulator_wraps", "axes=[0]", "i32[2]")
            .input(i32s([2], [i32::MAX, i32::MAX]))
            .values([i32s([], [-2])]),
        op_case("reduce_max", "columns_from_an_offset", "axes=[0]", "u8[40, 58]")
            .random(Domain::Extreme)
            .formula(reduced(&[0], false, greatest)),
    ]);
    cases
}

fn accumulation() -> Vec<Case> {
    vec![
        // 2048 + 1 is not an f16; in f32 the ones add up.
        op_case("reduce_sum", "half_accumulates_in_f32", "axes=[0]", "f16[4096]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::scalar(4096.0))
            .without_views(),
        op_case("reduce_sum", "bf16_accumulates_in_f32", "axes=[0]", "bf16[1024]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::scalar(1024.0))
            .without_views(),
        op_case("reduce_sum", "half_to_f32", "axes=[1], accum=f32", "f16[3, 7]")
            .random(Domain::Normal)
            .formula(reduced(&[1], false, sum))
            .summed(7),
        op_case("reduce_sum", "f32_to_f64", "axes=[1], accum=f64", "f32[3, 7]")
            .random(Domain::Normal)
            .formula(reduced(&[1], false, sum))
            .summed(7),
        op_case("reduce_sum", "cancelling", "axes=[0]", "f64[3]")
            .input(literal(DType::F64, [3], [1e16, 1.0, -1e16]))
            .formula(|_| Array::scalar(1.0))
            .summed(3),
        op_case("reduce_sum", "complex", "axes=[0]", "c64[5, 2]")
            .random(Domain::Normal)
            .formula(|x| Array::from_fn([2, 2], |i| (0..5).map(|k| x[0].at(&[k, i[0], i[1]])).sum()))
            .summed(5),
        // Keep and drop mixed over one array.
        case(
            "reduce_sum",
            "keep_and_drop_mixed",
            "(%x: f32[1, 2, 3, 3]) {
            %a = reduce_sum<axes=[3], keep_dims=true>(%x)
            %b = reduce_sum<axes=[1]>(%a)
            %c = reduce_max<axes=[2], keep_dims=true>(%x)
            %d = reduce_sum<axes=[0, 1]>(%c)
            %f = reshape<dims=[1, 3, 1]>(%d)
            %e = add(%b, %f)
            return \"e\" = %e, \"d\" = %d
        }",
        )
        .random(Domain::Range(0.5, 1.0))
        .formulas(|x| {
            let x = &x[0];
            let most = |c: usize, k: usize| (0..3).map(|r| x.at(&[0, c, r, k])).fold(0.0, f64::max);
            let d = |k: usize| most(0, k) + most(1, k);
            let b = |r: usize| (0..2).map(|c| (0..3).map(|k| x.at(&[0, c, r, k])).sum::<f64>()).sum::<f64>();
            vec![Array::from_fn([1, 3, 1], |i| b(i[1]) + d(i[1])), Array::from_fn([1, 3], |i| d(i[1]))]
        })
        .summed(12),
    ]
}

fn truth() -> Vec<Case> {
    let x = bools([3, 2], [true, true, true, false, false, false]);
    vec![
        op_case("reduce_all", "rows", "axes=[1]", "bool[3, 2]")
            .input(x.clone())
            .values([bools([3], [true, false, false])]),
        op_case("reduce_any", "rows", "axes=[1]", "bool[3, 2]")
            .input(x)
            .values([bools([3], [true, true, false])]),
        op_case("reduce_all", "empty", "axes=[1]", "bool[2, 0]")
            .input(bools([2, 0], []))
            .values([bools([2], [true, true])]),
        op_case("reduce_any", "empty", "axes=[1]", "bool[2, 0]")
            .input(bools([2, 0], []))
            .values([bools([2], [false, false])]),
        op_case("reduce_all", "numbers", "axes=[0]", "i32[2]").fails_build("C1"),
        op_case("reduce_any", "numbers", "axes=[0]", "f32[2]").fails_build("C1"),
    ]
}

/// Cases of `sum_to`.
pub(super) fn sum_to() -> Vec<Case> {
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("sum_to", "leading_and_inner", "dims=[2, 1]", &format!("{dtype}[3, 2, 4]"))
            .random(Domain::Normal)
            .formula(|x| {
                Array::from_fn([2, 1], |i| {
                    (0..3)
                        .flat_map(|a| (0..4).map(move |c| (a, c)))
                        .map(|(a, c)| x[0].at(&[a, i[0], c]))
                        .sum()
                })
            })
            .summed(12)
    });
    cases.extend([
        op_case("sum_to", "scalar", "dims=[]", "f32[2, 3]")
            .random(Domain::Normal)
            .formula(|x| Array::scalar(sum(&x[0].data)))
            .summed(6),
        op_case("sum_to", "nothing_to_sum", "dims=[2, 3]", "f32[2, 3]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("sum_to", "empty_gives_zeros", "dims=[1, 2]", "f32[0, 2]")
            .random(Domain::Normal)
            .formula(|_| Array::new([1, 2], [0.0, 0.0])),
        op_case("sum_to", "symbolic_size", "dims=[n]", "f32[3, n]")
            .sizes([("n", 4)])
            .random(Domain::Normal)
            .formula(reduced(&[0], false, sum))
            .summed(3),
        case(
            "sum_to",
            "size_that_turns_out_to_be_one",
            "(%x: f32[bcast(n, m)], %y: f32[n], %z: f32[m]) {
            %s = sum_to<dims=[n]>(%x)
            return \"s\" = %s
        }",
        )
        .inputs([f32s([3], [1.0, 2.0, 3.0]), f32s([1], [0.0]), f32s([3], [0.0; 3])])
        .values([f32s([1], [6.0])]),
        op_case("sum_to", "integers_wrap", "dims=[1]", "u8[3]")
            .input(literal(DType::U8, [3], [200.0, 100.0, 1.0]))
            .values([literal(DType::U8, [1], [45.0])]),
        op_case("sum_to", "does_not_broadcast", "dims=[2]", "f32[3]").fails_build("C2"),
        op_case("sum_to", "rank_grows", "dims=[1, 3]", "f32[3]").fails_build("C2"),
        op_case("sum_to", "bool", "dims=[]", "bool[3]").fails_build("C1"),
    ]);
    cases
}

/// The running combination of a row.
fn running(row: &[f64], start: f64, exclusive: bool, reverse: bool, f: fn(f64, f64) -> f64) -> Vec<f64> {
    let mut row = row.to_vec();
    if reverse {
        row.reverse();
    }
    let mut so_far = start;
    let mut out: Vec<f64> = row
        .iter()
        .map(|x| {
            let before = so_far;
            so_far = f(so_far, *x);
            if exclusive { before } else { so_far }
        })
        .collect();
    if reverse {
        out.reverse();
    }
    out
}

/// Cases of the cumulative operations.
pub(super) fn cumulative() -> Vec<Case> {
    type Function = (&'static str, f64, fn(f64, f64) -> f64, bool);
    let functions: [Function; 4] = [
        ("cum_sum", 0.0, |a, b| a + b, false),
        ("cum_prod", 1.0, |a, b| a * b, false),
        (
            "cum_max",
            f64::NEG_INFINITY,
            |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) },
            true,
        ),
        ("cum_min", f64::INFINITY, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }, true),
    ];
    let mut cases = Vec::new();
    for (op, start, f, exact) in functions {
        let judged = |case: Case, terms: usize| if exact { case } else { case.summed(terms) };
        for axis in 0..2 {
            for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
                let name = format!(
                    "axis_{axis}{}{}",
                    if exclusive { "_exclusive" } else { "" },
                    if reverse { "_reverse" } else { "" }
                );
                let attributes = format!("axis={axis}, exclusive={exclusive}, reverse={reverse}");
                cases.extend(for_dtypes(FLOATS, |dtype| {
                    judged(
                        op_case(op, &name, &attributes, &format!("{dtype}[5, n]"))
                            .sizes([("n", 7)])
                            .random(Domain::AwayFromZero(0.5, 1.5))
                            .formula(move |x| {
                                x[0].map_rows(axis, |row| running(row, start, exclusive, reverse, f))
                            }),
                        7,
                    )
                }));
            }
        }
        cases.extend(for_sizes(64, |n| {
            judged(
                op_case(op, "size", "axis=1", "f32[2, n]")
                    .sizes([("n", n)])
                    .random(Domain::AwayFromZero(0.9, 1.1))
                    .formula(move |x| x[0].map_rows(1, |row| running(row, start, false, false, f))),
                n,
            )
        }));
        cases.push(judged(
            op_case(op, "special", "axis=1", "f32[12, 5]")
                .random(Domain::Normal.special())
                .formula(move |x| x[0].map_rows(1, |row| running(row, start, false, false, f))),
            5,
        ));
        cases.extend([
            op_case(op, "bad_axis", "axis=1", "f32[3]").fails_build("C2"),
            op_case(op, "bool", "axis=0", "bool[3]").fails_build("C1"),
        ]);
    }
    cases.extend(for_dtypes(INTEGERS, |dtype| {
        let case = op_case("cum_sum", "whole", "axis=0", &format!("{dtype}[30]")).random(Domain::Extreme);
        let mut total = 0i128;
        let values: Vec<i128> = integers(&case.inputs[0])
            .iter()
            .map(|x| {
                total += x;
                total
            })
            .collect();
        case.values([wrapped(dtype, &[30], &values)])
    }));
    cases.push(
        case(
            "cum_sum",
            "of_128_true_values",
            "(%x: bool[128]) {
            %w = cast<to=i64>(%x)
            %y = cum_sum<axis=0>(%w)
            return \"y\" = %y
        }",
        )
        .input(bools([128], [true; 128]))
        .formula(|_| Array::from_fn([128], |i| i[0] as f64 + 1.0)),
    );
    cases.push(
        op_case("cum_max", "exclusive_integers_begin_at_the_least", "axis=0, exclusive=true", "i8[3]")
            .input(literal(DType::I8, [3], [-5.0, 3.0, 1.0]))
            .values([literal(DType::I8, [3], [-128.0, -5.0, 3.0])]),
    );
    cases
}

/// Cases of the arg-reductions.
pub(super) fn arg_reduce() -> Vec<Case> {
    let index = |row: &[f64], greatest: bool, last: bool| {
        let better = |a: f64, b: f64| if greatest { a > b } else { a < b };
        let mut best = 0;
        for (i, x) in row.iter().enumerate() {
            let (x_nan, best_nan) = (x.is_nan(), row[best].is_nan());
            let equal = (x_nan && best_nan) || *x == row[best];
            if (!best_nan && (x_nan || better(*x, row[best]))) || (equal && last) {
                best = i;
            }
        }
        vec![best as f64]
    };
    let mut cases = Vec::new();
    for (op, greatest) in [("arg_max", true), ("arg_min", false)] {
        for (name, last) in [("first", false), ("last", true)] {
            for axis in 0..2 {
                cases.extend(for_dtypes(
                    &[FLOATS, INTEGERS, &[DType::Bool, DType::F8E5M2]].concat(),
                    |dtype| {
                        op_case(
                            op,
                            &format!("{name}_axis_{axis}"),
                            &format!("axis={axis}, keep_dims=true, last={last}"),
                            &format!("{dtype}[9, n]"),
                        )
                        .sizes([("n", 6)])
                        .random(Domain::Whole(0, 2).special())
                        .formula(move |x| x[0].map_rows(axis, |row| index(row, greatest, last)))
                    },
                ));
            }
        }
        cases.extend([
            op_case(op, "dropped_axis", "axis=1", "f32[4, 5]")
                .random(Domain::Normal)
                .formula(move |x| x[0].map_rows(1, |row| index(row, greatest, false)).reshape([4])),
            op_case(op, "empty", "axis=0", "f32[0, 2]").fails_build("C3"),
            op_case(op, "symbolic_empty", "axis=0", "f32[n, 2]")
                .sizes([("n", 0)])
                .random(Domain::Normal)
                .fails(Stage::Run, "C3: the axis is empty"),
            op_case(op, "bad_axis", "axis=2", "f32[2, 2]").fails_build("C2"),
            op_case(op, "complex", "axis=0", "c64[2]").fails_build("C1"),
        ]);
    }
    cases.push(
        op_case("arg_max", "i32", "axis=0", "i32[3]").input(i32s([3], [14, 13, 11])).values([i64s([], [0])]),
    );
    cases.push(
        op_case("arg_max", "rows", "axis=1", "i32[3, 2]")
            .input(i32s([3, 2], [0, 1, 2, 1, 1, 0]))
            .values([i64s([3], [1, 0, 0])]),
    );
    cases.push(
        op_case("arg_max", "beyond_53_bits", "axis=0", "i64[2]")
            .input(i64s([2], [1 << 60, (1 << 60) + 1]))
            .values([i64s([], [1])]),
    );
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_the_axes_that_stay() {
        let x = Array::new([2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(groups(&x, &[0]), (vec![3], vec![vec![1.0, 4.0], vec![2.0, 5.0], vec![3.0, 6.0]]));
    }
}
