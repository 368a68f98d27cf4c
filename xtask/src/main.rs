//! Developer tasks: `cargo xtask TASK`.

mod demo;

use std::path::Path;

use anyhow::Context as _;
use clap::Parser as _;

/// Developer tasks of RLX.
#[derive(clap::Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Let a real model listen to a melody, print the notes it heard and draw them
    Demo(demo::Options),
}

fn main() -> anyhow::Result<()> {
    let Task::Demo(options) = Task::parse();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in a repository")?;
    // This program is TARGET/<profile>/xtask.
    let program = std::env::current_exe().context("where this program is")?;
    let target = program.ancestors().nth(2).context("this program is in a target folder")?;
    demo::run(repository, target, &options)
}
