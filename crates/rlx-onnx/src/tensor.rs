//! `TensorProto` to elements: little-endian, packed bytes of known shape and type, or text.
//!
//! The formats are those of `onnx-ml.proto` (onnx 1.23.2). Elements that the file holds as they are wanted
//! (`raw_data`, external data, packed floats) are shared with it and may be unaligned; others are copied once.

use bytes::Bytes;
use thiserror::Error;

use crate::external::{ExternalError, ExternalFiles};
use crate::proto::wire::{count_varints, varint};
use crate::proto::{DataLocation, DataType, PackedValues, TensorProto};

/// The most axes a tensor may have. ONNX sets no limit; numpy's is 64.
pub const MAX_RANK: usize = 64;

/// A decoded tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct RawTensor {
    /// The element type; never [`DataType::Undefined`].
    pub data_type: DataType,
    /// The shape; the product of its non-zero dims fits a `usize`.
    pub dims: Vec<usize>,
    /// The elements in row-major order.
    pub data: TensorData,
}

/// The elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// Numbers: little-endian, at any alignment. Elements narrower than a byte are packed low bits first across
    /// the whole tensor, the last byte filled up. Booleans are 0 or 1.
    Bytes(Bytes),
    /// Text.
    Strings(Vec<String>),
}

/// Why a tensor cannot be decoded.
#[derive(Debug, Error)]
#[error("tensor {tensor:?}: {problem}")]
pub struct TensorError {
    /// The tensor's name; empty where it has none.
    pub tensor: String,
    /// What is wrong with it.
    pub problem: TensorProblem,
}

/// What is wrong with a tensor.
#[derive(Debug, Error)]
pub enum TensorProblem {
    /// The element type is absent, undefined or unknown.
    #[error("element type {0} does not exist")]
    DataType(i32),
    /// The data location is neither the message nor an external file.
    #[error("data location {0} does not exist")]
    DataLocation(i32),
    /// A dim is below zero.
    #[error("dim {dim} at axis {axis}")]
    NegativeDim {
        /// The axis.
        axis: usize,
        /// The dim.
        dim: i64,
    },
    /// More axes than [`MAX_RANK`].
    #[error("{rank} axes, above the limit of {MAX_RANK}")]
    Rank {
        /// The axes found.
        rank: usize,
    },
    /// The elements or bytes of the shape are too many to count.
    #[error("a tensor of shape {dims:?} and type {data_type:?} does not fit the address space")]
    Overflow {
        /// The shape.
        dims: Vec<i64>,
        /// The element type.
        data_type: DataType,
    },
    /// A segment of a tensor, which no writer is known to use.
    #[error("the tensor is a segment of a larger one")]
    Segment,
    /// Elements in two places.
    #[error("elements in both {first} and {second}")]
    SeveralData {
        /// A field with elements.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// Elements in a field that the element type does not use.
    #[error("elements of type {data_type:?} in {field}")]
    WrongField {
        /// The field.
        field: &'static str,
        /// The element type.
        data_type: DataType,
    },
    /// The number of values is not what shape and type need.
    #[error("{found} values in {field} where shape and type need {expected}")]
    WrongCount {
        /// The field.
        field: &'static str,
        /// Values needed.
        expected: usize,
        /// Values found.
        found: usize,
    },
    /// The number of bytes is not what shape and type need.
    #[error("{found} bytes in {field} where shape and type need {expected}")]
    WrongBytes {
        /// The field.
        field: &'static str,
        /// Bytes needed.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// A value that the element type does not have.
    #[error("{value} at position {index} of {field} is no {data_type:?}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// Position in the field.
        index: usize,
        /// The value.
        value: i128,
        /// The element type.
        data_type: DataType,
    },
    /// The packed numbers are malformed; the scan of a file finds this first.
    #[error("{field} is malformed")]
    Malformed {
        /// The field.
        field: &'static str,
    },
    /// An element of text is not UTF-8.
    #[error("the text at position {index} is not UTF-8")]
    NotUtf8 {
        /// Position in `string_data`.
        index: usize,
    },
    /// External data cannot be had.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A sparse tensor is malformed.
    #[error(transparent)]
    Sparse(#[from] crate::sparse::SparseProblem),
}

/// Decodes `tensor`; elements outside the message come from `external`.
pub fn decode(tensor: &TensorProto, external: &ExternalFiles) -> Result<RawTensor, TensorError> {
    decode_unnamed(tensor, external).map_err(|problem| named(tensor, problem))
}

pub(crate) fn named(tensor: &TensorProto, problem: TensorProblem) -> TensorError {
    TensorError { tensor: tensor.name().to_owned(), problem }
}

fn decode_unnamed(tensor: &TensorProto, external: &ExternalFiles) -> Result<RawTensor, TensorProblem> {
    let data_type = data_type(tensor.data_type.unwrap_or(0))?;
    let dims = shape(&tensor.dims)?;
    let overflow = || TensorProblem::Overflow { dims: tensor.dims.clone(), data_type };
    let count = element_count(&dims).ok_or_else(overflow)?;
    if tensor.segment.is_some() {
        return Err(TensorProblem::Segment);
    }
    let source = source(tensor)?;
    let data = if data_type == DataType::String {
        strings(tensor, source, count)?
    } else {
        let expected = data_type
            .packed_bytes(count)
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(overflow)?;
        TensorData::Bytes(numbers(tensor, source, data_type, count, expected, external)?)
    };
    Ok(RawTensor { data_type, dims, data })
}

/// The element type with that number.
pub(crate) fn data_type(number: i32) -> Result<DataType, TensorProblem> {
    match DataType::try_from(number) {
        Ok(DataType::Undefined) | Err(_) => Err(TensorProblem::DataType(number)),
        Ok(data_type) => Ok(data_type),
    }
}

/// Dims that are not negative, and not too many.
pub(crate) fn shape(dims: &[i64]) -> Result<Vec<usize>, TensorProblem> {
    if dims.len() > MAX_RANK {
        return Err(TensorProblem::Rank { rank: dims.len() });
    }
    let dim = |(axis, &dim)| usize::try_from(dim).map_err(|_| TensorProblem::NegativeDim { axis, dim });
    dims.iter().enumerate().map(dim).collect()
}

/// The product of `dims`; `None` where that of the non-zero dims overflows, as strides would.
pub(crate) fn element_count(dims: &[usize]) -> Option<usize> {
    let product = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.max(1)))?;
    Some(if dims.contains(&0) { 0 } else { product })
}

