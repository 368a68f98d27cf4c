//! The builder: the only way to make a graph. It infers types, merges equal nodes (hash-consing), folds sizes,
//! scalars and identities, and keeps locations.
//!
//! Every pass rebuilds its graph through a builder; a [`verbatim`](Builder::verbatim) builder changes nothing and is
//! what the parser uses.

mod fold;
mod known;
mod subgraph;
mod sugar;

pub use known::MAX_KNOWN;
pub use subgraph::{Carried, Trip};
pub use sugar::broadcast_dims;

use crate::dim::{Dim, Symbol, SymbolInfo};
use crate::error::{Locations, TypeError, TypeErrorParts};
use crate::graph::{Graph, Node, NodeCheck, NodeId, Output, State, Value};
use crate::infer::{Infer, Types};
use crate::literal::Literal;
use crate::op::{Op, source};
use crate::types::TensorType;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// The results of a node.
pub type Values = SmallVec<[Value; 1]>;

/// Evaluates an operation on constants, so that the builder can fold it. The oracle implements it; this crate
/// knows only sizes and identities.
pub trait ConstantFolder: Send + Sync {
    /// The results, or `None` to leave the node as it is.
    fn fold(&self, op: &Op, operands: &[&Literal], types: &[TensorType]) -> Option<Vec<Literal>>;
}

/// Makes one graph.
pub struct Builder {
    graph: Graph,
    locations: Locations,
    simplify: bool,
    same: FxHashMap<(Op, SmallVec<[Value; 3]>), NodeId>,
    known: Vec<Option<Arc<[Dim]>>>,
    folder: Option<Arc<dyn ConstantFolder>>,
    input_names: FxHashSet<Arc<str>>,
    fresh: u32,
}

impl Builder {
    /// A builder that folds and merges.
    pub fn new(name: &str) -> Builder {
        Builder {
            graph: Graph { name: name.into(), ..Graph::default() },
            locations: Locations::none(),
            simplify: true,
            same: FxHashMap::default(),
            known: Vec::new(),
            folder: None,
            input_names: FxHashSet::default(),
            fresh: 0,
        }
    }

    /// A builder that keeps every node as it is given.
    pub fn verbatim(name: &str) -> Builder {
        Builder { simplify: false, ..Builder::new(name) }
    }

    /// Folds operations on constants by `folder` from now on.
    pub fn set_folder(&mut self, folder: Arc<dyn ConstantFolder>) {
        self.folder = Some(folder);
    }

    /// The folder, for the builders of subgraphs.
    pub fn folder(&self) -> Option<Arc<dyn ConstantFolder>> {
        self.folder.clone()
    }

    /// The graph as far as it is built.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The type of a value.
    pub fn type_of(&self, value: Value) -> &TensorType {
        self.graph.type_of(value)
    }

    /// Where the nodes made from now on come from.
    pub fn set_locations(&mut self, locations: Locations) {
        self.locations = locations;
    }

    /// The present locations.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// Declares what is known of a symbol.
    pub fn declare(&mut self, symbol: Symbol, info: SymbolInfo) {
        self.graph.symbols.declare(symbol, info);
    }

    /// A symbol with a name that the graph does not have yet: `hint`, or `hint` with a number.
    pub fn fresh_symbol(&mut self, hint: &str) -> Symbol {
        loop {
            self.fresh += 1;
            let symbol = Symbol::new(format!("{hint}_{}", self.fresh));
            if !self.graph.symbols.contains(&symbol) {
                self.declare(symbol.clone(), SymbolInfo::default());
                return symbol;
            }
        }
    }

    /// An input. A name that another input has is an error.
    pub fn input(&mut self, name: &str, ty: TensorType) -> Result<Value, TypeError> {
        if self.input_names.contains(name) {
            return Err(self.error(
                "input",
                "C2",
                "input names must differ",
                "a name not yet taken",
                format!("{name:?} again"),
            ));
        }
        let shared: Arc<str> = name.into();
        let value = self.push_node(source::Input { name: Arc::clone(&shared), ty }.into(), &[])?[0];
        self.input_names.insert(shared);
        self.graph.inputs.push(value);
        Ok(value)
    }

