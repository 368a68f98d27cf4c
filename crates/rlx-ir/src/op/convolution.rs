//! Convolutions beyond the primitive: with a bias, transposed, their gradients, causal with a state, deformable.
//!
//! Narrow floats are accumulated in f32, and biases are added before the one rounding.

use super::average_pool::transposed_padding;
use super::contract::{Conv, dilated, window_count};
use super::norm::statistics_dtype;
use super::unfold::{Windows, windows};
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::elementwise::UnaryOp;
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// `conv` (see there) plus a bias \[o\] a channel, rounded once. Operands: x, w, bias.
    /// C1: one number type. C2: equal ranks of at least 2. C3: one stride, padding and dilation a spatial axis,
    /// strides and dilations at least 1. C5: groups divide both channel counts, and w has c/groups channels.
    /// C6: the kernel fits. C7: the bias has o elements.
    pub struct ConvBias = "conv_bias" {
        /// Strides.
        strides: Vec<i64>,
        /// Zeros before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Distance of neighbours in the kernel.
        dilations: Vec<i64>,
        /// Channel groups.
        groups: usize,
    }
}

operation! {
    /// Transposed convolution (the gradient of a convolution, as a layer): x \[n, c, s…\], w \[c, o/groups, k…\] give
    /// \[n, o, (s − 1)·stride + (k − 1)·dilation + 1 − low − high + output_padding\]. Operands: x, w, and optionally a
    /// bias \[o\]. C1: one number type. C2: equal ranks of at least 2. C3: one stride, padding, output padding and
    /// dilation a spatial axis, strides and dilations at least 1. C5: groups divide c, which is w's first size.
    /// C6: the result's sizes are not negative. C7: the bias has o elements.
    pub struct ConvTranspose = "conv_transpose" {
        /// Strides.
        strides: Vec<i64>,
        /// What is taken off before and after each spatial axis of the result.
        padding: Vec<(Dim, Dim)>,
        /// What is added after each spatial axis of the result.
        output_padding: Vec<Dim>,
        /// Distance of neighbours in the kernel.
        dilations: Vec<i64>,
        /// Channel groups.
        groups: usize,
    }
}

operation! {
    /// dx \[n, c, dims…\] of `conv` for dy (operand 0) and w (operand 1). C1: one number type. C2: equal ranks of at
    /// least 2, one of `dims` a spatial axis. C3: as `conv_bias`. C5: groups divide w's first size, which is dy's
    /// channels. C6: dy has the convolution's sizes.
    pub struct ConvInputGrad = "conv_input_grad" {
        /// The spatial sizes of x.
        dims: Vec<Dim>,
        /// Strides of the convolution.
        strides: Vec<i64>,
        /// Its padding.
        padding: Vec<(Dim, Dim)>,
        /// Its kernel dilations.
        dilations: Vec<i64>,
        /// Its groups.
        groups: usize,
    }
}

operation! {
    /// dw \[o, c/groups, window…\] of `conv` for x (operand 0) and dy (operand 1). C1: one number type. C2: equal
    /// ranks of at least 2, one window a spatial axis, one batch size. C3: as `conv_bias`. C5: groups divide both
    /// channel counts. C6: dy has the convolution's sizes.
    pub struct ConvWeightGrad = "conv_weight_grad" {
        /// The spatial sizes of w.
        window: Vec<Dim>,
        /// Strides of the convolution.
        strides: Vec<i64>,
        /// Its padding.
        padding: Vec<(Dim, Dim)>,
        /// Its kernel dilations.
        dilations: Vec<i64>,
        /// Its groups.
        groups: usize,
    }
}

operation! {
    /// Causal depthwise convolution with its state (ONNX CausalConvWithState): x \[n, c, l\], w \[c, 1, k\], state
    /// \[n, c, k − 1\] (the elements before x) give y \[n, c, l\] and the next state, the last k − 1 elements of state
    /// and x together. Operands: x, w, state, and optionally a bias \[c\].
    /// C1: one floating-point type. C2: ranks 3. C3: sizes agree.
    pub struct CausalConv = "causal_conv" {
        /// Whether y goes through x · sigmoid(x), in f32.
        silu: bool,
    }
}

/// C1, C2: one number type and equal ranks of operands 0 and 1.
fn pair<'a>(cx: &Infer<'a>) -> Result<(&'a TensorType, &'a TensorType), TypeError> {
    let x = cx.number("C1", 0)?;
    cx.same_dtype("C1", 1, 0)?;
    cx.rank_at_least("C2", 0, 2)?;
    Ok((x, cx.rank("C2", 1, x.rank())?))
}

