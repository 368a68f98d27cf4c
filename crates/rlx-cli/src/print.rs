//! `rlx print`: a model's graph as text.

use crate::open::ModelArguments;
use anyhow::Context;
use clap::{Args, ValueEnum};
use rlx::ir::{export, lower, structural_hash, text};
use std::path::PathBuf;

/// Options of `rlx print`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    /// The form
    #[arg(long, value_enum, default_value_t = Form::Text)]
    form: Form,

    /// Show primitives only: composites are replaced by their decompositions
    #[arg(long)]
    lower: bool,

    /// Write to a file; in the text form, large constants go to FILE.constants
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum, PartialEq)]
enum Form {
    /// The text form, which `rlx` reads back
    Text,
    /// JSON
    Json,
    /// DOT, for Graphviz
    Dot,
    /// The structural hash
    Hash,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let model = options.model.open()?;
    let graph = if options.lower { lower(&model.graph, &|_| false)? } else { model.graph };
    if let (Form::Text, Some(path)) = (options.form, &options.output) {
        return rlx::write_text(&graph, path).with_context(|| path.display().to_string());
    }
    let page = match options.form {
        Form::Text => text::print(&graph),
        Form::Json => format!("{}\n", export::to_json(&graph)),
        Form::Dot => export::to_dot(&graph),
        Form::Hash => format!("{:032x}\n", structural_hash(&graph)),
    };
    match &options.output {
        Some(path) => std::fs::write(path, page).with_context(|| path.display().to_string()),
        None => {
            print!("{page}");
            Ok(())
        }
    }
}
