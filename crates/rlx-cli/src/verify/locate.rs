//! The first value that differs: each operation of the compiled graph by itself, on the oracle's operands.
//!
//! An operation on operands that are right shows its own error and no other's. Where all are right by themselves, either
//! the compiled graph means something else than the model (the oracle on both tells), or the error is of the whole.

use super::compare::{Difference, Tolerance, compare};
use rlx::eval::{EvalOptions, Oracle};
use rlx::ir::{
    Bindings, Builder, DType, Graph, Literal, Node, NodeId, Op, Primitive, Symbol, TensorType, Value, lower,
};
use std::collections::{BTreeMap, BTreeSet};

/// Runs a graph where faults are looked for.
pub(super) type Runner<'a> = dyn Fn(&Graph, &[Literal]) -> anyhow::Result<Vec<Literal>> + 'a;

/// Looks for the first difference.
pub(super) struct Locator<'a> {
    /// What is in doubt.
    pub(super) on_cpu: &'a Runner<'a>,
    /// What does not count as a difference.
    pub(super) tolerance: Tolerance,
}

/// What is at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// One step, on operands that are right.
    Step,
    /// The compiled graph, which means something else than the model.
    Pass,
    /// The program as a whole.
    Program,
}

impl Fault {
    /// The word in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Fault::Step => "step",
            Fault::Pass => "pass",
            Fault::Program => "program",
        }
    }
}

/// The first value that differs, with a graph and inputs that show it.
pub(super) struct Found {
    pub(super) fault: Fault,
    pub(super) op: String,
    pub(super) locations: Vec<String>,
    pub(super) value_type: String,
    pub(super) difference: Difference,
    pub(super) graph: Graph,
    pub(super) inputs: Vec<Literal>,
}

/// All values of a graph, as the oracle has them.
struct Values<'g> {
    graph: &'g Graph,
    known: BTreeMap<Value, Literal>,
    sizes: Bindings,
}

impl Locator<'_> {
    /// The first difference of `compiled`, which stands for `model`, on `inputs`.
    pub(super) fn locate(
        &self,
        model: &Graph,
        compiled: &Graph,
        inputs: &[Literal],
    ) -> anyhow::Result<Found> {
        let values = Values::of(compiled, inputs)?;
        for (id, node) in compiled.nodes() {
            if is_source(node) {
                continue;
            }
            if let Some(found) = self.step(&values, id, node)? {
                return Ok(found);
            }
        }
        let lowered = lower(model, &|_| false)?;
        let right = Values::of(&lowered, inputs)?;
        let mut means_the_same = true;
        for (of_model, of_compiled) in lowered.outputs().iter().zip(compiled.outputs()) {
            let (want, got) = (&right.known[&of_model.value], &values.known[&of_compiled.value]);
            means_the_same &= compare(got, want, self.tolerance)?.wrong == 0;
        }
        let fault = if means_the_same { Fault::Program } else { Fault::Pass };
        self.whole(fault, model, &right, inputs)
    }

    /// The difference of one node on the oracle's operands, if there is one.
    fn step(&self, values: &Values<'_>, id: NodeId, node: &Node) -> anyhow::Result<Option<Found>> {
        let (graph, inputs) = values.alone(id, node)?;
        let got = (self.on_cpu)(&graph, &inputs)?;
        for (output, got) in got.iter().enumerate() {
            let value = Value { node: id, output: output as u32 };
            let Some(want) = values.known.get(&value) else { continue };
            let difference = compare(got, want, self.tolerance)?;
            if difference.wrong > 0 {
                return Ok(Some(found(Fault::Step, node, want, difference, graph, inputs)));
            }
        }
        Ok(None)
    }

    /// The first value of the whole graph that differs, with as much of the graph as it needs.
    fn whole(
        &self,
        fault: Fault,
        model: &Graph,
        right: &Values<'_>,
        inputs: &[Literal],
    ) -> anyhow::Result<Found> {
        let graph = right.graph;
        let (watched, outputs) = every_value(graph)?;
        let got = (self.on_cpu)(&watched, inputs)?;
        for (value, got) in outputs.iter().zip(&got) {
            let want = &right.known[value];
            let difference = compare(got, want, self.tolerance)?;
            if difference.wrong > 0 {
                let case = with_outputs(graph, &[*value])?;
                return Ok(found(fault, graph.node(value.node), want, difference, case, inputs.to_vec()));
            }
        }
        // It takes the fused graph to see it: the first output that differs.
        let got = (self.on_cpu)(model, inputs)?;
        for (output, got) in graph.outputs().iter().zip(&got) {
            let want = &right.known[&output.value];
            let difference = compare(got, want, self.tolerance)?;
            if difference.wrong > 0 {
                let node = graph.node(output.value.node);
                return Ok(found(fault, node, want, difference, model.clone(), inputs.to_vec()));
            }
        }
        anyhow::bail!("the difference went away when the model ran again: results depend on chance")
    }
}

