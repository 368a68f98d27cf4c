//! One step of the cells, for a block of sequences.
#![allow(unsafe_code)]

use super::activation::Activation;
use super::product::{Gates, Rows, multiply};
use crate::pool::Pool;
use rlx_ir::op::recurrent::RecurrentActivation;

/// Which cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    Rnn,
    Gru { linear_before_reset: bool },
    Lstm { input_forget: bool },
}

impl Cell {
    /// Blocks of rows of the weights.
    pub(super) fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// The activations that are used if none are given.
    pub(super) fn default_activations(self) -> &'static [RecurrentActivation] {
        use RecurrentActivation::{Sigmoid, Tanh};
        match self {
            Cell::Rnn => &[Tanh],
            Cell::Gru { .. } => &[Sigmoid, Tanh],
            Cell::Lstm { .. } => &[Sigmoid, Tanh, Tanh],
        }
    }
}

/// What stays the same from step to step.
pub(super) struct Options<'a> {
    pub(super) cell: Cell,
    /// The packed recurrent weights.
    pub(super) recurrent: &'a [f32],
    /// \[gates · hidden\].
    pub(super) bias: Option<&'a [f32]>,
    /// \[3 · hidden\]: i, o, f.
    pub(super) peepholes: Option<&'a [f32]>,
    pub(super) functions: &'a [Activation],
}

impl Gates {
    /// Adds numbers \[gates · hidden\] to a row of padded gates.
    pub(super) fn add(&self, row: &mut [f32], numbers: &[f32]) {
        if self.hidden == 0 {
            return;
        }
        for (row, numbers) in row.chunks_exact_mut(self.padded()).zip(numbers.chunks_exact(self.hidden)) {
            row.iter_mut().zip(numbers).for_each(|(x, y)| *x += y);
        }
    }
}

/// The numbers that steps work on, each an array over sequences.
pub(super) struct Buffers<'a> {
    shape: Gates,
    count: usize,
    /// The hidden state, and the cell's.
    states: [&'a mut [f32]; 2],
    /// The input's part of the gates.
    given: &'a mut [f32],
    /// The hidden state's part.
    kept: &'a mut [f32],
    /// Results of activations, a number of gates for one sequence.
    active: &'a mut [f32],
    /// The hidden state that the reset gate lets through.
    reset: &'a mut [f32],
}

impl<'a> Buffers<'a> {
    /// Numbers that the buffers of `count` sequences take.
    pub(super) fn len(shape: Gates, count: usize) -> usize {
        let (columns, hidden) = (shape.columns(), shape.padded());
        count * (2 * columns + 3 * hidden) + 6 * hidden
    }

