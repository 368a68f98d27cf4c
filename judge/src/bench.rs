//! `rlx-judge bench-worker`: one model made ready, and timed whenever a line asks for it.
//!
//! `cargo xtask bench-onnx` starts it, so that its runs and onnxruntime's take turns on the same processors. Each line
//! of standard input is a number of runs; the answer is a line with their mean in milliseconds.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use rlx::{RunOptions, Slots, Tensor};

use crate::engine::Engine;
use crate::parity::Calls;
use crate::references;

/// Options of `rlx-judge bench-worker`.
#[derive(Args)]
pub(crate) struct Options {
    /// The list of models and inputs
    #[arg(long, value_name = "FILE")]
    references: PathBuf,

    /// The case; of one with steps, the first
    #[arg(long)]
    case: String,

    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// Answers until the input ends.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let cases = references::read(&options.references)?;
    let case = cases.iter().find(|case| case.name == options.case);
    let case = case.with_context(|| format!("no case is called {:?}", options.case))?;
    let engine = Engine::cpu(&case.model, options.threads)?;
    let given = Calls::new(case, engine.inputs())?.next()?.context("a case has a call")?;
    let Engine::Cpu(executable) = engine else { bail!("the CPU's engine is another one") };
    let tensors: Vec<Tensor> = given.into_iter().map(|(_, literal)| literal.into()).collect();
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    let mut slots = Slots::default();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let runs: u32 = line?.trim().parse().context("a number of runs")?;
        // The caches are the other program's now.
        executable.run_into(&inputs, &mut slots, &RunOptions::default())?;
        let start = Instant::now();
        for _ in 0..runs {
            executable.run_into(&inputs, &mut slots, &RunOptions::default())?;
        }
        writeln!(output, "{}", start.elapsed().as_secs_f64() * 1e3 / f64::from(runs.max(1)))?;
        output.flush()?;
    }
    Ok(())
}
