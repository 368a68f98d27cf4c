//! Special functions of one `f64`, to within 1e-15 of the true value (relative), where not said otherwise.
//!
//! `erf`, `erfc`, `lgamma` and `tgamma` are those of the `libm` crate; the rest is built here from textbook
//! formulas (Abramowitz and Stegun, 1964, cited as A&S). All give NaN for NaN.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// The error function, 2/√π ∫₀ˣ exp(−t²) dt.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// The complement 1 − erf(x), accurate where it is tiny.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// The inverse of [`erf`]: ±∞ at ±1, NaN beyond.
///
/// Starts from Winitzki's closed formula (good to 2e-3; "A handy approximation for the error function and its
/// inverse", 2008) and takes Halley steps, each of which triples the number of right digits. The residual is
/// taken from `erfc` near 1, where `erf` no longer tells numbers apart.
pub fn erfinv(x: f64) -> f64 {
    const WINITZKI: f64 = 0.147;
    const STEPS: usize = 3;
    let magnitude = x.abs();
    if magnitude == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    if magnitude == 0.0 || magnitude.is_nan() {
        return x;
    }
    if magnitude > 1.0 {
        return f64::NAN;
    }
    let log = libm::log1p(-magnitude * magnitude);
    let half = 2.0 / (PI * WINITZKI) + log / 2.0;
    let product = -log / WINITZKI;
    // √(√(half² + product) − half), without the cancellation that small arguments would suffer.
    let mut y = libm::sqrt(product / (libm::sqrt(half * half + product) + half));
    if y < f64::MIN_POSITIVE.sqrt() {
        // The square of x underflows; erf is linear here to far below an ulp.
        return x / FRAC_2_SQRT_PI;
    }
    for _ in 0..STEPS {
        let residual = if magnitude < 0.5 { erf(y) - magnitude } else { (1.0 - magnitude) - erfc(y) };
        let newton = residual / (FRAC_2_SQRT_PI * libm::exp(-y * y));
        y -= newton / (1.0 + y * newton);
    }
    y.copysign(x)
}

/// ln |Γ(x)|; +∞ at 0 and the negative integers.
///
/// For negative `x` the error is absolute (1e-15 · max(1, |result|)): there the function has roots between the
/// integers at which no relative accuracy is kept.
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Γ(x); NaN at the negative integers, ±∞ at ±0.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// The positive root of digamma as the sum of two numbers.
const DIGAMMA_ROOT: [f64; 2] = [1.4616321449683622, 9.549995429965697e-17];

/// Taylor coefficients of digamma at its positive root, from degree 1 on: ψ⁽ᵏ⁾(root)/k!, worked out with mpmath
/// to 60 digits. On [1, 2] what is left out is below 1e-17.
const DIGAMMA_TAYLOR: [f64; 40] = [
    0.9676722454476212,
    -0.4427631689835921,
    0.258499760955651,
    -0.16394270544240652,
    0.10782405069126237,
    -0.07219956125645471,
    0.04880428816414311,
    -0.03316112647484736,
    0.022597648232218104,
    -0.01542476590494896,
    0.010538791616612175,
    -0.007204534386356869,
    0.004926781395729853,
    -0.003369801655439328,
    0.002305126326734928,
    -0.0015769367714301972,
    0.0010788252019162967,
    -0.0007380709389960052,
    0.000504953265834602,
    -0.0003454680251063077,
    0.00023635601564027053,
    -0.00016170622091974803,
    0.0001106337276874741,
    -7.569179582195066e-05,
    5.178575795222081e-05,
    -3.5430070947659604e-05,
    2.424006611860132e-05,
    -1.6584242271854135e-05,
    1.134638458466385e-05,
    -7.762817668462094e-06,
    5.3110609208898636e-06,
    -3.6336507898010456e-06,
    2.486022733129538e-06,
    -1.7008538854332607e-06,
    1.1636675363548843e-06,
    -7.96142543124197e-07,
    5.446941930669446e-07,
    -3.7266161283438227e-07,
    2.549626552021554e-07,
    -1.7443695117727745e-07,
];

