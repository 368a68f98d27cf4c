//! Products of matrices in blocks: what is cut where, and which panels are filled on the way.
//!
//! The work is cut by the sizes alone, in blocks of rows and columns; each block's task goes through the depth, fills
//! the panels that are not there yet in its thread's workspace, and lets tiles run over them.
#![allow(unsafe_code)]

use super::panels::{PanelView, RowSource, Source, depth_block, depth_blocks};
use super::tile::{Gemm, Plus, Tile, TileFunction};
use crate::memory::Aligned;
use crate::pool::Pool;
use std::cell::RefCell;
use std::ops::Range;

/// One of the two matrices of a product.
pub enum Operand<'a, G: Gemm> {
    /// In panels already.
    Panels(PanelView<G>),
    /// Filled block by block.
    Source(&'a dyn Source<G>),
    /// Of the left matrix: rows of other elements whose depth lies together, converted block by block.
    Converted(&'a dyn RowSource<G>),
    /// Of the left matrix: rows whose depth lies together, used where they lie.
    Rows {
        /// The first row of the first matrix.
        first: *const G::Element,
        /// From one row to the next.
        row: isize,
        /// The matrices' first elements, counted from `first`.
        batch: &'a super::panels::Offsets,
    },
}

// SAFETY: the pointers are to elements that nothing writes while the product runs.
unsafe impl<G: Gemm> Sync for Operand<'_, G> {}

/// Where sums go.
pub enum Sums<'a, G: Gemm> {
    /// To packed memory `[batch, rows, columns]`.
    To(*mut G::Sum),
    /// Through a function that is given sums and the place of the first one in `[batch, rows, columns]`.
    Through(&'a (dyn Fn(&[G::Sum], usize) + Sync)),
}

// SAFETY: tasks write disjoint parts.
unsafe impl<G: Gemm> Sync for Sums<'_, G> {}

/// `[batch, rows, depth] · [batch, depth, columns]`.
pub struct Product<'a, G: Gemm> {
    /// How many products.
    pub batch: usize,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
    /// Terms of a sum.
    pub depth: usize,
    /// The left matrices.
    pub lhs: Operand<'a, G>,
    /// The right matrices.
    pub rhs: Operand<'a, G>,
    /// The results.
    pub sums: Sums<'a, G>,
    /// Functions for tiles, [`Gemm::tiles`].
    pub tiles: &'static [TileFunction<G>],
}

/// Multiply-adds of a task: some 50 µs, which is long compared with handing it to a thread.
const TASK: usize = 2_000_000;

/// What filling or streaming an element of the right matrix costs, in multiply-adds.
const COLUMN_COST: usize = 12;

/// The most elements of the right matrix that a task keeps in panels: about half of the smallest L2.
const RIGHT_BLOCK: usize = 64 * 1024;

/// Tasks that are shared out badly among threads if there are fewer.
const FEW: usize = 8;

/// The most rows of a task.
const ROW_BLOCK: usize = 192;

/// Rows and columns of a task, whole panels.
struct Cut {
    rows: usize,
    columns: usize,
}

impl Cut {
    fn new<G: Gemm>(p: &Product<'_, G>) -> Cut {
        let in_panels = matches!(p.rhs, Operand::Panels(_));
        let most = if in_panels { ROW_BLOCK / 2 } else { ROW_BLOCK };
        let blocks = p.rows.div_ceil(most).max(1);
        let rows = p.rows.div_ceil(blocks).next_multiple_of(G::ROWS);
        let cost = p.depth.max(1) * (rows.min(p.rows) + COLUMN_COST);
        let mut columns = TASK / cost;
        if !in_panels {
            columns = columns.min(RIGHT_BLOCK / depth_block(p.depth));
        }
        if matches!(p.lhs, Operand::Source(_)) {
            columns = columns.max(128);
        }
        let columns = columns.next_multiple_of(G::COLUMNS);
        // Few columns under a long depth: fewer rows a task, so that there is work for several threads.
        let mut rows = rows;
        let across = p.batch * p.columns.div_ceil(columns);
        while across * p.rows.div_ceil(rows) < FEW
            && rows > G::ROWS
            && rows * columns.min(p.columns) * p.depth > TASK / 2
        {
            rows = (rows / 2).next_multiple_of(G::ROWS);
        }
        Cut { rows, columns }
    }
}

/// A thread's panels and sums.
#[derive(Default)]
struct Workspace {
    lhs: Aligned,
    rhs: Aligned,
    sums: Aligned,
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

impl<G: Gemm> Product<'_, G> {
    /// Computes all sums.
    pub fn run(&self, pool: &Pool) {
        if self.batch * self.rows * self.columns == 0 {
            return;
        }
        let cut = Cut::new(self);
        let (down, across) = (self.rows.div_ceil(cut.rows), self.columns.div_ceil(cut.columns));
        pool.for_each(self.batch * down * across, |task| {
            let (batch, block) = (task / (down * across), task % (down * across));
            // Tasks that share columns come one after the other, so that these stay in the cache that cores share.
            let (row, column) = (block % down * cut.rows, block / down * cut.columns);
            let rows = row..(row + cut.rows).min(self.rows);
            let columns = column..(column + cut.columns).min(self.columns);
            WORKSPACE.with_borrow_mut(|workspace| self.block(batch, rows, columns, workspace));
        });
    }

