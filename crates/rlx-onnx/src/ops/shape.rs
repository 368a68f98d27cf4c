//! Other sizes for the same elements, and elements repeated: reshape and its kin, transpose, concat, split, tile.

use rlx_ir::op::elementwise::{BinaryOp, CompareOp};
use rlx_ir::{Builder, DType, Dim, Shape, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::tensor::MAX_RANK;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Concat", &[1, 4, 11, 13], concat),
    onnx("DepthToSpace", &[1, 11, 13, 28], depth_to_space),
    onnx("Expand", &[8, 13], expand),
    onnx("Flatten", &[1, 9, 11, 13, 21, 23, 24, 25], flatten),
    onnx("Reshape", &[1, 5, 13, 14, 19, 21, 23, 24, 25], reshape),
    onnx("SpaceToDepth", &[1, 13, 28], space_to_depth),
    onnx("Split", &[2, 11, 13, 18], split),
    onnx("Squeeze", &[1, 11, 13, 21, 23, 24, 25], squeeze),
    onnx("Tile", &[6, 13], tile),
    onnx("Transpose", &[1, 13, 21, 23, 24, 25], transpose),
    onnx("Unsqueeze", &[1, 11, 13, 21, 23, 24, 25], unsqueeze),
];

/// The target's 0 stands for the input's size there (unless `allowzero`), its −1 for what remains.
fn reshape(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let target = match cx.ints("shape")? {
        Some(target) if cx.since() < 5 => cx.builder().vector(&target),
        _ => cx.input(1)?,
    };
    let allow_zero = cx.flag("allowzero", false)?;
    let from = cx.shape(x);
    let known = cx.builder().known(target).map(<[Dim]>::to_vec);
    let dims = match known {
        Some(target) => resolved(cx, &from, target, allow_zero)?,
        None => {
            let target = resolved_at_run_time(cx, &from, target, allow_zero)?;
            let hint = "reshaped";
            let dims = cx.importer.elements_as_dims(target, hint);
            dims.unwrap_or_else(|| Err(cx.needs_constant(1, "the rank")))?
        }
    };
    Ok(cx.builder().reshape(x, &dims)?.into())
}

fn resolved(
    cx: &NodeContext<'_, '_>,
    from: &Shape,
    mut target: Vec<Dim>,
    allow_zero: bool,
) -> Result<Vec<Dim>, NodeProblem> {
    let mut open = None;
    for (axis, dim) in target.iter_mut().enumerate() {
        match dim.as_const() {
            Some(0) if !allow_zero => match from.get(axis) {
                Some(same) => *dim = same.clone(),
                None => return Err(cx.bad_input(1, "a 0 past the input's axes", from.rank(), axis)),
            },
            Some(-1) if open.is_some() => {
                return Err(cx.bad_input(1, "sizes to be found", "at most one −1", "two"));
            }
            Some(-1) => open = Some(axis),
            Some(size) if size < 0 => return Err(cx.bad_input(1, "size", "at least −1", size)),
            _ => {}
        }
    }
    if let Some(axis) = open {
        let rest = Dim::product(target.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d));
        let total = from.element_count();
        target[axis] = match rest.as_const() {
            // Nothing divides by 0; an empty tensor leaves the size open, and 0 is the one that fits.
            Some(0) => Dim::ZERO,
            _ => total.exact_div(&rest).unwrap_or_else(|| total.floor_div(&rest)),
        };
    }
    Ok(target)
}

/// The target's elements with 0 and −1 replaced, computed when the graph runs.
fn resolved_at_run_time(
    cx: &mut NodeContext<'_, '_>,
    from: &Shape,
    target: Value,
    allow_zero: bool,
) -> Result<Value, NodeProblem> {
    let length = match cx.shape(target).as_const().as_deref() {
        Some([length]) if *length <= MAX_RANK => *length,
        _ => return Err(cx.needs_constant(1, "the rank")),
    };
    let b = cx.builder();
    let mut target = b.cast(target, DType::I64)?;
    if !allow_zero {
        let own: Vec<Dim> = (0..length).map(|i| from.get(i).cloned().unwrap_or(Dim::ZERO)).collect();
        let own = b.dims_value(&own)?;
        let zero = b.compare_scalar(CompareOp::Eq, target, 0.0)?;
        target = b.select(zero, own, target)?;
    }
    let open = b.compare_scalar(CompareOp::Eq, target, -1.0)?;
    let one = b.like(1.0, target)?;
    let closed = b.select(open, one, target)?;
    let rest = b.reduce(rlx_ir::op::reduce::ReduceOp::Prod, closed, &[0], true)?;
    let rest = b.binary_scalar(BinaryOp::Max, rest, 1.0)?;
    let total = b.dims_value(&[from.element_count()])?;
    let found = b.div(total, rest)?;
    let found = b.broadcast_to(found, &[length.into()])?;
    Ok(b.select(open, found, target)?)
}

