//! Extremes, signs and roundings of floats, as loops of lanes call them.

/// −1, ±0 or 1; NaN stays.
#[inline(always)]
pub(super) fn sign(x: f32) -> f32 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

/// The greater; NaN if either is; max(−0, +0) = +0.
#[inline(always)]
pub(crate) fn max(x: f32, y: f32) -> f32 {
    let greater = if x > y { x } else { y };
    // Equal numbers differ only as zeros do, by the sign.
    let equal = f32::from_bits(x.to_bits() & y.to_bits());
    let number = if x == y { equal } else { greater };
    if x.is_nan() { x } else { number }
}

/// The lesser; NaN if either is; min(−0, +0) = −0.
#[inline(always)]
pub(crate) fn min(x: f32, y: f32) -> f32 {
    let lesser = if x < y { x } else { y };
    let equal = f32::from_bits(x.to_bits() | y.to_bits());
    let number = if x == y { equal } else { lesser };
    if x.is_nan() { x } else { number }
}

/// The integer as f64, rounded to odd: what a second rounding needs to be right (Boldo & Melquiond 2008).
pub(super) fn to_odd(x: i128) -> f64 {
    let nearest = x as f64;
    let back = nearest as i128;
    if back == x || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The neighbour on the other side of x has the odd significand.
    let toward_zero = back.unsigned_abs() > x.unsigned_abs();
    let bits = nearest.to_bits();
    f64::from_bits(if toward_zero { bits - 1 } else { bits + 1 })
}

/// The number as f32, rounded to odd.
#[inline(always)]
pub(crate) fn to_odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    if back == x || x.is_nan() || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    let bits = nearest.to_bits();
    f32::from_bits(if back.abs() > x.abs() { bits - 1 } else { bits + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_keep_nan_and_order_zeros() {
        assert!(max(f32::NAN, 1.0).is_nan() && max(1.0, f32::NAN).is_nan());
        assert!(min(f32::NAN, 1.0).is_nan() && min(1.0, f32::NAN).is_nan());
        assert_eq!(max(-0.0, 0.0).to_bits(), 0);
        assert_eq!(min(0.0, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!((max(1.0, 2.0), min(1.0, 2.0)), (2.0, 1.0));
    }

    #[test]
    fn rounding_to_odd_lets_the_second_rounding_be_right() {
        // 2^53 + 1 lies between two f64; to odd it must not become the even one.
        let x = (1i128 << 53) + 1;
        assert_eq!(to_odd(x).to_bits() & 1, 1);
        assert_eq!(to_odd(12_345), 12_345.0);
        assert_eq!(to_odd(-x), -to_odd(x));
    }

    #[test]
    fn casts_through_odd_round_once() {
        // Just above the middle of two f16: rounding to f32 first would land on the middle.
        let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(half::f16::from_f32(to_odd_f32(x)).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(to_odd_f32(0.5), 0.5);
        assert_eq!(to_odd_f32(1e300), f32::MAX);
    }
}
