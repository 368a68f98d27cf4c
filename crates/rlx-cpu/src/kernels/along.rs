//! Running combinations and positions of extremes along an axis.
//!
//! Where the axis is not the innermost, a panel of neighbouring lines goes along together, so that memory is read in
//! order.
#![allow(unsafe_code)]

use super::number::{Arithmetic, Element, Extremes, Ordered, Pair, is_ordered, with_ordered};
use crate::array::Plain;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_ir::op::reduce::{ArgReduce, ArgReduceOp, Cumulative, CumulativeOp};
use rlx_ir::{DType, Op, Primitive, TensorType};

/// Lines of a panel.
const PANEL: usize = 64;

/// Elements that one thread works on at a time.
const PART: usize = 16 << 10;

/// The products of the sizes before, at, and after `axis`.
pub(crate) fn split(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}

/// Whether an operation is one of this family, on a type that it has here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    match op {
        Op::Primitive(Primitive::Cumulative(op)) => {
            let dtype = operands[0].dtype;
            is_ordered(dtype) || dtype.is_complex() && matches!(op.op, CumulativeOp::Sum | CumulativeOp::Prod)
        }
        Op::Primitive(Primitive::ArgReduce(_)) => is_ordered(operands[0].dtype),
        _ => false,
    }
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    match op {
        Op::Primitive(Primitive::Cumulative(op)) => Some(Box::new(Running { op: op.clone() })),
        Op::Primitive(Primitive::ArgReduce(op)) => Some(Box::new(Extreme { op: op.clone() })),
        _ => None,
    }
}

struct Running {
    op: Cumulative,
}

struct BoundRunning {
    op: Cumulative,
    split: [usize; 3],
}

impl Kernel for Running {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let split = split(&cx.operands[0].dims, self.op.axis);
        Ok(Box::new(BoundRunning { op: self.op.clone(), split }))
    }
}

impl Bound for BoundRunning {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        use Arithmetic as A;
        use CumulativeOp::{Max, Min, Prod, Sum};
        if self.split.contains(&0) {
            return Ok(());
        }
        match (self.op.op, arguments.operand(0).dtype()) {
            (Sum, DType::C64) => self.combine::<Pair<f32>>(cx, arguments, A::ZERO, A::plus),
            (_, DType::C64) => self.combine::<Pair<f32>>(cx, arguments, A::ONE, A::times),
            (Sum, DType::C128) => self.combine::<Pair<f64>>(cx, arguments, A::ZERO, A::plus),
            (_, DType::C128) => self.combine::<Pair<f64>>(cx, arguments, A::ONE, A::times),
            (Sum, d) => with_ordered!(d, T => self.combine::<T>(cx, arguments, A::ZERO, A::plus)),
            (Prod, d) => with_ordered!(d, T => self.combine::<T>(cx, arguments, A::ONE, A::times)),
            (Max, d) => {
                with_ordered!(d, T => self.combine::<T>(cx, arguments, Extremes::LEAST, Extremes::greater))
            }
            (Min, d) => {
                with_ordered!(d, T => self.combine::<T>(cx, arguments, Extremes::GREATEST, Extremes::lesser))
            }
        }
        Ok(())
    }
}

impl BoundRunning {
    fn combine<T: Element>(
        &self,
        cx: &RunContext<'_>,
        arguments: &Arguments<'_>,
        empty: T::Wide,
        f: impl Fn(T::Wide, T::Wide) -> T::Wide + Sync + Send,
    ) {
        let [outer, size, inner] = self.split;
        let (x, out) = (arguments.operand(0).slice::<T>(), arguments.result(0));
        let (exclusive, reverse) = (self.op.exclusive, self.op.reverse);
        let panels = inner.div_ceil(PANEL);
        let grain = (PART / (size * inner.min(PANEL))).max(1);
        cx.pool.for_ranges(outer * panels, grain, |range| {
            for part in range {
                let (block, panel) = (part / panels, part % panels);
                let start = panel * PANEL;
                let lines = (inner - start).min(PANEL);
                let mut sums = [empty; PANEL];
                let sums = &mut sums[..lines];
                for i in 0..size {
                    let i = if reverse { size - 1 - i } else { i };
                    let at = (block * size + i) * inner + start;
                    let from = &x[at..at + lines];
                    let to = out.slice_at::<T>(at, lines);
                    for ((sum, x), y) in sums.iter_mut().zip(from).zip(to) {
                        let next = f(*sum, x.wide());
                        *y = T::narrow(if exclusive { *sum } else { next });
                        *sum = next;
                    }
                }
            }
        });
    }
}

