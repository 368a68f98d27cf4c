//! Copies between strided blocks: what every kernel that only moves elements is made of.
//!
//! A [`Transfer`] is prepared when sizes are known: axes that lie like one are joined, and the innermost loop becomes a
//! run of bytes, a fill, a loop with steps, or a blocked transposition. Large ones are cut by shape and run on all threads.
#![allow(unsafe_code)]

use super::transpose;
use crate::pool::Pool;
use rlx_ir::DType;
use rlx_opt::program::Layout;
use smallvec::SmallVec;

/// Bytes that one thread copies at a time: small enough to share, large enough to be worth waking a thread.
const PART_BYTES: usize = 256 << 10;

/// An axis of a transfer: its size, and the bytes from one index to the next in the source and in the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// How many indices.
    pub size: usize,
    /// The source's stride in bytes.
    pub from: isize,
    /// The destination's stride in bytes.
    pub to: isize,
}

/// The innermost loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inner {
    /// Bytes without gaps on both sides.
    Run { bytes: usize },
    /// Cells one by one, with steps; a step of 0 in the source fills.
    Steps(Axis),
    /// Cells that follow each other along `columns` in the source and along `rows` in the destination.
    Transposed { rows: Axis, columns: Axis },
}

/// A copy of a block of cells to another of the same sizes.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Bytes of a cell.
    width: usize,
    /// Outermost first.
    outer: SmallVec<[Axis; 6]>,
    inner: Inner,
    /// Products of the outer sizes; 0 if there is nothing to copy.
    outer_count: usize,
    /// Into how many pieces the innermost loop is cut.
    pieces: usize,
}

/// Addresses that parts of one transfer, which do not overlap, may use from several threads.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub *mut u8);

// SAFETY: an address is no access; who dereferences it keeps to his own part.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// The address `bytes` further.
    pub(crate) fn at(self, bytes: isize) -> *mut u8 {
        self.0.wrapping_offset(bytes)
    }
}

impl Transfer {
    /// A transfer of cells of `width` bytes over `axes`, the destination's outermost first.
    pub fn new(width: usize, axes: impl IntoIterator<Item = Axis>) -> Transfer {
        let mut outer: SmallVec<[Axis; 6]> = SmallVec::new();
        let mut empty = width == 0;
        for axis in axes {
            empty |= axis.size == 0;
            if axis.size == 1 {
                continue;
            }
            let size = axis.size as isize;
            match outer.last_mut() {
                Some(o) if o.from == axis.from.wrapping_mul(size) && o.to == axis.to.wrapping_mul(size) => {
                    o.size = o.size.wrapping_mul(axis.size);
                    (o.from, o.to) = (axis.from, axis.to);
                }
                _ => outer.push(axis),
            }
        }
        if empty {
            let inner = Inner::Run { bytes: 0 };
            return Transfer { width, outer: SmallVec::new(), inner, outer_count: 0, pieces: 1 };
        }
        let step = width as isize;
        let inner = match outer.pop() {
            None => Inner::Run { bytes: width },
            Some(last) if last.from == step && last.to == step => Inner::Run { bytes: last.size * width },
            Some(last) => {
                let across = outer.iter().rposition(|a| a.from == step && last.from != 0 && last.to == step);
                match across.filter(|_| transpose::supports(width)) {
                    Some(position) => {
                        let columns = outer.remove(position);
                        Inner::Transposed { rows: last, columns }
                    }
                    None => Inner::Steps(last),
                }
            }
        };
        let outer_count = outer.iter().map(|a| a.size).product();
        let pieces = match inner {
            Inner::Run { bytes } => bytes.div_ceil(PART_BYTES),
            Inner::Steps(axis) => (axis.size * width).div_ceil(PART_BYTES),
            Inner::Transposed { rows, columns } => columns.size.div_ceil(columns_of_piece(width, rows.size)),
        };
        Transfer { width, outer, inner, outer_count, pieces: pieces.max(1) }
    }

