//! Blocked transposition: the elements that follow each other in the source come to lie a stride apart.
//!
//! A strip of as many source rows as fill a cache line of the destination is read side by side, so that the processor
//! sees a few forward streams and every line is written whole. Destinations whose rows are far apart are made tile by tile
//! in cache and copied out, since each row begun costs a page to be looked up.
#![allow(unsafe_code)]

/// Columns of a block: multiples of a cache line for all widths.
pub(super) const COLUMNS: usize = 256;

/// Bytes of a cache line.
const LINE: usize = 64;

/// A transposition's sizes and strides in bytes. Element (row, column) is read at row · `from_row` + column · width and
/// written to row · width + column · `to_column`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) from_row: isize,
    pub(super) to_column: isize,
}

/// Whether cells of this width are transposed in blocks.
pub(super) fn supports(width: usize) -> bool {
    matches!(width, 1 | 2 | 4 | 8 | 16)
}

/// Bytes of a tile's row in the destination: long enough that few of them are begun.
const TILE_BYTES: usize = 512;

/// Columns of a tile.
const TILE_COLUMNS: usize = 128;

/// A tile of the destination, which stays in cache until its rows are copied out.
#[repr(align(64))]
struct Tile([std::mem::MaybeUninit<u8>; TILE_BYTES * TILE_COLUMNS]);

/// Transposes.
///
/// # Safety
/// All elements of the source may be read, and those of the destination written; both are aligned to `width`.
pub(super) unsafe fn transpose(width: usize, shape: Shape, from: *const u8, to: *mut u8) {
    let rows = TILE_BYTES / width;
    // What is narrow lies near together anyway.
    if shape.rows < rows / 4 || shape.to_column.unsigned_abs() <= TILE_BYTES {
        // SAFETY: as promised by the caller.
        return unsafe { direct(width, shape, from, to) };
    }
    let mut tile = Tile([std::mem::MaybeUninit::uninit(); TILE_BYTES * TILE_COLUMNS]);
    let buffer: *mut u8 = tile.0.as_mut_ptr().cast();
    for row in (0..shape.rows).step_by(rows) {
        for column in (0..shape.columns).step_by(TILE_COLUMNS) {
            let part = Shape {
                rows: rows.min(shape.rows - row),
                columns: TILE_COLUMNS.min(shape.columns - column),
                from_row: shape.from_row,
                to_column: TILE_BYTES as isize,
            };
            let from = from.wrapping_offset(row as isize * shape.from_row).wrapping_add(column * width);
            // SAFETY: a part of the source, and the tile.
            unsafe { direct(width, part, from, buffer) };
            for i in 0..part.columns {
                let to =
                    to.wrapping_offset((column + i) as isize * shape.to_column).wrapping_add(row * width);
                // SAFETY: the elements that were written to the tile's row, and their place.
                unsafe { std::ptr::copy_nonoverlapping(buffer.add(i * TILE_BYTES), to, part.rows * width) };
            }
        }
    }
}

/// Transposes straight to the destination.
///
/// # Safety
/// As for [`transpose`].
unsafe fn direct(width: usize, shape: Shape, from: *const u8, to: *mut u8) {
    // SAFETY (all): as promised by the caller.
    match width {
        1 => unsafe { strips::<u8, 64>(shape, from, to) },
        2 => unsafe { strips::<u16, 32>(shape, from, to) },
        4 => unsafe { strips::<u32, 16>(shape, from, to) },
        8 => unsafe { strips::<u64, 8>(shape, from, to) },
        _ => unsafe { strips::<[u64; 2], 4>(shape, from, to) },
    }
}

/// By strips of `ROWS` rows, which are a line of the destination.
unsafe fn strips<T: Copy, const ROWS: usize>(shape: Shape, from: *const u8, to: *mut u8) {
    debug_assert_eq!(ROWS * size_of::<T>(), LINE);
    let width = size_of::<T>() as isize;
    let mut column = 0;
    while column < shape.columns {
        let columns = COLUMNS.min(shape.columns - column);
        let from = from.wrapping_offset(column as isize * width);
        let to = to.wrapping_offset(column as isize * shape.to_column);
        let mut row = 0;
        while row < shape.rows {
            let rows = ROWS.min(shape.rows - row);
            let part = Shape { rows, columns, ..shape };
            let from = from.wrapping_offset(row as isize * shape.from_row);
            let to = to.wrapping_offset(row as isize * width);
            // SAFETY: a part of the whole.
            unsafe { strip::<T, ROWS>(part, from, to) };
            row += rows;
        }
        column += columns;
    }
}

