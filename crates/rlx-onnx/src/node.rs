//! What the handler of an operator sees of its node: inputs, attributes, what is known of values, and the builder.
//!
//! A handler builds the equivalent nodes and gives the outputs. Errors need not say which node they are of; the
//! importer adds that, and it gives the nodes their locations.

use rlx_ir::{Builder, DType, Dim, Literal, Shape, Value};

use crate::error::NodeProblem;
use crate::import::Importer;
use crate::load::ModelFile;
use crate::proto::{AttributeProto, NodeProto};
use crate::registry::Operator;
use crate::values::{Bound, Sequence, Text};

/// One node while its handler runs.
pub(crate) struct NodeContext<'a, 'm> {
    pub(crate) importer: &'a mut Importer<'m>,
    pub(crate) node: &'m NodeProto,
    pub(crate) inputs: Vec<Bound>,
    pub(crate) operator: &'static Operator,
    pub(crate) since: i64,
}

impl<'m> NodeContext<'_, 'm> {
    /// The builder of the graph that the node is in.
    pub(crate) fn builder(&mut self) -> &mut Builder {
        self.importer.builder()
    }

    /// The model's file, for tensors.
    pub(crate) fn file(&self) -> &'m ModelFile {
        self.importer.file()
    }

    /// The operator's type.
    pub(crate) fn op_type(&self) -> &'static str {
        self.operator.name
    }

    /// The version of the operator's schema in force: the latest listed in the table that the operator set includes.
    pub(crate) fn since(&self) -> i64 {
        self.since
    }

    /// The attribute of this name; a reference is followed to the attribute of the function that the node is in.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'m AttributeProto> {
        let attribute = self.node.attribute.iter().find(|a| a.name() == name)?;
        match attribute.ref_attr_name() {
            "" => Some(attribute),
            reference => self.importer.function_attribute(reference),
        }
    }

    /// The number of inputs, those left out in the middle included.
    pub(crate) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Whether input `i` is there.
    pub(crate) fn has(&self, i: usize) -> bool {
        !matches!(self.inputs.get(i), None | Some(Bound::Absent))
    }

    /// Input `i`, whatever it is; an error if it is left out.
    pub(crate) fn bound(&self, i: usize) -> Result<&Bound, NodeProblem> {
        match self.inputs.get(i) {
            None | Some(Bound::Absent) => Err(NodeProblem::MissingInput { operand: i }),
            Some(bound) => Ok(bound),
        }
    }

    /// Input `i`, which must be a tensor.
    pub(crate) fn input(&self, i: usize) -> Result<Value, NodeProblem> {
        let bound = self.bound(i)?;
        bound.as_tensor().ok_or(NodeProblem::InputKind {
            operand: i,
            expected: "a tensor",
            found: bound.kind(),
        })
    }

    /// Input `i`, which may be left out, else must be a tensor.
    pub(crate) fn optional(&self, i: usize) -> Result<Option<Value>, NodeProblem> {
        if self.has(i) { self.input(i).map(Some) } else { Ok(None) }
    }

    /// All inputs, which must be tensors.
    pub(crate) fn all_inputs(&self) -> Result<Vec<Value>, NodeProblem> {
        (0..self.inputs.len()).map(|i| self.input(i)).collect()
    }

    /// Input `i`, which must be constant text.
    pub(crate) fn text(&self, i: usize) -> Result<&Text, NodeProblem> {
        match self.bound(i)? {
            Bound::Text(text) => Ok(text),
            other => {
                Err(NodeProblem::InputKind { operand: i, expected: "a tensor of text", found: other.kind() })
            }
        }
    }

    /// Input `i`, which must be a sequence.
    pub(crate) fn sequence(&self, i: usize) -> Result<&Sequence, NodeProblem> {
        match self.bound(i)? {
            Bound::Sequence(sequence) => Ok(sequence),
            Bound::Optional(Some(inner)) => match &**inner {
                Bound::Sequence(sequence) => Ok(sequence),
                other => {
                    Err(NodeProblem::InputKind { operand: i, expected: "a sequence", found: other.kind() })
                }
            },
            other => Err(NodeProblem::InputKind { operand: i, expected: "a sequence", found: other.kind() }),
        }
    }

    /// The number of outputs that the node names, those left out in the middle included.
    pub(crate) fn output_count(&self) -> usize {
        self.node.output.len()
    }

    /// Whether output `i` is named.
    pub(crate) fn wanted(&self, i: usize) -> bool {
        self.node.output.get(i).is_some_and(|name| !name.is_empty())
    }

    /// The shape of a value.
    pub(crate) fn shape(&mut self, x: Value) -> Shape {
        self.builder().shape(x)
    }

    /// The element type of a value.
    pub(crate) fn dtype(&mut self, x: Value) -> DType {
        self.builder().dtype(x)
    }

    /// The number of axes of a value.
    pub(crate) fn rank(&mut self, x: Value) -> usize {
        self.builder().rank(x)
    }

    /// The error of an input with a wrong property.
    pub(crate) fn bad_input(
        &self,
        operand: usize,
        what: &'static str,
        expected: impl ToString,
        found: impl ToString,
    ) -> NodeProblem {
        NodeProblem::Input { operand, what, expected: expected.to_string(), found: found.to_string() }
    }

    /// The error of an input whose value must be known.
    pub(crate) fn needs_constant(&self, operand: usize, what: &str) -> NodeProblem {
        let value = self.inputs.get(operand).and_then(Bound::as_tensor);
        let graph_inputs = value.map_or_else(Vec::new, |v| self.importer.sources(v));
        NodeProblem::NeedsConstant { operand, what: what.to_owned(), graph_inputs }
    }

    /// The elements of input `i`, which must be a constant; `what` says what it decides.
    pub(crate) fn constant(&mut self, i: usize, what: &str) -> Result<Literal, NodeProblem> {
        let value = self.input(i)?;
        match self.importer.literal(value) {
            Some(literal) => Ok(literal),
            None => Err(self.needs_constant(i, what)),
        }
    }

    /// The elements of input `i`, an integer or bool constant; `what` says what it decides.
    pub(crate) fn constant_ints(&mut self, i: usize, what: &str) -> Result<Vec<i64>, NodeProblem> {
        let value = self.input(i)?;
        if let Some(known) = self.builder().known_constants(value) {
            return Ok(known);
        }
        let literal = self.constant(i, what)?;
        literal.to_i64_vec().ok_or_else(|| self.bad_input(i, "element type", "integers", literal.dtype()))
    }

    /// As [`Self::constant_ints`]; `None` if the input is left out.
    pub(crate) fn optional_constant_ints(
        &mut self,
        i: usize,
        what: &str,
    ) -> Result<Option<Vec<i64>>, NodeProblem> {
        if self.has(i) { self.constant_ints(i, what).map(Some) } else { Ok(None) }
    }

    /// The one element of input `i`, an integer or bool constant; `what` says what it decides.
    pub(crate) fn constant_int(&mut self, i: usize, what: &str) -> Result<i64, NodeProblem> {
        let elements = self.constant_ints(i, what)?;
        match elements.as_slice() {
            [one] => Ok(*one),
            many => Err(self.bad_input(i, "number of elements", 1, many.len())),
        }
    }

    /// The elements of input `i`, a constant of any number type, as f64; `what` says what it decides.
    pub(crate) fn constant_floats(&mut self, i: usize, what: &str) -> Result<Vec<f64>, NodeProblem> {
        let literal = self.constant(i, what)?;
        let floats = match literal.dtype() {
            DType::F64 => literal.to_vec::<f64>(),
            DType::F32 => literal.to_vec::<f32>().map(|v| v.into_iter().map(f64::from).collect()),
            DType::F16 => literal.to_vec::<half::f16>().map(|v| v.into_iter().map(f64::from).collect()),
            DType::BF16 => literal.to_vec::<half::bf16>().map(|v| v.into_iter().map(f64::from).collect()),
            _ => literal.to_i64_vec().map(|v| v.into_iter().map(|i| i as f64).collect()),
        };
        floats.ok_or_else(|| self.bad_input(i, "element type", "numbers", literal.dtype()))
    }

    /// A list of integers that older schemas have as an attribute and newer ones as input `i`.
    pub(crate) fn ints_or_input(
        &mut self,
        attribute: &str,
        i: usize,
    ) -> Result<Option<Vec<i64>>, NodeProblem> {
        match self.ints(attribute)? {
            Some(ints) => Ok(Some(ints)),
            None => self.optional_constant_ints(i, attribute),
        }
    }

    /// The elements of input `i`, integers along one axis of known length, as sizes: the expressions that they are
    /// known to be, else symbols that are bound when the graph runs (a value below 0 is then an error).
    pub(crate) fn dims(&mut self, i: usize, hint: &str) -> Result<Vec<Dim>, NodeProblem> {
        let value = self.input(i)?;
        self.importer.elements_as_dims(value, hint).unwrap_or_else(|| Err(self.needs_constant(i, "a rank")))
    }

    /// A scalar of integers as a size, as [`Self::dims`]; tensors of one element count as scalars.
    pub(crate) fn dim(&mut self, i: usize, hint: &str) -> Result<Dim, NodeProblem> {
        let value = self.input(i)?;
        let b = self.builder();
        let flat = b.reshape(value, &[Dim::ONE])?;
        let dims = self.importer.elements_as_dims(flat, hint);
        let dims = dims.unwrap_or_else(|| Err(self.needs_constant(i, "a size")))?;
        dims.into_iter().next().ok_or_else(|| self.needs_constant(i, "a size"))
    }

    /// The axis counted from the front; negative ones count from the end.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, NodeProblem> {
        rlx_ir::op::Axis(axis).of_rank(rank).ok_or(NodeProblem::Axis { axis, rank })
    }

    /// Axes counted from the front, ascending; one that is named twice is an error.
    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, NodeProblem> {
        let mut all: Vec<usize> = axes.iter().map(|a| self.axis(*a, rank)).collect::<Result<_, _>>()?;
        all.sort_unstable();
        match all.windows(2).find(|w| w[0] == w[1]) {
            Some(twice) => Err(NodeProblem::Axis { axis: twice[0] as i64, rank }),
            None => Ok(all),
        }
    }

    /// All repeated to their common sizes, as numpy does.
    pub(crate) fn broadcast(&mut self, values: &[Value]) -> Result<Vec<Value>, NodeProblem> {
        let b = self.builder();
        let mut dims: Vec<Dim> = Vec::new();
        for value in values {
            dims = rlx_ir::builder::broadcast_dims(&dims, &b.shape(*value));
        }
        values.iter().map(|v| Ok(b.broadcast_to(*v, &dims)?)).collect()
    }
}