    fn block(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, workspace: &mut Workspace) {
        let place = (batch * self.rows + rows.start) * self.columns + columns.start;
        let (sums, sums_row) = match &self.sums {
            Sums::To(first) => (first.wrapping_add(place), self.columns),
            Sums::Through(_) => {
                (room::<G::Sum>(&mut workspace.sums, rows.len() * columns.len()), columns.len())
            }
        };
        if self.depth == 0 {
            for row in 0..rows.len() {
                // SAFETY: the sums are this task's own.
                unsafe { std::slice::from_raw_parts_mut(sums.add(row * sums_row), columns.len()) }
                    .fill(G::Sum::default());
            }
        }
        for block in depth_blocks(self.depth) {
            let length = block.len().next_multiple_of(G::GROUP);
            let rhs = match &self.rhs {
                Operand::Panels(view) => view.panel(batch, columns.start, &block),
                Operand::Source(source) => {
                    let elements = columns.len().next_multiple_of(G::COLUMNS) * length;
                    let panels = room::<G::Element>(&mut workspace.rhs, elements);
                    // SAFETY: `room` made room.
                    unsafe { source.fill(batch, columns.clone(), block.clone(), panels) };
                    panels
                }
                Operand::Rows { .. } | Operand::Converted(_) => unreachable!("rows of a right matrix"),
            };
            // Where row 0 is, then the distances of rows and groups.
            let (lhs, lhs_row, lhs_group) = match &self.lhs {
                Operand::Panels(view) => in_panels::<G>(view.panel(batch, rows.start, &block)),
                Operand::Source(source) => {
                    let panels =
                        room::<G::Element>(&mut workspace.lhs, rows.len().next_multiple_of(G::ROWS) * length);
                    // SAFETY: `room` made room.
                    unsafe { source.fill(batch, rows.clone(), block.clone(), panels) };
                    in_panels::<G>(panels)
                }
                Operand::Converted(source) => {
                    let to = room::<G::Element>(&mut workspace.lhs, rows.len() * length);
                    // SAFETY: `room` made room.
                    unsafe { source.convert(batch, rows.clone(), block.clone(), to) };
                    (to.cast_const(), length as isize, G::GROUP as isize)
                }
                Operand::Rows { first, row, batch: matrices } => {
                    let at = matrices.at(batch) + rows.start as isize * row + block.start as isize;
                    (first.wrapping_offset(at), *row, G::GROUP as isize)
                }
            };
            let in_rows = matches!(self.lhs, Operand::Rows { .. } | Operand::Converted(_));
            for column in (0..columns.len()).step_by(G::COLUMNS) {
                for row in (0..rows.len()).step_by(G::ROWS) {
                    let lhs = if in_rows {
                        lhs.wrapping_offset(row as isize * lhs_row)
                    } else {
                        lhs.wrapping_add(row * length)
                    };
                    let tile = Tile::<G> {
                        lhs,
                        lhs_row,
                        lhs_group,
                        rhs: rhs.wrapping_add(column * length),
                        groups: length / G::GROUP,
                        sums: sums.wrapping_add(row * sums_row + column),
                        sums_row,
                        fresh: block.start == 0,
                    };
                    let (used_rows, used_columns) =
                        (G::ROWS.min(rows.len() - row), G::COLUMNS.min(columns.len() - column));
                    self.tile(tile, used_rows, used_columns);
                }
            }
        }
        if let Sums::Through(finish) = &self.sums {
            for row in 0..rows.len() {
                // SAFETY: the workspace holds these sums, written above.
                let sums = unsafe { std::slice::from_raw_parts(sums.add(row * sums_row), columns.len()) };
                finish(sums, place + row * self.columns);
            }
        }
    }

    fn tile(&self, mut tile: Tile<G>, rows: usize, columns: usize) {
        let function = self.tiles[rows - 1];
        if columns == G::COLUMNS {
            // SAFETY: panels and sums are as large as the tile says; the sums are this task's own.
            return unsafe { function(&tile) };
        }
        // The last columns: a whole tile beside, of which a part is kept.
        let mut beside = Beside([0; MOST_TILE_BYTES]);
        let (to, to_row, fresh) = (tile.sums, tile.sums_row, tile.fresh);
        (tile.sums, tile.sums_row, tile.fresh) = (beside.0.as_mut_ptr().cast(), G::COLUMNS, true);
        // SAFETY: as above; `beside` holds a tile.
        unsafe {
            function(&tile);
            for row in 0..rows {
                for column in 0..columns {
                    let sum = *tile.sums.add(row * G::COLUMNS + column);
                    let to = to.add(row * to_row + column);
                    *to = if fresh { sum } else { (*to).plus(sum) };
                }
            }
        }
    }
}

