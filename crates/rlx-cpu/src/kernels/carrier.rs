//! Elements of any type as the numbers that hold them all: for types that few kernels compute with.
//!
//! The carriers are the oracle's: f64 for floats, i64 and u64 for integers (bools are u64), pairs of f64 for complex
//! numbers. A tensor is walked in pieces that begin at whole bytes, so that pieces can be written side by side.
#![allow(unsafe_code)]

use super::number::Pair;
use super::transfer::Address;
use crate::pool::Pool;
use half::{bf16, f16};
use rlx_eval::numeric::minifloat::{self, MiniFloat, ScaleRounding, decode_e8m0, encode_e8m0};
use rlx_ir::{DType, DTypeClass};

/// Elements of a piece; a multiple of those of a byte.
pub(crate) const PIECE: usize = 256;

/// Pieces that one thread works on at a time.
const GRAIN: usize = 16;

/// The parameters of a narrow float; `None` for f64, f32, e8m0 and what is no float.
pub(crate) fn format(dtype: DType) -> Option<MiniFloat> {
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

/// A piece of a packed tensor: elements of one row, which begin at a byte.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    row: usize,
    start: usize,
    /// How many elements.
    pub(crate) count: usize,
    /// Elements of a row.
    length: usize,
}

impl Piece {
    /// Its first element, where all elements are one row.
    pub(crate) fn first(&self) -> usize {
        self.row * self.length + self.start
    }

    /// The byte at which it begins in a tensor of this type.
    pub(crate) fn offset(&self, dtype: DType) -> usize {
        let bits = dtype.bits().unwrap_or(0) as usize;
        self.row * (self.length * bits).div_ceil(8) + self.start * bits / 8
    }
}

/// Calls `work` for each piece of tensors of these sizes, on all threads. `apart` says that rows begin at bytes of their
/// own (types below a byte); else all elements are one row.
pub(crate) fn for_pieces(pool: &Pool, dims: &[usize], apart: bool, work: impl Fn(Piece) + Sync + Send) {
    let count: usize = dims.iter().product();
    if count == 0 {
        return;
    }
    let length = if apart { dims.last().copied().unwrap_or(1) } else { count };
    let (rows, pieces) = (count / length, length.div_ceil(PIECE));
    pool.for_ranges(rows * pieces, GRAIN, |range| {
        for i in range {
            let (row, start) = (i / pieces, i % pieces * PIECE);
            work(Piece { row, start, count: (length - start).min(PIECE), length });
        }
    });
}

/// Whether elements are smaller than a byte.
pub(crate) fn below_a_byte(dtype: DType) -> bool {
    dtype.bits().is_some_and(|bits| bits < 8)
}

/// Elements in their carrier.
#[allow(
    clippy::large_enum_variant,
    reason = "lives on the stack of one loop, where boxing would allocate in each run"
)]
pub(crate) enum Carried {
    Float([f64; PIECE]),
    Signed([i64; PIECE]),
    Unsigned([u64; PIECE]),
    Complex([(f64, f64); PIECE]),
}

/// Reads elements as they lie.
///
/// # Safety
/// `count` elements of `T` follow `from`, perhaps unaligned.
unsafe fn read<T: Copy, C: Copy>(
    from: *const u8,
    count: usize,
    zero: C,
    carry: impl Fn(T) -> C,
) -> [C; PIECE] {
    let mut to = [zero; PIECE];
    for (i, to) in to[..count].iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        *to = carry(unsafe { from.cast::<T>().add(i).read_unaligned() });
    }
    to
}

/// # Safety
/// Memory for `count` elements of `T` follows `to`.
unsafe fn write<T: Copy, C: Copy>(to: *mut u8, from: &[C], narrow: impl Fn(C) -> T) {
    for (i, x) in from.iter().enumerate() {
        // SAFETY: promised by the caller.
        unsafe { to.cast::<T>().add(i).write_unaligned(narrow(*x)) };
    }
}

/// The codes of elements below a byte, low bits first.
///
/// # Safety
/// `count` elements of `bits` bits follow `from`.
pub(crate) unsafe fn unpack(from: *const u8, count: usize, bits: u32, mut code: impl FnMut(usize, u8)) {
    let (each, mask) = (8 / bits as usize, (1u8 << bits) - 1);
    for i in 0..count {
        // SAFETY: promised by the caller.
        let byte = unsafe { from.add(i / each).read() };
        code(i, byte >> (i % each * bits as usize) & mask);
    }
}

