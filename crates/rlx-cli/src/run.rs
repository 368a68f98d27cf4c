//! `rlx run`: the outputs of a model on given inputs.

use crate::execution::{self, CompileArguments, Compiled};
use crate::inputs::{InputArguments, Missing};
use crate::open::ModelArguments;
use crate::outputs::{Summary, write};
use crate::profile::{self, Recorder};
use crate::progress::Progress;
use crate::units::{bytes, parse_bytes, parse_seconds};
use anyhow::Context;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};
use rlx::eval::{EvalOptions, Oracle, Precision};
use rlx::ir::Literal;
use rlx::{Model, RunOptions};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `rlx run`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    #[command(flatten)]
    inputs: InputArguments,

    #[command(flatten)]
    compile: CompileArguments,

    /// What computes
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    backend: Backend,

    /// Write each output to DIR/NAME.npy
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// The most memory for what lies between inputs and outputs, as in 64MiB; more is an error
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory_cap: Option<usize>,

    /// Give up after this many seconds of computing
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,

    /// Print the time of each kind of step
    #[arg(long)]
    profile: bool,

    /// Write the time of each step for Chrome's trace viewer (chrome://tracing, ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Compute every float in f64 (only with --backend eval)
    #[arg(long)]
    wide: bool,

    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
}

/// What computes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// The compiler, on the CPU
    Cpu,
    /// The oracle: plain loops, exact and slow
    Eval,
}

/// What a run gave, whatever computed it.
struct Results {
    outputs: Vec<Literal>,
    time: Duration,
    /// What only one backend has to say, for `--json` and for people.
    facts: Map<String, Value>,
    remarks: Vec<String>,
}

impl Options {
    /// Options that mean nothing to the backend chosen are errors of the command line.
    fn refuse_what_does_not_fit(&self) {
        let of_cpu = [
            ("--threads", self.compile.threads.is_some()),
            ("--no-fuse", self.compile.no_fuse),
            ("--verify", self.compile.verify),
            ("--memory-cap", self.memory_cap.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--profile", self.profile),
            ("--trace", self.trace.is_some()),
        ];
        let (backend, given) = match self.backend {
            Backend::Cpu => ("cpu", self.wide.then_some("--wide")),
            Backend::Eval => ("eval", of_cpu.into_iter().find_map(|(option, given)| given.then_some(option))),
        };
        if let Some(option) = given {
            let message = format!("{option} cannot be used with --backend {backend}");
            crate::Arguments::command().error(ErrorKind::ArgumentConflict, message).exit()
        }
    }

    fn run_on_oracle(&self, model: &Model, inputs: &[Literal]) -> anyhow::Result<Results> {
        let precision = if self.wide { Precision::Wide } else { Precision::Declared };
        let oracle = Oracle::new(&model.graph, EvalOptions { precision, ..EvalOptions::default() })?;
        let progress = Progress::new("computing", self.json);
        let start = Instant::now();
        let outputs = oracle.run_watched(inputs, &|done, all| progress.set(done, all));
        progress.finish();
        Ok(Results { outputs: outputs?, time: start.elapsed(), facts: Map::new(), remarks: Vec::new() })
    }

    fn run_on_cpu(&self, model: &Model, inputs: &[Literal]) -> anyhow::Result<Results> {
        let Compiled { executable, time: compile } = self.compile.compile(model)?;
        let recorder = Recorder::new();
        let record = |step, time| recorder.record(step, time);
        let recording = self.profile || self.trace.is_some();
        let progress = Progress::new("computing", self.json);
        let advance = |done, all| progress.set(done, all);
        let start = Instant::now();
        let options = RunOptions {
            deadline: self.timeout.and_then(|timeout| start.checked_add(timeout)),
            progress: Some(&advance),
            memory_cap: self.memory_cap,
            profile: if recording { Some(&record) } else { None },
            ..RunOptions::default()
        };
        let outcome = execution::run(&executable, inputs, &options);
        let time = start.elapsed();
        progress.finish();
        let (outputs, memory) = outcome?;
        let mut facts = Map::new();
        facts.insert("compile_seconds".into(), json!(compile.as_secs_f64()));
        facts.insert("peak_bytes".into(), json!(memory.peak));
        let mut remarks = vec![format!(
            "compiled in {:.2} s, temporaries {} (at least {})",
            compile.as_secs_f64(),
            bytes(memory.peak),
            bytes(memory.lower_bound)
        )];
        if recording {
            let steps = executable.report().steps;
            let samples = recorder.into_samples();
            if let Some(path) = &self.trace {
                std::fs::write(path, format!("{}\n", profile::trace(&samples, &steps)))
                    .with_context(|| path.display().to_string())?;
                remarks.push(format!("trace: {}", path.display()));
            }
            if self.profile {
                facts.insert("profile".into(), Value::Array(profile::to_json(&samples, &steps)));
                if !self.json {
                    print!("{}", profile::table(&samples, &steps));
                }
            }
        }
        Ok(Results { outputs, time, facts, remarks })
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    options.refuse_what_does_not_fit();
    let opening = Instant::now();
    let model = options.model.open()?;
    let opened = opening.elapsed();
    let inputs = options.inputs.gather(&model.graph, Missing::Refused)?;
    let (backend, results) = match options.backend {
        Backend::Cpu => ("cpu", options.run_on_cpu(&model, &inputs)?),
        Backend::Eval => ("eval", options.run_on_oracle(&model, &inputs)?),
    };
    let mut rows = Vec::new();
    for (output, literal) in model.graph.outputs().iter().zip(&results.outputs) {
        let file = match &options.output {
            Some(folder) => Some(write(folder, &output.name, literal)?),
            None => None,
        };
        let summary = Summary::of(literal)?;
        if !options.json {
            let place = file.as_ref().map(|f| format!(" -> {}", f.display())).unwrap_or_default();
            println!("{}: {} {}{place}", output.name, literal.tensor_type(), summary.text());
        }
        rows.push(json!({
            "name": &*output.name,
            "dtype": literal.dtype().name(),
            "shape": literal.dims(),
            "min": summary.least,
            "max": summary.greatest,
            "mean": summary.mean,
            "file": file.map(|f| f.display().to_string()),
        }));
    }
    if options.json {
        let mut object = Map::new();
        object.insert("backend".into(), json!(backend));
        object.insert("outputs".into(), Value::Array(rows));
        object.insert("open_seconds".into(), json!(opened.as_secs_f64()));
        object.insert("run_seconds".into(), json!(results.time.as_secs_f64()));
        object.extend(results.facts);
        println!("{}", Value::Object(object));
    } else {
        for remark in &results.remarks {
            eprintln!("{remark}");
        }
        eprintln!("opened in {:.2} s, computed in {:.2} s", opened.as_secs_f64(), results.time.as_secs_f64());
    }
    Ok(())
}
