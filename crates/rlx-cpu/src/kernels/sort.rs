//! Sorting, and the k greatest.
//!
//! An element's rank and its position make one number, so that an unstable sort of those is a stable sort of the elements.
#![allow(unsafe_code)]

use super::along::split;
use super::number::{Ordered, is_ordered, with_ordered};
use super::transfer::{Address, copy_run};
use crate::array::width;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_ir::op::reduce::{Sort, TopK};
use rlx_ir::{DTypeClass, Op, Primitive, TensorType};
use std::cell::RefCell;

/// Elements that one thread sorts at a time.
const PART: usize = 4 << 10;

/// Whether an operation is one of this family, on types that it has here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    let moves = |t: &&TensorType| width(t.dtype) > 0 && t.dtype.class() != DTypeClass::Block;
    match op {
        Op::Primitive(Primitive::Sort(_) | Primitive::TopK(_)) => {
            is_ordered(operands[0].dtype) && operands.iter().all(moves)
        }
        _ => false,
    }
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    match op {
        Op::Primitive(Primitive::Sort(op)) => Some(Box::new(Sorter { op: op.clone() })),
        Op::Primitive(Primitive::TopK(op)) => Some(Box::new(Greatest { op: op.clone() })),
        _ => None,
    }
}

thread_local! {
    /// Ranks and positions of the line that this thread sorts.
    static LINE: RefCell<Line> = const { RefCell::new(Line { narrow: Vec::new(), wide: Vec::new() }) };
}

struct Line {
    /// A rank of 32 bits at most above a position.
    narrow: Vec<u64>,
    /// A rank above a position.
    wide: Vec<u128>,
}

/// A rank above a position.
trait Place: Copy + Ord {
    fn new(rank: u64, position: usize) -> Self;
    fn position(self) -> usize;
}

impl Place for u64 {
    #[inline(always)]
    fn new(rank: u64, position: usize) -> u64 {
        rank << 32 | position as u64
    }
    #[inline(always)]
    fn position(self) -> usize {
        (self & 0xffff_ffff) as usize
    }
}

impl Place for u128 {
    #[inline(always)]
    fn new(rank: u64, position: usize) -> u128 {
        u128::from(rank) << 64 | position as u128
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as u64 as usize
    }
}

/// Which elements of a line are wanted, and in which order.
#[derive(Clone, Copy)]
struct Order {
    /// From the greatest down.
    descending: bool,
    /// How many.
    count: usize,
    /// In the order of their positions.
    unsorted: bool,
}

/// The places of a line in order, of which the first `count` are wanted.
fn arrange<P: Place, T: Ordered>(places: &mut Vec<P>, line: impl Iterator<Item = T>, order: Order) -> &[P] {
    places.clear();
    if order.descending {
        places.extend(line.enumerate().map(|(i, x)| P::new((!x.rank()).into(), i)));
    } else {
        places.extend(line.enumerate().map(|(i, x)| P::new(x.rank().into(), i)));
    }
    if order.count == 0 {
        return &[];
    }
    if order.count < places.len() {
        places.select_nth_unstable(order.count - 1);
        places.truncate(order.count);
    }
    if order.unsorted {
        places.sort_unstable_by_key(|p| p.position());
    } else {
        places.sort_unstable();
    }
    places
}

/// Calls `with` with the positions of each line's elements in order.
fn each_line<T: Ordered>(
    cx: &RunContext<'_>,
    [outer, size, inner]: [usize; 3],
    x: &[T],
    order: Order,
    with: impl Fn(usize, usize, &mut dyn Iterator<Item = usize>) + Sync + Send,
) {
    cx.pool.for_ranges(outer * inner, (PART / size.max(1)).max(1), |range| {
        LINE.with_borrow_mut(|scratch| {
            for line in range {
                let (block, at) = (line / inner, line % inner);
                let elements = x[block * size * inner..].iter().skip(at).step_by(inner).take(size).copied();
                if size_of::<T::Rank>() <= 4 && size <= u32::MAX as usize {
                    let places = arrange(&mut scratch.narrow, elements, order);
                    with(block, at, &mut places.iter().map(|p| p.position()));
                } else {
                    let places = arrange(&mut scratch.wide, elements, order);
                    with(block, at, &mut places.iter().map(|p| p.position()));
                }
            }
        });
    });
}

struct Sorter {
    op: Sort,
}

struct BoundSorter {
    descending: bool,
    split: [usize; 3],
}

impl Kernel for Sorter {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let split = split(&cx.operands[0].dims, self.op.axis);
        Ok(Box::new(BoundSorter { descending: self.op.descending, split }))
    }
}

impl Bound for BoundSorter {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let [_, size, inner] = self.split;
        if self.split.contains(&0) {
            return Ok(());
        }
        let order = Order { descending: self.descending, count: size, unsorted: false };
        let key = arguments.operand(0);
        with_ordered!(key.dtype(), T => each_line(cx, self.split, key.slice::<T>(), order, |block, at, places| {
            let element = |i: usize| (block * size + i) * inner + at;
            for (i, place) in places.enumerate() {
                for operand in 0..arguments.operand_count() {
                    let (x, y) = (arguments.operand(operand), arguments.result(operand));
                    let bytes = width(x.dtype());
                    let from = x.pointer().wrapping_add(element(place) * bytes);
                    let to = Address(y.pointer()).at((element(i) * bytes) as isize);
                    // SAFETY: elements of packed operands and results of one size; no other thread has this line.
                    unsafe { copy_run(bytes, from, to) };
                }
            }
        }));
        Ok(())
    }
}

struct Greatest {
    op: TopK,
}

struct BoundGreatest {
    order: Order,
    split: [usize; 3],
}

impl Kernel for Greatest {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let op = &self.op;
        let split = split(&cx.operands[0].dims, op.axis);
        let count = cx.results[0].dims[op.axis];
        let order = Order { descending: !op.smallest, count, unsorted: op.unsorted };
        Ok(Box::new(BoundGreatest { order, split }))
    }
}

impl Bound for BoundGreatest {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let [_, size, inner] = self.split;
        if self.split.contains(&0) {
            return Ok(());
        }
        let (x, values, indices) = (arguments.operand(0), arguments.result(0), arguments.result(1));
        let count = self.order.count;
        with_ordered!(x.dtype(), T => {
            let x = x.slice::<T>();
            each_line(cx, self.split, x, self.order, |block, at, places| {
                for (i, place) in places.enumerate() {
                    let to = (block * count + i) * inner + at;
                    values.slice_at::<T>(to, 1)[0] = x[(block * size + place) * inner + at];
                    indices.slice_at::<i64>(to, 1)[0] = place as i64;
                }
            })
        });
        Ok(())
    }
}
