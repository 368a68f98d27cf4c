//! Movement past elementwise operations, toward its users: a broadcast always (what is repeated is computed once), a
//! transpose or a reshape where every path of users leads to another one that it merges with.

use super::{built, built1};
use crate::region::is_elementwise;
use rlx_ir::op::elementwise::BinaryOp;
use rlx_ir::{Builder, Dim, Graph, NodeId, Op, Primitive, TypeError, Value};

/// Which movement the users of a node would merge with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Wish {
    transpose: bool,
    reshape: bool,
}

/// The wishes of a graph's nodes.
pub(super) struct Wishes(Vec<Wish>);

impl Wishes {
    /// One walk from the last node to the first: a node has a wish if all its users have it, or are what it is for.
    pub(super) fn of(graph: &Graph) -> Wishes {
        let count = graph.nodes().len();
        let mut wishes: Vec<Option<Wish>> = vec![None; count];
        for output in graph.outputs() {
            wishes[output.value.node.index()] = Some(Wish::default());
        }
        for (id, node) in graph.nodes().rev() {
            let own = wishes[id.index()].unwrap_or_default();
            let asks = match &node.op {
                Op::Primitive(Primitive::Transpose(_)) => Wish { transpose: true, reshape: false },
                Op::Primitive(Primitive::Reshape(_)) => Wish { transpose: false, reshape: true },
                op if is_elementwise(op) => own,
                _ => Wish::default(),
            };
            for v in &node.operands {
                let wish = &mut wishes[v.node.index()];
                *wish = Some(match *wish {
                    None => asks,
                    Some(w) => {
                        Wish { transpose: w.transpose && asks.transpose, reshape: w.reshape && asks.reshape }
                    }
                });
            }
        }
        Wishes(wishes.into_iter().map(Option::unwrap_or_default).collect())
    }

    pub(super) fn of_node(&self, id: NodeId) -> Wish {
        self.0.get(id.index()).copied().unwrap_or_default()
    }
}

/// The movement under an operand, and what it moves.
fn movement(b: &Builder, v: Value) -> Option<(&Op, Value)> {
    let node = b.graph().node(v.node);
    match &node.op {
        Op::Primitive(Primitive::Broadcast(_) | Primitive::Transpose(_) | Primitive::Reshape(_)) => {
            Some((&node.op, *node.operands.first()?))
        }
        _ => None,
    }
}

/// A scalar that is repeated, or is the whole value.
fn scalar(b: &Builder, v: Value) -> Option<Value> {
    if b.rank(v) == 0 {
        return Some(v);
    }
    let (Op::Primitive(Primitive::Broadcast(_)), source) = movement(b, v)? else { return None };
    (b.rank(source) == 0).then_some(source)
}

/// Whether an element may fail, so that it must not be computed where none was asked for.
fn may_fail(b: &Builder, op: &Op, operands: &[Value]) -> bool {
    let divides =
        matches!(op, Op::Primitive(Primitive::Binary(b)) if matches!(b.op, BinaryOp::Div | BinaryOp::Rem));
    divides && operands.first().is_some_and(|v| b.dtype(*v).is_int())
}

/// f(M(x), M(y), scalar …) as M(f(x, y, scalar …)).
pub(super) fn sunk(
    b: &mut Builder,
    op: &Op,
    operands: &[Value],
    wish: Wish,
) -> Result<Option<Value>, TypeError> {
    if !is_elementwise(op) || may_fail(b, op, operands) || operands.iter().any(|v| is_block(b, *v)) {
        return Ok(None);
    }
    // The movement of the operand that moves most: all others must move alike, or be scalars.
    let mut found: Option<(Op, Vec<Dim>)> = None;
    let mut sources: Vec<Option<Value>> = Vec::with_capacity(operands.len());
    for v in operands {
        if scalar(b, *v).is_some() {
            sources.push(None);
            continue;
        }
        let Some((moving, source)) = movement(b, *v) else { return Ok(None) };
        let dims = b.shape(source).to_vec();
        match &found {
            Some((other, from)) if other != moving || *from != dims => return Ok(None),
            Some(_) => {}
            None => found = Some((moving.clone(), dims)),
        }
        sources.push(Some(source));
    }
    let Some((moving, dims)) = found else { return all_scalars(b, op, operands) };
    let allowed = match &moving {
        Op::Primitive(Primitive::Transpose(_)) => wish.transpose,
        Op::Primitive(Primitive::Reshape(_)) => wish.reshape,
        _ => true,
    };
    if !allowed {
        return Ok(None);
    }
    let mut inner = Vec::with_capacity(operands.len());
    for (v, source) in operands.iter().zip(sources) {
        inner.push(match (source, scalar(b, *v)) {
            (Some(source), _) => source,
            (None, Some(scalar)) => b.broadcast_to(scalar, &dims)?,
            (None, None) => return Ok(None),
        });
    }
    let result = built(b, op.clone(), &inner, wish)?[0];
    b.push1(moving, &[result]).map(Some)
}

fn is_block(b: &Builder, v: Value) -> bool {
    matches!(b.dtype(v), rlx_ir::DType::Block(_))
}

/// An operation on repeated scalars, of which one at least is no scalar itself, on the scalars.
fn all_scalars(b: &mut Builder, op: &Op, operands: &[Value]) -> Result<Option<Value>, TypeError> {
    let Some(first) = operands.first() else { return Ok(None) };
    let dims = b.shape(*first);
    if dims.rank() == 0 {
        return Ok(None);
    }
    let scalars: Option<Vec<Value>> = operands.iter().map(|v| scalar(b, *v)).collect();
    let Some(scalars) = scalars else { return Ok(None) };
    let result = built1(b, op.clone(), &scalars)?;
    b.broadcast_to(result, &dims).map(Some)
}
