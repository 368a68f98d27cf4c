//! The node tests of ONNX through the importer and a backend, held to a ratchet: a case that passed once must go on
//! passing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use rlx::ir::{Graph, Literal};
use rlx_testkit::onnx_nodes::{NodeResult, Outcome, oracle, run_case};
use rlx_testkit::{Backend as _, Cpu};
use serde_json::{Value, json};

use crate::backend::BackendName;
use crate::report;

/// Options of `cargo xtask onnx-nodes`.
#[derive(Args)]
pub(crate) struct Options {
    /// What runs the graphs
    #[arg(long, value_enum, default_value_t = BackendName::Eval)]
    backend: BackendName,
    /// Only cases whose name contains this; the ratchet is then left alone
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// The node tests of the onnx package, each in a folder of this one
    #[arg(long, value_name = "DIR", required_unless_present = "folder", hide = true)]
    suite: Option<PathBuf>,
    /// Cases in the folders of this one, instead of those of the onnx package; the ratchet is then left alone
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Add newly passing cases to the ratchet file
    #[arg(long)]
    bless: bool,
    /// Print `{"pass","refused","wrong","panic","unverifiable","total","pinned"}` as the last line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(repository: &Path, options: &Options) -> anyhow::Result<()> {
    let (summary, verdict) = tally(repository, options)?;
    if options.json {
        report::print_json(&summary)?;
    } else {
        eprintln!("{summary}");
    }
    verdict
}

/// The summary, and whether it is as it must be: none wrong, no panic, nothing lost.
fn tally(repository: &Path, options: &Options) -> anyhow::Result<(Value, anyhow::Result<()>)> {
    let folder = options.folder.as_ref().or(options.suite.as_ref()).context("no folder of cases")?;
    let names = case_names(folder)?;
    let wanted = |name: &str| options.filter.as_deref().is_none_or(|filter| name.contains(filter));
    let cpu = match options.backend {
        BackendName::Eval => None,
        BackendName::Cpu => Some(Cpu::new(1, true)?),
    };
    let evaluate = |graph: &Graph, inputs: &[Literal]| match &cpu {
        None => oracle(graph, inputs),
        Some(cpu) => cpu.run(graph, inputs).map_err(|e| e.message),
    };
    // A panic is a result here; its message goes with the case.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut results = Vec::new();
    for name in names.iter().map(String::as_str).filter(|name| wanted(name)) {
        results.push((name, run_case(&folder.join(name), &evaluate)));
    }
    std::panic::set_hook(hook);
    let passing: BTreeSet<&str> =
        results.iter().filter(|(_, r)| r.outcome == Outcome::Pass).map(|(name, _)| *name).collect();
    for (name, result) in &results {
        if let Some(text) = shown(result) {
            eprintln!("{name}: {text}");
        }
    }
    let count = |matches: fn(&Outcome) -> bool| results.iter().filter(|(_, r)| matches(&r.outcome)).count();
    let summary = json!({
        "pass": passing.len(),
        "refused": count(|o| matches!(o, Outcome::Refused(_))),
        "wrong": count(|o| matches!(o, Outcome::Wrong(_))),
        "panic": count(|o| matches!(o, Outcome::Panic(_))),
        "unverifiable": count(|o| matches!(o, Outcome::Unverifiable)),
        "total": results.len(),
        "pinned": results.iter().filter(|(_, r)| !r.pinned.is_empty()).count(),
    });
    let faults =
        results.iter().filter(|(_, r)| matches!(r.outcome, Outcome::Wrong(_) | Outcome::Panic(_))).count();
    let verdict = if faults > 0 {
        Err(anyhow!("{faults} cases are wrong or panic"))
    } else if options.filter.is_some() || options.folder.is_some() {
        Ok(())
    } else {
        let ratchet = options.backend.results(repository, "onnx-nodes", "txt");
        hold(&ratchet, &passing, options.bless)
    };
    Ok((summary, verdict))
}

/// The folders that hold a model, sorted.
fn case_names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        if entry.path().join("model.onnx").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// What a person reads of a case that does not simply pass.
fn shown(result: &NodeResult) -> Option<String> {
    Some(match &result.outcome {
        Outcome::Pass | Outcome::Unverifiable => return None,
        Outcome::Refused(text) => format!("refused: {text}"),
        Outcome::Wrong(text) => format!("WRONG: {text}"),
        Outcome::Panic(text) => format!("PANIC: {text}"),
    })
}

/// Fails if a case of the file does not pass; with `bless`, writes the file anew with the cases that do.
fn hold(file: &Path, passing: &BTreeSet<&str>, bless: bool) -> anyhow::Result<()> {
    let held = std::fs::read_to_string(file).unwrap_or_default();
    let lost: Vec<&str> = held.lines().filter(|name| !passing.contains(name)).collect();
    let gained = passing.iter().filter(|name| !held.lines().any(|held| held == **name)).count();
    if !lost.is_empty() {
        bail!("{} cases passed before and do not now: {}", lost.len(), lost.join(", "));
    }
    if gained > 0 && bless {
        let names: Vec<&str> = passing.iter().copied().collect();
        std::fs::create_dir_all(file.parent().context("the file's folder")?)?;
        std::fs::write(file, names.join("\n") + "\n")?;
        eprintln!("{gained} cases more in {}", file.display());
    } else if gained > 0 {
        eprintln!("{gained} cases pass that {} does not hold; --bless adds them", file.display());
    }
    Ok(())
}
