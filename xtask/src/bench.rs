//! `cargo xtask bench-onnx`: the real models under onnxruntime and under RLX, with the same threads, turn by turn.

use clap::Args;

use crate::context::Context;
use crate::venv::Venv;
use crate::{process, references};

const SCRIPT: &str = "references/bench_onnxruntime.py";

/// Options of `cargo xtask bench-onnx`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    filter: String,

    /// How often the two take turns
    #[arg(long, default_value_t = 11)]
    rounds: u32,

    /// Threads of each
    #[arg(long, default_value_t = 2)]
    threads: u32,

    /// The large models too
    #[arg(long)]
    all: bool,

    /// Print `{"geomean","min","models":[{"name","ratio","rlx_ms","ort_ms"},…]}` as the last line, where a ratio is
    /// onnxruntime's time over RLX's
    #[arg(long)]
    json: bool,
}

/// Builds the worker for speed, and lets the script time both.
///
/// # Errors
/// If the worker does not build, or a model does not run.
pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let list = references::list(context, options.all)?;
    let mut build = process::cargo();
    build
        .current_dir(&context.repository)
        .args(["build", "--release", "--package", "rlx-judge", "--target-dir"])
        .arg(&context.target);
    process::run(&mut build)?;
    let worker = context.target.join("release").join(format!("rlx-judge{}", std::env::consts::EXE_SUFFIX));
    let mut bench = Venv::of_references(context)?.script(context, SCRIPT);
    bench.arg("--worker").arg(worker).arg("--references").arg(list);
    bench.args(["--filter", &options.filter]);
    bench.args(["--rounds", &options.rounds.to_string(), "--threads", &options.threads.to_string()]);
    if options.json {
        return process::run(&mut bench);
    }
    process::output(&mut bench).map(|_| ())
}
