//! Casts, and reinterpretation of bits.

use std::sync::Arc;

use rlx_ir::op::elementwise::{BinaryOp, Bitcast, Cast, CompareOp, RoundMode};
use rlx_ir::{DType, DTypeClass, Literal, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::{Bound, Outputs, Text};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("BitCast", &[26], bit_cast),
    onnx("Cast", &[6, 9, 13, 19, 21, 23, 24, 25, 28], cast),
    onnx("CastLike", &[15, 19, 21, 23, 24, 25], cast_like),
];

fn target(cx: &NodeContext<'_, '_>) -> Result<DType, NodeProblem> {
    cx.element_type("to")?.ok_or_else(|| NodeProblem::MissingAttribute { name: "to".to_owned() })
}

fn cast(cx: &mut NodeContext<'_, '_>) -> Handled {
    let to = target(cx)?;
    cast_to(cx, to)
}

fn cast_like(cx: &mut NodeContext<'_, '_>) -> Handled {
    let to = match cx.bound(1)? {
        Bound::Text(_) => DType::String,
        _ => {
            let like = cx.input(1)?;
            cx.dtype(like)
        }
    };
    cast_to(cx, to)
}

fn cast_to(cx: &mut NodeContext<'_, '_>, to: DType) -> Handled {
    if let Bound::Text(text) = cx.bound(0)? {
        let text = text.clone();
        return from_text(cx, &text, to);
    }
    if to == DType::String {
        return to_text(cx);
    }
    let mut x = cx.input(0)?;
    let from = cx.dtype(x);
    if from.is_float() && to.is_int() && to.bits().is_some_and(|bits| bits < 8) {
        x = zero_outside(cx, x, to)?;
    }
    let saturate = cx.flag("saturate", true)?;
    let round = match cx.optional_string("round_mode")?.as_deref() {
        _ if to != DType::E8M0 => None,
        None | Some("up") => Some(RoundMode::Up),
        Some("down") => Some(RoundMode::Down),
        Some("nearest") => Some(RoundMode::Nearest),
        Some(other) => return Err(cx.bad_attribute("round_mode", "up, down or nearest", other)),
    };
    // The attribute is about the 8-bit floats; 4-bit ones have no other value to become.
    let saturate = saturate || to == DType::F4E2M1;
    Ok(cx.builder().push1(Cast { to, saturate, round }, &[x])?.into())
}

/// Numbers outside the range of an integer type narrower than a byte become 0. ONNX leaves open what they become; its
/// test cases have 0.
fn zero_outside(cx: &mut NodeContext<'_, '_>, x: Value, to: DType) -> Result<Value, NodeProblem> {
    let bits = to.bits().unwrap_or(4);
    let (least, most) = match to.class() {
        DTypeClass::Signed => (-f64::from(1 << (bits - 1)), f64::from((1 << (bits - 1)) - 1)),
        _ => (0.0, f64::from((1 << bits) - 1)),
    };
    let b = cx.builder();
    // What truncation brings inside is inside.
    let above = b.compare_scalar(CompareOp::Gt, x, least - 1.0)?;
    let below = b.compare_scalar(CompareOp::Lt, x, most + 1.0)?;
    let inside = b.binary(BinaryOp::And, above, below)?;
    let zero = b.like(0.0, x)?;
    Ok(b.select(inside, x, zero)?)
}

/// Text to numbers: decimal and scientific notation, `INF`, `-INF` and `NaN` in any case.
fn from_text(cx: &mut NodeContext<'_, '_>, text: &Text, to: DType) -> Handled {
    if to == DType::String {
        return Ok(Bound::Text(Arc::new(text.clone())).into());
    }
    let bad = |element: &str| cx.bad_input(0, "text", format!("a number ({to})"), format!("{element:?}"));
    let literal = if to.is_int() {
        let parsed: Result<Vec<i64>, _> =
            text.elements.iter().map(|e| e.trim().parse().map_err(|_| bad(e))).collect();
        Literal::from_slice(text.dims.clone(), &parsed?)?
    } else {
        let parsed: Result<Vec<f64>, _> =
            text.elements.iter().map(|e| e.trim().parse().map_err(|_| bad(e))).collect();
        Literal::from_slice(text.dims.clone(), &parsed?)?
    };
    let b = cx.builder();
    let wide = b.constant(literal);
    Ok(b.cast(wide, to)?.into())
}

/// Numbers to text: the shortest form that reads back, with an exponent where Python's `str` has one.
fn to_text(cx: &mut NodeContext<'_, '_>) -> Handled {
    let literal = cx.constant(0, "text, which exists at import only")?;
    let dims = literal.dims().to_vec();
    let elements: Vec<String> = match literal.dtype() {
        DType::F64 => literal.to_vec::<f64>().unwrap_or_default().iter().map(|v| shown(*v, *v)).collect(),
        DType::F32 => {
            literal.to_vec::<f32>().unwrap_or_default().iter().map(|v| shown(f64::from(*v), *v)).collect()
        }
        DType::F16 | DType::BF16 => {
            let values = cx.constant_floats(0, "text")?;
            values.iter().map(|v| shown(*v, *v as f32)).collect()
        }
        DType::Bool => {
            let flags = literal.to_vec::<bool>().unwrap_or_default();
            flags.iter().map(|f| if *f { "True" } else { "False" }.to_owned()).collect()
        }
        _ => {
            let integers = literal.to_i64_vec();
            let integers =
                integers.ok_or_else(|| cx.bad_input(0, "element type", "a number type", literal.dtype()))?;
            integers.iter().map(i64::to_string).collect()
        }
    };
    Ok(Bound::Text(Arc::new(Text { dims, elements })).into())
}

fn shown(value: f64, shortest: impl std::fmt::LowerExp + std::fmt::Display) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let magnitude = value.abs();
    if value == 0.0 || (1e-4..1e16).contains(&magnitude) {
        let text = shortest.to_string();
        return if text.contains('.') { text } else { format!("{text}.0") };
    }
    // Python writes at least two digits of the exponent, and its sign.
    let text = format!("{shortest:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

fn bit_cast(cx: &mut NodeContext<'_, '_>) -> Handled {
    let to = target(cx)?;
    let x = cx.input(0)?;
    let from = cx.dtype(x);
    if from.bits() != to.bits() {
        return Err(cx.bad_input(0, "width of the element type", format!("that of {to}"), from));
    }
    // Elements narrower than a byte are reinterpreted in constants only.
    if from.bits().is_some_and(|b| b < 8) && from != to {
        let literal = cx.constant(0, "bits narrower than a byte")?;
        let literal = Literal::new(to, literal.dims().to_vec(), literal.bytes().clone())?;
        return Ok(constant(cx, literal));
    }
    Ok(cx.builder().push1(Bitcast { to }, &[x])?.into())
}

fn constant(cx: &mut NodeContext<'_, '_>, literal: Literal) -> Outputs {
    let value: Value = cx.builder().constant(literal);
    value.into()
}
