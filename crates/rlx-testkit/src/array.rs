//! Arrays of f64: what independent formulas are written in, and what literals of any number type become.
//!
//! An integer beyond 2^53 does not fit an f64; cases about such integers give their expected values as literals.

use rlx_eval::numeric::minifloat::{self, MiniFloat, ScaleRounding, decode_e8m0, encode_e8m0};
use rlx_ir::{DType, Literal};

/// Numbers in row-major order. A complex tensor has one more axis, last, of size 2: real and imaginary part.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The sizes.
    pub dims: Vec<usize>,
    /// The elements.
    pub data: Vec<f64>,
}

/// The parameters of the floats of at most 16 bits.
fn minifloat(dtype: DType) -> Option<MiniFloat> {
    Some(match dtype {
        DType::F16 => minifloat::F16,
        DType::BF16 => minifloat::BF16,
        DType::F8E4M3FN => minifloat::F8E4M3FN,
        DType::F8E4M3FNUZ => minifloat::F8E4M3FNUZ,
        DType::F8E5M2 => minifloat::F8E5M2,
        DType::F8E5M2FNUZ => minifloat::F8E5M2FNUZ,
        DType::F4E2M1 => minifloat::F4E2M1,
        _ => return None,
    })
}

impl Array {
    /// An array; the number of elements must be the product of the sizes.
    ///
    /// # Panics
    /// If it is not: a fault of the case that is being written.
    pub fn new(dims: impl Into<Vec<usize>>, data: impl Into<Vec<f64>>) -> Array {
        let (dims, data) = (dims.into(), data.into());
        assert_eq!(dims.iter().product::<usize>(), data.len(), "elements of an array of sizes {dims:?}");
        Array { dims, data }
    }

    /// A number without axes.
    pub fn scalar(value: f64) -> Array {
        Array::new([], [value])
    }

    /// The array whose element at each index is `element(index)`.
    pub fn from_fn(dims: impl Into<Vec<usize>>, mut element: impl FnMut(&[usize]) -> f64) -> Array {
        let dims = dims.into();
        let mut data = Vec::with_capacity(dims.iter().product());
        for_each_index(&dims, |index| data.push(element(index)));
        Array { dims, data }
    }

