//! Operators of `ai.onnx.ml` that compute with numbers; maps from text are applied where the text is known at import.

use std::sync::Arc;

use rlx_ir::op::elementwise::{BinaryOp, CompareOp};
use rlx_ir::op::reduce::ReduceOp;
use rlx_ir::{DType, Dim, Literal, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain};
use crate::values::{Bound, Constant, Outputs, Text};

const DOMAIN: &str = "ai.onnx.ml";

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    of_domain(DOMAIN, "ArrayFeatureExtractor", &[1], array_feature_extractor),
    of_domain(DOMAIN, "Binarizer", &[1], binarizer),
    of_domain(DOMAIN, "LabelEncoder", &[2, 4], label_encoder),
    of_domain(DOMAIN, "Scaler", &[1], scaler),
];

/// The elements of the last axis at these indices; a vector gives a matrix of one row.
fn array_feature_extractor(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.rank(x);
    if rank == 0 {
        return Err(cx.bad_input(0, "number of axes", "at least 1", 0));
    }
    let b = cx.builder();
    let count = b.shape(indices).element_count();
    let flat = b.reshape(indices, &[count])?;
    let picked = b.take(x, flat, rank - 1)?;
    Ok(if rank == 1 { b.unsqueeze(picked, 0)? } else { picked }.into())
}

/// 1 above the threshold, else 0.
fn binarizer(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let threshold = cx.float("threshold", 0.0)?;
    let dtype = cx.dtype(x);
    let b = cx.builder();
    let above = b.compare_scalar(CompareOp::Gt, x, threshold)?;
    Ok(b.cast(above, dtype)?.into())
}

/// (x − offset) · scale as f32; each of the two is one number or one a feature.
fn scaler(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (offset, scale) = (cx.floats("offset")?, cx.floats("scale")?);
    let b = cx.builder();
    let mut y = b.cast(x, DType::F32)?;
    for (op, numbers) in [(BinaryOp::Sub, offset), (BinaryOp::Mul, scale)] {
        if let Some(numbers) = numbers {
            let narrow: Vec<f32> = numbers.iter().map(|n| *n as f32).collect();
            let numbers = b.vector(&narrow);
            let numbers = b.broadcast_to(numbers, &b.shape(y))?;
            y = b.binary(op, y, numbers)?;
        }
    }
    Ok(y.into())
}

/// One side of the map, one form of the attributes.
fn side(cx: &NodeContext<'_, '_>, name: &str) -> Result<Constant, NodeProblem> {
    if let Some(tensor) = cx.tensor(&format!("{name}_tensor"))? {
        return Ok(tensor);
    }
    if let Some(elements) = cx.strings(&format!("{name}_strings"))? {
        return Ok(Constant::Text(Text { dims: vec![elements.len()], elements }));
    }
    if let Some(integers) = cx.ints(&format!("{name}_int64s"))? {
        return Ok(Literal::vector(&integers).into());
    }
    match cx.floats(&format!("{name}_floats"))? {
        Some(floats) => {
            let narrow: Vec<f32> = floats.iter().map(|f| *f as f32).collect();
            Ok(Literal::vector(&narrow).into())
        }
        None => Err(NodeProblem::MissingAttribute { name: format!("{name}_int64s") }),
    }
}

/// What stands for keys that are not in the map, of the values' type.
fn default(cx: &NodeContext<'_, '_>, values: &Constant) -> Result<Constant, NodeProblem> {
    if let Some(tensor) = cx.tensor("default_tensor")? {
        return Ok(tensor);
    }
    Ok(match values {
        Constant::Text(_) => {
            let element = cx.string("default_string", "_Unused")?;
            Constant::Text(Text { dims: Vec::new(), elements: vec![element] })
        }
        Constant::Tensor(literal) if literal.dtype().is_float() => {
            Literal::scalar(cx.float("default_float", -0.0)? as f32).into()
        }
        _ => Literal::scalar(cx.int("default_int64", -1)?).into(),
    })
}