fn flatten(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let axis = cx.int("axis", 1)?;
    let dims = cx.shape(x);
    // The axis may be the rank itself.
    let at = if axis < 0 { axis + dims.rank() as i64 } else { axis };
    let at = usize::try_from(at).ok().filter(|at| *at <= dims.rank());
    let at = at.ok_or(NodeProblem::Axis { axis, rank: dims.rank() })?;
    let two = [Dim::product(&dims[..at]), Dim::product(&dims[at..])];
    Ok(cx.builder().reshape(x, &two)?.into())
}

fn squeeze(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let dims = cx.shape(x);
    let axes = match cx.ints_or_input("axes", 1)? {
        Some(axes) => cx.axes(&axes, dims.rank())?,
        None if dims.as_const().is_some() => {
            (0..dims.rank()).filter(|i| dims[*i].as_const() == Some(1)).collect()
        }
        None => {
            let what = format!("which of the sizes {dims} are 1");
            let graph_inputs = cx.importer.sources_of_sizes(&dims);
            return Err(NodeProblem::NeedsConstant { operand: 0, what, graph_inputs });
        }
    };
    Ok(cx.builder().squeeze(x, &axes)?.into())
}

fn unsqueeze(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let axes = cx.ints_or_input("axes", 1)?;
    let axes = axes.ok_or_else(|| NodeProblem::MissingAttribute { name: "axes".to_owned() })?;
    let mut dims = cx.shape(x).to_vec();
    let rank = dims.len() + axes.len();
    if rank > MAX_RANK {
        return Err(NodeProblem::Unsupported(format!("{rank} axes, more than {MAX_RANK}")));
    }
    // Ascending, so that each position is one of the result.
    for axis in cx.axes(&axes, rank)? {
        dims.insert(axis, Dim::ONE);
    }
    Ok(cx.builder().reshape(x, &dims)?.into())
}

fn expand(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let target = cx.dims(1, "expanded")?;
    let b = cx.builder();
    let dims = rlx_ir::builder::broadcast_dims(&target, &b.shape(x));
    Ok(b.broadcast_to(x, &dims)?.into())
}

fn tile(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let repeats = cx.dims(1, "repeats")?;
    let dims = cx.shape(x);
    if repeats.len() != dims.rank() {
        return Err(cx.bad_input(1, "number of repeats", dims.rank(), repeats.len()));
    }
    Ok(tiled(cx.builder(), x, &repeats)?.into())
}

