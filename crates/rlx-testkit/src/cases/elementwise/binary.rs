//! Cases of functions of two numbers.

use super::integer_values;
use crate::Array;
use crate::case::{
    Case, FLOATS, INTEGERS, Stage, bools, case, f32s, for_dtypes, for_sizes, i32s, i64s, literal, op_case,
};
use crate::random::Domain;
use rlx_ir::DType;

/// An operation with its definition and the domains of both operands.
type Function = (&'static str, fn(f64, f64) -> f64, Domain, Domain);

const EXACT: [Function; 7] = [
    ("add", |x, y| x + y, Domain::Normal, Domain::Normal),
    ("sub", |x, y| x - y, Domain::Normal, Domain::Normal),
    ("mul", |x, y| x * y, Domain::Normal, Domain::Normal),
    ("div", |x, y| x / y, Domain::Normal, Domain::AwayFromZero(0.1, 5.0)),
    ("rem", |x, y| x % y, Domain::Range(-50.0, 50.0), Domain::AwayFromZero(0.1, 5.0)),
    ("max", greater, Domain::Whole(-2, 2), Domain::Whole(-2, 2)),
    ("min", |x, y| -greater(-x, -y), Domain::Whole(-2, 2), Domain::Whole(-2, 2)),
];

/// The greater; NaN if either is; +0 above −0.
fn greater(x: f64, y: f64) -> f64 {
    match () {
        () if x.is_nan() || y.is_nan() => f64::NAN,
        () if x > y || (x == y && x.is_sign_positive()) => x,
        () => y,
    }
}

/// Cases of the functions of two numbers.
pub(in crate::cases) fn binary() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, f, left, right) in EXACT {
        let formula = move |x: &[Array]| x[0].zip(&x[1], f);
        let narrow: &[DType] = &[DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ];
        let dtypes = [FLOATS, narrow].concat();
        cases.extend(for_dtypes(&dtypes, |dtype| {
            op_case(op, "range", "", &format!("{dtype}[3, n], {dtype}[3, n]"))
                .sizes([("n", 13)])
                .random_input(left.clone())
                .random_input(right.clone())
                .formula(formula)
        }));
        cases.extend(for_dtypes(&dtypes, |dtype| {
            op_case(op, "special", "", &format!("{dtype}[101], {dtype}[101]"))
                .random_input(left.clone().special())
                .random_input(right.clone().special())
                .formula(formula)
        }));
        cases.extend(for_dtypes(&dtypes, |dtype| {
            op_case(op, "extreme", "", &format!("{dtype}[33], {dtype}[33]"))
                .random(Domain::Extreme)
                .formula(formula)
        }));
        cases.extend(for_sizes(16, |n| {
            op_case(op, "size", "", "f32[2, n], f32[2, n]")
                .sizes([("n", n)])
                .random(Domain::AwayFromZero(0.5, 4.0))
                .formula(formula)
        }));
        cases.extend([
            op_case(op, "sizes_differ", "", "f32[4], f32[3]").fails_build("C2"),
            op_case(op, "scalar_is_not_broadcast", "", "f32[4], f32[]").fails_build("C2"),
            op_case(op, "types_differ", "", "f32[4], f16[4]").fails_build("C2"),
            op_case(op, "bools", "", "bool[4], bool[4]").fails_build("C1"),
            op_case(op, "one_operand", "", "f32[4]").fails_build("C0"),
            op_case(op, "symbols_that_turn_out_to_differ", "", "f32[n], f32[m]")
                .inputs([f32s([2], [1.0; 2]), f32s([3], [1.0; 3])])
                .fails(Stage::Run, "C2: sizes differ"),
        ]);
    }
    cases.extend(transcendental());
    cases.extend(integers());
    cases.extend(logic());
    cases.extend(complex());
    cases
}

