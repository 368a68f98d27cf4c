//! `rlx run`: the outputs of a model on given inputs.

use crate::input::InputArgument;
use crate::open::ModelArguments;
use crate::progress::Progress;
use crate::values::{Sources, parse_setting};
use anyhow::{Context, bail};
use clap::Args;
use rlx::eval::{EvalOptions, Oracle, Precision};
use rlx::io::literal::npy_from_literal;
use rlx::io::npy::write_npy;
use rlx::ir::{Bindings, DType, Graph, Literal, Symbol};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options of `rlx run`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    /// An input's value: NAME=file.npy|npz|wav|png|json, NAME=random[:2,N,8], or NAME=[[1, 2]]
    #[arg(long, value_name = "NAME=SOURCE")]
    input: Vec<InputArgument>,

    /// The value of a symbolic size, for random inputs
    #[arg(long, value_name = "SYMBOL=N", value_parser = parse_setting)]
    set: Vec<(Symbol, i64)>,

    /// Write each output to DIR/NAME.npy
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// The seed of random inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Compute every float in f64
    #[arg(long)]
    wide: bool,

    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let opening = Instant::now();
    let model = options.model.open()?;
    let opened = opening.elapsed();
    let mut bindings = Bindings::new();
    for (symbol, value) in &options.set {
        bindings.set(symbol.clone(), *value);
    }
    let inputs = gather(&model.graph, options, &bindings)?;
    let precision = if options.wide { Precision::Wide } else { Precision::Declared };
    let oracle = Oracle::new(&model.graph, EvalOptions { precision, ..EvalOptions::default() })?;
    let progress = Progress::new("computing", options.json);
    let running = Instant::now();
    let results = oracle.run_watched(&inputs, &|done, all| progress.set(done, all));
    progress.finish();
    let (results, took) = (results?, running.elapsed());
    let mut rows = Vec::new();
    for (output, literal) in model.graph.outputs().iter().zip(&results) {
        let file = match &options.output {
            Some(folder) => Some(write(folder, &output.name, literal)?),
            None => None,
        };
        let summary = Summary::of(literal)?;
        if !options.json {
            let place = file.as_ref().map(|f| format!(" -> {}", f.display())).unwrap_or_default();
            println!("{}: {} {}{place}", output.name, literal.tensor_type(), summary.text());
        }
        rows.push(json!({
            "name": &*output.name,
            "dtype": literal.dtype().name(),
            "shape": literal.dims(),
            "min": summary.least,
            "max": summary.greatest,
            "mean": summary.mean,
            "file": file.map(|f| f.display().to_string()),
        }));
    }
    if options.json {
        let (open_s, run_s) = (opened.as_secs_f64(), took.as_secs_f64());
        println!("{}", json!({ "outputs": rows, "open_seconds": open_s, "run_seconds": run_s }));
    } else {
        eprintln!("opened in {:.2} s, computed in {:.2} s", opened.as_secs_f64(), took.as_secs_f64());
    }
    Ok(())
}

/// The inputs in the graph's order. A name that the model lacks, or an input without a value, is an error.
fn gather(graph: &Graph, options: &Options, bindings: &Bindings) -> anyhow::Result<Vec<Literal>> {
    let declared: Vec<String> = graph.input_types().map(|(name, t)| format!("{name} ({t})")).collect();
    for (i, argument) in options.input.iter().enumerate() {
        if !graph.input_types().any(|(name, _)| name == argument.name) {
            bail!("there is no input {:?}; the inputs are {}", argument.name, declared.join(", "));
        }
        if options.input[..i].iter().any(|other| other.name == argument.name) {
            bail!("input {:?} is given twice", argument.name);
        }
    }
    let sources = Sources { bindings, seed: options.seed };
    graph
        .input_types()
        .map(|(name, t)| {
            let Some(argument) = options.input.iter().find(|a| a.name == name) else {
                bail!("input {name:?} ({t}) is not set; give it with --input {name}=…");
            };
            sources.literal(name, &argument.source, t)
        })
        .collect()
}

/// Writes an output. A slash in its name would be a folder.
fn write(folder: &Path, name: &str, literal: &Literal) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let safe: String =
        name.chars().map(|c| if c == '/' || c == '\\' || c.is_control() { '_' } else { c }).collect();
    let path = folder.join(format!("{safe}.npy"));
    let array = npy_from_literal(literal)
        .with_context(|| format!("output {name:?}: npy files cannot hold {}", literal.tensor_type()))?;
    let mut file = BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
    write_npy(&array, &mut file)?;
    file.flush().with_context(|| path.display().to_string())?;
    Ok(path)
}

/// What a person wants to see of an output first.
struct Summary {
    least: Option<f64>,
    greatest: Option<f64>,
    mean: Option<f64>,
    first: Vec<f64>,
    not_finite: usize,
}

impl Summary {
    fn of(literal: &Literal) -> anyhow::Result<Summary> {
        let mut numbers = Vec::new();
        if !literal.dtype().is_complex() {
            let mut b = rlx::ir::Builder::verbatim("summary");
            let x = b.constant(literal.clone());
            let y = b.cast(x, DType::F64)?;
            let wide = rlx::eval::evaluate(&b.finish([("y", y)])?, &[])?;
            numbers = wide.first().and_then(|l| l.to_vec::<f64>()).unwrap_or_default();
        }
        let finite: Vec<f64> = numbers.iter().copied().filter(|x| x.is_finite()).collect();
        let mean = (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64);
        Ok(Summary {
            least: finite.iter().copied().reduce(f64::min),
            greatest: finite.iter().copied().reduce(f64::max),
            mean,
            not_finite: numbers.len() - finite.len(),
            first: numbers.into_iter().take(6).collect(),
        })
    }

    fn text(&self) -> String {
        let (Some(least), Some(greatest), Some(mean)) = (self.least, self.greatest, self.mean) else {
            return String::new();
        };
        let first: Vec<String> = self.first.iter().map(|x| format!("{x:.6}")).collect();
        let odd =
            if self.not_finite > 0 { format!(", {} not finite", self.not_finite) } else { String::new() };
        format!("[{}, …] min {least:.6}, max {greatest:.6}, mean {mean:.6}{odd}", first.join(", "))
    }
}