/// At most `ROWS` rows: whole squares in registers where the processor can, the rest one by one.
unsafe fn strip<T: Copy, const ROWS: usize>(shape: Shape, from: *const u8, to: *mut u8) {
    let mut column = 0;
    let width = size_of::<T>() as isize;
    #[cfg(target_arch = "x86_64")]
    if shape.rows == ROWS && has_avx2() {
        while column + x86::SIDE <= shape.columns {
            let from = from.wrapping_offset(column as isize * width);
            let to = to.wrapping_offset(column as isize * shape.to_column);
            // SAFETY (all): a part of the whole, and the processor has AVX2.
            match size_of::<T>() {
                1 => unsafe { x86::bytes(shape, from, to) },
                2 => unsafe { x86::halves(shape, from, to) },
                4 => unsafe { x86::words(shape, from, to) },
                8 => unsafe { x86::doubles(shape, from, to) },
                _ => break,
            }
            column += x86::SIDE;
        }
    }
    while column < shape.columns {
        let (from, to) = (
            from.wrapping_offset(column as isize * width),
            to.wrapping_offset(column as isize * shape.to_column),
        );
        for row in 0..shape.rows {
            let from = from.wrapping_offset(row as isize * shape.from_row).cast::<T>();
            // SAFETY: an element of either side.
            unsafe { to.cast::<T>().add(row).write(from.read()) };
        }
        column += 1;
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Blocks of 8 columns by a cache line of rows.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Shape;
    use std::arch::x86_64::*;

    /// Columns of a block.
    pub(super) const SIDE: usize = 8;

    /// 16 rows of 8 words of 4 bytes.
    ///
    /// # Safety
    /// As for `transpose`, of a block of 16 × 8; AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn words(shape: Shape, from: *const u8, to: *mut u8) {
        for half in 0..2isize {
            let row = |i: isize| from.wrapping_offset((half * 8 + i) * shape.from_row).cast::<f32>();
            let mut r = [_mm256_setzero_ps(); 8];
            for (i, r) in r.iter_mut().enumerate() {
                // SAFETY: 8 words of a row.
                *r = unsafe { _mm256_loadu_ps(row(i as isize)) };
            }
            let pairs = |a: usize, b: usize| (_mm256_unpacklo_ps(r[a], r[b]), _mm256_unpackhi_ps(r[a], r[b]));
            let ((a, b), (c, d), (e, f), (g, h)) = (pairs(0, 1), pairs(2, 3), pairs(4, 5), pairs(6, 7));
            let lower = |x, y| _mm256_shuffle_ps::<0x44>(x, y);
            let upper = |x, y| _mm256_shuffle_ps::<0xee>(x, y);
            let quads = [
                (lower(a, c), lower(e, g)),
                (upper(a, c), upper(e, g)),
                (lower(b, d), lower(f, h)),
                (upper(b, d), upper(f, h)),
            ];
            for (i, (x, y)) in quads.into_iter().enumerate() {
                let out = |column: usize| {
                    to.wrapping_offset(column as isize * shape.to_column + half * 32).cast::<f32>()
                };
                // SAFETY: 8 words of a column.
                unsafe {
                    _mm256_storeu_ps(out(i), _mm256_permute2f128_ps::<0x20>(x, y));
                    _mm256_storeu_ps(out(i + 4), _mm256_permute2f128_ps::<0x31>(x, y));
                }
            }
        }
    }

    /// 8 rows of 8 words of 8 bytes.
    ///
    /// # Safety
    /// As for `transpose`, of a block of 8 × 8; AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn doubles(shape: Shape, from: *const u8, to: *mut u8) {
        for down in 0..2isize {
            for across in 0..2isize {
                let row = |i: isize| {
                    from.wrapping_offset((down * 4 + i) * shape.from_row + across * 32).cast::<f64>()
                };
                let mut r = [_mm256_setzero_pd(); 4];
                for (i, r) in r.iter_mut().enumerate() {
                    // SAFETY: 4 words of a row.
                    *r = unsafe { _mm256_loadu_pd(row(i as isize)) };
                }
                let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
                let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
                let out = |column: isize| {
                    to.wrapping_offset((across * 4 + column) * shape.to_column + down * 32).cast::<f64>()
                };
                // SAFETY: 4 words of a column.
                unsafe {
                    _mm256_storeu_pd(out(0), _mm256_permute2f128_pd::<0x20>(a, c));
                    _mm256_storeu_pd(out(1), _mm256_permute2f128_pd::<0x20>(b, d));
                    _mm256_storeu_pd(out(2), _mm256_permute2f128_pd::<0x31>(a, c));
                    _mm256_storeu_pd(out(3), _mm256_permute2f128_pd::<0x31>(b, d));
                }
            }
        }
    }

    /// 32 rows of 8 words of 2 bytes.
    ///
    /// # Safety
    /// As for `transpose`, of a block of 32 × 8; AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn halves(shape: Shape, from: *const u8, to: *mut u8) {
        for part in 0..4isize {
            let row = |i: isize| from.wrapping_offset((part * 8 + i) * shape.from_row).cast::<__m128i>();
            let mut r = [_mm_setzero_si128(); 8];
            for (i, r) in r.iter_mut().enumerate() {
                // SAFETY: 8 words of a row.
                *r = unsafe { _mm_loadu_si128(row(i as isize)) };
            }
            let two = |a: usize, b: usize| (_mm_unpacklo_epi16(r[a], r[b]), _mm_unpackhi_epi16(r[a], r[b]));
            let ((a, b), (c, d), (e, f), (g, h)) = (two(0, 1), two(2, 3), two(4, 5), two(6, 7));
            let four = |x, y| (_mm_unpacklo_epi32(x, y), _mm_unpackhi_epi32(x, y));
            let quads = [(four(a, c), four(e, g)), (four(b, d), four(f, h))];
            for (i, ((a, b), (c, d))) in quads.into_iter().enumerate() {
                let columns = [
                    _mm_unpacklo_epi64(a, c),
                    _mm_unpackhi_epi64(a, c),
                    _mm_unpacklo_epi64(b, d),
                    _mm_unpackhi_epi64(b, d),
                ];
                for (j, words) in columns.into_iter().enumerate() {
                    let column = (i * 4 + j) as isize;
                    // SAFETY: 8 words of a column.
                    unsafe {
                        _mm_storeu_si128(
                            to.wrapping_offset(column * shape.to_column + part * 16).cast(),
                            words,
                        )
                    };
                }
            }
        }
    }

    /// 64 rows of 8 bytes.
    ///
    /// # Safety
    /// As for `transpose`, of a block of 64 × 8; AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn bytes(shape: Shape, from: *const u8, to: *mut u8) {
        for part in 0..4isize {
            let row = |i: isize| from.wrapping_offset((part * 16 + i) * shape.from_row).cast::<__m128i>();
            let mut r = [_mm_setzero_si128(); 16];
            for (i, r) in r.iter_mut().enumerate() {
                // SAFETY: 8 bytes of a row.
                *r = unsafe { _mm_loadl_epi64(row(i as isize)) };
            }
            // Row i beside row i + 8, then by fours apart, and so on: four rounds order 16 rows.
            let mut a = [_mm_setzero_si128(); 8];
            for (i, a) in a.iter_mut().enumerate() {
                *a = _mm_unpacklo_epi8(r[i], r[i + 8]);
            }
            let mut b = [(a[0], a[0]); 4];
            for (i, b) in b.iter_mut().enumerate() {
                *b = (_mm_unpacklo_epi8(a[i], a[i + 4]), _mm_unpackhi_epi8(a[i], a[i + 4]));
            }
            // b[i].0 has columns 0..4 of rows i, i + 4, i + 8, i + 12; b[i].1 columns 4..8.
            for (high, pick) in [(0isize, 0usize), (4, 1)] {
                let at = |i: usize| if pick == 0 { b[i].0 } else { b[i].1 };
                let (e, f) = (at(0), at(2));
                let (g, h) = (at(1), at(3));
                let even = (_mm_unpacklo_epi8(e, f), _mm_unpackhi_epi8(e, f));
                let odd = (_mm_unpacklo_epi8(g, h), _mm_unpackhi_epi8(g, h));
                let columns = [
                    _mm_unpacklo_epi8(even.0, odd.0),
                    _mm_unpackhi_epi8(even.0, odd.0),
                    _mm_unpacklo_epi8(even.1, odd.1),
                    _mm_unpackhi_epi8(even.1, odd.1),
                ];
                for (j, words) in columns.into_iter().enumerate() {
                    let column = high + j as isize;
                    // SAFETY: 16 bytes of a column.
                    unsafe {
                        _mm_storeu_si128(
                            to.wrapping_offset(column * shape.to_column + part * 16).cast(),
                            words,
                        )
                    };
                }
            }
        }
    }
}
