//! Contractions: dot products and convolutions.

use super::OpDef;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// Sums of products over contracted axes: the result's axes are the batch axes, then the left free axes, then
    /// the right free axes. Products are not rounded on their own; an empty sum is 0.
    /// C1: number types, the same on both sides. C2: axis lists of one length, distinct, below the rank.
    /// C3: batch sizes agree. C4: contracted sizes agree. C5: `accum` is a type of the operands' class.
    pub struct Dot = "dot" {
        /// Batch axes on the left.
        lhs_batch: Vec<usize>,
        /// Batch axes on the right, in the same order.
        rhs_batch: Vec<usize>,
        /// Contracted axes on the left.
        lhs_contract: Vec<usize>,
        /// Contracted axes on the right, in the same order.
        rhs_contract: Vec<usize>,
        /// The accumulator's type; without it f32 for narrower floats, else the operands' type.
        accum: Option<DType>,
        /// The result's type; without it the operands' type.
        out: Option<DType>,
    }
}

operation! {
    /// The same over 8-bit integers of either signedness on each side, exact in i32 (which wraps).
    /// C1: i8 or u8 operands. C2, C3, C4: as `dot`.
    pub struct IntegerDot = "integer_dot" {
        /// Batch axes on the left.
        lhs_batch: Vec<usize>,
        /// Batch axes on the right, in the same order.
        rhs_batch: Vec<usize>,
        /// Contracted axes on the left.
        lhs_contract: Vec<usize>,
        /// Contracted axes on the right, in the same order.
        rhs_contract: Vec<usize>,
    }
}

operation! {
    /// Convolution (cross-correlation) over any number of spatial axes: x \[n, c, s…\], w \[o, c/groups, k…\] give
    /// \[n, o, t…\] with y\[n, o, t\] = Σ x'\[n, c, t·stride + k·rhs_dilation\] · w\[o, c, k\], where x' is x with
    /// lhs_dilation − 1 zeros between neighbours, then padded with zeros.
    /// C1: one number type. C2: equal ranks of at least 2. C3: one stride, padding and dilation a spatial axis.
    /// C4: strides and dilations are at least 1. C5: groups divide both channel counts, and w has c/groups channels.
    /// C6: padding may be negative (a crop), but not below −size.
    pub struct Conv = "conv" {
        /// Strides.
        strides: Vec<i64>,
        /// Zeros before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Distance of neighbours in the dilated input (1: none).
        lhs_dilation: Vec<i64>,
        /// Distance of neighbours in the dilated kernel (1: none).
        rhs_dilation: Vec<i64>,
        /// Channel groups.
        groups: usize,
        /// The accumulator's type, as for `dot`.
        accum: Option<DType>,
        /// The result's type; without it the operands' type.
        out: Option<DType>,
    }
}

impl Dot {
    /// A plain matrix product of the last two axes, the others being batch: `[b…, m, k] · [b…, k, n]`.
    pub fn matmul(rank: usize) -> Dot {
        Dot::along(rank.saturating_sub(2), rank.saturating_sub(1), rank.saturating_sub(2))
    }

    /// Axis `lhs` of one side contracted with axis `rhs` of the other; the first `batch` axes of both are batch.
    pub fn along(batch: usize, lhs: usize, rhs: usize) -> Dot {
        let batch: Vec<usize> = (0..batch).collect();
        Dot {
            lhs_batch: batch.clone(),
            rhs_batch: batch,
            lhs_contract: vec![lhs],
            rhs_contract: vec![rhs],
            accum: None,
            out: None,
        }
    }
}

struct DotAxes<'a> {
    lhs_batch: &'a [usize],
    rhs_batch: &'a [usize],
    lhs_contract: &'a [usize],
    rhs_contract: &'a [usize],
}

impl DotAxes<'_> {
    fn shape(&self, cx: &Infer<'_>) -> Result<Shape, TypeError> {
        let (lhs, rhs) = (cx.operand(0)?, cx.operand(1)?);
        for (what, left, right) in
            [("batch", self.lhs_batch, self.rhs_batch), ("contracted", self.lhs_contract, self.rhs_contract)]
        {
            let same = left.len() == right.len();
            cx.ensure(same, "C2", None, &format!("number of {what} axes"), left.len(), right.len())?;
        }
        for (operand, t, batch, contract) in
            [(0, lhs, self.lhs_batch, self.lhs_contract), (1, rhs, self.rhs_batch, self.rhs_contract)]
        {
            let mut seen: Vec<usize> = batch.iter().chain(contract).copied().collect();
            seen.sort_unstable();
            let distinct = seen.windows(2).all(|w| w[0] != w[1]) && seen.last().is_none_or(|l| *l < t.rank());
            let expected = format!("distinct axes below {}", t.rank());
            cx.ensure(
                distinct,
                "C2",
                Some(operand),
                "batch and contracted axes",
                expected,
                format!("{seen:?}"),
            )?;
        }
        for (label, what, left, right) in [
            ("C3", "batch sizes differ", self.lhs_batch, self.rhs_batch),
            ("C4", "contracted sizes differ", self.lhs_contract, self.rhs_contract),
        ] {
            for (i, j) in left.iter().zip(right) {
                let what = format!("{what} (axis {i} of {lhs}, axis {j} of {rhs})");
                cx.equal(label, Some(1), &what, &lhs.shape[*i], &rhs.shape[*j])?;
            }
        }
        let free = |t: &TensorType, batch: &[usize], contract: &[usize]| {
            let t = t.clone();
            let taken: Vec<usize> = batch.iter().chain(contract).copied().collect();
            t.shape.without(&taken)
        };
        let mut shape: Shape = self.lhs_batch.iter().map(|i| lhs.shape[*i].clone()).collect();
        for dim in free(lhs, self.lhs_batch, self.lhs_contract).iter() {
            shape.push(dim.clone());
        }
        for dim in free(rhs, self.rhs_batch, self.rhs_contract).iter() {
            shape.push(dim.clone());
        }
        Ok(shape)
    }
}

