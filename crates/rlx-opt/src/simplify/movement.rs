//! Rules of movement: views of views become one view or none.

use super::built1;
use rlx_ir::op::contract::Dot;
use rlx_ir::op::movement::{Concat, Slice, Transpose};
use rlx_ir::{Builder, Dim, Op, Primitive, TypeError, Value};

type Ruled = Result<Option<Value>, TypeError>;

fn producer(b: &Builder, v: Value) -> Option<(&Primitive, &[Value])> {
    let node = b.graph().node(v.node);
    match &node.op {
        Op::Primitive(primitive) => Some((primitive, &node.operands)),
        Op::Composite(_) => None,
    }
}

/// A transpose that leaves the order of all axes but those of size 1 is a reshape, which meets its neighbours.
pub(super) fn transposes_of_ones(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let (Op::Primitive(Primitive::Transpose(Transpose { perm })), [x]) = (op, operands) else {
        return Ok(None);
    };
    let shape = b.shape(*x);
    if perm.len() != shape.rank() || perm.iter().any(|p| *p >= shape.rank()) {
        return Ok(None);
    }
    let mut moved = perm.iter().filter(|p| shape[**p] != Dim::ONE);
    let mut last = None;
    let ordered = moved.all(|p| last.replace(*p).is_none_or(|before| before < *p));
    if !ordered || matches!(b.dtype(*x), rlx_ir::DType::Block(_)) {
        return Ok(None);
    }
    let dims: Vec<Dim> = perm.iter().map(|p| shape[*p].clone()).collect();
    b.reshape(*x, &dims).map(Some)
}

/// A slice of a slice is one slice; a slice that is exactly one part of a concatenation is that part.
pub(super) fn slices(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let (Op::Primitive(Primitive::Slice(outer)), [x]) = (op, operands) else { return Ok(None) };
    let rank = b.rank(*x);
    if outer.starts.len() != rank || outer.sizes.len() != rank || outer.steps.len() != rank {
        return Ok(None);
    }
    match producer(b, *x) {
        Some((Primitive::Slice(inner), [source])) => {
            let (mut starts, mut steps) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
            for axis in 0..rank {
                let step = inner.steps[axis];
                let Some(both) = step.checked_mul(outer.steps[axis]) else { return Ok(None) };
                starts.push(&inner.starts[axis] + outer.starts[axis].clone() * step);
                steps.push(both);
            }
            let source = *source;
            built1(b, Slice { starts, sizes: outer.sizes.clone(), steps }, &[source]).map(Some)
        }
        Some((Primitive::Concat(concat), parts)) => Ok(part(b, outer, concat.axis, *x, parts)),
        _ => Ok(None),
    }
}

/// The part of a concatenation along `axis` that a slice takes.
fn part(b: &Builder, slice: &Slice, axis: usize, whole: Value, parts: &[Value]) -> Option<Value> {
    let shape = b.shape(whole);
    let others = (0..shape.rank()).filter(|i| *i != axis);
    let all = others
        .into_iter()
        .all(|i| slice.starts[i] == Dim::ZERO && slice.sizes[i] == shape[i] && slice.steps[i] == 1);
    if !all || slice.steps[axis] != 1 {
        return None;
    }
    let mut start = Dim::ZERO;
    for part in parts {
        let size = &b.type_of(*part).dims()[axis];
        if slice.starts[axis] == start && slice.sizes[axis] == *size {
            return (b.shape(*part)[..] == slice.sizes[..]).then_some(*part);
        }
        start = &start + size;
    }
    None
}

/// Neighbouring slices of one value are one slice, perhaps all of it.
pub(super) fn concatenations(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let Op::Primitive(Primitive::Concat(Concat { axis })) = op else { return Ok(None) };
    let mut parts: Vec<Value> = Vec::with_capacity(operands.len());
    for v in operands {
        let joined = match parts.last() {
            Some(last) => joined(b, *last, *v, *axis)?,
            None => None,
        };
        match joined {
            Some(both) => {
                parts.pop();
                parts.push(both);
            }
            None => parts.push(*v),
        }
    }
    if parts.len() == operands.len() || parts.is_empty() {
        return Ok(None);
    }
    built1(b, Concat { axis: *axis }, &parts).map(Some)
}

/// Two slices as one, if the second begins where the first ends.
fn joined(b: &mut Builder, first: Value, second: Value, axis: usize) -> Ruled {
    let (Some((Primitive::Slice(x), [of])), Some((Primitive::Slice(y), [other]))) =
        (producer(b, first), producer(b, second))
    else {
        return Ok(None);
    };
    if of != other || x.starts.len() <= axis || y.starts.len() != x.starts.len() {
        return Ok(None);
    }
    let alike = (0..x.starts.len()).all(|i| {
        x.steps[i] == y.steps[i] && (i == axis || (x.starts[i] == y.starts[i] && x.sizes[i] == y.sizes[i]))
    });
    let end = &x.starts[axis] + x.sizes[axis].clone() * x.steps[axis];
    if !alike || end != y.starts[axis] {
        return Ok(None);
    }
    let mut both = x.clone();
    both.sizes[axis] = &x.sizes[axis] + &y.sizes[axis];
    let of = *of;
    built1(b, both, &[of]).map(Some)
}

/// A batched product with a matrix that is the same for the whole batch is one product: the batch axes become free
/// axes of the left side.
///
/// ```text
/// %w2 = broadcast<dims=[b, k, n]>(%w)
/// dot<lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]>(%x, %w2)
/// // becomes
/// dot<lhs_contract=[2], rhs_contract=[0]>(%x, %w)
/// ```
pub(super) fn broadcast_weights(b: &mut Builder, op: &Op, operands: &[Value]) -> Ruled {
    let (Op::Primitive(Primitive::Dot(dot)), [x, repeated]) = (op, operands) else { return Ok(None) };
    let batch = dot.lhs_batch.len();
    let leading = |axes: &[usize]| axes.iter().copied().eq(0..batch);
    if batch == 0 || !leading(&dot.lhs_batch) || !leading(&dot.rhs_batch) {
        return Ok(None);
    }
    let Some((Primitive::Broadcast(_), [w])) = producer(b, *repeated) else { return Ok(None) };
    let w = *w;
    let matrix = b.shape(*repeated)[batch..].to_vec();
    let own = b.shape(w);
    let kept = own.rank().saturating_sub(matrix.len());
    let same =
        own.rank() >= matrix.len() && own[kept..] == matrix[..] && own[..kept].iter().all(|d| *d == Dim::ONE);
    if !same || dot.rhs_contract.iter().any(|a| *a < batch) {
        return Ok(None);
    }
    let w = b.reshape(w, &matrix)?;
    let plain = Dot {
        lhs_batch: Vec::new(),
        rhs_batch: Vec::new(),
        rhs_contract: dot.rhs_contract.iter().map(|a| a - batch).collect(),
        ..dot.clone()
    };
    b.push1(plain, &[*x, w]).map(Some)
}
