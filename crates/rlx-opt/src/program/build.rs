//! From graph to program: views and steps, in the graph's order.

use super::views::addressable;
use super::{
    Buffer, BufferId, BufferKind, Port, Program, StatePort, Step, StepOp, View, alias, bodies_of, states,
};
use crate::pipeline::CompileError;
use crate::target::{OperandLayout, Target};
use rlx_ir::infer::Check;
use rlx_ir::{DType, Dim, Graph, Node, NodeId, Op, Primitive, Symbol, TensorType, Value};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The program of a graph whose composites `target` runs and whose calls are regions.
///
/// # Errors
/// If a state would have to be copied.
pub fn build(graph: &Graph, target: &dyn Target, notes: &mut Vec<String>) -> Result<Program, CompileError> {
    build_within(graph, target, &FxHashSet::default(), notes)
}

/// The program of a subgraph, in whose surroundings the symbols `outer` have values.
fn build_within(
    graph: &Graph,
    target: &dyn Target,
    outer: &FxHashSet<Symbol>,
    notes: &mut Vec<String>,
) -> Result<Program, CompileError> {
    let mut bound = outer.clone();
    for (_, t) in graph.input_types() {
        bound.extend(t.dims().iter().filter_map(|d| d.as_symbol().cloned()));
    }
    let mut maker = Maker {
        graph,
        target,
        program: Program {
            name: graph.name().into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            symbols: graph.symbols().clone(),
            weights: Vec::new(),
            buffers: Vec::new(),
            init_steps: Vec::new(),
            steps: Vec::new(),
        },
        values: Vec::with_capacity(graph.nodes().len()),
        constant: vec![false; graph.nodes().len()],
        bound,
        notes,
    };
    let mut checks = graph.checks().iter().peekable();
    let mut pending: Vec<Check> = Vec::new();
    for (id, node) in graph.nodes() {
        while let Some(check) = checks.next_if(|c| c.node <= id) {
            pending.push(check.check.clone());
        }
        maker.node(id, node, &mut pending)?;
    }
    maker.outputs(pending)?;
    let mut program = maker.program;
    alias::in_place(&mut program, target);
    states::settle(&mut program, target, notes)?;
    Ok(program)
}

struct Maker<'a> {
    graph: &'a Graph,
    target: &'a dyn Target,
    program: Program,
    values: Vec<Vec<View>>,
    /// Which nodes follow from constants only.
    constant: Vec<bool>,
    /// The symbols that have values before the present node runs.
    bound: FxHashSet<Symbol>,
    notes: &'a mut Vec<String>,
}

fn types<'g>(graph: &'g Graph, node: &Node) -> Vec<&'g TensorType> {
    node.operands.iter().map(|v| graph.type_of(*v)).collect()
}

