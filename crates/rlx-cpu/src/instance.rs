//! One run at a time of a loaded program: sizes bound, memory placed, steps run.
//!
//! What depends on sizes (layouts, kernels' variants, offsets) is made when sizes change, segment by segment, since a
//! segment's sizes may be known only after the one before has run. A run with the sizes of the last one allocates
//! nothing.
#![allow(unsafe_code)]

use crate::error::RunError;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::load::Loaded;
use crate::memory::Aligned;
use crate::pool::Pool;
use rlx_eval::{EvalError, Fault, check_holds};
use rlx_ir::{Bindings, DType, Dim, DimError, Locations, Symbol, TensorType};
use rlx_opt::plan::{Limits, Plan, Request, place};
use rlx_opt::program::{BufferId, BufferKind, Layout, Step, View};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// More bytes than a process of today can address (x86-64 with five-level paging: 2⁵⁶).
const ADDRESSABLE: usize = usize::MAX >> 8;

/// An input's memory: packed elements.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: &'a [usize],
    /// The first element, aligned for its type. A state's memory is written by the run.
    pub pointer: *const u8,
}

/// Where outputs go. Asked for each output once a run, as soon as its sizes are known.
pub trait Outputs {
    /// Memory for output `index`, aligned for its type, or 64 bytes where it is allocated.
    ///
    /// # Errors
    /// If there is none, or it was given for other sizes.
    fn memory(&mut self, index: usize, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError>;
}

/// What may be asked of one run.
#[derive(Clone, Copy, Default)]
pub struct RunControl<'a> {
    /// Set to true by whoever wants the run to end.
    pub cancel: Option<&'a AtomicBool>,
    /// When the run must have ended.
    pub deadline: Option<Instant>,
    /// Told how many steps have run, and how many there are.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    /// The most bytes of temporaries.
    pub memory_cap: Option<usize>,
    /// Gets each step's time.
    pub profile: Option<&'a (dyn Fn(usize, Duration) + Sync)>,
}

/// Memory of one instance, for the sizes bound last.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MemoryUse {
    /// Bytes of the arenas that temporaries are placed in, as planned for these sizes.
    pub peak: usize,
    /// The largest sum of temporaries live at once.
    pub lower_bound: usize,
    /// Bytes of results that have memory of their own since their sizes depend on values.
    pub dynamic: usize,
}

/// What a planned piece of memory holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupant {
    /// A temporary of the program.
    Buffer(BufferId),
    /// The scratch of the step at this index.
    Scratch(usize),
}

/// The memory of a run of steps whose sizes are known together.
pub struct SegmentPlan<'a> {
    /// The steps.
    pub steps: Range<usize>,
    /// What was asked for; a `last` beyond the steps is memory that later segments read.
    pub requests: &'a [Request],
    /// What each request is for.
    pub occupants: &'a [Occupant],
    /// Where it lies.
    pub plan: &'a Plan,
}

/// Where a view's buffer is.
#[derive(Clone, Copy, Debug)]
enum Base {
    Constant(*const u8),
    Input(u32),
    Output(u32),
    Arena(usize),
    Dynamic(usize),
}

struct BoundStep {
    kernel: Box<dyn Bound>,
    operands: Vec<Layout>,
    results: Vec<Layout>,
    places: Vec<(Base, isize)>,
    /// In the arena of the step's segment.
    scratch: usize,
}

#[derive(Default)]
struct Segment {
    steps: Vec<BoundStep>,
    /// Outputs whose memory is asked for before the segment runs, with their sizes.
    outputs: Vec<(u32, DType, Vec<usize>)>,
    requests: Vec<Request>,
    occupants: Vec<Occupant>,
    plan: Plan,
    arena: Aligned,
    bound: bool,
}

/// A loaded program with memory to run in.
pub struct Instance {
    loaded: Arc<Loaded>,
    bindings: Bindings,
    /// The generation of the surrounding graph's bindings that these were made from.
    outer: Option<u64>,
    /// Changes whenever a symbol's value does.
    generation: u64,
    input_dims: Vec<Vec<usize>>,
    segments: Vec<Segment>,
    /// By buffer: the segment and the moments between which a temporary is needed.
    lifetimes: Vec<Option<Lifetime>>,
    dynamic: Vec<Aligned>,
    inputs: Vec<*const u8>,
    outputs: Vec<*mut u8>,
    pointers: Vec<*mut u8>,
    steps_run: usize,
}

