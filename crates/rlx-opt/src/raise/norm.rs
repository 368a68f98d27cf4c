//! Layer, RMS, instance and group norm from means, squares and roots.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of};
use rlx_ir::op::activation::ActivationOp;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::norm::{GroupNorm, InstanceNorm, LayerNorm, RmsNorm};
use rlx_ir::op::{Axis, Real};
use rlx_ir::{Composite, Dim, Op, Value};

/// x in x·x or x².
fn squared(c: &Chain<'_>, v: Value) -> Found<Value> {
    c.first(
        || {
            let (x, y) = c.binary(v, BinaryOp::Mul)?;
            require(x == y)?;
            Ok(x)
        },
        || c.with(v, BinaryOp::Pow, 2.0),
    )
}

/// x in √x.
fn root_of(c: &Chain<'_>, v: Value) -> Found<Value> {
    c.first(|| c.unary(v, UnaryOp::Sqrt), || c.with(v, BinaryOp::Pow, 0.5))
}

/// x in 1/x.
fn reciprocal(c: &Chain<'_>, v: Value) -> Found<Value> {
    if let Ok(Composite::Activation(a)) = c.composite(v)
        && a.op == ActivationOp::Reciprocal
    {
        c.enter(v);
        return Ok(c.operands(v)[0]);
    }
    let (one, x) = c.binary(v, BinaryOp::Div)?;
    require(c.uniform(one) == Some(1.0))?;
    Ok(x)
}

/// x in 1/√x.
fn inverse_root(c: &Chain<'_>, v: Value) -> Found<Value> {
    c.first(
        || c.unary(v, UnaryOp::Rsqrt),
        || c.first(|| root_of(c, reciprocal(c, v)?), || c.with(v, BinaryOp::Pow, -0.5)),
    )
}

/// A numerator and the mean square with its eps that it is divided by the root of.
struct Quotient {
    above: Value,
    moment: Value,
    eps: f64,
}

fn quotient(c: &Chain<'_>, root: Value) -> Found<Quotient> {
    let (above, shifted) = c.first(
        || {
            let (above, below) = c.binary(root, BinaryOp::Div)?;
            Ok((above, root_of(c, c.carried(below)?)?))
        },
        || c.commuted(root, BinaryOp::Mul, |above, factor| Ok((above, inverse_root(c, c.carried(factor)?)?))),
    )?;
    let (moment, eps) = c.attempt(|| c.with_constant(shifted, BinaryOp::Add)).unwrap_or((shifted, 0.0));
    Ok(Quotient { above, moment, eps })
}

/// The first of the axes, counted from the back, if they are the last ones.
fn trailing(c: &Chain<'_>, x: Value, axes: &[usize], name: &'static str) -> Found<Axis> {
    let first = c.rank(x) - axes.len();
    let last = axes.iter().copied().eq(first..c.rank(x));
    require_of(last && !axes.is_empty(), name, "the axes are not the last ones")?;
    Ok(Axis(first as i64 - c.rank(x) as i64))
}

/// `(x − mean x) / √(mean (x − mean x)² + eps)` as `layer_norm`, `x / √(mean x² + eps)` as `rms_norm`, without scale.
pub(super) fn normalised(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let q = quotient(c, root)?;
    let centred = c.attempt(|| {
        let (x, mean) = c.binary(q.above, BinaryOp::Sub)?;
        let (of, axes) = c.mean(c.carried(mean)?)?;
        require(of == x)?;
        Ok((x, axes))
    });
    let square = c.attempt(|| {
        let (square, axes) = c.mean(q.moment)?;
        Ok((squared(c, square)?, axes))
    });
    let (x, axes) = match (&centred, &square) {
        (Ok((x, axes)), Ok((of, square_axes))) if *of == q.above => {
            require_of(axes == square_axes, "layer_norm", "the axes of mean and variance differ")?;
            (*x, *axes)
        }
        (Ok(_), _) => {
            return Err(Miss::Near("layer_norm", "the divisor is not the root of the biased variance"));
        }
        (Err(_), Ok((of, axes))) if *of == q.above => {
            let axis = trailing(c, q.above, axes, "rms_norm")?;
            let op = RmsNorm { axis, eps: Real::new(q.eps) };
            let x = q.above;
            return Ok(Raised::new("rms_norm", move |b| b.push1(op, &[x])));
        }
        _ => return Err(Miss::Other),
    };
    let axis = trailing(c, x, axes, "layer_norm")?;
    let op = LayerNorm { axis, eps: Real::new(q.eps), statistics: false };
    Ok(Raised::new("layer_norm", move |b| b.push1(op, &[x])))
}

