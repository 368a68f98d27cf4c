//! Transcendental functions of f32, computed in f64 without branches, so that loops over them become vector code.
//!
//! f64 carries more than twice the digits of the result: polynomials good to about 1e-10 give f32 that is rounded right
//! but for values next to the middle of two numbers, small results and the ends of the range included. Everything is
//! multiplication, addition, division and bits; no fused operation, so that every processor gives the same bits.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

/// Added and taken away again, rounds to the nearest whole number, which then stands in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = 0.0;
    let mut i = N;
    while i > 0 {
        i -= 1;
        sum = sum * x + coefficients[i];
    }
    sum
}

/// eˣ for |x| ≤ 708, relative error below 1e-13: x = n·ln 2 + r, the series in r to r¹¹ (|r| ≤ 0.347), 2ⁿ by its bits.
#[inline(always)]
fn exponential(x: f64) -> f64 {
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2;
    let series = polynomial(
        r,
        [
            1.0,
            1.0,
            1.0 / 2.0,
            1.0 / 6.0,
            1.0 / 24.0,
            1.0 / 120.0,
            1.0 / 720.0,
            1.0 / 5_040.0,
            1.0 / 40_320.0,
            1.0 / 362_880.0,
            1.0 / 3_628_800.0,
            1.0 / 39_916_800.0,
        ],
    );
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    series * power
}

/// Within ±`most`; NaN stays.
#[inline(always)]
fn within(x: f64, most: f64) -> f64 {
    let x = if x > most { most } else { x };
    if x < -most { -most } else { x }
}

/// eˣ.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    exponential(within(f64::from(x), 200.0)) as f32
}

/// 1 / (1 + e^(−x)), in f64.
#[inline(always)]
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + exponential(within(-x, 200.0)))
}

/// 1 / (1 + e^(−x)).
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    logistic(f64::from(x)) as f32
}

/// tanh x = (e²ˣ − 1) / (e²ˣ + 1); near 0, where that cancels, x − x³/3 + 2x⁵/15.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let x = f64::from(x);
    let e = exponential(within(2.0 * x, 100.0));
    let far = (e - 1.0) / (e + 1.0);
    let s = x * x;
    let near = x * polynomial(s, [1.0, -1.0 / 3.0, 2.0 / 15.0]);
    (if s < 1e-5 { near } else { far }) as f32
}

/// ln x: x = 2ⁿ·m with m in [√½, √2); with s = (m − 1) / (m + 1) the series 2·(s + s³/3 + s⁵/5 + …), |s| ≤ 0.172.
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    let wide = f64::from(x);
    let bits = wide.to_bits();
    // The exponent of x/√½, so that the significand left is around 1.
    let shifted = bits.wrapping_sub(FRAC_1_SQRT_2.to_bits());
    let n = (shifted as i64) >> 52;
    let m = f64::from_bits(bits.wrapping_sub((n as u64) << 52));
    // Whole numbers up to 2^51 as f64, without a conversion that vector units lack.
    let n = f64::from_bits((n as u64).wrapping_add(ROUND.to_bits())) - ROUND;
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let series =
        polynomial(q, [2.0, 2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0, 2.0 / 15.0]);
    let number = n * LN_2 + s * series;
    let number = if wide == f64::INFINITY { wide } else { number };
    let number = if wide == 0.0 { f64::NEG_INFINITY } else { number };
    // Also true of NaN.
    (if wide >= 0.0 { number } else { f64::NAN }) as f32
}

/// e^(x²)·erfc(x) for x ≥ 0, relative error 1.6e-11: t·Q(2t − 1) with t = 1 / (1 + x/2). The coefficients are those that
/// `references/fit_erfc.py` prints.
#[inline(always)]
fn scaled_erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x);
    t * polynomial(
        2.0 * t - 1.0,
        [
            0.5107913526200771,
            0.34358034214532923,
            0.13973604643244714,
            0.01822111871468521,
            -0.010755335162433412,
            -0.0032396340519457592,
            0.001545350659166439,
            0.00041890905706891445,
            -0.00033177544266799484,
            -1.8053123732736105e-05,
            7.296214244964127e-05,
            -1.5454009621729925e-05,
            -1.2175882349167236e-05,
            6.384695114774447e-06,
            9.029737773641347e-07,
            -1.0093173351363426e-06,
            6.754726028292488e-08,
        ],
    )
}

