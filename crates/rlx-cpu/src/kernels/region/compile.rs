//! From a region's body to its vector program: instructions over registers, once for all sizes.

use super::access::Access;
use super::lanes::Lane;
use super::long::{BoundLong, LONG, Stage, stages};
use super::run::BoundRegion;
use super::{reduce, table};
use crate::kernel::{BindContext, Bound, Kernel};
use rlx_eval::Fault;
use rlx_ir::{Bindings, Composite, Dim, Graph, NodeId, Op, Primitive, Value};
use rlx_opt::region::{Level, Region, Space};
use smallvec::SmallVec;
use std::sync::Arc;

/// The register of a value: which, of what lanes, over which indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Register {
    /// Shared by values that are not needed at the same time, in the order of the instructions.
    pub(super) index: u16,
    /// This value's alone, for orders in which values are computed again.
    pub(super) value: u16,
    pub(super) lane: Lane,
    pub(super) level: Level,
}

/// One step of the vector program.
#[derive(Clone, Debug)]
pub(super) enum Instruction {
    /// Fills a register from an operand.
    Load { operand: usize, to: Register },
    /// Applies a function to registers of one level.
    Apply { function: table::Function, operands: SmallVec<[Register; 3]>, to: Register },
    /// Reduces each row.
    Reduce { function: reduce::Function, from: Register, to: Register },
    /// Repeats each row value over its row.
    Expand { from: Register, to: Register },
    /// Writes the result.
    Store { from: Register },
}

/// A compiled region.
pub(super) struct Program {
    pub(super) space: Space,
    pub(super) instructions: Vec<Instruction>,
    /// The lanes' width and level of each register's memory; several values in turn may use one.
    pub(super) registers: Vec<(usize, Level)>,
    /// The width and level of each value.
    pub(super) values: Vec<(usize, Level)>,
    /// What is run for rows that are too long for registers.
    pub(super) stages: Vec<Stage>,
    /// The level of each operand.
    pub(super) operands: Vec<Level>,
    pub(super) result: Level,
}

/// Compiles `body`; says what it lacks if it cannot.
pub(super) fn compile(body: &Graph, region: &Region) -> Result<RegionKernel, String> {
    let mut compiler = Compiler::new(body);
    let mut operands = Vec::new();
    for (id, node) in body.nodes() {
        let level = region.levels[id.index()];
        let dtype = node.types[0].dtype;
        let lane = Lane::of(dtype).ok_or_else(|| format!("elements of {dtype}"))?;
        let missing = || format!("{} on {dtype}", node.op.name());
        let from: SmallVec<[Register; 3]> =
            node.operands.iter().map(|v| compiler.register(*v)).collect::<Result<_, _>>()?;
        // A result's register is taken before its operands' are given back: functions do not run in place.
        let to = match &node.op {
            Op::Primitive(Primitive::Reshape(_)) => from[0],
            _ => compiler.take(lane, level),
        };
        let primitive = match &node.op {
            Op::Primitive(primitive) => primitive,
            Op::Composite(Composite::Activation(op)) => {
                let function = table::activation(op.op, from[0].lane).ok_or_else(missing)?;
                compiler.instructions.push(Instruction::Apply { function, operands: from, to });
                compiler.define(id, to);
                compiler.release(body, id);
                continue;
            }
            Op::Composite(_) => return Err(missing()),
        };
        let instruction = match primitive {
            Primitive::Input(_) => {
                operands.push(level);
                Some(Instruction::Load { operand: operands.len() - 1, to })
            }
            Primitive::Reshape(_) => None,
            Primitive::Broadcast(_) => Some(Instruction::Expand { from: from[0], to }),
            Primitive::Reduce(op) => {
                let function = reduce::function(op.op, from[0].lane).ok_or_else(missing)?;
                Some(Instruction::Reduce { function, from: from[0], to })
            }
            Primitive::Unary(op) => {
                let function = table::unary(op.op, from[0].lane).ok_or_else(missing)?;
                Some(Instruction::Apply { function, operands: from.clone(), to })
            }
            Primitive::Binary(op) => {
                let function = table::binary(op.op, from[0].lane).ok_or_else(missing)?;
                Some(Instruction::Apply { function, operands: from.clone(), to })
            }
            Primitive::Compare(op) => {
                let function = table::compare(op.op, from[0].lane);
                Some(Instruction::Apply { function, operands: from.clone(), to })
            }
            Primitive::Select(_) => {
                Some(Instruction::Apply { function: table::select(lane), operands: from.clone(), to })
            }
            Primitive::Cast(op) => {
                let source = body.type_of(node.operands[0]).dtype;
                let function = table::cast(source, op.to).ok_or_else(missing)?;
                Some(Instruction::Apply { function, operands: from.clone(), to })
            }
            _ => return Err(missing()),
        };
        compiler.instructions.extend(instruction);
        compiler.define(id, to);
        compiler.release(body, id);
    }
    let output = body.outputs().first().ok_or("no result")?.value;
    let from = compiler.register(output)?;
    compiler.instructions.push(Instruction::Store { from });
    let stages = stages(&compiler.instructions, compiler.kinds.len());
    Ok(RegionKernel {
        program: Arc::new(Program {
            space: region.space.clone(),
            instructions: compiler.instructions,
            registers: compiler.memory,
            values: compiler.kinds,
            stages,
            operands,
            result: from.level,
        }),
    })
}

