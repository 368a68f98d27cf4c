//! `rlx-judge TASK`: runs RLX against the case table, the file tests, the node tests of ONNX and real models.
//!
//! `cargo xtask` starts it with what it needs from outside; it is a program of its own so that tasks which need none of
//! RLX (and the demonstration) do not wait for the whole test kit to be built.

mod backend;
mod bench;
mod cases;
mod docs;
mod engine;
mod filetests;
mod onnx_nodes;
mod parity;
mod planner;
mod random_graphs;
mod references;
mod report;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

/// RLX against its cases and outside references.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the case table on a backend
    Cases(cases::Options),
    /// Check the file tests, or rewrite what they expect
    Filetests(filetests::Options),
    /// Compare the real models with onnxruntime
    ParityOnnx(parity::Options),
    /// Run the node tests of ONNX through the importer and a backend
    OnnxNodes(onnx_nodes::Options),
    /// Run random graphs on the CPU, and compare with the oracle
    RandomGraphs(random_graphs::Options),
    /// Compile the real models, and compare the peaks of their memory plans with the lower bounds
    Planner(planner::Options),
    /// Answer with times of a model
    #[command(hide = true)]
    BenchWorker(bench::Options),
    /// Write the pages that are made from the code's tables
    Docs(docs::Options),
}

fn main() -> anyhow::Result<()> {
    let repository = repository()?;
    match Arguments::parse().task {
        Task::Cases(options) => cases::run(&options),
        Task::Filetests(options) => filetests::run(&repository, &options),
        Task::ParityOnnx(options) => parity::run(&options),
        Task::OnnxNodes(options) => onnx_nodes::run(&repository, &options),
        Task::RandomGraphs(options) => random_graphs::run(&options),
        Task::Planner(options) => planner::run(&options),
        Task::BenchWorker(options) => bench::run(&options),
        Task::Docs(options) => docs::run(&repository, &options),
    }
}

/// The root of the clone.
fn repository() -> anyhow::Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the judge's package is not in a workspace")?
        .to_path_buf())
}