    /// Buffers in `memory`.
    pub(super) fn new(shape: Gates, count: usize, memory: &'a mut [f32]) -> Buffers<'a> {
        let (columns, hidden) = (shape.columns(), shape.padded());
        memory.fill(0.0);
        let (given, rest) = memory.split_at_mut(count * columns);
        let (kept, rest) = rest.split_at_mut(count * columns);
        let (h, rest) = rest.split_at_mut(count * hidden);
        let (c, rest) = rest.split_at_mut(count * hidden);
        let (reset, active) = rest.split_at_mut(count * hidden);
        Buffers { shape, count, states: [h, c], given, kept, active, reset }
    }

    /// State 0 (hidden) or 1 (the cell's) of a sequence.
    pub(super) fn state(&mut self, which: usize, sequence: usize) -> &mut [f32] {
        &mut self.states[which][sequence * self.shape.padded()..][..self.shape.hidden]
    }

    /// The same, to read.
    pub(super) fn shown(&self, which: usize, sequence: usize) -> &[f32] {
        &self.states[which][sequence * self.shape.padded()..][..self.shape.hidden]
    }

    /// Takes the input's part of a sequence's gates.
    pub(super) fn given(&mut self, sequence: usize, columns: usize, row: &[f32]) {
        self.given[sequence * columns..][..columns].copy_from_slice(row);
    }

    /// The products of a state with the recurrent weights of some gates, into `kept`.
    fn multiply(&mut self, pool: &Pool, options: &Options<'_>, gates: std::ops::Range<usize>, reset: bool) {
        let from = if reset { self.reset.as_ptr() } else { self.states[0].as_ptr() };
        let rows = Rows { first: from, stride: self.shape.padded(), count: self.count };
        // SAFETY: states have `hidden` numbers a row, `kept` all columns.
        unsafe { multiply(pool, self.shape, options.recurrent, gates, rows, self.kept.as_mut_ptr()) };
    }

    /// Replaces the states of valid sequences by those after one step.
    pub(super) fn step(&mut self, pool: &Pool, options: &Options<'_>, valid: impl Fn(usize) -> bool) {
        match options.cell {
            Cell::Rnn => {
                self.multiply(pool, options, 0..1, false);
                self.each(options, valid, |sums, _, states, _, f, _| {
                    f[0].apply(&sums[..states[0].len()], states[0])
                });
            }
            Cell::Lstm { input_forget } => {
                self.multiply(pool, options, 0..4, false);
                self.each(options, valid, |sums, padded, [h, c], active, f, peepholes| {
                    lstm(sums, padded, h, c, active, f, peepholes, input_forget);
                });
            }
            Cell::Gru { linear_before_reset: true } => {
                self.multiply(pool, options, 0..3, false);
                self.gru(options, &valid, true);
            }
            Cell::Gru { linear_before_reset: false } => {
                self.multiply(pool, options, 0..2, false);
                self.gates_of_gru(options);
                self.multiply(pool, options, 2..3, true);
                self.gru(options, &valid, false);
            }
        }
    }

    /// Calls `cell` for each valid sequence with the sums of its gates, the gates' distance, its states, a buffer, the
    /// functions and the peepholes.
    fn each(
        &mut self,
        options: &Options<'_>,
        valid: impl Fn(usize) -> bool,
        cell: impl Fn(&mut [f32], usize, [&mut [f32]; 2], &mut [f32], &[Activation], Option<&[f32]>),
    ) {
        let (columns, padded, hidden) = (self.shape.columns(), self.shape.padded(), self.shape.hidden);
        for sequence in (0..self.count).filter(|s| valid(*s)) {
            let kept = &mut self.kept[sequence * columns..][..columns];
            if let Some(bias) = options.bias {
                self.shape.add(kept, bias);
            }
            kept.iter_mut().zip(&self.given[sequence * columns..][..columns]).for_each(|(x, y)| *x += y);
            let [h, c] = &mut self.states;
            let own = sequence * padded..sequence * padded + hidden;
            cell(
                kept,
                padded,
                [&mut h[own.clone()], &mut c[own]],
                self.active,
                options.functions,
                options.peepholes,
            );
        }
    }

    /// The update gates, in place of their sums, and the hidden states times the reset gates.
    fn gates_of_gru(&mut self, options: &Options<'_>) {
        let (columns, padded, hidden) = (self.shape.columns(), self.shape.padded(), self.shape.hidden);
        for sequence in 0..self.count {
            let kept = &mut self.kept[sequence * columns..][..columns];
            let given = &self.given[sequence * columns..][..columns];
            for gate in 0..2 {
                let sums = &mut kept[gate * padded..][..hidden];
                add_gate(sums, options.bias, gate);
                sums.iter_mut().zip(&given[gate * padded..]).for_each(|(x, y)| *x += y);
                let active = &mut self.active[gate * padded..][..hidden];
                options.functions[0].apply(sums, active);
            }
            kept[..hidden].copy_from_slice(&self.active[..hidden]);
            let h = &self.states[0][sequence * padded..][..hidden];
            let reset = &mut self.reset[sequence * padded..][..hidden];
            for ((to, h), r) in reset.iter_mut().zip(h).zip(&self.active[padded..]) {
                *to = r * h;
            }
        }
    }

    /// The candidate and the new state. `linear`: the reset gate multiplies the candidate's product; otherwise the update
    /// gate is known already, and the product is of what the reset gate let through.
    fn gru(&mut self, options: &Options<'_>, valid: &dyn Fn(usize) -> bool, linear: bool) {
        let (columns, padded, hidden) = (self.shape.columns(), self.shape.padded(), self.shape.hidden);
        for sequence in (0..self.count).filter(|s| valid(*s)) {
            let kept = &mut self.kept[sequence * columns..][..columns];
            let given = &self.given[sequence * columns..][..columns];
            let (active, candidate) = self.active.split_at_mut(2 * padded);
            if linear {
                for gate in 0..2 {
                    let sums = &mut kept[gate * padded..][..hidden];
                    add_gate(sums, options.bias, gate);
                    sums.iter_mut().zip(&given[gate * padded..]).for_each(|(x, y)| *x += y);
                    options.functions[0].apply(sums, &mut active[gate * padded..][..hidden]);
                }
            } else {
                active[..hidden].copy_from_slice(&kept[..hidden]);
            }
            let sums = &mut kept[2 * padded..][..hidden];
            add_gate(sums, options.bias, 2);
            if linear {
                sums.iter_mut().zip(&active[padded..]).for_each(|(x, r)| *x *= r);
            }
            sums.iter_mut().zip(&given[2 * padded..]).for_each(|(x, y)| *x += y);
            let candidate = &mut candidate[..hidden];
            options.functions[1].apply(sums, candidate);
            let h = &mut self.states[0][sequence * padded..][..hidden];
            for ((h, z), c) in h.iter_mut().zip(active).zip(candidate) {
                *h = *z * *h + (1.0 - *z) * *c;
            }
        }
    }
}

/// Adds the bias of one gate.
fn add_gate(sums: &mut [f32], bias: Option<&[f32]>, gate: usize) {
    if let Some(bias) = bias {
        let own = &bias[gate * sums.len()..];
        sums.iter_mut().zip(own).for_each(|(x, b)| *x += b);
    }
}

/// The gates i, o, f, g from their sums, then c and h.
#[allow(clippy::too_many_arguments)]
fn lstm(
    sums: &mut [f32],
    padded: usize,
    h: &mut [f32],
    c: &mut [f32],
    active: &mut [f32],
    f: &[Activation],
    peepholes: Option<&[f32]>,
    input_forget: bool,
) {
    let hidden = h.len();
    let peep = |sums: &mut [f32], block: usize, c: &[f32]| {
        if let Some(peepholes) = peepholes {
            let own = &peepholes[block * hidden..];
            for ((x, p), c) in sums.iter_mut().zip(own).zip(c) {
                *x += p * c;
            }
        }
    };
    let mut parts = active.chunks_mut(padded.max(1));
    let mut next = || parts.next().map_or(&mut [] as &mut [f32], |part| &mut part[..hidden]);
    let (input, forget, candidate, output) = (next(), next(), next(), next());
    let gate = |block: usize| block * padded..block * padded + hidden;
    peep(&mut sums[gate(0)], 0, c);
    f[0].apply(&sums[gate(0)], input);
    if input_forget {
        forget.iter_mut().zip(&*input).for_each(|(f, i)| *f = 1.0 - i);
    } else {
        peep(&mut sums[gate(2)], 2, c);
        f[0].apply(&sums[gate(2)], forget);
    }
    f[1].apply(&sums[gate(3)], candidate);
    for (((c, f), i), g) in c.iter_mut().zip(&*forget).zip(&*input).zip(&*candidate) {
        *c = *f * *c + *i * *g;
    }
    peep(&mut sums[gate(1)], 1, c);
    f[0].apply(&sums[gate(1)], output);
    f[2].apply(c, candidate);
    for ((h, o), c) in h.iter_mut().zip(&*output).zip(&*candidate) {
        *h = *o * *c;
    }
}
