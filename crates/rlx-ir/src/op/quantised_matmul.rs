//! Products of quantised matrices and images: integers with zero points, requantised results, and weights in blocks
//! of few bits.

use super::contract::{Conv, Dot, IntegerDot};
use super::convolution::add_channel_bias;
use super::elementwise::BinaryOp;
use super::linear_quantisation::saturated;
use super::norm::statistics_dtype;
use super::unfold::counter;
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Values, broadcast_dims};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::contract::window_count;
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// Σ (a − zero point of a) · (b − zero point of b) in i32, which wraps; leading axes broadcast (ONNX
    /// MatMulInteger). Operands: a \[…, m, k\], b \[…, k, n\], then the zero points where the flags say so: of a a scalar,
    /// \[m\] or \[…, m, 1\]; of b a scalar, \[n\] or \[…, 1, n\]. C1: i8 or u8; zero points as their matrices.
    /// C2: ranks of at least 2. C3: the contracted sizes agree. C4: zero points broadcast.
    pub struct MatmulInteger = "matmul_integer" {
        /// Whether a has a zero point.
        lhs_zero_point: bool,
        /// Whether b has a zero point.
        rhs_zero_point: bool,
    }
}

operation! {
    /// `conv` of (x − zero point of x) and (w − zero point of w) in i32 (ONNX ConvInteger): padding is what stands for
    /// 0. Operands: x, w, then the zero points where the flags say so: of x a scalar, of w a scalar or \[o\].
    /// C1: i8 or u8; zero points as what they belong to. C2: equal ranks of at least 2. C3, C5, C6: as `conv_bias`.
    /// C4: zero points have their sizes.
    pub struct ConvInteger = "conv_integer" {
        /// Strides.
        strides: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Distance of neighbours in the kernel.
        dilations: Vec<i64>,
        /// Channel groups.
        groups: usize,
        /// Whether x has a zero point.
        x_zero_point: bool,
        /// Whether w has a zero point.
        w_zero_point: bool,
    }
}

operation! {
    /// y = saturate(round(p · (scale of a · scale of b / scale of y)) + zero point of y), p being `matmul_integer` (ONNX
    /// QLinearMatMul). Operands: a, its scale and zero point, b, its scale and zero point, the scale and zero point of
    /// y. C1: i8 or u8, zero points as what they belong to, y as its zero point. C2, C3: as `matmul_integer`.
    /// C4: scales are floating point; those of a and b have the sizes of their zero points, those of y are one element.
    pub struct QlinearMatmul = "qlinear_matmul" {}
}

operation! {
    /// The same with `conv_integer`, plus a bias before scaling (ONNX QLinearConv). Operands: x, its scale and zero
    /// point, w, its scale and zero point, the scale and zero point of y, and optionally a bias (i32 \[o\]).
    /// C1 to C6: as `conv_integer`. C4: also, the scale of w has the sizes of its zero point; others are one element.
    /// C7: the bias is i32 \[o\].
    pub struct QlinearConv = "qlinear_conv" {
        /// Strides.
        strides: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Distance of neighbours in the kernel.
        dilations: Vec<i64>,
        /// Channel groups.
        groups: usize,
    }
}

operation! {
    /// y \[…, n\] = x \[…, k\] · wᵀ for weights in blocks along k that share a scale (MatMulNBits of com.microsoft): w is
    /// u8 \[n, blocks, block_size · bits / 8\], low bits first, scales \[n · blocks\] or \[n, blocks\]. Operands after
    /// these three, where the flags say so: zero points (packed alike, u8 with ⌈blocks · bits / 8⌉ bytes a row, or one
    /// floating-point number a block), the block (i32) of each index along k, a bias \[n\]. Without zero points they
    /// are 2^(bits−1). Weights are unpacked to f32 and the product rounded once.
    /// C1: x is floating point, scales and bias are as x. C2: bits are 2, 4 or 8. C3: w is u8 \[n, ⌈k / block⌉, …\].
    /// C4: scales, zero points, group indices and bias have their sizes.
    pub struct MatmulNbits = "matmul_nbits" {
        /// Bits of a weight.
        bits: usize,
        /// Weights of a block.
        block_size: usize,
        /// Whether there are zero points.
        zero_points: bool,
        /// Whether there are group indices.
        group_indices: bool,
        /// Whether there is a bias.
        bias: bool,
    }
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8)
}