fn transcendental() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, f, left, right) in [
        ("pow", f64::powf as fn(f64, f64) -> f64, Domain::Range(0.1, 5.0), Domain::Range(-3.0, 3.0)),
        ("atan2", f64::atan2, Domain::Range(-5.0, 5.0), Domain::Range(-5.0, 5.0)),
    ] {
        let formula = move |x: &[Array]| x[0].zip(&x[1], f);
        for (name, left, right) in [
            ("range", left.clone(), right.clone()),
            ("special", left.special(), right.special()),
            // Negative bases with whole exponents, zeros with either sign.
            ("whole", Domain::Whole(-4, 4).special(), Domain::Whole(-3, 3).special()),
        ] {
            cases.extend(for_dtypes(FLOATS, |dtype| {
                op_case(op, name, "", &format!("{dtype}[7, n], {dtype}[7, n]"))
                    .sizes([("n", 11)])
                    .random_input(left.clone())
                    .random_input(right.clone())
                    .formula(formula)
                    .transcendental()
            }));
        }
    }
    cases.push(op_case("atan2", "integers", "", "i32[2], i32[2]").fails_build("C1"));
    cases
}

/// xʸ modulo 2^64 at least, by squaring; a negative exponent gives 0 but for ±1.
fn integer_power(x: i128, y: i128) -> i128 {
    match (x, y) {
        (1, _) => 1,
        (-1, y) => {
            if y % 2 == 0 {
                1
            } else {
                -1
            }
        }
        (_, y) if y < 0 => 0,
        _ => {
            let (mut result, mut base, mut exponent) = (1u128, x as u128, y as u128);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    result = result.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                exponent >>= 1;
            }
            result as i128
        }
    }
}

fn integers() -> Vec<Case> {
    let functions: [(&str, fn(i128, i128) -> i128); 8] = [
        ("add", |x, y| x + y),
        ("sub", |x, y| x - y),
        ("mul", i128::wrapping_mul),
        ("max", i128::max),
        ("min", i128::min),
        ("and", |x, y| x & y),
        ("or", |x, y| x | y),
        ("xor", |x, y| x ^ y),
    ];
    let mut cases = Vec::new();
    for (op, f) in functions {
        cases.extend(for_dtypes(INTEGERS, |dtype| {
            let case = op_case(op, "whole", "", &format!("{dtype}[7, n], {dtype}[7, n]"))
                .sizes([("n", 9)])
                .random(Domain::Extreme.special());
            integer_values(case, dtype, |x| f(x[0], x[1]))
        }));
    }
    // Division truncates toward zero, the remainder has the dividend's sign, MIN ÷ −1 wraps.
    for (op, f) in [("div", (|x, y| x / y) as fn(i128, i128) -> i128), ("rem", |x, y| x % y)] {
        cases.extend(for_dtypes(INTEGERS, |dtype| {
            let case = op_case(op, "whole", "", &format!("{dtype}[7, n], {dtype}[7, n]"))
                .sizes([("n", 9)])
                .random_input(Domain::Extreme.special())
                .random_input(Domain::AwayFromZero(1.0, 20.0));
            integer_values(case, dtype, |x| f(x[0], x[1]))
        }));
        let least = op_case(op, "least_by_minus_one", "", "i32[3], i32[3]")
            .inputs([i32s([3], [i32::MIN, i32::MIN, -7]), i32s([3], [-1, 2, -1])]);
        cases.push(integer_values(least, DType::I32, |x| f(x[0], x[1])));
        cases.extend(for_dtypes(INTEGERS, |dtype| {
            op_case(op, "by_zero", "", &format!("{dtype}[3], {dtype}[3]"))
                .inputs([literal(dtype, [3], [1.0, 2.0, 3.0]), literal(dtype, [3], [1.0, 0.0, 3.0])])
                .fails(Stage::Run, "division by zero")
        }));
    }
    cases.extend(for_dtypes(INTEGERS, |dtype| {
        let case = op_case("pow", "whole", "", &format!("{dtype}[9, n], {dtype}[9, n]"))
            .sizes([("n", 9)])
            .random(Domain::Whole(-3, 9).special());
        integer_values(case, dtype, |x| integer_power(x[0], x[1]))
    }));
    cases.extend(for_dtypes(INTEGERS, |dtype| {
        let bits = i128::from(dtype.bits().unwrap_or(0));
        let case = op_case("shl", "widths", "", &format!("{dtype}[41], {dtype}[41]"))
            .random_input(Domain::Extreme)
            .random_input(Domain::Whole(0, bits as i64 + 3));
        integer_values(case, dtype, move |x| if x[1] >= bits { 0 } else { x[0] << x[1] })
    }));
    cases.extend(for_dtypes(INTEGERS, |dtype| {
        let bits = i128::from(dtype.bits().unwrap_or(0));
        let case = op_case("shr", "widths", "", &format!("{dtype}[41], {dtype}[41]"))
            .random_input(Domain::Extreme)
            .random_input(Domain::Whole(0, bits as i64 + 3));
        // Arithmetic for signed types: past the width only the sign stays.
        integer_values(case, dtype, move |x| x[0] >> x[1].min(127))
    }));
    cases.extend([
        case(
            "add",
            "beyond_32_bits",
            "(%x: i64[6], %y: i64[]) {
            %b = broadcast<dims=[6]>(%y)
            %z = add(%x, %b)
            return \"z\" = %z
        }",
        )
        .inputs([i64s([6], [0, 1, 2, 3, 4, 5]), i64s([], [1 << 32])])
        .values([i64s([6], [4294967296, 4294967297, 4294967298, 4294967299, 4294967300, 4294967301])]),
        op_case("add", "beyond_24_bits", "", "i32[1], i32[1]")
            .inputs([i32s([1], [16_777_217]), i32s([1], [16_777_217])])
            .values([i32s([1], [33_554_434])]),
        op_case("max", "beyond_53_bits", "", "i64[2], i64[2]")
            .inputs([i64s([2], [(1 << 60) + 1, -1]), i64s([2], [1 << 60, i64::MIN])])
            .values([i64s([2], [(1 << 60) + 1, -1])]),
        op_case("shl", "floats", "", "f32[2], f32[2]").fails_build("C1"),
        op_case("and", "floats", "", "f32[2], f32[2]").fails_build("C1"),
        op_case("shr", "bools", "", "bool[2], bool[2]").fails_build("C1"),
    ]);
    cases
}