struct Compiler {
    instructions: Vec<Instruction>,
    /// By register.
    memory: Vec<(usize, Level)>,
    /// By value.
    kinds: Vec<(usize, Level)>,
    free: Vec<u16>,
    /// By node.
    values: Vec<Option<Register>>,
    /// The last node that reads the value of each node; outputs are never released.
    last_use: Vec<usize>,
}

impl Compiler {
    fn new(body: &Graph) -> Compiler {
        let count = body.nodes().len();
        let mut last_use: Vec<usize> = (0..count).collect();
        for (id, node) in body.nodes() {
            for v in &node.operands {
                last_use[v.node.index()] = id.index();
            }
        }
        // A reshape is another name for the same register.
        for (id, node) in body.nodes().rev() {
            if matches!(node.op, Op::Primitive(Primitive::Reshape(_))) {
                let source = node.operands[0].node.index();
                last_use[source] = last_use[source].max(last_use[id.index()]);
            }
        }
        for output in body.outputs() {
            last_use[output.value.node.index()] = count;
        }
        for (id, node) in body.nodes().rev() {
            if matches!(node.op, Op::Primitive(Primitive::Reshape(_))) && last_use[id.index()] == count {
                last_use[node.operands[0].node.index()] = count;
            }
        }
        Compiler {
            instructions: Vec::new(),
            memory: Vec::new(),
            kinds: Vec::new(),
            free: Vec::new(),
            values: vec![None; count],
            last_use,
        }
    }

    fn take(&mut self, lane: Lane, level: Level) -> Register {
        let fits = |i: &u16| self.memory[usize::from(*i)] == (lane.width(), level);
        let index = match self.free.iter().position(fits) {
            Some(position) => self.free.swap_remove(position),
            None => {
                self.memory.push((lane.width(), level));
                (self.memory.len() - 1) as u16
            }
        };
        self.kinds.push((lane.width(), level));
        Register { index, value: (self.kinds.len() - 1) as u16, lane, level }
    }

    fn register(&self, value: Value) -> Result<Register, String> {
        self.values[value.node.index()].ok_or_else(|| "a value before its definition".to_string())
    }

    fn define(&mut self, id: NodeId, register: Register) {
        self.values[id.index()] = Some(register);
    }

    /// Gives back the registers of values that `id` read last.
    fn release(&mut self, body: &Graph, id: NodeId) {
        let mut nodes: SmallVec<[NodeId; 3]> = body.node(id).operands.iter().map(|v| v.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let renamed = matches!(body.node(node).op, Op::Primitive(Primitive::Reshape(_)));
            if self.last_use[node.index()] == id.index() && !renamed {
                self.free.extend(self.values[node.index()].map(|r| r.index));
            }
        }
        // What was read under its other name ends with the node that bore it.
        for source in body.node(id).operands.iter().map(|v| v.node) {
            let mut at = source;
            while let Op::Primitive(Primitive::Reshape(_)) = body.node(at).op {
                at = body.node(at).operands[0].node;
                if self.last_use[at.index()] == id.index()
                    && let Some(register) = self.values[at.index()]
                    && !self.free.contains(&register.index)
                {
                    self.free.push(register.index);
                }
            }
        }
    }
}

/// The kernel of a region.
pub(super) struct RegionKernel {
    program: Arc<Program>,
}

/// The size of each axis, kept ones first.
fn sizes(dims: &[Dim], bindings: &Bindings) -> Result<Vec<usize>, Fault> {
    Ok(dims.iter().map(|d| d.eval_size(bindings)).collect::<Result<_, _>>()?)
}

impl Kernel for RegionKernel {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let program = &self.program;
        let domain = sizes(&program.space.domain, cx.bindings)?;
        let axes = &program.space.axes;
        let kept: Vec<usize> = (0..domain.len()).filter(|a| !axes.contains(a)).collect();
        let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
        let rows: usize = kept.iter().map(|a| domain[*a]).product();
        let length: usize = axes.iter().map(|a| domain[*a]).product();
        let access = |layout: &rlx_opt::program::Layout, level: Level| -> Access {
            let strides = &layout.strides;
            match level {
                Level::Full => Access::new(layout.dtype, order.iter().map(|a| (domain[*a], strides[*a]))),
                Level::Row => {
                    // With reduced axes kept as 1 or dropped.
                    let with_ones = layout.dims.len() == domain.len();
                    let position = |i: usize, axis: usize| if with_ones { axis } else { i };
                    let axes = kept.iter().enumerate().map(|(i, a)| (domain[*a], strides[position(i, *a)]));
                    Access::new(layout.dtype, axes)
                }
            }
        };
        let operands =
            cx.operands.iter().zip(&program.operands).map(|(l, level)| access(l, *level)).collect();
        let result = access(&cx.results[0], program.result);
        if length > LONG {
            return Ok(Box::new(BoundLong::new(Arc::clone(program), operands, result, rows, length)));
        }
        Ok(Box::new(BoundRegion::new(Arc::clone(program), operands, result, rows, length)))
    }
}
