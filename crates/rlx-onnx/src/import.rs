//! A model to a graph: its interface, its nodes in order, its functions inlined.
//!
//! Comes in: an open [`ModelFile`]. Goes out: a graph that names nothing of ONNX, in which every node has the names
//! of the model's nodes that it comes from as its locations. Weights stay in the file's buffer.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use rlx_eval::OracleFolder;
use rlx_ir::{Builder, Graph, Locations};
use rustc_hash::FxHashMap;

use crate::error::{ImportError, NodeProblem};
use crate::load::ModelFile;
use crate::node::NodeContext;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, StringStringEntryProto};
use crate::registry::{self, normal_domain};
use crate::scope::{Body, Scope};
use crate::values::{Bound, Constant, Outputs, Text};
use crate::{functions, missing, order};

/// What importing may ask for beyond what loading bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportLimits {
    /// The most nodes imported, those of inlined functions and unrolled loops counted each time. Default: 1,000,000.
    pub max_nodes: usize,
    /// The deepest nesting of subgraphs and functions. Default: 64.
    pub max_depth: usize,
    /// The most trips of a loop that is unrolled because its shapes or sequences need it. Default: 1,024.
    pub max_unrolled_trips: usize,
    /// The most elements of a constant that is computed at import. Default: 4,096.
    pub max_folded_elements: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self { max_nodes: 1_000_000, max_depth: 64, max_unrolled_trips: 1024, max_folded_elements: 4096 }
    }
}

/// How a model is imported.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// What the model may ask for.
    pub limits: ImportLimits,
    /// Inputs that become constants, by name: needed where a value decides shapes or the structure of the graph
    /// ([`ImportError::needs_pinned`] names them), and for inputs of text, sequences and optionals.
    pub pinned: IndexMap<String, Constant>,
    /// Conditions of If nodes, by the node's name with its path, that are taken to hold or not to: for branches that
    /// give different ranks by sizes that are open. Without an entry the branch with fewer axes is taken.
    pub assumed: IndexMap<String, bool>,
}

/// An imported model.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The graph. Its inputs are those of the model that are neither pinned nor initialised, in order.
    pub graph: Graph,
    /// The model's outputs, in order, and which outputs of the graph they are made of.
    pub outputs: Vec<(String, OutputForm)>,
    /// The operator sets that the model imports, by domain (`ai.onnx` for ONNX's own).
    pub opsets: BTreeMap<String, i64>,
    /// What wrote the file: name and version.
    pub producer: String,
    /// The model's metadata.
    pub metadata: Vec<(String, String)>,
    /// What was assumed of conditions that sizes decide. The graph checks each when it runs.
    pub assumptions: Vec<Assumption>,
}

/// The condition of an If node that is taken to hold or not to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The node's name, with the path of the subgraphs and functions that it is in.
    pub node: String,
    /// Whether it holds.
    pub condition: bool,
}

/// What an output of a model is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputForm {
    /// The output of the graph at this position.
    Tensor(usize),
    /// Text that was known at import.
    Text(Text),
    /// A sequence.
    Sequence(Vec<OutputForm>),
    /// An optional.
    Optional(Option<Box<OutputForm>>),
}

/// Imports an open model.
pub fn import(file: &ModelFile, options: &ImportOptions) -> Result<Imported, ImportError> {
    let model = file.model();
    let opsets = Rc::new(Opsets::new(&model.opset_import)?);
    let functions = functions::by_identity(&model.functions)?;
    let graph = model
        .graph
        .as_ref()
        .ok_or_else(|| ImportError::Undefined { reader: "the model".to_owned(), name: "graph".to_owned() })?;
    missing::check(graph, &opsets, &functions, options.limits.max_depth)?;
    let name = if graph.name().is_empty() { "main" } else { graph.name() };
    let mut builder = Builder::new(name);
    builder.set_folder(Arc::new(OracleFolder { max_elements: options.limits.max_folded_elements }));
    let mut importer = Importer {
        file,
        options,
        functions,
        bodies: vec![Body::new(builder)],
        scopes: Vec::new(),
        nodes: 0,
        assumptions: Vec::new(),
    };
    importer.scopes.push(Scope::outermost(opsets.clone()));
    importer.interface(graph)?;
    importer.nodes_of(graph)?;
    importer.finish(graph, &opsets)
}

/// The operator sets in force: of the model, or of the function that a node is in.
#[derive(Debug, Default)]
pub(crate) struct Opsets(pub(crate) BTreeMap<String, i64>);

