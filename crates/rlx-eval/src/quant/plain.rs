//! Formats with one scale for each block, given as f16, and at most one minimum: `q1_0` to `q8_1`.

use super::{f16_at, split_nibble, u32_at};

/// A bit for each element, plus or minus the scale.
pub(super) fn q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let scale = f16_at(block, 0);
    let codes = &block[2..];
    for (index, value) in out.iter_mut().enumerate() {
        let positive = codes[index / 8] >> (index % 8) & 1 == 1;
        *value = if positive { scale } else { -scale };
    }
}

/// Two bits for each element, from minus one to two times the scale.
pub(super) fn q2_0(block: &[u8; 18], out: &mut [f32; 64]) {
    let scale = f16_at(block, 0);
    let codes = &block[2..];
    for (index, value) in out.iter_mut().enumerate() {
        let code = codes[index / 4] >> (2 * (index % 4)) & 3;
        *value = (f32::from(code) - 1.0) * scale;
    }
}

/// Four bits around 8 and a scale.
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let scale = f16_at(block, 0);
    for (index, value) in out.iter_mut().enumerate() {
        let code = split_nibble(&block[2..], index);
        *value = (f32::from(code) - 8.0) * scale;
    }
}

/// Four bits, a scale and a minimum.
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (scale, minimum) = (f16_at(block, 0), f16_at(block, 2));
    for (index, value) in out.iter_mut().enumerate() {
        let code = split_nibble(&block[4..], index);
        *value = f32::from(code) * scale + minimum;
    }
}

/// Five bits around 16 and a scale.
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let scale = f16_at(block, 0);
    let fifth_bits = u32_at(block, 2);
    for (index, value) in out.iter_mut().enumerate() {
        let code = five_bits(fifth_bits, &block[6..], index);
        *value = (f32::from(code) - 16.0) * scale;
    }
}

/// Five bits, a scale and a minimum.
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (scale, minimum) = (f16_at(block, 0), f16_at(block, 2));
    let fifth_bits = u32_at(block, 4);
    for (index, value) in out.iter_mut().enumerate() {
        let code = five_bits(fifth_bits, &block[8..], index);
        *value = f32::from(code) * scale + minimum;
    }
}

/// Eight bits and a scale.
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    signed_bytes(f16_at(block, 0), &block[2..], out);
}

/// Eight bits and a scale; the sum beside the scale plays no part in the values.
pub(super) fn q8_1(block: &[u8; 36], out: &mut [f32; 32]) {
    signed_bytes(f16_at(block, 0), &block[4..], out);
}

fn five_bits(fifth_bits: u32, codes: &[u8], index: usize) -> u8 {
    let fifth = if fifth_bits >> index & 1 == 1 { 16 } else { 0 };
    split_nibble(codes, index) | fifth
}

fn signed_bytes(scale: f32, codes: &[u8], out: &mut [f32; 32]) {
    for (value, code) in out.iter_mut().zip(codes) {
        *value = f32::from(code.cast_signed()) * scale;
    }
}
