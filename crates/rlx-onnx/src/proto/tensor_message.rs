//! `TensorProto`, written by hand so that its numeric fields are [`PackedValues`]. Field numbers, names and types are
//! those of `onnx-ml.proto` (onnx 1.23.2, Apache-2.0).

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::{PackedValues, StringStringEntryProto};

/// The part of a larger tensor that a [`TensorProto`] holds.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Segment {
    /// First element.
    #[prost(int64, optional, tag = "1")]
    pub begin: Option<i64>,
    /// Element after the last.
    #[prost(int64, optional, tag = "2")]
    pub end: Option<i64>,
}

/// Where the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum DataLocation {
    /// In the message.
    Default = 0,
    /// In the file that `external_data` names.
    External = 1,
}

/// A tensor as the file holds it; [`crate::tensor`] decodes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorProto {
    /// The shape.
    pub dims: Vec<i64>,
    /// The element type, a [`super::DataType`].
    pub data_type: Option<i32>,
    /// The part of a larger tensor that this message holds.
    pub segment: Option<Segment>,
    /// Elements of `FLOAT`, or the two parts of `COMPLEX64`.
    pub float_data: PackedValues,
    /// Elements of integer types up to 32 bits, or the bits of narrow floats.
    pub int32_data: PackedValues,
    /// Elements of `STRING`, in UTF-8.
    pub string_data: Vec<Bytes>,
    /// Elements of `INT64`.
    pub int64_data: PackedValues,
    /// The name of the tensor.
    pub name: Option<String>,
    /// Elements of any type but `STRING`, little-endian and packed.
    pub raw_data: Option<Bytes>,
    /// Elements of `DOUBLE`, or the two parts of `COMPLEX128`.
    pub double_data: PackedValues,
    /// Elements of `UINT32` and `UINT64`.
    pub uint64_data: PackedValues,
    /// Documentation.
    pub doc_string: Option<String>,
    /// Where the elements are, if in another file: `location`, `offset`, `length`.
    pub external_data: Vec<StringStringEntryProto>,
    /// Whether the elements are here or in another file, a [`DataLocation`].
    pub data_location: Option<i32>,
    /// Named metadata.
    pub metadata_props: Vec<StringStringEntryProto>,
}

impl TensorProto {
    /// The name, or nothing; as the accessors of the generated messages.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Message for TensorProto {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encoding::int64::encode_repeated(1, &self.dims, buf);
        if let Some(value) = &self.data_type {
            encoding::int32::encode(2, value, buf);
        }
        if let Some(value) = &self.segment {
            encoding::message::encode(3, value, buf);
        }
        self.float_data.encode(4, buf);
        self.int32_data.encode(5, buf);
        encoding::bytes::encode_repeated(6, &self.string_data, buf);
        self.int64_data.encode(7, buf);
        if let Some(value) = &self.name {
            encoding::string::encode(8, value, buf);
        }
        if let Some(value) = &self.raw_data {
            encoding::bytes::encode(9, value, buf);
        }
        self.double_data.encode(10, buf);
        self.uint64_data.encode(11, buf);
        if let Some(value) = &self.doc_string {
            encoding::string::encode(12, value, buf);
        }
        for value in &self.external_data {
            encoding::message::encode(13, value, buf);
        }
        if let Some(value) = &self.data_location {
            encoding::int32::encode(14, value, buf);
        }
        for value in &self.metadata_props {
            encoding::message::encode(16, value, buf);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => encoding::int64::merge_repeated(wire_type, &mut self.dims, buf, ctx),
            2 => encoding::int32::merge(wire_type, self.data_type.get_or_insert_default(), buf, ctx),
            3 => encoding::message::merge(wire_type, self.segment.get_or_insert_default(), buf, ctx),
            4 => self.float_data.merge(WireType::ThirtyTwoBit, wire_type, buf, ctx),
            5 => self.int32_data.merge(WireType::Varint, wire_type, buf, ctx),
            6 => encoding::bytes::merge_repeated(wire_type, &mut self.string_data, buf, ctx),
            7 => self.int64_data.merge(WireType::Varint, wire_type, buf, ctx),
            8 => encoding::string::merge(wire_type, self.name.get_or_insert_default(), buf, ctx),
            9 => encoding::bytes::merge(wire_type, self.raw_data.get_or_insert_default(), buf, ctx),
            10 => self.double_data.merge(WireType::SixtyFourBit, wire_type, buf, ctx),
            11 => self.uint64_data.merge(WireType::Varint, wire_type, buf, ctx),
            12 => encoding::string::merge(wire_type, self.doc_string.get_or_insert_default(), buf, ctx),
            13 => encoding::message::merge_repeated(wire_type, &mut self.external_data, buf, ctx),
            14 => encoding::int32::merge(wire_type, self.data_location.get_or_insert_default(), buf, ctx),
            16 => encoding::message::merge_repeated(wire_type, &mut self.metadata_props, buf, ctx),
            _ => encoding::skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let lengths = [
            encoding::int64::encoded_len_repeated(1, &self.dims),
            self.data_type.as_ref().map_or(0, |value| encoding::int32::encoded_len(2, value)),
            self.segment.as_ref().map_or(0, |value| encoding::message::encoded_len(3, value)),
            self.float_data.encoded_len(4),
            self.int32_data.encoded_len(5),
            encoding::bytes::encoded_len_repeated(6, &self.string_data),
            self.int64_data.encoded_len(7),
            self.name.as_ref().map_or(0, |value| encoding::string::encoded_len(8, value)),
            self.raw_data.as_ref().map_or(0, |value| encoding::bytes::encoded_len(9, value)),
            self.double_data.encoded_len(10),
            self.uint64_data.encoded_len(11),
            self.doc_string.as_ref().map_or(0, |value| encoding::string::encoded_len(12, value)),
            encoding::message::encoded_len_repeated(13, &self.external_data),
            self.data_location.as_ref().map_or(0, |value| encoding::int32::encoded_len(14, value)),
            encoding::message::encoded_len_repeated(16, &self.metadata_props),
        ];
        lengths.iter().sum()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}
