//! One step of the recurrent cells.

use super::RecurrentActivation;
use super::activation::Activations;
use crate::builder::Builder;
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::op::contract::Dot;

type Built = Result<Value, TypeError>;

/// Which cell.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    Rnn,
    Gru { linear_before_reset: bool },
    Lstm { input_forget: bool },
}

/// The weights of one direction, in the wide type.
pub(super) struct Weights {
    /// \[gates · hidden, hidden\].
    pub recurrent: Value,
    /// \[gates · hidden\].
    pub bias: Option<Value>,
    /// \[3 · hidden\]: i, o, f.
    pub peepholes: Option<Value>,
}

/// What a step is given.
#[derive(Clone, Copy)]
pub(super) struct CellInputs {
    /// The input's part of all gates, with its bias: \[batch, gates · hidden\].
    pub given: Value,
    /// The hidden state \[batch, hidden\].
    pub hidden: Value,
    /// The cell state of an LSTM.
    pub memory: Option<Value>,
}

impl Cell {
    /// How many blocks of rows the weights have.
    pub(super) fn gates(self) -> i64 {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// How many activations a direction has.
    pub(super) fn activations(self) -> usize {
        self.default_activations().len()
    }

    /// Those that are used if none are given.
    pub(super) fn default_activations(self) -> &'static [RecurrentActivation] {
        use RecurrentActivation::{Sigmoid, Tanh};
        match self {
            Cell::Rnn => &[Tanh],
            Cell::Gru { .. } => &[Sigmoid, Tanh],
            Cell::Lstm { .. } => &[Sigmoid, Tanh, Tanh],
        }
    }

    /// Whether there is a cell state beside the hidden one.
    pub(super) fn has_memory(self) -> bool {
        matches!(self, Cell::Lstm { .. })
    }

    /// The states after one step: hidden, then cell.
    pub(super) fn step(
        self,
        b: &mut Builder,
        f: &Activations,
        weights: &Weights,
        inputs: CellInputs,
    ) -> Result<Vec<Value>, TypeError> {
        match (self, inputs.memory) {
            (Cell::Gru { linear_before_reset }, _) => {
                Ok(vec![gru(b, f, weights, inputs, linear_before_reset)?])
            }
            (Cell::Lstm { input_forget }, Some(memory)) => lstm(b, f, weights, inputs, memory, input_forget),
            (Cell::Rnn | Cell::Lstm { .. }, _) => {
                let sum = recurrent_sum(b, weights, inputs)?;
                Ok(vec![f.apply(b, 0, sum)?])
            }
        }
    }
}

/// h · Rᵀ + b.
fn recurrent_part(b: &mut Builder, hidden: Value, recurrent: Value, bias: Option<Value>) -> Built {
    let dot = Dot::along(0, 1, 1);
    let product = b.push1(dot, &[hidden, recurrent])?;
    match bias {
        Some(bias) => {
            let bias = b.broadcast_to(bias, &b.shape(product))?;
            b.add(product, bias)
        }
        None => Ok(product),
    }
}

/// The input's part and the hidden state's, of all gates.
fn recurrent_sum(b: &mut Builder, weights: &Weights, inputs: CellInputs) -> Built {
    let part = recurrent_part(b, inputs.hidden, weights.recurrent, weights.bias)?;
    b.add(inputs.given, part)
}

/// `count` blocks of the hidden size, from block `first` on.
fn blocks(b: &mut Builder, x: Value, axis: usize, first: i64, count: i64, hidden: &Dim) -> Built {
    b.slice_axis(x, axis, &(hidden.clone() * first), &(hidden.clone() * count))
}

/// f · x + (1 − f) · y.
fn mixed(b: &mut Builder, f: Value, x: Value, y: Value) -> Built {
    let one = b.like(1.0, f)?;
    let rest = b.sub(one, f)?;
    let kept = b.mul(f, x)?;
    let other = b.mul(rest, y)?;
    b.add(kept, other)
}

fn gru(
    b: &mut Builder,
    f: &Activations,
    weights: &Weights,
    inputs: CellInputs,
    linear_before_reset: bool,
) -> Built {
    let hidden = b.dim(inputs.hidden, 1);
    let rows = |b: &mut Builder, first: i64, count: i64| -> Result<(Value, Option<Value>), TypeError> {
        let recurrent = blocks(b, weights.recurrent, 0, first, count, &hidden)?;
        let bias = match weights.bias {
            Some(bias) => Some(blocks(b, bias, 0, first, count, &hidden)?),
            None => None,
        };
        Ok((recurrent, bias))
    };
    let (recurrent, bias) = rows(b, 0, 2)?;
    let part = recurrent_part(b, inputs.hidden, recurrent, bias)?;
    let given = blocks(b, inputs.given, 1, 0, 2, &hidden)?;
    let gates = b.add(given, part)?;
    let update = blocks(b, gates, 1, 0, 1, &hidden)?;
    let update = f.apply(b, 0, update)?;
    let reset = blocks(b, gates, 1, 1, 1, &hidden)?;
    let reset = f.apply(b, 0, reset)?;

    let (recurrent, bias) = rows(b, 2, 1)?;
    let part = if linear_before_reset {
        let part = recurrent_part(b, inputs.hidden, recurrent, bias)?;
        b.mul(reset, part)?
    } else {
        let kept = b.mul(reset, inputs.hidden)?;
        recurrent_part(b, kept, recurrent, bias)?
    };
    let given = blocks(b, inputs.given, 1, 2, 1, &hidden)?;
    let candidate = b.add(given, part)?;
    let candidate = f.apply(b, 1, candidate)?;
    mixed(b, update, inputs.hidden, candidate)
}

fn lstm(
    b: &mut Builder,
    f: &Activations,
    weights: &Weights,
    inputs: CellInputs,
    memory: Value,
    input_forget: bool,
) -> Result<Vec<Value>, TypeError> {
    let hidden = b.dim(inputs.hidden, 1);
    let sums = recurrent_sum(b, weights, inputs)?;
    let gate = |b: &mut Builder, block: i64| blocks(b, sums, 1, block, 1, &hidden);
    // Peephole blocks are in the order of the gates: i, o, f.
    let peep = |b: &mut Builder, sum: Value, block: i64, memory: Value| match weights.peepholes {
        Some(peepholes) => {
            let own = blocks(b, peepholes, 0, block, 1, &hidden)?;
            let own = b.broadcast_to(own, &b.shape(memory))?;
            let seen = b.mul(own, memory)?;
            b.add(sum, seen)
        }
        None => Ok(sum),
    };
    let input = gate(b, 0)?;
    let input = peep(b, input, 0, memory)?;
    let input = f.apply(b, 0, input)?;
    let forget = if input_forget {
        let one = b.like(1.0, input)?;
        b.sub(one, input)?
    } else {
        let forget = gate(b, 2)?;
        let forget = peep(b, forget, 2, memory)?;
        f.apply(b, 0, forget)?
    };
    let candidate = gate(b, 3)?;
    let candidate = f.apply(b, 1, candidate)?;
    let kept = b.mul(forget, memory)?;
    let added = b.mul(input, candidate)?;
    let next = b.add(kept, added)?;
    let output = gate(b, 1)?;
    let output = peep(b, output, 1, next)?;
    let output = f.apply(b, 0, output)?;
    let shown = f.apply(b, 2, next)?;
    Ok(vec![b.mul(output, shown)?, next])
}
