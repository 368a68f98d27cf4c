//! The functions of instructions: one loop over lanes for each operation and lane type, once for any processor and once
//! with AVX2 and FMA.
#![allow(unsafe_code)]

use super::lanes::{Lane, with_integer_lane, with_lane};
use super::{float, wide};
use half::{bf16, f16};
use rlx_ir::DType;
use rlx_ir::op::activation::ActivationOp;
use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};

/// Computes `count` lanes of a result from up to three operands; false if an integer was divided by zero.
///
/// # Safety
/// The pointers hold `count` lanes of the types that the table was asked for; the result overlaps no operand.
pub(super) type Function = unsafe fn(operands: [*const u8; 3], result: *mut u8, count: usize) -> bool;

/// Whether this processor has AVX2 and FMA.
pub(super) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// A loop, compiled twice, and the choice between the two.
macro_rules! dispatched {
    (|$operands:ident, $result:ident, $count:ident| $body:block) => {{
        #[inline(always)]
        unsafe fn body($operands: [*const u8; 3], $result: *mut u8, $count: usize) -> bool {
            $body
        }
        unsafe fn plain(o: [*const u8; 3], r: *mut u8, n: usize) -> bool {
            // SAFETY: as promised by the caller.
            unsafe { body(o, r, n) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(o: [*const u8; 3], r: *mut u8, n: usize) -> bool {
            // SAFETY: as promised by the caller.
            unsafe { body(o, r, n) }
        }
        #[cfg(target_arch = "x86_64")]
        let chosen: Function = if has_avx2() { avx2 } else { plain };
        #[cfg(not(target_arch = "x86_64"))]
        let chosen: Function = plain;
        chosen
    }};
}

macro_rules! map1 {
    ($t:ty => $r:ty, $f:expr) => {
        dispatched!(|operands, result, count| {
            // SAFETY: as the function type promises.
            let (x, y) = unsafe {
                (
                    std::slice::from_raw_parts(operands[0].cast::<$t>(), count),
                    std::slice::from_raw_parts_mut(result.cast::<$r>(), count),
                )
            };
            let f = $f;
            for (y, x) in y.iter_mut().zip(x) {
                *y = f(*x);
            }
            true
        })
    };
}

macro_rules! map2 {
    ($t:ty => $r:ty, $f:expr) => {
        dispatched!(|operands, result, count| {
            // SAFETY: as the function type promises.
            let (x, y, z) = unsafe {
                (
                    std::slice::from_raw_parts(operands[0].cast::<$t>(), count),
                    std::slice::from_raw_parts(operands[1].cast::<$t>(), count),
                    std::slice::from_raw_parts_mut(result.cast::<$r>(), count),
                )
            };
            let f = $f;
            for ((z, x), y) in z.iter_mut().zip(x).zip(y) {
                *z = f(*x, *y);
            }
            true
        })
    };
}

/// As `map2`, for a function that fails on some operands.
macro_rules! try_map2 {
    ($t:ty, $f:expr) => {
        dispatched!(|operands, result, count| {
            // SAFETY: as the function type promises.
            let (x, y, z) = unsafe {
                (
                    std::slice::from_raw_parts(operands[0].cast::<$t>(), count),
                    std::slice::from_raw_parts(operands[1].cast::<$t>(), count),
                    std::slice::from_raw_parts_mut(result.cast::<$t>(), count),
                )
            };
            let f = $f;
            for ((z, x), y) in z.iter_mut().zip(x).zip(y) {
                match f(*x, *y) {
                    Some(value) => *z = value,
                    None => return false,
                }
            }
            true
        })
    };
}

/// The function of a unary operation on lanes of this type; the result has the same lanes, but for tests, which give u8.
pub(super) fn unary(op: UnaryOp, lane: Lane) -> Option<Function> {
    match lane {
        Lane::F32 => unary_f32(op),
        Lane::F64 => unary_f64(op),
        lane => unary_integer(op, lane),
    }
}

fn unary_f32(op: UnaryOp) -> Option<Function> {
    use UnaryOp::*;
    Some(match op {
        Neg => map1!(f32 => f32, |x: f32| -x),
        Abs => map1!(f32 => f32, f32::abs),
        Sign => map1!(f32 => f32, float::sign),
        Floor => map1!(f32 => f32, f32::floor),
        Ceil => map1!(f32 => f32, f32::ceil),
        Round => map1!(f32 => f32, f32::round_ties_even),
        Trunc => map1!(f32 => f32, f32::trunc),
        Sqrt => map1!(f32 => f32, f32::sqrt),
        Rsqrt => map1!(f32 => f32, |x: f32| 1.0 / x.sqrt()),
        Exp => map1!(f32 => f32, wide::exp),
        Log => map1!(f32 => f32, wide::log),
        Tanh => map1!(f32 => f32, wide::tanh),
        Sigmoid => map1!(f32 => f32, wide::sigmoid),
        Erf => map1!(f32 => f32, wide::erf),
        IsNan => map1!(f32 => u8, |x: f32| u8::from(x.is_nan())),
        IsInf => map1!(f32 => u8, |x: f32| u8::from(x.is_infinite())),
        IsFinite => map1!(f32 => u8, |x: f32| u8::from(x.is_finite())),
        // Computed in f64 and rounded once: these are not hot.
        Expm1 => map1!(f32 => f32, |x: f32| libm::expm1(x.into()) as f32),
        Log1p => map1!(f32 => f32, |x: f32| libm::log1p(x.into()) as f32),
        Sin => map1!(f32 => f32, |x: f32| libm::sin(x.into()) as f32),
        Cos => map1!(f32 => f32, |x: f32| libm::cos(x.into()) as f32),
        Tan => map1!(f32 => f32, |x: f32| libm::tan(x.into()) as f32),
        Asin => map1!(f32 => f32, |x: f32| libm::asin(x.into()) as f32),
        Acos => map1!(f32 => f32, |x: f32| libm::acos(x.into()) as f32),
        Atan => map1!(f32 => f32, |x: f32| libm::atan(x.into()) as f32),
        Sinh => map1!(f32 => f32, |x: f32| libm::sinh(x.into()) as f32),
        Cosh => map1!(f32 => f32, |x: f32| libm::cosh(x.into()) as f32),
        Asinh => map1!(f32 => f32, |x: f32| libm::asinh(x.into()) as f32),
        Acosh => map1!(f32 => f32, |x: f32| libm::acosh(x.into()) as f32),
        Atanh => map1!(f32 => f32, |x: f32| libm::atanh(x.into()) as f32),
        Erfc => map1!(f32 => f32, wide::erfc),
        Erfinv => map1!(f32 => f32, |x: f32| rlx_eval::numeric::special::erfinv(x.into()) as f32),
        Lgamma => map1!(f32 => f32, |x: f32| rlx_eval::numeric::special::lgamma(x.into()) as f32),
        Digamma => map1!(f32 => f32, |x: f32| rlx_eval::numeric::special::digamma(x.into()) as f32),
        Not | BitNot | RealPart | ImagPart | Conj => return None,
    })
}

/// The function of an activation that is one instruction here; the others decompose in few cheap operations.
pub(super) fn activation(op: ActivationOp, lane: Lane) -> Option<Function> {
    match (op, lane) {
        (ActivationOp::Gelu, Lane::F32) => Some(map1!(f32 => f32, wide::gelu)),
        (ActivationOp::GeluTanh, Lane::F32) => Some(map1!(f32 => f32, wide::gelu_tanh)),
        (ActivationOp::Mish, Lane::F32) => Some(map1!(f32 => f32, wide::mish)),
        _ => None,
    }
}

fn unary_f64(op: UnaryOp) -> Option<Function> {
    use UnaryOp::*;
    Some(match op {
        Neg => map1!(f64 => f64, |x: f64| -x),
        Abs => map1!(f64 => f64, f64::abs),
        Sign => map1!(f64 => f64, rlx_eval::numeric::float::sign),
        Floor => map1!(f64 => f64, f64::floor),
        Ceil => map1!(f64 => f64, f64::ceil),
        Round => map1!(f64 => f64, f64::round_ties_even),
        Trunc => map1!(f64 => f64, f64::trunc),
        Sqrt => map1!(f64 => f64, f64::sqrt),
        Rsqrt => map1!(f64 => f64, |x: f64| 1.0 / x.sqrt()),
        Exp => map1!(f64 => f64, libm::exp),
        Expm1 => map1!(f64 => f64, libm::expm1),
        Log => map1!(f64 => f64, libm::log),
        Log1p => map1!(f64 => f64, libm::log1p),
        Sin => map1!(f64 => f64, libm::sin),
        Cos => map1!(f64 => f64, libm::cos),
        Tan => map1!(f64 => f64, libm::tan),
        Asin => map1!(f64 => f64, libm::asin),
        Acos => map1!(f64 => f64, libm::acos),
        Atan => map1!(f64 => f64, libm::atan),
        Sinh => map1!(f64 => f64, libm::sinh),
        Cosh => map1!(f64 => f64, libm::cosh),
        Tanh => map1!(f64 => f64, libm::tanh),
        Asinh => map1!(f64 => f64, libm::asinh),
        Acosh => map1!(f64 => f64, libm::acosh),
        Atanh => map1!(f64 => f64, libm::atanh),
        Erf => map1!(f64 => f64, rlx_eval::numeric::special::erf),
        Erfc => map1!(f64 => f64, rlx_eval::numeric::special::erfc),
        Erfinv => map1!(f64 => f64, rlx_eval::numeric::special::erfinv),
        Lgamma => map1!(f64 => f64, rlx_eval::numeric::special::lgamma),
        Digamma => map1!(f64 => f64, rlx_eval::numeric::special::digamma),
        Sigmoid => map1!(f64 => f64, rlx_eval::numeric::special::sigmoid),
        IsNan => map1!(f64 => u8, |x: f64| u8::from(x.is_nan())),
        IsInf => map1!(f64 => u8, |x: f64| u8::from(x.is_infinite())),
        IsFinite => map1!(f64 => u8, |x: f64| u8::from(x.is_finite())),
        Not | BitNot | RealPart | ImagPart | Conj => return None,
    })
}

fn unary_integer(op: UnaryOp, lane: Lane) -> Option<Function> {
    Some(match op {
        UnaryOp::Neg => with_integer_lane!(lane, T => map1!(T => T, |x: T| x.wrapping_neg())),
        UnaryOp::Not if lane == Lane::U8 => map1!(u8 => u8, |x: u8| 1 - x.min(1)),
        UnaryOp::BitNot => with_integer_lane!(lane, T => map1!(T => T, |x: T| !x)),
        UnaryOp::Abs => match lane {
            Lane::I64 => map1!(i64 => i64, i64::wrapping_abs),
            Lane::I32 => map1!(i32 => i32, i32::wrapping_abs),
            Lane::I16 => map1!(i16 => i16, i16::wrapping_abs),
            Lane::I8 => map1!(i8 => i8, i8::wrapping_abs),
            lane => with_integer_lane!(lane, T => map1!(T => T, |x: T| x)),
        },
        UnaryOp::Sign => match lane {
            Lane::I64 => map1!(i64 => i64, i64::signum),
            Lane::I32 => map1!(i32 => i32, i32::signum),
            Lane::I16 => map1!(i16 => i16, i16::signum),
            Lane::I8 => map1!(i8 => i8, i8::signum),
            lane => with_integer_lane!(lane, T => map1!(T => T, |x: T| x.min(1))),
        },
        _ => return None,
    })
}

/// The function of a binary operation on lanes of this type.
pub(super) fn binary(op: BinaryOp, lane: Lane) -> Option<Function> {
    match lane {
        Lane::F32 => binary_f32(op),
        Lane::F64 => binary_f64(op),
        lane => binary_integer(op, lane),
    }
}

fn binary_f32(op: BinaryOp) -> Option<Function> {
    use BinaryOp::*;
    Some(match op {
        Add => map2!(f32 => f32, |x: f32, y: f32| x + y),
        Sub => map2!(f32 => f32, |x: f32, y: f32| x - y),
        Mul => map2!(f32 => f32, |x: f32, y: f32| x * y),
        Div => map2!(f32 => f32, |x: f32, y: f32| x / y),
        Rem => map2!(f32 => f32, |x: f32, y: f32| x % y),
        Pow => map2!(f32 => f32, |x: f32, y: f32| libm::pow(x.into(), y.into()) as f32),
        Max => map2!(f32 => f32, float::max),
        Min => map2!(f32 => f32, float::min),
        Atan2 => map2!(f32 => f32, |x: f32, y: f32| libm::atan2(x.into(), y.into()) as f32),
        And | Or | Xor | Shl | Shr => return None,
    })
}

fn binary_f64(op: BinaryOp) -> Option<Function> {
    use BinaryOp::*;
    Some(match op {
        Add => map2!(f64 => f64, |x: f64, y: f64| x + y),
        Sub => map2!(f64 => f64, |x: f64, y: f64| x - y),
        Mul => map2!(f64 => f64, |x: f64, y: f64| x * y),
        Div => map2!(f64 => f64, |x: f64, y: f64| x / y),
        Rem => map2!(f64 => f64, rlx_eval::numeric::float::truncated_remainder),
        Pow => map2!(f64 => f64, rlx_eval::numeric::float::power),
        Max => map2!(f64 => f64, rlx_eval::numeric::float::maximum),
        Min => map2!(f64 => f64, rlx_eval::numeric::float::minimum),
        Atan2 => map2!(f64 => f64, libm::atan2),
        And | Or | Xor | Shl | Shr => return None,
    })
}

fn binary_integer(op: BinaryOp, lane: Lane) -> Option<Function> {
    use BinaryOp::*;
    Some(with_integer_lane!(lane, T => match op {
        Add => map2!(T => T, T::wrapping_add),
        Sub => map2!(T => T, T::wrapping_sub),
        Mul => map2!(T => T, T::wrapping_mul),
        Div => try_map2!(T, |x: T, y: T| (y != 0).then(|| x.wrapping_div(y))),
        Rem => try_map2!(T, |x: T, y: T| (y != 0).then(|| x.wrapping_rem(y))),
        Pow => map2!(T => T, power::<T>),
        Max => map2!(T => T, |x: T, y: T| x.max(y)),
        Min => map2!(T => T, |x: T, y: T| x.min(y)),
        And => map2!(T => T, |x: T, y: T| x & y),
        Or => map2!(T => T, |x: T, y: T| x | y),
        Xor => map2!(T => T, |x: T, y: T| x ^ y),
        Shl => map2!(T => T, |x: T, y: T| shift_left::<T>(x, y)),
        Shr => map2!(T => T, |x: T, y: T| shift_right::<T>(x, y)),
        Atan2 => return None,
    }))
}

/// What powers and shifts need of an integer.
trait Bits: Copy + PartialEq {
    const WIDTH: u32;
    const ZERO: Self;
    const ONE: Self;
    fn times(self, other: Self) -> Self;
    fn is_odd(self) -> bool;
    fn is_minus_one(self) -> bool;
    fn halved(self) -> Self;
    /// The amount of a shift or power; `None` if it is negative or no `u32`.
    fn amount(self) -> Option<u32>;
    fn is_negative(self) -> bool;
    fn left(self, by: u32) -> Self;
    fn right(self, by: u32) -> Self;
}

macro_rules! bits {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            const WIDTH: u32 = <$t>::BITS;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn is_odd(self) -> bool { self & 1 == 1 }
            #[allow(unused_comparisons)]
            fn is_minus_one(self) -> bool { self < 0 && self.wrapping_add(1) == 0 }
            fn halved(self) -> Self { self >> 1 }
            fn amount(self) -> Option<u32> { u32::try_from(self).ok() }
            #[allow(unused_comparisons)]
            fn is_negative(self) -> bool { self < 0 }
            fn left(self, by: u32) -> Self { self << by }
            fn right(self, by: u32) -> Self { self >> by }
        }
    )*};
}
bits!(i64, i32, i16, i8, u64, u32, u16, u8);

