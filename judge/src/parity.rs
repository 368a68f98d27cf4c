//! `cargo xtask parity-onnx`: the real models against onnxruntime, on realistic inputs, step by step where they have
//! a state.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use rlx::eval::Precision;
use rlx::io::literal::literal_from_npy;
use rlx::io::npz::{NpzOptions, read_npz};
use rlx::ir::{DType, Literal};
use serde_json::{Value, json};

use crate::backend::BackendName;
use crate::engine::Engine;
use crate::references::{self, ModelCase};
use crate::report;

/// The bound on |ours − onnxruntime's|, relative to the range of the output (its greatest magnitude): both sum in f32
/// in different orders, so the difference is a few ε₃₂ = 6e-8 a layer; 1e-4 is what remains of that after the deepest
/// of these models.
const RELATIVE_BOUND: f64 = 1e-4;

/// Models with 8-bit integer products, and the bound on them, relative to the range of the output.
///
/// The products themselves are exact in i32 on both sides. What differs is the float that goes into a quantisation: where
/// it lies next to a boundary, rounding in another order makes it the next integer, one step of 1/255 of its tensor's
/// range. One such step in one activation changes a product of depth K by about 1/(255·√K) of its range: 2e-4 at the
/// depths here (K ≥ 384), and a few may meet in one output.
const INTEGER: &[(&str, f64)] = &[("minilm_int8", 1e-3), ("captcha_int8", 1e-3)];

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
    #[arg(long, value_enum, default_value_t = BackendName::Cpu)]
    backend: BackendName,

    /// Threads of the CPU
    #[arg(long, default_value_t = 2)]
    threads: usize,

    /// The large cases too: models of a large download, or that take long
    #[arg(long)]
    all: bool,

    /// The list of models, inputs and expected outputs
    #[arg(long, value_name = "FILE", hide = true)]
    references: PathBuf,

    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    filter: String,

    /// Also compute the models in f64, and print how far from that our outputs and onnxruntime's are
    #[arg(long)]
    wide: bool,

    /// Print `{"ok","failed","executables","models":[{"name","max_err","tolerance","ok","seconds"}]}` as the last line
    #[arg(long)]
    json: bool,
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
    // Each model is made ready once, whatever sizes its cases have.
    let mut ready: BTreeMap<PathBuf, Engine> = BTreeMap::new();
    let mut rows = Vec::new();
    let (mut ok, mut failed) = (0, 0);
    for case in references::read(&options.references)? {
        if !case.name.contains(filter.as_str()) || case.large && !options.all {
            continue;
        }
        let start = Instant::now();
        let engine = match ready.entry(case.model.clone()) {
            Entry::Occupied(entry) => Ok(&*entry.into_mut()),
            Entry::Vacant(entry) => {
                let made = match options.backend {
                    BackendName::Eval => Engine::oracle(&case.model, Precision::Declared),
                    BackendName::Cpu => Engine::cpu(&case.model, options.threads),
                };
                made.map(|engine| &*entry.insert(engine))
            }
        };
        let outcome = engine.and_then(|engine| compare(&case, engine, options.wide));
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
                let mut row = json!({
                    "name": case.name, "max_err": o.max_error, "tolerance": o.tolerance, "ok": o.ok,
                    "seconds": (seconds * 1e3).round() / 1e3,
                });
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
    let summary = json!({ "ok": ok, "failed": failed, "executables": ready.len(), "models": rows });
    Ok((summary, verdict))
}

pub(crate) type Arrays = BTreeMap<String, Literal>;

pub(crate) fn arrays(path: &Path) -> anyhow::Result<Arrays> {
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

/// The values of a case's calls: the arrays of its inputs, cut up where they are for steps.
pub(crate) struct Calls<'a> {
    case: &'a ModelCase,
    inputs: Arrays,
    /// The inputs of one call in order, by name.
    names: Vec<String>,
    states: Arrays,
    next: usize,
    steps: usize,
}

impl<'a> Calls<'a> {
    /// Those of `case`, whose model has inputs of these names.
    pub(crate) fn new(case: &'a ModelCase, names: Vec<String>) -> anyhow::Result<Calls<'a>> {
        let inputs = arrays(&case.inputs)?;
        let steps = match case.per_step.first() {
            Some(name) => {
                *inputs.get(name).context("a stepped input")?.dims().first().context("its steps")?
            }
            None => 1,
        };
        Ok(Calls { case, inputs, names, states: BTreeMap::new(), next: 0, steps })
    }

    /// The inputs of the next call; `None` after the last.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Vec<(String, Literal)>>> {
        if self.next == self.steps {
            return Ok(None);
        }
        let mut given = Vec::new();
        for name in &self.names {
            let array = self.inputs.get(name).with_context(|| format!("no array for input {name:?}"))?;
            let value = match self.states.get(name) {
                // A state of the model in f64 is rounded to its declared type, as an input has one.
                Some(state) => of_type(state, array.dtype())?,
                None if self.case.per_step.contains(name) => slice(array, self.next)?,
                None => array.clone(),
            };
            given.push((name.clone(), value));
        }
        self.next += 1;
        Ok(Some(given))
    }

    /// Keeps what the next call is given of these outputs.
    pub(crate) fn keep(&mut self, outputs: &[(String, Literal)]) {
        for (name, value) in outputs {
            if let Some((input, _)) = self.case.states.iter().find(|(_, output)| output == name) {
                self.states.insert(input.clone(), value.clone());
            }
        }
    }
}

/// The outputs by name, all steps of each one after the other.
fn computed(case: &ModelCase, engine: &Engine) -> anyhow::Result<BTreeMap<String, Vec<f64>>> {
    let mut calls = Calls::new(case, engine.inputs())?;
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    while let Some(inputs) = calls.next()? {
        let outputs = engine.run(&inputs)?;
        for (name, value) in &outputs {
            found.entry(name.clone()).or_default().extend(numbers(value)?);
        }
        calls.keep(&outputs);
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

fn compare(case: &ModelCase, engine: &Engine, wide: bool) -> anyhow::Result<Outcome> {
    let found = computed(case, engine)?;
    let exact = match wide {
        true => Some(computed(case, &Engine::oracle(&case.model, Precision::Wide)?)?),
        false => None,
    };
    let relative = SENSITIVE
        .iter()
        .chain(INTEGER)
        .find(|(name, _)| case.name.starts_with(name))
        .map_or(RELATIVE_BOUND, |s| s.1);
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
