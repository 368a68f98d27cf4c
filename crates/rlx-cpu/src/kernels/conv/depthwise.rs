//! Convolutions whose channels do not mix: sums held in registers while the taps of one channel run past.
#![allow(unsafe_code)]

use super::geometry::Windows;

/// Sums at once.
const LANES: usize = 32;

/// One channel of a result.
pub struct Channel<'a> {
    /// The first element of the channel's first window; 32 elements behind the last may be read.
    pub input: *const f32,
    /// Where windows find their elements.
    pub windows: &'a Windows,
    /// The kernel's taps.
    pub taps: &'a [f32],
    /// Positions of a row; the next position is the next element.
    pub row: usize,
}

/// Computes a channel's sums, rows of positions one after the other.
pub type Function = unsafe fn(&Channel<'_>, &mut [f32]);

/// # Safety
/// The channel's windows lead to elements that may be read.
#[inline(always)]
unsafe fn rows<const FUSED: bool>(channel: &Channel<'_>, sums: &mut [f32]) {
    for (index, sums) in sums.chunks_mut(channel.row.max(1)).enumerate() {
        let first = channel.input.wrapping_offset(channel.windows.positions.at(index * channel.row));
        for (i, sums) in sums.chunks_mut(LANES).enumerate() {
            let first = first.wrapping_add(i * LANES);
            // SAFETY (both): lanes beyond the row read elements behind it, which are kept free.
            if sums.len() <= 8 {
                unsafe { part::<8, FUSED>(channel, first, sums) }
            } else {
                unsafe { part::<LANES, FUSED>(channel, first, sums) }
            }
        }
    }
}

/// # Safety
/// As [`rows`].
#[inline(always)]
unsafe fn part<const N: usize, const FUSED: bool>(channel: &Channel<'_>, first: *const f32, to: &mut [f32]) {
    let mut sums = [0f32; N];
    for (tap, offset) in channel.taps.iter().zip(&channel.windows.taps) {
        // SAFETY: as promised by the caller.
        let elements = unsafe { std::slice::from_raw_parts(first.offset(*offset), N) };
        for (sum, element) in sums.iter_mut().zip(elements) {
            *sum = if FUSED { element.mul_add(*tap, *sum) } else { *sum + *element * *tap };
        }
    }
    to.copy_from_slice(&sums[..to.len()]);
}

/// # Safety
/// As [`rows`].
unsafe fn plain(channel: &Channel<'_>, sums: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { rows::<{ cfg!(target_arch = "aarch64") }>(channel, sums) }
}

/// # Safety
/// As [`rows`]; the processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(channel: &Channel<'_>, sums: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { rows::<true>(channel, sums) }
}

/// The function for this processor.
pub fn function() -> Function {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return avx2;
    }
    plain
}
