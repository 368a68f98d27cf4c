//! Rules of numbers that change no bit of a result.
//!
//! What is *not* here: x + 0 (−0 + 0 is 0) unless x is never −0, x · 0 (NaN), x − x, and any reordering of rounded sums
//! and products.

use super::built1;
use crate::raise::{is_power_of_two, uniform};
use rlx_ir::op::elementwise::{Binary, BinaryOp, UnaryOp};
use rlx_ir::op::reduce::{Reduce, ReduceOp};
use rlx_ir::{Builder, DType, Op, Primitive, TypeError, Value};

type Ruled = Result<Option<Value>, TypeError>;

fn primitive(b: &Builder, v: Value) -> Option<&Primitive> {
    match &b.graph().node(v.node).op {
        Op::Primitive(primitive) => Some(primitive),
        Op::Composite(_) => None,
    }
}

fn operand(b: &Builder, v: Value, index: usize) -> Option<Value> {
    b.graph().node(v.node).operands.get(index).copied()
}

fn binary(op: &Op, operands: &[Value]) -> Option<(BinaryOp, Value, Value)> {
    match (op, operands) {
        (Op::Primitive(Primitive::Binary(b)), [x, y]) => Some((b.op, *x, *y)),
        _ => None,
    }
}

/// Bits of an integer type and whether it is signed.
fn integer(dtype: DType) -> Option<(u32, bool)> {
    use DType::*;
    let signed = match dtype {
        I2 | I4 | I8 | I16 | I32 | I64 => true,
        U2 | U4 | U8 | U16 | U32 | U64 => false,
        _ => return None,
    };
    Some((dtype.bits()?, signed))
}

/// Binary digits that a float type has, and its greatest exponent.
fn float(dtype: DType) -> Option<(u32, u32)> {
    Some(match dtype {
        DType::F64 => (53, 1023),
        DType::F32 => (24, 127),
        DType::BF16 => (8, 127),
        DType::F16 => (11, 15),
        _ => return None,
    })
}

/// Whether every number of `from` is a number of `to`.
fn embeds(from: DType, to: DType) -> bool {
    if from == to {
        return true;
    }
    if from == DType::Bool {
        return integer(to).is_some() || float(to).is_some();
    }
    match (integer(from), integer(to), float(from), float(to)) {
        (Some((from, from_signed)), Some((to, to_signed)), ..) => {
            if from_signed == to_signed {
                from <= to
            } else {
                !from_signed && from < to
            }
        }
        (Some((bits, signed)), _, _, Some((digits, greatest))) => {
            bits - u32::from(signed) <= digits && bits <= greatest
        }
        (_, _, Some((from, from_greatest)), Some((to, to_greatest))) => {
            // Subnormals too: a wider exponent or the same one with more digits.
            from <= to && from_greatest <= to_greatest
        }
        _ => false,
    }
}

/// A cast of a cast through a type that holds everything the first one does.
pub(super) fn casts(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let (Op::Primitive(Primitive::Cast(outer)), [x]) = (op, operands) else { return Ok(None) };
    let Some(Primitive::Cast(inner)) = primitive(b, *x) else { return Ok(None) };
    let middle = inner.to;
    let Some(source) = operand(b, *x, 0) else { return Ok(None) };
    let from = b.dtype(source);
    if outer.round.is_some() || inner.round.is_some() || !embeds(from, middle) {
        return Ok(None);
    }
    if from == outer.to {
        return Ok(Some(source));
    }
    built1(b, outer.clone(), &[source]).map(Some)
}

