//! Movement: lists of the positions that results come from.

use crate::error::Fault;
use crate::oracle::Context;
use crate::tensor::{Data, Tensor, strides, walk};
use rlx_ir::Dim;
use rlx_ir::op::movement::{Concat, Pad, Reverse, Slice, Transpose};

fn signed_strides(dims: &[usize]) -> Vec<isize> {
    strides(dims).into_iter().map(|s| s as isize).collect()
}

pub(crate) fn transpose(op: &Transpose, x: &Tensor) -> Result<Tensor, Fault> {
    let own = signed_strides(&x.dims);
    let dims: Vec<usize> = op.perm.iter().map(|p| x.dims[*p]).collect();
    let strides: Vec<isize> = op.perm.iter().map(|p| own[*p]).collect();
    let indices = walk(&dims, &strides, 0);
    Ok(x.picked(dims, &indices))
}

pub(crate) fn broadcast(cx: &Context<'_>, x: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    if dims == x.dims {
        return Ok(x.clone());
    }
    let added = dims.len() - x.dims.len();
    let mut steps = vec![0isize; dims.len()];
    for (i, (size, stride)) in x.dims.iter().zip(signed_strides(&x.dims)).enumerate() {
        if *size != 1 {
            steps[added + i] = stride;
        }
    }
    let indices = walk(&dims, &steps, 0);
    Ok(x.picked(dims, &indices))
}

fn sizes(cx: &Context<'_>, dims: &[Dim]) -> Result<Vec<usize>, Fault> {
    Ok(dims.iter().map(|d| d.eval_size(cx.bindings)).collect::<Result<_, _>>()?)
}

pub(crate) fn slice(cx: &Context<'_>, op: &Slice, x: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    if dims.contains(&0) {
        return Ok(x.picked(dims, &[]));
    }
    let own = signed_strides(&x.dims);
    let mut offset = 0isize;
    let mut steps = Vec::with_capacity(dims.len());
    for (axis, start) in op.starts.iter().enumerate() {
        let start = start.eval(cx.bindings)?;
        let last = start + (dims[axis] as i64 - 1) * op.steps[axis];
        for index in [start, last] {
            if index < 0 || index >= x.dims[axis] as i64 {
                return Err(Fault::IndexOutOfRange { index, axis, size: x.dims[axis] });
            }
        }
        offset += start as isize * own[axis];
        steps.push(op.steps[axis] as isize * own[axis]);
    }
    let indices = walk(&dims, &steps, offset);
    Ok(x.picked(dims, &indices))
}

pub(crate) fn pad(cx: &Context<'_>, op: &Pad, x: &Tensor, value: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let low = sizes(cx, &op.low)?;
    let own = strides(&x.dims);
    let count: usize = dims.iter().product();
    let outer = strides(&dims);
    let sources: Vec<(usize, usize)> = (0..count)
        .map(|i| {
            let mut source = 0;
            for axis in 0..dims.len() {
                let index = i / outer[axis] % dims[axis];
                match index.checked_sub(low[axis]) {
                    Some(inside) if inside < x.dims[axis] => source += inside * own[axis],
                    _ => return (1, 0),
                }
            }
            (0, source)
        })
        .collect();
    Ok(Tensor::new(x.dtype, dims, Data::pick_from(&[&x.data, &value.data], &sources)))
}

pub(crate) fn concat(cx: &Context<'_>, op: &Concat, parts: &[Tensor]) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let outer: usize = dims[..op.axis].iter().product();
    let mut sources = Vec::with_capacity(dims.iter().product());
    for row in 0..outer {
        for (part, tensor) in parts.iter().enumerate() {
            let run: usize = tensor.dims[op.axis..].iter().product();
            sources.extend((row * run..(row + 1) * run).map(|i| (part, i)));
        }
    }
    let data: Vec<&Data> = parts.iter().map(|p| &*p.data).collect();
    Ok(Tensor::new(parts[0].dtype, dims, Data::pick_from(&data, &sources)))
}

pub(crate) fn reverse(op: &Reverse, x: &Tensor) -> Result<Tensor, Fault> {
    let mut steps = signed_strides(&x.dims);
    let mut offset = 0;
    for axis in &op.axes {
        offset += steps[*axis] * (x.dims[*axis] as isize - 1);
        steps[*axis] = -steps[*axis];
    }
    let indices = walk(&x.dims, &steps, offset);
    Ok(x.picked(x.dims.clone(), &indices))
}
