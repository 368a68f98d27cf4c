//! Movement that views cannot express: concatenation, padding, blocks at places that are known when the program runs, and
//! the movement of formats that have no strides.
#![allow(unsafe_code)]

use super::transfer::{Axis, Cells, Transfer, packed_strides};
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_ir::op::index::OutOfBounds;
use rlx_ir::op::movement::Pad;
use rlx_ir::{Op, Primitive};
use rlx_opt::program::Layout;
use smallvec::SmallVec;

/// Whether an operation is one of this family.
pub(crate) fn is_movement(op: &Op) -> bool {
    matches!(
        op,
        Op::Primitive(
            Primitive::Reshape(_)
                | Primitive::Transpose(_)
                | Primitive::Broadcast(_)
                | Primitive::Slice(_)
                | Primitive::Reverse(_)
                | Primitive::Pad(_)
                | Primitive::Concat(_)
                | Primitive::DynamicSlice(_)
                | Primitive::DynamicUpdate(_)
        )
    )
}

/// Whether an operand says where a block begins.
pub(crate) fn is_start(op: &Op, operand: usize) -> bool {
    match op {
        Op::Primitive(Primitive::DynamicSlice(_)) => operand == 1,
        Op::Primitive(Primitive::DynamicUpdate(_)) => operand == 2,
        _ => false,
    }
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    let Op::Primitive(primitive) = op else { return None };
    Some(match primitive {
        Primitive::DynamicSlice(op) => Box::new(Dynamic { oob: op.oob, updates: false }),
        Primitive::DynamicUpdate(op) => Box::new(Dynamic { oob: op.oob, updates: true }),
        primitive if is_movement(op) => Box::new(Movement { op: primitive.clone() }),
        _ => return None,
    })
}

/// A movement that is known when sizes are.
struct Movement {
    op: Primitive,
}

/// One transfer of a movement.
struct Move {
    operand: usize,
    from: isize,
    to: isize,
    transfer: Transfer,
}

struct BoundMovement {
    moves: Vec<Move>,
}

impl Bound for BoundMovement {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let to = arguments.result(0).pointer();
        for part in &self.moves {
            let from = arguments.operand(part.operand).pointer().wrapping_offset(part.from);
            // SAFETY: offsets and axes were made from the layouts of this operand and of the result.
            unsafe { part.transfer.run(cx.pool, from, to.wrapping_offset(part.to)) };
        }
        Ok(())
    }
}

impl Kernel for Movement {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let whole = |transfer| vec![Move { operand: 0, from: 0, to: 0, transfer }];
        let x = Cells::of(&cx.operands[0]);
        let out = Cells::of(&cx.results[0]);
        let to = packed_strides(&out.dims, out.width);
        let moves = match &self.op {
            Primitive::Transpose(op) => {
                // The axis that cells are made of stays the last one.
                let axes = op.perm.iter().zip(&to).filter(|(p, _)| **p < x.dims.len());
                whole(Transfer::new(
                    x.width,
                    axes.map(|(p, to)| Axis { size: x.dims[*p], from: x.strides[*p], to: *to }),
                ))
            }
            Primitive::Broadcast(_) => {
                let added = out.dims.len() - x.dims.len();
                let strides = (0..out.dims.len()).map(|axis| match axis.checked_sub(added) {
                    Some(own) if x.dims[own] != 1 => x.strides[own],
                    _ => 0,
                });
                let axes = out.dims.iter().zip(strides).zip(&to);
                whole(Transfer::new(
                    x.width,
                    axes.map(|((size, from), to)| Axis { size: *size, from, to: *to }),
                ))
            }
            Primitive::Reverse(op) => {
                let mut at = 0isize;
                let mut strides = x.strides.clone();
                for axis in op.axes.iter().filter(|a| **a < x.dims.len()) {
                    at += strides[*axis] * (x.dims[*axis] as isize - 1);
                    strides[*axis] = -strides[*axis];
                }
                let axes = x.dims.iter().zip(&strides).zip(&to);
                let transfer = Transfer::new(
                    x.width,
                    axes.map(|((size, from), to)| Axis { size: *size, from: *from, to: *to }),
                );
                vec![Move { operand: 0, from: at, to: 0, transfer }]
            }
            Primitive::Slice(op) => {
                let mut starts: SmallVec<[(i64, i64); 6]> = SmallVec::new();
                for (start, step) in op.starts.iter().zip(&op.steps) {
                    starts.push((start.eval(cx.bindings)?, *step));
                }
                vec![slice(&x, &out, &starts, &cx.operands[0])?]
            }
            Primitive::Pad(op) => pad(op, &x, &out, cx)?,
            Primitive::Concat(op) => concat(op.axis, cx, &to),
            // A reshape of what has strides.
            _ => whole(Transfer::packing(&cx.operands[0])),
        };
        let moves = moves.into_iter().filter(|m| !m.transfer.is_empty()).collect();
        Ok(Box::new(BoundMovement { moves }))
    }
}