/// 12 × 32 sums of 4 bytes.
const MOST_TILE_BYTES: usize = 12 * 32 * 4;

#[repr(align(64))]
struct Beside([u8; MOST_TILE_BYTES]);

fn in_panels<G: Gemm>(first: *const G::Element) -> (*const G::Element, isize, isize) {
    (first, G::GROUP as isize, (G::ROWS * G::GROUP) as isize)
}

/// Room for elements in a thread's memory, which only grows. Blocks are bounded, so that this is a few MiB at most.
fn room<T>(memory: &mut Aligned, elements: usize) -> *mut T {
    let bytes = elements * size_of::<T>();
    if memory.ensure(bytes).is_err() {
        std::alloc::handle_alloc_error(
            std::alloc::Layout::from_size_align(bytes, 64).unwrap_or(std::alloc::Layout::new::<u64>()),
        );
    }
    memory.as_mut_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm::panels::{Offsets, Right, Strided, Takes};
    use rlx_ir::DType;
    use std::marker::PhantomData;

    /// x `[rows, depth]` · y `[depth, columns]` of elements as panels hold them.
    fn product<G: Takes>(
        (rows, depth, columns): (usize, usize, usize),
        dtype: DType,
        x: &[G::Element],
        y: &[G::Element],
    ) -> Vec<G::Sum> {
        let mut sums = vec![G::Sum::default(); rows * columns];
        let rhs = Strided::<G, Right> {
            pointer: y.as_ptr().cast(),
            width: size_of::<G::Element>(),
            batch: Offsets::Even(0),
            free: Offsets::Even(1),
            depth: Offsets::Even(columns as isize),
            fill: G::fill_of::<Right>(dtype).unwrap(),
            side: PhantomData,
        };
        let lhs = Strided::<G, super::super::panels::Left> {
            pointer: x.as_ptr().cast(),
            width: size_of::<G::Element>(),
            batch: Offsets::Even(0),
            free: Offsets::Even(depth as isize),
            depth: Offsets::Even(1),
            fill: G::fill_of::<super::super::panels::Left>(dtype).unwrap(),
            side: PhantomData,
        };
        Product::<G> {
            batch: 1,
            rows,
            columns,
            depth,
            lhs: Operand::Source(&lhs),
            rhs: Operand::Source(&rhs),
            sums: Sums::To(sums.as_mut_ptr()),
            tiles: G::tiles(),
        }
        .run(&Pool::new(1).unwrap());
        sums
    }

    fn numbers(count: usize, seed: u32) -> impl Iterator<Item = i16> {
        (0..count as u32).map(move |i| (i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 16) as i16)
    }

    #[test]
    fn bytes_at_their_ends_are_exact() {
        let (rows, depth, columns) = (13, 771, 37);
        let x = vec![-255i16; rows * depth];
        let y = vec![255i16; depth * columns];
        let sums = product::<crate::kernels::gemm::tile::I16>((rows, depth, columns), DType::I16, &x, &y);
        assert!(sums.iter().all(|sum| *sum == -255 * 255 * 771));
    }

    #[test]
    fn sixteen_bits_wrap_as_i32_does() {
        let (rows, depth, columns) = (5, 9, 3);
        let x: Vec<i16> = numbers(rows * depth, 1).collect();
        let y: Vec<i16> = numbers(depth * columns, 7).collect();
        let sums = product::<crate::kernels::gemm::tile::I16>((rows, depth, columns), DType::I16, &x, &y);
        for (i, sum) in sums.iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let terms =
                (0..depth).map(|k| i32::from(x[row * depth + k]) * i32::from(y[k * columns + column]));
            assert_eq!(*sum, terms.fold(0, i32::wrapping_add));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn wide_registers_give_the_same_bits() {
        use crate::kernels::gemm::tile::{F32, F32Wide, I16, I16Wide};
        let sizes = (29, 1001, 75);
        let fused = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if F32Wide::available() && fused {
            let x: Vec<f32> = numbers(29 * 1001, 3).map(|x| f32::from(x) / 999.0).collect();
            let y: Vec<f32> = numbers(1001 * 75, 4).map(|x| f32::from(x) / 777.0).collect();
            let narrow = product::<F32>(sizes, DType::F32, &x, &y);
            let wide = product::<F32Wide>(sizes, DType::F32, &x, &y);
            assert!(narrow.iter().zip(&wide).all(|(x, y)| x.to_bits() == y.to_bits()));
        }
        if I16Wide::available() {
            let x: Vec<i16> = numbers(29 * 1001, 5).collect();
            let y: Vec<i16> = numbers(1001 * 75, 6).collect();
            assert_eq!(
                product::<I16>(sizes, DType::I16, &x, &y),
                product::<I16Wide>(sizes, DType::I16, &x, &y)
            );
        }
    }
}
