//! The `rlx` command: runs, shows and prints models.
//!
//! Exit codes: 0 if all went well, 1 if a model does not run on what it was given, 2 if the command line is wrong,
//! 3 if a model cannot be opened.

mod input;
mod inspect;
mod open;
mod print;
mod progress;
mod run;
mod values;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs, shows and prints machine-learning models (ONNX, and graphs in RLX's text form).
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
    /// Show a model's inputs, outputs, operators and weights
    Inspect(inspect::Options),
    /// Print a model's graph: as text that `rlx` reads back, JSON, or DOT for drawing
    Print(print::Options),
    /// Write the completions of a shell to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Inspect(options) => inspect::run(&options),
        Command::Print(options) => print::run(&options),
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
            if error.is::<open::OpenError>() { ExitCode::from(3) } else { ExitCode::from(1) }
        }
    }
}
