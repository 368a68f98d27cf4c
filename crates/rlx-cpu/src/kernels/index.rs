//! Gather: elements and rows picked by indices.
#![allow(unsafe_code)]

use super::transfer::{Address, Axis, Cells, Transfer, packed_strides};
use crate::array::In;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::pool::Pool;
use rlx_eval::Fault;
use rlx_ir::op::index::{Gather, GatherAlong, OutOfBounds};
use rlx_ir::{DType, Op, Primitive};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Bytes of results that one thread gathers at a time.
const PART_BYTES: usize = 64 << 10;

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    match op {
        Op::Primitive(Primitive::Gather(op)) => Some(Box::new(PickTuples { op: op.clone() })),
        Op::Primitive(Primitive::GatherAlong(op)) => Some(Box::new(PickAlong { op: op.clone() })),
        _ => None,
    }
}

/// Packed indices of either type.
#[derive(Clone, Copy)]
pub(crate) enum Indices<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'a> Indices<'a> {
    /// The elements of a packed operand of i32 or i64.
    pub(crate) fn of(x: &In<'a>) -> Indices<'a> {
        match x.dtype() {
            _ if x.layout().count() == 0 => Indices::I64(&[]),
            DType::I32 => Indices::I32(x.slice()),
            _ => Indices::I64(x.slice()),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> i64 {
        match self {
            Indices::I32(v) => i64::from(v[i]),
            Indices::I64(v) => v[i],
        }
    }
}

/// What becomes of an index of an axis.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) axis: usize,
    pub(crate) size: usize,
    pub(crate) oob: OutOfBounds,
    pub(crate) wrap: bool,
}

impl Rule {
    /// The index inside the axis, `None` where it is dropped.
    #[inline(always)]
    pub(crate) fn resolve(&self, index: i64) -> Result<Option<usize>, Fault> {
        let n = self.size as i64;
        let counted = if self.wrap && index < 0 { index.saturating_add(n) } else { index };
        if (0..n).contains(&counted) {
            return Ok(Some(counted as usize));
        }
        match self.oob {
            OutOfBounds::Drop => Ok(None),
            OutOfBounds::Clamp if n > 0 => Ok(Some(counted.clamp(0, n - 1) as usize)),
            OutOfBounds::Clamp | OutOfBounds::Error => {
                Err(Fault::IndexOutOfRange { index, axis: self.axis, size: self.size })
            }
        }
    }
}

/// The fault of the first part that has one, whichever thread finds it.
#[derive(Default)]
pub(crate) struct FirstFault(Mutex<Option<(usize, Fault)>>);

impl FirstFault {
    /// Runs parts of `0..items`, each of about `grain` items, on all threads.
    pub(crate) fn for_ranges(
        pool: &Pool,
        items: usize,
        grain: usize,
        part: impl Fn(Range<usize>) -> Result<(), Fault> + Sync + Send,
    ) -> Result<(), Fault> {
        let first = FirstFault::default();
        pool.for_ranges(items, grain, |range| {
            let start = range.start;
            if let Err(fault) = part(range) {
                let mut known = first.0.lock().unwrap_or_else(PoisonError::into_inner);
                if known.as_ref().is_none_or(|(at, _)| start < *at) {
                    *known = Some((start, fault));
                }
            }
        });
        match first.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, fault)) => Err(fault),
            None => Ok(()),
        }
    }
}

/// How index tuples address a tensor: where a tuple's cells begin, and how they lie.
pub(crate) struct Tuples {
    rules: SmallVec<[(Rule, isize); 4]>,
    /// Sizes and strides of the batch axes.
    batch: SmallVec<[(usize, isize); 4]>,
    /// Tuples of one batch.
    pub(crate) per_batch: usize,
    /// Product of the batch sizes.
    pub(crate) batches: usize,
    /// Sizes and strides of the axes that are kept.
    pub(crate) kept: SmallVec<[(usize, isize); 6]>,
}

