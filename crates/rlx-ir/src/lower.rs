//! Lowering: composites replaced by their decompositions, where a predicate does not keep them.

use crate::builder::{Builder, Values};
use crate::error::TypeError;
use crate::graph::{Graph, Node, NodeId, Value};
use crate::op::control::{Call, If, Scan, While};
use crate::op::{Composite, Op, Primitive};
use crate::types::TensorType;
use std::sync::Arc;

/// A decomposition that does not give what its operation promises is a fault of that operation.
fn check_types(node: &Node, b: &Builder, values: &Values) -> Result<(), TypeError> {
    let found: Vec<&TensorType> = values.iter().map(|v| b.type_of(*v)).collect();
    let expected: Vec<&TensorType> = node.types.iter().collect();
    if found == expected {
        return Ok(());
    }
    Err(TypeError::new(crate::error::TypeErrorParts {
        op: node.op.name().to_string(),
        label: "decomposition",
        operand: None,
        what: "result types".into(),
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
        locations: node.locations.clone(),
    }))
}

/// Whether a composite on operands of these types stays as it is.
pub type Keep<'k> = dyn Fn(&Composite, &[&TensorType]) -> bool + 'k;

/// The graph with every composite decomposed, again and again, that `keep` does not accept; subgraphs included.
pub fn lower(graph: &Graph, keep: &dyn Fn(&Composite) -> bool) -> Result<Graph, TypeError> {
    lower_typed(graph, &|composite, _| keep(composite))
}

/// As [`lower()`], with the operands' types to decide by.
pub fn lower_typed(graph: &Graph, keep: &Keep<'_>) -> Result<Graph, TypeError> {
    let mut b = Builder::new(graph.name());
    for (symbol, info) in graph.symbols().iter() {
        b.declare(symbol.clone(), info.clone());
    }
    let mut values: Vec<Values> = Vec::with_capacity(graph.nodes().len());
    for (id, node) in graph.nodes() {
        b.set_locations(node.locations.clone());
        let operands: Vec<Value> =
            node.operands.iter().map(|v| values[v.node.index()][v.output as usize]).collect();
        let results = match &node.op {
            Op::Primitive(Primitive::Input(input)) => {
                Values::from_slice(&[b.input(&input.name, input.ty.clone())?])
            }
            Op::Composite(composite) if !keep(composite, &types(graph, node)) => {
                let results = expand(&mut b, composite, &operands, keep)?;
                check_types(node, &b, &results)?;
                keep_checks(&mut b, graph, id, &results);
                results
            }
            op => b.push(with_lowered_subgraphs(op, keep)?, &operands)?,
        };
        values.push(results);
    }
    let outputs: Vec<(String, Value)> = graph
        .outputs()
        .iter()
        .map(|o| (o.name.to_string(), values[o.value.node.index()][o.value.output as usize]))
        .collect();
    let states: Vec<(usize, usize)> = graph.states().iter().map(|s| (s.input, s.output)).collect();
    b.finish_with_states(outputs.iter().map(|(n, v)| (n.as_str(), *v)), &states)
}

fn types<'g>(graph: &'g Graph, node: &Node) -> Vec<&'g TensorType> {
    node.operands.iter().map(|v| graph.type_of(*v)).collect()
}

/// What must hold before a node of `graph` runs must hold before what stands for it does: a composite's constraints need
/// not follow from those of its decomposition.
fn keep_checks(b: &mut Builder, graph: &Graph, id: NodeId, results: &Values) {
    let Some(first) = results.first() else { return };
    // Checks are in the order of their nodes.
    let from = graph.checks().partition_point(|c| c.node < id);
    for check in graph.checks()[from..].iter().take_while(|c| c.node == id) {
        b.add_check(first.node, &check.check);
    }
}

/// The decomposition of one composite, itself lowered, in the builder that it is used in.
fn expand(
    b: &mut Builder,
    composite: &Composite,
    operands: &[Value],
    keep: &Keep<'_>,
) -> Result<Values, TypeError> {
    let mut body = Builder::new(composite.name());
    for (symbol, info) in b.graph().symbols().iter() {
        body.declare(symbol.clone(), info.clone());
    }
    let mut inputs = Vec::with_capacity(operands.len());
    for (i, value) in operands.iter().enumerate() {
        inputs.push(match b.literal(*value) {
            // Constants go in as constants, so that sizes computed from them stay known.
            Some(literal) => body.constant(literal.clone()),
            None => body.input(&i.to_string(), b.type_of(*value).clone())?,
        });
    }
    let results = composite.decompose(&mut body, &inputs)?;
    let names: Vec<String> = (0..results.len()).map(|i| i.to_string()).collect();
    let body = body.finish(names.iter().map(String::as_str).zip(results))?;
    let body = lower_typed(&body, keep)?;
    inline(b, &body, &|name| name.parse::<usize>().ok().and_then(|i| operands.get(i)).copied())
}

/// Builds the nodes of `body` in `b`, with its inputs given by name; its outputs in order.
pub fn inline(
    b: &mut Builder,
    body: &Graph,
    input: &dyn Fn(&str) -> Option<Value>,
) -> Result<Values, TypeError> {
    for (symbol, info) in body.symbols().iter() {
        if !b.graph().symbols().contains(symbol) {
            b.declare(symbol.clone(), info.clone());
        }
    }
    let mut values: Vec<Values> = Vec::with_capacity(body.nodes().len());
    for (id, node) in body.nodes() {
        let operands: Vec<Value> =
            node.operands.iter().map(|v| values[v.node.index()][v.output as usize]).collect();
        values.push(match &node.op {
            Op::Primitive(Primitive::Input(i)) => match input(&i.name) {
                Some(value) => Values::from_slice(&[value]),
                None => Values::from_slice(&[b.input(&i.name, i.ty.clone())?]),
            },
            op => b.push(op.clone(), &operands)?,
        });
        if let Some(results) = values.last() {
            keep_checks(b, body, id, results);
        }
    }
    Ok(body.outputs().iter().map(|o| values[o.value.node.index()][o.value.output as usize]).collect())
}

fn with_lowered_subgraphs(op: &Op, keep: &Keep<'_>) -> Result<Op, TypeError> {
    let lowered = |g: &Arc<Graph>| lower_typed(g, keep).map(Arc::new);
    let Op::Primitive(primitive) = op else { return Ok(op.clone()) };
    Ok(match primitive {
        Primitive::If(op) => If {
            then_branch: lowered(&op.then_branch)?,
            else_branch: lowered(&op.else_branch)?,
            results: op.results.clone(),
        }
        .into(),
        Primitive::While(op) => While { body: lowered(&op.body)?, ..op.clone() }.into(),
        Primitive::Scan(op) => Scan { body: lowered(&op.body)?, ..op.clone() }.into(),
        Primitive::Call(op) => Call { body: lowered(&op.body)? }.into(),
        _ => op.clone(),
    })
}
