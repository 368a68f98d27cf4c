//! Sampling of images at coordinates: grid sampling, affine grids, deformable convolution.

use super::contract::{Dot, window_count};
use super::convolution::add_channel_bias;
use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::index::{Gather, OutOfBounds};
use super::norm::statistics_dtype;
use super::resize::{Interpolation, cubic_kernel};
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

names! {
    /// What lies outside an image.
    pub enum Outside {
        /// Zeros.
        Zeros = "zeros",
        /// The nearest element of the border.
        Border = "border",
        /// The mirror image.
        Reflection = "reflection",
    }
}

operation! {
    /// x \[n, c, s…\] sampled at the coordinates of a grid \[n, o…, d\] (d spatial axes; the last coordinate is that of
    /// the first spatial axis), each from −1 to 1: \[n, c, o…\] (ONNX GridSample, PyTorch grid_sample). Coordinates
    /// outside are clamped or mirrored first (unless `neighbours_only`), then neighbours are. Nearest rounds half to
    /// even; cubic has the coefficient −0.75. C1: floating-point x and grid. C2: x has rank d + 2. C3: batch sizes agree.
    pub struct GridSample = "grid_sample" {
        /// The kind of interpolation.
        mode: Interpolation,
        /// What lies outside.
        outside: Outside,
        /// Whether ±1 are the centres of the outermost elements, instead of their edges.
        align_corners: bool,
        /// Whether coordinates outside stay as they are, as PyTorch's do where it samples by cubics: at the border the
        /// curve then goes on beyond the outermost element, where ONNX's ends.
        neighbours_only: bool,
    }
}

operation! {
    /// The grid \[n, sizes…, d\] for `grid_sample` that affine maps \[n, d, d + 1\] make of the evenly spaced
    /// coordinates of an image. C1: floating point. C2: sizes \[n, d, d + 1\] with one size each of `sizes`.
    pub struct AffineGrid = "affine_grid" {
        /// The spatial sizes of the result.
        sizes: Vec<Dim>,
        /// Whether ±1 are the centres of the outermost elements, instead of their edges.
        align_corners: bool,
    }
}

operation! {
    /// Deformable convolution (Dai et al. 2017, Zhu et al. 2019): as `conv`, but each kernel element reads x at its
    /// place plus an offset, linearly interpolated, zeros outside, times a mask. Operands: x \[n, c, s…\],
    /// w \[o, c/groups, k…\], offsets \[n, offset_groups · ∏k · d, t…\], then the bias \[o\] and the mask
    /// \[n, offset_groups · ∏k, t…\] where the flags say so. C1: one floating-point type. C2: equal ranks of at least
    /// 3. C3: one stride, padding and dilation a spatial axis, strides and dilations at least 1.
    /// C4: offsets and mask have their sizes. C5: groups divide both channel counts and offset groups divide c.
    /// C6: the kernel fits. C7: the bias has o elements.
    pub struct DeformConv = "deform_conv" {
        /// Strides.
        strides: Vec<i64>,
        /// Zeros before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Distance of neighbours in the kernel.
        dilations: Vec<i64>,
        /// Channel groups.
        groups: usize,
        /// Groups of channels with offsets of their own.
        offset_groups: usize,
        /// Whether there is a bias.
        bias: bool,
        /// Whether there is a mask.
        mask: bool,
    }
}

/// The elements of x \[n, c, s…\] at whole indices, one array \[n, p\] a spatial axis: \[n, p, c\].
fn pixels(b: &mut Builder, x: Value, at: &[Value], oob: OutOfBounds) -> Result<Value, TypeError> {
    let mut parts = Vec::with_capacity(at.len());
    for index in at {
        let index = b.cast(*index, DType::I64)?;
        parts.push(b.unsqueeze(index, 2)?);
    }
    let tuples = b.concat(&parts, 2)?;
    let gather = Gather { axes: (2..2 + at.len()).collect(), batch: 1, oob, wrap: false };
    if oob == OutOfBounds::Drop {
        let zero = b.scalar(0.0, b.dtype(x))?;
        b.push1(gather, &[x, tuples, zero])
    } else {
        b.push1(gather, &[x, tuples])
    }
}