/// The type of a product of matrices of bytes.
fn product_type(cx: &Infer<'_>, a: usize, b: usize) -> Result<TensorType, TypeError> {
    let lhs = cx.of("C1", a, "i8 or u8", is_byte)?;
    let rhs = cx.of("C1", b, "i8 or u8", is_byte)?;
    cx.rank_at_least("C2", a, 2)?;
    cx.rank_at_least("C2", b, 2)?;
    let (m, n) = (lhs.rank(), rhs.rank());
    cx.equal("C3", Some(b), "contracted sizes differ", &lhs.shape[m - 1], &rhs.shape[n - 2])?;
    let mut shape: Shape = broadcast_dims(&lhs.shape[..m - 2], &rhs.shape[..n - 2]).into();
    shape.push(lhs.shape[m - 2].clone());
    shape.push(rhs.shape[n - 1].clone());
    Ok(TensorType::new(DType::I32, shape))
}

/// C4: a parameter of a matrix is a scalar, a vector over one axis (0: rows), or keeps its other axis as 1.
fn matrix_parameter(cx: &Infer<'_>, i: usize, matrix: usize, rows: bool) -> Result<(), TypeError> {
    let (parameter, t) = (cx.operand(i)?, cx.operand(matrix)?);
    let along = t.shape[t.rank() - if rows { 2 } else { 1 }].clone();
    match parameter.rank() {
        0 => Ok(()),
        1 if parameter.shape[0].as_const() == Some(1) => Ok(()),
        1 => cx.same_dims("C4", i, &[along]),
        _ => {
            let kept = t.rank() - if rows { 1 } else { 2 };
            cx.same_dims("C4", i, &t.shape.with_dim(kept, Dim::ONE))
        }
    }
}

/// C4: one element.
fn single(cx: &Infer<'_>, i: usize) -> Result<(), TypeError> {
    let t = cx.operand(i)?;
    cx.equal("C4", Some(i), "elements", &Dim::ONE, &t.shape.element_count())
}

/// A parameter of the rows or columns of a matrix, repeated to these sizes.
fn matrix_wide(b: &mut Builder, parameter: Value, dims: &[Dim], rows: bool) -> Result<Value, TypeError> {
    let parameter = if rows && b.rank(parameter) == 1 { b.unsqueeze(parameter, 1)? } else { parameter };
    b.broadcast_to(parameter, dims)
}

/// `matmul_integer` by one dot of bytes and corrections for the zero points; equal modulo 2³² to subtracting first.
fn integer_product(
    b: &mut Builder,
    (lhs, lhs_zero): (Value, Option<Value>),
    (rhs, rhs_zero): (Value, Option<Value>),
) -> Result<Value, TypeError> {
    let (left, right) = (b.shape(lhs), b.shape(rhs));
    let (m, n) = (left.rank(), right.rank());
    let batch = broadcast_dims(&left[..m - 2], &right[..n - 2]);
    let whole = |matrix: &[Dim]| -> Vec<Dim> { batch.iter().chain(matrix).cloned().collect() };
    let lhs = b.broadcast_to(lhs, &whole(&left[m - 2..]))?;
    let rhs = b.broadcast_to(rhs, &whole(&right[n - 2..]))?;
    let axes: Vec<usize> = (0..batch.len()).collect();
    let dot = IntegerDot {
        lhs_batch: axes.clone(),
        rhs_batch: axes,
        lhs_contract: vec![batch.len() + 1],
        rhs_contract: vec![batch.len()],
    };
    let mut product = b.push1(dot, &[lhs, rhs])?;
    let dims = b.shape(product);
    // A zero point's own batch axes may be those of a matrix that broadcasts.
    let zero = |b: &mut Builder, zero: Option<Value>, rows: bool| {
        zero.map(|zero| {
            let zero = b.cast(zero, DType::I32)?;
            matrix_wide(b, zero, &dims, rows)
        })
        .transpose()
    };
    let lhs_zero = zero(b, lhs_zero, true)?;
    let rhs_zero = zero(b, rhs_zero, false)?;
    let sums = |b: &mut Builder, matrix: Value, axis: usize| {
        let wide = b.cast(matrix, DType::I32)?;
        let sums = b.sum(wide, &[batch.len() + axis], true)?;
        b.broadcast_to(sums, &dims)
    };
    if let Some(zero) = rhs_zero {
        let rows = sums(b, lhs, 1)?;
        let correction = b.mul(rows, zero)?;
        product = b.sub(product, correction)?;
    }
    if let Some(zero) = lhs_zero {
        let columns = sums(b, rhs, 0)?;
        let correction = b.mul(columns, zero)?;
        product = b.sub(product, correction)?;
    }
    if let (Some(lhs_zero), Some(rhs_zero)) = (lhs_zero, rhs_zero) {
        let count = b.dim_like(&left[m - 1], lhs_zero)?;
        let both = b.mul(lhs_zero, rhs_zero)?;
        let both = b.mul(both, count)?;
        product = b.add(product, both)?;
    }
    Ok(product)
}

