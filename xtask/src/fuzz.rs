//! `cargo xtask fuzz`: libFuzzer on the stable toolchain.
//!
//! The targets are `fuzz/targets/*.rs`. rustc's coverage pass is LLVM's own, so the stable
//! compiler can be told to run it; AddressSanitizer needs a nightly one, and is left out, since
//! nearly all of the code is safe Rust. What it would have caught in memory use, an allocator of
//! the fuzz crate catches (see `fuzz/src/lib.rs`).
//!
//! Corpora grow in the cache; small seeds are committed in `fuzz/seeds/TARGET/`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::context::Context;
use crate::{process, system};

/// The flags that make rustc write the coverage that libFuzzer reads, as clang's
/// `-fsanitize=fuzzer-no-link` does (LLVM's SanitizerCoverage documentation).
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    // Edges, and calls through pointers.
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    // Lets libFuzzer solve comparisons with magic numbers.
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // The pass runs once per codegen unit, and units inlined into each other confuse its counters.
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// The process may not grow beyond this, corpus included.
const RESIDENT_LIMIT_MB: u32 = 2048;

/// One input may not take longer than this.
const INPUT_SECONDS: u32 = 10;

/// Options of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct Options {
    /// The target; all of them, one after the other, when left out
    target: Option<String>,

    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,

    /// Run the target once on this file instead, as after a crash
    #[arg(long, requires = "target", value_name = "FILE")]
    replay: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let known = targets(context)?;
    let chosen = match &options.target {
        Some(target) if known.contains(target) => vec![target.clone()],
        Some(target) => bail!("no fuzz target is called {target}; there are: {}", known.join(", ")),
        None => known,
    };
    for target in &chosen {
        match &options.replay {
            Some(input) => process::run(Command::new(build(context, target)?).arg(input))?,
            None => eprintln!("{}", fuzz(context, target, options.seconds)?),
        }
    }
    Ok(())
}

/// The names of the fuzz targets, sorted.
pub(crate) fn targets(context: &Context) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for path in files(&context.file("fuzz/targets"))? {
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Fuzzes one target for `seconds`, and gives a line on what was done. An input that crashes the
/// target, takes too long or too much memory is an error that names the file that holds it.
pub(crate) fn fuzz(context: &Context, target: &str, seconds: u32) -> anyhow::Result<String> {
    let program = build(context, target)?;
    let corpus = context.cache.folder(&format!("fuzz/corpus/{target}"))?;
    let findings = context.cache.folder(&format!("fuzz/findings/{target}"))?;
    let log = context.cache.folder("fuzz")?.join(format!("{target}.log"));
    let before = files(&findings)?;
    eprintln!("fuzzing {target} for {seconds} s");
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={RESIDENT_LIMIT_MB}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        // The closing separator makes it a folder for libFuzzer, which puts it before each name.
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .args(["-verbosity=0", "-print_final_stats=1"])
        .arg(&corpus);
    // Folders after the first are read only.
    let seeds = context.file("fuzz/seeds").join(target);
    if seeds.exists() {
        command.arg(seeds);
    }
    let result = process::run(command.stdout(Stdio::null()).stderr(File::create(&log)?));
    let said = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    if result.is_err() {
        eprint!("{said}");
    }
    if let Some(found) = files(&findings)?.into_iter().find(|path| !before.contains(path)) {
        bail!(
            "fuzzing {target} found {0}\nrun it again with: cargo xtask fuzz {target} --replay {0}",
            found.display()
        );
    }
    result?;
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let runs = runs.with_context(|| format!("libFuzzer gave no count of runs; see {}", log.display()))?;
    Ok(format!("{target}: {} inputs in {seconds} s, none bad", runs.trim()))
}

/// Builds one target and gives its program.
fn build(context: &Context, target: &str) -> anyhow::Result<PathBuf> {
    system::require("a C++ compiler (for libFuzzer)", "g++", || {
        process::succeeds(Command::new("c++").arg("--version"))
    })?;
    let host = host()?;
    // A folder of its own: flags other than the workspace's would rebuild its dependencies each time.
    let folder = context.target.join("fuzz");
    let mut command = process::cargo();
    command
        .args(["build", "--release", "--manifest-path"])
        .arg(context.file("fuzz/Cargo.toml"))
        // With a target named, the flags do not reach build scripts and macros.
        .args(["--target", &host, "--bin", target, "--target-dir"])
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
    process::run(&mut command)?;
    Ok(folder.join(host).join("release").join(target))
}

/// The target triple of this machine's compiler.
fn host() -> anyhow::Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = folder.read_dir().with_context(|| format!("reading {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}