/// One spatial axis of a sampling: the neighbours' indices and weights, each \[n, p\].
type Taps = Vec<(Value, Value)>;

/// The neighbours of coordinates along one axis.
fn neighbours(b: &mut Builder, mode: Interpolation, at: Value) -> Result<Taps, TypeError> {
    let floor = b.unary(UnaryOp::Floor, at)?;
    let fraction = b.sub(at, floor)?;
    let offsets: &[f64] = match mode {
        Interpolation::Nearest => {
            let weight = b.like(1.0, at)?;
            return Ok(vec![(b.unary(UnaryOp::Round, at)?, weight)]);
        }
        Interpolation::Linear => &[0.0, 1.0],
        Interpolation::Cubic => &[-1.0, 0.0, 1.0, 2.0],
    };
    let mut taps = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let index = b.add_scalar(floor, *offset)?;
        let distance = b.add_scalar(fraction, -offset)?;
        let distance = b.unary(UnaryOp::Abs, distance)?;
        let weight = if mode == Interpolation::Cubic {
            cubic_kernel(b, -0.75, distance)?
        } else {
            let one = b.like(1.0, distance)?;
            b.sub(one, distance)?
        };
        taps.push((index, weight));
    }
    Ok(taps)
}

/// Σ over all combinations of neighbours of the product of their weights times the element there: \[n, p, c\].
fn sampled(
    b: &mut Builder,
    x: Value,
    taps: &[Taps],
    oob: OutOfBounds,
    dtype: DType,
) -> Result<Value, TypeError> {
    let combinations: usize = taps.iter().map(Vec::len).product();
    let mut sum: Option<Value> = None;
    for combination in 0..combinations {
        let mut rest = combination;
        let (mut at, mut weight) = (Vec::with_capacity(taps.len()), None);
        for axis in taps {
            let (index, factor) = axis[rest % axis.len()];
            rest /= axis.len();
            at.push(index);
            weight = Some(match weight {
                None => factor,
                Some(weight) => b.mul(weight, factor)?,
            });
        }
        let values = pixels(b, x, &at, oob)?;
        let mut term = b.cast(values, dtype)?;
        if let Some(weight) = weight
            && combinations > 1
        {
            let weight = b.broadcast_in(weight, &b.shape(term), &[0, 1])?;
            term = b.mul(term, weight)?;
        }
        sum = Some(match sum {
            None => term,
            Some(sum) => b.add(sum, term)?,
        });
    }
    match sum {
        Some(sum) => Ok(sum),
        None => {
            let values = pixels(b, x, &[], oob)?;
            b.cast(values, dtype)
        }
    }
}

impl OpDef for GridSample {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.float("C1", 0)?;
        let grid = cx.float("C1", 1)?;
        cx.rank_at_least("C2", 0, 3)?;
        cx.rank("C2", 1, x.rank())?;
        let d = x.rank() - 2;
        cx.equal("C2", Some(1), "coordinates", &d.into(), &grid.shape[d + 1])?;
        cx.equal("C3", Some(1), "batch sizes differ", &x.shape[0], &grid.shape[0])?;
        let mut shape = Shape::from(&x.shape[..2]);
        grid.shape[1..=d].iter().for_each(|dim| shape.push(dim.clone()));
        Ok(one(x.with_shape(shape)))
    }
}

impl GridSample {
    /// Mirrored at the ends until inside. Ends are the outermost centres or edges.
    fn reflected(&self, b: &mut Builder, at: Value, size: &Dim) -> Result<Value, TypeError> {
        let (least, span) = if self.align_corners { (0.0, size - 1) } else { (-0.5, size.clone()) };
        let span = b.dim_like(&span, at)?;
        let from_end = b.add_scalar(at, -least)?;
        let distance = b.unary(UnaryOp::Abs, from_end)?;
        let turns = b.div(distance, span)?;
        let turns = b.unary(UnaryOp::Floor, turns)?;
        let whole = b.mul(turns, span)?;
        let rest = b.sub(distance, whole)?;
        let two = b.like(2.0, turns)?;
        let parity = b.binary(BinaryOp::Rem, turns, two)?;
        let even = b.compare_scalar(CompareOp::Eq, parity, 0.0)?;
        let back = b.sub(span, rest)?;
        let inside = b.select(even, rest, back)?;
        let inside = b.add_scalar(inside, least)?;
        // A single centre has no span to turn in.
        let zero = b.like(0.0, at)?;
        let flat = b.compare(CompareOp::Eq, span, zero)?;
        b.select(flat, zero, inside)
    }

