//! Formats of 256 elements whose groups have quantised scales of their own: `q2_k` to `q6_k`, and `q8_k`.

use super::{f16_at, split_nibble, striped_pair, u32_at};

/// Two bits; each group of 16 has a 4-bit scale and a 4-bit minimum.
pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (scales, codes) = (&block[0..16], &block[16..80]);
    let (scale, minimum_scale) = (f16_at(block, 80), f16_at(block, 82));
    for (index, value) in out.iter_mut().enumerate() {
        let group = scales[index / 16];
        let group_scale = scale * f32::from(group & 15);
        let minimum = minimum_scale * f32::from(group >> 4);
        *value = group_scale * f32::from(striped_pair(codes, index)) - minimum;
    }
}

/// Three bits around 4; each group of 16 has a 6-bit scale around 32.
pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (high_bits, codes, scales) = (&block[0..32], &block[32..96], &block[96..108]);
    let scale = f16_at(block, 108);
    for (index, value) in out.iter_mut().enumerate() {
        let group = index / 16;
        let low = split_nibble(&scales[0..8], group);
        let high = scales[8 + group % 4] >> (2 * (group / 4)) & 3;
        let group_scale = scale * (f32::from(low | high << 4) - 32.0);
        let high_bit = high_bits[index % 32] >> (index / 32) & 1;
        let code = striped_pair(codes, index) | high_bit << 2;
        *value = group_scale * (f32::from(code) - 4.0);
    }
}

/// Four bits; each group of 32 has a 6-bit scale and a 6-bit minimum.
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (scale, minimum_scale) = (f16_at(block, 0), f16_at(block, 2));
    let (scales, codes) = (&block[4..16], &block[16..144]);
    for (index, value) in out.iter_mut().enumerate() {
        let (group_scale, group_minimum) = six_bit_scale_and_minimum(scales, index / 32);
        let code = four_bits(codes, index);
        *value = scale * f32::from(group_scale) * f32::from(code) - minimum_scale * f32::from(group_minimum);
    }
}

/// Five bits; each group of 32 has a 6-bit scale and a 6-bit minimum.
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (scale, minimum_scale) = (f16_at(block, 0), f16_at(block, 2));
    let (scales, fifth_bits, codes) = (&block[4..16], &block[16..48], &block[48..176]);
    for (index, value) in out.iter_mut().enumerate() {
        let (group_scale, group_minimum) = six_bit_scale_and_minimum(scales, index / 32);
        let fifth = fifth_bits[index % 32] >> (index / 32) & 1;
        let code = four_bits(codes, index) | fifth << 4;
        *value = scale * f32::from(group_scale) * f32::from(code) - minimum_scale * f32::from(group_minimum);
    }
}

/// Six bits around 32; each group of 16 has a signed 8-bit scale.
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low_bits, high_bits, scales) = (&block[0..128], &block[128..192], &block[192..208]);
    let scale = f16_at(block, 208);
    for (index, value) in out.iter_mut().enumerate() {
        let half = index / 128;
        let low = split_nibble(&low_bits[64 * half..64 * half + 64], index % 128);
        let code = low | striped_pair(high_bits, index) << 4;
        let group_scale = scale * f32::from(scales[index / 16].cast_signed());
        *value = group_scale * (f32::from(code) - 32.0);
    }
}

/// Eight bits and an f32 scale; the sums after the codes play no part in the values.
pub(super) fn q8_k(block: &[u8; 292], out: &mut [f32; 256]) {
    let scale = f32::from_bits(u32_at(block, 0));
    for (value, code) in out.iter_mut().zip(&block[4..260]) {
        *value = scale * f32::from(code.cast_signed());
    }
}

/// The 4-bit code of an element where 32 bytes hold one group of 32 in their low halves and the next in
/// their high halves.
fn four_bits(codes: &[u8], index: usize) -> u8 {
    let pair = index / 64;
    split_nibble(&codes[32 * pair..32 * pair + 32], index % 64)
}

/// The 6-bit scale and minimum of one of eight groups, packed in twelve bytes: the first four groups have
/// the low six bits of bytes 0 to 3 (scales) and 4 to 7 (minima); of the last four groups, the low four
/// bits of both lie in bytes 8 to 11, and the high two in the bits that the first four groups left free.
fn six_bit_scale_and_minimum(packed: &[u8], group: usize) -> (u8, u8) {
    match group {
        0..4 => (packed[group] & 63, packed[group + 4] & 63),
        _ => {
            let low = packed[group + 4];
            let (scale_high, minimum_high) = (packed[group - 4] >> 6, packed[group] >> 6);
            (low & 15 | scale_high << 4, low >> 4 | minimum_high << 4)
        }
    }
}
