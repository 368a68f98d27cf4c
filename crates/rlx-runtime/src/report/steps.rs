//! Records from programs and plans.

use super::{Block, MemoryReport, Origin, RegionRecord, SegmentMemory, StepRecord};
use rlx_cpu::{Instance, Occupant};
use rlx_ir::{Bindings, Dim, Op, Primitive, TensorType, text};
use rlx_opt::Program;
use rlx_opt::program::{BufferId, BufferKind, Step, StepOp, View};

/// The records of the steps that run each time; `sizes` are those of the last run.
pub(crate) fn steps(program: &Program, sizes: Option<&Bindings>) -> Vec<StepRecord> {
    let segments = program.segments();
    // Memory may be written more than once, in place: what is read is what the last step before wrote.
    let mut writers: Vec<Option<usize>> = vec![None; program.buffers.len()];
    let mut records = Vec::with_capacity(program.steps.len());
    for (index, step) in program.steps.iter().enumerate() {
        let reads = step.operands.iter().map(|view| origin(program, &writers, view)).collect();
        let segment = segments.iter().position(|range| range.contains(&index)).unwrap_or(0);
        let mut record = record(index, step, reads, segment);
        if matches!(step.op, StepOp::Copy) && record.reason.is_empty() {
            record.reason = copy_reason(program, index);
        }
        if let Some(sizes) = sizes {
            record.bound = step.result_types.iter().map(|t| bound(t, sizes)).collect();
        }
        for view in &step.results {
            writers[view.buffer.index()] = Some(index);
        }
        records.push(record);
    }
    for port in &program.outputs {
        if let Some(writer) = writers[port.buffer.index()] {
            records[writer].outputs.push(port.name.to_string());
        }
    }
    records
}

/// The records of the steps that run at load.
pub(crate) fn init_steps(program: &Program) -> Vec<StepRecord> {
    let constant = |step: &Step| step.operands.iter().map(|_| Origin::Constant).collect();
    program.init_steps.iter().enumerate().map(|(i, step)| record(i, step, constant(step), 0)).collect()
}

fn origin(program: &Program, writers: &[Option<usize>], view: &View) -> Origin {
    match (writers[view.buffer.index()], program.buffer(view.buffer).kind) {
        (Some(step), _) => Origin::Step(step),
        (None, BufferKind::Input(input)) => Origin::Input(input as usize),
        (None, BufferKind::State(state)) => Origin::Input(program.states[state as usize].input),
        (None, _) => Origin::Constant,
    }
}

/// A type with its sizes; a size that no run has shown stays as it is.
fn bound(t: &TensorType, sizes: &Bindings) -> String {
    let dims: Vec<Dim> =
        t.dims().iter().map(|dim| dim.eval_size(sizes).map_or_else(|_| dim.clone(), Dim::from)).collect();
    t.with_shape(dims).to_string()
}

fn names(types: &[TensorType]) -> Vec<String> {
    types.iter().map(TensorType::to_string).collect()
}

fn record(index: usize, step: &Step, reads: Vec<Origin>, segment: usize) -> StepRecord {
    let region = region(step);
    StepRecord {
        index,
        op: if region.is_some() { "region".to_string() } else { step.op.name() },
        kernel: step.kernel.to_string(),
        reason: step.reason.clone(),
        operands: names(&step.operand_types),
        reads,
        results: names(&step.result_types),
        bound: Vec::new(),
        outputs: Vec::new(),
        region,
        copy: matches!(step.op, StepOp::Copy),
        dynamic: step.dynamic,
        binds: step.binds.iter().map(|s| s.name().to_string()).collect(),
        segment,
        bodies: step.bodies.iter().map(|body| body.steps.len()).collect(),
        locations: step.locations.iter().map(str::to_string).collect(),
    }
}

fn region(step: &Step) -> Option<RegionRecord> {
    let StepOp::Op(Op::Primitive(Primitive::Call(call))) = &step.op else { return None };
    let outside = |op: &Op| matches!(op, Op::Primitive(Primitive::Input(_) | Primitive::Constant(_)));
    let operations: Vec<String> = call
        .body
        .nodes()
        .filter(|(_, node)| !outside(&node.op))
        .map(|(_, node)| node.op.name().to_string())
        .collect();
    Some(RegionRecord { nodes: operations.len(), operations, body: text::print(&call.body) })
}

/// Who needs a copy: the first step that reads it, or the caller.
fn copy_reason(program: &Program, index: usize) -> String {
    let step = &program.steps[index];
    let Some(copy) = step.results.first().map(|view| view.buffer) else { return String::new() };
    let from = step.operands.first().map(View::to_string).unwrap_or_default();
    if let Some(port) = program.outputs.iter().find(|port| port.buffer == copy) {
        return format!("output {:?} needs memory of its own; it is {from}", port.name);
    }
    for reader in &program.steps[index + 1..] {
        if let Some(operand) = reader.operands.iter().position(|view| view.buffer == copy) {
            return format!("{} reads operand {operand} without gaps; it is {from}", reader.op.name());
        }
    }
    format!("a copy of {from}")
}

/// The plans that an instance has now.
pub(crate) fn memory(program: &Program, instance: &Instance, unknown: Vec<String>) -> MemoryReport {
    let mut sizes: Vec<(String, i64)> = Vec::new();
    for dim in program.inputs.iter().flat_map(|port| port.ty.dims()) {
        dim.for_each_symbol(&mut |symbol| {
            if let Some(value) = instance.bindings().get(symbol)
                && !sizes.iter().any(|(name, _)| name == symbol.name())
            {
                sizes.push((symbol.name().to_string(), value));
            }
        });
    }
    let end = program.steps.len().saturating_sub(1);
    let segments = instance
        .plans()
        .map(|segment| {
            let placed = segment.requests.iter().zip(segment.occupants).zip(&segment.plan.offsets);
            SegmentMemory {
                steps: segment.steps.clone(),
                peak: segment.plan.peak,
                lower_bound: segment.plan.lower_bound,
                blocks: placed
                    .map(|((request, occupant), offset)| Block {
                        what: what(program, *occupant),
                        scratch: matches!(occupant, Occupant::Scratch(_)),
                        offset: *offset,
                        bytes: request.bytes,
                        first: request.first,
                        last: request.last.min(end),
                    })
                    .collect(),
            }
        })
        .collect();
    MemoryReport { sizes, segments, unknown }
}

fn what(program: &Program, occupant: Occupant) -> String {
    let written = |id: BufferId| program.steps.iter().position(|s| s.results.iter().any(|v| v.buffer == id));
    match occupant {
        Occupant::Scratch(step) => format!("scratch of step {step} ({})", program.steps[step].op.name()),
        Occupant::Buffer(id) => match written(id) {
            Some(step) => format!("result of step {step} ({})", program.steps[step].op.name()),
            None => format!("buffer {}", id.index()),
        },
    }
}
