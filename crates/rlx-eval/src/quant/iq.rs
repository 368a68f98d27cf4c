//! Formats whose codes are indices: into books of points (`iq1_s` to `iq3_s`), or into a list of uneven
//! levels (`iq4_nl`, `iq4_xs`).
//!
//! A point is a row of four or eight small numbers, kept as the bytes of one integer, first number lowest.

use super::tables::{IQ1_GRID, IQ2_S_GRID, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_LEVELS};
use super::{f16_at, paired_nibble, split_nibble, u16_at, u32_at};
use half::f16;

/// What the values of `iq1_s` and `iq1_m` are moved by, up or down (`IQ1S_DELTA` of ggml).
const IQ1_OFFSET: f32 = 0.125;

/// Points of eight magnitudes; 32 elements share four of them, their signs and a 4-bit scale in eight bytes.
pub(super) fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    for (index, value) in out.iter_mut().enumerate() {
        let (group, point) = (index / 32, index % 32 / 8);
        let group_bytes = &block[2 + 8 * group..10 + 8 * group];
        let signs_and_scale = u32_at(group_bytes, 4);
        let group_scale = scale * (0.5 + top_four_bits(signs_and_scale)) * 0.25;
        let grid = IQ2_XXS_GRID[usize::from(group_bytes[point])];
        let signs = even_signs(seven_bits(signs_and_scale, point));
        *value = signed(group_scale * byte_of_eight(grid, index), signs, index % 8);
    }
}

/// Points of eight magnitudes, a word for each with its signs; a 4-bit scale for two points.
pub(super) fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    let scales = &block[66..74];
    for (index, value) in out.iter_mut().enumerate() {
        let point = index / 8;
        let code = u16_at(block, 2 + 2 * point);
        let group_scale = scale * (0.5 + f32::from(paired_nibble(scales, index / 16))) * 0.25;
        let grid = IQ2_XS_GRID[usize::from(code & 511)];
        let signs = even_signs((code >> 9) as u8);
        *value = signed(group_scale * byte_of_eight(grid, index), signs, index % 8);
    }
}

/// Points of eight magnitudes, a byte of signs for each; a 4-bit scale for two points.
pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    let (indices, signs, high_bits, scales) = (&block[2..34], &block[34..66], &block[66..74], &block[74..82]);
    for (index, value) in out.iter_mut().enumerate() {
        let point = index / 8;
        let group_scale = scale * (0.5 + f32::from(paired_nibble(scales, index / 16))) * 0.25;
        let high = high_bits[point / 4] >> (2 * (point % 4)) & 3;
        let grid = IQ2_S_GRID[usize::from(indices[point]) | usize::from(high) << 8];
        *value = signed(group_scale * byte_of_eight(grid, index), signs[point], index % 8);
    }
}

/// Points of four magnitudes; 32 elements share a word of signs and a 4-bit scale.
pub(super) fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    let indices = &block[2..66];
    for (index, value) in out.iter_mut().enumerate() {
        let signs_and_scale = u32_at(block, 66 + 4 * (index / 32));
        let group_scale = scale * (0.5 + top_four_bits(signs_and_scale)) * 0.5;
        let grid = IQ3_XXS_GRID[usize::from(indices[index / 4])];
        let signs = even_signs(seven_bits(signs_and_scale, index % 32 / 8));
        *value = signed(group_scale * byte_of_four(grid, index), signs, index % 8);
    }
}

/// Points of four magnitudes, a bit of sign for each element; a 4-bit scale for 32 elements.
pub(super) fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    let (indices, high_bits) = (&block[2..66], &block[66..74]);
    let (signs, scales) = (&block[74..106], &block[106..110]);
    for (index, value) in out.iter_mut().enumerate() {
        let point = index / 4;
        let group_scale = scale * (1.0 + 2.0 * f32::from(paired_nibble(scales, index / 32)));
        let high = high_bits[point / 8] >> (point % 8) & 1;
        let grid = IQ3_S_GRID[usize::from(indices[point]) | usize::from(high) << 8];
        *value = signed(group_scale * byte_of_four(grid, index), signs[index / 8], index % 8);
    }
}