fn logic() -> Vec<Case> {
    let (x, y) = (bools([4], [false, false, true, true]), bools([4], [false, true, false, true]));
    [
        ("and", [false, false, false, true]),
        ("or", [false, true, true, true]),
        ("xor", [false, true, true, false]),
    ]
    .into_iter()
    .map(|(op, result)| {
        op_case(op, "truth_table", "", "bool[4], bool[4]")
            .inputs([x.clone(), y.clone()])
            .values([bools([4], result)])
    })
    .collect()
}

/// Parts of the result from parts of both operands.
type Parts = fn([f64; 2], [f64; 2]) -> [f64; 2];

fn complex() -> Vec<Case> {
    let functions: [(&str, Parts); 4] = [
        ("add", |x, y| [x[0] + y[0], x[1] + y[1]]),
        ("sub", |x, y| [x[0] - y[0], x[1] - y[1]]),
        ("mul", |x, y| [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]),
        ("div", |x, y| {
            let norm = y[0] * y[0] + y[1] * y[1];
            [(x[0] * y[0] + x[1] * y[1]) / norm, (x[1] * y[0] - x[0] * y[1]) / norm]
        }),
    ];
    let mut cases = Vec::new();
    for (op, f) in functions {
        cases.extend(for_dtypes(&[DType::C64, DType::C128], |dtype| {
            op_case(op, "complex", "", &format!("{dtype}[3, 5], {dtype}[3, 5]"))
                .random(Domain::AwayFromZero(0.5, 2.0))
                .formula(move |x| {
                    let pairs = x[0].data.chunks(2).zip(x[1].data.chunks(2));
                    Array::new(
                        [3, 5, 2],
                        pairs.flat_map(|(x, y)| f([x[0], x[1]], [y[0], y[1]])).collect::<Vec<_>>(),
                    )
                })
                // Two products and a sum; the quotient divides by a sum of squares as well.
                .accumulated(4)
        }));
    }
    cases.push(op_case("max", "complex", "", "c64[2], c64[2]").fails_build("C1"));
    cases
}
