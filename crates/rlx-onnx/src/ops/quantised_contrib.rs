//! Quantised operators of onnxruntime's own domain `com.microsoft`: products with dynamically quantised activations,
//! an LSTM of such products, products with few-bit weights, and elementwise operators between quantised tensors.
//! Their meaning is that of onnxruntime's operator documents (ContribOperators.md, MIT).

use rlx_ir::builder::Carried;
use rlx_ir::op::Axis;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::linear_quantisation::{DequantizeLinear, DynamicQuantizeLinear, QuantizeLinear};
use rlx_ir::op::quantised_matmul::{MatmulInteger, MatmulNbits};
use rlx_ir::op::recurrent::Direction;
use rlx_ir::{Builder, DType, Dim, TypeError, Value};

use super::quantise::as_matrices;
use super::recurrent::Layer;
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain};

const DOMAIN: &str = "com.microsoft";

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    of_domain(DOMAIN, "DynamicQuantizeLSTM", &[1], dynamic_quantize_lstm),
    of_domain(DOMAIN, "DynamicQuantizeMatMul", &[1], dynamic_quantize_matmul),
    of_domain(DOMAIN, "MatMulIntegerToFloat", &[1], matmul_integer_to_float),
    of_domain(DOMAIN, "MatMulNBits", &[1], matmul_nbits),
    of_domain(DOMAIN, "QGemm", &[1], qgemm),
    of_domain(DOMAIN, "QLinearAdd", &[1], |cx| qlinear_binary(cx, BinaryOp::Add)),
    of_domain(DOMAIN, "QLinearMul", &[1], |cx| qlinear_binary(cx, BinaryOp::Mul)),
    of_domain(DOMAIN, "QLinearSigmoid", &[1], |cx| qlinear_unary(cx, UnaryOp::Sigmoid)),
];

type Built = Result<Value, TypeError>;

/// Bytes with what they stand for: (bytes − zero point) · scale.
#[derive(Clone, Copy)]
struct Quantised {
    bytes: Value,
    scale: Value,
    zero_point: Option<Value>,
}

impl Quantised {
    /// The operands i, i + 1 and i + 2 of the node: bytes, scale, zero point.
    fn inputs(cx: &NodeContext<'_, '_>, i: usize) -> Result<Quantised, NodeProblem> {
        Ok(Quantised { bytes: cx.input(i)?, scale: cx.input(i + 1)?, zero_point: cx.optional(i + 2)? })
    }

    /// f32 \[…\] as bytes with one scale and one zero point, both from the least and greatest element.
    fn dynamically(b: &mut Builder, x: Value) -> Result<Quantised, TypeError> {
        let parts = b.push(DynamicQuantizeLinear {}, &[x])?;
        Ok(Quantised { bytes: parts[0], scale: parts[1], zero_point: Some(parts[2]) })
    }

    /// The numbers that it stands for; scale and zero point are single.
    fn numbers(self, b: &mut Builder) -> Built {
        let to = b.dtype(self.scale);
        let scale = single(b, self.scale)?;
        let mut operands = vec![self.bytes, scale];
        if let Some(zero_point) = self.zero_point {
            operands.push(single(b, zero_point)?);
        }
        b.push1(DequantizeLinear { axis: Axis(0), block_size: 0, to }, &operands)
    }
}

/// A tensor of one element as a scalar; others as they are, for the operation that takes them to refuse.
fn single(b: &mut Builder, x: Value) -> Built {
    if b.shape(x).element_count().as_const() == Some(1) { b.reshape(x, &[]) } else { Ok(x) }
}

/// x · y as f32: the exact product of the integers, times both scales. Those of y may be one a column.
fn product(b: &mut Builder, x: Quantised, y: Quantised) -> Built {
    let x_scale = single(b, x.scale)?;
    let y_scale = single(b, y.scale)?;
    let op = MatmulInteger { lhs_zero_point: x.zero_point.is_some(), rhs_zero_point: y.zero_point.is_some() };
    let mut operands = vec![x.bytes, y.bytes];
    for zero_point in [x.zero_point, y.zero_point].into_iter().flatten() {
        operands.push(single(b, zero_point)?);
    }
    let sums = b.push1(op, &operands)?;
    let sums = b.cast(sums, b.dtype(x_scale))?;
    let scales = b.broadcasting(BinaryOp::Mul, x_scale, y_scale)?;
    let scales = b.broadcast_to(scales, &b.shape(sums))?;
    b.mul(sums, scales)
}

