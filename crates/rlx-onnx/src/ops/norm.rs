//! Normalisations by statistics of batches, layers, groups and neighbourhoods.

use rlx_ir::op::Axis;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::norm::{
    BatchNorm, BatchNormTraining, GroupNorm, InstanceNorm, LayerNorm, LpNormalize, Lrn, MeanVarianceNorm,
    RmsNorm,
};
use rlx_ir::{Builder, DType, Dim, Op, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain, onnx};

/// The operators of this family. The domain of onnxruntime has layer norms from before ONNX took them in; models also
/// use them as ONNX's own.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("BatchNormalization", &[7, 9, 14, 15], batch_norm),
    onnx("GroupNormalization", &[18, 21], group_norm),
    onnx("InstanceNormalization", &[6, 22], instance_norm),
    onnx("LRN", &[1, 13], lrn),
    onnx("LayerNormalization", &[1, 17], layer_norm),
    onnx("LpNormalization", &[1, 22], lp_normalize),
    onnx("MeanVarianceNormalization", &[9, 13], mean_variance_norm),
    onnx("RMSNormalization", &[23], rms_norm),
    onnx("SimplifiedLayerNormalization", &[1], simplified_layer_norm),
    of_domain("com.microsoft", "LayerNormalization", &[1], layer_norm),
    of_domain("com.microsoft", "SimplifiedLayerNormalization", &[1], simplified_layer_norm),
];

/// Inference by given statistics, or training. Before opset 14 a node trains if it names more outputs than one, and has
/// as further outputs the statistics of the batch.
fn batch_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let operands = [cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?, cx.input(4)?];
    let (eps, momentum) = (cx.float("epsilon", 1e-5)?, cx.float("momentum", 0.9)?);
    let (since, training) = (cx.since(), cx.flag("training_mode", false)?);
    let more_outputs = (1..5).any(|i| cx.wanted(i));
    let by_position = since == 7 && !cx.flag("spatial", true)?;
    let dims = cx.shape(operands[0]);
    let b = cx.builder();
    let operands = match dims.rank() {
        0 => return Err(cx.bad_input(0, "number of axes", "at least 1", 0)),
        // A vector is a batch of one channel.
        1 => with_first(operands, b.unsqueeze(operands[0], 1)?),
        _ if by_position => {
            let features = Dim::product(&dims[1..]);
            let mut flat = [operands[0]; 5];
            flat[0] = b.reshape(operands[0], &[dims[0].clone(), features.clone()])?;
            for (flat, operand) in flat.iter_mut().zip(operands).skip(1) {
                *flat = b.reshape(operand, std::slice::from_ref(&features))?;
            }
            flat
        }
        _ => operands,
    };
    let axis = Axis(1);
    let results: Vec<Value> = if training || (since < 14 && more_outputs) {
        let norm = |momentum: f64| BatchNormTraining {
            axis,
            eps: eps.into(),
            momentum: momentum.into(),
            unbiased: false,
        };
        let mut results = b.push(norm(momentum), &operands)?.to_vec();
        if since < 14 {
            results.extend_from_slice(&b.push(norm(0.0), &operands)?[1..]);
        }
        results
    } else {
        vec![b.push1(BatchNorm { axis, eps: eps.into() }, &operands)?]
    };
    let mut outputs = vec![b.reshape(results[0], &dims)?];
    for statistic in &results[1..] {
        outputs.push(if by_position { b.reshape(*statistic, &dims[1..])? } else { *statistic });
    }
    Ok(outputs.into())
}

fn with_first(mut operands: [Value; 5], first: Value) -> [Value; 5] {
    operands[0] = first;
    operands
}