impl OpDef for MatmulInteger {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2 + usize::from(self.lhs_zero_point) + usize::from(self.rhs_zero_point))?;
        let t = product_type(cx, 0, 1)?;
        if self.lhs_zero_point {
            cx.same_dtype("C1", 2, 0)?;
            matrix_parameter(cx, 2, 0, true)?;
        }
        if self.rhs_zero_point {
            let i = cx.count() - 1;
            cx.same_dtype("C1", i, 1)?;
            matrix_parameter(cx, i, 1, false)?;
        }
        Ok(one(t))
    }
}

impl CompositeDef for MatmulInteger {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let lhs_zero = self.lhs_zero_point.then(|| operands[2]);
        let rhs_zero = self.rhs_zero_point.then(|| operands[operands.len() - 1]);
        let product = integer_product(b, (operands[0], lhs_zero), (operands[1], rhs_zero))?;
        Ok(Values::from_slice(&[product]))
    }
}

/// The attributes of a convolution of integers.
struct ImageProduct<'a> {
    strides: &'a [i64],
    padding: &'a [(Dim, Dim)],
    dilations: &'a [i64],
    groups: usize,
}

impl ImageProduct<'_> {
    fn infer(&self, cx: &Infer<'_>, x: usize, w: usize) -> Result<TensorType, TypeError> {
        let image = cx.of("C1", x, "i8 or u8", is_byte)?;
        let kernel = cx.of("C1", w, "i8 or u8", is_byte)?;
        cx.rank_at_least("C2", x, 2)?;
        cx.rank("C2", w, image.rank())?;
        let spatial = image.rank() - 2;
        for (what, n) in [
            ("strides", self.strides.len()),
            ("paddings", self.padding.len()),
            ("dilations", self.dilations.len()),
        ] {
            cx.ensure(n == spatial, "C3", None, &format!("number of {what}"), spatial, n)?;
        }
        for n in self.strides.iter().chain(self.dilations) {
            cx.ensure(*n >= 1, "C3", None, "stride or dilation", "at least 1", n)?;
        }
        cx.ensure(self.groups >= 1, "C5", None, "groups", "at least 1", self.groups)?;
        let channels = &kernel.shape[1] * &self.groups.into();
        cx.equal("C5", Some(x), "channels differ from groups × the kernel's", &channels, &image.shape[1])?;
        let rest = kernel.shape[0].modulo(&self.groups.into());
        cx.equal("C5", Some(w), "groups do not divide the channels", &Dim::ZERO, &rest)?;
        let mut shape = Shape::from(vec![image.shape[0].clone(), kernel.shape[0].clone()]);
        for i in 0..spatial {
            let (size, window) = (&image.shape[i + 2], &kernel.shape[i + 2]);
            let n = window_count(size, &self.padding[i], 1, window, self.dilations[i], self.strides[i]);
            cx.at_most("C6", Some(x), "the kernel is larger than the padded input", &Dim::ZERO, &n)?;
            shape.push(n);
        }
        Ok(TensorType::new(DType::I32, shape))
    }

    fn build(
        &self,
        b: &mut Builder,
        (x, x_zero): (Value, Option<Value>),
        (w, w_zero): (Value, Option<Value>),
    ) -> Result<Value, TypeError> {
        let mut wide = [x, w];
        for (value, zero) in wide.iter_mut().zip([x_zero, w_zero]) {
            *value = b.cast(*value, DType::I32)?;
            if let Some(zero) = zero {
                let zero = b.cast(zero, DType::I32)?;
                let zero = channel_wide(b, zero, &b.shape(*value), 0)?;
                *value = b.sub(*value, zero)?;
            }
        }
        let conv = Conv {
            strides: self.strides.to_vec(),
            padding: self.padding.to_vec(),
            lhs_dilation: vec![1; self.strides.len()],
            rhs_dilation: self.dilations.to_vec(),
            groups: self.groups,
            accum: None,
            out: None,
        };
        b.push1(conv, &wide)
    }
}

