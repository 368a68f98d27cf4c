//! Sequences and optionals. Both are resolved at import; positions in a sequence must be known.

use rlx_ir::{DType, Dim, Literal, Value};

use crate::error::NodeProblem;
use crate::interface::element_type;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::{Bound, Outputs, Sequence};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("ConcatFromSequence", &[11], concat_from_sequence),
    onnx("Optional", &[15, 28], optional),
    onnx("OptionalGetElement", &[15, 18, 28], optional_get_element),
    onnx("OptionalHasElement", &[15, 18, 28], optional_has_element),
    onnx("SequenceAt", &[11], sequence_at),
    onnx("SequenceConstruct", &[11], sequence_construct),
    onnx("SequenceEmpty", &[11], sequence_empty),
    onnx("SequenceErase", &[11], sequence_erase),
    onnx("SequenceInsert", &[11], sequence_insert),
    onnx("SequenceLength", &[11], sequence_length),
    onnx("SequenceMap", &[17], sequence_map),
    onnx("SplitToSequence", &[11, 24], split_to_sequence),
];

fn sequence_construct(cx: &mut NodeContext<'_, '_>) -> Handled {
    let elements = cx.inputs.clone();
    let first = elements.first().and_then(Bound::as_tensor);
    let dtype = first.map(|v| cx.dtype(v));
    Ok(Sequence { elements, dtype }.into())
}

fn sequence_empty(cx: &mut NodeContext<'_, '_>) -> Handled {
    let dtype = cx.element_type("dtype")?.unwrap_or(DType::F32);
    Ok(Sequence { elements: Vec::new(), dtype: Some(dtype) }.into())
}

/// A position among `bound` places, counted from the end if negative.
fn position(cx: &mut NodeContext<'_, '_>, i: usize, bound: usize) -> Result<usize, NodeProblem> {
    let at = cx.constant_int(i, "a position in a sequence")?;
    let from_front = if at < 0 { at.saturating_add(bound as i64) } else { at };
    let found = usize::try_from(from_front).ok().filter(|p| *p < bound);
    found.ok_or_else(|| cx.bad_input(i, "position", format!("-{bound} to {bound} (excluded)"), at))
}

fn sequence_at(cx: &mut NodeContext<'_, '_>) -> Handled {
    let elements = cx.sequence(0)?.elements.clone();
    let at = position(cx, 1, elements.len())?;
    Ok(elements[at].clone().into())
}

fn sequence_erase(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut sequence = cx.sequence(0)?.clone();
    let length = sequence.elements.len();
    if length == 0 {
        return Err(cx.bad_input(0, "length", "at least 1", 0));
    }
    let at = if cx.has(1) { position(cx, 1, length)? } else { length - 1 };
    sequence.elements.remove(at);
    Ok(sequence.into())
}

fn sequence_insert(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut sequence = cx.sequence(0)?.clone();
    let element = cx.bound(1)?.clone();
    let length = sequence.elements.len();
    let at = match cx.optional_constant_ints(2, "a position in a sequence")?.as_deref() {
        None => length,
        Some([at]) => {
            let from_front = if *at < 0 { at.saturating_add(length as i64) } else { *at };
            let found = usize::try_from(from_front).ok().filter(|p| *p <= length);
            found.ok_or_else(|| cx.bad_input(2, "position", format!("-{length} to {length}"), at))?
        }
        Some(other) => return Err(cx.bad_input(2, "number of elements", 1, other.len())),
    };
    sequence.elements.insert(at, element);
    Ok(sequence.into())
}

fn sequence_length(cx: &mut NodeContext<'_, '_>) -> Handled {
    let length = cx.sequence(0)?.elements.len() as i64;
    Ok(cx.builder().constant(Literal::scalar(length)).into())
}

fn concat_from_sequence(cx: &mut NodeContext<'_, '_>) -> Handled {
    let elements = cx.sequence(0)?.elements.clone();
    let tensors: Option<Vec<Value>> = elements.iter().map(Bound::as_tensor).collect();
    let mut parts = tensors.ok_or_else(|| cx.bad_input(0, "elements", "tensors", "something else"))?;
    let Some(first) = parts.first() else {
        return Err(cx.bad_input(0, "length", "at least 1", 0));
    };
    let (axis, new_axis, mut rank) = (cx.required_int("axis")?, cx.flag("new_axis", false)?, cx.rank(*first));
    rank += usize::from(new_axis);
    let axis = cx.axis(axis, rank)?;
    if new_axis {
        for part in &mut parts {
            *part = cx.builder().unsqueeze(*part, axis)?;
        }
    }
    Ok(cx.builder().concat(&parts, axis)?.into())
}

