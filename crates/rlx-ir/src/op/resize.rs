//! Resizing by interpolation along axes, with the conventions of ONNX Resize and PyTorch interpolate.
//!
//! Interpolation is separable: each axis is resized by itself. Along an axis, every element of the result is a
//! weighted sum of neighbours in the operand; neighbours outside repeat the edge. Coordinates and weights are
//! computed in f32 (f64 for f64 operands).

use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::index::{Gather, OutOfBounds};
use super::norm::statistics_dtype;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};

names! {
    /// How neighbours make an element.
    pub enum Interpolation {
        /// The nearest.
        Nearest = "nearest",
        /// Two neighbours, by distance.
        Linear = "linear",
        /// Four neighbours, by Keys' cubic.
        Cubic = "cubic",
    }
}

names! {
    /// Which neighbour is the nearest.
    pub enum NearestRounding {
        /// Half goes down.
        RoundPreferFloor = "round_prefer_floor",
        /// Half goes up.
        RoundPreferCeil = "round_prefer_ceil",
        /// The one before.
        Floor = "floor",
        /// The one after.
        Ceil = "ceil",
    }
}

names! {
    /// Which coordinate x of the operand belongs to index i of the result; scale = result / operand, w and v being
    /// the sizes of operand and result (v = w · scale where scales are given).
    pub enum Coordinates {
        /// (i + ½) / scale − ½.
        HalfPixel = "half_pixel",
        /// The same about the centre: the result is symmetric even where v is not whole.
        HalfPixelSymmetric = "half_pixel_symmetric",
        /// (i + ½) / scale − ½, but −½ where v = 1.
        PytorchHalfPixel = "pytorch_half_pixel",
        /// i · (w − 1) / (v − 1), 0 where v = 1: first and last elements meet.
        AlignCorners = "align_corners",
        /// i / scale.
        Asymmetric = "asymmetric",
        /// (i + ½) / scale.
        HalfPixelForNearest = "tf_half_pixel_for_nn",
        /// From start to end of a region (operand 1) in units of w − 1; outside the operand: the extrapolation value.
        CropAndResize = "tf_crop_and_resize",
    }
}

operation! {
    /// x with axes resized. With `tf_crop_and_resize`, operand 1 (f32 or f64) holds the start of the region along each
    /// axis, then the ends. C1: floating-point or integer x (integers: computed in f32, rounded half to even,
    /// saturated). C2: axes increase and are below the rank, one size each, at least 1 in x where the size is.
    /// C3: no scales, or one above 0 an axis. C4: the region has two elements an axis.
    /// C5: antialias is for linear and cubic.
    pub struct Resize = "resize" {
        /// The resized axes.
        axes: Vec<usize>,
        /// Their sizes in the result.
        sizes: Vec<Dim>,
        /// Their scales; none: result / operand.
        scales: Vec<Real>,
        /// The kind of interpolation.
        mode: Interpolation,
        /// The convention of coordinates.
        coordinates: Coordinates,
        /// For nearest: the rounding.
        rounding: NearestRounding,
        /// For cubic: Keys' coefficient, −0.75 or −0.5.
        cubic_coefficient: Real,
        /// Whether neighbours outside weigh 0 and the others are rescaled to sum 1.
        exclude_outside: bool,
        /// Whether kernels are widened when shrinking.
        antialias: bool,
        /// The value outside, for `tf_crop_and_resize`.
        extrapolation: Real,
    }
}

impl Resize {
    /// The defaults of ONNX Resize: half-pixel coordinates, nearest rounding down on ties.
    pub fn new(axes: Vec<usize>, sizes: Vec<Dim>, mode: Interpolation) -> Resize {
        Resize {
            axes,
            sizes,
            scales: Vec::new(),
            mode,
            coordinates: Coordinates::HalfPixel,
            rounding: NearestRounding::RoundPreferFloor,
            cubic_coefficient: Real::new(-0.75),
            exclude_outside: false,
            antialias: false,
            extrapolation: Real::new(0.0),
        }
    }

    /// ONNX Upsample (and Resize 10): coordinates i / scale, the element before.
    pub fn upsample(axes: Vec<usize>, sizes: Vec<Dim>, scales: Vec<Real>, mode: Interpolation) -> Resize {
        Resize {
            scales,
            coordinates: Coordinates::Asymmetric,
            rounding: NearestRounding::Floor,
            ..Resize::new(axes, sizes, mode)
        }
    }
}

