//! Linear quantisation: numbers as scale · (integer − zero point), per tensor, per index of an axis, or per block.
//!
//! Rounding is half to even; the zero point is added after rounding, then the sum saturates.

use super::elementwise::{BinaryOp, Cast, CompareOp, UnaryOp};
use super::norm::statistics_dtype;
use super::reduce::ReduceOp;
use super::{Axis, CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::{Shape, TensorType};

operation! {
    /// y = saturate(round(x / scale) + zero point), or the cast of x / scale (+ zero point for f4e2m1) for 8-bit and
    /// 4-bit floats (ONNX QuantizeLinear). Operands: x, scale, and optionally the zero point.
    /// C1: x is floating point or i32, the scale floating point. C2: `to` is an integer of at most 16 bits, an 8-bit
    /// float or f4e2m1. C3: the zero point has the type `to` and the scale's sizes. C4: the scale is a scalar or one
    /// element; or has the axis's size; or, with a block size, x's sizes but ⌈size / block⌉ along the axis.
    /// C5: `precision` is floating point.
    pub struct QuantizeLinear = "quantize_linear" {
        /// The axis of the scale, where it is no scalar.
        axis: Axis,
        /// Elements along the axis that share a scale; 0: the scale is no block scale.
        block_size: usize,
        /// The result's type.
        to: DType,
        /// To 8-bit floats: whether what is out of range becomes the largest finite number.
        saturate: bool,
        /// The type in which x is divided; without it the scale's.
        precision: Option<DType>,
    }
}

operation! {
    /// y = (x − zero point) · scale, rounded once (ONNX DequantizeLinear). Operands: x, scale, and optionally the zero
    /// point. C1: x is an integer of at most 32 bits, an 8-bit float or f4e2m1; the scale is floating point.
    /// C2: the result is floating point. C3: the zero point has x's type and the scale's sizes. C4: as
    /// `quantize_linear`.
    pub struct DequantizeLinear = "dequantize_linear" {
        /// The axis of the scale, where it is no scalar.
        axis: Axis,
        /// Elements along the axis that share a scale; 0: the scale is no block scale.
        block_size: usize,
        /// The result's type.
        to: DType,
    }
}

operation! {
    /// x (f32) as u8 with the scale (greatest − least) / 255, both ends including 0 (1 if they are equal), and the zero
    /// point saturate(round(−least / scale)). Results: y, scale (f32), zero point (u8). C1: x is f32.
    pub struct DynamicQuantizeLinear = "dynamic_quantize_linear" {}
}

/// The least and greatest integer of a type that linear quantisation gives.
fn integer_range(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65535.0),
        DType::I16 => (-32768.0, 32767.0),
        DType::U4 => (0.0, 15.0),
        DType::I4 => (-8.0, 7.0),
        DType::U2 => (0.0, 3.0),
        DType::I2 => (-2.0, 1.0),
        _ => return None,
    })
}

/// The greatest finite number of an 8-bit or 4-bit float.
fn small_float_greatest(dtype: DType) -> Option<f64> {
    match dtype {
        DType::F8E4M3FN => Some(448.0),
        DType::F8E4M3FNUZ => Some(240.0),
        DType::F8E5M2 | DType::F8E5M2FNUZ => Some(57344.0),
        DType::F4E2M1 => Some(6.0),
        _ => None,
    }
}

fn is_small_float(dtype: DType) -> bool {
    small_float_greatest(dtype).is_some()
}

/// C3 and C4: the sizes of the scale (operand 1) and the zero point (operand 2), which has the type `zero_point`.
fn parameters(cx: &Infer<'_>, axis: Axis, block_size: usize, zero_point: DType) -> Result<(), TypeError> {
    let (x, scale) = (cx.operand(0)?, cx.operand(1)?);
    if cx.count() == 3 {
        cx.dtype("C3", 2, zero_point)?;
        cx.same_dims("C3", 2, scale.dims())?;
    }
    if scale.rank() == 0 || scale.shape.as_const().as_deref() == Some(&[1]) {
        return Ok(());
    }
    let axis = axis.resolve(cx, "C4", x.rank())?;
    if block_size == 0 {
        return cx.same_dims("C4", 1, std::slice::from_ref(&x.shape[axis]));
    }
    let blocks = x.shape[axis].ceil_div(&block_size.into());
    cx.same_dims("C4", 1, &x.shape.with_dim(axis, blocks))
}