fn slice(x: &Cells, out: &Cells, starts: &[(i64, i64)], operand: &Layout) -> Result<Move, Fault> {
    let empty = out.dims.contains(&0);
    let mut from = 0isize;
    let to = packed_strides(&out.dims, out.width);
    let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
    for (axis, size) in out.dims.iter().enumerate() {
        let (start, step) = starts[axis];
        let last = start + (*size as i64 - 1) * step;
        if let Some(index) = [start, last].into_iter().find(|i| !(0..x.dims[axis] as i64).contains(i))
            && !empty
        {
            return Err(Fault::IndexOutOfRange { index, axis, size: operand.dims[axis] });
        }
        from = from.wrapping_add((start as isize).wrapping_mul(x.strides[axis]));
        axes.push(Axis { size: *size, from: x.strides[axis].wrapping_mul(step as isize), to: to[axis] });
    }
    Ok(Move { operand: 0, from, to: 0, transfer: Transfer::new(x.width, axes) })
}

/// The operand in the middle; before and after it along each axis the value, over all of the axes that follow.
fn pad(op: &Pad, x: &Cells, out: &Cells, cx: &BindContext<'_>) -> Result<Vec<Move>, Fault> {
    let to = packed_strides(&out.dims, out.width);
    let low: SmallVec<[usize; 6]> =
        op.low.iter().map(|d| d.eval_size(cx.bindings)).collect::<Result<_, _>>()?;
    let mut moves = Vec::with_capacity(1 + 2 * low.len());
    let inside: isize = low.iter().zip(&to).map(|(low, to)| *low as isize * to).sum();
    moves.push(Move { operand: 0, from: 0, to: inside, transfer: Transfer::new(x.width, x.axes(&to)) });
    let mut at = 0isize;
    for axis in 0..out.dims.len() {
        let after = low[axis] + x.dims[axis];
        for (start, size) in [(0, low[axis]), (after, out.dims[axis].saturating_sub(after))] {
            let sizes = (0..out.dims.len()).map(|i| match i.cmp(&axis) {
                std::cmp::Ordering::Less => x.dims[i],
                std::cmp::Ordering::Equal => size,
                std::cmp::Ordering::Greater => out.dims[i],
            });
            let axes = sizes.zip(&to).map(|(size, to)| Axis { size, from: 0, to: *to });
            let transfer = Transfer::new(out.width, axes);
            moves.push(Move { operand: 1, from: 0, to: at + start as isize * to[axis], transfer });
        }
        at += low[axis] as isize * to[axis];
    }
    Ok(moves)
}

fn concat(axis: usize, cx: &BindContext<'_>, to: &[isize]) -> Vec<Move> {
    let mut at = 0isize;
    let mut moves = Vec::with_capacity(cx.operands.len());
    for (operand, layout) in cx.operands.iter().enumerate() {
        let x = Cells::of(layout);
        moves.push(Move { operand, from: 0, to: at, transfer: Transfer::new(x.width, x.axes(to)) });
        at += x.dims[axis] as isize * to[axis];
    }
    moves
}

/// A block at a place that an operand gives: read (`dynamic_slice`) or overwritten (`dynamic_update`).
struct Dynamic {
    oob: OutOfBounds,
    updates: bool,
}

struct BoundDynamic {
    oob: OutOfBounds,
    /// Sizes of the whole, and bytes from one index to the next.
    whole: SmallVec<[(usize, isize); 6]>,
    block: SmallVec<[usize; 6]>,
    /// Of the block.
    transfer: Transfer,
    /// Of an update: all of operand 0 to the result.
    keep: Option<Transfer>,
}

impl Kernel for Dynamic {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let x = Cells::of(&cx.operands[0]);
        let out = packed_strides(&cx.results[0].dims, x.width);
        let (block, transfer, keep, strides) = if self.updates {
            let update = Cells::of(&cx.operands[1]);
            let transfer = Transfer::new(x.width, update.axes(&out));
            let keep = Transfer::new(x.width, x.axes(&out));
            (update.dims, transfer, Some(keep), out)
        } else {
            let block = cx.results[0].dims.clone();
            let axes = block.iter().zip(&x.strides).zip(&out);
            let axes = axes.map(|((size, from), to)| Axis { size: *size, from: *from, to: *to });
            (block.clone(), Transfer::new(x.width, axes), None, x.strides.clone())
        };
        let whole = x.dims.iter().copied().zip(strides).collect();
        Ok(Box::new(BoundDynamic { oob: self.oob, whole, block, transfer, keep }))
    }
}

impl Bound for BoundDynamic {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let starts = super::index::Indices::of(&arguments.operand(if self.keep.is_some() { 2 } else { 1 }));
        let mut at = 0isize;
        for (axis, ((size, stride), block)) in self.whole.iter().zip(&self.block).enumerate() {
            let room = *size as i64 - *block as i64;
            let given = starts.get(axis);
            let start = if self.oob == OutOfBounds::Clamp { given.clamp(0, room.max(0)) } else { given };
            if !(0..=room).contains(&start) {
                return Err(Fault::IndexOutOfRange { index: start, axis, size: *size });
            }
            at += start as isize * stride;
        }
        let (x, to) = (arguments.operand(0), arguments.result(0).pointer());
        // SAFETY (all): the block lies inside the whole, whose layout the strides are of.
        match &self.keep {
            Some(keep) => {
                // Written over, operand 0 is already where it belongs.
                if x.pointer() != to.cast_const() {
                    unsafe { keep.run(cx.pool, x.pointer(), to) };
                }
                let update = arguments.operand(1).pointer();
                unsafe { self.transfer.run(cx.pool, update, to.wrapping_offset(at)) };
            }
            None => unsafe { self.transfer.run(cx.pool, x.pointer().wrapping_offset(at), to) },
        }
        Ok(())
    }
}
