//! Elementwise primitives.

use crate::error::Fault;
use crate::numeric::minifloat::ScaleRounding;
use crate::numeric::wrap::{DivisionByZero, Integer};
use crate::numeric::{float, special};
use crate::oracle::Context;
use crate::precision::Precision;
use crate::tensor::{Data, Tensor};
use rlx_ir::op::elementwise::{BinaryOp, Bitcast, Cast, CompareOp, RoundMode, UnaryOp};
use rlx_ir::{DType, DTypeClass, Literal};

impl From<DivisionByZero> for Fault {
    fn from(_: DivisionByZero) -> Fault {
        Fault::DivisionByZero
    }
}

fn unsupported(what: &str, dtype: DType) -> Fault {
    Fault::Unsupported { what: what.to_string(), found: dtype.to_string() }
}

/// The function of one float that an operation is; `None` where it is not one.
pub fn float_unary(op: UnaryOp) -> Option<fn(f64) -> f64> {
    use UnaryOp::*;
    Some(match op {
        Neg => |x| -x,
        Abs => f64::abs,
        Sign => float::sign,
        Floor => f64::floor,
        Ceil => f64::ceil,
        Round => float::round_half_even,
        Trunc => f64::trunc,
        Sqrt => f64::sqrt,
        Rsqrt => |x| 1.0 / x.sqrt(),
        Exp => libm::exp,
        Expm1 => libm::expm1,
        Log => libm::log,
        Log1p => libm::log1p,
        Sin => libm::sin,
        Cos => libm::cos,
        Tan => libm::tan,
        Asin => libm::asin,
        Acos => libm::acos,
        Atan => libm::atan,
        Sinh => libm::sinh,
        Cosh => libm::cosh,
        Tanh => libm::tanh,
        Asinh => libm::asinh,
        Acosh => libm::acosh,
        Atanh => libm::atanh,
        Erf => special::erf,
        Erfc => special::erfc,
        Erfinv => special::erfinv,
        Lgamma => special::lgamma,
        Digamma => special::digamma,
        Sigmoid => special::sigmoid,
        Not | BitNot | IsNan | IsInf | IsFinite | RealPart | ImagPart | Conj => return None,
    })
}

pub(crate) fn unary(cx: &Context<'_>, op: UnaryOp, x: &Tensor) -> Result<Tensor, Fault> {
    use UnaryOp::*;
    let bits = x.dtype.bits().unwrap_or(64);
    let dtype = cx.dtype(0);
    let test =
        |test: fn(f64) -> bool, v: &[f64]| Data::Unsigned(v.iter().map(|x| u64::from(test(*x))).collect());
    let data = match (&*x.data, op) {
        (Data::Float(v), IsNan) => test(f64::is_nan, v),
        (Data::Float(v), IsInf) => test(f64::is_infinite, v),
        (Data::Float(v), IsFinite) => test(f64::is_finite, v),
        (Data::Float(v), _) => {
            let f = float_unary(op).ok_or_else(|| unsupported(op.name(), x.dtype))?;
            Data::Float(v.iter().map(|x| cx.round(dtype, f(*x))).collect())
        }
        (Data::Signed(v), Neg) => Data::Signed(v.iter().map(|x| x.wrapped_neg(bits)).collect()),
        (Data::Signed(v), Abs) => Data::Signed(v.iter().map(|x| x.wrapped_abs(bits)).collect()),
        (Data::Signed(v), Sign) => Data::Signed(v.iter().map(|x| Integer::sign(*x)).collect()),
        (Data::Signed(v), BitNot) => Data::Signed(v.iter().map(|x| (!x).wrap(bits)).collect()),
        (Data::Unsigned(v), Neg) => Data::Unsigned(v.iter().map(|x| x.wrapped_neg(bits)).collect()),
        (Data::Unsigned(v), Abs) => Data::Unsigned(v.clone()),
        (Data::Unsigned(v), Sign) => Data::Unsigned(v.iter().map(|x| Integer::sign(*x)).collect()),
        (Data::Unsigned(v), Not) => Data::Unsigned(v.iter().map(|x| 1 - x).collect()),
        (Data::Unsigned(v), BitNot) => Data::Unsigned(v.iter().map(|x| (!x).wrap(bits)).collect()),
        (Data::Complex(v), RealPart) => Data::Float(v.iter().map(|(re, _)| *re).collect()),
        (Data::Complex(v), ImagPart) => Data::Float(v.iter().map(|(_, im)| *im).collect()),
        (Data::Complex(v), Conj) => Data::Complex(v.iter().map(|(re, im)| (*re, -im)).collect()),
        (Data::Complex(v), Neg) => Data::Complex(v.iter().map(|(re, im)| (-re, -im)).collect()),
        (Data::Complex(v), Abs) => {
            Data::Float(v.iter().map(|(re, im)| cx.round(dtype, libm::hypot(*re, *im))).collect())
        }
        _ => return Err(unsupported(op.name(), x.dtype)),
    };
    Ok(Tensor::new(dtype, x.dims.clone(), data))
}

