//! `rlx verify`: a model on the CPU against the oracle, and where they part.

mod case;
mod compare;
mod locate;

use crate::execution::{self, CompileArguments};
use crate::inputs::{InputArguments, Missing};
use crate::open::ModelArguments;
use crate::progress::Progress;
use anyhow::bail;
use clap::Args;
use compare::{Difference, Tolerance, compare};
use locate::{Fault, Found, Locator};
use rlx::RunOptions;
use rlx::eval::{EvalOptions, Oracle};
use rlx::ir::{Graph, Literal};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `rlx verify`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    #[command(flatten)]
    inputs: InputArguments,

    #[command(flatten)]
    compile: CompileArguments,

    /// The error allowed, relative to the greatest magnitude in a value; integers and bools must be equal
    #[arg(long, value_name = "PART", default_value_t = 1e-4)]
    tolerance: f64,

    /// Where a case that shows the difference is written: FILE.rlx, and its inputs as FILE.npz
    #[arg(long, value_name = "FILE.rlx", default_value = "difference.rlx")]
    case: PathBuf,

    /// Print one JSON object as the last line: {"equal", "outputs": [{"name", "max_error", "allowed", "equal"}],
    /// "difference": {"at", "op", "locations", "max_error", "index", "found", "expected", "case"}}
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let tolerance = Tolerance(options.tolerance);
    let model = options.model.open()?;
    let inputs = options.inputs.gather(&model.graph, Missing::Random)?;
    let session = options.compile.session()?;
    let compile_options = options.compile.options();
    let executable = model.compile(&session, &compile_options)?;
    let (got, _) = execution::run(&executable, &inputs, &RunOptions::default())?;
    let progress = Progress::new("the oracle", options.json);
    let oracle = Oracle::new(&model.graph, EvalOptions::default())?;
    let want = oracle.run_watched(&inputs, &|done, all| progress.set(done, all));
    progress.finish();
    let want = want?;
    let mut rows = Vec::new();
    let mut equal = true;
    for ((output, got), want) in model.graph.outputs().iter().zip(&got).zip(&want) {
        let difference = compare(got, want, tolerance)?;
        equal &= difference.is_within();
        if !options.json {
            println!("{}: {difference}", output.name);
        }
        rows.push(json!({
            "name": &*output.name,
            "max_error": difference.error,
            "allowed": difference.allowed,
            "equal": difference.is_within(),
        }));
    }
    if equal {
        if options.json {
            println!("{}", json!({ "equal": true, "outputs": rows, "difference": null }));
        }
        return Ok(());
    }
    let on_cpu = |graph: &Graph, inputs: &[Literal]| {
        let executable = session.compile(graph, &compile_options)?;
        Ok(execution::run(&executable, inputs, &RunOptions::default())?.0)
    };
    let locator = Locator { on_cpu: &on_cpu, tolerance };
    let found = locator.locate(&model.graph, executable.graph(), &inputs)?;
    case::save(&options.case, &found.graph, &found.inputs)?;
    if options.json {
        let difference = to_json(&found, &options.case);
        println!("{}", json!({ "equal": false, "outputs": rows, "difference": difference }));
    } else {
        describe(&found, &options.case);
    }
    bail!("the CPU and the oracle differ")
}

fn to_json(found: &Found, case: &std::path::Path) -> Value {
    let worst = found.difference.worst.as_ref();
    json!({
        "at": found.fault.name(),
        "op": found.op,
        "locations": found.locations,
        "max_error": found.difference.error,
        "index": worst.map(|w| &w.index),
        "found": worst.map(|w| w.got),
        "expected": worst.map(|w| w.want),
        "case": case.display().to_string(),
    })
}

fn describe(found: &Found, case: &std::path::Path) {
    let at = match found.locations.as_slice() {
        [] => String::new(),
        names => format!(" (node {})", names.join(", ")),
    };
    match found.fault {
        Fault::Step => println!("first difference: {}{at}, by itself on the oracle's operands", found.op),
        Fault::Pass => println!(
            "first difference: {}{at}; every operation is right by itself, but the compiled graph means something else: \
             a pass is at fault",
            found.op
        ),
        Fault::Program => println!(
            "first difference: {}{at}; every operation is right by itself: the error grows on the way, or memory is \
             laid out wrong",
            found.op
        ),
    }
    println!("  {}: {}", found.value_type, found.difference);
    println!("case: {} with {}", case.display(), case::inputs_path(case).display());
    println!("again: rlx verify {} {}", case.display(), case::input_options(case, &found.graph));
}

impl Difference {
    fn is_within(&self) -> bool {
        self.wrong == 0
    }
}
