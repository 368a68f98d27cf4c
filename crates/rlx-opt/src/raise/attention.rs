//! Attention from two matrix products around a softmax.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of};
use rlx_ir::op::Real;
use rlx_ir::op::attention::{Attention, AttentionOperand, EmptyRow};
use rlx_ir::op::contract::Dot;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::softmax::SoftmaxOp;
use rlx_ir::{Builder, Composite, Dim, Primitive, TypeError, Value};

const NAME: &str = "attention";

/// A matrix under an optional exchange of axes, and the number that it is multiplied by.
#[derive(Clone, Copy)]
struct Scaled {
    base: Value,
    /// The transpose that stands over the base, if its factor stood below it.
    over: Option<Value>,
    factor: f64,
}

/// v without its constant factors.
fn scaled(c: &Chain<'_>, v: Value) -> Scaled {
    let mut found = Scaled { base: v, over: None, factor: 1.0 };
    if let Ok(Primitive::Transpose(_)) = c.primitive(v)
        && let Ok((base, factor)) = multiplied(c, c.operands(v)[0])
    {
        c.enter(v);
        return Scaled { base, over: Some(v), factor };
    }
    while let Ok((x, factor)) = multiplied(c, found.base) {
        found.base = x;
        found.factor *= factor;
    }
    found
}

/// x and c of x · c or x / c.
fn multiplied(c: &Chain<'_>, v: Value) -> Found<(Value, f64)> {
    c.first(
        || c.with_constant(v, BinaryOp::Mul),
        || c.with_constant(v, BinaryOp::Div).map(|(x, by)| (x, 1.0 / by)),
    )
}

/// One operand of a batched product of matrices, with its contracted axis.
#[derive(Clone, Copy)]
struct Matrix {
    value: Scaled,
    contracted: usize,
}

/// The operands of a product of matrices whose leading axes are batch.
fn product<'g>(c: &Chain<'g>, v: Value) -> Found<(&'g Dot, Value, Value)> {
    let Primitive::Dot(dot) = c.primitive(v)? else { return Err(Miss::Other) };
    let batch = c.rank(v).checked_sub(2).ok_or(Miss::Other)?;
    let leading = |axes: &[usize]| axes.iter().copied().eq(0..batch);
    require(leading(&dot.lhs_batch) && leading(&dot.rhs_batch) && (1..=2).contains(&batch))?;
    require(dot.lhs_contract.len() == 1 && dot.accum.is_none() && dot.out.is_none())?;
    let (lhs, rhs) = (c.operands(v)[0], c.operands(v)[1]);
    require(c.rank(lhs) == batch + 2 && c.rank(rhs) == batch + 2)?;
    c.enter(v);
    Ok((dot, lhs, rhs))
}

/// Queries, keys and the factor of their products.
struct Scores {
    q: Matrix,
    k: Matrix,
    factor: f64,
}

fn scores(c: &Chain<'_>, v: Value) -> Found<Scores> {
    let outer = scaled(c, v);
    require(outer.over.is_none())?;
    let (dot, lhs, rhs) = product(c, outer.base)?;
    let q = Matrix { value: scaled(c, lhs), contracted: dot.lhs_contract[0] };
    let k = Matrix { value: scaled(c, rhs), contracted: dot.rhs_contract[0] };
    let factor = outer.factor * q.value.factor * k.value.factor;
    Ok(Scores { q, k, factor })
}

/// What hides keys from queries.
#[derive(Clone, Copy)]
enum Mask {
    None,
    /// Added to the scores.
    Added(Value),
    /// Where it holds, a query sees a key.
    Kept(Value),
    /// Where it holds, a query does not see a key.
    Hidden(Value),
}

fn masked(c: &Chain<'_>, v: Value) -> Found<(Scores, Mask)> {
    if let Ok(found) = c.attempt(|| scores(c, v)) {
        return Ok((found, Mask::None));
    }
    if let Primitive::Select(_) = c.primitive(v)? {
        c.enter(v);
        let [condition, x, y] = [0, 1, 2].map(|i| c.operands(v)[i]);
        let (shown, fill, mask) = match (c.uniform(y), c.uniform(x)) {
            (Some(fill), _) => (x, fill, Mask::Kept(condition)),
            (_, Some(fill)) => (y, fill, Mask::Hidden(condition)),
            _ => return Err(Miss::Other),
        };
        let found = scores(c, shown)?;
        let reason = "what is hidden is filled with a finite number: a row without keys is a mean of all";
        require_of(fill == f64::NEG_INFINITY, NAME, reason)?;
        return Ok((found, mask));
    }
    c.commuted(v, BinaryOp::Add, |x, mask| Ok((scores(c, x)?, Mask::Added(mask))))
}

