//! Cases of the normalisations by channel.

use super::{moments, standardised};
use crate::array::Array;
use crate::case::{Case, FLOATS, for_dtypes, for_sizes, op_case};
use crate::golden::golden;
use crate::random::Domain;

/// What outside references give; recorded by `references/cases/onnx_composites.py`.
const RECORDED: &str = include_str!("../../../golden/norm.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../../golden/pytorch/norm.case");

/// Each of `groups` groups of channels of each sample standardised, then scaled and shifted by channel.
fn by_group(groups: Option<usize>, eps: f64) -> impl Fn(&[Array]) -> Array {
    move |x| {
        let dims = x[0].dims.clone();
        let (n, c) = (dims[0], dims[1]);
        let space: usize = dims[2..].iter().product();
        let groups = groups.unwrap_or(c);
        let rows = x[0].reshape([n * groups, (c * space).checked_div(groups).unwrap_or(0)]);
        let normal = rows.map_rows(1, |row| standardised(row, eps));
        let mut data = normal.data;
        for (i, value) in data.iter_mut().enumerate() {
            let channel = i / space % c;
            *value *= x.get(1).map_or(1.0, |s| s.data[channel]);
            *value += x.get(2).map_or(0.0, |b| b.data[channel]);
        }
        Array::new(dims, data)
    }
}

