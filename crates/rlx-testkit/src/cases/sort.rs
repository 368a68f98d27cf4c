//! Cases of sorting: the order, and the greatest.

use crate::Array;
use crate::case::{Case, FLOATS, INTEGERS, Stage, case, f32s, for_dtypes, for_sizes, i32s, i64s, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::DType;

/// Positions in stable order; NaN last when ascending, first when descending.
fn order(row: &[f64], descending: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    // NaN compares as the greatest. A stable sort by the reversed comparison keeps equals in place as well.
    let rank = |i: usize| (row[i].is_nan(), if row[i].is_nan() { 0.0 } else { row[i] });
    order.sort_by(|a, b| {
        let (a, b) = (rank(*a), rank(*b));
        let ascending = a.0.cmp(&b.0).then(a.1.partial_cmp(&b.1).unwrap_or(std::cmp::Ordering::Equal));
        if descending { ascending.reverse() } else { ascending }
    });
    order
}

/// Cases of `sort`.
pub(super) fn sort() -> Vec<Case> {
    let mut cases = Vec::new();
    for descending in [false, true] {
        let name = if descending { "descending" } else { "ascending" };
        for axis in 0..2 {
            cases.extend(for_dtypes(&[FLOATS, INTEGERS, &[DType::Bool]].concat(), |dtype| {
                op_case(
                    "sort",
                    &format!("{name}_axis_{axis}"),
                    &format!("axis={axis}, descending={descending}"),
                    &format!("{dtype}[7, n], i64[7, n]"),
                )
                .sizes([("n", 9)])
                .random_input(Domain::Whole(-3, 3).special())
                .random_input(Domain::Permutation)
                .formulas(move |x| {
                    let picked = |of: &Array| {
                        let keys = x[0].clone();
                        // Each row of positions picks from the row of the other operand.
                        let positions = keys
                            .map_rows(axis, |row| order(row, descending).iter().map(|i| *i as f64).collect());
                        Array::from_fn(of.dims.clone(), |index| {
                            let mut at = index.to_vec();
                            at[axis] = positions.at(index) as usize;
                            of.at(&at)
                        })
                    };
                    vec![picked(&x[0]), picked(&x[1])]
                })
            }));
        }
        cases.extend(for_sizes(32, |n| {
            op_case("sort", &format!("{name}_size"), &format!("axis=0, descending={descending}"), "f32[n]")
                .sizes([("n", n)])
                .random(Domain::Normal)
                .formula(move |x| {
                    x[0].map_rows(0, |row| order(row, descending).iter().map(|i| row[*i]).collect())
                })
        }));
    }
    cases.push({
        // A length just beyond 2^15.
        op_case("sort", "length_32769", "axis=0", "i32[32769]")
            .random(Domain::Permutation)
            .formula(|_| Array::from_fn([32769], |i| i[0] as f64))
            .without_views()
    });
    cases.extend(golden(include_str!("../../golden/reduce.case"), "sort"));
    cases.extend([
        op_case("sort", "complex", "axis=0", "c64[2]").fails_build("C1"),
        op_case("sort", "bad_axis", "axis=1", "f32[2]").fails_build("C2"),
        op_case("sort", "sizes_differ", "axis=0", "f32[2], i64[3]").fails_build("C3"),
        op_case("sort", "nothing", "axis=0", "").fails_build("C0"),
    ]);
    cases
}

/// Cases of `top_k`.
pub(super) fn top_k() -> Vec<Case> {
    let chosen = |row: &[f64], k: usize, smallest: bool, unsorted: bool| {
        let mut best: Vec<usize> = order(row, !smallest).into_iter().take(k).collect();
        if unsorted {
            best.sort_unstable();
        }
        best
    };
    let mut cases = Vec::new();
    for (name, smallest, unsorted) in
        [("greatest", false, false), ("least", true, false), ("greatest_unsorted", false, true)]
    {
        for axis in 0..2 {
            cases.extend(for_dtypes(&[FLOATS, INTEGERS].concat(), |dtype| {
                op_case(
                    "top_k",
                    &format!("{name}_axis_{axis}"),
                    &format!("k=4, axis={axis}, smallest={smallest}, unsorted={unsorted}"),
                    &format!("{dtype}[7, n]"),
                )
                .sizes([("n", 9)])
                .random(Domain::Whole(0, 3).special())
                .formulas(move |x| {
                    vec![
                        x[0].map_rows(axis, |row| {
                            chosen(row, 4, smallest, unsorted).iter().map(|i| row[*i]).collect()
                        }),
                        x[0].map_rows(axis, |row| {
                            chosen(row, 4, smallest, unsorted).iter().map(|i| *i as f64).collect()
                        }),
                    ]
                })
            }));
        }
    }
    cases.extend([
        op_case("top_k", "of_a_count", "k=30, axis=0", "i64[30]")
            .input(i64s([30], (0..30).collect::<Vec<i64>>()))
            .values([
                i64s([30], (0..30).rev().collect::<Vec<i64>>()),
                i64s([30], (0..30).rev().collect::<Vec<i64>>()),
            ]),
        op_case("top_k", "none", "k=0, axis=0", "f32[3]")
            .random(Domain::Normal)
            .values([f32s([0], []), i64s([0], [])]),
        op_case("top_k", "symbolic_k", "k=k, axis=0", "f32[k + 2]")
            .input(f32s([3], [0.0; 3]))
            .fails(Stage::Bind, "`k`"),
        case(
            "top_k",
            "k_of_another_input",
            "(%x: f32[n], %y: f32[k]) { %t = top_k<k=k, axis=0>(%x) return \"v\" = %t.0, \"i\" = %t.1 }",
        )
        .inputs([f32s([4], [1.0, 4.0, 3.0, 2.0]), f32s([2], [0.0; 2])])
        .values([f32s([2], [4.0, 3.0]), i64s([2], [1, 2])]),
        case(
            "top_k",
            "k_of_another_input_too_large",
            "(%x: f32[n], %y: f32[k]) { %t = top_k<k=k, axis=0>(%x) return \"v\" = %t.0 }",
        )
        .inputs([f32s([1], [1.0]), f32s([2], [0.0; 2])])
        .fails(Stage::Run, "C3: k exceeds the axis"),
        op_case("top_k", "k_exceeds_the_axis", "k=4, axis=0", "f32[3]").fails_build("C3"),
        op_case("top_k", "negative_k", "k=-1, axis=0", "f32[3]").fails_build("C3"),
        op_case("top_k", "bad_axis", "k=1, axis=1", "f32[3]").fails_build("C2"),
        op_case("top_k", "complex", "k=1, axis=0", "c64[3]").fails_build("C1"),
    ]);
    cases.extend(golden(include_str!("../../golden/reduce.case"), "top_k"));
    let ties =
        op_case("top_k", "ties_take_lower_indices", "k=2, axis=0", "i32[4]").input(i32s([4], [5, 7, 7, 7]));
    cases.push(ties.values([i32s([2], [7, 7]), i64s([2], [1, 2])]));
    cases
}
