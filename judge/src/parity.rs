//! `cargo xtask parity-onnx`: the real models against onnxruntime, on realistic inputs, step by step where they have
//! a state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, ValueEnum};
use rlx::eval::{EvalOptions, Oracle, Precision};
use rlx::io::literal::literal_from_npy;
use rlx::io::npz::{NpzOptions, read_npz};
use rlx::ir::{DType, Literal};
use rlx::{Model, ModelOptions};
use serde_json::{Value, json};

use crate::references::{self, ModelCase};
use crate::report;

/// The bound on |ours − onnxruntime's|, relative to the range of the output (its greatest magnitude): both sum in f32
/// in different orders, so the difference is a few ε₃₂ = 6e-8 a layer; 1e-4 is what remains of that after the deepest
/// of these models.
const RELATIVE_BOUND: f64 = 1e-4;

/// Models in which a difference of rounding is magnified; the bound is how far ours and onnxruntime's outputs are from
/// the model computed in f64 (`--wide`), added.
///
/// - basic_pitch takes the logarithm of powers down to 1e-10, which come out of nine convolutions of 256 taps in a row.
///   Ours is up to 2.7e-4 of the range from f64, onnxruntime's up to 1.3e-4. What makes the difference is the order of
///   f32 sums alone: ours run in index order, those of onnxruntime without graph optimisations in blocks. With its
///   optimisations it sums in index order too, and then differs from ours by 7e-7. Were partial sums not rounded, ours
///   would be 3.2e-5 from f64.
const SENSITIVE: &[(&str, f64)] = &[("basic_pitch", 4e-4)];

/// Options of `cargo xtask parity-onnx`.
#[derive(Args)]
pub(crate) struct Options {
    /// What computes
    #[arg(long, value_enum, default_value_t = Backend::Eval)]
    backend: Backend,

    /// The list of models, inputs and expected outputs
    #[arg(long, value_name = "FILE", hide = true)]
    references: PathBuf,

    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    filter: String,

    /// Also compute the models in f64, and print how far from that our outputs and onnxruntime's are
    #[arg(long)]
    wide: bool,

    /// Print `{"ok","failed","models":[{"name","max_err","tolerance","ok"}]}` as the last line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    /// The oracle
    Eval,
}

/// What came out for one case.
struct Outcome {
    max_error: f64,
    tolerance: f64,
    ok: bool,
    /// With `--wide`, one for each output.
    distances: Vec<Distance>,
}

/// How far two results of one output are from the model computed in f64.
struct Distance {
    output: String,
    /// The greatest magnitude.
    range: f64,
    ours: Error,
    theirs: Error,
}

/// Differences of all elements.
struct Error {
    greatest: f64,
    root_mean_square: f64,
}

/// Runs the task.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let Backend::Eval = options.backend;
    let (summary, verdict) = compare_all(options)?;
    if options.json {
        report::print_json(&summary)?;
    }
    verdict?;
    eprintln!("{} models agree with onnxruntime", summary["ok"]);
    Ok(())
}

/// The summary of the cases that the options choose, and whether all agree.
fn compare_all(options: &Options) -> anyhow::Result<(Value, anyhow::Result<()>)> {
    let filter = &options.filter;
    let mut rows = Vec::new();
    let (mut ok, mut failed) = (0, 0);
    for case in references::read(&options.references)? {
        if !case.name.contains(filter.as_str()) {
            continue;
        }
        let start = Instant::now();
        let outcome = compare(&case, options.wide);
        let seconds = start.elapsed().as_secs_f64();
        match &outcome {
            Ok(o) if o.ok => ok += 1,
            _ => failed += 1,
        }
        let row = match outcome {
            Ok(o) => {
                let mark = if o.ok { "ok    " } else { "FAILED" };
                eprintln!(
                    "{mark} {:<28} {:.3e} of {:.3e}, {seconds:.1} s",
                    case.name, o.max_error, o.tolerance
                );
                let mut row = json!({ "name": case.name, "max_err": o.max_error, "tolerance": o.tolerance, "ok": o.ok });
                if options.wide {
                    row["from_f64"] = o.distances.iter().map(Distance::shown).collect();
                }
                row
            }
            Err(error) => {
                eprintln!("FAILED {:<28} {error:#}", case.name);
                json!({
                    "name": case.name, "max_err": null, "tolerance": null, "ok": false,
                    "error": format!("{error:#}"),
                })
            }
        };
        rows.push(row);
    }
    let verdict = match (ok, failed) {
        (0, 0) => Err(anyhow!("no case is called {filter:?}")),
        (_, 0) => Ok(()),
        _ => Err(anyhow!("{failed} of {} models differ from onnxruntime", ok + failed)),
    };
    Ok((json!({ "ok": ok, "failed": failed, "models": rows }), verdict))
}

type Arrays = BTreeMap<String, Literal>;

fn arrays(path: &Path) -> anyhow::Result<Arrays> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    read_npz(&bytes, &NpzOptions::default())?
        .into_iter()
        .map(|(name, array)| Ok((name, literal_from_npy(array, None)?)))
        .collect()
}

/// Index `step` of the first axis.
fn slice(literal: &Literal, step: usize) -> anyhow::Result<Literal> {
    let (steps, dims) = literal.dims().split_first().context("a stepped array has axes")?;
    let size = literal.bytes().len() / (*steps).max(1);
    let bytes = literal.bytes().slice(step * size..(step + 1) * size);
    Ok(Literal::new(literal.dtype(), dims, bytes)?)
}

