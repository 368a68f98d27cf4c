//! Pooling of regions of interest.

use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::index::{Gather, OutOfBounds};
use super::norm::statistics_dtype;
use super::reduce::ReduceOp;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::types::TensorType;
use crate::{names, operation};

names! {
    /// How the samples of a bin combine.
    pub enum RoiAlignMode {
        /// Their mean.
        Average = "avg",
        /// The greatest of the four weighted neighbours of any sample, as ONNX defines it.
        Max = "max",
    }
}

operation! {
    /// ROI Align (He et al. 2017; ONNX RoiAlign): x \[n, c, h, w\], regions \[r, 4\] (x1, y1, x2, y2), batch indices \[r\]
    /// give \[r, c, height, width\]. A region, times the spatial scale, is cut into bins, each sampled at evenly spaced
    /// points that are linearly interpolated; points more than one element outside give 0.
    /// C1: floating-point x and regions of one type. C2: x of rank 4, regions \[r, 4\]. C3: i32 or i64 batch indices
    /// \[r\]. C4: sampling ratio not negative.
    pub struct RoiAlign = "roi_align" {
        /// Bins along h.
        height: Dim,
        /// Bins along w.
        width: Dim,
        /// Samples along each axis of a bin; 0: as many as the bin has elements, rounded up.
        sampling_ratio: i64,
        /// Factor from the regions' coordinates to x's.
        spatial_scale: Real,
        /// Whether regions are shifted by half an element; without it they are at least 1 × 1.
        half_pixel: bool,
        /// How the samples of a bin combine.
        mode: RoiAlignMode,
    }
}

operation! {
    /// ROI pooling (Girshick 2015; ONNX MaxRoiPool): x \[n, c, h, w\], regions \[r, 5\] (batch index, x1, y1, x2, y2) give
    /// \[r, c, height, width\], the greatest element of each bin of a region whose corners, times the spatial scale, are
    /// rounded (half away from zero) and included; 0 for an empty bin. C1: floating point, one type.
    /// C2: x of rank 4, regions \[r, 5\].
    pub struct MaxRoiPool = "max_roi_pool" {
        /// Bins along h.
        height: Dim,
        /// Bins along w.
        width: Dim,
        /// Factor from the regions' coordinates to x's.
        spatial_scale: Real,
    }
}

/// C1 and C2: images x \[n, c, h, w\] and their regions \[r, numbers\], of one floating-point type.
fn regions_of_images<'a>(
    cx: &Infer<'a>,
    what: &str,
    numbers: i64,
) -> Result<(&'a TensorType, &'a TensorType), TypeError> {
    let x = cx.float("C1", 0)?;
    cx.same_dtype("C1", 1, 0)?;
    cx.rank("C2", 0, 4)?;
    let regions = cx.rank("C2", 1, 2)?;
    cx.equal("C2", Some(1), what, &numbers.into(), &regions.shape[1])?;
    Ok((x, regions))
}

/// \[r, c, height, width\].
fn binned(x: &TensorType, regions: &TensorType, height: &Dim, width: &Dim) -> TensorType {
    x.with_shape(vec![regions.shape[0].clone(), x.shape[1].clone(), height.clone(), width.clone()])
}

impl OpDef for RoiAlign {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let (x, regions) = regions_of_images(cx, "coordinates", 4)?;
        cx.index("C3", 2)?;
        cx.same_dims("C3", 2, &regions.shape[..1])?;
        cx.ensure(self.sampling_ratio >= 0, "C4", None, "sampling ratio", "at least 0", self.sampling_ratio)?;
        for size in [&self.height, &self.width] {
            cx.at_most("C4", None, "bins", &Dim::ONE, size)?;
        }
        Ok(one(binned(x, regions, &self.height, &self.width)))
    }
}

/// One axis of all samples, each \[r, bins, samples\].
struct Samples {
    /// The neighbours' indices and weights.
    low: (Value, Value),
    high: (Value, Value),
    /// Whether the sample is near enough to x to count with its value.
    near: Value,
    /// Whether there is such a sample at all.
    exists: Value,
    /// How many there are, \[r\], as floats.
    count: Value,
}

