//! The list of real models with the values that are right for them, as `cargo xtask references --json` prints it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

/// A real model with inputs and the outputs that are right for them.
pub(crate) struct ModelCase {
    /// Unique among the cases.
    pub(crate) name: String,
    /// The ONNX file.
    pub(crate) model: PathBuf,
    /// An npz file with an array for each input of the model.
    pub(crate) inputs: PathBuf,
    /// An npz file with an array for each output of the model; when there are steps, the steps are its first axis.
    pub(crate) outputs: PathBuf,
    /// The inputs whose first axis counts calls of the model, one after the other; none means that there is one call.
    pub(crate) per_step: Vec<String>,
    /// Pairs of an input and the output of one call that it is in the next. In the first it is the array of
    /// [`Self::inputs`].
    pub(crate) states: Vec<(String, String)>,
    /// Whether it runs on demand only.
    pub(crate) large: bool,
}

/// Reads the list from the file at `path`.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<ModelCase>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    let cases = value["cases"].as_array().context("the list of cases has no `cases`")?;
    cases.iter().map(case).collect()
}

fn case(value: &Value) -> anyhow::Result<ModelCase> {
    let per_step = value["per_step"].as_array().context("`per_step` is not a list")?;
    let states = value["states"].as_array().context("`states` is not a list")?;
    Ok(ModelCase {
        name: text(&value["name"])?,
        model: text(&value["model"])?.into(),
        inputs: text(&value["inputs"])?.into(),
        outputs: text(&value["outputs"])?.into(),
        per_step: per_step.iter().map(text).collect::<anyhow::Result<_>>()?,
        states: states
            .iter()
            .map(|pair| Ok((text(&pair[0])?, text(&pair[1])?)))
            .collect::<anyhow::Result<_>>()?,
        large: value["large"].as_bool().context("`large` is not true or false")?,
    })
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().context("the list of cases holds something else than a string")?.to_owned())
}