fn found(
    fault: Fault,
    node: &Node,
    want: &Literal,
    difference: Difference,
    graph: Graph,
    inputs: Vec<Literal>,
) -> Found {
    let op = match &node.op {
        Op::Primitive(Primitive::Call(call)) => {
            let names: Vec<&str> =
                call.body.nodes().filter(|(_, n)| !is_source(n)).map(|(_, n)| n.op.name()).collect();
            format!("region ({})", names.join(", "))
        }
        op => op.name().to_string(),
    };
    Found {
        fault,
        op,
        locations: node.locations.iter().map(str::to_string).collect(),
        value_type: want.tensor_type().to_string(),
        difference,
        graph,
        inputs,
    }
}

fn is_source(node: &Node) -> bool {
    matches!(node.op, Op::Primitive(Primitive::Input(_) | Primitive::Constant(_)))
}

/// The graph with each result of each operation as an output, and which value each output is.
fn every_value(graph: &Graph) -> anyhow::Result<(Graph, Vec<Value>)> {
    let mut values = Vec::new();
    for (id, node) in graph.nodes().filter(|(_, node)| !is_source(node)) {
        values.extend((0..node.types.len()).map(|output| Value { node: id, output: output as u32 }));
    }
    Ok((with_outputs(graph, &values)?, values))
}

/// The graph with these outputs instead of its own.
fn with_outputs(graph: &Graph, outputs: &[Value]) -> anyhow::Result<Graph> {
    let mut b = Builder::verbatim(graph.name());
    for (symbol, info) in graph.symbols().iter() {
        b.declare(symbol.clone(), info.clone());
    }
    let mut values = Vec::with_capacity(graph.nodes().len());
    let mut checks = graph.checks().iter().peekable();
    for (id, node) in graph.nodes() {
        b.set_locations(node.locations.clone());
        let operands: Vec<Value> = node.operands.iter().map(|v| renamed(&values, *v)).collect();
        let results = match &node.op {
            Op::Primitive(Primitive::Input(input)) => {
                rlx::ir::Values::from_slice(&[b.input(&input.name, input.ty.clone())?])
            }
            op => b.push(op.clone(), &operands)?,
        };
        while let Some(check) = checks.next_if(|c| c.node <= id) {
            if let Some(first) = results.first() {
                b.add_check(first.node, &check.check);
            }
        }
        values.push(results);
    }
    let names: Vec<String> = outputs.iter().map(|v| format!("v{}_{}", v.node.index(), v.output)).collect();
    let outputs = outputs.iter().map(|v| renamed(&values, *v));
    Ok(b.finish(names.iter().map(String::as_str).zip(outputs))?)
}

fn renamed(values: &[rlx::ir::Values], value: Value) -> Value {
    values[value.node.index()][value.output as usize]
}