/// Writes codes of elements below a byte; unused bits become 0.
///
/// # Safety
/// Memory for `count` elements of `bits` bits follows `to`.
pub(crate) unsafe fn pack(to: *mut u8, count: usize, bits: u32, code: impl Fn(usize) -> u8) {
    let (each, mask) = (8 / bits as usize, (1u8 << bits) - 1);
    for byte in 0..count.div_ceil(each) {
        let mut all = 0;
        for i in byte * each..((byte + 1) * each).min(count) {
            all |= (code(i) & mask) << (i % each * bits as usize);
        }
        // SAFETY: promised by the caller.
        unsafe { to.add(byte).write(all) };
    }
}

/// The elements of a piece.
///
/// # Safety
/// `pointer` is that of a packed tensor of this type that the piece is part of.
pub(crate) unsafe fn load(dtype: DType, pointer: *const u8, piece: Piece) -> Carried {
    use Carried::{Complex, Float, Signed, Unsigned};
    let (from, count) = (pointer.wrapping_add(piece.offset(dtype)), piece.count);
    // SAFETY (all): promised by the caller.
    unsafe {
        match dtype {
            DType::F64 => Float(read(from, count, 0.0, |x: f64| x)),
            DType::F32 => Float(read(from, count, 0.0, |x: f32| x.into())),
            DType::F16 => Float(read(from, count, 0.0, |x: f16| x.into())),
            DType::BF16 => Float(read(from, count, 0.0, |x: bf16| x.into())),
            DType::E8M0 => Float(read(from, count, 0.0, decode_e8m0)),
            DType::I64 => Signed(read(from, count, 0, |x: i64| x)),
            DType::I32 => Signed(read(from, count, 0, |x: i32| x.into())),
            DType::I16 => Signed(read(from, count, 0, |x: i16| x.into())),
            DType::I8 => Signed(read(from, count, 0, |x: i8| x.into())),
            DType::U64 => Unsigned(read(from, count, 0, |x: u64| x)),
            DType::U32 => Unsigned(read(from, count, 0, |x: u32| x.into())),
            DType::U16 => Unsigned(read(from, count, 0, |x: u16| x.into())),
            DType::U8 => Unsigned(read(from, count, 0, |x: u8| x.into())),
            DType::Bool => Unsigned(read(from, count, 0, |x: u8| u64::from(x != 0))),
            DType::C64 => Complex(read(from, count, (0.0, 0.0), |x: Pair<f32>| (x.0.into(), x.1.into()))),
            DType::C128 => Complex(read(from, count, (0.0, 0.0), |x: Pair<f64>| (x.0, x.1))),
            DType::I4 | DType::I2 => {
                let (bits, mut to) = (dtype.bits().unwrap_or(4), [0; PIECE]);
                let unused = 64 - bits;
                unpack(from, count, bits, |i, code| to[i] = i64::from(code) << unused >> unused);
                Signed(to)
            }
            DType::U4 | DType::U2 => {
                let mut to = [0; PIECE];
                unpack(from, count, dtype.bits().unwrap_or(4), |i, code| to[i] = code.into());
                Unsigned(to)
            }
            DType::F4E2M1 => {
                let mut to = [0.0; PIECE];
                unpack(from, count, 4, |i, code| to[i] = minifloat::F4E2M1.decode(code.into()));
                Float(to)
            }
            _ => match format(dtype) {
                Some(format) => Float(read(from, count, 0.0, |x: u8| format.decode(x.into()))),
                None => Float([0.0; PIECE]),
            },
        }
    }
}

/// How floats become narrow ones.
#[derive(Clone, Copy)]
pub(crate) struct Rounding {
    /// What is out of range becomes the greatest finite number.
    pub(crate) saturate: bool,
    /// Of e8m0.
    pub(crate) scale: ScaleRounding,
}

impl Rounding {
    /// To nearest even, without saturation.
    pub(crate) const NEAREST: Rounding = Rounding { saturate: false, scale: ScaleRounding::Nearest };
}

