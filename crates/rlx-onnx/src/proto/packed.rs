//! A repeated numeric field of a tensor, kept as it is written.
//!
//! prost would decode `float_data` and its kin to vectors, which copies the weights and takes up to eight times
//! their size in the file. Here the field shares the decoded buffer; the tensor layer reads numbers out of it when
//! the tensor is wanted. Writers may split the field or leave it unpacked; both are gathered to the packed form.

use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{self, DecodeContext, WireType};

/// Numbers in protobuf's packed encoding: varints, or little-endian fixed-width numbers.
#[derive(Clone, Debug)]
pub struct PackedValues(Storage);

#[derive(Clone, Debug)]
enum Storage {
    /// A slice of the decoded buffer.
    Shared(Bytes),
    /// Gathered from several pieces.
    Gathered(Vec<u8>),
}

impl PackedValues {
    /// Packs 32-bit floats.
    pub fn from_f32(values: &[f32]) -> Self {
        Self::from(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// Packs 64-bit floats.
    pub fn from_f64(values: &[f64]) -> Self {
        Self::from(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// Packs 32-bit integers; negative ones take ten bytes, as protobuf's `int32` does.
    pub fn from_i32(values: &[i32]) -> Self {
        Self::from_varints(values.iter().map(|&value| i64::from(value) as u64))
    }

    /// Packs 64-bit signed integers.
    pub fn from_i64(values: &[i64]) -> Self {
        Self::from_varints(values.iter().map(|&value| value as u64))
    }

    /// Packs 64-bit unsigned integers.
    pub fn from_u64(values: &[u64]) -> Self {
        Self::from_varints(values.iter().copied())
    }

    fn from_varints(values: impl Iterator<Item = u64>) -> Self {
        let mut wire = Vec::new();
        for value in values {
            encoding::encode_varint(value, &mut wire);
        }
        Self::from(wire)
    }

    /// Whether the field holds nothing.
    pub fn is_empty(&self) -> bool {
        self.wire().is_empty()
    }

    /// The packed encoding.
    pub fn wire(&self) -> &[u8] {
        match &self.0 {
            Storage::Shared(bytes) => bytes,
            Storage::Gathered(bytes) => bytes,
        }
    }

    /// The packed encoding as a shared buffer; no copy where the file holds it in one piece.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Storage::Shared(bytes) => bytes.clone(),
            Storage::Gathered(bytes) => Bytes::copy_from_slice(bytes),
        }
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn gathered(&mut self) -> &mut Vec<u8> {
        if let Storage::Shared(bytes) = &self.0 {
            self.0 = Storage::Gathered(bytes.to_vec());
        }
        match &mut self.0 {
            Storage::Gathered(bytes) => bytes,
            Storage::Shared(_) => unreachable!("replaced above"),
        }
    }

    /// Merges one occurrence of the field, packed or a single `element`.
    pub(crate) fn merge(
        &mut self,
        element: WireType,
        found: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if found == WireType::LengthDelimited {
            let mut piece = Bytes::new();
            encoding::bytes::merge(found, &mut piece, buffer, context)?;
            if self.is_empty() {
                self.0 = Storage::Shared(piece);
            } else {
                self.gathered().extend_from_slice(&piece);
            }
            return Ok(());
        }
        // The single-value decoders of prost check the wire type and the bytes left.
        match element {
            WireType::ThirtyTwoBit => {
                let mut value = 0u32;
                encoding::fixed32::merge(found, &mut value, buffer, context)?;
                self.gathered().put_u32_le(value);
            }
            WireType::SixtyFourBit => {
                let mut value = 0u64;
                encoding::fixed64::merge(found, &mut value, buffer, context)?;
                self.gathered().put_u64_le(value);
            }
            _ => {
                let mut value = 0u64;
                encoding::uint64::merge(found, &mut value, buffer, context)?;
                encoding::encode_varint(value, self.gathered());
            }
        }
        Ok(())
    }

    /// Writes the field, unless it is empty.
    pub(crate) fn encode(&self, tag: u32, buffer: &mut impl BufMut) {
        if !self.is_empty() {
            encoding::encode_key(tag, WireType::LengthDelimited, buffer);
            encoding::encode_varint(self.wire().len() as u64, buffer);
            buffer.put_slice(self.wire());
        }
    }

    /// Bytes that [`Self::encode`] writes.
    pub(crate) fn encoded_len(&self, tag: u32) -> usize {
        match self.wire().len() {
            0 => 0,
            length => encoding::key_len(tag) + encoding::encoded_len_varint(length as u64) + length,
        }
    }
}

impl Default for PackedValues {
    fn default() -> Self {
        Self(Storage::Shared(Bytes::new()))
    }
}

/// From the packed encoding.
impl From<Vec<u8>> for PackedValues {
    fn from(wire: Vec<u8>) -> Self {
        Self(Storage::Shared(Bytes::from(wire)))
    }
}

/// Equal where the packed encodings are, however they are stored.
impl PartialEq for PackedValues {
    fn eq(&self, other: &Self) -> bool {
        self.wire() == other.wire()
    }
}
