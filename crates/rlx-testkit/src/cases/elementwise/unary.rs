//! Cases of functions of one number.

use super::integer_values;
use crate::Array;
use crate::case::{Case, FLOATS, INTEGERS, bools, case, f32s, for_dtypes, for_sizes, i64s, literal, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::DType;

/// A function with its independent definition in f64 and a range inside its domain.
type Function = (&'static str, fn(f64) -> f64, Domain);

/// Exact in every float type.
const EXACT: [Function; 8] = [
    ("neg", |x| -x, Domain::Range(-9.0, 9.0)),
    ("abs", |x| if x.is_sign_negative() { -x } else { x }, Domain::Range(-9.0, 9.0)),
    (
        "sign",
        |x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        },
        Domain::Range(-2.0, 2.0),
    ),
    ("floor", |x| x.floor(), Domain::Range(-9.0, 9.0)),
    ("ceil", |x| x.ceil(), Domain::Range(-9.0, 9.0)),
    ("round", half_to_even, Domain::Range(-9.0, 9.0)),
    ("trunc", |x| x.trunc(), Domain::Range(-9.0, 9.0)),
    ("sqrt", |x| x.sqrt(), Domain::Range(0.0, 50.0)),
];

/// Judged in units of the last place. The references are the platform's functions in f64.
const TRANSCENDENTAL: [Function; 20] = [
    ("rsqrt", |x| 1.0 / x.sqrt(), Domain::Range(0.01, 50.0)),
    ("exp", f64::exp, Domain::Range(-10.0, 10.0)),
    ("expm1", f64::exp_m1, Domain::Range(-1.0, 1.0)),
    ("log", f64::ln, Domain::Range(0.01, 50.0)),
    ("log1p", f64::ln_1p, Domain::Range(-0.9, 2.0)),
    ("sin", f64::sin, Domain::Range(-10.0, 10.0)),
    ("cos", f64::cos, Domain::Range(-10.0, 10.0)),
    ("tan", f64::tan, Domain::Range(-10.0, 10.0)),
    ("asin", f64::asin, Domain::Range(-1.0, 1.0)),
    ("acos", f64::acos, Domain::Range(-1.0, 1.0)),
    ("atan", f64::atan, Domain::Range(-10.0, 10.0)),
    ("sinh", f64::sinh, Domain::Range(-10.0, 10.0)),
    ("cosh", f64::cosh, Domain::Range(-10.0, 10.0)),
    ("tanh", f64::tanh, Domain::Range(-5.0, 5.0)),
    ("asinh", inverse_sinh, Domain::Range(-10.0, 10.0)),
    ("acosh", inverse_cosh, Domain::Range(1.0, 50.0)),
    ("atanh", |x| 0.5 * ((2.0 * x) / (1.0 - x)).ln_1p(), Domain::Range(-0.99, 0.99)),
    (
        "sigmoid",
        |x| if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) },
        Domain::Range(-20.0, 20.0),
    ),
    // The two below are refined by recorded values; here only their symmetry and ends are at stake.
    (
        "erf",
        |x| {
            if x.abs() > 6.0 {
                x.signum()
            } else if x.is_nan() || x == 0.0 {
                x
            } else {
                error_function(x)
            }
        },
        Domain::Range(-3.0, 3.0),
    ),
    (
        "erfc",
        |x| if x > 0.5 { complement(x) } else { 1.0 - if x < -6.0 { -1.0 } else { error_function(x) } },
        Domain::Range(-3.0, 3.0),
    ),
];

/// The nearest whole number, half to even, from floor and the distance to it.
fn half_to_even(x: f64) -> f64 {
    let below = x.floor();
    let nearest = match x - below {
        d if d < 0.5 => below,
        d if d > 0.5 => below + 1.0,
        _ if below % 2.0 == 0.0 => below,
        _ => below + 1.0,
    };
    if x.is_finite() { nearest.copysign(x) } else { x }
}

