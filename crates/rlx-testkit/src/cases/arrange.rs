//! Cases of rearrangements and selections. Recorded ones by onnx's reference evaluator and numpy.

use super::vision::{PYTORCH, recorded};
use crate::case::{Case, Stage, f32s, i64s, op_case};
use crate::golden::golden;
use crate::random::Domain;

pub(super) fn depth_to_space() -> Vec<Case> {
    let mut cases = recorded("depth_to_space");
    cases.extend(golden(PYTORCH, "depth_to_space"));
    cases.extend([
        op_case("depth_to_space", "rank", "block=2, order=dcr", "f32[4, 2, 2]").fails_build("C1"),
        op_case("depth_to_space", "block", "block=0, order=dcr", "f32[1, 4, 2, 2]").fails_build("C2"),
        op_case("depth_to_space", "channels", "block=2, order=crd", "f32[1, 6, 2, 2]").fails_build("C3"),
    ]);
    cases
}

pub(super) fn space_to_depth() -> Vec<Case> {
    let mut cases = recorded("space_to_depth");
    cases.extend(golden(PYTORCH, "space_to_depth"));
    cases
        .push(op_case("space_to_depth", "pixels", "block=2, order=dcr", "f32[1, 1, 3, 2]").fails_build("C3"));
    cases
}

pub(super) fn tile() -> Vec<Case> {
    let mut cases = recorded("tile");
    cases.push(op_case("tile", "counts", "repeats=[2]", "f32[1, 3]").fails_build("C1"));
    cases
}

pub(super) fn repeat_elements() -> Vec<Case> {
    let mut cases = recorded("repeat_elements");
    cases.push(op_case("repeat_elements", "axis", "repeats=2, axis=2", "f32[1, 3]").fails_build("C1"));
    cases
}

pub(super) fn roll() -> Vec<Case> {
    let mut cases = recorded("roll");
    cases.extend([
        op_case("roll", "empty", "shifts=[1], axes=[0]", "f32[n]")
            .input(f32s([0], []))
            .values([f32s([0], [])]),
        op_case("roll", "shifts", "shifts=[1, 2], axes=[0]", "f32[3]").fails_build("C1"),
    ]);
    cases
}

pub(super) fn pad_from() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["pad_reflect", "pad_symmetric", "pad_edge", "pad_wrap"] {
        cases.extend(recorded(op));
        cases.extend([
            op_case(op, "counts", "low=[1], high=[1]", "f32[2, 3]").fails_build("C1"),
            op_case(op, "empty", "low=[1], high=[1]", "f32[0]").fails_build("C2"),
            op_case(op, "negative", "low=[-2], high=[-2]", "f32[3]").fails_build("C2"),
        ]);
    }
    cases
}

pub(super) fn center_crop_pad() -> Vec<Case> {
    let mut cases = recorded("center_crop_pad");
    cases.push(op_case("center_crop_pad", "sizes", "axes=[0], sizes=[1, 2]", "f32[2, 3]").fails_build("C1"));
    cases
}

pub(super) fn one_hot() -> Vec<Case> {
    let mut cases = recorded("one_hot");
    cases.extend([
        op_case("one_hot", "floats", "depth=3, axis=-1", "f32[2], f32[], f32[]").fails_build("C1"),
        op_case("one_hot", "values", "depth=3, axis=-1", "i64[2], f32[1], f32[]").fails_build("C2"),
        op_case("one_hot", "axis", "depth=3, axis=2", "i64[2], f32[], f32[]").fails_build("C3"),
    ]);
    cases
}

pub(super) fn reverse_sequence() -> Vec<Case> {
    let mut cases = recorded("reverse_sequence");
    let attributes = "batch_axis=0, time_axis=1";
    cases.extend([
        op_case("reverse_sequence", "axes", "batch_axis=1, time_axis=1", "f32[2, 3], i64[3]")
            .fails_build("C1"),
        op_case("reverse_sequence", "lengths", attributes, "f32[2, 3], i64[3]").fails_build("C2"),
        op_case("reverse_sequence", "too_long", attributes, "f32[1, 3], i64[1]")
            .inputs([f32s([1, 3], [0.0; 3]), i64s([1], [4])])
            .fails(Stage::Run, "index"),
    ]);
    cases
}

pub(super) fn compress() -> Vec<Case> {
    let mut cases = recorded("compress");
    cases.extend([
        op_case("compress", "none", "count=n", "f32[3], bool[2]")
            .random_input(Domain::Normal)
            .input(crate::case::bools([2], [false, false]))
            .values([f32s([0], [])]),
        op_case("compress", "axis", "axis=1, count=n", "f32[3], bool[2]").fails_build("C1"),
        op_case("compress", "condition", "axis=0, count=n", "f32[3], bool[4]").fails_build("C2"),
    ]);
    cases
}

pub(super) fn unique() -> Vec<Case> {
    let mut cases = recorded("unique");
    cases.extend([
        op_case("unique", "nan_equals_nothing", "unsorted=false, count=n", "f32[3]")
            .input(f32s([3], [f32::NAN, 1.0, f32::NAN]))
            .values([
                f32s([3], [1.0, f32::NAN, f32::NAN]),
                i64s([3], [1, 0, 2]),
                i64s([3], [1, 0, 2]),
                i64s([3], [1, 1, 1]),
            ]),
        op_case("unique", "complex", "unsorted=false, count=n", "c64[3]").fails_build("C1"),
        op_case("unique", "axis", "axis=1, unsorted=false, count=n", "f32[3]").fails_build("C2"),
    ]);
    cases
}
