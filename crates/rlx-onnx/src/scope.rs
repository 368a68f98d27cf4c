//! Names and what they stand for: the scopes of graphs, subgraphs and functions, and the bodies of control flow, whose
//! graphs are closed, so that a value from outside becomes an input of the body.

use std::rc::Rc;
use std::sync::Arc;

use rlx_ir::builder::MAX_KNOWN;
use rlx_ir::op::{Op, Primitive};
use rlx_ir::{Builder, DType, Dim, Literal, TensorType, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ImportError, NodeProblem};
use crate::import::{Importer, Opsets};
use crate::proto::AttributeProto;
use crate::values::{Bound, Constant, Sequence};

/// The names of one graph, subgraph or function.
pub(crate) struct Scope<'m> {
    pub(crate) names: FxHashMap<&'m str, Bound>,
    /// Which body its values are in.
    pub(crate) body: usize,
    /// The scope around it; functions see none.
    pub(crate) parent: Option<usize>,
    /// The attributes of the function that it is in.
    pub(crate) attributes: Option<Rc<FxHashMap<&'m str, &'m AttributeProto>>>,
    pub(crate) opsets: Rc<Opsets>,
    /// What stands before the names of its nodes.
    pub(crate) path: String,
}

impl Scope<'_> {
    /// The scope of the model's graph.
    pub(crate) fn outermost(opsets: Rc<Opsets>) -> Self {
        Scope {
            names: FxHashMap::default(),
            body: 0,
            parent: None,
            attributes: None,
            opsets,
            path: String::new(),
        }
    }
}

/// A graph being built.
pub(crate) struct Body {
    pub(crate) builder: Builder,
    /// The values of the body around it that became inputs: outside, inside.
    pub(crate) captures: Vec<(Value, Value)>,
}

impl Body {
    /// A body without captures.
    pub(crate) fn new(builder: Builder) -> Body {
        Body { builder, captures: Vec::new() }
    }
}

