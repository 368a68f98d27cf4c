//! Rebuilding a graph node by node: what every pass stands on.
//!
//! A pass never patches: it walks the old graph in order, and for each node either says what stands for it in the new
//! one or lets it be copied. The builder folds, merges equal nodes, infers types, and drops what nothing needs.

use rlx_ir::builder::Values;
use rlx_ir::op::control::{Call, If, Scan, While};
use rlx_ir::{Builder, Graph, Node, NodeId, Op, Primitive, TypeError, Value};
use std::sync::Arc;

/// What a rule sees of the node that it may replace.
pub struct Site<'a> {
    /// The old graph.
    pub graph: &'a Graph,
    /// The node's index in it.
    pub id: NodeId,
    /// The node.
    pub node: &'a Node,
    /// Its operands in the new graph, without those that nothing stands for.
    pub operands: &'a [Value],
    /// The results in the new graph of all nodes before this one, by their index in the old.
    pub values: &'a [Values],
}

impl Site<'_> {
    /// What stands for a value of the old graph in the new one. The value must be of an earlier node.
    pub fn new_value(&self, old: Value) -> Value {
        self.values[old.node.index()][old.output as usize]
    }
}

/// A rule: the results that stand for a node (none if nothing will ask for them), or `None` to copy it.
pub type Rule<'r> = dyn FnMut(&mut Builder, &Site<'_>) -> Result<Option<Values>, TypeError> + 'r;

/// Rebuilds `graph` with `rule` into `builder`, which has the graph's name. Subgraphs of control flow are first
/// rewritten by `nested`.
pub fn rewrite(
    graph: &Graph,
    mut builder: Builder,
    nested: &mut dyn FnMut(&Graph) -> Result<Graph, TypeError>,
    rule: &mut Rule<'_>,
) -> Result<Graph, TypeError> {
    for (symbol, info) in graph.symbols().iter() {
        builder.declare(symbol.clone(), info.clone());
    }
    let mut values: Vec<Values> = Vec::with_capacity(graph.nodes().len());
    let mut checks = graph.checks().iter().peekable();
    for (id, node) in graph.nodes() {
        builder.set_locations(node.locations.clone());
        let operands: Vec<Value> = node
            .operands
            .iter()
            .filter_map(|v| values[v.node.index()].get(v.output as usize).copied())
            .collect();
        let results = match &node.op {
            Op::Primitive(Primitive::Input(input)) => {
                Values::from_slice(&[builder.input(&input.name, input.ty.clone())?])
            }
            op => {
                match rule(&mut builder, &Site { graph, id, node, operands: &operands, values: &values })? {
                    Some(results) => results,
                    None => builder.push(with_subgraphs(op, nested)?, &operands)?,
                }
            }
        };
        // What had to hold before the node still has to, whatever stands for it now.
        while let Some(check) = checks.next_if(|c| c.node <= id) {
            if let Some(first) = results.first() {
                builder.add_check(first.node, &check.check);
            }
        }
        values.push(results);
    }
    let outputs: Vec<(&str, Value)> = graph
        .outputs()
        .iter()
        .map(|o| (&*o.name, values[o.value.node.index()][o.value.output as usize]))
        .collect();
    let states: Vec<(usize, usize)> = graph.states().iter().map(|s| (s.input, s.output)).collect();
    builder.finish_with_states(outputs, &states)
}

/// The operation with its subgraphs rewritten.
pub fn with_subgraphs(
    op: &Op,
    nested: &mut dyn FnMut(&Graph) -> Result<Graph, TypeError>,
) -> Result<Op, TypeError> {
    let Op::Primitive(primitive) = op else { return Ok(op.clone()) };
    Ok(match primitive {
        Primitive::If(op) => If {
            then_branch: Arc::new(nested(&op.then_branch)?),
            else_branch: Arc::new(nested(&op.else_branch)?),
            results: op.results.clone(),
        }
        .into(),
        Primitive::While(op) => While { body: Arc::new(nested(&op.body)?), ..op.clone() }.into(),
        Primitive::Scan(op) => Scan { body: Arc::new(nested(&op.body)?), ..op.clone() }.into(),
        Primitive::Call(op) => Call { body: Arc::new(nested(&op.body)?) }.into(),
        _ => op.clone(),
    })
}

/// The subgraphs of an operation.
pub fn subgraphs(op: &Op) -> Vec<&Arc<Graph>> {
    let Op::Primitive(primitive) = op else { return Vec::new() };
    match primitive {
        Primitive::If(op) => vec![&op.then_branch, &op.else_branch],
        Primitive::While(op) => vec![&op.body],
        Primitive::Scan(op) => vec![&op.body],
        Primitive::Call(op) => vec![&op.body],
        _ => Vec::new(),
    }
}
