//! Cases of resizing, sampling and regions. Recorded ones by onnx's reference evaluator and onnxruntime.

use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, i64s, op_case};
use crate::golden::{golden, symbolic_golden};
use crate::random::Domain;

const RECORDED: &str = include_str!("../../golden/vision.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
pub(super) const PYTORCH: &str = include_str!("../../golden/pytorch/vision.case");

pub(super) fn recorded(op: &str) -> Vec<Case> {
    [golden(RECORDED, op), symbolic_golden(RECORDED, op)].concat()
}

/// A resize of the last axis to six elements.
fn resize_to_six(mode: &str, scales: &str, antialias: bool) -> String {
    format!(
        "axes=[2], sizes=[6], scales=[{scales}], mode={mode}, coordinates=half_pixel, \
         rounding=round_prefer_floor, cubic_coefficient=-0.75, antialias={antialias}, extrapolation=0.0"
    )
}

pub(super) fn resize() -> Vec<Case> {
    let mut cases = recorded("resize");
    cases.extend(golden(PYTORCH, "resize"));
    // Twice the size, half-pixel: each element is three quarters of the nearer and a quarter of the other neighbour.
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case("resize", "linear_types", &resize_to_six("linear", "", false), &format!("{dtype}[1, c, 3]"))
            .sizes([("c", 2)])
            .random(Domain::Range(-1.0, 1.0))
            .formula(|x| {
                x[0].map_rows(2, |r| {
                    let between = |near: f64, far: f64| 0.75 * near + 0.25 * far;
                    vec![
                        r[0],
                        between(r[0], r[1]),
                        between(r[1], r[0]),
                        between(r[1], r[2]),
                        between(r[2], r[1]),
                        r[2],
                    ]
                })
            })
            .accumulated(8)
    }));
    cases.extend([
        op_case("resize", "bytes_round", &resize_to_six("linear", "", false), "u8[1, 1, 3]")
            .input(crate::case::u8s([1, 1, 3], [0, 10, 255]))
            .values([crate::case::u8s([1, 1, 6], [0, 2, 8, 71, 194, 255])])
            .declared_types_only(),
        op_case("resize", "truth_values", &resize_to_six("nearest", "", false), "bool[1, 1, 3]")
            .fails_build("C1"),
        op_case("resize", "axis", &resize_to_six("nearest", "", false), "f32[1, 3]").fails_build("C2"),
        op_case("resize", "empty", &resize_to_six("nearest", "", false), "f32[1, 3, 0]").fails_build("C2"),
        op_case("resize", "scales", &resize_to_six("nearest", "1.0, 2.0", false), "f32[1, 1, 3]")
            .fails_build("C3"),
        op_case("resize", "antialias", &resize_to_six("nearest", "", true), "f32[1, 1, 3]").fails_build("C5"),
    ]);
    cases
}

pub(super) fn grid_sample() -> Vec<Case> {
    let mut cases = recorded("grid_sample");
    cases.extend(golden(PYTORCH, "grid_sample"));
    let attributes = "mode=linear, outside=zeros, align_corners=false";
    cases.extend([
        op_case("grid_sample", "types", attributes, "f32[1, 1, 3, 3], i32[1, 2, 2, 2]").fails_build("C1"),
        op_case("grid_sample", "ranks", attributes, "f32[1, 1, 3, 3], f32[1, 2, 2]").fails_build("C2"),
        op_case("grid_sample", "coordinates", attributes, "f32[1, 1, 3, 3], f32[1, 2, 2, 3]")
            .fails_build("C2"),
        op_case("grid_sample", "batch", attributes, "f32[1, 1, 3, 3], f32[2, 2, 2, 2]").fails_build("C3"),
    ]);
    cases
}

pub(super) fn affine_grid() -> Vec<Case> {
    let mut cases = recorded("affine_grid");
    cases.extend(golden(PYTORCH, "affine_grid"));
    let attributes = "sizes=[2, 3], align_corners=false";
    cases.push(op_case("affine_grid", "maps", attributes, "f32[1, 3, 3]").fails_build("C2"));
    cases.push(
        op_case(
            "affine_grid",
            "single_element_is_the_middle",
            "sizes=[1], align_corners=true",
            "f32[1, 1, 2]",
        )
        .input(f32s([1, 1, 2], [3.0, 0.25]))
        .values([f32s([1, 1, 1], [0.25])]),
    );
    cases
}

pub(super) fn roi_align() -> Vec<Case> {
    let mut cases = recorded("roi_align");
    let attributes = "height=2, width=2, sampling_ratio=1, spatial_scale=1.0, half_pixel=true, mode=avg";
    cases.extend([
        op_case(
            "roi_align",
            "no_regions",
            &attributes.replace("ratio=1", "ratio=0"),
            "f32[1, 1, 3, 3], f32[0, 4], i64[0]",
        )
        .random(Domain::Whole(0, 0))
        .values([f32s([0, 1, 2, 2], [])]),
        op_case("roi_align", "batch_outside", attributes, "f32[1, 1, 3, 3], f32[1, 4], i64[1]")
            .inputs([f32s([1, 1, 3, 3], [0.0; 9]), f32s([1, 4], [0.0; 4]), i64s([1], [1])])
            .fails(Stage::Run, "index"),
        op_case("roi_align", "coordinates", attributes, "f32[1, 1, 3, 3], f32[1, 5], i64[1]")
            .fails_build("C2"),
        op_case("roi_align", "batch_type", attributes, "f32[1, 1, 3, 3], f32[1, 4], f32[1]")
            .fails_build("C3"),
    ]);
    cases
}

pub(super) fn max_roi_pool() -> Vec<Case> {
    let mut cases = recorded("max_roi_pool");
    let attributes = "height=2, width=2, spatial_scale=1.0";
    cases.push(
        op_case("max_roi_pool", "coordinates", attributes, "f32[1, 1, 3, 3], f32[1, 4]").fails_build("C2"),
    );
    cases
}