/// Cases of `group_norm`.
pub(in super::super) fn group_norm() -> Vec<Case> {
    let mut cases = Vec::new();
    for groups in [1, 2, 6] {
        let attributes = format!("groups={groups}, eps=1e-5");
        cases.extend(for_dtypes(FLOATS, |dtype| {
            let types = format!("{dtype}[n, 6, h, 5], {dtype}[6], {dtype}[6]");
            op_case("group_norm", &format!("groups_{groups}"), &attributes, &types)
                .sizes([("n", 2), ("h", 3)])
                .random(Domain::Range(-2.0, 3.0))
                .formula(by_group(Some(groups), 1e-5))
                .accumulated(90 / groups + 6)
        }));
    }
    cases.extend([
        op_case("group_norm", "symbolic_channels", "groups=2, eps=1e-5", "f32[n, c, 5], f32[c]")
            .sizes([("n", 2), ("c", 4)])
            .random(Domain::Normal)
            .formula(by_group(Some(2), 1e-5))
            .accumulated(10 + 6),
        op_case("group_norm", "no_space", "groups=2, eps=1e-5", "f32[3, 4]")
            .random(Domain::Normal)
            .formula(by_group(Some(2), 1e-5))
            .accumulated(2 + 6),
        op_case("group_norm", "no_samples", "groups=2, eps=1e-5", "f32[0, 4, 3]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("group_norm", "integers", "groups=2, eps=1e-5", "i32[2, 4]").fails_build("C1"),
        op_case("group_norm", "vector", "groups=2, eps=1e-5", "f32[4]").fails_build("C2"),
        op_case("group_norm", "wrong_scale", "groups=2, eps=1e-5", "f32[2, 4, 3], f32[2]").fails_build("C3"),
        op_case("group_norm", "indivisible", "groups=3, eps=1e-5", "f32[2, 4, 3]").fails_build("C4"),
        op_case("group_norm", "no_groups", "groups=0, eps=1e-5", "f32[2, 4, 3]").fails_build("C4"),
    ]);
    cases.extend(golden(RECORDED, "group_norm"));
    cases.extend(golden(PYTORCH, "group_norm"));
    cases
}

/// Cases of `instance_norm`.
pub(in super::super) fn instance_norm() -> Vec<Case> {
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("instance_norm", "image", "eps=1e-5", &format!("{dtype}[n, c, 3, 5], {dtype}[c], {dtype}[c]"))
            .sizes([("n", 2), ("c", 3)])
            .random(Domain::Range(-2.0, 3.0))
            .formula(by_group(None, 1e-5))
            .accumulated(15 + 6)
    });
    cases.extend(for_sizes(32, |n| {
        op_case("instance_norm", "size", "eps=0.01", "f32[2, 3, n]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(by_group(None, 0.01))
            .accumulated(n + 6)
    }));
    cases.extend([
        op_case("instance_norm", "integers", "eps=1e-5", "i32[2, 4, 3]").fails_build("C1"),
        op_case("instance_norm", "vector", "eps=1e-5", "f32[4]").fails_build("C2"),
        op_case("instance_norm", "wrong_bias", "eps=1e-5", "f32[2, 4, 3], f32[4], f32[3]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "instance_norm"));
    cases.extend(golden(PYTORCH, "instance_norm"));
    cases
}

/// The numbers of each channel along `axis`.
fn channels(x: &Array, axis: usize) -> Vec<Vec<f64>> {
    let mut perm: Vec<usize> = (0..x.dims.len()).filter(|i| *i != axis).collect();
    perm.insert(0, axis);
    let first = x.transpose(&perm);
    let n = first.data.len() / first.dims[0].max(1);
    (0..first.dims[0]).map(|c| first.data[c * n..(c + 1) * n].to_vec()).collect()
}

/// Each element normalised by its channel's statistics.
fn by_channel(x: &[Array], axis: usize, eps: f64, mean: &[f64], variance: &[f64]) -> Array {
    Array::from_fn(x[0].dims.clone(), |index| {
        let c = index[axis];
        (x[0].at(index) - mean[c]) / (variance[c] + eps).sqrt() * x[1].data[c] + x[2].data[c]
    })
}

/// Cases of `batch_norm`.
pub(in super::super) fn batch_norm() -> Vec<Case> {
    let mut cases = Vec::new();
    for (axis, dims) in [(1, "n, c, 5"), (-1, "n, 2, c"), (0, "c")] {
        let attributes = format!("axis={axis}, eps=0.001");
        cases.extend(for_dtypes(FLOATS, |dtype| {
            let vector = format!("{dtype}[c]");
            let types = format!("{dtype}[{dims}], {vector}, {vector}, {vector}, {vector}");
            op_case("batch_norm", &format!("axis_{axis}"), &attributes, &types)
                .sizes([("n", 3), ("c", 4)])
                .random(Domain::Range(0.25, 2.0))
                .formula(move |x| {
                    let axis = if axis < 0 { 2 } else { axis as usize };
                    by_channel(x, axis, 0.001, &x[3].data, &x[4].data)
                })
                .accumulated(6)
        }));
    }
    cases.extend([
        op_case(
            "batch_norm",
            "mixed_precision",
            "axis=1, eps=0.001",
            "f16[2, 3], f16[3], f16[3], f32[3], f32[3]",
        )
        .random(Domain::Range(0.25, 2.0))
        .formula(|x| by_channel(x, 1, 0.001, &x[3].data, &x[4].data))
        .accumulated(6),
        op_case("batch_norm", "integers", "axis=1, eps=0.1", "i32[2, 3], i32[3], i32[3], i32[3], i32[3]")
            .fails_build("C1"),
        op_case("batch_norm", "bad_axis", "axis=2, eps=0.1", "f32[2, 3], f32[3], f32[3], f32[3], f32[3]")
            .fails_build("C2"),
        op_case("batch_norm", "wrong_mean", "axis=1, eps=0.1", "f32[2, 3], f32[3], f32[3], f32[2], f32[3]")
            .fails_build("C3"),
        op_case("batch_norm", "no_variance", "axis=1, eps=0.1", "f32[2, 3], f32[3], f32[3], f32[3]")
            .fails_build("C0"),
    ]);
    cases.extend(golden(RECORDED, "batch_norm"));
    cases.extend(golden(PYTORCH, "batch_norm"));
    cases
}

/// Cases of `batch_norm_training`.
pub(in super::super) fn batch_norm_training() -> Vec<Case> {
    let mut cases = Vec::new();
    for unbiased in [false, true] {
        let attributes = format!("axis=1, eps=0.001, momentum=0.75, unbiased={unbiased}");
        cases.extend(for_dtypes(FLOATS, |dtype| {
            let vector = format!("{dtype}[c]");
            let types = format!("{dtype}[n, c, 5], {vector}, {vector}, {vector}, {vector}");
            op_case("batch_norm_training", &format!("unbiased_{unbiased}"), &attributes, &types)
                .sizes([("n", 3), ("c", 4)])
                .random(Domain::Range(0.25, 2.0))
                .formulas(move |x| {
                    let (mean, variance): (Vec<f64>, Vec<f64>) =
                        channels(&x[0], 1).iter().map(|c| moments(c)).unzip();
                    let taken_in = if unbiased { 15.0 / 14.0 } else { 1.0 };
                    let running = |old: &Array, new: &[f64], factor: f64| {
                        old.zip(&Array::new(old.dims.clone(), new), |o, n| 0.75 * o + 0.25 * n * factor)
                    };
                    vec![
                        by_channel(x, 1, 0.001, &mean, &variance),
                        running(&x[3], &mean, 1.0),
                        running(&x[4], &variance, taken_in),
                    ]
                })
                .accumulated(15 + 6)
        }));
    }
    let vectors = "f32[3], f32[3], f32[3]";
    cases.extend([
        op_case(
            "batch_norm_training",
            "integers",
            "axis=1, eps=0.1, momentum=0.9",
            &format!("i32[2, 3], f32[3], {vectors}"),
        )
        .fails_build("C1"),
        op_case(
            "batch_norm_training",
            "bad_axis",
            "axis=-3, eps=0.1, momentum=0.9",
            &format!("f32[2, 3], f32[3], {vectors}"),
        )
        .fails_build("C2"),
        op_case(
            "batch_norm_training",
            "wrong_scale",
            "axis=1, eps=0.1, momentum=0.9",
            &format!("f32[2, 3], f32[2], {vectors}"),
        )
        .fails_build("C3"),
    ]);
    cases.extend(golden(PYTORCH, "batch_norm_training"));
    cases
}
