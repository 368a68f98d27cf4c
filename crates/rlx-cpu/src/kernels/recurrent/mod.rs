//! Recurrent layers of f32: the input's product with its weights for many steps at once, then the steps.
//!
//! Directions and blocks of sequences are independent and run side by side; within a step, large products are cut by
//! columns. Weights are packed once if they are constant. Nothing is allocated while steps run.
#![allow(unsafe_code)]

mod activation;
mod cell;
mod product;

use crate::array::{In, Out};
use crate::error::RunError;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::kernels::index::Indices;
use crate::kernels::transfer::Address;
use crate::load::PrepareContext;
use crate::pool::Pool;
use crate::weights::Packed;
use activation::Activation;
use cell::{Buffers, Cell, Options};
use product::{Gates, Rows, multiply};
use rlx_eval::Fault;
use rlx_ir::op::Real;
use rlx_ir::op::recurrent::{Direction, RecurrentActivation, RecurrentOperand};
use rlx_ir::{Composite, DType, Literal, Op, TensorType};
use std::sync::Arc;

/// Sequences of a block.
const SEQUENCES: usize = 8;

/// Numbers of a block's gates that are computed ahead.
const AHEAD: usize = 256 << 10;

/// Whether a composite is a layer that runs here.
pub(crate) fn native(composite: &Composite, operands: &[&TensorType]) -> Result<(), String> {
    match (layer(composite), operands.first()) {
        (Some(_), Some(x)) if x.dtype == DType::F32 => Ok(()),
        (Some(_), Some(x)) => Err(format!("the kernel is of f32, not of {}", x.dtype)),
        _ => Err("no recurrent layer".into()),
    }
}

/// Whether an operation is a layer that runs here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    matches!(op, Op::Composite(composite) if native(composite, operands).is_ok())
}

/// What the layers have in common.
#[derive(Clone)]
struct Layer {
    cell: Cell,
    direction: Direction,
    operands: Vec<RecurrentOperand>,
    activations: Vec<(RecurrentActivation, (Real, Real))>,
    clip: Option<Real>,
    batch_first: bool,
}

fn layer(composite: &Composite) -> Option<Layer> {
    macro_rules! layer {
        ($op:ident, $cell:expr) => {
            Layer {
                cell: $cell,
                direction: $op.direction,
                operands: $op.operands.clone(),
                activations: $op.activations.clone(),
                clip: $op.clip,
                batch_first: $op.batch_first,
            }
        };
    }
    Some(match composite {
        Composite::Rnn(op) => layer!(op, Cell::Rnn),
        Composite::Gru(op) => layer!(op, Cell::Gru { linear_before_reset: op.linear_before_reset }),
        Composite::Lstm(op) => layer!(op, Cell::Lstm { input_forget: op.input_forget }),
        _ => return None,
    })
}

impl Layer {
    fn optional(&self, which: RecurrentOperand) -> Option<usize> {
        self.operands.iter().position(|o| *o == which).map(|i| 3 + i)
    }

    /// The activations of direction `direction`.
    fn functions(&self, direction: usize) -> Vec<Activation> {
        let defaults = self.cell.default_activations();
        let n = defaults.len();
        let unused = (Real::new(0.0), Real::new(0.0));
        (0..n)
            .map(|i| {
                let own = self.activations.get(direction * n + i).copied();
                Activation::new(own.unwrap_or((defaults[i], unused)), self.clip)
            })
            .collect()
    }
}

/// The matrices of a constant operand, one a direction.
type PackedMatrices = Arc<Packed<Vec<f32>>>;

/// The kernel of a layer.
pub(crate) fn prepare(op: &Op, cx: &PrepareContext<'_>) -> Option<Box<dyn Kernel>> {
    let Op::Composite(composite) = op else { return None };
    let layer = layer(composite)?;
    let packed = |operand: usize| cx.constant(operand).and_then(|literal| packed(&layer, cx, literal).ok());
    let (input, recurrent) = (packed(1), packed(2));
    Some(Box::new(Recurrent { layer, input, recurrent }))
}

