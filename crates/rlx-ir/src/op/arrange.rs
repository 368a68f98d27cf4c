//! Rearrangements built on movement and indexing: blocks to channels and back, repetition, rotation, padding by what
//! is there, cropping about the centre, one-hot vectors, reversal of sequences.

use super::elementwise::{BinaryOp, CompareOp};
use super::index::{GatherAlong, OutOfBounds};
use super::unfold::counter;
use super::{Axis, CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

names! {
    /// How channels number the positions of a block.
    pub enum BlockOrder {
        /// Channel (position, c): depth, column, row.
        Dcr = "dcr",
        /// Channel (c, position): column, row, depth (PyTorch pixel_shuffle).
        Crd = "crd",
    }
}

operation! {
    /// \[n, c · block², h, w\] to \[n, c, h · block, w · block\]: channels become blocks of pixels.
    /// C1: rank 4. C2: block ≥ 1. C3: block² divides the channels.
    pub struct DepthToSpace = "depth_to_space" {
        /// The side of a block.
        block: i64,
        /// How channels number the positions of a block.
        order: BlockOrder,
    }
}

operation! {
    /// \[n, c, h · block, w · block\] to \[n, c · block², h, w\]: the converse of `depth_to_space`.
    /// C1: rank 4. C2: block ≥ 1. C3: block divides h and w.
    pub struct SpaceToDepth = "space_to_depth" {
        /// The side of a block.
        block: i64,
        /// How channels number the positions of a block.
        order: BlockOrder,
    }
}

operation! {
    /// The whole tensor repeated along each axis (numpy tile). C1: one count an axis, not negative.
    pub struct Tile = "tile" {
        /// How often, along each axis.
        repeats: Vec<Dim>,
    }
}

operation! {
    /// Each element repeated along an axis (numpy repeat). C1: −rank ≤ axis < rank. C2: the count is not negative.
    pub struct RepeatElements = "repeat_elements" {
        /// How often.
        repeats: Dim,
        /// The axis.
        axis: Axis,
    }
}

operation! {
    /// y\[(i + shift) mod size\] = x\[i\] along each of the axes (numpy roll). C1: one shift an axis; axes increase and
    /// are below the rank.
    pub struct Roll = "roll" {
        /// How far.
        shifts: Vec<Dim>,
        /// The axes.
        axes: Vec<usize>,
    }
}

names! {
    /// Where padding comes from.
    pub enum PadFromOp {
        /// The mirror image without the edge: c b | a b c | b a.
        Reflect = "pad_reflect",
        /// The mirror image with the edge: b a | a b c | c b.
        Symmetric = "pad_symmetric",
        /// The edge: a a | a b c | c c.
        Edge = "pad_edge",
        /// The other end: b c | a b c | a b.
        Wrap = "pad_wrap",
    }
}

operation! {
    /// Adds elements around each axis that continue the tensor; negative counts crop. Padding may be longer than the
    /// axis: the pattern repeats. C1: one count before and after an axis. C2: sizes are not negative, and an empty
    /// axis stays empty.
    pub struct PadFrom: PadFromOp {
        /// Elements before each axis.
        low: Vec<Dim>,
        /// Elements after each axis.
        high: Vec<Dim>,
    }
}

operation! {
    /// Axes cropped or padded with zeros about the centre to given sizes; an odd rest is taken or added at the end.
    /// C1: axes increase and are below the rank, one size each, not negative. C2: a number type or bool.
    pub struct CenterCropPad = "center_crop_pad" {
        /// The axes.
        axes: Vec<usize>,
        /// Their sizes.
        sizes: Vec<Dim>,
    }
}

operation! {
    /// A new axis at `axis` in which `on` (operand 2) stands at each index (operand 0) and `off` (operand 1) elsewhere.
    /// Negative indices count from the end; others outside give `off` only. C1: integer indices.
    /// C2: off and on are scalars of one type. C3: −rank − 1 ≤ axis ≤ rank.
    pub struct OneHot = "one_hot" {
        /// The size of the new axis.
        depth: Dim,
        /// Its place in the result.
        axis: Axis,
    }
}

operation! {
    /// x with the first `lengths` (operand 1, i64 \[batch\]) elements along the time axis reversed, for each index of
    /// the batch axis. C1: axes are below the rank and differ. C2: lengths are i64, one a batch index.
    pub struct ReverseSequence = "reverse_sequence" {
        /// The axis of batches.
        batch_axis: usize,
        /// The axis of time.
        time_axis: usize,
    }
}

fn block_of(cx: &Infer<'_>, block: i64) -> Result<(&'static str, Dim), TypeError> {
    cx.rank("C1", 0, 4)?;
    cx.ensure(block >= 1, "C2", None, "block", "at least 1", block)?;
    Ok(("C3", block.into()))
}

impl OpDef for DepthToSpace {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (label, block) = block_of(cx, self.block)?;
        let x = cx.operand(0)?;
        let area = &block * &block;
        let rest = x.shape[1].modulo(&area);
        cx.equal(label, Some(0), "channels that make no whole block", &Dim::ZERO, &rest)?;
        Ok(one(x.with_shape(vec![
            x.shape[0].clone(),
            x.shape[1].floor_div(&area),
            &x.shape[2] * &block,
            &x.shape[3] * &block,
        ])))
    }
}

