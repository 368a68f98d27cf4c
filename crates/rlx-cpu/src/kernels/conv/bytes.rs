//! Convolutions of bytes with zero points (`conv_integer`), exact in i32: the input loses its zero point where it is
//! expanded to 16 bits, the kernel its own when the program is loaded, or on each run if it is no constant.
#![allow(unsafe_code)]

use super::expand::{Expand, Expands, Filling, Less};
use super::geometry::{Axis, Expanded, Geometry};
use crate::array::{In, width};
use crate::load::PrepareContext;
use rlx_ir::op::contract::Conv;
use rlx_ir::op::quantised_matmul::ConvInteger;
use rlx_ir::{DType, TensorType};

/// Where the zero points are among the operands.
#[derive(Clone, Copy, Default)]
pub struct ZeroPoints {
    /// That of the input.
    pub input: Option<usize>,
    /// Those of the kernel, one, or one a channel of the result.
    pub kernel: Option<usize>,
}

impl ZeroPoints {
    /// Those of an operation.
    pub fn of(op: &ConvInteger) -> ZeroPoints {
        let input = op.x_zero_point.then_some(2);
        ZeroPoints { input, kernel: op.w_zero_point.then_some(2 + usize::from(op.x_zero_point)) }
    }
}

/// The same windows over numbers that have lost their zero points.
pub fn as_conv(op: &ConvInteger) -> Conv {
    Conv {
        strides: op.strides.clone(),
        padding: op.padding.clone(),
        lhs_dilation: vec![1; op.strides.len()],
        rhs_dilation: op.dilations.clone(),
        groups: op.groups,
        accum: None,
        out: None,
    }
}

/// Elements that lie together, seen as a channel that is expanded to itself.
pub struct Line {
    geometry: Geometry,
    expanded: Expanded,
}

impl Line {
    /// A line of so many elements.
    pub fn new(elements: usize) -> Line {
        let geometry = Geometry {
            images: 1,
            image_stride: 0,
            channels: 1,
            channel_stride: 0,
            groups: 1,
            group_in: 1,
            group_out: 1,
            axes: vec![Axis { input: elements, output: elements, ..Axis::single() }],
        };
        Line { expanded: geometry.expanded(), geometry }
    }

    /// Elements as panels hold them, less a zero point.
    ///
    /// # Safety
    /// There are as many elements of the function's type, and as much room, as the line is long.
    unsafe fn widen<E: Less + Default>(
        &self,
        expand: Expand<E>,
        from: *const u8,
        to: &mut [E],
        zero_point: E,
    ) {
        let filling = Filling { padding: E::default(), zero_point };
        // SAFETY: as promised by the caller.
        unsafe { expand(&self.geometry, &self.expanded, from, to, filling) }
    }

    /// The only element of an operand; for a line of one.
    pub fn only<E: Less + Default>(&self, operand: &In<'_>, expand: Expand<E>) -> E {
        let mut one = [E::default()];
        debug_assert_eq!(self.expanded.plane, 1);
        // SAFETY: the operand has one element, of the function's type.
        unsafe { self.widen(expand, operand.pointer(), &mut one, E::default()) };
        one[0]
    }
}

/// A kernel with its zero points.
#[derive(Clone, Copy)]
pub struct Kernel<'a> {
    /// The elements, output channel by output channel.
    pub elements: &'a [u8],
    /// Their type.
    pub dtype: DType,
    /// The zero points, one or as many as output channels; none where there are none.
    pub zero_points: &'a [u8],
    /// Output channels.
    pub rows: usize,
}

impl Kernel<'_> {
    /// Elements of the kernel.
    pub fn count(&self) -> usize {
        self.elements.len() / width(self.dtype).max(1)
    }

    /// Writes the elements less their zero points; the lines are of one element and of an output channel's.
    pub fn widened<E: Expands + Less + Default>(&self, to: &mut [E], [one, row]: [&Line; 2]) {
        let Some(expand) = E::expand_of(self.dtype) else { return };
        let bytes = width(self.dtype);
        let depth = self.count() / self.rows.max(1);
        if depth == 0 {
            return;
        }
        for (index, to) in to[..self.count()].chunks_exact_mut(depth).enumerate() {
            let mut zero = [E::default()];
            let at = if self.zero_points.len() > bytes { index } else { 0 };
            if let Some(point) = self.zero_points.get(at * bytes..(at + 1) * bytes) {
                // SAFETY: `point` is one element.
                unsafe { one.widen(expand, point.as_ptr(), &mut zero, E::default()) };
            }
            let from = &self.elements[index * depth * bytes..][..depth * bytes];
            // SAFETY: `from` holds `depth` elements.
            unsafe { row.widen(expand, from.as_ptr(), to, zero[0]) }
        }
    }
}

/// Whether an operation on these operands runs here.
pub(crate) fn supports(operands: &[&TensorType]) -> bool {
    operands.iter().all(|t| matches!(t.dtype, DType::I8 | DType::U8))
}

/// A constant kernel with constant zero points; `None` if either is known only when it runs.
pub(crate) fn constant<'c>(points: ZeroPoints, cx: &'c PrepareContext<'_>) -> Option<Kernel<'c>> {
    let elements = cx.constant(1)?;
    let zero_points = match points.kernel {
        Some(i) => &cx.constant(i)?.bytes()[..],
        None => &[],
    };
    let (dtype, rows) = (elements.dtype(), *elements.dims().first()?);
    Some(Kernel { elements: elements.bytes(), dtype, zero_points, rows })
}
