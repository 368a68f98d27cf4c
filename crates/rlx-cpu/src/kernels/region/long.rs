//! Regions whose rows are too long for registers, such as a sum of a whole array.
//!
//! The vector program runs in stages, one for each reduction that waits for another: a stage goes over the row in
//! chunks, computes again what it needs of the elements, and reduces each chunk to a partial result; the partial results
//! are reduced once all are there. Chunks are spread over threads; their size is fixed, so results do not depend on how
//! many there are.
#![allow(unsafe_code)]

use super::access::{Access, expand};
use super::compile::{Instruction, Program, Register};
use super::run::REGISTERS;
use crate::kernel::{Arguments, Bound, RunContext};
use crate::memory::Aligned;
use rlx_eval::Fault;
use rlx_opt::region::Level;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of more elements than this run in chunks.
pub(super) const LONG: usize = 32 * 1024;

/// Elements of a chunk.
const CHUNK: usize = 4096;

/// One pass over a row. Instructions are named by their index.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage {
    /// On row values, before the chunks.
    rows: Vec<usize>,
    /// On the elements of each chunk.
    chunk: Vec<usize>,
    /// The reductions whose partial results the chunks give.
    reduces: Vec<usize>,
}

fn written(instruction: &Instruction) -> Option<Register> {
    match instruction {
        Instruction::Load { to, .. }
        | Instruction::Apply { to, .. }
        | Instruction::Reduce { to, .. }
        | Instruction::Expand { to, .. } => Some(*to),
        Instruction::Store { .. } => None,
    }
}

fn read(instruction: &Instruction) -> &[Register] {
    match instruction {
        Instruction::Load { .. } => &[],
        Instruction::Apply { operands, .. } => operands,
        Instruction::Reduce { from, .. } | Instruction::Expand { from, .. } | Instruction::Store { from } => {
            std::slice::from_ref(from)
        }
    }
}

/// The stages of a program with `values` values.
pub(super) fn stages(instructions: &[Instruction], values: usize) -> Vec<Stage> {
    // How many reductions must be done before a value can be, and the instruction that makes it.
    let mut after = vec![0usize; values];
    let mut maker = vec![0usize; values];
    for (i, instruction) in instructions.iter().enumerate() {
        let waits = read(instruction).iter().map(|r| after[usize::from(r.value)]).max().unwrap_or(0);
        if let Some(to) = written(instruction) {
            let reduces = matches!(instruction, Instruction::Reduce { .. });
            after[usize::from(to.value)] = waits + usize::from(reduces);
            maker[usize::from(to.value)] = i;
        }
    }
    let count = after.iter().max().map_or(1, |most| most + 1);
    let mut stages = vec![Stage::default(); count];
    let mut wanted = vec![vec![false; instructions.len()]; count];
    for (i, instruction) in instructions.iter().enumerate() {
        let waits = read(instruction).iter().map(|r| after[usize::from(r.value)]).max().unwrap_or(0);
        let full = |level: Level| level == Level::Full;
        match instruction {
            Instruction::Reduce { .. } => {
                stages[waits].reduces.push(i);
                want(instructions, &maker, i, &mut wanted[waits]);
                wanted[waits][i] = false;
            }
            Instruction::Store { from } if full(from.level) => {
                want(instructions, &maker, i, &mut wanted[waits]);
            }
            Instruction::Store { .. } => stages[waits].rows.push(i),
            instruction if written(instruction).is_some_and(|to| !full(to.level)) => {
                stages[waits].rows.push(i);
            }
            _ => {}
        }
    }
    for (stage, wanted) in stages.iter_mut().zip(wanted) {
        stage.chunk = (0..instructions.len()).filter(|i| wanted[*i]).collect();
    }
    stages
}

/// Marks instruction `i` and those that make the full values that it needs.
fn want(instructions: &[Instruction], maker: &[usize], i: usize, wanted: &mut [bool]) {
    if std::mem::replace(&mut wanted[i], true) {
        return;
    }
    for register in read(&instructions[i]).iter().filter(|r| r.level == Level::Full) {
        want(instructions, maker, maker[usize::from(register.value)], wanted);
    }
}

/// A region with long rows, with its sizes.
pub(super) struct BoundLong {
    program: Arc<Program>,
    operands: Vec<Access>,
    result: Access,
    rows: usize,
    length: usize,
    /// Where each full value lies in a thread's memory.
    offsets: Vec<usize>,
    bytes: usize,
    /// The row values of the present row, 64 bytes each.
    row_values: Aligned,
    /// The partial results of the present stage, by reduction.
    partials: Aligned,
}

/// Bytes between row values.
const ROW_VALUE: usize = 64;

impl BoundLong {
    pub(super) fn new(
        program: Arc<Program>,
        operands: Vec<Access>,
        result: Access,
        rows: usize,
        length: usize,
    ) -> BoundLong {
        let mut offsets = Vec::with_capacity(program.values.len());
        let mut bytes = 0usize;
        for (width, level) in &program.values {
            offsets.push(bytes);
            if *level == Level::Full {
                bytes += CHUNK * width;
            }
        }
        BoundLong {
            program,
            operands,
            result,
            rows,
            length,
            offsets,
            bytes,
            row_values: Aligned::default(),
            partials: Aligned::default(),
        }
    }

    fn chunks(&self) -> usize {
        self.length.div_ceil(CHUNK)
    }

