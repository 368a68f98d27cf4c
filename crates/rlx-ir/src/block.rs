//! The block-quantised storage formats of ggml: names, numbers in GGUF files, and sizes.
//!
//! A block holds [`BlockFormat::block_len`] consecutive elements of one row in
//! [`BlockFormat::block_bytes`] bytes, without padding between blocks; multi-byte fields are little-endian.
//! This module knows only sizes and layouts. The arithmetic that turns a block into numbers is the evaluator's.
//!
//! Layouts were read from ggml 0.25.3 (`ggml-common.h`, MIT licence), which is the definition of these formats.
//! In the layouts below `name: type[count]` are the fields in file order, `d` is the scale of the block,
//! and `[q]` is one element's code.

use std::fmt;

/// Declares [`BlockFormat`] and its constant properties from one row for each format:
/// `Variant = ggml number, name, elements in a block, bytes of a block`.
macro_rules! block_formats {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $len:literal, $bytes:literal;)*) => {
        /// A storage format in which blocks of elements share scales, as ggml defines it.
        ///
        /// The order is that of the numbers in GGUF files.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        #[expect(non_camel_case_types, reason = "the names are ggml's")]
        pub enum BlockFormat {
            $($(#[$doc])* $variant = $id,)*
        }

        impl BlockFormat {
            /// Every format, in the order of the numbers in GGUF files.
            pub const ALL: &'static [BlockFormat] = &[$(BlockFormat::$variant,)*];

            /// The lower-case name, as in the text form: `q4_k`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(BlockFormat::$variant => $name,)*
                }
            }

            /// How many elements a block holds.
            pub const fn block_len(self) -> usize {
                match self {
                    $(BlockFormat::$variant => $len,)*
                }
            }

            /// How many bytes a block takes.
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(BlockFormat::$variant => $bytes,)*
                }
            }
        }
    };
}

