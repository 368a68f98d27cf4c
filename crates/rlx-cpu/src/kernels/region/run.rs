//! Running a region's vector program, tile by tile.
#![allow(unsafe_code)]

use super::access::{Access, expand};
use super::compile::{Instruction, Program, Register};
use crate::kernel::{Arguments, Bound, RunContext};
use crate::memory::Aligned;
use rlx_eval::Fault;
use rlx_opt::region::Level;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements of a tile, where rows are not longer: a few registers of f32 fit the first-level cache.
const TILE: usize = 1024;

/// Elements of the smallest part that is given to another thread.
const GRAIN: usize = 16 * 1024;

/// A region with its sizes.
pub(super) struct BoundRegion {
    program: Arc<Program>,
    operands: Vec<Access>,
    result: Access,
    rows: usize,
    /// Elements of a row; 1 without reductions.
    length: usize,
    /// Rows of a tile.
    tile: usize,
    /// Where each register lies in a thread's memory.
    offsets: Vec<usize>,
    bytes: usize,
}

thread_local! {
    /// A thread's registers, used by one region after the other.
    pub(super) static REGISTERS: RefCell<Aligned> = RefCell::new(Aligned::default());
}

impl BoundRegion {
    pub(super) fn new(
        program: Arc<Program>,
        operands: Vec<Access>,
        result: Access,
        rows: usize,
        length: usize,
    ) -> BoundRegion {
        let tile = (TILE / length.max(1)).clamp(1, rows.max(1));
        let mut offsets = Vec::with_capacity(program.registers.len());
        let mut bytes = 0usize;
        for (width, level) in &program.registers {
            offsets.push(bytes);
            let count = match level {
                Level::Full => tile * length,
                Level::Row => tile,
            };
            bytes += (count * width).next_multiple_of(64);
        }
        BoundRegion { program, operands, result, rows, length, tile, offsets, bytes }
    }

    /// Elements of `rows` rows.
    fn count(&self, level: Level, rows: usize) -> usize {
        match level {
            Level::Full => rows * self.length,
            Level::Row => rows,
        }
    }

    /// Runs the tiles of a range of rows; false if an integer was divided by zero.
    fn rows(&self, arguments: &Arguments<'_>, range: std::ops::Range<usize>, memory: &mut [u8]) -> bool {
        let base = memory.as_mut_ptr();
        // SAFETY: offsets are within `bytes`, which the memory holds.
        let own = |r: &Register| unsafe { base.add(self.offsets[usize::from(r.index)]) };
        // Where each register's lanes are: in its own memory, or an operand's that lies as they would. The program writes
        // each register before it reads it.
        let mut shown: SmallVec<[*const u8; 16]> = SmallVec::from_elem(std::ptr::null(), self.offsets.len());
        let mut row = range.start;
        while row < range.end {
            let rows = self.tile.min(range.end - row);
            for instruction in &self.program.instructions {
                match instruction {
                    Instruction::Load { operand, to } => {
                        let access = &self.operands[*operand];
                        let pointer: *const u8 = arguments.operand(*operand).pointer();
                        let (start, count) = (self.count(to.level, row), self.count(to.level, rows));
                        shown[usize::from(to.index)] = if access.is_direct() && count > 0 {
                            access.direct(pointer, start)
                        } else {
                            // SAFETY: the register has room for a tile; the access stays in the operand.
                            unsafe { access.load(pointer, start, count, own(to)) };
                            own(to)
                        };
                    }
                    Instruction::Apply { function, operands, to } => {
                        let mut from = [std::ptr::null(); 3];
                        for (pointer, register) in from.iter_mut().zip(operands) {
                            *pointer = shown[usize::from(register.index)];
                        }
                        shown[usize::from(to.index)] = own(to);
                        // SAFETY: registers hold their tiles, and the result's is none of the operands'.
                        if !unsafe { function(from, own(to), self.count(to.level, rows)) } {
                            return false;
                        }
                    }
                    Instruction::Reduce { function, from, to } => {
                        shown[usize::from(to.index)] = own(to);
                        // SAFETY: as above.
                        unsafe { function(shown[usize::from(from.index)], own(to), rows, self.length) };
                    }
                    Instruction::Expand { from, to } => {
                        shown[usize::from(to.index)] = own(to);
                        let source = shown[usize::from(from.index)];
                        // SAFETY: as above.
                        unsafe { expand(to.lane, source, own(to), rows, self.length) };
                    }
                    Instruction::Store { from } => {
                        let (start, count) = (self.count(from.level, row), self.count(from.level, rows));
                        let source = shown[usize::from(from.index)];
                        // SAFETY: the access stays in the result; parts write different rows.
                        unsafe { self.result.store(arguments.result(0).pointer(), start, count, source) };
                    }
                }
            }
            row += rows;
        }
        true
    }
}

impl Bound for BoundRegion {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        if self.rows == 0 || (self.length == 0 && self.program.result == Level::Full) {
            return Ok(());
        }
        let grain = (GRAIN / self.length.max(1)).max(1).next_multiple_of(self.tile);
        let divided = AtomicBool::new(false);
        let short = AtomicBool::new(false);
        let part = |range: std::ops::Range<usize>| {
            REGISTERS.with_borrow_mut(|memory| {
                if memory.ensure(self.bytes).is_err() {
                    short.store(true, Ordering::Relaxed);
                    return;
                }
                if !self.rows(arguments, range, memory.bytes_mut()) {
                    divided.store(true, Ordering::Relaxed);
                }
            });
        };
        if self.rows <= grain {
            part(0..self.rows);
        } else {
            cx.pool.for_ranges(self.rows, grain, part);
        }
        if short.into_inner() {
            return Err(Fault::Custom(format!("no memory for {} bytes of registers", self.bytes)));
        }
        if divided.into_inner() { Err(Fault::DivisionByZero) } else { Ok(()) }
    }
}
