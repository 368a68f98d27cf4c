//! `cargo xtask filetests`: the file tests, and their expectations written anew.

use std::path::Path;

use anyhow::bail;
use clap::Args;
use rlx_testkit::filetest::run_folder;

/// Options of `cargo xtask filetests`.
#[derive(Args)]
pub(crate) struct Options {
    /// Rewrite the expectations that do not hold to what was found
    #[arg(long)]
    bless: bool,
}

pub(crate) fn run(repository: &Path, options: &Options) -> anyhow::Result<()> {
    let report = run_folder(&repository.join("filetests"), options.bless)?;
    for message in &report.failed {
        eprintln!("FAILED {message}");
    }
    for path in &report.blessed {
        eprintln!("rewrote {}", path.display());
    }
    if !report.failed.is_empty() {
        bail!("{} of {} expectations do not hold", report.failed.len(), report.checked);
    }
    eprintln!("{} expectations checked", report.checked);
    Ok(())
}
