//! `.npy` files in and out: numpy's format for one array (versions 1.0, 2.0 and 3.0, by numpy's own description in
//! `numpy.lib.format`).
//!
//! Arrays are read to one form: row-major, little-endian. Reading takes no memory but that of the array, which the
//! file must hold in full, with nothing after it.

mod header;

use std::borrow::Cow;
use std::io::{self, Write};

pub use header::MAX_RANK;
use header::{Header, Order};

/// The element types that are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NpyType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed integer.
    I8,
    /// Signed integer.
    I16,
    /// Signed integer.
    I32,
    /// Signed integer.
    I64,
    /// Unsigned integer.
    U8,
    /// Unsigned integer.
    U16,
    /// Unsigned integer.
    U32,
    /// Unsigned integer.
    U64,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Two binary32, real part first.
    C64,
    /// Two binary64, real part first.
    C128,
    /// One byte without a type (`V1`).
    Void1,
    /// Two bytes without a type (`V2`). numpy has no bfloat16: what `ml_dtypes` saves of one is this. A reader must
    /// know from elsewhere what the bytes mean.
    Void2,
}

impl NpyType {
    fn letter_and_width(self) -> (u8, usize) {
        match self {
            Self::Bool => (b'b', 1),
            Self::I8 => (b'i', 1),
            Self::I16 => (b'i', 2),
            Self::I32 => (b'i', 4),
            Self::I64 => (b'i', 8),
            Self::U8 => (b'u', 1),
            Self::U16 => (b'u', 2),
            Self::U32 => (b'u', 4),
            Self::U64 => (b'u', 8),
            Self::F16 => (b'f', 2),
            Self::F32 => (b'f', 4),
            Self::F64 => (b'f', 8),
            Self::C64 => (b'c', 8),
            Self::C128 => (b'c', 16),
            Self::Void1 => (b'V', 1),
            Self::Void2 => (b'V', 2),
        }
    }

    /// Bytes of one element.
    pub fn width(self) -> usize {
        self.letter_and_width().1
    }

    /// Bytes of the numbers that an element is made of, which byte order applies to.
    fn part_width(self) -> usize {
        match self {
            Self::C64 | Self::C128 => self.width() / 2,
            // Bytes without a type have no order that could be turned.
            Self::Void1 | Self::Void2 => 1,
            _ => self.width(),
        }
    }
}

