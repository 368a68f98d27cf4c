//! Matrices laid out in panels: the depth cut in blocks, and what lies along the other axis in groups of lanes.
#![allow(unsafe_code)]

use super::tile::{self, Gemm};
use crate::array::Plain;
use crate::error::RunError;
use crate::kernels::copy::collapsed;
use crate::memory::Aligned;
use half::{bf16, f16};
use rlx_ir::DType;
use std::marker::PhantomData;
use std::ops::Range;

/// The most elements of a block of the depth: a panel of 16 f32 columns takes 24 KiB, which leaves room in L1.
const DEPTH_BLOCK: usize = 384;

/// Blocks of the depth, which depend on nothing else: a sum's terms are grouped by them.
pub fn depth_blocks(depth: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    let block = depth_block(depth);
    (0..depth.div_ceil(block)).map(move |i| i * block..((i + 1) * block).min(depth))
}

/// The length of all blocks but the last; even, so that groups do not straddle blocks.
pub fn depth_block(depth: usize) -> usize {
    let blocks = depth.div_ceil(DEPTH_BLOCK).max(1);
    depth.div_ceil(blocks).next_multiple_of(2).max(2)
}

/// Which of the two matrices: what its panels' lanes are.
pub trait Side: Send + Sync + 'static {
    /// Lanes of a panel.
    fn lanes<G: Gemm>() -> usize;
    /// The name in layouts.
    const NAME: &'static str;
}

/// The left matrix; lanes are rows.
pub struct Left;
/// The right matrix; lanes are columns.
pub struct Right;

impl Side for Left {
    #[inline(always)]
    fn lanes<G: Gemm>() -> usize {
        G::ROWS
    }
    const NAME: &'static str = "rows";
}

impl Side for Right {
    #[inline(always)]
    fn lanes<G: Gemm>() -> usize {
        G::COLUMNS
    }
    const NAME: &'static str = "columns";
}

/// The most lanes that any arithmetic has.
pub const MOST_LANES: usize = 32;

/// Where the elements along an axis of a matrix lie, counted in elements.
#[derive(Clone, Debug)]
pub enum Offsets {
    /// At equal distances.
    Even(isize),
    /// As listed: several axes of a tensor that do not lie like one.
    Table(Box<[isize]>),
}

impl Offsets {
    /// Those of tensor axes, the last of which runs fastest.
    pub fn new(dims: &[usize], strides: &[isize]) -> Offsets {
        let axes = collapsed(dims, strides);
        match axes.as_slice() {
            [] => Offsets::Even(0),
            [(_, stride)] => Offsets::Even(*stride),
            axes => {
                let mut offsets = vec![0isize];
                for (dim, stride) in axes {
                    offsets = offsets
                        .iter()
                        .flat_map(|at| (0..*dim as isize).map(move |i| at + i * stride))
                        .collect();
                }
                Offsets::Table(offsets.into())
            }
        }
    }

    /// What tells them from others in the name of a layout, from an offset on.
    pub fn key(&self, first: i64) -> String {
        match self {
            Offsets::Even(stride) => format!("{first}+{stride}"),
            Offsets::Table(offsets) => format!("{first}+{offsets:?}"),
        }
    }

    /// That of index `i`.
    #[inline(always)]
    pub fn at(&self, i: usize) -> isize {
        match self {
            Offsets::Even(stride) => i as isize * stride,
            Offsets::Table(offsets) => offsets[i],
        }
    }
}

/// Something that panels can be filled from.
pub trait Source<G: Gemm>: Sync {
    /// Writes the panels of the lanes `lanes` (from a whole panel on) over the block `depth` of matrix `batch`: one
    /// panel after the other, each `lanes of a panel × depth rounded up to whole groups`, zeros where there is nothing.
    ///
    /// # Safety
    /// `panels` has room for them, and no other thread uses it.
    unsafe fn fill(&self, batch: usize, lanes: Range<usize>, depth: Range<usize>, panels: *mut G::Element);
}

/// Something that rows of the left matrix can be converted from.
pub trait RowSource<G: Gemm>: Sync {
    /// Writes the block `depth` of the rows `rows` of matrix `batch`, row after row, each rounded up to whole groups
    /// with zeros.
    ///
    /// # Safety
    /// `to` has room for them, and no other thread uses it.
    unsafe fn convert(&self, batch: usize, rows: Range<usize>, depth: Range<usize>, to: *mut G::Element);
}

