//! How a tile's elements of one operand are found in memory.
#![allow(unsafe_code)]

use super::lanes::Lane;
use half::{bf16, f16};
use rlx_ir::DType;
use smallvec::SmallVec;

/// The elements of an operand in the order of a region's tiles: sizes and strides, neighbours joined.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Outermost first; at least one.
    axes: SmallVec<[(usize, isize); 6]>,
    dtype: DType,
}

impl Access {
    pub(super) fn new(dtype: DType, axes: impl Iterator<Item = (usize, isize)>) -> Access {
        let (dims, strides): (Vec<usize>, Vec<isize>) = axes.unzip();
        let mut axes = crate::kernels::copy::collapsed(&dims, &strides);
        if axes.is_empty() {
            axes.push((1, 1));
        }
        Access { axes, dtype }
    }

    /// Whether elements follow each other without gaps, and are held as they lie.
    pub(super) fn is_direct(&self) -> bool {
        let held = !matches!(self.dtype, DType::F16 | DType::BF16);
        held && matches!(self.axes.as_slice(), [(_, 1)])
    }

    /// The address of element `start` of a direct access.
    pub(super) fn direct(&self, pointer: *const u8, start: usize) -> *const u8 {
        pointer.wrapping_add(start * crate::array::width(self.dtype))
    }

    /// Calls `run` for each run of elements along the innermost axis: position in the tile, offset in elements, count.
    fn runs(&self, start: usize, count: usize, mut run: impl FnMut(usize, isize, usize)) {
        let Some(((inner, step), outer)) = self.axes.split_last() else { return };
        if *inner == 0 || count == 0 {
            return;
        }
        let (mut row, mut at) = (start / inner, start % inner);
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
        let mut offset = 0isize;
        for (axis, (dim, stride)) in outer.iter().enumerate().rev() {
            index[axis] = row % dim;
            row /= dim;
            offset += index[axis] as isize * stride;
        }
        let mut done = 0;
        while done < count {
            let length = (inner - at).min(count - done);
            run(done, offset + at as isize * step, length);
            done += length;
            at = 0;
            for (axis, (dim, stride)) in outer.iter().enumerate().rev() {
                index[axis] += 1;
                offset += stride;
                if index[axis] < *dim {
                    break;
                }
                offset -= stride * *dim as isize;
                index[axis] = 0;
            }
        }
    }

    fn step(&self) -> isize {
        self.axes.last().map_or(1, |(_, step)| *step)
    }

    /// Fills `to` with `count` elements from `start` on, as lanes.
    ///
    /// # Safety
    /// `pointer` is that of the operand; `to` has room for the lanes.
    pub(super) unsafe fn load(&self, pointer: *const u8, start: usize, count: usize, to: *mut u8) {
        match self.dtype {
            // SAFETY (all): as promised by the caller.
            DType::F16 => unsafe { self.load_as::<f16, f32>(pointer, start, count, to, f16::to_f32) },
            DType::BF16 => unsafe { self.load_as::<bf16, f32>(pointer, start, count, to, bf16::to_f32) },
            dtype => match crate::array::width(dtype) {
                1 => unsafe { self.load_as::<u8, u8>(pointer, start, count, to, |x| x) },
                2 => unsafe { self.load_as::<u16, u16>(pointer, start, count, to, |x| x) },
                4 => unsafe { self.load_as::<u32, u32>(pointer, start, count, to, |x| x) },
                _ => unsafe { self.load_as::<u64, u64>(pointer, start, count, to, |x| x) },
            },
        }
    }