block_formats! {
    /// 4 bits, one scale: `d: f16, codes: u8[16]`. Element i < 16 is the low half of `codes[i]`,
    /// element i + 16 its high half; value `([q] - 8) · d`.
    Q4_0 = 2, "q4_0", 32, 18;
    /// 4 bits, scale and minimum: `d: f16, m: f16, codes: u8[16]`, packed as in [`BlockFormat::Q4_0`];
    /// value `[q] · d + m`.
    Q4_1 = 3, "q4_1", 32, 20;
    /// 5 bits, one scale: `d: f16, fifth_bits: u32, codes: u8[16]`. Low four bits as in
    /// [`BlockFormat::Q4_0`], the fifth of element i is bit i of `fifth_bits`; value `([q] - 16) · d`.
    Q5_0 = 6, "q5_0", 32, 22;
    /// 5 bits, scale and minimum: `d: f16, m: f16, fifth_bits: u32, codes: u8[16]`, packed as in
    /// [`BlockFormat::Q5_0`]; value `[q] · d + m`.
    Q5_1 = 7, "q5_1", 32, 24;
    /// 8 bits, one scale: `d: f16, codes: i8[32]`; value `[q] · d`.
    Q8_0 = 8, "q8_0", 32, 34;
    /// 8 bits with the sum kept for dot products: `d: f16, sum: f16, codes: i8[32]`; value `[q] · d`,
    /// and `sum` is d times the sum of the codes. ggml uses it for activations only, never in files.
    Q8_1 = 9, "q8_1", 32, 36;
    /// 2 bits, sixteen groups of 16 with 4-bit scale and minimum:
    /// `scales: u8[16], codes: u8[64], d: f16, d_min: f16`. Group g has scale `scales[g] & 15` and minimum
    /// `scales[g] >> 4`; each half of 128 elements has 32 bytes of codes, byte i holds elements
    /// i, i + 32, i + 64, i + 96 of the half from its low bits up; value `(d · scale) · [q] - d_min · minimum`.
    Q2_K = 10, "q2_k", 256, 84;
    /// 3 bits, sixteen groups of 16 with 6-bit scales:
    /// `high_bits: u8[32], codes: u8[64], scales: u8[12], d: f16`. Low two bits as in [`BlockFormat::Q2_K`];
    /// the third of element i is bit i / 32 of `high_bits[i % 32]`; scale of group g: low four bits in the
    /// halves of `scales[0..8]`, high two in `scales[8 + g % 4]`; value `d · (scale - 32) · ([q] - 4)`.
    Q3_K = 11, "q3_k", 256, 110;
    /// 4 bits, eight groups of 32 with 6-bit scale and minimum:
    /// `d: f16, d_min: f16, scales: u8[12], codes: u8[128]`. Each pair of groups has 32 bytes of codes, low
    /// halves for the first, high halves for the second; value `(d · scale) · [q] - d_min · minimum`.
    Q4_K = 12, "q4_k", 256, 144;
    /// 5 bits, eight groups of 32 with 6-bit scale and minimum:
    /// `d: f16, d_min: f16, scales: u8[12], fifth_bits: u8[32], codes: u8[128]`. As [`BlockFormat::Q4_K`],
    /// and the fifth bit of element i is bit i / 32 of `fifth_bits[i % 32]`.
    Q5_K = 13, "q5_k", 256, 176;
    /// 6 bits, sixteen groups of 16 with 8-bit scales:
    /// `low_bits: u8[128], high_bits: u8[64], scales: i8[16], d: f16`. Each half of 128 elements has 64 bytes
    /// of low four bits and 32 of high two; value `d · scale · ([q] - 32)`.
    Q6_K = 14, "q6_k", 256, 210;
    /// 8 bits with sums kept for dot products: `d: f32, codes: i8[256], sums: i16[16]`; value `d · [q]`, and
    /// `sums` are the sums of the codes by 16. ggml uses it for activations only, never in files.
    Q8_K = 15, "q8_k", 256, 292;
    /// 2.06 bits: `d: f16, groups: (u8[4], u32)[8]`. A group of 32: four indices into a book of 256 points of
    /// eight magnitudes, then four times seven sign bits (the eighth makes the count even) and, on top, a
    /// 4-bit scale; value `d · (0.5 + scale) · 0.25 · ±magnitude`.
    IQ2_XXS = 16, "iq2_xxs", 256, 66;
    /// 2.31 bits: `d: f16, codes: u16[32], scales: u8[8]`. A code is nine bits of index into a book of 512
    /// points of eight magnitudes and seven sign bits; each 16 elements have a 4-bit scale, used as in
    /// [`BlockFormat::IQ2_XXS`].
    IQ2_XS = 17, "iq2_xs", 256, 74;
    /// 3.06 bits: `d: f16, indices: u8[64], signs_and_scales: u32[8]`. Indices into a book of 256 points of
    /// four magnitudes; signs and scale for 32 elements as in [`BlockFormat::IQ2_XXS`]; value
    /// `d · (0.5 + scale) · 0.5 · ±magnitude`.
    IQ3_XXS = 18, "iq3_xxs", 256, 98;
    /// 1.56 bits: `d: f16, indices: u8[32], high: u16[8]`. Eleven-bit indices into a book of 2048 points of
    /// eight values in {-1, 0, 1}; a word of `high` holds four times three upper index bits, a 3-bit scale and
    /// the sign of the offset for 32 elements; value `d · (2 · scale + 1) · (value ± 0.125)`.
    IQ1_S = 19, "iq1_s", 256, 50;
    /// 4 bits on a fixed uneven scale of 16 levels: `d: f16, codes: u8[16]`, packed as in
    /// [`BlockFormat::Q4_0`]; value `d · level[q]`.
    IQ4_NL = 20, "iq4_nl", 32, 18;
    /// 3.44 bits: `d: f16, indices: u8[64], high_bits: u8[8], signs: u8[32], scales: u8[4]`. Nine-bit indices
    /// into a book of 512 points of four magnitudes, a sign bit for each element, a 4-bit scale for each 32;
    /// value `d · (1 + 2 · scale) · ±magnitude`.
    IQ3_S = 21, "iq3_s", 256, 110;
    /// 2.56 bits: `d: f16, indices: u8[32], signs: u8[32], high_bits: u8[8], scales: u8[8]`. Ten-bit indices
    /// into a book of 1024 points of eight magnitudes, a sign bit for each element; each 16 elements have a
    /// 4-bit scale, used as in [`BlockFormat::IQ2_XXS`].
    IQ2_S = 22, "iq2_s", 256, 82;
    /// 4 bits on the levels of [`BlockFormat::IQ4_NL`], eight groups of 32 with 6-bit scales:
    /// `d: f16, scales_high: u16, scales_low: u8[4], codes: u8[128]`; each group's 16 bytes are packed as in
    /// [`BlockFormat::Q4_0`]; value `d · (scale - 32) · level[q]`.
    IQ4_XS = 23, "iq4_xs", 256, 136;
    /// 1.75 bits: `indices: u8[32], high: u8[16], scales: u16[4]`. As [`BlockFormat::IQ1_S`], with the offset's
    /// sign for each 8 elements and a 3-bit scale for each 16; the f16 `d` is spread over the top four bits
    /// of the four words of `scales`.
    IQ1_M = 29, "iq1_m", 256, 56;
    /// 1.69 bits, values in {-1, 0, 1}: `codes: u8[48], rest: u8[4], d: f16`. A byte of `codes` is a fraction
    /// of 256 whose first five base-three digits are elements, a byte of `rest` the same with four digits;
    /// value `(digit - 1) · d`.
    TQ1_0 = 34, "tq1_0", 256, 54;
    /// 2 bits: `codes: u8[64], d: f16`, codes packed as in [`BlockFormat::Q2_K`]; value `([q] - 1) · d`.
    TQ2_0 = 35, "tq2_0", 256, 66;
    /// 4-bit floats (e2m1) with a power of two: `e: u8, codes: u8[16]`, packed as in [`BlockFormat::Q4_0`];
    /// value `2^(e - 127) · e2m1[q]`, where ggml reads e = 255 as 2^128 and not as NaN.
    MXFP4 = 39, "mxfp4", 32, 17;
    /// 4-bit floats (e2m1), four groups of 16 with e4m3 scales: `scales: u8[4], codes: u8[32]`, each
    /// group's 8 bytes packed as in [`BlockFormat::Q4_0`]; value `scale · e2m1[q]`. The scale's sign bit is
    /// ignored, and 0x7f (NaN in e4m3) is zero.
    NVFP4 = 40, "nvfp4", 64, 36;
    /// 1 bit: `d: f16, codes: u8[16]`, element i in bit i % 8 of byte i / 8; a set bit is `d`, a clear one `-d`.
    Q1_0 = 41, "q1_0", 128, 18;
    /// 2 bits: `d: f16, codes: u8[16]`, element i in the bits from 2 · (i % 4) of byte i / 4;
    /// value `([q] - 1) · d`.
    Q2_0 = 42, "q2_0", 64, 18;
}

