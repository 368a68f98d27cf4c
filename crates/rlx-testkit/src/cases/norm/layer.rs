//! Cases of the normalisations over last axes.

use super::{moments, standardised};
use crate::array::Array;
use crate::case::{Case, FLOATS, for_dtypes, for_sizes, literal, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::DType;

/// What outside references give; recorded by `references/cases/onnx_composites.py`.
const RECORDED: &str = include_str!("../../../golden/norm.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../../golden/pytorch/norm.case");

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
pub(in super::super) fn rms_norm() -> Vec<Case> {
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
        op_case("rms_norm", "no_scale", "axis=-1, eps=1e-5", "f32[3, 7]")
            .random(Domain::Normal)
            .formula(|x| rms_norm_rows(1e-5)(&[x[0].clone(), Array::new([7], [1.0; 7])]))
            .accumulated(7 + 4),
        op_case("rms_norm", "scale_of_a_wider_type", "axis=-1, eps=1e-5", "bf16[3, 7], f32[7]")
            .random(Domain::Normal)
            .formula(rms_norm_rows(1e-5))
            .accumulated(7 + 4),
        op_case("rms_norm", "f16_squares_beyond_its_range", "axis=-1, eps=1e-5", "f16[4], f16[4]")
            .inputs([literal(DType::F16, [4], [3000.0; 4]), literal(DType::F16, [4], [2.0; 4])])
            .values([literal(DType::F16, [4], [2.0; 4])]),
        op_case("rms_norm", "integers", "axis=-1, eps=1e-5", "i32[2, 3], i32[3]").fails_build("C1"),
        op_case("rms_norm", "bad_axis", "axis=2, eps=1e-5", "f32[2, 3], f32[3]").fails_build("C2"),
        op_case("rms_norm", "wrong_scale", "axis=-1, eps=1e-5", "f32[2, 3], f32[4]").fails_build("C3"),
    ]);
    cases
}

/// Layer norm over the last `axes` axes as one row: y, mean, 1/deviation. Scale and bias may be absent.
fn layer_norm_rows(axes: usize, eps: f64) -> impl Fn(&[Array]) -> Vec<Array> {
    move |inputs| {
        let dims = &inputs[0].dims;
        let outer = &dims[..dims.len() - axes];
        let n: usize = dims[dims.len() - axes..].iter().product();
        let rows = inputs[0].reshape([outer.iter().product(), n]);
        let one = |of: &dyn Fn(&[f64]) -> f64| {
            let kept: Vec<usize> = outer.iter().copied().chain(vec![1; axes]).collect();
            rows.map_rows(1, |row| vec![of(row)]).reshape(kept)
        };
        let y = rows.map_rows(1, |row| {
            standardised(row, eps)
                .into_iter()
                .enumerate()
                .map(|(i, z)| {
                    z * inputs.get(1).map_or(1.0, |s| s.data[i]) + inputs.get(2).map_or(0.0, |b| b.data[i])
                })
                .collect()
        });
        vec![
            y.reshape(dims.clone()),
            one(&|row| moments(row).0),
            one(&|row| 1.0 / (moments(row).1 + eps).sqrt()),
        ]
    }
}

