//! Operators of onnxruntime's own domain `com.microsoft` that fuse layers with what follows them. Their meaning is that of
//! onnxruntime's operator documents (ContribOperators.md, MIT).

use rlx_ir::op::Axis;
use rlx_ir::op::activation::{Activation, ActivationOp, Elu, HardSigmoid, LeakyRelu, Selu, Softplus, Swish};
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::norm::{LayerNorm, SkipNorm, SkipNormOp};
use rlx_ir::{Builder, DType, Value};

use super::activation;
use super::convolution::convolved;
use super::norm::inverse_root_mean_square;
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain};
use crate::values::Outputs;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    of_domain(DOMAIN, "BiasGelu", &[1], |cx| biased(cx, ActivationOp::Gelu)),
    of_domain(DOMAIN, "FastGelu", &[1], |cx| biased(cx, ActivationOp::GeluTanh)),
    of_domain(DOMAIN, "FusedConv", &[1], fused_conv),
    of_domain(DOMAIN, "FusedGemm", &[1], fused_gemm),
    of_domain(DOMAIN, "FusedMatMul", &[1], fused_matmul),
    of_domain(DOMAIN, "Gelu", &[1], |cx| biased(cx, ActivationOp::Gelu)),
    of_domain(DOMAIN, "QuickGelu", &[1], quick_gelu),
    of_domain(DOMAIN, "SkipLayerNormalization", &[1], |cx| skip_norm(cx, SkipNormOp::LayerNorm)),
    of_domain(DOMAIN, "SkipSimplifiedLayerNormalization", &[1], |cx| skip_norm(cx, SkipNormOp::RmsNorm)),
    of_domain(DOMAIN, "TransposeMatMul", &[1], fused_matmul),
];

const DOMAIN: &str = "com.microsoft";

/// f(x + bias), or f(x) without a second input. It is one operator, so the sum is not rounded to a type narrower than
/// f32.
fn biased(cx: &mut NodeContext<'_, '_>, op: ActivationOp) -> Handled {
    let (x, bias) = (cx.input(0)?, cx.optional(1)?);
    let b = cx.builder();
    let Some(bias) = bias else { return Ok(b.push1(Activation { op }, &[x])?.into()) };
    let dtype = b.dtype(x);
    let (x, bias) = (b.cast(x, at_least_f32(dtype))?, b.cast(bias, at_least_f32(dtype))?);
    let sum = b.broadcasting(BinaryOp::Add, x, bias)?;
    let y = b.push1(Activation { op }, &[sum])?;
    Ok(b.cast(y, dtype)?.into())
}

fn at_least_f32(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

fn quick_gelu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let alpha = cx.float("alpha", 1.702)?.into();
    Ok(cx.builder().push1(Swish { alpha }, &[x])?.into())
}

/// An activation that is named by an attribute, with its parameters in order (alpha, beta, gamma).
fn activated(
    cx: &mut NodeContext<'_, '_>,
    x: Value,
    parameters: [Option<f64>; 3],
) -> Result<Value, NodeProblem> {
    let name = cx.string("activation", "")?;
    let parameter = |i: usize, default: f32| parameters[i].unwrap_or(f64::from(default));
    let b = cx.builder();
    Ok(match name.as_str() {
        "" => x,
        "Relu" => b.push1(Activation { op: ActivationOp::Relu }, &[x])?,
        "Tanh" => b.unary(UnaryOp::Tanh, x)?,
        "Sigmoid" => b.unary(UnaryOp::Sigmoid, x)?,
        "LeakyRelu" => b.push1(LeakyRelu { alpha: parameter(0, 0.01).into() }, &[x])?,
        "HardSigmoid" => {
            let (alpha, beta) = (parameter(0, 0.2).into(), parameter(1, 0.5).into());
            b.push1(HardSigmoid { alpha, beta }, &[x])?
        }
        "Elu" => b.push1(Elu { alpha: parameter(0, 1.0).into() }, &[x])?,
        "Selu" => {
            let alpha = parameter(0, activation::SELU_ALPHA).into();
            let gamma = parameter(2, activation::SELU_GAMMA).into();
            b.push1(Selu { alpha, gamma }, &[x])?
        }
        "Softplus" => b.push1(Softplus { beta: 1.0.into(), threshold: None }, &[x])?,
        "Softsign" => b.push1(Activation { op: ActivationOp::Softsign }, &[x])?,
        "ThresholdedRelu" => activation::above_threshold(b, x, parameter(0, 1.0))?,
        "Clip" => {
            let low = b.binary_scalar(BinaryOp::Max, x, parameter(0, f32::MIN))?;
            b.binary_scalar(BinaryOp::Min, low, parameter(1, f32::MAX))?
        }
        other => {
            let expected = "Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, Elu, Selu, Softplus, Softsign, \
                            ThresholdedRelu or Clip";
            return Err(cx.bad_attribute("activation", expected, other));
        }
    })
}

