//! `TensorProto.DataType`: the element types of ONNX, with their width and storage field.

/// The element type of an ONNX tensor; the discriminants are those of `TensorProto.DataType` in `onnx-ml.proto`
/// (onnx 1.23.2, Apache-2.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DataType {
    /// No type given.
    Undefined = 0,
    /// IEEE binary32.
    Float = 1,
    /// Unsigned 8-bit integer.
    Uint8 = 2,
    /// Signed 8-bit integer.
    Int8 = 3,
    /// Unsigned 16-bit integer.
    Uint16 = 4,
    /// Signed 16-bit integer.
    Int16 = 5,
    /// Signed 32-bit integer.
    Int32 = 6,
    /// Signed 64-bit integer.
    Int64 = 7,
    /// UTF-8 text.
    String = 8,
    /// One byte an element, 0 or 1.
    Bool = 9,
    /// IEEE binary16.
    Float16 = 10,
    /// IEEE binary64.
    Double = 11,
    /// Unsigned 32-bit integer.
    Uint32 = 12,
    /// Unsigned 64-bit integer.
    Uint64 = 13,
    /// Two binary32, real part first.
    Complex64 = 14,
    /// Two binary64, real part first.
    Complex128 = 15,
    /// The upper 16 bits of a binary32.
    Bfloat16 = 16,
    /// 8-bit float with 4 exponent and 3 mantissa bits, NaN, no infinity.
    Float8e4m3fn = 17,
    /// As [`Self::Float8e4m3fn`] with exponent bias 8 and no negative zero.
    Float8e4m3fnuz = 18,
    /// 8-bit float with 5 exponent and 2 mantissa bits, as IEEE.
    Float8e5m2 = 19,
    /// As [`Self::Float8e5m2`] with exponent bias 16, no infinity and no negative zero.
    Float8e5m2fnuz = 20,
    /// Unsigned 4-bit integer, two a byte, low bits first.
    Uint4 = 21,
    /// Signed 4-bit integer, two a byte, low bits first.
    Int4 = 22,
    /// 4-bit float with 2 exponent bits and 1 mantissa bit, two a byte, low bits first.
    Float4e2m1 = 23,
    /// A power of two: 8 exponent bits and nothing else.
    Float8e8m0 = 24,
    /// Unsigned 2-bit integer, four a byte, low bits first.
    Uint2 = 25,
    /// Signed 2-bit integer, four a byte, low bits first.
    Int2 = 26,
    /// 6-bit float with 2 exponent and 3 mantissa bits, four in three bytes, low bits first.
    Float6e2m3 = 27,
    /// 6-bit float with 3 exponent and 2 mantissa bits, four in three bytes, low bits first.
    Float6e3m2 = 28,
}

impl DataType {
    /// Bits of one element in `raw_data`; `None` for strings and for the undefined type.
    pub fn bits(self) -> Option<usize> {
        Some(match self {
            Self::Undefined | Self::String => return None,
            Self::Uint2 | Self::Int2 => 2,
            Self::Uint4 | Self::Int4 | Self::Float4e2m1 => 4,
            Self::Float6e2m3 | Self::Float6e3m2 => 6,
            Self::Uint8
            | Self::Int8
            | Self::Bool
            | Self::Float8e4m3fn
            | Self::Float8e4m3fnuz
            | Self::Float8e5m2
            | Self::Float8e5m2fnuz
            | Self::Float8e8m0 => 8,
            Self::Uint16 | Self::Int16 | Self::Float16 | Self::Bfloat16 => 16,
            Self::Float | Self::Int32 | Self::Uint32 => 32,
            Self::Double | Self::Int64 | Self::Uint64 | Self::Complex64 => 64,
            Self::Complex128 => 128,
        })
    }

    /// Bytes of `count` elements packed as in `raw_data`, the last byte filled up; `None` for strings, for the
    /// undefined type and where the number does not fit a `usize`.
    pub fn packed_bytes(self, count: usize) -> Option<usize> {
        let bits = self.bits()?;
        if bits >= 8 {
            return count.checked_mul(bits / 8);
        }
        // Eight elements fill `bits` whole bytes, so that the product in bits cannot overflow first.
        (count / 8).checked_mul(bits)?.checked_add((count % 8 * bits).div_ceil(8))
    }
}