    /// The element at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[self.offset(index)]
    }

    /// The position of an index in [`Self::data`].
    pub fn offset(&self, index: &[usize]) -> usize {
        debug_assert_eq!(index.len(), self.dims.len());
        index.iter().zip(&self.dims).fold(0, |offset, (i, size)| {
            debug_assert!(i < size, "index {index:?} of {:?}", self.dims);
            offset * size + i
        })
    }

    /// f of each element.
    pub fn map(&self, f: impl FnMut(f64) -> f64) -> Array {
        Array { dims: self.dims.clone(), data: self.data.iter().copied().map(f).collect() }
    }

    /// f of the elements at the same index of two arrays of equal sizes.
    pub fn zip(&self, other: &Array, mut f: impl FnMut(f64, f64) -> f64) -> Array {
        assert_eq!(self.dims, other.dims);
        Array {
            dims: self.dims.clone(),
            data: self.data.iter().zip(&other.data).map(|(x, y)| f(*x, *y)).collect(),
        }
    }

    /// `f` applied to each row along `axis`; it may give rows of another length, the same for all.
    pub fn map_rows(&self, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Array {
        let (outer, size) = (self.dims[..axis].iter().product::<usize>(), self.dims[axis]);
        let inner: usize = self.dims[axis + 1..].iter().product();
        let mut rows = Vec::with_capacity(outer * inner);
        for o in 0..outer {
            for i in 0..inner {
                let row: Vec<f64> = (0..size).map(|k| self.data[(o * size + k) * inner + i]).collect();
                rows.push(f(&row));
            }
        }
        let length = rows.first().map_or_else(|| f(&vec![0.0; size]).len(), Vec::len);
        let mut dims = self.dims.clone();
        dims[axis] = length;
        let mut data = vec![0.0; outer * length * inner];
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), length, "rows of one length");
            let (o, i) = (at / inner, at % inner);
            for (k, value) in row.iter().enumerate() {
                data[(o * length + k) * inner + i] = *value;
            }
        }
        Array { dims, data }
    }

    /// The same elements with other sizes.
    pub fn reshape(&self, dims: impl Into<Vec<usize>>) -> Array {
        Array::new(dims, self.data.clone())
    }

    /// Axis i of the result is axis `perm[i]`.
    pub fn transpose(&self, perm: &[usize]) -> Array {
        let dims: Vec<usize> = perm.iter().map(|p| self.dims[*p]).collect();
        let mut from = vec![0; perm.len()];
        Array::from_fn(dims, |index| {
            perm.iter().zip(index).for_each(|(p, i)| from[*p] = *i);
            self.at(&from)
        })
    }

    /// Repeated to these sizes, as numpy does.
    pub fn broadcast(&self, dims: impl Into<Vec<usize>>) -> Array {
        let dims = dims.into();
        let added = dims.len() - self.dims.len();
        Array::from_fn(dims, |index| {
            let own: Vec<usize> =
                self.dims.iter().zip(&index[added..]).map(|(d, i)| if *d == 1 { 0 } else { *i }).collect();
            self.at(&own)
        })
    }

    /// The numbers of a literal; `None` for text and block formats.
    pub fn from_literal(literal: &Literal) -> Option<Array> {
        let mut dims = literal.dims().to_vec();
        let data: Vec<f64> = match literal.dtype() {
            DType::F64 => literal.to_vec::<f64>()?,
            DType::F32 => literal.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
            DType::U64 => literal.to_vec::<u64>()?.into_iter().map(|v| v as f64).collect(),
            DType::C64 | DType::C128 => {
                let part = literal.dtype().complex_part()?;
                dims.push(2);
                let parts = Literal::new(part, dims.clone(), literal.bytes().clone()).ok()?;
                return Array::from_literal(&parts);
            }
            dtype => match dtype.bits()? {
                bits @ (2 | 4) => {
                    let codes = unpack(literal, bits);
                    codes.into_iter().map(|code| decode_small(dtype, bits, code)).collect::<Option<_>>()?
                }
                8 | 16 if dtype.is_float() => {
                    let width = dtype.bits()? as usize / 8;
                    let code =
                        |bytes: &[u8]| bytes.iter().rev().fold(0u32, |code, b| code << 8 | u32::from(*b));
                    literal
                        .bytes()
                        .chunks_exact(width)
                        .map(|b| decode_float(dtype, code(b)))
                        .collect::<Option<_>>()?
                }
                _ => literal.to_i64_vec()?.into_iter().map(|v| v as f64).collect(),
            },
        };
        Some(Array { dims, data })
    }

    /// The literal of this type nearest to these numbers: floats round to nearest even, integers truncate and
    /// saturate, bool is ≠ 0.
    ///
    /// # Panics
    /// For text, block formats, and a complex type without a last axis of size 2: faults of the case.
    pub fn to_literal(&self, dtype: DType) -> Literal {
        let mut dims = self.dims.clone();
        let mut bytes = Vec::new();
        macro_rules! write {
            ($t:ty) => {
                self.data.iter().for_each(|v| bytes.extend_from_slice(&(*v as $t).to_le_bytes()))
            };
        }
        match dtype {
            DType::F64 => write!(f64),
            DType::F32 => write!(f32),
            DType::I64 => write!(i64),
            DType::I32 => write!(i32),
            DType::I16 => write!(i16),
            DType::I8 => write!(i8),
            DType::U64 => write!(u64),
            DType::U32 => write!(u32),
            DType::U16 => write!(u16),
            DType::U8 => write!(u8),
            DType::Bool => bytes.extend(self.data.iter().map(|v| u8::from(*v != 0.0))),
            DType::C64 | DType::C128 => {
                assert_eq!(dims.pop(), Some(2), "a complex array ends in an axis of size 2");
                let part = dtype.complex_part().expect("a complex type has parts");
                let parts = self.to_literal(part);
                return Literal::new(dtype, dims, parts.bytes().clone()).expect("the bytes of the parts");
            }
            _ => {
                let bits = dtype.bits().expect("a type with plain elements");
                let codes: Vec<u32> = self.data.iter().map(|v| encode(dtype, bits, *v)).collect();
                match bits {
                    2 | 4 => bytes = pack(&codes, bits, dims.last().copied().unwrap_or(1)),
                    _ => {
                        codes
                            .iter()
                            .for_each(|c| bytes.extend_from_slice(&c.to_le_bytes()[..bits as usize / 8]));
                    }
                }
            }
        }
        Literal::new(dtype, dims, bytes).expect("as many bytes as the type has")
    }
}

