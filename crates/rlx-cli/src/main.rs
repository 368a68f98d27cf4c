//! The `rlx` command: runs, explains, measures, checks and shows models.
//!
//! Exit codes: 0 if all went well; 1 if a model does not run on what it was given, or a check found a fault; 2 if the
//! command line is wrong; 3 if a model cannot be opened; 130 if Ctrl-C ended the run.

mod bench;
mod devices;
mod execution;
mod explain;
mod input;
mod inputs;
mod inspect;
mod interrupt;
mod names;
mod open;
mod outputs;
mod print;
mod profile;
mod progress;
mod run;
mod units;
mod values;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs, explains, measures, checks and shows machine-learning models (ONNX, and graphs in RLX's text form).
#[derive(Parser)]
#[command(name = "rlx", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compute a model's outputs
    Run(run::Options),
    /// Show what the compiler makes of a model, and why
    Explain(explain::Options),
    /// Measure how long a model takes
    Bench(bench::Options),
    /// Compare a model's results on the CPU with the oracle's, and find the first that differs
    Verify(verify::Options),
    /// Show a model's inputs, outputs, operators and weights
    Inspect(inspect::Options),
    /// Print a model's graph: as text that `rlx` reads back, JSON, or DOT for drawing
    Print(print::Options),
    /// Show the devices of this machine
    Devices(devices::Options),
    /// Write the completions of a shell to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Verify(options) => verify::run(&options),
        Command::Inspect(options) => inspect::run(&options),
        Command::Print(options) => print::run(&options),
        Command::Devices(options) => devices::run(&options),
        Command::Completions { shell } => {
            let mut command = <Arguments as clap::CommandFactory>::command();
            clap_complete::generate(shell, &mut command, "rlx", &mut std::io::stdout());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<open::OpenError>() {
        ExitCode::from(3)
    } else if matches!(error.downcast_ref(), Some(rlx::RunError::Cancelled { .. })) {
        ExitCode::from(interrupt::EXIT_CODE)
    } else {
        ExitCode::from(1)
    }
}
