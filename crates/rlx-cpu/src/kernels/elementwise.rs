//! Elementwise operations on types that regions have no lanes for: 8-bit floats, types below a byte, complex numbers; and
//! casts from and to them.
//!
//! Computed in the carriers and rounded once, as the oracle does.
#![allow(unsafe_code)]

use super::carrier::{Carried, PIECE, Piece, Rounding, below_a_byte, for_pieces, integer_bits, load, store};
use super::transfer::Address;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::numeric::minifloat::ScaleRounding;
use rlx_eval::numeric::wrap::Integer;
use rlx_eval::{Fault, float_binary, float_unary};
use rlx_ir::op::elementwise::{BinaryOp, Cast, CompareOp, RoundMode, UnaryOp};
use rlx_ir::{DType, DTypeClass, Op, Primitive, TensorType};
use rlx_opt::region::is_elementwise;
use std::sync::Mutex;

/// Whether an operation is one of this family, on types that it has here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    let known = operands.iter().all(|t| t.dtype.bits().is_some());
    known && (is_elementwise(op) || matches!(op, Op::Primitive(Primitive::MakeComplex(_))))
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    let Op::Primitive(primitive) = op else { return None };
    let kind = match primitive {
        Primitive::Unary(op) => Kind::Unary(op.op),
        Primitive::Binary(op) => Kind::Binary(op.op),
        Primitive::Compare(op) => Kind::Compare(op.op),
        Primitive::Select(_) => Kind::Select,
        Primitive::MakeComplex(_) => Kind::MakeComplex,
        Primitive::Cast(op) => Kind::Cast(op.clone()),
        _ => return None,
    };
    Some(Box::new(Elementwise { kind }))
}

#[derive(Clone)]
enum Kind {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(CompareOp),
    Select,
    MakeComplex,
    Cast(Cast),
}

#[derive(Clone)]
struct Elementwise {
    kind: Kind,
}

impl Kernel for Elementwise {
    fn bind(&self, _: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(self.clone()))
    }
}

fn unsupported(what: &str, dtype: DType) -> Fault {
    Fault::Unsupported { what: what.to_string(), found: dtype.to_string() }
}