/// Calls `visit` with every index below `dims`, in row-major order.
pub fn for_each_index(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; dims.len()];
    for _ in 0..dims.iter().product::<usize>() {
        visit(&index);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

fn decode_float(dtype: DType, code: u32) -> Option<f64> {
    match dtype {
        DType::E8M0 => Some(decode_e8m0(code as u8)),
        _ => Some(minifloat(dtype)?.decode(code)),
    }
}

/// The number of a 2- or 4-bit code.
fn decode_small(dtype: DType, bits: u32, code: u32) -> Option<f64> {
    match dtype {
        DType::I4 | DType::I2 => {
            let sign = 1 << (bits - 1);
            Some(f64::from((code ^ sign) as i32 - sign as i32))
        }
        DType::U4 | DType::U2 => Some(f64::from(code)),
        _ => decode_float(dtype, code),
    }
}

fn encode(dtype: DType, bits: u32, value: f64) -> u32 {
    match dtype {
        DType::I4 | DType::I2 => {
            let half = 1i32 << (bits - 1);
            let clamped = (value as i32).clamp(-half, half - 1);
            clamped as u32 & ((1 << bits) - 1)
        }
        DType::U4 | DType::U2 => (value as u32).min((1 << bits) - 1),
        DType::E8M0 => u32::from(encode_e8m0(value, false, ScaleRounding::Nearest)),
        _ => minifloat(dtype).expect("a narrow float").encode(value, false),
    }
}

/// The codes of a sub-byte literal: rows are byte-aligned, low bits first.
fn unpack(literal: &Literal, bits: u32) -> Vec<u32> {
    let last = literal.dims().last().copied().unwrap_or(1);
    let per_byte = 8 / bits as usize;
    let row_bytes = last.div_ceil(per_byte);
    let mut codes = Vec::with_capacity(literal.element_count());
    if row_bytes == 0 {
        return codes;
    }
    for row in literal.bytes().chunks_exact(row_bytes) {
        for i in 0..last {
            codes.push(u32::from(row[i / per_byte]) >> (bits as usize * (i % per_byte)) & ((1 << bits) - 1));
        }
    }
    codes
}

fn pack(codes: &[u32], bits: u32, last: usize) -> Vec<u8> {
    let per_byte = 8 / bits as usize;
    let mut bytes = Vec::new();
    for row in codes.chunks(last.max(1)) {
        for group in row.chunks(per_byte) {
            let byte = group.iter().rev().fold(0u32, |byte, code| byte << bits | code);
            bytes.push(byte as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_to_a_literal_and_back_in_every_type() {
        for dtype in DType::PLAIN {
            if dtype == DType::String {
                continue;
            }
            let values: &[f64] = match dtype {
                DType::Bool | DType::U2 => &[0.0, 1.0, 1.0, 0.0, 1.0, 1.0],
                DType::I2 => &[0.0, 1.0, -1.0, -2.0, 1.0, 0.0],
                DType::E8M0 => &[0.5, 1.0, 2.0, 4.0, 0.25, 64.0],
                DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                    &[0.0, 1.0, 6.0, 3.0, 2.0, 4.0]
                }
                _ => &[0.0, 1.0, -2.0, 3.0, -4.0, 6.0],
            };
            let dims: &[usize] = if dtype.is_complex() { &[3, 2] } else { &[2, 3] };
            let array = Array::new(dims, values);
            assert_eq!(Array::from_literal(&array.to_literal(dtype)), Some(array), "{dtype}");
        }
    }

    #[test]
    fn rows_are_taken_along_the_axis() {
        let x = Array::new([2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(x.map_rows(0, |r| vec![r.iter().sum()]).data, [5.0, 7.0, 9.0]);
        assert_eq!(x.map_rows(1, |r| vec![r.iter().sum()]).data, [6.0, 15.0]);
        assert_eq!(x.transpose(&[1, 0]).data, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
}
