//! Scatter: updates that meet the elements picked by indices, in the order of the indices.
//!
//! Updates of one element never run at the same time: work is shared by batch, by columns of the rows that tuples pick, or
//! by lines along the axis, so that the order, and with it the result, is that of one thread.
#![allow(unsafe_code)]

use super::index::{Along, FirstFault, Indices, Tuples};
use super::number::{Arithmetic, Element, Extremes, Pair, is_ordered, with_ordered};
use super::transfer::{Address, Axis, Cells, Transfer, packed_strides};
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_ir::op::index::{Combine, Scatter, ScatterAlong};
use rlx_ir::{DType, Op, Primitive, TensorType};
use smallvec::SmallVec;

/// Cells of a row that one thread updates.
const COLUMNS: usize = 1 << 10;

/// Whether updates of this type are combined here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    let combine = match op {
        Op::Primitive(Primitive::Scatter(op)) => op.combine,
        Op::Primitive(Primitive::ScatterAlong(op)) => op.combine,
        _ => return false,
    };
    let dtype = operands[0].dtype;
    combine == Combine::Replace && dtype.bits().is_some()
        || is_ordered(dtype)
        || matches!(combine, Combine::Add | Combine::Mul) && dtype.is_complex()
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    match op {
        Op::Primitive(Primitive::Scatter(op)) => Some(Box::new(UpdateTuples { op: op.clone() })),
        Op::Primitive(Primitive::ScatterAlong(op)) => Some(Box::new(UpdateAlong { op: op.clone() })),
        _ => None,
    }
}

/// Combines `count` updates that lie without gaps with elements `step` bytes apart.
type Meet = unsafe fn(count: usize, update: *const u8, element: *mut u8, step: isize);

unsafe fn meet<T: Element>(
    count: usize,
    update: *const u8,
    element: *mut u8,
    step: isize,
    f: impl Fn(T::Wide, T::Wide) -> T::Wide,
) {
    for i in 0..count {
        let element = element.wrapping_offset(step * i as isize).cast::<T>();
        // SAFETY: an element and an update, as the function type promises.
        unsafe {
            element.write(T::narrow(f(element.read().wide(), update.cast::<T>().add(i).read().wide())))
        };
    }
}

unsafe fn replace<T: Copy>(count: usize, update: *const u8, element: *mut u8, step: isize) {
    for i in 0..count {
        let element = element.wrapping_offset(step * i as isize).cast::<T>();
        // SAFETY: an element and an update, as the function type promises.
        unsafe { element.write(update.cast::<T>().add(i).read()) };
    }
}

macro_rules! meets {
    ($t:ty, $f:expr) => {{
        unsafe fn all(count: usize, update: *const u8, element: *mut u8, step: isize) {
            // SAFETY: as promised by the caller.
            unsafe { meet::<$t>(count, update, element, step, $f) }
        }
        all
    }};
}

/// How updates of this type meet elements.
fn meeting(combine: Combine, dtype: DType) -> Meet {
    match (combine, dtype) {
        (Combine::Replace, dtype) => match crate::array::width(dtype) {
            1 => replace::<u8>,
            2 => replace::<u16>,
            4 => replace::<u32>,
            8 => replace::<u64>,
            _ => replace::<[u64; 2]>,
        },
        (Combine::Mul, DType::C64) => meets!(Pair<f32>, Arithmetic::times),
        (_, DType::C64) => meets!(Pair<f32>, Arithmetic::plus),
        (Combine::Mul, DType::C128) => meets!(Pair<f64>, Arithmetic::times),
        (_, DType::C128) => meets!(Pair<f64>, Arithmetic::plus),
        (Combine::Add, dtype) => with_ordered!(dtype, T => meets!(T, Arithmetic::plus)),
        (Combine::Mul, dtype) => with_ordered!(dtype, T => meets!(T, Arithmetic::times)),
        (Combine::Max, dtype) => with_ordered!(dtype, T => meets!(T, Extremes::greater)),
        (Combine::Min, dtype) => with_ordered!(dtype, T => meets!(T, Extremes::lesser)),
    }
}