/// f(conv(x, w, bias) + z).
fn fused_conv(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, w, bias, z) = (cx.input(0)?, cx.input(1)?, cx.optional(2)?, cx.optional(3)?);
    let mut y = convolved(cx, x, w, bias)?;
    if let Some(z) = z {
        y = cx.builder().broadcasting(BinaryOp::Add, y, z)?;
    }
    let given = cx.floats("activation_params")?.unwrap_or_default();
    let parameters = [given.first().copied(), given.get(1).copied(), None];
    Ok(activated(cx, y, parameters)?.into())
}

/// f(gemm).
fn fused_gemm(cx: &mut NodeContext<'_, '_>) -> Handled {
    let y = super::matrix::gemm_value(cx)?;
    let parameters = [
        cx.optional_float("activation_alpha")?,
        cx.optional_float("activation_beta")?,
        cx.optional_float("activation_gamma")?,
    ];
    Ok(activated(cx, y, parameters)?.into())
}

/// α · A′ · B′. With `transBatch` the first axis is moved behind the batch axes, then with `trans` the last two are
/// exchanged; vectors are left alone.
fn fused_matmul(cx: &mut NodeContext<'_, '_>) -> Handled {
    let alpha = cx.float("alpha", 1.0)?;
    let mut sides = [cx.input(0)?, cx.input(1)?];
    let flags = [
        (cx.flag("transA", false)?, cx.flag("transBatchA", false)?),
        (cx.flag("transB", false)?, cx.flag("transBatchB", false)?),
    ];
    let b = cx.builder();
    for (side, (exchanges, moves)) in sides.iter_mut().zip(flags) {
        *side = arranged(b, *side, exchanges, moves)?;
    }
    let product = b.matmul(sides[0], sides[1])?;
    Ok(if alpha == 1.0 { product } else { b.mul_scalar(product, alpha)? }.into())
}

fn arranged(b: &mut Builder, x: Value, exchanges: bool, moves: bool) -> Result<Value, NodeProblem> {
    let rank = b.rank(x);
    let x = if moves && rank > 2 { b.move_axis(x, 0, rank - 2)? } else { x };
    Ok(if exchanges && rank > 1 { b.matrix_transpose(x)? } else { x })
}

/// Norm of x + skip (+ bias). Outputs: y, mean, inverse deviation, the sum. Inputs: x, skip, scale, then shift (only of
/// the layer norm), then bias.
fn skip_norm(cx: &mut NodeContext<'_, '_>, op: SkipNormOp) -> Handled {
    /// onnxruntime's default for both operators.
    const EPS: f32 = 1e-12;
    let mut operands = vec![cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let eps = cx.float("epsilon", EPS)?;
    let has_shift = op == SkipNormOp::LayerNorm;
    let shift = if has_shift { cx.optional(3)? } else { None };
    let bias = cx.optional(if has_shift { 4 } else { 3 })?;
    if !has_shift && cx.wanted(1) {
        return Err(NodeProblem::Unsupported("the mean as an output of an RMS norm".to_owned()));
    }
    let statistics = cx.wanted(1) || cx.wanted(2);
    operands.extend(shift.into_iter().chain(bias));
    let norm = SkipNorm { op, eps: eps.into(), shift: shift.is_some(), bias: bias.is_some() };
    let b = cx.builder();
    let dtype = b.dtype(operands[0]);
    if statistics {
        // They are of the sum before it is rounded, and of this type.
        for operand in &mut operands {
            *operand = b.cast(*operand, at_least_f32(dtype))?;
        }
    }
    let results = b.push(norm, &operands)?;
    let (y, sum) = (results[0], results[1]);
    let (mut mean, mut inverse) = (None, None);
    if statistics && has_shift {
        let norm = LayerNorm { axis: Axis(-1), eps: eps.into(), statistics: true };
        let results = b.push(norm, &[sum])?;
        (mean, inverse) = (Some(results[1]), Some(results[2]));
    } else if statistics {
        let last = b.rank(sum) - 1;
        inverse = Some(inverse_root_mean_square(b, sum, last, eps)?);
    }
    let (y, sum) = (b.cast(y, dtype)?, b.cast(sum, dtype)?);
    Ok([Some(y), mean, inverse, Some(sum)].into_iter().collect::<Outputs>())
}
