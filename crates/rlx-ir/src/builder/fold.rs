//! What a simplifying builder replaces: identities, values that are known, and (through its folder) constants.

use super::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::Infer;
use crate::literal::Literal;
use crate::op::{Op, Primitive, source};
use crate::types::TensorType;
use smallvec::SmallVec;

impl Builder {
    /// The equivalent of an operation that is already there or simpler, if there is one. Type errors are found first.
    pub(super) fn simplified(&mut self, op: &Op, operands: &[Value]) -> Result<Option<Values>, TypeError> {
        if let Some(value) = self.identity(op, operands)? {
            return Ok(Some(SmallVec::from_slice(&[value])));
        }
        self.folded(op, operands)
    }

    fn identity(&mut self, op: &Op, operands: &[Value]) -> Result<Option<Value>, TypeError> {
        let (Op::Primitive(primitive), [x, ..]) = (op, operands) else { return Ok(None) };
        let x = *x;
        let t = self.type_of(x).clone();
        let producer = self.graph.node(x.node).clone();
        let same = match primitive {
            Primitive::Reshape(r) => {
                if r.dims == t.dims() {
                    true
                } else if let Op::Primitive(Primitive::Reshape(_)) = producer.op {
                    return self.push1(op.clone(), &producer.operands).map(Some);
                } else {
                    return Ok(self.reshaped_constant(x, &r.dims));
                }
            }
            Primitive::Broadcast(b) => b.dims == t.dims(),
            Primitive::Cast(c) => c.to == t.dtype,
            Primitive::Bitcast(c) => c.to == t.dtype,
            Primitive::Transpose(p) => {
                if p.perm.iter().copied().eq(0..t.rank()) {
                    true
                } else if let Op::Primitive(Primitive::Transpose(inner)) = &producer.op
                    && p.perm.len() == inner.perm.len()
                    && p.perm.iter().all(|i| *i < inner.perm.len())
                {
                    let perm = p.perm.iter().map(|i| inner.perm[*i]).collect();
                    return self.push1(crate::op::movement::Transpose { perm }, &producer.operands).map(Some);
                } else {
                    false
                }
            }
            Primitive::Slice(s) => {
                s.sizes == t.dims()
                    && s.starts.iter().all(|d| *d == Dim::ZERO)
                    && s.steps.iter().all(|n| *n == 1)
                    && s.steps.len() == t.rank()
            }
            Primitive::Pad(p) => {
                operands.len() == 2
                    && p.low.len() == t.rank()
                    && p.high.len() == t.rank()
                    && self.type_of(operands[1]) == &TensorType::scalar(t.dtype)
                    && p.low.iter().chain(&p.high).all(|d| *d == Dim::ZERO)
            }
            Primitive::Concat(c) => operands.len() == 1 && c.axis < t.rank(),
            Primitive::Reverse(r) => r.axes.is_empty(),
            Primitive::SumTo(s) => (t.dtype.is_float() || t.dtype.is_int()) && s.dims == t.dims(),
            Primitive::Reduce(r) => {
                r.axes.is_empty()
                    && r.accum.is_none_or(|a| a == t.dtype)
                    && r.op.name() != "reduce_all"
                    && r.op.name() != "reduce_any"
                    && (t.dtype.is_float() || t.dtype.is_int())
            }
            _ => false,
        };
        Ok(same.then_some(x))
    }

    /// A constant with other sizes shares its bytes.
    fn reshaped_constant(&mut self, x: Value, dims: &[Dim]) -> Option<Value> {
        let literal = self.literal(x)?.clone();
        let sizes: Option<Vec<usize>> = dims.iter().map(Dim::as_size).collect();
        let same_count = sizes.as_ref()?.iter().product::<usize>() == literal.element_count();
        if !same_count || matches!(literal.dtype(), DType::Block(_)) {
            return None;
        }
        literal.reshaped(sizes?).ok().map(|l| self.constant(l))
    }

    fn folded(&mut self, op: &Op, operands: &[Value]) -> Result<Option<Values>, TypeError> {
        if operands.is_empty() {
            if let Op::Primitive(Primitive::DimValue(d)) = op
                && let Some(value) = d.dim.as_const()
            {
                return Ok(Some(SmallVec::from_slice(&[self.constant(Literal::scalar(value))])));
            }
            return Ok(None);
        }
        let Some(folder) = self.folder.clone() else { return Ok(None) };
        let literals: Option<Vec<&Literal>> = operands.iter().map(|v| self.literal(*v)).collect();
        let Some(literals) = literals else { return self.known_result(op, operands) };
        let types: Vec<TensorType> = literals.iter().map(|l| l.tensor_type()).collect();
        let types: Vec<&TensorType> = types.iter().collect();
        let results = op
            .infer(&Infer::new(op.name(), &types, &self.graph.symbols))
            .map_err(|e| e.at(&self.locations))?;
        let folded = folder.fold(op, &literals, &results);
        Ok(folded.map(|literals| literals.into_iter().map(|l| self.constant(l)).collect()))
    }

    /// A node whose elements turn out to be known constants becomes a constant.
    fn known_result(&mut self, op: &Op, operands: &[Value]) -> Result<Option<Values>, TypeError> {
        let binds = matches!(op, Op::Primitive(Primitive::BindDim(_)));
        if binds || !operands.iter().any(|v| self.known(*v).is_some()) {
            return Ok(None);
        }
        let value = self.push_node(op.clone(), operands)?;
        let [only] = value.as_slice() else { return Ok(Some(value)) };
        let t = self.type_of(*only).clone();
        let (Some(elements), Some(dims)) = (self.known_constants(*only), t.shape.as_const()) else {
            return Ok(Some(value));
        };
        let literal = match t.dtype {
            DType::I64 => Literal::from_slice(dims, &elements),
            DType::I32 => {
                let Ok(narrow) = elements.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>()
                else {
                    return Ok(Some(value));
                };
                Literal::from_slice(dims, &narrow)
            }
            DType::Bool => {
                Literal::from_slice(dims, &elements.iter().map(|e| *e != 0).collect::<Vec<bool>>())
            }
            _ => return Ok(Some(value)),
        };
        Ok(Some(match literal {
            Ok(literal) => SmallVec::from_slice(&[self.constant(literal)]),
            Err(_) => value,
        }))
    }

    /// The constant that a value is, if it is one.
    pub fn literal(&self, value: Value) -> Option<&Literal> {
        match &self.graph.node(value.node).op {
            Op::Primitive(Primitive::Constant(source::Constant { value })) => Some(value),
            _ => None,
        }
    }
}