impl Opsets {
    pub(crate) fn new(imports: &[crate::proto::OperatorSetIdProto]) -> Result<Opsets, ImportError> {
        let mut all = BTreeMap::new();
        for import in imports {
            let domain = normal_domain(import.domain());
            if domain.is_empty() {
                let newest = registry::NEWEST_OPSET;
                if import.version() > newest {
                    return Err(ImportError::OpsetVersion { version: import.version(), newest });
                }
            }
            all.insert(domain.to_owned(), import.version());
        }
        Ok(Opsets(all))
    }

    /// The version of a domain's operator set.
    pub(crate) fn version(&self, domain: &str) -> Option<i64> {
        self.0.get(normal_domain(domain)).copied()
    }
}

/// The state of an import.
pub(crate) struct Importer<'m> {
    pub(crate) file: &'m ModelFile,
    pub(crate) options: &'m ImportOptions,
    pub(crate) functions: functions::Functions<'m>,
    /// The graph being built, then the bodies of control flow inside it that are being built.
    pub(crate) bodies: Vec<Body>,
    /// The scopes that are open, the innermost last.
    pub(crate) scopes: Vec<Scope<'m>>,
    /// Nodes imported so far.
    pub(crate) nodes: usize,
    /// Conditions assumed so far.
    pub(crate) assumptions: Vec<Assumption>,
}

/// A node's name; its type and first output where it has none.
pub(crate) fn node_name(node: &NodeProto) -> String {
    match node.name() {
        "" => {
            let output = node.output.iter().find(|o| !o.is_empty());
            format!("{}:{}", node.op_type(), output.map_or("", String::as_str))
        }
        name => name.to_owned(),
    }
}

impl<'m> Importer<'m> {
    /// The builder of the innermost body.
    pub(crate) fn builder(&mut self) -> &mut Builder {
        let innermost = self.bodies.len() - 1;
        &mut self.bodies[innermost].builder
    }