impl<'m> Importer<'m> {
    /// The innermost scope.
    pub(crate) fn scope(&self) -> &Scope<'m> {
        &self.scopes[self.scopes.len() - 1]
    }

    /// Opens a scope; one too deep is an error.
    pub(crate) fn enter(&mut self, scope: Scope<'m>, place: &str) -> Result<(), ImportError> {
        let limit = self.options.limits.max_depth;
        if self.scopes.len() >= limit {
            let at = place.to_owned();
            return Err(ImportError::Limit { what: "nesting of subgraphs and functions", limit, at });
        }
        self.scopes.push(scope);
        Ok(())
    }

    /// Closes the innermost scope.
    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Gives a name of the innermost scope its value.
    pub(crate) fn bind(&mut self, name: &'m str, value: Bound) {
        let innermost = self.scopes.len() - 1;
        self.scopes[innermost].names.insert(name, value);
    }

    /// What a name stands for, as a value of the innermost body.
    pub(crate) fn lookup(&mut self, name: &str) -> Option<Bound> {
        let mut at = self.scopes.len() - 1;
        loop {
            let scope = &self.scopes[at];
            if let Some(bound) = scope.names.get(name) {
                let (bound, from) = (bound.clone(), scope.body);
                return self.brought(bound, from);
            }
            at = scope.parent?;
        }
    }

    /// A value of body `from` as one of the innermost body.
    fn brought(&mut self, bound: Bound, from: usize) -> Option<Bound> {
        let innermost = self.bodies.len() - 1;
        if from == innermost {
            return Some(bound);
        }
        Some(match bound {
            Bound::Tensor(mut value) => {
                for body in from + 1..=innermost {
                    value = self.capture(body, value)?;
                }
                Bound::Tensor(value)
            }
            Bound::Sequence(Sequence { elements, dtype }) => {
                let elements = elements.into_iter().map(|e| self.brought(e, from)).collect::<Option<_>>()?;
                Bound::Sequence(Sequence { elements, dtype })
            }
            Bound::Optional(Some(inner)) => Bound::Optional(Some(Box::new(self.brought(*inner, from)?))),
            other => other,
        })
    }

    /// A value of the body around `body` as one inside it. Constants and values known as sizes are built again, so
    /// that they stay known; others become inputs.
    fn capture(&mut self, body: usize, outside: Value) -> Option<Value> {
        let (around, inside) = self.bodies.split_at_mut(body);
        let (around, inside) = (&around[body - 1].builder, &mut inside[0]);
        if let Some((_, value)) = inside.captures.iter().find(|(o, _)| *o == outside) {
            return Some(*value);
        }
        if let Some(literal) = around.literal(outside) {
            return Some(inside.builder.constant(literal.clone()));
        }
        let t = around.type_of(outside).clone();
        if let Some(known) = around.known(outside)
            && let Some(value) = rebuilt(&mut inside.builder, &t, known)
        {
            return Some(value);
        }
        let name = free_name(&inside.builder, "captured");
        let value = inside.builder.input(&name, t).ok()?;
        inside.captures.push((outside, value));
        Some(value)
    }

    /// A new body inside the innermost one. Symbols have one meaning in all bodies.
    pub(crate) fn open_body(&mut self, name: &str) {
        let builder = self.builder().subgraph(name);
        self.bodies.push(Body::new(builder));
    }

    /// Ends the innermost body. Its symbols are declared around it, so that none gets their names again.
    pub(crate) fn close_body(&mut self) -> Option<Body> {
        if self.bodies.len() < 2 {
            return None;
        }
        let body = self.bodies.pop()?;
        let around = self.builder();
        for (symbol, info) in body.builder.graph().symbols().iter() {
            if !around.graph().symbols().contains(symbol) {
                around.declare(symbol.clone(), info.clone());
            }
        }
        Some(body)
    }

    /// A constant of the innermost body.
    pub(crate) fn constant(&mut self, constant: Constant) -> Bound {
        match constant {
            Constant::Tensor(literal) => Bound::Tensor(self.builder().constant(literal)),
            Constant::Text(text) => Bound::Text(Arc::new(text)),
            Constant::Sequence(elements, dtype) => {
                let elements = elements.into_iter().map(|e| self.constant(e)).collect();
                Bound::Sequence(Sequence { elements, dtype })
            }
            Constant::Optional(inner) => Bound::Optional(inner.map(|i| Box::new(self.constant(*i)))),
        }
    }

    /// The constant that a value of the innermost body is, if it is one.
    pub(crate) fn literal(&mut self, value: Value) -> Option<Literal> {
        let b = self.builder();
        if let Some(literal) = b.literal(value) {
            return Some(literal.clone());
        }
        let known = b.known_constants(value)?;
        let dims = b.shape(value).as_const()?;
        match b.dtype(value) {
            DType::I64 => Literal::from_slice(dims, &known).ok(),
            DType::I32 => {
                let narrow = known.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>().ok()?;
                Literal::from_slice(dims, &narrow).ok()
            }
            DType::Bool => {
                let flags: Vec<bool> = known.into_iter().map(|k| k != 0).collect();
                Literal::from_slice(dims, &flags).ok()
            }
            _ => None,
        }
    }

    /// The inputs of the model that a value of the innermost body is computed from, in order of the model's inputs.
    pub(crate) fn sources(&self, value: Value) -> Vec<String> {
        self.sources_of(FxHashSet::from_iter([value]))
    }

    fn sources_of(&self, mut wanted: FxHashSet<Value>) -> Vec<String> {
        for body in self.bodies.iter().rev() {
            let graph = body.builder.graph();
            let mut reached: FxHashSet<Value> = FxHashSet::default();
            let mut seen = FxHashSet::default();
            let mut stack: Vec<Value> = wanted.drain().collect();
            while let Some(value) = stack.pop() {
                if !seen.insert(value.node) {
                    continue;
                }
                let node = graph.node(value.node);
                if let Op::Primitive(Primitive::Input(_)) = node.op {
                    reached.insert(value);
                }
                stack.extend(node.operands.iter().copied());
            }
            if std::ptr::eq(body, &self.bodies[0]) {
                let inputs = graph.inputs().iter().filter(|v| reached.contains(v));
                return inputs.map(|v| graph.input_name(*v).to_owned()).collect();
            }
            wanted = body.captures.iter().filter(|(_, i)| reached.contains(i)).map(|(o, _)| *o).collect();
        }
        Vec::new()
    }

    /// The inputs of the model whose values decide these sizes of the innermost body, by symbols that are bound to
    /// computed values.
    pub(crate) fn sources_of_sizes(&self, dims: &[Dim]) -> Vec<String> {
        let mut symbols = FxHashSet::default();
        dims.iter().for_each(|d| {
            d.for_each_symbol(&mut |s| {
                symbols.insert(s.clone());
            });
        });
        let mut wanted = FxHashSet::default();
        let innermost = self.bodies.len() - 1;
        for (_, node) in self.bodies[innermost].builder.graph().nodes() {
            if let Op::Primitive(Primitive::BindDim(bind)) = &node.op
                && symbols.contains(&bind.symbol)
            {
                wanted.extend(node.operands.iter().copied());
            }
        }
        self.sources_of(wanted)
    }

    /// The elements of an integer vector as sizes: what they are known to be, else symbols bound when the graph
    /// runs. `None` if the length is not known.
    pub(crate) fn elements_as_dims(
        &mut self,
        value: Value,
        hint: &str,
    ) -> Option<Result<Vec<Dim>, NodeProblem>> {
        let b = self.builder();
        if let Some(known) = b.known(value) {
            return Some(Ok(known.to_vec()));
        }
        let length = match b.shape(value).as_const()?.as_slice() {
            [] => 1,
            // A file can declare any length; one that says the sizes of a tensor is short.
            [length] if *length <= MAX_KNOWN => *length,
            _ => return None,
        };
        Some((|| {
            let wide = b.cast(value, DType::I64)?;
            let flat = b.reshape(wide, &[length.into()])?;
            let element = |i: usize, b: &mut Builder| {
                let scalar = b.index_axis(flat, 0, &i.into())?;
                b.bind_dim(scalar, hint, 0)
            };
            Ok((0..length).map(|i| element(i, b)).collect::<Result<Vec<_>, _>>()?)
        })())
    }
}

/// A tensor of this type whose elements are these sizes.
fn rebuilt(b: &mut Builder, t: &TensorType, known: &[Dim]) -> Option<Value> {
    if !matches!(t.dtype, DType::I64 | DType::I32) {
        return None;
    }
    let flat = b.dims_value(known).ok()?;
    let wide = b.reshape(flat, t.dims()).ok()?;
    b.cast(wide, t.dtype).ok()
}

/// An input name that the graph does not have yet.
pub(crate) fn free_name(b: &Builder, hint: &str) -> String {
    let taken = |name: &str| b.graph().inputs().iter().any(|v| b.graph().input_name(*v) == name);
    let mut number = b.graph().inputs().len();
    loop {
        let name = format!("{hint}.{number}");
        if !taken(&name) {
            return name;
        }
        number += 1;
    }
}
