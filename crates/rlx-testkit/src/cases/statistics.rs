//! Cases of the reductions that are composites.

use crate::array::{Array, for_each_index};
use crate::case::{Case, FLOATS, f32s, for_dtypes, for_sizes, i32s, op_case};
use crate::golden::golden;
use crate::random::Domain;

/// What outside references give; recorded by `references/cases/onnx_composites.py`.
const RECORDED: &str = include_str!("../../golden/statistics.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../golden/pytorch/norm.case");

/// `f` of the elements of each group along `axes`, which stay with size 1 or go.
fn groups(x: &Array, axes: &[usize], keep_dims: bool, f: impl Fn(&[f64]) -> f64) -> Array {
    let kept: Vec<usize> = (0..x.dims.len()).map(|i| if axes.contains(&i) { 1 } else { x.dims[i] }).collect();
    let inner: Vec<usize> =
        (0..x.dims.len()).map(|i| if axes.contains(&i) { x.dims[i] } else { 1 }).collect();
    let all = Array::from_fn(kept.clone(), |outer| {
        let mut group = Vec::new();
        for_each_index(&inner, |i| {
            let index: Vec<usize> = outer.iter().zip(i).map(|(o, i)| o + i).collect();
            group.push(x.at(&index));
        });
        f(&group)
    });
    if keep_dims {
        return all;
    }
    let dims: Vec<usize> = (0..x.dims.len()).filter(|i| !axes.contains(i)).map(|i| x.dims[i]).collect();
    all.reshape(dims)
}

fn mean(group: &[f64]) -> f64 {
    group.iter().sum::<f64>() / group.len() as f64
}

fn log_sum_exp(group: &[f64]) -> f64 {
    group.iter().map(|x| x.exp()).sum::<f64>().ln()
}

fn spread(ddof: f64) -> impl Fn(&[f64]) -> f64 + Clone {
    move |group| {
        let mean = mean(group);
        group.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (group.len() as f64 - ddof).max(0.0)
    }
}