/// One number, or one an index of an axis, repeated to these sizes.
fn channel_wide(b: &mut Builder, parameter: Value, dims: &[Dim], axis: usize) -> Result<Value, TypeError> {
    let shape = b.shape(parameter);
    if shape.rank() == 1 && shape[0].as_const() != Some(1) {
        return b.broadcast_in(parameter, dims, &[axis]);
    }
    let scalar = b.reshape(parameter, &[])?;
    b.broadcast_to(scalar, dims)
}

/// C4: one element, or one an output channel of w.
fn kernel_parameter(cx: &Infer<'_>, i: usize, w: usize) -> Result<(), TypeError> {
    let parameter = cx.operand(i)?;
    if parameter.rank() == 1 && parameter.shape[0].as_const() != Some(1) {
        return cx.same_dims("C4", i, &cx.operand(w)?.shape[..1]);
    }
    single(cx, i)
}

macro_rules! image_product {
    ($op:expr) => {
        ImageProduct {
            strides: &$op.strides,
            padding: &$op.padding,
            dilations: &$op.dilations,
            groups: $op.groups,
        }
    };
}

impl OpDef for ConvInteger {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2 + usize::from(self.x_zero_point) + usize::from(self.w_zero_point))?;
        let t = image_product!(self).infer(cx, 0, 1)?;
        if self.x_zero_point {
            cx.same_dtype("C1", 2, 0)?;
            single(cx, 2)?;
        }
        if self.w_zero_point {
            let i = cx.count() - 1;
            cx.same_dtype("C1", i, 1)?;
            kernel_parameter(cx, i, 1)?;
        }
        Ok(one(t))
    }
}

impl CompositeDef for ConvInteger {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x_zero = self.x_zero_point.then(|| operands[2]);
        let w_zero = self.w_zero_point.then(|| operands[operands.len() - 1]);
        let y = image_product!(self).build(b, (operands[0], x_zero), (operands[1], w_zero))?;
        Ok(Values::from_slice(&[y]))
    }
}

/// C1 and C4 of the scales and zero points of a requantised product.
fn requantised(cx: &Infer<'_>) -> Result<DType, TypeError> {
    for (zero_point, owner) in [(2, 0), (5, 3)] {
        cx.same_dtype("C1", zero_point, owner)?;
    }
    for scale in [1, 4, 6] {
        cx.float("C4", scale)?;
    }
    single(cx, 6)?;
    single(cx, 7)?;
    Ok(cx.of("C1", 7, "i8 or u8", is_byte)?.dtype)
}

/// saturate(round(product · (lhs scale · rhs scale / result scale)) + zero point); scales already have y's sizes.
fn requantise(
    b: &mut Builder,
    product: Value,
    [lhs, rhs]: [Value; 2],
    (scale, zero_point): (Value, Value),
) -> Result<Value, TypeError> {
    let (dims, to) = (b.shape(product), b.dtype(zero_point));
    let scale = b.cast(scale, DType::F32)?;
    let scale = channel_wide(b, scale, &dims, 0)?;
    let factor = b.mul(lhs, rhs)?;
    let factor = b.div(factor, scale)?;
    let product = b.cast(product, DType::F32)?;
    let y = b.mul(product, factor)?;
    let zero_point = channel_wide(b, zero_point, &dims, 0)?;
    saturated(b, y, Some(zero_point), to)
}

