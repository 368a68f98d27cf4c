//! Tensors of the oracle: carriers of elements, and their way from and to literals.

use crate::numeric::minifloat::{ScaleRounding, decode_e8m0, encode_e8m0};
use crate::numeric::wrap::Integer;
use crate::precision::minifloat;
use bytes::Bytes;
use half::{bf16, f16};
use rlx_ir::{BlockFormat, DType, DTypeClass, Element, Literal};
use std::rc::Rc;

/// A tensor: the declared element type, sizes, and elements in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub data: Rc<Data>,
}

/// Elements. Bools are unsigned integers of one bit.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Float(Vec<f64>),
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    Complex(Vec<(f64, f64)>),
    /// Block-quantised bytes; their rows are only moved whole.
    Blocks(Blocks),
}

/// Blocks one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub format: BlockFormat,
    pub bytes: Bytes,
}

impl Blocks {
    /// The blocks in which the elements of `sources` begin, which are whole blocks of one of `parts`.
    fn pick(parts: &[&Data], sources: impl Iterator<Item = (usize, usize)>, format: BlockFormat) -> Data {
        let (length, width) = (format.block_len(), format.block_bytes());
        let mut bytes = Vec::new();
        for (part, element) in sources.step_by(length) {
            if let Data::Blocks(blocks) = parts[part] {
                let at = element / length * width;
                bytes.extend_from_slice(&blocks.bytes[at..at + width]);
            }
        }
        Data::Blocks(Blocks { format, bytes: bytes.into() })
    }
}

impl Data {
    /// The elements at `indices`; blocks have none.
    pub(crate) fn pick(&self, indices: &[usize]) -> Data {
        match self {
            Data::Float(v) => Data::Float(indices.iter().map(|i| v[*i]).collect()),
            Data::Signed(v) => Data::Signed(indices.iter().map(|i| v[*i]).collect()),
            Data::Unsigned(v) => Data::Unsigned(indices.iter().map(|i| v[*i]).collect()),
            Data::Complex(v) => Data::Complex(indices.iter().map(|i| v[*i]).collect()),
            Data::Blocks(b) => Blocks::pick(&[self], indices.iter().map(|i| (0, *i)), b.format),
        }
    }

    /// The elements at `indices` of the concatenation of `parts`, which have one carrier.
    pub(crate) fn pick_from(parts: &[&Data], sources: &[(usize, usize)]) -> Data {
        macro_rules! pick {
            ($variant:ident, $zero:expr) => {
                Data::$variant(
                    sources
                        .iter()
                        .map(|(part, i)| match parts[*part] {
                            Data::$variant(v) => v[*i],
                            _ => $zero,
                        })
                        .collect(),
                )
            };
        }
        match parts.first() {
            Some(Data::Float(_)) | None => pick!(Float, 0.0),
            Some(Data::Signed(_)) => pick!(Signed, 0),
            Some(Data::Unsigned(_)) => pick!(Unsigned, 0),
            Some(Data::Complex(_)) => pick!(Complex, (0.0, 0.0)),
            Some(Data::Blocks(b)) => Blocks::pick(parts, sources.iter().copied(), b.format),
        }
    }

    /// Stacks the elements of tensors of one carrier, one after the other.
    pub(crate) fn append(&mut self, other: &Data) {
        match (self, other) {
            (Data::Float(a), Data::Float(b)) => a.extend_from_slice(b),
            (Data::Signed(a), Data::Signed(b)) => a.extend_from_slice(b),
            (Data::Unsigned(a), Data::Unsigned(b)) => a.extend_from_slice(b),
            (Data::Complex(a), Data::Complex(b)) => a.extend_from_slice(b),
            (Data::Blocks(a), Data::Blocks(b)) => a.bytes = [&a.bytes[..], &b.bytes[..]].concat().into(),
            _ => {}
        }
    }

    /// No elements, in the carrier of `dtype`. Text has no carrier and gets that of floats.
    pub(crate) fn empty(dtype: DType) -> Data {
        if let DType::Block(format) = dtype {
            return Data::Blocks(Blocks { format, bytes: Bytes::new() });
        }
        match dtype.class() {
            DTypeClass::Float | DTypeClass::String | DTypeClass::Block => Data::Float(Vec::new()),
            DTypeClass::Signed => Data::Signed(Vec::new()),
            DTypeClass::Unsigned | DTypeClass::Bool => Data::Unsigned(Vec::new()),
            DTypeClass::Complex => Data::Complex(Vec::new()),
        }
    }
}

impl Tensor {
    pub(crate) fn new(dtype: DType, dims: Vec<usize>, data: Data) -> Tensor {
        Tensor { dtype, dims, data: Rc::new(data) }
    }

    pub(crate) fn floats(dtype: DType, dims: Vec<usize>, elements: Vec<f64>) -> Tensor {
        Tensor::new(dtype, dims, Data::Float(elements))
    }