/// The parameter of a product or sum, with its sizes aligned to those of x: what a broadcast repeats, or the whole.
fn parameter(c: &Chain<'_>, v: Value) -> (Value, Vec<Dim>) {
    let rank = c.rank(v);
    let source = match c.primitive(v) {
        Ok(rlx_ir::Primitive::Broadcast(_)) => c.operands(v)[0],
        _ => v,
    };
    let mut dims = vec![Dim::ONE; rank - c.rank(source)];
    dims.extend_from_slice(c.dims(source));
    (source, dims)
}

/// Whether the parameter has the sizes of x from an axis on, and repeats along the others.
fn lies_from(c: &Chain<'_>, dims: &[Dim], x: Value, first: usize) -> bool {
    dims[..first].iter().all(|d| *d == Dim::ONE) && dims[first..] == c.dims(x)[first..]
}

/// Whether the parameter is a vector of x's channels (axis 1).
fn lies_along_channels(c: &Chain<'_>, dims: &[Dim], x: Value) -> bool {
    let one = |(i, d): (usize, &Dim)| if i == 1 { *d == c.dims(x)[1] } else { *d == Dim::ONE };
    dims.len() >= 2 && dims.iter().enumerate().all(one)
}

/// Where the parameters of a norm lie in its operand.
enum Lies {
    From(usize),
    Channels,
}

/// A norm with its parameters, one more to come.
fn extended(
    c: &Chain<'_>,
    n: Value,
    with: Value,
    count: usize,
    name: &'static str,
) -> Found<Raised<'static>> {
    let norm = c.composite(n)?;
    let operands = c.operands(n);
    require(operands.len() == count)?;
    let x = operands[0];
    let (source, dims) = parameter(c, with);
    require(c.dtype(source) == c.dtype(x))?;
    let rank = c.rank(x);
    let channels = lies_along_channels(c, &dims, x);
    let (op, lies): (Op, Lies) = match norm {
        Composite::LayerNorm(l) if !l.statistics => {
            let first = l.axis.of_rank(rank).ok_or(Miss::Other)?;
            if lies_from(c, &dims, x, first) {
                (l.clone().into(), Lies::From(first))
            } else if channels && first == 2 && count == 1 {
                (InstanceNorm { eps: l.eps }.into(), Lies::Channels)
            } else {
                return Err(Miss::Other);
            }
        }
        Composite::RmsNorm(r) if count == 1 => {
            let first = r.axis.of_rank(rank).ok_or(Miss::Other)?;
            require(lies_from(c, &dims, x, first))?;
            (r.clone().into(), Lies::From(first))
        }
        Composite::InstanceNorm(i) if channels => (i.clone().into(), Lies::Channels),
        Composite::GroupNorm(g) if channels => (g.clone().into(), Lies::Channels),
        _ => return Err(Miss::Other),
    };
    c.enter(n);
    let sizes = match lies {
        Lies::From(first) => c.dims(x)[first..].to_vec(),
        Lies::Channels => c.dims(x)[1..2].to_vec(),
    };
    let mut all = operands.to_vec();
    Ok(Raised::new(name, move |b| {
        all.push(b.reshape(source, &sizes)?);
        b.push1(op, &all)
    }))
}

/// A bare norm times a vector that fits it.
pub(super) fn scaled(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    c.commuted(root, BinaryOp::Mul, |n, scale| extended(c, n, scale, 1, "norm with a scale"))
}

/// A scaled norm plus a vector that fits it.
pub(super) fn shifted(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    c.commuted(root, BinaryOp::Add, |n, bias| extended(c, n, bias, 2, "norm with a bias"))
}

/// Instance norm of the channels in groups, put back: `group_norm`.
pub(super) fn grouped(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let n = c.reshaped(root)?;
    let operands = c.operands(n);
    let eps = match c.composite(n)? {
        Composite::InstanceNorm(i) => {
            let neutral = operands[1..].iter().zip([1.0, 0.0]).all(|(v, e)| c.uniform(*v) == Some(e));
            require_of(neutral, "group_norm", "the groups have scales of their own")?;
            i.eps
        }
        Composite::LayerNorm(l) if operands.len() == 1 && l.axis.of_rank(c.rank(n)) == Some(2) => l.eps,
        _ => return Err(Miss::Other),
    };
    c.enter(n);
    let x = c.reshaped(operands[0])?;
    let (whole, split) = (c.dims(x), c.dims(operands[0]));
    require(c.dims(root) == whole && whole.len() >= 2 && split.len() >= 3 && split[0] == whole[0])?;
    let (channels, groups) = (whole[1].as_size(), split[1].as_size());
    let (Some(channels), Some(groups)) = (channels, groups) else {
        return Err(Miss::Near("group_norm", "the number of channels or groups is not known"));
    };
    require_of(groups > 0 && channels % groups == 0, "group_norm", "the groups do not divide the channels")?;
    let op = GroupNorm { groups, eps };
    Ok(Raised::new("group_norm", move |b| b.push1(op, &[x])))
}