/// B₂ₖ/(2k), from k = 1 on: the coefficients of −x⁻²ᵏ in the asymptotic series of digamma (A&S 6.3.18).
const DIGAMMA_ASYMPTOTIC: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
];

/// The logarithmic derivative of Γ: ψ(x) = Γ′(x)/Γ(x); ∓∞ at ±0, NaN at the negative integers.
///
/// For negative `x` the error is absolute (1e-14 · max(1, |π cot πx|)): there the function has roots between
/// the integers at which no relative accuracy is kept.
pub fn digamma(x: f64) -> f64 {
    /// From here on the asymptotic series is good to the last bit.
    const LARGE: f64 = 10.0;
    if x == 0.0 {
        return -f64::INFINITY.copysign(x);
    }
    if x < 0.0 {
        // Reflection (A&S 6.3.7). The remainder by 1 is exact and cot has period 1 in x.
        let fraction = libm::fmod(x, 1.0);
        return if fraction == 0.0 || fraction.is_nan() {
            f64::NAN
        } else {
            digamma(1.0 - x) - PI / libm::tan(PI * fraction)
        };
    }
    if x < LARGE {
        // ψ(x + 1) = ψ(x) + 1/x (A&S 6.3.5) leads to [1, 2].
        let mut base = x;
        let mut shift = 0.0;
        while base > 2.0 {
            base -= 1.0;
            shift += 1.0 / base;
        }
        if base < 1.0 {
            shift -= 1.0 / base;
            base += 1.0;
        }
        let offset = (base - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1];
        return shift + offset * polynomial(&DIGAMMA_TAYLOR, offset);
    }
    let inverse = 1.0 / x;
    let inverse_square = inverse * inverse;
    libm::log(x) - inverse / 2.0 - inverse_square * polynomial(&DIGAMMA_ASYMPTOTIC, inverse_square)
}

/// Σ coefficients\[k\] xᵏ.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// The logistic function 1/(1 + exp(−x)), accurate where it is tiny.
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let power = libm::exp(x);
        power / (1.0 + power)
    }
}

/// ln(1 + exp(x)), without overflow and accurate where it is tiny.
pub fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + libm::log1p(libm::exp(-x)) } else { libm::log1p(libm::exp(x)) }
}

/// ln sigmoid(x) = −softplus(−x).
pub fn log_sigmoid(x: f64) -> f64 {
    -softplus(-x)
}

/// ln(exp(lhs) + exp(rhs)), without overflow; −∞ stands for the logarithm of zero.
///
/// The error is relative to max(|lhs|, |rhs|), since the two can cancel.
pub fn log_add_exp(lhs: f64, rhs: f64) -> f64 {
    if lhs == rhs {
        // Also keeps two equal infinities from giving NaN.
        return lhs + std::f64::consts::LN_2;
    }
    let (greater, lesser) = if lhs > rhs { (lhs, rhs) } else { (rhs, lhs) };
    greater + libm::log1p(libm::exp(lesser - greater))
}

/// The normal distribution function Φ(x) = erfc(−x/√2)/2.
///
/// In the lower tail the relative error of erfc's argument is multiplied by x², so the argument is carried as a
/// sum of two numbers; the second enters through the derivative of erfc.
pub fn normal_cdf(x: f64) -> f64 {
    /// 1/√2 − `FRAC_1_SQRT_2`, the rounding error of the constant.
    const FRAC_1_SQRT_2_ERROR: f64 = -4.833646656726457e-17;
    if x >= 0.0 || x.is_infinite() {
        return erfc(-x * FRAC_1_SQRT_2) / 2.0;
    }
    let argument = -x * FRAC_1_SQRT_2;
    let error = libm::fma(-x, FRAC_1_SQRT_2, -argument) - x * FRAC_1_SQRT_2_ERROR;
    (erfc(argument) - FRAC_2_SQRT_PI * libm::exp(-argument * argument) * error) / 2.0
}
