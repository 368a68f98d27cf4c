//! `cargo xtask demo`: builds the release `rlx` and the demonstration, and lets it listen.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::context::Context;
use crate::process;

/// The model, from the root of the repository.
const MODEL: &str = "models/basic-pitch/nmp.onnx";

/// Options of `cargo xtask demo`.
#[derive(Args)]
pub(crate) struct Options {
    /// Where the sound, the picture and the compiler's report are written [default: TARGET/demo]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs the demonstration.
///
/// # Errors
/// If a step fails, or the model misses more than one note in twenty.
pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let mut build = process::cargo();
    build
        .current_dir(&context.repository)
        .args(["build", "--release", "--package", "rlx-cli", "--package", "rlx-demo", "--target-dir"])
        .arg(&context.target);
    process::run(&mut build)?;
    let program =
        |name: &str| context.target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let output = options.output.clone().unwrap_or_else(|| context.target.join("demo"));
    let mut demo = Command::new(program("rlx-demo"));
    demo.arg("--rlx").arg(program("rlx")).arg("--model").arg(context.file(MODEL)).arg("--output").arg(output);
    process::run(&mut demo)
}