impl OpDef for QlinearMatmul {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(8)?;
        let t = product_type(cx, 0, 3)?;
        for (i, matrix, rows) in [(1, 0, true), (2, 0, true), (4, 3, false), (5, 3, false)] {
            matrix_parameter(cx, i, matrix, rows)?;
        }
        Ok(one(t.with_dtype(requantised(cx)?)))
    }
}

impl CompositeDef for QlinearMatmul {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let product = integer_product(b, (operands[0], Some(operands[2])), (operands[3], Some(operands[5])))?;
        let dims = b.shape(product);
        let lhs = b.cast(operands[1], DType::F32)?;
        let lhs = matrix_wide(b, lhs, &dims, true)?;
        let rhs = b.cast(operands[4], DType::F32)?;
        let rhs = matrix_wide(b, rhs, &dims, false)?;
        Ok(Values::from_slice(&[requantise(b, product, [lhs, rhs], (operands[6], operands[7]))?]))
    }
}

impl OpDef for QlinearConv {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(8, 9)?;
        let t = image_product!(self).infer(cx, 0, 3)?;
        single(cx, 1)?;
        single(cx, 2)?;
        kernel_parameter(cx, 4, 3)?;
        kernel_parameter(cx, 5, 3)?;
        if cx.count() == 9 {
            cx.dtype("C7", 8, DType::I32)?;
            cx.same_dims("C7", 8, &cx.operand(3)?.shape[..1])?;
        }
        Ok(one(t.with_dtype(requantised(cx)?)))
    }
}

impl CompositeDef for QlinearConv {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, w) = ((operands[0], Some(operands[2])), (operands[3], Some(operands[5])));
        let product = image_product!(self).build(b, x, w)?;
        let product = add_channel_bias(b, product, operands.get(8).copied(), DType::I32)?;
        let dims = b.shape(product);
        let lhs = b.cast(operands[1], DType::F32)?;
        let lhs = channel_wide(b, lhs, &dims, 1)?;
        let rhs = b.cast(operands[4], DType::F32)?;
        let rhs = channel_wide(b, rhs, &dims, 1)?;
        Ok(Values::from_slice(&[requantise(b, product, [lhs, rhs], (operands[6], operands[7]))?]))
    }
}

impl MatmulNbits {
    /// Bytes \[…, n\] as numbers \[…, n · 8 / bits\], low bits first.
    fn unpacked(&self, b: &mut Builder, bytes: Value) -> Result<Value, TypeError> {
        let shape = b.shape(bytes);
        let last = shape.rank() - 1;
        let parts = 8 / self.bits.max(1);
        let mut dims = shape.to_vec();
        dims.push(parts.into());
        let wide = b.broadcast_in(bytes, &dims, &(0..=last).collect::<Vec<usize>>())?;
        let shift = counter(b, &dims, last + 1, self.bits as i64)?;
        let shift = b.cast(shift, DType::U8)?;
        let shifted = b.binary(BinaryOp::Shr, wide, shift)?;
        let mask = b.like(f64::from((1u32 << self.bits) - 1), shifted)?;
        let numbers = b.binary(BinaryOp::And, shifted, mask)?;
        b.reshape(numbers, &shape.with_dim(last, &shape[last] * &parts.into()))
    }

    /// The place of the zero points, the group indices and the bias among the operands.
    fn places(&self) -> (usize, usize, usize) {
        let group = 3 + usize::from(self.zero_points);
        (3, group, group + usize::from(self.group_indices))
    }
}