struct Extreme {
    op: ArgReduce,
}

struct BoundExtreme {
    op: ArgReduce,
    split: [usize; 3],
}

impl Kernel for Extreme {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let split = split(&cx.operands[0].dims, self.op.axis);
        Ok(Box::new(BoundExtreme { op: self.op.clone(), split }))
    }
}

impl Bound for BoundExtreme {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        if self.split.contains(&0) {
            return Ok(());
        }
        let least = self.op.op == ArgReduceOp::ArgMin;
        with_ordered!(arguments.operand(0).dtype(), T => match (least, self.op.last) {
            (false, false) => self.find::<T>(cx, arguments, T::rank, |new, old| new > old),
            (false, true) => self.find::<T>(cx, arguments, T::rank, |new, old| new >= old),
            (true, false) => self.find::<T>(cx, arguments, lowest_last::<T>, |new, old| new > old),
            (true, true) => self.find::<T>(cx, arguments, lowest_last::<T>, |new, old| new >= old),
        });
        Ok(())
    }
}

/// A rank that is greatest for the least number, and for NaN.
#[inline(always)]
fn lowest_last<T: Ordered>(x: T) -> T::Rank {
    if x.is_nan() { T::LAST } else { !x.rank() }
}

impl BoundExtreme {
    fn find<T: Ordered + Plain>(
        &self,
        cx: &RunContext<'_>,
        arguments: &Arguments<'_>,
        rank: impl Fn(T) -> T::Rank + Sync + Send,
        better: impl Fn(T::Rank, T::Rank) -> bool + Sync + Send,
    ) {
        let [outer, size, inner] = self.split;
        let (x, out) = (arguments.operand(0).slice::<T>(), arguments.result(0));
        if inner == 1 {
            cx.pool.for_ranges(outer, (PART / size).max(1), |range| {
                for line in range {
                    let row = &x[line * size..(line + 1) * size];
                    out.slice_at::<i64>(line, 1)[0] = position(row, &rank, self.op.last) as i64;
                }
            });
            return;
        }
        let panels = inner.div_ceil(PANEL);
        cx.pool.for_ranges(outer * panels, (PART / (size * inner.min(PANEL))).max(1), |range| {
            for part in range {
                let (block, start) = (part / panels, part % panels * PANEL);
                let lines = (inner - start).min(PANEL);
                let row = |i: usize| {
                    let at = (block * size + i) * inner + start;
                    &x[at..at + lines]
                };
                let mut best = [T::LAST; PANEL];
                best.iter_mut().zip(row(0)).for_each(|(best, x)| *best = rank(*x));
                let found = out.slice_at::<i64>(block * inner + start, lines);
                found.fill(0);
                for i in 1..size {
                    for ((best, found), x) in best.iter_mut().zip(&mut *found).zip(row(i)) {
                        let new = rank(*x);
                        if better(new, *best) {
                            (*best, *found) = (new, i as i64);
                        }
                    }
                }
            }
        });
    }
}

/// Where the greatest rank of a row is: first the rank, which needs no positions, then its place.
fn position<T: Ordered>(row: &[T], rank: impl Fn(T) -> T::Rank, last: bool) -> usize {
    let Some(first) = row.first() else { return 0 };
    let best = row.iter().fold(rank(*first), |best, x| best.max(rank(*x)));
    let found = match last {
        false => row.iter().position(|x| rank(*x) == best),
        true => row.iter().rposition(|x| rank(*x) == best),
    };
    found.unwrap_or(0)
}
