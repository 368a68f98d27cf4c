//! Arithmetic, rounding and transcendental functions of elements. Operands are broadcast together as numpy does.

use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::{Builder, DType, Dim, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Abs", &[1, 6, 13], |cx| unary(cx, UnaryOp::Abs)),
    onnx("Acos", &[7, 22], |cx| unary(cx, UnaryOp::Acos)),
    onnx("Acosh", &[9, 22], |cx| unary(cx, UnaryOp::Acosh)),
    onnx("Add", &[1, 6, 7, 13, 14], |cx| binary(cx, BinaryOp::Add)),
    onnx("Asin", &[7, 22], |cx| unary(cx, UnaryOp::Asin)),
    onnx("Asinh", &[9, 22], |cx| unary(cx, UnaryOp::Asinh)),
    onnx("Atan", &[7, 22], |cx| unary(cx, UnaryOp::Atan)),
    onnx("Atanh", &[9, 22], |cx| unary(cx, UnaryOp::Atanh)),
    onnx("Ceil", &[1, 6, 13], |cx| unary(cx, UnaryOp::Ceil)),
    onnx("Clip", &[1, 6, 11, 12, 13], clip),
    onnx("Cos", &[7, 22], |cx| unary(cx, UnaryOp::Cos)),
    onnx("Cosh", &[9, 22], |cx| unary(cx, UnaryOp::Cosh)),
    onnx("Div", &[1, 6, 7, 13, 14], |cx| binary(cx, BinaryOp::Div)),
    onnx("Erf", &[9, 13], |cx| unary(cx, UnaryOp::Erf)),
    onnx("Exp", &[1, 6, 13], |cx| unary(cx, UnaryOp::Exp)),
    onnx("Floor", &[1, 6, 13], |cx| unary(cx, UnaryOp::Floor)),
    onnx("IsInf", &[10, 20], is_inf),
    onnx("IsNaN", &[9, 13, 20], |cx| unary(cx, UnaryOp::IsNan)),
    onnx("Log", &[1, 6, 13], |cx| unary(cx, UnaryOp::Log)),
    onnx("Max", &[1, 6, 8, 12, 13], |cx| variadic(cx, BinaryOp::Max)),
    onnx("Mean", &[1, 6, 8, 13], mean),
    onnx("Min", &[1, 6, 8, 12, 13], |cx| variadic(cx, BinaryOp::Min)),
    onnx("Mod", &[10, 13, 28], modulo),
    onnx("Mul", &[1, 6, 7, 13, 14], |cx| binary(cx, BinaryOp::Mul)),
    onnx("Neg", &[1, 6, 13], |cx| unary(cx, UnaryOp::Neg)),
    onnx("Pow", &[1, 7, 12, 13, 15], pow),
    onnx("Reciprocal", &[1, 6, 13], reciprocal),
    onnx("Round", &[11, 22], |cx| unary(cx, UnaryOp::Round)),
    onnx("Sign", &[9, 13], |cx| unary(cx, UnaryOp::Sign)),
    onnx("Sin", &[7, 22], |cx| unary(cx, UnaryOp::Sin)),
    onnx("Sinh", &[9, 22], |cx| unary(cx, UnaryOp::Sinh)),
    onnx("Sqrt", &[1, 6, 13], |cx| unary(cx, UnaryOp::Sqrt)),
    onnx("Sub", &[1, 6, 7, 13, 14], |cx| binary(cx, BinaryOp::Sub)),
    onnx("Sum", &[1, 6, 8, 13], |cx| variadic(cx, BinaryOp::Add)),
    onnx("Tan", &[7, 22], |cx| unary(cx, UnaryOp::Tan)),
    onnx("Tanh", &[1, 6, 13], |cx| unary(cx, UnaryOp::Tanh)),
];

fn unary(cx: &mut NodeContext<'_, '_>, op: UnaryOp) -> Handled {
    let x = cx.input(0)?;
    Ok(cx.builder().unary(op, x)?.into())
}

/// The two operands, ready to be broadcast as numpy does. Before opset 7 the second one's axes are those of the first
/// from `axis` on.
pub(super) fn operands(cx: &mut NodeContext<'_, '_>) -> Result<(Value, Value), NodeProblem> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let axis = if cx.since() < 7 { cx.optional_int("axis")? } else { None };
    let Some(axis) = axis else { return Ok((x, y)) };
    let rank = cx.rank(x);
    let axis = cx.axis(axis, rank)?;
    let mut dims = cx.shape(y).to_vec();
    let after = rank.checked_sub(axis + dims.len());
    let after = after
        .ok_or_else(|| cx.bad_input(1, "number of axes", format!("at most {}", rank - axis), dims.len()))?;
    dims.extend(std::iter::repeat_n(Dim::ONE, after));
    Ok((x, cx.builder().reshape(y, &dims)?))
}

fn binary(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    let (x, y) = operands(cx)?;
    Ok(cx.builder().broadcasting(op, x, y)?.into())
}

