//! Reductions over sliding windows, and their gradient.

use super::OpDef;
use super::contract::window_count;
use crate::dim::Dim;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::types::Shape;
use crate::{names, operation};

names! {
    /// How the elements of a window combine.
    pub enum WindowOp {
        /// The sum.
        Sum = "reduce_window_sum",
        /// The product.
        Prod = "reduce_window_prod",
        /// The greatest; NaN if any is.
        Max = "reduce_window_max",
        /// The least; NaN if any is.
        Min = "reduce_window_min",
    }
}

names! {
    /// Which element of a window the gradient goes to.
    pub enum WindowGradOp {
        /// The first greatest.
        Max = "reduce_window_max_grad",
        /// The first least.
        Min = "reduce_window_min_grad",
    }
}

operation! {
    /// Combines the elements of each window of operand 0, which is first padded with operand 1 (a scalar).
    /// C1: an integer or floating-point type. C2: the padding value is a scalar of that type.
    /// C3: one window, stride, dilation and padding an axis. C4: windows, strides and dilations are at least 1.
    /// C5: each window fits the padded axis.
    pub struct ReduceWindow: WindowOp {
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Elements added before and after each axis; negative: a crop.
        padding: Vec<(Dim, Dim)>,
    }
}

operation! {
    /// dx: each window's element of dy (operand 1) is added to the first extreme element of that window of x
    /// (operand 0); padding never receives any. C1: a floating-point type, the same for both.
    /// C2: dy has the sizes of the windows' reduction. C3 to C5 as `reduce_window_max`.
    pub struct ReduceWindowGrad: WindowGradOp {
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Elements added before and after each axis; negative: a crop.
        padding: Vec<(Dim, Dim)>,
    }
}

fn windows(
    cx: &Infer<'_>,
    window: &[Dim],
    strides: &[i64],
    dilations: &[i64],
    padding: &[(Dim, Dim)],
) -> Result<Shape, TypeError> {
    let x = cx.operand(0)?;
    for (what, n) in [
        ("windows", window.len()),
        ("strides", strides.len()),
        ("dilations", dilations.len()),
        ("paddings", padding.len()),
    ] {
        cx.ensure(n == x.rank(), "C3", None, &format!("number of {what}"), x.rank(), n)?;
    }
    for n in strides.iter().chain(dilations) {
        cx.ensure(*n >= 1, "C4", None, "stride or dilation", "at least 1", n)?;
    }
    let mut shape = Shape::scalar();
    for (i, size) in x.shape.iter().enumerate() {
        cx.at_most("C4", None, "window", &Dim::ONE, &window[i])?;
        let n = window_count(size, &padding[i], 1, &window[i], dilations[i], strides[i]);
        cx.at_most("C5", Some(0), "the window is larger than the padded axis", &Dim::ZERO, &n)?;
        shape.push(n);
    }
    Ok(shape)
}

impl OpDef for ReduceWindow {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.of("C1", 0, "an integer or floating-point type", |d| d.is_int() || d.is_float())?;
        cx.rank("C2", 1, 0)?;
        cx.same_dtype("C2", 1, 0)?;
        Ok(one(x.with_shape(windows(cx, &self.window, &self.strides, &self.dilations, &self.padding)?)))
    }
}

impl OpDef for ReduceWindowGrad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.float("C1", 0)?;
        cx.same_dtype("C1", 1, 0)?;
        let shape = windows(cx, &self.window, &self.strides, &self.dilations, &self.padding)?;
        cx.same_dims("C2", 1, &shape)?;
        Ok(one(x.clone()))
    }
}
