//! Elementary float operations whose corner cases the platform does not settle: NaN, signed zero, ties.
//!
//! All are exact or, for [`power`], correct to within an ulp of f64.

/// The greater of two numbers; NaN if either is NaN, and +0 counts as greater than −0 (`maximum` of IEEE
/// 754-2019).
pub fn maximum(lhs: f64, rhs: f64) -> f64 {
    if lhs.is_nan() || rhs.is_nan() {
        f64::NAN
    } else if lhs == rhs {
        // Equal numbers differ at most in the sign of zero.
        if lhs.is_sign_negative() { rhs } else { lhs }
    } else if lhs > rhs {
        lhs
    } else {
        rhs
    }
}

/// The lesser of two numbers; NaN if either is NaN, and −0 counts as less than +0 (`minimum` of IEEE
/// 754-2019).
pub fn minimum(lhs: f64, rhs: f64) -> f64 {
    -maximum(-lhs, -rhs)
}

/// −1, ±0 or 1 as the number is negative, zero (whose sign is kept) or positive; NaN for NaN.
pub fn sign(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 { x } else { 1_f64.copysign(x) }
}

/// The nearest integer, ties to the even one; the sign of zero is kept.
pub fn round_half_even(x: f64) -> f64 {
    x.round_ties_even()
}

/// `base` to the power `exponent` as IEEE 754 `pow`: `pow(x, ±0) = 1` and `pow(1, y) = 1` even for NaN,
/// `pow(−1, ±∞) = 1`, and NaN for a finite negative base with a finite exponent that is no integer.
pub fn power(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

/// The remainder of the truncated quotient, exact: it has the sign of `lhs` (C's `fmod`). NaN when `rhs` is
/// zero or `lhs` infinite.
pub fn truncated_remainder(lhs: f64, rhs: f64) -> f64 {
    libm::fmod(lhs, rhs)
}

/// The remainder of the floored quotient: it has the sign of `rhs` (Python's `%`, numpy's `mod`).
///
/// The sum that moves a truncated remainder to the side of `rhs` is rounded once; all else is exact. A zero
/// remainder has the sign of `rhs`.
pub fn floored_remainder(lhs: f64, rhs: f64) -> f64 {
    let remainder = libm::fmod(lhs, rhs);
    if remainder == 0.0 {
        0_f64.copysign(rhs)
    } else if (remainder < 0.0) != (rhs < 0.0) {
        remainder + rhs
    } else {
        remainder
    }
}
