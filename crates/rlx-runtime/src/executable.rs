//! Executables: compiled graphs, run by any number of threads at once.

use crate::error::RunError;
use crate::report::{self, LayoutRecord, MemoryReport, Placement, Report, WeightReport};
use crate::session::Shared;
use crate::slots::Slots;
use crate::state::State;
use crate::tensor::{Outputs, Tensor};
use rlx_cpu::{Input, Instance, Loaded, MemoryUse, RunControl};
use rlx_eval::EvalError;
use rlx_ir::{Bindings, Graph};
use rlx_opt::pipeline::Compiled;
use rlx_opt::program::Port;
use rlx_opt::{CompileReport, Program};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most instances kept for later runs: one for each run that went on at once, up to this.
const KEPT_INSTANCES: usize = 8;

/// What one run may use and report.
pub type RunOptions<'a> = RunControl<'a>;

/// A compiled graph with its weights. Runs may go on at once; each has memory of its own, kept for later runs.
pub struct Executable {
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    compiled: Compiled,
    instances: Mutex<Vec<Instance>>,
}

impl Executable {
    pub(crate) fn new(shared: Arc<Shared>, loaded: Arc<Loaded>, compiled: Compiled) -> Executable {
        Executable { shared, loaded, compiled, instances: Mutex::default() }
    }

    /// The full account: passes, composites, steps with their kernels and reasons, weights, and the memory of the last
    /// run.
    pub fn report(&self) -> Report {
        let program = self.program();
        let port = |p: &Port| (p.name.to_string(), p.ty.to_string());
        let mut symbols: Vec<String> = Vec::new();
        for dim in program.inputs.iter().flat_map(|p| p.ty.dims()) {
            dim.for_each_symbol(&mut |symbol| {
                if !symbols.iter().any(|name| name == symbol.name()) {
                    symbols.push(symbol.name().to_string());
                }
            });
        }
        let layouts = self.shared.weights.layouts().into_iter();
        let kept = self.kept();
        let last = kept.last();
        Report {
            graph: program.name.to_string(),
            threads: self.shared.pool.threads(),
            inputs: program.inputs.iter().map(port).collect(),
            outputs: program.outputs.iter().map(port).collect(),
            symbols,
            compile: self.compiled.report.clone(),
            placement: vec![Placement {
                device: self.device_name().to_string(),
                steps: program.steps.len(),
                reason: "the session has one device".to_string(),
            }],
            init_steps: report::init_steps(program),
            steps: report::steps(program, last.map(Instance::bindings)),
            weights: WeightReport {
                count: program.weights.len(),
                bytes: program.weights.iter().map(|w| w.bytes().len()).sum(),
                layouts: layouts
                    .map(|(layout, (count, bytes))| LayoutRecord { layout, count, bytes })
                    .collect(),
                derived_bytes: self.derived_bytes(),
            },
            memory: last.map(|instance| report::memory(program, instance, Vec::new())),
        }
    }

    /// Where temporaries would lie for these values of the inputs' symbols. Nothing runs and no memory is taken; what
    /// depends on values is left out, and the report says which symbols are missing.
    ///
    /// # Errors
    /// If the sizes cannot be run.
    pub fn plan_memory(&self, sizes: &Bindings) -> Result<MemoryReport, RunError> {
        let mut instance = Instance::new(&self.loaded);
        let unknown = instance.plan(sizes)?;
        let unknown = unknown.iter().map(|symbol| symbol.name().to_string()).collect();
        Ok(report::memory(self.program(), &instance, unknown))
    }

    /// What the passes did, and why.
    pub fn compile_report(&self) -> &CompileReport {
        &self.compiled.report
    }

    /// The graph after the last pass.
    pub fn graph(&self) -> &Graph {
        &self.compiled.graph
    }

    /// The program that runs.
    pub fn program(&self) -> &Program {
        self.loaded.program()
    }

