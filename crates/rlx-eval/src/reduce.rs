//! Reductions, running combinations and arg-reductions, one element after the other.

use crate::elementwise::complex_binary;
use crate::error::Fault;
use crate::numeric::float;
use crate::numeric::wrap::Integer;
use crate::oracle::Context;
use crate::precision::Precision;
use crate::tensor::{Data, Tensor, strides};
use rlx_ir::DType;
use rlx_ir::op::elementwise::BinaryOp;
use rlx_ir::op::reduce::{ArgReduce, ArgReduceOp, Cumulative, CumulativeOp, Reduce, ReduceOp};

/// How elements combine, with the value of nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Combiner {
    Sum,
    Prod,
    Max,
    Min,
    All,
    Any,
}

impl Combiner {
    pub(crate) fn float(self, x: f64, y: f64) -> f64 {
        match self {
            Combiner::Sum => x + y,
            Combiner::Prod => x * y,
            Combiner::Max => float::maximum(x, y),
            Combiner::Min => float::minimum(x, y),
            Combiner::All | Combiner::Any => f64::NAN,
        }
    }

    pub(crate) fn integer<I: Integer>(self, x: I, y: I, bits: u32) -> I {
        match self {
            Combiner::Sum => x.wrapped_add(y, bits),
            Combiner::Prod => x.wrapped_mul(y, bits),
            Combiner::Max | Combiner::Any => x.max(y),
            Combiner::Min | Combiner::All => x.min(y),
        }
    }

    fn complex(self, x: (f64, f64), y: (f64, f64)) -> (f64, f64) {
        let op = if self == Combiner::Prod { BinaryOp::Mul } else { BinaryOp::Add };
        complex_binary(op, x, y).unwrap_or((f64::NAN, f64::NAN))
    }

    pub(crate) fn empty_float(self) -> f64 {
        match self {
            Combiner::Prod => 1.0,
            Combiner::Max => f64::NEG_INFINITY,
            Combiner::Min => f64::INFINITY,
            _ => 0.0,
        }
    }

    pub(crate) fn empty_integer<I: Integer>(self, bits: u32, one: I) -> I {
        match self {
            Combiner::Prod => one,
            Combiner::Max => I::least(bits),
            Combiner::Min => I::greatest(bits),
            Combiner::All => one,
            Combiner::Sum | Combiner::Any => I::default(),
        }
    }
}

impl From<ReduceOp> for Combiner {
    fn from(op: ReduceOp) -> Combiner {
        match op {
            ReduceOp::Sum => Combiner::Sum,
            ReduceOp::Prod => Combiner::Prod,
            ReduceOp::Max => Combiner::Max,
            ReduceOp::Min => Combiner::Min,
            ReduceOp::All => Combiner::All,
            ReduceOp::Any => Combiner::Any,
        }
    }
}

impl From<CumulativeOp> for Combiner {
    fn from(op: CumulativeOp) -> Combiner {
        match op {
            CumulativeOp::Sum => Combiner::Sum,
            CumulativeOp::Prod => Combiner::Prod,
            CumulativeOp::Max => Combiner::Max,
            CumulativeOp::Min => Combiner::Min,
        }
    }
}

/// The type that an accumulator of this type is kept in.
pub(crate) fn accumulator(dtype: DType) -> DType {
    if dtype.is_float() { dtype.dot_accumulator() } else { dtype }
}

/// Combines each element into the result at `target[i]`, in order. `dtype` is the result's.
pub(crate) fn accumulate(
    precision: Precision,
    combiner: Combiner,
    dtype: DType,
    data: &Data,
    targets: &[usize],
    count: usize,
) -> Data {
    let bits = if dtype == DType::Bool { 1 } else { dtype.bits().unwrap_or(64) };
    match data {
        Data::Float(v) => {
            let wide = accumulator(dtype);
            let mut sums = vec![combiner.empty_float(); count];
            for (x, at) in v.iter().zip(targets) {
                sums[*at] = precision.round(wide, combiner.float(sums[*at], *x));
            }
            precision.round_all(dtype, &mut sums);
            Data::Float(sums)
        }
        Data::Signed(v) => {
            let mut sums = vec![combiner.empty_integer(bits, 1i64); count];
            for (x, at) in v.iter().zip(targets) {
                sums[*at] = combiner.integer(sums[*at], *x, bits);
            }
            Data::Signed(sums)
        }
        Data::Unsigned(v) => {
            let mut sums = vec![combiner.empty_integer(bits, 1u64); count];
            for (x, at) in v.iter().zip(targets) {
                sums[*at] = combiner.integer(sums[*at], *x, bits);
            }
            Data::Unsigned(sums)
        }
        Data::Complex(v) => {
            let part = dtype.complex_part().unwrap_or(dtype);
            let mut sums = vec![(combiner.empty_float(), 0.0); count];
            for (x, at) in v.iter().zip(targets) {
                let (re, im) = combiner.complex(sums[*at], *x);
                sums[*at] = (precision.round(part, re), precision.round(part, im));
            }
            Data::Complex(sums)
        }
        Data::Blocks(b) => Data::Blocks(b.clone()),
    }
}

pub(crate) fn reduce(cx: &Context<'_>, op: &Reduce, x: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let mut steps = vec![0isize; x.dims.len()];
    let kept: Vec<usize> = (0..x.dims.len()).filter(|i| !op.axes.contains(i)).collect();
    let kept_dims: Vec<usize> = kept.iter().map(|i| x.dims[*i]).collect();
    for (axis, stride) in kept.iter().zip(strides(&kept_dims)) {
        steps[*axis] = stride as isize;
    }
    let targets = crate::tensor::walk(&x.dims, &steps, 0);
    let count = dims.iter().product();
    let data = accumulate(cx.precision, op.op.into(), cx.dtype(0), &x.data, &targets, count);
    Ok(Tensor::new(cx.dtype(0), dims, data))
}