impl Tuples {
    /// Tuples that address cells of these sizes and strides by `axes`, after `batch` leading axes shared with `indices`.
    pub(crate) fn new(
        dims: &[usize],
        strides: &[isize],
        indices: &[usize],
        (axes, batch): (&[usize], usize),
        (oob, wrap): (OutOfBounds, bool),
    ) -> Tuples {
        let rule = |axis: &usize| (Rule { axis: *axis, size: dims[*axis], oob, wrap }, strides[*axis]);
        let kept = (batch..dims.len()).filter(|i| !axes.contains(i)).map(|i| (dims[i], strides[i]));
        let batches: usize = dims[..batch].iter().product();
        Tuples {
            rules: axes.iter().map(rule).collect(),
            batch: dims[..batch].iter().copied().zip(strides[..batch].iter().copied()).collect(),
            per_batch: indices[batch..indices.len() - 1].iter().product(),
            batches,
            kept: kept.collect(),
        }
    }

    /// Cells that a tuple picks.
    pub(crate) fn cells(&self) -> usize {
        self.kept.iter().map(|(size, _)| size).product()
    }

    /// How many tuples there are.
    pub(crate) fn count(&self) -> usize {
        self.batches * self.per_batch
    }

    /// Where the cells of tuple `t` begin; `None` where they are dropped.
    #[inline]
    pub(crate) fn place(&self, indices: &Indices<'_>, t: usize) -> Result<Option<isize>, Fault> {
        let mut at = Some(0isize);
        for (j, (rule, stride)) in self.rules.iter().enumerate() {
            let index = rule.resolve(indices.get(t * self.rules.len() + j))?;
            at = at.zip(index).map(|(at, index)| at + index as isize * stride);
        }
        if !self.batch.is_empty() {
            let mut batch = t / self.per_batch;
            for (size, stride) in self.batch.iter().rev() {
                at = at.map(|at| at + (batch % size) as isize * stride);
                batch /= size;
            }
        }
        Ok(at)
    }
}

struct PickTuples {
    op: Gather,
}

struct BoundPickTuples {
    width: usize,
    tuples: Tuples,
    /// From the cells of a tuple to the result.
    pick: Transfer,
    /// The fill value in place of them.
    fill: Transfer,
}

impl Kernel for PickTuples {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (op, x) = (&self.op, Cells::of(&cx.operands[0]));
        let bounds = (op.oob, op.wrap);
        let tuples = Tuples::new(&x.dims, &x.strides, &cx.operands[1].dims, (&op.axes, op.batch), bounds);
        let sizes: SmallVec<[usize; 6]> = tuples.kept.iter().map(|(size, _)| *size).collect();
        let to = packed_strides(&sizes, x.width);
        let axes = tuples.kept.iter().zip(&to);
        let pick =
            Transfer::new(x.width, axes.map(|((size, from), to)| Axis { size: *size, from: *from, to: *to }));
        let cells = Axis { size: tuples.cells(), from: 0, to: x.width as isize };
        let fill = Transfer::new(x.width, [cells]);
        Ok(Box::new(BoundPickTuples { width: x.width, tuples, pick, fill }))
    }
}

impl Bound for BoundPickTuples {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, indices) = (arguments.operand(0), Indices::of(&arguments.operand(1)));
        let fill = (arguments.operand_count() > 2).then(|| arguments.operand(2));
        let to = Address(arguments.result(0).pointer());
        let row = self.tuples.cells() * self.width;
        let one = |t: usize, copy: &dyn Fn(&Transfer, *const u8, *mut u8)| -> Result<(), Fault> {
            let to = to.at((t * row) as isize);
            match (self.tuples.place(&indices, t)?, &fill) {
                (Some(at), _) => copy(&self.pick, x.pointer().wrapping_offset(at), to),
                (None, Some(fill)) => copy(&self.fill, fill.pointer(), to),
                (None, None) => {}
            }
            Ok(())
        };
        if row > 4 * PART_BYTES {
            for t in 0..self.tuples.count() {
                // SAFETY: the place lies inside x, the row inside the result.
                one(t, &|transfer, from, to| unsafe { transfer.run(cx.pool, from, to) })?;
            }
            return Ok(());
        }
        let run = self.pick.run_bytes();
        let grain = (PART_BYTES / row.max(8)).max(1);
        FirstFault::for_ranges(cx.pool, self.tuples.count(), grain, |range| {
            for t in range {
                match (run, self.tuples.place(&indices, t)?) {
                    // Whole rows, the usual case.
                    (Some(bytes), Some(at)) => {
                        let from = x.pointer().wrapping_offset(at);
                        // SAFETY: as below.
                        unsafe { super::transfer::copy_run(bytes, from, to.at((t * row) as isize)) };
                    }
                    // SAFETY: the place lies inside x, the row inside the result.
                    _ => one(t, &|transfer, from, to| unsafe { transfer.run_here(from, to) })?,
                }
            }
            Ok(())
        })
    }
}