/// x plus a bias, where there is one.
fn biased(b: &mut Builder, x: Value, bias: Option<Value>) -> Built {
    match bias {
        Some(bias) => {
            let bias = b.broadcast_to(bias, &b.shape(x))?;
            b.add(x, bias)
        }
        None => Ok(x),
    }
}

/// Inputs: A, B, the scale of B, its zero point, a bias.
fn dynamic_quantize_matmul(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, y, y_scale) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (zero_point, bias) = (cx.optional(3)?, cx.optional(4)?);
    let (x, y, extra) = as_matrices(cx, x, y)?;
    let b = cx.builder();
    let x = Quantised::dynamically(b, x)?;
    let y = product(b, x, Quantised { bytes: y, scale: y_scale, zero_point })?;
    let y = b.squeeze(y, &extra)?;
    Ok(biased(b, y, bias)?.into())
}

/// Inputs: A, B, the scales of both, their zero points, a bias.
fn matmul_integer_to_float(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let scales = [cx.input(2)?, cx.input(3)?];
    let (zero_points, bias) = ([cx.optional(4)?, cx.optional(5)?], cx.optional(6)?);
    let (x, y, extra) = as_matrices(cx, x, y)?;
    let b = cx.builder();
    let x = Quantised { bytes: x, scale: scales[0], zero_point: zero_points[0] };
    let y = Quantised { bytes: y, scale: scales[1], zero_point: zero_points[1] };
    let y = product(b, x, y)?;
    let y = b.squeeze(y, &extra)?;
    Ok(biased(b, y, bias)?.into())
}

/// Inputs: A, the packed weights, scales, zero points, group indices, a bias. `accuracy_level` allows narrower
/// arithmetic, which is not taken.
fn matmul_nbits(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (k, n) = (cx.required_int("K")?, cx.required_int("N")?);
    let (bits, block_size) = (cx.int("bits", 4)?, cx.required_int("block_size")?);
    if cx.int("weight_prepacked", 0)? != 0 {
        return Err(NodeProblem::Unsupported("weights in the layout of one device".to_owned()));
    }
    let positive = |name: &str, value: i64| {
        let size = usize::try_from(value).ok().filter(|size| *size >= 1);
        size.ok_or_else(|| cx.bad_attribute(name, "at least 1", value))
    };
    let (bits, block_size) = (positive("bits", bits)?, positive("block_size", block_size)?);
    let (k, n) = (positive("K", k)?, positive("N", n)?);
    let (zero_points, group_indices, bias) = (cx.optional(3)?, cx.optional(4)?, cx.optional(5)?);
    let (x, weights, scales) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let dims = cx.shape(x);
    if dims.last().and_then(Dim::as_size).is_some_and(|last| last != k) {
        return Err(cx.bad_input(0, "last size", k, dims));
    }
    let bytes = block_size.checked_mul(bits).map(|all| all / 8).unwrap_or(usize::MAX);
    let blocks = Dim::from(k.div_ceil(block_size));
    let b = cx.builder();
    // Files also hold the weights as [n, blocks · bytes].
    let weights = b.reshape(weights, &[n.into(), blocks, bytes.into()])?;
    let op = MatmulNbits {
        bits,
        block_size,
        zero_points: zero_points.is_some(),
        group_indices: group_indices.is_some(),
        bias: bias.is_some(),
    };
    let optional = [zero_points, group_indices, bias].into_iter().flatten();
    let operands: Vec<Value> = [x, weights, scales].into_iter().chain(optional).collect();
    Ok(b.push1(op, &operands)?.into())
}

/// Numbers as bytes with this scale and zero point; without a zero point they are u8.
fn requantised(b: &mut Builder, x: Value, scale: Value, zero_point: Option<Value>, default: DType) -> Built {
    let mut operands = vec![x, single(b, scale)?];
    let mut to = default;
    if let Some(zero_point) = zero_point {
        to = b.dtype(zero_point);
        operands.push(single(b, zero_point)?);
    }
    let op = QuantizeLinear { axis: Axis(0), block_size: 0, to, saturate: true, precision: None };
    b.push1(op, &operands)
}

/// Inputs: A, its scale and zero point, B, its scale and zero point, the scale and zero point of the result.
fn qlinear_binary(cx: &mut NodeContext<'_, '_>, op: BinaryOp) -> Handled {
    let (x, y) = (Quantised::inputs(cx, 0)?, Quantised::inputs(cx, 3)?);
    let (scale, zero_point) = (cx.input(6)?, cx.optional(7)?);
    let b = cx.builder();
    let (x_numbers, y_numbers) = (x.numbers(b)?, y.numbers(b)?);
    let result = b.broadcasting(op, x_numbers, y_numbers)?;
    let default = b.dtype(x.bytes);
    Ok(requantised(b, result, scale, zero_point, default)?.into())
}

