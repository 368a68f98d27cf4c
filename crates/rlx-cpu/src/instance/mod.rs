//! One run at a time of a loaded program: sizes bound, memory placed, steps run.
//!
//! What depends on sizes (layouts, kernels' variants, offsets) is made when sizes change, segment by segment, since a
//! segment's sizes may be known only after the one before has run. A run with the sizes of the last one allocates
//! nothing.
#![allow(unsafe_code)]

mod bind;
mod steps;

use crate::error::RunError;
use crate::kernel::{Arguments, BindContext, Kernel, RunContext};
use crate::load::Loaded;
use crate::memory::Aligned;
use crate::pool::Pool;
use bind::{Segment, lifetimes};
use rlx_eval::{EvalError, Fault};
use rlx_ir::{Bindings, DType, DimError, Locations, Symbol, TensorType};
use rlx_opt::plan::{Plan, Request};
use rlx_opt::program::{BufferId, Step};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

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
    /// Puts sentinels behind temporaries and scratch, and looks after each step whether they are intact: finds kernels
    /// that write beyond their results. Slow; for tests.
    pub sentinels: bool,
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
            let segment = &self.segments[index];
            if !segment.bound || segment.watched != control.sentinels {
                self.bind_segment(index, control)?;
                self.segments[index].take_memory(control.memory_cap)?;
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

    fn address(&mut self, base: Base) -> *mut u8 {
        match base {
            Base::Constant(pointer) => pointer.cast_mut(),
            Base::Input(i) => self.inputs[i as usize].cast_mut(),
            Base::Output(i) => self.outputs[i as usize],
            Base::Arena(segment) => self.segments[segment].arena.as_mut_ptr(),
            Base::Dynamic(buffer) => self.dynamic[buffer].as_mut_ptr(),
        }
    }
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
    let cx =
        RunContext { pool, cancel: None, deadline: None, sentinels: false, scratch: scratch.as_mut_ptr() };
    let arguments = Arguments { operand_layouts: &operands, result_layouts: &results, pointers: &pointers };
    bound.run(&cx, &arguments).map_err(fail)
}
