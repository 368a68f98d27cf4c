//! Tensors of a file to constants of a graph. Bytes are shared with the file wherever the two forms agree.

use rlx_ir::{DType, Literal};

use crate::error::NodeProblem;
use crate::proto::DataType;
use crate::tensor::{RawTensor, TensorData, element_count};
use crate::values::{Constant, Text};

/// The element type of RLX for one of ONNX; `None` for the undefined type and the 6-bit floats.
pub fn dtype(data_type: DataType) -> Option<DType> {
    Some(match data_type {
        DataType::Undefined | DataType::Float6e2m3 | DataType::Float6e3m2 => return None,
        DataType::Float => DType::F32,
        DataType::Double => DType::F64,
        DataType::Float16 => DType::F16,
        DataType::Bfloat16 => DType::BF16,
        DataType::Float8e4m3fn => DType::F8E4M3FN,
        DataType::Float8e4m3fnuz => DType::F8E4M3FNUZ,
        DataType::Float8e5m2 => DType::F8E5M2,
        DataType::Float8e5m2fnuz => DType::F8E5M2FNUZ,
        DataType::Float4e2m1 => DType::F4E2M1,
        DataType::Float8e8m0 => DType::E8M0,
        DataType::Int64 => DType::I64,
        DataType::Int32 => DType::I32,
        DataType::Int16 => DType::I16,
        DataType::Int8 => DType::I8,
        DataType::Int4 => DType::I4,
        DataType::Int2 => DType::I2,
        DataType::Uint64 => DType::U64,
        DataType::Uint32 => DType::U32,
        DataType::Uint16 => DType::U16,
        DataType::Uint8 => DType::U8,
        DataType::Uint4 => DType::U4,
        DataType::Uint2 => DType::U2,
        DataType::Bool => DType::Bool,
        DataType::Complex64 => DType::C64,
        DataType::Complex128 => DType::C128,
        DataType::String => DType::String,
    })
}

/// The element type with this number in `TensorProto.DataType`.
pub(crate) fn dtype_of_number(number: i64) -> Result<DType, NodeProblem> {
    let data_type = i32::try_from(number).ok().and_then(|n| DataType::try_from(n).ok());
    let data_type = data_type.unwrap_or(DataType::Undefined);
    dtype(data_type).ok_or(NodeProblem::ElementType(data_type))
}

/// A decoded tensor as a constant. Elements narrower than a byte are re-packed where a row does not fill its last
/// byte, because RLX aligns rows; all else shares the bytes.
pub fn constant(tensor: RawTensor) -> Result<Constant, NodeProblem> {
    let bytes = match tensor.data {
        TensorData::Strings(elements) => return Ok(Constant::Text(Text { dims: tensor.dims, elements })),
        TensorData::Bytes(bytes) => bytes,
    };
    let dtype = dtype(tensor.data_type).ok_or(NodeProblem::ElementType(tensor.data_type))?;
    let row = tensor.dims.last().copied().unwrap_or(1);
    let bits = dtype.bits().unwrap_or(8) as usize;
    let bytes = match element_count(&tensor.dims) {
        Some(count) if bits < 8 && row % (8 / bits) != 0 => align_rows(&bytes, bits, row, count).into(),
        _ => bytes,
    };
    Ok(Constant::Tensor(Literal::new(dtype, tensor.dims, bytes)?))
}

/// Packs elements of `bits` bits again so that each row of `row` begins with a byte.
fn align_rows(packed: &[u8], bits: usize, row: usize, count: usize) -> Vec<u8> {
    let per_byte = 8 / bits;
    let row_bytes = row.div_ceil(per_byte);
    let mask = (1u8 << bits) - 1;
    let mut aligned = vec![0; row_bytes * (count / row.max(1))];
    for i in 0..count {
        let element = packed[i / per_byte] >> (i % per_byte * bits) & mask;
        let (r, c) = (i / row, i % row);
        aligned[r * row_bytes + c / per_byte] |= element << (c % per_byte * bits);
    }
    aligned
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn odd_rows_of_four_bit_elements_are_aligned() {
        let data = TensorData::Bytes(Bytes::from_static(&[0x21, 0x43, 0x65]));
        let tensor = RawTensor { data_type: DataType::Uint4, dims: vec![2, 3], data };
        let Ok(Constant::Tensor(literal)) = constant(tensor) else { panic!("a tensor") };
        assert_eq!(literal.bytes().as_ref(), &[0x21, 0x03, 0x54, 0x06]);
    }

    #[test]
    fn numbers_share_the_bytes_of_the_file() {
        let bytes = Bytes::from(vec![0u8; 24]);
        let data = TensorData::Bytes(bytes.clone());
        let tensor = RawTensor { data_type: DataType::Float, dims: vec![2, 3], data };
        let Ok(Constant::Tensor(literal)) = constant(tensor) else { panic!("a tensor") };
        assert_eq!(literal.bytes().as_ptr(), bytes.as_ptr());
    }
}