    /// The coordinate, moved inside where it is outside, as `outside` says.
    fn inside(&self, b: &mut Builder, at: Value, size: &Dim) -> Result<Value, TypeError> {
        match self.outside {
            Outside::Zeros => Ok(at),
            Outside::Reflection => self.reflected(b, at, size),
            Outside::Border => {
                let last = b.dim_like(&(size - 1), at)?;
                let slack = if self.align_corners { 0.0 } else { 0.5 };
                let greatest = b.add_scalar(last, slack)?;
                let above = b.compare(CompareOp::Gt, at, greatest)?;
                let below = b.compare_scalar(CompareOp::Lt, at, -slack)?;
                let outside = b.binary(BinaryOp::Or, above, below)?;
                let zero = b.like(0.0, at)?;
                let clamped = b.max(at, zero)?;
                let clamped = b.min(clamped, last)?;
                b.select(outside, clamped, at)
            }
        }
    }
}

impl CompositeDef for GridSample {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, grid) = (operands[0], operands[1]);
        let (t, outer) = (b.type_of(x).clone(), b.shape(grid));
        let d = t.rank() - 2;
        let dtype = statistics_dtype(b.dtype(grid));
        let points = Dim::product(&outer[1..=d]);
        let grid = b.cast(grid, dtype)?;
        let grid = b.reshape(grid, &[t.shape[0].clone(), points, d.into()])?;
        let mut taps = Vec::with_capacity(d);
        for axis in 0..d {
            let size = &t.shape[2 + axis];
            let unit = b.index_axis(grid, 2, &(d - 1 - axis).into())?;
            let shifted = b.add_scalar(unit, 1.0)?;
            let scale = if self.align_corners { size - 1 } else { size.clone() };
            let scale = b.dim_like(&scale, shifted)?;
            let scaled = b.mul(shifted, scale)?;
            let scaled = if self.align_corners { scaled } else { b.add_scalar(scaled, -1.0)? };
            let mut at = b.mul_scalar(scaled, 0.5)?;
            if self.mode == Interpolation::Nearest {
                at = b.unary(UnaryOp::Round, at)?;
            }
            if !self.neighbours_only {
                at = self.inside(b, at, size)?;
            }
            let mut along = neighbours(b, self.mode, at)?;
            if self.outside == Outside::Reflection {
                for (index, _) in &mut along {
                    *index = self.reflected(b, *index, size)?;
                }
            }
            taps.push(along);
        }
        let oob = if self.outside == Outside::Zeros { OutOfBounds::Drop } else { OutOfBounds::Clamp };
        let wide = if dtype == DType::F64 { dtype } else { statistics_dtype(t.dtype) };
        for (_, weight) in taps.iter_mut().flatten() {
            *weight = b.cast(*weight, wide)?;
        }
        let y = sampled(b, x, &taps, oob, wide)?;
        let y = b.transpose(y, &[0, 2, 1])?;
        let mut dims = t.shape[..2].to_vec();
        dims.extend_from_slice(&outer[1..=d]);
        let y = b.reshape(y, &dims)?;
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}

impl OpDef for AffineGrid {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let theta = cx.float("C1", 0)?;
        cx.rank("C2", 0, 3)?;
        let d = self.sizes.len();
        cx.same_dims("C2", 0, &[theta.shape[0].clone(), d.into(), (d + 1).into()])?;
        let mut shape = Shape::from(vec![theta.shape[0].clone()]);
        self.sizes.iter().for_each(|size| shape.push(size.clone()));
        shape.push(d.into());
        Ok(one(theta.with_shape(shape)))
    }
}