impl Bound for Elementwise {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let out = arguments.result(0);
        let to = Address(out.pointer());
        let dtypes = (0..arguments.operand_count()).map(|i| arguments.operand(i).dtype());
        let apart = dtypes.chain([out.dtype()]).any(below_a_byte);
        let rounding = match &self.kind {
            Kind::Cast(cast) => rounding_of(cast),
            _ => Rounding::NEAREST,
        };
        // All faults of one operation are the same fault.
        let failed: Mutex<Option<Fault>> = Mutex::new(None);
        for_pieces(cx.pool, out.dims(), apart, |piece| {
            match self.piece(arguments, piece) {
                // SAFETY: a piece of the result, which only this call writes.
                Ok(result) => unsafe { store(out.dtype(), to, piece, &result, rounding) },
                Err(fault) => {
                    *failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(fault);
                }
            }
        });
        match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

fn rounding_of(cast: &Cast) -> Rounding {
    let scale = match cast.round {
        None | Some(RoundMode::Nearest) => ScaleRounding::Nearest,
        Some(RoundMode::Up) => ScaleRounding::Up,
        Some(RoundMode::Down) => ScaleRounding::Down,
    };
    // Only the 8-bit and 4-bit floats saturate: f16 and bf16 overflow to infinity.
    Rounding { saturate: cast.saturate && cast.to.bits().is_some_and(|bits| bits <= 8), scale }
}

impl Elementwise {
    fn piece(&self, arguments: &Arguments<'_>, piece: Piece) -> Result<Carried, Fault> {
        let dtype = |i: usize| arguments.operand(i).dtype();
        // SAFETY: operands are packed and have the sizes that pieces are made of.
        let operand = |i: usize| unsafe { load(dtype(i), arguments.operand(i).pointer(), piece) };
        match &self.kind {
            Kind::Unary(op) => unary(*op, dtype(0), operand(0), piece.count),
            Kind::Binary(op) => binary(*op, dtype(0), &operand(0), &operand(1), piece.count),
            Kind::Compare(op) => compare(*op, dtype(0), &operand(0), &operand(1), piece.count),
            Kind::Select => select(&operand(0), operand(1), &operand(2), piece.count),
            Kind::MakeComplex => match (operand(0), operand(1)) {
                (Carried::Float(re), Carried::Float(im)) => {
                    Ok(Carried::Complex(std::array::from_fn(|i| (re[i], im[i]))))
                }
                _ => Err(unsupported("complex", dtype(0))),
            },
            Kind::Cast(op) => cast(op, dtype(0), operand(0)),
        }
    }
}

fn unary(op: UnaryOp, dtype: DType, x: Carried, count: usize) -> Result<Carried, Fault> {
    use Carried::{Complex, Float, Signed, Unsigned};
    use UnaryOp::*;
    let bits = integer_bits(dtype);
    Ok(match (x, op) {
        (Float(v), IsNan) => Unsigned(v.map(|x| x.is_nan().into())),
        (Float(v), IsInf) => Unsigned(v.map(|x| x.is_infinite().into())),
        (Float(v), IsFinite) => Unsigned(v.map(|x| x.is_finite().into())),
        (Float(mut v), op) => {
            let f = float_unary(op).ok_or_else(|| unsupported(op.name(), dtype))?;
            v[..count].iter_mut().for_each(|x| *x = f(*x));
            Float(v)
        }
        (Signed(v), Neg) => Signed(v.map(|x| x.wrapped_neg(bits))),
        (Signed(v), Abs) => Signed(v.map(|x| x.wrapped_abs(bits))),
        (Signed(v), Sign) => Signed(v.map(Integer::sign)),
        (Signed(v), BitNot) => Signed(v.map(|x| !x)),
        (Unsigned(v), Neg) => Unsigned(v.map(|x| x.wrapped_neg(bits))),
        (Unsigned(v), Abs) => Unsigned(v),
        (Unsigned(v), Sign) => Unsigned(v.map(Integer::sign)),
        (Unsigned(v), Not) => Unsigned(v.map(|x| 1 - x.min(1))),
        (Unsigned(v), BitNot) => Unsigned(v.map(|x| !x)),
        (Complex(v), RealPart) => Float(v.map(|(re, _)| re)),
        (Complex(v), ImagPart) => Float(v.map(|(_, im)| im)),
        (Complex(v), Conj) => Complex(v.map(|(re, im)| (re, -im))),
        (Complex(v), Neg) => Complex(v.map(|(re, im)| (-re, -im))),
        (Complex(v), Abs) => Float(v.map(|(re, im)| libm::hypot(re, im))),
        _ => return Err(unsupported(op.name(), dtype)),
    })
}

fn zipped<T: Copy, R: Copy>(
    x: &[T; PIECE],
    y: &[T; PIECE],
    count: usize,
    empty: R,
    f: impl Fn(T, T) -> Result<R, Fault>,
) -> Result<[R; PIECE], Fault> {
    let mut z = [empty; PIECE];
    for ((z, x), y) in z.iter_mut().zip(x).zip(y).take(count) {
        *z = f(*x, *y)?;
    }
    Ok(z)
}

fn binary(op: BinaryOp, dtype: DType, x: &Carried, y: &Carried, count: usize) -> Result<Carried, Fault> {
    let bits = integer_bits(dtype);
    Ok(match (x, y) {
        (Carried::Float(x), Carried::Float(y)) => {
            let f = float_binary(op).ok_or_else(|| unsupported(op.name(), dtype))?;
            Carried::Float(zipped(x, y, count, 0.0, |x, y| Ok(f(x, y)))?)
        }
        (Carried::Signed(x), Carried::Signed(y)) => {
            Carried::Signed(zipped(x, y, count, 0, |x, y| integer(op, dtype, x, y, bits))?)
        }
        (Carried::Unsigned(x), Carried::Unsigned(y)) => {
            Carried::Unsigned(zipped(x, y, count, 0, |x, y| integer(op, dtype, x, y, bits))?)
        }
        (Carried::Complex(x), Carried::Complex(y)) => {
            let f = |x, y| complex(op, x, y).ok_or_else(|| unsupported(op.name(), dtype));
            Carried::Complex(zipped(x, y, count, (0.0, 0.0), f)?)
        }
        _ => return Err(unsupported(op.name(), dtype)),
    })
}

fn integer<I>(op: BinaryOp, dtype: DType, x: I, y: I, bits: u32) -> Result<I, Fault>
where
    I: Integer + std::ops::BitAnd<Output = I> + std::ops::BitOr<Output = I> + std::ops::BitXor<Output = I>,
{
    use BinaryOp::*;
    Ok(match op {
        Add => x.wrapped_add(y, bits),
        Sub => x.wrapped_sub(y, bits),
        Mul => x.wrapped_mul(y, bits),
        Div => x.truncated_quotient(y, bits)?,
        Rem => x.truncated_remainder(y)?,
        Pow => x.wrapped_pow(y, bits),
        Max => x.max(y),
        Min => x.min(y),
        And => x & y,
        Or => x | y,
        Xor => x ^ y,
        Shl => x.shift_left(y, bits),
        Shr => x.shift_right(y, bits),
        Atan2 => return Err(unsupported(op.name(), dtype)),
    })
}

/// Quotients are scaled by the divisor's larger part, so that squares do not overflow (Smith 1962).
fn complex(op: BinaryOp, (a, b): (f64, f64), (c, d): (f64, f64)) -> Option<(f64, f64)> {
    Some(match op {
        BinaryOp::Add => (a + c, b + d),
        BinaryOp::Sub => (a - c, b - d),
        BinaryOp::Mul => (a * c - b * d, a * d + b * c),
        BinaryOp::Div if c.abs() >= d.abs() => {
            let ratio = d / c;
            let scale = c + d * ratio;
            ((a + b * ratio) / scale, (b - a * ratio) / scale)
        }
        BinaryOp::Div => {
            let ratio = c / d;
            let scale = c * ratio + d;
            ((a * ratio + b) / scale, (b * ratio - a) / scale)
        }
        _ => return None,
    })
}

fn compare(op: CompareOp, dtype: DType, x: &Carried, y: &Carried, count: usize) -> Result<Carried, Fault> {
    fn all<T: PartialOrd + Copy>(
        op: CompareOp,
        x: &[T; PIECE],
        y: &[T; PIECE],
        count: usize,
    ) -> Result<[u64; PIECE], Fault> {
        zipped(x, y, count, 0, |x, y| {
            Ok(u64::from(match op {
                CompareOp::Eq => x == y,
                CompareOp::Ne => x != y,
                CompareOp::Lt => x < y,
                CompareOp::Le => x <= y,
                CompareOp::Gt => x > y,
                CompareOp::Ge => x >= y,
            }))
        })
    }
    Ok(Carried::Unsigned(match (x, y) {
        (Carried::Float(x), Carried::Float(y)) => all(op, x, y, count)?,
        (Carried::Signed(x), Carried::Signed(y)) => all(op, x, y, count)?,
        (Carried::Unsigned(x), Carried::Unsigned(y)) => all(op, x, y, count)?,
        (Carried::Complex(x), Carried::Complex(y)) => all(op, x, y, count)?,
        _ => return Err(unsupported(op.name(), dtype)),
    }))
}

fn select(c: &Carried, x: Carried, y: &Carried, count: usize) -> Result<Carried, Fault> {
    fn pick<T: Copy>(c: &[u64; PIECE], mut x: [T; PIECE], y: &[T; PIECE], count: usize) -> [T; PIECE] {
        for ((x, y), c) in x.iter_mut().zip(y).zip(c).take(count) {
            *x = if *c == 0 { *y } else { *x };
        }
        x
    }
    let Carried::Unsigned(c) = c else { return Err(unsupported("select", DType::Bool)) };
    Ok(match (x, y) {
        (Carried::Float(x), Carried::Float(y)) => Carried::Float(pick(c, x, y, count)),
        (Carried::Signed(x), Carried::Signed(y)) => Carried::Signed(pick(c, x, y, count)),
        (Carried::Unsigned(x), Carried::Unsigned(y)) => Carried::Unsigned(pick(c, x, y, count)),
        (Carried::Complex(x), Carried::Complex(y)) => Carried::Complex(pick(c, x, y, count)),
        _ => return Err(unsupported("select", DType::Bool)),
    })
}

/// To the carrier of the result's type; storing rounds and wraps.
fn cast(op: &Cast, from: DType, x: Carried) -> Result<Carried, Fault> {
    use Carried::{Complex, Float, Signed, Unsigned};
    let to = op.to;
    let bits = to.bits().unwrap_or(64);
    // An integer that f64 does not hold is rounded to odd, so that the second rounding is right.
    let wide = to == DType::F64;
    Ok(match (x, to.class()) {
        (Float(v), DTypeClass::Float) => Float(v),
        (Float(v), DTypeClass::Signed) => Signed(v.map(|x| i64::from_f64(x, bits))),
        (Float(v), DTypeClass::Unsigned) => Unsigned(v.map(|x| u64::from_f64(x, bits))),
        (Float(v), DTypeClass::Bool) => Unsigned(v.map(|x| u64::from(x != 0.0))),
        (Float(v), DTypeClass::Complex) => Complex(v.map(|x| (x, 0.0))),
        (Signed(v), DTypeClass::Float) => {
            Float(v.map(|x| if wide { Integer::to_f64(x) } else { x.to_f64_odd() }))
        }
        (Signed(v), DTypeClass::Signed | DTypeClass::Unsigned) => Signed(v),
        (Signed(v), DTypeClass::Bool) => Unsigned(v.map(|x| u64::from(x != 0))),
        (Signed(v), DTypeClass::Complex) => Complex(v.map(|x| (x.to_f64_odd(), 0.0))),
        (Unsigned(v), DTypeClass::Float) => {
            Float(v.map(|x| if wide { Integer::to_f64(x) } else { x.to_f64_odd() }))
        }
        (Unsigned(v), DTypeClass::Signed | DTypeClass::Unsigned) => Unsigned(v),
        (Unsigned(v), DTypeClass::Bool) => Unsigned(v.map(|x| u64::from(x != 0))),
        (Unsigned(v), DTypeClass::Complex) => Complex(v.map(|x| (x.to_f64_odd(), 0.0))),
        (Complex(v), DTypeClass::Complex) => Complex(v),
        _ => return Err(unsupported("cast", from)),
    })
}
