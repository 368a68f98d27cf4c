//! The inputs and initializers of a model's graph.

use rlx_ir::{Builder, DType, Dim, Symbol, TensorType};
use rustc_hash::FxHashSet;

use crate::error::{ImportError, NodeProblem};
use crate::import::Importer;
use crate::literal::{self, dtype_of_number};
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{GraphProto, TypeProto, ValueInfoProto, type_proto};
use crate::values::{Bound, Constant};

/// The element type of the tensors in a type: of a tensor itself, or inside sequences and optionals.
pub(crate) fn element_type(t: &TypeProto) -> Option<Result<DType, NodeProblem>> {
    match t.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => Some(dtype_of_number(tensor.elem_type().into())),
        type_proto::Value::SequenceType(sequence) => element_type(sequence.elem_type.as_deref()?),
        type_proto::Value::OptionalType(optional) => element_type(optional.elem_type.as_deref()?),
        _ => None,
    }
}

/// What a type is, in words.
fn kind(t: &TypeProto) -> &'static str {
    match &t.value {
        Some(type_proto::Value::TensorType(_)) => "a tensor",
        Some(type_proto::Value::SequenceType(_)) => "a sequence",
        Some(type_proto::Value::OptionalType(_)) => "an optional",
        Some(type_proto::Value::MapType(_)) => "a map",
        Some(type_proto::Value::SparseTensorType(_)) => "a sparse tensor",
        Some(type_proto::Value::OpaqueType(_)) => "an opaque value",
        None => "a value without a type",
    }
}

/// A size of a declared shape: a constant, the symbol of its name, or (anonymous) a fresh one.
pub(crate) fn dim(b: &mut Builder, dimension: &Dimension, hint: &str) -> Dim {
    match &dimension.value {
        Some(dimension::Value::DimValue(size)) if *size >= 0 => Dim::constant(*size),
        Some(dimension::Value::DimParam(name)) if !name.is_empty() && name != "?" => {
            let symbol = Symbol::new(name);
            if !b.graph().symbols().contains(&symbol) {
                b.declare(symbol.clone(), rlx_ir::SymbolInfo::default());
            }
            symbol.into()
        }
        // Some writers put −1 or nothing where a size is open.
        _ => b.fresh_symbol(hint).into(),
    }
}

/// A pinned tensor must be of the type that the model declares for the input.
fn fits(constant: &Constant, input: &ValueInfoProto) -> Result<(), NodeProblem> {
    let t = input.r#type.as_ref().and_then(|t| t.value.as_ref());
    let (Some(type_proto::Value::TensorType(declared)), Constant::Tensor(literal)) = (t, constant) else {
        return Ok(());
    };
    let differs =
        |what, expected: String, found: String| NodeProblem::Input { operand: 0, what, expected, found };
    let dtype = dtype_of_number(declared.elem_type().into())?;
    if dtype != literal.dtype() {
        return Err(differs("element type", dtype.to_string(), literal.dtype().to_string()));
    }
    let Some(shape) = &declared.shape else { return Ok(()) };
    let same = |(declared, found): (&Dimension, &usize)| match declared.value {
        Some(dimension::Value::DimValue(size)) if size >= 0 => usize::try_from(size) == Ok(*found),
        _ => true,
    };
    if shape.dim.len() != literal.dims().len() || !shape.dim.iter().zip(literal.dims()).all(same) {
        let sizes = shape.dim.iter().map(|d| match &d.value {
            Some(dimension::Value::DimValue(size)) => size.to_string(),
            Some(dimension::Value::DimParam(name)) => name.clone(),
            None => "?".to_owned(),
        });
        let expected = format!("[{}]", sizes.collect::<Vec<_>>().join(", "));
        return Err(differs("sizes", expected, format!("{:?}", literal.dims())));
    }
    Ok(())
}

impl<'m> Importer<'m> {
    /// Binds the initializers and inputs of the model's graph.
    pub(crate) fn interface(&mut self, graph: &'m GraphProto) -> Result<(), ImportError> {
        self.initializers(graph)?;
        let pinned = self.options.pinned.keys();
        let inputs: FxHashSet<&str> = graph.input.iter().map(ValueInfoProto::name).collect();
        if let Some(unknown) = pinned.into_iter().find(|name| !inputs.contains(name.as_str())) {
            return Err(ImportError::Undefined {
                reader: "the options' pinned inputs".to_owned(),
                name: unknown.clone(),
            });
        }
        for input in &graph.input {
            let bound = if let Some(constant) = self.options.pinned.get(input.name()) {
                fits(constant, input).map_err(|problem| ImportError::Interface {
                    what: "pinned input",
                    name: input.name().to_owned(),
                    problem: Box::new(problem),
                })?;
                Some(self.constant(constant.clone()))
            } else if self.scope().names.contains_key(input.name()) {
                // An initializer of the same name is the input's default, which stands.
                None
            } else {
                Some(self.input(input).map_err(|problem| ImportError::Interface {
                    what: "input",
                    name: input.name().to_owned(),
                    problem: Box::new(problem),
                })?)
            };
            if let Some(bound) = bound {
                self.bind(input.name(), bound);
            }
        }
        Ok(())
    }

    /// Binds the initializers of a graph as constants of the innermost body.
    pub(crate) fn initializers(&mut self, graph: &'m GraphProto) -> Result<(), ImportError> {
        for tensor in &graph.initializer {
            let constant = self.file.tensor(tensor).map_err(NodeProblem::from).and_then(literal::constant);
            self.initializer(tensor.name(), constant)?;
        }
        for sparse in &graph.sparse_initializer {
            let name = sparse.values.as_ref().map_or("", |values| values.name());
            let constant =
                self.file.sparse_tensor(sparse).map_err(NodeProblem::from).and_then(literal::constant);
            self.initializer(name, constant)?;
        }
        Ok(())
    }

    fn initializer(
        &mut self,
        name: &'m str,
        constant: Result<Constant, NodeProblem>,
    ) -> Result<(), ImportError> {
        let constant = constant.map_err(|problem| ImportError::Interface {
            what: "initializer",
            name: name.to_owned(),
            problem: Box::new(problem),
        })?;
        let bound = self.constant(constant);
        self.bind(name, bound);
        Ok(())
    }

    /// An input of the graph for an input of the model.
    fn input(&mut self, input: &ValueInfoProto) -> Result<Bound, NodeProblem> {
        let needs = |what: &str| NodeProblem::NeedsConstant {
            operand: 0,
            what: what.to_owned(),
            graph_inputs: vec![input.name().to_owned()],
        };
        let t = input.r#type.as_ref().ok_or_else(|| needs("a type, which the file does not give"))?;
        let Some(type_proto::Value::TensorType(tensor)) = &t.value else {
            return Err(needs(&format!("the structure of {}", kind(t))));
        };
        let dtype = dtype_of_number(tensor.elem_type().into())?;
        if dtype == DType::String {
            return Err(needs("text, which exists at import only"));
        }
        let shape = tensor.shape.as_ref().ok_or_else(|| needs("a rank, which the file does not give"))?;
        let name = input.name();
        let b = self.builder();
        let dims: Vec<Dim> =
            shape.dim.iter().enumerate().map(|(i, d)| dim(b, d, &format!("{name}_{i}"))).collect();
        Ok(b.input(name, TensorType::new(dtype, dims))?.into())
    }
}
