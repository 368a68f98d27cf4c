//! Control flow: If, Loop and Scan.
//!
//! What is known at import is resolved then: a constant condition takes its branch, and a loop whose structure changes
//! from trip to trip (sequences, sizes that grow) is unrolled if its trips are known. All else becomes a closed body.

use rlx_ir::dim::Range;
use rlx_ir::op::control::{If, Scan, While};
use rlx_ir::op::elementwise::UnaryOp;
use rlx_ir::{Builder, DType, Dim, Literal, Symbol, SymbolInfo, TensorType, Value};
use rustc_hash::FxHashSet;

use crate::error::NodeProblem;
use crate::import::Assumption;
use crate::node::NodeContext;
use crate::order::free_names;
use crate::proto::GraphProto;
use crate::registry::{Handled, Operator, onnx};
use crate::subgraph::{BuiltBody, Form};
use crate::values::{Bound, Outputs};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("If", &[1, 11, 13, 16, 19, 21, 23, 24, 25], if_),
    onnx("Loop", &[1, 11, 13, 16, 19, 21, 23, 24, 25], loop_),
    onnx("Scan", &[8, 9, 11, 16, 19, 21, 23, 24, 25], scan),
];

/// An input as a scalar.
fn scalar(cx: &mut NodeContext<'_, '_>, i: usize) -> Result<Option<Value>, NodeProblem> {
    let Some(value) = cx.optional(i)? else { return Ok(None) };
    Ok(Some(cx.builder().reshape(value, &[])?))
}

/// The one known element of a value.
fn known(cx: &mut NodeContext<'_, '_>, value: Value) -> Option<i64> {
    match cx.builder().known_constants(value)?.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn if_(cx: &mut NodeContext<'_, '_>) -> Handled {
    let condition = scalar(cx, 0)?.ok_or(NodeProblem::MissingInput { operand: 0 })?;
    let (then_graph, else_graph) = (cx.graph("then_branch")?, cx.graph("else_branch")?);
    match known(cx, condition) {
        Some(0) => return Ok(Outputs(cx.inline(else_graph, Vec::new(), "else_branch")?)),
        Some(_) => return Ok(Outputs(cx.inline(then_graph, Vec::new(), "then_branch")?)),
        None => {}
    }
    // Both branches take the same values from outside, in the same order.
    let captured = free_names([then_graph, else_graph]);
    let nothing = &mut |_: &mut Builder, _: &mut Vec<Value>| Ok(());
    let depth = cx.importer.depth();
    let both = cx
        .body(then_graph, &[], &captured, "then_branch", nothing)
        .and_then(|then_body| Ok((then_body, cx.body(else_graph, &[], &captured, "else_branch", nothing)?)));
    let (then_body, else_body) = both.inspect_err(|_| cx.importer.back_to(&depth))?;
    if then_body.forms != else_body.forms || then_body.captured != else_body.captured {
        return Err(cx.needs_constant(0, "the structure of the results"));
    }
    if let Some((a, b)) = then_body.types.iter().zip(&else_body.types).find(|(a, b)| a.rank() != b.rank()) {
        let needs = cx.needs_constant(0, &format!("whether a result is {a} or {b}"));
        let axes = |body: &BuiltBody| body.types.iter().map(TensorType::rank).sum::<usize>();
        let fewer_axes = axes(&then_body) <= axes(&else_body);
        return match &needs {
            NodeProblem::NeedsConstant { graph_inputs, .. } if graph_inputs.is_empty() => {
                assumed(cx, condition, [else_graph, then_graph], fewer_axes)
            }
            _ => Err(needs),
        };
    }
    let mut results = Vec::with_capacity(then_body.types.len());
    for (a, b) in then_body.types.iter().zip(&else_body.types) {
        if a.dtype != b.dtype {
            return Err(cx.needs_constant(0, &format!("whether a result is {a} or {b}")));
        }
        let builder = cx.builder();
        let dims = a.dims().iter().zip(b.dims()).map(|(a, b)| match a == b {
            true => a.clone(),
            false => builder.fresh_symbol("branch").into(),
        });
        let dims: Vec<Dim> = dims.collect();
        results.push(a.with_shape(dims));
    }
    let mut operands = vec![condition];
    operands.extend(&then_body.captured);
    let op = If { then_branch: then_body.graph, else_branch: else_body.graph, results };
    let values = cx.builder().push(op, &operands)?;
    Ok(filled(&then_body.forms, values))
}

/// One branch of an If whose branches give results of different ranks and whose condition follows from sizes alone:
/// what exporters make of "squeeze this axis if its size is 1". A graph has one rank for each value, so one branch is
/// taken – the one that the options name, else the one with fewer axes – and the graph fails when it runs on sizes for
/// which the condition is another.
fn assumed<'m>(
    cx: &mut NodeContext<'_, 'm>,
    condition: Value,
    branches: [&'m GraphProto; 2],
    fewer_axes: bool,
) -> Handled {
    let node = cx.place();
    let holds = cx.importer.options.assumed.get(&node).copied().unwrap_or(fewer_axes);
    let label = if holds { "then_branch" } else { "else_branch" };
    let outputs = cx.inline(branches[usize::from(holds)], Vec::new(), label)?;
    cx.importer.assumptions.push(Assumption { node, condition: holds });
    let b = cx.builder();
    let as_assumed = if holds { condition } else { b.unary(UnaryOp::Not, condition)? };
    let as_assumed = b.cast(as_assumed, DType::I64)?;
    // A bound size that is 1 if the assumption holds and an error if not; slices that mention it are the guard.
    let one = b.bind_dim(as_assumed, "assumed", 1)?;
    if let Some(symbol) = one.as_symbol() {
        let range = Range { min: 1, max: 1 };
        b.declare(symbol.clone(), SymbolInfo { range, ..SymbolInfo::default() });
    }
    let mut tensors = Vec::new();
    let forms: Option<Vec<Form>> = outputs.iter().map(|o| Form::of(o, &mut tensors)).collect();
    // Text is constant: nothing that runs could guard it.
    let Some(forms) = forms else { return Ok(Outputs(outputs)) };
    for tensor in &mut tensors {
        *tensor = guarded(b, *tensor, &one)?;
    }
    Ok(filled(&forms, tensors))
}

/// The same tensor by a slice that begins at `one` − 1.
fn guarded(b: &mut Builder, x: Value, one: &Dim) -> Result<Value, NodeProblem> {
    let dims = b.shape(x);
    if dims.rank() == 0 {
        let x = b.unsqueeze(x, 0)?;
        let x = guarded(b, x, one)?;
        return Ok(b.squeeze(x, &[0])?);
    }
    Ok(b.slice_axis(x, 0, &(one - &Dim::ONE), &dims[0])?)
}

/// Values in the structure that forms give.
fn filled(forms: &[Form], values: impl IntoIterator<Item = Value>) -> Outputs {
    let mut values = values.into_iter();
    forms.iter().map(|form| form.filled(&mut values)).collect()
}

/// The parts of a Loop node.
struct Loop<'m> {
    body: &'m GraphProto,
    trips: Option<Value>,
    condition: Option<Value>,
    carried: Vec<Bound>,
}