impl Maker<'_> {
    fn buffer(&mut self, kind: BufferKind, dtype: DType, dims: &[Dim]) -> View {
        let id = BufferId(self.program.buffers.len() as u32);
        self.program.buffers.push(Buffer::of(kind, dtype, dims));
        View::packed(id, dtype, dims)
    }

    fn view(&self, value: Value) -> &View {
        &self.values[value.node.index()][value.output as usize]
    }

    fn node(&mut self, id: NodeId, node: &Node, pending: &mut Vec<Check>) -> Result<(), CompileError> {
        let views = match &node.op {
            Op::Primitive(Primitive::Input(input)) => {
                let index = self.program.inputs.len() as u32;
                let state = self.graph.states().iter().position(|s| s.input == index as usize);
                let kind = state.map_or(BufferKind::Input(index), |k| BufferKind::State(k as u32));
                let view = self.buffer(kind, input.ty.dtype, input.ty.dims());
                self.program.inputs.push(Port {
                    name: input.name.clone(),
                    ty: input.ty.clone(),
                    buffer: view.buffer,
                });
                vec![view]
            }
            Op::Primitive(Primitive::Constant(constant)) => {
                self.constant[id.index()] = true;
                let index = self.program.weights.len() as u32;
                let t = &node.types[0];
                self.program.weights.push(constant.value.clone());
                vec![self.buffer(BufferKind::Weight(index), t.dtype, t.dims())]
            }
            op => match self.moved(op, node) {
                Some(view) => {
                    self.constant[id.index()] = self.is_constant(node);
                    vec![view]
                }
                None => self.step(id, node, pending)?,
            },
        };
        self.values.push(views);
        Ok(())
    }

    /// The result as a view of the operand, where the operation is movement that a view can express.
    fn moved(&self, op: &Op, node: &Node) -> Option<View> {
        let Op::Primitive(primitive) = op else { return None };
        let x = self.view(*node.operands.first()?);
        let view = match primitive {
            Primitive::Reshape(op) => x.reshaped(&op.dims),
            Primitive::Transpose(op) => x.transposed(op),
            Primitive::Broadcast(op) => x.broadcast(op),
            Primitive::Slice(op) => x.sliced(op),
            Primitive::Reverse(op) => x.reversed(op),
            Primitive::Bitcast(op) => x.bitcast(op.to),
            _ => None,
        };
        // Products of many sums have no symbolic form; a step works with the sizes themselves.
        view.filter(|v| v.packed || !v.strides.iter().chain([&v.offset]).any(Dim::is_overflow))
    }

    fn is_constant(&self, node: &Node) -> bool {
        !node.operands.is_empty() && node.operands.iter().all(|v| self.constant[v.node.index()])
    }

    /// Whether the node can run once at load: it follows from constants, and neither its sizes nor its attributes
    /// mention symbols.
    fn runs_at_load(&self, id: NodeId, node: &Node) -> bool {
        let mut symbols = false;
        let mut note = |dim: &Dim| symbols |= dim.as_const().is_none();
        node.types.iter().flat_map(|t| t.dims()).for_each(&mut note);
        // A constant may be shown as often as a size says that only running tells.
        types(self.graph, node).into_iter().flat_map(|t| t.dims()).for_each(&mut note);
        node.op.for_each_dim(&mut note);
        let custom = matches!(&node.op, Op::Primitive(Primitive::Custom(_)));
        self.is_constant(node)
            && !symbols
            && !custom
            && bodies_of(&node.op).is_empty()
            && self.graph.bound_by(id).is_empty()
    }

    fn step(&mut self, id: NodeId, node: &Node, pending: &mut Vec<Check>) -> Result<Vec<View>, CompileError> {
        let types = types(self.graph, node);
        let at_load = self.runs_at_load(id, node);
        self.constant[id.index()] = at_load;
        let binds: Vec<Symbol> =
            self.graph.bound_by(id).into_iter().filter(|s| !self.bound.contains(s)).collect();
        let unknown: FxHashSet<&Symbol> = binds.iter().collect();
        let is_bind = matches!(&node.op, Op::Primitive(Primitive::BindDim(_)));
        let mut dynamic = false;
        for dim in node.types.iter().flat_map(|t| t.dims()) {
            dim.for_each_symbol(&mut |s| dynamic |= !is_bind && unknown.contains(s));
        }
        let mut operands = Vec::with_capacity(node.operands.len());
        for (i, v) in node.operands.iter().enumerate() {
            let view = self.view(*v).clone();
            let strided = self.target.operand_layout(&node.op, i, &types) == OperandLayout::Strided;
            operands.push(if view.packed || strided && addressable(view.dtype) {
                view
            } else {
                self.copied(&view, at_load, node)
            });
        }
        let kind = match (at_load, dynamic) {
            (true, _) => BufferKind::Derived,
            (_, true) => BufferKind::Dynamic,
            _ => BufferKind::Temp,
        };
        let results: Vec<View> = node.types.iter().map(|t| self.buffer(kind, t.dtype, t.dims())).collect();
        let route = self.target.route(&node.op, &types);
        let bodies = bodies_of(&node.op)
            .into_iter()
            .map(|g| build_within(g, self.target, &self.bound, self.notes).map(Arc::new))
            .collect::<Result<_, _>>()?;
        self.bound.extend(binds.iter().cloned());
        let step = Step {
            op: StepOp::Op(node.op.clone()),
            kernel: route.kernel,
            reason: route.reason,
            operands,
            results: results.clone(),
            operand_types: types.into_iter().cloned().collect(),
            result_types: node.types.to_vec(),
            checks: if at_load { Vec::new() } else { std::mem::take(pending) },
            binds,
            dynamic,
            bodies,
            locations: node.locations.clone(),
        };
        if at_load {
            self.program.init_steps.push(step)
        } else {
            self.program.steps.push(step)
        }
        Ok(results)
    }

    /// A packed copy of what a view shows.
    fn copied(&mut self, view: &View, at_load: bool, node: &Node) -> View {
        let kind = if at_load { BufferKind::Derived } else { BufferKind::Temp };
        let copy = self.buffer(kind, view.dtype, &view.dims);
        let step = copy_step(view, &copy, node.locations.clone());
        self.notes.push(format!("copy of {view} for {}", node.op.name()));
        if at_load {
            self.program.init_steps.push(step)
        } else {
            self.program.steps.push(step)
        }
        copy
    }

    /// Lets each output's value be written to the caller's memory: by its own step where it can, else by a copy.
    fn outputs(&mut self, pending: Vec<Check>) -> Result<(), CompileError> {
        let mut given: FxHashSet<BufferId> = FxHashSet::default();
        for state in self.graph.states() {
            let (input, output) = (state.input, state.output);
            let buffer = self.program.inputs[input].buffer;
            self.program.states.push(StatePort { input, output, buffer });
        }
        for (index, output) in self.graph.outputs().iter().enumerate() {
            let view = self.view(output.value).clone();
            let ty = self.graph.type_of(output.value).clone();
            let state = self.graph.states().iter().position(|s| s.output == index);
            let kind = match state {
                Some(k) => BufferKind::NextState(k as u32),
                None => BufferKind::Output(index as u32),
            };
            if let Some(k) = state
                && view.buffer == self.program.states[k].buffer
                && view.packed
                && view.offset == Dim::ZERO
            {
                // The state stays as it is.
                self.program.outputs.push(Port { name: output.name.clone(), ty, buffer: view.buffer });
                continue;
            }
            let whole = view.packed && view.offset == Dim::ZERO;
            let own = &self.program.buffers[view.buffer.index()];
            let direct = whole
                && own.kind == BufferKind::Temp
                && own.same_size(&Buffer::of(kind, ty.dtype, ty.dims()))
                && given.insert(view.buffer);
            let buffer = if direct {
                self.program.buffers[view.buffer.index()].kind = kind;
                view.buffer
            } else {
                let copy = self.buffer(kind, ty.dtype, ty.dims());
                let locations = self.graph.node(output.value.node).locations.clone();
                self.program.steps.push(copy_step(&view, &copy, locations));
                copy.buffer
            };
            self.program.outputs.push(Port { name: output.name.clone(), ty, buffer });
        }
        // Checks of nodes that became views belong to the next step; those after the last one to the last.
        if let Some(last) = self.program.steps.last_mut() {
            last.checks.extend(pending);
        }
        Ok(())
    }
}

pub(super) fn copy_step(from: &View, to: &View, locations: rlx_ir::Locations) -> Step {
    let t = TensorType::new(from.dtype, from.dims.as_slice());
    Step {
        op: StepOp::Copy,
        kernel: "copy",
        reason: String::new(),
        operands: vec![from.clone()],
        results: vec![to.clone()],
        operand_types: vec![t.clone()],
        result_types: vec![t],
        checks: Vec::new(),
        binds: Vec::new(),
        dynamic: false,
        bodies: Vec::new(),
        locations,
    }
}