/// Parts of given sizes, of one given size (the last part smaller), or slices.
fn split_to_sequence(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (axis, dims) = (cx.int("axis", 0)?, cx.shape(x));
    let axis = cx.axis(axis, dims.rank())?;
    let keep = cx.flag("keepdims", true)?;
    let what = "the length of a sequence";
    let scalar = match cx.optional(1)? {
        Some(split) => cx.rank(split) == 0,
        None => true,
    };
    let split = cx.optional_constant_ints(1, what)?;
    let slices = split.is_none();
    let sizes: Vec<i64> = match split {
        Some(sizes) if !scalar => sizes,
        one => {
            let part = one.and_then(|s| s.first().copied()).unwrap_or(1);
            if part < 1 {
                return Err(cx.bad_input(1, "size of the parts", "at least 1", part));
            }
            let total = dims[axis].as_const().ok_or_else(|| {
                NodeProblem::Unsupported(format!("a sequence of as many elements as {}", dims[axis]))
            })?;
            let limit = cx.importer.options.limits.max_folded_elements as i64;
            if total / part > limit {
                return Err(NodeProblem::Unsupported(format!("a sequence of more than {limit} elements")));
            }
            let mut sizes = vec![part; (total / part) as usize];
            sizes.extend((total % part != 0).then_some(total % part));
            sizes
        }
    };
    let sizes: Vec<Dim> = sizes.into_iter().map(Dim::constant).collect();
    let dtype = Some(cx.dtype(x));
    let b = cx.builder();
    let mut parts = b.split(x, axis, &sizes)?;
    // The attribute counts only where no sizes are given.
    if slices && !keep {
        for part in &mut parts {
            *part = b.squeeze(*part, &[axis])?;
        }
    }
    Ok(Sequence { elements: parts.into_iter().map(Bound::Tensor).collect(), dtype }.into())
}

/// The body for each element; inputs that are no sequences are the same for all.
fn sequence_map(cx: &mut NodeContext<'_, '_>) -> Handled {
    let body = cx.graph("body")?;
    let length = cx.sequence(0)?.elements.len();
    let inputs = cx.inputs.clone();
    for (i, input) in inputs.iter().enumerate() {
        if let Bound::Sequence(other) = input
            && other.elements.len() != length
        {
            return Err(cx.bad_input(i, "length", length, other.elements.len()));
        }
    }
    let mut results = Vec::new();
    for output in &body.output {
        let dtype = output.r#type.as_ref().and_then(element_type).transpose()?;
        results.push(Sequence { elements: Vec::with_capacity(length), dtype });
    }
    for at in 0..length {
        let formal = inputs.iter().map(|input| match input {
            Bound::Sequence(sequence) => sequence.elements[at].clone(),
            other => other.clone(),
        });
        let outputs = cx.inline(body, formal.collect(), &format!("body[{at}]"))?;
        for (all, one) in results.iter_mut().zip(outputs) {
            all.elements.push(one);
        }
    }
    Ok(results.into_iter().map(Bound::Sequence).collect())
}

fn optional(cx: &mut NodeContext<'_, '_>) -> Handled {
    let inner = if cx.has(0) { Some(Box::new(cx.bound(0)?.clone())) } else { None };
    Ok(Bound::Optional(inner).into())
}

/// An input that is no optional, but a tensor or a sequence, is there (opset 18); one that is left out is not.
fn optional_has_element(cx: &mut NodeContext<'_, '_>) -> Handled {
    let present = !matches!(cx.inputs.first(), None | Some(Bound::Absent | Bound::Optional(None)));
    Ok(cx.builder().constant(Literal::scalar(present)).into())
}

fn optional_get_element(cx: &mut NodeContext<'_, '_>) -> Handled {
    match cx.bound(0)?.clone() {
        Bound::Optional(Some(inner)) => Ok(Outputs::from(*inner)),
        Bound::Optional(None) => {
            Err(cx.bad_input(0, "an optional", "one that holds something", "an empty one"))
        }
        other => Ok(other.into()),
    }
}
