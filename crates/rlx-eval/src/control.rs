//! Control flow and users' operations.

use crate::error::{EvalError, Fault};
use crate::oracle::Context;
use crate::tensor::{Data, Tensor, strides};
use rlx_ir::op::Custom;
use rlx_ir::op::control::{Call, If, Scan, While};
use rlx_ir::{Bindings, DType, Graph, Literal, TensorType};

fn nested(
    cx: &Context<'_>,
    body: &Graph,
    inputs: Vec<Tensor>,
    bindings: &Bindings,
) -> Result<Vec<Tensor>, Fault> {
    cx.run.graph(body, inputs, bindings.clone()).map_err(|e: EvalError| Fault::Subgraph(Box::new(e)))
}

pub(crate) fn branch(cx: &Context<'_>, op: &If, operands: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let taken = if operands[0].scalar_i64() != 0 { &op.then_branch } else { &op.else_branch };
    nested(cx, taken, operands[1..].to_vec(), cx.bindings)
}

/// Results of each trip, stacked along a new first axis.
struct Stack {
    dtype: DType,
    element: Option<Vec<usize>>,
    data: Data,
    trips: usize,
}

impl Stack {
    fn new(t: &TensorType) -> Stack {
        Stack { dtype: t.dtype, element: None, data: Data::empty(t.dtype), trips: 0 }
    }

    fn push(&mut self, tensor: &Tensor) {
        self.element.get_or_insert_with(|| tensor.dims.clone());
        self.data.append(&tensor.data);
        self.trips += 1;
    }

    /// The tensor; without any trip its other sizes are `declared`, 0 where a size is only known inside the body.
    fn finish(self, declared: &TensorType, bindings: &Bindings) -> Tensor {
        let element = self.element.unwrap_or_else(|| {
            declared.dims()[1..].iter().map(|d| d.eval_size(bindings).unwrap_or(0)).collect()
        });
        let dims = std::iter::once(self.trips).chain(element).collect();
        Tensor::new(self.dtype, dims, self.data)
    }
}

pub(crate) fn repeat(cx: &Context<'_>, op: &While, operands: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let bound = u64::try_from(operands[0].scalar_i64()).ok();
    let mut condition = operands[1].scalar_i64() != 0;
    let mut carried = operands[2..2 + op.carried].to_vec();
    let captured = &operands[2 + op.carried..];
    let mut stacks: Vec<Stack> = op.results[op.carried..].iter().map(Stack::new).collect();
    let mut trip = 0u64;
    while condition && bound.is_none_or(|b| trip < b) {
        if trip >= cx.run.options.trip_limit {
            return Err(Fault::Trips { limit: cx.run.options.trip_limit });
        }
        let mut inputs = vec![Tensor::i64s(Vec::new(), vec![trip as i64])];
        inputs.append(&mut carried);
        inputs.extend_from_slice(captured);
        let mut results = nested(cx, &op.body, inputs, cx.bindings)?.into_iter();
        condition = results.next().is_some_and(|c| c.scalar_i64() != 0);
        carried = results.by_ref().take(op.carried).collect();
        for (stack, tensor) in stacks.iter_mut().zip(results) {
            stack.push(&tensor);
        }
        trip += 1;
    }
    let mut bindings = cx.bindings.clone();
    bindings.set(op.count.clone(), trip as i64);
    let stacked = stacks.into_iter().zip(&op.results[op.carried..]).map(|(s, t)| s.finish(t, &bindings));
    Ok(carried.into_iter().chain(stacked).collect())
}

pub(crate) fn scan(cx: &Context<'_>, op: &Scan, operands: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let length = op.length.eval_size(cx.bindings)?;
    if length as u64 > cx.run.options.trip_limit {
        return Err(Fault::Trips { limit: cx.run.options.trip_limit });
    }
    let mut carried = operands[..op.carried].to_vec();
    let scanned = &operands[op.carried..op.carried + op.scanned];
    let captured = &operands[op.carried + op.scanned..];
    let mut trips: Vec<Vec<Tensor>> = Vec::with_capacity(length.min(1 << 16));
    for trip in 0..length {
        let at = if op.reverse { length - 1 - trip } else { trip };
        let mut inputs = std::mem::take(&mut carried);
        inputs.extend(scanned.iter().map(|x| row(x, at)));
        inputs.extend_from_slice(captured);
        let mut results = nested(cx, &op.body, inputs, cx.bindings)?;
        let stacked = results.split_off(op.carried);
        carried = results;
        trips.push(stacked);
    }
    if op.reverse {
        trips.reverse();
    }
    let mut results = carried;
    for (i, t) in cx.types[op.carried..].iter().enumerate() {
        let mut stack = Stack::new(t);
        trips.iter().for_each(|trip| stack.push(&trip[i]));
        results.push(stack.finish(t, cx.bindings));
    }
    Ok(results)
}

/// Index `at` of the first axis.
fn row(x: &Tensor, at: usize) -> Tensor {
    let size = strides(&x.dims)[0];
    let indices: Vec<usize> = (at * size..(at + 1) * size).collect();
    x.picked(x.dims[1..].to_vec(), &indices)
}

pub(crate) fn call(cx: &Context<'_>, op: &Call, operands: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    nested(cx, &op.body, operands.to_vec(), cx.bindings)
}

pub(crate) fn custom(op: &Custom, operands: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let unsupported =
        |t: &Tensor| Fault::Unsupported { what: op.0.name().into(), found: t.dtype.to_string() };
    let literals: Vec<Literal> =
        operands.iter().map(|t| t.to_literal().ok_or_else(|| unsupported(t))).collect::<Result<_, _>>()?;
    let results = op.0.eval(&literals).map_err(Fault::Custom)?;
    results
        .iter()
        .map(|l| {
            let found = || Fault::Unsupported { what: op.0.name().into(), found: l.dtype().to_string() };
            Tensor::from_literal(l).ok_or_else(found)
        })
        .collect()
}
