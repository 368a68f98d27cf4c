//! The innermost loops: a tile of sums held in registers while a block of the depth runs past.
//!
//! A sum is that of its block's products in order, one fused step each, added to what the blocks before gave. Which
//! tile a sum lies in changes nothing about it, so neither do the matrix's sizes, the batch or the threads.
#![allow(unsafe_code)]

use crate::array::Plain;

/// The arithmetic of a product: what the panels hold, what is summed, and the tiles that do it.
///
/// A panel holds `ROWS` rows of the left matrix, or `COLUMNS` columns of the right one, group of the depth by group:
/// element (lane, k) is at `(k / GROUP) · lanes · GROUP + lane · GROUP + k % GROUP`.
pub trait Gemm: Send + Sync + 'static {
    /// The elements of panels.
    type Element: Plain + Default;
    /// The sums.
    type Sum: Plain + Default + Plus;
    /// The name in reports and of the panels' layout.
    const NAME: &'static str;
    /// Rows of a tile.
    const ROWS: usize;
    /// Columns of a tile.
    const COLUMNS: usize;
    /// Neighbours along the depth that are multiplied by one instruction.
    const GROUP: usize;

    /// The functions for tiles of 1 to `ROWS` rows, for this processor.
    fn tiles() -> &'static [TileFunction<Self>];
}

/// Sums of one type added.
pub trait Plus {
    /// `self + other`, wrapping for integers.
    fn plus(self, other: Self) -> Self;
}

/// What a tile is computed from and where it goes. Distances count elements.
pub struct Tile<G: Gemm + ?Sized> {
    /// Row 0 of the left matrix at the block's first group.
    pub lhs: *const G::Element,
    /// From one row to the next.
    pub lhs_row: isize,
    /// From one group to the next.
    pub lhs_group: isize,
    /// The panel of the right matrix at the block's first group.
    pub rhs: *const G::Element,
    /// Groups of the block.
    pub groups: usize,
    /// The first sum; `COLUMNS` of each row are written.
    pub sums: *mut G::Sum,
    /// From one row of sums to the next.
    pub sums_row: usize,
    /// Whether the block is the first, whose sums are not added to what is there.
    pub fresh: bool,
}

/// Computes a tile.
///
/// # Safety
/// The pointers reach the elements that [`Tile`] names, for as many rows as the function is for; no other thread uses
/// the sums; the processor has the instructions that [`Gemm::tiles`] chose.
pub type TileFunction<G> = unsafe fn(&Tile<G>);

macro_rules! plus {
    ($($t:ty: |$x:ident, $y:ident| $sum:expr),*) => {$(
        impl Plus for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                let ($x, $y) = (self, other);
                $sum
            }
        }
    )*};
}
plus!(f32: |x, y| x + y, f64: |x, y| x + y, i32: |x, y| x.wrapping_add(y), i64: |x, y| x.wrapping_add(y));

/// One step of a sum in plain Rust.
trait Step<E>: Plus + Copy + Default {
    /// Adds the products of a group.
    fn step(self, lhs: &[E], rhs: &[E]) -> Self;
}

macro_rules! float_steps {
    ($($t:ty),*) => {$(
        impl Step<$t> for $t {
            #[inline(always)]
            fn step(self, lhs: &[$t], rhs: &[$t]) -> $t {
                if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
                    lhs[0].mul_add(rhs[0], self)
                } else {
                    self + lhs[0] * rhs[0]
                }
            }
        }
    )*};
}
float_steps!(f32, f64);

macro_rules! integer_steps {
    ($($t:ty),*) => {$(
        impl Step<$t> for $t {
            #[inline(always)]
            fn step(self, lhs: &[$t], rhs: &[$t]) -> $t {
                self.wrapping_add(lhs[0].wrapping_mul(rhs[0]))
            }
        }
    )*};
}
integer_steps!(i32, i64);

impl Step<i16> for i32 {
    #[inline(always)]
    fn step(self, lhs: &[i16], rhs: &[i16]) -> i32 {
        let product = |i: usize| i32::from(lhs[i]) * i32::from(rhs[i]);
        self.wrapping_add(product(0)).wrapping_add(product(1))
    }
}