    fn error(
        &self,
        op: &str,
        label: &'static str,
        what: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> TypeError {
        TypeError::new(TypeErrorParts {
            op: op.to_string(),
            label,
            operand: None,
            what: what.to_string(),
            expected: expected.into(),
            found: found.into(),
            locations: self.locations.clone(),
        })
    }

    /// A constant.
    pub fn constant(&mut self, literal: Literal) -> Value {
        let types = Types::from_iter([literal.tensor_type()]);
        let op = Op::from(source::Constant { value: literal });
        let key = (op, SmallVec::new());
        if self.simplify
            && let Some(node) = self.same.get(&key)
        {
            return Value { node: *node, output: 0 };
        }
        self.append(key.0, &[], types, Vec::new())[0]
    }

    /// Applies an operation: its results, or the constraint that the operands break.
    /// In a simplifying builder the results may be those of another, equivalent node.
    pub fn push(&mut self, op: impl Into<Op>, operands: &[Value]) -> Result<Values, TypeError> {
        let op = op.into();
        self.check_operands(&op, operands)?;
        if self.simplify
            && let Some(values) = self.simplified(&op, operands)?
        {
            return Ok(values);
        }
        self.push_node(op, operands)
    }

    /// Applies an operation of one result.
    pub fn push1(&mut self, op: impl Into<Op>, operands: &[Value]) -> Result<Value, TypeError> {
        self.push(op, operands).map(|values| values[0])
    }

    fn check_operands(&self, op: &Op, operands: &[Value]) -> Result<(), TypeError> {
        for value in operands {
            let known = self.graph.nodes.get(value.node.index()).map_or(0, |n| n.types.len());
            if value.output as usize >= known {
                return Err(self.error(
                    op.name(),
                    "C0",
                    "operand",
                    "a value of this graph",
                    format!("{value:?}"),
                ));
            }
        }
        Ok(())
    }

    /// Infers and appends, or finds the equal node.
    fn push_node(&mut self, op: Op, operands: &[Value]) -> Result<Values, TypeError> {
        let key = (op, SmallVec::from_slice(operands));
        if self.simplify
            && let Some(id) = self.same.get(&key)
        {
            let (id, node) = (*id, &mut self.graph.nodes[id.index()]);
            node.locations.merge(&self.locations);
            return Ok((0..node.types.len() as u32).map(|output| Value { node: id, output }).collect());
        }
        let (types, checks) = {
            let types: SmallVec<[&TensorType; 4]> = operands.iter().map(|v| self.graph.type_of(*v)).collect();
            let cx = Infer::new(key.0.name(), &types, &self.graph.symbols);
            let types = key.0.infer(&cx).map_err(|e| e.at(&self.locations))?;
            (types, cx.into_checks())
        };
        for t in &types {
            if !sizes_fit(t) {
                let what = "a size or the element count leaves 63 bits";
                return Err(self.error(key.0.name(), "C0", what, "fewer than 2^63 elements", t.to_string()));
            }
        }
        Ok(self.append(key.0, operands, types, checks))
    }

    fn append(
        &mut self,
        op: Op,
        operands: &[Value],
        types: Types,
        checks: Vec<crate::infer::Check>,
    ) -> Values {
        let id = NodeId(self.graph.nodes.len() as u32);
        let operands: SmallVec<[Value; 3]> = SmallVec::from_slice(operands);
        let values = (0..types.len() as u32).map(|output| Value { node: id, output }).collect();
        if self.simplify {
            self.same.insert((op.clone(), operands.clone()), id);
        }
        for check in checks {
            let check = crate::infer::Check { error: check.error.at(&self.locations), ..check };
            self.graph.checks.push(NodeCheck { node: id, check });
        }
        self.graph.nodes.push(Node { op, operands, types, locations: self.locations.clone() });
        let known = self.known_elements(id);
        self.known.push(known);
        values
    }

    /// Adds a run-time check that must hold before `node` runs: passes keep those of what they replace.
    pub fn add_check(&mut self, node: NodeId, check: &crate::infer::Check) {
        self.graph.checks.push(NodeCheck { node, check: check.clone() });
    }

    /// The finished graph, with these named outputs.
    pub fn finish<'n>(self, outputs: impl IntoIterator<Item = (&'n str, Value)>) -> Result<Graph, TypeError> {
        self.finish_with_states(outputs, &[])
    }

    /// The finished graph; `states` are pairs of positions among inputs and outputs. Inputs come first in its arena,
    /// and unless the builder is verbatim, nodes that no output needs are left out.
    pub fn finish_with_states<'n>(
        mut self,
        outputs: impl IntoIterator<Item = (&'n str, Value)>,
        states: &[(usize, usize)],
    ) -> Result<Graph, TypeError> {
        let mut names = FxHashSet::default();
        for (name, value) in outputs {
            if !names.insert(name) {
                return Err(self.error(
                    "return",
                    "C1",
                    "output names must differ",
                    "a name not yet taken",
                    format!("{name:?} again"),
                ));
            }
            let known = self.graph.nodes.get(value.node.index()).map_or(0, |n| n.types.len());
            if value.output as usize >= known {
                return Err(self.error(
                    "return",
                    "C0",
                    "output",
                    "a value of this graph",
                    format!("{value:?}"),
                ));
            }
            self.graph.outputs.push(Output { name: name.into(), value });
        }
        for (input, output) in states {
            let pair = (self.graph.inputs.get(*input), self.graph.outputs.get(*output));
            let (Some(i), Some(o)) = pair else {
                return Err(self.error(
                    "return",
                    "C2",
                    "state",
                    "an input and an output",
                    format!("{input} -> {output}"),
                ));
            };
            let (i, o) = (self.graph.type_of(*i), self.graph.type_of(o.value));
            if i != o {
                return Err(self.error(
                    "return",
                    "C3",
                    "a state keeps its type",
                    i.to_string(),
                    o.to_string(),
                ));
            }
            self.graph.states.push(State { input: *input, output: *output });
        }
        let keep = if self.simplify { self.live() } else { vec![true; self.graph.nodes.len()] };
        Ok(compacted(self.graph, &keep))
    }

    /// Which nodes an output needs: by operands, or because they bind a symbol that a needed node mentions.
    fn live(&self) -> Vec<bool> {
        let graph = &self.graph;
        let mut live = vec![false; graph.nodes.len()];
        let mut symbols: FxHashSet<Symbol> = FxHashSet::default();
        graph.outputs.iter().for_each(|o| live[o.value.node.index()] = true);
        graph.inputs.iter().for_each(|v| live[v.node.index()] = true);
        for (id, node) in graph.nodes().rev() {
            let binds = || graph.bound_by(id).iter().any(|s| symbols.contains(s));
            if !live[id.index()] && !binds() {
                continue;
            }
            live[id.index()] = true;
            node.operands.iter().for_each(|v| live[v.node.index()] = true);
            let mut note = |dim: &Dim| {
                dim.for_each_symbol(&mut |s| {
                    symbols.insert(s.clone());
                })
            };
            node.types.iter().flat_map(|t| t.dims()).for_each(&mut note);
            node.op.for_each_dim(&mut note);
        }
        live
    }
}