/// Each axis repeated as a whole.
fn tiled(b: &mut Builder, x: Value, repeats: &[Dim]) -> Result<Value, TypeError> {
    let dims = b.shape(x);
    let (mut apart, mut repeated, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for (dim, times) in dims.iter().zip(repeats) {
        if times.as_const() != Some(1) {
            apart.push(Dim::ONE);
            repeated.push(times.clone());
        }
        apart.push(dim.clone());
        repeated.push(dim.clone());
        whole.push(dim * times);
    }
    let x = b.reshape(x, &apart)?;
    let x = b.broadcast_to(x, &repeated)?;
    b.reshape(x, &whole)
}

fn transpose(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let perm = match cx.ints("perm")? {
        None => (0..rank).rev().collect(),
        Some(perm) => perm.iter().map(|axis| cx.axis(*axis, rank)).collect::<Result<Vec<_>, _>>()?,
    };
    Ok(cx.builder().transpose(x, &perm)?.into())
}

fn concat(cx: &mut NodeContext<'_, '_>) -> Handled {
    let parts = cx.all_inputs()?;
    let first = *parts.first().ok_or(NodeProblem::MissingInput { operand: 0 })?;
    let axis = if cx.since() < 4 { cx.int("axis", 1)? } else { cx.required_int("axis")? };
    let rank = cx.rank(first);
    let axis = cx.axis(axis, rank)?;
    Ok(cx.builder().concat(&parts, axis)?.into())
}

/// Parts of given sizes; without sizes as many equal ones as there are outputs, the last one smaller (opset 18).
fn split(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (axis, dims) = (cx.int("axis", 0)?, cx.shape(x));
    let axis = cx.axis(axis, dims.rank())?;
    let sizes = match cx.ints("split")? {
        Some(sizes) => sizes.into_iter().map(Dim::constant).collect(),
        None if cx.has(1) => cx.dims(1, "split")?,
        None => {
            // As many as there are outputs, so that a number in the file allocates nothing.
            let count = cx.output_count() as i64;
            let said = cx.int("num_outputs", count)?;
            if said != count || count < 1 {
                return Err(cx.bad_attribute(
                    "num_outputs",
                    format!("{}, as there are outputs", count.max(1)),
                    said,
                ));
            }
            let chunk = dims[axis].ceil_div(&count.into());
            let mut sizes = vec![chunk.clone(); count as usize - 1];
            sizes.push(&dims[axis] - chunk * (count - 1));
            sizes
        }
    };
    let total = sizes.iter().fold(Dim::ZERO, |sum, size| sum + size);
    if let (Some(total), Some(size)) = (total.as_const(), dims[axis].as_const())
        && total != size
    {
        return Err(cx.bad_input(1, "sum of the parts", size, total));
    }
    Ok(cx.builder().split(x, axis, &sizes)?.into())
}

fn block_size(cx: &NodeContext<'_, '_>) -> Result<Dim, NodeProblem> {
    match cx.required_int("blocksize")? {
        size if size > 0 => Ok(size.into()),
        size => Err(cx.bad_attribute("blocksize", "at least 1", size)),
    }
}

fn image(cx: &mut NodeContext<'_, '_>, x: Value) -> Result<[Dim; 4], NodeProblem> {
    let dims = cx.shape(x).to_vec();
    let rank = dims.len();
    <[Dim; 4]>::try_from(dims).map_err(|_| cx.bad_input(0, "number of axes", 4, rank))
}

/// Blocks of channels become blocks of pixels: the block's index leads (DCR) or trails (CRD) in the channel's.
fn depth_to_space(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let size = block_size(cx)?;
    let channel_last = match cx.string("mode", "DCR")?.as_str() {
        "DCR" => true,
        "CRD" => false,
        other => return Err(cx.bad_attribute("mode", "DCR or CRD", other)),
    };
    let [n, c, h, w] = image(cx, x)?;
    let depth = c.floor_div(&(&size * &size));
    let (apart, perm): (Vec<Dim>, _) = if channel_last {
        (vec![n.clone(), size.clone(), size.clone(), depth.clone(), h.clone(), w.clone()], [0, 3, 4, 1, 5, 2])
    } else {
        (vec![n.clone(), depth.clone(), size.clone(), size.clone(), h.clone(), w.clone()], [0, 1, 4, 2, 5, 3])
    };
    let b = cx.builder();
    let x = b.reshape(x, &apart)?;
    let x = b.transpose(x, &perm)?;
    Ok(b.reshape(x, &[n, depth, h * &size, w * &size])?.into())
}

/// Blocks of pixels become blocks of channels: the block's index leads (DCR) or trails (CRD, opset 28).
fn space_to_depth(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let size = block_size(cx)?;
    let perm = match cx.string("mode", "DCR")?.as_str() {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        other => return Err(cx.bad_attribute("mode", "DCR or CRD", other)),
    };
    let [n, c, h, w] = image(cx, x)?;
    let (rows, columns) = (h.floor_div(&size), w.floor_div(&size));
    let apart = [n.clone(), c.clone(), rows.clone(), size.clone(), columns.clone(), size.clone()];
    let b = cx.builder();
    let x = b.reshape(x, &apart)?;
    let x = b.transpose(x, &perm)?;
    Ok(b.reshape(x, &[n, c * &size * &size, rows, columns])?.into())
}
