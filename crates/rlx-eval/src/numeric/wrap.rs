//! Integer arithmetic of a declared width on 64-bit carriers.
//!
//! A value of an integer type of `bits` bits (1 to 64) is held in an [`i64`] (signed types) or a [`u64`]
//! (unsigned types) and always lies in the type's range. [`Integer`] gives the operations; each returns a
//! value in range again. Rules: two's complement wrapping; division truncates; what a division by zero gives is
//! an error, never a value.

use thiserror::Error;

/// Division or remainder by zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("integer division by zero")]
pub struct DivisionByZero;

/// A 64-bit carrier of integers of `bits` bits, from 1 to 64.
pub trait Integer: Copy + Ord + Default {
    /// `self` reduced modulo 2^bits into the range of the type.
    fn wrap(self, bits: u32) -> Self;
    /// The least value of the type.
    fn least(bits: u32) -> Self;
    /// The greatest value of the type.
    fn greatest(bits: u32) -> Self;
    /// `self + rhs`, wrapped.
    fn wrapped_add(self, rhs: Self, bits: u32) -> Self;
    /// `self − rhs`, wrapped.
    fn wrapped_sub(self, rhs: Self, bits: u32) -> Self;
    /// `self · rhs`, wrapped.
    fn wrapped_mul(self, rhs: Self, bits: u32) -> Self;
    /// `−self`, wrapped: the least value of a signed type is its own negative.
    fn wrapped_neg(self, bits: u32) -> Self;
    /// `|self|`, wrapped: the least value of a signed type is its own magnitude.
    fn wrapped_abs(self, bits: u32) -> Self;
    /// −1, 0 or 1.
    fn sign(self) -> Self;
    /// The quotient truncated toward zero; the least signed value by −1 wraps to itself.
    fn truncated_quotient(self, rhs: Self, bits: u32) -> Result<Self, DivisionByZero>;
    /// The remainder of [`truncated_quotient`](Self::truncated_quotient): it has the sign of `self`; the least signed value by −1 gives 0.
    fn truncated_remainder(self, rhs: Self) -> Result<Self, DivisionByZero>;
    /// The remainder of the floored quotient: it has the sign of `rhs` (ONNX `Mod`, Python's `%`).
    fn floored_remainder(self, rhs: Self) -> Result<Self, DivisionByZero>;
    /// `self` to the power `exponent`, wrapped. A negative exponent gives 0, except that 1 stays 1 and −1
    /// becomes 1 or −1 as the exponent is even or odd. Anything to the power 0 is 1.
    fn wrapped_pow(self, exponent: Self, bits: u32) -> Self;
    /// `self · 2^amount`, wrapped; 0 when `amount` is at least `bits` or negative.
    fn shift_left(self, amount: Self, bits: u32) -> Self;
    /// `self · 2^−amount`, rounded down. When `amount` is at least `bits` or negative: 0, or −1 for negative
    /// `self`.
    fn shift_right(self, amount: Self, bits: u32) -> Self;
    /// A float cast to the type: truncated toward zero, saturated at the ends; NaN gives 0.
    fn from_f64(x: f64, bits: u32) -> Self;
    /// The nearest `f64`, ties to even: the cast to f64 itself. See
    /// [`to_f64_odd`](Self::to_f64_odd) for narrower floats.
    fn to_f64(self) -> f64;
    /// An `f64` that rounds to every format of at most 51 mantissa bits as `self` would.
    ///
    /// Where `self` needs more than 53 bits, rounding it to nearest `f64` and then to a narrower type could
    /// round twice. This rounds to odd instead (toward zero, then the last bit is set if anything was lost),
    /// after which a second rounding is right (Boldo and Melquiond, "Emulation of FMA and correctly rounded
    /// sums: proved algorithms using rounding to odd", 2008).
    fn to_f64_odd(self) -> f64;
}

/// How far a shift by `amount` goes if it stays within the width.
fn shift_within(amount: Option<u32>, bits: u32) -> Option<u32> {
    amount.filter(|&amount| amount < bits)
}

/// `base^exponent` modulo 2^64 by squaring.
fn wrapping_power(mut base: u64, mut exponent: u64) -> u64 {
    let mut power = 1_u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    power
}

impl Integer for i64 {
    fn wrap(self, bits: u32) -> Self {
        let unused = i64::BITS - bits;
        self << unused >> unused
    }

    fn least(bits: u32) -> Self {
        i64::MIN >> (i64::BITS - bits)
    }

    fn greatest(bits: u32) -> Self {
        i64::MAX >> (i64::BITS - bits)
    }

    fn wrapped_add(self, rhs: Self, bits: u32) -> Self {
        self.wrapping_add(rhs).wrap(bits)
    }

    fn wrapped_sub(self, rhs: Self, bits: u32) -> Self {
        self.wrapping_sub(rhs).wrap(bits)
    }

    fn wrapped_mul(self, rhs: Self, bits: u32) -> Self {
        self.wrapping_mul(rhs).wrap(bits)
    }