// SAFETY: the raw pointers are to memory that the instance owns or that is valid for the run that sets them.
unsafe impl Send for Instance {}

#[derive(Clone, Copy, Debug)]
struct Lifetime {
    segment: usize,
    first: usize,
    last: usize,
}

impl Instance {
    /// An instance without memory yet.
    pub fn new(loaded: &Arc<Loaded>) -> Instance {
        let program = &loaded.program;
        Instance {
            bindings: Bindings::new(),
            outer: None,
            generation: 0,
            input_dims: Vec::new(),
            segments: loaded.segments.iter().map(|_| Segment::default()).collect(),
            lifetimes: lifetimes(loaded),
            dynamic: program.buffers.iter().map(|_| Aligned::default()).collect(),
            inputs: vec![std::ptr::null(); program.inputs.len()],
            outputs: vec![std::ptr::null_mut(); program.outputs.len()],
            pointers: Vec::new(),
            steps_run: 0,
            loaded: Arc::clone(loaded),
        }
    }

    /// The memory of the last run.
    pub fn memory_use(&self) -> MemoryUse {
        MemoryUse {
            peak: self.segments.iter().map(|s| s.plan.peak).sum(),
            lower_bound: self.segments.iter().map(|s| s.plan.lower_bound).sum(),
            dynamic: self.dynamic.iter().map(Aligned::len).sum(),
        }
    }

