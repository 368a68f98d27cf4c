//! Comparisons, logic and bits.

use std::sync::Arc;

use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::{DType, DTypeClass, Literal, Value};

use super::elementwise::operands;
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::{Bound, Text};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("And", &[1, 7], |cx| bools(cx, BinaryOp::And)),
    onnx("BitShift", &[11, 28], bit_shift),
    onnx("BitwiseAnd", &[18], |cx| bits(cx, BinaryOp::And)),
    onnx("BitwiseNot", &[18], bit_not),
    onnx("BitwiseOr", &[18], |cx| bits(cx, BinaryOp::Or)),
    onnx("BitwiseXor", &[18], |cx| bits(cx, BinaryOp::Xor)),
    onnx("Equal", &[1, 7, 11, 13, 19], equal),
    onnx("Greater", &[1, 7, 9, 13], |cx| compare(cx, CompareOp::Gt)),
    onnx("GreaterOrEqual", &[12, 16], |cx| compare(cx, CompareOp::Ge)),
    onnx("Less", &[1, 7, 9, 13], |cx| compare(cx, CompareOp::Lt)),
    onnx("LessOrEqual", &[12, 16], |cx| compare(cx, CompareOp::Le)),
    onnx("Not", &[1], not),
    onnx("Or", &[1, 7], |cx| bools(cx, BinaryOp::Or)),
    onnx("Where", &[9, 16], where_),
    onnx("Xor", &[1, 7], |cx| bools(cx, BinaryOp::Xor)),
];

fn compare(cx: &mut NodeContext<'_, '_>, op: CompareOp) -> Handled {
    let (x, y) = operands(cx)?;
    let b = cx.builder();
    let (x, y) = b.broadcast_together(x, y)?;
    Ok(b.compare(op, x, y)?.into())
}

fn equal(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (Bound::Text(x), Bound::Text(y)) = (cx.bound(0)?, cx.bound(1)?) else {
        return compare(cx, CompareOp::Eq);
    };
    let (x, y) = (x.clone(), y.clone());
    let limit = cx.importer.options.limits.max_folded_elements;
    let (dims, pairs) = paired(&x, &y, limit).ok_or_else(|| {
        cx.bad_input(1, "sizes", format!("sizes that meet {:?}", x.dims), format!("{:?}", y.dims))
    })?;
    let same: Vec<bool> = pairs.map(|(a, b)| a == b).collect();
    Ok(cx.builder().constant(Literal::from_slice(dims, &same)?).into())
}

/// The elements of two tensors of text, broadcast together; `None` if their sizes cannot meet, or to more than `limit`
/// elements.
pub(super) fn paired<'t>(
    x: &'t Text,
    y: &'t Text,
    limit: usize,
) -> Option<(Vec<usize>, impl Iterator<Item = (&'t str, &'t str)>)> {
    let rank = x.dims.len().max(y.dims.len());
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        let of = |t: &Text| (axis + t.dims.len()).checked_sub(rank).map_or(1, |a| t.dims[a]);
        dims.push(match (of(x), of(y)) {
            (a, b) if a == b => a,
            (1, b) => b,
            (a, 1) => a,
            _ => return None,
        });
    }
    let count = crate::tensor::element_count(&dims).filter(|count| *count <= limit)?;
    let sizes = dims.clone();
    let source = move |t: &Text, i: usize| {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for axis in (0..rank).rev() {
            let index = rest % sizes[axis];
            rest /= sizes[axis];
            if let Some(a) = (axis + t.dims.len()).checked_sub(rank) {
                at += if t.dims[a] == 1 { 0 } else { index * stride };
                stride *= t.dims[a];
            }
        }
        at
    };
    Some((
        dims,
        (0..count).map(move |i| (x.elements[source(x, i)].as_str(), y.elements[source(y, i)].as_str())),
    ))
}

fn bools(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    for i in 0..2 {
        of_class(cx, i, "bool", |d| d == DType::Bool)?;
    }
    binary(cx, op)
}

