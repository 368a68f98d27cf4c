//! Cases of the normalisations.

use crate::array::Array;
use crate::case::{Case, FLOATS, for_dtypes, for_sizes, op_case};
use crate::random::Domain;

/// x / √(mean(x²) + eps) · scale along the last axis, written by rows.
fn rms_norm_rows(eps: f64) -> impl Fn(&[Array]) -> Array {
    move |inputs| {
        let scale = &inputs[1].data;
        inputs[0].map_rows(inputs[0].dims.len() - 1, |row| {
            let root = (row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64 + eps).sqrt();
            row.iter().zip(scale).map(|(x, s)| x / root * s).collect()
        })
    }
}

/// Cases of `rms_norm`.
pub(super) fn rms_norm() -> Vec<Case> {
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("rms_norm", "last_axis", "axis=-1, eps=1e-5", &format!("{dtype}[b, 7], {dtype}[7]"))
            .sizes([("b", 3)])
            .random(Domain::Range(-2.0, 2.0))
            .formula(rms_norm_rows(1e-5))
            .accumulated(7 + 4)
    });
    cases.extend(for_sizes(32, |n| {
        op_case("rms_norm", "size", "axis=1, eps=1e-6", "f32[2, n], f32[n]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(rms_norm_rows(1e-6))
            .accumulated(n + 4)
    }));
    cases.push(
        op_case("rms_norm", "two_axes", "axis=1, eps=0.001", "f32[2, 3, 5], f32[3, 5]")
            .random(Domain::Normal)
            .formula(|inputs| {
                let flat = [inputs[0].reshape([2, 15]), inputs[1].reshape([15])];
                rms_norm_rows(0.001)(&flat).reshape([2, 3, 5])
            })
            .accumulated(15 + 4),
    );
    cases.extend([
        op_case("rms_norm", "integers", "axis=-1, eps=1e-5", "i32[2, 3], i32[3]").fails_build("C1"),
        op_case("rms_norm", "bad_axis", "axis=2, eps=1e-5", "f32[2, 3], f32[3]").fails_build("C2"),
        op_case("rms_norm", "wrong_scale", "axis=-1, eps=1e-5", "f32[2, 3], f32[4]").fails_build("C3"),
    ]);
    cases
}
