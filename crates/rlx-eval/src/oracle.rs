//! Running a graph: inputs bound, nodes in order, values dropped after their last use.

use crate::error::{EvalError, Fault};
use crate::precision::Precision;
use crate::primitive;
use crate::tensor::Tensor;
use rlx_ir::infer::Relation;
use rlx_ir::{
    Bindings, DType, Graph, Literal, Node, NodeId, Op, Primitive, TensorType, TypeError, Value, lower,
};
use std::cell::Cell;

/// How a graph is evaluated.
#[derive(Clone, Debug)]
pub struct EvalOptions {
    /// Declared types, or f64 throughout.
    pub precision: Precision,
    /// The most bytes of elements (8 or 16 each) alive at once; what would need more is an error, not an abort.
    pub memory_limit: usize,
    /// The most trips of one loop.
    pub trip_limit: u64,
}

impl Default for EvalOptions {
    fn default() -> Self {
        EvalOptions { precision: Precision::Declared, memory_limit: 8 << 30, trip_limit: 1 << 24 }
    }
}

/// A graph made ready to be evaluated many times.
#[derive(Clone, Debug)]
pub struct Oracle {
    graph: Graph,
    options: EvalOptions,
}

/// The outputs of `graph` on `inputs`, in the declared types.
pub fn evaluate(graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, EvalError> {
    Oracle::new(graph, EvalOptions::default())?.run(inputs)
}

/// The results of one primitive on operands of these sizes, in the declared types. `types` are those of the results;
/// their sizes and those in the attributes are taken from `bindings`.
pub fn evaluate_primitive(
    primitive: &Primitive,
    types: &[TensorType],
    operands: &[Literal],
    bindings: &Bindings,
    options: &EvalOptions,
) -> Result<Vec<Literal>, Fault> {
    let unsupported = |dtype: DType| Fault::Unsupported {
        what: rlx_ir::Op::Primitive(primitive.clone()).name().to_string(),
        found: dtype.to_string(),
    };
    let tensors = operands
        .iter()
        .map(|l| Tensor::from_literal(l).ok_or_else(|| unsupported(l.dtype())))
        .collect::<Result<Vec<_>, _>>()?;
    let live = Cell::new(tensors.iter().map(Tensor::carrier_bytes).sum());
    let run = Run { options, live: &live };
    run.check_memory(types, bindings)?;
    let cx = Context { run: &run, precision: options.precision, bindings, types };
    let results = primitive::run(&cx, primitive, &tensors)?;
    results.iter().map(|t| t.to_literal().ok_or_else(|| unsupported(t.dtype))).collect()
}

/// An error unless the relation of sizes that `check` asks for holds under `bindings`.
pub fn check_holds(check: &rlx_ir::infer::Check, bindings: &Bindings) -> Result<(), Fault> {
    holds(check, bindings)
}

impl Oracle {
    /// Lowers `graph` to primitives.
    pub fn new(graph: &Graph, options: EvalOptions) -> Result<Oracle, TypeError> {
        Ok(Oracle { graph: lower(graph, &|_| false)?, options })
    }

    /// The lowered graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The outputs on inputs given in order. With [`Precision::Wide`], outputs of float types are f64 (and c128).
    pub fn run(&self, inputs: &[Literal]) -> Result<Vec<Literal>, EvalError> {
        self.run_watched(inputs, &|_, _| {})
    }

    /// The same; `progress` is told how many of the graph's nodes have run, and how many there are.
    pub fn run_watched(
        &self,
        inputs: &[Literal],
        progress: &dyn Fn(usize, usize),
    ) -> Result<Vec<Literal>, EvalError> {
        let names: Vec<(&str, &TensorType)> = self.graph.input_types().collect();
        if let Some((name, expected)) = names.get(inputs.len()) {
            return Err(EvalError::MissingInput {
                name: name.to_string(),
                expected: Box::new((*expected).clone()),
            });
        }
        if inputs.len() > names.len() {
            let known = names.iter().map(|(n, _)| n.to_string()).collect();
            return Err(EvalError::UnknownInput { name: format!("#{}", names.len()), known });
        }
        let mut tensors = Vec::with_capacity(inputs.len());
        for (literal, (name, expected)) in inputs.iter().zip(&names) {
            let span = literal.dims().iter().try_fold(16usize, |n, d| n.checked_mul((*d).max(1)));
            let fits = literal.dtype() == expected.dtype && span.is_some_and(|n| n <= isize::MAX as usize);
            let tensor = Tensor::from_literal(literal).filter(|_| fits);
            let Some(tensor) = tensor.filter(|t| t.dims.len() == expected.rank()) else {
                return Err(EvalError::InputType {
                    name: name.to_string(),
                    expected: Box::new((*expected).clone()),
                    found: Box::new(literal.tensor_type()),
                });
            };
            tensors.push(tensor);
        }
        let live = Cell::new(0);
        let run = Run { options: &self.options, live: &live };
        let outputs = run.watched_graph(&self.graph, tensors, Bindings::new(), progress)?;
        outputs
            .iter()
            .zip(self.graph.outputs())
            .map(|(tensor, output)| {
                let dtype = match self.options.precision {
                    Precision::Wide if tensor.dtype.is_float() => DType::F64,
                    Precision::Wide if tensor.dtype.is_complex() => DType::C128,
                    _ => tensor.dtype,
                };
                tensor.to_literal_as(dtype).ok_or_else(|| EvalError::InputType {
                    name: output.name.to_string(),
                    expected: Box::new(self.graph.type_of(output.value).clone()),
                    found: Box::new(TensorType::new(tensor.dtype, tensor.dims.as_slice())),
                })
            })
            .collect()
    }

    /// The outputs, by name, on inputs given by name.
    pub fn run_named(&self, inputs: &[(String, Literal)]) -> Result<Vec<(String, Literal)>, EvalError> {
        let known = || self.graph.input_types().map(|(n, _)| n.to_string()).collect::<Vec<_>>();
        if let Some((name, _)) = inputs.iter().find(|(n, _)| !self.graph.input_types().any(|(k, _)| k == n)) {
            return Err(EvalError::UnknownInput { name: name.clone(), known: known() });
        }
        let mut ordered = Vec::with_capacity(inputs.len());
        for (name, expected) in self.graph.input_types() {
            match inputs.iter().rev().find(|(n, _)| n == name) {
                Some((_, literal)) => ordered.push(literal.clone()),
                None => {
                    return Err(EvalError::MissingInput {
                        name: name.to_string(),
                        expected: Box::new(expected.clone()),
                    });
                }
            }
        }
        let outputs = self.run(&ordered)?;
        Ok(self.graph.outputs().iter().map(|o| o.name.to_string()).zip(outputs).collect())
    }
}

/// One evaluation in progress.
pub(crate) struct Run<'a> {
    pub options: &'a EvalOptions,
    live: &'a Cell<usize>,
}