/// Points of eight values in {-1, 0, 1}; 32 elements share a 3-bit scale and the sign of the offset.
pub(super) fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    let indices = &block[2..34];
    for (index, value) in out.iter_mut().enumerate() {
        let point = index / 8;
        let high = u16_at(block, 34 + 2 * (index / 32));
        let group_scale = scale * (2.0 * f32::from(high >> 12 & 7) + 1.0);
        let offset = if high >> 15 == 1 { -IQ1_OFFSET } else { IQ1_OFFSET };
        let index_high = high >> (3 * (point % 4)) & 7;
        let grid = IQ1_GRID[usize::from(indices[point]) | usize::from(index_high) << 8];
        *value = group_scale * (ternary_of_eight(grid, index) + offset);
    }
}

/// Points of eight values in {-1, 0, 1}, each with its offset's sign; 16 elements share a 3-bit scale, and
/// the block's f16 scale is spread over the top four bits of the scale words.
pub(super) fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let (indices, high_nibbles) = (&block[0..32], &block[32..48]);
    let scale_word = |word: usize| u16_at(block, 48 + 2 * word);
    let scale_bits = (0..4).fold(0, |bits, word| bits | scale_word(word) >> 12 << (4 * word));
    let scale = f16::from_bits(scale_bits).to_f32();
    for (index, value) in out.iter_mut().enumerate() {
        let (group, point) = (index / 16, index / 8);
        let group_scale = scale * (2.0 * f32::from(scale_word(group / 4) >> (3 * (group % 4)) & 7) + 1.0);
        let high = paired_nibble(high_nibbles, point);
        let offset = if high >> 3 == 1 { -IQ1_OFFSET } else { IQ1_OFFSET };
        let grid = IQ1_GRID[usize::from(indices[point]) | usize::from(high & 7) << 8];
        *value = group_scale * (ternary_of_eight(grid, index) + offset);
    }
}

/// Four bits that choose one of sixteen levels, and a scale.
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let scale = f16_at(block, 0);
    for (index, value) in out.iter_mut().enumerate() {
        *value = scale * level(split_nibble(&block[2..], index));
    }
}

/// Four bits that choose one of sixteen levels; 32 elements share a 6-bit scale around 32.
pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let scale = f16_at(block, 0);
    let scales_high = u16_at(block, 2);
    let (scales_low, codes) = (&block[4..8], &block[8..136]);
    for (index, value) in out.iter_mut().enumerate() {
        let group = index / 32;
        let high = (scales_high >> (2 * group) & 3) as u8;
        let group_scale = scale * (f32::from(paired_nibble(scales_low, group) | high << 4) - 32.0);
        *value = group_scale * level(split_nibble(&codes[16 * group..16 * group + 16], index % 32));
    }
}

/// Signs of eight elements from the first seven: the eighth makes the number of minus signs even.
fn even_signs(seven: u8) -> u8 {
    let odd = seven.count_ones() % 2 == 1;
    if odd { seven | 0x80 } else { seven }
}

/// One of the four groups of seven sign bits in the low 28 bits of a word.
fn seven_bits(word: u32, group: usize) -> u8 {
    (word >> (7 * group) & 127) as u8
}

/// The number in the top four bits of a word.
fn top_four_bits(word: u32) -> f32 {
    f32::from((word >> 28) as u8)
}

/// The magnitude with the sign of element `position` of eight, where a set bit is minus.
fn signed(magnitude: f32, signs: u8, position: usize) -> f32 {
    if signs >> position & 1 == 1 { -magnitude } else { magnitude }
}

/// The magnitude of element `index` in a point of eight.
fn byte_of_eight(point: u64, index: usize) -> f32 {
    f32::from(point.to_le_bytes()[index % 8])
}

/// The magnitude of element `index` in a point of four.
fn byte_of_four(point: u32, index: usize) -> f32 {
    f32::from(point.to_le_bytes()[index % 4])
}

/// The value of element `index` in a point of eight values in {-1, 0, 1}.
fn ternary_of_eight(point: u64, index: usize) -> f32 {
    f32::from(point.to_le_bytes()[index % 8].cast_signed())
}

/// The level that a 4-bit code chooses.
fn level(code: u8) -> f32 {
    f32::from(IQ4_LEVELS[usize::from(code)])
}