impl CompositeDef for AffineGrid {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let (d, dtype) = (self.sizes.len(), statistics_dtype(t.dtype));
        let theta = b.cast(operands[0], dtype)?;
        let mut columns = Vec::with_capacity(d + 1);
        let mut with_one = self.sizes.clone();
        with_one.push(Dim::ONE);
        for (axis, size) in self.sizes.iter().enumerate().rev() {
            let i = b.iota(dtype, std::slice::from_ref(size), 0)?;
            let doubled = b.mul_scalar(i, 2.0)?;
            let (shift, intervals) = if self.align_corners { (0.0, size - 1) } else { (1.0, size.clone()) };
            let shifted = b.add_scalar(doubled, shift)?;
            let span = b.dim_like(&intervals, shifted)?;
            let position = b.div(shifted, span)?;
            let mut position = b.add_scalar(position, -1.0)?;
            if self.align_corners {
                // A single element is in the middle.
                let zero = b.like(0.0, position)?;
                let single = b.compare(CompareOp::Eq, span, zero)?;
                position = b.select(single, zero, position)?;
            }
            columns.push(b.broadcast_in(position, &with_one, &[axis])?);
        }
        columns.push(b.full(1.0, &TensorType::new(dtype, with_one.as_slice()))?);
        let base = b.concat(&columns, d)?;
        let base = b.reshape(base, &[Dim::product(&self.sizes), (d + 1).into()])?;
        // \[n, d, d + 1\] · \[p, d + 1\] = \[n, d, p\].
        let dot = Dot::along(0, 2, 1);
        let grid = b.push1(dot, &[theta, base])?;
        let grid = b.transpose(grid, &[0, 2, 1])?;
        let mut dims = vec![t.shape[0].clone()];
        dims.extend_from_slice(&self.sizes);
        dims.push(d.into());
        let grid = b.reshape(grid, &dims)?;
        Ok(Values::from_slice(&[b.cast(grid, t.dtype)?]))
    }
}

impl OpDef for DeformConv {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3 + usize::from(self.bias) + usize::from(self.mask))?;
        let x = cx.float("C1", 0)?;
        for i in 0..cx.count() {
            cx.same_dtype("C1", i, 0)?;
        }
        cx.rank_at_least("C2", 0, 3)?;
        let w = cx.rank("C2", 1, x.rank())?;
        let d = x.rank() - 2;
        for (what, n) in [
            ("strides", self.strides.len()),
            ("paddings", self.padding.len()),
            ("dilations", self.dilations.len()),
        ] {
            cx.ensure(n == d, "C3", None, &format!("number of {what}"), d, n)?;
        }
        for n in self.strides.iter().chain(&self.dilations) {
            cx.ensure(*n >= 1, "C3", None, "stride or dilation", "at least 1", n)?;
        }
        let least = self.groups.min(self.offset_groups);
        cx.ensure(least >= 1, "C5", None, "groups", "at least 1", least)?;
        let channels = &w.shape[1] * &self.groups.into();
        cx.equal("C5", Some(0), "channels differ from groups × the kernel's", &channels, &x.shape[1])?;
        for (operand, channels, groups) in
            [(1, &w.shape[0], self.groups), (0, &x.shape[1], self.offset_groups)]
        {
            let rest = channels.modulo(&groups.into());
            cx.equal("C5", Some(operand), "groups do not divide the channels", &Dim::ZERO, &rest)?;
        }
        let mut shape = Shape::from(vec![x.shape[0].clone(), w.shape[0].clone()]);
        for n in self.counts(&x.shape, &w.shape) {
            cx.at_most("C6", Some(0), "the kernel is larger than the padded input", &Dim::ZERO, &n)?;
            shape.push(n);
        }
        let taps = Dim::product(&w.shape[2..]) * Dim::from(self.offset_groups);
        let sized = |channels: Dim| -> Vec<Dim> {
            [x.shape[0].clone(), channels].into_iter().chain(shape[2..].iter().cloned()).collect()
        };
        cx.same_dims("C4", 2, &sized(&taps * &d.into()))?;
        if self.bias {
            cx.same_dims("C7", 3, &w.shape[..1])?;
        }
        if self.mask {
            cx.same_dims("C4", 3 + usize::from(self.bias), &sized(taps))?;
        }
        Ok(one(x.with_shape(shape)))
    }
}

