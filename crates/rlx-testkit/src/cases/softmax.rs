//! Cases of softmax and its relatives.

use super::activation::PYTORCH;
use crate::array::Array;
use crate::case::{Case, FLOATS, f32s, for_dtypes, for_sizes, op_case};
use crate::golden::golden;
use crate::random::Domain;

/// e^xᵢ / Σ e^xⱼ of one row.
fn softmax(row: &[f64]) -> Vec<f64> {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - greatest).exp()).sum();
    row.iter().map(|x| (x - greatest).exp() / sum).collect()
}

fn log_softmax(row: &[f64]) -> Vec<f64> {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - greatest).exp()).sum();
    row.iter().map(|x| x - greatest - sum.ln()).collect()
}

fn softmin(row: &[f64]) -> Vec<f64> {
    softmax(&row.iter().map(|x| -x).collect::<Vec<_>>())
}

fn hardmax(row: &[f64]) -> Vec<f64> {
    let mut best = 0;
    for (i, x) in row.iter().enumerate() {
        if *x > row[best] {
            best = i;
        }
    }
    (0..row.len()).map(|i| f64::from(u8::from(i == best))).collect()
}

/// Cases of the family.
pub(super) fn softmax_family() -> Vec<Case> {
    type Row = (&'static str, fn(&[f64]) -> Vec<f64>);
    let functions: [Row; 4] =
        [("softmax", softmax), ("log_softmax", log_softmax), ("softmin", softmin), ("hardmax", hardmax)];
    let mut cases = Vec::new();
    for (op, f) in functions {
        for axis in [0, 1, 2] {
            cases.extend(for_dtypes(FLOATS, |dtype| {
                op_case(op, &format!("axis_{axis}"), &format!("axis={axis}"), &format!("{dtype}[a, 5, b]"))
                    .sizes([("a", 3), ("b", 7)])
                    .random(Domain::Range(-9.0, 9.0))
                    .formula(move |x| x[0].map_rows(axis, f))
                    .accumulated(7)
            }));
        }
        cases.extend(for_sizes(32, |n| {
            op_case(op, "size", "axis=-1", "f32[2, n]")
                .sizes([("n", n.max(usize::from(op == "hardmax")))])
                .random(Domain::Normal)
                .formula(move |x| x[0].map_rows(1, f))
                .accumulated(n.max(1))
        }));
        cases.push(
            op_case(op, "large_values_do_not_overflow", "axis=0", "f32[3]")
                .input(f32s([3], [1e30, -1e30, 1e30]))
                .formula(move |x| x[0].map_rows(0, f))
                .accumulated(3),
        );
        cases.push(op_case(op, "integers", "axis=0", "i32[3]").fails_build("C1"));
        cases.push(op_case(op, "bad_axis", "axis=-2", "f32[3]").fails_build("C2"));
    }
    let nan = f32::NAN;
    let hidden = f32::NEG_INFINITY;
    cases.extend([
        op_case("softmax", "row_of_minus_infinity_gives_nan", "axis=1", "f32[2, 2]")
            .input(f32s([2, 2], [hidden, hidden, hidden, 0.0]))
            .values([f32s([2, 2], [nan, nan, 0.0, 1.0])]),
        op_case("log_softmax", "hidden_element_stays_hidden", "axis=1", "f32[1, 2]")
            .input(f32s([1, 2], [hidden, 3.0]))
            .values([f32s([1, 2], [hidden, 0.0])]),
        op_case("hardmax", "first_of_equals", "axis=0", "f32[4]")
            .input(f32s([4], [1.0, 5.0, 5.0, -1.0]))
            .values([f32s([4], [0.0, 1.0, 0.0, 0.0])]),
        op_case("hardmax", "empty_axis", "axis=0", "f32[0]").fails_build("C3"),
        op_case("softmax", "nothing_in_other_axes", "axis=0", "f32[3, 0]")
            .random(Domain::Normal)
            .formula(|x| Array::new(x[0].dims.clone(), [])),
    ]);
    for op in ["softmax", "log_softmax", "softmin"] {
        cases.extend(golden(PYTORCH, op));
    }
    cases
}