/// Cases of `layer_norm`.
pub(in super::super) fn layer_norm() -> Vec<Case> {
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case(
            "layer_norm",
            "last_axis",
            "axis=-1, eps=1e-5",
            &format!("{dtype}[b, 7], {dtype}[7], {dtype}[7]"),
        )
        .sizes([("b", 3)])
        .random(Domain::Range(-2.0, 3.0))
        .formula(|x| layer_norm_rows(1, 1e-5)(x).swap_remove(0))
        .accumulated(7 + 6)
    });
    cases.extend(for_dtypes(FLOATS, |dtype| {
        let types = format!("{dtype}[b, 3, 5], {dtype}[3, 5]");
        op_case("layer_norm", "two_axes_with_statistics", "axis=1, eps=0.01, statistics=true", &types)
            .sizes([("b", 2)])
            .random(Domain::Range(-2.0, 3.0))
            .formulas(layer_norm_rows(2, 0.01))
            .accumulated(15 + 6)
    }));
    cases.extend(for_sizes(32, |n| {
        op_case("layer_norm", "size", "axis=1, eps=1e-3", "f32[2, n], f32[n], f32[n]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(|x| layer_norm_rows(1, 1e-3)(x).swap_remove(0))
            .accumulated(n + 6)
    }));
    cases.extend([
        op_case("layer_norm", "no_parameters", "axis=-1, eps=1e-5", "f32[3, 7]")
            .random(Domain::Normal)
            .formula(|x| layer_norm_rows(1, 1e-5)(x).swap_remove(0))
            .accumulated(7 + 6),
        op_case("layer_norm", "no_rows", "axis=-1, eps=1e-5", "f32[0, 7], f32[7]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("layer_norm", "integers", "axis=-1, eps=1e-5", "i32[2, 3]").fails_build("C1"),
        op_case("layer_norm", "bad_axis", "axis=2, eps=1e-5", "f32[2, 3]").fails_build("C2"),
        op_case("layer_norm", "wrong_bias", "axis=-1, eps=1e-5", "f32[2, 3], f32[3], f32[2]")
            .fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "layer_norm"));
    cases.extend(golden(PYTORCH, "layer_norm"));
    cases
}

/// The sum of x, skip and (if `bias`) the last operand; then its norm · scale (+ shift).
fn skip_norm_rows(rms: bool, shift: bool, bias: bool, eps: f64) -> impl Fn(&[Array]) -> Vec<Array> {
    move |x| {
        let dims = x[0].dims.clone();
        let mut sum = x[0].zip(&x[1].broadcast(dims.clone()), |a, b| a + b);
        if bias {
            sum = sum.zip(&x[x.len() - 1].broadcast(dims.clone()), |a, b| a + b);
        }
        let y = sum.map_rows(dims.len() - 1, |row| {
            let n = row.len() as f64;
            let normal = if rms {
                let root = (row.iter().map(|v| v * v).sum::<f64>() / n + eps).sqrt();
                row.iter().map(|v| v / root).collect()
            } else {
                standardised(row, eps)
            };
            let shifted = |i: usize| if shift { x[3].data[i] } else { 0.0 };
            normal.iter().enumerate().map(|(i, z)| z * x[2].data[i] + shifted(i)).collect()
        });
        vec![y, sum]
    }
}

/// Cases of `skip_layer_norm` and `skip_rms_norm`.
pub(in super::super) fn skip_norm() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, rms) in [("skip_layer_norm", false), ("skip_rms_norm", true)] {
        for (shift, bias) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut attributes = "eps=1e-5".to_string();
            let mut operands = "f[b, 3, 7], f[3, 7], f[7]".to_string();
            for (present, name) in [(shift, "shift"), (bias, "bias")] {
                if present {
                    attributes += &format!(", {name}=true");
                    operands += ", f[7]";
                }
            }
            cases.extend(for_dtypes(FLOATS, |dtype| {
                op_case(
                    op,
                    &format!("shift_{shift}_bias_{bias}"),
                    &attributes,
                    &operands.replace("f[", &format!("{dtype}[")),
                )
                .sizes([("b", 2)])
                .random(Domain::Range(-2.0, 3.0))
                .formulas(skip_norm_rows(rms, shift, bias, 1e-5))
                .accumulated(7 + 8)
            }));
        }
        cases.extend([
            op_case(op, "integers", "eps=1e-5", "i32[2, 3], i32[2, 3], i32[3]").fails_build("C1"),
            op_case(op, "scalar", "eps=1e-5", "f32[], f32[], f32[]").fails_build("C2"),
            op_case(op, "skip_of_other_size", "eps=1e-5", "f32[2, 3], f32[3, 3], f32[3]").fails_build("C3"),
            op_case(op, "wrong_scale", "eps=1e-5", "f32[2, 3], f32[2, 3], f32[2]").fails_build("C4"),
            op_case(op, "bias_missing", "eps=1e-5, bias=true", "f32[2, 3], f32[2, 3], f32[3]")
                .fails_build("C0"),
        ]);
    }
    cases
}
