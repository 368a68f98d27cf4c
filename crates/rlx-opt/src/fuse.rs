//! Fuse: elementwise operations and reductions gathered in [regions](crate::region).
//!
//! From each node that nothing has taken yet, last first, a region grows over its operands: a producer joins if all of
//! its uses are in the region, its sizes fit the region's space, the target can run it there, and no path leads from the
//! region through a node outside into the producer. What is gathered becomes a `call` with the nodes as its body.

use crate::region::{Level, Region, Space, is_elementwise};
use crate::rewrite::rewrite;
use crate::target::Target;
use rlx_ir::op::control::Call;
use rlx_ir::{Builder, Graph, Node, NodeId, Op, Primitive, TensorType, TypeError, Value, Values};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most nodes in one region: live tiles must fit the first-level cache.
const MAX_NODES: usize = 64;

/// The most nodes looked at to show that no path leads out of a region and back.
const MAX_PATH_NODES: usize = 512;

/// How far back a broadcast is followed to the reduction that it carries.
const MAX_TRACE: usize = 16;

/// The graph with regions as calls. `notes` gets how many, and of how many nodes.
pub fn fuse(graph: &Graph, target: &dyn Target, notes: &mut Vec<String>) -> Result<Graph, TypeError> {
    let regions = regions(graph, target);
    let (count, gathered) = (regions.len(), regions.iter().map(|r| r.members.len()).sum::<usize>());
    if count > 0 {
        notes.push(format!("{}: {count} regions of {gathered} nodes", graph.name()));
    }
    let mut roots: FxHashMap<NodeId, &Gathered> = FxHashMap::default();
    let mut inner: FxHashSet<NodeId> = FxHashSet::default();
    for region in &regions {
        roots.insert(region.root, region);
        inner.extend(region.members.iter().filter(|id| **id != region.root));
    }
    let mut nested_notes = Vec::new();
    let fused = rewrite(
        graph,
        Builder::new(graph.name()),
        &mut |g| fuse(g, target, &mut nested_notes),
        &mut |b, site| {
            if inner.contains(&site.id) {
                // It lives on in the body.
                return Ok(Some(Values::new()));
            }
            let Some(region) = roots.get(&site.id) else { return Ok(None) };
            let operands: Vec<Value> = region.operands.iter().map(|v| site.new_value(*v)).collect();
            let results = b.push(Call { body: Arc::clone(&region.body) }, &operands)?;
            for id in &region.members {
                // Checks are in the order of their nodes.
                let from = graph.checks().partition_point(|c| c.node < *id);
                for check in graph.checks()[from..].iter().take_while(|c| c.node == *id) {
                    b.add_check(results[0].node, &check.check);
                }
            }
            Ok(Some(results))
        },
    )?;
    notes.append(&mut nested_notes);
    Ok(fused)
}

/// The graph with every region's body back in its place.
pub fn unfuse(graph: &Graph) -> Result<Graph, TypeError> {
    crate::legalise::without_calls(graph)
}

struct Gathered {
    root: NodeId,
    members: BTreeSet<NodeId>,
    body: Arc<Graph>,
    operands: Vec<Value>,
}

/// Uses of each node: by which nodes, and whether it is an output.
struct Uses {
    users: Vec<Vec<NodeId>>,
    output: Vec<bool>,
}

impl Uses {
    fn of(graph: &Graph) -> Uses {
        let n = graph.nodes().len();
        let mut uses = Uses { users: vec![Vec::new(); n], output: vec![false; n] };
        for (id, node) in graph.nodes() {
            for v in &node.operands {
                uses.users[v.node.index()].push(id);
            }
        }
        for o in graph.outputs() {
            uses.output[o.value.node.index()] = true;
        }
        uses
    }
}

fn types<'g>(graph: &'g Graph, node: &Node) -> Vec<&'g TensorType> {
    node.operands.iter().map(|v| graph.type_of(*v)).collect()
}

