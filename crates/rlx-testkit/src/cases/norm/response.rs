//! Cases of the normalisations by size.

use super::{moments, standardised};
use crate::array::Array;
use crate::case::{Case, FLOATS, f32s, for_dtypes, for_sizes, op_case};
use crate::golden::golden;
use crate::random::Domain;

/// What outside references give; recorded by `references/cases/onnx_composites.py`.
const RECORDED: &str = include_str!("../../../golden/norm.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../../golden/pytorch/norm.case");

fn lrn_by_loops(size: usize, alpha: f64, beta: f64, bias: f64) -> impl Fn(&[Array]) -> Array {
    move |x| {
        Array::from_fn(x[0].dims.clone(), |index| {
            let channel = index[1] as isize;
            let first = channel - (size as isize - 1) / 2;
            let sum: f64 = (first..first + size as isize)
                .filter(|c| (0..x[0].dims[1] as isize).contains(c))
                .map(|c| {
                    let mut at = index.to_vec();
                    at[1] = c as usize;
                    x[0].at(&at).powi(2)
                })
                .sum();
            x[0].at(index) / (bias + alpha / size as f64 * sum).powf(beta)
        })
    }
}

/// Cases of `lrn`.
pub(in super::super) fn lrn() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [1, 2, 3, 5, 9] {
        let attributes = format!("size={size}, alpha=0.5, beta=0.75, bias=1.5");
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case("lrn", &format!("size_{size}"), &attributes, &format!("{dtype}[2, c, 3]"))
                .sizes([("c", 7)])
                .random(Domain::Normal)
                .formula(lrn_by_loops(size, 0.5, 0.75, 1.5))
                .accumulated(size + 6)
        }));
    }
    cases.extend([
        op_case("lrn", "no_channels", "size=3, alpha=0.5, beta=0.75, bias=1.0", "f32[2, 0, 3]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("lrn", "integers", "size=3, alpha=0.5, beta=0.75, bias=1.0", "i32[2, 3]").fails_build("C1"),
        op_case("lrn", "vector", "size=3, alpha=0.5, beta=0.75, bias=1.0", "f32[3]").fails_build("C2"),
        op_case("lrn", "no_size", "size=0, alpha=0.5, beta=0.75, bias=1.0", "f32[2, 3]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "lrn"));
    cases.extend(golden(PYTORCH, "lrn"));
    cases
}

fn lp_rows(p: f64, eps: f64) -> impl Fn(&[f64]) -> Vec<f64> {
    move |row| {
        let norm = if p.is_infinite() {
            row.iter().fold(0.0, |m: f64, x| m.max(x.abs()))
        } else {
            row.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p)
        };
        let below = norm.max(eps);
        row.iter().map(|x| if below == 0.0 { 0.0 } else { x / below }).collect()
    }
}

/// Cases of `lp_normalize`.
pub(in super::super) fn lp_normalize() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, p) in [("1", 1.0), ("2", 2.0), ("3", 3.0), ("infinite", f64::INFINITY)] {
        let text = if p.is_infinite() { "inf".to_string() } else { format!("{p:?}") };
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case(
                "lp_normalize",
                &format!("p_{name}"),
                &format!("axes=[1], p={text}, eps=0.0"),
                &format!("{dtype}[a, 7, 3]"),
            )
            .sizes([("a", 2)])
            .random(Domain::Normal)
            .formula(move |x| x[0].map_rows(1, lp_rows(p, 0.0)))
            .accumulated(7 + 4)
        }));
    }
    cases.extend(for_sizes(32, |n| {
        op_case("lp_normalize", "size", "axes=[-1], p=2.0, eps=1e-12", "f32[2, n]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(|x| x[0].map_rows(1, lp_rows(2.0, 1e-12)))
            .accumulated(n + 4)
    }));
    cases.extend([
        op_case("lp_normalize", "two_axes", "axes=[2, 1], p=2.0, eps=0.0", "f32[2, 3, 5]")
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([2, 15]).map_rows(1, lp_rows(2.0, 0.0)).reshape([2, 3, 5]))
            .accumulated(15 + 4),
        op_case("lp_normalize", "zero_vector_stays_zero", "axes=[0], p=2.0, eps=0.0", "f32[2]")
            .input(f32s([2], [0.0, 0.0]))
            .values([f32s([2], [0.0, 0.0])]),
        op_case("lp_normalize", "least_denominator", "axes=[0], p=1.0, eps=8.0", "f32[2]")
            .input(f32s([2], [1.0, -3.0]))
            .values([f32s([2], [0.125, -0.375])]),
        op_case("lp_normalize", "nan_spreads", "axes=[0], p=2.0, eps=1.0", "f32[2]")
            .input(f32s([2], [1.0, f32::NAN]))
            .values([f32s([2], [f32::NAN, f32::NAN])]),
        op_case("lp_normalize", "integers", "axes=[0], p=2.0, eps=0.0", "i32[2]").fails_build("C1"),
        op_case("lp_normalize", "axis_twice", "axes=[0, -1], p=2.0, eps=0.0", "f32[2]").fails_build("C2"),
        op_case("lp_normalize", "p_0", "axes=[0], p=0.0, eps=0.0", "f32[2]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "lp_normalize"));
    cases.extend(golden(PYTORCH, "lp_normalize"));
    cases
}

/// Cases of `mean_variance_norm`.
pub(in super::super) fn mean_variance_norm() -> Vec<Case> {
    let rows = |row: &[f64]| {
        let (mean, variance) = moments(row);
        row.iter().map(|x| (x - mean) / (variance.sqrt() + 1e-9)).collect()
    };
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("mean_variance_norm", "last_axis", "axes=[-1], eps=1e-9", &format!("{dtype}[a, 7]"))
            .sizes([("a", 3)])
            .random(Domain::Range(-1.0, 2.0))
            .formula(move |x| x[0].map_rows(1, rows))
            .accumulated(7 + 6)
    });
    cases.extend([
        op_case("mean_variance_norm", "all_but_channels", "axes=[0, 2], eps=1e-9", "f32[2, 3, 5]")
            .random(Domain::Range(-1.0, 2.0))
            .formula(|x| {
                // Without eps: it is far below the deviation.
                let first =
                    x[0].transpose(&[1, 0, 2]).reshape([3, 10]).map_rows(1, |row| standardised(row, 0.0));
                first.reshape([3, 2, 5]).transpose(&[1, 0, 2])
            })
            .accumulated(10 + 6),
        op_case("mean_variance_norm", "equal_numbers_give_zeros", "axes=[0], eps=1e-9", "f32[3]")
            .input(f32s([3], [2.0; 3]))
            .values([f32s([3], [0.0; 3])]),
        op_case("mean_variance_norm", "integers", "axes=[0], eps=1e-9", "i32[2]").fails_build("C1"),
        op_case("mean_variance_norm", "bad_axis", "axes=[1], eps=1e-9", "f32[2]").fails_build("C2"),
    ]);
    cases.extend(golden(RECORDED, "mean_variance_norm"));
    cases
}
