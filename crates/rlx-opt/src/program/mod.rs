//! The program: steps over buffers, with symbolic sizes. What a backend executes.
//!
//! A step's operands and results are [`View`]s: a buffer, an offset and strides. Movement that only changes those
//! (reshape, transpose, broadcast, slice, reverse) is no step at all.

mod alias;
mod build;
mod states;
mod views;

pub use build::build;

use rlx_ir::infer::Check;
use rlx_ir::{Bindings, DType, Dim, DimError, Graph, Literal, Locations, Op, Symbol, Symbols, TensorType};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The index of a buffer in its program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BufferId(pub u32);

impl BufferId {
    /// The index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BufferKind {
    /// The bytes of [`Program::weights`] at this index.
    Weight(u32),
    /// Written once, by an init step; then as a weight.
    Derived,
    /// The input at this index; the caller's memory.
    Input(u32),
    /// The output at this index; the caller's memory.
    Output(u32),
    /// The memory of the state at this index, which a run reads and updates where it lies.
    State(u32),
    /// The next value of the state at this index, as long as it is not known whether it can be written over the state.
    NextState(u32),
    /// Between steps; placed in the arena.
    Temp,
    /// Results whose sizes only their step finds out; they have memory of their own.
    Dynamic,
}

/// A piece of memory that holds a packed tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// What it is for.
    pub kind: BufferKind,
    /// Its size, as far as that can be written as one expression: [`Dim::OVERFLOW`] where the product of the sizes has
    /// too many terms. [`Self::size`] has no such limit.
    pub bytes: Dim,
    /// The element type of the tensor that it is made for.
    pub dtype: DType,
    /// The sizes of that tensor.
    pub dims: SmallVec<[Dim; 4]>,
}

impl Buffer {
    /// A buffer for a packed tensor.
    pub fn of(kind: BufferKind, dtype: DType, dims: &[Dim]) -> Buffer {
        Buffer { kind, bytes: packed_bytes(dtype, dims), dtype, dims: SmallVec::from(dims) }
    }

    /// The bytes under `bindings`.
    ///
    /// # Errors
    /// If a symbol is not bound, or the size leaves the machine's integers.
    pub fn size(&self, bindings: &Bindings) -> Result<usize, DimError> {
        let dims =
            self.dims.iter().map(|d| d.eval_size(bindings)).collect::<Result<SmallVec<[usize; 6]>, _>>()?;
        self.dtype.storage_bytes(&dims).ok_or_else(|| DimError::Overflow { dim: self.bytes.clone() })
    }

    /// Whether both are known to take equally many bytes.
    pub fn same_size(&self, other: &Buffer) -> bool {
        let known = !self.bytes.is_overflow() && self.bytes == other.bytes;
        known || (self.dtype, &self.dims) == (other.dtype, &other.dims)
    }
}

/// Elements in a buffer: element `i` is at `offset + Σ i[axis] · strides[axis]`, counted in elements. Types below a
/// byte and block formats are always without offset and gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The buffer.
    pub buffer: BufferId,
    /// Element type.
    pub dtype: DType,
    /// First element.
    pub offset: Dim,
    /// Sizes.
    pub dims: SmallVec<[Dim; 4]>,
    /// Strides.
    pub strides: SmallVec<[Dim; 4]>,
    /// Whether it is known to be row-major without gaps.
    pub packed: bool,
}

/// What a step does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepOp {
    /// An operation of the graph; a `call` is a region.
    Op(Op),
    /// Makes a packed copy of operand 0.
    Copy,
}

impl StepOp {
    /// The name in reports.
    pub fn name(&self) -> String {
        match self {
            StepOp::Op(op) => op.name().to_string(),
            StepOp::Copy => "copy".to_string(),
        }
    }
}

/// One kernel call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does.
    pub op: StepOp,
    /// The kernel by which, as the target chose it.
    pub kernel: &'static str,
    /// Why.
    pub reason: String,
    /// What it reads.
    pub operands: Vec<View>,
    /// What it writes; of a dynamic step, only the buffers and types hold before it has run.
    pub results: Vec<View>,
    /// The operands' types.
    pub operand_types: Vec<TensorType>,
    /// The results' types.
    pub result_types: Vec<TensorType>,
    /// What must hold before it runs.
    pub checks: Vec<Check>,
    /// The symbols that are known once it has run.
    pub binds: Vec<Symbol>,
    /// Whether its result sizes are known only once it has run.
    pub dynamic: bool,
    /// The programs of subgraphs, in the order of the operation's own.
    pub bodies: Vec<Arc<Program>>,
    /// Where it comes from.
    pub locations: Locations,
}

impl Step {
    /// The symbols that sizes, strides, checks and attributes mention, each once.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut note = |dim: &Dim| {
            dim.for_each_symbol(&mut |symbol| {
                if !symbols.contains(symbol) {
                    symbols.push(symbol.clone());
                }
            });
        };
        for view in self.operands.iter().chain(&self.results) {
            view.dims.iter().chain(&view.strides).chain([&view.offset]).for_each(&mut note);
        }
        self.operand_types.iter().chain(&self.result_types).flat_map(|t| t.dims()).for_each(&mut note);
        self.checks.iter().flat_map(|c| [&c.lhs, &c.rhs]).for_each(&mut note);
        if let StepOp::Op(op) = &self.op {
            op.for_each_dim(&mut note);
        }
        symbols
    }
}

/// An input or output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub ty: TensorType,
    /// The caller's memory.
    pub buffer: BufferId,
}

