//! Gather, scatter, dynamic slices, and the indices of what is not zero.

use crate::elementwise;
use crate::error::Fault;
use crate::oracle::Context;
use crate::tensor::{Data, Tensor, strides, walk};
use rlx_ir::op::elementwise::BinaryOp;
use rlx_ir::op::index::{
    Combine, DynamicSlice, DynamicUpdate, Gather, GatherAlong, OutOfBounds, Scatter, ScatterAlong,
};

/// The index inside the axis, `None` where it is dropped.
fn resolve(
    index: i64,
    axis: usize,
    size: usize,
    oob: OutOfBounds,
    wrap: bool,
) -> Result<Option<usize>, Fault> {
    let n = size as i64;
    let counted = if wrap && index < 0 { index.saturating_add(n) } else { index };
    if (0..n).contains(&counted) {
        return Ok(Some(counted as usize));
    }
    match oob {
        OutOfBounds::Drop => Ok(None),
        OutOfBounds::Clamp if n > 0 => Ok(Some(counted.clamp(0, n - 1) as usize)),
        OutOfBounds::Clamp | OutOfBounds::Error => Err(Fault::IndexOutOfRange { index, axis, size }),
    }
}

/// For each element that a gather picks, its position in x; `None` where it is dropped.
fn gathered(
    x: &[usize],
    indices: &Tensor,
    axes: &[usize],
    batch: usize,
    oob: OutOfBounds,
    wrap: bool,
) -> Result<Vec<Option<usize>>, Fault> {
    let own = strides(x);
    let kept: Vec<usize> = (batch..x.len()).filter(|i| !axes.contains(i)).collect();
    let inner_dims: Vec<usize> = kept.iter().map(|i| x[*i]).collect();
    let inner_steps: Vec<isize> = kept.iter().map(|i| own[*i] as isize).collect();
    let inner = walk(&inner_dims, &inner_steps, 0);
    let tuples: usize = indices.dims[..indices.dims.len() - 1].iter().product();
    let batches: usize = x[..batch].iter().product();
    let batch_size: usize = x[batch..].iter().product();
    let flat = indices.to_i64s();
    let mut positions = Vec::with_capacity(tuples * inner.len());
    for t in 0..tuples {
        // There is no tuple to look at where there is no batch.
        let batch_index = t.checked_div(tuples.checked_div(batches).unwrap_or(0)).unwrap_or(0);
        let mut base = Some(batch_index * batch_size);
        for (j, axis) in axes.iter().enumerate() {
            let index = resolve(flat[t * axes.len() + j], *axis, x[*axis], oob, wrap)?;
            base = base.zip(index).map(|(base, index)| base + index * own[*axis]);
        }
        positions.extend(inner.iter().map(|i| base.map(|base| base + i)));
    }
    Ok(positions)
}

/// The same for an index along one axis.
fn along(
    x: &[usize],
    indices: &Tensor,
    axis: usize,
    oob: OutOfBounds,
    wrap: bool,
) -> Result<Vec<Option<usize>>, Fault> {
    let own = strides(x);
    let mut steps: Vec<isize> = own.iter().map(|s| *s as isize).collect();
    steps[axis] = 0;
    let bases = walk(&indices.dims, &steps, 0);
    bases
        .into_iter()
        .zip(indices.to_i64s())
        .map(|(base, index)| Ok(resolve(index, axis, x[axis], oob, wrap)?.map(|i| base + i * own[axis])))
        .collect()
}

fn pick_or_fill(cx: &Context<'_>, operands: &[Tensor], positions: &[Option<usize>]) -> Result<Tensor, Fault> {
    let x = &operands[0];
    let sources: Vec<(usize, usize)> = positions.iter().map(|p| p.map_or((1, 0), |p| (0, p))).collect();
    let mut data = vec![&*x.data];
    data.extend(operands.get(2).map(|fill| &*fill.data));
    Ok(Tensor::new(x.dtype, cx.dims(0)?, Data::pick_from(&data, &sources)))
}

pub(crate) fn gather(cx: &Context<'_>, op: &Gather, operands: &[Tensor]) -> Result<Tensor, Fault> {
    let positions = gathered(&operands[0].dims, &operands[1], &op.axes, op.batch, op.oob, op.wrap)?;
    pick_or_fill(cx, operands, &positions)
}

pub(crate) fn gather_along(cx: &Context<'_>, op: &GatherAlong, operands: &[Tensor]) -> Result<Tensor, Fault> {
    let positions = along(&operands[0].dims, &operands[1], op.axis, op.oob, op.wrap)?;
    pick_or_fill(cx, operands, &positions)
}

