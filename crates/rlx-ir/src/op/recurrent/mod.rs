//! Recurrent layers as ONNX defines them, in one or both directions. The input's product with its weights is taken for
//! all steps at once; a scan does the rest, in f32 for narrower floats.

mod activation;
mod cell;

pub use activation::RecurrentActivation;

use super::elementwise::CompareOp;
use super::norm::statistics_dtype;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Carried, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types};
use crate::op::contract::Dot;
use crate::{names, operation};
use activation::Activations;
use cell::{Cell, CellInputs, Weights};

type Built = Result<Value, TypeError>;

names! {
    /// Which way a recurrent layer reads.
    pub enum Direction {
        /// From the first step on.
        Forward = "forward",
        /// From the last step back.
        Reverse = "reverse",
        /// Both, each with weights of its own.
        Bidirectional = "bidirectional",
    }
}

impl Direction {
    /// How many sets of weights there are.
    pub fn count(self) -> usize {
        if self == Direction::Bidirectional { 2 } else { 1 }
    }

    /// Whether direction `i` reads backward.
    fn is_reverse(self, i: usize) -> bool {
        self == Direction::Reverse || i == 1
    }
}

names! {
    /// The optional operands of recurrent layers, after x, W and R.
    pub enum RecurrentOperand {
        /// \[directions, 2 · gates · hidden\]: the biases of W, then those of R.
        Bias = "bias",
        /// Integers \[batch\]: how many steps of each sequence are valid. Later steps give 0 and change no state; reading
        /// backward begins at the last valid step.
        Lengths = "lengths",
        /// \[directions, batch, hidden\] (batch first if `batch_first`): the first hidden state; 0 without it.
        InitialHidden = "initial_hidden",
        /// The first cell state of an LSTM, as the hidden state.
        InitialCell = "initial_cell",
        /// \[directions, 3 · hidden\]: an LSTM's peepholes of the gates i, o, f.
        Peepholes = "peepholes",
    }
}

operation! {
    /// A simple recurrent layer: h' = f(x·Wᵀ + h·Rᵀ + b_W + b_R).
    /// Operands: x \[steps, batch, inputs\], W \[directions, hidden, inputs\], R \[directions, hidden, hidden\], then those
    /// listed. Results: h' of every step \[steps, directions, batch, hidden\], the last h \[directions, batch, hidden\].
    /// C1: x is floating point, and all but the lengths have its type. C2: ranks. C3: sizes agree. C4: each optional
    /// operand is listed once and is one of this layer's. C5: one activation a direction. C6: lengths are integers.
    pub struct Rnn = "rnn" {
        /// Which way.
        direction: Direction,
        /// The optional operands that follow x, W and R, in this order.
        operands: Vec<RecurrentOperand>,
        /// f of each direction, with alpha and beta; tanh if empty.
        activations: Vec<(RecurrentActivation, (Real, Real))>,
        /// Inputs of activations are limited to ± this.
        clip: Option<Real>,
        /// The batch is the first axis of x, of states and of results.
        batch_first: bool,
    }
}

operation! {
    /// A gated recurrent layer (Cho et al. 2014) with gates z, r and candidate c:
    /// z = f(x·W_zᵀ + h·R_zᵀ + b), r likewise, c = g(x·W_cᵀ + (r ⊙ h)·R_cᵀ + b), h' = (1 − z) ⊙ c + z ⊙ h.
    /// Operands and results as `rnn`, with W and R of 3 · hidden rows, in the order z, r, c. C1 to C6 as `rnn`, with two
    /// activations a direction: f, g.
    pub struct Gru = "gru" {
        /// Which way.
        direction: Direction,
        /// The optional operands that follow x, W and R, in this order.
        operands: Vec<RecurrentOperand>,
        /// f, g of each direction, with alpha and beta; sigmoid, tanh if empty.
        activations: Vec<(RecurrentActivation, (Real, Real))>,
        /// Inputs of activations are limited to ± this.
        clip: Option<Real>,
        /// The reset gate multiplies h·R_cᵀ and its bias, not h.
        linear_before_reset: bool,
        /// The batch is the first axis of x, of states and of results.
        batch_first: bool,
    }
}