impl CompositeDef for DepthToSpace {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shape = b.shape(operands[0]);
        let (n, h, w) = (shape[0].clone(), shape[2].clone(), shape[3].clone());
        let block = Dim::from(self.block);
        let c = shape[1].floor_div(&(&block * &block));
        let (split, perm) = match self.order {
            BlockOrder::Dcr => ([&n, &block, &block, &c, &h, &w].map(Dim::clone), [0usize, 3, 4, 1, 5, 2]),
            BlockOrder::Crd => ([&n, &c, &block, &block, &h, &w].map(Dim::clone), [0, 1, 4, 2, 5, 3]),
        };
        let blocks = b.reshape(operands[0], &split)?;
        let pixels = b.transpose(blocks, &perm)?;
        let y = b.reshape(pixels, &[n, c, h * &block, w * &block])?;
        Ok(Values::from_slice(&[y]))
    }
}

impl OpDef for SpaceToDepth {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let (label, block) = block_of(cx, self.block)?;
        let x = cx.operand(0)?;
        for axis in 2..4 {
            let rest = x.shape[axis].modulo(&block);
            cx.equal(label, Some(0), "pixels that make no whole block", &Dim::ZERO, &rest)?;
        }
        Ok(one(x.with_shape(vec![
            x.shape[0].clone(),
            &x.shape[1] * &(&block * &block),
            x.shape[2].floor_div(&block),
            x.shape[3].floor_div(&block),
        ])))
    }
}

impl CompositeDef for SpaceToDepth {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shape = b.shape(operands[0]);
        let block = Dim::from(self.block);
        let (n, c) = (shape[0].clone(), shape[1].clone());
        let (h, w) = (shape[2].floor_div(&block), shape[3].floor_div(&block));
        let split = [&n, &c, &h, &block, &w, &block].map(Dim::clone);
        let blocks = b.reshape(operands[0], &split)?;
        let perm = match self.order {
            BlockOrder::Dcr => [0, 3, 5, 1, 2, 4],
            BlockOrder::Crd => [0, 1, 3, 5, 2, 4],
        };
        let channels = b.transpose(blocks, &perm)?;
        let y = b.reshape(channels, &[n, c * &(&block * &block), h, w])?;
        Ok(Values::from_slice(&[y]))
    }
}

impl OpDef for Tile {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let n = self.repeats.len();
        cx.ensure(n == x.rank(), "C1", None, "number of counts", x.rank(), n)?;
        for repeats in &self.repeats {
            cx.at_most("C1", None, "count is negative", &Dim::ZERO, repeats)?;
        }
        Ok(one(x.with_shape(x.shape.iter().zip(&self.repeats).map(|(d, r)| d * r).collect::<Shape>())))
    }
}

impl CompositeDef for Tile {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shape = b.shape(operands[0]);
        let pairs = |first: &dyn Fn(usize) -> Dim| -> Vec<Dim> {
            (0..shape.rank()).flat_map(|i| [first(i), shape[i].clone()]).collect()
        };
        let split = b.reshape(operands[0], &pairs(&|_| Dim::ONE))?;
        let repeated = b.broadcast_to(split, &pairs(&|i| self.repeats[i].clone()))?;
        let dims: Vec<Dim> = shape.iter().zip(&self.repeats).map(|(d, r)| d * r).collect();
        Ok(Values::from_slice(&[b.reshape(repeated, &dims)?]))
    }
}

