//! `rlx bench`: how long a model takes.

use crate::execution::{CompileArguments, Compiled, run_into};
use crate::inputs::{InputArguments, Missing};
use crate::open::ModelArguments;
use crate::progress::Progress;
use crate::units::{bytes, millis};
use clap::Args;
use rlx::{MemoryUse, RunOptions, Slots, Tensor};
use serde_json::json;
use std::time::{Duration, Instant};

const JSON_KEYS: &str = "\
Keys of --json:
  model                 the graph's name
  device, threads       where it ran
  inputs                [{name, type}]: what it ran on, with sizes
  compile_ms            compiling and loading, once
  first_ms              the first run, in which sizes are bound and memory is planned and taken
  warmup, runs          how many runs were left out, and how many were measured
  min_ms, median_ms, mean_ms, p95_ms, max_ms
                        of the runs measured
  peak_bytes, lower_bound_bytes
                        temporaries as planned, and the least that any plan needs
  weight_bytes          constants of the model";

/// Options of `rlx bench`.
#[derive(Args)]
#[command(after_help = JSON_KEYS)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    #[command(flatten)]
    inputs: InputArguments,

    #[command(flatten)]
    compile: CompileArguments,

    /// Runs before those that are measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmup: usize,

    /// Runs that are measured
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Print one JSON object as the last line; its keys stand below
    #[arg(long)]
    json: bool,
}

/// Times in order, shortest first.
struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Times {
        times.sort();
        Times(times)
    }

    /// The time that the part `share` of the runs does not exceed (nearest rank).
    fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).or(self.0.last()).copied().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        match self.0.len() {
            0 => Duration::ZERO,
            n if n % 2 == 1 => self.0[n / 2],
            n => (self.0[n / 2 - 1] + self.0[n / 2]) / 2,
        }
    }

    fn mean(&self) -> Duration {
        self.0.iter().sum::<Duration>() / (self.0.len() as u32).max(1)
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let model = options.model.open()?;
    let inputs = options.inputs.gather(&model.graph, Missing::Random)?;
    let Compiled { executable, time: compile } = options.compile.compile(&model)?;
    let tensors: Vec<Tensor> = inputs.into_iter().map(Tensor::from).collect();
    let mut slots = Slots::default();
    let mut memory = MemoryUse::default();
    let progress = Progress::new("running", options.json);
    let all = options.warmup + options.runs as usize;
    let mut times = Vec::with_capacity(all);
    for i in 0..all {
        progress.set(i, all);
        let start = Instant::now();
        memory = run_into(&executable, &tensors, &mut slots, &RunOptions::default())?;
        times.push(start.elapsed());
    }
    progress.finish();
    let first = times[0];
    let times = Times::of(times.split_off(options.warmup));
    let report = executable.report();
    let ms = |time: Duration| format!("{:.3} ms", millis(time));
    let types: Vec<String> = tensors.iter().map(|t| t.tensor_type().to_string()).collect();
    if options.json {
        let inputs: Vec<_> = report
            .inputs
            .iter()
            .zip(&types)
            .map(|((name, _), ty)| json!({ "name": name, "type": ty }))
            .collect();
        println!(
            "{}",
            json!({
                "model": report.graph,
                "device": executable.device_name(),
                "threads": report.threads,
                "inputs": inputs,
                "compile_ms": millis(compile),
                "first_ms": millis(first),
                "warmup": options.warmup,
                "runs": options.runs,
                "min_ms": millis(times.quantile(0.0)),
                "median_ms": millis(times.median()),
                "mean_ms": millis(times.mean()),
                "p95_ms": millis(times.quantile(0.95)),
                "max_ms": millis(times.quantile(1.0)),
                "peak_bytes": memory.peak,
                "lower_bound_bytes": memory.lower_bound,
                "weight_bytes": report.weights.bytes,
            })
        );
        return Ok(());
    }
    println!("{} on {}, {} threads", report.graph, executable.device_name(), report.threads);
    for ((name, _), ty) in report.inputs.iter().zip(&types) {
        println!("  input {name}: {ty}");
    }
    println!("compiled in {}, first run {}", ms(compile), ms(first));
    println!(
        "{} runs after {}: median {}, min {}, p95 {}, max {}",
        options.runs,
        options.warmup,
        ms(times.median()),
        ms(times.quantile(0.0)),
        ms(times.quantile(0.95)),
        ms(times.quantile(1.0)),
    );
    println!(
        "temporaries {} (at least {}), weights {}",
        bytes(memory.peak),
        bytes(memory.lower_bound),
        bytes(report.weights.bytes)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured_and_the_median_may_lie_between_two() {
        let times = Times::of((1..=20).rev().map(Duration::from_secs).collect());
        assert_eq!(times.quantile(0.0), Duration::from_secs(1));
        assert_eq!(times.quantile(0.95), Duration::from_secs(19));
        assert_eq!(times.quantile(1.0), Duration::from_secs(20));
        assert_eq!(times.median(), Duration::from_millis(10_500));
        assert_eq!(Times::of(vec![Duration::from_secs(3)]).median(), Duration::from_secs(3));
    }
}