/// Inputs: X, its scale and zero point, the scale and zero point of the result.
fn qlinear_unary(cx: &mut NodeContext<'_, '_>, op: UnaryOp) -> Handled {
    let x = Quantised::inputs(cx, 0)?;
    let (scale, zero_point) = (cx.input(3)?, cx.optional(4)?);
    let b = cx.builder();
    let numbers = x.numbers(b)?;
    let result = b.unary(op, numbers)?;
    let default = b.dtype(x.bytes);
    Ok(requantised(b, result, scale, zero_point, default)?.into())
}

/// α · A′ · B′ + C with C in i32 steps of α · both scales; bytes again if the result has a scale, else f32.
fn qgemm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (mut x, mut y) = (Quantised::inputs(cx, 0)?, Quantised::inputs(cx, 3)?);
    let (addend, scale, zero_point) = (cx.optional(6)?, cx.optional(7)?, cx.optional(8)?);
    let alpha = cx.float("alpha", 1.0)?;
    let (transpose_x, transpose_y) = (cx.flag("transA", false)?, cx.flag("transB", false)?);
    for (i, value) in [(0, x.bytes), (3, y.bytes)] {
        let rank = cx.rank(value);
        if rank != 2 {
            return Err(cx.bad_input(i, "number of axes", 2, rank));
        }
    }
    let default = cx.dtype(x.bytes);
    let b = cx.builder();
    if transpose_x {
        x.bytes = b.matrix_transpose(x.bytes)?;
    }
    if transpose_y {
        y.bytes = b.matrix_transpose(y.bytes)?;
    }
    let mut result = product(b, x, y)?;
    if alpha != 1.0 {
        result = b.mul_scalar(result, alpha)?;
    }
    if let Some(addend) = addend {
        let steps = b.cast(addend, b.dtype(result))?;
        let steps = b.broadcast_to(steps, &b.shape(result))?;
        let (x_scale, y_scale) = (single(b, x.scale)?, single(b, y.scale)?);
        let size = b.broadcasting(BinaryOp::Mul, x_scale, y_scale)?;
        let size = b.mul_scalar(size, alpha)?;
        let size = b.broadcast_to(size, &b.shape(result))?;
        let addend = b.mul(steps, size)?;
        result = b.add(result, addend)?;
    }
    Ok(match scale {
        Some(scale) => requantised(b, result, scale, zero_point, default)?,
        None => result,
    }
    .into())
}

/// The weights of one direction.
struct Side {
    input: Quantised,
    recurrent: Quantised,
    /// The biases of both, added.
    bias: Option<Value>,
    /// The first hidden state and cell state.
    states: [Value; 2],
}