fn packed(layer: &Layer, cx: &PrepareContext<'_>, literal: &Literal) -> Result<PackedMatrices, RunError> {
    let gates = layer.cell.gates();
    let (hidden, depth) = (literal.dims()[1] / gates, literal.dims()[2]);
    let shape = Gates { gates, hidden, depth };
    let name = format!("recurrent panels, {gates} gates");
    cx.store.packed(literal, &name, || {
        let elements: Vec<f32> = literal.to_vec().unwrap_or_default();
        let size = gates * hidden * depth;
        let mut matrices = vec![0f32; literal.dims()[0] * shape.packed_len()];
        for direction in 0..literal.dims()[0] {
            let to = &mut matrices[direction * shape.packed_len()..][..shape.packed_len()];
            shape.pack(to, |row, k| elements[direction * size + row * depth + k]);
        }
        let bytes = matrices.len() * size_of::<f32>();
        Ok((matrices, bytes))
    })
}

struct Recurrent {
    layer: Layer,
    input: Option<PackedMatrices>,
    recurrent: Option<PackedMatrices>,
}

struct BoundRecurrent {
    layer: Layer,
    input: Option<PackedMatrices>,
    recurrent: Option<PackedMatrices>,
    functions: Vec<Vec<Activation>>,
    steps: usize,
    batch: usize,
    of_input: Gates,
    of_hidden: Gates,
    /// Steps whose gates are computed ahead.
    ahead: usize,
}

impl Kernel for Recurrent {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let layer = &self.layer;
        let (x, r) = (&cx.operands[0].dims, &cx.operands[2].dims);
        let (steps, batch) = if layer.batch_first { (x[1], x[0]) } else { (x[0], x[1]) };
        let (gates, hidden) = (layer.cell.gates(), r[2]);
        let of_input = Gates { gates, hidden, depth: x[2] };
        let of_hidden = Gates { gates, hidden, depth: hidden };
        let step = SEQUENCES.min(batch.max(1)) * of_input.columns();
        Ok(Box::new(BoundRecurrent {
            layer: layer.clone(),
            input: self.input.clone(),
            recurrent: self.recurrent.clone(),
            functions: (0..layer.direction.count()).map(|d| layer.functions(d)).collect(),
            steps,
            batch,
            of_input,
            of_hidden,
            ahead: (AHEAD / step.max(1)).clamp(1, steps.max(1)),
        }))
    }
}

impl BoundRecurrent {
    fn directions(&self) -> usize {
        self.layer.direction.count()
    }

    /// Blocks of sequences.
    fn blocks(&self) -> usize {
        self.batch.div_ceil(SEQUENCES)
    }

    /// Numbers of scratch of one block of one direction: the gates ahead, and the cell's own.
    fn block_scratch(&self) -> usize {
        let sequences = SEQUENCES.min(self.batch);
        let ahead = self.ahead * sequences * self.of_input.columns();
        (ahead + Buffers::len(self.of_hidden, sequences)).next_multiple_of(16)
    }

    /// Numbers of scratch for matrices that are not constant.
    fn packed_scratch(&self) -> [usize; 2] {
        let directions = self.directions();
        let len = |given: bool, shape: Gates| if given { 0 } else { directions * shape.packed_len() };
        [len(self.input.is_some(), self.of_input), len(self.recurrent.is_some(), self.of_hidden)]
    }
}

/// The matrices of an operand that is no constant, packed in scratch.
fn packed_now<'s>(shape: Gates, x: &In<'_>, scratch: &'s mut [f32]) -> &'s [f32] {
    let size = shape.gates * shape.hidden * shape.depth;
    if size > 0 {
        let elements = x.slice::<f32>();
        for (direction, to) in scratch.chunks_exact_mut(shape.packed_len()).enumerate() {
            shape.pack(to, |row, k| elements[direction * size + row * shape.depth + k]);
        }
    }
    scratch
}

/// The rows of a packed operand \[directions, n\] that belong to a direction.
fn of_direction<'a>(
    arguments: &Arguments<'a>,
    operand: Option<usize>,
    direction: usize,
) -> Option<&'a [f32]> {
    let x = arguments.operand(operand?);
    let n = x.dims()[1];
    Some(if n == 0 { &[] } else { &x.slice::<f32>()[direction * n..(direction + 1) * n] })
}

