//! A program made ready: weights aligned and packed, kernels prepared, init steps run. Shared by all instances.

use crate::array::width;
use crate::error::RunError;
use crate::instance::run_init_step;
use crate::kernel::Kernel;
use crate::kernels;
use crate::memory::Aligned;
use crate::pool::Pool;
use crate::weights::{WeightBytes, WeightStore};
use bytes::Bytes;
use rlx_ir::{Bindings, Literal};
use rlx_opt::Program;
use rlx_opt::program::{BufferId, BufferKind, Step, View};
use std::ops::Range;
use std::sync::Arc;

/// A program with everything that does not depend on sizes.
pub struct Loaded {
    pub(crate) program: Arc<Program>,
    pub(crate) kernels: Vec<Box<dyn Kernel>>,
    pub(crate) segments: Vec<Range<usize>>,
    /// By weight index.
    pub(crate) weights: Vec<WeightBytes>,
    /// By buffer; only derived ones have memory.
    pub(crate) derived: Vec<Option<Arc<Derived>>>,
}

/// The memory of a derived buffer, which literals may share.
pub(crate) struct Derived(pub(crate) Aligned);

/// What preparing a kernel sees.
pub struct PrepareContext<'a> {
    /// The step.
    pub step: &'a Step,
    /// Where packed weights are kept.
    pub store: &'a WeightStore,
    /// The programs of the step's subgraphs.
    pub bodies: Vec<Arc<Loaded>>,
    constants: Vec<Option<Literal>>,
}

impl PrepareContext<'_> {
    /// Operand `i`, if it is a whole constant.
    pub fn constant(&self, i: usize) -> Option<&Literal> {
        self.constants.get(i).and_then(Option::as_ref)
    }
}

impl Loaded {
    /// Loads `program`.
    ///
    /// # Errors
    /// If there is no memory, or an init step fails.
    pub fn new(program: &Arc<Program>, store: &WeightStore, pool: &Pool) -> Result<Loaded, RunError> {
        let mut loaded = Loaded {
            program: Arc::clone(program),
            kernels: Vec::with_capacity(program.steps.len()),
            segments: program.segments(),
            weights: Vec::with_capacity(program.weights.len()),
            derived: vec![None; program.buffers.len()],
        };
        for literal in &program.weights {
            loaded.weights.push(store.aligned(literal, width(literal.dtype()).max(1))?);
        }
        for step in &program.init_steps {
            loaded.init(step, store, pool)?;
        }
        for step in &program.steps {
            let kernel = loaded.prepare(step, store, pool)?;
            loaded.kernels.push(kernel);
        }
        Ok(loaded)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Bytes of derived weights.
    pub fn derived_bytes(&self) -> usize {
        self.derived.iter().flatten().map(|d| d.0.len()).sum()
    }

    fn init(&mut self, step: &Step, store: &WeightStore, pool: &Pool) -> Result<(), RunError> {
        let kernel = self.prepare(step, store, pool)?;
        let bindings = Bindings::new();
        let mut memory = Vec::with_capacity(step.results.len());
        for view in &step.results {
            let bytes = self.program.buffer(view.buffer).size(&bindings).unwrap_or(0);
            memory.push(Aligned::new(bytes)?);
        }
        run_init_step(self, step, &*kernel, &mut memory, pool)?;
        for (view, memory) in step.results.iter().zip(memory) {
            self.derived[view.buffer.index()] = Some(Arc::new(Derived(memory)));
        }
        Ok(())
    }

    fn prepare(&self, step: &Step, store: &WeightStore, pool: &Pool) -> Result<Box<dyn Kernel>, RunError> {
        let bodies = step
            .bodies
            .iter()
            .map(|body| Loaded::new(body, store, pool).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        let constants = step.operands.iter().map(|view| self.constant(view)).collect();
        kernels::prepare(PrepareContext { step, store, bodies, constants })
    }

    /// The whole constant that a view shows, if it does.
    fn constant(&self, view: &View) -> Option<Literal> {
        let buffer = self.program.buffer(view.buffer);
        let dims: Vec<usize> = view.dims.iter().map(rlx_ir::Dim::as_size).collect::<Option<_>>()?;
        let bytes = view.dtype.storage_bytes(&dims)?;
        if !view.packed || view.offset != rlx_ir::Dim::ZERO || buffer.bytes.as_size() != Some(bytes) {
            return None;
        }
        let source = match buffer.kind {
            BufferKind::Weight(index) => self.program.weights[index as usize].bytes().clone(),
            BufferKind::Derived => {
                let derived = self.derived[view.buffer.index()].clone()?;
                Bytes::from_owner(DerivedBytes(derived)).slice(..bytes)
            }
            _ => return None,
        };
        Literal::new(view.dtype, dims, source).ok()
    }

    /// Where a constant buffer lies.
    pub(crate) fn constant_address(&self, id: BufferId) -> Option<*const u8> {
        match self.program.buffer(id).kind {
            BufferKind::Weight(index) => Some(self.weights[index as usize].as_ptr()),
            BufferKind::Derived => self.derived[id.index()].as_ref().map(|d| d.0.as_ptr()),
            _ => None,
        }
    }
}

struct DerivedBytes(Arc<Derived>);

impl AsRef<[u8]> for DerivedBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.0.bytes()
    }
}