/// Cases of the summaries.
pub(super) fn summary() -> Vec<Case> {
    type Summary = (&'static str, fn(&[f64]) -> f64, (f64, f64));
    let summaries: [Summary; 6] = [
        ("reduce_mean", mean, (-3.0, 5.0)),
        ("reduce_l1", |g| g.iter().map(|x| x.abs()).sum(), (-3.0, 5.0)),
        ("reduce_l2", |g| g.iter().map(|x| x * x).sum::<f64>().sqrt(), (-3.0, 5.0)),
        ("reduce_log_sum", |g| g.iter().sum::<f64>().ln(), (0.5, 5.0)),
        ("reduce_log_sum_exp", log_sum_exp, (-3.0, 5.0)),
        ("reduce_sum_square", |g| g.iter().map(|x| x * x).sum(), (-3.0, 5.0)),
    ];
    let mut cases = Vec::new();
    for (op, f, (low, high)) in summaries {
        let axes: [(&str, &[usize], bool); 4] = [
            ("axes=[-1]", &[2], false),
            ("axes=[2, 0], keep_dims=true", &[0, 2], true),
            ("axes=[0, 1, 2]", &[0, 1, 2], false),
            ("axes=[]", &[], false),
        ];
        for (i, (attributes, axes, keep)) in axes.into_iter().enumerate() {
            cases.extend(for_dtypes(FLOATS, |dtype| {
                op_case(op, &format!("axes_{i}"), attributes, &format!("{dtype}[a, 5, b]"))
                    .sizes([("a", 3), ("b", 7)])
                    .random(Domain::Range(low, high))
                    .formula(move |x| groups(&x[0], axes, keep, f))
                    .magnitudes(105, move |x| {
                        // Sums of magnitudes, which a mean divides and a root or logarithm flattens.
                        let size = |g: &[f64]| {
                            f(g).abs().max(f(&g.iter().map(|x| x.abs()).collect::<Vec<_>>()).abs())
                        };
                        vec![groups(&x[0], axes, keep, size).map(|m| m.max(1.0))]
                    })
            }));
        }
        cases.extend(for_sizes(32, |n| {
            op_case(op, "size", "axes=[1]", "f32[2, n]")
                .sizes([("n", n)])
                .random(Domain::Range(low.max(0.0), high))
                .formula(move |x| groups(&x[0], &[1], false, f))
                .accumulated(n + 1)
        }));
        cases.extend([
            op_case(op, "bools", "axes=[0]", "bool[3]").fails_build("C1"),
            op_case(op, "bad_axis", "axes=[3]", "f32[2, 3]").fails_build("C2"),
            op_case(op, "axis_twice", "axes=[1, -1]", "f32[2, 3]").fails_build("C2"),
        ]);
    }
    let infinite = f32::INFINITY;
    cases.extend([
        op_case("reduce_log_sum_exp", "infinities_and_large_values", "axes=[1]", "f32[5, 2]")
            .input(f32s(
                [5, 2],
                [-infinite, -infinite, infinite, 0.0, 1000.0, -1000.0, f32::NAN, 0.0, -2000.0, -infinite],
            ))
            .values([f32s([5], [-infinite, infinite, 1000.0, f32::NAN, -2000.0])]),
        op_case("reduce_mean", "integers_truncate", "axes=[1]", "i32[2, 2]")
            .input(i32s([2, 2], [3, 4, -3, -4]))
            .values([i32s([2], [3, -3])]),
        op_case("reduce_l1", "integers", "axes=[0]", "i32[3]")
            .input(i32s([3], [3, -4, 0]))
            .values([i32s([], [7])]),
        op_case("reduce_sum_square", "integers", "axes=[0]", "i32[3]")
            .input(i32s([3], [3, -4, 0]))
            .values([i32s([], [25])]),
        op_case("reduce_l2", "integers", "axes=[0]", "i32[3]").fails_build("C1"),
        op_case("reduce_mean", "f16_sum_beyond_its_range", "axes=[0]", "f16[4]")
            .input(crate::case::literal(rlx_ir::DType::F16, [4], [60000.0; 4]))
            .values([crate::case::literal(rlx_ir::DType::F16, [], [60000.0])]),
    ]);
    for op in
        ["reduce_mean", "reduce_l1", "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_sum_square"]
    {
        cases.extend(golden(RECORDED, op));
    }
    cases
}

/// Cases of the spreads.
pub(super) fn spread_family() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, root) in [("variance", false), ("standard_deviation", true)] {
        for ddof in [0.0, 1.0, 2.5] {
            let f = spread(ddof);
            let f = move |g: &[f64]| if root { f(g).sqrt() } else { f(g) };
            let by_axis = f.clone();
            cases.extend(for_dtypes(FLOATS, |dtype| {
                let f = by_axis.clone();
                let attributes = format!("axes=[0, -1], ddof={ddof:?}, keep_dims=true");
                op_case(op, &format!("ddof_{}", 10.0 * ddof), &attributes, &format!("{dtype}[a, 5, b]"))
                    .sizes([("a", 3), ("b", 7)])
                    .random(Domain::Range(-1.0, 3.0))
                    .formula(move |x| groups(&x[0], &[0, 2], true, &f))
                    .accumulated(21 + 4)
            }));
            cases.extend(for_sizes(32, |n| {
                let f = f.clone();
                op_case(
                    op,
                    &format!("size_ddof_{}", 10.0 * ddof),
                    &format!("axes=[1], ddof={ddof:?}"),
                    "f32[2, n]",
                )
                .sizes([("n", n)])
                .random(Domain::Normal)
                .formula(move |x| groups(&x[0], &[1], false, &f))
                .accumulated(n + 4)
            }));
        }
        cases.extend([
            op_case(op, "integers", "axes=[0], ddof=0.0", "i32[3]").fails_build("C1"),
            op_case(op, "bad_axis", "axes=[2], ddof=0.0", "f32[3]").fails_build("C2"),
        ]);
        cases.extend(golden(PYTORCH, op));
    }
    cases.push(
        op_case("variance", "small_spread_of_large_numbers", "axes=[0], ddof=0.0", "f32[4]")
            .input(f32s([4], [1000.0, 1001.0, 1000.0, 1001.0]))
            .values([f32s([], [0.25])]),
    );
    cases
}