/// Scale and bias are of groups before opset 21, of channels since.
fn group_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, mut scale, mut bias) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (groups, eps) = (cx.required_int("num_groups")?, cx.float("epsilon", 1e-5)?);
    let stage_one = stage_one(cx)?;
    let count = usize::try_from(groups).ok().filter(|n| *n >= 1);
    let groups = count.ok_or_else(|| cx.bad_attribute("num_groups", "at least 1", groups))?;
    let rank = cx.rank(x);
    if rank < 2 {
        return Err(cx.bad_input(0, "number of axes", "at least 2", rank));
    }
    let of_groups = cx.since() < 21;
    let b = cx.builder();
    if of_groups {
        let channels = b.dim(x, 1);
        let each = channels.floor_div(&groups.into());
        for value in [&mut scale, &mut bias] {
            let column = b.unsqueeze(*value, 1)?;
            let repeated = b.broadcast_to(column, &[groups.into(), each.clone()])?;
            *value = b.reshape(repeated, std::slice::from_ref(&channels))?;
        }
    }
    let dtype = b.dtype(x);
    let wide = b.cast(x, wider(dtype, stage_one))?;
    let y = b.push1(GroupNorm { groups, eps: eps.into() }, &[wide, scale, bias])?;
    Ok(b.cast(y, dtype)?.into())
}

fn instance_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let operands = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let eps = cx.float("epsilon", 1e-5)?.into();
    Ok(cx.builder().push1(InstanceNorm { eps }, &operands)?.into())
}

/// The type that statistics are asked to be computed in. Less than f32 is never used.
fn stage_one(cx: &NodeContext<'_, '_>) -> Result<DType, NodeProblem> {
    let dtype = cx.element_type("stash_type")?.unwrap_or(DType::F32);
    if dtype.is_float() {
        Ok(dtype)
    } else {
        Err(cx.bad_attribute("stash_type", "a floating-point type", dtype))
    }
}

/// The wider of a floating-point type and another, which counts from f64 on: norms use f32 at least anyway.
fn wider(dtype: DType, other: DType) -> DType {
    if other == DType::F64 { other } else { dtype }
}

/// Scale and bias of a norm over the axes from `axis` on, which broadcast to x.
enum Parameters {
    /// They vary along the normalised axes only, and have those sizes.
    Normalised(Vec<Value>),
    /// They vary along others too.
    Any(Vec<Value>),
}

fn parameters(b: &mut Builder, x: Value, axis: usize, given: Vec<Value>) -> Result<Parameters, TypeError> {
    let dims = b.shape(x);
    let normalised = &dims[axis..];
    let mut fitted = Vec::with_capacity(given.len());
    for value in &given {
        let own = b.shape(*value);
        let outer = own.rank().saturating_sub(normalised.len());
        if own[..outer].iter().any(|d| d.as_const() != Some(1)) {
            return Ok(Parameters::Any(given));
        }
        let inner = b.reshape(*value, &own[outer..])?;
        fitted.push(b.broadcast_to(inner, normalised)?);
    }
    Ok(Parameters::Normalised(fitted))
}

/// x with a norm applied to it in the wide type, then scale (and bias), in `out`; and the norm's other results.
fn scaled_norm(
    b: &mut Builder,
    x: Value,
    axis: usize,
    wide: DType,
    out: DType,
    given: Vec<Value>,
    norm: impl Into<Op>,
) -> Result<(Value, Vec<Value>), TypeError> {
    let wide_x = b.cast(x, wide)?;
    match parameters(b, x, axis, given)? {
        Parameters::Normalised(mut operands) => {
            operands.insert(0, wide_x);
            let results = b.push(norm, &operands)?;
            Ok((b.cast(results[0], out)?, results[1..].to_vec()))
        }
        Parameters::Any(given) => {
            let results = b.push(norm, &[wide_x])?;
            let mut y = b.cast(results[0], out)?;
            for (value, op) in given.into_iter().zip([BinaryOp::Mul, BinaryOp::Add]) {
                let value = b.cast(value, out)?;
                let value = b.broadcast_to(value, &b.shape(x))?;
                y = b.binary(op, y, value)?;
            }
            Ok((y, results[1..].to_vec()))
        }
    }
}