/// Updates elements one by one, in index order.
fn scattered(
    cx: &Context<'_>,
    operands: &[Tensor],
    positions: &[Option<usize>],
    combine: Combine,
) -> Result<Tensor, Fault> {
    let (x, updates) = (&operands[0], &operands[2]);
    let op = match combine {
        Combine::Replace => None,
        Combine::Add => Some(BinaryOp::Add),
        Combine::Mul => Some(BinaryOp::Mul),
        Combine::Max => Some(BinaryOp::Max),
        Combine::Min => Some(BinaryOp::Min),
    };
    let mut data = (*x.data).clone();
    for (update, position) in positions.iter().enumerate() {
        let Some(at) = *position else { continue };
        let new = updates.data.pick(&[update]);
        let new = match op {
            None => new,
            Some(op) => elementwise::combine(cx.precision, x.dtype, op, &data.pick(&[at]), &new)?,
        };
        match (&mut data, new) {
            (Data::Float(v), Data::Float(new)) => v[at] = new[0],
            (Data::Signed(v), Data::Signed(new)) => v[at] = new[0],
            (Data::Unsigned(v), Data::Unsigned(new)) => v[at] = new[0],
            (Data::Complex(v), Data::Complex(new)) => v[at] = new[0],
            _ => return Err(Fault::Unsupported { what: "scatter".into(), found: x.dtype.to_string() }),
        }
    }
    Ok(Tensor::new(x.dtype, x.dims.clone(), data))
}

pub(crate) fn scatter(cx: &Context<'_>, op: &Scatter, operands: &[Tensor]) -> Result<Tensor, Fault> {
    let positions = gathered(&operands[0].dims, &operands[1], &op.axes, op.batch, op.oob, op.wrap)?;
    scattered(cx, operands, &positions, op.combine)
}

pub(crate) fn scatter_along(
    cx: &Context<'_>,
    op: &ScatterAlong,
    operands: &[Tensor],
) -> Result<Tensor, Fault> {
    let positions = along(&operands[0].dims, &operands[1], op.axis, op.oob, op.wrap)?;
    scattered(cx, operands, &positions, op.combine)
}

/// The positions in x of a block of these sizes that begins at `starts`.
fn block(x: &[usize], sizes: &[usize], starts: &Tensor, oob: OutOfBounds) -> Result<Vec<usize>, Fault> {
    let own = strides(x);
    let mut offset = 0;
    for (axis, start) in starts.to_i64s().into_iter().enumerate() {
        let room = x[axis] as i64 - sizes[axis] as i64;
        let start = if oob == OutOfBounds::Clamp { start.clamp(0, room.max(0)) } else { start };
        if !(0..=room).contains(&start) {
            return Err(Fault::IndexOutOfRange { index: start, axis, size: x[axis] });
        }
        offset += start as usize * own[axis];
    }
    let steps: Vec<isize> = own.iter().map(|s| *s as isize).collect();
    Ok(walk(sizes, &steps, offset as isize))
}

pub(crate) fn dynamic_slice(
    cx: &Context<'_>,
    op: &DynamicSlice,
    x: &Tensor,
    starts: &Tensor,
) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let positions = block(&x.dims, &dims, starts, op.oob)?;
    Ok(x.picked(dims, &positions))
}

pub(crate) fn dynamic_update(op: &DynamicUpdate, operands: &[Tensor]) -> Result<Tensor, Fault> {
    let (x, update, starts) = (&operands[0], &operands[1], &operands[2]);
    let mut sources: Vec<(usize, usize)> = (0..x.count()).map(|i| (0, i)).collect();
    for (i, at) in block(&x.dims, &update.dims, starts, op.oob)?.into_iter().enumerate() {
        sources[at] = (1, i);
    }
    Ok(Tensor::new(x.dtype, x.dims.clone(), Data::pick_from(&[&x.data, &update.data], &sources)))
}

pub(crate) fn non_zero(x: &Tensor) -> Tensor {
    let found: Vec<usize> = match &*x.data {
        Data::Float(v) => (0..v.len()).filter(|i| v[*i] != 0.0).collect(),
        Data::Signed(v) => (0..v.len()).filter(|i| v[*i] != 0).collect(),
        Data::Unsigned(v) => (0..v.len()).filter(|i| v[*i] != 0).collect(),
        Data::Complex(v) => (0..v.len()).filter(|i| v[*i] != (0.0, 0.0)).collect(),
        Data::Blocks(_) => Vec::new(),
    };
    let own = strides(&x.dims);
    let mut indices = Vec::with_capacity(found.len() * x.dims.len());
    for (size, stride) in x.dims.iter().zip(own) {
        indices.extend(found.iter().map(|i| (i / stride % size) as i64));
    }
    Tensor::i64s(vec![x.dims.len(), found.len()], indices)
}
