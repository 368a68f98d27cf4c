//! Movement as arithmetic on offsets and strides.

use super::{BufferId, View};
use rlx_ir::op::movement::{Broadcast, Reverse, Slice, Transpose};
use rlx_ir::{DType, DTypeClass, Dim};
use smallvec::SmallVec;

/// Whether elements of this type can be addressed one by one.
pub(super) fn addressable(dtype: DType) -> bool {
    dtype.class() != DTypeClass::Block && dtype.bits().is_some_and(|bits| bits % 8 == 0)
}

impl View {
    /// All of a buffer, row-major.
    pub(super) fn packed(buffer: BufferId, dtype: DType, dims: &[Dim]) -> View {
        let mut strides: SmallVec<[Dim; 4]> = SmallVec::from_elem(Dim::ONE, dims.len());
        let mut stride = Dim::ONE;
        for (axis, dim) in dims.iter().enumerate().rev() {
            strides[axis] = stride.clone();
            stride = stride * dim;
        }
        View { buffer, dtype, offset: Dim::ZERO, dims: SmallVec::from(dims), strides, packed: true }
    }

    /// The same elements with other sizes, where that needs no copy: the view is packed, or the new sizes only split,
    /// or insert and drop axes of size 1. Rows of types below a
    /// byte begin at bytes, and blocks lie along the last axis: there the last axis must stay.
    pub(super) fn reshaped(&self, dims: &[Dim]) -> Option<View> {
        if self.packed && (addressable(self.dtype) || self.dims.last() == dims.last()) {
            let mut view = View::packed(self.buffer, self.dtype, dims);
            view.offset = self.offset.clone();
            return Some(view);
        }
        if !addressable(self.dtype) {
            return None;
        }
        let mut strides: SmallVec<[Dim; 4]> = SmallVec::from_elem(Dim::ZERO, dims.len());
        let mut to = 0;
        for (from, stride) in self.dims.iter().zip(&self.strides) {
            if *from == Dim::ONE {
                continue;
            }
            // The new axes whose product is this one.
            let start = to;
            let mut product = Dim::ONE;
            while product != *from {
                let dim = dims.get(to)?;
                if *dim == Dim::ZERO {
                    return None;
                }
                product = product * dim;
                to += 1;
            }
            let mut inner = stride.clone();
            for axis in (start..to).rev() {
                strides[axis] = inner.clone();
                inner = inner * &dims[axis];
            }
        }
        let rest_is_one = dims[to..].iter().all(|d| *d == Dim::ONE);
        rest_is_one.then(|| View {
            buffer: self.buffer,
            dtype: self.dtype,
            offset: self.offset.clone(),
            dims: SmallVec::from(dims),
            strides,
            packed: false,
        })
    }

    pub(super) fn transposed(&self, op: &Transpose) -> Option<View> {
        let ones = |axis: &usize| self.dims[*axis] != Dim::ONE;
        // Moving axes of size 1 about leaves the elements where they are.
        let in_order = op.perm.iter().filter(|p| ones(p)).is_sorted();
        let stays = op.perm.last().is_none_or(|last| last + 1 == op.perm.len());
        (in_order && stays && self.packed || addressable(self.dtype)).then(|| View {
            dims: op.perm.iter().map(|p| self.dims[*p].clone()).collect(),
            strides: op.perm.iter().map(|p| self.strides[*p].clone()).collect(),
            packed: self.packed && in_order,
            ..self.clone()
        })
    }

    pub(super) fn broadcast(&self, op: &Broadcast) -> Option<View> {
        if !addressable(self.dtype) {
            return None;
        }
        let added = op.dims.len().checked_sub(self.dims.len())?;
        let mut strides: SmallVec<[Dim; 4]> = SmallVec::from_elem(Dim::ZERO, op.dims.len());
        let mut packed = self.packed && op.dims[..added].iter().all(|d| *d == Dim::ONE);
        for (axis, (from, stride)) in self.dims.iter().zip(&self.strides).enumerate() {
            let to = &op.dims[added + axis];
            strides[added + axis] = if from == to {
                stride.clone()
            } else {
                packed = false;
                match from.as_const() {
                    Some(1) => Dim::ZERO,
                    Some(_) => stride.clone(),
                    // 1 or the result's size, as it turns out: a size of 1 has no stride.
                    None => stride * (from.min(&Dim::from(2)) - Dim::ONE),
                }
            };
        }
        Some(View { dims: SmallVec::from(op.dims.as_slice()), strides, packed, ..self.clone() })
    }

    pub(super) fn sliced(&self, op: &Slice) -> Option<View> {
        if !addressable(self.dtype) {
            return None;
        }
        let mut view = self.clone();
        for (axis, start) in op.starts.iter().enumerate() {
            view.offset = view.offset + start * &self.strides[axis];
            view.strides[axis] = self.strides[axis].clone() * Dim::from(op.steps[axis]);
        }
        view.dims = SmallVec::from(op.sizes.as_slice());
        // What is cut from the first axis only stays without gaps.
        let inner_whole = (1..self.dims.len())
            .all(|a| op.sizes[a] == self.dims[a] && op.steps[a] == 1 && op.starts[a] == Dim::ZERO);
        view.packed = self.packed && inner_whole && op.steps.first().is_none_or(|s| *s == 1);
        Some(view)
    }

    pub(super) fn reversed(&self, op: &Reverse) -> Option<View> {
        if !addressable(self.dtype) {
            return None;
        }
        let mut view = self.clone();
        for axis in &op.axes {
            let last = self.dims[*axis].clone() - Dim::ONE;
            view.offset = view.offset + last * &self.strides[*axis];
            view.strides[*axis] = self.strides[*axis].clone() * Dim::from(-1);
        }
        view.packed = false;
        Some(view)
    }

    /// The same bytes as another type of the same width.
    pub(super) fn bitcast(&self, to: DType) -> Option<View> {
        (addressable(self.dtype) && self.dtype.bits() == to.bits())
            .then(|| View { dtype: to, ..self.clone() })
    }
}
