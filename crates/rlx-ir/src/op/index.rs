//! Indexing: gather, scatter, dynamic slices, and operations whose result size depends on values.
//!
//! Of block-quantised operands only a gather of whole rows is defined (CB).

use super::OpDef;
use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

names! {
    /// What happens with an index outside its axis.
    pub enum OutOfBounds {
        /// An error at run time.
        Error = "error",
        /// The nearest index inside.
        Clamp = "clamp",
        /// Gather: the fill value; scatter: the update is dropped.
        Drop = "drop",
    }
}

names! {
    /// How an update meets the element that is there.
    pub enum Combine {
        /// It replaces it; among duplicates the last update wins.
        Replace = "replace",
        /// Sum.
        Add = "add",
        /// Product.
        Mul = "mul",
        /// The greater.
        Max = "max",
        /// The lesser.
        Min = "min",
    }
}

operation! {
    /// Picks elements of `axes` of operand 0 by the index tuples in the last axis of operand 1 (i32 or i64).
    /// x \[b…, d…\], indices \[b…, i…, axes.len()\] give \[b…, i…, the axes of x that are neither batch nor indexed\].
    /// With `oob = drop` a third operand, a scalar, is what absent elements become.
    /// C1: integer indices. C2: axes increase, from `batch` on, below the rank.
    /// C3: the last axis of the indices has one size an indexed axis. C4: batch sizes agree.
    /// C5: the fill value is a scalar of x's type.
    pub struct Gather = "gather" {
        /// The indexed axes of x.
        axes: Vec<usize>,
        /// The number of leading axes that x and indices share.
        batch: usize,
        /// What an index outside does.
        oob: OutOfBounds,
        /// Negative indices count from the end.
        wrap: bool,
    }
}

operation! {
    /// y\[…, i, …\] = x\[…, indices\[…, i, …\], …\] along an axis. With `oob = drop` a third operand is the fill value.
    /// C1: integer indices. C2: axis < rank. C3: equal ranks, and indices no larger than x in the other axes.
    /// C5: the fill value is a scalar of x's type.
    pub struct GatherAlong = "gather_along" {
        /// The axis.
        axis: usize,
        /// What an index outside does.
        oob: OutOfBounds,
        /// Negative indices count from the end.
        wrap: bool,
    }
}

operation! {
    /// Operand 0 with the elements that `gather` would pick by operand 1 combined with operand 2.
    /// Combinations happen in index order. C1 to C4 as `gather`. C5: updates have x's element type (and a combinable
    /// one). C6: updates have the sizes that the gather gives.
    pub struct Scatter = "scatter" {
        /// The indexed axes of x.
        axes: Vec<usize>,
        /// The number of leading axes that x and indices share.
        batch: usize,
        /// How an update meets an element.
        combine: Combine,
        /// What an index outside does.
        oob: OutOfBounds,
        /// Negative indices count from the end.
        wrap: bool,
    }
}

operation! {
    /// Operand 0 with the elements that `gather_along` would pick by operand 1 combined with operand 2.
    /// C1 to C3 as `gather_along`. C5: updates have x's element type. C6: updates have the indices' sizes.
    pub struct ScatterAlong = "scatter_along" {
        /// The axis.
        axis: usize,
        /// How an update meets an element.
        combine: Combine,
        /// What an index outside does.
        oob: OutOfBounds,
        /// Negative indices count from the end.
        wrap: bool,
    }
}

operation! {
    /// The block of operand 0 that begins at the index in operand 1 (integers \[rank\]).
    /// C1: integer starts. C2: one size an axis, not above x's. C3: starts have one element an axis.
    /// C4: `oob` is error or clamp (clamp moves the block inside).
    pub struct DynamicSlice = "dynamic_slice" {
        /// The block's sizes.
        sizes: Vec<Dim>,
        /// What a block outside does.
        oob: OutOfBounds,
    }
}

