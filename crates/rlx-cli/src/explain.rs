//! `rlx explain`: what the compiler makes of a model, and why: in the terminal, as JSON, and as one HTML page.

mod drawing;
mod html;
mod layered;
mod markup;
mod memory;
mod summary;

use crate::execution::{self, CompileArguments, Compiled};
use crate::inputs::{InputArguments, Missing};
use crate::open::ModelArguments;
use crate::profile::{self, Recorder, Sample};
use anyhow::Context;
use clap::Args;
use rlx::report::{MemoryReport, Report};
use rlx::{Executable, Model, RunOptions};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `rlx explain`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    #[command(flatten)]
    inputs: InputArguments,

    #[command(flatten)]
    compile: CompileArguments,

    /// Run the model too, and show the time of each step; inputs that are not given are random
    #[arg(long)]
    run: bool,

    /// Write the account as one page: the graph with its regions, the memory over time, the time of each step
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// List every step in the terminal
    #[arg(long)]
    steps: bool,

    /// Print the whole account as one JSON object
    #[arg(long)]
    json: bool,
}

/// A report, with what a run and sizes add to it.
struct Account {
    report: Report,
    /// Where memory lies, if sizes are known.
    memory: Option<MemoryReport>,
    /// Why it is not known.
    memory_missing: String,
    /// The shortest time of each step; empty without a run.
    times: Vec<Duration>,
    compile_time: Duration,
}

/// Runs that the time of a step is the shortest of.
const MOST_RUNS: usize = 3;

/// No further run begins after this.
const ENOUGH: Duration = Duration::from_secs(2);

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let model = options.model.open()?;
    let Compiled { executable, time: compile_time } = options.compile.compile(&model)?;
    let samples = if options.run { profiled(options, &model, &executable)? } else { Vec::new() };
    let report = executable.report();
    let mut times = if samples.is_empty() { Vec::new() } else { vec![Duration::MAX; report.steps.len()] };
    for sample in &samples {
        times[sample.step] = times[sample.step].min(sample.time);
    }
    let (memory, memory_missing) = planned(options, &model, &executable, &report)?;
    let account = Account { report, memory, memory_missing, times, compile_time };
    if let Some(path) = &options.html {
        std::fs::write(path, html::page(&account)).with_context(|| path.display().to_string())?;
    }
    if options.json {
        println!("{}", to_json(&account));
        return Ok(());
    }
    print!("{}", summary::text(&account, options.steps));
    if !samples.is_empty() {
        println!("\ntime of steps, {} runs together", samples.len() / account.report.steps.len().max(1));
        print!("{}", profile::table(&samples, &account.report.steps));
    }
    if let Some(path) = &options.html {
        println!("page: {}", path.display());
    }
    Ok(())
}

fn profiled(options: &Options, model: &Model, executable: &Executable) -> anyhow::Result<Vec<Sample>> {
    let inputs = options.inputs.gather(&model.graph, Missing::Random)?;
    let recorder = Recorder::new();
    let record = |step, time| recorder.record(step, time);
    let start = Instant::now();
    for _ in 0..MOST_RUNS {
        execution::run(executable, &inputs, &RunOptions { profile: Some(&record), ..RunOptions::default() })?;
        if start.elapsed() > ENOUGH {
            break;
        }
    }
    Ok(recorder.into_samples())
}

/// The memory of the run if there was one, else the plan for the sizes given; and what is missing for one.
fn planned(
    options: &Options,
    model: &Model,
    executable: &Executable,
    report: &Report,
) -> anyhow::Result<(Option<MemoryReport>, String)> {
    let sizes = options.inputs.sizes(&model.graph)?;
    if let Some(memory) = &report.memory {
        return Ok((Some(memory.clone()), String::new()));
    }
    let missing: Vec<&str> = report
        .symbols
        .iter()
        .map(String::as_str)
        .filter(|name| sizes.get(&rlx::ir::Symbol::new(name)).is_none())
        .collect();
    if missing.is_empty() {
        return Ok((Some(executable.plan_memory(&sizes)?), String::new()));
    }
    let settings: Vec<String> = missing.iter().map(|name| format!("--set {name}=N")).collect();
    Ok((None, format!("depends on sizes: give {}", settings.join(" "))))
}

fn to_json(account: &Account) -> Value {
    let mut report = account.report.to_json();
    report["compile_ms"] = json!(account.compile_time.as_secs_f64() * 1e3);
    report["memory"] = account.memory.as_ref().map_or(Value::Null, MemoryReport::to_json);
    if let Value::Array(steps) = &mut report["steps"] {
        for (step, time) in steps.iter_mut().zip(&account.times) {
            step["ms"] = json!(time.as_secs_f64() * 1e3);
        }
    }
    report
}
