//! Constant tensors: an element type, sizes, and the little-endian bytes, which may be a slice of a mapped file.

use crate::dtype::DType;
use crate::types::{Shape, TensorType};
use bytes::Bytes;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use xxhash_rust::xxh3::xxh3_128;

/// Literals up to this many bytes print in full and are compared by content when hash-consing.
pub const INLINE_BYTES: usize = 1024;

/// A constant tensor. Cloning shares the bytes. Rows of sub-byte types are byte-aligned, low bits first.
#[derive(Clone)]
pub struct Literal {
    dtype: DType,
    dims: Vec<usize>,
    bytes: Bytes,
    /// Made when first asked for, so that loading a model does not read its weights.
    hash: OnceLock<u128>,
}

/// The bytes do not fit the type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiteralError {
    /// The byte count is not what type and sizes need.
    #[error("{dtype}{dims:?} needs {expected} bytes, found {found}")]
    ByteCount {
        /// Element type.
        dtype: DType,
        /// Sizes.
        dims: Vec<usize>,
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The size overflows, the element type has no byte form, or the last axis is no multiple of the block.
    #[error(
        "{dtype}{dims:?} has no byte form (overflow, text, or a last axis that is no multiple of the block)"
    )]
    NoByteForm {
        /// Element type.
        dtype: DType,
        /// Sizes.
        dims: Vec<usize>,
    },
}

/// A Rust type that is the in-memory form of an element type.
pub trait Element: Copy {
    /// The element type.
    const DTYPE: DType;
    /// Appends the little-endian bytes.
    fn write_le(self, out: &mut Vec<u8>);
    /// Reads from exactly the element's bytes.
    fn read_le(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            fn write_le(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read_le(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }
    )*};
}
elements!(f64 => F64, f32 => F32, half::f16 => F16, half::bf16 => BF16, i64 => I64, i32 => I32, i16 => I16,
    i8 => I8, u64 => U64, u32 => U32, u16 => U16, u8 => U8);

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn write_le(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
    fn read_le(bytes: &[u8]) -> Self {
        bytes.iter().any(|b| *b != 0)
    }
}

impl Literal {
    /// A literal over these bytes.
    pub fn new(
        dtype: DType,
        dims: impl Into<Vec<usize>>,
        bytes: impl Into<Bytes>,
    ) -> Result<Literal, LiteralError> {
        let (dims, bytes) = (dims.into(), bytes.into());
        match dtype.storage_bytes(&dims) {
            None => Err(LiteralError::NoByteForm { dtype, dims }),
            Some(expected) if expected != bytes.len() => {
                Err(LiteralError::ByteCount { dtype, dims, expected, found: bytes.len() })
            }
            Some(_) => Ok(Literal { dtype, dims, bytes, hash: OnceLock::new() }),
        }
    }

    /// A literal of these elements, in row-major order.
    pub fn from_slice<T: Element>(
        dims: impl Into<Vec<usize>>,
        elements: &[T],
    ) -> Result<Literal, LiteralError> {
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        for element in elements {
            element.write_le(&mut bytes);
        }
        Literal::new(T::DTYPE, dims, bytes)
    }

    /// A scalar.
    pub fn scalar<T: Element>(element: T) -> Literal {
        let mut bytes = Vec::new();
        element.write_le(&mut bytes);
        Literal { dtype: T::DTYPE, dims: Vec::new(), bytes: bytes.into(), hash: OnceLock::new() }
    }

    /// A vector.
    pub fn vector<T: Element>(elements: &[T]) -> Literal {
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        for element in elements {
            element.write_le(&mut bytes);
        }
        Literal { dtype: T::DTYPE, dims: vec![elements.len()], bytes: bytes.into(), hash: OnceLock::new() }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The number of elements.
    pub fn element_count(&self) -> usize {
        self.dims.iter().product()
    }

    /// The little-endian bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The type.
    pub fn tensor_type(&self) -> TensorType {
        TensorType::new(self.dtype, Shape::from(self.dims.as_slice()))
    }

    /// The elements, if `T` is the form of this element type.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        (T::DTYPE == self.dtype).then(|| self.bytes.chunks_exact(size_of::<T>()).map(T::read_le).collect())
    }

    /// The elements as i64, for integer and bool types of 8 bits and more (u64 only where they fit).
    pub fn to_i64_vec(&self) -> Option<Vec<i64>> {
        fn widen<T: Element + TryInto<i64>>(literal: &Literal) -> Option<Vec<i64>> {
            literal.to_vec::<T>()?.into_iter().map(|v| v.try_into().ok()).collect()
        }
        match self.dtype {
            DType::I64 => self.to_vec::<i64>(),
            DType::I32 => widen::<i32>(self),
            DType::I16 => widen::<i16>(self),
            DType::I8 => widen::<i8>(self),
            DType::U64 => widen::<u64>(self),
            DType::U32 => widen::<u32>(self),
            DType::U16 => widen::<u16>(self),
            DType::U8 => widen::<u8>(self),
            DType::Bool => Some(self.to_vec::<bool>()?.into_iter().map(i64::from).collect()),
            _ => None,
        }
    }

    /// The same bytes with other sizes of the same byte count.
    pub fn reshaped(&self, dims: impl Into<Vec<usize>>) -> Result<Literal, LiteralError> {
        Literal::new(self.dtype, dims, self.bytes.clone())
    }

    /// A 128-bit hash (XXH3) of type, sizes and bytes; the same in every run and on every machine.
    pub fn content_hash(&self) -> u128 {
        *self.hash.get_or_init(|| {
            let mut header = format!("{}{:?}", self.dtype, self.dims).into_bytes();
            header.extend_from_slice(&xxh3_128(&self.bytes).to_le_bytes());
            xxh3_128(&header)
        })
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.dtype == other.dtype
            && self.dims == other.dims
            && (std::ptr::eq(self.bytes.as_ptr(), other.bytes.as_ptr()) || self.bytes == other.bytes)
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dtype.hash(state);
        self.dims.hash(state);
        // Large literals collide on purpose: hashing them would read the weights.
        if self.bytes.len() <= INLINE_BYTES {
            self.bytes.hash(state);
        }
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.dims)
    }
}
