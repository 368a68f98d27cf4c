//! The activations of recurrent layers.

use super::cell::Cell;
use crate::builder::Builder;
use crate::error::TypeError;
use crate::graph::Value;
use crate::names;
use crate::op::Real;
use crate::op::activation as op;
use crate::op::elementwise::{BinaryOp, UnaryOp};

names! {
    /// A function of a recurrent layer, with parameters alpha and beta where it has any.
    pub enum RecurrentActivation {
        /// max(x, 0).
        Relu = "relu",
        /// tanh x.
        Tanh = "tanh",
        /// 1 / (1 + e^(−x)).
        Sigmoid = "sigmoid",
        /// alpha · x + beta.
        Affine = "affine",
        /// x for x ≥ 0, alpha · x below.
        LeakyRelu = "leaky_relu",
        /// x for x > alpha, else 0.
        ThresholdedRelu = "thresholded_relu",
        /// alpha · tanh(beta · x).
        ScaledTanh = "scaled_tanh",
        /// min(max(alpha · x + beta, 0), 1).
        HardSigmoid = "hard_sigmoid",
        /// x for x ≥ 0, alpha · (eˣ − 1) below.
        Elu = "elu",
        /// x / (1 + |x|).
        Softsign = "softsign",
        /// ln(1 + eˣ).
        Softplus = "softplus",
    }
}

impl RecurrentActivation {
    /// f(x).
    fn apply(self, b: &mut Builder, x: Value, alpha: Real, beta: Real) -> Result<Value, TypeError> {
        match self {
            RecurrentActivation::Relu => b.push1(op::Activation { op: op::ActivationOp::Relu }, &[x]),
            RecurrentActivation::Tanh => b.unary(UnaryOp::Tanh, x),
            RecurrentActivation::Sigmoid => b.unary(UnaryOp::Sigmoid, x),
            RecurrentActivation::Affine => {
                let scaled = b.mul_scalar(x, alpha.get())?;
                b.add_scalar(scaled, beta.get())
            }
            RecurrentActivation::LeakyRelu => b.push1(op::LeakyRelu { alpha }, &[x]),
            RecurrentActivation::ThresholdedRelu => {
                b.push1(op::Threshold { threshold: alpha, value: 0.0.into() }, &[x])
            }
            RecurrentActivation::ScaledTanh => {
                let scaled = b.mul_scalar(x, beta.get())?;
                let y = b.unary(UnaryOp::Tanh, scaled)?;
                b.mul_scalar(y, alpha.get())
            }
            RecurrentActivation::HardSigmoid => b.push1(op::HardSigmoid { alpha, beta }, &[x]),
            RecurrentActivation::Elu => b.push1(op::Elu { alpha }, &[x]),
            RecurrentActivation::Softsign => b.push1(op::Activation { op: op::ActivationOp::Softsign }, &[x]),
            RecurrentActivation::Softplus => {
                b.push1(op::Softplus { beta: 1.0.into(), threshold: None }, &[x])
            }
        }
    }
}

/// The activations of one direction, each after the clip.
pub(super) struct Activations {
    functions: Vec<(RecurrentActivation, (Real, Real))>,
    clip: Option<Real>,
}

impl Activations {
    /// Those of direction number `direction`, or the cell's own if none are listed.
    pub(super) fn new(
        cell: Cell,
        listed: &[(RecurrentActivation, (Real, Real))],
        clip: Option<Real>,
        direction: usize,
    ) -> Activations {
        let n = cell.activations();
        let functions = match listed.get(direction * n..(direction + 1) * n) {
            Some(own) => own.to_vec(),
            None => {
                let unused = (Real::new(0.0), Real::new(0.0));
                cell.default_activations().iter().map(|f| (*f, unused)).collect()
            }
        };
        Activations { functions, clip }
    }

    /// Function number `which` of the cell: f, g or h.
    pub(super) fn apply(&self, b: &mut Builder, which: usize, x: Value) -> Result<Value, TypeError> {
        let (function, (alpha, beta)) = self.functions[which];
        let x = match self.clip {
            Some(clip) => {
                let x = b.binary_scalar(BinaryOp::Max, x, -clip.get())?;
                b.binary_scalar(BinaryOp::Min, x, clip.get())?
            }
            None => x,
        };
        function.apply(b, x, alpha, beta)
    }
}