struct PickAlong {
    op: GatherAlong,
}

struct BoundPickAlong {
    along: Along,
    width: usize,
}

/// How indices along an axis address a tensor.
pub(crate) struct Along {
    rule: Rule,
    stride: isize,
    /// Sizes of the indices, and the tensor's strides, but 0 along the axis.
    pub(crate) axes: SmallVec<[(usize, isize); 6]>,
}

impl Along {
    pub(crate) fn new(
        dims: &[usize],
        strides: &[isize],
        indices: &[usize],
        axis: usize,
        (oob, wrap): (OutOfBounds, bool),
    ) -> Along {
        let mut axes: SmallVec<[(usize, isize); 6]> =
            indices.iter().copied().zip(strides.iter().copied()).collect();
        axes[axis].1 = 0;
        Along { rule: Rule { axis, size: dims[axis], oob, wrap }, stride: strides[axis], axes }
    }

    pub(crate) fn count(&self) -> usize {
        self.axes.iter().map(|(size, _)| size).product()
    }

    /// Calls `visit` with each element of `range` and its place.
    #[inline(always)]
    pub(crate) fn visit(
        &self,
        indices: &Indices<'_>,
        range: Range<usize>,
        mut visit: impl FnMut(usize, Option<isize>),
    ) -> Result<(), Fault> {
        let Some(((length, step), outer)) = self.axes.split_last() else { return Ok(()) };
        let mut element = range.start;
        while element < range.end {
            let (mut row, start) = (element / length, element % length);
            let mut base = 0isize;
            for (size, stride) in outer.iter().rev() {
                base += (row % size) as isize * stride;
                row /= size;
            }
            let end = (start + (range.end - element)).min(*length);
            for i in start..end {
                let place = self.rule.resolve(indices.get(element))?;
                let at = place.map(|p| base + i as isize * step + p as isize * self.stride);
                visit(element, at);
                element += 1;
            }
        }
        Ok(())
    }
}

impl Kernel for PickAlong {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (op, x) = (&self.op, Cells::of(&cx.operands[0]));
        let along = Along::new(&x.dims, &x.strides, &cx.operands[1].dims, op.axis, (op.oob, op.wrap));
        Ok(Box::new(BoundPickAlong { along, width: x.width }))
    }
}

impl Bound for BoundPickAlong {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        match self.width {
            1 => self.pick::<u8>(cx, arguments),
            2 => self.pick::<u16>(cx, arguments),
            4 => self.pick::<u32>(cx, arguments),
            8 => self.pick::<u64>(cx, arguments),
            _ => self.pick::<[u64; 2]>(cx, arguments),
        }
    }
}

impl BoundPickAlong {
    fn pick<T: Copy>(&self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, indices) = (arguments.operand(0), Indices::of(&arguments.operand(1)));
        let fill = (arguments.operand_count() > 2).then(|| arguments.operand(2));
        let to = Address(arguments.result(0).pointer());
        FirstFault::for_ranges(cx.pool, self.along.count(), PART_BYTES / 8, |range| {
            let to = to.at(0).cast::<T>();
            self.along.visit(&indices, range, |element, at| {
                let from = match (at, &fill) {
                    (Some(at), _) => x.pointer().wrapping_offset(at),
                    (None, Some(fill)) => fill.pointer(),
                    (None, None) => return,
                };
                // SAFETY: the place lies inside x, the element inside the result, which only this part writes.
                unsafe { to.add(element).write(from.cast::<T>().read()) };
            })
        })
    }
}