/// Results: y, and the mean and the inverse deviation in the type of stage one.
fn layer_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let mut given = vec![cx.input(1)?];
    given.extend(cx.optional(2)?);
    let rank = cx.rank(x);
    let axis = cx.int("axis", -1)?;
    let axis = cx.axis(axis, rank)?;
    let (eps, stage_one) = (cx.float("epsilon", 1e-5)?.into(), stage_one(cx)?);
    let statistics = cx.wanted(1) || cx.wanted(2);
    let b = cx.builder();
    let dtype = b.dtype(x);
    let norm = LayerNorm { axis: Axis(axis as i64), eps, statistics };
    let (y, statistics) = scaled_norm(b, x, axis, wider(dtype, stage_one), dtype, given, norm)?;
    let mut outputs = vec![y];
    for statistic in statistics {
        outputs.push(b.cast(statistic, stage_one)?);
    }
    Ok(outputs.into())
}

/// The result has the scale's type.
fn rms_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, scale) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.rank(x);
    let axis = cx.int("axis", -1)?;
    let axis = cx.axis(axis, rank)?;
    let (eps, stage_one) = (cx.float("epsilon", 1e-5)?.into(), stage_one(cx)?);
    let b = cx.builder();
    let out = b.dtype(scale);
    // A norm rounds to the type of x; where the result is wider, x is made so first.
    let wide = match (b.dtype(x), out) {
        (DType::F64, _) | (_, DType::F64) => DType::F64,
        (narrow, out) if narrow == out => wider(narrow, stage_one),
        _ => wider(DType::F32, stage_one),
    };
    let norm = RmsNorm { axis: Axis(axis as i64), eps };
    Ok(scaled_norm(b, x, axis, wide, out, vec![scale], norm)?.0.into())
}

/// The RMS norm of onnxruntime, which also gives 1 / sqrt(mean(x²) + eps).
fn simplified_layer_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut outputs = rms_norm(cx)?;
    if cx.wanted(1) {
        let x = cx.input(0)?;
        let rank = cx.rank(x);
        let axis = cx.int("axis", -1)?;
        let axis = cx.axis(axis, rank)?;
        let (eps, stage_one) = (cx.float("epsilon", 1e-5)?, stage_one(cx)?);
        let b = cx.builder();
        let inverse = inverse_root_mean_square(b, x, axis, eps)?;
        outputs.0.push(b.cast(inverse, stage_one)?.into());
    }
    Ok(outputs)
}

/// 1 / sqrt(mean(x²) + eps) over the axes from `axis` on, which stay with size 1; in f32, or f64 for an f64 x.
pub(super) fn inverse_root_mean_square(
    b: &mut Builder,
    x: Value,
    axis: usize,
    eps: f64,
) -> Result<Value, TypeError> {
    let wide = if b.dtype(x) == DType::F64 { DType::F64 } else { DType::F32 };
    let x = b.cast(x, wide)?;
    let square = b.mul(x, x)?;
    let axes: Vec<usize> = (axis..b.rank(x)).collect();
    let mean = b.mean(square, &axes, true)?;
    let shifted = b.add_scalar(mean, eps)?;
    b.unary(UnaryOp::Rsqrt, shifted)
}

fn lrn(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let size = cx.required_int("size")?;
    let size = usize::try_from(size).map_err(|_| cx.bad_attribute("size", "at least 1", size))?;
    let norm = Lrn {
        size,
        alpha: cx.float("alpha", 1e-4)?.into(),
        beta: cx.float("beta", 0.75)?.into(),
        bias: cx.float("bias", 1.0)?.into(),
    };
    Ok(cx.builder().push1(norm, &[x])?.into())
}

fn lp_normalize(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let p = match cx.int("p", 2)? {
        p @ (1 | 2) => p as f64,
        p => return Err(cx.bad_attribute("p", "1 or 2", p)),
    };
    let axes = vec![Axis(cx.int("axis", -1)?)];
    Ok(cx.builder().push1(LpNormalize { axes, p: p.into(), eps: 0.0.into() }, &[x])?.into())
}

fn mean_variance_norm(cx: &mut NodeContext<'_, '_>) -> Handled {
    /// What the operator's function body adds to the deviation.
    const EPS: f64 = 1e-9;
    let x = cx.input(0)?;
    let axes = cx.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let axes = axes.into_iter().map(Axis).collect();
    Ok(cx.builder().push1(MeanVarianceNorm { axes, eps: EPS.into() }, &[x])?.into())
}