/// A tensor's elements as matrices.
pub struct Strided<G: Gemm, S> {
    /// The first element.
    pub pointer: *const u8,
    /// Bytes of an element.
    pub width: usize,
    /// Along the matrices.
    pub batch: Offsets,
    /// Along the lanes.
    pub free: Offsets,
    /// Along the depth.
    pub depth: Offsets,
    /// The function for the element type, see [`Takes::fill_of`].
    pub fill: Fill<G>,
    /// Which of the two matrices.
    pub side: PhantomData<S>,
}

// SAFETY: the pointer is to elements that nothing writes while the product runs.
unsafe impl<G: Gemm, S: Side> Sync for Strided<G, S> {}
// SAFETY: as above.
unsafe impl<G: Gemm, S: Side> Send for Strided<G, S> {}

/// Fills one panel from the first element of a matrix, the offsets of the panel's lanes, those of the depth, and the
/// block of the depth.
///
/// # Safety
/// The offsets lead to elements of the type that the function is for; there is room for the panel.
pub type Fill<G> = unsafe fn(*const u8, &[isize], &Offsets, Range<usize>, *mut <G as Gemm>::Element);

impl<G: Gemm, S: Side> Source<G> for Strided<G, S> {
    unsafe fn fill(&self, batch: usize, lanes: Range<usize>, depth: Range<usize>, panels: *mut G::Element) {
        let matrix = self.pointer.wrapping_offset(self.batch.at(batch) * self.width as isize);
        let width = S::lanes::<G>();
        let size = width * depth.len().next_multiple_of(G::GROUP);
        let mut offsets = [0isize; MOST_LANES];
        for (i, first) in lanes.clone().step_by(width).enumerate() {
            let used = width.min(lanes.end - first);
            for (lane, offset) in offsets[..used].iter_mut().enumerate() {
                *offset = self.free.at(first + lane);
            }
            // SAFETY: the offsets are those of the tensor's elements; the caller promises the room.
            unsafe { (self.fill)(matrix, &offsets[..used], &self.depth, depth.clone(), panels.add(i * size)) }
        }
    }
}

/// Converts elements that lie together.
///
/// # Safety
/// There are elements of the function's type, and room, for as many as the last argument says.
pub type Convert<G> = unsafe fn(*const u8, *mut <G as Gemm>::Element, usize);

/// Rows of a tensor whose depth lies together.
pub struct Rows<G: Gemm> {
    /// The first element.
    pub pointer: *const u8,
    /// Bytes of an element.
    pub width: usize,
    /// Along the matrices.
    pub batch: Offsets,
    /// Along the rows.
    pub rows: Offsets,
    /// The function for the element type, see [`Takes::convert_of`].
    pub convert: Convert<G>,
}

// SAFETY: the pointer is to elements that nothing writes while the product runs.
unsafe impl<G: Gemm> Sync for Rows<G> {}
// SAFETY: as above.
unsafe impl<G: Gemm> Send for Rows<G> {}

impl<G: Gemm> RowSource<G> for Rows<G> {
    unsafe fn convert(&self, batch: usize, rows: Range<usize>, depth: Range<usize>, to: *mut G::Element) {
        let length = depth.len().next_multiple_of(G::GROUP);
        let matrix = self.batch.at(batch) + depth.start as isize;
        for (i, row) in rows.enumerate() {
            let from = self.pointer.wrapping_offset((matrix + self.rows.at(row)) * self.width as isize);
            // SAFETY: the offsets are those of the tensor's elements; the caller promises the room.
            unsafe {
                let to = to.add(i * length);
                (self.convert)(from, to, depth.len());
                std::slice::from_raw_parts_mut(to.add(depth.len()), length - depth.len())
                    .fill(G::Element::default());
            }
        }
    }
}

/// # Safety
/// As [`Convert`].
#[inline(always)]
unsafe fn convert_loop<T: Held<E>, E>(from: *const u8, to: *mut E, count: usize) {
    let from = from.cast::<T>();
    for i in 0..count {
        // SAFETY: as promised by the caller.
        unsafe { to.add(i).write((*from.add(i)).held()) }
    }
}