/// A tile in plain Rust, which the compiler makes vectors of.
///
/// # Safety
/// As [`TileFunction`].
#[inline(always)]
unsafe fn plain<G: Gemm, const R: usize, const C: usize>(tile: &Tile<G>)
where
    G::Sum: Step<G::Element>,
{
    let mut sums = [[G::Sum::default(); C]; R];
    for group in 0..tile.groups {
        // SAFETY: the caller promises the panel's and the rows' elements.
        let rhs = unsafe { std::slice::from_raw_parts(tile.rhs.add(group * C * G::GROUP), C * G::GROUP) };
        for (row, sums) in sums.iter_mut().enumerate() {
            let at = row as isize * tile.lhs_row + group as isize * tile.lhs_group;
            // SAFETY: as above.
            let lhs = unsafe { std::slice::from_raw_parts(tile.lhs.offset(at), G::GROUP) };
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum = sum.step(lhs, &rhs[column * G::GROUP..][..G::GROUP]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        // SAFETY: the caller promises the sums.
        let to = unsafe { std::slice::from_raw_parts_mut(tile.sums.add(row * tile.sums_row), C) };
        for (to, sum) in to.iter_mut().zip(sums) {
            *to = if tile.fresh { *sum } else { to.plus(*sum) };
        }
    }
}

/// Functions for 1 to 6, or to 12, rows.
macro_rules! for_rows {
    ($f:ident) => {
        &[$f::<1>, $f::<2>, $f::<3>, $f::<4>, $f::<5>, $f::<6>]
    };
    ($f:ident, wide) => {
        &[
            $f::<1>, $f::<2>, $f::<3>, $f::<4>, $f::<5>, $f::<6>, $f::<7>, $f::<8>, $f::<9>, $f::<10>,
            $f::<11>, $f::<12>,
        ]
    };
}

/// A tile of `2 × LANES` columns in vector instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_tile {
    (
        $name:ident, $gemm:ty, $features:literal, lanes $lanes:literal,
        zero $zero:expr, load $load:expr, splat $splat:expr, step $step:expr,
        read $read:expr, add $add:expr, write $write:expr
    ) => {
        /// # Safety
        /// As [`TileFunction`]; the processor has these instructions.
        #[target_feature(enable = $features)]
        unsafe fn $name<const R: usize>(tile: &Tile<$gemm>) {
            const LANES: usize = $lanes;
            const GROUP: usize = <$gemm as Gemm>::GROUP;
            // SAFETY: the caller promises the elements that are loaded and the sums that are stored.
            unsafe {
                let mut sums = [[$zero; 2]; R];
                let (mut lhs, mut rhs) = (tile.lhs, tile.rhs);
                for _ in 0..tile.groups {
                    let right = [$load(rhs), $load(rhs.add(LANES * GROUP))];
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let left = $splat(lhs.offset(row as isize * tile.lhs_row));
                        sums[0] = $step(sums[0], left, right[0]);
                        sums[1] = $step(sums[1], left, right[1]);
                    }
                    lhs = lhs.wrapping_offset(tile.lhs_group);
                    rhs = rhs.wrapping_add(2 * LANES * GROUP);
                }
                for (row, sums) in sums.iter().enumerate() {
                    for (half, sum) in sums.iter().enumerate() {
                        let to = tile.sums.add(row * tile.sums_row + half * LANES);
                        $write(to, if tile.fresh { *sum } else { $add($read(to), *sum) });
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The tiles of AVX2 and AVX-512.
    use super::*;
    use std::arch::x86_64::*;

    vector_tile!(f32_avx2, F32, "avx2,fma", lanes 8,
        zero _mm256_setzero_ps(), load _mm256_loadu_ps, splat |p: *const f32| _mm256_set1_ps(*p),
        step |sum, x, y| _mm256_fmadd_ps(x, y, sum),
        read _mm256_loadu_ps, add _mm256_add_ps, write _mm256_storeu_ps);
    vector_tile!(f32_avx512, F32Wide, "avx512f", lanes 16,
        zero _mm512_setzero_ps(), load _mm512_loadu_ps, splat |p: *const f32| _mm512_set1_ps(*p),
        step |sum, x, y| _mm512_fmadd_ps(x, y, sum),
        read _mm512_loadu_ps, add _mm512_add_ps, write _mm512_storeu_ps);
    vector_tile!(f64_avx2, F64, "avx2,fma", lanes 4,
        zero _mm256_setzero_pd(), load _mm256_loadu_pd, splat |p: *const f64| _mm256_set1_pd(*p),
        step |sum, x, y| _mm256_fmadd_pd(x, y, sum),
        read _mm256_loadu_pd, add _mm256_add_pd, write _mm256_storeu_pd);
    vector_tile!(i16_avx2, I16, "avx2", lanes 8,
        zero _mm256_setzero_si256(), load |p: *const i16| _mm256_loadu_si256(p.cast()),
        splat |p: *const i16| _mm256_set1_epi32(p.cast::<i32>().read_unaligned()),
        step |sum, x, y| _mm256_add_epi32(sum, _mm256_madd_epi16(x, y)),
        read |p: *mut i32| _mm256_loadu_si256(p.cast()), add _mm256_add_epi32,
        write |p: *mut i32, x| _mm256_storeu_si256(p.cast(), x));
    vector_tile!(i16_vnni, I16Wide, "avx512f,avx512bw,avx512vnni", lanes 16,
        zero _mm512_setzero_si512(), load |p: *const i16| _mm512_loadu_si512(p.cast()),
        splat |p: *const i16| _mm512_set1_epi32(p.cast::<i32>().read_unaligned()),
        step |sum, x, y| _mm512_dpwssd_epi32(sum, x, y),
        read |p: *mut i32| _mm512_loadu_si512(p.cast()), add _mm512_add_epi32,
        write |p: *mut i32, x| _mm512_storeu_si512(p.cast(), x));

    vector_tile!(i32_avx2, I32, "avx2", lanes 8,
        zero _mm256_setzero_si256(), load |p: *const i32| _mm256_loadu_si256(p.cast()),
        splat |p: *const i32| _mm256_set1_epi32(*p),
        step |sum, x, y| _mm256_add_epi32(sum, _mm256_mullo_epi32(x, y)),
        read |p: *mut i32| _mm256_loadu_si256(p.cast()), add _mm256_add_epi32,
        write |p: *mut i32, x| _mm256_storeu_si256(p.cast(), x));

    /// # Safety
    /// As [`TileFunction`]; the processor has these instructions.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn i64_avx2<const R: usize>(tile: &Tile<I64>) {
        // SAFETY: as promised by the caller.
        unsafe { plain::<I64, R, 8>(tile) }
    }

    pub(super) const F32_TILES: &[TileFunction<F32>] = for_rows!(f32_avx2);
    pub(super) const F32_WIDE_TILES: &[TileFunction<F32Wide>] = for_rows!(f32_avx512, wide);
    pub(super) const F64_TILES: &[TileFunction<F64>] = for_rows!(f64_avx2);
    pub(super) const I16_TILES: &[TileFunction<I16>] = for_rows!(i16_avx2);
    pub(super) const I16_WIDE_TILES: &[TileFunction<I16Wide>] = for_rows!(i16_vnni, wide);
    pub(super) const I32_TILES: &[TileFunction<I32>] = for_rows!(i32_avx2);
    pub(super) const I64_TILES: &[TileFunction<I64>] = for_rows!(i64_avx2);
}

/// An arithmetic whose tiles exist in plain Rust and for AVX2.
macro_rules! arithmetic {
    ($(#[$doc:meta])* $name:ident, $text:literal, $element:ty => $sum:ty, columns $columns:literal, group $group:literal,
     $plain:ident, $tiles:ident) => {
        $(#[$doc])*
        pub struct $name;

        /// # Safety
        /// As [`TileFunction`].
        unsafe fn $plain<const R: usize>(tile: &Tile<$name>) {
            // SAFETY: as promised by the caller.
            unsafe { plain::<$name, R, $columns>(tile) }
        }

        impl Gemm for $name {
            type Element = $element;
            type Sum = $sum;
            const NAME: &'static str = $text;
            const ROWS: usize = 6;
            const COLUMNS: usize = $columns;
            const GROUP: usize = $group;

            fn tiles() -> &'static [TileFunction<Self>] {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    return x86::$tiles;
                }
                for_rows!($plain)
            }
        }
    };
}

arithmetic!(
    /// f32.
    F32, "f32", f32 => f32, columns 16, group 1, f32_plain, F32_TILES);
arithmetic!(
    /// f64.
    F64, "f64", f64 => f64, columns 8, group 1, f64_plain, F64_TILES);
arithmetic!(
    /// Integers of at most 16 bits, exact in i32, which wraps.
    I16, "i16", i16 => i32, columns 16, group 2, i16_plain, I16_TILES);
arithmetic!(
    /// Integers modulo 2³².
    I32, "i32", i32 => i32, columns 16, group 1, i32_plain, I32_TILES);
arithmetic!(
    /// Integers modulo 2⁶⁴.
    I64, "i64", i64 => i64, columns 8, group 1, i64_plain, I64_TILES);

/// f32 with the registers of AVX-512; the same sums as [`F32`].
#[cfg(target_arch = "x86_64")]
pub struct F32Wide;

#[cfg(target_arch = "x86_64")]
impl F32Wide {
    /// Whether this processor has the instructions.
    pub fn available() -> bool {
        is_x86_feature_detected!("avx512f")
    }
}

#[cfg(target_arch = "x86_64")]
impl Gemm for F32Wide {
    type Element = f32;
    type Sum = f32;
    const NAME: &'static str = "f32 avx512";
    const ROWS: usize = 12;
    const COLUMNS: usize = 32;
    const GROUP: usize = 1;

    fn tiles() -> &'static [TileFunction<Self>] {
        x86::F32_WIDE_TILES
    }
}

/// [`I16`] with the registers of AVX-512 and its instruction for pairs of products (VNNI).
#[cfg(target_arch = "x86_64")]
pub struct I16Wide;

#[cfg(target_arch = "x86_64")]
impl I16Wide {
    /// Whether this processor has the instructions.
    pub fn available() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni")
    }
}

#[cfg(target_arch = "x86_64")]
impl Gemm for I16Wide {
    type Element = i16;
    type Sum = i32;
    const NAME: &'static str = "i16 vnni";
    const ROWS: usize = 12;
    const COLUMNS: usize = 32;
    const GROUP: usize = 2;

    fn tiles() -> &'static [TileFunction<Self>] {
        x86::I16_WIDE_TILES
    }
}