pub(crate) fn sum_to(cx: &Context<'_>, x: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let added = x.dims.len() - dims.len();
    let mut steps = vec![0isize; x.dims.len()];
    for (i, (size, stride)) in dims.iter().zip(strides(&dims)).enumerate() {
        if *size != 1 {
            steps[added + i] = stride as isize;
        }
    }
    let targets = crate::tensor::walk(&x.dims, &steps, 0);
    let count = dims.iter().product();
    let data = accumulate(cx.precision, Combiner::Sum, x.dtype, &x.data, &targets, count);
    Ok(Tensor::new(x.dtype, dims, data))
}

/// The position of element `i` along an axis of `size` with stride `stride` in line `line`.
fn line_position(line: usize, i: usize, size: usize, stride: usize) -> usize {
    (line / stride) * size * stride + line % stride + i * stride
}

/// Calls `visit` with the positions of each line of elements along an axis, in order; not at all if lines are empty.
pub(crate) fn for_each_line(dims: &[usize], axis: usize, mut visit: impl FnMut(usize, &[usize])) {
    let (size, stride) = (dims[axis], strides(dims)[axis]);
    if size == 0 {
        return;
    }
    let lines: usize = dims.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d).product();
    let mut positions = vec![0; size];
    for line in 0..lines {
        for (i, position) in positions.iter_mut().enumerate() {
            *position = line_position(line, i, size, stride);
        }
        visit(line, &positions);
    }
}

pub(crate) fn cumulative(cx: &Context<'_>, op: &Cumulative, x: &Tensor) -> Result<Tensor, Fault> {
    fn running<T: Copy>(
        dims: &[usize],
        op: &Cumulative,
        elements: &[T],
        empty: T,
        combine: impl Fn(T, T) -> T,
        finish: impl Fn(T) -> T,
    ) -> Vec<T> {
        let mut result = elements.to_vec();
        for_each_line(dims, op.axis, |_, positions| {
            let mut sum = empty;
            for i in 0..positions.len() {
                let at = positions[if op.reverse { positions.len() - 1 - i } else { i }];
                let next = combine(sum, elements[at]);
                result[at] = finish(if op.exclusive { sum } else { next });
                sum = next;
            }
        });
        result
    }
    let combiner = Combiner::from(op.op);
    let bits = x.dtype.bits().unwrap_or(64);
    let wide = accumulator(x.dtype);
    let part = x.dtype.complex_part().unwrap_or(x.dtype);
    let round = |x: (f64, f64)| (cx.round(part, x.0), cx.round(part, x.1));
    let data = match &*x.data {
        Data::Float(v) => Data::Float(running(
            &x.dims,
            op,
            v,
            combiner.empty_float(),
            |a, b| cx.round(wide, combiner.float(a, b)),
            |a| cx.round(x.dtype, a),
        )),
        Data::Signed(v) => {
            let empty = combiner.empty_integer(bits, 1);
            Data::Signed(running(&x.dims, op, v, empty, |a, b| combiner.integer(a, b, bits), |a| a))
        }
        Data::Unsigned(v) => {
            let empty = combiner.empty_integer(bits, 1);
            Data::Unsigned(running(&x.dims, op, v, empty, |a, b| combiner.integer(a, b, bits), |a| a))
        }
        Data::Complex(v) => {
            let empty = (combiner.empty_float(), 0.0);
            Data::Complex(running(&x.dims, op, v, empty, |a, b| round(combiner.complex(a, b)), |a| a))
        }
        Data::Blocks(b) => Data::Blocks(b.clone()),
    };
    Ok(Tensor::new(x.dtype, x.dims.clone(), data))
}

pub(crate) fn arg_reduce(cx: &Context<'_>, op: &ArgReduce, x: &Tensor) -> Result<Tensor, Fault> {
    fn find<T: Copy>(op: &ArgReduce, x: &Tensor, elements: &[T], better: impl Fn(T, T) -> bool) -> Vec<i64> {
        let mut found = Vec::new();
        for_each_line(&x.dims, op.axis, |_, positions| {
            let mut best = 0;
            for i in 1..positions.len() {
                let (new, old) = (elements[positions[i]], elements[positions[best]]);
                if better(new, old) || (op.last && !better(old, new)) {
                    best = i;
                }
            }
            found.push(best as i64);
        });
        found
    }
    let greatest = op.op == ArgReduceOp::ArgMax;
    // NaN counts as the extreme that is looked for.
    let float_better = |new: f64, old: f64| match (new.is_nan(), old.is_nan()) {
        (false, false) => {
            if greatest {
                new > old
            } else {
                new < old
            }
        }
        (new, old) => new && !old,
    };
    let found = match &*x.data {
        Data::Float(v) => find(op, x, v, float_better),
        Data::Signed(v) => find(op, x, v, |new, old| if greatest { new > old } else { new < old }),
        Data::Unsigned(v) => find(op, x, v, |new, old| if greatest { new > old } else { new < old }),
        _ => return Err(Fault::Unsupported { what: op.op.name().into(), found: x.dtype.to_string() }),
    };
    Ok(Tensor::i64s(cx.dims(0)?, found))
}
