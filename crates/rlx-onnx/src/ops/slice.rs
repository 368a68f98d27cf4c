//! Slices and padding.

use rlx_ir::dim::Answer;
use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::op::movement::{Pad, Slice};
use rlx_ir::{Builder, DType, Dim, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::tensor::MAX_RANK;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Pad", &[2, 11, 13, 18, 19, 21, 23, 24, 25], pad), //
    onnx("Slice", &[1, 10, 11, 13], slice),
];

/// Bounds from here on are "to the end" as exporters write it; it keeps them out of size expressions.
const FAR: i64 = i32::MAX as i64;

/// One axis of a slice.
struct Cut {
    start: Dim,
    size: Dim,
    step: i64,
}

fn slice(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let dims = cx.shape(x);
    let (starts, ends, axes, steps);
    if cx.since() < 10 {
        let required = |name: &str, list: Option<Vec<i64>>| {
            list.ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
        };
        let constant = |list: Vec<i64>, cx: &mut NodeContext<'_, '_>| cx.builder().vector(&list);
        starts = constant(required("starts", cx.ints("starts")?)?, cx);
        ends = constant(required("ends", cx.ints("ends")?)?, cx);
        axes = cx.ints("axes")?;
        steps = None;
    } else {
        (starts, ends) = (cx.input(1)?, cx.input(2)?);
        axes = cx.optional_constant_ints(3, "which axes are cut")?;
        steps = cx.optional_constant_ints(4, "the steps")?;
    }
    let length = match cx.shape(starts).as_const().as_deref() {
        Some([length]) if *length <= dims.rank() => *length,
        Some([length]) => {
            return Err(cx.bad_input(1, "number of starts", format!("at most {}", dims.rank()), length));
        }
        _ => return Err(cx.needs_constant(1, "how many axes are cut")),
    };
    let axes = axes.unwrap_or_else(|| (0..length as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; length]);
    if axes.len() != length || steps.len() != length || cx.shape(ends).as_const() != Some(vec![length]) {
        let found = format!("{} axes and {} steps", axes.len(), steps.len());
        return Err(cx.bad_input(1, "number of starts", found, length));
    }
    let mut op =
        Slice { starts: vec![Dim::ZERO; dims.rank()], sizes: dims.to_vec(), steps: vec![1; dims.rank()] };
    let mut seen = Vec::with_capacity(length);
    for (i, (axis, step)) in axes.iter().zip(&steps).enumerate() {
        let axis = cx.axis(*axis, dims.rank())?;
        if *step == 0 {
            return Err(cx.bad_input(4, "step", "not 0", 0));
        }
        if seen.contains(&axis) {
            return Err(cx.bad_input(3, "axes", "each axis once", axis));
        }
        seen.push(axis);
        let cut = cut(cx, [starts, ends], i, &dims[axis], *step)?;
        (op.starts[axis], op.sizes[axis], op.steps[axis]) = (cut.start, cut.size, cut.step);
    }
    Ok(cx.builder().push1(op, &[x])?.into())
}

/// Start and size along one axis of size `dim`, by element `i` of the bounds.
fn cut(
    cx: &mut NodeContext<'_, '_>,
    bounds: [Value; 2],
    i: usize,
    dim: &Dim,
    step: i64,
) -> Result<Cut, NodeProblem> {
    let b = cx.builder();
    let known = bounds.map(|v| b.known(v).and_then(|k| k.get(i)).and_then(|at| clamped(b, at, dim, step)));
    if let [Some(start), Some(end)] = known {
        let distance = if step > 0 { end - &start } else { &start - end };
        let distance = match b.graph().symbols().known_le(&Dim::ZERO, &distance) {
            Answer::Yes => distance,
            _ => distance.max(&Dim::ZERO),
        };
        let size = distance.ceil_div(&Dim::constant(step.saturating_abs()));
        return Ok(Cut { start, size, step });
    }
    let mut at = [bounds[0]; 2];
    for (at, bound) in at.iter_mut().zip(bounds) {
        let wide = b.cast(bound, DType::I64)?;
        let scalar = b.index_axis(wide, 0, &i.into())?;
        *at = clamped_at_run_time(b, scalar, dim, step)?;
    }
    let [start, end] = at;
    let (distance, stride) =
        if step > 0 { (b.sub(end, start)?, step) } else { (b.sub(start, end)?, step.saturating_neg()) };
    let distance = b.binary_scalar(BinaryOp::Max, distance, 0.0)?;
    let rounded_up = b.add_scalar(distance, (stride - 1) as f64)?;
    let size = b.binary_scalar(BinaryOp::Div, rounded_up, stride as f64)?;
    let size = b.bind_dim(size, "sliced", 0)?;
    // Backwards, the clamped start may be −1; a symbol may not.
    let start = b.add_scalar(start, if step > 0 { 0.0 } else { 1.0 })?;
    let start = b.bind_dim(start, "start", 0)?;
    Ok(Cut { start: if step > 0 { start } else { start - 1 }, size, step })
}

