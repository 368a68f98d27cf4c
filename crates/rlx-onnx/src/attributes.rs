//! Typed access to a node's attributes. An absent attribute gives the default or `None`; one of another type is an
//! error. Attributes that refer to those of the enclosing function are followed.

use rlx_ir::DType;

use crate::error::NodeProblem;
use crate::literal::{self, dtype_of_number};
use crate::node::NodeContext;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, GraphProto};
use crate::values::Constant;

type Read<T> = Result<T, NodeProblem>;

/// The type that an attribute says it has, or (in files from before IR version 2) that its fields show.
fn type_of(attribute: &AttributeProto) -> AttributeType {
    if let Some(number) = attribute.r#type
        && number != 0
    {
        return AttributeType::try_from(number).unwrap_or(AttributeType::Undefined);
    }
    let present = [
        (attribute.f.is_some(), AttributeType::Float),
        (attribute.i.is_some(), AttributeType::Int),
        (attribute.s.is_some(), AttributeType::String),
        (attribute.t.is_some(), AttributeType::Tensor),
        (attribute.g.is_some(), AttributeType::Graph),
        (attribute.sparse_tensor.is_some(), AttributeType::SparseTensor),
        (attribute.tp.is_some(), AttributeType::TypeProto),
        (!attribute.floats.is_empty(), AttributeType::Floats),
        (!attribute.ints.is_empty(), AttributeType::Ints),
        (!attribute.strings.is_empty(), AttributeType::Strings),
    ];
    present.iter().find(|(present, _)| *present).map_or(AttributeType::Undefined, |(_, t)| *t)
}

fn text(name: &str, bytes: &[u8]) -> Read<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| NodeProblem::AttributeValue {
        name: name.to_owned(),
        expected: "UTF-8".into(),
        found: format!("{} other bytes", bytes.len()),
    })
}

impl<'m> NodeContext<'_, 'm> {
    /// The attribute, if it is there and of this type.
    fn typed(
        &self,
        name: &str,
        wanted: AttributeType,
        expected: &'static str,
    ) -> Read<Option<&'m AttributeProto>> {
        let Some(attribute) = self.attribute(name) else { return Ok(None) };
        let found = type_of(attribute);
        if found == wanted {
            return Ok(Some(attribute));
        }
        let found = found.as_str_name().to_lowercase();
        Err(NodeProblem::AttributeType { name: name.to_owned(), expected, found })
    }

    /// The error of an attribute with a value that the operator does not take.
    pub(crate) fn bad_attribute(
        &self,
        name: &str,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> NodeProblem {
        let (expected, found) = (expected.into(), found.to_string());
        NodeProblem::AttributeValue { name: name.to_owned(), expected, found }
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Read<T> {
        value.ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
    }

    /// An integer that may be absent.
    pub(crate) fn optional_int(&self, name: &str) -> Read<Option<i64>> {
        Ok(self.typed(name, AttributeType::Int, "int")?.map(AttributeProto::i))
    }

    /// An integer.
    pub(crate) fn int(&self, name: &str, default: i64) -> Read<i64> {
        Ok(self.optional_int(name)?.unwrap_or(default))
    }

    /// An integer that must be there.
    pub(crate) fn required_int(&self, name: &str) -> Read<i64> {
        self.required(name, self.optional_int(name)?)
    }

    /// An integer that stands for a truth value.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Read<bool> {
        Ok(self.optional_int(name)?.map_or(default, |i| i != 0))
    }

    /// A float that may be absent.
    pub(crate) fn optional_float(&self, name: &str) -> Read<Option<f64>> {
        Ok(self.typed(name, AttributeType::Float, "float")?.map(|a| f64::from(a.f())))
    }

    /// A float. The default is an f32, as the values in files are.
    pub(crate) fn float(&self, name: &str, default: f32) -> Read<f64> {
        Ok(self.optional_float(name)?.unwrap_or(f64::from(default)))
    }

    /// Text that may be absent.
    pub(crate) fn optional_string(&self, name: &str) -> Read<Option<String>> {
        let attribute = self.typed(name, AttributeType::String, "string")?;
        attribute.map(|a| text(name, a.s.as_deref().unwrap_or_default())).transpose()
    }

    /// Text.
    pub(crate) fn string(&self, name: &str, default: &str) -> Read<String> {
        Ok(self.optional_string(name)?.unwrap_or_else(|| default.to_owned()))
    }

    /// A list of integers that may be absent.
    pub(crate) fn ints(&self, name: &str) -> Read<Option<Vec<i64>>> {
        Ok(self.typed(name, AttributeType::Ints, "ints")?.map(|a| a.ints.clone()))
    }

    /// A list of floats that may be absent.
    pub(crate) fn floats(&self, name: &str) -> Read<Option<Vec<f64>>> {
        let attribute = self.typed(name, AttributeType::Floats, "floats")?;
        Ok(attribute.map(|a| a.floats.iter().map(|f| f64::from(*f)).collect()))
    }

    /// A list of text that may be absent.
    pub(crate) fn strings(&self, name: &str) -> Read<Option<Vec<String>>> {
        let attribute = self.typed(name, AttributeType::Strings, "strings")?;
        attribute.map(|a| a.strings.iter().map(|s| text(name, s)).collect()).transpose()
    }

    /// A tensor that may be absent.
    pub(crate) fn tensor(&self, name: &str) -> Read<Option<Constant>> {
        let attribute = self.typed(name, AttributeType::Tensor, "tensor")?;
        let Some(tensor) = attribute.and_then(|a| a.t.as_deref()) else { return Ok(None) };
        literal::constant(self.file().tensor(tensor)?).map(Some)
    }

    /// A sparse tensor made dense, that may be absent.
    pub(crate) fn sparse_tensor(&self, name: &str) -> Read<Option<Constant>> {
        let attribute = self.typed(name, AttributeType::SparseTensor, "sparse_tensor")?;
        let Some(tensor) = attribute.and_then(|a| a.sparse_tensor.as_deref()) else { return Ok(None) };
        literal::constant(self.file().sparse_tensor(tensor)?).map(Some)
    }

    /// A subgraph that must be there.
    pub(crate) fn graph(&self, name: &str) -> Read<&'m GraphProto> {
        let attribute = self.typed(name, AttributeType::Graph, "graph")?;
        self.required(name, attribute.and_then(|a| a.g.as_deref()))
    }

    /// An integer that stands for an element type (`TensorProto.DataType`), that may be absent.
    pub(crate) fn element_type(&self, name: &str) -> Read<Option<DType>> {
        self.optional_int(name)?.map(dtype_of_number).transpose()
    }
}
