//! Pooling: the elements of sliding windows, of all positions, or of equal shares of an axis combined into one.
//!
//! Operands are `[n, c, s…]`. Averages and powers of narrow floats are computed in f32. In ceil mode a window that
//! is only partly inside counts, unless it starts in the padding after the axis (ONNX, PyTorch).

use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::index::{Combine, OutOfBounds, Scatter};
use super::norm::statistics_dtype;
use super::reduce::{ArgReduce, ArgReduceOp, ReduceOp};
use super::unfold::{counter, in_range, least, windows};
use super::window::{ReduceWindowGrad, WindowGradOp, WindowOp};
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

names! {
    /// In which order the elements of a channel are counted.
    pub enum StorageOrder {
        /// The last spatial axis fastest.
        RowMajor = "row_major",
        /// The first spatial axis fastest.
        ColumnMajor = "column_major",
    }
}

operation! {
    /// The greatest element of each window (NaN if any is); padding is never chosen where anything else is.
    /// With `indices`, a second result: the index (i64) of the first greatest element in the flat tensor x.
    /// C1: rank ≥ 2, an integer or floating-point type. C2: one window, stride, dilation and padding a spatial
    /// axis, each at least 1 (paddings: 0). C3: no more padding than fits, so that a window fits the padded axis.
    pub struct MaxPool = "max_pool" {
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Whether windows only partly inside count.
        ceil_mode: bool,
        /// Whether there is a second result, and how it counts the spatial positions of a channel.
        indices: Option<StorageOrder>,
    }
}

operation! {
    /// dx of `max_pool` on x (operand 0) for dy (operand 1): each element of dy goes to the first greatest element
    /// of its window. C1: rank ≥ 2, floating point. C2, C3: as `max_pool`. C4: dy has the pool's sizes and type.
    pub struct MaxPoolGrad = "max_pool_grad" {
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Whether windows only partly inside count.
        ceil_mode: bool,
    }
}

operation! {
    /// Zeros of sizes `dims` but for the elements of x (operand 0) at the flat indices in operand 1 (i64), as
    /// `max_pool` gives them. Of equal indices the last wins. C1: a number type. C2: operands of equal sizes.
    pub struct MaxUnpool = "max_unpool" {
        /// Sizes of the result.
        dims: Vec<Dim>,
    }
}

operation! {
    /// (Σ |x|^p)^(1/p) over each window. C1: rank ≥ 2, floating point. C2, C3: as `max_pool`. C4: p > 0.
    pub struct LpPool = "lp_pool" {
        /// The exponent.
        p: Real,
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Whether windows only partly inside count.
        ceil_mode: bool,
    }
}

operation! {
    /// (Σ |x|^p)^(1/p) over all spatial positions, which stay as axes of size 1. C1: rank ≥ 2, floating point.
    /// C4: p > 0.
    pub struct GlobalLpPool = "global_lp_pool" {
        /// The exponent.
        p: Real,
    }
}

names! {
    /// Pools over all spatial positions.
    pub enum GlobalPoolOp {
        /// The greatest element of each channel.
        Max = "global_max_pool",
        /// The mean of each channel.
        Average = "global_average_pool",
    }
}

operation! {
    /// One element a channel; spatial axes stay with size 1. C1: rank ≥ 2, floating point (max: or integers).
    pub struct GlobalPool: GlobalPoolOp {}
}

names! {
    /// Pools of a given number of windows.
    pub enum AdaptivePoolOp {
        /// The greatest element of each window.
        Max = "adaptive_max_pool",
        /// The mean of each window.
        Average = "adaptive_average_pool",
    }
}

operation! {
    /// Window i of o along an axis of s elements is ⌊i·s/o⌋ … ⌈(i+1)·s/o⌉ (excluded), as in PyTorch.
    /// C1: rank ≥ 2, floating point (max: or integers). C2: one size a spatial axis.
    pub struct AdaptivePool: AdaptivePoolOp {
        /// The number of windows along each spatial axis.
        sizes: Vec<Dim>,
    }
}

