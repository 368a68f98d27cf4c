//! Linear quantisation and products of quantised tensors.

use rlx_ir::op::Axis;
use rlx_ir::op::linear_quantisation::{DequantizeLinear, DynamicQuantizeLinear, QuantizeLinear};
use rlx_ir::op::quantised_matmul::{ConvInteger, MatmulInteger, QlinearConv, QlinearMatmul};
use rlx_ir::{DType, Value};

use super::attention::chosen_type;
use super::convolution::{kernel_sizes, positive};
use super::window;
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("ConvInteger", &[10], conv_integer),
    onnx("DequantizeLinear", &[10, 13, 19, 21, 23, 24, 25, 28], dequantize_linear),
    onnx("DynamicQuantizeLinear", &[11], dynamic_quantize_linear),
    onnx("MatMulInteger", &[10], matmul_integer),
    onnx("QLinearConv", &[10], qlinear_conv),
    onnx("QLinearMatMul", &[10, 21], qlinear_matmul),
    onnx("QuantizeLinear", &[10, 13, 19, 21, 23, 24, 25, 28], quantize_linear),
];

/// Axis and block size of the scales.
fn placement(cx: &NodeContext<'_, '_>) -> Result<(Axis, usize), NodeProblem> {
    let (axis, block_size) = (cx.int("axis", 1)?, cx.int("block_size", 0)?);
    let block_size =
        usize::try_from(block_size).map_err(|_| cx.bad_attribute("block_size", "at least 0", block_size))?;
    Ok((Axis(axis), block_size))
}

/// x, the scale, and the zero point in the scale's sizes where both are single numbers.
fn parameters(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>, NodeProblem> {
    let (x, scale) = (cx.input(0)?, cx.input(1)?);
    let mut operands = vec![x, scale];
    if let Some(zero_point) = cx.optional(2)? {
        let b = cx.builder();
        let dims = b.shape(scale);
        let single = |v: Value| b.shape(v).element_count().as_const() == Some(1);
        let both = single(scale) && single(zero_point);
        operands.push(if both { b.reshape(zero_point, &dims)? } else { zero_point });
    }
    Ok(operands)
}

fn quantize_linear(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (axis, block_size) = placement(cx)?;
    let saturate = cx.flag("saturate", true)?;
    let precision = chosen_type(cx, "precision")?;
    let named = chosen_type(cx, "output_dtype")?;
    let operands = parameters(cx)?;
    let of_zero_point = operands.get(2).map(|v| cx.dtype(*v));
    let to = match (named, of_zero_point) {
        (Some(named), Some(found)) if named != found => {
            return Err(cx.bad_input(2, "element type", format!("that of output_dtype, {named}"), found));
        }
        (named, found) => found.or(named).unwrap_or(DType::U8),
    };
    let op = QuantizeLinear { axis, block_size, to, saturate, precision };
    Ok(cx.builder().push1(op, &operands)?.into())
}

fn dequantize_linear(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (axis, block_size) = placement(cx)?;
    let named = chosen_type(cx, "output_dtype")?;
    let operands = parameters(cx)?;
    let to = named.unwrap_or(cx.dtype(operands[1]));
    Ok(cx.builder().push1(DequantizeLinear { axis, block_size, to }, &operands)?.into())
}

fn dynamic_quantize_linear(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    Ok(cx.builder().push(DynamicQuantizeLinear {}, &[x])?.to_vec().into())
}

/// Vectors as matrices, as numpy's matmul has them; which axes of the result go again.
pub(super) fn as_matrices(
    cx: &mut NodeContext<'_, '_>,
    mut x: Value,
    mut y: Value,
) -> Result<(Value, Value, Vec<usize>), NodeProblem> {
    let (x_vector, y_vector) = (cx.rank(x) == 1, cx.rank(y) == 1);
    let rank = cx.rank(x).max(cx.rank(y)).max(2);
    let b = cx.builder();
    let mut extra = Vec::new();
    if x_vector {
        x = b.unsqueeze(x, 0)?;
        extra.push(rank - 2);
    }
    if y_vector {
        y = b.unsqueeze(y, 1)?;
        extra.push(rank - 1);
    }
    Ok((x, y, extra))
}

fn matmul_integer(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let (x_zero, y_zero) = (cx.optional(2)?, cx.optional(3)?);
    let (x, y, extra) = as_matrices(cx, x, y)?;
    let op = MatmulInteger { lhs_zero_point: x_zero.is_some(), rhs_zero_point: y_zero.is_some() };
    let operands: Vec<Value> = [x, y].into_iter().chain(x_zero).chain(y_zero).collect();
    let b = cx.builder();
    let product = b.push1(op, &operands)?;
    Ok(b.squeeze(product, &extra)?.into())
}

fn qlinear_matmul(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut operands = (0..8).map(|i| cx.input(i)).collect::<Result<Vec<Value>, _>>()?;
    let extra;
    (operands[0], operands[3], extra) = as_matrices(cx, operands[0], operands[3])?;
    let b = cx.builder();
    let product = b.push1(QlinearMatmul {}, &operands)?;
    Ok(b.squeeze(product, &extra)?.into())
}

fn conv_integer(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let (x_zero, w_zero) = (cx.optional(2)?, cx.optional(3)?);
    let (dims, kernel) = (cx.shape(x), kernel_sizes(cx, x, w)?);
    let windows = window::windows(cx, &dims[2..], &kernel)?;
    let op = ConvInteger {
        strides: windows.strides,
        padding: windows.padding,
        dilations: windows.dilations,
        groups: positive(cx, "group")?,
        x_zero_point: x_zero.is_some(),
        w_zero_point: w_zero.is_some(),
    };
    let operands: Vec<Value> = [x, w].into_iter().chain(x_zero).chain(w_zero).collect();
    Ok(cx.builder().push1(op, &operands)?.into())
}

fn qlinear_conv(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut operands = (0..8).map(|i| cx.input(i)).collect::<Result<Vec<Value>, _>>()?;
    operands.extend(cx.optional(8)?);
    let (dims, kernel) = (cx.shape(operands[0]), kernel_sizes(cx, operands[0], operands[3])?);
    let windows = window::windows(cx, &dims[2..], &kernel)?;
    let op = QlinearConv {
        strides: windows.strides,
        padding: windows.padding,
        dilations: windows.dilations,
        groups: positive(cx, "group")?,
    };
    Ok(cx.builder().push1(op, &operands)?.into())
}