    /// From a layout to row-major cells without gaps.
    pub fn packing(from: &Layout) -> Transfer {
        if from.is_packed() {
            let bytes = from.packed_bytes().unwrap_or(0);
            return Transfer::new(1, [Axis { size: bytes, from: 1, to: 1 }]);
        }
        let cells = Cells::of(from);
        let packed = packed_strides(&cells.dims, cells.width);
        let axes = cells.dims.iter().zip(&cells.strides).zip(&packed);
        Transfer::new(cells.width, axes.map(|((size, from), to)| Axis { size: *size, from: *from, to: *to }))
    }

    /// Whether nothing is copied.
    pub fn is_empty(&self) -> bool {
        self.outer_count == 0
    }

    /// The bytes without gaps that are all of it, if they are.
    pub(crate) fn run_bytes(&self) -> Option<usize> {
        match self.inner {
            Inner::Run { bytes } if self.outer_count == 1 => Some(bytes),
            _ => None,
        }
    }

    /// The bytes that are copied.
    pub fn bytes(&self) -> usize {
        let inner = match self.inner {
            Inner::Run { bytes } => bytes,
            Inner::Steps(axis) => axis.size * self.width,
            Inner::Transposed { rows, columns } => rows.size * columns.size * self.width,
        };
        self.outer_count * inner
    }

    /// Copies, on all threads if it is worth it.
    ///
    /// # Safety
    /// Every cell of the source may be read and every cell of the destination written; both are aligned to cells of 1,
    /// 2, 4, 8 and 16 bytes and do not overlap. No two cells of the destination are the same.
    pub unsafe fn run(&self, pool: &Pool, from: *const u8, to: *mut u8) {
        let units = self.outer_count * self.pieces;
        if units == 0 {
            return;
        }
        if units == 1 || self.bytes() <= PART_BYTES {
            // SAFETY: as promised by the caller.
            unsafe { self.units(0..units, from, to) };
            return;
        }
        let grain = (units * (PART_BYTES / 4)).div_ceil(self.bytes()).max(1);
        let (from, to) = (Address(from.cast_mut()), Address(to));
        pool.for_ranges(units, grain, |range| {
            // SAFETY: as promised by the caller; units are disjoint.
            unsafe { self.units(range, from.at(0), to.at(0)) }
        });
    }

    /// Copies on this thread.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    pub unsafe fn run_here(&self, from: *const u8, to: *mut u8) {
        // SAFETY: as promised by the caller.
        unsafe { self.units(0..self.outer_count * self.pieces, from, to) }
    }

    unsafe fn units(&self, range: std::ops::Range<usize>, from: *const u8, to: *mut u8) {
        if range.is_empty() {
            return;
        }
        let (mut row, mut piece) = (range.start / self.pieces, range.start % self.pieces);
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.outer.len());
        let (mut from, mut to) = (from, to);
        for (axis, at) in self.outer.iter().zip(&mut index).rev() {
            *at = row % axis.size;
            row /= axis.size;
            from = from.wrapping_offset(axis.from * *at as isize);
            to = to.wrapping_offset(axis.to * *at as isize);
        }
        for _ in range {
            // SAFETY: the offsets are those of cells.
            unsafe { self.piece(piece, from, to) };
            piece += 1;
            if piece < self.pieces {
                continue;
            }
            piece = 0;
            for (axis, at) in self.outer.iter().zip(&mut index).rev() {
                *at += 1;
                from = from.wrapping_offset(axis.from);
                to = to.wrapping_offset(axis.to);
                if *at < axis.size {
                    break;
                }
                from = from.wrapping_offset(-axis.from * axis.size as isize);
                to = to.wrapping_offset(-axis.to * axis.size as isize);
                *at = 0;
            }
        }
    }

    unsafe fn piece(&self, piece: usize, from: *const u8, to: *mut u8) {
        match self.inner {
            Inner::Run { bytes } => {
                let start = piece * PART_BYTES;
                let count = (bytes - start).min(PART_BYTES);
                let (from, to) = (from.wrapping_add(start), to.wrapping_add(start));
                // SAFETY: the bytes of the run.
                unsafe { copy_run(count, from, to) };
            }
            Inner::Steps(axis) => {
                let each = (PART_BYTES / self.width).max(1);
                let start = piece * each;
                let count = (axis.size - start.min(axis.size)).min(each);
                let from = from.wrapping_offset(axis.from * start as isize);
                let to = to.wrapping_offset(axis.to * start as isize);
                // SAFETY (all): cells of the loop.
                match self.width {
                    1 => unsafe { steps::<u8>(count, axis, from, to) },
                    2 => unsafe { steps::<u16>(count, axis, from, to) },
                    4 => unsafe { steps::<u32>(count, axis, from, to) },
                    8 => unsafe { steps::<u64>(count, axis, from, to) },
                    16 => unsafe { steps::<[u64; 2]>(count, axis, from, to) },
                    width => {
                        for i in 0..count as isize {
                            let (from, to) =
                                (from.wrapping_offset(axis.from * i), to.wrapping_offset(axis.to * i));
                            unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
                        }
                    }
                }
            }
            Inner::Transposed { rows, columns } => {
                let each = columns_of_piece(self.width, rows.size);
                let start = piece * each;
                let count = (columns.size - start).min(each);
                let from = from.wrapping_add(start * self.width);
                let to = to.wrapping_offset(columns.to * start as isize);
                let shape = transpose::Shape {
                    rows: rows.size,
                    columns: count,
                    from_row: rows.from,
                    to_column: columns.to,
                };
                // SAFETY: cells of the block.
                unsafe { transpose::transpose(self.width, shape, from, to) };
            }
        }
    }
}