fn loop_(cx: &mut NodeContext<'_, '_>) -> Handled {
    let body = cx.graph("body")?;
    let carried: Vec<Bound> = cx.inputs.get(2..).unwrap_or_default().to_vec();
    let parts = Loop { body, trips: scalar(cx, 0)?, condition: scalar(cx, 1)?, carried };
    if parts.body.input.len() != parts.carried.len() + 2 || parts.body.output.len() < parts.carried.len() + 1
    {
        let found = format!("{} inputs, {} outputs", parts.body.input.len(), parts.body.output.len());
        return Err(cx.bad_attribute("body", format!("{} inputs", parts.carried.len() + 2), found));
    }
    let depth = cx.importer.depth();
    let refusal = match repeated(cx, &parts) {
        Ok(outputs) => return Ok(outputs),
        Err(refusal) => refusal,
    };
    cx.importer.back_to(&depth);
    unrolled(cx, &parts, refusal)
}

/// The loop as one operation: a scan if the body never ends it, else a while.
fn repeated<'m>(cx: &mut NodeContext<'_, 'm>, parts: &Loop<'m>) -> Handled {
    let tensors = parts.carried.iter().map(Bound::as_tensor).collect::<Option<Vec<Value>>>();
    let carried = tensors.ok_or_else(|| {
        NodeProblem::Unsupported("a loop that carries sequences, optionals or text".to_owned())
    })?;
    let types: Vec<TensorType> = carried.iter().map(|v| cx.builder().type_of(*v).clone()).collect();
    let mut inputs = vec![Some(TensorType::scalar(DType::I64)), None];
    inputs.extend(types.iter().cloned().map(Some));
    let symbols = cx.symbols();
    let mut finish = |b: &mut Builder, outputs: &mut Vec<Value>| {
        let Some((condition, carried)) = outputs.split_first_mut() else {
            return Err(NodeProblem::Unsupported("a loop without a condition".to_owned()));
        };
        *condition = b.reshape(*condition, &[])?;
        keep_types(b, carried, &types, &symbols)
    };
    let body = cx.body(parts.body, &inputs, &[], "body", &mut finish)?;
    check_forms(cx, &body, 1 + carried.len(), &symbols)?;
    let starts = match parts.condition {
        None => true,
        Some(condition) => known(cx, condition).is_some_and(|c| c != 0),
    };
    if let Some(trips) = parts.trips.filter(|_| starts && body.first_is_true) {
        return counted(cx, &body, trips, &carried);
    }
    let b = cx.builder();
    let trips = match parts.trips {
        Some(trips) => b.binary_scalar(rlx_ir::op::elementwise::BinaryOp::Max, trips, 0.0)?,
        None => b.scalar(-1.0, DType::I64)?,
    };
    let condition = match parts.condition {
        Some(condition) => condition,
        None => b.scalar(1.0, DType::Bool)?,
    };
    let count = b.fresh_symbol("trips");
    let length = Dim::from(count.clone());
    let results = body.types[1..].iter().enumerate().map(|(i, t)| match types.get(i) {
        Some(t) => t.clone(),
        None => {
            t.with_shape(std::iter::once(length.clone()).chain(t.dims().iter().cloned()).collect::<Vec<_>>())
        }
    });
    let results = results.collect();
    let mut operands = vec![trips, condition];
    operands.extend(carried.iter().chain(&body.captured));
    let op = While { body: body.graph, carried: carried.len(), count, results };
    Ok(b.push(op, &operands)?.to_vec().into())
}