operation! {
    /// Long short-term memory (Hochreiter & Schmidhuber 1997; Gers & Schmidhuber 2000) with gates i, o, f and candidate g:
    /// i = f(x·W_iᵀ + h·R_iᵀ + P_i ⊙ c + b), f likewise, g = g(x·W_gᵀ + h·R_gᵀ + b), c' = f ⊙ c + i ⊙ g,
    /// o = f(x·W_oᵀ + h·R_oᵀ + P_o ⊙ c' + b), h' = o ⊙ h(c').
    /// Operands and results as `rnn`, with W and R of 4 · hidden rows, in the order i, o, f, g, and the last c as a third
    /// result. C1 to C6 as `rnn`, with three activations a direction: f, g, h.
    pub struct Lstm = "lstm" {
        /// Which way.
        direction: Direction,
        /// The optional operands that follow x, W and R, in this order.
        operands: Vec<RecurrentOperand>,
        /// f, g, h of each direction, with alpha and beta; sigmoid, tanh, tanh if empty.
        activations: Vec<(RecurrentActivation, (Real, Real))>,
        /// Inputs of activations are limited to ± this.
        clip: Option<Real>,
        /// The forget gate is 1 − i.
        input_forget: bool,
        /// The batch is the first axis of x, of states and of results.
        batch_first: bool,
    }
}

/// What the three layers have in common.
struct Layer<'a> {
    cell: Cell,
    direction: Direction,
    operands: &'a [RecurrentOperand],
    activations: &'a [(RecurrentActivation, (Real, Real))],
    clip: Option<Real>,
    batch_first: bool,
}

macro_rules! recurrent {
    ($op:ident, $layer:ident => $cell:expr) => {
        impl $op {
            fn layer(&self) -> Layer<'_> {
                let $layer = self;
                Layer {
                    cell: $cell,
                    direction: self.direction,
                    operands: &self.operands,
                    activations: &self.activations,
                    clip: self.clip,
                    batch_first: self.batch_first,
                }
            }
        }

        impl OpDef for $op {
            fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
                self.layer().infer(cx)
            }
        }

        impl CompositeDef for $op {
            fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
                self.layer().decompose(b, operands)
            }
        }
    };
}
recurrent!(Rnn, layer => { let _ = layer; Cell::Rnn });
recurrent!(Gru, layer => Cell::Gru { linear_before_reset: layer.linear_before_reset });
recurrent!(Lstm, layer => Cell::Lstm { input_forget: layer.input_forget });

/// The sizes of a layer.
struct Sizes {
    steps: Dim,
    batch: Dim,
    hidden: Dim,
}