/// Wraps; a negative exponent gives 0 but for bases ±1.
fn power<T: Bits>(base: T, exponent: T) -> T {
    if exponent.is_negative() {
        return match (base == T::ONE, base.is_minus_one()) {
            (true, _) => T::ONE,
            (_, true) if exponent.is_odd() => base,
            (_, true) => T::ONE,
            _ => T::ZERO,
        };
    }
    let (mut result, mut square, mut left) = (T::ONE, base, exponent);
    while left != T::ZERO {
        if left.is_odd() {
            result = result.times(square);
        }
        square = square.times(square);
        left = left.halved();
    }
    result
}

/// By the width or more gives 0; so does a negative amount, which as an unsigned number is beyond any width.
fn shift_left<T: Bits>(x: T, by: T) -> T {
    by.amount().filter(|by| *by < T::WIDTH).map_or(T::ZERO, |by| x.left(by))
}

/// By the width or more gives the sign's bits.
fn shift_right<T: Bits>(x: T, by: T) -> T {
    by.amount()
        .filter(|by| *by < T::WIDTH)
        .map_or_else(|| x.right(T::WIDTH - 1).right(1.min(T::WIDTH - 1)), |by| x.right(by))
}

/// The function of a comparison on lanes of this type, which gives u8.
pub(super) fn compare(op: CompareOp, lane: Lane) -> Function {
    with_lane!(lane, T => match op {
        CompareOp::Eq => map2!(T => u8, |x: T, y: T| u8::from(x == y)),
        CompareOp::Ne => map2!(T => u8, |x: T, y: T| u8::from(x != y)),
        CompareOp::Lt => map2!(T => u8, |x: T, y: T| u8::from(x < y)),
        CompareOp::Le => map2!(T => u8, |x: T, y: T| u8::from(x <= y)),
        CompareOp::Gt => map2!(T => u8, |x: T, y: T| u8::from(x > y)),
        CompareOp::Ge => map2!(T => u8, |x: T, y: T| u8::from(x >= y)),
    })
}

