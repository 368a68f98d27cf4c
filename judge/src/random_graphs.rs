//! `cargo xtask random-graphs`: random graphs on the CPU, fused and not, against the oracle.

use anyhow::{Context as _, bail};
use clap::Args;
use rlx::ir::{DType, text};
use rlx_testkit::random_graph::{RandomGraph, Shape, random_graph};
use rlx_testkit::{Backend as _, Cpu, Eval, agreement};
use serde_json::json;

use crate::report;

/// The most differences that are printed with their graphs.
const SHOWN: usize = 5;

/// Options of `cargo xtask random-graphs`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many graphs
    #[arg(long, default_value_t = 300)]
    count: u64,

    /// The seed of the first; each next graph has the next seed
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Print `{"graphs","runs","different","failed"}` as the last line
    #[arg(long)]
    json: bool,
}

/// Runs each graph in every configuration; an error if one fails or differs from the oracle, or if the number of threads
/// changes a bit.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let backends = [Cpu::new(1, true)?, Cpu::new(2, true)?, Cpu::new(1, false)?];
    let (mut runs, mut different, mut failed) = (0u64, 0u64, 0u64);
    let show = |seed: u64, what: &str, graph: &rlx::ir::Graph, faults: u64| {
        eprintln!("seed {seed}: {what}");
        if faults <= SHOWN as u64 {
            eprintln!("{}", text::print(graph));
        }
    };
    for seed in options.seed..options.seed + options.count {
        let float = [DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16][seed as usize % 5];
        let shape = Shape { nodes: 5 + seed as usize % 37, float };
        let RandomGraph { graph, inputs } =
            random_graph(seed, shape).with_context(|| format!("making the graph of seed {seed}"))?;
        let expected = Eval.run(&graph, &inputs).with_context(|| format!("seed {seed} on the oracle"))?;
        let mut first = None;
        for backend in &backends {
            runs += 1;
            match backend.run(&graph, &inputs) {
                Err(error) => {
                    failed += 1;
                    show(seed, &format!("{}: {error}", backend.name()), &graph, different + failed);
                }
                Ok(found) => {
                    if let Err(difference) = agreement::agree(&found, &expected) {
                        different += 1;
                        show(seed, &format!("{}: {difference}", backend.name()), &graph, different + failed);
                    }
                    if first.get_or_insert_with(|| found.clone()) != &found
                        && backend.name() == backends[1].name()
                    {
                        different += 1;
                        show(seed, "one thread and two give other bits", &graph, different + failed);
                    }
                }
            }
        }
    }
    if options.json {
        let summary =
            json!({ "graphs": options.count, "runs": runs, "different": different, "failed": failed });
        report::print_json(&summary)?;
    }
    if different + failed > 0 {
        bail!("of {runs} runs of {} random graphs {different} differ and {failed} fail", options.count);
    }
    eprintln!("{runs} runs of {} random graphs agree with the oracle", options.count);
    Ok(())
}
