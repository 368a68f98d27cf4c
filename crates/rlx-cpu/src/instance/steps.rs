//! Running the steps of a segment.

use super::bind::BoundStep;
use super::{Instance, RunControl, node_error};
use crate::error::RunError;
use crate::kernel::{Arguments, RunContext};
use crate::pool::Pool;
use crate::sentinel;
use rlx_eval::Fault;
use rlx_ir::{Literal, Symbol};
use rlx_opt::program::Step;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Instance {
    pub(super) fn run_segment(
        &mut self,
        index: usize,
        pool: &Pool,
        control: &RunControl<'_>,
    ) -> Result<(), RunError> {
        let loaded = Arc::clone(&self.loaded);
        let range = loaded.segments[index].clone();
        let total = loaded.program.steps.len();
        for (position, i) in range.enumerate() {
            if is_cancelled(control) {
                return Err(RunError::Cancelled { steps: self.steps_run });
            }
            if is_late(control) {
                return Err(RunError::Deadline { steps: self.steps_run });
            }
            if let Some(progress) = control.progress {
                progress(i, total);
            }
            let start = control.profile.map(|_| Instant::now());
            let step = &loaded.program.steps[i];
            let segment = &mut self.segments[index];
            sentinel::write(&segment.sentinels, i, segment.arena.bytes_mut());
            self.run_step(index, position, step, pool, control).map_err(|e| match e {
                // The body of a loop or a branch ended early, and could only tell so as a fault.
                StepError::Fault(_) if !step.bodies.is_empty() && is_cancelled(control) => {
                    RunError::Cancelled { steps: self.steps_run }
                }
                StepError::Fault(_) if !step.bodies.is_empty() && is_late(control) => {
                    RunError::Deadline { steps: self.steps_run }
                }
                StepError::Fault(fault) => node_error(step, fault),
                StepError::Run(error) => error,
            })?;
            if let (Some(profile), Some(start)) = (control.profile, start) {
                profile(i, start.elapsed());
            }
            let segment = &self.segments[index];
            if !sentinel::intact(&segment.sentinels, i, segment.arena.bytes()) {
                return Err(RunError::Overrun { step: step.op.name(), kernel: step.kernel });
            }
            self.steps_run += 1;
        }
        Ok(())
    }

    fn run_step(
        &mut self,
        segment: usize,
        position: usize,
        step: &Step,
        pool: &Pool,
        control: &RunControl<'_>,
    ) -> Result<(), StepError> {
        let mut pointers = std::mem::take(&mut self.pointers);
        pointers.clear();
        for place in 0..self.segments[segment].steps[position].places.len() {
            let place = self.segments[segment].steps[position].places[place];
            pointers.push(self.address(place.base).wrapping_offset(place.offset));
        }
        let arena = self.segments[segment].arena.as_mut_ptr();
        let bound: &mut BoundStep = &mut self.segments[segment].steps[position];
        let scratch = arena.wrapping_add(bound.scratch);
        let cx = RunContext {
            pool,
            cancel: control.cancel,
            deadline: control.deadline,
            sentinels: control.sentinels,
            scratch,
        };
        let arguments = Arguments {
            operand_layouts: &bound.operands,
            result_layouts: &bound.results,
            pointers: &pointers,
        };
        let outcome = if step.dynamic {
            bound.kernel.run_dynamic(&cx, &arguments).map(Some)
        } else {
            bound.kernel.run(&cx, &arguments).map(|()| None)
        };
        let scalar = match step.binds.first() {
            Some(_) if !step.dynamic && outcome.is_ok() => Some(arguments.result(0).scalar_i64()),
            _ => None,
        };
        self.pointers = pointers;
        match outcome? {
            Some(results) => self.take_dynamic(segment, step, &results)?,
            None => {
                if let (Some(symbol), Some(value)) = (step.binds.first(), scalar) {
                    self.set(segment, symbol.clone(), value);
                }
            }
        }
        Ok(())
    }

    /// Keeps results that came with their sizes, and binds the symbols that stand for them.
    fn take_dynamic(&mut self, segment: usize, step: &Step, results: &[Literal]) -> Result<(), StepError> {
        for (view, literal) in step.results.iter().zip(results) {
            let bytes = literal.bytes();
            let memory = &mut self.dynamic[view.buffer.index()];
            memory.ensure(bytes.len()).map_err(StepError::Run)?;
            memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        }
        let mut seen: Vec<&Symbol> = Vec::new();
        for symbol in &step.binds {
            for (t, literal) in step.result_types.iter().zip(results) {
                for (dim, size) in t.dims().iter().zip(literal.dims()) {
                    if dim.as_symbol() == Some(symbol) && !seen.contains(&symbol) {
                        seen.push(symbol);
                        self.set(segment, symbol.clone(), *size as i64);
                    }
                }
            }
        }
        for (output, (t, literal)) in step.result_types.iter().zip(results).enumerate() {
            let agrees = t.dtype == literal.dtype()
                && t.rank() == literal.dims().len()
                && t.dims()
                    .iter()
                    .zip(literal.dims())
                    .all(|(d, s)| d.eval_size(&self.bindings).is_ok_and(|d| d == *s));
            if !agrees {
                let found = format!("{}{:?}", literal.dtype(), literal.dims());
                return Err(Fault::Result { output, declared: t.clone(), found }.into());
            }
        }
        Ok(())
    }

    /// Gives a symbol its value. What was bound after this segment with another value is bound again.
    fn set(&mut self, segment: usize, symbol: Symbol, value: i64) {
        if self.bindings.get(&symbol) == Some(value) {
            return;
        }
        self.bindings.set(symbol, value);
        self.generation += 1;
        self.segments[segment + 1..].iter_mut().for_each(|s| s.bound = false);
    }
}

enum StepError {
    Fault(Fault),
    Run(RunError),
}

impl From<Fault> for StepError {
    fn from(fault: Fault) -> StepError {
        StepError::Fault(fault)
    }
}

fn is_cancelled(control: &RunControl<'_>) -> bool {
    control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
}

fn is_late(control: &RunControl<'_>) -> bool {
    control.deadline.is_some_and(|deadline| Instant::now() >= deadline)
}