/// A loop that runs its full count: a scan over the numbers of the trips.
fn counted(cx: &mut NodeContext<'_, '_>, body: &BuiltBody, trips: Value, carried: &[Value]) -> Handled {
    let b = cx.builder();
    let trips = b.binary_scalar(rlx_ir::op::elementwise::BinaryOp::Max, trips, 0.0)?;
    let length = b.bind_dim(trips, "trips", 0)?;
    let numbers = b.iota(DType::I64, std::slice::from_ref(&length), 0)?;
    // The body takes the trip's number first and gives a condition; a scan takes it after what is carried.
    let mut inner = b.subgraph("trip");
    let mut inputs = Vec::new();
    for (i, value) in carried.iter().enumerate() {
        inputs.push(inner.input(&i.to_string(), b.type_of(*value).clone())?);
    }
    let number = inner.input("number", TensorType::scalar(DType::I64))?;
    let mut captured = Vec::new();
    for (i, value) in body.captured.iter().enumerate() {
        captured.push(inner.input(&format!("captured.{i}"), b.type_of(*value).clone())?);
    }
    let order: Vec<Value> = std::iter::once(number).chain(inputs).chain(captured).collect();
    let names: Vec<String> = body.graph.input_types().map(|(name, _)| name.to_owned()).collect();
    let input = |name: &str| names.iter().position(|n| n == name).and_then(|i| order.get(i)).copied();
    let results = rlx_ir::lower::inline(&mut inner, &body.graph, &input)?;
    let names: Vec<String> = (1..results.len()).map(|i| i.to_string()).collect();
    let graph = inner.finish(names.iter().map(String::as_str).zip(results.into_iter().skip(1)))?;
    let op = Scan { body: graph.into(), carried: carried.len(), scanned: 1, length, reverse: false };
    let mut operands = carried.to_vec();
    operands.push(numbers);
    operands.extend(&body.captured);
    Ok(b.push(op, &operands)?.to_vec().into())
}

