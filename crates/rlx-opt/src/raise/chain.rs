//! Following a chain of nodes backwards: what every pattern is written with.
//!
//! A [`Chain`] looks at the graph being built, so that a pattern sees the composites that were raised before it. It
//! notes the values *inside* the pattern; a pattern may be replaced only if nothing outside uses them.

use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::reduce::{Reduce, ReduceOp};
use rlx_ir::{Composite, DType, Dim, Graph, Literal, Locations, Node, Op, Primitive, TensorType, Value};
use rustc_hash::FxHashSet;
use std::cell::RefCell;

/// Why a pattern is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Miss {
    /// It is something else.
    Other,
    /// It is nearly this composite, but for a reason.
    Near(&'static str, &'static str),
}

/// A part of a pattern, or why it is not there.
pub(super) type Found<T> = Result<T, Miss>;

/// `Ok` if it holds, else something other than the pattern.
pub(super) fn require(holds: bool) -> Found<()> {
    if holds { Ok(()) } else { Err(Miss::Other) }
}

/// `Ok` if it holds, else nearly `composite`.
pub(super) fn require_of(holds: bool, composite: &'static str, reason: &'static str) -> Found<()> {
    if holds { Ok(()) } else { Err(Miss::Near(composite, reason)) }
}

/// How many values a constant may have to be looked through for being the same everywhere.
const MAX_UNIFORM: usize = 1 << 16;

/// How many movements are looked through to find a constant.
const MAX_VIEWS: usize = 8;

/// A walk over one pattern.
pub(super) struct Chain<'g> {
    graph: &'g Graph,
    /// How often each node's results are used in the whole graph.
    uses: &'g [u32],
    inside: RefCell<Vec<Value>>,
}

