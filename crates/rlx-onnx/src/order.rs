//! The order in which the nodes of a graph are imported: as they are in the file if that is right, else sorted so that
//! each comes after what it reads. Files must be sorted, but some writers do not keep to it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::ImportError;
use crate::import::node_name;
use crate::proto::{GraphProto, NodeProto};

/// Indices of the graph's nodes; a value that is defined twice, or a cycle, is an error.
pub(crate) fn order(graph: &GraphProto) -> Result<Vec<usize>, ImportError> {
    let mut defined: FxHashSet<&str> = FxHashSet::default();
    let duplicate = |name: &str, by: String| ImportError::Duplicate {
        graph: graph.name().to_owned(),
        name: name.to_owned(),
        by,
    };
    for input in &graph.input {
        if !defined.insert(input.name()) {
            return Err(duplicate(input.name(), "an input".to_owned()));
        }
    }
    // An initializer may give an input its value.
    let mut initialized: FxHashSet<&str> = FxHashSet::default();
    let sparse = graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref());
    for tensor in graph.initializer.iter().chain(sparse) {
        if !initialized.insert(tensor.name()) {
            return Err(duplicate(tensor.name(), "an initializer".to_owned()));
        }
    }
    defined.extend(initialized);
    let redefined =
        |node: &NodeProto| node.output.iter().find(|name| defined.contains(name.as_str())).cloned();
    if let Some((node, name)) = graph.node.iter().find_map(|node| Some((node, redefined(node)?))) {
        return Err(duplicate(&name, format!("node {:?}", node_name(node))));
    }
    order_nodes(graph.name(), &graph.node)
}

/// Indices of nodes, sorted so that each comes after what it reads.
pub(crate) fn order_nodes(graph: &str, nodes: &[NodeProto]) -> Result<Vec<usize>, ImportError> {
    let mut producer: FxHashMap<&str, usize> = FxHashMap::default();
    for (i, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            if producer.insert(name, i).is_some() {
                let by = format!("node {:?}", node_name(node));
                return Err(ImportError::Duplicate { graph: graph.to_owned(), name: name.clone(), by });
            }
        }
    }
    let needs: Vec<FxHashSet<usize>> = nodes
        .iter()
        .map(|node| {
            let mut read = FxHashSet::default();
            reads(node, &mut read);
            read.iter().filter_map(|name| producer.get(name).copied()).collect()
        })
        .collect();
    if needs.iter().enumerate().all(|(i, needs)| needs.iter().all(|n| *n < i)) {
        return Ok((0..nodes.len()).collect());
    }
    sorted(graph, nodes, &needs)
}

fn sorted(graph: &str, nodes: &[NodeProto], needs: &[FxHashSet<usize>]) -> Result<Vec<usize>, ImportError> {
    let mut waiting: Vec<usize> = needs.iter().map(FxHashSet::len).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (user, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|n| users[*n].push(user));
    }
    let mut ready: std::collections::BTreeSet<usize> =
        (0..nodes.len()).filter(|i| waiting[*i] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for user in &users[next] {
            waiting[*user] -= 1;
            if waiting[*user] == 0 {
                ready.insert(*user);
            }
        }
    }
    if order.len() == nodes.len() {
        return Ok(order);
    }
    let done: FxHashSet<usize> = order.into_iter().collect();
    let names = (0..nodes.len()).filter(|i| !done.contains(i)).take(8);
    Err(ImportError::Cycle { graph: graph.to_owned(), nodes: names.map(|i| node_name(&nodes[i])).collect() })
}

/// The names that a node reads, those that its subgraphs read from outside included.
fn reads<'m>(node: &'m NodeProto, read: &mut FxHashSet<&'m str>) {
    read.extend(node.input.iter().map(String::as_str).filter(|name| !name.is_empty()));
    for attribute in &node.attribute {
        for graph in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
            reads_of_graph(graph, read);
        }
    }
}

fn reads_of_graph<'m>(graph: &'m GraphProto, read: &mut FxHashSet<&'m str>) {
    let mut inside = FxHashSet::default();
    graph.node.iter().for_each(|node| reads(node, &mut inside));
    inside.extend(graph.output.iter().map(|output| output.name()));
    for input in &graph.input {
        inside.remove(input.name());
    }
    for tensor in &graph.initializer {
        inside.remove(tensor.name());
    }
    for node in &graph.node {
        node.output.iter().for_each(|name| {
            inside.remove(name.as_str());
        });
    }
    read.extend(inside);
}

/// The names that graphs read from outside, sorted.
pub(crate) fn free_names<'m>(graphs: impl IntoIterator<Item = &'m GraphProto>) -> Vec<&'m str> {
    let mut read = FxHashSet::default();
    graphs.into_iter().for_each(|graph| reads_of_graph(graph, &mut read));
    let mut names: Vec<&str> = read.into_iter().collect();
    names.sort_unstable();
    names
}