    pub(crate) fn file(&self) -> &'m ModelFile {
        self.file
    }

    /// Imports the nodes of a graph into the innermost scope.
    pub(crate) fn nodes_of(&mut self, graph: &'m GraphProto) -> Result<(), ImportError> {
        for index in order::order(graph)? {
            self.node(&graph.node[index])?;
        }
        Ok(())
    }

    /// Imports one node and binds its outputs.
    pub(crate) fn node(&mut self, node: &'m NodeProto) -> Result<(), ImportError> {
        let place = format!("{}{}", self.scope().path, node_name(node));
        self.nodes += 1;
        if self.nodes > self.options.limits.max_nodes {
            let limit = self.options.limits.max_nodes;
            return Err(ImportError::Limit { what: "nodes", limit, at: place });
        }
        let mut inputs = Vec::with_capacity(node.input.len());
        for name in &node.input {
            inputs.push(match name.as_str() {
                "" => Bound::Absent,
                name => self.lookup(name).ok_or_else(|| ImportError::Undefined {
                    reader: format!("node {place:?}"),
                    name: name.to_owned(),
                })?,
            });
        }
        let before = self.builder().locations().clone();
        self.builder().set_locations(Locations::one(place.as_str()));
        let outputs = self.apply(node, &place, inputs)?;
        self.builder().set_locations(before);
        let absent = std::iter::repeat(Bound::Absent);
        for (name, value) in node.output.iter().zip(outputs.0.into_iter().chain(absent)) {
            if !name.is_empty() {
                self.bind(name, value);
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        node: &'m NodeProto,
        place: &str,
        inputs: Vec<Bound>,
    ) -> Result<Outputs, ImportError> {
        if let Some(function) = functions::find(&self.functions, node) {
            return self.call(function, node, place, inputs);
        }
        let opset = self.scope().opsets.version(node.domain()).unwrap_or(1);
        // The check for missing operators has seen every node.
        let Some((operator, since)) = registry::find(node.domain(), node.op_type(), opset) else {
            return Err(missing::one(node, opset, place));
        };
        let handler = operator.import;
        let mut cx = NodeContext { importer: self, node, inputs, operator, since };
        let outputs = handler(&mut cx).and_then(|outputs| {
            let named = node.output.iter().rposition(|o| !o.is_empty()).map_or(0, |i| i + 1);
            if named > outputs.0.len() {
                return Err(NodeProblem::OutputCount { expected: outputs.0.len(), found: named });
            }
            Ok(outputs)
        });
        outputs.map_err(|problem| match problem {
            NodeProblem::Within(error) => *error,
            problem => ImportError::Node {
                node: place.to_owned(),
                operator: match node.domain() {
                    "" | "ai.onnx" => format!("{}, opset {opset}", node.op_type()),
                    domain => format!("{domain}:{}, opset {opset}", node.op_type()),
                },
                problem: Box::new(problem),
            },
        })
    }

    /// Imports the body of a function in place of a node.
    fn call(
        &mut self,
        function: &'m FunctionProto,
        node: &'m NodeProto,
        place: &str,
        inputs: Vec<Bound>,
    ) -> Result<Outputs, ImportError> {
        let attributes = self.function_attributes(function, node);
        let opsets = Rc::new(Opsets::new(&function.opset_import)?);
        self.enter(
            Scope {
                names: FxHashMap::default(),
                body: self.bodies.len() - 1,
                parent: None,
                attributes: Some(Rc::new(attributes)),
                opsets,
                path: format!("{place}/"),
            },
            place,
        )?;
        for (i, name) in function.input.iter().enumerate() {
            let value = inputs.get(i).cloned().unwrap_or(Bound::Absent);
            self.bind(name, value);
        }
        for index in order::order_nodes(function.name(), &function.node)? {
            self.node(&function.node[index])?;
        }
        let mut outputs = Vec::with_capacity(function.output.len());
        for name in &function.output {
            outputs.push(self.lookup(name).ok_or_else(|| ImportError::Undefined {
                reader: format!("an output of function {:?}", function.name()),
                name: name.clone(),
            })?);
        }
        self.leave();
        Ok(Outputs(outputs))
    }

    /// The attributes that the body of `function` sees: those of the node, else the function's defaults.
    fn function_attributes(
        &self,
        function: &'m FunctionProto,
        node: &'m NodeProto,
    ) -> FxHashMap<&'m str, &'m AttributeProto> {
        let mut all: FxHashMap<&'m str, &'m AttributeProto> =
            function.attribute_proto.iter().map(|a| (a.name(), a)).collect();
        for attribute in &node.attribute {
            let resolved = match attribute.ref_attr_name() {
                "" => Some(attribute),
                reference => self.function_attribute(reference),
            };
            all.extend(resolved.map(|a| (attribute.name(), a)));
        }
        all
    }

    /// The attribute of the function that the innermost scope is in.
    pub(crate) fn function_attribute(&self, name: &str) -> Option<&'m AttributeProto> {
        self.scope().attributes.as_ref()?.get(name).copied()
    }

    fn finish(mut self, graph: &'m GraphProto, opsets: &Opsets) -> Result<Imported, ImportError> {
        let mut named = Vec::new();
        let mut outputs = Vec::with_capacity(graph.output.len());
        for output in &graph.output {
            let name = output.name();
            let value = self.lookup(name).ok_or_else(|| ImportError::Undefined {
                reader: "an output of the model".to_owned(),
                name: name.to_owned(),
            })?;
            let form = output_form(&value, name, &mut named).ok_or_else(|| ImportError::Interface {
                what: "output",
                name: name.to_owned(),
                problem: Box::new(NodeProblem::Unsupported("an output that its node leaves out".to_owned())),
            })?;
            outputs.push((name.to_owned(), form));
        }
        let builder = self.bodies.swap_remove(0).builder;
        let graph = builder.finish(named.iter().map(|(name, value)| (name.as_str(), *value)))?;
        let model = self.file.model();
        let shown = |d: &String| if d.is_empty() { "ai.onnx".to_owned() } else { d.clone() };
        Ok(Imported {
            graph,
            outputs,
            opsets: opsets.0.iter().map(|(domain, version)| (shown(domain), *version)).collect(),
            producer: format!("{} {}", model.producer_name(), model.producer_version()).trim().to_owned(),
            metadata: model.metadata_props.iter().map(entry).collect(),
            assumptions: self.assumptions,
        })
    }
}

fn entry(e: &StringStringEntryProto) -> (String, String) {
    (e.key().to_owned(), e.value().to_owned())
}

/// Lists the tensors of an output with a name each, and gives its form; `None` where it is absent.
fn output_form(value: &Bound, name: &str, named: &mut Vec<(String, rlx_ir::Value)>) -> Option<OutputForm> {
    Some(match value {
        Bound::Absent => return None,
        Bound::Tensor(value) => {
            named.push((name.to_owned(), *value));
            OutputForm::Tensor(named.len() - 1)
        }
        Bound::Text(text) => OutputForm::Text((**text).clone()),
        Bound::Sequence(sequence) => {
            let each = sequence.elements.iter().enumerate();
            OutputForm::Sequence(
                each.map(|(i, e)| output_form(e, &format!("{name}.{i}"), named)).collect::<Option<_>>()?,
            )
        }
        Bound::Optional(None) => OutputForm::Optional(None),
        Bound::Optional(Some(inner)) => {
            OutputForm::Optional(Some(Box::new(output_form(inner, name, named)?)))
        }
    })
}
