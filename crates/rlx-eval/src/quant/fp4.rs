//! Formats of 4-bit floats (e2m1: sign, two bits of exponent, one of mantissa): `mxfp4` and `nvfp4`.

use super::split_nibble;
use super::tables::DOUBLED_E2M1;

/// One power of two for 32 elements.
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let half_scale = half_of_e8m0(block[0]);
    for (index, value) in out.iter_mut().enumerate() {
        *value = doubled_e2m1(split_nibble(&block[1..], index)) * half_scale;
    }
}

/// A float of eight bits for each 16 elements.
pub(super) fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    let (scales, codes) = (&block[0..4], &block[4..36]);
    for (index, value) in out.iter_mut().enumerate() {
        let group = index / 16;
        let code = split_nibble(&codes[8 * group..8 * group + 8], index % 16);
        *value = doubled_e2m1(code) * half_of_e4m3(scales[group]);
    }
}

/// Twice the value of a 4-bit float, a whole number; minus zero is read as zero.
fn doubled_e2m1(code: u8) -> f32 {
    f32::from(DOUBLED_E2M1[usize::from(code)])
}

/// `2^(exponent - 128)`. 255 is no NaN here but the power after 254, as in ggml.
fn half_of_e8m0(exponent: u8) -> f32 {
    const TWO_TO_MINUS_128: u32 = 1 << 21;
    match u32::from(exponent) {
        // Below the smallest normal number, a power of two is a bit of the mantissa.
        exponent @ 0..2 => f32::from_bits(TWO_TO_MINUS_128 << exponent),
        exponent => f32::from_bits((exponent - 1) << 23),
    }
}

/// Half of an e4m3 float without its sign: exponent bias 7, subnormals below exponent 1. 0x7f is zero; 0xff,
/// whose sign is ignored but which is not that pattern, is 480 / 2, as in ggml.
fn half_of_e4m3(byte: u8) -> f32 {
    if byte == 0x7f {
        return 0.0;
    }
    let (exponent, mantissa) = (byte >> 3 & 15, byte & 7);
    let significand = if exponent == 0 { mantissa } else { 8 + mantissa };
    // The significand counts eighths: 2^-3 for them, 2^-7 for the bias, 2^-1 for the half.
    let power = f32::from_bits((127 + u32::from(exponent.max(1)) - 11) << 23);
    f32::from(significand) * power
}
