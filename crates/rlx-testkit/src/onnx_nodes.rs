//! The node tests of ONNX, run through a backend: `CASE/model.onnx` with `test_data_set_N/{input,output}_I.pb`.
//!
//! A case passes if every output has the expected type and sizes and agrees within the tolerance that ONNX itself uses
//! or, where that is less than the rounding of the element type, within that; integers, truth values and text must be
//! equal. An input whose value decides shapes is given at import, and counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bytes::Bytes;
use rlx_ir::op::elementwise::UnaryOp;
use rlx_ir::{Builder, DType, Graph, Literal};
use rlx_onnx::load::{LoadOptions, ModelFile, open};
use rlx_onnx::proto::{NodeProto, ValueInfoProto};
use rlx_onnx::values::Text;
use rlx_onnx::{Constant, ImportOptions, Imported, OutputForm, data, import};

/// Relative tolerance of ONNX's own runner (`onnx.backend.test.loader`, release 1.23.2).
pub const RELATIVE_TOLERANCE: f64 = 1e-3;

/// Absolute tolerance of ONNX's own runner.
pub const ABSOLUTE_TOLERANCE: f64 = 1e-7;

/// Runs a graph on inputs in order; an error is a message.
pub type Evaluate<'a> = &'a dyn Fn(&Graph, &[Literal]) -> Result<Vec<Literal>, String>;

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All outputs agree.
    Pass,
    /// The model, or one of its values, is refused with an error.
    Refused(String),
    /// An output differs.
    Wrong(String),
    /// The code panicked.
    Panic(String),
    /// The result is random; type and sizes agree.
    Unverifiable,
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResult {
    /// What became of it.
    pub outcome: Outcome,
    /// The inputs that had to be given at import.
    pub pinned: Vec<String>,
}

/// The oracle as a backend, within 1 GiB a case.
pub fn oracle(graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, String> {
    let options = rlx_eval::EvalOptions { memory_limit: 1 << 30, ..rlx_eval::EvalOptions::default() };
    let oracle = rlx_eval::Oracle::new(graph, options).map_err(|e| e.to_string())?;
    oracle.run(inputs).map_err(|e| e.to_string())
}

/// Runs the case in `folder`.
pub fn run_case(folder: &Path, evaluate: Evaluate<'_>) -> NodeResult {
    let mut pinned = Vec::new();
    let outcome = match catch_unwind(AssertUnwindSafe(|| case(folder, evaluate, &mut pinned))) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(refused)) => Outcome::Refused(refused),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Outcome::Panic(text.unwrap_or("a panic without a message").to_owned())
        }
    };
    NodeResult { outcome, pinned }
}

fn case(folder: &Path, evaluate: Evaluate<'_>, pinned: &mut Vec<String>) -> Result<Outcome, String> {
    let options = LoadOptions::default();
    let file = open(&folder.join("model.onnx"), &options).map_err(|e| e.to_string())?;
    let random = file.model().graph.as_ref().is_some_and(|g| g.node.iter().any(is_random));
    let mut sets = 0;
    loop {
        let set = folder.join(format!("test_data_set_{sets}"));
        if !set.is_dir() {
            break;
        }
        sets += 1;
        let outcome = data_set(&file, &set, evaluate, random, pinned)?;
        if !matches!(outcome, Outcome::Pass) {
            return Ok(outcome);
        }
    }
    match (sets, random) {
        (0, _) => Err("the case has no data".to_owned()),
        (_, true) => Ok(Outcome::Unverifiable),
        _ => Ok(Outcome::Pass),
    }
}

/// Whether the operator draws random numbers, so that other right results exist.
fn is_random(node: &NodeProto) -> bool {
    matches!(
        node.op_type(),
        "Bernoulli"
            | "Multinomial"
            | "RandomNormal"
            | "RandomNormalLike"
            | "RandomUniform"
            | "RandomUniformLike"
    )
}

fn data_set(
    file: &ModelFile,
    set: &Path,
    evaluate: Evaluate<'_>,
    random: bool,
    pinned: &mut Vec<String>,
) -> Result<Outcome, String> {
    let graph = file.model().graph.as_ref().ok_or("the model has no graph")?;
    let inputs = values(set, "input", &graph.input)?;
    let expected = values(set, "output", &graph.output)?;
    let imported = imported(file, &inputs, pinned)?;
    let mut ordered = Vec::new();
    for (name, _) in imported.graph.input_types() {
        match inputs.iter().find(|(n, _)| n == name) {
            Some((_, Constant::Tensor(literal))) => ordered.push(literal.clone()),
            _ => return Err(format!("no data for the input {name:?}")),
        }
    }
    let outputs = evaluate(&imported.graph, &ordered).map_err(|e| format!("running: {e}"))?;
    for (name, expected) in &expected {
        let form = imported.outputs.iter().find(|(n, _)| n == name).map(|(_, form)| form);
        let form = form.ok_or_else(|| format!("no output {name:?}"))?;
        if let Err(difference) = agrees(form, expected, &outputs, random) {
            return Ok(Outcome::Wrong(format!("{name}: {difference}")));
        }
    }
    Ok(Outcome::Pass)
}

/// Imports the model; inputs that must be known at import are given then, one error after the other.
fn imported(
    file: &ModelFile,
    inputs: &[(String, Constant)],
    pinned: &mut Vec<String>,
) -> Result<Imported, String> {
    let mut options = ImportOptions::default();
    loop {
        let error = match import(file, &options) {
            Ok(imported) => return Ok(imported),
            Err(error) => error,
        };
        let mut more = false;
        for name in error.needs_pinned().unwrap_or_default() {
            let value = inputs.iter().find(|(n, _)| n == name);
            if let (Some((_, value)), false) = (value, options.pinned.contains_key(name)) {
                options.pinned.insert(name.clone(), value.clone());
                pinned.push(name.clone());
                more = true;
            }
        }
        if !more {
            return Err(error.to_string());
        }
    }
}

