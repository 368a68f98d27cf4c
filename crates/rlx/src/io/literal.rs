//! Arrays of npy files as constants of a graph, and back.

use super::npy::{NpyArray, NpyType};
use rlx_ir::{DType, Literal, LiteralError};

/// The constant with an array's elements. The two types without a name are refused: what their bytes mean must be
/// said by `untyped` (bfloat16, as `ml_dtypes` writes it, is `V2`).
pub fn literal_from_npy(array: NpyArray, untyped: Option<DType>) -> Result<Literal, LiteralError> {
    let (kind, dims, bytes) = array.into_parts();
    let dtype = match kind {
        NpyType::Bool => DType::Bool,
        NpyType::I8 => DType::I8,
        NpyType::I16 => DType::I16,
        NpyType::I32 => DType::I32,
        NpyType::I64 => DType::I64,
        NpyType::U8 => DType::U8,
        NpyType::U16 => DType::U16,
        NpyType::U32 => DType::U32,
        NpyType::U64 => DType::U64,
        NpyType::F16 => DType::F16,
        NpyType::F32 => DType::F32,
        NpyType::F64 => DType::F64,
        NpyType::C64 => DType::C64,
        NpyType::C128 => DType::C128,
        NpyType::Void1 | NpyType::Void2 => {
            let width = if kind == NpyType::Void1 { 8 } else { 16 };
            match untyped.filter(|d| d.bits() == Some(width)) {
                Some(dtype) => dtype,
                None => {
                    return Err(LiteralError::NoByteForm { dtype: untyped.unwrap_or(DType::String), dims });
                }
            }
        }
    };
    Literal::new(dtype, dims, bytes)
}

/// The array with a constant's elements: types that numpy lacks keep their bytes as `V2` and `V1`; `None` for those
/// of less than a byte, for block formats, and for more axes than numpy has.
pub fn npy_from_literal(literal: &Literal) -> Option<NpyArray> {
    let kind = match literal.dtype() {
        DType::Bool => NpyType::Bool,
        DType::I8 => NpyType::I8,
        DType::I16 => NpyType::I16,
        DType::I32 => NpyType::I32,
        DType::I64 => NpyType::I64,
        DType::U8 => NpyType::U8,
        DType::U16 => NpyType::U16,
        DType::U32 => NpyType::U32,
        DType::U64 => NpyType::U64,
        DType::F16 => NpyType::F16,
        DType::F32 => NpyType::F32,
        DType::F64 => NpyType::F64,
        DType::C64 => NpyType::C64,
        DType::C128 => NpyType::C128,
        dtype => match dtype.bits() {
            Some(8) => NpyType::Void1,
            Some(16) => NpyType::Void2,
            _ => return None,
        },
    };
    NpyArray::new(kind, literal.dims().to_vec(), literal.bytes().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_come_back_from_their_arrays() {
        let literals = [
            Literal::vector(&[1.5f32, -2.0]),
            Literal::scalar(true),
            Literal::from_slice([2, 1], &[1u64, u64::MAX]).unwrap(),
            Literal::new(DType::BF16, [1], vec![0x80, 0x3f]).unwrap(),
            Literal::new(DType::F8E5M2, [2], vec![0x3c, 0x7c]).unwrap(),
        ];
        for literal in literals {
            let array = npy_from_literal(&literal).unwrap();
            assert_eq!(literal_from_npy(array, Some(literal.dtype())).unwrap(), literal);
        }
    }

    #[test]
    fn bytes_without_a_type_are_refused_unless_it_is_given() {
        let array = || NpyArray::new(NpyType::Void2, vec![1], vec![0, 0]).unwrap();
        assert!(literal_from_npy(array(), None).is_err());
        assert!(literal_from_npy(array(), Some(DType::F32)).is_err());
        assert!(literal_from_npy(array(), Some(DType::BF16)).is_ok());
    }
}