/// What a mask repeats: attention broadcasts it itself.
fn source(c: &Chain<'_>, mask: Value) -> Value {
    match c.primitive(mask) {
        Ok(Primitive::Broadcast(_)) => c.operands(mask)[0],
        _ => mask,
    }
}

/// `softmax(scale · q·kᵀ, masked) · v`, of rank 4, or of rank 3 with batch and heads as one axis. Rows without a key
/// give NaN, as the chain does.
pub(super) fn attention(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (dot, p, v) = product(c, root)?;
    let rank = c.rank(root);
    require(dot.lhs_contract[0] == rank - 1)?;
    let Composite::Softmax(softmax) = c.composite(p)? else { return Err(Miss::Other) };
    require(softmax.op == SoftmaxOp::Softmax && softmax.axis.of_rank(rank) == Some(rank - 1))?;
    c.enter(p);
    let (found, mask) = masked(c, c.operands(p)[0])?;
    require_of(found.factor.is_finite(), NAME, "the factor of the scores is not finite")?;
    let v = Matrix { value: Scaled { base: v, over: None, factor: 1.0 }, contracted: dot.rhs_contract[0] };
    let mut op =
        Attention { scale: Some(Real::new(found.factor)), empty_row: EmptyRow::Nan, ..Attention::default() };
    let mask = match mask {
        Mask::None => None,
        Mask::Added(m) => {
            op.operands.push(AttentionOperand::AdditiveMask);
            Some((source(c, m), false))
        }
        Mask::Kept(m) => {
            op.operands.push(AttentionOperand::KeepMask);
            Some((source(c, m), false))
        }
        Mask::Hidden(m) => {
            op.operands.push(AttentionOperand::KeepMask);
            Some((source(c, m), true))
        }
    };
    let perms = [found.q, found.k].map(|m| m.value.over.map(|t| permutation(c, t)));
    let dims = c.dims(root).to_vec();
    Ok(Raised::new(NAME, move |b| {
        let mut operands = Vec::with_capacity(4);
        for (matrix, perm) in [(found.q, perms[0].clone()), (found.k, perms[1].clone())] {
            let base = match perm {
                Some(perm) => b.transpose(matrix.value.base, &perm)?,
                None => matrix.value.base,
            };
            operands.push(laid(b, base, rank - 1 != matrix.contracted)?);
        }
        operands.push(laid(b, v.value.base, rank - 2 != v.contracted)?);
        if let Some((mut mask, negated)) = mask {
            if negated {
                mask = b.unary(UnaryOp::Not, mask)?;
            }
            operands.push(of_rank_4(b, mask, rank)?);
        }
        let y = b.push1(op, &operands)?;
        b.reshape(y, &dims)
    }))
}

fn permutation(c: &Chain<'_>, v: Value) -> Vec<usize> {
    match c.primitive(v) {
        Ok(Primitive::Transpose(t)) => t.perm.clone(),
        _ => (0..c.rank(v)).collect(),
    }
}

/// A matrix of rank 4, its last two axes exchanged if asked.
fn laid(b: &mut Builder, x: Value, exchanged: bool) -> Result<Value, TypeError> {
    let x = if exchanged { b.matrix_transpose(x)? } else { x };
    if b.rank(x) == 4 { Ok(x) } else { b.unsqueeze(x, 1) }
}

/// A mask for scores of this rank, for scores of rank 4.
fn of_rank_4(b: &mut Builder, mask: Value, rank: usize) -> Result<Value, TypeError> {
    if rank == 4 {
        return Ok(mask);
    }
    let mut dims = vec![Dim::ONE; rank - b.rank(mask)];
    dims.extend(b.shape(mask).iter().cloned());
    dims.insert(1, Dim::ONE);
    b.reshape(mask, &dims)
}