impl Bound for BoundRecurrent {
    fn scratch(&self) -> usize {
        let numbers = self.packed_scratch().iter().sum::<usize>()
            + self.directions() * self.blocks() * self.block_scratch();
        (numbers + 32) * size_of::<f32>()
    }

    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let [of_input, of_hidden] = self.packed_scratch();
        let scratch: *mut f32 = cx.scratch.cast();
        // SAFETY: the first parts of the scratch, as `scratch` counts them.
        let (w, r) = unsafe {
            (
                std::slice::from_raw_parts_mut(scratch, of_input),
                std::slice::from_raw_parts_mut(scratch.add(of_input), of_hidden),
            )
        };
        let w = match &self.input {
            Some(packed) => packed.value.as_slice(),
            None => packed_now(self.of_input, &arguments.operand(1), w),
        };
        let r = match &self.recurrent {
            Some(packed) => packed.value.as_slice(),
            None => packed_now(self.of_hidden, &arguments.operand(2), r),
        };
        let rest = Address(scratch.wrapping_add((of_input + of_hidden).next_multiple_of(16)).cast());
        let (this, pool) = (&*self, cx.pool);
        let blocks = this.blocks();
        pool.for_each(this.directions() * blocks, |part| {
            let (direction, block) = (part / blocks, part % blocks);
            let own = rest.at((part * this.block_scratch() * size_of::<f32>()) as isize).cast::<f32>();
            let w = &w[direction * this.of_input.packed_len()..][..this.of_input.packed_len()];
            let r = &r[direction * this.of_hidden.packed_len()..][..this.of_hidden.packed_len()];
            // SAFETY: each block has scratch and sequences of its own.
            unsafe { this.block(pool, arguments, direction, block * SEQUENCES, [w, r], own) };
        });
        Ok(())
    }
}

/// Where the numbers of a result for a sequence, of a direction and perhaps a step, begin.
struct Places {
    batch_first: bool,
    directions: usize,
    steps: usize,
    batch: usize,
    hidden: usize,
}

impl Places {
    fn output(&self, step: usize, direction: usize, sequence: usize) -> usize {
        let row = if self.batch_first {
            (sequence * self.steps + step) * self.directions + direction
        } else {
            (step * self.directions + direction) * self.batch + sequence
        };
        row * self.hidden
    }

    fn state(&self, direction: usize, sequence: usize) -> usize {
        let row = if self.batch_first {
            sequence * self.directions + direction
        } else {
            direction * self.batch + sequence
        };
        row * self.hidden
    }
}