/// Copies bytes that lie without gaps; the usual widths of small cells without a call.
///
/// # Safety
/// The bytes may be read and written, and do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_run(bytes: usize, from: *const u8, to: *mut u8) {
    // SAFETY (all): as promised by the caller; arrays of bytes have no alignment.
    match bytes {
        1 => unsafe { to.write(from.read()) },
        2 => unsafe { to.cast::<[u8; 2]>().write(from.cast::<[u8; 2]>().read()) },
        4 => unsafe { to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()) },
        8 => unsafe { to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        16 => unsafe { to.cast::<[u8; 16]>().write(from.cast::<[u8; 16]>().read()) },
        32 => unsafe { to.cast::<[u8; 32]>().write(from.cast::<[u8; 32]>().read()) },
        _ => unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) },
    }
}

/// How many columns of a transposition one piece has: whole lines of the source, and enough to share.
fn columns_of_piece(width: usize, rows: usize) -> usize {
    (PART_BYTES / (width * rows)).next_multiple_of(transpose::COLUMNS).max(transpose::COLUMNS)
}

unsafe fn steps<T: Copy>(count: usize, axis: Axis, from: *const u8, to: *mut u8) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    let width = size_of::<T>() as isize;
    if axis.to == width {
        // SAFETY: `count` cells without gaps, which only this transfer writes.
        let out = unsafe { std::slice::from_raw_parts_mut(to, count) };
        if axis.from == 0 {
            // SAFETY: the source's only cell.
            out.fill(unsafe { from.read() });
            return;
        }
        for (i, out) in out.iter_mut().enumerate() {
            // SAFETY: a cell of the source.
            *out = unsafe { from.byte_offset(axis.from * i as isize).read() };
        }
        return;
    }
    for i in 0..count as isize {
        // SAFETY: a cell of either side.
        unsafe { to.byte_offset(axis.to * i).write(from.byte_offset(axis.from * i).read()) };
    }
}

/// A tensor as cells of whole bytes that move as they are: elements, or whole rows of a block format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cells {
    /// Bytes of a cell.
    pub width: usize,
    /// Sizes in cells; of block formats without the last axis.
    pub dims: SmallVec<[usize; 6]>,
    /// Strides in bytes.
    pub strides: SmallVec<[isize; 6]>,
}

