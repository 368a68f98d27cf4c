//! Cases of linear quantisation and products of quantised matrices. Recorded ones by onnxruntime, onnx's reference
//! evaluator and numpy.

use crate::case::{Case, f32s, op_case, u8s};
use crate::golden::{golden, symbolic_golden};

const RECORDED: &str = include_str!("../../golden/quantisation.case");

fn recorded(op: &str) -> Vec<Case> {
    [golden(RECORDED, op), symbolic_golden(RECORDED, op)].concat()
}

const PER_AXIS: &str = "axis=1, block_size=0";

pub(super) fn quantize_linear() -> Vec<Case> {
    let mut cases = recorded("quantize_linear");
    let case = |name: &str, more: &str, operands: &str| {
        op_case("quantize_linear", name, &format!("{PER_AXIS}, {more}"), operands)
    };
    cases.extend([
        case("rounds_before_the_zero_point", "to=u8, saturate=true", "f32[2], f32[], u8[]")
            .inputs([f32s([2], [0.5, 1.5]), f32s([], [1.0]), u8s([], [1])])
            .values([u8s([2], [1, 3])]),
        case("nan_is_the_zero_point", "to=u8, saturate=true", "f32[1], f32[], u8[]")
            .inputs([f32s([1], [f32::NAN]), f32s([], [1.0]), u8s([], [7])])
            .values([u8s([1], [7])]),
        case("integers", "to=u8, saturate=true", "u8[2, 3], f32[]").fails_build("C1"),
        case("wide", "to=i32, saturate=true", "f32[2, 3], f32[]").fails_build("C2"),
        case("zero_point", "to=u8, saturate=true", "f32[2, 3], f32[], i8[]").fails_build("C3"),
        case("scale", "to=u8, saturate=true", "f32[2, 3], f32[2]").fails_build("C4"),
        case("precision", "to=u8, saturate=true, precision=i32", "f32[2, 3], f32[]").fails_build("C5"),
    ]);
    cases
}

pub(super) fn dequantize_linear() -> Vec<Case> {
    let mut cases = recorded("dequantize_linear");
    let case = |name: &str, to: &str, operands: &str| {
        op_case("dequantize_linear", name, &format!("{PER_AXIS}, to={to}"), operands)
    };
    cases.extend([
        case("floats", "f32", "f32[2, 3], f32[]").fails_build("C1"),
        case("result", "i32", "u8[2, 3], f32[]").fails_build("C2"),
        case("zero_point", "f32", "u8[2, 3], f32[3], u8[2]").fails_build("C3"),
        case("scale", "f32", "u8[2, 3], f32[2]").fails_build("C4"),
    ]);
    cases
}

pub(super) fn dynamic_quantize_linear() -> Vec<Case> {
    let mut cases = recorded("dynamic_quantize_linear");
    cases.push(op_case("dynamic_quantize_linear", "halves", "", "f16[3]").fails_build("C1"));
    cases
}

pub(super) fn matmul_integer() -> Vec<Case> {
    let mut cases = recorded("matmul_integer");
    let plain = "lhs_zero_point=false, rhs_zero_point=false";
    cases.extend([
        op_case("matmul_integer", "wide", plain, "i32[2, 3], u8[3, 2]").fails_build("C1"),
        op_case("matmul_integer", "vector", plain, "u8[3], u8[3, 2]").fails_build("C2"),
        op_case("matmul_integer", "sizes", plain, "u8[2, 3], u8[4, 2]").fails_build("C3"),
        op_case(
            "matmul_integer",
            "zero_point",
            "lhs_zero_point=true, rhs_zero_point=false",
            "u8[2, 3], u8[3, 2], u8[3]",
        )
        .fails_build("C4"),
    ]);
    cases
}

pub(super) fn conv_integer() -> Vec<Case> {
    let mut cases = recorded("conv_integer");
    let attributes =
        "strides=[1], padding=[(0, 0)], dilations=[1], groups=1, x_zero_point=true, w_zero_point=false";
    cases.push(
        op_case("conv_integer", "zero_point", attributes, "u8[1, 2, 5], u8[3, 2, 2], u8[2]")
            .fails_build("C4"),
    );
    cases
}

pub(super) fn qlinear_matmul() -> Vec<Case> {
    let mut cases = recorded("qlinear_matmul");
    cases.push(
        op_case(
            "qlinear_matmul",
            "zero_point",
            "",
            "u8[2, 3], f32[], i8[], u8[3, 2], f32[], u8[], f32[], u8[]",
        )
        .fails_build("C1"),
    );
    cases
}

pub(super) fn qlinear_conv() -> Vec<Case> {
    let mut cases = recorded("qlinear_conv");
    let attributes = "strides=[1], padding=[(0, 0)], dilations=[1], groups=1";
    let operands = "u8[1, 2, 5], f32[], u8[], u8[3, 2, 2], f32[], u8[], f32[], u8[], i32[2]";
    cases.push(op_case("qlinear_conv", "bias", attributes, operands).fails_build("C7"));
    cases
}

pub(super) fn matmul_nbits() -> Vec<Case> {
    let mut cases = recorded("matmul_nbits");
    let attributes = |bits: usize, block: usize| {
        format!("bits={bits}, block_size={block}, zero_points=false, group_indices=false, bias=false")
    };
    cases.extend([
        op_case("matmul_nbits", "bits", &attributes(3, 16), "f32[2, 16], u8[3, 1, 6], f32[3]")
            .fails_build("C2"),
        op_case("matmul_nbits", "bytes", &attributes(4, 16), "f32[2, 16], u8[3, 1, 6], f32[3]")
            .fails_build("C3"),
        op_case("matmul_nbits", "scales", &attributes(4, 16), "f32[2, 16], u8[3, 1, 8], f32[4]")
            .fails_build("C4"),
    ]);
    cases
}
