//! Constants, and tensors that are made from sizes and numbers.

use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::{DType, Dim, Literal, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::{Bound, Constant, Text};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Constant", &[1, 9, 11, 12, 13, 19, 21, 23, 24, 25], constant),
    onnx("ConstantOfShape", &[9, 20, 21, 23, 24, 25], constant_of_shape),
    onnx("EyeLike", &[9, 22], eye_like),
    onnx("Identity", &[1, 13, 14, 16, 19, 21, 23, 24, 25], identity),
    onnx("OneHot", &[9, 11, 28], one_hot),
    onnx("Range", &[11, 27], range),
    onnx("Shape", &[1, 13, 15, 19, 21, 23, 24, 25], shape),
    onnx("Size", &[1, 13, 19, 21, 23, 24, 25], size),
    onnx("Trilu", &[14], trilu),
];

fn constant(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut found: Option<Constant> = cx.tensor("value")?;
    let mut add = |constant: Option<Constant>| {
        if found.is_none() {
            found = constant;
        }
    };
    add(cx.sparse_tensor("sparse_value")?);
    add(cx.optional_int("value_int")?.map(|v| Literal::scalar(v).into()));
    add(cx.ints("value_ints")?.map(|v| Literal::vector(&v).into()));
    add(cx.optional_float("value_float")?.map(|v| Literal::scalar(v as f32).into()));
    add(cx.floats("value_floats")?.map(|v| {
        let narrow: Vec<f32> = v.iter().map(|f| *f as f32).collect();
        Literal::vector(&narrow).into()
    }));
    add(cx
        .optional_string("value_string")?
        .map(|text| Constant::Text(Text { dims: Vec::new(), elements: vec![text] })));
    add(cx
        .strings("value_strings")?
        .map(|elements| Constant::Text(Text { dims: vec![elements.len()], elements })));
    match found {
        Some(constant) => Ok(cx.importer.constant(constant).into()),
        None => Err(NodeProblem::MissingAttribute { name: "value".to_owned() }),
    }
}

fn constant_of_shape(cx: &mut NodeContext<'_, '_>) -> Handled {
    let literal = match cx.tensor("value")? {
        None => Literal::scalar(0.0f32),
        Some(Constant::Tensor(literal)) if literal.element_count() == 1 => literal.reshaped(Vec::new())?,
        Some(_) => return Err(cx.bad_attribute("value", "a tensor of one number", "another tensor")),
    };
    let dims = cx.dims(0, "size")?;
    let b = cx.builder();
    let scalar = b.constant(literal);
    Ok(b.broadcast_to(scalar, &dims)?.into())
}

fn identity(cx: &mut NodeContext<'_, '_>) -> Handled {
    Ok(cx.bound(0)?.clone().into())
}

/// Ones where column − row is k.
fn eye_like(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let k = cx.int("k", 0)?;
    let dtype = cx.element_type("dtype")?;
    let t = cx.builder().type_of(x).clone();
    if t.rank() != 2 {
        return Err(cx.bad_input(0, "number of axes", 2, t.rank()));
    }
    let on_diagonal = diagonal(cx, t.dims(), k, CompareOp::Eq)?;
    Ok(cx.builder().cast(on_diagonal, dtype.unwrap_or(t.dtype))?.into())
}

/// Whether column − row is in this relation to k, over the last two axes of `dims`.
fn diagonal(
    cx: &mut NodeContext<'_, '_>,
    dims: &[Dim],
    k: i64,
    relation: CompareOp,
) -> Result<Value, NodeProblem> {
    let k = cx.builder().constant(Literal::scalar(k));
    diagonal_at(cx, dims, k, relation)
}

fn diagonal_at(
    cx: &mut NodeContext<'_, '_>,
    dims: &[Dim],
    k: Value,
    relation: CompareOp,
) -> Result<Value, NodeProblem> {
    let matrix = &dims[dims.len() - 2..];
    let b = cx.builder();
    let row = b.iota(DType::I64, matrix, 0)?;
    let column = b.iota(DType::I64, matrix, 1)?;
    let offset = b.sub(column, row)?;
    let k = b.broadcast_to(k, matrix)?;
    let holds = b.compare(relation, offset, k)?;
    Ok(b.broadcast_to(holds, dims)?)
}

/// The upper or lower triangle, zeros elsewhere.
fn trilu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let upper = cx.flag("upper", true)?;
    let dims = cx.shape(x);
    if dims.rank() < 2 {
        return Err(cx.bad_input(0, "number of axes", "at least 2", dims.rank()));
    }
    let k = match cx.optional(1)? {
        None => cx.builder().constant(Literal::scalar(0i64)),
        Some(k) => {
            let b = cx.builder();
            let scalar = b.reshape(k, &[])?;
            b.cast(scalar, DType::I64)?
        }
    };
    let kept = diagonal_at(cx, &dims, k, if upper { CompareOp::Ge } else { CompareOp::Le })?;
    let b = cx.builder();
    let zero = b.like(0.0, x)?;
    Ok(b.select(kept, x, zero)?.into())
}