/// The function of two floats that an operation is; `None` where it is not one.
pub fn float_binary(op: BinaryOp) -> Option<fn(f64, f64) -> f64> {
    use BinaryOp::*;
    Some(match op {
        Add => |x, y| x + y,
        Sub => |x, y| x - y,
        Mul => |x, y| x * y,
        Div => |x, y| x / y,
        Rem => float::truncated_remainder,
        Pow => float::power,
        Max => float::maximum,
        Min => float::minimum,
        Atan2 => libm::atan2,
        And | Or | Xor | Shl | Shr => return None,
    })
}

fn integer_binary<I>(op: BinaryOp, x: I, y: I, bits: u32) -> Result<I, Fault>
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
        Atan2 => return Err(unsupported(op.name(), DType::I64)),
    })
}

/// One complex operation; the parts are rounded by the caller.
pub(crate) fn complex_binary(op: BinaryOp, (a, b): (f64, f64), (c, d): (f64, f64)) -> Option<(f64, f64)> {
    Some(match op {
        BinaryOp::Add => (a + c, b + d),
        BinaryOp::Sub => (a - c, b - d),
        BinaryOp::Mul => (a * c - b * d, a * d + b * c),
        // Scaled by the larger part of the divisor, so that squares do not overflow (Smith 1962).
        BinaryOp::Div if c.abs() >= d.abs() => {
            let r = d / c;
            let den = c + d * r;
            ((a + b * r) / den, (b - a * r) / den)
        }
        BinaryOp::Div => {
            let r = c / d;
            let den = c * r + d;
            ((a * r + b) / den, (b * r - a) / den)
        }
        _ => return None,
    })
}

/// A combination of two elements of one carrier, rounded or wrapped to `dtype`.
pub(crate) fn combine(
    precision: Precision,
    dtype: DType,
    op: BinaryOp,
    x: &Data,
    y: &Data,
) -> Result<Data, Fault> {
    let bits = dtype.bits().unwrap_or(64);
    let part = dtype.complex_part().unwrap_or(dtype);
    Ok(match (x, y) {
        (Data::Float(x), Data::Float(y)) => {
            let f = float_binary(op).ok_or_else(|| unsupported(op.name(), dtype))?;
            Data::Float(x.iter().zip(y).map(|(x, y)| precision.round(dtype, f(*x, *y))).collect())
        }
        (Data::Signed(x), Data::Signed(y)) => Data::Signed(
            x.iter().zip(y).map(|(x, y)| integer_binary(op, *x, *y, bits)).collect::<Result<_, _>>()?,
        ),
        (Data::Unsigned(x), Data::Unsigned(y)) => {
            let bits = if dtype == DType::Bool { 1 } else { bits };
            Data::Unsigned(
                x.iter().zip(y).map(|(x, y)| integer_binary(op, *x, *y, bits)).collect::<Result<_, _>>()?,
            )
        }
        (Data::Complex(x), Data::Complex(y)) => {
            let pairs = x.iter().zip(y).map(|(x, y)| {
                let (re, im) = complex_binary(op, *x, *y).ok_or_else(|| unsupported(op.name(), dtype))?;
                Ok((precision.round(part, re), precision.round(part, im)))
            });
            Data::Complex(pairs.collect::<Result<_, Fault>>()?)
        }
        _ => return Err(unsupported(op.name(), dtype)),
    })
}

pub(crate) fn binary(cx: &Context<'_>, op: BinaryOp, x: &Tensor, y: &Tensor) -> Result<Tensor, Fault> {
    let data = combine(cx.precision, x.dtype, op, &x.data, &y.data)?;
    Ok(Tensor::new(x.dtype, x.dims.clone(), data))
}

pub(crate) fn compare(op: CompareOp, x: &Tensor, y: &Tensor) -> Result<Tensor, Fault> {
    fn all<T: PartialOrd>(op: CompareOp, x: &[T], y: &[T]) -> Vec<bool> {
        let test: fn(&T, &T) -> bool = match op {
            CompareOp::Eq => |x, y| x == y,
            CompareOp::Ne => |x, y| x != y,
            CompareOp::Lt => |x, y| x < y,
            CompareOp::Le => |x, y| x <= y,
            CompareOp::Gt => |x, y| x > y,
            CompareOp::Ge => |x, y| x >= y,
        };
        x.iter().zip(y).map(|(x, y)| test(x, y)).collect()
    }
    let bools = match (&*x.data, &*y.data) {
        (Data::Float(x), Data::Float(y)) => all(op, x, y),
        (Data::Signed(x), Data::Signed(y)) => all(op, x, y),
        (Data::Unsigned(x), Data::Unsigned(y)) => all(op, x, y),
        (Data::Complex(x), Data::Complex(y)) => all(op, x, y),
        _ => return Err(unsupported(op.name(), x.dtype)),
    };
    Ok(Tensor::bools(x.dims.clone(), bools.into_iter()))
}