    /// Runs the instructions on row values of a stage; false if an integer was divided by zero.
    fn run_rows(&self, stage: &Stage, arguments: &Arguments<'_>, row: usize, values: *mut u8) -> bool {
        // SAFETY: there is room for every value.
        let at = |r: &Register| unsafe { values.add(usize::from(r.value) * ROW_VALUE) };
        for i in &stage.rows {
            match &self.program.instructions[*i] {
                Instruction::Load { operand, to } => {
                    let pointer = arguments.operand(*operand).pointer();
                    // SAFETY: one element of the operand, one lane.
                    unsafe { self.operands[*operand].load(pointer, row, 1, at(to)) };
                }
                Instruction::Apply { function, operands, to } => {
                    let mut from = [std::ptr::null(); 3];
                    for (pointer, register) in from.iter_mut().zip(operands) {
                        *pointer = at(register).cast_const();
                    }
                    // SAFETY: one lane each.
                    if !unsafe { function(from, at(to), 1) } {
                        return false;
                    }
                }
                Instruction::Store { from } => {
                    // SAFETY: one element of the result.
                    unsafe { self.result.store(arguments.result(0).pointer(), row, 1, at(from)) };
                }
                Instruction::Reduce { .. } | Instruction::Expand { .. } => {}
            }
        }
        true
    }

    /// Runs a stage's instructions on one chunk of a row.
    fn run_chunk(
        &self,
        stage: &Stage,
        arguments: &Arguments<'_>,
        (row, chunk): (usize, usize),
        values: *const u8,
        partials: *mut u8,
        memory: *mut u8,
    ) -> bool {
        let start = row * self.length + chunk * CHUNK;
        let count = CHUNK.min(self.length - chunk * CHUNK);
        // SAFETY: the thread's memory has room for every full value.
        let at = |r: &Register| unsafe { memory.add(self.offsets[usize::from(r.value)]) };
        for i in &stage.chunk {
            match &self.program.instructions[*i] {
                Instruction::Load { operand, to } => {
                    let pointer = arguments.operand(*operand).pointer();
                    // SAFETY: a chunk of the operand, room for a chunk.
                    unsafe { self.operands[*operand].load(pointer, start, count, at(to)) };
                }
                Instruction::Apply { function, operands, to } => {
                    let mut from = [std::ptr::null(); 3];
                    for (pointer, register) in from.iter_mut().zip(operands) {
                        *pointer = at(register).cast_const();
                    }
                    // SAFETY: a chunk each.
                    if !unsafe { function(from, at(to), count) } {
                        return false;
                    }
                }
                Instruction::Expand { from, to } => {
                    // SAFETY: row values are there before the chunks of the stages that use them.
                    unsafe {
                        let source = values.add(usize::from(from.value) * ROW_VALUE);
                        expand(to.lane, source, at(to), 1, count);
                    }
                }
                Instruction::Store { from } => {
                    // SAFETY: a chunk of the result, which no other part writes.
                    unsafe { self.result.store(arguments.result(0).pointer(), start, count, at(from)) };
                }
                Instruction::Reduce { .. } => {}
            }
        }
        for (position, i) in stage.reduces.iter().enumerate() {
            if let Instruction::Reduce { function, from, to } = &self.program.instructions[*i] {
                let slot = position * self.chunks() * 8 + chunk * to.lane.width();
                // SAFETY: the partial results have room for a lane of each chunk and reduction.
                unsafe { function(at(from), partials.add(slot), 1, count) };
            }
        }
        true
    }
}

/// An address that threads share: each writes a part of its own.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: chunks write different partial results, and read row values that nobody writes meanwhile.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn get(self) -> *mut u8 {
        self.0
    }
}

impl Bound for BoundLong {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let short = |e: crate::RunError| Fault::Custom(e.to_string());
        let (mut row_values, mut partials) =
            (std::mem::take(&mut self.row_values), std::mem::take(&mut self.partials));
        row_values.ensure(self.program.values.len() * ROW_VALUE).map_err(short)?;
        let most = self.program.stages.iter().map(|s| s.reduces.len()).max().unwrap_or(0);
        partials.ensure((most * self.chunks() * 8).max(1)).map_err(short)?;
        let (values, partial) = (Shared(row_values.as_mut_ptr()), Shared(partials.as_mut_ptr()));
        let (failed, starved) = (AtomicBool::new(false), AtomicBool::new(false));
        let this: &BoundLong = self;
        for row in 0..this.rows {
            for stage in &this.program.stages {
                if !this.run_rows(stage, arguments, row, values.get()) {
                    return Err(Fault::DivisionByZero);
                }
                if stage.chunk.is_empty() && stage.reduces.is_empty() {
                    continue;
                }
                cx.pool.for_each(this.chunks(), |chunk| {
                    REGISTERS.with_borrow_mut(|memory| {
                        if memory.ensure(this.bytes).is_err() {
                            starved.store(true, Ordering::Relaxed);
                            return;
                        }
                        let place = (row, chunk);
                        let memory = memory.as_mut_ptr();
                        if !this.run_chunk(stage, arguments, place, values.get(), partial.get(), memory) {
                            failed.store(true, Ordering::Relaxed);
                        }
                    });
                });
                for (position, i) in stage.reduces.iter().enumerate() {
                    if let Instruction::Reduce { function, to, .. } = &this.program.instructions[*i] {
                        // SAFETY: all chunks have written their lanes; one lane of the row value is written.
                        unsafe {
                            let from = partial.get().add(position * this.chunks() * 8);
                            function(
                                from,
                                values.get().add(usize::from(to.value) * ROW_VALUE),
                                1,
                                this.chunks(),
                            );
                        }
                    }
                }
            }
        }
        (self.row_values, self.partials) = (row_values, partials);
        if starved.into_inner() {
            return Err(Fault::Custom(format!("no memory for {} bytes of registers", self.bytes)));
        }
        if failed.into_inner() { Err(Fault::DivisionByZero) } else { Ok(()) }
    }
}
