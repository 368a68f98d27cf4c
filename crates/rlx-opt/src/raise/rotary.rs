//! Rotary embedding from slices, products with cosines and sines, and their sums, in both pairings.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of};
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::movement::Slice;
use rlx_ir::op::rotary::RotaryEmbedding;
use rlx_ir::{Builder, Dim, Primitive, TypeError, Value};

const NAME: &str = "rotary_embedding";

/// How a row's elements form pairs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairing {
    Halves,
    Interleaved,
}

/// One side of the pairs: what it is taken from, how, and whether it is the second.
struct Side {
    of: Value,
    pairing: Pairing,
    second: bool,
}

fn side(c: &Chain<'_>, v: Value) -> Found<Side> {
    let Primitive::Slice(slice) = c.primitive(v)? else { return Err(Miss::Other) };
    let of = c.operands(v)[0];
    let last = c.rank(of).checked_sub(1).ok_or(Miss::Other)?;
    let Slice { starts, sizes, steps } = slice;
    let whole = (0..last).all(|i| starts[i] == Dim::ZERO && steps[i] == 1 && sizes[i] == c.dims(of)[i]);
    let half = &sizes[last];
    require(whole && half.clone() * 2 == c.dims(of)[last])?;
    c.enter(v);
    let (start, step) = (&starts[last], steps[last]);
    let (pairing, second) = match step {
        1 if *start == Dim::ZERO => (Pairing::Halves, false),
        1 if start == half => (Pairing::Halves, true),
        2 if *start == Dim::ZERO => (Pairing::Interleaved, false),
        2 if *start == Dim::ONE => (Pairing::Interleaved, true),
        _ => return Err(Miss::Other),
    };
    Ok(Side { of, pairing, second })
}

/// A table of cosines or sines of half the width, as it is built again from what is in the graph.
#[derive(Clone)]
struct Table {
    base: Value,
    /// The first half of the base's last axis.
    halved: bool,
    steps: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Unary(UnaryOp),
    Scale(f64),
    Reshape(Vec<Dim>),
}

impl Table {
    fn whole(base: Value) -> Table {
        Table { base, halved: false, steps: Vec::new() }
    }

    fn build(&self, b: &mut Builder, dims: &[Dim]) -> Result<Value, TypeError> {
        let mut x = self.base;
        if self.halved {
            let last = b.rank(x) - 1;
            let half = b.dim(x, last).floor_div(&2.into());
            x = b.slice_axis(x, last, &Dim::ZERO, &half)?;
        }
        for step in &self.steps {
            x = match step {
                Step::Unary(op) => b.unary(*op, x)?,
                Step::Scale(factor) => b.mul_scalar(x, *factor)?,
                Step::Reshape(dims) => b.reshape(x, dims)?,
            };
        }
        b.reshape(x, dims)
    }
}

/// How many operations stand between two equal halves and the table that is made of them.
const MAX_STEPS: usize = 8;

/// The first half of a table whose two halves are the same.
fn first_half(c: &Chain<'_>, table: Value) -> Found<Table> {
    let (mut at, mut steps) = (table, Vec::new());
    for _ in 0..MAX_STEPS {
        let last = c.rank(at).checked_sub(1).ok_or(Miss::Other)?;
        if let Some(literal) = c.literal(at) {
            let count = literal.dims().last().copied().unwrap_or(0);
            let width = literal.bytes().len() / literal.element_count().max(1);
            let equal = count % 2 == 0
                && count * width > 0
                && literal.bytes().chunks_exact(count * width).all(|row| {
                    let (first, second) = row.split_at(row.len() / 2);
                    first == second
                });
            require_of(equal, NAME, "the halves of the tables differ")?;
            steps.reverse();
            return Ok(Table { base: at, halved: true, steps });
        }
        match c.primitive(at)? {
            Primitive::Concat(concat) if concat.axis == last => {
                let parts = c.operands(at);
                require_of(
                    parts.len() == 2 && parts[0] == parts[1],
                    NAME,
                    "the halves of the tables differ",
                )?;
                steps.reverse();
                return Ok(Table { base: parts[0], halved: false, steps });
            }
            Primitive::Unary(u) => steps.push(Step::Unary(u.op)),
            Primitive::Reshape(_) => {
                let from = c.dims(c.operands(at)[0]);
                let (to, width) = (c.dims(at), c.dims(at).last());
                require(from.last() == width)?;
                let mut dims = to.to_vec();
                dims[last] = to[last].floor_div(&2.into());
                steps.push(Step::Reshape(dims));
            }
            Primitive::Binary(b) if b.op == BinaryOp::Mul => {
                let (_, factor) = c.attempt(|| c.with_constant(at, BinaryOp::Mul))?;
                steps.push(Step::Scale(factor));
                if c.uniform(c.operands(at)[0]).is_some() {
                    at = c.operands(at)[1];
                    continue;
                }
            }
            _ => return Err(Miss::Near(NAME, "the tables are not seen to have equal halves")),
        }
        at = c.operands(at)[0];
    }
    Err(Miss::Other)
}

/// What a table repeats, and its sizes aligned to rank 4.
fn repeated(c: &Chain<'_>, v: Value) -> (Value, Vec<Dim>) {
    let source = match c.primitive(v) {
        Ok(Primitive::Broadcast(_)) => c.operands(v)[0],
        _ => v,
    };
    let mut dims = vec![Dim::ONE; c.rank(v) - c.rank(source)];
    dims.extend_from_slice(c.dims(source));
    (source, dims)
}

/// Whether heads or tokens are axis 1 of x, and the sizes of the tables without the heads, by where they repeat.
struct Layout {
    tokens_first: bool,
    dims: Vec<Dim>,
}

