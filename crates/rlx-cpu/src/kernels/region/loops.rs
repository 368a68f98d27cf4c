//! The loops of instructions for kernels that are no regions.
#![allow(unsafe_code)]

use super::lanes::Lane;
use super::table;
use rlx_ir::op::elementwise::UnaryOp;

/// A function of f32, as a loop over slices: the same bits as in a region.
#[derive(Clone, Copy)]
pub(crate) struct FunctionF32(table::Function);

impl FunctionF32 {
    /// The loop of an operation from f32 to f32, if there is one.
    pub(crate) fn of(op: UnaryOp) -> Option<FunctionF32> {
        let tests = matches!(op, UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite);
        table::unary(op, Lane::F32).filter(|_| !tests).map(FunctionF32)
    }

    /// y = f(x), element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(crate) fn apply(self, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), y.len());
        let operand = x.as_ptr().cast();
        // SAFETY: both hold the lanes that are counted, and borrows do not overlap.
        unsafe { (self.0)([operand, operand, operand], y.as_mut_ptr().cast(), x.len()) };
    }
}
