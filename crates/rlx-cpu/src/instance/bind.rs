//! Binding a segment: layouts, variants of kernels, scratch, and where temporaries lie.
//!
//! What was bound before is kept for steps that mention no symbol whose value has changed.

use super::{Base, Instance, Lifetime, Occupant, RunControl, node_error};
use crate::error::RunError;
use crate::kernel::{BindContext, Bound, Kernel};
use crate::load::Loaded;
use crate::memory::Aligned;
use crate::sentinel::{self, Sentinel};
use rlx_eval::{Fault, check_holds};
use rlx_ir::{DType, Dim, DimError, Symbol};
use rlx_opt::plan::{Limits, Plan, Request, place};
use rlx_opt::program::{BufferId, BufferKind, Layout, Step, View};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// More bytes than a process of today can address (x86-64 with five-level paging: 2⁵⁶).
const ADDRESSABLE: usize = usize::MAX >> 8;

/// Where one operand or result lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) base: Base,
    /// The offset of the view in its buffer.
    view: isize,
    /// The offset from the base: the view's, and the buffer's in its arena.
    pub(super) offset: isize,
}

/// A step with its sizes.
pub(super) struct BoundStep {
    pub(super) kernel: Box<dyn Bound>,
    pub(super) operands: Vec<Layout>,
    pub(super) results: Vec<Layout>,
    pub(super) places: Vec<Place>,
    /// In the arena of the step's segment.
    pub(super) scratch: usize,
}

/// Steps whose sizes are known together, with their memory.
#[derive(Default)]
pub(super) struct Segment {
    pub(super) steps: Vec<BoundStep>,
    /// Outputs whose memory is asked for before the segment runs, with their sizes.
    pub(super) outputs: Vec<(u32, DType, Vec<usize>)>,
    pub(super) requests: Vec<Request>,
    pub(super) occupants: Vec<Occupant>,
    pub(super) plan: Plan,
    pub(super) arena: Aligned,
    pub(super) sentinels: Vec<Sentinel>,
    pub(super) bound: bool,
    /// Whether it was planned with sentinels.
    pub(super) watched: bool,
    /// The values that the symbols of the steps had when they were bound.
    values: Vec<(Symbol, Option<i64>)>,
}

impl Segment {
    /// Makes the arena as large as the plan. One that must grow again grows by a quarter, so that sizes which rise
    /// step by step do not each cost an allocation; `cap` bounds what is taken beyond need.
    pub(super) fn take_memory(&mut self, cap: Option<usize>) -> Result<(), RunError> {
        let (needed, present) = (self.plan.peak, self.arena.len());
        let ahead = if needed > present && present > 0 { needed.saturating_add(needed / 4) } else { needed };
        self.arena.ensure(ahead.min(cap.unwrap_or(usize::MAX)).max(needed))
    }
}

impl Instance {
    /// The steps of a segment that are bound and mention no symbol that has another value now, by position.
    fn kept(&mut self, index: usize) -> Vec<Option<BoundStep>> {
        let segment = &mut self.segments[index];
        let changed: FxHashSet<&Symbol> = segment
            .values
            .iter()
            .filter(|(symbol, value)| self.bindings.get(symbol) != *value)
            .map(|(symbol, _)| symbol)
            .collect();
        let range = self.loaded.segments[index].clone();
        let steps = std::mem::take(&mut segment.steps);
        steps
            .into_iter()
            .zip(&self.loaded.symbols[range])
            .map(|(step, symbols)| symbols.iter().all(|s| !changed.contains(s)).then_some(step))
            .collect()
    }

