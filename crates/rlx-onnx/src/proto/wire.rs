//! The protobuf wire format below messages: varints, keys and what can be wrong with them.

use thiserror::Error;

/// The longest varint: 64 bits in groups of seven.
const MAX_VARINT_BYTES: usize = 10;

/// What is wrong with the protobuf bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireProblem {
    /// The bytes end inside a varint or a fixed-width number.
    #[error("the bytes end inside a value")]
    Truncated,
    /// A varint has more than ten bytes or more than 64 bits.
    #[error("a varint is longer than 64 bits")]
    OverlongVarint,
    /// A length-delimited field reaches beyond the message that holds it.
    #[error("a field of {length} bytes has {left} bytes left")]
    LengthPastEnd {
        /// The length that the field claims.
        length: u64,
        /// The bytes left in the message.
        left: usize,
    },
    /// A field number is 0 or beyond 2^29 − 1.
    #[error("field number {0} does not exist in protobuf")]
    FieldNumber(u64),
    /// A wire type that protobuf does not define, or a group, which ONNX does not use.
    #[error("wire type {0} is not used by ONNX")]
    WireType(u8),
    /// A known field has a wire type that does not fit its declaration.
    #[error("field {field} has wire type {found}")]
    FieldWireType {
        /// The field's name in `onnx-ml.proto`.
        field: &'static str,
        /// The wire type found.
        found: u8,
    },
    /// A field that may occur once occurs again.
    #[error("field {field} occurs twice")]
    DuplicateField {
        /// The field's name in `onnx-ml.proto`.
        field: &'static str,
    },
    /// A packed field's length is no multiple of its element's width.
    #[error("packed field {field} has {length} bytes, no multiple of {width}")]
    PackedLength {
        /// The field's name in `onnx-ml.proto`.
        field: &'static str,
        /// The bytes found.
        length: usize,
        /// Bytes of one element.
        width: usize,
    },
}

/// Reads the varint at the front of `bytes`; returns it with the number of bytes it takes.
pub(crate) fn varint(bytes: &[u8]) -> Result<(u64, usize), WireProblem> {
    let mut value = 0u64;
    for (position, &byte) in bytes.iter().take(MAX_VARINT_BYTES).enumerate() {
        let group = u64::from(byte & 0x7f);
        if position == MAX_VARINT_BYTES - 1 && byte > 1 {
            return Err(WireProblem::OverlongVarint);
        }
        value |= group << (7 * position);
        if byte < 0x80 {
            return Ok((value, position + 1));
        }
    }
    Err(WireProblem::Truncated)
}

/// How many varints `bytes` holds: each ends in the one byte whose top bit is clear.
pub(crate) fn count_varints(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte < 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_reads_one_to_ten_bytes() {
        assert_eq!(varint(&[0]), Ok((0, 1)));
        assert_eq!(varint(&[0x96, 0x01, 0xff]), Ok((150, 2)));
        let greatest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(varint(&greatest), Ok((u64::MAX, 10)));
    }

    #[test]
    fn varint_refuses_65_bits_eleven_bytes_and_a_cut() {
        let too_wide = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(varint(&too_wide), Err(WireProblem::OverlongVarint));
        let too_long = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(varint(&too_long), Err(WireProblem::OverlongVarint));
        assert_eq!(varint(&[0x80, 0x80]), Err(WireProblem::Truncated));
        assert_eq!(varint(&[]), Err(WireProblem::Truncated));
    }
}