impl OpDef for Resize {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let region = self.coordinates == Coordinates::CropAndResize;
        cx.arity(if region { 2 } else { 1 })?;
        let x = cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?;
        cx.axes_in("C2", &self.axes, x.rank())?;
        let n = self.axes.len();
        cx.ensure(self.sizes.len() == n, "C2", None, "number of sizes", n, self.sizes.len())?;
        let scales_fit = self.scales.is_empty() || self.scales.len() == n;
        cx.ensure(scales_fit, "C3", None, "number of scales", format!("none or {n}"), self.scales.len())?;
        for scale in &self.scales {
            cx.ensure(scale.get() > 0.0, "C3", None, "scale", "above 0", scale.get())?;
        }
        if region {
            cx.of("C4", 1, "f32 or f64", |d| matches!(d, DType::F32 | DType::F64))?;
            cx.same_dims("C4", 1, &[(2 * n).into()])?;
        }
        let antialias_fits = !self.antialias || self.mode != Interpolation::Nearest;
        cx.ensure(antialias_fits, "C5", None, "antialias", "linear or cubic", self.mode.name())?;
        let mut shape = x.shape.clone();
        for (axis, size) in self.axes.iter().zip(&self.sizes) {
            cx.at_most("C2", None, "size", &Dim::ZERO, size)?;
            // An empty axis has no neighbour to take.
            cx.at_most("C2", Some(0), "axis is empty", &size.min(&Dim::ONE), &x.shape[*axis])?;
            shape = shape.with_dim(*axis, size.clone());
        }
        Ok(one(x.with_shape(shape)))
    }
}

/// The weights of neighbours by their distance t ≥ 0, in units of the (dilated) kernel.
fn kernel(b: &mut Builder, mode: Interpolation, coefficient: f64, t: Value) -> Result<Value, TypeError> {
    let one = b.like(1.0, t)?;
    let zero = b.like(0.0, t)?;
    if mode != Interpolation::Cubic {
        let falling = b.sub(one, t)?;
        return b.max(falling, zero);
    }
    cubic_kernel(b, coefficient, t)
}

/// Keys' kernel (1981) with coefficient a at |t|: (a+2)t³ − (a+3)t² + 1 up to 1, a·t³ − 5a·t² + 8a·t − 4a up to 2.
pub(super) fn cubic_kernel(b: &mut Builder, a: f64, t: Value) -> Result<Value, TypeError> {
    let polynomial = |b: &mut Builder, coefficients: [f64; 4]| {
        let mut value = b.like(coefficients[0], t)?;
        for c in &coefficients[1..] {
            value = b.mul(value, t)?;
            value = b.add_scalar(value, *c)?;
        }
        Ok::<Value, TypeError>(value)
    };
    let near = polynomial(b, [a + 2.0, -(a + 3.0), 0.0, 1.0])?;
    let far = polynomial(b, [a, -5.0 * a, 8.0 * a, -4.0 * a])?;
    let zero = b.like(0.0, t)?;
    let within = b.compare_scalar(CompareOp::Lt, t, 2.0)?;
    let far = b.select(within, far, zero)?;
    let is_near = b.compare_scalar(CompareOp::Le, t, 1.0)?;
    b.select(is_near, near, far)
}

/// One axis of a resize.
struct AxisResize<'a> {
    op: &'a Resize,
    /// Which of the resized axes.
    index: usize,
    /// Size in the operand.
    from: Dim,
    /// Size in the result.
    to: Dim,
    /// The type of coordinates.
    dtype: DType,
}

