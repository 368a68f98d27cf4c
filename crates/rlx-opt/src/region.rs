//! Regions: what a fused body computes, as a domain with levels.
//!
//! A region is a `call` whose body is a graph of elementwise operations, reductions over one set of axes, and the
//! movement that carries a reduced value back over those axes. It has a **domain** (sizes) and **axes** that its
//! reductions run over. Each value of the body is *full* (an element for each index of the domain) or *row* (one for
//! each index of the kept axes). All movement of operands (transposes, slices, broadcasts) stays outside as views, so an
//! operand's access map is its view's strides; the body is an exact account of the region, and inlining it undoes the
//! fusion.

use rlx_ir::op::movement::Broadcast;
use rlx_ir::{Composite, Dim, Graph, Node, Op, Primitive, TensorType};

/// Over which indices a value of a region has elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// Every index of the domain.
    Full,
    /// Every index of the axes that are not reduced.
    Row,
}

/// The index space of a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// The sizes.
    pub domain: Vec<Dim>,
    /// The axes that reductions run over, increasing; empty if there are none.
    pub axes: Vec<usize>,
}

impl Space {
    /// A space without reductions.
    pub fn map(domain: &[Dim]) -> Space {
        Space { domain: domain.to_vec(), axes: Vec::new() }
    }

    /// The sizes of a row value with reduced axes dropped.
    pub fn dropped(&self) -> Vec<Dim> {
        self.domain
            .iter()
            .enumerate()
            .filter(|(i, _)| !self.axes.contains(i))
            .map(|(_, d)| d.clone())
            .collect()
    }

    /// The sizes of a row value with reduced axes kept as 1.
    pub fn kept(&self) -> Vec<Dim> {
        self.domain
            .iter()
            .enumerate()
            .map(|(i, d)| if self.axes.contains(&i) { Dim::ONE } else { d.clone() })
            .collect()
    }

    /// The level of a value with these sizes; `None` if it has no place in this space, or could have two.
    pub fn level(&self, dims: &[Dim]) -> Option<Level> {
        if dims == self.domain {
            // Reduced axes of constant size 1 make row and full look alike; full is right for both.
            return Some(Level::Full);
        }
        let row = !self.axes.is_empty() && (dims == self.dropped() || dims == self.kept());
        row.then_some(Level::Row)
    }

    /// Whether full and row values have different sizes, so that [`Self::level`] tells them apart.
    pub fn is_clear(&self) -> bool {
        self.axes.is_empty() || (self.domain != self.kept())
    }
}

/// A fused body with the levels of its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// The index space.
    pub space: Space,
    /// The level of each node's value, inputs included, by node index.
    pub levels: Vec<Level>,
}

/// Whether this is an operation on each element by itself. Activations are, where a target keeps them.
pub fn is_elementwise(op: &Op) -> bool {
    let primitive = match op {
        Op::Primitive(primitive) => primitive,
        Op::Composite(composite) => return matches!(composite, Composite::Activation(_)),
    };
    matches!(
        primitive,
        Primitive::Unary(_)
            | Primitive::Binary(_)
            | Primitive::Compare(_)
            | Primitive::Select(_)
            | Primitive::Cast(_)
    )
}

impl Region {
    /// The region that a body computes; `None` if it is not one.
    pub fn of(body: &Graph) -> Option<Region> {
        let mut space: Option<Space> = None;
        for (_, node) in body.nodes() {
            if let Op::Primitive(Primitive::Reduce(reduce)) = &node.op {
                let domain = body.type_of(node.operands[0]).dims().to_vec();
                let found = Space { domain, axes: reduce.axes.clone() };
                match &space {
                    Some(known) if *known != found => return None,
                    _ => space = Some(found),
                }
            }
        }
        let space = match space {
            Some(space) => space,
            None => Space::map(body.type_of(body.outputs().first()?.value).dims()),
        };
        if !space.is_clear() {
            return None;
        }
        let mut levels = Vec::with_capacity(body.nodes().len());
        for (_, node) in body.nodes() {
            let [t] = node.types.as_slice() else { return None };
            levels.push(node_level(body, node, t, &space)?);
        }
        Some(Region { space, levels })
    }
}

fn node_level(body: &Graph, node: &Node, t: &TensorType, space: &Space) -> Option<Level> {
    let of = |i: usize| space.level(body.type_of(node.operands[i]).dims());
    let level = space.level(t.dims())?;
    if let Op::Composite(_) = node.op {
        return (is_elementwise(&node.op) && of(0) == Some(level)).then_some(level);
    }
    let Op::Primitive(primitive) = &node.op else { return None };
    let fits = match primitive {
        Primitive::Input(_) => true,
        Primitive::Constant(_) => t.rank() == 0,
        Primitive::Reduce(_) => of(0) == Some(Level::Full) && level == Level::Row,
        Primitive::Reshape(_) => of(0) == Some(Level::Row) && level == Level::Row,
        Primitive::Broadcast(_) => {
            of(0) == Some(Level::Row) && level == Level::Full && carries(body, node, space)
        }
        _ if is_elementwise(&node.op) => (0..node.operands.len()).all(|i| of(i) == Some(level)),
        _ => false,
    };
    fits.then_some(level)
}

/// Whether a broadcast takes a row value with its axes kept over the reduced axes.
fn carries(body: &Graph, node: &Node, space: &Space) -> bool {
    let Op::Primitive(Primitive::Broadcast(Broadcast { dims })) = &node.op else { return false };
    let from = body.type_of(node.operands[0]).dims();
    *dims == space.domain && from == space.kept()
}
