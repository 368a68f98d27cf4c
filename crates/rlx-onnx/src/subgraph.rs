//! Subgraphs of nodes: imported in place, or as the closed body of a control-flow operation.

use std::sync::Arc;

use rlx_ir::{Builder, DType, Dim, Graph, TensorType, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ImportError, NodeProblem};
use crate::import::{Importer, node_name};
use crate::node::NodeContext;
use crate::proto::GraphProto;
use crate::scope::Scope;
use crate::values::{Bound, Sequence};

/// A body that was built: its graph, what it captures from around it, and what its outputs are made of.
pub(crate) struct BuiltBody {
    pub(crate) graph: Arc<Graph>,
    /// The values around it that are its last inputs.
    pub(crate) captured: Vec<Value>,
    /// Its outputs' structure; the tensors are the outputs of the graph, in order.
    pub(crate) forms: Vec<Form>,
    /// The types of the tensors.
    pub(crate) types: Vec<TensorType>,
    /// Whether the first output is known to be true: of loops, the condition.
    pub(crate) first_is_true: bool,
}

/// Changes the outputs of a body before it is closed.
pub(crate) type Finish<'a> = &'a mut dyn FnMut(&mut Builder, &mut Vec<Value>) -> Result<(), NodeProblem>;

/// The structure of a value, without its tensors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Tensor,
    Sequence(Vec<Form>, Option<DType>),
    Optional(Option<Box<Form>>),
    Absent,
}

impl Form {
    /// The structure of a value; its tensors are appended to `tensors`. `None` for text.
    pub(crate) fn of(bound: &Bound, tensors: &mut Vec<Value>) -> Option<Form> {
        Some(match bound {
            Bound::Tensor(value) => {
                tensors.push(*value);
                Form::Tensor
            }
            Bound::Sequence(sequence) => {
                let elements = sequence.elements.iter().map(|e| Form::of(e, tensors));
                Form::Sequence(elements.collect::<Option<_>>()?, sequence.dtype)
            }
            Bound::Optional(inner) => Form::Optional(match inner {
                Some(inner) => Some(Box::new(Form::of(inner, tensors)?)),
                None => None,
            }),
            Bound::Absent => Form::Absent,
            Bound::Text(_) => return None,
        })
    }

    /// The value of this structure with these tensors.
    pub(crate) fn filled(&self, tensors: &mut impl Iterator<Item = Value>) -> Bound {
        match self {
            Form::Tensor => tensors.next().map_or(Bound::Absent, Bound::Tensor),
            Form::Sequence(elements, dtype) => Bound::Sequence(Sequence {
                elements: elements.iter().map(|e| e.filled(tensors)).collect(),
                dtype: *dtype,
            }),
            Form::Optional(inner) => Bound::Optional(inner.as_ref().map(|i| Box::new(i.filled(tensors)))),
            Form::Absent => Bound::Absent,
        }
    }
}

/// How deep the import is, to go back to after an attempt that failed.
pub(crate) struct Depth {
    scopes: usize,
    bodies: usize,
}

impl<'m> Importer<'m> {
    /// The present depth.
    pub(crate) fn depth(&self) -> Depth {
        Depth { scopes: self.scopes.len(), bodies: self.bodies.len() }
    }

    /// Leaves everything that was opened since.
    pub(crate) fn back_to(&mut self, depth: &Depth) {
        self.scopes.truncate(depth.scopes);
        self.bodies.truncate(depth.bodies);
    }

    /// Imports a subgraph into the innermost body; its outputs.
    pub(crate) fn inlined(
        &mut self,
        graph: &'m GraphProto,
        inputs: Vec<Bound>,
        path: &str,
    ) -> Result<Vec<Bound>, ImportError> {
        let around = self.scope();
        let scope = Scope {
            names: FxHashMap::default(),
            body: self.bodies.len() - 1,
            parent: Some(self.scopes.len() - 1),
            attributes: around.attributes.clone(),
            opsets: around.opsets.clone(),
            path: format!("{path}/"),
        };
        self.enter(scope, path)?;
        self.initializers(graph)?;
        for (input, value) in graph.input.iter().zip(inputs) {
            self.bind(input.name(), value);
        }
        self.nodes_of(graph)?;
        let mut outputs = Vec::with_capacity(graph.output.len());
        for output in &graph.output {
            let name = output.name();
            outputs.push(self.lookup(name).ok_or_else(|| ImportError::Undefined {
                reader: format!("an output of the subgraph {path:?}"),
                name: name.to_owned(),
            })?);
        }
        self.leave();
        Ok(outputs)
    }
}