fn regions(graph: &Graph, target: &dyn Target) -> Vec<Gathered> {
    let uses = Uses::of(graph);
    let mut taken: FxHashSet<NodeId> = FxHashSet::default();
    let mut found = Vec::new();
    for (id, node) in graph.nodes().rev() {
        if taken.contains(&id) || !starts(graph, node, target) {
            continue;
        }
        let Some(region) = grow(graph, target, &uses, &taken, id) else { continue };
        taken.extend(region.members.iter().copied());
        found.push(region);
    }
    found.reverse();
    found
}

fn is_reduce(op: &Op) -> bool {
    matches!(op, Op::Primitive(Primitive::Reduce(_)))
}

fn starts(graph: &Graph, node: &Node, target: &dyn Target) -> bool {
    (is_elementwise(&node.op) || is_reduce(&node.op)) && target.fusible(node, &types(graph, node))
}

/// The region that grows from `root`, if it is more than one node.
fn grow(
    graph: &Graph,
    target: &dyn Target,
    uses: &Uses,
    taken: &FxHashSet<NodeId>,
    root: NodeId,
) -> Option<Gathered> {
    let node = graph.node(root);
    let mut growth = Growth {
        graph,
        members: BTreeSet::from([root]),
        space: match &node.op {
            Op::Primitive(Primitive::Reduce(r)) => {
                Space { domain: graph.type_of(node.operands[0]).dims().to_vec(), axes: r.axes.clone() }
            }
            _ => Space::map(node.types[0].dims()),
        },
    };
    if !growth.space.is_clear() {
        return None;
    }
    let mut queue: Vec<NodeId> = node.operands.iter().map(|v| v.node).collect();
    while let Some(id) = queue.pop() {
        if growth.members.len() >= MAX_NODES || growth.members.contains(&id) || taken.contains(&id) {
            continue;
        }
        let all_inside = uses.users[id.index()].iter().all(|user| growth.members.contains(user));
        if uses.output[id.index()] || !all_inside {
            continue;
        }
        let producer = graph.node(id);
        let runs = match &producer.op {
            Op::Primitive(Primitive::Broadcast(_) | Primitive::Reshape(_)) => true,
            op => (is_elementwise(op) || is_reduce(op)) && target.fusible(producer, &types(graph, producer)),
        };
        let Some(space) = runs.then(|| growth.space_with(id)).flatten() else { continue };
        if growth.leads_back(id) {
            continue;
        }
        growth.space = space;
        growth.members.insert(id);
        queue.extend(producer.operands.iter().map(|v| v.node));
        // Operands that could not join while one of their users was outside may be able to now.
        queue.sort_unstable();
        queue.dedup();
    }
    growth.without_loose_ends();
    if growth.members.len() < 2 {
        return None;
    }
    // What is no region after all, as its parts do not fit one space, is left as it is.
    let (body, operands) = outline(graph, root, &growth.members).ok()?;
    Region::of(&body)?;
    Some(Gathered { root, members: growth.members, body: Arc::new(body), operands })
}

struct Growth<'g> {
    graph: &'g Graph,
    members: BTreeSet<NodeId>,
    space: Space,
}

