//! What is known of the elements of small integer tensors: values that come from sizes (`Shape → Gather → Reshape`
//! in exported models) are followed as vectors of [`Dim`], so that computed shapes stay symbolic.

use super::Builder;
use crate::dim::{Answer, Dim};
use crate::dtype::DType;
use crate::graph::{NodeId, Value};
use crate::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use crate::op::reduce::ReduceOp;
use crate::op::{Op, Primitive};
use std::sync::Arc;

/// Tensors with more elements than this are not followed.
pub const MAX_KNOWN: usize = 512;

impl Builder {
    /// The elements of an integer or bool tensor (bool as 0 and 1), row by row, if each is known as a size expression.
    pub fn known(&self, value: Value) -> Option<&[Dim]> {
        let known = self.known.get(value.node.index())?;
        if value.output == 0 { known.as_deref() } else { None }
    }

    /// The elements, if all are known constants.
    pub fn known_constants(&self, value: Value) -> Option<Vec<i64>> {
        self.known(value)?.iter().map(Dim::as_const).collect()
    }

    pub(super) fn known_elements(&self, id: NodeId) -> Option<Arc<[Dim]>> {
        let node = self.graph.node(id);
        let [t] = node.types.as_slice() else { return None };
        if !(t.dtype.is_int() || t.dtype == DType::Bool) {
            return None;
        }
        let dims = t.shape.as_const()?;
        let count = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
        if count > MAX_KNOWN {
            return None;
        }
        let elements = self.follow(&node.op, &node.operands, &dims, count)?;
        (elements.len() == count && !elements.iter().any(Dim::is_overflow)).then(|| elements.into())
    }

    fn follow(&self, op: &Op, operands: &[Value], dims: &[usize], count: usize) -> Option<Vec<Dim>> {
        let of = |i: usize| self.known(*operands.get(i)?);
        let shape_of = |i: usize| self.type_of(*operands.get(i)?).shape.as_const();
        let Op::Primitive(primitive) = op else { return None };
        match primitive {
            Primitive::Constant(c) => Some(c.value.to_i64_vec()?.into_iter().map(Dim::constant).collect()),
            Primitive::DimValue(d) => Some(vec![d.dim.clone()]),
            Primitive::BindDim(b) => Some(vec![Dim::from(b.symbol.clone())]),
            Primitive::Iota(iota) => {
                let (start, step) = (iota.start.get() as i64, iota.step.get() as i64);
                let inner: usize = dims[iota.axis + 1..].iter().product();
                let along = |i: usize| (i / inner.max(1) % dims[iota.axis].max(1)) as i64;
                Some((0..count).map(|i| Dim::constant(step) * along(i) + start).collect())
            }
            Primitive::Reshape(_) => Some(of(0)?.to_vec()),
            // Sizes fit every integer type that models keep them in only if the type is wide.
            Primitive::Cast(c) => match (self.type_of(operands[0]).dtype, c.to) {
                (DType::I64 | DType::I32 | DType::Bool, DType::I64 | DType::I32) => Some(of(0)?.to_vec()),
                (DType::I64 | DType::I32, DType::Bool) => {
                    of(0)?.iter().map(|d| self.answer(CompareOp::Ne, d, &Dim::ZERO)).collect()
                }
                _ => None,
            },
            Primitive::Concat(c) if c.axis == 0 => {
                let mut all = Vec::with_capacity(count);
                for i in 0..operands.len() {
                    all.extend_from_slice(of(i)?);
                }
                Some(all)
            }
            Primitive::Slice(s) if dims.len() == 1 => {
                let (x, start) = (of(0)?, s.starts[0].as_const()?);
                (0..dims[0] as i64)
                    .map(|i| x.get(usize::try_from(start + i * s.steps[0]).ok()?).cloned())
                    .collect()
            }
            Primitive::Gather(g) if g.axes == [0] && g.batch == 0 && shape_of(0)?.len() == 1 => {
                let x = of(0)?;
                let n = x.len() as i64;
                of(1)?
                    .iter()
                    .map(|i| {
                        let i = i.as_const()?;
                        x.get(usize::try_from(if i < 0 && g.wrap { i + n } else { i }).ok()?).cloned()
                    })
                    .collect()
            }
            Primitive::Broadcast(_) => {
                let (x, from) = (of(0)?, shape_of(0)?);
                Some((0..count).map(|i| x[broadcast_source(i, dims, &from)].clone()).collect())
            }
            Primitive::Reduce(r) if r.axes.len() == shape_of(0)?.len() => {
                let x = of(0)?;
                match r.op {
                    ReduceOp::Prod => Some(vec![Dim::product(x)]),
                    ReduceOp::Sum => Some(vec![x.iter().fold(Dim::ZERO, |sum, d| sum + d)]),
                    ReduceOp::Max => Some(vec![x.iter().skip(1).fold(x.first()?.clone(), |m, d| m.max(d))]),
                    ReduceOp::Min => Some(vec![x.iter().skip(1).fold(x.first()?.clone(), |m, d| m.min(d))]),
                    ReduceOp::All => Some(vec![x.iter().fold(Dim::ONE, |all, d| all * d)]),
                    ReduceOp::Any => Some(vec![x.iter().fold(Dim::ZERO, |any, d| any.max(d))]),
                }
            }
            Primitive::Unary(u) => {
                let x = of(0)?.iter();
                match u.op {
                    UnaryOp::Neg => Some(x.map(|d| -d.clone()).collect()),
                    UnaryOp::Not => Some(x.map(|d| Dim::ONE - d).collect()),
                    UnaryOp::Abs => {
                        x.map(|d| (self.graph.symbols.range(d).min >= 0).then(|| d.clone())).collect()
                    }
                    _ => None,
                }
            }
            Primitive::Binary(b) => of(0)?
                .iter()
                .zip(of(1)?)
                .map(|(x, y)| self.binary_known(b.op, x, y, self.type_of(operands[0]).dtype))
                .collect(),
            Primitive::Compare(c) => {
                of(0)?.iter().zip(of(1)?).map(|(x, y)| self.answer(c.op, x, y)).collect()
            }
            Primitive::Select(_) => {
                let (x, y) = (of(1), of(2));
                of(0)?
                    .iter()
                    .enumerate()
                    .map(|(i, c)| match c.as_const()? {
                        0 => Some(y?.get(i)?.clone()),
                        _ => Some(x?.get(i)?.clone()),
                    })
                    .collect()
            }
            _ => None,
        }
    }

