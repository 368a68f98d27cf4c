//! Reductions of a tile's rows. The tree of a sum depends on the row's length and the lane type only: blocks of
//! 512 elements in 16 running sums, the blocks' sums by halves.
#![allow(unsafe_code)]

use super::float;
use super::lanes::{Lane, with_integer_lane};
use super::table::has_avx2;
use rlx_ir::op::reduce::ReduceOp;

/// Reduces each of `rows` rows of `length` lanes to one lane.
///
/// # Safety
/// The pointers hold that many lanes of the type that [`function`] was asked for.
pub(super) type Function = unsafe fn(from: *const u8, to: *mut u8, rows: usize, length: usize);

/// Products of f32 in f64: the order of the factors would decide what underflows on the way.
unsafe fn products(from: *const u8, to: *mut u8, rows: usize, length: usize) {
    for i in 0..rows {
        // SAFETY: as the function type promises.
        unsafe {
            let row = std::slice::from_raw_parts(from.cast::<f32>().add(i * length), length);
            to.cast::<f32>().add(i).write(row.iter().map(|x| f64::from(*x)).product::<f64>() as f32);
        }
    }
}

/// Elements of a block of a sum.
const BLOCK: usize = 512;

/// Running sums of a block.
const LANES: usize = 16;

#[inline(always)]
fn block<T: Copy>(row: &[T], start: T, combine: impl Fn(T, T) -> T + Copy) -> T {
    let mut lanes = [start; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, *x);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = combine(*lane, *x);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn halves<T: Copy>(row: &[T], start: T, combine: impl Fn(T, T) -> T + Copy) -> T {
    // An explicit stack in place of recursion, so that the whole is inlined where vectors are wide: block i is combined
    // with what is on the stack as often as i + 1 has trailing zeros.
    if row.len() <= BLOCK {
        return block(row, start, combine);
    }
    let mut stack = [start; usize::BITS as usize];
    let mut height = 0;
    for (i, part) in row.chunks(BLOCK).enumerate() {
        let mut sum = block(part, start, combine);
        for _ in 0..(i + 1).trailing_zeros() {
            height -= 1;
            sum = combine(stack[height], sum);
        }
        stack[height] = sum;
        height += 1;
    }
    let mut sum = stack[height - 1];
    for below in stack[..height - 1].iter().rev() {
        sum = combine(*below, sum);
    }
    sum
}

macro_rules! rows {
    ($t:ty, $start:expr, $combine:expr) => {{
        #[inline(always)]
        unsafe fn body(from: *const u8, to: *mut u8, rows: usize, length: usize) {
            // SAFETY: as the function type promises.
            let (from, to) = unsafe {
                (
                    std::slice::from_raw_parts(from.cast::<$t>(), rows * length),
                    std::slice::from_raw_parts_mut(to.cast::<$t>(), rows),
                )
            };
            for (i, to) in to.iter_mut().enumerate() {
                *to = halves(&from[i * length..(i + 1) * length], $start, $combine);
            }
        }
        unsafe fn plain(from: *const u8, to: *mut u8, rows: usize, length: usize) {
            // SAFETY: as promised by the caller.
            unsafe { body(from, to, rows, length) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(from: *const u8, to: *mut u8, rows: usize, length: usize) {
            // SAFETY: as promised by the caller.
            unsafe { body(from, to, rows, length) }
        }
        #[cfg(target_arch = "x86_64")]
        let chosen: Function = if has_avx2() { avx2 } else { plain };
        #[cfg(not(target_arch = "x86_64"))]
        let chosen: Function = plain;
        chosen
    }};
}

/// The reduction on lanes of this type.
pub(super) fn function(op: ReduceOp, lane: Lane) -> Option<Function> {
    use rlx_eval::numeric::float::{maximum, minimum};
    Some(match (op, lane) {
        (ReduceOp::Sum, Lane::F32) => rows!(f32, 0.0, |x, y| x + y),
        (ReduceOp::Sum, Lane::F64) => rows!(f64, 0.0, |x, y| x + y),
        (ReduceOp::Prod, Lane::F32) => products,
        (ReduceOp::Prod, Lane::F64) => rows!(f64, 1.0, |x, y| x * y),
        (ReduceOp::Max, Lane::F32) => rows!(f32, f32::NEG_INFINITY, float::max),
        (ReduceOp::Max, Lane::F64) => rows!(f64, f64::NEG_INFINITY, maximum),
        (ReduceOp::Min, Lane::F32) => rows!(f32, f32::INFINITY, float::min),
        (ReduceOp::Min, Lane::F64) => rows!(f64, f64::INFINITY, minimum),
        (ReduceOp::All, Lane::U8) => rows!(u8, 1, |x, y| x & y),
        (ReduceOp::Any, Lane::U8) => rows!(u8, 0, |x, y| x | y),
        (ReduceOp::All | ReduceOp::Any, _) => return None,
        (ReduceOp::Sum, lane) => with_integer_lane!(lane, T => rows!(T, 0, T::wrapping_add)),
        (ReduceOp::Prod, lane) => with_integer_lane!(lane, T => rows!(T, 1, T::wrapping_mul)),
        (ReduceOp::Max, lane) => with_integer_lane!(lane, T => rows!(T, T::MIN, |x, y| x.max(y))),
        (ReduceOp::Min, lane) => with_integer_lane!(lane, T => rows!(T, T::MAX, |x, y| x.min(y))),
    })
}
