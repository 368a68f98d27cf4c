//! `cargo xtask planner`: the memory plans of the real models against the lower bound, which is the largest sum of what
//! is live at once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use rlx::ir::Bindings;
use rlx::{CompileOptions, Device, Executable, Session};
use serde_json::json;

use crate::engine::open;
use crate::parity::Calls;
use crate::references::{self, ModelCase};
use crate::report;

/// The most that the median of the ratios may be.
const MEDIAN: f64 = 1.05;

/// The most that any ratio may be.
const WORST: f64 = 1.10;

/// Options of `cargo xtask planner`.
#[derive(Args)]
pub(crate) struct Options {
    /// The list of models and inputs
    #[arg(long, value_name = "FILE", hide = true)]
    references: PathBuf,

    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    filter: String,

    /// The large models too
    #[arg(long)]
    all: bool,

    /// Print `{"median","worst","models":[{"name","peak","lower_bound","ratio","unknown"}]}` as the last line
    #[arg(long)]
    json: bool,
}

/// Compiles the models and plans their memory for the sizes of their cases; nothing runs.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let session = Session::new(Device::Cpu { threads: 1 })?;
    let mut compiled: BTreeMap<PathBuf, Executable> = BTreeMap::new();
    let (mut rows, mut ratios) = (Vec::new(), Vec::new());
    for case in references::read(&options.references)? {
        if !case.name.contains(&options.filter) || case.large && !options.all {
            continue;
        }
        if !compiled.contains_key(&case.model) {
            let executable = session.compile(&open(&case.model)?, &CompileOptions::default())?;
            compiled.insert(case.model.clone(), executable);
        }
        let memory = compiled[&case.model].plan_memory(&sizes(&case, &compiled[&case.model])?)?;
        // The arenas of all segments are kept together.
        let peak: usize = memory.segments.iter().map(|s| s.peak).sum();
        let lower_bound: usize = memory.segments.iter().map(|s| s.lower_bound).sum();
        let ratio = if lower_bound == 0 { 1.0 } else { peak as f64 / lower_bound as f64 };
        eprintln!("{ratio:.4}  {peak:>12} of {lower_bound:>12} bytes  {}", case.name);
        ratios.push(ratio);
        rows.push(json!({
            "name": case.name, "peak": peak, "lower_bound": lower_bound, "ratio": ratio, "unknown": memory.unknown,
        }));
    }
    ratios.sort_by(f64::total_cmp);
    let (Some(worst), Some(median)) = (ratios.last(), ratios.get(ratios.len() / 2)) else {
        bail!("no case is called {:?}", options.filter);
    };
    if options.json {
        report::print_json(&json!({ "median": median, "worst": worst, "models": rows }))?;
    }
    if *median > MEDIAN || *worst > WORST {
        bail!(
            "peak over lower bound: median {median:.3} (at most {MEDIAN}), worst {worst:.3} (at most {WORST})"
        );
    }
    eprintln!("{} plans: median {median:.3}, worst {worst:.3} of the lower bound", ratios.len());
    Ok(())
}

/// The values of the symbols in the types of the inputs.
fn sizes(case: &ModelCase, executable: &Executable) -> anyhow::Result<Bindings> {
    let ports = &executable.program().inputs;
    let names = ports.iter().map(|p| p.name.to_string()).collect();
    let inputs = Calls::new(case, names)?.next()?.context("a case has a call")?;
    let mut sizes = Bindings::new();
    for (port, (_, value)) in ports.iter().zip(&inputs) {
        for (dim, size) in port.ty.dims().iter().zip(value.dims()) {
            if let Some(symbol) = dim.as_symbol() {
                sizes.bind(symbol, *size as i64)?;
            }
        }
    }
    Ok(sizes)
}