    unsafe fn load_as<T: Copy, L: Copy>(
        &self,
        pointer: *const u8,
        start: usize,
        count: usize,
        to: *mut u8,
        held: impl Fn(T) -> L,
    ) {
        let (from, to, step) = (pointer.cast::<T>(), to.cast::<L>(), self.step());
        self.runs(start, count, |at, offset, length| {
            // SAFETY: runs stay in the layout's elements, and in `count` lanes.
            let out = unsafe { std::slice::from_raw_parts_mut(to.add(at), length) };
            match step {
                1 => {
                    // SAFETY: as above; the run is contiguous.
                    let run = unsafe { std::slice::from_raw_parts(from.offset(offset), length) };
                    out.iter_mut().zip(run).for_each(|(o, x)| *o = held(*x));
                }
                // SAFETY: the run's only element.
                0 => out.fill(held(unsafe { from.offset(offset).read() })),
                _ => {
                    for (i, o) in out.iter_mut().enumerate() {
                        // SAFETY: an element of the run.
                        *o = held(unsafe { from.offset(offset + i as isize * step).read() });
                    }
                }
            }
        });
    }

    /// Writes `count` lanes to the elements from `start` on, rounding to narrow floats.
    ///
    /// # Safety
    /// `pointer` is that of the result; `from` holds the lanes.
    pub(super) unsafe fn store(&self, pointer: *mut u8, start: usize, count: usize, from: *const u8) {
        if self.is_direct() {
            let width = crate::array::width(self.dtype);
            // The register may be the operand that the result is written over, at the same place.
            // SAFETY: as promised by the caller.
            unsafe { std::ptr::copy(from, pointer.add(start * width), count * width) };
            return;
        }
        match self.dtype {
            // SAFETY (all): as promised by the caller.
            DType::F16 => unsafe { self.store_as::<f16, f32>(pointer, start, count, from, f16::from_f32) },
            DType::BF16 => unsafe { self.store_as::<bf16, f32>(pointer, start, count, from, bf16::from_f32) },
            dtype => match crate::array::width(dtype) {
                1 => unsafe { self.store_as::<u8, u8>(pointer, start, count, from, |x| x) },
                2 => unsafe { self.store_as::<u16, u16>(pointer, start, count, from, |x| x) },
                4 => unsafe { self.store_as::<u32, u32>(pointer, start, count, from, |x| x) },
                _ => unsafe { self.store_as::<u64, u64>(pointer, start, count, from, |x| x) },
            },
        }
    }

    unsafe fn store_as<T: Copy, L: Copy>(
        &self,
        pointer: *mut u8,
        start: usize,
        count: usize,
        from: *const u8,
        rounded: impl Fn(L) -> T,
    ) {
        let (to, from, step) = (pointer.cast::<T>(), from.cast::<L>(), self.step());
        self.runs(start, count, |at, offset, length| {
            // SAFETY: `count` lanes.
            let run = unsafe { std::slice::from_raw_parts(from.add(at), length) };
            if step == 1 {
                // SAFETY: the run's elements, which only this part of the result writes.
                let out = unsafe { std::slice::from_raw_parts_mut(to.offset(offset), length) };
                out.iter_mut().zip(run).for_each(|(o, x)| *o = rounded(*x));
                return;
            }
            for (i, x) in run.iter().enumerate() {
                // SAFETY: as above.
                unsafe { to.offset(offset + i as isize * step).write(rounded(*x)) };
            }
        });
    }
}

/// Repeats each of `rows` lanes `length` times.
///
/// # Safety
/// `from` holds `rows` lanes, `to` has room for `rows · length`.
pub(super) unsafe fn expand(lane: Lane, from: *const u8, to: *mut u8, rows: usize, length: usize) {
    unsafe fn typed<T: Copy>(from: *const u8, to: *mut u8, rows: usize, length: usize) {
        for row in 0..rows {
            // SAFETY: as promised by the caller of `expand`.
            unsafe {
                let x = from.cast::<T>().add(row).read();
                std::slice::from_raw_parts_mut(to.cast::<T>().add(row * length), length).fill(x);
            }
        }
    }
    // SAFETY (all): as promised by the caller.
    match lane.width() {
        1 => unsafe { typed::<u8>(from, to, rows, length) },
        2 => unsafe { typed::<u16>(from, to, rows, length) },
        4 => unsafe { typed::<u32>(from, to, rows, length) },
        _ => unsafe { typed::<u64>(from, to, rows, length) },
    }
}