operation! {
    /// Operand 0 with the block that begins at the index in operand 2 replaced by operand 1. C1, C3, C4 as
    /// `dynamic_slice`. C2: the block has x's element type and rank, and is not larger.
    pub struct DynamicUpdate = "dynamic_update" {
        /// What a block outside does.
        oob: OutOfBounds,
    }
}

operation! {
    /// The indices, i64 \[rank, count\], of the elements that are not zero (NaN is not), in row-major order.
    /// C1: a number type or bool.
    pub struct NonZero = "nonzero" {
        /// The symbol bound to how many there are.
        count: Symbol,
    }
}

operation! {
    /// Non-maximum suppression: boxes f \[b, n, 4\], scores f \[b, c, n\], the most boxes a class (i64 scalar), the
    /// overlap above which a box falls (f scalar), the score that a box must exceed (f scalar) give the chosen
    /// \[batch, class, box\] as i64 \[count, 3\], by batch, class, descending score.
    /// C1: floating-point boxes and scores of one type. C2: ranks 3. C3: sizes agree. C4: scalars.
    pub struct NonMaxSuppression = "non_max_suppression" {
        /// Boxes are \[x_center, y_center, width, height\], not two opposite corners \[y1, x1, y2, x2\].
        center_point: bool,
        /// The symbol bound to how many are chosen.
        count: Symbol,
    }
}

fn gathered(cx: &Infer<'_>, axes: &[usize], batch: usize) -> Result<Shape, TypeError> {
    let x = cx.operand(0)?;
    cx.whole_rows(0, batch < x.rank() && !axes.iter().any(|axis| axis + 1 == x.rank()))?;
    let indices = cx.index("C1", 1)?;
    cx.axes_in("C2", axes, x.rank())?;
    let from_batch = axes.first().is_none_or(|a| *a >= batch) && batch <= x.rank();
    cx.ensure(from_batch, "C2", None, "indexed axes begin after the batch axes", batch, format!("{axes:?}"))?;
    cx.rank_at_least("C3", 1, batch + 1)?;
    let tuple = indices.rank() - 1;
    cx.equal("C3", Some(1), "length of the index tuples", &axes.len().into(), &indices.shape[tuple])?;
    for i in 0..batch {
        cx.equal("C4", Some(1), "batch sizes differ", &x.shape[i], &indices.shape[i])?;
    }
    let mut shape = Shape::from(&indices.shape[..tuple]);
    for (i, dim) in x.shape.iter().enumerate().skip(batch) {
        if !axes.contains(&i) {
            shape.push(dim.clone());
        }
    }
    Ok(shape)
}

fn along(cx: &Infer<'_>, axis: usize) -> Result<Shape, TypeError> {
    let x = cx.operand(0)?;
    cx.whole_rows(0, false)?;
    cx.index("C1", 1)?;
    cx.axis_in("C2", axis, x.rank())?;
    let indices = cx.rank("C3", 1, x.rank())?;
    for (i, (of_indices, of_x)) in indices.shape.iter().zip(x.shape.iter()).enumerate() {
        if i != axis {
            cx.at_most("C3", Some(1), &format!("size of axis {i}"), of_indices, of_x)?;
        }
    }
    Ok(indices.shape.clone())
}

/// Operands 0 and 1, and the fill value that `drop` needs.
fn fill_operand(cx: &Infer<'_>, oob: OutOfBounds) -> Result<(), TypeError> {
    if oob != OutOfBounds::Drop {
        return cx.arity(2);
    }
    cx.arity(3)?;
    cx.rank("C5", 2, 0)?;
    cx.same_dtype("C5", 2, 0)
}

