//! Copies from any layout to a packed one.
#![allow(unsafe_code)]

use super::transfer::Transfer;
use crate::array::{In, Out};
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::pool::Pool;
use rlx_eval::Fault;
use smallvec::SmallVec;

/// The step that packs a view.
pub struct Copy;

impl Kernel for Copy {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(BoundCopy { transfer: Transfer::packing(&cx.operands[0]) }))
    }
}

struct BoundCopy {
    transfer: Transfer,
}

impl Bound for BoundCopy {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (from, to) = (arguments.operand(0), arguments.result(0));
        // SAFETY: the transfer was made for this layout, and the result has its sizes.
        unsafe { self.transfer.run(cx.pool, from.pointer(), to.pointer()) };
        Ok(())
    }
}

/// Copies all elements of `from` to `to`, which has the same sizes and is packed, on this thread.
pub fn copy(from: &In<'_>, to: &Out<'_>) {
    if from.layout().is_packed() {
        to.bytes().copy_from_slice(from.bytes());
        return;
    }
    // SAFETY: `from` may be read and `to` written in their layouts.
    unsafe { Transfer::packing(from.layout()).run_here(from.pointer(), to.pointer()) };
}

/// The same on all threads.
pub fn copy_on(pool: &Pool, from: &In<'_>, to: &Out<'_>) {
    // SAFETY: as in `copy`.
    unsafe { Transfer::packing(from.layout()).run(pool, from.pointer(), to.pointer()) };
}

/// Sizes and strides with neighbouring axes joined where they lie like one, and axes of size 1 left out.
pub fn collapsed(dims: &[usize], strides: &[isize]) -> SmallVec<[(usize, isize); 6]> {
    let mut axes: SmallVec<[(usize, isize); 6]> = SmallVec::new();
    for (dim, stride) in dims.iter().zip(strides).filter(|(dim, _)| **dim != 1) {
        match axes.last_mut() {
            Some((outer, step)) if *step == stride.wrapping_mul(*dim as isize) => {
                *outer *= dim;
                *step = *stride;
            }
            _ => axes.push((*dim, *stride)),
        }
    }
    axes
}