/// The one field that holds the elements; `None` if all are empty.
fn source(tensor: &TensorProto) -> Result<Option<&'static str>, TensorProblem> {
    let location = tensor.data_location.unwrap_or(0);
    let location = DataLocation::try_from(location).map_err(|_| TensorProblem::DataLocation(location))?;
    let fields = [
        ("external_data", location == DataLocation::External),
        ("raw_data", tensor.raw_data.is_some()),
        ("float_data", !tensor.float_data.is_empty()),
        ("int32_data", !tensor.int32_data.is_empty()),
        ("string_data", !tensor.string_data.is_empty()),
        ("int64_data", !tensor.int64_data.is_empty()),
        ("double_data", !tensor.double_data.is_empty()),
        ("uint64_data", !tensor.uint64_data.is_empty()),
    ];
    let mut present = fields.iter().filter(|(_, present)| *present).map(|(field, _)| *field);
    let first = present.next();
    match (first, present.next()) {
        (Some(first), Some(second)) => Err(TensorProblem::SeveralData { first, second }),
        _ => Ok(first),
    }
}

fn strings(
    tensor: &TensorProto,
    source: Option<&'static str>,
    expected: usize,
) -> Result<TensorData, TensorProblem> {
    if let Some(field) = source.filter(|&field| field != "string_data") {
        return Err(TensorProblem::WrongField { field, data_type: DataType::String });
    }
    let found = tensor.string_data.len();
    if found != expected {
        return Err(TensorProblem::WrongCount { field: "string_data", expected, found });
    }
    let text = |(index, bytes): (usize, &Bytes)| match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(TensorProblem::NotUtf8 { index }),
    };
    Ok(TensorData::Strings(tensor.string_data.iter().enumerate().map(text).collect::<Result<_, _>>()?))
}

fn numbers(
    tensor: &TensorProto,
    source: Option<&'static str>,
    data_type: DataType,
    count: usize,
    expected: usize,
    external: &ExternalFiles,
) -> Result<Bytes, TensorProblem> {
    let (own_field, values) = own_field(tensor, data_type);
    match source {
        Some("external_data") => {
            let bytes = external.slice(&tensor.external_data, expected)?;
            check_booleans("external_data", data_type, &bytes)?;
            Ok(bytes)
        }
        Some("raw_data") => {
            let bytes = tensor.raw_data.clone().unwrap_or_default();
            check_length("raw_data", expected, bytes.len())?;
            check_booleans("raw_data", data_type, &bytes)?;
            Ok(bytes)
        }
        Some(field) if field != own_field => Err(TensorProblem::WrongField { field, data_type }),
        _ if matches!(own_field, "float_data" | "double_data") => {
            check_length(own_field, expected, values.wire().len())?;
            Ok(values.to_bytes())
        }
        _ => integers(own_field, values, data_type, count, expected),
    }
}