/// x · 1, x / 1, x − 0, x + (−0), x + 0 where x is never −0, x¹, and the like for integers and bools.
pub(super) fn neutral(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let Some((op, x, y)) = binary(op, operands) else { return Ok(None) };
    let is_float = b.dtype(x).is_float();
    let is = |v: Option<f64>, number: f64| v.is_some_and(|n| n.to_bits() == number.to_bits());
    let (left, right) = (uniform(b.graph(), x), uniform(b.graph(), y));
    let kept = match op {
        BinaryOp::Mul if is(right, 1.0) => Some(x),
        BinaryOp::Mul if is(left, 1.0) => Some(y),
        BinaryOp::Div | BinaryOp::Pow if is(right, 1.0) => Some(x),
        BinaryOp::Sub if is(right, 0.0) => Some(x),
        BinaryOp::Add if is(right, -0.0) => Some(x),
        BinaryOp::Add if is(left, -0.0) => Some(y),
        BinaryOp::Add if is(right, 0.0) && (!is_float || not_negative(b, x, DEPTH)) => Some(x),
        BinaryOp::Add if is(left, 0.0) && (!is_float || not_negative(b, y, DEPTH)) => Some(y),
        BinaryOp::And | BinaryOp::Or if x == y => Some(x),
        BinaryOp::Max | BinaryOp::Min if x == y => Some(x),
        _ => None,
    };
    Ok(kept)
}

/// How deep [`not_negative`] looks.
const DEPTH: usize = 6;

/// Whether x is NaN or at least +0, never −0.
fn not_negative(b: &Builder, x: Value, depth: usize) -> bool {
    if let Some(c) = uniform(b.graph(), x) {
        return c > 0.0 || c.to_bits() == 0;
    }
    let (Some(p), Some(depth)) = (primitive(b, x), depth.checked_sub(1)) else { return false };
    let of = |i: usize| operand(b, x, i).is_some_and(|v| not_negative(b, v, depth));
    match p {
        Primitive::Unary(u) => match u.op {
            UnaryOp::Abs | UnaryOp::Exp | UnaryOp::Sigmoid | UnaryOp::Erfc => true,
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Round | UnaryOp::Trunc | UnaryOp::Ceil => of(0),
            _ => false,
        },
        Primitive::Binary(binary) => match binary.op {
            BinaryOp::Mul => operand(b, x, 0) == operand(b, x, 1) || (of(0) && of(1)),
            BinaryOp::Add | BinaryOp::Div | BinaryOp::Min => of(0) && of(1),
            BinaryOp::Max => of(0) || of(1),
            _ => false,
        },
        Primitive::Reduce(r) => matches!(r.op, ReduceOp::Sum | ReduceOp::Prod) && of(0),
        Primitive::Broadcast(_) | Primitive::Reshape(_) | Primitive::Transpose(_) | Primitive::Slice(_) => {
            of(0)
        }
        // A size is not negative.
        Primitive::Cast(_) => {
            operand(b, x, 0).is_some_and(|v| matches!(primitive(b, v), Some(Primitive::DimValue(_))))
        }
        _ => false,
    }
}

/// x² as x · x; x^½ as √x where x is not negative (√−0 and √−∞ differ from the powers); x / 2ⁿ as x · 2⁻ⁿ.
pub(super) fn powers(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let Some((op, x, y)) = binary(op, operands) else { return Ok(None) };
    if !b.dtype(x).is_float() {
        return Ok(None);
    }
    let Some(c) = uniform(b.graph(), y) else { return Ok(None) };
    match op {
        BinaryOp::Pow if c == 2.0 => built1(b, Binary { op: BinaryOp::Mul }, &[x, x]).map(Some),
        BinaryOp::Pow if c == 0.5 && not_negative(b, x, DEPTH) => b.unary(UnaryOp::Sqrt, x).map(Some),
        BinaryOp::Pow if c == -0.5 && not_negative(b, x, DEPTH) => b.unary(UnaryOp::Rsqrt, x).map(Some),
        // 2⁻¹²⁶ and its inverse are normal in f32, and 2⁻¹⁴ in f16: farther ones stay.
        BinaryOp::Div if is_power_of_two(c) && c != 1.0 && (-14..=14).contains(&exponent(c)) => {
            b.mul_scalar(x, 1.0 / c).map(Some)
        }
        _ => Ok(None),
    }
}

fn exponent(c: f64) -> i64 {
    ((c.to_bits() >> 52) & 0x7ff) as i64 - 1023
}