    pub(crate) fn i64s(dims: Vec<usize>, elements: Vec<i64>) -> Tensor {
        Tensor::new(DType::I64, dims, Data::Signed(elements))
    }

    pub(crate) fn bools(dims: Vec<usize>, elements: impl Iterator<Item = bool>) -> Tensor {
        Tensor::new(DType::Bool, dims, Data::Unsigned(elements.map(u64::from).collect()))
    }

    /// The number of elements.
    pub(crate) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// The bytes that the carrier takes.
    pub(crate) fn carrier_bytes(&self) -> usize {
        match &*self.data {
            Data::Complex(v) => v.len() * 16,
            Data::Blocks(b) => b.bytes.len(),
            Data::Float(v) => v.len() * 8,
            Data::Signed(v) => v.len() * 8,
            Data::Unsigned(v) => v.len() * 8,
        }
    }

    pub(crate) fn as_floats(&self) -> &[f64] {
        match &*self.data {
            Data::Float(v) => v,
            _ => &[],
        }
    }

    /// Indices and other integers, whatever their signedness.
    pub(crate) fn to_i64s(&self) -> Vec<i64> {
        match &*self.data {
            Data::Signed(v) => v.clone(),
            Data::Unsigned(v) => v.iter().map(|x| i64::try_from(*x).unwrap_or(i64::MAX)).collect(),
            _ => Vec::new(),
        }
    }

    /// The only element of an integer or bool scalar.
    pub(crate) fn scalar_i64(&self) -> i64 {
        self.to_i64s().first().copied().unwrap_or(0)
    }

