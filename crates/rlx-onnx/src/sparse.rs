//! `SparseTensorProto` made dense.
//!
//! Values are a list of N elements. Indices are N row-major positions, or N rows of one index per axis; they must
//! ascend, without repetition (IR specification of onnx 1.23.2). All other elements are zero.

use bytes::Bytes;
use thiserror::Error;

use crate::external::ExternalFiles;
use crate::proto::{DataType, SparseTensorProto, TensorProto};
use crate::tensor::{self, RawTensor, TensorData, TensorError, TensorProblem};

/// What is wrong with a sparse tensor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SparseProblem {
    /// No values or no indices.
    #[error("the sparse tensor has no {0}")]
    Missing(&'static str),
    /// Values of text or narrower than a byte.
    #[error("sparse tensors of type {0:?} cannot be made dense")]
    ElementType(DataType),
    /// Values that are not a list.
    #[error("the values have shape {0:?}; they must have one axis")]
    ValuesShape(Vec<usize>),
    /// Indices that are not 64-bit integers, or neither a list nor rows of one index per axis.
    #[error("the indices have type {data_type:?} and shape {dims:?}, for {values} values of rank {rank}")]
    Indices {
        /// Their type.
        data_type: DataType,
        /// Their shape.
        dims: Vec<usize>,
        /// The number of values.
        values: usize,
        /// The axes of the dense tensor.
        rank: usize,
    },
    /// An index beyond its dim.
    #[error("index {index} of value {value} is outside 0..{bound}")]
    IndexOutOfRange {
        /// Position of the value.
        value: usize,
        /// The index.
        index: i64,
        /// The dim, or the number of elements.
        bound: usize,
    },
    /// Indices that do not ascend.
    #[error("the index of value {value} is not above the one before it")]
    NotAscending {
        /// Position of the value.
        value: usize,
    },
    /// The dense tensor is larger than the limit.
    #[error("the dense tensor has {bytes} bytes, above the limit of {limit}")]
    TooLarge {
        /// Bytes of the dense tensor.
        bytes: usize,
        /// The limit, an option of the load.
        limit: u64,
    },
}

/// The dense form of `sparse`, if it has at most `max_bytes`.
pub fn to_dense(
    sparse: &SparseTensorProto,
    external: &ExternalFiles,
    max_bytes: u64,
) -> Result<RawTensor, TensorError> {
    // A sparse tensor has the name of its values.
    let unnamed = TensorProto::default();
    let name_of = sparse.values.as_ref().unwrap_or(&unnamed);
    let problem = |problem: SparseProblem| tensor::named(name_of, problem.into());
    let values = sparse.values.as_ref().ok_or_else(|| problem(SparseProblem::Missing("values")))?;
    let indices = sparse.indices.as_ref().ok_or_else(|| problem(SparseProblem::Missing("indices")))?;
    let values = tensor::decode(values, external)?;
    let indices = tensor::decode(indices, external)?;
    dense(sparse, &values, &indices, max_bytes).map_err(|problem| tensor::named(name_of, problem))
}

fn dense(
    sparse: &SparseTensorProto,
    values: &RawTensor,
    indices: &RawTensor,
    max_bytes: u64,
) -> Result<RawTensor, TensorProblem> {
    let data_type = values.data_type;
    let (TensorData::Bytes(elements), Some(width)) =
        (&values.data, data_type.bits().filter(|bits| bits % 8 == 0).map(|bits| bits / 8))
    else {
        return Err(SparseProblem::ElementType(data_type).into());
    };
    let &[value_count] = values.dims.as_slice() else {
        return Err(SparseProblem::ValuesShape(values.dims.clone()).into());
    };
    let dims = tensor::shape(&sparse.dims)?;
    let overflow = || TensorProblem::Overflow { dims: sparse.dims.clone(), data_type };
    let count = tensor::element_count(&dims).ok_or_else(overflow)?;
    let bytes = data_type.packed_bytes(count).ok_or_else(overflow)?;
    if bytes as u64 > max_bytes {
        return Err(SparseProblem::TooLarge { bytes, limit: max_bytes }.into());
    }
    let columns = match *indices.dims.as_slice() {
        [rows] if rows == value_count => vec![count],
        [rows, columns] if rows == value_count && columns == dims.len() => dims.clone(),
        _ => Vec::new(),
    };
    let (TensorData::Bytes(index_bytes), DataType::Int64, false) =
        (&indices.data, indices.data_type, columns.is_empty())
    else {
        let indices = SparseProblem::Indices {
            data_type: indices.data_type,
            dims: indices.dims.clone(),
            values: value_count,
            rank: dims.len(),
        };
        return Err(indices.into());
    };
    let mut dense = vec![0; bytes];
    let mut last = None;
    let rows = index_bytes.chunks_exact(8 * columns.len());
    for (value, (row, element)) in rows.zip(elements.chunks_exact(width)).enumerate() {
        let position = position(row, &columns, value)?;
        if last.is_some_and(|last| position <= last) {
            return Err(SparseProblem::NotAscending { value }.into());
        }
        last = Some(position);
        dense[position * width..][..width].copy_from_slice(element);
    }
    Ok(RawTensor { data_type, dims, data: TensorData::Bytes(Bytes::from(dense)) })
}

/// The row-major position of one row of indices; each is within its bound, so the position is within the tensor.
fn position(row: &[u8], bounds: &[usize], value: usize) -> Result<usize, SparseProblem> {
    let (indices, _) = row.as_chunks::<8>();
    let mut position = 0;
    for (&bytes, &bound) in indices.iter().zip(bounds) {
        let index = i64::from_le_bytes(bytes);
        match usize::try_from(index) {
            Ok(within) if within < bound => position = position * bound + within,
            _ => return Err(SparseProblem::IndexOutOfRange { value, index, bound }),
        }
    }
    Ok(position)
}
