//! Properties that hold for every graph, tried on random ones.

use rlx_ir::{DType, lower, structural_hash, text, verify};
use rlx_testkit::random_graph::{RandomGraph, Shape, random_graph};
use rlx_testkit::{Backend, Eval};

const SEEDS: u64 = 200;

fn graphs() -> impl Iterator<Item = (u64, RandomGraph)> {
    (0..SEEDS).map(|seed| {
        let float = [DType::F32, DType::F64, DType::F16, DType::BF16][seed as usize % 4];
        let shape = Shape { nodes: 5 + seed as usize % 40, float };
        (seed, random_graph(seed, shape).unwrap_or_else(|e| panic!("seed {seed}: {e}")))
    })
}

#[test]
fn graphs_verify_and_read_back_from_their_text() {
    for (seed, RandomGraph { graph, .. }) in graphs() {
        assert_eq!(verify(&graph), Ok(()), "seed {seed}");
        let printed = text::print(&graph);
        let read = text::parse(&printed).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{printed}"));
        assert_eq!(read, graph, "seed {seed}\n{printed}");
        assert_eq!(structural_hash(&read), structural_hash(&graph), "seed {seed}");
    }
}

#[test]
fn rebuilding_and_lowering_change_no_result() {
    for (seed, RandomGraph { graph, inputs }) in graphs() {
        let before =
            Eval.run(&graph, &inputs).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", text::print(&graph)));
        for keep in [true, false] {
            let rebuilt = lower(&graph, &|_| keep).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(verify(&rebuilt), Ok(()), "seed {seed}");
            assert_eq!(Eval.run(&rebuilt, &inputs), Ok(before.clone()), "seed {seed}");
        }
    }
}

#[test]
fn results_have_the_declared_types() {
    for (seed, RandomGraph { graph, inputs }) in graphs() {
        let outputs = Eval.run(&graph, &inputs).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for ((name, t), output) in graph.output_types().zip(&outputs) {
            assert_eq!((output.dtype(), output.dims().len()), (t.dtype, t.rank()), "seed {seed}, {name}");
        }
    }
}
