//! Activations: functions of single elements that follow a layer, and dropout.

use rlx_ir::op::activation::{
    Activation, ActivationOp, Celu, Elu, HardSigmoid, LeakyRelu, PRelu, Selu, Shrink, Softplus, Swish,
};
use rlx_ir::op::elementwise::{CompareOp, UnaryOp};
use rlx_ir::{Builder, DType, Op, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::Outputs;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Celu", &[12, 28], celu),
    onnx("Dropout", &[7, 10, 12, 13, 22], dropout),
    onnx("Elu", &[6, 22], elu),
    onnx("Gelu", &[20], gelu),
    onnx("HardSigmoid", &[6, 22], hard_sigmoid),
    onnx("HardSwish", &[14, 22], |cx| plain(cx, ActivationOp::HardSwish)),
    onnx("LeakyRelu", &[6, 16], leaky_relu),
    onnx("Mish", &[18, 22], |cx| plain(cx, ActivationOp::Mish)),
    onnx("PRelu", &[7, 9, 16], prelu),
    onnx("Relu", &[6, 13, 14], |cx| plain(cx, ActivationOp::Relu)),
    onnx("Selu", &[6, 22], selu),
    onnx("Shrink", &[9], shrink),
    onnx("Sigmoid", &[6, 13], sigmoid),
    onnx("Softplus", &[1, 22], softplus),
    onnx("Softsign", &[1, 22], |cx| plain(cx, ActivationOp::Softsign)),
    onnx("SwiGLU", &[28], swiglu),
    onnx("Swish", &[24], swish),
    onnx("ThresholdedRelu", &[10, 22], thresholded_relu),
];

/// An operation of the first input alone.
fn of_first(cx: &mut NodeContext<'_, '_>, op: impl Into<Op>) -> Handled {
    let x = cx.input(0)?;
    Ok(cx.builder().push1(op, &[x])?.into())
}

fn plain(cx: &mut NodeContext<'_, '_>, op: ActivationOp) -> Handled {
    of_first(cx, Activation { op })
}

fn sigmoid(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    Ok(cx.builder().unary(UnaryOp::Sigmoid, x)?.into())
}

fn celu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let alpha = cx.float("alpha", 1.0)?.into();
    of_first(cx, Celu { alpha })
}

fn elu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let alpha = cx.float("alpha", 1.0)?.into();
    of_first(cx, Elu { alpha })
}

fn gelu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let op = match cx.string("approximate", "none")?.as_str() {
        "none" => ActivationOp::Gelu,
        "tanh" => ActivationOp::GeluTanh,
        other => return Err(cx.bad_attribute("approximate", "none or tanh", other)),
    };
    plain(cx, op)
}

fn hard_sigmoid(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (alpha, beta) = (cx.float("alpha", 0.2)?.into(), cx.float("beta", 0.5)?.into());
    of_first(cx, HardSigmoid { alpha, beta })
}

fn leaky_relu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let alpha = cx.float("alpha", 0.01)?.into();
    of_first(cx, LeakyRelu { alpha })
}

/// The slope broadcasts to x. Integers (opset 9) are computed in their own type.
fn prelu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, slope) = (cx.input(0)?, cx.input(1)?);
    let b = cx.builder();
    if b.dtype(x).is_float() {
        return Ok(b.push1(PRelu {}, &[x, slope])?.into());
    }
    let slope = b.broadcast_to(slope, &b.shape(x))?;
    let scaled = b.mul(x, slope)?;
    let below = b.compare_scalar(CompareOp::Lt, x, 0.0)?;
    Ok(b.select(below, scaled, x)?.into())
}

/// The default of Selu's schema, from Klambauer et al. 2017, as f32.
pub(super) const SELU_ALPHA: f32 = 1.673_263_2;

/// The same of the factor in front.
pub(super) const SELU_GAMMA: f32 = 1.050_701;

fn selu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (alpha, gamma) = (cx.float("alpha", SELU_ALPHA)?.into(), cx.float("gamma", SELU_GAMMA)?.into());
    of_first(cx, Selu { alpha, gamma })
}

/// Integers are computed in f64 and truncated. NaN is on neither side of the bounds, so it becomes 0.
fn shrink(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (lambda, bias) = (cx.float("lambd", 0.5)?.into(), cx.float("bias", 0.0)?.into());
    let b = cx.builder();
    let dtype = b.dtype(x);
    if !dtype.is_float() {
        let wide = b.cast(x, DType::F64)?;
        let y = b.push1(Shrink { lambda, bias }, &[wide])?;
        return Ok(b.cast(y, dtype)?.into());
    }
    let y = b.push1(Shrink { lambda, bias }, &[x])?;
    let nan = b.unary(UnaryOp::IsNan, x)?;
    let zero = b.like(0.0, x)?;
    Ok(b.select(nan, zero, y)?.into())
}

fn softplus(cx: &mut NodeContext<'_, '_>) -> Handled {
    of_first(cx, Softplus { beta: 1.0.into(), threshold: None })
}

/// Swish of the first input times the second.
fn swiglu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (gate, x) = (cx.input(0)?, cx.input(1)?);
    let alpha = cx.float("alpha", 1.0)?.into();
    let b = cx.builder();
    let gate = b.push1(Swish { alpha }, &[gate])?;
    Ok(b.mul(gate, x)?.into())
}

fn swish(cx: &mut NodeContext<'_, '_>) -> Handled {
    let alpha = cx.float("alpha", 1.0)?.into();
    of_first(cx, Swish { alpha })
}

fn thresholded_relu(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let alpha = cx.float("alpha", 1.0)?;
    Ok(above_threshold(cx.builder(), x, alpha)?.into())
}

/// x where it exceeds alpha, else 0 (NaN too, which exceeds nothing).
pub(super) fn above_threshold(b: &mut Builder, x: Value, alpha: f64) -> Result<Value, TypeError> {
    let above = b.compare_scalar(CompareOp::Gt, x, alpha)?;
    let zero = b.like(0.0, x)?;
    b.select(above, x, zero)
}

/// The input itself, and a mask of ones: nothing is dropped at inference. A ratio is an attribute before opset 12, an
/// input since, and only since then can a node ask for training.
fn dropout(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    if cx.since() >= 12 && cx.has(2) && cx.constant_int(2, "whether elements are dropped")? != 0 {
        let drops =
            if cx.has(1) { cx.constant_floats(1, "whether elements are dropped")? } else { vec![0.5] };
        if drops != [0.0] {
            return Err(NodeProblem::Unsupported("Dropout in training, whose draws need a seed".into()));
        }
    }
    Ok(Outputs::from(vec![x, mask_of_ones(cx, x)?]))
}

/// The mask of a dropout that keeps everything; of x's type before opset 10. Before opset 12 ONNX does not say what it
/// holds at inference (onnxruntime: zeros).
fn mask_of_ones(cx: &mut NodeContext<'_, '_>, x: Value) -> Result<Value, NodeProblem> {
    let of_own_type = cx.since() < 10;
    let b = cx.builder();
    let t = b.type_of(x).clone();
    Ok(b.full(1.0, &if of_own_type { t } else { t.with_dtype(DType::Bool) })?)
}