impl BoundRecurrent {
    /// All steps of some sequences in one direction.
    ///
    /// # Safety
    /// `scratch` has [`block_scratch`](Self::block_scratch) numbers that nothing else uses.
    unsafe fn block(
        &self,
        pool: &Pool,
        arguments: &Arguments<'_>,
        direction: usize,
        first: usize,
        [w, r]: [&[f32]; 2],
        scratch: *mut f32,
    ) {
        use RecurrentOperand as O;
        let layer = &self.layer;
        let count = SEQUENCES.min(self.batch - first);
        let (hidden, columns) = (self.of_hidden.hidden, self.of_input.columns());
        let places = Places {
            batch_first: layer.batch_first,
            directions: self.directions(),
            steps: self.steps,
            batch: self.batch,
            hidden,
        };
        let ahead = self.ahead * SEQUENCES.min(self.batch) * columns;
        // SAFETY: the parts of the scratch, as `block_scratch` counts them.
        let (gates, own) = unsafe {
            let own = Buffers::len(self.of_hidden, count);
            (
                std::slice::from_raw_parts_mut(scratch, ahead),
                std::slice::from_raw_parts_mut(scratch.add(ahead), own),
            )
        };
        let bias = of_direction(arguments, layer.optional(O::Bias), direction);
        let (input_bias, recurrent_bias) = match bias {
            Some(bias) => (Some(&bias[..bias.len() / 2]), Some(&bias[bias.len() / 2..])),
            None => (None, None),
        };
        let options = Options {
            cell: layer.cell,
            recurrent: r,
            bias: recurrent_bias,
            peepholes: of_direction(arguments, layer.optional(O::Peepholes), direction),
            functions: &self.functions[direction],
        };
        let mut buffers = Buffers::new(self.of_hidden, count, own);
        for (state, which) in [(0, O::InitialHidden), (1, O::InitialCell)] {
            let given = layer.optional(which).map(|i| arguments.operand(i));
            for sequence in 0..count {
                let to = buffers.state(state, sequence);
                match &given {
                    Some(x) if hidden > 0 => {
                        let at = places.state(direction, first + sequence);
                        to.copy_from_slice(&x.slice::<f32>()[at..at + hidden]);
                    }
                    _ => to.fill(0.0),
                }
            }
        }
        let lengths = layer.optional(O::Lengths).map(|i| arguments.operand(i));
        let lengths = lengths.as_ref().map(Indices::of);
        let reverse = layer.direction == Direction::Reverse || direction == 1;
        let results: [Option<Out<'_>>; 3] =
            std::array::from_fn(|i| (i < arguments.result_count()).then(|| arguments.result(i)));
        let write = |result: usize, at: usize, numbers: Option<&[f32]>| {
            let Some(out) = &results[result] else { return };
            let to = out.slice_at::<f32>(at, hidden);
            match numbers {
                Some(numbers) => to.copy_from_slice(numbers),
                None => to.fill(0.0),
            }
        };
        let mut done = 0;
        while done < self.steps {
            let now = self.ahead.min(self.steps - done);
            // The earliest of the steps that come now, which are taken backward when reading so.
            let start = if reverse { self.steps - done - now } else { done };
            // SAFETY: the gates of this block.
            unsafe {
                self.project(pool, &arguments.operand(0), first..first + count, start..start + now, w, gates)
            };
            for i in 0..now {
                let i = if reverse { now - 1 - i } else { i };
                let step = start + i;
                for sequence in 0..count {
                    let row = &mut gates[(sequence * now + i) * columns..][..columns];
                    if let Some(bias) = input_bias {
                        self.of_hidden.add(row, bias);
                    }
                    buffers.given(sequence, columns, row);
                }
                let valid = |sequence: usize| {
                    lengths.as_ref().is_none_or(|lengths| (step as i64) < lengths.get(first + sequence))
                };
                buffers.step(pool, &options, valid);
                for sequence in 0..count {
                    let shown = valid(sequence).then(|| buffers.shown(0, sequence));
                    write(0, places.output(step, direction, first + sequence), shown);
                }
            }
            done += now;
        }
        for sequence in 0..count {
            let at = places.state(direction, first + sequence);
            write(1, at, Some(buffers.shown(0, sequence)));
            if results[2].is_some() {
                write(2, at, Some(buffers.shown(1, sequence)));
            }
        }
    }

    /// The input's part of the gates of some steps of some sequences: row (sequence, step).
    ///
    /// # Safety
    /// `gates` is large enough.
    unsafe fn project(
        &self,
        pool: &Pool,
        x: &In<'_>,
        sequences: std::ops::Range<usize>,
        steps: std::ops::Range<usize>,
        w: &[f32],
        gates: &mut [f32],
    ) {
        let shape = self.of_input;
        let pointer: *const f32 = x.pointer().cast();
        for (i, sequence) in sequences.enumerate() {
            let (at, stride) = if self.layer.batch_first {
                ((sequence * self.steps + steps.start) * shape.depth, shape.depth)
            } else {
                ((steps.start * self.batch + sequence) * shape.depth, self.batch * shape.depth)
            };
            let rows = Rows { first: pointer.wrapping_add(at), stride, count: steps.len() };
            let to = gates[i * steps.len() * shape.columns()..].as_mut_ptr();
            // SAFETY: the rows of x of this sequence's steps, and their gates.
            unsafe { multiply(pool, shape, w, 0..shape.gates, rows, to) };
        }
    }
}