    pub(super) fn bind_segment(&mut self, index: usize, control: &RunControl<'_>) -> Result<(), RunError> {
        let loaded = Arc::clone(&self.loaded);
        let program = &loaded.program;
        let range = loaded.segments[index].clone();
        // Before any size is worked out: what is checked tells more than a size that makes no sense.
        for step in &program.steps[range.clone()] {
            for check in &step.checks {
                check_holds(check, &self.bindings).map_err(|fault| node_error(step, fault))?;
            }
        }
        let mut kept = self.kept(index).into_iter();
        let mut steps: Vec<BoundStep> = Vec::with_capacity(range.len());
        let mut outputs: Vec<(u32, DType, Vec<usize>)> = Vec::new();
        let mut requests: Vec<Request> = Vec::new();
        let mut occupants: Vec<Occupant> = Vec::new();
        // Buffers of this segment's arena, and scratch, by request.
        let mut buffers: Vec<Option<usize>> = vec![None; program.buffers.len()];
        for (id, buffer) in program.buffers.iter().enumerate() {
            let Some(life) = self.lifetimes[id].filter(|life| life.segment == index) else { continue };
            match buffer.kind {
                BufferKind::Temp => {
                    let bytes = buffer.size(&self.bindings).map_err(Fault::from);
                    let bytes = bytes.map_err(|fault| node_error(&program.steps[life.first], fault))?;
                    buffers[id] = Some(requests.len());
                    requests.push(Request { bytes, first: life.first, last: life.last });
                    occupants.push(Occupant::Buffer(BufferId(id as u32)));
                }
                BufferKind::Output(output) => {
                    let port = &program.outputs[output as usize];
                    let dims = port.ty.shape.eval(&self.bindings).map_err(Fault::from);
                    let dims = dims.map_err(|fault| node_error(&program.steps[life.first], fault))?;
                    outputs.push((output, port.ty.dtype, dims));
                }
                _ => {}
            }
        }
        let mut scratch: Vec<Option<usize>> = Vec::with_capacity(range.len());
        for i in range.clone() {
            let step = &program.steps[i];
            let bound = match kept.next().flatten() {
                Some(bound) => bound,
                None => {
                    let bound = self.bind_step(step, &*loaded.kernels[i]);
                    bound.map_err(|fault| node_error(step, fault))?
                }
            };
            let bytes = bound.kernel.scratch();
            scratch.push((bytes > 0).then(|| {
                requests.push(Request { bytes, first: i, last: i });
                occupants.push(Occupant::Scratch(i));
                requests.len() - 1
            }));
            steps.push(bound);
        }
        if control.sentinels {
            requests.iter_mut().for_each(sentinel::widen);
        }
        // Sums of sizes then stay within the machine's integers, whatever is placed where.
        let total = requests.iter().map(|r| r.bytes).fold(0usize, usize::saturating_add);
        if total > ADDRESSABLE {
            let reason = "more than an address space holds".to_string();
            return Err(RunError::Memory { needed: total, reason });
        }
        let plan = place(&requests, &Limits::HOST)
            .map_err(|e| RunError::Memory { needed: e.bytes, reason: e.to_string() })?;
        let others: usize =
            self.segments.iter().map(|s| s.plan.peak).sum::<usize>() - self.segments[index].plan.peak;
        if let Some(cap) = control.memory_cap
            && plan.peak.saturating_add(others) > cap
        {
            let reason = format!("the cap is {cap}");
            return Err(RunError::Memory { needed: plan.peak.saturating_add(others), reason });
        }
        debug_assert_eq!(rlx_opt::plan::check(&requests, &plan, &Limits::HOST), Ok(()));
        for ((i, step), request) in range.clone().zip(&mut steps).zip(&scratch) {
            let views = program.steps[i].operands.iter().chain(&program.steps[i].results);
            for (place, view) in step.places.iter_mut().zip(views) {
                let start = match (place.base, buffers[view.buffer.index()]) {
                    (Base::Arena(segment), Some(request)) if segment == index => plan.offsets[request],
                    (Base::Arena(segment), _) => self.offset_in(segment, view),
                    _ => 0,
                };
                place.offset = place.view.wrapping_add(start as isize);
            }
            step.scratch = request.map_or(0, |r| plan.offsets[r]);
        }
        let mut mentioned: Vec<(Symbol, Option<i64>)> = Vec::new();
        for symbol in loaded.symbols[range].iter().flatten() {
            if !mentioned.iter().any(|(known, _)| known == symbol) {
                mentioned.push((symbol.clone(), self.bindings.get(symbol)));
            }
        }
        let segment = &mut self.segments[index];
        segment.sentinels.clear();
        if control.sentinels {
            segment.sentinels = sentinel::of_plan(&requests, &plan.offsets);
        }
        segment.watched = control.sentinels;
        (segment.steps, segment.outputs, segment.values) = (steps, outputs, mentioned);
        (segment.requests, segment.occupants, segment.plan) = (requests, occupants, plan);
        segment.bound = true;
        Ok(())
    }

