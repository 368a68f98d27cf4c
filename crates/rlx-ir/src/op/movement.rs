//! Movement: the same elements in another arrangement.
//!
//! Block-quantised operands are moved along their outer axes only (CB), so that blocks stay whole.

use super::OpDef;
use crate::dim::Dim;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::Shape;

operation! {
    /// The same elements in row-major order with other sizes. C1: sizes are not negative. C2: element counts agree.
    pub struct Reshape = "reshape" {
        /// The result's sizes.
        dims: Vec<Dim>,
    }
}

operation! {
    /// Axis i of the result is axis perm\[i\] of the operand. C1: perm is a permutation of the axes.
    pub struct Transpose = "transpose" {
        /// The permutation.
        perm: Vec<usize>,
    }
}

operation! {
    /// Repeats axes of size 1, and adds axes in front. C1: the rank does not shrink.
    /// C2: aligned at the last axis, each size of the operand is 1 or the result's.
    pub struct Broadcast = "broadcast" {
        /// The result's sizes.
        dims: Vec<Dim>,
    }
}

operation! {
    /// y\[i\] = x\[start + step · i\] along each axis. C1: one start, size and step an axis, no step 0.
    /// C2: every index lies in the operand (an empty result reads nothing).
    pub struct Slice = "slice" {
        /// First index along each axis.
        starts: Vec<Dim>,
        /// Size of the result along each axis.
        sizes: Vec<Dim>,
        /// Step along each axis, of either sign.
        steps: Vec<i64>,
    }
}

operation! {
    /// Adds elements of a value (operand 1, a scalar) before and after each axis. C1: the value is a scalar of the
    /// operand's type. C2: one count an axis, not negative.
    pub struct Pad = "pad" {
        /// Elements before each axis.
        low: Vec<Dim>,
        /// Elements after each axis.
        high: Vec<Dim>,
    }
}

operation! {
    /// The operands one after the other along an axis. C0: at least one operand. C1: axis < rank.
    /// C2: one element type. C3: equal sizes but along the axis.
    pub struct Concat = "concat" {
        /// The axis.
        axis: usize,
    }
}

operation! {
    /// Reverses the order along axes. C1: axes increase and are below the rank.
    pub struct Reverse = "reverse" {
        /// The axes.
        axes: Vec<usize>,
    }
}

impl OpDef for Reshape {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let target = Shape::from(self.dims.as_slice());
        for dim in &self.dims {
            cx.at_most("C1", None, "size is negative", &Dim::ZERO, dim)?;
        }
        let (from, to) = (x.shape.element_count(), target.element_count());
        let what = format!("element counts differ: input {} has {from}, target {target} has {to}", x.shape);
        cx.equal("C2", Some(0), &what, &to, &from)?;
        cx.whole_rows(0, self.dims.last() == x.shape.last())?;
        Ok(one(x.with_shape(target)))
    }
}

impl OpDef for Transpose {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        let is_permutation = sorted.iter().copied().eq(0..x.rank());
        cx.ensure(
            is_permutation,
            "C1",
            Some(0),
            "not a permutation of the axes",
            format!("a permutation of 0..{}", x.rank()),
            format!("{:?}", self.perm),
        )?;
        cx.whole_rows(0, self.perm.last().is_none_or(|last| *last + 1 == x.rank()))?;
        Ok(one(x.with_shape(self.perm.iter().map(|p| x.shape[*p].clone()).collect::<Shape>())))
    }
}

impl OpDef for Broadcast {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let target = Shape::from(self.dims.as_slice());
        let Some(added) = self.dims.len().checked_sub(x.rank()) else {
            return Err(cx.error("C1", Some(0), "the rank shrinks", &target, &x.shape));
        };
        cx.whole_rows(0, self.dims.last() == x.shape.last())?;
        for (from, to) in x.shape.iter().zip(&self.dims[added..]) {
            if from.as_const() == Some(1) {
                continue;
            }
            let what = format!("{} does not broadcast to {target}", x.shape);
            cx.equal("C2", Some(0), &what, to, &from.bcast(to))?;
            // A known size above 1 must be the result's: bcast(3, n) is 3 whatever n is.
            if from.as_const().is_some() {
                cx.equal("C2", Some(0), &what, to, from)?;
            }
        }
        Ok(one(x.with_shape(target)))
    }
}

impl OpDef for Slice {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        for (what, n) in
            [("starts", self.starts.len()), ("sizes", self.sizes.len()), ("steps", self.steps.len())]
        {
            cx.ensure(n == x.rank(), "C1", None, &format!("number of {what}"), x.rank(), n)?;
        }
        for (axis, dim) in x.shape.iter().enumerate() {
            let (start, size, step) = (&self.starts[axis], &self.sizes[axis], self.steps[axis]);
            cx.ensure(step != 0, "C1", None, &format!("step of axis {axis}"), "not 0", 0)?;
            cx.at_most("C2", None, &format!("size of axis {axis} is negative"), &Dim::ZERO, size)?;
            if size.as_const() == Some(0) {
                continue;
            }
            let last = start + (size - 1) * step;
            let (least, greatest) = if step > 0 { (start, &last) } else { (&last, start) };
            let what = format!("slice of axis {axis} leaves {dim}");
            // An empty slice reads nothing; for a size that may be 0 the ends may be one step outside.
            let slack = size.as_const().map_or(Dim::constant(step.saturating_abs()), |_| Dim::ZERO);
            cx.at_most("C2", Some(0), &what, &(Dim::ZERO - &slack), least)?;
            cx.at_most("C2", Some(0), &what, greatest, &(dim.clone() - 1 + &slack))?;
        }
        let ends = (self.starts.last(), self.sizes.last(), self.steps.last());
        cx.whole_rows(0, ends == (Some(&Dim::ZERO), x.shape.last(), Some(&1)))?;
        Ok(one(x.with_shape(self.sizes.as_slice())))
    }
}

impl OpDef for Pad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.operand(0)?;
        cx.rank("C1", 1, 0)?;
        cx.same_dtype("C1", 1, 0)?;
        cx.whole_rows(0, false)?;
        for counts in [&self.low, &self.high] {
            cx.ensure(counts.len() == x.rank(), "C2", None, "number of counts", x.rank(), counts.len())?;
            for count in counts {
                cx.at_most("C2", None, "negative padding", &Dim::ZERO, count)?;
            }
        }
        let dims = x.shape.iter().zip(&self.low).zip(&self.high).map(|((d, l), h)| d + l + h);
        Ok(one(x.with_shape(dims.collect::<Shape>())))
    }
}

impl OpDef for Concat {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let first = cx.operand(0)?;
        cx.axis_in("C1", self.axis, first.rank())?;
        cx.whole_rows(0, self.axis + 1 < first.rank())?;
        let mut total = first.shape[self.axis].clone();
        for i in 1..cx.count() {
            cx.same_dtype("C2", i, 0)?;
            let other = cx.rank("C3", i, first.rank())?;
            let along = other.shape[self.axis].clone();
            cx.same_dims("C3", i, &first.shape.with_dim(self.axis, along.clone()))?;
            total = total + along;
        }
        Ok(one(first.with_shape(first.shape.with_dim(self.axis, total))))
    }
}

impl OpDef for Reverse {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        cx.axes_in("C1", &self.axes, x.rank())?;
        cx.whole_rows(0, !self.axes.iter().any(|axis| axis + 1 == x.rank()))?;
        Ok(one(x.clone()))
    }
}
