//! Cases of convolutions with more than the primitive. Recorded ones by numpy in f64, onnxruntime and onnx.

use crate::case::{Case, op_case};
use crate::golden::{golden, symbolic_golden};

const RECORDED: &str = include_str!("../../golden/convolution.case");

fn recorded(op: &str) -> Vec<Case> {
    [golden(RECORDED, op), symbolic_golden(RECORDED, op)].concat()
}

const PLAIN: &str = "strides=[1], padding=[(0, 0)], dilations=[1], groups=1";

pub(super) fn conv_bias() -> Vec<Case> {
    let mut cases = recorded("conv_bias");
    cases.extend([
        op_case("conv_bias", "types", PLAIN, "f32[1, 2, 5], f16[3, 2, 2], f32[3]").fails_build("C1"),
        op_case("conv_bias", "ranks", PLAIN, "f32[1, 2, 5], f32[3, 2], f32[3]").fails_build("C2"),
        op_case("conv_bias", "axes", PLAIN, "f32[1, 2, 5, 5], f32[3, 2, 2, 2], f32[3]").fails_build("C3"),
        op_case("conv_bias", "channels", PLAIN, "f32[1, 3, 5], f32[3, 2, 2], f32[3]").fails_build("C5"),
        op_case("conv_bias", "kernel", PLAIN, "f32[1, 2, 5], f32[3, 2, 7], f32[3]").fails_build("C6"),
        op_case("conv_bias", "bias", PLAIN, "f32[1, 2, 5], f32[3, 2, 2], f32[2]").fails_build("C7"),
    ]);
    cases
}

pub(super) fn conv_transpose() -> Vec<Case> {
    let mut cases = recorded("conv_transpose");
    let attributes = PLAIN.replace("dilations", "output_padding=[0], dilations");
    let cropped = attributes.replace("(0, 0)", "(9, 0)");
    cases.extend([
        op_case("conv_transpose", "channels", &attributes, "f32[1, 3, 5], f32[2, 3, 2]").fails_build("C5"),
        op_case("conv_transpose", "padding", &cropped, "f32[1, 2, 5], f32[2, 3, 2]").fails_build("C6"),
        op_case("conv_transpose", "bias", &attributes, "f32[1, 2, 5], f32[2, 3, 2], f32[2]")
            .fails_build("C7"),
    ]);
    cases
}

pub(super) fn conv_input_grad() -> Vec<Case> {
    let mut cases = recorded("conv_input_grad");
    let attributes = format!("dims=[5], {PLAIN}");
    cases.extend([
        op_case("conv_input_grad", "channels", &attributes, "f32[1, 2, 4], f32[3, 2, 2]").fails_build("C5"),
        op_case("conv_input_grad", "sizes", &attributes, "f32[1, 3, 5], f32[3, 2, 2]").fails_build("C6"),
    ]);
    cases
}

pub(super) fn conv_weight_grad() -> Vec<Case> {
    let mut cases = recorded("conv_weight_grad");
    let attributes = format!("window=[2], {PLAIN}");
    cases.extend([
        op_case("conv_weight_grad", "sizes", &attributes, "f32[1, 2, 5], f32[1, 3, 5]").fails_build("C6"),
        op_case("conv_weight_grad", "batch", &attributes, "f32[1, 2, 5], f32[2, 3, 4]").fails_build("C6"),
    ]);
    cases
}

pub(super) fn causal_conv() -> Vec<Case> {
    recorded("causal_conv")
}

pub(super) fn deform_conv() -> Vec<Case> {
    let mut cases = recorded("deform_conv");
    let attributes = format!("{PLAIN}, offset_groups=1, bias=false, mask=false");
    let grouped = attributes.replace("offset_groups=1", "offset_groups=3");
    let operands = "f32[1, 2, 5], f32[3, 2, 2], f32[1, 2, 4]";
    cases.extend([
        op_case("deform_conv", "offsets", &attributes, "f32[1, 2, 5], f32[3, 2, 2], f32[1, 4, 4]")
            .fails_build("C4"),
        op_case("deform_conv", "groups", &grouped, operands).fails_build("C5"),
    ]);
    cases
}
