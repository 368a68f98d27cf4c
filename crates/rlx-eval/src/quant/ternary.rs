//! Formats of values in {-1, 0, 1} times one scale: `tq1_0` and `tq2_0`.

use super::{f16_at, striped_pair};

/// Five elements in a byte (four in the last bytes), as base-three digits.
pub(super) fn tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    let scale = f16_at(block, 52);
    for (index, value) in out.iter_mut().enumerate() {
        // Each digit of a run of bytes comes before the next digit of the same bytes.
        let (byte, digit) = match index {
            0..160 => (index % 32, index / 32),
            160..240 => (32 + index % 16, (index - 160) / 16),
            _ => (48 + index % 4, (index - 240) / 4),
        };
        *value = (f32::from(base_three_digit(block[byte], digit)) - 1.0) * scale;
    }
}

/// Two bits for each element; the code 3 is decoded as 2, although no quantiser writes it.
pub(super) fn tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let scale = f16_at(block, 64);
    for (index, value) in out.iter_mut().enumerate() {
        *value = (f32::from(striped_pair(&block[0..64], index)) - 1.0) * scale;
    }
}

/// A digit of the byte read as a fraction of 256 in base three, digit 0 right after the point: multiplying
/// by three to the power of the digit moves it there, what leaves the byte on the left are the digits
/// before, and three times what remains carries the digit out.
fn base_three_digit(byte: u8, digit: usize) -> u8 {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    let remainder = byte.wrapping_mul(POWERS[digit]);
    ((u16::from(remainder) * 3) >> 8) as u8
}