/// Operand 0, of at least two axes.
pub(super) fn images<'a>(cx: &Infer<'a>, integers: bool) -> Result<&'a TensorType, TypeError> {
    let expected = if integers { "an integer or floating-point type" } else { "a floating-point type" };
    cx.of("C1", 0, expected, |d| d.is_float() || (integers && d.is_int()))?;
    cx.rank_at_least("C1", 0, 2)
}

pub(super) fn pooled(x: &TensorType, counts: Vec<Dim>) -> TensorType {
    let mut shape = Shape::from(&x.shape[..2]);
    counts.into_iter().for_each(|n| shape.push(n));
    x.with_shape(shape)
}

fn spatial_axes(b: &Builder, x: Value) -> Vec<usize> {
    (2..b.rank(x)).collect()
}

impl OpDef for MaxPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = images(cx, true)?;
        let y = pooled(x, windows!(self, self.ceil_mode).check(cx, &x.shape[2..])?);
        let mut types = one(y.clone());
        if self.indices.is_some() {
            types.push(y.with_dtype(DType::I64));
        }
        Ok(types)
    }
}

impl MaxPool {
    /// The flat index in x of the first greatest element of each window.
    fn indices(&self, b: &mut Builder, x: Value, y: Value, order: StorageOrder) -> Result<Value, TypeError> {
        let windows = windows!(self, self.ceil_mode);
        let (shape, spatial) = (b.shape(x), self.window.len());
        let elements = windows.unfold(b, x, least(b.dtype(x)))?;
        let all = b.shape(elements);
        let outer: Vec<usize> = (0..2 + spatial).collect();
        let greatest = b.broadcast_in(y, &all, &outer)?;
        let mut found = b.compare(CompareOp::Eq, elements, greatest)?;
        if b.dtype(x).is_float() {
            let nan = b.unary(UnaryOp::IsNan, elements)?;
            found = b.binary(BinaryOp::Or, found, nan)?;
        }
        // Positions in the channel, and whether they are in the image at all, over [o…, k…].
        let local = &all[2..];
        let local_type = TensorType::new(DType::I64, local);
        let mut inside = b.full(1.0, &local_type.with_dtype(DType::Bool))?;
        let mut position = b.full(0.0, &local_type)?;
        let mut axes: Vec<usize> = (0..spatial).collect();
        if order == StorageOrder::ColumnMajor {
            axes.reverse();
        }
        for axis in axes {
            let size = &shape[2 + axis];
            let along = windows.positions(b, axis, size)?;
            let along = b.broadcast_in(along, local, &[axis, spatial + axis])?;
            let valid = in_range(b, along, size)?;
            inside = b.binary(BinaryOp::And, inside, valid)?;
            let size = b.dim_like(size, position)?;
            position = b.mul(position, size)?;
            position = b.add(position, along)?;
        }
        let inside = b.broadcast_to(inside, &all)?;
        let found = b.binary(BinaryOp::And, found, inside)?;
        let flat: Vec<Dim> = all[..2 + spatial].iter().cloned().chain([Dim::product(&self.window)]).collect();
        let found = b.reshape(found, &flat)?;
        let arg = ArgReduce { op: ArgReduceOp::ArgMax, axis: 2 + spatial, keep_dims: true, last: false };
        let chosen = b.push1(arg, &[found])?;
        let position = b.broadcast_to(position, &all)?;
        let position = b.reshape(position, &flat)?;
        let pick = super::index::GatherAlong { axis: 2 + spatial, oob: OutOfBounds::Error, wrap: false };
        let position = b.push1(pick, &[position, chosen])?;
        let position = b.squeeze(position, &[2 + spatial])?;
        // The channels before this one.
        let out = b.shape(position);
        let channel = counter(b, &out, 1, 1)?;
        let batch = counter(b, &out, 0, 1)?;
        let channels = b.dim_like(&shape[1], batch)?;
        let before = b.mul(batch, channels)?;
        let before = b.add(before, channel)?;
        let pixels = b.dim_like(&Dim::product(&shape[2..]), before)?;
        let before = b.mul(before, pixels)?;
        b.add(before, position)
    }
}

