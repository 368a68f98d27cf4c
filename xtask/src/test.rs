//! `cargo xtask test`: every test there is, in stages.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;

use crate::context::Context;
use crate::judge::{self, Task};
use crate::{fuzz, process};

/// The cargo profile of tests and checks; see the workspace's `Cargo.toml`.
pub(crate) const PROFILE: &str = "ci";

/// Options of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only the stages of these names
    #[arg(value_name = "STAGE")]
    stages: Vec<String>,

    /// How long each fuzz target runs
    #[arg(long, default_value_t = 60)]
    fuzz_seconds: u32,
}

/// One part of the test run.
struct Stage {
    name: &'static str,
    /// The answer is a line for the summary.
    run: fn(&Context, &Options) -> anyhow::Result<String>,
}

/// In the order in which they run: what fails soonest and explains most comes first.
const STAGES: &[Stage] = &[
    Stage { name: "tests", run: |context, _| tests(context) },
    Stage { name: "doc-tests", run: |context, _| doc_tests(context) },
    Stage { name: "cases", run: |context, _| judge::stage(context, Task::Cases, &[]) },
    Stage { name: "cases-cpu", run: |context, _| cases_on_cpu(context) },
    Stage {
        name: "random",
        run: |context, _| judge::stage(context, Task::RandomGraphs, &["--count", "300"]),
    },
    Stage { name: "onnx-nodes", run: |context, _| on_both(context, Task::OnnxNodes) },
    Stage { name: "parity", run: |context, _| judge::stage(context, Task::ParityOnnx, &[]) },
    Stage { name: "planner", run: |context, _| judge::stage(context, Task::Planner, &[]) },
    Stage { name: "docs", run: |context, _| judge::stage(context, Task::Docs, &["--check"]) },
    Stage { name: "fuzz", run: |context, options| fuzz_all(context, options.fuzz_seconds) },
];

/// Runs the stages, all of them even when one fails, and prints a summary.
pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let known: Vec<_> = STAGES.iter().map(|stage| stage.name).collect();
    if let Some(unknown) = options.stages.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no stage is called {unknown}; there are: {}", known.join(", "));
    }
    let mut summary = Vec::new();
    let mut failed = Vec::new();
    for stage in STAGES {
        if !options.stages.is_empty() && !options.stages.iter().any(|name| name == stage.name) {
            continue;
        }
        eprintln!("== {}", stage.name);
        let start = Instant::now();
        let result = (stage.run)(context, options);
        let time = seconds(start.elapsed());
        let line = match result {
            Ok(line) => format!("ok     {:<12} {time:>8}  {line}", stage.name),
            Err(error) => {
                failed.push(stage.name);
                format!("FAILED {:<12} {time:>8}  {error:#}", stage.name)
            }
        };
        eprintln!("{line}");
        summary.push(line);
    }
    eprintln!("== summary");
    for line in summary {
        eprintln!("{line}");
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Unit, integration and file tests: with nextest, or with cargo's own runner when nextest is not
/// installed. The answer is how many ran, in the runner's own words.
fn tests(context: &Context) -> anyhow::Result<String> {
    let mut command = process::cargo();
    command.current_dir(&context.repository);
    if process::succeeds(process::cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--cargo-profile", PROFILE]);
        let mut summary = String::new();
        process::run_watching(&mut command, |line| {
            if line.contains(" tests run: ") {
                summary = line.trim().to_owned();
            }
        })?;
        return Ok(summary);
    }
    eprintln!("cargo-nextest is not installed: using cargo test");
    command.args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]);
    command.args(["--profile", PROFILE]);
    let mut passed = 0;
    process::run_watching(&mut command, |line| passed += tests_passed(line).unwrap_or(0))?;
    Ok(format!("{passed} tests passed"))
}

/// The count in a line of cargo test's such as `test result: ok. 5 passed; 0 failed; …`.
fn tests_passed(line: &str) -> Option<u64> {
    let counts = line.strip_prefix("test result: ok. ")?;
    counts.split_once(" passed;")?.0.parse().ok()
}

/// The examples in the documentation, which nextest does not run.
fn doc_tests(context: &Context) -> anyhow::Result<String> {
    let mut command = process::cargo();
    command.current_dir(&context.repository);
    command.args(["test", "--workspace", "--doc", "--no-fail-fast", "--profile", PROFILE]);
    process::run(&mut command)?;
    Ok(String::new())
}

/// The case table on the CPU as it runs by default, and what fusion and threads may not change.
fn cases_on_cpu(context: &Context) -> anyhow::Result<String> {
    judge::stage(
        context,
        Task::Cases,
        &["--backend", "cpu", "--cost", "small", "--unfused", "--threads", "1"],
    )?;
    judge::stage(context, Task::Cases, &["--backend", "cpu", "--cost", "small", "--same-bits"])
}

/// The oracle's line and the CPU's.
fn on_both(context: &Context, task: Task) -> anyhow::Result<String> {
    let eval = judge::stage(context, task, &["--backend", "eval"])?;
    let cpu = judge::stage(context, task, &["--backend", "cpu"])?;
    Ok(format!("eval {eval}, cpu {cpu}"))
}

fn fuzz_all(context: &Context, seconds: u32) -> anyhow::Result<String> {
    let targets = fuzz::targets(context)?;
    for target in &targets {
        eprintln!("{}", fuzz::fuzz(context, target, seconds)?);
    }
    Ok(format!("{seconds} s each: {}", targets.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::tests_passed;

    #[test]
    fn passed_tests_are_counted_from_result_lines_only() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(tests_passed(line), Some(12));
        assert_eq!(tests_passed("test models::tests::damaged ... ok"), None);
    }
}