fn bits(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    for i in 0..2 {
        of_class(cx, i, "an integer type", DType::is_int)?;
    }
    binary(cx, op)
}

fn binary(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    let (x, y) = operands(cx)?;
    Ok(cx.builder().broadcasting(op, x, y)?.into())
}

fn of_class(
    cx: &mut NodeContext<'_, '_>,
    i: usize,
    expected: &'static str,
    accepts: impl Fn(DType) -> bool,
) -> Result<Value, NodeProblem> {
    let x = cx.input(i)?;
    let dtype = cx.dtype(x);
    if accepts(dtype) { Ok(x) } else { Err(cx.bad_input(i, "element type", expected, dtype)) }
}

fn not(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = of_class(cx, 0, "bool", |d| d == DType::Bool)?;
    Ok(cx.builder().unary(UnaryOp::Not, x)?.into())
}

fn bit_not(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = of_class(cx, 0, "an integer type", DType::is_int)?;
    Ok(cx.builder().unary(UnaryOp::BitNot, x)?.into())
}

/// Shifts; a negative count is as one of the width or more (opset 28).
fn bit_shift(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, mut y) = (cx.input(0)?, cx.input(1)?);
    let direction = cx.optional_string("direction")?;
    let op = match direction.as_deref() {
        Some("LEFT") => BinaryOp::Shl,
        Some("RIGHT") => BinaryOp::Shr,
        Some(other) => return Err(cx.bad_attribute("direction", "LEFT or RIGHT", other)),
        None => return Err(NodeProblem::MissingAttribute { name: "direction".to_owned() }),
    };
    let dtype = cx.dtype(y);
    if dtype.class() == DTypeClass::Signed {
        let b = cx.builder();
        let negative = b.compare_scalar(CompareOp::Lt, y, 0.0)?;
        let width = b.like(f64::from(dtype.bits().unwrap_or(64)), y)?;
        y = b.select(negative, width, y)?;
    }
    Ok(cx.builder().broadcasting(op, x, y)?.into())
}

fn where_(cx: &mut NodeContext<'_, '_>) -> Handled {
    let all = match (cx.bound(1)?, cx.bound(2)?) {
        (Bound::Text(x), Bound::Text(y)) => {
            let (x, y) = (x.clone(), y.clone());
            return where_text(cx, &x, &y);
        }
        _ => [cx.input(0)?, cx.input(1)?, cx.input(2)?],
    };
    let all = cx.broadcast(&all)?;
    Ok(cx.builder().select(all[0], all[1], all[2])?.into())
}

fn where_text(cx: &mut NodeContext<'_, '_>, x: &Text, y: &Text) -> Handled {
    let condition = cx.constant(0, "which text is taken")?;
    let limit = cx.importer.options.limits.max_folded_elements;
    let flags = condition.to_i64_vec().unwrap_or_default();
    // The condition takes part in broadcasting as text does.
    let flags = Text {
        dims: condition.dims().to_vec(),
        elements: flags.iter().map(|f| if *f != 0 { "x" } else { "" }.to_owned()).collect(),
    };
    let meet = |a: &Text, b: &Text| {
        let (dims, pairs) = paired(a, b, limit)?;
        let (first, second): (Vec<String>, Vec<String>) =
            pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).unzip();
        Some((Text { dims: dims.clone(), elements: first }, Text { dims, elements: second }))
    };
    let met = meet(x, y).and_then(|(x, y)| {
        let (flags, x) = meet(&flags, &x)?;
        let (_, y) = meet(&flags, &y)?;
        Some((flags, x, y))
    });
    let Some((flags, x, y)) = met else {
        return Err(cx.bad_input(2, "sizes", "sizes that broadcast", format!("{:?}", y.dims)));
    };
    let pairs = x.elements.into_iter().zip(y.elements).zip(&flags.elements);
    let elements = pairs.map(|((x, y), f)| if f.is_empty() { y } else { x }).collect();
    Ok(Bound::Text(Arc::new(Text { dims: flags.dims, elements })).into())
}