impl<'g> Chain<'g> {
    pub(super) fn new(graph: &'g Graph, uses: &'g [u32]) -> Chain<'g> {
        Chain { graph, uses, inside: RefCell::default() }
    }

    fn node(&self, v: Value) -> &'g Node {
        self.graph.node(v.node)
    }

    pub(super) fn type_of(&self, v: Value) -> &'g TensorType {
        self.graph.type_of(v)
    }

    pub(super) fn dims(&self, v: Value) -> &'g [Dim] {
        self.type_of(v).dims()
    }

    pub(super) fn dtype(&self, v: Value) -> DType {
        self.type_of(v).dtype
    }

    pub(super) fn rank(&self, v: Value) -> usize {
        self.type_of(v).rank()
    }

    pub(super) fn operands(&self, v: Value) -> &'g [Value] {
        &self.node(v).operands
    }

    pub(super) fn primitive(&self, v: Value) -> Found<&'g Primitive> {
        match &self.node(v).op {
            Op::Primitive(primitive) => Ok(primitive),
            Op::Composite(_) => Err(Miss::Other),
        }
    }

    pub(super) fn composite(&self, v: Value) -> Found<&'g Composite> {
        match &self.node(v).op {
            Op::Composite(composite) if self.node(v).types.len() == 1 => Ok(composite),
            _ => Err(Miss::Other),
        }
    }

    /// Notes that a value is inside the pattern.
    pub(super) fn enter(&self, v: Value) {
        self.inside.borrow_mut().push(v);
    }

    /// Tries a part of a pattern; what it entered is forgotten if it is not there.
    pub(super) fn attempt<T>(&self, part: impl FnOnce() -> Found<T>) -> Found<T> {
        let before = self.inside.borrow().len();
        let found = part();
        if found.is_err() {
            self.inside.borrow_mut().truncate(before);
        }
        found
    }

    /// The first of two parts that is there; a near miss outweighs being something else.
    pub(super) fn first<T>(
        &self,
        one: impl FnOnce() -> Found<T>,
        other: impl FnOnce() -> Found<T>,
    ) -> Found<T> {
        match self.attempt(one) {
            Ok(found) => Ok(found),
            Err(miss) => self.attempt(other).map_err(|m| if m == Miss::Other { miss } else { m }),
        }
    }

    /// Operand of f(x).
    pub(super) fn unary(&self, v: Value, op: UnaryOp) -> Found<Value> {
        match self.primitive(v)? {
            Primitive::Unary(u) if u.op == op => {
                self.enter(v);
                Ok(self.operands(v)[0])
            }
            _ => Err(Miss::Other),
        }
    }

    /// Operands of f(x, y).
    pub(super) fn binary(&self, v: Value, op: BinaryOp) -> Found<(Value, Value)> {
        match self.primitive(v)? {
            Primitive::Binary(b) if b.op == op => {
                self.enter(v);
                Ok((self.operands(v)[0], self.operands(v)[1]))
            }
            _ => Err(Miss::Other),
        }
    }

    /// f(x, y) with the operands in either order.
    pub(super) fn commuted<T>(
        &self,
        v: Value,
        op: BinaryOp,
        part: impl Fn(Value, Value) -> Found<T>,
    ) -> Found<T> {
        let (x, y) = self.binary(v, op)?;
        self.first(|| part(x, y), || part(y, x))
    }

    /// f(x, c) with a uniform constant c, in either order for commutative f.
    pub(super) fn with_constant(&self, v: Value, op: BinaryOp) -> Found<(Value, f64)> {
        let (x, y) = self.binary(v, op)?;
        if let Some(c) = self.uniform(y) {
            return Ok((x, c));
        }
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Max | BinaryOp::Min);
        match self.uniform(x) {
            Some(c) if commutes => Ok((y, c)),
            _ => Err(Miss::Other),
        }
    }

    /// x in f(x, c) for exactly this number, rounded to the type.
    pub(super) fn with(&self, v: Value, op: BinaryOp, number: f64) -> Found<Value> {
        let (x, c) = self.attempt(|| self.with_constant(v, op))?;
        require(self.is(c, number, x))?;
        Ok(x)
    }

    /// Whether a constant of x's type is this number rounded to that type.
    pub(super) fn is(&self, constant: f64, number: f64, x: Value) -> bool {
        rounded(number, self.dtype(x)).is_some_and(|r| r == constant)
    }

    /// The number that a constant has everywhere, looked for through movement.
    pub(super) fn uniform(&self, v: Value) -> Option<f64> {
        uniform(self.graph, v)
    }

    /// The literal that a value is.
    pub(super) fn literal(&self, v: Value) -> Option<&'g Literal> {
        match &self.node(v).op {
            Op::Primitive(Primitive::Constant(c)) => Some(&c.value),
            _ => None,
        }
    }

    /// What a broadcast repeats.
    pub(super) fn repeated(&self, v: Value) -> Found<Value> {
        match self.primitive(v)? {
            Primitive::Broadcast(_) => {
                self.enter(v);
                Ok(self.operands(v)[0])
            }
            _ => Err(Miss::Other),
        }
    }

    /// What a reshape arranges.
    pub(super) fn reshaped(&self, v: Value) -> Found<Value> {
        match self.primitive(v)? {
            Primitive::Reshape(_) => {
                self.enter(v);
                Ok(self.operands(v)[0])
            }
            _ => Err(Miss::Other),
        }
    }

    /// A value below an optional reshape that puts size-1 axes back.
    fn below_reshape(&self, v: Value) -> Value {
        self.attempt(|| self.reshaped(v)).unwrap_or(v)
    }

    /// The operand and the axes of a reduction whose result, perhaps reshaped, is v with the axes kept.
    pub(super) fn reduced(&self, v: Value, op: ReduceOp) -> Found<(Value, &'g [usize])> {
        let at = self.below_reshape(v);
        let Primitive::Reduce(Reduce { op: found, axes, accum: None, .. }) = self.primitive(at)? else {
            return Err(Miss::Other);
        };
        require(*found == op)?;
        self.enter(at);
        let x = self.operands(at)[0];
        require(self.kept(x, axes) == self.dims(v))?;
        Ok((x, axes))
    }

    /// The sizes of x with these axes reduced to 1.
    fn kept(&self, x: Value, axes: &[usize]) -> Vec<Dim> {
        let size = |(i, d): (usize, &Dim)| if axes.contains(&i) { Dim::ONE } else { d.clone() };
        self.dims(x).iter().enumerate().map(size).collect()
    }

    /// The operand and the axes of a mean whose result, perhaps reshaped, is v with the axes kept.
    pub(super) fn mean(&self, v: Value) -> Found<(Value, &'g [usize])> {
        let at = self.below_reshape(v);
        self.first(
            || {
                let (sum, count) = self.binary(at, BinaryOp::Div)?;
                self.mean_of(v, sum, |size| self.is_size(count, size))
            },
            || {
                let (sum, factor) = self.with_constant(at, BinaryOp::Mul)?;
                let inverse =
                    |size: &Dim| size.as_const().is_some_and(|n| self.is(factor, 1.0 / n as f64, at));
                self.mean_of(v, sum, inverse)
            },
        )
    }

    /// The operand and the axes of a sum that is divided by `is_count`.
    fn mean_of(&self, v: Value, sum: Value, is_count: impl Fn(&Dim) -> bool) -> Found<(Value, &'g [usize])> {
        let inner = self.below_reshape(sum);
        let Primitive::Reduce(Reduce { op: ReduceOp::Sum, axes, accum: None, .. }) = self.primitive(inner)?
        else {
            return Err(Miss::Other);
        };
        self.enter(inner);
        let x = self.operands(inner)[0];
        require(self.kept(x, axes) == self.dims(v))?;
        require(is_count(&Dim::product(axes.iter().filter_map(|a| self.dims(x).get(*a)))))?;
        Ok((x, axes))
    }

    /// Whether a value is this size everywhere.
    fn is_size(&self, v: Value, size: &Dim) -> bool {
        if let (Some(found), Some(n)) = (self.uniform(v), size.as_const()) {
            return self.is(found, n as f64, v);
        }
        let mut at = v;
        for _ in 0..MAX_VIEWS {
            match &self.node(at).op {
                Op::Primitive(Primitive::Broadcast(_) | Primitive::Reshape(_) | Primitive::Cast(_)) => {
                    at = self.operands(at)[0];
                }
                Op::Primitive(Primitive::DimValue(d)) => return d.dim == *size,
                _ => return false,
            }
        }
        false
    }

    /// The row value that a broadcast carries over the axes that were reduced.
    pub(super) fn carried(&self, v: Value) -> Found<Value> {
        let row = self.repeated(v)?;
        require(self.rank(row) == self.rank(v))?;
        Ok(row)
    }

    /// `Ok` if nothing outside the pattern uses a value inside it; `root` is the pattern's result.
    pub(super) fn closed(&self, root: Value, composite: &'static str) -> Found<()> {
        let inside: FxHashSet<Value> = self.inside.borrow().iter().copied().filter(|v| *v != root).collect();
        let users = || inside.iter().chain([&root]);
        for v in &inside {
            let own: usize = users().map(|u| self.operands(*u).iter().filter(|o| *o == v).count()).sum();
            let all = self.uses.get(v.node.index()).copied().unwrap_or(0) as usize;
            require_of(all <= own, composite, "a value inside the chain is used elsewhere")?;
        }
        Ok(())
    }

    /// Where the nodes of the pattern come from, `root` included.
    pub(super) fn locations(&self, root: Value) -> Locations {
        let mut all = self.node(root).locations.clone();
        for v in self.inside.borrow().iter() {
            all.merge(&self.node(*v).locations);
        }
        all
    }
}