impl OpDef for MatmulNbits {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let (zero, group, bias) = self.places();
        cx.arity(bias + usize::from(self.bias))?;
        let x = cx.float("C1", 0)?;
        cx.rank_at_least("C1", 0, 1)?;
        cx.ensure(matches!(self.bits, 2 | 4 | 8), "C2", None, "bits", "2, 4 or 8", self.bits)?;
        let whole = self.block_size > 0 && (self.block_size * self.bits).is_multiple_of(8);
        cx.ensure(whole, "C2", None, "block size", "whole bytes", self.block_size)?;
        cx.dtype("C3", 1, DType::U8)?;
        let w = cx.rank("C3", 1, 3)?;
        let (n, k) = (w.shape[0].clone(), x.shape[x.rank() - 1].clone());
        let blocks = k.ceil_div(&self.block_size.into());
        let bytes = Dim::from(self.block_size * self.bits / 8);
        cx.same_dims("C3", 1, &[n.clone(), blocks.clone(), bytes])?;
        cx.same_dtype("C1", 2, 0)?;
        let sized = |i: usize, columns: &Dim| {
            let found = cx.operand(i)?.shape.element_count();
            cx.equal("C4", Some(i), "elements", &(&n * columns), &found)
        };
        sized(2, &blocks)?;
        if self.zero_points {
            let t = cx.of("C4", zero, "u8 or x's type", |d| d == DType::U8 || d == x.dtype)?;
            let packed = (&blocks * &Dim::from(self.bits)).ceil_div(&8.into());
            sized(zero, if t.dtype == DType::U8 { &packed } else { &blocks })?;
        }
        if self.group_indices {
            cx.dtype("C4", group, DType::I32)?;
            cx.same_dims("C4", group, std::slice::from_ref(&k))?;
        }
        if self.bias {
            cx.same_dtype("C1", bias, 0)?;
            cx.same_dims("C4", bias, std::slice::from_ref(&n))?;
        }
        Ok(one(x.with_shape(x.shape.with_dim(x.rank() - 1, n))))
    }
}

impl CompositeDef for MatmulNbits {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (zero, group, bias) = self.places();
        let (x, bytes) = (operands[0], operands[1]);
        let (t, packed) = (b.type_of(x).clone(), b.shape(bytes));
        let wide = statistics_dtype(t.dtype);
        let (n, k) = (packed[0].clone(), t.shape[t.rank() - 1].clone());
        let blocks = k.ceil_div(&self.block_size.into());
        let by_block = [n.clone(), blocks.clone()];
        let padded = &blocks * &Dim::from(self.block_size);
        let numbers = self.unpacked(b, bytes)?;
        let numbers = b.reshape(numbers, &[n.clone(), padded.clone()])?;
        let numbers = b.slice_axis(numbers, 1, &Dim::ZERO, &k)?;
        let numbers = b.cast(numbers, wide)?;
        let scales = b.reshape(operands[2], &by_block)?;
        let scales = b.cast(scales, wide)?;
        let zeros = if !self.zero_points {
            b.full(f64::from(1u32 << (self.bits - 1)), &TensorType::new(wide, by_block.as_slice()))?
        } else if b.dtype(operands[zero]) == DType::U8 {
            let row = (&blocks * &Dim::from(self.bits)).ceil_div(&8.into());
            let rows = b.reshape(operands[zero], &[n.clone(), row])?;
            let rows = self.unpacked(b, rows)?;
            let zeros = b.slice_axis(rows, 1, &Dim::ZERO, &blocks)?;
            b.cast(zeros, wide)?
        } else {
            let zeros = b.reshape(operands[zero], &by_block)?;
            b.cast(zeros, wide)?
        };
        let mut by_weight = [scales, zeros];
        for parameter in &mut by_weight {
            *parameter = if self.group_indices {
                b.take(*parameter, operands[group], 1)?
            } else {
                let all = [n.clone(), blocks.clone(), self.block_size.into()];
                let repeated = b.broadcast_in(*parameter, &all, &[0, 1])?;
                let repeated = b.reshape(repeated, &[n.clone(), padded.clone()])?;
                b.slice_axis(repeated, 1, &Dim::ZERO, &k)?
            };
        }
        let [scales, zeros] = by_weight;
        let weights = b.sub(numbers, zeros)?;
        let weights = b.mul(weights, scales)?;
        let x = b.cast(x, wide)?;
        let dot = Dot::along(0, t.rank() - 1, 1);
        let mut y = b.push1(dot, &[x, weights])?;
        if self.bias {
            let bias = b.cast(operands[bias], wide)?;
            let bias = b.broadcast_to(bias, &b.shape(y))?;
            y = b.add(y, bias)?;
        }
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}