/// A scale or zero point repeated to x's sizes.
fn spread(
    b: &mut Builder,
    parameter: Value,
    shape: &Shape,
    axis: Axis,
    block_size: usize,
) -> Result<Value, TypeError> {
    let own = b.shape(parameter);
    if own.rank() == 0 || own.as_const().as_deref() == Some(&[1]) {
        let scalar = b.reshape(parameter, &[])?;
        return b.broadcast_to(scalar, shape);
    }
    let axis = axis.of_rank(shape.rank()).unwrap_or(0);
    if block_size == 0 {
        return b.broadcast_in(parameter, shape, &[axis]);
    }
    let block = Dim::from(block_size);
    let split = b.unsqueeze(parameter, axis + 1)?;
    let mut dims = own.to_vec();
    dims.insert(axis + 1, block.clone());
    let repeated = b.broadcast_to(split, &dims)?;
    let repeated = b.reshape(repeated, &own.with_dim(axis, &own[axis] * &block))?;
    // The last block may be cut short.
    b.slice_axis(repeated, axis, &Dim::ZERO, &shape[axis])
}

/// Integers round(x) + zero point, saturated to the range of `to`.
pub(super) fn saturated(
    b: &mut Builder,
    x: Value,
    zero_point: Option<Value>,
    to: DType,
) -> Result<Value, TypeError> {
    let (least, greatest) = integer_range(to).unwrap_or((0.0, 0.0));
    let rounded = b.unary(UnaryOp::Round, x)?;
    // Far beyond both ranges, near enough that a zero point does not overflow.
    let bound = b.like(1_048_576.0, rounded)?;
    let rounded = b.min(rounded, bound)?;
    let bound = b.like(-1_048_576.0, rounded)?;
    let rounded = b.max(rounded, bound)?;
    let mut whole = b.cast(rounded, DType::I32)?;
    if let Some(zero_point) = zero_point {
        let zero_point = b.cast(zero_point, DType::I32)?;
        whole = b.add(whole, zero_point)?;
    }
    let bound = b.like(greatest, whole)?;
    let whole = b.min(whole, bound)?;
    let bound = b.like(least, whole)?;
    let whole = b.max(whole, bound)?;
    b.cast(whole, to)
}

impl OpDef for QuantizeLinear {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(2, 3)?;
        let x = cx.of("C1", 0, "a floating-point type or i32", |d| d.is_float() || d == DType::I32)?;
        cx.float("C1", 1)?;
        let known = integer_range(self.to).is_some() || is_small_float(self.to);
        cx.ensure(
            known,
            "C2",
            None,
            "result type",
            "an integer of at most 16 bits or a small float",
            self.to,
        )?;
        parameters(cx, self.axis, self.block_size, self.to)?;
        if let Some(precision) = self.precision {
            cx.ensure(precision.is_float(), "C5", None, "precision", "a floating-point type", precision)?;
        }
        Ok(one(x.with_dtype(self.to)))
    }
}