/// The numeric field that holds elements of a type when they are neither raw nor external.
fn own_field(tensor: &TensorProto, data_type: DataType) -> (&'static str, &PackedValues) {
    match data_type {
        DataType::Float | DataType::Complex64 => ("float_data", &tensor.float_data),
        DataType::Double | DataType::Complex128 => ("double_data", &tensor.double_data),
        DataType::Int64 => ("int64_data", &tensor.int64_data),
        DataType::Uint32 | DataType::Uint64 => ("uint64_data", &tensor.uint64_data),
        _ => ("int32_data", &tensor.int32_data),
    }
}

fn check_length(field: &'static str, expected: usize, found: usize) -> Result<(), TensorProblem> {
    if expected == found { Ok(()) } else { Err(TensorProblem::WrongBytes { field, expected, found }) }
}

fn check_booleans(field: &'static str, data_type: DataType, bytes: &[u8]) -> Result<(), TensorProblem> {
    if data_type != DataType::Bool {
        return Ok(());
    }
    match bytes.iter().position(|&byte| byte > 1) {
        Some(index) => {
            let value = i128::from(bytes[index]);
            Err(TensorProblem::OutOfRange { field, index, value, data_type })
        }
        None => Ok(()),
    }
}

/// Reads varints and writes each in the width that its type has.
fn integers(
    field: &'static str,
    values: &PackedValues,
    data_type: DataType,
    count: usize,
    byte_length: usize,
) -> Result<Bytes, TensorProblem> {
    let bits = data_type.bits().unwrap_or(0);
    // Two- and four-bit elements are written a byte at a time, six-bit elements one by one.
    let expected = if bits < 8 && bits != 6 { byte_length } else { count };
    let found = count_varints(values.wire());
    if found != expected {
        return Err(TensorProblem::WrongCount { field, expected, found });
    }
    let range = value_range(data_type);
    let mut packed = Vec::with_capacity(byte_length);
    let mut six_bits = SixBitPacker::default();
    let mut wire = values.wire();
    for index in 0..found {
        let (encoded, length) = varint(wire).map_err(|_| TensorProblem::Malformed { field })?;
        wire = &wire[length..];
        let value = match field {
            // Protobuf's int32 is the low half of the number, whatever stands above it.
            "int32_data" => i128::from(encoded as i32),
            "int64_data" => i128::from(encoded as i64),
            _ => i128::from(encoded),
        };
        if !range.contains(&value) {
            return Err(TensorProblem::OutOfRange { field, index, value, data_type });
        }
        if bits == 6 {
            six_bits.push(value as u8, &mut packed);
        } else {
            packed.extend_from_slice(&value.to_le_bytes()[..bits.div_ceil(8)]);
        }
    }
    six_bits.finish(&mut packed);
    if !wire.is_empty() {
        return Err(TensorProblem::Malformed { field });
    }
    Ok(Bytes::from(packed))
}

/// What one varint of a field may be, for elements of a type. Floats are written as their bits, and elements
/// below a byte as the byte they share.
fn value_range(data_type: DataType) -> std::ops::RangeInclusive<i128> {
    let signed = |bits: u32| -(1i128 << (bits - 1))..=(1i128 << (bits - 1)) - 1;
    let unsigned = |bits: u32| 0..=(1i128 << bits) - 1;
    match data_type {
        DataType::Int8 => signed(8),
        DataType::Int16 => signed(16),
        DataType::Int32 => signed(32),
        DataType::Int64 => signed(64),
        DataType::Bool => unsigned(1),
        DataType::Float6e2m3 | DataType::Float6e3m2 => unsigned(6),
        DataType::Uint16 | DataType::Float16 | DataType::Bfloat16 => unsigned(16),
        DataType::Uint32 => unsigned(32),
        DataType::Uint64 => unsigned(64),
        _ => unsigned(8),
    }
}

/// Writes six-bit elements as one stream of bits, low bits first.
#[derive(Default)]
struct SixBitPacker {
    pending: u32,
    pending_bits: u32,
}

impl SixBitPacker {
    fn push(&mut self, value: u8, packed: &mut Vec<u8>) {
        self.pending |= u32::from(value) << self.pending_bits;
        self.pending_bits += 6;
        if self.pending_bits >= 8 {
            packed.push(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    fn finish(self, packed: &mut Vec<u8>) {
        if self.pending_bits > 0 {
            packed.push(self.pending as u8);
        }
    }
}