/// arsinh by its logarithm, arranged to be exact near 0.
fn inverse_sinh(x: f64) -> f64 {
    let a = x.abs();
    if a > 1e150 {
        return (a.ln() + std::f64::consts::LN_2).copysign(x);
    }
    (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p().copysign(x)
}

/// arcosh by its logarithm, arranged to be exact near 1.
fn inverse_cosh(x: f64) -> f64 {
    if x > 1e150 {
        x.ln() + std::f64::consts::LN_2
    } else {
        ((x - 1.0) + ((x - 1.0) * (x + 1.0)).sqrt()).ln_1p()
    }
}

/// 2/√π e^(−x²) Σ 2^k x^(2k+1) / (2k+1)!!, whose terms are all of one sign (Abramowitz & Stegun 7.1.6).
fn error_function(x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (x, x, 0.0);
    while term.abs() > sum.abs() * 1e-18 {
        k += 1.0;
        term *= 2.0 * x * x / (2.0 * k + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// erfc for x > 0.5 by its continued fraction (Abramowitz & Stegun 7.1.14), from far in to out.
fn complement(x: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    let fraction = (1..=600).rev().fold(0.0, |tail, k| 0.5 * f64::from(k) / (x + tail));
    (-x * x).exp() / (std::f64::consts::PI.sqrt() * (x + fraction))
}

/// Cases of the functions of one number.
pub(in crate::cases) fn unary() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, f, domain) in EXACT {
        let narrow: &[DType] = &[DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ];
        for (name, domain) in
            [("range", domain.clone()), ("special", domain.special()), ("extreme", Domain::Extreme)]
        {
            cases.extend(for_dtypes(&[FLOATS, narrow].concat(), |dtype| {
                op_case(op, name, "", &format!("{dtype}[3, n]"))
                    .sizes([("n", 13)])
                    .random(domain.clone())
                    .formula(move |x| x[0].map(f))
            }));
        }
    }
    for (op, f, domain) in TRANSCENDENTAL {
        let judged = |case: Case| case.formula(move |x| x[0].map(f)).transcendental();
        cases.extend(for_dtypes(FLOATS, |dtype| {
            judged(
                op_case(op, "range", "", &format!("{dtype}[3, n]")).sizes([("n", 13)]).random(domain.clone()),
            )
        }));
        cases.extend(for_dtypes(FLOATS, |dtype| {
            judged(op_case(op, "special", "", &format!("{dtype}[40]")).random(domain.clone().special()))
        }));
        let near_zero: Vec<f64> = (-20..=20).map(|i| f64::from(i) * 1e-5).collect();
        let zero_is_inside = !["rsqrt", "log", "acosh"].contains(&op);
        cases.extend(zero_is_inside.then(|| {
            judged(op_case(op, "near_zero", "", "f32[41]").input(literal(DType::F32, [41], near_zero)))
        }));
    }
    for op in ["neg", "exp", "tanh"] {
        let f: fn(f64) -> f64 = if op == "neg" {
            |x| -x
        } else if op == "exp" {
            f64::exp
        } else {
            f64::tanh
        };
        cases.extend(for_sizes(64, |n| {
            op_case(op, "size", "", "f32[n]")
                .sizes([("n", n)])
                .random(Domain::Range(-3.0, 3.0))
                .formula(move |x| x[0].map(f))
                .transcendental()
        }));
        cases.push(
            op_case(op, "scalar", "", "f32[]")
                .random(Domain::Range(-3.0, 3.0))
                .formula(move |x| x[0].map(f))
                .transcendental(),
        );
    }
    for op in ["erf", "erfc", "erfinv", "lgamma", "digamma"] {
        cases.extend(golden(include_str!("../../../golden/elementwise.case"), op));
    }
    cases.extend(integers());
    cases.extend(classification());
    cases.extend(complex());
    cases.extend(wrong());
    cases.push(chain());
    cases
}

fn integers() -> Vec<Case> {
    let mut cases = Vec::new();
    let functions: [(&str, fn(i128) -> i128); 4] =
        [("neg", |x| -x), ("abs", i128::abs), ("sign", i128::signum), ("bit_not", |x| !x)];
    for (op, f) in functions {
        cases.extend(for_dtypes(INTEGERS, |dtype| {
            let case = op_case(op, "whole", "", &format!("{dtype}[5, n]"))
                .sizes([("n", 9)])
                .random(Domain::Extreme.special());
            integer_values(case, dtype, |x| f(x[0]))
        }));
    }
    cases.push(
        op_case("abs", "least_wraps", "", "i64[2]")
            .input(i64s([2], [i64::MIN, -3]))
            .values([i64s([2], [i64::MIN, 3])]),
    );
    cases.push(
        op_case("not", "both", "", "bool[2]")
            .input(bools([2], [true, false]))
            .values([bools([2], [false, true])]),
    );
    cases
}

fn classification() -> Vec<Case> {
    let functions: [(&str, fn(f64) -> bool); 3] =
        [("is_nan", f64::is_nan), ("is_inf", f64::is_infinite), ("is_finite", f64::is_finite)];
    let mut cases = Vec::new();
    for (op, holds) in functions {
        cases.extend(for_dtypes(&[FLOATS, &[DType::F8E4M3FN, DType::F8E5M2]].concat(), |dtype| {
            op_case(op, "special", "", &format!("{dtype}[7, 11]"))
                .random(Domain::Normal.special())
                .formula(move |x| x[0].map(|x| f64::from(u8::from(holds(x)))))
        }));
    }
    // Columns 4 to 50 of a wide array (a kernel that ignored the stride would write far outside its result).
    cases.push(
        case(
            "is_finite",
            "columns_of_a_wide_array",
            "(%x: f32[150, 64]) {
            %s = slice<starts=[0, 4], sizes=[150, 46], steps=[1, 1]>(%x)
            %y = is_finite(%s)
            return \"y\" = %y
        }",
        )
        .random(Domain::Normal.special())
        .formula(|x| {
            Array::from_fn([150, 46], |i| f64::from(u8::from(x[0].at(&[i[0], i[1] + 4]).is_finite())))
        }),
    );
    cases
}

fn complex() -> Vec<Case> {
    let parts = |x: &Array| x.data.chunks(2).map(|c| (c[0], c[1])).collect::<Vec<_>>();
    let mut cases = for_dtypes(&[DType::C64, DType::C128], |dtype| {
        op_case("abs", "modulus", "", &format!("{dtype}[4, 3]"))
            .random(Domain::Range(-3.0, 3.0))
            .formula(move |x| {
                Array::new(
                    [4, 3],
                    parts(&x[0]).iter().map(|(re, im)| (re * re + im * im).sqrt()).collect::<Vec<_>>(),
                )
            })
            .transcendental()
    });
    cases.extend(for_dtypes(&[DType::C64, DType::C128], |dtype| {
        op_case("neg", "complex", "", &format!("{dtype}[4, 3]"))
            .random(Domain::Normal)
            .formula(|x| x[0].map(|v| -v))
    }));
    for (op, pick) in [("real", 0), ("imag", 1)] {
        cases.extend(for_dtypes(&[DType::C64, DType::C128], |dtype| {
            op_case(op, "part", "", &format!("{dtype}[4, 3]")).random(Domain::Normal.special()).formula(
                move |x| Array::new([4, 3], x[0].data.chunks(2).map(|c| c[pick]).collect::<Vec<_>>()),
            )
        }));
    }
    cases.extend(for_dtypes(&[DType::C64, DType::C128], |dtype| {
        op_case("conj", "parts", "", &format!("{dtype}[5]")).random(Domain::Normal).formula(|x| {
            Array::new([5, 2], x[0].data.chunks(2).flat_map(|c| [c[0], -c[1]]).collect::<Vec<_>>())
        })
    }));
    cases
}

fn wrong() -> Vec<Case> {
    let mut cases: Vec<Case> = EXACT
        .iter()
        .chain(&TRANSCENDENTAL)
        .map(|(op, ..)| op_case(op, "bool", "", "bool[2]").fails_build("C1"))
        .collect();
    cases.extend([
        op_case("exp", "integers", "", "i32[2]").fails_build("C1"),
        op_case("exp", "two_operands", "", "f32[2], f32[2]").fails_build("C0"),
        op_case("not", "integers", "", "u8[2]").fails_build("C1"),
        op_case("bit_not", "bool", "", "bool[2]").fails_build("C1"),
        op_case("real", "real_number", "", "f32[2]").fails_build("C1"),
        op_case("exp", "blocks", "", "q4_0[32]").fails_build("C1"),
    ]);
    cases
}

/// 200 operations one after the other.
fn chain() -> Case {
    let mut text = String::from("(%v0: f32[n]) {\n");
    for i in 0..200 {
        let op = ["neg", "abs", "floor", "neg"][i % 4];
        text += &format!("%v{} = {op}(%v{i})\n", i + 1);
    }
    text += "return \"y\" = %v200 }";
    case("neg", "chain_of_200", &text).input(f32s([3], [-2.5, 1.5, 0.0])).formula(|x| {
        x[0].map(|v| {
            (0..200).fold(v, |v, i| match i % 4 {
                0 | 3 => -v,
                1 => v.abs(),
                _ => v.floor(),
            })
        })
    })
}