    /// The elements as complex numbers.
    pub(crate) fn to_complex(&self) -> Vec<(f64, f64)> {
        match &*self.data {
            Data::Complex(v) => v.clone(),
            Data::Float(v) => v.iter().map(|x| (*x, 0.0)).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn reshaped(&self, dims: Vec<usize>) -> Tensor {
        Tensor { dtype: self.dtype, dims, data: Rc::clone(&self.data) }
    }

    /// The elements at `indices`, as a tensor of sizes `dims`.
    pub(crate) fn picked(&self, dims: Vec<usize>, indices: &[usize]) -> Tensor {
        Tensor::new(self.dtype, dims, self.data.pick(indices))
    }

    /// Reads a literal. `None` for text.
    pub(crate) fn from_literal(literal: &Literal) -> Option<Tensor> {
        let bytes = literal.bytes();
        let data = match literal.dtype() {
            DType::F64 => Data::Float(read::<f64, _>(bytes, |x| x)),
            DType::F32 => Data::Float(read::<f32, _>(bytes, f64::from)),
            DType::F16 => Data::Float(read::<f16, _>(bytes, f64::from)),
            DType::BF16 => Data::Float(read::<bf16, _>(bytes, f64::from)),
            DType::I64 => Data::Signed(read::<i64, _>(bytes, |x| x)),
            DType::I32 => Data::Signed(read::<i32, _>(bytes, i64::from)),
            DType::I16 => Data::Signed(read::<i16, _>(bytes, i64::from)),
            DType::I8 => Data::Signed(read::<i8, _>(bytes, i64::from)),
            DType::U64 => Data::Unsigned(read::<u64, _>(bytes, |x| x)),
            DType::U32 => Data::Unsigned(read::<u32, _>(bytes, u64::from)),
            DType::U16 => Data::Unsigned(read::<u16, _>(bytes, u64::from)),
            DType::U8 => Data::Unsigned(read::<u8, _>(bytes, u64::from)),
            DType::Bool => Data::Unsigned(read::<bool, _>(bytes, u64::from)),
            DType::C64 => Data::Complex(pairs(read::<f32, _>(bytes, f64::from))),
            DType::C128 => Data::Complex(pairs(read::<f64, _>(bytes, |x| x))),
            DType::E8M0 => Data::Float(bytes.iter().map(|b| decode_e8m0(*b)).collect()),
            DType::I4 | DType::I2 => {
                let bits = literal.dtype().bits()?;
                Data::Signed(unpack(literal, bits).into_iter().map(|c| i64::from(c).wrap(bits)).collect())
            }
            DType::U4 | DType::U2 => {
                let bits = literal.dtype().bits()?;
                Data::Unsigned(unpack(literal, bits).into_iter().map(u64::from).collect())
            }
            DType::F4E2M1 | DType::F8E4M3FN | DType::F8E4M3FNUZ | DType::F8E5M2 | DType::F8E5M2FNUZ => {
                let format = minifloat(literal.dtype())?;
                let codes = unpack(literal, format.width());
                Data::Float(codes.into_iter().map(|c| format.decode(c.into())).collect())
            }
            DType::Block(format) => Data::Blocks(Blocks { format, bytes: bytes.clone() }),
            DType::String => return None,
        };
        Some(Tensor::new(literal.dtype(), literal.dims().to_vec(), data))
    }

    /// The literal of the declared type; floats are rounded to it.
    pub(crate) fn to_literal(&self) -> Option<Literal> {
        self.to_literal_as(self.dtype)
    }

    /// The literal of another float type: f64 for the wide results of narrow declared types.
    pub(crate) fn to_literal_as(&self, dtype: DType) -> Option<Literal> {
        let mut bytes = Vec::new();
        match &*self.data {
            Data::Float(v) => match dtype {
                DType::F64 => v.iter().for_each(|x| x.write_le(&mut bytes)),
                DType::F32 => v.iter().for_each(|x| (*x as f32).write_le(&mut bytes)),
                DType::E8M0 => bytes.extend(v.iter().map(|x| encode_e8m0(*x, false, ScaleRounding::Nearest))),
                _ => {
                    let format = minifloat(dtype)?;
                    let codes: Vec<u32> = v.iter().map(|x| format.encode(*x, false)).collect();
                    match format.width() {
                        16 => codes.iter().for_each(|c| (*c as u16).write_le(&mut bytes)),
                        bits => bytes = pack(&codes, &self.dims, bits),
                    }
                }
            },
            Data::Complex(v) => v.iter().for_each(|(re, im)| {
                if dtype == DType::C64 {
                    (*re as f32).write_le(&mut bytes);
                    (*im as f32).write_le(&mut bytes);
                } else {
                    re.write_le(&mut bytes);
                    im.write_le(&mut bytes);
                }
            }),
            Data::Signed(v) => write_integers(v.iter().map(|x| *x as u64), dtype, &self.dims, &mut bytes)?,
            Data::Unsigned(v) => write_integers(v.iter().copied(), dtype, &self.dims, &mut bytes)?,
            Data::Blocks(b) => bytes.extend_from_slice(&b.bytes),
        }
        Literal::new(dtype, self.dims.clone(), bytes).ok()
    }
}

fn read<T: Element, U>(bytes: &[u8], convert: impl Fn(T) -> U) -> Vec<U> {
    bytes.chunks_exact(size_of::<T>()).map(|c| convert(T::read_le(c))).collect()
}

fn pairs(flat: Vec<f64>) -> Vec<(f64, f64)> {
    flat.chunks_exact(2).map(|p| (p[0], p[1])).collect()
}

/// The codes of sub-byte or byte elements; rows are byte-aligned, low bits first.
fn unpack(literal: &Literal, bits: u32) -> Vec<u8> {
    let row = literal.dims().last().copied().unwrap_or(1);
    let row_bytes = (row * bits as usize).div_ceil(8);
    let mask = if bits >= 8 { 0xff } else { (1u8 << bits) - 1 };
    let mut codes = Vec::with_capacity(literal.element_count());
    if row_bytes == 0 {
        return codes;
    }
    for bytes in literal.bytes().chunks_exact(row_bytes) {
        codes.extend((0..row).map(|i| (bytes[i * bits as usize / 8] >> (i * bits as usize % 8)) & mask));
    }
    codes
}

fn pack(codes: &[u32], dims: &[usize], bits: u32) -> Vec<u8> {
    let row = dims.last().copied().unwrap_or(1);
    let row_bytes = (row * bits as usize).div_ceil(8);
    let mut bytes = Vec::new();
    if row == 0 {
        return bytes;
    }
    for codes in codes.chunks_exact(row) {
        let start = bytes.len();
        bytes.resize(start + row_bytes, 0);
        for (i, code) in codes.iter().enumerate() {
            let bit = i * bits as usize;
            bytes[start + bit / 8] |= (*code as u8) << (bit % 8);
        }
    }
    bytes
}

fn write_integers(
    elements: impl Iterator<Item = u64>,
    dtype: DType,
    dims: &[usize],
    bytes: &mut Vec<u8>,
) -> Option<()> {
    match dtype.bits()? {
        64 => elements.for_each(|x| x.write_le(bytes)),
        32 => elements.for_each(|x| (x as u32).write_le(bytes)),
        16 => elements.for_each(|x| (x as u16).write_le(bytes)),
        8 => elements.for_each(|x| bytes.push(x as u8)),
        bits => {
            let mask = (1u32 << bits) - 1;
            let codes: Vec<u32> = elements.map(|x| x as u32 & mask).collect();
            *bytes = pack(&codes, dims, bits);
        }
    }
    Some(())
}

/// Row-major strides.
pub(crate) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    strides
}

/// The positions `offset + Σ index · stride` of all indices of a tensor of sizes `dims`, in row-major order.
pub(crate) fn walk(dims: &[usize], strides: &[isize], offset: isize) -> Vec<usize> {
    let count: usize = dims.iter().product();
    let mut positions = Vec::with_capacity(count);
    let mut index = vec![0usize; dims.len()];
    let mut position = offset;
    for _ in 0..count {
        positions.push(position as usize);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            position += strides[axis];
            if index[axis] < dims[axis] {
                break;
            }
            position -= strides[axis] * dims[axis] as isize;
            index[axis] = 0;
        }
    }
    positions
}
