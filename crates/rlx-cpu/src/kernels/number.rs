//! Elements as Rust types with arithmetic, for kernels that are written once for all of them.
//!
//! Narrow floats are computed with in f32 and rounded once when they are stored; integers wrap.
#![allow(unsafe_code)]

use crate::array::Plain;
use half::{bf16, f16};
use rlx_eval::numeric::float::{maximum, minimum};
use rlx_eval::numeric::minifloat::{self, MiniFloat};

/// What sums and products are made of.
pub(crate) trait Arithmetic: Copy + Send + Sync + 'static {
    /// The sum of nothing.
    const ZERO: Self;
    /// The product of nothing.
    const ONE: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
}

/// What extremes are made of.
pub(crate) trait Extremes: Arithmetic {
    /// The greatest of nothing.
    const LEAST: Self;
    /// The least of nothing.
    const GREATEST: Self;
    /// The greater; NaN if either is.
    fn greater(self, other: Self) -> Self;
    /// The lesser; NaN if either is.
    fn lesser(self, other: Self) -> Self;
}

/// An element as it lies in memory.
pub(crate) trait Element: Plain {
    /// What it is computed with.
    type Wide: Arithmetic;
    /// The element as that.
    fn wide(self) -> Self::Wide;
    /// Rounded to the element's type.
    fn narrow(x: Self::Wide) -> Self;
}

/// An element whose bits can be brought into an order.
pub(crate) trait Ordered: Plain {
    /// Unsigned integers in the order of the elements; −0 and +0 are one, and NaN is the greatest.
    type Rank: Copy + Ord + Into<u64> + std::ops::Not<Output = Self::Rank> + Send + Sync + 'static;
    /// The greatest rank: NaN's, where there is one.
    const LAST: Self::Rank;
    /// The rank.
    fn rank(self) -> Self::Rank;
    /// Whether it is no number.
    fn is_nan(self) -> bool;
}

macro_rules! floats {
    ($($t:ident, $greater:expr, $lesser:expr);*) => {$(
        impl Arithmetic for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            #[inline(always)]
            fn plus(self, other: $t) -> $t { self + other }
            #[inline(always)]
            fn times(self, other: $t) -> $t { self * other }
        }
        impl Extremes for $t {
            const LEAST: $t = $t::NEG_INFINITY;
            const GREATEST: $t = $t::INFINITY;
            #[inline(always)]
            fn greater(self, other: $t) -> $t { $greater(self, other) }
            #[inline(always)]
            fn lesser(self, other: $t) -> $t { $lesser(self, other) }
        }
        impl Element for $t {
            type Wide = $t;
            #[inline(always)]
            fn wide(self) -> $t { self }
            #[inline(always)]
            fn narrow(x: $t) -> $t { x }
        }
    )*};
}
floats!(
    f32, |x: f32, y: f32| maximum(x.into(), y.into()) as f32, |x: f32, y: f32| minimum(x.into(), y.into()) as f32;
    f64, maximum, minimum
);

macro_rules! ordered_floats {
    ($($t:ty, $bits:ident, $signed:ident, $infinity:expr);*) => {$(
        impl Ordered for $t {
            type Rank = $bits;
            const LAST: $bits = $bits::MAX;
            #[inline(always)]
            fn rank(self) -> $bits {
                let sign = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                let bits = if bits == sign { 0 } else { bits };
                let flipped = bits ^ (((bits as $signed) >> ($bits::BITS - 1)) as $bits | sign);
                if bits & !sign > $infinity { $bits::MAX } else { flipped }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.to_bits() & !(1 << ($bits::BITS - 1)) > $infinity
            }
        }
    )*};
}
ordered_floats!(
    f32, u32, i32, 0x7f80_0000;
    f64, u64, i64, 0x7ff0_0000_0000_0000;
    f16, u16, i16, 0x7c00;
    bf16, u16, i16, 0x7f80
);

macro_rules! integers {
    ($($t:ident, $rank:ident, $offset:expr);*) => {$(
        impl Arithmetic for $t {
            const ZERO: $t = 0;
            const ONE: $t = 1;
            #[inline(always)]
            fn plus(self, other: $t) -> $t { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: $t) -> $t { self.wrapping_mul(other) }
        }
        impl Extremes for $t {
            const LEAST: $t = $t::MIN;
            const GREATEST: $t = $t::MAX;
            #[inline(always)]
            fn greater(self, other: $t) -> $t { self.max(other) }
            #[inline(always)]
            fn lesser(self, other: $t) -> $t { self.min(other) }
        }
        impl Element for $t {
            type Wide = $t;
            #[inline(always)]
            fn wide(self) -> $t { self }
            #[inline(always)]
            fn narrow(x: $t) -> $t { x }
        }
        impl Ordered for $t {
            type Rank = $rank;
            const LAST: $rank = $rank::MAX;
            #[inline(always)]
            fn rank(self) -> $rank { (self as $rank) ^ $offset }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }
    )*};
}
integers!(
    i64, u64, 1 << 63; i32, u32, 1 << 31; i16, u16, 1 << 15; i8, u8, 1 << 7;
    u64, u64, 0; u32, u32, 0; u16, u16, 0; u8, u8, 0
);

