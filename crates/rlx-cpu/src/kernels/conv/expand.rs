//! Fills the expanded input: elements converted, gaps and padding zeros.
#![allow(unsafe_code)]

use super::geometry::{Expanded, Geometry};
use crate::kernels::gemm::panels::Held;
use half::{bf16, f16};
use rlx_ir::DType;

/// Fills one channel, from its first element.
///
/// # Safety
/// The geometry leads to elements of the function's type.
pub type Expand<E> = unsafe fn(&Geometry, &Expanded, *const u8, &mut [E], Filling<E>);

/// What elements are filled with.
#[derive(Clone, Copy)]
pub struct Filling<E> {
    /// Gaps and padding.
    pub padding: E,
    /// What is taken from every element of the input.
    pub zero_point: E,
}

/// Elements that inputs are expanded to.
pub trait Expands: Sized {
    /// The function for inputs of this type.
    fn expand_of(dtype: DType) -> Option<Expand<Self>>;
}

macro_rules! expands {
    ($($to:ty: $($dtype:ident $from:ty),*);* $(;)?) => {$(
        impl Expands for $to {
            fn expand_of(dtype: DType) -> Option<Expand<$to>> {
                Some(match dtype {
                    $(DType::$dtype => expand::<$from, $to>,)*
                    _ => return None,
                })
            }
        }
    )*};
}
expands!(
    f32: F32 f32, F16 f16, BF16 bf16;
    f64: F64 f64, F32 f32, F16 f16, BF16 bf16;
    i8: I8 i8; u8: U8 u8; u16: U16 u16; u32: U32 u32; u64: U64 u64;
    i16: I8 i8, U8 u8, I16 i16;
    i32: I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64;
    i64: I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64;
);

/// Elements that a zero point is taken from.
pub trait Less: Copy {
    /// `self − other`, wrapping for integers.
    fn less(self, other: Self) -> Self;
}

macro_rules! less {
    ($($t:ty: |$x:ident, $y:ident| $difference:expr),*) => {$(
        impl Less for $t {
            #[inline(always)]
            fn less(self, other: Self) -> Self {
                let ($x, $y) = (self, other);
                $difference
            }
        }
    )*};
}
less!(
    f32: |x, _zero| x, f64: |x, _zero| x,
    i8: |x, y| x.wrapping_sub(y), u8: |x, y| x.wrapping_sub(y), u16: |x, y| x.wrapping_sub(y),
    u32: |x, y| x.wrapping_sub(y), u64: |x, y| x.wrapping_sub(y), i16: |x, y| x.wrapping_sub(y), i32: |x, y| x.wrapping_sub(y), i64: |x, y| x.wrapping_sub(y)
);

/// # Safety
/// As [`Expand`].
unsafe fn expand<T: Held<E>, E: Less>(
    g: &Geometry,
    e: &Expanded,
    channel: *const u8,
    to: &mut [E],
    filling: Filling<E>,
) {
    // SAFETY: as promised by the caller.
    unsafe { axis(g, e, 0, Some(channel.cast::<T>()), to, filling) }
}

/// Fills what lies along an axis and those after it; `from` is `None` in gaps and padding.
///
/// # Safety
/// As [`Expand`].
unsafe fn axis<T: Held<E>, E: Less>(
    g: &Geometry,
    e: &Expanded,
    index: usize,
    from: Option<*const T>,
    to: &mut [E],
    filling: Filling<E>,
) {
    let along = &g.axes[index];
    let Some(from) = from else { return to.fill(filling.padding) };
    if index + 1 == g.axes.len() {
        // SAFETY: as promised by the caller.
        return unsafe { row(g, e, from, to, filling) };
    }
    for (at, part) in to.chunks_exact_mut(e.strides[index]).enumerate() {
        let dilated = at as isize - along.low;
        let i = dilated.div_euclid(along.lhs_dilation as isize);
        let inside = dilated % along.lhs_dilation as isize == 0 && (0..along.input as isize).contains(&i);
        // SAFETY: inside, the element is one of the input's.
        unsafe {
            axis(g, e, index + 1, inside.then(|| from.offset(i * along.input_stride)), part, filling);
        }
    }
}

/// Fills a row.
///
/// # Safety
/// As [`Expand`].
unsafe fn row<T: Held<E>, E: Less>(
    g: &Geometry,
    e: &Expanded,
    from: *const T,
    to: &mut [E],
    filling: Filling<E>,
) {
    let a = &g.axes[g.axes.len() - 1];
    // SAFETY: `i` is below the input's size.
    let element =
        |i: usize| unsafe { (*from.offset(i as isize * a.input_stride)).held().less(filling.zero_point) };
    for (phase, to) in to.chunks_exact_mut(e.phase).enumerate() {
        // Element q of this phase is at phase + q · stride of the expanded row, which is low + i · dilation.
        if a.lhs_dilation == 1 {
            let shift = phase as isize - a.low;
            let step = a.stride as isize;
            // The first and the last q that is inside.
            let first = ((-shift).max(0) as usize).div_ceil(a.stride).min(to.len());
            let end = (a.input as isize - shift).max(0) as usize;
            let end = end.div_ceil(a.stride).clamp(first, to.len());
            to[..first].fill(filling.padding);
            to[end..].fill(filling.padding);
            let start = shift + first as isize * step;
            let inner = &mut to[first..end];
            // SAFETY (all): below the input's size, by the choice of `first` and `end`.
            match (step, a.input_stride) {
                (1, 1) => unsafe { every::<1, T, E>(from.offset(start), inner, filling.zero_point) },
                (2, 1) => unsafe { every::<2, T, E>(from.offset(start), inner, filling.zero_point) },
                _ => {
                    for (q, to) in inner.iter_mut().enumerate() {
                        *to = element((start + q as isize * step) as usize);
                    }
                }
            }
            continue;
        }
        for (q, to) in to.iter_mut().enumerate() {
            let dilated = (phase + q * a.stride) as isize - a.low;
            let i = dilated.div_euclid(a.lhs_dilation as isize);
            let inside = dilated % a.lhs_dilation as isize == 0 && (0..a.input as isize).contains(&i);
            *to = if inside { element(i as usize) } else { filling.padding };
        }
    }
}

/// Every `STEP`th element; the distance is known to the compiler, so that it can load vectors.
///
/// # Safety
/// The elements can be read.
#[inline(always)]
unsafe fn every<const STEP: usize, T: Held<E>, E: Less>(from: *const T, to: &mut [E], zero_point: E) {
    for (q, to) in to.iter_mut().enumerate() {
        // SAFETY: as promised by the caller.
        *to = unsafe { (*from.add(q * STEP)).held().less(zero_point) };
    }
}