fn accumulator(
    cx: &Infer<'_>,
    dtype: DType,
    accum: Option<DType>,
    out: Option<DType>,
) -> Result<DType, TypeError> {
    for (what, other) in [("accumulation type", accum), ("result type", out)] {
        if let Some(other) = other {
            let same = other.class() == dtype.class();
            cx.ensure(same, "C5", None, what, format!("a type of the class of {dtype}"), other)?;
        }
    }
    Ok(out.unwrap_or(dtype))
}

impl OpDef for Dot {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let lhs = cx.number("C1", 0)?;
        cx.same_dtype("C1", 1, 0)?;
        let axes = DotAxes {
            lhs_batch: &self.lhs_batch,
            rhs_batch: &self.rhs_batch,
            lhs_contract: &self.lhs_contract,
            rhs_contract: &self.rhs_contract,
        };
        let shape = axes.shape(cx)?;
        Ok(one(TensorType::new(accumulator(cx, lhs.dtype, self.accum, self.out)?, shape)))
    }
}

impl OpDef for IntegerDot {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        for i in 0..2 {
            cx.of("C1", i, "i8 or u8", |d| matches!(d, DType::I8 | DType::U8))?;
        }
        let axes = DotAxes {
            lhs_batch: &self.lhs_batch,
            rhs_batch: &self.rhs_batch,
            lhs_contract: &self.lhs_contract,
            rhs_contract: &self.rhs_contract,
        };
        Ok(one(TensorType::new(DType::I32, axes.shape(cx)?)))
    }
}

/// The size of an axis with `dilation − 1` zeros between neighbours.
pub(crate) fn dilated(size: &Dim, dilation: i64) -> Dim {
    if dilation == 1 { size.clone() } else { ((size - 1) * dilation + 1).max(&Dim::ZERO) }
}

/// ⌊(padded − window) / stride⌋ + 1 windows fit; negative if the window is much larger than the padded axis.
/// `size` is dilated by `lhs_dilation`, `window` by `rhs_dilation`.
pub(crate) fn window_count(
    size: &Dim,
    padding: &(Dim, Dim),
    lhs_dilation: i64,
    window: &Dim,
    rhs_dilation: i64,
    stride: i64,
) -> Dim {
    let dilated = dilated(size, lhs_dilation);
    let reach = (window - 1) * rhs_dilation + 1;
    let room = dilated + &padding.0 + &padding.1 - reach;
    room.floor_div(&stride.into()) + 1
}

impl OpDef for Conv {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.number("C1", 0)?;
        cx.same_dtype("C1", 1, 0)?;
        cx.rank_at_least("C2", 0, 2)?;
        let w = cx.rank("C2", 1, x.rank())?;
        let spatial = x.rank() - 2;
        for (what, n) in [
            ("strides", self.strides.len()),
            ("paddings", self.padding.len()),
            ("lhs dilations", self.lhs_dilation.len()),
            ("rhs dilations", self.rhs_dilation.len()),
        ] {
            cx.ensure(n == spatial, "C3", None, &format!("number of {what}"), spatial, n)?;
        }
        for n in self.strides.iter().chain(&self.lhs_dilation).chain(&self.rhs_dilation) {
            cx.ensure(*n >= 1, "C4", None, "stride or dilation", "at least 1", n)?;
        }
        cx.ensure(self.groups >= 1, "C5", None, "groups", "at least 1", self.groups)?;
        let groups = Dim::from(self.groups);
        let in_channels = &w.shape[1] * &groups;
        cx.equal("C5", Some(0), "channels differ from groups × the kernel's", &in_channels, &x.shape[1])?;
        let remainder = w.shape[0].modulo(&groups);
        cx.equal("C5", Some(1), "groups do not divide the output channels", &Dim::ZERO, &remainder)?;
        let mut shape = Shape::from(vec![x.shape[0].clone(), w.shape[0].clone()]);
        for i in 0..spatial {
            let n = window_count(
                &x.shape[i + 2],
                &self.padding[i],
                self.lhs_dilation[i],
                &w.shape[i + 2],
                self.rhs_dilation[i],
                self.strides[i],
            );
            cx.at_most("C6", Some(0), "the kernel is larger than the padded input", &Dim::ZERO, &n)?;
            shape.push(n);
        }
        Ok(one(TensorType::new(accumulator(cx, x.dtype, self.accum, self.out)?, shape)))
    }
}
