//! Conformance tests of other projects, exported into the cache.

use std::path::PathBuf;

use clap::Subcommand;

use crate::context::Context;
use crate::process;
use crate::venv::Venv;

/// The release of the onnx package that the node tests come from, as `references/requirements.txt`
/// pins it; it names the folder in the cache.
const ONNX: &str = "1.23.2";

const EXPORT_SCRIPT: &str = "references/export_onnx_node_tests.py";

/// Tasks on conformance tests.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Write the ONNX node tests into the cache, and print their folder
    Export,
}

pub(crate) fn run(context: &Context, task: &Task) -> anyhow::Result<()> {
    match task {
        Task::Export => println!("{}", onnx_node_tests(context)?.display()),
    }
    Ok(())
}

/// The folder of the ONNX node tests, exported when they are not in the cache. It holds
/// `index.json`, and for each case `CASE/model.onnx` and
/// `CASE/test_data_set_N/{input,output}_I.pb`; the script says more.
pub(crate) fn onnx_node_tests(context: &Context) -> anyhow::Result<PathBuf> {
    let _lock = context.cache.lock("onnx-node-tests")?;
    let parent = context.cache.folder("conformance")?;
    let folder = parent.join(format!("onnx-node-{ONNX}"));
    if folder.exists() {
        return Ok(folder);
    }
    eprintln!("exporting the ONNX node tests to {}", folder.display());
    let unfinished = parent.join("onnx-node-unfinished");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished)?;
    }
    let venv = Venv::of_references(context)?;
    let mut export = venv.script(context, EXPORT_SCRIPT);
    // The tests overflow on purpose, and numpy says so each time.
    export.env("PYTHONWARNINGS", "ignore").arg("--expect-onnx").arg(ONNX).arg(&unfinished);
    process::run(&mut export)?;
    std::fs::rename(&unfinished, &folder)?;
    Ok(folder)
}