impl DeformConv {
    /// The spatial sizes of the result.
    fn counts(&self, x: &Shape, w: &Shape) -> Vec<Dim> {
        let count = |i: usize| {
            let (size, window) = (&x[i + 2], &w[i + 2]);
            window_count(size, &self.padding[i], 1, window, self.dilations[i], self.strides[i])
        };
        (0..self.strides.len()).map(count).collect()
    }
}

impl CompositeDef for DeformConv {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, w, offsets) = (operands[0], operands[1], operands[2]);
        let (t, kernel) = (b.type_of(x).clone(), b.shape(w));
        let (d, dtype) = (t.rank() - 2, statistics_dtype(t.dtype));
        let (n, c, o) = (t.shape[0].clone(), t.shape[1].clone(), kernel[0].clone());
        let offset_groups = Dim::from(self.offset_groups);
        let out = self.counts(&t.shape, &kernel);
        let (taps, positions) = (Dim::product(&kernel[2..]), Dim::product(&out));
        // Every batch and offset group is an image of its own.
        let images = &n * &offset_groups;
        let share = c.floor_div(&offset_groups);
        let mut dims = vec![images.clone(), share.clone()];
        dims.extend_from_slice(&t.shape[2..]);
        let x = b.reshape(x, &dims)?;
        let points = &taps * &positions;
        let mut grid = vec![images.clone()];
        grid.extend_from_slice(&kernel[2..]);
        grid.push(d.into());
        grid.extend_from_slice(&out);
        let offsets = b.cast(offsets, dtype)?;
        let offsets = b.reshape(offsets, &grid)?;
        let mut along = Vec::with_capacity(d);
        for axis in 0..d {
            let offset = b.index_axis(offsets, 1 + d, &axis.into())?;
            let own = b.shape(offset);
            let tap = super::unfold::counter(b, &own, 1 + axis, self.dilations[axis])?;
            let window = super::unfold::counter(b, &own, 1 + d + axis, self.strides[axis])?;
            let place = b.add(tap, window)?;
            let low = b.dim_like(&self.padding[axis].0, place)?;
            let place = b.sub(place, low)?;
            let place = b.cast(place, dtype)?;
            let at = b.add(place, offset)?;
            let at = b.reshape(at, &[images.clone(), points.clone()])?;
            along.push(neighbours(b, Interpolation::Linear, at)?);
        }
        let mut elements = sampled(b, x, &along, OutOfBounds::Drop, dtype)?;
        if self.mask {
            let mask = b.cast(operands[operands.len() - 1], dtype)?;
            let mask = b.reshape(mask, &[images, points])?;
            let mask = b.broadcast_in(mask, &b.shape(elements), &[0, 1])?;
            elements = b.mul(elements, mask)?;
        }
        // \[n, offset group, tap, position, channel\] to \[n, position, group, channel of the group, tap\].
        let split = [n.clone(), offset_groups, taps.clone(), positions.clone(), share];
        let elements = b.reshape(elements, &split)?;
        let elements = b.transpose(elements, &[0, 3, 1, 4, 2])?;
        let groups = Dim::from(self.groups);
        let inner = &kernel[1] * &taps;
        let columns = b.reshape(elements, &[n.clone(), positions, groups.clone(), inner.clone()])?;
        let w = b.cast(w, dtype)?;
        let w = b.reshape(w, &[groups.clone(), o.floor_div(&groups), inner])?;
        let dot = Dot {
            lhs_batch: vec![2],
            rhs_batch: vec![0],
            lhs_contract: vec![3],
            rhs_contract: vec![2],
            accum: None,
            out: None,
        };
        // \[group, n, position, o/groups\].
        let y = b.push1(dot, &[columns, w])?;
        let y = b.transpose(y, &[1, 0, 3, 2])?;
        let mut dims = vec![n, o];
        dims.extend_from_slice(&out);
        let y = b.reshape(y, &dims)?;
        let bias = self.bias.then(|| operands[3]);
        Ok(Values::from_slice(&[add_channel_bias(b, y, bias, t.dtype)?]))
    }
}