/// The choice by a condition in u8 lanes between lanes of this width.
pub(super) fn select(lane: Lane) -> Function {
    macro_rules! choose {
        ($t:ty) => {
            dispatched!(|operands, result, count| {
                // SAFETY: as the function type promises.
                let (c, x, y, z) = unsafe {
                    (
                        std::slice::from_raw_parts(operands[0], count),
                        std::slice::from_raw_parts(operands[1].cast::<$t>(), count),
                        std::slice::from_raw_parts(operands[2].cast::<$t>(), count),
                        std::slice::from_raw_parts_mut(result.cast::<$t>(), count),
                    )
                };
                for (((z, c), x), y) in z.iter_mut().zip(c).zip(x).zip(y) {
                    *z = if *c != 0 { *x } else { *y };
                }
                true
            })
        };
    }
    match lane.width() {
        1 => choose!(u8),
        2 => choose!(u16),
        4 => choose!(u32),
        _ => choose!(u64),
    }
}

/// The cast from one element type to another; both have lanes.
#[allow(clippy::unnecessary_cast, reason = "a loop is written for all pairs of lanes, equal ones among them")]
pub(super) fn cast(from: DType, to: DType) -> Option<Function> {
    let (source, target) = (Lane::of(from)?, Lane::of(to)?);
    if to == DType::Bool {
        return Some(with_lane!(source, T => map1!(T => u8, |x: T| u8::from(x != (0 as T)))));
    }
    Some(match to {
        // A narrow float is rounded where the cast says so, though it stays in a wider lane.
        DType::F16 => with_lane!(source, T => map1!(T => f32, |x: T| <T as Narrow>::to_f16(x).to_f32())),
        DType::BF16 => with_lane!(source, T => map1!(T => f32, |x: T| <T as Narrow>::to_bf16(x).to_f32())),
        // `as` truncates, saturates and takes NaN to 0 from floats, wraps from integers, rounds to nearest even to floats.
        _ if target == Lane::F64 => with_lane!(source, T => map1!(T => f64, |x: T| x as f64)),
        _ if target == Lane::F32 => with_lane!(source, T => map1!(T => f32, |x: T| x as f32)),
        _ => match target {
            Lane::I64 => with_lane!(source, T => map1!(T => i64, |x: T| x as i64)),
            Lane::I32 => with_lane!(source, T => map1!(T => i32, |x: T| x as i32)),
            Lane::I16 => with_lane!(source, T => map1!(T => i16, |x: T| x as i16)),
            Lane::I8 => with_lane!(source, T => map1!(T => i8, |x: T| x as i8)),
            Lane::U64 => with_lane!(source, T => map1!(T => u64, |x: T| x as u64)),
            Lane::U32 => with_lane!(source, T => map1!(T => u32, |x: T| x as u32)),
            Lane::U16 => with_lane!(source, T => map1!(T => u16, |x: T| x as u16)),
            _ => with_lane!(source, T => map1!(T => u8, |x: T| x as u8)),
        },
    })
}

/// Rounding to the narrow floats, once.
trait Narrow {
    fn to_f16(self) -> f16;
    fn to_bf16(self) -> bf16;
}

impl Narrow for f64 {
    fn to_f16(self) -> f16 {
        f16::from_f32(float::to_odd_f32(self))
    }
    fn to_bf16(self) -> bf16 {
        bf16::from_f32(float::to_odd_f32(self))
    }
}

impl Narrow for f32 {
    fn to_f16(self) -> f16 {
        f16::from_f32(self)
    }
    fn to_bf16(self) -> bf16 {
        bf16::from_f32(self)
    }
}

macro_rules! narrow_integers {
    ($($t:ty),*) => {$(
        impl Narrow for $t {
            fn to_f16(self) -> f16 {
                f16::from_f32(float::to_odd_f32(float::to_odd(self.into())))
            }
            fn to_bf16(self) -> bf16 {
                bf16::from_f32(float::to_odd_f32(float::to_odd(self.into())))
            }
        }
    )*};
}
narrow_integers!(i64, i32, i16, i8, u64, u32, u16, u8);
