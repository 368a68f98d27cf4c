//! Recurrent layers: RNN, GRU and LSTM.

use rlx_ir::Value;
use rlx_ir::op::Real;
use rlx_ir::op::recurrent::{Direction, Gru, Lstm, RecurrentActivation, RecurrentOperand, Rnn};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("GRU", &[7, 14, 22], gru), //
    onnx("LSTM", &[7, 14, 22], lstm),
    onnx("RNN", &[7, 14, 22], rnn),
];

/// An activation with its parameters alpha and beta.
pub(super) type Activation = (RecurrentActivation, (Real, Real));

/// What the attributes of the three layers have in common.
pub(super) struct Layer {
    pub(super) direction: Direction,
    pub(super) activations: Vec<Activation>,
    pub(super) clip: Option<Real>,
    pub(super) batch_first: bool,
}

impl Layer {
    /// Reads the attributes of a layer with this many activations a direction.
    pub(super) fn of(cx: &NodeContext<'_, '_>, per_direction: usize) -> Result<Layer, NodeProblem> {
        let direction = match cx.string("direction", "forward")?.as_str() {
            "forward" => Direction::Forward,
            "reverse" => Direction::Reverse,
            "bidirectional" => Direction::Bidirectional,
            other => return Err(cx.bad_attribute("direction", "forward, reverse or bidirectional", other)),
        };
        let batch_first = match cx.int("layout", 0)? {
            0 => false,
            1 => true,
            other => return Err(cx.bad_attribute("layout", "0 or 1", other)),
        };
        let clip = cx.optional_float("clip")?.map(Real::new);
        let activations = activations(cx, per_direction * direction.count())?;
        Ok(Layer { direction, activations, clip, batch_first })
    }
}

/// The functions that take alpha, and whether they take beta; with the defaults of the operators they are named after.
/// `None` as a default: the operator no longer exists, so the attribute must say.
fn parameters(function: RecurrentActivation) -> (Option<Option<f64>>, Option<Option<f64>>) {
    use RecurrentActivation as F;
    match function {
        F::Affine | F::ScaledTanh => (Some(None), Some(None)),
        F::LeakyRelu => (Some(Some(f64::from(0.01f32))), None),
        F::ThresholdedRelu | F::Elu => (Some(Some(1.0)), None),
        F::HardSigmoid => (Some(Some(f64::from(0.2f32))), Some(Some(0.5))),
        F::Relu | F::Tanh | F::Sigmoid | F::Softsign | F::Softplus => (None, None),
    }
}

fn function_named(cx: &NodeContext<'_, '_>, name: &str) -> Result<RecurrentActivation, NodeProblem> {
    use RecurrentActivation as F;
    Ok(match name.to_ascii_lowercase().as_str() {
        "relu" => F::Relu,
        "tanh" => F::Tanh,
        "sigmoid" => F::Sigmoid,
        "affine" => F::Affine,
        "leakyrelu" => F::LeakyRelu,
        "thresholdedrelu" => F::ThresholdedRelu,
        "scaledtanh" => F::ScaledTanh,
        "hardsigmoid" => F::HardSigmoid,
        "elu" => F::Elu,
        "softsign" => F::Softsign,
        "softplus" => F::Softplus,
        _ => return Err(cx.bad_attribute("activations", "a function of recurrent layers", name)),
    })
}

/// The listed activations. Each takes the next alpha and the next beta, if it has such parameters. Empty: the defaults.
fn activations(cx: &NodeContext<'_, '_>, count: usize) -> Result<Vec<Activation>, NodeProblem> {
    let Some(names) = cx.strings("activations")? else { return Ok(Vec::new()) };
    // The default that the schema of RNN gives has two names, for whichever direction.
    let spare = cx.op_type() == "RNN" && names.len() > count;
    if names.len() != count && !spare {
        return Err(cx.bad_attribute("activations", format!("{count} names"), names.len()));
    }
    let mut alphas = cx.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = cx.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut all = Vec::with_capacity(count);
    for name in names.iter().take(count) {
        let function = function_named(cx, name)?;
        let value = |default: Option<Option<f64>>, given: &mut std::vec::IntoIter<f64>, name: &str| {
            let Some(default) = default else { return Ok(Real::new(0.0)) };
            let value = given.next().or(default);
            value.map(Real::new).ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
        };
        let (alpha, beta) = parameters(function);
        let alpha = value(alpha, &mut alphas, "activation_alpha")?;
        let beta = value(beta, &mut betas, "activation_beta")?;
        all.push((function, (alpha, beta)));
    }
    Ok(all)
}

/// X, W, R, then the optional inputs that are there, and which they are; `order` is that of inputs 3, 4 ….
fn operands(
    cx: &NodeContext<'_, '_>,
    order: &[RecurrentOperand],
) -> Result<(Vec<Value>, Vec<RecurrentOperand>), NodeProblem> {
    let mut values = vec![cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let mut listed = Vec::new();
    for (i, which) in order.iter().enumerate() {
        if let Some(value) = cx.optional(3 + i)? {
            values.push(value);
            listed.push(*which);
        }
    }
    Ok((values, listed))
}

/// The attribute `hidden_size` only repeats what R says.
fn check_hidden_size(cx: &mut NodeContext<'_, '_>) -> Result<(), NodeProblem> {
    let r = cx.input(2)?;
    let hidden = cx.shape(r).last().and_then(rlx_ir::Dim::as_const);
    match (cx.optional_int("hidden_size")?, hidden) {
        (Some(named), Some(hidden)) if named != hidden => {
            Err(cx.bad_attribute("hidden_size", hidden.to_string(), named))
        }
        _ => Ok(()),
    }
}

const COMMON_ORDER: &[RecurrentOperand] =
    &[RecurrentOperand::Bias, RecurrentOperand::Lengths, RecurrentOperand::InitialHidden];

const LSTM_ORDER: &[RecurrentOperand] = &[
    RecurrentOperand::Bias,
    RecurrentOperand::Lengths,
    RecurrentOperand::InitialHidden,
    RecurrentOperand::InitialCell,
    RecurrentOperand::Peepholes,
];

fn rnn(cx: &mut NodeContext<'_, '_>) -> Handled {
    check_hidden_size(cx)?;
    let Layer { direction, activations, clip, batch_first } = Layer::of(cx, 1)?;
    let (values, operands) = operands(cx, COMMON_ORDER)?;
    let op = Rnn { direction, operands, activations, clip, batch_first };
    Ok(cx.builder().push(op, &values)?.to_vec().into())
}

fn gru(cx: &mut NodeContext<'_, '_>) -> Handled {
    check_hidden_size(cx)?;
    let Layer { direction, activations, clip, batch_first } = Layer::of(cx, 2)?;
    let linear_before_reset = cx.flag("linear_before_reset", false)?;
    let (values, operands) = operands(cx, COMMON_ORDER)?;
    let op = Gru { direction, operands, activations, clip, linear_before_reset, batch_first };
    Ok(cx.builder().push(op, &values)?.to_vec().into())
}

/// The clip is "applied to the input of activations", of which the one that makes h of the cell is one; onnxruntime
/// deviates and clips the gates only.
fn lstm(cx: &mut NodeContext<'_, '_>) -> Handled {
    check_hidden_size(cx)?;
    let Layer { direction, activations, clip, batch_first } = Layer::of(cx, 3)?;
    let input_forget = cx.flag("input_forget", false)?;
    let (values, operands) = operands(cx, LSTM_ORDER)?;
    let op = Lstm { direction, operands, activations, clip, input_forget, batch_first };
    Ok(cx.builder().push(op, &values)?.to_vec().into())
}
