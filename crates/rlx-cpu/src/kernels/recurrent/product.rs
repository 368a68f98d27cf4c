//! The products of recurrent layers: few rows with a packed matrix.
//!
//! A weight matrix \[gates · hidden, depth\] is packed in panels of 16 output columns, each with its depth outermost, so
//! that a row's product reads it once, in order. Every element is one chain of multiply-adds over the depth, in blocks
//! whose sums are added up: its value depends on neither the number of rows nor the threads.
#![allow(unsafe_code)]

use crate::kernels::transfer::Address;
use crate::pool::Pool;

/// Columns of a panel.
pub(super) const PANEL: usize = 16;

/// Depth of a chain of multiply-adds, after which its sum is added to the result.
const BLOCK: usize = 128;

/// Multiply-adds that are worth a thread of their own.
const GRAIN: usize = 128 << 10;

/// Sizes of a weight matrix: blocks of `hidden` rows, one a gate, over `depth`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gates {
    pub(super) gates: usize,
    pub(super) hidden: usize,
    pub(super) depth: usize,
}

impl Gates {
    /// Columns of a gate, up to whole panels.
    pub(super) fn padded(&self) -> usize {
        self.hidden.next_multiple_of(PANEL)
    }

    /// Columns of all gates.
    pub(super) fn columns(&self) -> usize {
        self.gates * self.padded()
    }

    /// Elements of the packed matrix.
    pub(super) fn packed_len(&self) -> usize {
        self.columns() * self.depth
    }

    /// Packs rows \[gates · hidden, depth\], whose element (row, k) is `element(row, k)`; what is beyond a gate's rows is 0.
    pub(super) fn pack(&self, to: &mut [f32], element: impl Fn(usize, usize) -> f32) {
        let panels = self.padded() / PANEL;
        let mut place = to.iter_mut();
        for gate in 0..self.gates {
            for panel in 0..panels {
                for k in 0..self.depth {
                    for column in 0..PANEL {
                        let unit = panel * PANEL + column;
                        let inside = unit < self.hidden;
                        if let Some(place) = place.next() {
                            *place = if inside { element(gate * self.hidden + unit, k) } else { 0.0 };
                        }
                    }
                }
            }
        }
    }
}

/// Rows of numbers: where the first is, and how far they are apart.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: *const f32,
    pub(super) stride: usize,
    pub(super) count: usize,
}

// SAFETY: addresses of memory that is only read while a product runs.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// Where row `i` begins.
    #[inline(always)]
    fn row(&self, i: usize) -> *const f32 {
        self.first.wrapping_add(i * self.stride)
    }
}

/// Writes the products of `rows` with the gates `gates` of the packed matrix to rows of `to` that are `shape.columns()`
/// apart, at the gates' columns.
///
/// # Safety
/// Each row has `shape.depth` numbers; `to` has `rows.count` rows of `shape.columns()` numbers, which nothing else uses.
pub(super) unsafe fn multiply(
    pool: &Pool,
    shape: Gates,
    packed: &[f32],
    gates: std::ops::Range<usize>,
    rows: Rows,
    to: *mut f32,
) {
    let per_gate = shape.padded() / PANEL;
    let first = gates.start * per_gate;
    let panels = gates.len() * per_gate;
    if shape.depth == 0 {
        for row in 0..rows.count {
            let to = to.wrapping_add(row * shape.columns() + first * PANEL);
            // SAFETY: the gates' columns of a row.
            unsafe { std::slice::from_raw_parts_mut(to, panels * PANEL) }.fill(0.0);
        }
        return;
    }
    let to = Address(to.cast());
    let strips = rows.count.div_ceil(STRIP);
    let each =
        (GRAIN / (STRIP.min(rows.count.max(1)) * PANEL * shape.depth.max(1))).max(1).next_multiple_of(4);
    let chunks = panels.div_ceil(each);
    let function = if has_fma() { fused as Function } else { plain as Function };
    pool.for_each(strips * chunks, |part| {
        let (strip, chunk) = (part / chunks, part % chunks);
        let start = first + chunk * each;
        let count = each.min(first + panels - start);
        let row = strip * STRIP;
        let some = Rows { first: rows.row(row), stride: rows.stride, count: STRIP.min(rows.count - row) };
        let matrix = &packed[start * PANEL * shape.depth..(start + count) * PANEL * shape.depth];
        let columns = shape.columns();
        let to = to.at(0).cast::<f32>().wrapping_add(row * columns + start * PANEL);
        // SAFETY: rows and panels of the whole, which only this part writes.
        unsafe { function(some, matrix, shape.depth, to, columns) };
    });
}

/// Rows of a part.
const STRIP: usize = 64;

/// Products of rows with consecutive panels.
type Function = unsafe fn(rows: Rows, panels: &[f32], depth: usize, to: *mut f32, columns: usize);

fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "aarch64")
    }
}