fn combinable(cx: &Infer<'_>, combine: Combine) -> Result<(), TypeError> {
    cx.same_dtype("C5", 2, 0)?;
    cx.whole_rows(0, false)?;
    let dtype = cx.operand(0)?.dtype;
    let accepts = match combine {
        Combine::Replace => true,
        Combine::Add | Combine::Mul => dtype.is_int() || dtype.is_float() || dtype.is_complex(),
        Combine::Max | Combine::Min => dtype.is_int() || dtype.is_float(),
    };
    cx.ensure(
        accepts,
        "C5",
        Some(0),
        "element type",
        format!("one that `{}` combines", combine.name()),
        dtype,
    )
}

impl OpDef for Gather {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        fill_operand(cx, self.oob)?;
        Ok(one(cx.operand(0)?.with_shape(gathered(cx, &self.axes, self.batch)?)))
    }
}

impl OpDef for GatherAlong {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        fill_operand(cx, self.oob)?;
        Ok(one(cx.operand(0)?.with_shape(along(cx, self.axis)?)))
    }
}

impl OpDef for Scatter {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let shape = gathered(cx, &self.axes, self.batch)?;
        combinable(cx, self.combine)?;
        cx.same_dims("C6", 2, &shape)?;
        Ok(one(cx.operand(0)?.clone()))
    }
}

impl OpDef for ScatterAlong {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let shape = along(cx, self.axis)?;
        combinable(cx, self.combine)?;
        cx.same_dims("C6", 2, &shape)?;
        Ok(one(cx.operand(0)?.clone()))
    }
}

fn block(cx: &Infer<'_>, sizes: &[Dim], starts: usize, oob: OutOfBounds) -> Result<(), TypeError> {
    let x = cx.operand(0)?;
    cx.whole_rows(0, false)?;
    cx.ensure(sizes.len() == x.rank(), "C2", None, "number of sizes", x.rank(), sizes.len())?;
    for (i, (size, dim)) in sizes.iter().zip(x.shape.iter()).enumerate() {
        cx.at_most("C2", None, "size is negative", &Dim::ZERO, size)?;
        cx.at_most("C2", Some(0), &format!("block size of axis {i}"), size, dim)?;
    }
    cx.index("C1", starts)?;
    cx.same_dims("C3", starts, &[x.rank().into()])?;
    cx.ensure(oob != OutOfBounds::Drop, "C4", None, "oob", "error or clamp", oob.name())
}

impl OpDef for DynamicSlice {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        block(cx, &self.sizes, 1, self.oob)?;
        Ok(one(cx.operand(0)?.with_shape(self.sizes.as_slice())))
    }
}

impl OpDef for DynamicUpdate {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        cx.same_dtype("C2", 1, 0)?;
        block(cx, cx.operand(1)?.dims(), 2, self.oob)?;
        Ok(one(cx.operand(0)?.clone()))
    }
}

impl OpDef for NonZero {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.of("C1", 0, "a number type or bool", |d| {
            d.is_int() || d.is_float() || d.is_complex() || d == DType::Bool
        })?;
        Ok(one(TensorType::new(DType::I64, vec![x.rank().into(), self.count.clone().into()])))
    }
}

impl OpDef for NonMaxSuppression {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(5)?;
        let boxes = cx.float("C1", 0)?;
        let scores = cx.float("C1", 1)?;
        cx.rank("C2", 0, 3)?;
        cx.rank("C2", 1, 3)?;
        cx.same_dtype("C1", 1, 0)?;
        cx.equal("C3", Some(0), "box coordinates", &4.into(), &boxes.shape[2])?;
        cx.equal("C3", Some(1), "batch sizes differ", &boxes.shape[0], &scores.shape[0])?;
        cx.equal("C3", Some(1), "numbers of boxes differ", &boxes.shape[1], &scores.shape[2])?;
        cx.dtype("C4", 2, DType::I64)?;
        for i in 2..5 {
            cx.rank("C4", i, 0)?;
        }
        cx.same_dtype("C4", 3, 0)?;
        cx.same_dtype("C4", 4, 0)?;
        Ok(one(TensorType::new(DType::I64, vec![self.count.clone().into(), 3.into()])))
    }
}
