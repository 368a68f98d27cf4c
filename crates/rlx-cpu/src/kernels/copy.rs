//! Copies from any layout to a packed one.
#![allow(unsafe_code)]

use crate::array::{In, Out, Plain, width};
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use smallvec::SmallVec;

/// The step that packs a view.
pub struct Copy;

impl Kernel for Copy {
    fn bind(&self, _: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(Copy))
    }
}

impl Bound for Copy {
    fn run(&mut self, _: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        copy(&arguments.operand(0), &arguments.result(0));
        Ok(())
    }
}

/// Copies all elements of `from` to `to`, which has the same sizes and is packed.
pub fn copy(from: &In<'_>, to: &Out<'_>) {
    if from.layout().is_packed() {
        to.bytes().copy_from_slice(from.bytes());
        return;
    }
    match width(from.dtype()) {
        1 => strided::<u8>(from, to),
        2 => strided::<u16>(from, to),
        4 => strided::<u32>(from, to),
        8 => strided::<u64>(from, to),
        16 => strided::<u128>(from, to),
        // Types below a byte and block formats have no views but packed ones.
        _ => unreachable!("a view of {} with strides", from.dtype()),
    }
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

fn strided<T: Plain>(from: &In<'_>, to: &Out<'_>) {
    let out = to.slice::<T>();
    if out.is_empty() {
        return;
    }
    let mut axes = collapsed(from.dims(), &from.layout().strides);
    let (inner, step) = axes.pop().unwrap_or((1, 1));
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
    let mut offset = 0isize;
    let source = from.pointer().cast::<T>();
    for row in out.chunks_exact_mut(inner) {
        match step {
            // SAFETY (all three): `offset` and the strides stay inside the layout, whose elements may be read.
            1 => row.copy_from_slice(unsafe { std::slice::from_raw_parts(source.offset(offset), inner) }),
            0 => row.fill(unsafe { source.offset(offset).read() }),
            _ => {
                for (i, to) in row.iter_mut().enumerate() {
                    *to = unsafe { source.offset(offset + i as isize * step).read() };
                }
            }
        }
        for (axis, (dim, stride)) in axes.iter().enumerate().rev() {
            index[axis] += 1;
            offset += stride;
            if index[axis] < *dim {
                break;
            }
            offset -= stride * *dim as isize;
            index[axis] = 0;
        }
    }
}
