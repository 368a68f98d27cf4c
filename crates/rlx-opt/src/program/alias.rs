//! Results written over operands that are not needed afterwards: one buffer instead of two.

use super::{BufferId, BufferKind, Program, StepOp, View};
use crate::target::Target;
use rlx_ir::Dim;
use std::collections::HashMap;

/// Merges buffers where a step may write a result over an operand.
pub(super) fn in_place(program: &mut Program, target: &dyn Target) {
    let mut last_use: Vec<usize> = vec![0; program.buffers.len()];
    for (i, step) in program.steps.iter().enumerate() {
        for view in step.operands.iter().chain(&step.results) {
            last_use[view.buffer.index()] = i;
        }
    }
    let mut merged: HashMap<BufferId, BufferId> = HashMap::new();
    for i in 0..program.steps.len() {
        let step = &program.steps[i];
        let StepOp::Op(op) = &step.op else { continue };
        if step.dynamic || !step.bodies.is_empty() {
            continue;
        }
        let types: Vec<_> = step.operand_types.iter().collect();
        let mut pair = None;
        'search: for (r, result) in step.results.iter().enumerate() {
            for (o, operand) in step.operands.iter().enumerate() {
                let from = find(&merged, operand.buffer);
                let only = step.operands.iter().enumerate().all(|(other, view)| {
                    other == o || find(&merged, view.buffer) != from || same(view, operand)
                });
                let kinds = (program.buffers[from.index()].kind, program.buffers[result.buffer.index()].kind);
                let may_share = match kinds {
                    (BufferKind::Temp, BufferKind::Temp | BufferKind::Output(_)) => true,
                    // The state itself is the better operand to write over.
                    (BufferKind::Temp, BufferKind::NextState(state)) => !step.operands.iter().any(|v| {
                        program.buffers[find(&merged, v.buffer).index()].kind == BufferKind::State(state)
                    }),
                    _ => false,
                };
                let fits = may_share
                    && operand.packed
                    && operand.offset == Dim::ZERO
                    && program.buffers[from.index()].same_size(&program.buffers[result.buffer.index()]);
                if fits && only && last_use[from.index()] == i && target.in_place(op, o, r, &types) {
                    pair = Some((from, result.buffer));
                    break 'search;
                }
            }
        }
        let Some((from, to)) = pair else { continue };
        // The operand's memory becomes the result's: earlier steps then write where the result will be.
        merged.insert(from, to);
    }
    if merged.is_empty() {
        return;
    }
    for step in &mut program.steps {
        for view in step.operands.iter_mut().chain(&mut step.results) {
            view.buffer = find(&merged, view.buffer);
        }
    }
    for port in &mut program.outputs {
        port.buffer = find(&merged, port.buffer);
    }
}

fn same(a: &View, b: &View) -> bool {
    a.offset == b.offset && a.strides == b.strides && a.dims == b.dims && a.dtype == b.dtype
}

fn find(merged: &HashMap<BufferId, BufferId>, mut buffer: BufferId) -> BufferId {
    while let Some(next) = merged.get(&buffer) {
        buffer = *next;
    }
    buffer
}