/// An LSTM (gates i, o, f, g) whose input, and before each step whose hidden state, is quantised for its product with
/// the quantised weights. Inputs: those of LSTM with W \[directions, inputs, 4 · hidden\] and R \[directions, hidden,
/// 4 · hidden\], then scale and zero point of W, then those of R.
fn dynamic_quantize_lstm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let layer = Layer::of(cx, 3)?;
    if !layer.activations.is_empty() || cx.flag("input_forget", false)? || layer.batch_first {
        return Err(NodeProblem::Unsupported(
            "a quantised LSTM with other activations, layout or gates".into(),
        ));
    }
    for (i, what) in [(4, "sequence lengths"), (7, "peepholes")] {
        if cx.has(i) {
            return Err(NodeProblem::Unsupported(format!("a quantised LSTM with {what}")));
        }
    }
    let x = cx.input(0)?;
    let weights = [(cx.input(1)?, cx.input(8)?, cx.input(9)?), (cx.input(2)?, cx.input(10)?, cx.input(11)?)];
    for (i, (value, ..)) in [(x, x, x), weights[0], weights[1]].into_iter().enumerate() {
        let rank = cx.rank(value);
        if rank != 3 {
            return Err(cx.bad_input(i, "number of axes", 3, rank));
        }
    }
    let (bias, first) = (cx.optional(3)?, [cx.optional(5)?, cx.optional(6)?]);
    let b = cx.builder();
    let dims = b.shape(x);
    let (steps, batch, hidden) = (dims[0].clone(), dims[1].clone(), b.dim(weights[1].0, 1));
    let rows = b.reshape(x, &[&steps * &batch, dims[2].clone()])?;
    let rows = Quantised::dynamically(b, rows)?;
    let (mut outputs, mut states) = (Vec::new(), [Vec::new(), Vec::new()]);
    for direction in 0..layer.direction.count() {
        let index = Dim::from(direction);
        let quantised = |b: &mut Builder, (bytes, scale, zero_point): (Value, Value, Value)| {
            let zero_point = Some(b.index_axis(zero_point, 0, &index)?);
            Ok::<_, TypeError>(Quantised {
                bytes: b.index_axis(bytes, 0, &index)?,
                scale: b.index_axis(scale, 0, &index)?,
                zero_point,
            })
        };
        let (input, recurrent) = (quantised(b, weights[0])?, quantised(b, weights[1])?);
        let bias = match bias {
            Some(bias) => {
                let own = b.index_axis(bias, 0, &index)?;
                let each = hidden.clone() * 4;
                let both = b.split(own, 0, &[each.clone(), each])?;
                Some(b.add(both[0], both[1])?)
            }
            None => None,
        };
        let mut first_states = [x; 2];
        for (state, given) in first_states.iter_mut().zip(first) {
            *state = match given {
                Some(given) => b.index_axis(given, 0, &index)?,
                None => {
                    let zero = b.scalar(0.0, DType::F32)?;
                    b.broadcast_to(zero, &[batch.clone(), hidden.clone()])?
                }
            };
        }
        let side = Side { input, recurrent, bias, states: first_states };
        let reverse = layer.direction == Direction::Reverse || direction == 1;
        let clip = layer.clip.map(rlx_ir::op::Real::get);
        let results = side.scanned(b, rows, [&steps, &batch, &hidden], reverse, clip)?;
        outputs.push(b.unsqueeze(results.stacked[0], 1)?);
        for (all, state) in states.iter_mut().zip(results.carried) {
            all.push(b.unsqueeze(state, 0)?);
        }
    }
    let [hidden_states, cell_states] = states;
    let results = [b.concat(&outputs, 1)?, b.concat(&hidden_states, 0)?, b.concat(&cell_states, 0)?];
    Ok(results.to_vec().into())
}

impl Side {
    /// All steps of one direction: the last states \[batch, hidden\], the outputs \[steps, batch, hidden\].
    fn scanned(
        self,
        b: &mut Builder,
        rows: Quantised,
        [steps, batch, hidden]: [&Dim; 3],
        reverse: bool,
        clip: Option<f64>,
    ) -> Result<Carried, TypeError> {
        let given = product(b, rows, self.input)?;
        let given = biased(b, given, self.bias)?;
        let given = b.reshape(given, &[steps.clone(), batch.clone(), hidden.clone() * 4])?;
        let recurrent = self.recurrent;
        let captured: Vec<Value> =
            [recurrent.bytes, recurrent.scale].into_iter().chain(recurrent.zero_point).collect();
        b.scan(&self.states, &[given], &captured, steps, reverse, |b, trip| {
            let recurrent = Quantised {
                bytes: trip.captured[0],
                scale: trip.captured[1],
                zero_point: trip.captured.get(2).copied(),
            };
            let (before, memory) = (trip.carried[0], trip.carried[1]);
            let before = Quantised::dynamically(b, before)?;
            let part = product(b, before, recurrent)?;
            let sums = b.add(trip.scanned[0], part)?;
            let sums = match clip {
                Some(clip) => {
                    let sums = b.binary_scalar(BinaryOp::Max, sums, -clip)?;
                    b.binary_scalar(BinaryOp::Min, sums, clip)?
                }
                None => sums,
            };
            let gates = b.split(sums, 1, &vec![hidden.clone(); 4])?;
            let input = b.unary(UnaryOp::Sigmoid, gates[0])?;
            let output = b.unary(UnaryOp::Sigmoid, gates[1])?;
            let forget = b.unary(UnaryOp::Sigmoid, gates[2])?;
            let candidate = b.unary(UnaryOp::Tanh, gates[3])?;
            let (kept, added) = (b.mul(forget, memory)?, b.mul(input, candidate)?);
            let memory = b.add(kept, added)?;
            let shown = b.unary(UnaryOp::Tanh, memory)?;
            let next = b.mul(output, shown)?;
            Ok(Carried { carried: vec![next, memory], stacked: vec![next] })
        })
    }
}