impl RoiAlign {
    fn samples(
        &self,
        b: &mut Builder,
        rois: Value,
        first: usize,
        size: &Dim,
        bins: &Dim,
    ) -> Result<Samples, TypeError> {
        let offset = if self.half_pixel { -0.5 } else { 0.0 };
        let corner = |b: &mut Builder, column: usize| {
            let corner = b.index_axis(rois, 1, &column.into())?;
            let scaled = b.mul_scalar(corner, self.spatial_scale.get())?;
            b.add_scalar(scaled, offset)
        };
        let (start, end) = (corner(b, first)?, corner(b, first + 2)?);
        let mut extent = b.sub(end, start)?;
        if !self.half_pixel {
            let unit = b.like(1.0, extent)?;
            extent = b.max(extent, unit)?;
        }
        let bins_value = b.dim_like(bins, extent)?;
        let bin = b.div(extent, bins_value)?;
        let (count, most) = if self.sampling_ratio > 0 {
            (b.like(self.sampling_ratio as f64, bin)?, Dim::constant(self.sampling_ratio))
        } else {
            let count = b.unary(UnaryOp::Ceil, bin)?;
            let whole = b.cast(count, DType::I64)?;
            let most = b.reduce(ReduceOp::Max, whole, &[0], false)?;
            let zero = b.scalar(0.0, DType::I64)?;
            let most = b.max(most, zero)?;
            (count, b.bind_dim(most, "samples", 0)?)
        };
        let dims = [b.dim(rois, 0), bins.clone(), most];
        let over = |b: &mut Builder, v: Value| b.broadcast_in(v, &dims, &[0]);
        let (start, bin, counts) = (over(b, start)?, over(b, bin)?, over(b, count)?);
        let dtype = b.dtype(rois);
        let (p, i) = (b.iota(dtype, &dims, 1)?, b.iota(dtype, &dims, 2)?);
        let exists = b.compare(CompareOp::Lt, i, counts)?;
        let whole = b.mul(p, bin)?;
        let part = b.add_scalar(i, 0.5)?;
        let part = b.mul(part, bin)?;
        let part = b.div(part, counts)?;
        let at = b.add(start, whole)?;
        let at = b.add(at, part)?;
        let greatest = b.dim_like(size, at)?;
        let below = b.compare(CompareOp::Le, at, greatest)?;
        let above = b.compare_scalar(CompareOp::Ge, at, -1.0)?;
        let near = b.binary(BinaryOp::And, above, below)?;
        let near = b.binary(BinaryOp::And, near, exists)?;
        let zero = b.like(0.0, at)?;
        let at = b.select(near, at, zero)?;
        let at = b.max(at, zero)?;
        let last = b.add_scalar(greatest, -1.0)?;
        let at = b.min(at, last)?;
        let low = b.unary(UnaryOp::Floor, at)?;
        let next = b.add_scalar(low, 1.0)?;
        let high = b.min(next, last)?;
        let fraction = b.sub(at, low)?;
        let unit = b.like(1.0, fraction)?;
        let rest = b.sub(unit, fraction)?;
        Ok(Samples { low: (low, rest), high: (high, fraction), near, exists, count })
    }
}