impl OpDef for RepeatElements {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let axis = self.axis.resolve(cx, "C1", x.rank())?;
        cx.at_most("C2", None, "count is negative", &Dim::ZERO, &self.repeats)?;
        Ok(one(x.with_shape(x.shape.with_dim(axis, &x.shape[axis] * &self.repeats))))
    }
}

impl CompositeDef for RepeatElements {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shape = b.shape(operands[0]);
        let axis = self.axis.of_rank(shape.rank()).unwrap_or(0);
        let split = b.unsqueeze(operands[0], axis + 1)?;
        let mut dims = shape.to_vec();
        dims.insert(axis + 1, self.repeats.clone());
        let repeated = b.broadcast_to(split, &dims)?;
        let dims = shape.with_dim(axis, &shape[axis] * &self.repeats);
        Ok(Values::from_slice(&[b.reshape(repeated, &dims)?]))
    }
}

impl OpDef for Roll {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        cx.axes_in("C1", &self.axes, x.rank())?;
        let (shifts, axes) = (self.shifts.len(), self.axes.len());
        cx.ensure(shifts == axes, "C1", None, "number of shifts", axes, shifts)?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for Roll {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let mut x = operands[0];
        for (axis, shift) in self.axes.iter().zip(&self.shifts) {
            let size = b.dim(x, *axis);
            // An empty axis has no remainder.
            let shift = shift.modulo(&size.max(&Dim::ONE));
            let start = size.clone() - &shift;
            let shift = shift.min(&size);
            let (head, tail) = match size.as_const() {
                Some(0) => continue,
                _ => (
                    b.slice_axis(x, *axis, &start, &shift)?,
                    b.slice_axis(x, *axis, &Dim::ZERO, &(&size - &shift))?,
                ),
            };
            x = b.concat(&[head, tail], *axis)?;
        }
        Ok(Values::from_slice(&[x]))
    }
}

impl OpDef for PadFrom {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        for counts in [&self.low, &self.high] {
            cx.ensure(counts.len() == x.rank(), "C1", None, "number of counts", x.rank(), counts.len())?;
        }
        let mut shape = Shape::scalar();
        for ((size, low), high) in x.shape.iter().zip(&self.low).zip(&self.high) {
            let padded = size + low + high;
            cx.at_most("C2", None, "size is negative", &Dim::ZERO, &padded)?;
            cx.at_most("C2", Some(0), "an empty axis has nothing to pad with", &padded.min(&Dim::ONE), size)?;
            shape.push(padded);
        }
        Ok(one(x.with_shape(shape)))
    }
}

impl PadFrom {
    /// The index in an axis of `size` elements that each of `padded` positions continues.
    fn source(&self, b: &mut Builder, size: &Dim, padded: &Dim, low: &Dim) -> Result<Value, TypeError> {
        let position = counter(b, std::slice::from_ref(padded), 0, 1)?;
        let low = b.dim_like(low, position)?;
        let i = b.sub(position, low)?;
        let last = size - 1;
        let limit = b.dim_like(&last, i)?;
        let zero = b.like(0.0, i)?;
        let period = match self.op {
            PadFromOp::Edge => {
                let from_zero = b.max(i, zero)?;
                return b.min(from_zero, limit);
            }
            PadFromOp::Wrap => size.clone(),
            // A single element mirrors to itself.
            PadFromOp::Reflect => (last.clone() * 2).max(&Dim::ONE),
            PadFromOp::Symmetric => size * 2,
        };
        let period = b.dim_like(&period, i)?;
        let remainder = b.binary(BinaryOp::Rem, i, period)?;
        let positive = b.add(remainder, period)?;
        let phase = b.binary(BinaryOp::Rem, positive, period)?;
        if self.op == PadFromOp::Wrap {
            return Ok(phase);
        }
        let mut back = b.sub(period, phase)?;
        if self.op == PadFromOp::Symmetric {
            back = b.add_scalar(back, -1.0)?;
        }
        b.min(phase, back)
    }
}

impl CompositeDef for PadFrom {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let mut x = operands[0];
        for axis in 0..b.rank(x) {
            let (low, high) = (&self.low[axis], &self.high[axis]);
            if (low, high) == (&Dim::ZERO, &Dim::ZERO) {
                continue;
            }
            let size = b.dim(x, axis);
            let padded = &size + low + high;
            let source = self.source(b, &size, &padded, low)?;
            x = b.take(x, source, axis)?;
        }
        Ok(Values::from_slice(&[x]))
    }
}