impl<'g> Values<'g> {
    fn of(graph: &'g Graph, inputs: &[Literal]) -> anyhow::Result<Values<'g>> {
        let (watched, outputs) = every_value(graph)?;
        let results = Oracle::new(&watched, EvalOptions::default())?.run(inputs)?;
        let mut known: BTreeMap<Value, Literal> = outputs.into_iter().zip(results).collect();
        for (value, literal) in graph.inputs().iter().zip(inputs) {
            known.insert(*value, literal.clone());
        }
        for (id, node) in graph.nodes() {
            if let Op::Primitive(Primitive::Constant(constant)) = &node.op {
                known.insert(Value { node: id, output: 0 }, constant.value.clone());
            }
        }
        let mut sizes = Bindings::new();
        for (value, literal) in &known {
            for (dim, size) in graph.type_of(*value).dims().iter().zip(literal.dims()) {
                if let Some(symbol) = dim.as_symbol() {
                    sizes.set(symbol.clone(), *size as i64);
                }
            }
        }
        Ok(Values { graph, known, sizes })
    }

    /// A graph of one node, with what it needs as inputs. Constants stay constants: kernels may pack them.
    fn alone(&self, id: NodeId, node: &Node) -> anyhow::Result<(Graph, Vec<Literal>)> {
        let mut b = Builder::verbatim(node.op.name());
        for (symbol, info) in self.graph.symbols().iter() {
            b.declare(symbol.clone(), info.clone());
        }
        let mut inputs = Vec::new();
        let mut inner: BTreeMap<Value, Value> = BTreeMap::new();
        let mut bound: BTreeSet<String> = BTreeSet::new();
        for value in &node.operands {
            if inner.contains_key(value) {
                continue;
            }
            let literal = &self.known[value];
            let constant = matches!(self.graph.node(value.node).op, Op::Primitive(Primitive::Constant(_)));
            let stands = if constant {
                b.constant(literal.clone())
            } else {
                let t = self.graph.type_of(*value);
                bound.extend(t.dims().iter().filter_map(|d| d.as_symbol()).map(|s| s.name().to_string()));
                inputs.push(literal.clone());
                b.input(&format!("x{}", inputs.len() - 1), t.clone())?
            };
            inner.insert(*value, stands);
        }
        // What else the sizes mention gets its value from inputs of that size, which nothing reads.
        let mut missing: Vec<Symbol> = Vec::new();
        let mut note = |symbol: &Symbol| {
            if !bound.contains(symbol.name()) && !missing.contains(symbol) {
                missing.push(symbol.clone());
            }
        };
        let operands = node.operands.iter().map(|v| self.graph.type_of(*v));
        for dim in node.types.iter().chain(operands).flat_map(TensorType::dims) {
            dim.for_each_symbol(&mut note);
        }
        node.op.for_each_dim(&mut |dim| dim.for_each_symbol(&mut note));
        let own = self.graph.bound_by(id);
        for symbol in missing.iter().filter(|symbol| !own.contains(symbol)) {
            let Some(size) = self.sizes.get(symbol).and_then(|size| usize::try_from(size).ok()) else {
                continue;
            };
            let t = TensorType::new(DType::Bool, vec![rlx::ir::Dim::symbol(symbol.name())]);
            b.input(&format!("size_{}", symbol.name()), t)?;
            inputs.push(Literal::new(DType::Bool, [size], vec![0; size])?);
        }
        b.set_locations(node.locations.clone());
        let operands: Vec<Value> = node.operands.iter().map(|v| inner[v]).collect();
        let results = b.push(node.op.clone(), &operands)?;
        let names: Vec<String> = (0..results.len()).map(|i| format!("y{i}")).collect();
        let graph = b.finish(names.iter().map(String::as_str).zip(results.iter().copied()))?;
        Ok((graph, inputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlx::eval::evaluate;
    use rlx::ir::op::elementwise::UnaryOp;
    use rlx::ir::text;

    const MODEL: &str = "rlx 1 graph \"g\"(%x: f32[n, 3]) {
        %a = exp(%x)
        %b = tanh(%a)
        %c = neg(%b)
        return \"y\" = %c
    }";

    /// The oracle, but that it adds one to the results of graphs that compute `op` last.
    fn wrong_at(op: UnaryOp) -> impl Fn(&Graph, &[Literal]) -> anyhow::Result<Vec<Literal>> {
        move |graph, inputs| {
            let mut results = evaluate(graph, inputs)?;
            for (output, result) in graph.outputs().iter().zip(&mut results) {
                let node = graph.node(output.value.node);
                if matches!(&node.op, Op::Primitive(Primitive::Unary(unary)) if unary.op == op) {
                    let off: Vec<f32> =
                        result.to_vec::<f32>().unwrap_or_default().iter().map(|x| x + 1.0).collect();
                    *result = Literal::from_slice(result.dims(), &off)?;
                }
            }
            Ok(results)
        }
    }

    fn input() -> Literal {
        Literal::from_slice([2, 3], &[0.0f32, 0.1, 0.2, 0.3, 0.4, 0.5]).unwrap()
    }

    #[test]
    fn the_operation_that_is_wrong_by_itself_is_found_and_its_case_shows_it_again() {
        let graph = text::parse(MODEL).unwrap();
        let on_cpu = wrong_at(UnaryOp::Tanh);
        let locator = Locator { on_cpu: &on_cpu, tolerance: Tolerance(1e-4) };
        let found = locator.locate(&graph, &graph, &[input()]).unwrap();
        assert_eq!((found.fault, found.op.as_str()), (Fault::Step, "tanh"));
        assert!((found.difference.error - 1.0).abs() < 1e-6);
        let (got, want) =
            (on_cpu(&found.graph, &found.inputs).unwrap(), evaluate(&found.graph, &found.inputs).unwrap());
        assert!(compare(&got[0], &want[0], Tolerance(1e-4)).unwrap().wrong > 0);
        assert_eq!(text::parse(&text::print(&found.graph)).unwrap(), found.graph);
    }

    #[test]
    fn a_compiled_graph_that_means_something_else_is_told_from_a_wrong_step() {
        let graph = text::parse(MODEL).unwrap();
        let other = text::parse(&MODEL.replace("tanh", "sin")).unwrap();
        let on_cpu = |g: &Graph, inputs: &[Literal]| {
            let compiled = if *g == graph { &other } else { g };
            Ok(evaluate(compiled, inputs)?)
        };
        let locator = Locator { on_cpu: &on_cpu, tolerance: Tolerance(1e-4) };
        let found = locator.locate(&graph, &other, &[input()]).unwrap();
        assert_eq!((found.fault, found.op.as_str()), (Fault::Pass, "neg"));
    }

    #[test]
    fn sizes_that_operands_do_not_bind_are_given_to_a_node_by_itself() {
        let graph = text::parse(
            "rlx 1 graph \"g\"(%x: f32[n], %y: f32[m]) {
                %a = reshape<dims=[n, 1]>(%x)
                %b = broadcast<dims=[n, m]>(%a)
                return \"b\" = %b
            }",
        )
        .unwrap();
        let inputs = [Literal::vector(&[1.0f32, 2.0]), Literal::vector(&[0.0f32; 3])];
        let values = Values::of(&graph, &inputs).unwrap();
        for (id, node) in graph.nodes().filter(|(_, node)| !is_source(node)) {
            let (alone, inputs) = values.alone(id, node).unwrap();
            let results = evaluate(&alone, &inputs).unwrap();
            assert_eq!(results[0], values.known[&Value { node: id, output: 0 }]);
        }
    }
}