impl CompositeDef for MaxPool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let fill = least(b.dtype(x));
        let y = windows!(self, self.ceil_mode).reduce(b, WindowOp::Max, x, fill)?;
        let mut results = Values::from_slice(&[y]);
        if let Some(order) = self.indices {
            results.push(self.indices(b, x, y, order)?);
        }
        Ok(results)
    }
}

impl OpDef for MaxPoolGrad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = images(cx, false)?;
        let y = pooled(x, windows!(self, self.ceil_mode).check(cx, &x.shape[2..])?);
        cx.same_dtype("C4", 1, 0)?;
        cx.same_dims("C4", 1, y.dims())?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for MaxPoolGrad {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shape = b.shape(operands[0]);
        let windows = windows!(self, self.ceil_mode);
        let grad = ReduceWindowGrad {
            op: WindowGradOp::Max,
            window: [&[Dim::ONE, Dim::ONE], self.window.as_slice()].concat(),
            strides: [&[1, 1], self.strides.as_slice()].concat(),
            dilations: [&[1, 1], self.dilations.as_slice()].concat(),
            padding: [vec![(Dim::ZERO, Dim::ZERO); 2], windows.exact_padding(&shape[2..])].concat(),
        };
        Ok(Values::from_slice(&[b.push1(grad, operands)?]))
    }
}

impl OpDef for MaxUnpool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.number("C1", 0)?;
        cx.dtype("C2", 1, DType::I64)?;
        cx.same_dims("C2", 1, x.dims())?;
        Ok(one(x.with_shape(self.dims.as_slice())))
    }
}

impl CompositeDef for MaxUnpool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let count = t.shape.element_count();
        let updates = b.reshape(operands[0], std::slice::from_ref(&count))?;
        let indices = b.reshape(operands[1], &[count, Dim::ONE])?;
        let zeros = b.full(0.0, &t.with_shape(vec![Dim::product(&self.dims)]))?;
        let scatter = Scatter {
            axes: vec![0],
            batch: 0,
            combine: Combine::Replace,
            oob: OutOfBounds::Error,
            wrap: false,
        };
        let flat = b.push1(scatter, &[zeros, indices, updates])?;
        Ok(Values::from_slice(&[b.reshape(flat, &self.dims)?]))
    }
}

/// |x|^p.
fn absolute_power(b: &mut Builder, x: Value, p: f64) -> Result<Value, TypeError> {
    if p == 2.0 {
        return b.mul(x, x);
    }
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    if p == 1.0 { Ok(magnitude) } else { b.binary_scalar(BinaryOp::Pow, magnitude, p) }
}

/// x^(1/p).
fn root(b: &mut Builder, x: Value, p: f64) -> Result<Value, TypeError> {
    if p == 2.0 {
        b.unary(UnaryOp::Sqrt, x)
    } else if p == 1.0 {
        Ok(x)
    } else {
        b.binary_scalar(BinaryOp::Pow, x, 1.0 / p)
    }
}

fn exponent(cx: &Infer<'_>, p: Real) -> Result<(), TypeError> {
    cx.ensure(p.get() > 0.0, "C4", None, "exponent", "above 0", p.get())
}

impl OpDef for LpPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = images(cx, false)?;
        exponent(cx, self.p)?;
        Ok(one(pooled(x, windows!(self, self.ceil_mode).check(cx, &x.shape[2..])?)))
    }
}