/// C3 and the first part of C5.
fn geometry(
    cx: &Infer<'_>,
    spatial: usize,
    strides: &[i64],
    padding: &[(Dim, Dim)],
    dilations: &[i64],
    groups: usize,
) -> Result<(), TypeError> {
    for (what, n) in [("strides", strides.len()), ("paddings", padding.len()), ("dilations", dilations.len())]
    {
        cx.ensure(n == spatial, "C3", None, &format!("number of {what}"), spatial, n)?;
    }
    for n in strides.iter().chain(dilations) {
        cx.ensure(*n >= 1, "C3", None, "stride or dilation", "at least 1", n)?;
    }
    cx.ensure(groups >= 1, "C5", None, "groups", "at least 1", groups)
}

/// C5: groups divide a channel count.
fn divides(cx: &Infer<'_>, operand: usize, channels: &Dim, groups: usize) -> Result<(), TypeError> {
    let remainder = channels.modulo(&groups.into());
    cx.equal("C5", Some(operand), "groups do not divide the channels", &Dim::ZERO, &remainder)
}

fn with_spatial(leading: [Dim; 2], spatial: &[Dim]) -> Shape {
    leading.into_iter().chain(spatial.iter().cloned()).collect()
}

/// The type in which a convolution's result is wanted before a bias.
fn wide(dtype: DType) -> DType {
    if dtype.is_float() { statistics_dtype(dtype) } else { dtype }
}

/// y in f32 (if narrower) plus a bias over axis 1, rounded to `dtype`.
pub(super) fn add_channel_bias(
    b: &mut Builder,
    y: Value,
    bias: Option<Value>,
    dtype: DType,
) -> Result<Value, TypeError> {
    let Some(bias) = bias else { return b.cast(y, dtype) };
    let shape = b.shape(y);
    let bias = b.cast(bias, b.dtype(y))?;
    let bias = b.broadcast_in(bias, &shape, &[1])?;
    let sum = b.add(y, bias)?;
    b.cast(sum, dtype)
}

impl OpDef for ConvBias {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        let (x, w) = pair(cx)?;
        let spatial = x.rank() - 2;
        geometry(cx, spatial, &self.strides, &self.padding, &self.dilations, self.groups)?;
        let channels = &w.shape[1] * &self.groups.into();
        cx.equal("C5", Some(0), "channels differ from groups × the kernel's", &channels, &x.shape[1])?;
        divides(cx, 1, &w.shape[0], self.groups)?;
        cx.same_dtype("C1", 2, 0)?;
        cx.same_dims("C7", 2, &w.shape[..1])?;
        let mut shape = Shape::from(vec![x.shape[0].clone(), w.shape[0].clone()]);
        for i in 0..spatial {
            let (size, window) = (&x.shape[i + 2], &w.shape[i + 2]);
            let n = window_count(size, &self.padding[i], 1, window, self.dilations[i], self.strides[i]);
            cx.at_most("C6", Some(0), "the kernel is larger than the padded input", &Dim::ZERO, &n)?;
            shape.push(n);
        }
        Ok(one(x.with_shape(shape)))
    }
}

impl CompositeDef for ConvBias {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let conv = Conv {
            strides: self.strides.clone(),
            padding: self.padding.clone(),
            lhs_dilation: vec![1; self.strides.len()],
            rhs_dilation: self.dilations.clone(),
            groups: self.groups,
            accum: None,
            out: Some(wide(dtype)),
        };
        let y = b.push1(conv, &operands[..2])?;
        Ok(Values::from_slice(&[add_channel_bias(b, y, Some(operands[2]), dtype)?]))
    }
}

/// w \[g · i, o, k…\] as the kernel \[g · o, i, reversed k…\] of the transposed convolution.
fn transposed_kernel(b: &mut Builder, w: Value, groups: usize) -> Result<Value, TypeError> {
    let shape = b.shape(w);
    let groups = Dim::from(groups);
    let (inner, outer) = (shape[0].floor_div(&groups), shape[1].clone());
    let mut split = vec![groups.clone(), inner.clone(), outer.clone()];
    split.extend_from_slice(&shape[2..]);
    let w = b.reshape(w, &split)?;
    let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..split.len()).collect();
    let w = b.transpose(w, &perm)?;
    let w = b.reshape(w, &with_spatial([groups * outer, inner], &shape[2..]))?;
    let spatial: Vec<usize> = (2..shape.rank()).collect();
    b.reverse(w, &spatial)
}