impl CompositeDef for RoiAlign {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, batch) = (operands[0], operands[2]);
        let t = b.type_of(x).clone();
        let dtype = statistics_dtype(t.dtype);
        let rois = b.cast(operands[1], dtype)?;
        let y = self.samples(b, rois, 1, &t.shape[2], &self.height)?;
        let x_samples = self.samples(b, rois, 0, &t.shape[3], &self.width)?;
        let (ys, xs) = (b.shape(y.near), b.shape(x_samples.near));
        // \[r, height, samples, width, samples\].
        let dims = [&ys[0], &ys[1], &ys[2], &xs[1], &xs[2]].map(Dim::clone);
        let rows = |b: &mut Builder, v: Value| b.broadcast_in(v, &dims, &[0, 1, 2]);
        let columns = |b: &mut Builder, v: Value| b.broadcast_in(v, &dims, &[0, 3, 4]);
        let batch = b.cast(batch, DType::I64)?;
        let batch = b.broadcast_in(batch, &dims, &[0])?;
        let both = |b: &mut Builder, of_y: Value, of_x: Value| {
            let (of_y, of_x) = (rows(b, of_y)?, columns(b, of_x)?);
            b.binary(BinaryOp::And, of_y, of_x)
        };
        let near = both(b, y.near, x_samples.near)?;
        let exists = both(b, y.exists, x_samples.exists)?;
        let mut corners = Vec::with_capacity(4);
        for (row, row_weight) in [y.low, y.high] {
            for (column, column_weight) in [x_samples.low, x_samples.high] {
                let mut parts = vec![b.unsqueeze(batch, 5)?];
                for index in [rows(b, row)?, columns(b, column)?] {
                    let index = b.cast(index, DType::I64)?;
                    parts.push(b.unsqueeze(index, 5)?);
                }
                let tuples = b.concat(&parts, 5)?;
                let gather = Gather { axes: vec![0, 2, 3], batch: 0, oob: OutOfBounds::Error, wrap: false };
                let pixel = b.push1(gather, &[x, tuples])?;
                let pixel = b.cast(pixel, dtype)?;
                let (row_weight, column_weight) = (rows(b, row_weight)?, columns(b, column_weight)?);
                let weight = b.mul(row_weight, column_weight)?;
                let weight = b.broadcast_in(weight, &b.shape(pixel), &[0, 1, 2, 3, 4])?;
                corners.push(b.mul(weight, pixel)?);
            }
        }
        let combine = |b: &mut Builder, first: Value, second: Value| match self.mode {
            RoiAlignMode::Average => b.add(first, second),
            RoiAlignMode::Max => b.max(first, second),
        };
        let mut samples = corners[0];
        for corner in &corners[1..] {
            samples = combine(b, samples, *corner)?;
        }
        let all = b.shape(samples);
        let near = b.broadcast_in(near, &all, &[0, 1, 2, 3, 4])?;
        let zero = b.like(0.0, samples)?;
        let samples = b.select(near, samples, zero)?;
        let pooled = match self.mode {
            RoiAlignMode::Average => {
                let sum = b.sum(samples, &[2, 4], false)?;
                let least = b.like(0.0, y.count)?;
                let (rows, columns) = (b.max(y.count, least)?, b.max(x_samples.count, least)?);
                let count = b.mul(rows, columns)?;
                let unit = b.like(1.0, count)?;
                let count = b.max(count, unit)?;
                let count = b.broadcast_in(count, &b.shape(sum), &[0])?;
                b.div(sum, count)?
            }
            RoiAlignMode::Max => {
                let any = b.reduce(ReduceOp::Any, exists, &[2, 4], false)?;
                let exists = b.broadcast_in(exists, &all, &[0, 1, 2, 3, 4])?;
                let lowest = b.like(f64::NEG_INFINITY, samples)?;
                let samples = b.select(exists, samples, lowest)?;
                let greatest = b.reduce(ReduceOp::Max, samples, &[2, 4], false)?;
                let any = b.broadcast_in(any, &b.shape(greatest), &[0, 1, 2])?;
                let zero = b.like(0.0, greatest)?;
                b.select(any, greatest, zero)?
            }
        };
        let pooled = b.transpose(pooled, &[0, 3, 1, 2])?;
        Ok(Values::from_slice(&[b.cast(pooled, t.dtype)?]))
    }
}

impl OpDef for MaxRoiPool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (x, regions) = regions_of_images(cx, "batch index and coordinates", 5)?;
        for size in [&self.height, &self.width] {
            cx.at_most("C2", None, "bins", &Dim::ONE, size)?;
        }
        Ok(one(binned(x, regions, &self.height, &self.width)))
    }
}

