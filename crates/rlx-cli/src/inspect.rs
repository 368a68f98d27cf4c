//! `rlx inspect`: what a model takes, gives, and is made of.

use crate::open::ModelArguments;
use clap::Args;
use rlx::ir::verify::subgraphs;
use rlx::ir::{Graph, Op, Primitive};
use serde_json::{Map, json};
use std::collections::BTreeMap;

/// Options of `rlx inspect`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    model: ModelArguments,

    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
}

/// What stands in a graph and its subgraphs.
#[derive(Default)]
struct Contents {
    operations: BTreeMap<String, usize>,
    weights: BTreeMap<&'static str, (usize, usize)>,
}

impl Contents {
    fn add(&mut self, graph: &Graph) {
        for (_, node) in graph.nodes() {
            match &node.op {
                Op::Primitive(Primitive::Input(_)) => {}
                Op::Primitive(Primitive::Constant(constant)) => {
                    let (count, bytes) = self.weights.entry(constant.value.dtype().name()).or_default();
                    *count += 1;
                    *bytes += constant.value.bytes().len();
                }
                op => *self.operations.entry(op.name().to_string()).or_default() += 1,
            }
            subgraphs(&node.op).into_iter().for_each(|graph| self.add(graph));
        }
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let model = options.model.open()?;
    let graph = &model.graph;
    let mut contents = Contents::default();
    contents.add(graph);
    let weight_bytes: usize = contents.weights.values().map(|(_, bytes)| bytes).sum();
    let operations: usize = contents.operations.values().sum();
    if options.json {
        let interface = |values: Vec<(&str, String)>| {
            values.into_iter().map(|(name, t)| json!({ "name": name, "type": t })).collect::<Vec<_>>()
        };
        let weights: Map<_, _> = contents
            .weights
            .iter()
            .map(|(dtype, (count, bytes))| (dtype.to_string(), json!({ "count": count, "bytes": bytes })))
            .collect();
        println!(
            "{}",
            json!({
                "name": graph.name(),
                "producer": model.producer,
                "opsets": model.opsets,
                "metadata": model.metadata.iter().cloned().collect::<BTreeMap<_, _>>(),
                "inputs": interface(graph.input_types().map(|(n, t)| (n, t.to_string())).collect()),
                "outputs": interface(graph.output_types().map(|(n, t)| (n, t.to_string())).collect()),
                "symbols": graph.symbols().iter().map(|(s, _)| s.name()).collect::<Vec<_>>(),
                "operations": contents.operations,
                "weights": weights,
                "weight_bytes": weight_bytes,
            })
        );
        return Ok(());
    }
    println!("{} {}", graph.name(), model.producer);
    for (domain, version) in &model.opsets {
        println!("  operator set {domain} {version}");
    }
    for (key, value) in &model.metadata {
        println!("  {key}: {value}");
    }
    for (title, values) in [
        ("inputs", graph.input_types().collect::<Vec<_>>()),
        ("outputs", graph.output_types().collect::<Vec<_>>()),
    ] {
        println!("{title}");
        for (name, t) in values {
            println!("  {name}: {t}");
        }
    }
    println!("operations: {operations}");
    let mut by_count: Vec<_> = contents.operations.iter().collect();
    by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
    for (name, count) in by_count {
        println!("  {count:>6} {name}");
    }
    println!("weights: {weight_bytes} bytes");
    for (dtype, (count, bytes)) in &contents.weights {
        println!("  {count:>6} {dtype}, {bytes} bytes");
    }
    Ok(())
}
