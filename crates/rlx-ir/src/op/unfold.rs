//! Sliding windows as axes of their own: their geometry, `im2col` and `col2im`.
//!
//! Operands are `[n, c, s…]`: two leading axes, then spatial axes. `Windows` is what pooling and convolution
//! composites share: the checks of their attributes, how many windows there are, and which elements each holds.

use super::contract::window_count;
use super::elementwise::{BinaryOp, CompareOp};
use super::index::{Combine, Gather, OutOfBounds, Scatter};
use super::source::Iota;
use super::window::{ReduceWindow, WindowOp};
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::{DType, DTypeClass};
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

/// The windows of one operation over the spatial axes.
pub(crate) struct Windows<'a> {
    pub(crate) window: &'a [Dim],
    pub(crate) strides: &'a [i64],
    pub(crate) dilations: &'a [i64],
    pub(crate) padding: &'a [(Dim, Dim)],
    /// Whether a window that is only partly inside at the end counts, unless it starts in the padding.
    pub(crate) ceil_mode: bool,
}

/// The windows that an operation's attributes say.
macro_rules! windows {
    ($op:expr, $ceil:expr) => {
        $crate::op::unfold::Windows {
            window: &$op.window,
            strides: &$op.strides,
            dilations: &$op.dilations,
            padding: &$op.padding,
            ceil_mode: $ceil,
        }
    };
}
pub(crate) use windows;

impl Windows<'_> {
    /// C2: one window, stride, dilation and padding a spatial axis, each window, stride and dilation at least 1.
    /// C3: the windows fit. The numbers of windows.
    pub(crate) fn check(&self, cx: &Infer<'_>, sizes: &[Dim]) -> Result<Vec<Dim>, TypeError> {
        for (what, n) in [
            ("windows", self.window.len()),
            ("strides", self.strides.len()),
            ("dilations", self.dilations.len()),
            ("paddings", self.padding.len()),
        ] {
            cx.ensure(n == sizes.len(), "C2", None, &format!("number of {what}"), sizes.len(), n)?;
        }
        for n in self.strides.iter().chain(self.dilations) {
            cx.ensure(*n >= 1, "C2", None, "stride or dilation", "at least 1", n)?;
        }
        for window in self.window {
            cx.at_most("C2", None, "window", &Dim::ONE, window)?;
        }
        let counts = self.counts(sizes);
        for count in &counts {
            cx.at_most("C3", Some(0), "the window is larger than the padded axis", &Dim::ZERO, count)?;
        }
        Ok(counts)
    }

    /// The number of windows along each axis.
    pub(crate) fn counts(&self, sizes: &[Dim]) -> Vec<Dim> {
        (0..sizes.len()).map(|i| self.count(i, &sizes[i])).collect()
    }

    fn count(&self, axis: usize, size: &Dim) -> Dim {
        let (padding, stride) = (&self.padding[axis], self.strides[axis]);
        if !self.ceil_mode {
            return window_count(size, padding, 1, &self.window[axis], self.dilations[axis], stride);
        }
        let room = size + &padding.0 + &padding.1 - self.reach(axis);
        let starts_inside = (size + &padding.0).ceil_div(&stride.into());
        (room.ceil_div(&stride.into()) + 1).min(&starts_inside)
    }

    fn reach(&self, axis: usize) -> Dim {
        (self.window[axis].clone() - 1) * self.dilations[axis] + 1
    }

    /// The padding with which exactly the counted windows fit; at the end it may be a crop.
    pub(crate) fn exact_padding(&self, sizes: &[Dim]) -> Vec<(Dim, Dim)> {
        let exact = |i: usize| {
            let (low, high) = self.padding[i].clone();
            if !self.ceil_mode {
                return (low, high);
            }
            let last = (self.count(i, &sizes[i]) - 1) * self.strides[i] + self.reach(i);
            let high = last - &sizes[i] - &low;
            // Elements that no window reaches need no crop where that is known.
            let high = if high.as_const().is_some_and(|h| h < 0) { Dim::ZERO } else { high };
            (low, high)
        };
        (0..sizes.len()).map(exact).collect()
    }

    /// The windows combined; operand `[n, c, s…]`, padded with `fill`.
    pub(crate) fn reduce(
        &self,
        b: &mut Builder,
        op: WindowOp,
        x: Value,
        fill: f64,
    ) -> Result<Value, TypeError> {
        let shape = b.shape(x);
        let fill = b.scalar(fill, b.dtype(x))?;
        let leading = shape.rank() - self.window.len();
        let ones = vec![1; leading];
        let none = vec![(Dim::ZERO, Dim::ZERO); leading];
        let reduce = ReduceWindow {
            op,
            window: [&vec![Dim::ONE; leading], self.window].concat(),
            strides: [&ones, self.strides].concat(),
            dilations: [&ones, self.dilations].concat(),
            padding: [none, self.exact_padding(&shape[leading..])].concat(),
        };
        b.push1(reduce, &[x, fill])
    }

    /// The index (i64 \[count, window\]) in the unpadded axis of each element of each window; outside in the padding.
    pub(crate) fn positions(&self, b: &mut Builder, axis: usize, size: &Dim) -> Result<Value, TypeError> {
        let dims = [self.count(axis, size), self.window[axis].clone()];
        let start = counter(b, &dims, 0, self.strides[axis])?;
        let offset = counter(b, &dims, 1, self.dilations[axis])?;
        let padded = b.add(start, offset)?;
        let low = b.dim_like(&self.padding[axis].0, padded)?;
        b.sub(padded, low)
    }

    /// The elements of all windows, \[n, c, o…, k…\], with `fill` in the padding.
    pub(crate) fn unfold(&self, b: &mut Builder, x: Value, fill: f64) -> Result<Value, TypeError> {
        let sizes = b.shape(x);
        let spatial = self.window.len();
        let leading = sizes.rank() - spatial;
        let mut windows = x;
        for axis in 0..spatial {
            let positions = self.positions(b, axis, &sizes[leading + axis])?;
            // Each axis before this one has become two.
            windows = take_filled(b, windows, positions, leading + 2 * axis, fill)?;
        }
        let counts = (0..spatial).map(|i| leading + 2 * i);
        let offsets = (0..spatial).map(|i| leading + 2 * i + 1);
        let perm: Vec<usize> = (0..leading).chain(counts).chain(offsets).collect();
        b.transpose(windows, &perm)
    }
}