impl<'m> NodeContext<'_, 'm> {
    /// The node's name, with the path of the subgraphs and functions that it is in.
    pub(crate) fn place(&self) -> String {
        format!("{}{}", self.importer.scope().path, node_name(self.node))
    }

    /// Where the nodes of a subgraph are.
    fn path(&self, label: &str) -> String {
        format!("{}/{label}", self.place())
    }

    /// Imports a subgraph in place of the node; its outputs.
    pub(crate) fn inline(
        &mut self,
        graph: &'m GraphProto,
        inputs: Vec<Bound>,
        label: &str,
    ) -> Result<Vec<Bound>, NodeProblem> {
        let path = self.path(label);
        Ok(self.importer.inlined(graph, inputs, &path)?)
    }

    /// Builds a subgraph as a closed graph. Its first inputs are of the types that `inputs` gives; a `None` among
    /// them stands for the constant true, which is no input. Names in `captured` come in first, in order, so that
    /// two bodies can have the same inputs. `finish` may change the outputs, inside the body.
    pub(crate) fn body(
        &mut self,
        graph: &'m GraphProto,
        inputs: &[Option<TensorType>],
        captured: &[&'m str],
        label: &str,
        finish: Finish<'_>,
    ) -> Result<BuiltBody, NodeProblem> {
        let path = self.path(label);
        self.importer.open_body(label);
        let mut formal = Vec::with_capacity(inputs.len());
        for (i, t) in inputs.iter().enumerate() {
            let b = self.importer.builder();
            let value = match t {
                Some(t) => b.input(&format!("{i}"), t.clone())?,
                None => b.scalar(1.0, DType::Bool)?,
            };
            formal.push(Bound::Tensor(declared_rank(self, graph, i, value)?));
        }
        for name in captured {
            self.importer.lookup(name);
        }
        let outputs = self.importer.inlined(graph, formal, &path)?;
        let mut tensors = Vec::new();
        let forms: Option<Vec<Form>> = outputs.iter().map(|o| Form::of(o, &mut tensors)).collect();
        let Some(forms) = forms else {
            return Err(NodeProblem::Unsupported(
                "text as a result of a subgraph that runs later".to_owned(),
            ));
        };
        let b = self.importer.builder();
        finish(b, &mut tensors)?;
        let first_is_true = tensors.first().and_then(|v| b.known_constants(*v)) == Some(vec![1]);
        let types = tensors.iter().map(|v| b.type_of(*v).clone()).collect();
        let Some(body) = self.importer.close_body() else {
            return Err(NodeProblem::Unsupported("a body that is not open".to_owned()));
        };
        let names: Vec<String> = (0..tensors.len()).map(|i| i.to_string()).collect();
        let graph = body.builder.finish(names.iter().map(String::as_str).zip(tensors))?;
        Ok(BuiltBody {
            graph: Arc::new(graph),
            captured: body.captures.into_iter().map(|(outside, _)| outside).collect(),
            forms,
            types,
            first_is_true,
        })
    }

    /// Whether a type mentions only symbols that the graph around has.
    pub(crate) fn is_of_this_graph(&mut self, t: &TensorType, known: &FxHashSet<rlx_ir::Symbol>) -> bool {
        let mut all = true;
        t.dims().iter().for_each(|d| d.for_each_symbol(&mut |s| all &= known.contains(s)));
        all
    }

    /// The symbols of the graph being built.
    pub(crate) fn symbols(&mut self) -> FxHashSet<rlx_ir::Symbol> {
        self.builder().graph().symbols().iter().map(|(s, _)| s.clone()).collect()
    }
}

/// A scalar with the one axis that the subgraph declares for it, as some writers do for counters and conditions.
fn declared_rank(
    cx: &mut NodeContext<'_, '_>,
    graph: &GraphProto,
    i: usize,
    value: Value,
) -> Result<Value, NodeProblem> {
    use crate::proto::type_proto::Value::TensorType;
    let t = graph.input.get(i).and_then(|input| input.r#type.as_ref()).and_then(|t| t.value.as_ref());
    let rank = match t {
        Some(TensorType(tensor)) => tensor.shape.as_ref().map(|s| s.dim.len()),
        _ => None,
    };
    let b = cx.builder();
    if rank == Some(1) && b.rank(value) == 0 { Ok(b.reshape(value, &[Dim::ONE])?) } else { Ok(value) }
}
