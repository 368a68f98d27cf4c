//! Types below a byte as codes of a byte each: operands are unpacked, a kernel that moves bytes runs, results are packed.
#![allow(unsafe_code)]

use super::carrier::{below_a_byte, for_pieces, pack, unpack};
use super::transfer::Address;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::pool::Pool;
use rlx_eval::Fault;
use rlx_ir::DType;
use rlx_opt::program::Layout;
use smallvec::SmallVec;

/// A kernel that moves bytes, on types below a byte.
pub(crate) struct Codes {
    /// Moves elements whatever they mean.
    pub(crate) inner: Box<dyn Kernel>,
}

struct BoundCodes {
    inner: Box<dyn Bound>,
    operands: Vec<Layout>,
    results: Vec<Layout>,
    /// Where in the scratch the codes of operands, then of results, lie, if they do.
    places: Vec<Option<usize>>,
    scratch: usize,
}

fn as_bytes(layouts: &[Layout]) -> Vec<Layout> {
    let bytes = |layout: &Layout| match below_a_byte(layout.dtype) {
        true => Layout::packed(DType::U8, &layout.dims),
        false => layout.clone(),
    };
    layouts.iter().map(bytes).collect()
}

impl Kernel for Codes {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (operands, results) = (as_bytes(cx.operands), as_bytes(cx.results));
        let bytes = BindContext { operands: &operands, results: &results, bindings: cx.bindings };
        let inner = self.inner.bind(&bytes)?;
        let mut scratch = inner.scratch().next_multiple_of(64);
        let mut places = Vec::with_capacity(operands.len() + results.len());
        for layout in cx.operands.iter().chain(cx.results) {
            places.push(below_a_byte(layout.dtype).then_some(scratch));
            if below_a_byte(layout.dtype) {
                scratch += layout.count().next_multiple_of(64);
            }
        }
        Ok(Box::new(BoundCodes { inner, operands, results, places, scratch }))
    }
}

/// Codes of a packed tensor, one a byte.
///
/// # Safety
/// `from` is that of a packed tensor of this layout, and its elements are as many bytes from `to` on.
unsafe fn unpacked(pool: &Pool, layout: &Layout, from: *const u8, to: *mut u8) {
    let (from, to) = (Address(from.cast_mut()), Address(to));
    for_pieces(pool, &layout.dims, true, |piece| {
        let out = to.at(piece.first() as isize);
        let bits = layout.dtype.bits().unwrap_or(4);
        // SAFETY: a piece of either side.
        unsafe {
            unpack(from.at(piece.offset(layout.dtype) as isize), piece.count, bits, |i, code| {
                out.add(i).write(code)
            })
        };
    });
}

/// The way back.
///
/// # Safety
/// As for [`unpacked`], the other way.
unsafe fn packed(pool: &Pool, layout: &Layout, from: *const u8, to: *mut u8) {
    let (from, to) = (Address(from.cast_mut()), Address(to));
    for_pieces(pool, &layout.dims, true, |piece| {
        let codes = from.at(piece.first() as isize);
        let bits = layout.dtype.bits().unwrap_or(4);
        // SAFETY: a piece of either side.
        unsafe {
            pack(to.at(piece.offset(layout.dtype) as isize), piece.count, bits, |i| codes.add(i).read())
        };
    });
}

impl Bound for BoundCodes {
    fn scratch(&self) -> usize {
        self.scratch
    }

    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let mut pointers: SmallVec<[*mut u8; 8]> = SmallVec::from_slice(arguments.pointers);
        for (pointer, place) in pointers.iter_mut().zip(&self.places) {
            if let Some(place) = place {
                *pointer = cx.scratch.wrapping_add(*place);
            }
        }
        for (i, layout) in arguments.operand_layouts.iter().enumerate() {
            if self.places[i].is_some() {
                // SAFETY: the operand, and its place in the scratch.
                unsafe { unpacked(cx.pool, layout, arguments.pointers[i], pointers[i]) };
            }
        }
        let bytes =
            Arguments { operand_layouts: &self.operands, result_layouts: &self.results, pointers: &pointers };
        self.inner.run(cx, &bytes)?;
        for (i, layout) in arguments.result_layouts.iter().enumerate() {
            let i = self.operands.len() + i;
            if self.places[i].is_some() {
                // SAFETY: the result, and its place in the scratch.
                unsafe { packed(cx.pool, layout, pointers[i], arguments.pointers[i]) };
            }
        }
        Ok(())
    }
}