/// 1 − erf x, in f64.
#[inline(always)]
fn complement(x: f64) -> f64 {
    let size = x.abs();
    let tail = exponential(within(-x * x, 200.0)) * scaled_erfc(size);
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// 1 − erf x.
#[inline(always)]
pub(super) fn erfc(x: f32) -> f32 {
    complement(f64::from(x)) as f32
}

/// erf x = 1 − erfc x; below ½, where that cancels, 2/√π·(x − x³/3 + x⁵/10 − …).
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let x = f64::from(x);
    let far = 1.0 - complement(x);
    let near = x
        * std::f64::consts::FRAC_2_SQRT_PI
        * polynomial(
            x * x,
            [
                1.0,
                -1.0 / 3.0,
                1.0 / 10.0,
                -1.0 / 42.0,
                1.0 / 216.0,
                -1.0 / 1_320.0,
                1.0 / 9_360.0,
                -1.0 / 75_600.0,
            ],
        );
    (if x.abs() < 0.5 { near } else { far }) as f32
}

/// x·Φ(x) with Φ(x) = erfc(−x/√2)/2 (Hendrycks & Gimpel 2016).
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let wide = f64::from(x);
    (0.5 * wide * complement(-wide * FRAC_1_SQRT_2)) as f32
}

/// A gate that the clamped exponential leaves above 0 is 0 at −∞, where the formulas then give NaN.
#[inline(always)]
fn gate_at(x: f64, gate: f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { gate }
}

/// x·σ(2·√(2/π)·(x + 0.044715·x³)): the approximation of GELU by tanh, written without cancellation.
#[inline(always)]
pub(super) fn gelu_tanh(x: f32) -> f32 {
    let wide = f64::from(x);
    let argument = 2.0 * 0.797_884_560_802_865_4 * (wide + 0.044715 * wide * wide * wide);
    (wide * gate_at(wide, logistic(argument))) as f32
}

/// x·tanh(ln(1 + eˣ)) = x·n/(n + 2) with n = e·(e + 2), e = eˣ (Misra 2019).
#[inline(always)]
pub(super) fn mish(x: f32) -> f32 {
    let wide = f64::from(x);
    let e = exponential(within(wide, 200.0));
    let n = e * (e + 2.0);
    (wide * gate_at(wide, n / (n + 2.0))) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest distance from the f64 value in units of the last place of the f32 nearest to it.
    fn worst(
        ours: impl Fn(f32) -> f32,
        right: impl Fn(f64) -> f64,
        arguments: impl Iterator<Item = f32>,
    ) -> (f64, f32) {
        let mut worst = (0.0, 0.0);
        for x in arguments {
            let (found, exact) = (f64::from(ours(x)), right(f64::from(x)));
            let rounded = exact as f32;
            if f64::from(rounded) == found || (rounded.is_nan() && found.is_nan()) {
                continue;
            }
            let unit = f64::from(f32::from_bits(rounded.abs().to_bits() + 1)) - f64::from(rounded.abs());
            let distance = (found - exact).abs() / unit;
            if distance > worst.0 || distance.is_nan() {
                worst = (distance, x);
            }
        }
        worst
    }

    /// Numbers of every sign and exponent, and the special ones.
    fn numbers() -> impl Iterator<Item = f32> {
        let special =
            [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-45, f32::MAX];
        (0..=u32::MAX / 4093).map(|i| f32::from_bits(i * 4093)).filter(|x| x.is_finite()).chain(special)
    }

    #[test]
    fn functions_are_within_one_unit_of_the_last_place() {
        use rlx_eval::numeric::special;
        type Pair = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
        let pairs: [Pair; 7] = [
            ("exp", exp, libm::exp),
            ("log", log, libm::log),
            ("tanh", tanh, libm::tanh),
            ("sigmoid", sigmoid, special::sigmoid),
            ("erf", erf, special::erf),
            ("erfc", erfc, special::erfc),
            ("gelu", gelu, |x| 0.5 * x * special::erfc(-x * FRAC_1_SQRT_2)),
        ];
        for (name, ours, right) in pairs {
            let (distance, x) = worst(ours, right, numbers());
            assert!(distance <= 0.51, "{name}({x:e}): {distance} units");
        }
    }

    #[test]
    fn limits_are_exact() {
        assert_eq!((exp(f32::NEG_INFINITY), exp(89.0)), (0.0, f32::INFINITY));
        assert_eq!((log(0.0), log(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
        assert!(log(-1.0).is_nan() && exp(f32::NAN).is_nan() && gelu(f32::NAN).is_nan());
        assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
        assert_eq!((gelu(-1e30), gelu(f32::INFINITY)), (0.0, f32::INFINITY));
        assert_eq!((mish(-1e30), gelu_tanh(-1e30)), (0.0, 0.0));
        // As the formulas have it, and PyTorch: −∞·0.
        assert!([gelu, gelu_tanh, mish].iter().all(|f| f(f32::NEG_INFINITY).is_nan()));
    }
}