/// # Safety
/// As [`Convert`].
unsafe fn convert_plain<T: Held<E>, E>(from: *const u8, to: *mut E, count: usize) {
    // SAFETY: as promised by the caller.
    unsafe { convert_loop::<T, E>(from, to, count) }
}

/// # Safety
/// As [`Convert`]; the processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn convert_avx2<T: Held<E>, E>(from: *const u8, to: *mut E, count: usize) {
    // SAFETY: as promised by the caller.
    unsafe { convert_loop::<T, E>(from, to, count) }
}

fn convert_of<T: Held<G::Element>, G: Gemm>() -> Convert<G> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return convert_avx2::<T, G::Element>;
    }
    convert_plain::<T, G::Element>
}

/// An element as it is held in panels.
pub trait Held<E>: Plain {
    /// The element, converted exactly; integers modulo the panel's width.
    fn held(self) -> E;
}

macro_rules! held {
    ($($from:ty => $($to:ty),*);*) => {$($(
        impl Held<$to> for $from {
            #[inline(always)]
            fn held(self) -> $to {
                self as $to
            }
        }
    )*)*};
}
held!(
    f32 => f32, f64; f64 => f64;
    i8 => i8, i16, i32, i64; u8 => u8, i16, i32, i64; i16 => i16, i32, i64; u16 => u16, i32, i64;
    i32 => i32, i64; u32 => u32, i32, i64; i64 => i32, i64; u64 => u64, i32, i64
);

macro_rules! held_narrow {
    ($($from:ty),*) => {$(
        impl Held<f32> for $from {
            #[inline(always)]
            fn held(self) -> f32 {
                self.to_f32()
            }
        }
        impl Held<f64> for $from {
            #[inline(always)]
            fn held(self) -> f64 {
                self.to_f64()
            }
        }
    )*};
}
held_narrow!(f16, bf16);

/// The function for elements of type `T` on a side.
///
/// # Safety
/// As [`Fill`].
unsafe fn fill<G: Gemm, S: Side, T: Held<G::Element>>(
    matrix: *const u8,
    lanes: &[isize],
    depth: &Offsets,
    block: Range<usize>,
    panel: *mut G::Element,
) {
    let width = S::lanes::<G>();
    let matrix = matrix.cast::<T>();
    let used = lanes.len();
    let whole = used == width && block.len().is_multiple_of(G::GROUP);
    // SAFETY (all): the caller promises the elements and the room; every index is below lanes × depth.
    unsafe {
        if !whole {
            let size = width * block.len().next_multiple_of(G::GROUP);
            std::slice::from_raw_parts_mut(panel, size).fill(G::Element::default());
        }
        let together = lanes.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if G::GROUP == 1 && together && used == width {
            for (i, k) in block.enumerate() {
                let from = matrix.offset(lanes[0] + depth.at(k));
                let to = panel.add(i * width);
                for lane in 0..width {
                    *to.add(lane) = (*from.add(lane)).held();
                }
            }
            return;
        }
        for (lane, offset) in lanes.iter().enumerate() {
            let row = matrix.offset(*offset);
            let to = panel.add(lane * G::GROUP);
            match depth {
                Offsets::Even(1) => {
                    let row = row.add(block.start);
                    for i in 0..block.len() {
                        let at = (i / G::GROUP) * width * G::GROUP + i % G::GROUP;
                        *to.add(at) = (*row.add(i)).held();
                    }
                }
                depth => {
                    for (i, k) in block.clone().enumerate() {
                        let at = (i / G::GROUP) * width * G::GROUP + i % G::GROUP;
                        *to.add(at) = (*row.offset(depth.at(k))).held();
                    }
                }
            }
        }
    }
}

/// Arithmetic that takes these element types into its panels.
pub trait Takes: Gemm + Sized {
    /// The function for elements of this type on a side; `None` where the arithmetic is not exact on them.
    fn fill_of<S: Side>(dtype: DType) -> Option<Fill<Self>>;
    /// The function that converts such elements where they lie together.
    fn convert_of(dtype: DType) -> Option<Convert<Self>>;
}