/// Makes the next carried values of the types of the first; sizes that are known to differ are refused. Sizes that
/// cannot be compared are checked when the body runs.
fn keep_types(
    b: &mut Builder,
    outputs: &mut [Value],
    types: &[TensorType],
    symbols: &FxHashSet<Symbol>,
) -> Result<(), NodeProblem> {
    for (output, t) in outputs.iter_mut().zip(types) {
        let found = b.type_of(*output).clone();
        if found == *t {
            continue;
        }
        let differ = || NodeProblem::Unsupported(format!("a loop that carries first {t}, then {found}"));
        if found.dtype != t.dtype || found.rank() != t.rank() {
            return Err(differ());
        }
        for (f, e) in found.dims().iter().zip(t.dims()) {
            let mut own = true;
            f.for_each_symbol(&mut |s| own &= symbols.contains(s));
            let answer = b.graph().symbols().known_eq(f, e);
            // A size that is an expression of the graph's symbols and not the same expression grows or shrinks.
            if answer == rlx_ir::dim::Answer::No || (own && answer != rlx_ir::dim::Answer::Yes) {
                return Err(differ());
            }
        }
        *output = b.reshape(*output, t.dims())?;
    }
    Ok(())
}

/// A body that runs later gives tensors only, and stacks only what has one size in all trips.
fn check_forms(
    cx: &mut NodeContext<'_, '_>,
    body: &BuiltBody,
    stacked_from: usize,
    symbols: &FxHashSet<Symbol>,
) -> Result<(), NodeProblem> {
    if body.forms.iter().any(|form| *form != Form::Tensor) {
        return Err(NodeProblem::Unsupported("a loop that gives sequences or optionals".to_owned()));
    }
    for t in body.types.iter().skip(stacked_from) {
        if !cx.is_of_this_graph(t, symbols) {
            return Err(NodeProblem::Unsupported(format!(
                "stacking {t}, whose size differs from trip to trip"
            )));
        }
    }
    Ok(())
}

/// The loop's trips one after the other. `refusal` says why it is not one operation; it stands if the trips are not
/// known either.
fn unrolled<'m>(cx: &mut NodeContext<'_, 'm>, parts: &Loop<'m>, refusal: NodeProblem) -> Handled {
    let limit = cx.importer.options.limits.max_unrolled_trips;
    let trips = match parts.trips.map(|trips| known(cx, trips)) {
        None => None,
        Some(Some(trips)) => Some(usize::try_from(trips.max(0)).unwrap_or(usize::MAX)),
        Some(None) => return Err(unknown(cx, 0, "the number of trips", refusal)),
    };
    let mut goes_on = match parts.condition.map(|condition| known(cx, condition)) {
        None => true,
        Some(Some(condition)) => condition != 0,
        Some(None) => return Err(unknown(cx, 1, "whether the loop runs", refusal)),
    };
    let mut carried = parts.carried.clone();
    let mut stacks: Vec<Vec<Value>> = vec![Vec::new(); parts.body.output.len() - 1 - carried.len()];
    let mut trip = 0;
    while goes_on && trips.is_none_or(|trips| trip < trips) {
        if trip >= limit {
            let what = format!("a loop of more than {limit} trips that must be unrolled: {refusal}");
            return Err(NodeProblem::Unsupported(what));
        }
        let b = cx.builder();
        let number = b.constant(Literal::scalar(trip as i64));
        let yes = b.scalar(1.0, DType::Bool)?;
        let mut inputs: Vec<Bound> = vec![number.into(), yes.into()];
        inputs.extend(carried.iter().cloned());
        let mut outputs = cx.inline(parts.body, inputs, &format!("body[{trip}]"))?.into_iter();
        let condition = outputs.next().and_then(|o| o.as_tensor());
        goes_on = match condition.and_then(|c| known(cx, c)) {
            Some(condition) => condition != 0,
            None => return Err(unknown(cx, 1, "whether the loop goes on", refusal)),
        };
        carried = outputs.by_ref().take(carried.len()).collect();
        for (stack, output) in stacks.iter_mut().zip(outputs) {
            let value = output.as_tensor();
            let value =
                value.ok_or_else(|| NodeProblem::Unsupported("stacking what is no tensor".to_owned()))?;
            stack.push(cx.builder().unsqueeze(value, 0)?);
        }
        trip += 1;
    }
    let mut results = carried;
    for stack in stacks {
        if stack.is_empty() {
            return Err(NodeProblem::Unsupported(format!("stacking the results of no trips: {refusal}")));
        }
        results.push(cx.builder().concat(&stack, 0)?.into());
    }
    Ok(Outputs(results))
}

