//! Primitives along axes: reductions, cumulative operations, arg-reductions, sorting.

use super::OpDef;
use crate::dim::Dim;
use crate::dtype::{DType, DTypeClass};
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::types::{Shape, TensorType};
use crate::{names, operation};

names! {
    /// How elements combine.
    pub enum ReduceOp {
        /// The sum; 0 if empty.
        Sum = "reduce_sum",
        /// The product; 1 if empty.
        Prod = "reduce_prod",
        /// The greatest, NaN if any is; −∞ or the type's least if empty.
        Max = "reduce_max",
        /// The least, NaN if any is; ∞ or the type's greatest if empty.
        Min = "reduce_min",
        /// Whether all are true; true if empty.
        All = "reduce_all",
        /// Whether any is true; false if empty.
        Any = "reduce_any",
    }
}

names! {
    /// Running combinations.
    pub enum CumulativeOp {
        /// Running sum.
        Sum = "cum_sum",
        /// Running product.
        Prod = "cum_prod",
        /// Running maximum.
        Max = "cum_max",
        /// Running minimum.
        Min = "cum_min",
    }
}

names! {
    /// Which extreme is looked for.
    pub enum ArgReduceOp {
        /// The index of the greatest; NaN counts as the greatest.
        ArgMax = "arg_max",
        /// The index of the least; NaN counts as the least.
        ArgMin = "arg_min",
    }
}

operation! {
    /// Combines the elements along axes. C1: a number type (all, any: bool). C2: axes increase and are below the rank.
    /// C3: `accum` is a wider or equal type of the same class.
    pub struct Reduce: ReduceOp {
        /// The axes.
        axes: Vec<usize>,
        /// Whether reduced axes stay, with size 1.
        keep_dims: bool,
        /// The type of the accumulator and of the result, where it is not the operand's. Without it, f16, bf16 and
        /// f8 accumulate in f32 and the result is rounded once.
        accum: Option<DType>,
    }
}

operation! {
    /// Sums what a broadcast repeated: the transpose of broadcasting `dims` to the operand's sizes.
    /// C1: a number type. C2: `dims` broadcasts to the operand's sizes.
    pub struct SumTo = "sum_to" {
        /// The result's sizes.
        dims: Vec<Dim>,
    }
}

operation! {
    /// y\[i\] = combination of x\[0..=i\] along an axis. C1: a number type. C2: axis < rank.
    pub struct Cumulative: CumulativeOp {
        /// The axis.
        axis: usize,
        /// Leaves out the element itself (sum 0, product 1, max −∞ … at the start).
        exclusive: bool,
        /// From the end to the start.
        reverse: bool,
    }
}

operation! {
    /// The index (i64) of the extreme along an axis. C1: an ordered type. C2: axis < rank.
    /// C3: the axis is not empty.
    pub struct ArgReduce: ArgReduceOp {
        /// The axis.
        axis: usize,
        /// Whether the axis stays, with size 1.
        keep_dims: bool,
        /// Among equals, the last instead of the first.
        last: bool,
    }
}

operation! {
    /// Sorts operand 0 along an axis, stably, and arranges the other operands in the same order. NaN comes last when
    /// ascending, first when descending. C1: an ordered type. C2: axis < rank. C3: equal sizes.
    pub struct Sort = "sort" {
        /// The axis.
        axis: usize,
        /// From the greatest down.
        descending: bool,
    }
}

operation! {
    /// The k greatest (or least) along an axis, and their indices as i64; among equals, lower indices first.
    /// NaN counts as the greatest. C1: an ordered type. C2: axis < rank. C3: 0 ≤ k ≤ the axis's size.
    pub struct TopK = "top_k" {
        /// How many.
        k: Dim,
        /// The axis.
        axis: usize,
        /// The least instead of the greatest.
        smallest: bool,
        /// In the order of their indices instead of their values.
        unsorted: bool,
    }
}

fn ordered<'a>(cx: &Infer<'a>) -> Result<&'a TensorType, TypeError> {
    cx.of("C1", 0, "an ordered type", |d| {
        !matches!(d.class(), DTypeClass::Complex | DTypeClass::String | DTypeClass::Block)
    })
}

/// The shape with `axes` reduced.
pub(crate) fn reduced_shape(shape: &Shape, axes: &[usize], keep_dims: bool) -> Shape {
    if keep_dims {
        shape.iter().enumerate().map(|(i, d)| if axes.contains(&i) { Dim::ONE } else { d.clone() }).collect()
    } else {
        shape.without(axes)
    }
}

impl OpDef for Reduce {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = match self.op {
            ReduceOp::All | ReduceOp::Any => cx.dtype("C1", 0, DType::Bool)?,
            ReduceOp::Max | ReduceOp::Min => {
                cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?
            }
            _ => cx.number("C1", 0)?,
        };
        cx.axes_in("C2", &self.axes, x.rank())?;
        let dtype = self.accum.unwrap_or(x.dtype);
        let wider = dtype.class() == x.dtype.class() && dtype.bits() >= x.dtype.bits();
        cx.ensure(wider, "C3", None, "accumulation type", format!("{} or wider", x.dtype), dtype)?;
        Ok(one(TensorType::new(dtype, reduced_shape(&x.shape, &self.axes, self.keep_dims))))
    }
}

impl OpDef for SumTo {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.number("C1", 0)?;
        let target = Shape::from(self.dims.as_slice());
        let Some(added) = x.rank().checked_sub(self.dims.len()) else {
            return Err(cx.error("C2", Some(0), "rank", format!("at least {}", self.dims.len()), x.rank()));
        };
        for (from, to) in x.shape[added..].iter().zip(&self.dims) {
            let what = format!("{target} does not broadcast to {}", x.shape);
            cx.equal("C2", Some(0), &what, from, &to.bcast(from))?;
        }
        Ok(one(x.with_shape(target)))
    }
}

impl OpDef for Cumulative {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = match self.op {
            CumulativeOp::Sum | CumulativeOp::Prod => cx.number("C1", 0)?,
            CumulativeOp::Max | CumulativeOp::Min => {
                cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?
            }
        };
        cx.axis_in("C2", self.axis, x.rank())?;
        Ok(one(x.clone()))
    }
}

impl OpDef for ArgReduce {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = ordered(cx)?;
        cx.axis_in("C2", self.axis, x.rank())?;
        cx.at_most("C3", Some(0), "the axis is empty", &Dim::ONE, &x.shape[self.axis])?;
        Ok(one(TensorType::new(DType::I64, reduced_shape(&x.shape, &[self.axis], self.keep_dims))))
    }
}

impl OpDef for Sort {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let x = ordered(cx)?;
        cx.axis_in("C2", self.axis, x.rank())?;
        (0..cx.count())
            .map(|i| {
                cx.same_dims("C3", i, x.dims())?;
                cx.whole_rows(i, false)?;
                cx.operand(i).cloned()
            })
            .collect()
    }
}

impl OpDef for TopK {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = ordered(cx)?;
        cx.axis_in("C2", self.axis, x.rank())?;
        cx.at_most("C3", None, "k is negative", &Dim::ZERO, &self.k)?;
        cx.at_most("C3", Some(0), "k exceeds the axis", &self.k, &x.shape[self.axis])?;
        let values = x.with_shape(x.shape.with_dim(self.axis, self.k.clone()));
        let indices = values.with_dtype(DType::I64);
        Ok(Types::from_iter([values, indices]))
    }
}
