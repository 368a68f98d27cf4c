//! The graph: an append-only arena of nodes in static single assignment form.
//!
//! A graph is closed (it names nothing outside itself), in order (a node's operands come before it), and made by
//! a [`Builder`](crate::builder::Builder), which infers every type.

use crate::dim::{Dim, Symbol, Symbols};
use crate::error::Locations;
use crate::infer::{Check, Types};
use crate::op::{Composite, Op, Primitive};
use crate::types::TensorType;
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The index of a node in its graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One result of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// The node.
    pub node: NodeId,
    /// Which of its results.
    pub output: u32,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}.{}", self.node.0, self.output)
    }
}

/// An operation applied to operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Its operands.
    pub operands: SmallVec<[Value; 3]>,
    /// The types of its results.
    pub types: Types,
    /// Where it comes from.
    pub locations: Locations,
}

/// A named result of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The name.
    pub name: Arc<str>,
    /// The value.
    pub value: Value,
}

/// A state: an input whose next value is an output. Both are still listed as input and output.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The position among the inputs.
    pub input: usize,
    /// The position among the outputs.
    pub output: usize,
}

/// A computation: named inputs, nodes, named outputs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    pub(crate) name: Arc<str>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<Value>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) states: Vec<State>,
    pub(crate) symbols: Symbols,
    pub(crate) checks: Vec<NodeCheck>,
}

/// A run-time check and the node that asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeCheck {
    /// The node.
    pub node: NodeId,
    /// What must hold when that node runs.
    pub check: Check,
}

impl Graph {
    /// The graph's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All nodes, operands before users.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> + DoubleEndedIterator {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i as u32), n))
    }

    /// The node with this index. Panics if `id` is of another, larger graph.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The type of a value of this graph.
    pub fn type_of(&self, value: Value) -> &TensorType {
        &self.nodes[value.node.index()].types[value.output as usize]
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// The name and type of an input node of this graph.
    pub fn input_name(&self, input: Value) -> &str {
        match &self.nodes[input.node.index()].op {
            Op::Primitive(Primitive::Input(input)) => &input.name,
            _ => "",
        }
    }

    /// The inputs' names and types, in order.
    pub fn input_types(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.inputs.iter().map(|v| (self.input_name(*v), self.type_of(*v)))
    }

    /// The outputs, in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The outputs' types, in order.
    pub fn output_types(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.outputs.iter().map(|o| (&*o.name, self.type_of(o.value)))
    }

    /// The pairs of input and output that are states.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// What is known of the symbols.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The relations of sizes that are checked when the graph runs, in order of their nodes.
    pub fn checks(&self) -> &[NodeCheck] {
        &self.checks
    }

    /// Calls `visit` with every size in the graph's types and attributes, those of subgraphs included.
    pub fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        for node in &self.nodes {
            node.op.for_each_dim(visit);
            node.types.iter().flat_map(|t| t.dims()).for_each(&mut *visit);
        }
    }

    /// The symbols that are bound when this node has run: those it counts, or that first appear in its results.
    pub fn bound_by(&self, id: NodeId) -> SmallVec<[Symbol; 1]> {
        let node = self.node(id);
        let mut symbols = SmallVec::new();
        let primitive = match &node.op {
            Op::Primitive(primitive) => primitive,
            Op::Composite(Composite::Compress(op)) => return SmallVec::from_elem(op.count.clone(), 1),
            Op::Composite(Composite::Unique(op)) => return SmallVec::from_elem(op.count.clone(), 1),
            Op::Composite(_) => return symbols,
        };
        match primitive {
            Primitive::BindDim(bind) => symbols.push(bind.symbol.clone()),
            Primitive::Input(_)
            | Primitive::NonZero(_)
            | Primitive::NonMaxSuppression(_)
            | Primitive::If(_)
            | Primitive::While(_)
            | Primitive::Scan(_)
            | Primitive::Call(_)
            | Primitive::Custom(_) => {
                for dim in node.types.iter().flat_map(|t| t.dims()) {
                    symbols.extend(dim.as_symbol().cloned());
                }
            }
            _ => {}
        }
        symbols
    }
}

impl Hash for Graph {
    /// Cheap: sizes and interface only; equality does the rest.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.nodes.len().hash(state);
        for (name, t) in self.input_types() {
            name.hash(state);
            t.hash(state);
        }
        for (name, t) in self.output_types() {
            name.hash(state);
            t.hash(state);
        }
    }
}