/// values\[1\] at the index, values\[0\] elsewhere, along a new axis of size `depth`.
fn one_hot(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (indices, values) = (cx.input(0)?, cx.input(2)?);
    let axis = cx.int("axis", -1)?;
    let rank = cx.rank(indices) + 1;
    let axis = cx.axis(axis, rank)?;
    let depth = {
        let depth = cx.input(1)?;
        let b = cx.builder();
        let scalar = b.reshape(depth, &[])?;
        let whole = b.cast(scalar, DType::I64)?;
        b.bind_dim(whole, "depth", 0)?
    };
    let b = cx.builder();
    let mut dims = b.shape(indices).to_vec();
    dims.insert(axis, depth.clone());
    let indices = b.cast(indices, DType::I64)?;
    let indices = b.unsqueeze(indices, axis)?;
    let indices = b.broadcast_to(indices, &dims)?;
    let size = b.dim_value(&depth)?;
    let size = b.broadcast_to(size, &dims)?;
    let from_end = b.add(indices, size)?;
    let negative = b.compare_scalar(CompareOp::Lt, indices, 0.0)?;
    let indices = b.select(negative, from_end, indices)?;
    let place = b.iota(DType::I64, &dims, axis)?;
    let hit = b.compare(CompareOp::Eq, place, indices)?;
    let off = b.index_axis(values, 0, &Dim::ZERO)?;
    let on = b.index_axis(values, 0, &Dim::ONE)?;
    let (on, off) = (b.broadcast_to(on, &dims)?, b.broadcast_to(off, &dims)?);
    Ok(b.select(hit, on, off)?.into())
}

/// start, start + delta, … before limit: max(0, ⌈(limit − start) / delta⌉) numbers.
fn range(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut scalars = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let dtype = cx.dtype(scalars[0]);
    for value in &mut scalars {
        *value = cx.builder().reshape(*value, &[])?;
    }
    let [start, limit, delta] = scalars;
    let count = match known_count(cx, scalars) {
        Some(count) => count,
        None => computed_count(cx, start, limit, delta)?,
    };
    let b = cx.builder();
    let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
    let dims = [count];
    let place = b.iota(wide, &dims, 0)?;
    let (start, delta) = (b.cast(start, wide)?, b.cast(delta, wide)?);
    let (start, delta) = (b.broadcast_to(start, &dims)?, b.broadcast_to(delta, &dims)?);
    let steps = b.mul(place, delta)?;
    let elements = b.add(start, steps)?;
    Ok(b.cast(elements, dtype)?.into())
}

/// The count where the operands are known as sizes and the step is a constant.
fn known_count(cx: &mut NodeContext<'_, '_>, [start, limit, delta]: [Value; 3]) -> Option<Dim> {
    let b = cx.builder();
    let (start, limit) = (b.known(start)?.first()?.clone(), b.known(limit)?.first()?.clone());
    let delta = b.known_constants(delta)?.first().copied().filter(|d| *d != 0)?;
    let (distance, step) = if delta > 0 { (limit - &start, delta) } else { (start - &limit, -delta) };
    let count = distance.ceil_div(&step.into());
    let range = b.graph().symbols().range(&count);
    Some(if range.min >= 0 { count } else { count.max(&Dim::ZERO) })
}

/// The count computed when the graph runs.
fn computed_count(
    cx: &mut NodeContext<'_, '_>,
    start: Value,
    limit: Value,
    delta: Value,
) -> Result<Dim, NodeProblem> {
    let b = cx.builder();
    // f64 holds the quotient of any narrower float exactly enough, and integers as far as a size can matter.
    let (start, limit) = (b.cast(start, DType::F64)?, b.cast(limit, DType::F64)?);
    let delta = b.cast(delta, DType::F64)?;
    let distance = b.sub(limit, start)?;
    let steps = b.div(distance, delta)?;
    let steps = b.unary(UnaryOp::Ceil, steps)?;
    let count = b.cast(steps, DType::I64)?;
    let count = b.binary_scalar(BinaryOp::Max, count, 0.0)?;
    Ok(b.bind_dim(count, "range", 0)?)
}

/// The sizes, or (opset 15) a slice of them; bounds outside are clamped.
fn shape(cx: &mut NodeContext<'_, '_>) -> Handled {
    let dims: Vec<Dim> = match cx.bound(0)? {
        Bound::Text(text) => text.dims.iter().map(|d| Dim::from(*d)).collect(),
        _ => {
            let x = cx.input(0)?;
            cx.shape(x).to_vec()
        }
    };
    let rank = dims.len() as i64;
    let bound = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let start = bound(cx.int("start", 0)?);
    let end = bound(cx.int("end", rank)?);
    Ok(cx.builder().dims_value(dims.get(start..end.max(start)).unwrap_or_default())?.into())
}

fn size(cx: &mut NodeContext<'_, '_>) -> Handled {
    let count = match cx.bound(0)? {
        Bound::Text(text) => Dim::from(text.elements.len()),
        _ => {
            let x = cx.input(0)?;
            cx.shape(x).element_count()
        }
    };
    Ok(cx.builder().dim_value(&count)?.into())
}