impl Cells {
    /// The cells of a layout. Types below a byte do not come here but as codes of a byte.
    pub fn of(layout: &Layout) -> Cells {
        if let (DType::Block(format), Some((last, outer))) = (layout.dtype, layout.dims.split_last()) {
            let width = format.row_bytes(*last).unwrap_or(0);
            return Cells { width, dims: outer.into(), strides: packed_strides(outer, width) };
        }
        let width = crate::array::width(layout.dtype);
        let strides = layout.strides.iter().map(|s| s.wrapping_mul(width as isize)).collect();
        Cells { width, dims: layout.dims.clone(), strides }
    }

    /// The axes of a transfer from here to `to`, which has the same sizes.
    pub fn axes<'a>(&'a self, to: &'a [isize]) -> impl Iterator<Item = Axis> + 'a {
        let pairs = self.dims.iter().zip(&self.strides).zip(to);
        pairs.map(|((size, from), to)| Axis { size: *size, from: *from, to: *to })
    }

    /// How many cells there are.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Strides in bytes of row-major cells without gaps.
pub fn packed_strides(dims: &[usize], width: usize) -> SmallVec<[isize; 6]> {
    let mut strides = SmallVec::from_elem(0isize, dims.len());
    let mut stride = width as isize;
    for (axis, dim) in dims.iter().enumerate().rev() {
        strides[axis] = stride;
        stride = stride.wrapping_mul(*dim as isize);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Copies cell by cell, in the order of the indices.
    fn plainly(width: usize, axes: &[Axis], from: &[u8], at: isize, to: &mut [u8]) {
        let count: usize = axes.iter().map(|a| a.size).product();
        for i in 0..count {
            let (mut rest, mut source, mut target) = (i, at, 0isize);
            for axis in axes.iter().rev() {
                let index = (rest % axis.size) as isize;
                rest /= axis.size;
                source += index * axis.from;
                target += index * axis.to;
            }
            let (source, target) = (source as usize, target as usize);
            to[target..target + width].copy_from_slice(&from[source..source + width]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn any_order_of_axes_copies_the_same_cells(
            dims in prop::collection::vec(0usize..40, 1..4),
            shuffle in any::<u64>(),
            reversed in any::<bool>(),
            log_width in 0usize..5,
        ) {
            let width = 1 << log_width;
            let mut order: Vec<usize> = (0..dims.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, (shuffle as usize >> (8 * i)) % (i + 1));
            }
            // The source has the axes in another order, perhaps one of them backward.
            let source_dims: Vec<usize> = order.iter().map(|i| dims[*i]).collect();
            let source = packed_strides(&source_dims, width);
            let to = packed_strides(&dims, width);
            let mut axes: Vec<Axis> = Vec::new();
            for (axis, size) in dims.iter().enumerate() {
                let position = order.iter().position(|o| *o == axis).unwrap();
                axes.push(Axis { size: *size, from: source[position], to: to[axis] });
            }
            let bytes = dims.iter().product::<usize>() * width;
            let mut at = 0isize;
            if reversed && dims[0] > 0 {
                at = axes[0].from * (dims[0] as isize - 1);
                axes[0].from = -axes[0].from;
            }
            let words: Vec<u128> = (0..bytes.div_ceil(16)).map(|i| (i as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).collect();
            let from: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let mut expected = vec![0u8; bytes];
            if bytes > 0 {
                plainly(width, &axes, &from, at, &mut expected);
            }
            let mut found = vec![0u128; bytes.div_ceil(16)];
            let transfer = Transfer::new(width, axes);
            prop_assert_eq!(transfer.bytes(), bytes);
            let pool = Pool::new(2).unwrap();
            let source = words.as_ptr().cast::<u8>().wrapping_offset(at);
            let target = Address(found.as_mut_ptr().cast());
            let source = Address(source.cast_mut());
            pool.install(|| {
                // SAFETY: both sides have `bytes` bytes, aligned for the widest cell.
                unsafe { transfer.run(&pool, source.at(0), target.at(0)) }
            });
            let found: Vec<u8> = found.iter().flat_map(|w| w.to_le_bytes()).collect();
            prop_assert_eq!(&found[..bytes], &expected[..]);
        }
    }
}