impl MaxRoiPool {
    /// Which elements along an axis each bin of each region holds, \[r, bins, size\].
    fn held(
        &self,
        b: &mut Builder,
        rois: Value,
        first: usize,
        size: &Dim,
        bins: &Dim,
    ) -> Result<Value, TypeError> {
        let corner = |b: &mut Builder, column: usize| {
            let corner = b.index_axis(rois, 1, &column.into())?;
            let scaled = b.mul_scalar(corner, self.spatial_scale.get())?;
            // Half away from zero.
            let sign = b.unary(UnaryOp::Sign, scaled)?;
            let half = b.mul_scalar(sign, 0.5)?;
            let shifted = b.add(scaled, half)?;
            b.unary(UnaryOp::Trunc, shifted)
        };
        let (start, end) = (corner(b, first)?, corner(b, first + 2)?);
        let extent = b.sub(end, start)?;
        let extent = b.add_scalar(extent, 1.0)?;
        let unit = b.like(1.0, extent)?;
        let extent = b.max(extent, unit)?;
        let bins_value = b.dim_like(bins, extent)?;
        let bin = b.div(extent, bins_value)?;
        let dims = [b.dim(rois, 0), bins.clone(), size.clone()];
        let (start, bin) = (b.broadcast_in(start, &dims, &[0])?, b.broadcast_in(bin, &dims, &[0])?);
        let dtype = b.dtype(rois);
        let (p, i) = (b.iota(dtype, &dims, 1)?, b.iota(dtype, &dims, 2)?);
        let low = b.mul(p, bin)?;
        let low = b.unary(UnaryOp::Floor, low)?;
        let low = b.add(low, start)?;
        let next = b.add_scalar(p, 1.0)?;
        let high = b.mul(next, bin)?;
        let high = b.unary(UnaryOp::Ceil, high)?;
        let high = b.add(high, start)?;
        let from = b.compare(CompareOp::Ge, i, low)?;
        let below = b.compare(CompareOp::Lt, i, high)?;
        b.binary(BinaryOp::And, from, below)
    }
}

impl CompositeDef for MaxRoiPool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let rois = b.cast(operands[1], statistics_dtype(t.dtype))?;
        let batch = b.index_axis(rois, 1, &Dim::ZERO)?;
        let batch = b.cast(batch, DType::I64)?;
        let images = b.take(operands[0], batch, 0)?;
        let rows = self.held(b, rois, 2, &t.shape[2], &self.height)?;
        let columns = self.held(b, rois, 1, &t.shape[3], &self.width)?;
        let (r, c, h, w) = (b.dim(rois, 0), t.shape[1].clone(), t.shape[2].clone(), t.shape[3].clone());
        let narrowed = |b: &mut Builder, dims: &[Dim], x: (Value, &[usize]), held: (Value, &[usize])| {
            let x = b.broadcast_in(x.0, dims, x.1)?;
            let held = b.broadcast_in(held.0, dims, held.1)?;
            let lowest = b.like(f64::NEG_INFINITY, x)?;
            let kept = b.select(held, x, lowest)?;
            b.reduce(ReduceOp::Max, kept, &[dims.len() - 1], false)
        };
        // \[r, c, h, width, w\], then \[r, c, width, height, h\].
        let dims = [r.clone(), c.clone(), h.clone(), self.width.clone(), w];
        let by_column = narrowed(b, &dims, (images, &[0, 1, 2, 4]), (columns, &[0, 3, 4]))?;
        let by_column = b.transpose(by_column, &[0, 1, 3, 2])?;
        let dims = [r, c, self.width.clone(), self.height.clone(), h];
        let greatest = narrowed(b, &dims, (by_column, &[0, 1, 2, 4]), (rows, &[0, 3, 4]))?;
        let greatest = b.transpose(greatest, &[0, 1, 3, 2])?;
        let (rows, columns) =
            (b.reduce(ReduceOp::Any, rows, &[2], false)?, b.reduce(ReduceOp::Any, columns, &[2], false)?);
        let shape = b.shape(greatest);
        let (rows, columns) =
            (b.broadcast_in(rows, &shape, &[0, 2])?, b.broadcast_in(columns, &shape, &[0, 3])?);
        let any = b.binary(BinaryOp::And, rows, columns)?;
        let zero = b.like(0.0, greatest)?;
        Ok(Values::from_slice(&[b.select(any, greatest, zero)?]))
    }
}