    fn binary_known(&self, op: BinaryOp, x: &Dim, y: &Dim, dtype: DType) -> Option<Dim> {
        let nonnegative = |d: &Dim| self.graph.symbols.range(d).min >= 0;
        let positive = |d: &Dim| self.graph.symbols.range(d).min > 0;
        Some(match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            // Truncating and floored division agree where nothing is negative.
            BinaryOp::Div if nonnegative(x) && positive(y) => x.floor_div(y),
            BinaryOp::Rem if nonnegative(x) && positive(y) => x.modulo(y),
            BinaryOp::Max => x.max(y),
            BinaryOp::Min => x.min(y),
            BinaryOp::And if dtype == DType::Bool => x * y,
            BinaryOp::Or if dtype == DType::Bool => x.max(y),
            _ => return None,
        })
    }

    fn answer(&self, op: CompareOp, x: &Dim, y: &Dim) -> Option<Dim> {
        let symbols = &self.graph.symbols;
        let (answer, negate) = match op {
            CompareOp::Eq => (symbols.known_eq(x, y), false),
            CompareOp::Ne => (symbols.known_eq(x, y), true),
            CompareOp::Le => (symbols.known_le(x, y), false),
            CompareOp::Gt => (symbols.known_le(x, y), true),
            CompareOp::Ge => (symbols.known_le(y, x), false),
            CompareOp::Lt => (symbols.known_le(y, x), true),
        };
        match answer {
            Answer::Unknown => None,
            answer => Some(Dim::constant(i64::from((answer == Answer::Yes) != negate))),
        }
    }
}

/// The element of a tensor of sizes `from` that element `i` of its broadcast to `to` repeats.
fn broadcast_source(i: usize, to: &[usize], from: &[usize]) -> usize {
    let (mut rest, mut source, mut stride) = (i, 0, 1);
    for axis in (0..to.len()).rev() {
        let index = rest % to[axis].max(1);
        rest /= to[axis].max(1);
        if let Some(a) = (axis + from.len()).checked_sub(to.len()) {
            source += if from[a] == 1 { 0 } else { index * stride };
            stride *= from[a];
        }
    }
    source
}
