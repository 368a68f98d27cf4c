//! `cargo xtask cases`: the case table on a backend.

use anyhow::bail;
use clap::{Args, ValueEnum};
use rlx_testkit::{Backend, Cost, Cpu, Eval, run_table};

use crate::backend::BackendName;
use crate::report;

/// How many cases run side by side.
const THREADS: usize = 2;

/// Options of `cargo xtask cases`.
#[derive(Args)]
pub(crate) struct Options {
    /// The backend
    #[arg(long, default_value = "eval")]
    backend: BackendName,

    /// Threads of the CPU backend
    #[arg(long, default_value_t = 2)]
    threads: usize,

    /// Without fusion
    #[arg(long)]
    unfused: bool,

    /// On the CPU, every result must have the bits that one thread gives
    #[arg(long)]
    same_bits: bool,

    /// Run only cases whose title, `operation/case`, contains this
    #[arg(long, default_value = "")]
    filter: String,

    /// Run costly cases as well
    #[arg(long, default_value = "medium")]
    cost: MostCost,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// The greatest cost of the cases that run; costlier ones give way to their small twins.
#[derive(Clone, Copy, ValueEnum)]
enum MostCost {
    /// Milliseconds
    Small,
    /// About a second
    Medium,
    /// Seconds and gigabytes
    Expensive,
}

/// Runs the table; an error if a case fails, or if an operation has no case and no filter is set.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let summary = run_backend(options)?;
    eprintln!("{summary}");
    Ok(())
}

fn run_backend(options: &Options) -> anyhow::Result<String> {
    let cpu;
    let backend: &dyn Backend = match options.backend {
        BackendName::Eval => &Eval,
        BackendName::Cpu => {
            let plain = Cpu::new(options.threads, !options.unfused)?;
            cpu = if options.same_bits { plain.with_the_bits_of_one_thread()? } else { plain };
            &cpu
        }
    };
    let cost = match options.cost {
        MostCost::Small => Cost::Small,
        MostCost::Medium => Cost::Medium,
        MostCost::Expensive => Cost::Expensive,
    };
    let report = run_table(backend, &options.filter, cost, THREADS);
    for (title, time) in &report.slowest {
        eprintln!("{:8.2} s {title}", time.as_secs_f64());
    }
    for (title, reason) in &report.failed {
        eprintln!("FAILED {title}\n    {}", reason.replace('\n', "\n    "));
    }
    if options.json {
        report::print_json(&report.to_json())?;
    }
    if !report.failed.is_empty() {
        bail!("{} of {} cases failed on {}", report.failed.len(), report.cases, report.backend);
    }
    if options.filter.is_empty() && !report.uncovered.is_empty() {
        bail!("operations without cases: {}", report.uncovered.join(", "));
    }
    Ok(format!(
        "{} cases on {}, {} left out by cost; {} of {} operations",
        report.cases, report.backend, report.left_out, report.ops_covered, report.ops_total
    ))
}