impl CompositeDef for LpPool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let wide = b.cast(operands[0], statistics_dtype(dtype))?;
        let powers = absolute_power(b, wide, self.p.get())?;
        let sums = windows!(self, self.ceil_mode).reduce(b, WindowOp::Sum, powers, 0.0)?;
        let y = root(b, sums, self.p.get())?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for GlobalLpPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = images(cx, false)?;
        exponent(cx, self.p)?;
        Ok(one(pooled(x, vec![Dim::ONE; x.rank() - 2])))
    }
}

impl CompositeDef for GlobalLpPool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let axes = spatial_axes(b, operands[0]);
        let wide = b.cast(operands[0], statistics_dtype(dtype))?;
        let powers = absolute_power(b, wide, self.p.get())?;
        let sums = b.sum(powers, &axes, true)?;
        let y = root(b, sums, self.p.get())?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}

impl OpDef for GlobalPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = images(cx, self.op == GlobalPoolOp::Max)?;
        Ok(one(pooled(x, vec![Dim::ONE; x.rank() - 2])))
    }
}

impl CompositeDef for GlobalPool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, axes) = (operands[0], spatial_axes(b, operands[0]));
        let dtype = b.dtype(x);
        let y = match self.op {
            GlobalPoolOp::Max => b.reduce(ReduceOp::Max, x, &axes, true)?,
            GlobalPoolOp::Average => {
                let wide = b.cast(x, statistics_dtype(dtype))?;
                let mean = b.mean(wide, &axes, true)?;
                b.cast(mean, dtype)?
            }
        };
        Ok(Values::from_slice(&[y]))
    }
}

impl OpDef for AdaptivePool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = images(cx, self.op == AdaptivePoolOp::Max)?;
        let spatial = x.rank() - 2;
        cx.ensure(self.sizes.len() == spatial, "C2", None, "number of sizes", spatial, self.sizes.len())?;
        for size in &self.sizes {
            cx.at_most("C2", None, "size", &Dim::ONE, size)?;
        }
        Ok(one(pooled(x, self.sizes.clone())))
    }
}

impl AdaptivePool {
    /// One axis pooled.
    fn along(&self, b: &mut Builder, x: Value, axis: usize, out: &Dim) -> Result<Value, TypeError> {
        let size = b.dim(x, axis);
        // No window is longer than ⌈s/o⌉ + 1.
        let longest = size.ceil_div(out) + 1;
        let dims = [out.clone(), longest];
        let window = counter(b, &dims, 0, 1)?;
        let (s, o) = (b.dim_like(&size, window)?, b.dim_like(out, window)?);
        let start = b.mul(window, s)?;
        let end = b.add(start, s)?;
        let end = b.add(end, o)?;
        let end = b.add_scalar(end, -1.0)?;
        let (start, end) = (b.div(start, o)?, b.div(end, o)?);
        let offset = counter(b, &dims, 1, 1)?;
        let position = b.add(start, offset)?;
        let held = b.compare(CompareOp::Lt, position, end)?;
        // What the window does not hold is read from outside, which gives the fill.
        let outside = b.like(-1.0, position)?;
        let position = b.select(held, position, outside)?;
        let average = self.op == AdaptivePoolOp::Average;
        let fill = if average { 0.0 } else { least(b.dtype(x)) };
        let elements = super::unfold::take_filled(b, x, position, axis, fill)?;
        if !average {
            return b.reduce(ReduceOp::Max, elements, &[axis + 1], false);
        }
        let sum = b.sum(elements, &[axis + 1], false)?;
        let count = b.sub(end, start)?;
        let count = b.index_axis(count, 1, &Dim::ZERO)?;
        let count = b.cast(count, b.dtype(sum))?;
        let count = b.broadcast_in(count, &b.shape(sum), &[axis])?;
        b.div(sum, count)
    }
}

impl CompositeDef for AdaptivePool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let average = self.op == AdaptivePoolOp::Average;
        let mut y = if average { b.cast(operands[0], statistics_dtype(dtype))? } else { operands[0] };
        for (i, size) in self.sizes.iter().enumerate() {
            y = self.along(b, y, 2 + i, size)?;
        }
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}
