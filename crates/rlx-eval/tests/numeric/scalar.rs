//! Integer and float semantics at their corners.

use rlx_eval::numeric::float;
use rlx_eval::numeric::minifloat::F16;
use rlx_eval::numeric::wrap::{DivisionByZero, Integer};

#[test]
fn eight_bit_arithmetic_is_that_of_rusts_own_8_bit_types() {
    for lhs in i8::MIN..=i8::MAX {
        for rhs in i8::MIN..=i8::MAX {
            let (a, b) = (i64::from(lhs), i64::from(rhs));
            assert_eq!(a.wrapped_add(b, 8), i64::from(lhs.wrapping_add(rhs)));
            assert_eq!(a.wrapped_sub(b, 8), i64::from(lhs.wrapping_sub(rhs)));
            assert_eq!(a.wrapped_mul(b, 8), i64::from(lhs.wrapping_mul(rhs)));
            if rhs == 0 {
                assert_eq!(a.truncated_quotient(b, 8), Err(DivisionByZero));
                assert_eq!(a.truncated_remainder(b), Err(DivisionByZero));
                assert_eq!(a.floored_remainder(b), Err(DivisionByZero));
            } else {
                assert_eq!(a.truncated_quotient(b, 8), Ok(i64::from(lhs.wrapping_div(rhs))));
                assert_eq!(a.truncated_remainder(b), Ok(i64::from(lhs.wrapping_rem(rhs))));
                let floored = a - b * (a as f64 / b as f64).floor() as i64;
                assert_eq!(a.floored_remainder(b), Ok(floored), "{a} mod {b}");
            }
            let (lhs, rhs) = (lhs as u8, rhs as u8);
            let (a, b) = (u64::from(lhs), u64::from(rhs));
            assert_eq!(a.wrapped_add(b, 8), u64::from(lhs.wrapping_add(rhs)));
            assert_eq!(a.wrapped_sub(b, 8), u64::from(lhs.wrapping_sub(rhs)));
            assert_eq!(a.wrapped_mul(b, 8), u64::from(lhs.wrapping_mul(rhs)));
            let quotient = lhs.checked_div(rhs).map(u64::from).ok_or(DivisionByZero);
            assert_eq!(a.truncated_quotient(b, 8), quotient);
            let remainder = lhs.checked_rem(rhs).map(u64::from).ok_or(DivisionByZero);
            assert_eq!(a.truncated_remainder(b), remainder);
            assert_eq!(a.floored_remainder(b), remainder);
        }
        let value = i64::from(lhs);
        assert_eq!(value.wrapped_neg(8), i64::from(lhs.wrapping_neg()));
        assert_eq!(value.wrapped_abs(8), i64::from(lhs.wrapping_abs()));
        assert_eq!(value.sign(), i64::from(lhs.signum()));
    }
}

#[test]
fn full_width_arithmetic_wraps() {
    assert_eq!(i64::MAX.wrapped_add(1, 64), i64::MIN);
    assert_eq!(i64::MIN.truncated_quotient(-1, 64), Ok(i64::MIN));
    assert_eq!(i64::MIN.truncated_remainder(-1), Ok(0));
    assert_eq!(i64::MIN.floored_remainder(-1), Ok(0));
    assert_eq!(i64::MAX.floored_remainder(i64::MIN), Ok(-1));
    assert_eq!(1_u64.wrapped_neg(64), u64::MAX);
    assert_eq!([i64::least(4), i64::greatest(4), i64::least(64)], [-8, 7, i64::MIN]);
    assert_eq!([u64::greatest(1), u64::greatest(64)], [1, u64::MAX]);
    assert_eq!([300_i64.wrap(8), 200_i64.wrap(8), (-9_i64).wrap(4)], [44, -56, 7]);
    assert_eq!([300_u64.wrap(8), u64::MAX.wrap(4)], [44, 15]);
}

#[test]
fn powers_wrap_and_negative_exponents_vanish_but_for_units() {
    assert_eq!(3_i64.wrapped_pow(5, 8), i64::from(3_i8.wrapping_pow(5)));
    assert_eq!((-2_i64).wrapped_pow(63, 64), i64::MIN);
    assert_eq!(2_u64.wrapped_pow(64, 64), 0);
    assert_eq!(0_i64.wrapped_pow(0, 32), 1);
    // 3 to the power 2^64 is 1 modulo 2^64.
    assert_eq!(3_u64.wrapped_pow(u64::MAX, 64).wrapping_mul(3), 1);
    for exponent in [-1, -2, i64::MIN] {
        assert_eq!([0_i64, 2, -2].map(|base| base.wrapped_pow(exponent, 32)), [0; 3]);
        assert_eq!(1_i64.wrapped_pow(exponent, 32), 1);
        assert_eq!((-1_i64).wrapped_pow(exponent, 32), if exponent == -1 { -1 } else { 1 });
    }
}

#[test]
fn shifts_by_the_width_or_more_leave_nothing_but_the_sign() {
    assert_eq!([1_u64.shift_left(7, 8), 1_u64.shift_left(8, 8), 1_u64.shift_left(64, 64)], [128, 0, 0]);
    assert_eq!([255_u64.shift_right(7, 8), 255_u64.shift_right(8, 8)], [1, 0]);
    assert_eq!([1_i64.shift_left(7, 8), 1_i64.shift_left(8, 8), 1_i64.shift_left(-1, 8)], [-128, 0, 0]);
    assert_eq!([-5_i64, 5].map(|value| value.shift_right(1, 8)), [-3, 2]);
    for amount in [8, 63, 64, 1000, -1] {
        assert_eq!([-5_i64, 5].map(|value| value.shift_right(amount, 8)), [-1, 0]);
    }
    assert_eq!(1_u64.shift_left(u64::MAX, 64), 0);
}