/// What must be known to unroll, if a caller can give it; else why the loop is not one operation.
fn unknown(cx: &NodeContext<'_, '_>, operand: usize, what: &str, refusal: NodeProblem) -> NodeProblem {
    match cx.needs_constant(operand, &format!("{what}, and the loop must be unrolled: {refusal}")) {
        NodeProblem::NeedsConstant { graph_inputs, .. } if graph_inputs.is_empty() => refusal,
        needs => needs,
    }
}

/// The parts of a Scan node, for one sample.
struct Scanned<'m> {
    body: &'m GraphProto,
    carried: Vec<Value>,
    /// With the scanned axis first, in the order of the trips.
    scanned: Vec<Value>,
    /// The axis of each stacked output, and whether it is in reverse order.
    outputs: Vec<(i64, bool)>,
}

fn scan(cx: &mut NodeContext<'_, '_>) -> Handled {
    let body = cx.graph("body")?;
    let count = cx.required_int("num_scan_inputs")?;
    let scanned =
        usize::try_from(count).map_err(|_| cx.bad_attribute("num_scan_inputs", "at least 0", count))?;
    let batched = cx.since() < 9;
    if batched && cx.has(0) {
        return Err(NodeProblem::Unsupported("sequence_lens of Scan before opset 9".to_owned()));
    }
    let mut inputs = cx.inputs.clone();
    if batched && !inputs.is_empty() {
        inputs.remove(0);
    }
    let values: Option<Vec<Value>> = inputs.iter().map(Bound::as_tensor).collect();
    let values =
        values.ok_or(NodeProblem::InputKind { operand: 0, expected: "tensors", found: "something else" })?;
    let Some(carried) = values.len().checked_sub(scanned) else {
        return Err(cx.bad_attribute("num_scan_inputs", format!("at most {}", values.len()), scanned));
    };
    let stacked = body.output.len().saturating_sub(carried);
    let list = |cx: &NodeContext<'_, '_>, name: &str, n: usize| -> Result<Vec<i64>, NodeProblem> {
        let list = cx.ints(name)?.unwrap_or_else(|| vec![0; n]);
        if list.len() == n {
            Ok(list)
        } else {
            Err(cx.bad_attribute(name, format!("{n} numbers"), list.len()))
        }
    };
    let (input_axes, input_directions, output_axes, output_directions);
    if batched {
        (input_axes, output_axes) = (vec![0; scanned], vec![0; stacked]);
        (input_directions, output_directions) = (list(cx, "directions", scanned)?, vec![0; stacked]);
    } else {
        input_axes = list(cx, "scan_input_axes", scanned)?;
        input_directions = list(cx, "scan_input_directions", scanned)?;
        output_axes = list(cx, "scan_output_axes", stacked)?;
        output_directions = list(cx, "scan_output_directions", stacked)?;
    }
    let outputs: Vec<(i64, bool)> =
        output_axes.into_iter().zip(output_directions.iter().map(|d| *d != 0)).collect();
    let sample = |cx: &mut NodeContext<'_, '_>, values: &[Value]| {
        let mut scanned = Vec::new();
        for ((value, axis), direction) in values[carried..].iter().zip(&input_axes).zip(&input_directions) {
            let rank = cx.rank(*value);
            let axis = cx.axis(*axis, rank)?;
            let b = cx.builder();
            let first = b.move_axis(*value, axis, 0)?;
            scanned.push(if *direction == 0 { first } else { b.reverse(first, &[0])? });
        }
        Ok::<_, NodeProblem>(Scanned {
            body,
            carried: values[..carried].to_vec(),
            scanned,
            outputs: outputs.clone(),
        })
    };
    if !batched {
        let parts = sample(cx, &values)?;
        return Ok(scanned_sample(cx, &parts)?.into());
    }
    // Before opset 9 the first axis of everything is the batch.
    let batch = values.first().and_then(|v| cx.shape(*v).first().and_then(Dim::as_size));
    let Some(batch) = batch.filter(|n| (1..=cx.importer.options.limits.max_unrolled_trips).contains(n))
    else {
        return Err(NodeProblem::Unsupported("Scan before opset 9 on a batch of open size".to_owned()));
    };
    let mut results: Vec<Vec<Value>> = Vec::new();
    for i in 0..batch {
        let mut slices = Vec::with_capacity(values.len());
        for value in &values {
            slices.push(cx.builder().index_axis(*value, 0, &i.into())?);
        }
        let parts = sample(cx, &slices)?;
        let sample = scanned_sample(cx, &parts)?;
        results.resize(sample.len(), Vec::new());
        for (all, one) in results.iter_mut().zip(sample) {
            all.push(cx.builder().unsqueeze(one, 0)?);
        }
    }
    let b = cx.builder();
    let joined = results.iter().map(|parts| b.concat(parts, 0)).collect::<Result<Vec<Value>, _>>()?;
    Ok(joined.into())
}