    /// The plans of the segments whose sizes are bound, in order.
    pub fn plans(&self) -> impl Iterator<Item = SegmentPlan<'_>> {
        let segments = self.segments.iter().zip(&self.loaded.segments);
        segments.filter(|(segment, _)| segment.bound).map(|(segment, steps)| SegmentPlan {
            steps: steps.clone(),
            requests: &segment.requests,
            occupants: &segment.occupants,
            plan: &segment.plan,
        })
    }

    /// Plans memory for these sizes without taking it or running, as far as sizes do not depend on values: gives the
    /// symbols without which the rest cannot be planned.
    ///
    /// # Errors
    /// If the sizes cannot be run.
    pub fn plan(&mut self, sizes: &Bindings) -> Result<Vec<Symbol>, RunError> {
        self.input_dims.clear();
        self.segments.iter_mut().for_each(|s| s.bound = false);
        self.bindings = sizes.clone();
        self.generation += 1;
        for index in 0..self.segments.len() {
            let unknown = self.unbound(index);
            if !unknown.is_empty() {
                return Ok(unknown);
            }
            self.bind_segment(index, &RunControl::default())?;
        }
        Ok(Vec::new())
    }

    /// The symbols in a segment's sizes that have no value, each once.
    fn unbound(&self, index: usize) -> Vec<Symbol> {
        let mut unbound: Vec<Symbol> = Vec::new();
        let mut note = |symbol: &Symbol| {
            if self.bindings.get(symbol).is_none() && !unbound.contains(symbol) {
                unbound.push(symbol.clone());
            }
        };
        for step in &self.loaded.program.steps[self.loaded.segments[index].clone()] {
            let results = if step.dynamic { &[][..] } else { &step.results[..] };
            for view in step.operands.iter().chain(results) {
                let dims = view.dims.iter().chain(&view.strides).chain([&view.offset]);
                dims.for_each(|dim| dim.for_each_symbol(&mut note));
            }
        }
        unbound
    }

    /// The values that symbols had in the last run.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Runs the program. `outer` are the bindings of the graph around it and their generation, for subgraphs.
    ///
    /// # Errors
    /// If the inputs do not fit, memory is short, the run is cancelled, or an operation fails.
    pub fn run(
        &mut self,
        inputs: &[Input<'_>],
        outputs: &mut dyn Outputs,
        outer: Option<(&Bindings, u64)>,
        pool: &Pool,
        control: &RunControl<'_>,
    ) -> Result<(), RunError> {
        self.bind_inputs(inputs, outer)?;
        self.steps_run = 0;
        for index in 0..self.segments.len() {
            if !self.segments[index].bound {
                self.bind_segment(index, control)?;
                let segment = &mut self.segments[index];
                segment.arena.ensure(segment.plan.peak)?;
            }
            for i in 0..self.segments[index].outputs.len() {
                let (output, dtype, dims) = &self.segments[index].outputs[i];
                self.outputs[*output as usize] = outputs.memory(*output as usize, *dtype, dims)?;
            }
            self.run_segment(index, pool, control)?;
        }
        Ok(())
    }

    fn bind_inputs(&mut self, inputs: &[Input<'_>], outer: Option<(&Bindings, u64)>) -> Result<(), RunError> {
        let ports = &self.loaded.program.inputs;
        if let Some(missing) = ports.get(inputs.len()) {
            let (name, expected) = (missing.name.to_string(), Box::new(missing.ty.clone()));
            return Err(EvalError::MissingInput { name, expected }.into());
        }
        if inputs.len() > ports.len() {
            let known = ports.iter().map(|p| p.name.to_string()).collect();
            return Err(EvalError::UnknownInput { name: format!("#{}", ports.len()), known }.into());
        }
        let mut same = self.input_dims.len() == inputs.len() && self.outer == outer.map(|(_, g)| g);
        for (i, (input, port)) in inputs.iter().zip(ports).enumerate() {
            self.inputs[i] = input.pointer;
            if input.dtype != port.ty.dtype || input.dims.len() != port.ty.rank() {
                return Err(EvalError::InputType {
                    name: port.name.to_string(),
                    expected: Box::new(port.ty.clone()),
                    found: Box::new(TensorType::new(input.dtype, input.dims)),
                }
                .into());
            }
            same &= self.input_dims.get(i).is_some_and(|dims| dims == input.dims);
        }
        if same {
            return Ok(());
        }
        self.input_dims.clear();
        self.segments.iter_mut().for_each(|s| s.bound = false);
        let mut bindings = outer.map_or_else(Bindings::new, |(bindings, _)| bindings.clone());
        let size_error = |i: usize, cause: DimError| EvalError::InputSize {
            name: ports[i].name.to_string(),
            expected: Box::new(ports[i].ty.clone()),
            found: Box::new(TensorType::new(inputs[i].dtype, inputs[i].dims)),
            cause,
        };
        for (i, (input, port)) in inputs.iter().zip(ports).enumerate() {
            for (dim, size) in port.ty.dims().iter().zip(input.dims) {
                if let Some(symbol) = dim.as_symbol() {
                    bindings.bind(symbol, *size as i64).map_err(|e| size_error(i, e))?;
                }
            }
        }
        // Sizes that are expressions are checked once all symbols are known.
        for (i, (input, port)) in inputs.iter().zip(ports).enumerate() {
            for (dim, size) in port.ty.dims().iter().zip(input.dims) {
                let expected = dim.eval_size(&bindings).map_err(|e| size_error(i, e))?;
                if expected != *size {
                    let mismatch = DimError::Mismatch { dim: dim.clone(), expected, found: *size };
                    return Err(size_error(i, mismatch).into());
                }
            }
        }
        self.bindings = bindings;
        self.generation += 1;
        self.outer = outer.map(|(_, g)| g);
        self.input_dims = inputs.iter().map(|i| i.dims.to_vec()).collect();
        Ok(())
    }

    fn bind_segment(&mut self, index: usize, control: &RunControl<'_>) -> Result<(), RunError> {
        let loaded = Arc::clone(&self.loaded);
        let program = &loaded.program;
        let range = loaded.segments[index].clone();
        // Before any size is worked out: what is checked tells more than a size that makes no sense.
        for step in &program.steps[range.clone()] {
            for check in &step.checks {
                check_holds(check, &self.bindings).map_err(|fault| node_error(step, fault))?;
            }
        }
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
            let bound = self.bind_step(step, &*loaded.kernels[i]);
            let bound = bound.map_err(|fault| node_error(step, fault))?;
            let bytes = bound.kernel.scratch();
            scratch.push((bytes > 0).then(|| {
                requests.push(Request { bytes, first: i, last: i });
                occupants.push(Occupant::Scratch(i));
                requests.len() - 1
            }));
            steps.push(bound);
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
        for (offset, step) in range.clone().zip(&mut steps) {
            let views = program.steps[offset].operands.iter().chain(&program.steps[offset].results);
            for (place, view) in step.places.iter_mut().zip(views) {
                if let (Base::Arena(segment), Some(request)) = (place.0, buffers[view.buffer.index()])
                    && segment == index
                {
                    place.1 = place.1.wrapping_add(plan.offsets[request] as isize);
                }
            }
        }
        for (step, request) in steps.iter_mut().zip(&scratch) {
            step.scratch = request.map_or(0, |r| plan.offsets[r]);
        }
        // Operands that lie in the arenas of earlier segments.
        for (i, step) in range.zip(&mut steps) {
            let views = program.steps[i].operands.iter().chain(&program.steps[i].results);
            for (place, view) in step.places.iter_mut().zip(views) {
                if let Base::Arena(segment) = place.0
                    && segment != index
                {
                    place.1 = place.1.wrapping_add(self.offset_in(segment, view) as isize);
                }
            }
        }
        let segment = &mut self.segments[index];
        (segment.steps, segment.outputs) = (steps, outputs);
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
                    places.push((self.base(view), offset));
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

    fn address(&mut self, base: Base) -> *mut u8 {
        match base {
            Base::Constant(pointer) => pointer.cast_mut(),
            Base::Input(i) => self.inputs[i as usize].cast_mut(),
            Base::Output(i) => self.outputs[i as usize],
            Base::Arena(segment) => self.segments[segment].arena.as_mut_ptr(),
            Base::Dynamic(buffer) => self.dynamic[buffer].as_mut_ptr(),
        }
    }

    fn run_segment(&mut self, index: usize, pool: &Pool, control: &RunControl<'_>) -> Result<(), RunError> {
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
            let (base, offset) = self.segments[segment].steps[position].places[place];
            pointers.push(self.address(base).wrapping_offset(offset));
        }
        let scratch = self.segments[segment].steps[position].scratch;
        let scratch = self.segments[segment].arena.as_mut_ptr().wrapping_add(scratch);
        let cx = RunContext { pool, cancel: control.cancel, deadline: control.deadline, scratch };
        let bound = &mut self.segments[segment].steps[position];
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
    fn take_dynamic(
        &mut self,
        segment: usize,
        step: &Step,
        results: &[rlx_ir::Literal],
    ) -> Result<(), StepError> {
        for (view, literal) in step.results.iter().zip(results) {
            let bytes = literal.bytes();
            let memory = &mut self.dynamic[view.buffer.index()];
            memory.ensure(bytes.len()).map_err(StepError::Run)?;
            memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        }
        let mut seen: Vec<&rlx_ir::Symbol> = Vec::new();
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
    fn set(&mut self, segment: usize, symbol: rlx_ir::Symbol, value: i64) {
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

/// When each buffer that is not constant is needed.
fn lifetimes(loaded: &Loaded) -> Vec<Option<Lifetime>> {
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

fn node_error(step: &Step, fault: Fault) -> RunError {
    EvalError::Node {
        op: step.op.name(),
        locations: Locations::clone(&step.locations),
        fault: Box::new(fault),
    }
    .into()
}

/// Runs a step of constants once, into `memory`, one for each result.
pub(crate) fn run_init_step(
    loaded: &Loaded,
    step: &Step,
    kernel: &dyn Kernel,
    memory: &mut [Aligned],
    pool: &Pool,
) -> Result<(), RunError> {
    let bindings = Bindings::new();
    let fail = |fault: Fault| node_error(step, fault);
    let mut pointers = Vec::new();
    let mut operands = Vec::new();
    for view in &step.operands {
        let (layout, offset) = view.bind(&bindings).map_err(|e| fail(e.into()))?;
        let base = loaded.constant_address(view.buffer).unwrap_or(std::ptr::null());
        pointers.push(base.cast_mut().wrapping_offset(offset));
        operands.push(layout);
    }
    let mut results = Vec::new();
    for (view, memory) in step.results.iter().zip(memory) {
        results.push(view.bind(&bindings).map_err(|e| fail(e.into()))?.0);
        pointers.push(memory.as_mut_ptr());
    }
    let cx = BindContext { operands: &operands, results: &results, bindings: &bindings };
    let mut bound = kernel.bind(&cx).map_err(fail)?;
    let mut scratch = Aligned::new(bound.scratch())?;
    let cx = RunContext { pool, cancel: None, deadline: None, scratch: scratch.as_mut_ptr() };
    let arguments = Arguments { operand_layouts: &operands, result_layouts: &results, pointers: &pointers };
    bound.run(&cx, &arguments).map_err(fail)
}