fn values(set: &Path, kind: &str, declared: &[ValueInfoProto]) -> Result<Vec<(String, Constant)>, String> {
    let mut all = Vec::with_capacity(declared.len());
    for (i, info) in declared.iter().enumerate() {
        let path = set.join(format!("{kind}_{i}.pb"));
        // Trailing optional inputs have no file.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let t = info.r#type.as_ref().ok_or_else(|| format!("{kind} {i} has no type"))?;
        let value = data::value_from_bytes(Bytes::from(bytes), t, &LoadOptions::default());
        let value = value.map_err(|e| format!("{kind} {i}: {e}"))?;
        all.push((info.name().to_owned(), value));
    }
    Ok(all)
}

fn agrees(form: &OutputForm, expected: &Constant, outputs: &[Literal], random: bool) -> Result<(), String> {
    match (form, expected) {
        (OutputForm::Tensor(at), Constant::Tensor(expected)) => {
            let found = outputs.get(*at).ok_or("the output is not there")?;
            tensors_agree(found, expected, random)
        }
        (OutputForm::Text(found), Constant::Text(expected)) => texts_agree(found, expected),
        (OutputForm::Sequence(found), Constant::Sequence(expected, _)) => {
            if found.len() != expected.len() {
                return Err(format!("{} elements instead of {}", found.len(), expected.len()));
            }
            let mut pairs = found.iter().zip(expected);
            pairs.try_for_each(|(found, expected)| agrees(found, expected, outputs, random))
        }
        (OutputForm::Optional(None), Constant::Optional(None)) => Ok(()),
        (OutputForm::Optional(Some(found)), Constant::Optional(Some(expected))) => {
            agrees(found, expected, outputs, random)
        }
        (OutputForm::Optional(Some(found)), expected) => agrees(found, expected, outputs, random),
        (found, Constant::Optional(Some(expected))) => agrees(found, expected, outputs, random),
        (found, _) => Err(format!("another kind of value: {found:?}")),
    }
}

fn texts_agree(found: &Text, expected: &Text) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}

/// Whether two tensors agree in type, sizes and, within the tolerance, elements.
pub fn tensors_agree(found: &Literal, expected: &Literal, random: bool) -> Result<(), String> {
    if found.dtype() != expected.dtype() || found.dims() != expected.dims() {
        return Err(format!("{found:?} instead of {expected:?}"));
    }
    if random || found.bytes() == expected.bytes() {
        return Ok(());
    }
    let dtype = expected.dtype();
    let inexact = dtype.is_float() || dtype.is_complex();
    let parts: &[UnaryOp] =
        if dtype.is_complex() { &[UnaryOp::RealPart, UnaryOp::ImagPart] } else { &[UnaryOp::Abs] };
    for part in parts {
        let part = dtype.is_complex().then_some(*part);
        let (found, expected) = (wide(found, part)?, wide(expected, part)?);
        let greatest = expected.iter().filter(|e| e.is_finite()).fold(0.0f64, |g, e| g.max(e.abs()));
        for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
            let same = f == e || (f.is_nan() && e.is_nan());
            let bound = ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * e.abs();
            let bound = bound.max(own_error(dtype, e.abs(), greatest));
            let close = inexact && e.is_finite() && (f - e).abs() <= bound;
            if !(same || close) {
                return Err(format!("element {i} is {f} instead of {e}"));
            }
        }
    }
    Ok(())
}

/// What the expected values themselves may be off, as they are computed in their own type: two units in the last place
/// of narrow floats (one for the reference, one for the result); of wider ones the rounding of sums that cancel, in
/// proportion to the greatest element.
fn own_error(dtype: DType, magnitude: f64, greatest: f64) -> f64 {
    match dtype {
        // 8 and 11 significant bits: a unit is at most 2^-7 and 2^-10 of the value.
        DType::BF16 => 2.0 * 2f64.powi(-7) * magnitude,
        DType::F16 => 2.0 * 2f64.powi(-10) * magnitude,
        DType::F32 | DType::C64 => 4.0 * 2f64.powi(-24) * greatest,
        DType::F64 | DType::C128 => 4.0 * 2f64.powi(-53) * greatest,
        _ => 0.0,
    }
}

/// The elements, or one part of complex ones, in f64.
fn wide(literal: &Literal, part: Option<UnaryOp>) -> Result<Vec<f64>, String> {
    let mut b = Builder::new("wide");
    let built = (|| {
        let mut x = b.constant(literal.clone());
        if let Some(part) = part {
            x = b.unary(part, x)?;
        }
        let x = b.cast(x, DType::F64)?;
        b.finish([("wide", x)])
    })();
    let graph = built.map_err(|e| e.to_string())?;
    let outputs = oracle(&graph, &[])?;
    outputs.first().and_then(Literal::to_vec::<f64>).ok_or_else(|| "no elements".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_must_be_equal_and_floats_close() {
        let ints = |v: i64| Literal::vector(&[v]);
        assert!(tensors_agree(&ints(1_000_000), &ints(1_000_001), false).is_err());
        let floats = |v: f32| Literal::vector(&[v]);
        assert!(tensors_agree(&floats(1.0), &floats(1.0005), false).is_ok());
        assert!(tensors_agree(&floats(1.0), &floats(1.01), false).is_err());
        assert!(tensors_agree(&floats(f32::NAN), &floats(f32::NAN), false).is_ok());
        assert!(tensors_agree(&floats(f32::INFINITY), &floats(1.0), false).is_err());
        assert!(tensors_agree(&floats(1.0), &floats(f32::INFINITY), false).is_err());
    }
}
