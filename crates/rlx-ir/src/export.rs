//! Graphs for other programs: JSON, and DOT for drawing.

use crate::graph::{Graph, Node, Value};
use crate::op::{Op, Primitive};
use crate::text::Printer;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// The graph as JSON: `name`, `inputs`, `outputs`, `states`, `symbols`, `nodes` (each with `op`, `attributes` in the
/// text form, `operands` as \[node, output\], `types`, `locations`).
pub fn to_json(graph: &Graph) -> Json {
    let value = |v: Value| json!([v.node.index(), v.output]);
    json!({
        "name": graph.name(),
        "inputs": graph.inputs().iter().map(|v| json!({
            "name": graph.input_name(*v), "type": graph.type_of(*v).to_string(), "value": value(*v),
        })).collect::<Vec<_>>(),
        "outputs": graph.outputs().iter().map(|o| json!({
            "name": &*o.name, "type": graph.type_of(o.value).to_string(), "value": value(o.value),
        })).collect::<Vec<_>>(),
        "states": graph.states().iter().map(|s| json!([s.input, s.output])).collect::<Vec<_>>(),
        "symbols": graph.symbols().iter().map(|(s, info)| json!({
            "name": s.name(), "min": info.range.min, "max": info.range.max,
            "multiple_of": info.multiple_of, "likely": info.likely,
        })).collect::<Vec<_>>(),
        "nodes": graph.nodes().map(|(_, node)| json!({
            "op": node.op.name(),
            "attributes": attributes(node),
            "operands": node.operands.iter().map(|v| value(*v)).collect::<Vec<_>>(),
            "types": node.types.iter().map(|t| t.to_string()).collect::<Vec<_>>(),
            "locations": node.locations.iter().collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn attributes(node: &Node) -> String {
    Printer::fields_of(&node.op)
}

/// The graph in the DOT language of Graphviz: a box a node, an arrow an operand. Constants are left out unless they
/// are an output.
pub fn to_dot(graph: &Graph) -> String {
    let mut dot = String::new();
    let _ = writeln!(dot, "digraph {:?} {{", graph.name());
    let _ = writeln!(dot, "  node [shape=box, fontname=\"sans-serif\", fontsize=10];");
    let is_constant = |node: &Node| matches!(node.op, Op::Primitive(Primitive::Constant(_)));
    for (id, node) in graph.nodes() {
        if is_constant(node) {
            continue;
        }
        let types: Vec<String> = node.types.iter().map(|t| t.to_string()).collect();
        let name = match &node.op {
            Op::Primitive(Primitive::Input(input)) => input.name.to_string(),
            op => op.name().to_string(),
        };
        let label = format!("{name}\n{}", types.join(", "));
        let _ = writeln!(dot, "  n{} [label={label:?}];", id.index());
        for value in &node.operands {
            if !is_constant(graph.node(value.node)) {
                let _ = writeln!(dot, "  n{} -> n{};", value.node.index(), id.index());
            }
        }
    }
    for (i, output) in graph.outputs().iter().enumerate() {
        let _ = writeln!(dot, "  out{i} [shape=ellipse, label={:?}];", output.name);
        if is_constant(graph.node(output.value.node)) {
            let t = graph.type_of(output.value);
            let _ = writeln!(dot, "  n{} [label={:?}];", output.value.node.index(), format!("constant\n{t}"));
        }
        let _ = writeln!(dot, "  n{} -> out{i};", output.value.node.index());
    }
    dot.push_str("}\n");
    dot
}
