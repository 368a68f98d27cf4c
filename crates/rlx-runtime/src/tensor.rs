//! Tensors: what goes into executables and comes out.

use bytes::Bytes;
use rlx_cpu::memory::Aligned;
use rlx_ir::{DType, Element, Literal, LiteralError, TensorType};
use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

/// A tensor in the host's memory: row-major, aligned for its type. Cloning shares the bytes.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    dims: Vec<usize>,
    storage: Storage,
}

#[derive(Clone)]
enum Storage {
    /// Given from outside, perhaps a mapped file.
    Shared(Bytes),
    /// Allocated for an output.
    Owned(Arc<Aligned>),
}

/// Why bytes are no tensor.
pub type TensorError = LiteralError;

impl Tensor {
    /// A tensor of these elements, in row-major order.
    ///
    /// # Errors
    /// If they are not as many as the sizes say.
    pub fn from_slice<T: Element>(
        dims: impl Into<Vec<usize>>,
        elements: &[T],
    ) -> Result<Tensor, TensorError> {
        Literal::from_slice(dims, elements).map(Tensor::from)
    }

    /// A tensor over these bytes, which are copied only where they are not aligned for the type.
    ///
    /// # Errors
    /// If they are not as many as type and sizes need.
    pub fn from_bytes(
        dtype: DType,
        dims: impl Into<Vec<usize>>,
        bytes: impl Into<Bytes>,
    ) -> Result<Tensor, TensorError> {
        Literal::new(dtype, dims, bytes).map(Tensor::from)
    }

    pub(crate) fn owned(dtype: DType, dims: Vec<usize>, memory: Aligned) -> Tensor {
        Tensor { dtype, dims, storage: Storage::Owned(Arc::new(memory)) }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The type.
    pub fn tensor_type(&self) -> TensorType {
        TensorType::new(self.dtype, self.dims.as_slice())
    }

    /// The little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        let count = self.dtype.storage_bytes(&self.dims).unwrap_or(0);
        match &self.storage {
            Storage::Shared(bytes) => bytes,
            Storage::Owned(memory) => &memory.bytes()[..count],
        }
    }

    /// The elements, if `T` is the form of the element type.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        (T::DTYPE == self.dtype).then(|| self.bytes().chunks_exact(size_of::<T>()).map(T::read_le).collect())
    }

    /// The tensor as a literal of a graph; shares the bytes where it can.
    pub fn to_literal(&self) -> Literal {
        let bytes = match &self.storage {
            Storage::Shared(bytes) => bytes.clone(),
            Storage::Owned(_) => Bytes::copy_from_slice(self.bytes()),
        };
        Literal::new(self.dtype, self.dims.as_slice(), bytes)
            .unwrap_or_else(|e| unreachable!("a tensor's bytes are those of its type: {e}"))
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        self.bytes().as_ptr()
    }
}

impl From<Literal> for Tensor {
    fn from(literal: Literal) -> Tensor {
        let align = literal.dtype().bits().map_or(1, |bits| (bits as usize / 8).max(1));
        let bytes = literal.bytes();
        let aligned = bytes.as_ptr().addr().is_multiple_of(align);
        let storage = match (aligned, Aligned::copy_of(bytes)) {
            (false, Ok(copy)) => Storage::Owned(Arc::new(copy)),
            _ => Storage::Shared(bytes.clone()),
        };
        Tensor { dtype: literal.dtype(), dims: literal.dims().to_vec(), storage }
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.dims)
    }
}

/// The outputs of a run, by name; in the graph's order when iterated.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) tensors: Vec<Tensor>,
}

impl Outputs {
    /// The output of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.names.iter().position(|n| &**n == name).map(|i| &self.tensors[i])
    }

    /// Names and tensors, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.names.iter().map(|n| &**n).zip(&self.tensors)
    }

    /// The tensors, in order.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.tensors
    }

    /// The tensors by name.
    pub fn into_map(self) -> BTreeMap<String, Tensor> {
        self.names.iter().map(|n| n.to_string()).zip(self.tensors).collect()
    }
}

impl Index<&str> for Outputs {
    type Output = Tensor;
    /// The output of this name.
    ///
    /// # Panics
    /// If there is none; [`Outputs::get`] does not.
    fn index(&self, name: &str) -> &Tensor {
        match self.get(name) {
            Some(tensor) => tensor,
            None => panic!("no output {name:?}; there are {:?}", self.names),
        }
    }
}