impl Layer<'_> {
    fn sizes(&self, x: &[Dim], r: &[Dim]) -> Sizes {
        let (steps, batch) = if self.batch_first { (&x[1], &x[0]) } else { (&x[0], &x[1]) };
        Sizes { steps: steps.clone(), batch: batch.clone(), hidden: r[2].clone() }
    }

    /// The sizes of a state.
    fn state(&self, sizes: &Sizes) -> [Dim; 3] {
        let directions = Dim::from(self.direction.count());
        let batch = sizes.batch.clone();
        let [outer, inner] = if self.batch_first { [batch, directions] } else { [directions, batch] };
        [outer, inner, sizes.hidden.clone()]
    }

    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        use RecurrentOperand as O;
        cx.arity(3 + self.operands.len())?;
        let x = cx.float("C1", 0)?;
        for i in 0..3 {
            cx.same_dtype("C1", i, 0)?;
            cx.rank("C2", i, 3)?;
        }
        let r = cx.operand(2)?;
        let sizes = self.sizes(x.dims(), r.dims());
        let directions = Dim::from(self.direction.count());
        let rows = sizes.hidden.clone() * self.cell.gates();
        cx.same_dims("C3", 1, &[directions.clone(), rows.clone(), x.shape[2].clone()])?;
        cx.same_dims("C3", 2, &[directions.clone(), rows.clone(), sizes.hidden.clone()])?;
        for (i, operand) in self.operands.iter().enumerate() {
            let foreign = matches!(operand, O::InitialCell | O::Peepholes) && !self.cell.has_memory();
            let fits = !self.operands[..i].contains(operand) && !foreign;
            let what = format!("optional operand {}", operand.name());
            cx.ensure(fits, "C4", Some(3 + i), &what, "one of this layer's, once", operand.name())?;
            let i = i + 3;
            if *operand == O::Lengths {
                cx.index("C6", i)?;
            } else {
                cx.same_dtype("C1", i, 0)?;
            }
            match operand {
                O::Bias => cx.same_dims("C3", i, &[directions.clone(), rows.clone() * 2])?,
                O::Lengths => cx.same_dims("C3", i, std::slice::from_ref(&sizes.batch))?,
                O::InitialHidden | O::InitialCell => cx.same_dims("C3", i, &self.state(&sizes))?,
                O::Peepholes => cx.same_dims("C3", i, &[directions.clone(), sizes.hidden.clone() * 3])?,
            }
        }
        let (expected, found) = (self.cell.activations() * self.direction.count(), self.activations.len());
        let fits = found == 0 || found == expected;
        cx.ensure(fits, "C5", None, "number of activations", format!("0 or {expected}"), found)?;
        let state = self.state(&sizes);
        let [batch, hidden] = [sizes.batch.clone(), sizes.hidden.clone()];
        let all = if self.batch_first {
            [batch, sizes.steps.clone(), directions, hidden]
        } else {
            [sizes.steps.clone(), directions, batch, hidden]
        };
        let mut types = Types::from_iter([x.with_shape(all.as_slice()), x.with_shape(state.as_slice())]);
        if self.cell.has_memory() {
            types.push(types[1].clone());
        }
        Ok(types)
    }

    fn optional(&self, operands: &[Value], which: RecurrentOperand) -> Option<Value> {
        self.operands.iter().position(|o| *o == which).and_then(|i| operands.get(3 + i)).copied()
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let dtype = b.dtype(operands[0]);
        let sizes = self.sizes(&b.shape(operands[0]), &b.shape(operands[2]));
        let mut outputs: Vec<Value> = Vec::new();
        let mut states: Vec<Vec<Value>> = vec![Vec::new(); if self.cell.has_memory() { 2 } else { 1 }];
        for direction in 0..self.direction.count() {
            let results = self.one_direction(b, operands, &sizes, direction)?;
            outputs.push(b.unsqueeze(results.stacked[0], 1)?);
            for (all, state) in states.iter_mut().zip(&results.carried) {
                all.push(b.unsqueeze(*state, 0)?);
            }
        }
        // [steps, directions, batch, hidden] and [directions, batch, hidden]
        let mut results = vec![b.concat(&outputs, 1)?];
        for all in &states {
            results.push(b.concat(all, 0)?);
        }
        if self.batch_first {
            results[0] = b.transpose(results[0], &[2, 0, 1, 3])?;
            for state in &mut results[1..] {
                *state = b.transpose(*state, &[1, 0, 2])?;
            }
        }
        results.into_iter().map(|v| b.cast(v, dtype)).collect()
    }

    /// One direction's slice of an operand whose axis `axis` is that of directions.
    fn of_direction(&self, b: &mut Builder, x: Value, axis: usize, direction: usize, wide: DType) -> Built {
        let part = b.index_axis(x, axis, &direction.into())?;
        b.cast(part, wide)
    }

    /// The first state in one direction.
    fn first_state(
        &self,
        b: &mut Builder,
        given: Option<Value>,
        sizes: &Sizes,
        direction: usize,
        wide: DType,
    ) -> Built {
        match given {
            Some(state) => {
                let axis = if self.batch_first { 1 } else { 0 };
                let state = self.of_direction(b, state, axis, direction, wide)?;
                // C3 holds its sizes to be x's, which may go by other names.
                b.reshape(state, &[sizes.batch.clone(), sizes.hidden.clone()])
            }
            None => {
                let zero = b.scalar(0.0, wide)?;
                b.broadcast_to(zero, &[sizes.batch.clone(), sizes.hidden.clone()])
            }
        }
    }

    /// The scan of one direction: carried states \[batch, hidden\], outputs \[steps, batch, hidden\].
    fn one_direction(
        &self,
        b: &mut Builder,
        operands: &[Value],
        sizes: &Sizes,
        direction: usize,
    ) -> Result<Carried, TypeError> {
        use RecurrentOperand as O;
        let wide = statistics_dtype(b.dtype(operands[0]));
        let gates = self.cell.gates();
        let mut x = operands[0];
        if self.batch_first {
            x = b.transpose(x, &[1, 0, 2])?;
        }
        let w = b.index_axis(operands[1], 0, &direction.into())?;
        let dot = Dot { out: Some(wide), ..Dot::along(0, 2, 1) };
        let mut given = b.push1(dot, &[x, w])?;
        let mut recurrent_bias = None;
        if let Some(bias) = self.optional(operands, O::Bias) {
            let bias = self.of_direction(b, bias, 0, direction, wide)?;
            let rows = sizes.hidden.clone() * gates;
            let parts = b.split(bias, 0, &[rows.clone(), rows])?;
            let dims = b.shape(given);
            let of_input = b.broadcast_in(parts[0], &dims, &[2])?;
            given = b.add(given, of_input)?;
            recurrent_bias = Some(parts[1]);
        }
        let mut scanned = vec![given];
        let lengths = self.optional(operands, O::Lengths);
        if lengths.is_some() {
            scanned.push(b.iota(DType::I64, std::slice::from_ref(&sizes.steps), 0)?);
        }
        let mut carried =
            vec![self.first_state(b, self.optional(operands, O::InitialHidden), sizes, direction, wide)?];
        if self.cell.has_memory() {
            let first = self.optional(operands, O::InitialCell);
            carried.push(self.first_state(b, first, sizes, direction, wide)?);
        }
        let mut captured = vec![self.of_direction(b, operands[2], 0, direction, wide)?];
        let peepholes = match self.optional(operands, O::Peepholes) {
            Some(p) => Some(self.of_direction(b, p, 0, direction, wide)?),
            None => None,
        };
        let lengths = match lengths {
            Some(lengths) => Some(b.cast(lengths, DType::I64)?),
            None => None,
        };
        captured.extend([recurrent_bias, peepholes, lengths].into_iter().flatten());
        let activations = Activations::new(self.cell, self.activations, self.clip, direction);
        let reverse = self.direction.is_reverse(direction);
        b.scan(&carried, &scanned, &captured, &sizes.steps, reverse, |b, trip| {
            let mut rest = trip.captured[1..].iter().copied();
            let weights = Weights {
                recurrent: trip.captured[0],
                bias: recurrent_bias.and_then(|_| rest.next()),
                peepholes: peepholes.and_then(|_| rest.next()),
            };
            let inputs = CellInputs {
                given: trip.scanned[0],
                hidden: trip.carried[0],
                memory: trip.carried.get(1).copied(),
            };
            let mut states = self.cell.step(b, &activations, &weights, inputs)?;
            let mut output = states[0];
            if let (Some(lengths), Some(step)) = (rest.next(), trip.scanned.get(1)) {
                let step = b.broadcast_to(*step, &b.shape(lengths))?;
                let valid = b.compare(CompareOp::Lt, step, lengths)?;
                let valid = b.broadcast_in(valid, &b.shape(output), &[0])?;
                for (state, before) in states.iter_mut().zip(trip.carried) {
                    *state = b.select(valid, *state, *before)?;
                }
                let zero = b.like(0.0, output)?;
                output = b.select(valid, output, zero)?;
            }
            Ok(Carried { carried: states, stacked: vec![output] })
        })
    }
}