/// 0, step, 2·step … along an axis, as i64.
pub(crate) fn counter(b: &mut Builder, dims: &[Dim], axis: usize, step: i64) -> Result<Value, TypeError> {
    let ty = TensorType::new(DType::I64, dims);
    b.push1(Iota { ty, axis, start: Real::new(0.0), step: Real::new(step as f64) }, &[])
}

/// x with its axis replaced by the axes of `indices`; indices outside give `fill`.
pub(crate) fn take_filled(
    b: &mut Builder,
    x: Value,
    indices: Value,
    axis: usize,
    fill: f64,
) -> Result<Value, TypeError> {
    let fill = b.scalar(fill, b.dtype(x))?;
    let indices_rank = b.rank(indices);
    let tuples = b.unsqueeze(indices, indices_rank)?;
    let gather = Gather { axes: vec![axis], batch: 0, oob: OutOfBounds::Drop, wrap: false };
    let picked = b.push1(gather, &[x, tuples, fill])?;
    let rank = b.rank(picked);
    let perm: Vec<usize> =
        (indices_rank..indices_rank + axis).chain(0..indices_rank).chain(indices_rank + axis..rank).collect();
    b.transpose(picked, &perm)
}

/// Whether 0 ≤ index < size.
pub(crate) fn in_range(b: &mut Builder, index: Value, size: &Dim) -> Result<Value, TypeError> {
    let size = b.dim_like(size, index)?;
    let below = b.compare(CompareOp::Lt, index, size)?;
    let from_zero = b.compare_scalar(CompareOp::Ge, index, 0.0)?;
    b.binary(BinaryOp::And, from_zero, below)
}

/// The least value of a type: −∞ where there is one.
pub(crate) fn least(dtype: DType) -> f64 {
    match dtype.class() {
        DTypeClass::Signed => -f64::from(2).powi(dtype.bits().map_or(0, |b| b as i32 - 1)),
        DTypeClass::Unsigned => 0.0,
        _ => f64::NEG_INFINITY,
    }
}

operation! {
    /// The windows of x \[n, c, s…\] as columns: \[n, c · ∏ window, ∏ windows\], the element (channel, offsets) of the
    /// window (position) being x\[n, c, position · stride + offset · dilation − low\], 0 in the padding.
    /// C1: rank ≥ 2, a number type. C2, C3: as `max_pool`. The converse is `col2im`.
    pub struct Im2col = "im2col" {
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Zeros before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
    }
}

