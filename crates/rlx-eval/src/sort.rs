//! Sorting and the k greatest.

use crate::error::Fault;
use crate::oracle::Context;
use crate::reduce::for_each_line;
use crate::tensor::{Data, Tensor};
use rlx_ir::op::reduce::{Sort, TopK};
use std::cmp::Ordering;

/// Ascending order in which NaN is the greatest and −0 equals +0.
fn float_order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// Compares the elements at two positions.
fn compare(data: &Data, i: usize, j: usize) -> Ordering {
    match data {
        Data::Float(v) => float_order(v[i], v[j]),
        Data::Signed(v) => v[i].cmp(&v[j]),
        Data::Unsigned(v) => v[i].cmp(&v[j]),
        Data::Complex(_) | Data::Blocks(_) => Ordering::Equal,
    }
}

pub(crate) fn sort(op: &Sort, operands: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let key = &operands[0];
    let mut source = vec![0; key.count()];
    for_each_line(&key.dims, op.axis, |_, positions| {
        let mut order = positions.to_vec();
        // `sort_by` is stable, and reversing the comparison (not the result) keeps equals in place.
        order.sort_by(|i, j| {
            let order = compare(&key.data, *i, *j);
            if op.descending { order.reverse() } else { order }
        });
        for (to, from) in positions.iter().zip(order) {
            source[*to] = from;
        }
    });
    Ok(operands.iter().map(|t| t.picked(t.dims.clone(), &source)).collect())
}

pub(crate) fn top_k(cx: &Context<'_>, op: &TopK, x: &Tensor) -> Result<Vec<Tensor>, Fault> {
    let dims = cx.dims(0)?;
    let k = dims[op.axis];
    let mut source = vec![0; dims.iter().product()];
    let mut indices = vec![0i64; source.len()];
    let mut lines = Vec::new();
    for_each_line(&x.dims, op.axis, |_, positions| {
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by(|i, j| {
            let order = compare(&x.data, positions[*i], positions[*j]);
            if op.smallest { order } else { order.reverse() }
        });
        order.truncate(k);
        if op.unsorted {
            order.sort_unstable();
        }
        lines.push(order.into_iter().map(|i| (i, positions[i])).collect::<Vec<_>>());
    });
    for_each_line(&dims, op.axis, |line, positions| {
        for (to, (index, from)) in positions.iter().zip(&lines[line]) {
            source[*to] = *from;
            indices[*to] = *index as i64;
        }
    });
    Ok(vec![x.picked(dims.clone(), &source), Tensor::i64s(dims, indices)])
}
