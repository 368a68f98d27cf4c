//! Tasks that run RLX itself: the program `rlx-judge`, started with what it needs from outside.
//!
//! It is built when it is needed, in the profile of the tests, so that building `cargo xtask` stays cheap.

use std::ffi::OsString;
use std::process::Command;

use anyhow::bail;
use clap::Args;

use crate::context::Context;
use crate::test::PROFILE;
use crate::{conformance, process, references};

/// What is passed on; `--help` tells what each task takes.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    arguments: Vec<OsString>,
}

impl Options {
    fn has(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| argument == flag)
    }
}

/// A task of `rlx-judge`.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// The case table.
    Cases,
    /// The file tests.
    Filetests,
    /// The node tests of ONNX.
    OnnxNodes,
    /// The real models.
    ParityOnnx,
    /// Random graphs against the oracle.
    RandomGraphs,
    /// The memory plans of the real models.
    Planner,
    /// The pages made from tables.
    Docs,
}

/// Runs `task` with the caller's options.
pub(crate) fn run(context: &Context, task: Task, options: &Options) -> anyhow::Result<()> {
    let bare = options.has("--help") || options.has("-h");
    let mut command = command(context, task, bare, options.has("--all"))?;
    process::run(command.args(&options.arguments))
}

/// Runs `task` as a stage of the tests; the answer is the last line that it wrote.
pub(crate) fn stage(context: &Context, task: Task, arguments: &[&str]) -> anyhow::Result<String> {
    let mut last = String::new();
    let mut command = command(context, task, false, arguments.contains(&"--all"))?;
    process::run_watching(command.args(arguments), |line| {
        if !line.trim().is_empty() {
            last = line.trim().to_owned();
        }
    })?;
    if last.is_empty() {
        bail!("the judge said nothing");
    }
    Ok(last)
}

/// The command up to the options; with `bare`, nothing is fetched for it, with `all` large models are.
fn command(context: &Context, task: Task, bare: bool, all: bool) -> anyhow::Result<Command> {
    let mut command = process::cargo();
    command
        .current_dir(&context.repository)
        .args(["run", "--quiet", "--profile", PROFILE, "--package", "rlx-judge", "--target-dir"])
        .arg(&context.target)
        .arg("--");
    match task {
        Task::Cases => command.arg("cases"),
        Task::Filetests => command.arg("filetests"),
        Task::Docs => command.arg("docs"),
        Task::RandomGraphs => command.arg("random-graphs"),
        Task::Planner if bare => command.arg("planner"),
        Task::Planner => command.args(["planner", "--references"]).arg(references::list(context, all)?),
        Task::OnnxNodes if bare => command.arg("onnx-nodes"),
        Task::OnnxNodes => {
            command.args(["onnx-nodes", "--suite"]).arg(conformance::onnx_node_tests(context)?)
        }
        Task::ParityOnnx if bare => command.arg("parity-onnx"),
        Task::ParityOnnx => {
            command.args(["parity-onnx", "--references"]).arg(references::list(context, all)?)
        }
    };
    Ok(command)
}