impl OpDef for ConvTranspose {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(2, 3)?;
        let (x, w) = pair(cx)?;
        let spatial = x.rank() - 2;
        geometry(cx, spatial, &self.strides, &self.padding, &self.dilations, self.groups)?;
        let n = self.output_padding.len();
        cx.ensure(n == spatial, "C3", None, "number of output paddings", spatial, n)?;
        cx.equal("C5", Some(1), "the kernel's first size is not x's channels", &x.shape[1], &w.shape[0])?;
        divides(cx, 0, &x.shape[1], self.groups)?;
        let channels = &w.shape[1] * &self.groups.into();
        if cx.count() == 3 {
            cx.same_dtype("C1", 2, 0)?;
            cx.same_dims("C7", 2, std::slice::from_ref(&channels))?;
        }
        let mut shape = Shape::from(vec![x.shape[0].clone(), channels]);
        for i in 0..spatial {
            let n = self.size(i, &x.shape[i + 2], &w.shape[i + 2]);
            cx.at_most("C6", Some(0), "padding exceeds the result", &Dim::ZERO, &n)?;
            shape.push(n);
        }
        Ok(one(x.with_shape(shape)))
    }
}

impl ConvTranspose {
    fn size(&self, axis: usize, size: &Dim, window: &Dim) -> Dim {
        let (low, high) = &self.padding[axis];
        dilated(size, self.strides[axis]) + (window - 1) * self.dilations[axis] - low - high
            + &self.output_padding[axis]
    }
}

impl CompositeDef for ConvTranspose {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let window = b.shape(operands[1]);
        let padding = (0..self.strides.len()).map(|i| {
            let reach = (window[i + 2].clone() - 1) * self.dilations[i];
            let (low, high) = &self.padding[i];
            (&reach - low, reach - high + &self.output_padding[i])
        });
        let conv = Conv {
            strides: vec![1; self.strides.len()],
            padding: padding.collect(),
            lhs_dilation: self.strides.clone(),
            rhs_dilation: self.dilations.clone(),
            groups: self.groups,
            accum: None,
            out: Some(wide(dtype)),
        };
        let w = transposed_kernel(b, operands[1], self.groups)?;
        let y = b.push1(conv, &[operands[0], w])?;
        Ok(Values::from_slice(&[add_channel_bias(b, y, operands.get(2).copied(), dtype)?]))
    }
}

/// C6: dy (operand `i`) has the sizes of the convolution's result.
fn result_sizes(
    cx: &Infer<'_>,
    i: usize,
    batch: &Dim,
    channels: &Dim,
    windows: &Windows<'_>,
    sizes: &[Dim],
) -> Result<(), TypeError> {
    let counts = windows.counts(sizes);
    cx.same_dims("C6", i, &with_spatial([batch.clone(), channels.clone()], &counts))
}

impl OpDef for ConvInputGrad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (dy, w) = pair(cx)?;
        let spatial = dy.rank() - 2;
        cx.ensure(self.dims.len() == spatial, "C2", None, "number of sizes", spatial, self.dims.len())?;
        geometry(cx, spatial, &self.strides, &self.padding, &self.dilations, self.groups)?;
        cx.equal("C5", Some(0), "the kernel's first size is not dy's channels", &w.shape[0], &dy.shape[1])?;
        divides(cx, 0, &dy.shape[1], self.groups)?;
        result_sizes(cx, 0, &dy.shape[0], &w.shape[0], &self.windows(&w.shape[2..]), &self.dims)?;
        let channels = &w.shape[1] * &self.groups.into();
        Ok(one(dy.with_shape(with_spatial([dy.shape[0].clone(), channels], &self.dims))))
    }
}

impl ConvInputGrad {
    fn windows<'a>(&'a self, window: &'a [Dim]) -> Windows<'a> {
        Windows {
            window,
            strides: &self.strides,
            dilations: &self.dilations,
            padding: &self.padding,
            ceil_mode: false,
        }
    }
}

impl CompositeDef for ConvInputGrad {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (counts, window) = (b.shape(operands[0]), b.shape(operands[1]));
        let conv = Conv {
            strides: vec![1; self.strides.len()],
            padding: transposed_padding(&counts[2..], &self.windows(&window[2..]), &self.dims),
            lhs_dilation: self.strides.clone(),
            rhs_dilation: self.dilations.clone(),
            groups: self.groups,
            accum: None,
            out: None,
        };
        let w = transposed_kernel(b, operands[1], self.groups)?;
        Ok(Values::from_slice(&[b.push1(conv, &[operands[0], w])?]))
    }
}

impl OpDef for ConvWeightGrad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let (x, dy) = pair(cx)?;
        let spatial = x.rank() - 2;
        cx.ensure(self.window.len() == spatial, "C2", None, "number of windows", spatial, self.window.len())?;
        geometry(cx, spatial, &self.strides, &self.padding, &self.dilations, self.groups)?;
        divides(cx, 0, &x.shape[1], self.groups)?;
        divides(cx, 1, &dy.shape[1], self.groups)?;
        let windows = windows!(self, false);
        result_sizes(cx, 1, &x.shape[0], &dy.shape[1], &windows, &x.shape[2..])?;
        let channels = x.shape[1].floor_div(&self.groups.into());
        Ok(one(x.with_shape(with_spatial([dy.shape[1].clone(), channels], &self.window))))
    }
}