/// Replaces each element that is a key by its value.
fn label_encoder(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (keys, values) = (side(cx, "keys")?, side(cx, "values")?);
    let default = default(cx, &values)?;
    let x = cx.bound(0)?.clone();
    match (x, keys, values, default) {
        (Bound::Text(x), Constant::Text(keys), values, default) => {
            let places: Vec<Option<usize>> = x
                .elements
                .iter()
                // Of keys that are listed twice the last counts, as in a map that is filled in order.
                .map(|element| keys.elements.iter().rposition(|key| key == element))
                .collect();
            picked(cx, &places, &x.dims, values, default)
        }
        (Bound::Tensor(x), Constant::Tensor(keys), Constant::Tensor(values), Constant::Tensor(default)) => {
            numbers(cx, x, [keys, values, default])
        }
        (x, ..) => Err(NodeProblem::Unsupported(format!("this map of {}", x.kind()))),
    }
}

/// The values at these places, the default where there is none.
fn picked(
    cx: &mut NodeContext<'_, '_>,
    places: &[Option<usize>],
    dims: &[usize],
    values: Constant,
    default: Constant,
) -> Handled {
    match (values, default) {
        (Constant::Text(values), Constant::Text(default)) => {
            let unknown = default.elements.first().cloned().unwrap_or_default();
            let of = |place: &Option<usize>| {
                place.and_then(|i| values.elements.get(i)).unwrap_or(&unknown).clone()
            };
            let text = Text { dims: dims.to_vec(), elements: places.iter().map(of).collect() };
            Ok(Outputs::from(Bound::Text(Arc::new(text))))
        }
        (Constant::Tensor(values), Constant::Tensor(default)) => {
            let count = values.element_count();
            let b = cx.builder();
            let values = b.constant(values);
            let default = b.constant(default);
            let (values, default) = (b.reshape(values, &[count.into()])?, b.reshape(default, &[Dim::ONE])?);
            let all = b.concat(&[values, default], 0)?;
            let indices: Vec<i64> = places.iter().map(|place| place.unwrap_or(count) as i64).collect();
            let indices = b.vector(&indices);
            let flat = b.take(all, indices, 0)?;
            let dims: Vec<Dim> = dims.iter().map(|size| Dim::from(*size)).collect();
            Ok(b.reshape(flat, &dims)?.into())
        }
        _ => Err(NodeProblem::Unsupported("a default of another kind than the values".to_owned())),
    }
}

/// A map of numbers: each element is compared with every key.
fn numbers(cx: &mut NodeContext<'_, '_>, x: Value, [keys, values, default]: [Literal; 3]) -> Handled {
    let count = keys.element_count();
    if values.element_count() != count {
        return Err(cx.bad_attribute("values", format!("{count} values"), values.element_count()));
    }
    let (t, rank) = (cx.builder().type_of(x).clone(), cx.rank(x));
    if keys.dtype() != t.dtype {
        return Err(cx.bad_input(0, "element type", keys.dtype(), t.dtype));
    }
    let b = cx.builder();
    let dims: Vec<Dim> = t.dims().iter().cloned().chain([count.into()]).collect();
    let keys = b.constant(keys);
    let keys = b.reshape(keys, &[count.into()])?;
    let keys = b.broadcast_to(keys, &dims)?;
    let axes: Vec<usize> = (0..rank).collect();
    let wide = b.broadcast_in(x, &dims, &axes)?;
    let mut equal = b.compare(CompareOp::Eq, wide, keys)?;
    if t.dtype.is_float() {
        // A NaN among the keys is found by a NaN.
        let nan_element = b.compare(CompareOp::Ne, wide, wide)?;
        let nan_key = b.compare(CompareOp::Ne, keys, keys)?;
        let both = b.binary(BinaryOp::And, nan_element, nan_key)?;
        equal = b.binary(BinaryOp::Or, equal, both)?;
    }
    // The place of the last equal key, else one past the end, where the default is.
    let place = b.iota(DType::I64, &dims, rank)?;
    let none = b.like(-1.0, place)?;
    let hit = b.select(equal, place, none)?;
    let extended = b.reduce(ReduceOp::Max, hit, &[rank], false)?;
    let absent = b.compare_scalar(CompareOp::Lt, extended, 0.0)?;
    let last = b.like(count as f64, extended)?;
    let place = b.select(absent, last, extended)?;
    let (values, default) = (b.constant(values), b.constant(default));
    let (values, default) = (b.reshape(values, &[count.into()])?, b.reshape(default, &[Dim::ONE])?);
    let default = b.cast(default, b.dtype(values))?;
    let all = b.concat(&[values, default], 0)?;
    Ok(b.take(all, place, 0)?.into())
}