/// An array: row-major, little-endian, as many bytes as type and shape need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyArray {
    dtype: NpyType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Why an array could not be read, made or written.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The file does not begin as an npy file does.
    #[error("not an npy file")]
    Magic,
    /// The format version is not 1.0, 2.0 or 3.0.
    #[error("npy format version {major}.{minor} is not known")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// The header, or the length before it, is longer than what the file has left.
    #[error("the npy header has {length} bytes, the file has {left} left")]
    HeaderLength {
        /// Bytes that the header needs.
        length: u64,
        /// Bytes after the length.
        left: usize,
    },
    /// The header is not the dictionary that it must be.
    #[error("malformed npy header at byte {offset}: expected {expected}")]
    Header {
        /// Offset in the header.
        offset: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// The array holds Python objects, which only Python can read, by running what the file says.
    #[error("the array holds Python objects")]
    Objects,
    /// An element type that is not read: text, times, records, wide floats.
    #[error("the element type {0} is not supported")]
    ElementType(String),
    /// More axes than [`MAX_RANK`].
    #[error("the array has more than {MAX_RANK} axes")]
    Rank,
    /// The elements or bytes of the shape are too many to count.
    #[error("an array of shape {shape:?} does not fit the address space")]
    Overflow {
        /// The shape.
        shape: Vec<usize>,
    },
    /// The number of bytes is not what shape and type need.
    #[error("the array has {found} bytes where shape and type need {expected}")]
    Length {
        /// Bytes that shape and type need.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// An element of a boolean array is neither 0 nor 1.
    #[error("the boolean at byte {position} is {value}")]
    Boolean {
        /// Position among the elements as stored.
        position: usize,
        /// The byte.
        value: u8,
    },
    /// The stream could not be written.
    #[error("{0}")]
    Stream(#[from] io::Error),
}

impl NpyArray {
    /// An array of `bytes`, which are row-major and little-endian.
    ///
    /// Errors: [`NpyError::Length`], [`NpyError::Overflow`], [`NpyError::Rank`], [`NpyError::Boolean`].
    pub fn new(dtype: NpyType, shape: Vec<usize>, bytes: Vec<u8>) -> Result<Self, NpyError> {
        if shape.len() > MAX_RANK {
            return Err(NpyError::Rank);
        }
        let header = Header { dtype, big_endian: false, order: Order::RowMajor, shape };
        from_stored(header, Cow::Owned(bytes))
    }

    /// The element type.
    pub fn dtype(&self) -> NpyType {
        self.dtype
    }

    /// The shape; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, row-major and little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Type, shape and elements.
    pub fn into_parts(self) -> (NpyType, Vec<usize>, Vec<u8>) {
        (self.dtype, self.shape, self.bytes)
    }
}

/// Reads an npy file that is in memory.
pub fn read_npy(file: &[u8]) -> Result<NpyArray, NpyError> {
    let (header, start) = header::parse(file)?;
    from_stored(header, Cow::Borrowed(&file[start..]))
}

/// As [`read_npy`], in the memory that the file is in where its form allows.
pub(super) fn read_owned_npy(mut file: Vec<u8>) -> Result<NpyArray, NpyError> {
    let (header, start) = header::parse(&file)?;
    file.drain(..start);
    from_stored(header, Cow::Owned(file))
}

/// Writes `array` as an npy file of version 1.0, which every numpy reads.
pub fn write_npy(array: &NpyArray, mut writer: impl Write) -> Result<(), NpyError> {
    writer.write_all(&header::write(array.dtype, &array.shape))?;
    writer.write_all(&array.bytes)?;
    Ok(())
}

/// Brings the elements of a file to the one form.
fn from_stored(header: Header, stored: Cow<'_, [u8]>) -> Result<NpyArray, NpyError> {
    let Header { dtype, big_endian, order, shape } = header;
    // Zero dims count as one here: strides over the other axes must not overflow either.
    let expected = shape
        .iter()
        .try_fold(dtype.width(), |bytes, &dim| bytes.checked_mul(dim.max(1)))
        .filter(|&bytes| isize::try_from(bytes).is_ok());
    let expected = match expected {
        None => return Err(NpyError::Overflow { shape }),
        Some(_) if shape.contains(&0) => 0,
        Some(bytes) => bytes,
    };
    if stored.len() != expected {
        return Err(NpyError::Length { expected, found: stored.len() });
    }
    if dtype == NpyType::Bool
        && let Some(position) = stored.iter().position(|&byte| byte > 1)
    {
        return Err(NpyError::Boolean { position, value: stored[position] });
    }
    let mut bytes = match order {
        Order::ColumnMajor if shape.len() > 1 => row_major(&stored, &shape, dtype.width()),
        _ => stored.into_owned(),
    };
    let part = dtype.part_width();
    if big_endian && part > 1 {
        bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
    Ok(NpyArray { dtype, shape, bytes })
}

/// Reorders elements whose first axis varies fastest.
fn row_major(stored: &[u8], shape: &[usize], width: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(stored.len());
    let strides: Vec<usize> = shape
        .iter()
        .scan(width, |stride, &dim| {
            let this = *stride;
            *stride *= dim;
            Some(this)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut position = 0;
    while bytes.len() < stored.len() {
        bytes.extend_from_slice(&stored[position..position + width]);
        // Step the last axis; an axis at its end goes back to 0 and steps the one before it.
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            position += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            position -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    bytes
}