macro_rules! halves {
    ($($t:ident),*) => {$(
        impl Element for $t {
            type Wide = f32;
            #[inline(always)]
            fn wide(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn narrow(x: f32) -> $t { $t::from_f32(x) }
        }
    )*};
}
halves!(f16, bf16);

macro_rules! bytes {
    ($($(#[$doc:meta])* $t:ident = $format:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(crate) struct $t(pub(crate) u8);
        // SAFETY: a byte.
        unsafe impl Plain for $t {}
        impl $t {
            const FORMAT: MiniFloat = minifloat::$format;
        }
        impl Element for $t {
            type Wide = f32;
            fn wide(self) -> f32 { Self::FORMAT.decode(self.0.into()) as f32 }
            fn narrow(x: f32) -> $t { $t(Self::FORMAT.encode(x.into(), false) as u8) }
        }
        impl Ordered for $t {
            type Rank = u32;
            const LAST: u32 = u32::MAX;
            fn rank(self) -> u32 { self.wide().rank() }
            fn is_nan(self) -> bool { self.wide().is_nan() }
        }
    )*};
}
bytes!(
    /// A code of f8e4m3fn.
    E4m3 = F8E4M3FN,
    /// A code of f8e4m3fnuz.
    E4m3Fnuz = F8E4M3FNUZ,
    /// A code of f8e5m2.
    E5m2 = F8E5M2,
    /// A code of f8e5m2fnuz.
    E5m2Fnuz = F8E5M2FNUZ
);

/// A complex number: real and imaginary part.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub(crate) struct Pair<T>(pub(crate) T, pub(crate) T);

// SAFETY (both): two floats without padding.
unsafe impl Plain for Pair<f32> {}
unsafe impl Plain for Pair<f64> {}

macro_rules! pairs {
    ($($t:ident),*) => {$(
        impl Arithmetic for Pair<$t> {
            const ZERO: Self = Pair(0.0, 0.0);
            const ONE: Self = Pair(1.0, 0.0);
            #[inline(always)]
            fn plus(self, other: Self) -> Self { Pair(self.0 + other.0, self.1 + other.1) }
            /// The products in f64: parts may cancel.
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                let (a, b) = (f64::from(self.0), f64::from(self.1));
                let (c, d) = (f64::from(other.0), f64::from(other.1));
                Pair((a * c - b * d) as $t, (a * d + b * c) as $t)
            }
        }
        impl Element for Pair<$t> {
            type Wide = Self;
            #[inline(always)]
            fn wide(self) -> Self { self }
            #[inline(always)]
            fn narrow(x: Self) -> Self { x }
        }
    )*};
}
pairs!(f32, f64);

/// Whether [`with_ordered`] has the Rust type of an element type.
pub(crate) fn is_ordered(dtype: rlx_ir::DType) -> bool {
    use rlx_ir::DType::*;
    matches!(
        dtype,
        F64 | F32
            | F16
            | BF16
            | F8E4M3FN
            | F8E4M3FNUZ
            | F8E5M2
            | F8E5M2FNUZ
            | I64
            | I32
            | I16
            | I8
            | U64
            | U32
            | U16
            | U8
            | Bool
    )
}

/// Calls a body with the Rust type of an ordered element type (bools are u8); others do not come here.
macro_rules! with_ordered {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use rlx_ir::DType as D;
        use $crate::kernels::number as n;
        macro_rules! with {
            ($rust:ty) => {{
                type $t = $rust;
                $body
            }};
        }
        match $dtype {
            D::F64 => with!(f64),
            D::F32 => with!(f32),
            D::F16 => with!(half::f16),
            D::BF16 => with!(half::bf16),
            D::F8E4M3FN => with!(n::E4m3),
            D::F8E4M3FNUZ => with!(n::E4m3Fnuz),
            D::F8E5M2 => with!(n::E5m2),
            D::F8E5M2FNUZ => with!(n::E5m2Fnuz),
            D::I64 => with!(i64),
            D::I32 => with!(i32),
            D::I16 => with!(i16),
            D::I8 => with!(i8),
            D::U64 => with!(u64),
            D::U32 => with!(u32),
            D::U16 => with!(u16),
            _ => with!(u8),
        }
    }};
}

pub(crate) use with_ordered;

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered<T: Ordered>(ascending: &[T]) {
        for pair in ascending.windows(2) {
            assert!(pair[0].rank() < pair[1].rank());
        }
    }

    #[test]
    fn ranks_are_in_the_order_of_the_elements() {
        ordered(&[
            f32::NEG_INFINITY,
            -1.0,
            -f32::from_bits(1),
            0.0,
            f32::from_bits(1),
            2.0,
            f32::INFINITY,
            f32::NAN,
        ]);
        ordered(&[f64::NEG_INFINITY, -1.0, 0.0, 2.0, f64::INFINITY, f64::NAN]);
        ordered(&[-2.0, 0.0, 1.5].map(f16::from_f32));
        ordered(&[i8::MIN, -1, 0, 1, i8::MAX]);
        ordered(&[i64::MIN, -1, 0, i64::MAX]);
        ordered(&[E4m3(0xfe), E4m3(0x80), E4m3(1), E4m3(0x7f)]);
    }

    #[test]
    fn zeros_are_one_and_so_is_nan_of_either_sign() {
        assert_eq!((-0.0f32).rank(), 0.0f32.rank());
        assert_eq!((-f32::NAN).rank(), f32::NAN.rank());
        assert_eq!((-f16::NAN).rank(), u16::MAX);
    }
}