/// The outputs of the oracle by name, all steps of each one after the other.
///
/// With [`Precision::Wide`], states between steps are rounded to their declared types, as an input has one.
fn computed(case: &ModelCase, precision: Precision) -> anyhow::Result<BTreeMap<String, Vec<f64>>> {
    let model = Model::open(&case.model, &ModelOptions::default())?;
    let oracle = Oracle::new(&model.graph, EvalOptions { precision, ..EvalOptions::default() })?;
    let inputs = arrays(&case.inputs)?;
    let steps = match case.per_step.first() {
        Some(name) => {
            Some(*inputs.get(name).context("a stepped input")?.dims().first().context("its steps")?)
        }
        None => None,
    };
    let mut states: Arrays = BTreeMap::new();
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for step in 0..steps.unwrap_or(1) {
        let mut given = Vec::new();
        for (name, expected) in model.graph.input_types() {
            let array = inputs.get(name).with_context(|| format!("no array for input {name:?}"))?;
            let value = match states.get(name) {
                Some(state) => of_type(state, expected.dtype)?,
                None if case.per_step.iter().any(|n| n == name) => slice(array, step)?,
                None => array.clone(),
            };
            given.push((name.to_string(), value));
        }
        for (name, value) in oracle.run_named(&given)? {
            found.entry(name.clone()).or_default().extend(numbers(&value)?);
            if let Some((input, _)) = case.states.iter().find(|(_, output)| *output == name) {
                states.insert(input.clone(), value);
            }
        }
    }
    Ok(found)
}

/// The value in this type, which it may only be wider than.
fn of_type(value: &Literal, dtype: DType) -> anyhow::Result<Literal> {
    if value.dtype() == dtype {
        return Ok(value.clone());
    }
    if dtype != DType::F32 {
        bail!("states of {dtype} are not rounded from {}", value.dtype());
    }
    let rounded: Vec<f32> = numbers(value)?.into_iter().map(|x| x as f32).collect();
    Ok(Literal::from_slice(value.dims(), &rounded)?)
}

fn compare(case: &ModelCase, wide: bool) -> anyhow::Result<Outcome> {
    let found = computed(case, Precision::Declared)?;
    let exact = if wide { Some(computed(case, Precision::Wide)?) } else { None };
    let relative =
        SENSITIVE.iter().find(|(name, _)| case.name.starts_with(name)).map_or(RELATIVE_BOUND, |s| s.1);
    let (mut max_error, mut bound, mut ok) = (0.0, 0.0, true);
    let mut distances = Vec::new();
    for (name, array) in &arrays(&case.outputs)? {
        let expected = numbers(array)?;
        let found = found.get(name).with_context(|| format!("no output {name:?}"))?;
        if found.len() != expected.len() {
            bail!("output {name:?}: {} elements, onnxruntime has {}", found.len(), expected.len());
        }
        let range = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let tolerance = relative * range;
        let error = Error::between(found, &expected).greatest;
        let agrees = error <= tolerance;
        // The output that uses most of its bound stands for the model.
        if !agrees || error * bound >= max_error * tolerance {
            (max_error, bound) = (error, tolerance);
        }
        ok &= agrees;
        if let Some(exact) = exact.as_ref().and_then(|exact| exact.get(name)) {
            let (ours, theirs) = (Error::between(found, exact), Error::between(&expected, exact));
            distances.push(Distance { output: name.clone(), range, ours, theirs });
        }
    }
    Ok(Outcome { max_error, tolerance: bound, ok, distances })
}

impl Error {
    /// Of two lists of one length.
    fn between(found: &[f64], expected: &[f64]) -> Error {
        let (mut greatest, mut squares) = (0.0f64, 0.0);
        for (f, e) in found.iter().zip(expected) {
            // Any NaN equals any NaN; a NaN on one side only is no small difference.
            let difference = if f.is_nan() && e.is_nan() || f == e { 0.0 } else { (f - e).abs() };
            let difference = if difference.is_nan() { f64::INFINITY } else { difference };
            greatest = greatest.max(difference);
            squares += difference * difference;
        }
        Error { greatest, root_mean_square: (squares / found.len().max(1) as f64).sqrt() }
    }

    fn json(&self) -> Value {
        json!({ "greatest": self.greatest, "root_mean_square": self.root_mean_square })
    }
}

impl Distance {
    /// The JSON of it, after printing it for people.
    fn shown(&self) -> Value {
        eprintln!(
            "       {:?}, range {:.3e}, from f64: ours {:.3e} (root mean square {:.3e}), onnxruntime's {:.3e} ({:.3e})",
            self.output,
            self.range,
            self.ours.greatest,
            self.ours.root_mean_square,
            self.theirs.greatest,
            self.theirs.root_mean_square,
        );
        let (ours, theirs) = (self.ours.json(), self.theirs.json());
        json!({ "output": self.output, "range": self.range, "ours": ours, "onnxruntime": theirs })
    }
}

fn numbers(literal: &Literal) -> anyhow::Result<Vec<f64>> {
    let wide = || literal.to_i64_vec().map(|v| v.into_iter().map(|x| x as f64).collect());
    match literal.dtype() {
        DType::F32 => literal.to_vec::<f32>().map(|v| v.into_iter().map(f64::from).collect()),
        DType::F64 => literal.to_vec::<f64>(),
        _ => wide(),
    }
    .with_context(|| format!("outputs of {} are not compared", literal.dtype()))
}
