//! Decoding of block-quantised weights: bytes of any [`BlockFormat`] to f32.
//!
//! The result is bit for bit that of ggml's own `dequantize_row_*` functions (version 0.25.3): the same f32
//! operations in the same order, without fused multiply-add. Each function of the submodules decodes one
//! block and is written element by element: where element `index` finds its code, its scale and its sign.

mod fp4;
mod iq;
mod k;
mod plain;
mod tables;
mod ternary;

use half::f16;
use rlx_ir::block::BlockFormat;
use thiserror::Error;

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DequantiseError {
    /// The bytes end inside a block.
    #[error(
        "{format}: {bytes} bytes are not a whole number of blocks of {} bytes",
        format.block_bytes()
    )]
    PartialBlock {
        /// The format the bytes were said to have.
        format: BlockFormat,
        /// How many bytes there were.
        bytes: usize,
    },
    /// The output has not exactly the elements of the blocks.
    #[error(
        "{format}: {blocks} blocks of {} elements do not fill an output of {elements} elements exactly",
        format.block_len()
    )]
    OutputLength {
        /// The format of the blocks.
        format: BlockFormat,
        /// How many blocks the bytes hold.
        blocks: usize,
        /// How many elements the output has.
        elements: usize,
    },
}

/// Decodes consecutive blocks to f32, exactly as ggml does.
///
/// Infinite and NaN scales are decoded as such; no byte pattern is refused.
///
/// # Errors
/// [`DequantiseError::PartialBlock`] if `bytes` is not a whole number of blocks, and
/// [`DequantiseError::OutputLength`] if `out` has not exactly the elements of those blocks. `out` is then
/// left as it was.
///
/// ```
/// use rlx_eval::quant::dequantise;
/// use rlx_ir::block::BlockFormat;
///
/// // The scale 0.5 as f16, then sixteen bytes of two codes each; code 8 is zero.
/// let mut block = [0x88; 18];
/// block[..2].copy_from_slice(&[0x00, 0x38]);
/// block[2] = 0xf0;
/// let mut out = [f32::NAN; 32];
/// dequantise(BlockFormat::Q4_0, &block, &mut out)?;
/// assert_eq!((out[0], out[1], out[16]), (-4.0, 0.0, 3.5));
/// # Ok::<(), rlx_eval::quant::DequantiseError>(())
/// ```
pub fn dequantise(format: BlockFormat, bytes: &[u8], out: &mut [f32]) -> Result<(), DequantiseError> {
    if !bytes.len().is_multiple_of(format.block_bytes()) {
        return Err(DequantiseError::PartialBlock { format, bytes: bytes.len() });
    }
    let blocks = bytes.len() / format.block_bytes();
    // Compared by division, because blocks times elements can overflow a 32-bit size.
    if !out.len().is_multiple_of(format.block_len()) || out.len() / format.block_len() != blocks {
        return Err(DequantiseError::OutputLength { format, blocks, elements: out.len() });
    }
    match format {
        BlockFormat::Q4_0 => each_block(bytes, out, plain::q4_0),
        BlockFormat::Q4_1 => each_block(bytes, out, plain::q4_1),
        BlockFormat::Q5_0 => each_block(bytes, out, plain::q5_0),
        BlockFormat::Q5_1 => each_block(bytes, out, plain::q5_1),
        BlockFormat::Q8_0 => each_block(bytes, out, plain::q8_0),
        BlockFormat::Q8_1 => each_block(bytes, out, plain::q8_1),
        BlockFormat::Q2_K => each_block(bytes, out, k::q2_k),
        BlockFormat::Q3_K => each_block(bytes, out, k::q3_k),
        BlockFormat::Q4_K => each_block(bytes, out, k::q4_k),
        BlockFormat::Q5_K => each_block(bytes, out, k::q5_k),
        BlockFormat::Q6_K => each_block(bytes, out, k::q6_k),
        BlockFormat::Q8_K => each_block(bytes, out, k::q8_k),
        BlockFormat::IQ2_XXS => each_block(bytes, out, iq::iq2_xxs),
        BlockFormat::IQ2_XS => each_block(bytes, out, iq::iq2_xs),
        BlockFormat::IQ3_XXS => each_block(bytes, out, iq::iq3_xxs),
        BlockFormat::IQ1_S => each_block(bytes, out, iq::iq1_s),
        BlockFormat::IQ4_NL => each_block(bytes, out, iq::iq4_nl),
        BlockFormat::IQ3_S => each_block(bytes, out, iq::iq3_s),
        BlockFormat::IQ2_S => each_block(bytes, out, iq::iq2_s),
        BlockFormat::IQ4_XS => each_block(bytes, out, iq::iq4_xs),
        BlockFormat::IQ1_M => each_block(bytes, out, iq::iq1_m),
        BlockFormat::TQ1_0 => each_block(bytes, out, ternary::tq1_0),
        BlockFormat::TQ2_0 => each_block(bytes, out, ternary::tq2_0),
        BlockFormat::MXFP4 => each_block(bytes, out, fp4::mxfp4),
        BlockFormat::NVFP4 => each_block(bytes, out, fp4::nvfp4),
        BlockFormat::Q1_0 => each_block(bytes, out, plain::q1_0),
        BlockFormat::Q2_0 => each_block(bytes, out, plain::q2_0),
    }
    Ok(())
}

/// Decodes block after block, each into its own part of the output.
fn each_block<const BYTES: usize, const LEN: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    let (blocks, _) = bytes.as_chunks();
    let (outputs, _) = out.as_chunks_mut();
    for (block, output) in blocks.iter().zip(outputs) {
        decode(block, output);
    }
}

/// The f16 at a byte offset of a block.
fn f16_at(block: &[u8], offset: usize) -> f32 {
    f16::from_bits(u16_at(block, offset)).to_f32()
}

/// The little-endian u16 at a byte offset of a block.
fn u16_at(block: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([block[offset], block[offset + 1]])
}

/// The little-endian u32 at a byte offset of a block.
fn u32_at(block: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([block[offset], block[offset + 1], block[offset + 2], block[offset + 3]])
}

/// The 4-bit code of element `index` among `2 * codes.len()` elements, where the first half of them lies in
/// the low halves of the bytes and the second half in the high halves.
fn split_nibble(codes: &[u8], index: usize) -> u8 {
    let byte = codes[index % codes.len()];
    if index < codes.len() { byte & 15 } else { byte >> 4 }
}

/// The 4-bit code of element `index`, where a byte holds two neighbours, the first in its low half.
fn paired_nibble(codes: &[u8], index: usize) -> u8 {
    codes[index / 2] >> (4 * (index % 2)) & 15
}

/// The 2-bit code of element `index` of a block of 256 in 64 bytes: each half of the block has 32 bytes,
/// and byte i holds elements i, i + 32, i + 64 and i + 96 of the half from its low bits up.
fn striped_pair(codes: &[u8], index: usize) -> u8 {
    codes[32 * (index / 128) + index % 32] >> (2 * (index % 128 / 32)) & 3
}