fn sizes_fit(t: &TensorType) -> bool {
    if t.dims().iter().any(Dim::is_overflow) {
        return false;
    }
    // The product of the constant sizes bounds what a file can ask for; symbolic ones are checked when bound.
    let constants = t.dims().iter().filter_map(Dim::as_const);
    let mut product = 1i64;
    for n in constants.filter(|n| *n != 0) {
        match product.checked_mul(n) {
            Some(next) => product = next,
            None => return false,
        }
    }
    true
}

/// The graph with the kept nodes only, inputs first.
fn compacted(graph: Graph, keep: &[bool]) -> Graph {
    let mut order: Vec<NodeId> = graph.inputs.iter().map(|v| v.node).collect();
    let is_input: FxHashSet<NodeId> = order.iter().copied().collect();
    order.extend(
        (0..graph.nodes.len() as u32).map(NodeId).filter(|id| keep[id.index()] && !is_input.contains(id)),
    );
    let mut new_id = vec![None; graph.nodes.len()];
    for (i, id) in order.iter().enumerate() {
        new_id[id.index()] = Some(NodeId(i as u32));
    }
    let renamed = |v: Value| Value { node: new_id[v.node.index()].unwrap_or(v.node), ..v };
    let mut nodes: Vec<Option<Node>> = graph.nodes.into_iter().map(Some).collect();
    Graph {
        nodes: order
            .iter()
            .filter_map(|id| nodes[id.index()].take())
            .map(|node| Node { operands: node.operands.iter().map(|v| renamed(*v)).collect(), ..node })
            .collect(),
        inputs: graph.inputs.iter().map(|v| renamed(*v)).collect(),
        outputs: graph.outputs.into_iter().map(|o| Output { value: renamed(o.value), ..o }).collect(),
        checks: ordered_checks(graph.checks, &new_id),
        name: graph.name,
        states: graph.states,
        symbols: graph.symbols,
    }
}

/// The checks of the nodes that are left, in the order of the nodes, each once a node.
fn ordered_checks(checks: Vec<NodeCheck>, new_id: &[Option<NodeId>]) -> Vec<NodeCheck> {
    let mut checks: Vec<NodeCheck> =
        checks.into_iter().filter_map(|c| Some(NodeCheck { node: new_id[c.node.index()]?, ..c })).collect();
    checks.sort_by_key(|c| c.node);
    let mut ordered: Vec<NodeCheck> = Vec::with_capacity(checks.len());
    for check in checks {
        let of_node = ordered.iter().rev().take_while(|c| c.node == check.node);
        if !of_node.into_iter().any(|c| *c == check) {
            ordered.push(check);
        }
    }
    ordered
}

#[cfg(test)]
mod tests;
