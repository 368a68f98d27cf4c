//! Where a convolution's elements are: the input with its gaps and padding, positions of the result, taps of the kernel.

use crate::kernels::gemm::panels::Offsets;
use rlx_eval::Fault;
use rlx_ir::Bindings;
use rlx_ir::op::contract::Conv;
use rlx_opt::program::Layout;

/// One spatial axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Elements of the input.
    pub input: usize,
    /// From one to the next.
    pub input_stride: isize,
    /// Padding before the first; negative: elements left out.
    pub low: isize,
    /// Distance of neighbours in the expanded input.
    pub lhs_dilation: usize,
    /// Taps of the kernel.
    pub kernel: usize,
    /// Their distance.
    pub rhs_dilation: usize,
    /// From one position to the next.
    pub stride: usize,
    /// Positions of the result.
    pub output: usize,
}

impl Axis {
    /// One element seen through one tap.
    pub fn single() -> Axis {
        Axis {
            input: 1,
            input_stride: 1,
            low: 0,
            lhs_dilation: 1,
            kernel: 1,
            rhs_dilation: 1,
            stride: 1,
            output: 1,
        }
    }

    /// How far the windows reach in the expanded input.
    pub fn extent(&self) -> usize {
        (self.output.max(1) - 1) * self.stride + (self.kernel.max(1) - 1) * self.rhs_dilation + 1
    }

    /// Whether no window leaves the input, which has no gaps.
    fn is_plain(&self) -> bool {
        self.lhs_dilation == 1 && self.low <= 0 && self.low.unsigned_abs() + self.extent() <= self.input
    }
}

/// A convolution for some sizes.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Images.
    pub images: usize,
    /// From one image to the next.
    pub image_stride: isize,
    /// Channels of the input.
    pub channels: usize,
    /// From one channel to the next.
    pub channel_stride: isize,
    /// Channel groups.
    pub groups: usize,
    /// Channels of the input that a channel of the result sees.
    pub group_in: usize,
    /// Channels of the result in a group.
    pub group_out: usize,
    /// The spatial axes, at least one.
    pub axes: Vec<Axis>,
}

impl Geometry {
    /// That of an operation on these operands.
    ///
    /// # Errors
    /// If a padding has no value.
    pub fn new(
        op: &Conv,
        x: &Layout,
        w: &Layout,
        result: &Layout,
        bindings: &Bindings,
    ) -> Result<Geometry, Fault> {
        let mut axes = Vec::with_capacity(op.strides.len().max(1));
        for i in 0..op.strides.len() {
            axes.push(Axis {
                input: x.dims[i + 2],
                input_stride: x.strides[i + 2],
                low: op.padding[i].0.eval(bindings)? as isize,
                lhs_dilation: op.lhs_dilation[i] as usize,
                kernel: w.dims[i + 2],
                rhs_dilation: op.rhs_dilation[i] as usize,
                stride: op.strides[i] as usize,
                output: result.dims[i + 2],
            });
        }
        if axes.is_empty() {
            axes.push(Axis::single());
        }
        Ok(Geometry {
            images: x.dims[0],
            image_stride: x.strides[0],
            channels: x.dims[1],
            channel_stride: x.strides[1],
            groups: op.groups,
            group_in: w.dims[1],
            group_out: result.dims[1] / op.groups.max(1),
            axes,
        })
    }

    /// Positions of a channel of the result.
    pub fn positions(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// Taps of the kernel.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.kernel).product()
    }

    /// Whether the input can be read where it lies.
    pub fn is_plain(&self) -> bool {
        self.axes.iter().all(Axis::is_plain)
    }

    /// Where windows find the elements of the input itself; for plain geometries.
    pub fn in_place(&self) -> Windows {
        let strides: Vec<isize> = self.axes.iter().map(|a| a.input_stride).collect();
        let first = self.axes.iter().map(|a| -a.low * a.input_stride).sum();
        let tap = |axis: usize, k: usize| (k * self.axes[axis].rhs_dilation) as isize * strides[axis];
        self.windows(first, self.image_stride, self.channel_stride, &strides, tap)
    }

    /// The expanded input.
    pub fn expanded(&self) -> Expanded {
        let last = self.axes.len() - 1;
        let inner = self.axes[last];
        let phase = inner.extent().div_ceil(inner.stride);
        let mut strides = vec![1usize; self.axes.len()];
        let mut plane = phase * inner.stride;
        for axis in (0..last).rev() {
            strides[axis] = plane;
            plane *= self.axes[axis].extent();
        }
        Expanded { plane, phase, strides }
    }

    /// Where windows find the elements of the expanded input.
    pub fn in_expanded(&self, e: &Expanded) -> Windows {
        let last = self.axes.len() - 1;
        let mut strides: Vec<isize> = e.strides.iter().map(|s| *s as isize).collect();
        let tap = |axis: usize, k: usize| {
            let at = k * self.axes[axis].rhs_dilation;
            if axis < last {
                return (at * e.strides[axis]) as isize;
            }
            let stride = self.axes[last].stride;
            (at % stride * e.phase + at / stride) as isize
        };
        // Along the last axis the next position is the next element of a phase.
        strides[last] = 1;
        let mut unit = self.clone();
        unit.axes[last].stride = 1;
        unit.windows(0, (self.channels * e.plane) as isize, e.plane as isize, &strides, tap)
    }

    fn windows(
        &self,
        first: isize,
        image: isize,
        channel: isize,
        strides: &[isize],
        tap: impl Fn(usize, usize) -> isize,
    ) -> Windows {
        let dims: Vec<usize> = self.axes.iter().map(|a| a.output).collect();
        let steps: Vec<isize> = self.axes.iter().zip(strides).map(|(a, s)| a.stride as isize * s).collect();
        let mut taps = vec![0isize];
        for (axis, a) in self.axes.iter().enumerate() {
            taps = taps
                .iter()
                .flat_map(|at| (0..a.kernel).map(|k| at + tap(axis, k)).collect::<Vec<_>>())
                .collect();
        }
        let depth: Box<[isize]> =
            (0..self.group_in as isize).flat_map(|c| taps.iter().map(move |at| c * channel + at)).collect();
        // One tap a channel is an even distance.
        let depth = if taps.len() == 1 { Offsets::Even(channel) } else { Offsets::Table(depth) };
        Windows {
            first,
            image,
            group: channel * self.group_in as isize,
            positions: Offsets::new(&dims, &steps),
            depth,
            taps,
        }
    }
}

/// The input with its gaps and padding filled with zeros, each channel by itself. Along the last axis, elements that
/// windows reach one after the other lie together: with a stride of 2 first the even ones, then the odd ones.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// Elements of a channel.
    pub plane: usize,
    /// Elements of a row that are a stride apart.
    pub phase: usize,
    /// From one row, plane … to the next; of the last axis unused.
    pub strides: Vec<usize>,
}

/// Where windows find their elements, counted in elements.
pub struct Windows {
    /// The first element of the first window.
    pub first: isize,
    /// From one image to the next.
    pub image: isize,
    /// From one group's channels to the next's.
    pub group: isize,
    /// By position.
    pub positions: Offsets,
    /// By channel of the group, then tap.
    pub depth: Offsets,
    /// By tap.
    pub taps: Vec<isize>,
}

impl Windows {
    /// Where the matrices of images and their groups begin.
    pub fn batch(&self, images: usize, groups: usize) -> Offsets {
        Offsets::new(&[images, groups], &[self.image, self.group])
    }
}