    /// Where the buffer of a view lies in the arena of an earlier segment.
    fn offset_in(&self, segment: usize, view: &View) -> usize {
        // Requests of buffers come in the order of the buffers.
        let position = self
            .lifetimes
            .iter()
            .take(view.buffer.index())
            .zip(&self.loaded.program.buffers)
            .filter(|(life, buffer)| {
                life.is_some_and(|l| l.segment == segment) && buffer.kind == BufferKind::Temp
            })
            .count();
        self.segments[segment].plan.offsets[position]
    }

    fn bind_step(&self, step: &Step, kernel: &dyn Kernel) -> Result<BoundStep, Fault> {
        let mut places = Vec::with_capacity(step.operands.len() + step.results.len());
        let mut layouts = |views: &[View]| -> Result<Vec<Layout>, Fault> {
            views
                .iter()
                .map(|view| {
                    let (layout, offset) = view.bind(&self.bindings)?;
                    // A view may show more elements than memory holds; kernels count them all the same.
                    if layout.dims.iter().try_fold(16usize, |n, d| n.checked_mul(*d)).is_none() {
                        return Err(DimError::Overflow { dim: Dim::product(view.dims.iter()) }.into());
                    }
                    places.push(Place { base: self.base(view), view: offset, offset });
                    Ok(layout)
                })
                .collect()
        };
        let operands = layouts(&step.operands)?;
        let results = if step.dynamic { Vec::new() } else { layouts(&step.results)? };
        let cx = BindContext { operands: &operands, results: &results, bindings: &self.bindings };
        let kernel = kernel.bind(&cx)?;
        Ok(BoundStep { kernel, operands, results, places, scratch: 0 })
    }

    fn base(&self, view: &View) -> Base {
        let id = view.buffer;
        match self.loaded.program.buffer(id).kind {
            BufferKind::Weight(_) | BufferKind::Derived => {
                Base::Constant(self.loaded.constant_address(id).unwrap_or(std::ptr::null()))
            }
            BufferKind::Input(i) => Base::Input(i),
            BufferKind::Output(i) => Base::Output(i),
            BufferKind::State(state) => Base::Input(self.loaded.program.states[state as usize].input as u32),
            BufferKind::Temp | BufferKind::NextState(_) => {
                Base::Arena(self.lifetimes[id.index()].map_or(0, |l| l.segment))
            }
            BufferKind::Dynamic => Base::Dynamic(id.index()),
        }
    }
}

/// When each buffer that is not constant is needed.
pub(super) fn lifetimes(loaded: &Loaded) -> Vec<Option<Lifetime>> {
    let program = &loaded.program;
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; program.buffers.len()];
    for (segment, range) in loaded.segments.iter().enumerate() {
        for i in range.clone() {
            let step = &program.steps[i];
            for view in step.results.iter().chain(&step.operands) {
                let life = &mut lifetimes[view.buffer.index()];
                match life {
                    None => *life = Some(Lifetime { segment, first: i, last: i }),
                    // What a later segment needs stays until its own segment's arena is used again.
                    Some(known) if known.segment != segment => known.last = usize::MAX,
                    Some(known) => known.last = i.max(known.last),
                }
            }
        }
    }
    lifetimes
}