macro_rules! takes {
    ($($gemm:ty: $($dtype:ident $t:ty),*);* $(;)?) => {$(
        impl Takes for $gemm {
            fn fill_of<S: Side>(dtype: DType) -> Option<Fill<Self>> {
                Some(match dtype {
                    $(DType::$dtype => fill::<Self, S, $t>,)*
                    _ => return None,
                })
            }

            fn convert_of(dtype: DType) -> Option<Convert<Self>> {
                Some(match dtype {
                    $(DType::$dtype => convert_of::<$t, Self>(),)*
                    _ => return None,
                })
            }
        }
    )*};
}
takes!(
    tile::F32: F32 f32, F16 f16, BF16 bf16;
    tile::F64: F64 f64, F32 f32, F16 f16, BF16 bf16;
    tile::I16: I8 i8, U8 u8, I16 i16;
    tile::I32: I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64;
    tile::I64: I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64;
);
#[cfg(target_arch = "x86_64")]
takes!(
    tile::F32Wide: F32 f32, F16 f16, BF16 bf16;
    tile::I16Wide: I8 i8, U8 u8, I16 i16;
);

/// Matrices in panels, made once.
pub struct Panels<G: Gemm> {
    memory: Aligned,
    lanes: usize,
    matrix: usize,
    matrices: usize,
    arithmetic: PhantomData<fn() -> G>,
}

impl<G: Gemm> Panels<G> {
    /// Elements that matrices of this size take in panels.
    pub fn elements<S: Side>(batch: usize, lanes: usize, depth: usize) -> usize {
        batch * lanes.next_multiple_of(S::lanes::<G>()) * depth.next_multiple_of(G::GROUP)
    }

    /// The panels of all matrices of a source.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new<S: Side>(
        source: &dyn Source<G>,
        batch: usize,
        lanes: usize,
        depth: usize,
    ) -> Result<Panels<G>, RunError> {
        let elements = Self::elements::<S>(batch, lanes, depth);
        let mut memory = Aligned::new(elements * size_of::<G::Element>())?;
        let lanes_padded = lanes.next_multiple_of(S::lanes::<G>());
        let matrix = lanes_padded * depth.next_multiple_of(G::GROUP);
        let first = memory.as_mut_ptr().cast::<G::Element>();
        for index in 0..batch {
            for block in depth_blocks(depth) {
                let at = index * matrix + block.start * lanes_padded;
                // SAFETY: the memory holds `matrix` elements a matrix, of which a block has its share.
                unsafe { source.fill(index, 0..lanes, block, first.add(at)) }
            }
        }
        Ok(Panels { memory, lanes: lanes_padded, matrix, matrices: batch, arithmetic: PhantomData })
    }

    /// The bytes taken.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Where the panels are.
    pub fn view(&self) -> PanelView<G> {
        let first = self.memory.as_ptr().cast();
        PanelView { first, lanes: self.lanes, matrix: self.matrix, matrices: self.matrices.max(1) }
    }
}

/// Where finished panels lie.
pub struct PanelView<G: Gemm> {
    /// The first element.
    pub first: *const G::Element,
    /// Lanes of a matrix, whole panels.
    pub lanes: usize,
    /// Elements from one matrix to the next.
    pub matrix: usize,
    /// After so many the first comes again.
    pub matrices: usize,
}

impl<G: Gemm> Clone for PanelView<G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G: Gemm> Copy for PanelView<G> {}

// SAFETY: the elements are written before the view is made.
unsafe impl<G: Gemm> Sync for PanelView<G> {}
// SAFETY: as above.
unsafe impl<G: Gemm> Send for PanelView<G> {}

impl<G: Gemm> PanelView<G> {
    /// The same `matrices` matrices again and again.
    pub fn repeated(self, matrices: usize) -> PanelView<G> {
        PanelView { matrices: matrices.max(1), ..self }
    }

    /// The panel that begins with lane `lane`, at a block of the depth.
    pub fn panel(&self, batch: usize, lane: usize, block: &Range<usize>) -> *const G::Element {
        let length = block.len().next_multiple_of(G::GROUP);
        self.first
            .wrapping_add(batch % self.matrices * self.matrix + block.start * self.lanes + lane * length)
    }
}
