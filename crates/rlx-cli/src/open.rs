//! Opening the model that a command names.

use crate::input::InputArgument;
use crate::values;
use clap::Args;
use rlx::onnx::{Constant, MemoryMode};
use rlx::{Model, ModelError, ModelOptions};
use std::path::PathBuf;

/// Which model, and how it is opened.
#[derive(Args)]
pub(crate) struct ModelArguments {
    /// The model: a .onnx file, or a .rlx file in the text form
    pub(crate) model: PathBuf,

    /// Read the file instead of mapping it: slower to start, but safe when the file may be cut while in use
    #[arg(long)]
    no_map: bool,

    /// Make an input a constant at import, where its value decides shapes: NAME=SOURCE as for --input
    #[arg(long, value_name = "NAME=SOURCE")]
    pin: Vec<InputArgument>,
}

/// A model that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", .hint.as_deref().unwrap_or(""))]
pub(crate) struct OpenError {
    error: ModelError,
    hint: Option<String>,
}

impl ModelArguments {
    /// Opens the model.
    pub(crate) fn open(&self) -> anyhow::Result<Model> {
        let mut options = ModelOptions::default();
        if self.no_map {
            options.load.memory = MemoryMode::Read;
        }
        for pin in &self.pin {
            let literal = values::untyped_literal(pin)?;
            options.import.pinned.insert(pin.name.clone(), Constant::Tensor(literal));
        }
        Model::open(&self.model, &options).map_err(|error| OpenError { hint: hint(&error), error }.into())
    }
}

/// What a user can do about it.
fn hint(error: &ModelError) -> Option<String> {
    let ModelError::Import { source, .. } = error else { return None };
    let names = source.needs_pinned()?;
    let pins: Vec<String> = names.iter().map(|n| format!("--pin {n}=…")).collect();
    Some(format!("\nhelp: give that value at import with {}", pins.join(" ")))
}
