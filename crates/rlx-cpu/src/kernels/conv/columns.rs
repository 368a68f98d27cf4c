//! Windows as the columns of a matrix that is never written out: panels are filled from the expanded input.
#![allow(unsafe_code)]

use crate::kernels::gemm::Gemm;
use crate::kernels::gemm::panels::{MOST_LANES, Offsets, Source};
use std::ops::Range;

/// The windows of images and groups; behind the last element lie [`MOST_LANES`] more that may be read.
pub struct Columns<'a, G: Gemm> {
    /// The first element of the first window.
    pub first: *const G::Element,
    /// Groups of channels.
    pub groups: usize,
    /// From one image to the next.
    pub image: isize,
    /// From one group to the next.
    pub group: isize,
    /// By position.
    pub positions: &'a Offsets,
    /// By channel, then tap.
    pub depth: &'a Offsets,
}

// SAFETY: the pointer is to elements that nothing writes while the product runs.
unsafe impl<G: Gemm> Sync for Columns<'_, G> {}

impl<G: Gemm> Source<G> for Columns<'_, G> {
    unsafe fn fill(&self, batch: usize, lanes: Range<usize>, depth: Range<usize>, panels: *mut G::Element) {
        let (image, group) = ((batch / self.groups) as isize, (batch % self.groups) as isize);
        let first = self.first.wrapping_offset(image * self.image + group * self.group);
        let size = G::COLUMNS * depth.len().next_multiple_of(G::GROUP);
        for (i, start) in lanes.clone().step_by(G::COLUMNS).enumerate() {
            let used = G::COLUMNS.min(lanes.end - start);
            // Positions that lie one after the other: (lane, offset, count).
            let mut runs = [(0usize, 0isize, 0usize); MOST_LANES];
            let mut count = 0;
            for lane in 0..used {
                let at = self.positions.at(start + lane);
                match runs[..count].last_mut() {
                    Some((_, offset, length)) if *offset + *length as isize == at => *length += 1,
                    _ => {
                        runs[count] = (lane, at, 1);
                        count += 1;
                    }
                }
            }
            // SAFETY: the runs and the depth lead to elements of the input; the caller promises the room.
            unsafe {
                let panel = panels.add(i * size);
                if used < G::COLUMNS || !depth.len().is_multiple_of(G::GROUP) {
                    std::slice::from_raw_parts_mut(panel, size).fill(G::Element::default());
                }
                if G::GROUP == 1 {
                    self.fill_runs(first, &runs[..count], depth.clone(), panel);
                } else {
                    self.fill_groups(first, &runs[..count], depth.clone(), panel);
                }
            }
        }
    }
}

impl<G: Gemm> Columns<'_, G> {
    /// # Safety
    /// As [`Source::fill`].
    unsafe fn fill_runs(
        &self,
        first: *const G::Element,
        runs: &[(usize, isize, usize)],
        depth: Range<usize>,
        panel: *mut G::Element,
    ) {
        let last = depth.len() - 1;
        for (i, k) in depth.enumerate() {
            let row = first.wrapping_offset(self.depth.at(k));
            let to = panel.wrapping_add(i * G::COLUMNS);
            for (lane, offset, length) in runs {
                let from = row.wrapping_offset(*offset);
                // A copy of a fixed length is quick. What it writes beyond the run, the next run or the next row of
                // the panel writes again.
                let count = if i < last { G::COLUMNS } else { *length };
                // SAFETY: up to `COLUMNS` elements behind the input may be read; all rows but the last have a row
                // behind them.
                unsafe {
                    if count == G::COLUMNS {
                        std::ptr::copy_nonoverlapping(from, to.add(*lane), G::COLUMNS);
                    } else {
                        std::ptr::copy_nonoverlapping(from, to.add(*lane), count);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Source::fill`].
    unsafe fn fill_groups(
        &self,
        first: *const G::Element,
        runs: &[(usize, isize, usize)],
        depth: Range<usize>,
        panel: *mut G::Element,
    ) {
        for (i, k) in depth.enumerate() {
            let row = first.wrapping_offset(self.depth.at(k));
            let to = panel.wrapping_add((i / G::GROUP) * G::COLUMNS * G::GROUP + i % G::GROUP);
            for (lane, offset, length) in runs {
                for at in 0..*length {
                    // SAFETY: an element of the input to a place in the panel.
                    unsafe { *to.add((lane + at) * G::GROUP) = *row.offset(offset + at as isize) }
                }
            }
        }
    }
}