/// A number rounded to a type, as a number again.
pub(super) fn rounded(number: f64, dtype: DType) -> Option<f64> {
    Some(match dtype {
        DType::F64 => number,
        DType::F32 => f64::from(number as f32),
        DType::F16 => half::f16::from_f64(number).to_f64(),
        DType::BF16 => half::bf16::from_f64(number).to_f64(),
        _ if dtype.is_int() && number.fract() == 0.0 => number,
        _ => return None,
    })
}

/// The number that a constant of the graph has everywhere, looked for through movement.
pub(crate) fn uniform(graph: &Graph, v: Value) -> Option<f64> {
    let mut at = v;
    for _ in 0..MAX_VIEWS {
        let node = graph.node(at.node);
        match &node.op {
            Op::Primitive(Primitive::Broadcast(_) | Primitive::Reshape(_) | Primitive::Transpose(_)) => {
                at = *node.operands.first()?;
            }
            Op::Primitive(Primitive::Constant(c)) => return uniform_literal(&c.value),
            _ => return None,
        }
    }
    None
}

/// The number that every element of a literal is; none for an empty one.
fn uniform_literal(literal: &Literal) -> Option<f64> {
    let count = literal.element_count();
    if count == 0 || count > MAX_UNIFORM {
        return None;
    }
    let width = literal.bytes().len() / count;
    if width == 0 {
        return None;
    }
    let first = literal.bytes().get(..width)?;
    if !literal.bytes().chunks_exact(width).all(|c| c == first) {
        return None;
    }
    let one = Literal::new(literal.dtype(), Vec::new(), literal.bytes().slice(..width)).ok()?;
    Some(match one.dtype() {
        DType::F64 => *one.to_vec::<f64>()?.first()?,
        DType::F32 => f64::from(*one.to_vec::<f32>()?.first()?),
        DType::F16 => one.to_vec::<half::f16>()?.first()?.to_f64(),
        DType::BF16 => one.to_vec::<half::bf16>()?.first()?.to_f64(),
        _ => {
            let whole = *one.to_i64_vec()?.first()?;
            // Beyond 2⁵³ the number would not be the constant.
            if whole.unsigned_abs() > 1 << 53 {
                return None;
            }
            whole as f64
        }
    })
}
