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
use rlx_ir::{Bindings, Literal, Symbol};
use rlx_opt::Program;
use rlx_opt::program::{BufferId, BufferKind, Step, View};
use std::ops::Range;
use std::sync::Arc;

/// A program with everything that does not depend on sizes.
pub struct Loaded {
    pub(crate) program: Arc<Program>,
    pub(crate) kernels: Vec<Box<dyn Kernel>>,
    pub(crate) segments: Vec<Range<usize>>,
    /// By step: the symbols that its sizes, strides, checks and attributes mention.
    pub(crate) symbols: Vec<Vec<Symbol>>,
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
    views: Vec<Option<ConstantView>>,
}

/// A view of a constant: elements that packed weights can be made from.
pub struct ConstantView {
    /// All bytes of the buffer that is viewed; what packed weights are found by.
    pub source: Literal,
    /// The first element of the view, aligned.
    pub pointer: *const u8,
    /// Elements from the buffer's first to the view's.
    pub offset: i64,
    /// The sizes; `None` where only running tells, which a stride of 0 allows.
    pub dims: Vec<Option<usize>>,
    /// The strides, in elements.
    pub strides: Vec<isize>,
}

impl PrepareContext<'_> {
    /// Operand `i`, if it is a whole constant.
    pub fn constant(&self, i: usize) -> Option<&Literal> {
        self.constants.get(i).and_then(Option::as_ref)
    }

    /// Operand `i`, if it is a view of a constant with known strides.
    pub fn constant_view(&self, i: usize) -> Option<&ConstantView> {
        self.views.get(i).and_then(Option::as_ref)
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
            symbols: program.steps.iter().map(Step::symbols).collect(),
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
        let views = step.operands.iter().map(|view| self.constant_view(view)).collect();
        kernels::prepare(PrepareContext { step, store, bodies, constants, views })
    }

    /// The whole constant that a view shows, if it does.
    fn constant(&self, view: &View) -> Option<Literal> {
        let buffer = self.program.buffer(view.buffer);
        let dims: Vec<usize> = view.dims.iter().map(rlx_ir::Dim::as_size).collect::<Option<_>>()?;
        let bytes = view.dtype.storage_bytes(&dims)?;
        if !view.packed || view.offset != rlx_ir::Dim::ZERO || buffer.bytes.as_size() != Some(bytes) {
            return None;
        }
        let source = self.constant_bytes(view.buffer)?.slice(..bytes);
        Literal::new(view.dtype, dims, source).ok()
    }

    /// The bytes of a constant buffer.
    fn constant_bytes(&self, id: BufferId) -> Option<Bytes> {
        match self.program.buffer(id).kind {
            BufferKind::Weight(index) => Some(self.program.weights[index as usize].bytes().clone()),
            BufferKind::Derived => Some(Bytes::from_owner(DerivedBytes(self.derived[id.index()].clone()?))),
            _ => None,
        }
    }

    fn constant_view(&self, view: &View) -> Option<ConstantView> {
        let bytes = self.constant_bytes(view.buffer)?;
        let offset = view.offset.as_const()?;
        let strides: Vec<isize> =
            view.strides.iter().map(|s| s.as_const().map(|s| s as isize)).collect::<Option<_>>()?;
        let dims: Vec<Option<usize>> = view.dims.iter().map(rlx_ir::Dim::as_size).collect();
        if dims.iter().zip(&strides).any(|(dim, stride)| dim.is_none() && *stride != 0) {
            return None;
        }
        let first = self.constant_address(view.buffer)?;
        let pointer = first.wrapping_offset(offset as isize * width(view.dtype) as isize);
        let source = Literal::new(rlx_ir::DType::U8, vec![bytes.len()], bytes).ok()?;
        Some(ConstantView { source, pointer, offset, dims, strides })
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