/// What a primitive sees besides its operands.
pub(crate) struct Context<'a> {
    pub run: &'a Run<'a>,
    pub precision: Precision,
    pub bindings: &'a Bindings,
    /// The declared types of the results.
    pub types: &'a [TensorType],
}

impl Run<'_> {
    /// The outputs of a graph of primitives. `bindings` are those of the graph around it.
    pub(crate) fn graph(
        &self,
        graph: &Graph,
        inputs: Vec<Tensor>,
        bindings: Bindings,
    ) -> Result<Vec<Tensor>, EvalError> {
        self.watched_graph(graph, inputs, bindings, &|_, _| {})
    }

    fn watched_graph(
        &self,
        graph: &Graph,
        inputs: Vec<Tensor>,
        mut bindings: Bindings,
        progress: &dyn Fn(usize, usize),
    ) -> Result<Vec<Tensor>, EvalError> {
        for ((name, expected), tensor) in graph.input_types().zip(&inputs) {
            bind_sizes(expected, tensor, &mut bindings).map_err(|cause| EvalError::InputSize {
                name: name.to_string(),
                expected: Box::new(expected.clone()),
                found: Box::new(TensorType::new(tensor.dtype, tensor.dims.as_slice())),
                cause,
            })?;
        }
        // Inputs whose size is an expression are checked once all symbols are known.
        for ((name, expected), tensor) in graph.input_types().zip(&inputs) {
            check_sizes(expected, tensor, &bindings).map_err(|cause| EvalError::InputSize {
                name: name.to_string(),
                expected: Box::new(expected.clone()),
                found: Box::new(TensorType::new(tensor.dtype, tensor.dims.as_slice())),
                cause,
            })?;
        }
        let mut uses = use_counts(graph);
        let mut values: Vec<Vec<Option<Tensor>>> = Vec::with_capacity(graph.nodes().len());
        let mut inputs = inputs.into_iter();
        let mut checks = graph.checks().iter().peekable();
        for (id, node) in graph.nodes() {
            let fail = |fault| EvalError::Node {
                op: node.op.name().to_string(),
                locations: node.locations.clone(),
                fault: Box::new(fault),
            };
            progress(id.index(), graph.nodes().len());
            while let Some(check) = checks.next_if(|c| c.node <= id) {
                holds(&check.check, &bindings).map_err(fail)?;
            }
            if let Op::Primitive(Primitive::Input(_)) = node.op {
                values.push(vec![inputs.next()]);
                continue;
            }
            let operands: Vec<Tensor> =
                node.operands.iter().filter_map(|v| self.take(&mut values, &mut uses, *v)).collect();
            let results = self.node(graph, id, node, &operands, &mut bindings).map_err(fail)?;
            for tensor in &results {
                self.live.set(self.live.get().saturating_add(tensor.carrier_bytes()));
            }
            drop(operands);
            values.push(results.into_iter().map(Some).collect());
        }
        Ok(graph.outputs().iter().filter_map(|o| self.take(&mut values, &mut uses, o.value)).collect())
    }

    /// The value, which goes with its last use.
    fn take(
        &self,
        values: &mut [Vec<Option<Tensor>>],
        uses: &mut [Vec<u32>],
        value: Value,
    ) -> Option<Tensor> {
        let (node, output) = (value.node.index(), value.output as usize);
        uses[node][output] -= 1;
        if uses[node][output] > 0 {
            return values[node][output].clone();
        }
        let tensor = values[node][output].take()?;
        self.live.set(self.live.get().saturating_sub(tensor.carrier_bytes()));
        Some(tensor)
    }

    fn node(
        &self,
        graph: &Graph,
        id: NodeId,
        node: &Node,
        operands: &[Tensor],
        bindings: &mut Bindings,
    ) -> Result<Vec<Tensor>, Fault> {
        let Op::Primitive(primitive) = &node.op else {
            return Err(Fault::Unsupported { what: node.op.name().to_string(), found: "a composite".into() });
        };
        self.check_memory(&node.types, bindings)?;
        let cx = Context { run: self, precision: self.options.precision, bindings, types: &node.types };
        let results = primitive::run(&cx, primitive, operands)?;
        if let Primitive::BindDim(bind) = primitive {
            bindings.set(bind.symbol.clone(), results[0].scalar_i64());
        }
        for symbol in graph.bound_by(id) {
            // A size that first appears here is what came out.
            for (t, tensor) in node.types.iter().zip(&results) {
                for (dim, size) in t.dims().iter().zip(&tensor.dims) {
                    if dim.as_symbol() == Some(&symbol) && bindings.get(&symbol).is_none() {
                        bindings.set(symbol.clone(), *size as i64);
                    }
                }
            }
        }
        for (output, (t, tensor)) in node.types.iter().zip(&results).enumerate() {
            let agrees = tensor.dtype == t.dtype
                && t.rank() == tensor.dims.len()
                && check_sizes(t, tensor, bindings).is_ok();
            if !agrees {
                let found = format!("{}{:?}", tensor.dtype, tensor.dims);
                return Err(Fault::Result { output, declared: t.clone(), found });
            }
        }
        Ok(results)
    }

    /// Refuses results that would not fit, before anything is allocated. Sizes that are not bound yet (counts of what
    /// is found) are bounded by the operands.
    fn check_memory(&self, types: &[TensorType], bindings: &Bindings) -> Result<(), Fault> {
        let mut needed = 0u128;
        for t in types {
            let width = if t.dtype.is_complex() { 16u128 } else { 8 };
            // `span` counts sizes of 0 as 1: strides are products of the other sizes, and must fit as well.
            let (mut bytes, mut span) = (width, width);
            for dim in t.dims() {
                if let Ok(size) = dim.eval(bindings) {
                    let size = u128::try_from(size).unwrap_or(0);
                    bytes = bytes.saturating_mul(size);
                    span = span.saturating_mul(size.max(1));
                }
            }
            needed = needed.saturating_add(if span > isize::MAX as u128 { span } else { bytes });
        }
        let (live, limit) = (self.live.get(), self.options.memory_limit);
        if needed.saturating_add(live as u128) > limit as u128 {
            return Err(Fault::Memory { needed, live, limit });
        }
        Ok(())
    }
}