impl AxisResize<'_> {
    fn scale(&self) -> Option<f64> {
        self.op.scales.get(self.index).map(|s| s.get())
    }

    /// Whether every element stays where it is.
    fn is_identity(&self) -> bool {
        self.from == self.to
            && self.scale().is_none_or(|s| s == 1.0)
            && self.op.coordinates != Coordinates::CropAndResize
            && self.op.coordinates != Coordinates::HalfPixelForNearest
    }

    /// x / scale.
    fn unscaled(&self, b: &mut Builder, x: Value) -> Result<Value, TypeError> {
        if let Some(scale) = self.scale() {
            return b.binary_scalar(BinaryOp::Div, x, scale);
        }
        // x · from is exact for whole x, so that whole quotients come out whole.
        let from = b.dim_like(&self.from, x)?;
        let to = b.dim_like(&self.to, x)?;
        let product = b.mul(x, from)?;
        b.div(product, to)
    }

    /// The size of the result, which need not be whole where a scale is given.
    fn length(&self, b: &mut Builder, like: Value) -> Result<Value, TypeError> {
        match self.scale() {
            None => b.dim_like(&self.to, like),
            Some(scale) => {
                let from = b.dim_like(&self.from, like)?;
                b.binary_scalar(BinaryOp::Mul, from, scale)
            }
        }
    }

    /// The coordinate in the operand of each index of the result, \[to\].
    fn coordinates(&self, b: &mut Builder, region: Option<Value>) -> Result<Value, TypeError> {
        let i = b.iota(self.dtype, std::slice::from_ref(&self.to), 0)?;
        let half_pixel = |b: &mut Builder| {
            let centre = b.add_scalar(i, 0.5)?;
            let unscaled = self.unscaled(b, centre)?;
            b.add_scalar(unscaled, -0.5)
        };
        match self.op.coordinates {
            Coordinates::Asymmetric => self.unscaled(b, i),
            Coordinates::HalfPixel => half_pixel(b),
            Coordinates::HalfPixelForNearest => {
                let centre = b.add_scalar(i, 0.5)?;
                self.unscaled(b, centre)
            }
            Coordinates::PytorchHalfPixel => {
                let x = half_pixel(b)?;
                let single = self.is_single(b, x)?;
                let first = b.like(-0.5, x)?;
                b.select(single, first, x)
            }
            Coordinates::HalfPixelSymmetric => {
                let x = half_pixel(b)?;
                // from / 2 · (1 − to / length).
                let length = self.length(b, x)?;
                let to = b.dim_like(&self.to, x)?;
                let adjustment = b.div(to, length)?;
                let one = b.like(1.0, x)?;
                let rest = b.sub(one, adjustment)?;
                let from = b.dim_like(&self.from, x)?;
                let offset = b.mul(from, rest)?;
                let offset = b.mul_scalar(offset, 0.5)?;
                b.add(x, offset)
            }
            Coordinates::AlignCorners => {
                let last = b.dim_like(&(self.from.clone() - 1), i)?;
                let product = b.mul(i, last)?;
                self.over_intervals(b, product, |b, x| b.like(0.0, x))
            }
            Coordinates::CropAndResize => {
                let Some(region) = region else { return self.unscaled(b, i) };
                let region = b.cast(region, self.dtype)?;
                let bound = |b: &mut Builder, at: usize| {
                    let bound = b.index_axis(region, 0, &at.into())?;
                    b.broadcast_to(bound, std::slice::from_ref(&self.to))
                };
                let start = bound(b, self.index)?;
                let end = bound(b, self.op.axes.len() + self.index)?;
                let last = b.dim_like(&(self.from.clone() - 1), i)?;
                let extent = b.sub(end, start)?;
                let extent = b.mul(extent, last)?;
                let product = b.mul(i, extent)?;
                let x = self.over_intervals(b, product, |b, _| b.mul_scalar(extent, 0.5))?;
                let start = b.mul(start, last)?;
                b.add(x, start)
            }
        }
    }

    fn is_single(&self, b: &mut Builder, like: Value) -> Result<Value, TypeError> {
        let length = self.length(b, like)?;
        b.compare_scalar(CompareOp::Eq, length, 1.0)
    }

    /// x / (length − 1), or `single` where the length is 1.
    fn over_intervals(
        &self,
        b: &mut Builder,
        x: Value,
        single: impl Fn(&mut Builder, Value) -> Result<Value, TypeError>,
    ) -> Result<Value, TypeError> {
        let length = self.length(b, x)?;
        let intervals = b.add_scalar(length, -1.0)?;
        let quotient = b.div(x, intervals)?;
        let alone = self.is_single(b, x)?;
        let single = single(b, x)?;
        b.select(alone, single, quotient)
    }

    /// How far kernels are stretched, 1 / scale, not below 1; and the number of neighbours.
    fn support(&self, b: &mut Builder) -> Result<(Value, Dim), TypeError> {
        let radius: i64 = if self.op.mode == Interpolation::Cubic { 2 } else { 1 };
        let one = b.scalar(1.0, self.dtype)?;
        if !self.op.antialias {
            return Ok((one, (2 * radius).into()));
        }
        let inverse = self.unscaled(b, one)?;
        let stretch = b.max(inverse, one)?;
        let reach = match self.scale() {
            Some(scale) => Dim::constant((radius as f64 / scale.min(1.0)).ceil() as i64),
            None => (self.from.clone() * radius).ceil_div(&self.to.max(&Dim::ONE)).max(&radius.into()),
        };
        Ok((stretch, reach * 2))
    }

    /// The neighbours' indices (not yet clamped) and weights, both \[to, taps\].
    fn taps(&self, b: &mut Builder, x: Value) -> Result<(Value, Value), TypeError> {
        let (stretch, count) = self.support(b)?;
        let dims = [self.to.clone(), count.clone()];
        let floor = b.unary(UnaryOp::Floor, x)?;
        let floor = b.broadcast_in(floor, &dims, &[0])?;
        let offset = b.iota(self.dtype, &dims, 1)?;
        let before = b.dim_like(&(count.floor_div(&2.into()) - 1), offset)?;
        let offset = b.sub(offset, before)?;
        let at = b.add(floor, offset)?;
        let x = b.broadcast_in(x, &dims, &[0])?;
        let distance = b.sub(at, x)?;
        let distance = b.unary(UnaryOp::Abs, distance)?;
        let stretch = b.broadcast_to(stretch, &dims)?;
        let t = b.div(distance, stretch)?;
        let mut weight = kernel(b, self.op.mode, self.op.cubic_coefficient.get(), t)?;
        if self.op.exclude_outside {
            let last = b.dim_like(&(self.from.clone() - 1), at)?;
            let below = b.compare(CompareOp::Le, at, last)?;
            let from_zero = b.compare_scalar(CompareOp::Ge, at, 0.0)?;
            let inside = b.binary(BinaryOp::And, from_zero, below)?;
            let zero = b.like(0.0, weight)?;
            weight = b.select(inside, weight, zero)?;
        }
        if self.op.exclude_outside || self.op.antialias {
            let total = b.sum(weight, &[1], true)?;
            let empty = b.compare_scalar(CompareOp::Eq, total, 0.0)?;
            let one = b.like(1.0, total)?;
            let total = b.select(empty, one, total)?;
            let total = b.broadcast_to(total, &dims)?;
            weight = b.div(weight, total)?;
        }
        Ok((at, weight))
    }

    /// The index of the nearest neighbour, \[to\].
    fn nearest(&self, b: &mut Builder, x: Value) -> Result<Value, TypeError> {
        match self.op.rounding {
            NearestRounding::Floor => b.unary(UnaryOp::Floor, x),
            NearestRounding::Ceil => b.unary(UnaryOp::Ceil, x),
            NearestRounding::RoundPreferFloor => {
                let shifted = b.add_scalar(x, -0.5)?;
                b.unary(UnaryOp::Ceil, shifted)
            }
            NearestRounding::RoundPreferCeil => {
                let shifted = b.add_scalar(x, 0.5)?;
                b.unary(UnaryOp::Floor, shifted)
            }
        }
    }

    fn apply(
        &self,
        b: &mut Builder,
        data: Value,
        axis: usize,
        region: Option<Value>,
    ) -> Result<Value, TypeError> {
        let x = self.coordinates(b, region)?;
        let resized = if self.op.mode == Interpolation::Nearest {
            let index = self.nearest(b, x)?;
            take_clamped(b, data, index, axis)?
        } else {
            let (index, weight) = self.taps(b, x)?;
            let neighbours = take_clamped(b, data, index, axis)?;
            let weight = b.broadcast_in(weight, &b.shape(neighbours), &[axis, axis + 1])?;
            let products = b.mul(neighbours, weight)?;
            b.sum(products, &[axis + 1], false)?
        };
        if self.op.coordinates != Coordinates::CropAndResize {
            return Ok(resized);
        }
        let last = b.dim_like(&(self.from.clone() - 1), x)?;
        let below = b.compare(CompareOp::Le, x, last)?;
        let from_zero = b.compare_scalar(CompareOp::Ge, x, 0.0)?;
        let inside = b.binary(BinaryOp::And, from_zero, below)?;
        let inside = b.broadcast_in(inside, &b.shape(resized), &[axis])?;
        let outside = b.like(self.op.extrapolation.get(), resized)?;
        b.select(inside, resized, outside)
    }
}

