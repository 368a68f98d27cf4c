//! States: the next value must come to lie where the state is.
//!
//! Where the first step that writes the next value's memory may write over the state, and nothing reads the state after
//! it, the two share memory. Small states are copied at the end of the run otherwise; a copy of a large one would be paid
//! in each run and is an error, which names what stands in the way.

use super::build::copy_step;
use super::{Buffer, BufferId, BufferKind, Program, StatePort, StepOp, View};
use crate::pipeline::CompileError;
use crate::target::Target;
use rlx_ir::{Dim, Locations};

/// The most bytes of a state that are copied in each run.
const MAX_COPY: usize = 4096;

/// Lets next values share their state's memory, and copies small states that cannot; `notes` tells which.
pub(super) fn settle(
    program: &mut Program,
    target: &dyn Target,
    notes: &mut Vec<String>,
) -> Result<(), CompileError> {
    for state in program.states.clone() {
        let next = program.outputs[state.output].buffer;
        if next == state.buffer {
            continue;
        }
        let obstacle = match obstacle(program, target, &state, next) {
            None => {
                rename(program, next, state.buffer);
                continue;
            }
            Some(obstacle) => obstacle,
        };
        let name = program.inputs[state.input].name.to_string();
        let bytes = program.buffer(state.buffer).bytes.clone();
        if bytes.as_size().is_none_or(|bytes| bytes > MAX_COPY) {
            return Err(CompileError::StateCopy { name, bytes: bytes.to_string(), reason: obstacle });
        }
        notes.push(format!("state {name:?} of {bytes} bytes is copied in each run: {obstacle}"));
        // The next value is complete before the state is overwritten: it lies in memory of its own.
        let ty = program.inputs[state.input].ty.clone();
        program.buffers[next.index()] = Buffer::of(BufferKind::Temp, ty.dtype, ty.dims());
        let from = View::packed(next, ty.dtype, ty.dims());
        let to = View::packed(state.buffer, ty.dtype, ty.dims());
        program.steps.push(copy_step(&from, &to, Locations::none()));
        program.outputs[state.output].buffer = state.buffer;
    }
    Ok(())
}

fn rename(program: &mut Program, from: BufferId, to: BufferId) {
    for step in &mut program.steps {
        for view in step.operands.iter_mut().chain(&mut step.results).filter(|v| v.buffer == from) {
            view.buffer = to;
        }
    }
    for port in program.outputs.iter_mut().filter(|p| p.buffer == from) {
        port.buffer = to;
    }
}

/// What keeps the next value from being written over the state.
fn obstacle(program: &Program, target: &dyn Target, state: &StatePort, next: BufferId) -> Option<String> {
    let is_state = |view: &View| view.buffer == state.buffer;
    let Some(made) = program.steps.iter().position(|s| s.results.iter().any(|v| v.buffer == next)) else {
        return Some("the next value is an input or a constant".to_string());
    };
    let step = &program.steps[made];
    if let Some(reader) = program.steps[made + 1..].iter().find(|s| s.operands.iter().any(is_state)) {
        return Some(format!(
            "{}{} reads the state after its next value is begun",
            reader.op.name(),
            at(&reader.locations)
        ));
    }
    let Some(operand) = step.operands.iter().position(is_state) else {
        // The state is not needed any more.
        return None;
    };
    let types: Vec<_> = step.operand_types.iter().collect();
    let result = step.results.iter().position(|v| v.buffer == next).unwrap_or(0);
    let once = step.operands.iter().filter(|v| is_state(v)).count() == 1;
    let whole = step.operands[operand].packed && step.operands[operand].offset == Dim::ZERO;
    let may = match &step.op {
        StepOp::Op(op) => once && whole && !step.dynamic && target.in_place(op, operand, result, &types),
        StepOp::Copy => false,
    };
    (!may)
        .then(|| format!("{}{} cannot write its result over the state", step.op.name(), at(&step.locations)))
}

fn at(locations: &Locations) -> String {
    let names: Vec<String> = locations.iter().map(|l| format!("{l:?}")).collect();
    if names.is_empty() { String::new() } else { format!(" (node {})", names.join(", ")) }
}