/// # Safety
/// As for [`multiply`].
unsafe fn plain(rows: Rows, panels: &[f32], depth: usize, to: *mut f32, columns: usize) {
    // SAFETY: as promised by the caller.
    unsafe { all(rows, panels, depth, to, columns, |a, b, c| a * b + c) }
}

/// # Safety
/// As for [`multiply`], and the processor has AVX2 and FMA (x86-64).
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn fused(rows: Rows, panels: &[f32], depth: usize, to: *mut f32, columns: usize) {
    // SAFETY: as promised by the caller.
    unsafe { all(rows, panels, depth, to, columns, f32::mul_add) }
}

#[inline(always)]
unsafe fn all(
    rows: Rows,
    panels: &[f32],
    depth: usize,
    to: *mut f32,
    columns: usize,
    fma: impl Fn(f32, f32, f32) -> f32 + Copy,
) {
    let size = PANEL * depth;
    let count = panels.len() / size;
    let mut panel = 0;
    while panel < count {
        let wide = count - panel >= 4;
        let matrix = &panels[panel * size..];
        let to = to.wrapping_add(panel * PANEL);
        let mut row = 0;
        while row < rows.count {
            let x = rows.row(row);
            let y = to.wrapping_add(row * columns);
            let left = rows.count - row;
            // SAFETY (all): rows of x of `depth` numbers, and their results.
            row += match (left, wide) {
                (4.., false) => unsafe { block::<4, 1>(x, rows.stride, matrix, depth, y, columns, fma) },
                (2.., true) => unsafe { block::<2, 4>(x, rows.stride, matrix, depth, y, columns, fma) },
                (_, true) => unsafe { block::<1, 4>(x, rows.stride, matrix, depth, y, columns, fma) },
                (_, false) => unsafe { block::<1, 1>(x, rows.stride, matrix, depth, y, columns, fma) },
            };
        }
        panel += if wide { 4 } else { 1 };
    }
}

/// `R` rows with `P` panels; returns `R`.
#[inline(always)]
unsafe fn block<const R: usize, const P: usize>(
    x: *const f32,
    stride: usize,
    panels: &[f32],
    depth: usize,
    to: *mut f32,
    columns: usize,
    fma: impl Fn(f32, f32, f32) -> f32,
) -> usize {
    let size = PANEL * depth;
    let mut totals = [[[0f32; PANEL]; P]; R];
    let mut start = 0;
    while start < depth {
        let end = (start + BLOCK).min(depth);
        let mut sums = [[[0f32; PANEL]; P]; R];
        for k in start..end {
            for p in 0..P {
                let at = p * size + k * PANEL;
                // SAFETY: a line of panel `p`, of `depth` lines.
                let line = unsafe { &*panels.as_ptr().add(at).cast::<[f32; PANEL]>() };
                for (r, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: a number of row `r`.
                    let x = unsafe { x.add(r * stride + k).read() };
                    for (sum, w) in sums[p].iter_mut().zip(line) {
                        *sum = fma(x, *w, *sum);
                    }
                }
            }
        }
        for (total, sum) in totals.iter_mut().flatten().flatten().zip(sums.iter().flatten().flatten()) {
            *total += sum;
        }
        start = end;
    }
    for (r, rows) in totals.iter().enumerate() {
        for (p, total) in rows.iter().enumerate() {
            // SAFETY: a panel's columns of the result's row `r`.
            unsafe { to.add(r * columns + p * PANEL).cast::<[f32; PANEL]>().write_unaligned(*total) };
        }
    }
    R
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_any_sizes_are_those_of_the_formula_whatever_the_rows() {
        let pool = Pool::new(2).unwrap();
        for (gates, hidden, depth, count) in [(1, 1, 1, 1), (3, 5, 300, 7), (4, 40, 17, 70), (4, 16, 0, 2)] {
            let shape = Gates { gates, hidden, depth };
            let weight = |row: usize, k: usize| ((row * 31 + k * 17) % 13) as f32 - 6.0;
            let mut packed = vec![0f32; shape.packed_len()];
            shape.pack(&mut packed, weight);
            let x: Vec<f32> = (0..count * depth).map(|i| (i % 7) as f32 - 3.0).collect();
            let mut all = vec![f32::NAN; count * shape.columns()];
            let rows = Rows { first: x.as_ptr(), stride: depth, count };
            let to = Address(all.as_mut_ptr().cast());
            // SAFETY: as large as the sizes say.
            pool.install(|| unsafe { multiply(&pool, shape, &packed, 0..gates, rows, to.at(0).cast()) });
            for row in 0..count {
                for gate in 0..gates {
                    for unit in 0..hidden {
                        let sum: f32 =
                            (0..depth).map(|k| x[row * depth + k] * weight(gate * hidden + unit, k)).sum();
                        assert_eq!(all[row * shape.columns() + gate * shape.padded() + unit], sum);
                    }
                }
            }
        }
    }
}