/// Stores the elements of a piece, floats rounded once, integers by their low bits.
///
/// # Safety
/// `pointer` is that of a packed tensor of this type that the piece is part of; nothing else uses the piece.
pub(crate) unsafe fn store(
    dtype: DType,
    pointer: Address,
    piece: Piece,
    elements: &Carried,
    rounding: Rounding,
) {
    let (to, n) = (pointer.at(piece.offset(dtype) as isize), piece.count);
    let Rounding { saturate, scale } = rounding;
    // SAFETY (all): promised by the caller.
    unsafe {
        match elements {
            Carried::Float(v) => match dtype {
                DType::F64 => write(to, &v[..n], |x| x),
                DType::F32 => write(to, &v[..n], |x| x as f32),
                DType::E8M0 => write(to, &v[..n], |x| encode_e8m0(x, saturate, scale)),
                DType::F4E2M1 => pack(to, n, 4, |i| minifloat::F4E2M1.encode(v[i], saturate) as u8),
                _ => match format(dtype) {
                    Some(format) if format.width() == 16 => {
                        write(to, &v[..n], |x| format.encode(x, saturate) as u16);
                    }
                    Some(format) => write(to, &v[..n], |x| format.encode(x, saturate) as u8),
                    None => {}
                },
            },
            Carried::Signed(v) => integers(dtype, to, n, |i| v[i] as u64),
            Carried::Unsigned(v) => integers(dtype, to, n, |i| v[i]),
            Carried::Complex(v) if dtype == DType::C64 => {
                write(to, &v[..n], |(re, im)| Pair(re as f32, im as f32));
            }
            Carried::Complex(v) => write(to, &v[..n], |(re, im)| Pair(re, im)),
        }
    }
}

/// # Safety
/// As for [`store`].
unsafe fn integers(dtype: DType, to: *mut u8, count: usize, element: impl Fn(usize) -> u64) {
    // SAFETY (all): promised by the caller.
    unsafe {
        match dtype.bits() {
            Some(64) => (0..count).for_each(|i| to.cast::<u64>().add(i).write_unaligned(element(i))),
            Some(32) => (0..count).for_each(|i| to.cast::<u32>().add(i).write_unaligned(element(i) as u32)),
            Some(16) => (0..count).for_each(|i| to.cast::<u16>().add(i).write_unaligned(element(i) as u16)),
            Some(8) => (0..count).for_each(|i| to.add(i).write(element(i) as u8)),
            Some(bits) => pack(to, count, bits, |i| element(i) as u8),
            None => {}
        }
    }
}

/// The bits that an integer of this type wraps to: one for bools.
pub(crate) fn integer_bits(dtype: DType) -> u32 {
    if dtype.class() == DTypeClass::Bool { 1 } else { dtype.bits().unwrap_or(64) }
}

/// One float.
///
/// # Safety
/// `at` is that of an element of this type.
pub(crate) unsafe fn float_at(dtype: DType, at: *const u8) -> f64 {
    // SAFETY (all): promised by the caller.
    unsafe {
        match dtype {
            DType::F64 => at.cast::<f64>().read_unaligned(),
            DType::F32 => at.cast::<f32>().read_unaligned().into(),
            DType::F16 => at.cast::<f16>().read_unaligned().into(),
            DType::BF16 => at.cast::<bf16>().read_unaligned().into(),
            DType::E8M0 => decode_e8m0(at.read()),
            _ => format(dtype).map_or(f64::NAN, |format| format.decode(at.read().into())),
        }
    }
}

/// One signed integer.
///
/// # Safety
/// As for [`float_at`].
pub(crate) unsafe fn signed_at(dtype: DType, at: *const u8) -> i64 {
    // SAFETY (all): promised by the caller.
    unsafe {
        match dtype {
            DType::I64 => at.cast::<i64>().read_unaligned(),
            DType::I32 => at.cast::<i32>().read_unaligned().into(),
            DType::I16 => at.cast::<i16>().read_unaligned().into(),
            _ => at.cast::<i8>().read().into(),
        }
    }
}

/// One unsigned integer or bool.
///
/// # Safety
/// As for [`float_at`].
pub(crate) unsafe fn unsigned_at(dtype: DType, at: *const u8) -> u64 {
    // SAFETY (all): promised by the caller.
    unsafe {
        match dtype {
            DType::U64 => at.cast::<u64>().read_unaligned(),
            DType::U32 => at.cast::<u32>().read_unaligned().into(),
            DType::U16 => at.cast::<u16>().read_unaligned().into(),
            _ => at.read().into(),
        }
    }
}

/// One complex number.
///
/// # Safety
/// As for [`float_at`].
pub(crate) unsafe fn complex_at(dtype: DType, at: *const u8) -> (f64, f64) {
    // SAFETY (both): promised by the caller.
    if dtype == DType::C64 {
        let Pair(re, im) = unsafe { at.cast::<Pair<f32>>().read_unaligned() };
        return (re.into(), im.into());
    }
    let Pair(re, im) = unsafe { at.cast::<Pair<f64>>().read_unaligned() };
    (re, im)
}
