//! Reductions over windows, and where their gradient goes.

use crate::error::Fault;
use crate::numeric::wrap::Integer;
use crate::oracle::Context;
use crate::reduce::{Combiner, accumulator};
use crate::tensor::{Data, Tensor, strides};
use rlx_ir::Dim;
use rlx_ir::op::window::{ReduceWindow, ReduceWindowGrad, WindowGradOp, WindowOp};

/// The elements of windows.
struct Windows {
    dims: Vec<usize>,
    window: Vec<usize>,
    low: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    operand: Vec<usize>,
}

impl Windows {
    fn new(
        cx: &Context<'_>,
        dims: Vec<usize>,
        operand: &[usize],
        window: &[Dim],
        padding: &[(Dim, Dim)],
        (strides, dilations): (&[i64], &[i64]),
    ) -> Result<Windows, Fault> {
        Ok(Windows {
            dims,
            window: window.iter().map(|d| d.eval_size(cx.bindings)).collect::<Result<_, _>>()?,
            low: padding.iter().map(|(low, _)| low.eval(cx.bindings)).collect::<Result<_, _>>()?,
            strides: strides.to_vec(),
            dilations: dilations.to_vec(),
            operand: operand.to_vec(),
        })
    }

    fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Calls `visit` with each position of window `at`: `None` in the padding.
    fn for_each(&self, at: usize, mut visit: impl FnMut(Option<usize>)) {
        let (outer, inner, own) = (strides(&self.dims), strides(&self.window), strides(&self.operand));
        for tap in 0..self.window.iter().product() {
            let mut position = Some(0);
            for axis in 0..self.dims.len() {
                let o = (at / outer[axis] % self.dims[axis]) as i64;
                let k = (tap / inner[axis] % self.window[axis]) as i64;
                let i = o * self.strides[axis] + k * self.dilations[axis] - self.low[axis];
                position = position
                    .filter(|_| (0..self.operand[axis] as i64).contains(&i))
                    .map(|p| p + i as usize * own[axis]);
            }
            visit(position);
        }
    }
}

pub(crate) fn reduce_window(
    cx: &Context<'_>,
    op: &ReduceWindow,
    x: &Tensor,
    padding: &Tensor,
) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let steps = (op.strides.as_slice(), op.dilations.as_slice());
    let windows = Windows::new(cx, dims.clone(), &x.dims, &op.window, &op.padding, steps)?;
    let combiner = match op.op {
        WindowOp::Sum => Combiner::Sum,
        WindowOp::Prod => Combiner::Prod,
        WindowOp::Max => Combiner::Max,
        WindowOp::Min => Combiner::Min,
    };
    let bits = x.dtype.bits().unwrap_or(64);
    let wide = accumulator(x.dtype);
    let each = 0..windows.count();
    let data = match (&*x.data, &*padding.data) {
        (Data::Float(v), Data::Float(fill)) => {
            let mut results = Vec::with_capacity(each.len());
            for at in each {
                let mut sum = combiner.empty_float();
                windows.for_each(at, |p| {
                    sum = cx.round(wide, combiner.float(sum, p.map_or(fill[0], |p| v[p])));
                });
                results.push(cx.round(x.dtype, sum));
            }
            Data::Float(results)
        }
        (Data::Signed(v), Data::Signed(fill)) => {
            let mut results = Vec::with_capacity(each.len());
            for at in each {
                let mut sum = combiner.empty_integer(bits, 1i64);
                windows.for_each(at, |p| sum = combiner.integer(sum, p.map_or(fill[0], |p| v[p]), bits));
                results.push(sum.wrap(bits));
            }
            Data::Signed(results)
        }
        (Data::Unsigned(v), Data::Unsigned(fill)) => {
            let mut results = Vec::with_capacity(each.len());
            for at in each {
                let mut sum = combiner.empty_integer(bits, 1u64);
                windows.for_each(at, |p| sum = combiner.integer(sum, p.map_or(fill[0], |p| v[p]), bits));
                results.push(sum.wrap(bits));
            }
            Data::Unsigned(results)
        }
        _ => return Err(Fault::Unsupported { what: op.op.name().into(), found: x.dtype.to_string() }),
    };
    Ok(Tensor::new(x.dtype, dims, data))
}

pub(crate) fn reduce_window_grad(
    cx: &Context<'_>,
    op: &ReduceWindowGrad,
    x: &Tensor,
    dy: &Tensor,
) -> Result<Tensor, Fault> {
    let steps = (op.strides.as_slice(), op.dilations.as_slice());
    let windows = Windows::new(cx, dy.dims.clone(), &x.dims, &op.window, &op.padding, steps)?;
    let (elements, grads) = (x.as_floats(), dy.as_floats());
    let wide = accumulator(x.dtype);
    let mut dx = vec![0.0; elements.len()];
    for (at, grad) in grads.iter().enumerate() {
        let mut best: Option<usize> = None;
        windows.for_each(at, |p| {
            let Some(p) = p else { return };
            let better = best.is_none_or(|b| {
                let (new, old) = (elements[p], elements[b]);
                let extreme = match op.op {
                    WindowGradOp::Max => new > old,
                    WindowGradOp::Min => new < old,
                };
                extreme || (new.is_nan() && !old.is_nan())
            });
            if better {
                best = Some(p);
            }
        });
        if let Some(p) = best {
            dx[p] = cx.round(wide, dx[p] + grad);
        }
    }
    cx.precision.round_all(x.dtype, &mut dx);
    Ok(Tensor::floats(x.dtype, x.dims.clone(), dx))
}
