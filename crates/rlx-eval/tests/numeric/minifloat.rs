//! Small floats against ml_dtypes, onnx and the half crate.

use rlx_eval::numeric::minifloat::{
    BF16, F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F16, MiniFloat, ScaleRounding, decode_e8m0,
    encode_e8m0,
};

use crate::{f64_of, records};

const GOLDENS: &str = include_str!("../golden/numeric/minifloat.txt");

const FORMATS: [(&str, MiniFloat); 7] = [
    ("f16", F16),
    ("bf16", BF16),
    ("f8e4m3fn", F8E4M3FN),
    ("f8e4m3fnuz", F8E4M3FNUZ),
    ("f8e5m2", F8E5M2),
    ("f8e5m2fnuz", F8E5M2FNUZ),
    ("f4e2m1", F4E2M1),
];

fn format(name: &str) -> MiniFloat {
    FORMATS.iter().find(|(known, _)| *known == name).expect("a known format").1
}

/// Equal bits, where any NaN equals any NaN.
fn same(lhs: f64, rhs: f64) -> bool {
    lhs.to_bits() == rhs.to_bits() || (lhs.is_nan() && rhs.is_nan())
}

#[test]
fn every_code_of_the_8_and_4_bit_formats_decodes_as_ml_dtypes_does() {
    let mut decoded = 0;
    for words in records(GOLDENS).filter(|words| words[0] == "decode") {
        for (code, word) in words[2..].iter().enumerate() {
            let expected = f32::from_bits(u32::from_str_radix(word, 16).expect("8 hexadecimal digits"));
            let found = match words[1] {
                "e8m0" => decode_e8m0(code as u8),
                name => format(name).decode(code as u32),
            };
            assert!(same(found, f64::from(expected)), "{} {code:#x}: {found} {expected}", words[1]);
            decoded += 1;
        }
    }
    assert_eq!(decoded, 5 * 256 + 16);
}

#[test]
fn every_half_and_bfloat_code_decodes_as_the_half_crate_does() {
    for code in 0..=u16::MAX {
        let half = half::f16::from_bits(code).to_f64();
        assert!(same(F16.decode(code.into()), half), "f16 {code:#x}");
        let bfloat = half::bf16::from_bits(code).to_f64();
        assert!(same(BF16.decode(code.into()), bfloat), "bf16 {code:#x}");
    }
}

#[test]
fn every_code_survives_decoding_and_encoding() {
    for (name, format) in FORMATS {
        for code in 0..1_u32 << format.width() {
            let value = format.decode(code);
            for saturate in [false, true] {
                if value.is_nan() {
                    assert!(format.round(value, saturate).is_nan(), "{name} {code:#x}");
                } else if value.is_finite() || !saturate {
                    assert_eq!(format.encode(value, saturate), code, "{name} {value}");
                }
            }
        }
    }
}

#[test]
fn hard_values_encode_as_the_references_do() {
    let mut encoded = 0;
    for words in records(GOLDENS).filter(|words| words[0] == "encode") {
        let value = f64_of(words[3]);
        let expected = u32::from_str_radix(words[4], 16).expect("4 hexadecimal digits");
        let found = format(words[1]).encode(value, words[2] == "1");
        assert_eq!(found, expected, "{} of {value:e}: {found:#x} {expected:#x}", words[1]);
        encoded += 1;
    }
    assert!(encoded > 1000, "{encoded}");
}

#[test]
fn a_double_beside_a_tie_is_not_rounded_through_f32() {
    let beside = 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40);
    assert_eq!(F16.round(beside, false), 1.0 + 2_f64.powi(-10));
    assert_eq!(F16.round(f64::from(beside as f32), false), 1.0);
}

#[test]
fn saturation_follows_the_tables_of_onnx_cast() {
    for (name, format, infinite) in [
        ("f8e4m3fn", F8E4M3FN, f64::NAN),
        ("f8e4m3fnuz", F8E4M3FNUZ, f64::NAN),
        ("f8e5m2", F8E5M2, f64::INFINITY),
        ("f8e5m2fnuz", F8E5M2FNUZ, f64::NAN),
    ] {
        for huge in [f64::INFINITY, 1e9] {
            assert_eq!(format.round(huge, true), format.max_finite(), "{name}");
            assert_eq!(format.round(-huge, true), -format.max_finite(), "{name}");
            assert!(same(format.round(huge, false), infinite), "{name}");
            assert!(same(format.round(-huge, false), -infinite), "{name}");
        }
        assert!(format.round(f64::NAN, true).is_nan(), "{name}");
        let keeps_negative_zero = !name.ends_with("fnuz");
        assert_eq!(format.round(-0.0, true).is_sign_negative(), keeps_negative_zero, "{name}");
    }
    assert_eq!(
        [F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ].map(|format| format.max_finite()),
        [448.0, 240.0, 57344.0, 57344.0]
    );
    // Within half a step of the greatest value there is nothing to saturate.
    assert_eq!(F8E4M3FN.encode(464.0, false), F8E4M3FN.encode(448.0, false));
}

#[test]
fn scales_between_powers_of_two_encode_as_onnx_does() {
    let mut encoded = 0;
    for words in records(GOLDENS).filter(|words| words[0] == "e8m0") {
        let rounding = match words[1] {
            "up" => ScaleRounding::Up,
            "down" => ScaleRounding::Down,
            _ => ScaleRounding::Nearest,
        };
        let value = f64_of(words[3]);
        let expected = u8::from_str_radix(words[4], 16).expect("4 hexadecimal digits");
        assert_eq!(encode_e8m0(value, words[2] == "1", rounding), expected, "{words:?} {value}");
        encoded += 1;
    }
    assert!(encoded > 300, "{encoded}");
}

#[test]
fn scales_out_of_range_follow_the_table_of_onnx_cast() {
    let up = |x: f64| encode_e8m0(x, true, ScaleRounding::Up);
    assert_eq!([0.0, -0.0, 1e-60, f64::INFINITY, 1e60, f64::NAN].map(up), [0, 0, 0, 0xfe, 0xfe, 0xff]);
    let nearest = |x: f64| encode_e8m0(x, false, ScaleRounding::Nearest);
    assert_eq!([0.0, 1e-60, f64::INFINITY, 1e60, f64::NAN].map(nearest), [0xff; 5]);
    assert_eq!([up(-1.0), nearest(-1.0)], [0xff; 2]);
    assert_eq!(decode_e8m0(0), 2_f64.powi(-127));
    assert_eq!(up(2_f64.powi(-127)), 0);
}