operation! {
    /// Sums columns \[n, c · ∏ window, ∏ windows\] into the images \[n, c, dims…\] that `im2col` would take them from
    /// (ONNX Col2Im, PyTorch fold). C1: rank 3, a number type. C2, C3: as `max_pool`.
    /// C4: the window's element count divides axis 1. C5: axis 2 has one element a window.
    pub struct Col2im = "col2im" {
        /// Sizes of the image.
        dims: Vec<Dim>,
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Zeros before and after each axis of the image, which are dropped.
        padding: Vec<(Dim, Dim)>,
    }
}

impl OpDef for Im2col {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.number("C1", 0)?;
        cx.rank_at_least("C1", 0, 2)?;
        let counts = windows!(self, false).check(cx, &x.shape[2..])?;
        let rows = &x.shape[1] * &Dim::product(&self.window);
        Ok(one(x.with_shape(vec![x.shape[0].clone(), rows, Dim::product(&counts)])))
    }
}

impl CompositeDef for Im2col {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let shape = b.shape(x);
        let windows = windows!(self, false);
        let counts = windows.counts(&shape[2..]);
        let unfolded = windows.unfold(b, x, 0.0)?;
        let spatial = self.window.len();
        let perm: Vec<usize> = (0..2).chain(2 + spatial..2 + 2 * spatial).chain(2..2 + spatial).collect();
        let columns = b.transpose(unfolded, &perm)?;
        let rows = &shape[1] * &Dim::product(&self.window);
        let columns = b.reshape(columns, &[shape[0].clone(), rows, Dim::product(&counts)])?;
        Ok(Values::from_slice(&[columns]))
    }
}

impl OpDef for Col2im {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.number("C1", 0)?;
        cx.rank("C1", 0, 3)?;
        for dim in &self.dims {
            cx.at_most("C2", None, "image size", &Dim::ZERO, dim)?;
        }
        let counts = windows!(self, false).check(cx, &self.dims)?;
        let elements = Dim::product(&self.window);
        let channels = x.shape[1].floor_div(&elements);
        cx.equal("C4", Some(0), "rows", &(&channels * &elements), &x.shape[1])?;
        cx.equal("C5", Some(0), "columns", &Dim::product(&counts), &x.shape[2])?;
        let mut shape = Shape::from(vec![x.shape[0].clone(), channels]);
        self.dims.iter().for_each(|dim| shape.push(dim.clone()));
        Ok(one(x.with_shape(shape)))
    }
}

impl CompositeDef for Col2im {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let (t, spatial) = (b.type_of(x).clone(), self.dims.len());
        let windows = windows!(self, false);
        let counts = windows.counts(&self.dims);
        let channels = t.shape[1].floor_div(&Dim::product(&self.window));
        // The index in the flat image of each element of each window, [k…, o…]; −1 in the padding.
        let all: Vec<Dim> = self.window.iter().chain(&counts).cloned().collect();
        let flat = TensorType::new(DType::I64, all.as_slice());
        let (mut index, mut inside) = (b.full(0.0, &flat)?, b.full(1.0, &flat.with_dtype(DType::Bool))?);
        for (axis, size) in self.dims.iter().enumerate() {
            let positions = windows.positions(b, axis, size)?;
            let positions = b.matrix_transpose(positions)?;
            let positions = b.broadcast_in(positions, &all, &[axis, spatial + axis])?;
            let valid = in_range(b, positions, size)?;
            inside = b.binary(BinaryOp::And, inside, valid)?;
            let size = b.dim_like(size, index)?;
            index = b.mul(index, size)?;
            index = b.add(index, positions)?;
        }
        let outside = b.full(-1.0, &flat)?;
        let index = b.select(inside, index, outside)?;
        let count = Dim::product(&all);
        let tuples = b.reshape(index, &[count.clone(), Dim::ONE])?;
        let updates = b.reshape(x, &[t.shape[0].clone(), channels.clone(), count])?;
        let updates = b.transpose(updates, &[2, 0, 1])?;
        let pixels = Dim::product(&self.dims);
        let zeros = b.full(0.0, &t.with_shape(vec![t.shape[0].clone(), channels.clone(), pixels]))?;
        let scatter =
            Scatter { axes: vec![2], batch: 0, combine: Combine::Add, oob: OutOfBounds::Drop, wrap: false };
        let sums = b.push1(scatter, &[zeros, tuples, updates])?;
        let mut dims = vec![t.shape[0].clone(), channels];
        dims.extend_from_slice(&self.dims);
        Ok(Values::from_slice(&[b.reshape(sums, &dims)?]))
    }
}
