//! Developer tasks: `cargo xtask TASK`.
//!
//! Every task that a contributor or the CI runs stands here, so that one clone, one toolchain and
//! one command are enough. What a task needs from outside (Python packages, models, conformance
//! tests) it fetches by itself into a cache outside the clone, checked by hash; see
//! [`context::Cache`].

mod bench;
mod checks;
mod conformance;
mod context;
mod demo;
mod fuzz;
mod judge;
mod models;
mod process;
mod references;
mod report;
mod system;
mod test;
mod venv;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::context::Context;

/// Developer tasks of RLX.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,

    /// Where fetched models, Python environments and fuzzing corpora are kept
    /// [default: `$XDG_CACHE_HOME/rlx` or `~/.cache/rlx`]
    #[arg(long, global = true, value_name = "DIR")]
    cache: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Task {
    /// Run every test: unit and file tests, documentation examples, conformance, fuzzing
    Test(test::Options),
    /// Run the case table on a backend
    Cases(judge::Options),
    /// Check the file tests, or rewrite what they expect
    Filetests(judge::Options),
    /// Check formatting, lints and documentation; warnings are errors
    Check,
    /// Fetch the real models that tests use, each checked by its hash
    FetchModels(models::Options),
    /// Make the Python environment of the outside references, and print its interpreter
    Venv,
    /// Run the real models under onnxruntime, and print where their outputs are
    References(references::Options),
    /// Compare the real models with onnxruntime
    ParityOnnx(judge::Options),
    /// Run random graphs on the CPU, and compare with the oracle
    RandomGraphs(judge::Options),
    /// Compile the real models, and compare the peaks of their memory plans with the lower bounds
    Planner(judge::Options),
    /// Time the real models against onnxruntime
    BenchOnnx(bench::Options),
    /// Conformance tests of other projects
    #[command(subcommand)]
    Conformance(conformance::Task),
    /// Run the node tests of ONNX through the importer and a backend
    OnnxNodes(judge::Options),
    /// Write the pages that are made from the code's tables
    Docs(judge::Options),
    /// Fuzz what reads files from outside
    Fuzz(fuzz::Options),
    /// Let a real model listen to a melody, print the notes it heard and draw them
    Demo(demo::Options),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let context = Context::new(arguments.cache)?;
    match arguments.task {
        Task::Test(options) => test::run(&context, &options),
        Task::Cases(options) => judge::run(&context, judge::Task::Cases, &options),
        Task::Filetests(options) => judge::run(&context, judge::Task::Filetests, &options),
        Task::Check => checks::run(&context),
        Task::FetchModels(options) => models::run(&context, &options),
        Task::Venv => venv::run(&context),
        Task::References(options) => references::run(&context, &options),
        Task::ParityOnnx(options) => judge::run(&context, judge::Task::ParityOnnx, &options),
        Task::RandomGraphs(options) => judge::run(&context, judge::Task::RandomGraphs, &options),
        Task::Planner(options) => judge::run(&context, judge::Task::Planner, &options),
        Task::BenchOnnx(options) => bench::run(&context, &options),
        Task::Conformance(task) => conformance::run(&context, &task),
        Task::OnnxNodes(options) => judge::run(&context, judge::Task::OnnxNodes, &options),
        Task::Docs(options) => judge::run(&context, judge::Task::Docs, &options),
        Task::Fuzz(options) => fuzz::run(&context, &options),
        Task::Demo(options) => demo::run(&context, &options),
    }
}