pub(crate) fn select(operands: &[Tensor]) -> Result<Tensor, Fault> {
    let [c, x, y] = operands else { return Err(unsupported("select", DType::Bool)) };
    let Data::Unsigned(c) = &*c.data else { return Err(unsupported("select", c.dtype)) };
    let sources: Vec<(usize, usize)> = c.iter().enumerate().map(|(i, c)| (usize::from(*c == 0), i)).collect();
    Ok(Tensor::new(x.dtype, x.dims.clone(), Data::pick_from(&[&x.data, &y.data], &sources)))
}

pub(crate) fn cast(cx: &Context<'_>, op: &Cast, x: &Tensor) -> Result<Tensor, Fault> {
    let to = op.to;
    let bits = to.bits().unwrap_or(64);
    let scale = match op.round {
        None | Some(RoundMode::Nearest) => ScaleRounding::Nearest,
        Some(RoundMode::Up) => ScaleRounding::Up,
        Some(RoundMode::Down) => ScaleRounding::Down,
    };
    // Only the 8-bit and 4-bit floats saturate: f16 and bf16 overflow to infinity.
    let saturate = op.saturate && bits <= 8;
    let float = |x: f64| cx.precision.round_as(to, x, saturate, scale);
    // Rounding an integer to f64 first would round twice; to odd keeps what the second rounding needs.
    let wide = to == DType::F64 || cx.precision == Precision::Wide;
    let from_signed = |x: i64| float(if wide { x.to_f64() } else { x.to_f64_odd() });
    let from_unsigned = |x: u64| float(if wide { x.to_f64() } else { x.to_f64_odd() });
    let part = to.complex_part().unwrap_or(to);
    let data = match (&*x.data, to.class()) {
        (Data::Float(v), DTypeClass::Float) => Data::Float(v.iter().map(|x| float(*x)).collect()),
        (Data::Float(v), DTypeClass::Signed) => {
            Data::Signed(v.iter().map(|x| i64::from_f64(*x, bits)).collect())
        }
        (Data::Float(v), DTypeClass::Unsigned) => {
            Data::Unsigned(v.iter().map(|x| u64::from_f64(*x, bits)).collect())
        }
        (Data::Float(v), DTypeClass::Bool) => {
            Data::Unsigned(v.iter().map(|x| u64::from(*x != 0.0)).collect())
        }
        (Data::Float(v), DTypeClass::Complex) => {
            Data::Complex(v.iter().map(|x| (cx.round(part, *x), 0.0)).collect())
        }
        (Data::Signed(v), DTypeClass::Float) => Data::Float(v.iter().map(|x| from_signed(*x)).collect()),
        (Data::Signed(v), DTypeClass::Signed) => Data::Signed(v.iter().map(|x| x.wrap(bits)).collect()),
        (Data::Signed(v), DTypeClass::Unsigned) => {
            Data::Unsigned(v.iter().map(|x| (*x as u64).wrap(bits)).collect())
        }
        (Data::Signed(v), DTypeClass::Bool) => Data::Unsigned(v.iter().map(|x| u64::from(*x != 0)).collect()),
        (Data::Signed(v), DTypeClass::Complex) => {
            Data::Complex(v.iter().map(|x| (cx.round(part, x.to_f64_odd()), 0.0)).collect())
        }
        (Data::Unsigned(v), DTypeClass::Float) => Data::Float(v.iter().map(|x| from_unsigned(*x)).collect()),
        (Data::Unsigned(v), DTypeClass::Signed) => {
            Data::Signed(v.iter().map(|x| (*x as i64).wrap(bits)).collect())
        }
        (Data::Unsigned(v), DTypeClass::Unsigned) => Data::Unsigned(v.iter().map(|x| x.wrap(bits)).collect()),
        (Data::Unsigned(v), DTypeClass::Bool) => {
            Data::Unsigned(v.iter().map(|x| u64::from(*x != 0)).collect())
        }
        (Data::Unsigned(v), DTypeClass::Complex) => {
            Data::Complex(v.iter().map(|x| (cx.round(part, x.to_f64_odd()), 0.0)).collect())
        }
        (Data::Complex(v), DTypeClass::Complex) => {
            Data::Complex(v.iter().map(|(re, im)| (cx.round(part, *re), cx.round(part, *im))).collect())
        }
        _ => return Err(unsupported("cast", x.dtype)),
    };
    Ok(Tensor::new(to, x.dims.clone(), data))
}

/// Through the bytes of the declared type. In wide precision the operand is rounded to that type first: a bit pattern
/// has no wider form.
pub(crate) fn bitcast(op: &Bitcast, x: &Tensor) -> Result<Tensor, Fault> {
    x.to_literal()
        .and_then(|bytes| Literal::new(op.to, x.dims.clone(), bytes.bytes().clone()).ok())
        .and_then(|literal| Tensor::from_literal(&literal))
        .ok_or_else(|| unsupported("bitcast", x.dtype))
}

pub(crate) fn make_complex(cx: &Context<'_>, re: &Tensor, im: &Tensor) -> Result<Tensor, Fault> {
    let pairs = re.as_floats().iter().zip(im.as_floats()).map(|(re, im)| (*re, *im)).collect();
    Ok(Tensor::new(cx.dtype(0), re.dims.clone(), Data::Complex(pairs)))
}