impl OpDef for CenterCropPad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.of("C2", 0, "a number type or bool", |d| {
            d.is_int() || d.is_float() || d.is_complex() || d == DType::Bool
        })?;
        cx.axes_in("C1", &self.axes, x.rank())?;
        let (sizes, axes) = (self.sizes.len(), self.axes.len());
        cx.ensure(sizes == axes, "C1", None, "number of sizes", axes, sizes)?;
        let mut shape = x.shape.clone();
        for (axis, size) in self.axes.iter().zip(&self.sizes) {
            cx.at_most("C1", None, "size is negative", &Dim::ZERO, size)?;
            shape = shape.with_dim(*axis, size.clone());
        }
        Ok(one(x.with_shape(shape)))
    }
}

impl CompositeDef for CenterCropPad {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let mut x = operands[0];
        for (axis, to) in self.axes.iter().zip(&self.sizes) {
            let from = b.dim(x, *axis);
            let kept = from.min(to);
            let cut = (from.clone() - &kept).floor_div(&2.into());
            x = b.slice_axis(x, *axis, &cut, &kept)?;
            let mut low = vec![Dim::ZERO; b.rank(x)];
            let mut high = low.clone();
            let missing = to - &kept;
            low[*axis] = missing.floor_div(&2.into());
            high[*axis] = missing - &low[*axis];
            x = b.pad(x, &low, &high, 0.0)?;
        }
        Ok(Values::from_slice(&[x]))
    }
}

impl OpDef for OneHot {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let indices = cx.int("C1", 0)?;
        let off = cx.rank("C2", 1, 0)?;
        cx.same_type("C2", 2, 1)?;
        let axis = self.axis.resolve(cx, "C3", indices.rank() + 1)?;
        let mut dims = indices.shape.to_vec();
        dims.insert(axis, self.depth.clone());
        Ok(one(TensorType::new(off.dtype, dims)))
    }
}

impl CompositeDef for OneHot {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (indices, off, on) = (operands[0], operands[1], operands[2]);
        let axis = self.axis.of_rank(b.rank(indices) + 1).unwrap_or(0);
        let indices = b.cast(indices, DType::I64)?;
        let depth = b.dim_like(&self.depth, indices)?;
        let shifted = b.add(indices, depth)?;
        let negative = b.compare_scalar(CompareOp::Lt, indices, 0.0)?;
        let indices = b.select(negative, shifted, indices)?;
        let mut dims = b.shape(indices).to_vec();
        dims.insert(axis, self.depth.clone());
        let others: Vec<usize> = (0..dims.len()).filter(|i| *i != axis).collect();
        let indices = b.broadcast_in(indices, &dims, &others)?;
        let position = counter(b, &dims, axis, 1)?;
        let hot = b.compare(CompareOp::Eq, indices, position)?;
        let (on, off) = (b.broadcast_to(on, &dims)?, b.broadcast_to(off, &dims)?);
        Ok(Values::from_slice(&[b.select(hot, on, off)?]))
    }
}

impl OpDef for ReverseSequence {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.operand(0)?;
        cx.axis_in("C1", self.batch_axis, x.rank())?;
        cx.axis_in("C1", self.time_axis, x.rank())?;
        let differ = self.batch_axis != self.time_axis;
        cx.ensure(differ, "C1", None, "axes", "a batch axis and another", self.time_axis)?;
        cx.dtype("C2", 1, DType::I64)?;
        cx.same_dims("C2", 1, std::slice::from_ref(&x.shape[self.batch_axis]))?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for ReverseSequence {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dims = b.shape(operands[0]);
        let time = counter(b, &dims, self.time_axis, 1)?;
        let length = b.broadcast_in(operands[1], &dims, &[self.batch_axis])?;
        let last = b.add_scalar(length, -1.0)?;
        let mirrored = b.sub(last, time)?;
        let reversed = b.compare(CompareOp::Lt, time, length)?;
        let source = b.select(reversed, mirrored, time)?;
        let pick = GatherAlong { axis: self.time_axis, oob: OutOfBounds::Error, wrap: false };
        Ok(Values::from_slice(&[b.push1(pick, &[operands[0], source])?]))
    }
}
