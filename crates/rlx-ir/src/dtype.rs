//! Element types: what one element of a tensor is, how wide it is, and which class of arithmetic it belongs to.
//!
//! `i4 i2 u4 u2 f4e2m1 e8m0` and the block formats are storage types: they are moved, loaded, stored and
//! converted, but no arithmetic is declared on them.

use crate::block::BlockFormat;
use std::fmt;

/// The type of one element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of binary32 (8 exponent bits, 7 mantissa bits).
    BF16,
    /// OCP FP8 E4M3: no infinities, one NaN pattern per sign.
    F8E4M3FN,
    /// FP8 E4M3 with bias 8, no infinities, no negative zero (NaN is 0x80).
    F8E4M3FNUZ,
    /// OCP FP8 E5M2 with infinities.
    F8E5M2,
    /// FP8 E5M2 with bias 16, no infinities, no negative zero.
    F8E5M2FNUZ,
    /// OCP MX FP4 E2M1 (storage only).
    F4E2M1,
    /// OCP MX scale E8M0: a power of two without sign (storage only).
    E8M0,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Signed 4-bit integer (storage only).
    I4,
    /// Signed 2-bit integer (storage only).
    I2,
    /// Unsigned 64-bit integer.
    U64,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 4-bit integer (storage only).
    U4,
    /// Unsigned 2-bit integer (storage only).
    U2,
    /// Truth value, one byte, 0 or 1.
    Bool,
    /// Two f32: real, imaginary.
    C64,
    /// Two f64: real, imaginary.
    C128,
    /// UTF-8 text; exists at import only.
    String,
    /// A block-quantised ggml format, blocked along the last axis, with the logical shape.
    Block(BlockFormat),
}

/// The arithmetic an element type belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DTypeClass {
    /// Floating point.
    Float,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Truth values.
    Bool,
    /// Complex numbers.
    Complex,
    /// Text.
    String,
    /// Block-quantised.
    Block,
}

impl DType {
    /// Every type but the block formats.
    pub const PLAIN: [DType; 26] = {
        use DType::*;
        [
            F64, F32, F16, BF16, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, E8M0, I64, I32, I16, I8,
            I4, I2, U64, U32, U16, U8, U4, U2, Bool, C64, C128, String,
        ]
    };

    /// The class of arithmetic.
    pub const fn class(self) -> DTypeClass {
        use DType::*;
        match self {
            F64 | F32 | F16 | BF16 | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F4E2M1 | E8M0 => {
                DTypeClass::Float
            }
            I64 | I32 | I16 | I8 | I4 | I2 => DTypeClass::Signed,
            U64 | U32 | U16 | U8 | U4 | U2 => DTypeClass::Unsigned,
            Bool => DTypeClass::Bool,
            C64 | C128 => DTypeClass::Complex,
            String => DTypeClass::String,
            Block(_) => DTypeClass::Block,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), DTypeClass::Float)
    }

    /// Whether this is a signed or unsigned integer (not bool).
    pub const fn is_int(self) -> bool {
        matches!(self.class(), DTypeClass::Signed | DTypeClass::Unsigned)
    }

    /// Whether this is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self.class(), DTypeClass::Complex)
    }

    /// Bits of one element; `None` for text and block formats.
    pub const fn bits(self) -> Option<u32> {
        use DType::*;
        Some(match self {
            C128 => 128,
            F64 | I64 | U64 | C64 => 64,
            F32 | I32 | U32 => 32,
            F16 | BF16 | I16 | U16 => 16,
            F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | E8M0 | I8 | U8 | Bool => 8,
            F4E2M1 | I4 | U4 => 4,
            I2 | U2 => 2,
            String | Block(_) => return None,
        })
    }

    /// The real type of a complex type's parts.
    pub const fn complex_part(self) -> Option<DType> {
        match self {
            DType::C64 => Some(DType::F32),
            DType::C128 => Some(DType::F64),
            _ => None,
        }
    }

    /// The complex type whose parts have this real type.
    pub const fn to_complex(self) -> Option<DType> {
        match self {
            DType::F32 => Some(DType::C64),
            DType::F64 => Some(DType::C128),
            _ => None,
        }
    }

    /// The type in which sums and products of this type accumulate unless told otherwise:
    /// f32 for narrower floats, i32 for 8-bit integers in dots, else the type itself.
    pub const fn dot_accumulator(self) -> DType {
        use DType::*;
        match self {
            F16 | BF16 | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ => F32,
            I8 | U8 => I32,
            other => other,
        }
    }

    /// Bytes of a tensor with this element type and these sizes, `None` if that overflows or is not defined:
    /// rows of sub-byte types are byte-aligned, block formats need a last axis that is a multiple of the block.
    pub fn storage_bytes(self, dims: &[usize]) -> Option<usize> {
        let (rows, last) = match dims.split_last() {
            Some((last, outer)) => (outer.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?, *last),
            None => (1, 1),
        };
        let row_bytes = match self {
            DType::Block(format) => {
                if !last.is_multiple_of(format.block_len()) {
                    return None;
                }
                (last / format.block_len()).checked_mul(format.block_bytes())?
            }
            _ => (last.checked_mul(self.bits()? as usize)?).div_ceil(8),
        };
        rows.checked_mul(row_bytes)
    }

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        use DType::*;
        match self {
            F64 => "f64",
            F32 => "f32",
            F16 => "f16",
            BF16 => "bf16",
            F8E4M3FN => "f8e4m3fn",
            F8E4M3FNUZ => "f8e4m3fnuz",
            F8E5M2 => "f8e5m2",
            F8E5M2FNUZ => "f8e5m2fnuz",
            F4E2M1 => "f4e2m1",
            E8M0 => "e8m0",
            I64 => "i64",
            I32 => "i32",
            I16 => "i16",
            I8 => "i8",
            I4 => "i4",
            I2 => "i2",
            U64 => "u64",
            U32 => "u32",
            U16 => "u16",
            U8 => "u8",
            U4 => "u4",
            U2 => "u2",
            Bool => "bool",
            C64 => "c64",
            C128 => "c128",
            String => "string",
            Block(format) => format.name(),
        }
    }

    /// The type with this name in the text form.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::PLAIN
            .into_iter()
            .find(|d| d.name() == name)
            .or_else(|| BlockFormat::from_name(name).map(DType::Block))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for dtype in DType::PLAIN {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        for format in BlockFormat::ALL {
            assert_eq!(DType::from_name(format.name()), Some(DType::Block(*format)));
        }
    }

    #[test]
    fn sub_byte_rows_are_byte_aligned() {
        assert_eq!(DType::I4.storage_bytes(&[3, 5]), Some(9));
        assert_eq!(DType::U2.storage_bytes(&[2, 5]), Some(4));
        assert_eq!(DType::F32.storage_bytes(&[]), Some(4));
    }

    #[test]
    fn sizes_that_overflow_have_no_bytes() {
        assert_eq!(DType::F32.storage_bytes(&[usize::MAX / 2, 4]), None);
        assert_eq!(DType::I64.storage_bytes(&[1 << 40, 1 << 40]), None);
    }
}
