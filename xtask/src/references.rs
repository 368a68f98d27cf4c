//! What onnxruntime says of the real models on realistic inputs: the values that a backend's own
//! are compared with.
//!
//! They are made once, by the scripts in `references/`, and lie in the cache under a hash of all
//! that they follow from.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::models::{self, hex};
use crate::venv::{REQUIREMENTS, Venv};
use crate::{process, report};

const INPUTS_SCRIPT: &str = "references/model_inputs.py";
const RUN_SCRIPT: &str = "references/onnxruntime_run.py";

/// Files that the inputs are made of, as [`models::path`] knows them.
const INPUT_MODELS: &[&str] = &["beckett.wav", "magika_config.json"];

/// Files of the repository that the inputs are made of.
const INPUT_FILES: &[&str] = &["LICENSE-MIT"];

/// Options of `cargo xtask references`.
#[derive(Args)]
pub(crate) struct Options {
    /// The large cases too
    #[arg(long)]
    all: bool,

    /// Print `{"cases":[{"name","model","inputs","outputs"},…]}` as the last line
    #[arg(long)]
    json: bool,
}

/// A real model with inputs and the outputs that are right for them.
pub(crate) struct ModelCase {
    /// Unique among the cases.
    pub(crate) name: String,
    /// The ONNX file.
    pub(crate) model: PathBuf,
    /// An npz file with an array for each input of the model.
    pub(crate) inputs: PathBuf,
    /// An npz file with an array for each output of the model; when there are steps, the steps are
    /// its first axis.
    pub(crate) outputs: PathBuf,
    /// The inputs whose first axis counts calls of the model, one after the other; none means that
    /// there is one call.
    pub(crate) per_step: Vec<String>,
    /// Pairs of an input and the output of one call that it is in the next. In the first it is the
    /// array of [`Self::inputs`].
    pub(crate) states: Vec<(String, String)>,
    /// Whether it is left out unless asked for: a large download, or minutes of computing.
    pub(crate) large: bool,
}

pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let cases = model_cases(context, options.all)?;
    if options.json {
        return report::print_json(&to_json(&cases));
    }
    for case in cases {
        println!("{}: {}", case.name, case.outputs.display());
    }
    Ok(())
}

/// A file with what `--json` prints; with the large cases if `all`.
pub(crate) fn list(context: &Context, all: bool) -> anyhow::Result<PathBuf> {
    let cases = model_cases(context, all)?;
    let file = context.target.join("references.json");
    std::fs::write(&file, to_json(&cases).to_string())
        .with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn to_json(cases: &[ModelCase]) -> Value {
    let cases: Vec<_> = cases
        .iter()
        .map(|case| {
            json!({
                "name": case.name,
                "model": case.model.to_string_lossy(),
                "inputs": case.inputs.to_string_lossy(),
                "outputs": case.outputs.to_string_lossy(),
                "per_step": case.per_step,
                "states": case.states,
                "large": case.large,
            })
        })
        .collect();
    json!({ "cases": cases })
}

/// The cases, the large ones if `all`, in the order of the script that makes their inputs. The first call fetches
/// the models and runs them under onnxruntime, which takes about a minute; later ones find everything there.
pub(crate) fn model_cases(context: &Context, all: bool) -> anyhow::Result<Vec<ModelCase>> {
    let _lock = context.cache.lock("references")?;
    let folder = context.cache.folder("references")?.join(key(context)?);
    let list = folder.join("cases.json");
    if !list.exists() {
        make_inputs(context, &folder)?;
    }
    let text = std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let value: Value = serde_json::from_str(&text)?;
    let entries = value["cases"].as_array().context("the list of cases has no `cases`")?;
    entries
        .iter()
        .filter(|entry| all || entry["large"] == Value::Bool(false))
        .map(|entry| {
            let case = read_case(context, &folder, entry)?;
            if !case.outputs.exists() {
                make_outputs(context, &case)?;
            }
            Ok(case)
        })
        .collect()
}

/// A hash of the scripts, the packages and the models.
fn key(context: &Context) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    for file in [INPUTS_SCRIPT, RUN_SCRIPT, REQUIREMENTS, models::MANIFEST].iter().chain(INPUT_FILES) {
        let bytes = std::fs::read(context.file(file)).with_context(|| format!("reading {file}"))?;
        // Hashed one by one, so that no two lists of files look the same one after the other.
        hasher.update(Sha256::digest(bytes));
    }
    Ok(hex(&hasher.finalize())[..16].to_owned())
}

fn make_inputs(context: &Context, folder: &Path) -> anyhow::Result<()> {
    let mut command = Venv::of_references(context)?.script(context, INPUTS_SCRIPT);
    for name in INPUT_MODELS {
        command.arg("--file").arg(named(name, &models::path(context, name)?));
    }
    for name in INPUT_FILES {
        command.arg("--file").arg(named(name, &context.file(name)));
    }
    // The script writes the list last: a folder without it was left half-way, and is done again.
    process::run(command.arg(folder))
}

fn named(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(name);
    argument.push("=");
    argument.push(path);
    argument
}

fn make_outputs(context: &Context, case: &ModelCase) -> anyhow::Result<()> {
    eprintln!("running {} under onnxruntime", case.name);
    let unfinished = case.outputs.with_extension("unfinished.npz");
    let mut command = Venv::of_references(context)?.script(context, RUN_SCRIPT);
    command.arg(&case.model).arg(&case.inputs).arg(&unfinished);
    for name in &case.per_step {
        command.arg("--per-step").arg(name);
    }
    for (input, output) in &case.states {
        command.arg("--state").arg(format!("{input}={output}"));
    }
    process::run(&mut command)?;
    // A file that was written half would be taken for the truth ever after.
    File::open(&unfinished)?.sync_all()?;
    Ok(std::fs::rename(&unfinished, &case.outputs)?)
}

fn read_case(context: &Context, folder: &Path, entry: &Value) -> anyhow::Result<ModelCase> {
    let name = text(&entry["name"])?;
    let per_step = entry["per_step"].as_array().context("`per_step` is not a list")?;
    let states = entry["states"].as_object().context("`states` is not an object")?;
    Ok(ModelCase {
        model: models::path(context, &text(&entry["model"])?)?,
        inputs: folder.join(text(&entry["inputs"])?),
        outputs: folder.join(format!("{name}-outputs.npz")),
        per_step: per_step.iter().map(text).collect::<anyhow::Result<_>>()?,
        states: states
            .iter()
            .map(|(input, output)| Ok((input.clone(), text(output)?)))
            .collect::<anyhow::Result<_>>()?,
        large: entry["large"].as_bool().context("`large` is not true or false")?,
        name,
    })
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().context("the list of cases holds something else than a string")?.to_owned())
}