/// A bound counted from the front and held inside the axis: 0 to dim forwards, −1 to dim − 1 backwards. `None` if its
/// sign is not known.
fn clamped(b: &Builder, at: &Dim, dim: &Dim, step: i64) -> Option<Dim> {
    let symbols = b.graph().symbols();
    let (least, most) =
        if step > 0 { (Dim::ZERO, dim.clone()) } else { (Dim::constant(-1), dim - &Dim::ONE) };
    match at.as_const() {
        Some(far) if far >= FAR => return Some(most),
        Some(far) if far <= -FAR => return Some(least),
        _ => {}
    }
    let range = symbols.range(at);
    let at = if range.min >= 0 {
        at.clone()
    } else if range.max < 0 {
        at + dim
    } else {
        return None;
    };
    let at = match symbols.known_le(&at, &most) {
        Answer::Yes => at,
        Answer::No => most,
        Answer::Unknown => at.min(&most),
    };
    Some(match symbols.known_le(&least, &at) {
        Answer::Yes => at,
        Answer::No => least,
        Answer::Unknown => at.max(&least),
    })
}

fn clamped_at_run_time(b: &mut Builder, at: Value, dim: &Dim, step: i64) -> Result<Value, TypeError> {
    let size = b.dim_value(dim)?;
    let from_end = b.add(at, size)?;
    let negative = b.compare_scalar(CompareOp::Lt, at, 0.0)?;
    let at = b.select(negative, from_end, at)?;
    let (least, most) = if step > 0 { (0.0, size) } else { (-1.0, b.add_scalar(size, -1.0)?) };
    let at = b.min(at, most)?;
    b.binary_scalar(BinaryOp::Max, at, least)
}

