//! The structural hash: equal for graphs that compute the same by the same nodes, whatever their names and
//! locations. It is the key of compilation caches, the same in every run.

use crate::graph::Graph;
use crate::text::print;
use xxhash_rust::xxh3::xxh3_128;

/// A 128-bit hash of the graph's structure: operations, attributes, types, operands, outputs, states, symbols and
/// constants by content; not node locations, the graph's own name, or names of inputs and outputs.
pub fn structural_hash(graph: &Graph) -> u128 {
    let mut anonymous = graph.clone();
    anonymous.name = "".into();
    for node in &mut anonymous.nodes {
        node.locations = Default::default();
    }
    for (i, output) in anonymous.outputs.iter_mut().enumerate() {
        output.name = i.to_string().into();
    }
    let inputs = anonymous.inputs.clone();
    for (i, value) in inputs.iter().enumerate() {
        let node = &mut anonymous.nodes[value.node.index()];
        let ty = node.types[0].clone();
        node.op = crate::op::source::Input { name: i.to_string().into(), ty }.into();
    }
    xxh3_128(print(&anonymous).as_bytes())
}