/// −(−x), not not x, |x| of what is not negative, max(max(x, c), c) and the like.
pub(super) fn twice(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    if let Some((op, x, y)) = binary(op, operands)
        && matches!(op, BinaryOp::Max | BinaryOp::Min | BinaryOp::And | BinaryOp::Or)
        && let Some(Primitive::Binary(inner)) = primitive(b, x)
        && inner.op == op
        && (operand(b, x, 0) == Some(y) || operand(b, x, 1) == Some(y))
    {
        return Ok(Some(x));
    }
    let (Op::Primitive(Primitive::Unary(outer)), [x]) = (op, operands) else { return Ok(None) };
    if outer.op == UnaryOp::Abs && b.dtype(*x).is_float() && not_negative(b, *x, DEPTH) {
        return Ok(Some(*x));
    }
    let Some(Primitive::Unary(inner)) = primitive(b, *x) else { return Ok(None) };
    let same = inner.op == outer.op;
    match outer.op {
        UnaryOp::Neg | UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Conj if same => Ok(operand(b, *x, 0)),
        UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc
            if same =>
        {
            Ok(Some(*x))
        }
        UnaryOp::Abs if inner.op == UnaryOp::Neg && b.dtype(*x).is_float() => match operand(b, *x, 0) {
            Some(of) => b.unary(UnaryOp::Abs, of).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// (x + a) + b and (x · a) · b with constants a and b of integers, which wrap alike in every order.
pub(super) fn chains(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let Some((op, x, y)) = binary(op, operands) else { return Ok(None) };
    if !matches!(op, BinaryOp::Add | BinaryOp::Mul) || !b.dtype(x).is_int() {
        return Ok(None);
    }
    let is_constant = |b: &Builder, v: Value| uniform(b.graph(), v).is_some();
    let (x, outer) = match (is_constant(b, x), is_constant(b, y)) {
        (false, true) => (x, y),
        (true, false) => (y, x),
        _ => return Ok(None),
    };
    if !matches!(primitive(b, x), Some(Primitive::Binary(inner)) if inner.op == op) {
        return Ok(None);
    }
    let (Some(p), Some(q)) = (operand(b, x, 0), operand(b, x, 1)) else { return Ok(None) };
    let (source, inner) = match (is_constant(b, p), is_constant(b, q)) {
        (false, true) => (p, q),
        (true, false) => (q, p),
        _ => return Ok(None),
    };
    let constant = built1(b, Binary { op }, &[inner, outer])?;
    built1(b, Binary { op }, &[source, constant]).map(Some)
}

/// c ? x : x, and selections by constants.
pub(super) fn selections(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let (Op::Primitive(Primitive::Select(_)), [c, x, y]) = (op, operands) else { return Ok(None) };
    if x == y {
        return Ok(Some(*x));
    }
    if let Some(condition) = uniform(b.graph(), *c) {
        return Ok(Some(if condition != 0.0 { *x } else { *y }));
    }
    if let Some(Primitive::Unary(u)) = primitive(b, *c)
        && u.op == UnaryOp::Not
        && let Some(of) = operand(b, *c, 0)
    {
        return b.select(of, *y, *x).map(Some);
    }
    Ok(None)
}

/// A reduction of axes of size 1 is a reshape. (A sum of one −0 is 0, so float sums only of what is never −0.)
pub(super) fn size_one_reductions(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let (Op::Primitive(Primitive::Reduce(reduce)), [x]) = (op, operands) else { return Ok(None) };
    let Reduce { op: kind, axes, accum, .. } = reduce;
    let t = b.type_of(*x).clone();
    let ones =
        !axes.is_empty() && axes.iter().all(|a| t.dims().get(*a).and_then(|d| d.as_const()) == Some(1));
    if !ones || accum.is_some_and(|a| a != t.dtype) {
        return Ok(None);
    }
    if *kind == ReduceOp::Sum && t.dtype.is_float() && !not_negative(b, *x, DEPTH) {
        return Ok(None);
    }
    let dims = if reduce.keep_dims { t.shape.clone() } else { t.shape.without(axes) };
    b.reshape(*x, &dims).map(Some)
}