/// Elements at floating-point indices, the nearest inside where they are outside.
fn take_clamped(b: &mut Builder, data: Value, index: Value, axis: usize) -> Result<Value, TypeError> {
    let index = b.cast(index, DType::I64)?;
    let rank = b.rank(index);
    let tuples = b.unsqueeze(index, rank)?;
    let gather = Gather { axes: vec![axis], batch: 0, oob: OutOfBounds::Clamp, wrap: false };
    let picked = b.push1(gather, &[data, tuples])?;
    let perm: Vec<usize> = (rank..rank + axis).chain(0..rank).chain(rank + axis..b.rank(picked)).collect();
    b.transpose(picked, &perm)
}

impl CompositeDef for Resize {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let dtype = statistics_dtype(t.dtype);
        let interpolates = self.mode != Interpolation::Nearest;
        let mut y = if interpolates { b.cast(operands[0], dtype)? } else { operands[0] };
        for (index, axis) in self.axes.iter().enumerate() {
            let (from, to) = (t.shape[*axis].clone(), self.sizes[index].clone());
            let resize = AxisResize { op: self, index, from, to, dtype };
            if !resize.is_identity() {
                y = resize.apply(b, y, *axis, operands.get(1).copied())?;
            }
        }
        if interpolates && t.dtype.is_int() {
            y = b.unary(UnaryOp::Round, y)?;
        }
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}