fn layout(c: &Chain<'_>, x: Value, table: &[Dim], half: &Dim) -> Found<Layout> {
    require_of(c.rank(x) == 4 && table.len() == 4, NAME, "the rank is not 4")?;
    let x = c.dims(x);
    let tokens_first = match (&table[1], &table[2]) {
        (heads, tokens) if *heads == Dim::ONE && *tokens == x[2] => false,
        (tokens, heads) if *heads == Dim::ONE && *tokens == x[1] => true,
        _ => return Err(Miss::Near(NAME, "the tables do not repeat along the heads")),
    };
    let tokens = if tokens_first { x[1].clone() } else { x[2].clone() };
    let mut dims = vec![tokens, half.clone()];
    if table[0] != Dim::ONE {
        require(table[0] == x[0])?;
        dims.insert(0, x[0].clone());
    }
    Ok(Layout { tokens_first, dims })
}

fn built(x: Value, cos: Table, sin: Table, layout: Layout, pairing: Pairing) -> Raised<'static> {
    Raised::new(NAME, move |b| {
        let (cos, sin) = (cos.build(b, &layout.dims)?, sin.build(b, &layout.dims)?);
        let op = RotaryEmbedding { interleaved: pairing == Pairing::Interleaved, by_position: false };
        if !layout.tokens_first {
            return b.push1(op, &[x, cos, sin]);
        }
        let x = b.transpose(x, &[0, 2, 1, 3])?;
        let y = b.push1(op, &[x, cos, sin])?;
        b.transpose(y, &[0, 2, 1, 3])
    })
}

/// Rotary embedding in one of the forms that exporters write.
pub(super) fn rotary(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    c.first(|| rotated_half(c, root), || turned_pairs(c, root))
}

/// `x · cos + concat(−x₂, x₁) · sin`, the tables of full width with equal halves.
fn rotated_half(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    c.commuted(root, BinaryOp::Add, |plain, rotated| {
        let (x, sin, cos) = c.commuted(rotated, BinaryOp::Mul, |turned, sin| {
            let Primitive::Concat(concat) = c.primitive(turned)? else { return Err(Miss::Other) };
            let [negated, first] = c.operands(turned)[..] else { return Err(Miss::Other) };
            require(concat.axis + 1 == c.rank(turned))?;
            c.enter(turned);
            let second = side(c, c.unary(negated, UnaryOp::Neg)?)?;
            let first = side(c, first)?;
            let halves = first.pairing == Pairing::Halves && second.pairing == Pairing::Halves;
            require(halves && first.of == second.of && !first.second && second.second)?;
            let cos = c.commuted(plain, BinaryOp::Mul, |x, cos| {
                require(x == first.of)?;
                Ok(cos)
            })?;
            Ok((first.of, sin, cos))
        })?;
        let ((cos, dims), (sin, sin_dims)) = (repeated(c, cos), repeated(c, sin));
        require(dims == sin_dims)?;
        let width = c.dims(x).last().cloned().ok_or(Miss::Other)?;
        require(dims.last() == Some(&width))?;
        let layout = layout(c, x, &dims, &width.floor_div(&2.into()))?;
        Ok(built(x, first_half(c, cos)?, first_half(c, sin)?, layout, Pairing::Halves))
    })
}

/// A product of one side of the pairs with a table.
fn turned_by(c: &Chain<'_>, v: Value) -> Found<(Side, Value)> {
    c.commuted(v, BinaryOp::Mul, |x, table| Ok((side(c, x)?, table)))
}

/// `x₁ cos − x₂ sin` and `x₂ cos + x₁ sin`, joined as halves or as neighbours; the tables of half the width.
fn turned_pairs(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (pairing, first, second) = joined(c, root)?;
    let (a, b) = c.binary(first, BinaryOp::Sub)?;
    let ((x, cos), (y, sin)) = (turned_by(c, a)?, turned_by(c, b)?);
    require(x.of == y.of && x.pairing == pairing && y.pairing == pairing && !x.second && y.second)?;
    c.commuted(second, BinaryOp::Add, |a, b| {
        let ((y, c1), (x, s1)) = (turned_by(c, a)?, turned_by(c, b)?);
        require(y.second && !x.second && c1 == cos && s1 == sin && x.of == y.of)
    })?;
    let x = x.of;
    require(c.dims(x) == c.dims(root))?;
    let ((cos, dims), (sin, sin_dims)) = (repeated(c, cos), repeated(c, sin));
    require(dims == sin_dims)?;
    let half = c.dims(x).last().cloned().ok_or(Miss::Other)?.floor_div(&2.into());
    require(dims.last() == Some(&half))?;
    let layout = layout(c, x, &dims, &half)?;
    Ok(built(x, Table::whole(cos), Table::whole(sin), layout, pairing))
}

/// How pairs are joined, and their first and second elements.
fn joined(c: &Chain<'_>, root: Value) -> Found<(Pairing, Value, Value)> {
    let two = |v: Value, axis: usize| {
        let Primitive::Concat(concat) = c.primitive(v)? else { return Err(Miss::Other) };
        let [first, second] = c.operands(v)[..] else { return Err(Miss::Other) };
        require(concat.axis == axis)?;
        c.enter(v);
        Ok((first, second))
    };
    let rank = c.rank(root);
    let last = rank.checked_sub(1).ok_or(Miss::Other)?;
    if let Ok((first, second)) = c.attempt(|| two(root, last)) {
        return Ok((Pairing::Halves, first, second));
    }
    let (first, second) = two(c.reshaped(root)?, rank)?;
    Ok((Pairing::Interleaved, c.reshaped(first)?, c.reshaped(second)?))
}