#[test]
fn floats_cast_to_integers_truncate_and_saturate() {
    let signed = |x: f64| i64::from_f64(x, 8);
    assert_eq!(
        [2.9, -2.9, 127.5, 1e9, -128.9, f64::NEG_INFINITY, f64::NAN].map(signed),
        [2, -2, 127, 127, -128, -128, 0]
    );
    let unsigned = |x: f64| u64::from_f64(x, 8);
    assert_eq!([2.9, -2.9, 255.9, 256.0, f64::INFINITY, f64::NAN].map(unsigned), [2, 0, 255, 255, 255, 0]);
    assert_eq!([i64::from_f64(1e300, 64), i64::from_f64(-1e300, 64)], [i64::MAX, i64::MIN]);
    assert_eq!(u64::from_f64(1e300, 64), u64::MAX);
}

#[test]
fn integers_cast_to_narrow_floats_are_rounded_once() {
    // Just above the middle of two neighbours in f32; the nearest f64 is the middle itself.
    let above_middle = (1_i64 << 62) + (1 << 38) + 1;
    assert_eq!(above_middle.to_f64() as f32, 2_f32.powi(62));
    assert_eq!(above_middle.to_f64_odd() as f32, above_middle as f32);
    assert_eq!((-above_middle).to_f64_odd() as f32, -above_middle as f32);
    assert_eq!(u64::MAX.to_f64_odd() as f32, u64::MAX as f32);
    assert_eq!(i64::MIN.to_f64_odd(), -(2_f64.powi(63)));
    for value in [0_i64, 1, -1, (1 << 53) - 1, 1 << 53] {
        assert_eq!(value.to_f64_odd(), value as f64);
    }
    assert_eq!(F16.round(2049_i64.to_f64_odd(), false), 2048.0);
    let mut state = 1_u64;
    for _ in 0..10_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The products have long runs of zeros and ones near the ties.
        let value = (state >> 40) * ((1 << 40) + 1);
        assert_eq!(value.to_f64_odd() as f32, value as f32, "{value}");
    }
}

#[test]
fn maximum_and_minimum_propagate_nan_and_order_zeros() {
    assert!(float::maximum(f64::NAN, 1.0).is_nan() && float::maximum(1.0, f64::NAN).is_nan());
    assert!(float::minimum(f64::NAN, 1.0).is_nan() && float::minimum(1.0, f64::NAN).is_nan());
    for (lhs, rhs) in [(0.0, -0.0), (-0.0, 0.0)] {
        assert!(float::maximum(lhs, rhs).is_sign_positive());
        assert!(float::minimum(lhs, rhs).is_sign_negative());
    }
    assert!(float::maximum(-0.0, -0.0).is_sign_negative());
    assert!(float::minimum(0.0, 0.0).is_sign_positive());
    assert_eq!([float::maximum(-1.0, 2.0), float::minimum(-1.0, 2.0)], [2.0, -1.0]);
    assert_eq!([float::maximum(2.0, -1.0), float::minimum(2.0, -1.0)], [2.0, -1.0]);
}

#[test]
fn sign_keeps_zeros_and_nan_and_rounding_goes_to_even() {
    assert_eq!([-3.0, 7.0, f64::INFINITY].map(float::sign), [-1.0, 1.0, 1.0]);
    assert!(float::sign(-0.0).is_sign_negative() && float::sign(-0.0) == 0.0);
    assert!(float::sign(f64::NAN).is_nan());
    assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 2.6].map(float::round_half_even), [0.0, 2.0, 2.0, 0.0, -2.0, 3.0]);
    assert!(float::round_half_even(-0.5).is_sign_negative());
}

#[test]
fn powers_follow_ieee_754() {
    assert_eq!([float::power(f64::NAN, 0.0), float::power(1.0, f64::NAN)], [1.0, 1.0]);
    assert_eq!(float::power(-1.0, f64::INFINITY), 1.0);
    assert!(float::power(-8.0, 1.0 / 3.0).is_nan());
    assert_eq!([float::power(-0.0, -1.0), float::power(-0.0, -2.0)], [f64::NEG_INFINITY, f64::INFINITY]);
    assert_eq!([float::power(-2.0, 3.0), float::power(2.0, -2.0)], [-8.0, 0.25]);
}

#[test]
fn remainders_take_the_sign_of_dividend_or_divisor() {
    let pairs = [(5.5, 2.0), (-5.5, 2.0), (5.5, -2.0), (-5.5, -2.0)];
    assert_eq!(pairs.map(|(lhs, rhs)| float::truncated_remainder(lhs, rhs)), [1.5, -1.5, 1.5, -1.5]);
    assert_eq!(pairs.map(|(lhs, rhs)| float::floored_remainder(lhs, rhs)), [1.5, 0.5, -0.5, -1.5]);
    assert!(float::floored_remainder(4.0, -2.0).is_sign_negative());
    assert!(float::floored_remainder(1.0, 0.0).is_nan() && float::truncated_remainder(1.0, 0.0).is_nan());
    assert_eq!(float::floored_remainder(3.0, f64::INFINITY), 3.0);
    assert_eq!(float::floored_remainder(-3.0, f64::INFINITY), f64::INFINITY);
}