impl BlockFormat {
    /// The format of this [`name`](BlockFormat::name), or `None`.
    ///
    /// ```
    /// use rlx_ir::block::BlockFormat;
    /// assert_eq!(BlockFormat::from_name("q4_k"), Some(BlockFormat::Q4_K));
    /// assert_eq!(BlockFormat::from_name("f32"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<BlockFormat> {
        BlockFormat::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The number of the format in GGUF files (`enum ggml_type`).
    pub const fn ggml_id(self) -> u32 {
        self as u32
    }

    /// The format with this number in GGUF files; `None` for plain types, removed formats and unknown numbers.
    pub fn from_ggml_id(id: u32) -> Option<BlockFormat> {
        BlockFormat::ALL.iter().copied().find(|format| format.ggml_id() == id)
    }

    /// How many bytes a row of `elements` takes; `None` if it is not a whole number of blocks, or if the
    /// size overflows.
    ///
    /// ```
    /// use rlx_ir::block::BlockFormat;
    /// assert_eq!(BlockFormat::Q8_0.row_bytes(64), Some(68));
    /// assert_eq!(BlockFormat::Q8_0.row_bytes(65), None);
    /// ```
    pub const fn row_bytes(self, elements: usize) -> Option<usize> {
        if !elements.is_multiple_of(self.block_len()) {
            return None;
        }
        (elements / self.block_len()).checked_mul(self.block_bytes())
    }
}

impl fmt::Display for BlockFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::BlockFormat;

    #[test]
    fn names_and_numbers_lead_back_to_their_format() {
        for &format in BlockFormat::ALL {
            assert_eq!(BlockFormat::from_name(format.name()), Some(format));
            assert_eq!(BlockFormat::from_ggml_id(format.ggml_id()), Some(format));
        }
        assert!(BlockFormat::ALL.is_sorted());
    }

    #[test]
    fn plain_removed_and_unknown_numbers_are_no_block_format() {
        let plain = [0, 1, 24, 25, 26, 27, 28, 30];
        let removed = [4, 5, 31, 32, 33, 36, 37, 38];
        for id in plain.into_iter().chain(removed).chain([43, u32::MAX]) {
            assert_eq!(BlockFormat::from_ggml_id(id), None, "{id}");
        }
    }

    #[test]
    fn names_are_exact() {
        for name in ["", "Q4_0", "q4_0 ", "q4", "f32"] {
            assert_eq!(BlockFormat::from_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn row_sizes_are_checked() {
        assert_eq!(BlockFormat::Q4_K.row_bytes(0), Some(0));
        assert_eq!(BlockFormat::Q4_K.row_bytes(512), Some(288));
        assert_eq!(BlockFormat::Q4_K.row_bytes(255), None);
        assert_eq!(BlockFormat::Q8_0.row_bytes(usize::MAX - 31), None);
    }
}
