//! Cases of `cast` and `bitcast`.

use super::{integer_values, wrapped};
use crate::case::{Case, FLOATS, INTEGERS, f32s, f64s, i32s, i64s, literal, op_case};
use crate::random::Domain;
use rlx_ir::{DType, Literal};

const NARROW: &[DType] = &[DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ];

fn to(from: DType, to: DType, name: &str, dims: &str) -> Case {
    op_case("cast", &format!("{name}_{from}_to_{to}"), &format!("to={to}"), &format!("{from}{dims}"))
}

/// Cases of `cast`.
pub(in crate::cases) fn cast() -> Vec<Case> {
    let mut cases = Vec::new();
    for from in [FLOATS, NARROW].concat() {
        for target in [FLOATS, NARROW].concat() {
            // The number itself is the reference, rounded once.
            cases.push(
                to(from, target, "special", "[3, n]")
                    .sizes([("n", 15)])
                    .random(Domain::Normal.special())
                    .formula(|x| x[0].clone()),
            );
            cases.push(to(from, target, "extreme", "[41]").random(Domain::Extreme).formula(|x| x[0].clone()));
        }
        for target in [INTEGERS, &[DType::Bool]].concat() {
            // Truncated, saturated, NaN to 0; NaN is true.
            cases.push(
                to(from, target, "special", "[3, n]")
                    .sizes([("n", 15)])
                    .random(Domain::Range(-300.0, 300.0).special())
                    .formula(move |x| {
                        x[0].map(|v| if v.is_nan() && target == DType::Bool { 1.0 } else { v })
                    }),
            );
            cases.push(to(from, target, "extreme", "[41]").random(Domain::Extreme).formula(|x| x[0].clone()));
        }
    }
    for from in [INTEGERS, &[DType::Bool]].concat() {
        for target in INTEGERS {
            let case = to(from, *target, "wraps", "[41]").random(Domain::Extreme.special());
            cases.push(integer_values(case, *target, |x| x[0]));
        }
        let case = to(from, DType::Bool, "nonzero", "[41]").random(Domain::Whole(0, 3).special());
        cases.push(integer_values(case, DType::Bool, |x| i128::from(x[0] != 0)));
        for target in FLOATS {
            // Below 2^53, so that the reference itself is exact.
            cases.push(
                to(from, *target, "whole", "[41]")
                    .random(Domain::Whole(-(1 << 40), 1 << 40))
                    .formula(|x| x[0].clone()),
            );
        }
    }
    cases.extend(given());
    cases.extend(narrow());
    cases
}