/// What the elements outside are.
enum Mode {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

fn pad(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let mode = match cx.string("mode", "constant")?.as_str() {
        "constant" => Mode::Constant,
        "reflect" => Mode::Reflect,
        "edge" => Mode::Edge,
        "wrap" => Mode::Wrap,
        other => return Err(cx.bad_attribute("mode", "constant, reflect, edge or wrap", other)),
    };
    let (counts, axes, value): (Vec<Count>, _, _);
    if cx.since() < 11 {
        let pads = cx.ints("pads")?;
        let pads = pads.ok_or_else(|| NodeProblem::MissingAttribute { name: "pads".to_owned() })?;
        counts = pads.into_iter().map(|n| Count::of(cx.builder(), &Dim::constant(n))).collect();
        axes = None;
        let (number, dtype) = (cx.float("value", 0.0)?, cx.dtype(x));
        value = Some(cx.builder().scalar(number, dtype)?);
    } else {
        counts = counts_of_input(cx)?;
        value = cx.optional(2)?;
        axes = cx.optional_constant_ints(3, "which axes are padded")?;
    }
    let axes = match axes {
        Some(axes) => axes.iter().map(|a| cx.axis(*a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if counts.len() != 2 * axes.len() {
        return Err(cx.bad_input(1, "number of counts", 2 * axes.len(), counts.len()));
    }
    let (mut low, mut high) = (vec![Count::ZERO; rank], vec![Count::ZERO; rank]);
    for (i, axis) in axes.iter().enumerate() {
        (low[*axis], high[*axis]) = (counts[i].clone(), counts[axes.len() + i].clone());
    }
    let b = cx.builder();
    Ok(match mode {
        Mode::Constant => {
            let value = match value {
                Some(value) => b.reshape(value, &[])?,
                None => b.scalar(0.0, b.dtype(x))?,
            };
            padded(b, x, &low, &high, value)?
        }
        mode => repeated(b, x, &low, &high, &mode)?,
    }
    .into())
}

/// How many elements are put before or after an axis.
#[derive(Clone)]
struct Count {
    added: Dim,
    /// A count below 0 takes this many away. One of the two is 0.
    removed: Dim,
}

impl Count {
    const ZERO: Count = Count { added: Dim::ZERO, removed: Dim::ZERO };

    fn of(b: &Builder, count: &Dim) -> Count {
        if b.graph().symbols().range(count).min >= 0 {
            return Count { added: count.clone(), removed: Dim::ZERO };
        }
        Count { added: count.max(&Dim::ZERO), removed: (-count.clone()).max(&Dim::ZERO) }
    }

    fn sum(&self) -> Dim {
        &self.added - &self.removed
    }
}

/// The counts of input 1. Where they are known only when the graph runs, each is bound as two sizes, since a size is at
/// least 0.
fn counts_of_input(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Count>, NodeProblem> {
    let pads = cx.input(1)?;
    if let Some(known) = cx.builder().known(pads).map(<[Dim]>::to_vec) {
        return Ok(known.iter().map(|count| Count::of(cx.builder(), count)).collect());
    }
    let length = match cx.shape(pads).as_const().as_deref() {
        Some([length]) if *length <= 2 * MAX_RANK => *length,
        _ => return Err(cx.needs_constant(1, "how many axes are padded")),
    };
    let b = cx.builder();
    let wide = b.cast(pads, DType::I64)?;
    let negated = b.unary(UnaryOp::Neg, wide)?;
    let mut sides = [wide, negated];
    for side in &mut sides {
        *side = b.binary_scalar(BinaryOp::Max, *side, 0.0)?;
    }
    let mut size = |values: Value, i: usize| {
        let element = b.index_axis(values, 0, &i.into())?;
        b.bind_dim(element, "padding", 0)
    };
    (0..length).map(|i| Ok(Count { added: size(sides[0], i)?, removed: size(sides[1], i)? })).collect()
}

/// Padding with a value.
fn padded(
    b: &mut Builder,
    x: Value,
    low: &[Count],
    high: &[Count],
    value: Value,
) -> Result<Value, TypeError> {
    let dims = b.shape(x);
    let starts: Vec<Dim> = low.iter().map(|count| count.removed.clone()).collect();
    let ends = high.iter().map(|count| &count.removed);
    let sizes = dims.iter().zip(&starts).zip(ends).map(|((dim, start), end)| dim - start - end).collect();
    let x = b.push1(Slice { starts, sizes, steps: vec![1; dims.rank()] }, &[x])?;
    let added = |counts: &[Count]| counts.iter().map(|count| count.added.clone()).collect();
    b.push1(Pad { low: added(low), high: added(high) }, &[x, value])
}

/// Padding with elements of the tensor itself: along each axis a gather by computed indices.
fn repeated(
    b: &mut Builder,
    mut x: Value,
    low: &[Count],
    high: &[Count],
    mode: &Mode,
) -> Result<Value, TypeError> {
    for (axis, (low, high)) in low.iter().zip(high).enumerate() {
        let (low, high) = (low.sum(), high.sum());
        if low == Dim::ZERO && high == Dim::ZERO {
            continue;
        }
        let dim = b.dim(x, axis);
        let length = [&dim + &low + &high];
        let place = b.iota(DType::I64, &length, 0)?;
        let offset = b.dim_value(&low)?;
        let offset = b.broadcast_to(offset, &length)?;
        let place = b.sub(place, offset)?;
        let last = b.dim_value(&(&dim - &Dim::ONE))?;
        let last = b.broadcast_to(last, &length)?;
        let source = match mode {
            Mode::Edge | Mode::Constant => {
                let place = b.binary_scalar(BinaryOp::Max, place, 0.0)?;
                b.min(place, last)?
            }
            Mode::Wrap => {
                let size = b.add_scalar(last, 1.0)?;
                floored_remainder(b, place, size)?
            }
            Mode::Reflect => {
                // The period is there and back without the ends twice; an axis of one element has period 1.
                let period = b.add(last, last)?;
                let period = b.binary_scalar(BinaryOp::Max, period, 1.0)?;
                let there = floored_remainder(b, place, period)?;
                let back = b.sub(period, there)?;
                let source = b.min(there, back)?;
                b.min(source, last)?
            }
        };
        x = b.take(x, source, axis)?;
    }
    Ok(x)
}

/// x mod y with the sign of a positive y.
fn floored_remainder(b: &mut Builder, x: Value, y: Value) -> Result<Value, TypeError> {
    let remainder = b.binary(BinaryOp::Rem, x, y)?;
    let shifted = b.add(remainder, y)?;
    b.binary(BinaryOp::Rem, shifted, y)
}