fn combined(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Result<Value, NodeProblem> {
    let inputs = cx.all_inputs()?;
    let mut inputs = cx.broadcast(&inputs)?.into_iter();
    let first = inputs.next().ok_or(NodeProblem::MissingInput { operand: 0 })?;
    let b = cx.builder();
    Ok(inputs.try_fold(first, |all, x| b.binary(op, all, x))?)
}

fn variadic(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    Ok(combined(cx, op)?.into())
}

fn mean(cx: &mut NodeContext<'_, '_>) -> Handled {
    let sum = combined(cx, BinaryOp::Add)?;
    let count = cx.input_count() as f64;
    Ok(cx.builder().binary_scalar(BinaryOp::Div, sum, count)?.into())
}

fn reciprocal(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let b = cx.builder();
    let one = b.like(1.0, x)?;
    Ok(b.div(one, x)?.into())
}

/// min(max(x, low), high). Bounds are attributes before opset 11, scalar inputs since.
fn clip(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (dtype, dims) = (cx.dtype(x), cx.shape(x));
    let bounds = if cx.since() < 11 {
        let (low, high) = (cx.optional_float("min")?, cx.optional_float("max")?);
        let mut scalar = |bound: Option<f64>| bound.map(|v| cx.builder().scalar(v, dtype)).transpose();
        [scalar(low)?, scalar(high)?]
    } else {
        [cx.optional(1)?, cx.optional(2)?]
    };
    let mut clipped = x;
    for (bound, op) in bounds.into_iter().zip([BinaryOp::Max, BinaryOp::Min]) {
        if let Some(bound) = bound {
            let b = cx.builder();
            let scalar = b.reshape(bound, &[])?;
            let bound = b.broadcast_to(scalar, &dims)?;
            clipped = b.binary(op, clipped, bound)?;
        }
    }
    Ok(clipped.into())
}

/// Whether x is an infinity of a sign that is asked for.
fn is_inf(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (negative, positive) = (cx.flag("detect_negative", true)?, cx.flag("detect_positive", true)?);
    let b = cx.builder();
    let infinite = b.unary(UnaryOp::IsInf, x)?;
    let of_sign = match (negative, positive) {
        (true, true) => return Ok(infinite.into()),
        (true, false) => b.compare_scalar(CompareOp::Lt, x, 0.0)?,
        (false, true) => b.compare_scalar(CompareOp::Gt, x, 0.0)?,
        (false, false) => b.like(0.0, infinite)?,
    };
    Ok(b.binary(BinaryOp::And, infinite, of_sign)?.into())
}

/// The remainder of floored division (`fmod` 0) or of truncating division.
fn modulo(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let truncating = cx.flag("fmod", false)?;
    let b = cx.builder();
    let (x, y) = b.broadcast_together(x, y)?;
    let remainder = b.binary(BinaryOp::Rem, x, y)?;
    if truncating || matches!(b.dtype(x).class(), rlx_ir::DTypeClass::Unsigned) {
        return Ok(remainder.into());
    }
    Ok(floored(b, remainder, y)?.into())
}

/// The remainder of floored division by y, from that of truncating division: it has the sign of y.
fn floored(b: &mut Builder, remainder: Value, y: Value) -> Result<Value, TypeError> {
    let zero = b.like(0.0, y)?;
    let not_whole = b.compare(CompareOp::Ne, remainder, zero)?;
    let remainder_below = b.compare(CompareOp::Lt, remainder, zero)?;
    let y_below = b.compare(CompareOp::Lt, y, zero)?;
    let signs_differ = b.compare(CompareOp::Ne, remainder_below, y_below)?;
    let other_side = b.binary(BinaryOp::And, not_whole, signs_differ)?;
    let shifted = b.add(remainder, y)?;
    let result = b.select(other_side, shifted, remainder)?;
    if !b.dtype(y).is_float() {
        return Ok(result);
    }
    // A zero takes the sign of y too.
    let magnitude = b.unary(UnaryOp::Abs, result)?;
    let negative = b.unary(UnaryOp::Neg, magnitude)?;
    let signed_zero = b.select(y_below, negative, magnitude)?;
    let is_zero = b.compare(CompareOp::Eq, result, zero)?;
    b.select(is_zero, signed_zero, result)
}

/// xʸ in the type of x. An integer base with a float exponent is computed in f64, as numpy does, and truncated.
fn pow(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, y) = operands(cx)?;
    let (base, exponent) = (cx.dtype(x), cx.dtype(y));
    let b = cx.builder();
    let computed = match (base.is_float(), exponent.is_float()) {
        (false, true) => DType::F64,
        // An exponent of another width must not lose bits to the base's.
        _ if base.bits() < exponent.bits() => exponent_type(base, exponent),
        _ => base,
    };
    let (x, y) = (b.cast(x, computed)?, b.cast(y, computed)?);
    let power = b.broadcasting(BinaryOp::Pow, x, y)?;
    Ok(b.cast(power, base)?.into())
}

/// A type of the base's class as wide as the exponent's.
fn exponent_type(base: DType, exponent: DType) -> DType {
    match (base.is_float(), exponent.bits()) {
        (true, Some(64)) => DType::F64,
        (true, _) => DType::F32,
        (false, _) => exponent,
    }
}