impl CompositeDef for ConvWeightGrad {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, dy) = (operands[0], operands[1]);
        let (xs, ys) = (b.shape(x), b.shape(dy));
        let groups = Dim::from(self.groups);
        let inner = xs[1].floor_div(&groups);
        // x as \[c/groups, groups · n, s…\]: the batch is what the convolution sums over, as its channels.
        let mut split = vec![xs[0].clone(), groups.clone(), inner.clone()];
        split.extend_from_slice(&xs[2..]);
        let x = b.reshape(x, &split)?;
        let perm: Vec<usize> = [2, 1, 0].into_iter().chain(3..split.len()).collect();
        let x = b.transpose(x, &perm)?;
        let x = b.reshape(x, &with_spatial([inner, groups * &xs[0]], &xs[2..]))?;
        let swap: Vec<usize> = [1, 0].into_iter().chain(2..ys.rank()).collect();
        let dy = b.transpose(dy, &swap)?;
        // dy is the kernel, dilated by the strides; the windows of x are its positions.
        let padding = (0..self.window.len()).map(|i| {
            let (low, size) = (&self.padding[i].0, &xs[i + 2]);
            let reach = (ys[i + 2].clone() - 1) * self.strides[i] + 1;
            (low.clone(), (self.window[i].clone() - 1) * self.dilations[i] + reach - size - low)
        });
        let conv = Conv {
            strides: self.dilations.clone(),
            padding: padding.collect(),
            lhs_dilation: vec![1; self.window.len()],
            rhs_dilation: self.strides.clone(),
            groups: self.groups,
            accum: None,
            out: None,
        };
        let dw = b.push1(conv, &[x, dy])?;
        Ok(Values::from_slice(&[b.transpose(dw, &swap)?]))
    }
}

impl OpDef for CausalConv {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(3, 4)?;
        let x = cx.float("C1", 0)?;
        for i in 0..3 {
            cx.same_dtype("C1", i, 0)?;
            cx.rank("C2", i, 3)?;
        }
        let w = cx.operand(1)?;
        let past = w.shape[2].clone() - 1;
        let channels = &x.shape[1];
        cx.same_dims("C3", 1, &[channels.clone(), Dim::ONE, w.shape[2].clone()])?;
        cx.at_most("C3", Some(1), "window", &Dim::ONE, &w.shape[2])?;
        let state = x.with_shape(vec![x.shape[0].clone(), channels.clone(), past]);
        cx.same_dims("C3", 2, state.dims())?;
        if cx.count() == 4 {
            cx.same_dtype("C1", 3, 0)?;
            cx.same_dims("C3", 3, std::slice::from_ref(channels))?;
        }
        Ok(Types::from_iter([x.clone(), state]))
    }
}

impl CompositeDef for CausalConv {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, w, state) = (operands[0], operands[1], operands[2]);
        let t = b.type_of(x).clone();
        let past = b.dim(w, 2) - 1;
        let state = b.reshape(state, &[t.shape[0].clone(), t.shape[1].clone(), past.clone()])?;
        let all = b.concat(&[state, x], 2)?;
        // Depthwise with a symbolic channel count: a sum over the window's elements.
        let windows = Windows {
            window: &[b.dim(w, 2)],
            strides: &[1],
            dilations: &[1],
            padding: &[(Dim::ZERO, Dim::ZERO)],
            ceil_mode: false,
        };
        let elements = windows.unfold(b, all, 0.0)?;
        let elements = b.cast(elements, statistics_dtype(t.dtype))?;
        let shape = b.shape(elements);
        let kernel = b.cast(w, b.dtype(elements))?;
        let kernel = b.squeeze(kernel, &[1])?;
        let kernel = b.broadcast_in(kernel, &shape, &[1, 3])?;
        let products = b.mul(elements, kernel)?;
        let sums = b.sum(products, &[3], false)?;
        let mut y = add_channel_bias(b, sums, operands.get(3).copied(), t.dtype)?;
        if self.silu {
            let wide = b.cast(y, statistics_dtype(t.dtype))?;
            let gate = b.unary(UnaryOp::Sigmoid, wide)?;
            let gated = b.mul(wide, gate)?;
            y = b.cast(gated, t.dtype)?;
        }
        let next = b.slice_axis(all, 2, &t.shape[2], &past)?;
        Ok(Values::from_slice(&[y, next]))
    }
}