fn given() -> Vec<Case> {
    // Through f64 these would be rounded twice: first to a tie, then to the even side.
    let twice = [(1i64 << 60) + (1 << 36) + 1, -(1i64 << 60) - (1 << 36) - 1, i64::MAX, i64::MIN];
    vec![
        op_case("cast", "i64_to_f32_rounds_once", "to=f32", "i64[4]")
            .input(i64s([4], twice))
            .values([f32s([4], twice.map(|v| v as f32))])
            .declared_types_only(),
        op_case("cast", "u64_to_f32_rounds_once", "to=f32", "u64[2]")
            .input(wrapped(DType::U64, &[2], &[(1 << 63) + (1 << 39) + 1, u64::MAX.into()]))
            .values([f32s([2], [((1u64 << 63) + (1 << 39) + 1) as f32, u64::MAX as f32])])
            .declared_types_only(),
        op_case("cast", "i64_to_f64_rounds_to_even", "to=f64", "i64[2]")
            .input(i64s([2], [(1 << 53) + 1, (1 << 53) + 3]))
            .values([f64s([2], [9007199254740992.0, 9007199254740996.0])]),
        op_case("cast", "f64_to_f32_of_a_tie", "to=f32", "f64[3]")
            .input(f64s([3], [1.0 + 2f64.powi(-24), 1.0 + 3.0 * 2f64.powi(-24), 3.4028236e38]))
            .values([f32s([3], [1.0, 1.0 + 2f32.powi(-22), f32::INFINITY])])
            .declared_types_only(),
        op_case("cast", "mask_value_overflows_to_infinity_in_f16", "to=f16", "f32[2]")
            .input(f32s([2], [-3.4028235e38, 65519.0]))
            .values([literal(DType::F16, [2], [f64::NEG_INFINITY, 65504.0])])
            .declared_types_only(),
        op_case("cast", "float_ends_saturate_in_i64", "to=i64", "f32[4]")
            .input(f32s([4], [9.3e18, -9.3e18, f32::NAN, f32::INFINITY]))
            .values([i64s([4], [i64::MAX, i64::MIN, 0, i64::MAX])]),
        op_case("cast", "complex_to_complex", "to=c128", "c64[3]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("cast", "real_to_complex", "to=c64", "f32[3]")
            .input(f32s([3], [1.0, -2.0, 0.5]))
            .values([literal(DType::C64, [3, 2], [1.0, 0.0, -2.0, 0.0, 0.5, 0.0])]),
        op_case("cast", "complex_to_real", "to=f32", "c64[3]").fails_build("C2"),
        op_case("cast", "to_blocks", "to=q8_0", "f32[32]").fails_build("C1"),
        op_case("cast", "from_blocks", "to=f32", "q8_0[32]").fails_build("C1"),
        op_case("cast", "to_text", "to=string", "f32[3]").fails_build("C1"),
    ]
}

/// The 8-bit, 4-bit and 2-bit types. The numbers are those of the OCP and ONNX documents.
fn narrow() -> Vec<Case> {
    let x = f32s([6], [448.0, 464.0, 465.0, 1e6, -1e6, f32::INFINITY]);
    let nan = f64::NAN;
    let saturating = |dtype: DType, values: [f64; 6]| {
        op_case("cast", &format!("saturating_{dtype}"), &format!("to={dtype}, saturate=true"), "f32[6]")
            .input(x.clone())
            .values([literal(dtype, [6], values)])
            .declared_types_only()
    };
    let plain = |dtype: DType, values: [f64; 6]| {
        op_case("cast", &format!("beyond_{dtype}"), &format!("to={dtype}"), "f32[6]")
            .input(x.clone())
            .values([literal(dtype, [6], values)])
            .declared_types_only()
    };
    let mut cases = vec![
        saturating(DType::F8E4M3FN, [448.0, 448.0, 448.0, 448.0, -448.0, 448.0]),
        plain(DType::F8E4M3FN, [448.0, 448.0, nan, nan, nan, nan]),
        saturating(DType::F8E4M3FNUZ, [240.0, 240.0, 240.0, 240.0, -240.0, 240.0]),
        plain(DType::F8E4M3FNUZ, [nan; 6]),
        saturating(DType::F8E5M2, [448.0, 448.0, 448.0, 57344.0, -57344.0, 57344.0]),
        plain(DType::F8E5M2, [448.0, 448.0, 448.0, f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]),
    ];
    let unpacked = Literal::new(DType::I4, [3], vec![0x7f, 0x08]).expect("three codes in two bytes");
    cases.push(
        op_case("cast", "i4_to_i32", "to=i32", "i4[3]")
            .input(unpacked.clone())
            .values([i32s([3], [-1, 7, -8])]),
    );
    cases.push(
        op_case("cast", "i32_to_i4_wraps", "to=i4", "i32[3]")
            .input(i32s([3], [15, -9, 8]))
            .values([unpacked]),
    );
    cases.push(
        op_case("cast", "u4_rows_are_byte_aligned", "to=u8", "u4[2, 3]")
            .input(
                Literal::new(DType::U4, [2, 3], vec![0x21, 0x03, 0x54, 0x06]).expect("two rows of two bytes"),
            )
            .values([literal(DType::U8, [2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]),
    );
    cases.push(
        op_case("cast", "i2_to_i8", "to=i8", "i2[5]")
            .input(Literal::new(DType::I2, [5], vec![0b11_10_01_00, 0b01]).expect("five codes in two bytes"))
            .values([literal(DType::I8, [5], [0.0, 1.0, -2.0, -1.0, 1.0])]),
    );
    cases.push(
        op_case("cast", "f4e2m1_to_f32", "to=f32", "f4e2m1[4]")
            .input(Literal::new(DType::F4E2M1, [4], vec![0x71, 0xfa]).expect("four codes in two bytes"))
            .values([f32s([4], [0.5, 6.0, -1.0, -6.0])]),
    );
    for (round, values) in [("nearest", [1.0, 2.0, 4.0]), ("up", [1.0, 2.0, 4.0]), ("down", [1.0, 1.0, 2.0])]
    {
        cases.push(
            op_case("cast", &format!("e8m0_{round}"), &format!("to=e8m0, round={round}"), "f32[3]")
                .input(f32s([3], [1.0, 1.75, 3.5]))
                .values([literal(DType::E8M0, [3], values)])
                .declared_types_only(),
        );
    }
    cases
}

/// Cases of `bitcast`: the bytes stay.
pub(in crate::cases) fn bitcast() -> Vec<Case> {
    let pairs = [
        (DType::F32, DType::I32),
        (DType::I32, DType::F32),
        (DType::F32, DType::U32),
        (DType::F64, DType::I64),
        (DType::U64, DType::F64),
        (DType::F16, DType::U16),
        (DType::BF16, DType::I16),
        (DType::U16, DType::F16),
        (DType::F16, DType::BF16),
        (DType::I8, DType::U8),
        (DType::F8E4M3FN, DType::U8),
        (DType::U8, DType::F8E5M2),
        (DType::I64, DType::U64),
    ];
    let mut cases: Vec<Case> = pairs
        .into_iter()
        .map(|(from, to)| {
            let case =
                op_case("bitcast", &format!("{from}_as_{to}"), &format!("to={to}"), &format!("{from}[5, n]"))
                    .sizes([("n", 7)])
                    .random(Domain::Extreme.special())
                    .declared_types_only();
            let same = case.inputs.first().and_then(|x| Literal::new(to, x.dims(), x.bytes().clone()).ok());
            case.values(same)
        })
        .collect();
    cases.push(
        op_case("bitcast", "one", "to=i32", "f32[1]")
            .input(f32s([1], [1.0]))
            .declared_types_only()
            .values([i32s([1], [0x3f80_0000])]),
    );
    cases.push(op_case("bitcast", "widths_differ", "to=f32", "f64[2]").fails_build("C1"));
    cases.push(op_case("bitcast", "sub_byte", "to=u4", "i4[2]").fails_build("C1"));
    cases
}
