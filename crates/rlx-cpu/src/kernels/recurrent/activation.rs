//! The activations of recurrent layers, over slices.

use crate::kernels::region::FunctionF32;
use rlx_ir::op::Real;
use rlx_ir::op::elementwise::UnaryOp;
use rlx_ir::op::recurrent::RecurrentActivation;

/// Elements that are clipped or scaled at a time.
const PIECE: usize = 256;

/// A function with its parameters, after the clip.
#[derive(Clone, Copy)]
pub(super) struct Activation {
    function: RecurrentActivation,
    alpha: f32,
    beta: f32,
    clip: Option<f32>,
    /// The loop of the function, where it is an instruction of regions.
    instruction: Option<FunctionF32>,
}

impl Activation {
    pub(super) fn new(
        (function, (alpha, beta)): (RecurrentActivation, (Real, Real)),
        clip: Option<Real>,
    ) -> Activation {
        let instruction = match function {
            RecurrentActivation::Tanh | RecurrentActivation::ScaledTanh => FunctionF32::of(UnaryOp::Tanh),
            RecurrentActivation::Sigmoid => FunctionF32::of(UnaryOp::Sigmoid),
            _ => None,
        };
        Activation {
            function,
            alpha: alpha.get() as f32,
            beta: beta.get() as f32,
            clip: clip.map(|c| c.get() as f32),
            instruction,
        }
    }

    /// y = f(x).
    pub(super) fn apply(&self, x: &[f32], y: &mut [f32]) {
        if let (Some(instruction), None, false) = (self.instruction, self.clip, self.scales()) {
            return instruction.apply(x, y);
        }
        let mut piece = [0f32; PIECE];
        for (x, y) in x.chunks(PIECE).zip(y.chunks_mut(PIECE)) {
            let given = &mut piece[..x.len()];
            given.copy_from_slice(x);
            if let Some(clip) = self.clip {
                // NaN stays.
                given.iter_mut().for_each(|x| {
                    *x = if *x > clip {
                        clip
                    } else if *x < -clip {
                        -clip
                    } else {
                        *x
                    }
                });
            }
            if self.scales() {
                given.iter_mut().for_each(|x| *x *= self.beta);
            }
            match self.instruction {
                Some(instruction) => instruction.apply(given, y),
                None => y.iter_mut().zip(given).for_each(|(y, x)| *y = self.of(*x)),
            }
            if self.scales() {
                y.iter_mut().for_each(|y| *y *= self.alpha);
            }
        }
    }

    fn scales(&self) -> bool {
        self.function == RecurrentActivation::ScaledTanh
    }

    /// The functions that are no instructions; in f64 where they are transcendental.
    fn of(&self, x: f32) -> f32 {
        let (alpha, beta) = (self.alpha, self.beta);
        match self.function {
            RecurrentActivation::Relu => {
                if x > 0.0 || x.is_nan() {
                    x
                } else {
                    0.0
                }
            }
            RecurrentActivation::Affine => alpha * x + beta,
            RecurrentActivation::LeakyRelu => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            RecurrentActivation::ThresholdedRelu => {
                if x > alpha {
                    x
                } else {
                    0.0
                }
            }
            RecurrentActivation::HardSigmoid => (alpha * x + beta).clamp(0.0, 1.0),
            RecurrentActivation::Elu => {
                if x < 0.0 {
                    alpha * libm::expm1(x.into()) as f32
                } else {
                    x
                }
            }
            RecurrentActivation::Softsign => x / (1.0 + x.abs()),
            RecurrentActivation::Softplus => {
                let x = f64::from(x);
                (x.max(0.0) + libm::log1p(libm::exp(-x.abs()))) as f32
            }
            RecurrentActivation::Tanh | RecurrentActivation::ScaledTanh => libm::tanh(x.into()) as f32,
            RecurrentActivation::Sigmoid => (1.0 / (1.0 + libm::exp(-f64::from(x)))) as f32,
        }
    }
}