impl CompositeDef for QuantizeLinear {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shape = b.shape(operands[0]);
        let scale_dtype = b.dtype(operands[1]);
        let precision = match self.precision.unwrap_or(scale_dtype) {
            // A power of two has no arithmetic of its own.
            DType::E8M0 => DType::F32,
            precision => precision,
        };
        let x = b.cast(operands[0], precision)?;
        let scale = b.cast(operands[1], precision)?;
        let scale = spread(b, scale, &shape, self.axis, self.block_size)?;
        let quotient = b.div(x, scale)?;
        let zero_point = match operands.get(2) {
            Some(zero_point) if !is_small_float(self.to) || self.to == DType::F4E2M1 => {
                Some(spread(b, *zero_point, &shape, self.axis, self.block_size)?)
            }
            _ => None,
        };
        let wide = b.cast(quotient, statistics_dtype(precision))?;
        let y = if is_small_float(self.to) {
            let shifted = match zero_point {
                Some(zero_point) => {
                    let zero_point = b.cast(zero_point, b.dtype(wide))?;
                    b.add(wide, zero_point)?
                }
                None => wide,
            };
            let saturate = self.saturate || self.to == DType::F4E2M1;
            let inside = match small_float_greatest(self.to) {
                Some(greatest) if saturate => {
                    let bound = b.like(greatest, shifted)?;
                    let below = b.min(shifted, bound)?;
                    let bound = b.like(-greatest, shifted)?;
                    b.max(below, bound)?
                }
                _ => shifted,
            };
            b.push1(Cast { to: self.to, saturate, round: None }, &[inside])?
        } else {
            saturated(b, wide, zero_point, self.to)?
        };
        Ok(Values::from_slice(&[y]))
    }
}

impl OpDef for DequantizeLinear {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(2, 3)?;
        let x = cx.of("C1", 0, "an integer of at most 32 bits or a small float", |d| {
            integer_range(d).is_some() || is_small_float(d) || d == DType::I32
        })?;
        cx.float("C1", 1)?;
        cx.ensure(self.to.is_float(), "C2", None, "result type", "a floating-point type", self.to)?;
        parameters(cx, self.axis, self.block_size, x.dtype)?;
        Ok(one(x.with_dtype(self.to)))
    }
}

impl CompositeDef for DequantizeLinear {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let wide = statistics_dtype(self.to);
        let middle = if t.dtype.is_int() { DType::I32 } else { wide };
        let mut x = b.cast(operands[0], middle)?;
        if let Some(zero_point) = operands.get(2) {
            let zero_point = b.cast(*zero_point, middle)?;
            let zero_point = spread(b, zero_point, &t.shape, self.axis, self.block_size)?;
            x = b.sub(x, zero_point)?;
        }
        let x = b.cast(x, wide)?;
        let scale = b.cast(operands[1], wide)?;
        let scale = spread(b, scale, &t.shape, self.axis, self.block_size)?;
        let y = b.mul(x, scale)?;
        Ok(Values::from_slice(&[b.cast(y, self.to)?]))
    }
}

impl OpDef for DynamicQuantizeLinear {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.dtype("C1", 0, DType::F32)?;
        Ok(Types::from_iter([
            x.with_dtype(DType::U8),
            TensorType::scalar(DType::F32),
            TensorType::scalar(DType::U8),
        ]))
    }
}

impl CompositeDef for DynamicQuantizeLinear {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let x = operands[0];
        let shape = b.shape(x);
        let axes: Vec<usize> = (0..shape.rank()).collect();
        let zero = b.scalar(0.0, DType::F32)?;
        let greatest = b.reduce(ReduceOp::Max, x, &axes, false)?;
        let greatest = b.max(greatest, zero)?;
        let least = b.reduce(ReduceOp::Min, x, &axes, false)?;
        let least = b.min(least, zero)?;
        let range = b.sub(greatest, least)?;
        let steps = b.scalar(255.0, DType::F32)?;
        let scale = b.div(range, steps)?;
        let flat = b.compare_scalar(CompareOp::Eq, range, 0.0)?;
        let unit = b.scalar(1.0, DType::F32)?;
        let scale = b.select(flat, unit, scale)?;
        let offset = b.binary(BinaryOp::Div, least, scale)?;
        let offset = b.unary(UnaryOp::Neg, offset)?;
        let zero_point = saturated(b, offset, None, DType::U8)?;
        let scales = b.broadcast_to(scale, &shape)?;
        let quotient = b.div(x, scales)?;
        let zero_points = b.broadcast_to(zero_point, &shape)?;
        let y = saturated(b, quotient, Some(zero_points), DType::U8)?;
        Ok(Values::from_slice(&[y, scale, zero_point]))
    }
}