fn scanned_sample<'m>(cx: &mut NodeContext<'_, 'm>, parts: &Scanned<'m>) -> Result<Vec<Value>, NodeProblem> {
    let length = match parts.scanned.first() {
        Some(first) => cx.builder().dim(*first, 0),
        None => return Err(NodeProblem::Unsupported("a Scan that scans nothing".to_owned())),
    };
    let depth = cx.importer.depth();
    let results = match scanned_as_one(cx, parts, &length) {
        Ok(results) => results,
        Err(refusal) => {
            cx.importer.back_to(&depth);
            scan_unrolled(cx, parts, &length, refusal)?
        }
    };
    let mut all = Vec::with_capacity(results.len());
    for (i, value) in results.into_iter().enumerate() {
        let Some((axis, reversed)) = i.checked_sub(parts.carried.len()).and_then(|i| parts.outputs.get(i))
        else {
            all.push(value);
            continue;
        };
        let rank = cx.rank(value);
        let axis = cx.axis(*axis, rank)?;
        let b = cx.builder();
        let value = if *reversed { b.reverse(value, &[0])? } else { value };
        all.push(b.move_axis(value, 0, axis)?);
    }
    Ok(all)
}

fn scanned_as_one<'m>(
    cx: &mut NodeContext<'_, 'm>,
    parts: &Scanned<'m>,
    length: &Dim,
) -> Result<Vec<Value>, NodeProblem> {
    let types: Vec<TensorType> = parts.carried.iter().map(|v| cx.builder().type_of(*v).clone()).collect();
    let slices = parts.scanned.iter().map(|v| {
        let t = cx.builder().type_of(*v);
        t.with_shape(t.dims().get(1..).unwrap_or_default())
    });
    let inputs: Vec<Option<TensorType>> = types.iter().cloned().chain(slices).map(Some).collect();
    let symbols = cx.symbols();
    let mut finish = |b: &mut Builder, outputs: &mut Vec<Value>| keep_types(b, outputs, &types, &symbols);
    let body = cx.body(parts.body, &inputs, &[], "body", &mut finish)?;
    check_forms(cx, &body, types.len(), &symbols)?;
    let mut operands = parts.carried.clone();
    operands.extend(parts.scanned.iter().chain(&body.captured));
    let op = Scan {
        body: body.graph,
        carried: types.len(),
        scanned: parts.scanned.len(),
        length: length.clone(),
        reverse: false,
    };
    Ok(cx.builder().push(op, &operands)?.to_vec())
}

fn scan_unrolled<'m>(
    cx: &mut NodeContext<'_, 'm>,
    parts: &Scanned<'m>,
    length: &Dim,
    refusal: NodeProblem,
) -> Result<Vec<Value>, NodeProblem> {
    let limit = cx.importer.options.limits.max_unrolled_trips;
    let Some(length) = length.as_size().filter(|n| (1..=limit).contains(n)) else { return Err(refusal) };
    let mut carried = parts.carried.clone();
    let mut stacks: Vec<Vec<Value>> = Vec::new();
    for trip in 0..length {
        let mut inputs: Vec<Bound> = carried.iter().map(|v| Bound::Tensor(*v)).collect();
        for value in &parts.scanned {
            inputs.push(cx.builder().index_axis(*value, 0, &trip.into())?.into());
        }
        let outputs = cx.inline(parts.body, inputs, &format!("body[{trip}]"))?;
        let outputs: Option<Vec<Value>> = outputs.iter().map(Bound::as_tensor).collect();
        let Some(mut outputs) = outputs else { return Err(refusal) };
        let stacked = outputs.split_off(carried.len().min(outputs.len()));
        carried = outputs;
        stacks.resize(stacked.len(), Vec::new());
        for (stack, value) in stacks.iter_mut().zip(stacked) {
            stack.push(cx.builder().unsqueeze(value, 0)?);
        }
    }
    for stack in stacks {
        carried.push(cx.builder().concat(&stack, 0)?);
    }
    Ok(carried)
}
