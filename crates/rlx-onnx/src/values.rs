//! What a name of a model stands for while it is imported.
//!
//! Graphs of RLX hold tensors only. Sequences, optionals and text are followed at import: a sequence is the list of its
//! elements, an optional is there or not, and text is constant.

use std::fmt;
use std::sync::Arc;

use rlx_ir::{DType, Literal, Value};

/// The value of a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A tensor of the graph that is being built.
    Tensor(Value),
    /// A constant tensor of text.
    Text(Arc<Text>),
    /// A sequence of known length.
    Sequence(Sequence),
    /// An optional of which it is known whether it holds something.
    Optional(Option<Box<Bound>>),
    /// An optional input or output that is left out.
    Absent,
}

/// A sequence of known length.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The elements, in order.
    pub elements: Vec<Bound>,
    /// The element type of its tensors; it is what an empty sequence still has. `None` for sequences of sequences.
    pub dtype: Option<DType>,
}

/// A constant tensor of text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    /// The sizes.
    pub dims: Vec<usize>,
    /// The elements in row-major order.
    pub elements: Vec<String>,
}

/// A value that is fully known: what a caller gives for an input whose value decides shapes.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A tensor.
    Tensor(Literal),
    /// A tensor of text.
    Text(Text),
    /// A sequence, with the element type of its tensors.
    Sequence(Vec<Constant>, Option<DType>),
    /// An optional.
    Optional(Option<Box<Constant>>),
}

impl Bound {
    /// What it is, in words for an error.
    pub fn kind(&self) -> &'static str {
        match self {
            Bound::Tensor(_) => "a tensor",
            Bound::Text(_) => "a tensor of text",
            Bound::Sequence(_) => "a sequence",
            Bound::Optional(_) => "an optional",
            Bound::Absent => "nothing",
        }
    }

    /// The tensor, if it is one. An optional that holds a tensor stands for it, as operators of opset 18 have it.
    pub fn as_tensor(&self) -> Option<Value> {
        match self {
            Bound::Tensor(value) => Some(*value),
            Bound::Optional(Some(inner)) => inner.as_tensor(),
            _ => None,
        }
    }
}

impl From<Value> for Bound {
    fn from(value: Value) -> Bound {
        Bound::Tensor(value)
    }
}

impl From<Literal> for Constant {
    fn from(literal: Literal) -> Constant {
        Constant::Tensor(literal)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// The results of one node, in order. Trailing optional results may be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs(pub Vec<Bound>);

impl From<Value> for Outputs {
    fn from(value: Value) -> Outputs {
        Outputs(vec![value.into()])
    }
}

impl From<Bound> for Outputs {
    fn from(value: Bound) -> Outputs {
        Outputs(vec![value])
    }
}

impl From<Sequence> for Outputs {
    fn from(value: Sequence) -> Outputs {
        Outputs(vec![Bound::Sequence(value)])
    }
}

impl From<Vec<Value>> for Outputs {
    fn from(values: Vec<Value>) -> Outputs {
        values.into_iter().collect()
    }
}

impl FromIterator<Value> for Outputs {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Outputs {
        Outputs(values.into_iter().map(Bound::Tensor).collect())
    }
}

impl FromIterator<Bound> for Outputs {
    fn from_iter<I: IntoIterator<Item = Bound>>(values: I) -> Outputs {
        Outputs(values.into_iter().collect())
    }
}

impl FromIterator<Option<Value>> for Outputs {
    fn from_iter<I: IntoIterator<Item = Option<Value>>>(values: I) -> Outputs {
        Outputs(values.into_iter().map(|v| v.map_or(Bound::Absent, Bound::Tensor)).collect())
    }
}