impl Growth<'_> {
    /// The space with node `id` in it; `None` if it does not fit.
    fn space_with(&self, id: NodeId) -> Option<Space> {
        let node = self.graph.node(id);
        let dims = node.types[0].dims();
        let from = || self.graph.type_of(node.operands[0]).dims();
        match &node.op {
            Op::Primitive(Primitive::Reduce(reduce)) => {
                let space = Space { domain: from().to_vec(), axes: reduce.axes.clone() };
                if !space.is_clear() {
                    return None;
                }
                if self.space.axes.is_empty() && dims == self.space.domain {
                    // So far a map over what is now the rows of a larger space.
                    return Some(space);
                }
                (self.space == space).then_some(space)
            }
            Op::Primitive(Primitive::Broadcast(_)) => {
                let axes = self.carried_axes(id)?;
                let space = Space { domain: dims.to_vec(), axes };
                let grows = self.space.axes.is_empty() && self.space.domain == space.domain;
                (space.is_clear() && (grows || self.space == space) && from() == space.kept())
                    .then_some(space)
            }
            Op::Primitive(Primitive::Reshape(_)) => {
                let row = |dims: &[_]| self.space.level(dims) == Some(Level::Row);
                if self.space.axes.is_empty() {
                    // The rows of a reduction that may come next: kept and dropped axes.
                    let axes = self.carried_axes(id)?;
                    let domain = self.reduced_domain(id)?;
                    let space = Space { domain, axes };
                    let known = self.space.domain == space.kept() || self.space.domain == space.dropped();
                    return (space.is_clear() && known && space.level(from()) == Some(Level::Row))
                        .then_some(space);
                }
                (row(dims) && row(from())).then(|| self.space.clone())
            }
            _ => self.space.level(dims).map(|_| self.space.clone()),
        }
    }

    /// The reduction that a row value comes from, through row operations.
    fn reduction(&self, id: NodeId) -> Option<&Node> {
        let mut pending = vec![id];
        for _ in 0..MAX_TRACE {
            let node = self.graph.node(pending.pop()?);
            if is_reduce(&node.op) {
                return Some(node);
            }
            let passes = is_elementwise(&node.op)
                || matches!(node.op, Op::Primitive(Primitive::Reshape(_) | Primitive::Broadcast(_)));
            if passes {
                pending.extend(node.operands.iter().map(|v| v.node));
            }
        }
        None
    }

    fn carried_axes(&self, id: NodeId) -> Option<Vec<usize>> {
        match &self.reduction(id)?.op {
            Op::Primitive(Primitive::Reduce(reduce)) => Some(reduce.axes.clone()),
            _ => None,
        }
    }

    fn reduced_domain(&self, id: NodeId) -> Option<Vec<rlx_ir::Dim>> {
        let reduce = self.reduction(id)?;
        Some(self.graph.type_of(reduce.operands[0]).dims().to_vec())
    }

    /// Whether a value of the region reaches `id` through nodes outside of it (or that could not be ruled out soon).
    fn leads_back(&self, id: NodeId) -> bool {
        let Some(first) = self.members.first().copied() else { return false };
        let mut stack: Vec<NodeId> = self.graph.node(id).operands.iter().map(|v| v.node).collect();
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        while let Some(at) = stack.pop() {
            if self.members.contains(&at) {
                return true;
            }
            if at < first || !seen.insert(at) {
                continue;
            }
            if seen.len() > MAX_PATH_NODES {
                return true;
            }
            stack.extend(self.graph.node(at).operands.iter().map(|v| v.node));
        }
        false
    }

    /// Drops movement that carries nothing: a broadcast or reshape whose operand stayed outside is better a view.
    fn without_loose_ends(&mut self) {
        loop {
            let loose = self.members.iter().copied().find(|id| {
                let node = self.graph.node(*id);
                let moves = matches!(node.op, Op::Primitive(Primitive::Broadcast(_) | Primitive::Reshape(_)));
                moves && !self.members.contains(&node.operands[0].node)
            });
            match loose {
                Some(id) => self.members.remove(&id),
                None => return,
            };
        }
    }
}

/// The body of a region, and its operands in the graph around it.
fn outline(
    graph: &Graph,
    root: NodeId,
    members: &BTreeSet<NodeId>,
) -> Result<(Graph, Vec<Value>), TypeError> {
    let mut b = Builder::verbatim("region");
    for (symbol, info) in graph.symbols().iter() {
        b.declare(symbol.clone(), info.clone());
    }
    let mut operands: Vec<Value> = Vec::new();
    let mut values: FxHashMap<Value, Value> = FxHashMap::default();
    for id in members {
        for v in &graph.node(*id).operands {
            if !members.contains(&v.node) && !operands.contains(v) {
                values.insert(*v, b.input(&format!("x{}", operands.len()), graph.type_of(*v).clone())?);
                operands.push(*v);
            }
        }
    }
    for id in members {
        let node = graph.node(*id);
        b.set_locations(node.locations.clone());
        let inner: Vec<Value> = node.operands.iter().map(|v| values[v]).collect();
        let result = b.push1(node.op.clone(), &inner)?;
        values.insert(Value { node: *id, output: 0 }, result);
    }
    let body = b.finish([("y", values[&Value { node: root, output: 0 }])])?;
    Ok((body, operands))
}