/// A state: an input whose next value is an output, in one piece of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatePort {
    /// The position among the inputs.
    pub input: usize,
    /// The position among the outputs.
    pub output: usize,
    /// Its memory.
    pub buffer: BufferId,
}

/// Steps over buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The graph's name.
    pub name: Arc<str>,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// States in order; their inputs and outputs are among those above.
    pub states: Vec<StatePort>,
    /// What is known of the symbols.
    pub symbols: Symbols,
    /// Constants, by the index in [`BufferKind::Weight`].
    pub weights: Vec<Literal>,
    /// All memory.
    pub buffers: Vec<Buffer>,
    /// Run once, when the program is loaded: what follows from constants only.
    pub init_steps: Vec<Step>,
    /// Run each time.
    pub steps: Vec<Step>,
}

impl Program {
    /// The buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// The first step of each segment: a step that binds symbols or has dynamic results ends one, since what follows
    /// may have sizes that were not known before.
    pub fn segments(&self) -> Vec<std::ops::Range<usize>> {
        let mut segments = Vec::new();
        let mut start = 0;
        for (i, step) in self.steps.iter().enumerate() {
            if step.dynamic || !step.binds.is_empty() {
                segments.push(start..i + 1);
                start = i + 1;
            }
        }
        if start < self.steps.len() || segments.is_empty() {
            segments.push(start..self.steps.len());
        }
        segments
    }
}

/// The bytes of a packed tensor. Rows of types below a byte begin at bytes.
pub fn packed_bytes(dtype: DType, dims: &[Dim]) -> Dim {
    let (last, outer) = match dims.split_last() {
        Some((last, outer)) => (last.clone(), Dim::product(outer.iter())),
        None => (Dim::ONE, Dim::ONE),
    };
    match (dtype, dtype.bits()) {
        (DType::Block(format), _) => {
            let blocks = last.floor_div(&Dim::from(format.block_len()));
            outer * blocks * Dim::from(format.block_bytes())
        }
        (_, Some(bits)) if bits % 8 == 0 => outer * last * Dim::from(bits as usize / 8),
        (_, Some(bits)) => {
            let row = (last * Dim::from(bits as usize) + Dim::from(7usize)).floor_div(&Dim::from(8usize));
            outer * row
        }
        (_, None) => Dim::ZERO,
    }
}

/// A view with its sizes known. Counted in elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: SmallVec<[usize; 6]>,
    /// Strides.
    pub strides: SmallVec<[isize; 6]>,
}

impl Layout {
    /// Row-major without gaps.
    pub fn packed(dtype: DType, dims: &[usize]) -> Layout {
        let mut strides = SmallVec::from_elem(0isize, dims.len());
        let mut stride = 1isize;
        for (axis, dim) in dims.iter().enumerate().rev() {
            strides[axis] = stride;
            stride = stride.wrapping_mul((*dim).max(1) as isize);
        }
        Layout { dtype, dims: SmallVec::from_slice(dims), strides }
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether it is row-major without gaps.
    pub fn is_packed(&self) -> bool {
        let mut expected = 1isize;
        for (dim, stride) in self.dims.iter().zip(&self.strides).rev() {
            if *dim != 1 && *stride != expected {
                return false;
            }
            expected = expected.wrapping_mul(*dim as isize);
        }
        true
    }

    /// The bytes of the same elements without gaps; `None` where there is no byte form.
    pub fn packed_bytes(&self) -> Option<usize> {
        self.dtype.storage_bytes(&self.dims)
    }
}

impl View {
    /// The layout and the byte offset under `bindings`.
    pub fn bind(&self, bindings: &Bindings) -> Result<(Layout, isize), DimError> {
        let dims =
            self.dims.iter().map(|d| d.eval_size(bindings)).collect::<Result<SmallVec<[usize; 6]>, _>>()?;
        let strides = if self.packed {
            // Their products may have no symbolic form; they follow from the sizes.
            Layout::packed(self.dtype, &dims).strides
        } else {
            let evaluated = self.strides.iter().map(|d| d.eval(bindings).map(|s| s as isize));
            evaluated.collect::<Result<SmallVec<_>, _>>()?
        };
        let width = self.dtype.bits().map_or(0, |bits| bits as isize / 8);
        let offset = (self.offset.eval(bindings)? as isize).wrapping_mul(width);
        Ok((Layout { dtype: self.dtype, dims, strides }, offset))
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}:{}[", self.buffer.0, self.dtype)?;
        for (i, dim) in self.dims.iter().enumerate() {
            write!(f, "{}{dim}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")?;
        if !self.packed {
            let strides: Vec<String> = self.strides.iter().map(|s| s.to_string()).collect();
            write!(f, "@{}({})", self.offset, strides.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Program {
    /// One line a step, for tests and people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, buffer) in self.buffers.iter().enumerate() {
            writeln!(f, "b{i} {:?} {} bytes", buffer.kind, buffer.bytes)?;
        }
        for (title, steps) in [("init", &self.init_steps), ("step", &self.steps)] {
            for step in steps {
                let results: Vec<String> = step.results.iter().map(View::to_string).collect();
                let operands: Vec<String> = step.operands.iter().map(View::to_string).collect();
                writeln!(f, "{title} {} = {} {}", results.join(", "), step.op.name(), operands.join(", "))?;
            }
        }
        Ok(())
    }
}

/// The program of a region's body is never built; a body of control flow is. Tells which subgraphs to build.
pub(crate) fn bodies_of(op: &Op) -> Vec<&Arc<Graph>> {
    match op {
        Op::Primitive(rlx_ir::Primitive::Call(_)) => Vec::new(),
        op => crate::rewrite::subgraphs(op),
    }
}