impl Context<'_> {
    /// The sizes of result `i`.
    pub(crate) fn dims(&self, i: usize) -> Result<Vec<usize>, Fault> {
        Ok(self.types[i].shape.eval(self.bindings)?)
    }

    /// The element type of result `i`.
    pub(crate) fn dtype(&self, i: usize) -> DType {
        self.types[i].dtype
    }

    /// Rounds to the declared type.
    pub(crate) fn round(&self, dtype: DType, x: f64) -> f64 {
        self.precision.round(dtype, x)
    }
}

fn bind_sizes(t: &TensorType, tensor: &Tensor, bindings: &mut Bindings) -> Result<(), rlx_ir::DimError> {
    for (dim, size) in t.dims().iter().zip(&tensor.dims) {
        if let Some(symbol) = dim.as_symbol() {
            bindings.bind(symbol, *size as i64)?;
        }
    }
    Ok(())
}

fn check_sizes(t: &TensorType, tensor: &Tensor, bindings: &Bindings) -> Result<(), rlx_ir::DimError> {
    for (dim, size) in t.dims().iter().zip(&tensor.dims) {
        let expected = dim.eval_size(bindings)?;
        if expected != *size {
            return Err(rlx_ir::DimError::Mismatch { dim: dim.clone(), expected, found: *size });
        }
    }
    Ok(())
}

fn holds(check: &rlx_ir::infer::Check, bindings: &Bindings) -> Result<(), Fault> {
    let (lhs, rhs) = (check.lhs.eval(bindings)?, check.rhs.eval(bindings)?);
    let holds = match check.relation {
        Relation::Equal => lhs == rhs,
        Relation::LessOrEqual => lhs <= rhs,
    };
    if holds { Ok(()) } else { Err(Fault::Check { error: check.error.clone(), lhs, rhs }) }
}

fn use_counts(graph: &Graph) -> Vec<Vec<u32>> {
    let mut uses: Vec<Vec<u32>> = graph.nodes().map(|(_, n)| vec![0; n.types.len()]).collect();
    let operands = graph.nodes().flat_map(|(_, n)| n.operands.iter().copied());
    for value in operands.chain(graph.outputs().iter().map(|o| o.value)) {
        uses[value.node.index()][value.output as usize] += 1;
    }
    uses
}