/// Copies operand 0 to the result, unless it is already there.
fn keep(transfer: &Transfer, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> *mut u8 {
    let (x, to) = (arguments.operand(0), arguments.result(0).pointer());
    if x.pointer() != to.cast_const() {
        // SAFETY: the transfer is from the operand's layout to the packed result.
        unsafe { transfer.run(cx.pool, x.pointer(), to) };
    }
    to
}

struct UpdateTuples {
    op: Scatter,
}

struct BoundUpdateTuples {
    width: usize,
    keep: Transfer,
    tuples: Tuples,
    /// The axes of a tuple's cells but the innermost.
    outer: SmallVec<[Axis; 6]>,
    /// Cells of a run, and the bytes between them.
    run: (usize, isize),
    meet: Meet,
}

impl Kernel for UpdateTuples {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (op, x) = (&self.op, Cells::of(&cx.operands[0]));
        let own = packed_strides(&x.dims, x.width);
        let bounds = (op.oob, op.wrap);
        let tuples = Tuples::new(&x.dims, &own, &cx.operands[1].dims, (&op.axes, op.batch), bounds);
        let (sizes, strides): (SmallVec<[usize; 6]>, SmallVec<[isize; 6]>) =
            tuples.kept.iter().copied().unzip();
        let mut kept = super::copy::collapsed(&sizes, &strides);
        let run = kept.pop().unwrap_or((1, x.width as isize));
        let sizes: SmallVec<[usize; 6]> = kept.iter().map(|(size, _)| *size).collect();
        let updates = packed_strides(&sizes, run.0 * x.width);
        let outer =
            kept.iter().zip(&updates).map(|((size, to), from)| Axis { size: *size, from: *from, to: *to });
        Ok(Box::new(BoundUpdateTuples {
            width: x.width,
            keep: Transfer::new(x.width, x.axes(&own)),
            tuples,
            outer: outer.collect(),
            run,
            meet: meeting(op.combine, cx.operands[0].dtype),
        }))
    }
}

impl BoundUpdateTuples {
    /// Updates columns of the runs of a tuple.
    fn tuple(&self, columns: std::ops::Range<usize>, update: *const u8, element: *mut u8) {
        let runs: usize = self.outer.iter().map(|a| a.size).product();
        let start = columns.start as isize;
        for run in 0..runs {
            let (mut rest, mut from, mut to) = (run, 0isize, 0isize);
            for axis in self.outer.iter().rev() {
                let index = (rest % axis.size) as isize;
                rest /= axis.size;
                from += index * axis.from;
                to += index * axis.to;
            }
            let update = update.wrapping_offset(from + start * self.width as isize);
            let element = element.wrapping_offset(to + start * self.run.1);
            // SAFETY: the tuple's cells, and the updates of its own.
            unsafe { (self.meet)(columns.len(), update, element, self.run.1) };
        }
    }
}

impl Bound for BoundUpdateTuples {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let to = Address(keep(&self.keep, cx, arguments));
        let indices = Indices::of(&arguments.operand(1));
        let updates = arguments.operand(2);
        let row = self.tuples.cells() * self.width;
        if row == 0 {
            return Ok(());
        }
        let update = |t: usize| updates.pointer().wrapping_add(t * row);
        let this = &*self;
        let some = |tuples: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            for t in tuples {
                if let Some(at) = this.tuples.place(&indices, t)? {
                    this.tuple(columns.clone(), update(t), to.at(at));
                }
            }
            Ok(())
        };
        let per_batch = self.tuples.per_batch;
        if self.tuples.batches > 1 {
            return FirstFault::for_ranges(cx.pool, self.tuples.batches, 1, |batches| {
                some(batches.start * per_batch..batches.end * per_batch, 0..self.run.0)
            });
        }
        FirstFault::for_ranges(cx.pool, self.run.0, COLUMNS, |columns| some(0..self.tuples.count(), columns))
    }
}

struct UpdateAlong {
    op: ScatterAlong,
}

struct BoundUpdateAlong {
    width: usize,
    keep: Transfer,
    along: Along,
    meet: Meet,
    /// Elements of the indices before each of which no other thread's lines end: those of one index of the axes before.
    block: usize,
}

impl Kernel for UpdateAlong {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (op, x) = (&self.op, Cells::of(&cx.operands[0]));
        let own = packed_strides(&x.dims, x.width);
        let indices = &cx.operands[1].dims;
        Ok(Box::new(BoundUpdateAlong {
            width: x.width,
            keep: Transfer::new(x.width, x.axes(&own)),
            along: Along::new(&x.dims, &own, indices, op.axis, (op.oob, op.wrap)),
            meet: meeting(op.combine, cx.operands[0].dtype),
            block: indices[op.axis..].iter().product(),
        }))
    }
}

impl Bound for BoundUpdateAlong {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let to = Address(keep(&self.keep, cx, arguments));
        let indices = Indices::of(&arguments.operand(1));
        let updates = arguments.operand(2);
        let blocks = self.along.count().checked_div(self.block).unwrap_or(0);
        let grain = (COLUMNS / self.block.max(1)).max(1);
        let this = &*self;
        FirstFault::for_ranges(cx.pool, blocks, grain, |range| {
            let elements = range.start * this.block..range.end * this.block;
            this.along.visit(&indices, elements, |element, at| {
                let Some(at) = at else { return };
                let update = updates.pointer().wrapping_add(element * this.width);
                // SAFETY: an element of the result, in a line that only this part updates, and its update.
                unsafe { (this.meet)(1, update, to.at(at), 0) };
            })
        })
    }
}