    fn wrapped_neg(self, bits: u32) -> Self {
        self.wrapping_neg().wrap(bits)
    }

    fn wrapped_abs(self, bits: u32) -> Self {
        self.wrapping_abs().wrap(bits)
    }

    fn sign(self) -> Self {
        self.signum()
    }

    fn truncated_quotient(self, rhs: Self, bits: u32) -> Result<Self, DivisionByZero> {
        if rhs == 0 { Err(DivisionByZero) } else { Ok(self.wrapping_div(rhs).wrap(bits)) }
    }

    fn truncated_remainder(self, rhs: Self) -> Result<Self, DivisionByZero> {
        if rhs == 0 { Err(DivisionByZero) } else { Ok(self.wrapping_rem(rhs)) }
    }

    fn floored_remainder(self, rhs: Self) -> Result<Self, DivisionByZero> {
        let remainder = self.truncated_remainder(rhs)?;
        let opposite = remainder != 0 && (remainder < 0) != (rhs < 0);
        Ok(if opposite { remainder + rhs } else { remainder })
    }

    fn wrapped_pow(self, exponent: Self, bits: u32) -> Self {
        match (u64::try_from(exponent), self) {
            (Ok(exponent), base) => (wrapping_power(base as u64, exponent) as i64).wrap(bits),
            (Err(_), 1) => 1.wrap(bits),
            (Err(_), -1) => if exponent % 2 == 0 { 1 } else { -1 }.wrap(bits),
            (Err(_), _) => 0,
        }
    }

    fn shift_left(self, amount: Self, bits: u32) -> Self {
        match shift_within(u32::try_from(amount).ok(), bits) {
            Some(amount) => (self << amount).wrap(bits),
            None => 0,
        }
    }

    fn shift_right(self, amount: Self, bits: u32) -> Self {
        self >> shift_within(u32::try_from(amount).ok(), bits).unwrap_or(i64::BITS - 1)
    }

    fn from_f64(x: f64, bits: u32) -> Self {
        (x as i64).clamp(Self::least(bits), Self::greatest(bits))
    }

    fn to_f64(self) -> f64 {
        self as f64
    }

    fn to_f64_odd(self) -> f64 {
        let magnitude = self.unsigned_abs().to_f64_odd();
        if self < 0 { -magnitude } else { magnitude }
    }
}

impl Integer for u64 {
    fn wrap(self, bits: u32) -> Self {
        let unused = u64::BITS - bits;
        self << unused >> unused
    }

    fn least(_bits: u32) -> Self {
        0
    }

    fn greatest(bits: u32) -> Self {
        u64::MAX >> (u64::BITS - bits)
    }

    fn wrapped_add(self, rhs: Self, bits: u32) -> Self {
        self.wrapping_add(rhs).wrap(bits)
    }

    fn wrapped_sub(self, rhs: Self, bits: u32) -> Self {
        self.wrapping_sub(rhs).wrap(bits)
    }

    fn wrapped_mul(self, rhs: Self, bits: u32) -> Self {
        self.wrapping_mul(rhs).wrap(bits)
    }

    fn wrapped_neg(self, bits: u32) -> Self {
        self.wrapping_neg().wrap(bits)
    }

    fn wrapped_abs(self, _bits: u32) -> Self {
        self
    }

    fn sign(self) -> Self {
        self.min(1)
    }

    fn truncated_quotient(self, rhs: Self, _bits: u32) -> Result<Self, DivisionByZero> {
        self.checked_div(rhs).ok_or(DivisionByZero)
    }

    fn truncated_remainder(self, rhs: Self) -> Result<Self, DivisionByZero> {
        self.checked_rem(rhs).ok_or(DivisionByZero)
    }

    fn floored_remainder(self, rhs: Self) -> Result<Self, DivisionByZero> {
        self.truncated_remainder(rhs)
    }

    fn wrapped_pow(self, exponent: Self, bits: u32) -> Self {
        wrapping_power(self, exponent).wrap(bits)
    }

    fn shift_left(self, amount: Self, bits: u32) -> Self {
        match shift_within(u32::try_from(amount).ok(), bits) {
            Some(amount) => (self << amount).wrap(bits),
            None => 0,
        }
    }

    fn shift_right(self, amount: Self, bits: u32) -> Self {
        match shift_within(u32::try_from(amount).ok(), bits) {
            Some(amount) => self >> amount,
            None => 0,
        }
    }

    fn from_f64(x: f64, bits: u32) -> Self {
        (x as u64).min(Self::greatest(bits))
    }

    fn to_f64(self) -> f64 {
        self as f64
    }

    fn to_f64_odd(self) -> f64 {
        let surplus = u64::BITS.saturating_sub(self.leading_zeros() + f64::MANTISSA_DIGITS);
        let kept = self >> surplus;
        let lost = self & ((1 << surplus) - 1) != 0;
        ((kept | u64::from(lost)) << surplus) as f64
    }
}