    /// The device's name.
    pub fn device_name(&self) -> &'static str {
        self.shared.device.name()
    }

    /// Bytes of weights that were computed at load.
    pub fn derived_bytes(&self) -> usize {
        self.loaded.derived_bytes()
    }

    /// The outputs on inputs given by name.
    ///
    /// # Errors
    /// If an input is missing, unknown or does not fit, or an operation fails.
    pub fn run(&self, inputs: &[(&str, Tensor)]) -> Result<Outputs, RunError> {
        self.run_with(inputs, &RunOptions::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// Those of [`Self::run`], and those that the options ask for.
    pub fn run_with(&self, inputs: &[(&str, Tensor)], options: &RunOptions<'_>) -> Result<Outputs, RunError> {
        let ports = &self.program().inputs;
        if let Some((name, _)) = inputs.iter().find(|(name, _)| !ports.iter().any(|p| &*p.name == *name)) {
            let known = ports.iter().map(|p| p.name.to_string()).collect();
            return Err(EvalError::UnknownInput { name: name.to_string(), known }.into());
        }
        let mut ordered = Vec::with_capacity(ports.len());
        for port in ports {
            match inputs.iter().rev().find(|(name, _)| *name == &*port.name) {
                Some((_, tensor)) => ordered.push(tensor),
                None => {
                    let (name, expected) = (port.name.to_string(), Box::new(port.ty.clone()));
                    return Err(EvalError::MissingInput { name, expected }.into());
                }
            }
        }
        let mut slots = Slots::default();
        self.run_into(&ordered, &mut slots, options)?;
        let names = self.program().outputs.iter().map(|p| Arc::clone(&p.name)).collect();
        Ok(Outputs { names, tensors: slots.into_tensors() })
    }

    /// Runs on inputs in order, with outputs in `slots`. With the sizes of an earlier run, and `slots` from there,
    /// nothing is allocated. A state is read from its input and its next value is an output as any other.
    ///
    /// # Errors
    /// Those of [`Self::run_with`].
    pub fn run_into(
        &self,
        inputs: &[&Tensor],
        slots: &mut Slots,
        options: &RunOptions<'_>,
    ) -> Result<MemoryUse, RunError> {
        let mut given: SmallVec<[Input<'_>; 16]> = inputs.iter().map(|t| input(t)).collect();
        for state in &self.program().states {
            // Updated where it lies: in the output's memory, to which the old value is copied first.
            let Some(tensor) = inputs.get(state.input) else { continue };
            let memory = slots.fill(state.output, tensor)?;
            given[state.input].pointer = memory;
        }
        self.run_given(&given, slots, options)
    }

    /// A state for runs of [`Self::run_stateful`], all zeros. `sizes` are the values of the symbols in its types.
    ///
    /// # Errors
    /// If a size has no value, or there is no memory.
    pub fn new_state(&self, sizes: &[(&str, usize)]) -> Result<State, RunError> {
        State::new(self.program(), sizes)
    }

    /// Runs on `inputs` (in order, without the states') and on `state`, which is updated where it lies.
    ///
    /// # Errors
    /// Those of [`Self::run_with`]. After an error the state may hold part of its next value.
    pub fn run_stateful(
        &self,
        inputs: &[&Tensor],
        state: &mut State,
        slots: &mut Slots,
        options: &RunOptions<'_>,
    ) -> Result<MemoryUse, RunError> {
        let program = self.program();
        let mut rest = inputs.iter();
        let states: SmallVec<[Input<'_>; 8]> = state.inputs().collect();
        let mut given: SmallVec<[Input<'_>; 16]> = SmallVec::new();
        for i in 0..program.inputs.len() {
            match program.states.iter().position(|s| s.input == i) {
                Some(k) => given.extend(states.get(k).copied()),
                None => given.extend(rest.next().map(|t| input(t))),
            }
        }
        given.extend(rest.map(|t| input(t)));
        self.run_given(&given, slots, options)
    }

    fn run_given(
        &self,
        inputs: &[Input<'_>],
        slots: &mut Slots,
        options: &RunOptions<'_>,
    ) -> Result<MemoryUse, RunError> {
        let mut instance = self.instance();
        let pool = &self.shared.pool;
        let run = Run { inputs, slots, options, instance: &mut instance };
        let outcome = pool.install(|| {
            // The whole, since a closure would take its raw parts one by one.
            let run = run;
            let Run { inputs, slots, options, instance } = run;
            instance.run(inputs, slots, None, pool, options)
        });
        let memory = instance.memory_use();
        // What a failed run left half-bound is not used again.
        if outcome.is_ok() {
            let mut instances = self.kept();
            if instances.len() < KEPT_INSTANCES {
                instances.push(instance);
            }
        }
        outcome.map(|()| memory)
    }

    fn instance(&self) -> Instance {
        let kept = self.kept().pop();
        kept.unwrap_or_else(|| Instance::new(&self.loaded))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Instance>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Run<'a, 'b> {
    inputs: &'a [Input<'a>],
    slots: &'a mut Slots,
    options: &'a RunOptions<'b>,
    instance: &'a mut Instance,
}

// SAFETY: the pool runs the closure while the caller waits; the pointers are to tensors that the caller holds, and the
// callbacks in the options are called by one thread at a time.
#[allow(unsafe_code)]
unsafe impl Send for Run<'_, '_> {}

fn input(tensor: &Tensor) -> Input<'_> {
    Input { dtype: tensor.dtype(), dims: tensor.dims(), pointer: tensor.pointer() }
}
