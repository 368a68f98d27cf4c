//! What is done with a graph takes time linear in its nodes: a chain, where each node needs the one before, and a wide
//! graph, whose nodes meet in one operation.

use rlx_ir::op::activation::{Activation, ActivationOp};
use rlx_ir::op::elementwise::UnaryOp;
use rlx_ir::{Builder, DType, Dim, Graph, TensorType, Value, lower, structural_hash, text, verify};
use rlx_testkit::{Backend, Eval, f32s};
use std::time::{Duration, Instant};

/// The nodes of the large graph, and how many times fewer the small one has.
const NODES: usize = 5_000;
const TIMES: usize = 8;

/// How much worse than linear the ratio of times may be: eight times the nodes take at most 24 times as long, where a
/// quadratic step takes 64 times. Wide enough for a machine that does other things meanwhile.
const SLACK: f64 = 3.0;

/// The best of so many runs counts, so that an interruption does not.
const RUNS: usize = 3;

/// How often a step must be too slow to count as such.
const ATTEMPTS: usize = 5;

type Make = fn(usize) -> Graph;

/// A node that differs from its neighbours, every second one a composite.
fn node(b: &mut Builder, i: usize, x: Value) -> Value {
    let made = match i % 2 {
        0 => b.unary(UnaryOp::Sin, x),
        _ => b.push1(Activation { op: ActivationOp::Softsign }, &[x]),
    };
    made.expect("a float of any size")
}

fn input(b: &mut Builder) -> Value {
    let t = TensorType::new(DType::F32, vec![Dim::symbol("n")]);
    b.input("x", t).expect("the only input")
}

/// f₁(f₂(f₁(…x)))
fn chain(nodes: usize) -> Graph {
    let mut b = Builder::new("chain");
    let x = input(&mut b);
    let y = (0..nodes).fold(x, |x, i| node(&mut b, i, x));
    b.finish([("y", y)]).expect("one output")
}

/// Many nodes of one input that are joined by one concat.
fn wide(nodes: usize) -> Graph {
    let mut b = Builder::new("wide");
    let x = input(&mut b);
    let parts: Vec<Value> = (0..nodes / 2)
        .map(|i| {
            // Equal nodes merge: each has a number of its own.
            let own = b.add_scalar(x, i as f64).expect("a float");
            node(&mut b, i, own)
        })
        .collect();
    let y = b.concat(&parts, 0).expect("equal types");
    b.finish([("y", y)]).expect("one output")
}

/// The least time of some runs.
fn best(mut work: impl FnMut()) -> Duration {
    let timed = (0..RUNS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

/// Each step on the graph, with its best time.
fn steps(make: Make, nodes: usize) -> Vec<(&'static str, Duration)> {
    let graph = make(nodes);
    assert!(graph.nodes().count() >= nodes, "{} of {nodes} nodes are left", graph.nodes().count());
    let printed = text::print(&graph);
    let x = f32s([2], [0.5, -1.0]);
    vec![
        ("build", best(|| drop(make(nodes)))),
        ("verify", best(|| assert_eq!(verify(&graph), Ok(())))),
        ("hash", best(|| assert_eq!(structural_hash(&graph), structural_hash(&graph)))),
        ("print", best(|| assert_eq!(text::print(&graph).len(), printed.len()))),
        ("parse", best(|| assert_eq!(text::parse(&printed).as_ref(), Ok(&graph)))),
        ("lower", best(|| assert!(lower(&graph, &|_| false).is_ok_and(|lowered| lowered != graph)))),
        ("run", best(|| assert!(Eval.run(&graph, std::slice::from_ref(&x)).is_ok()))),
    ]
}

/// The steps whose time grows faster than the nodes, with both times.
fn too_slow(make: Make) -> Vec<String> {
    let (small, large) = (steps(make, NODES / TIMES), steps(make, NODES));
    let pairs = small.into_iter().zip(large);
    let slow =
        pairs.filter(|((_, few), (_, many))| many.as_secs_f64() / few.as_secs_f64() > SLACK * TIMES as f64);
    slow.map(|((step, few), (_, many))| format!("{step}: {few:?}, {many:?} for {TIMES} times the nodes"))
        .collect()
}

fn time_is_linear(make: Make) {
    // A step that is worse than linear is so each time; what else the machine does is not.
    let mut slow = too_slow(make);
    for _ in 1..ATTEMPTS {
        if slow.is_empty() {
            return;
        }
        let again = too_slow(make);
        slow.retain(|step| again.iter().any(|s| s.split(':').next() == step.split(':').next()));
    }
    assert!(slow.is_empty(), "{slow:?}");
}

#[test]
fn chain_of_5000_nodes_takes_linear_time() {
    time_is_linear(chain);
}

#[test]
fn wide_graph_of_5000_nodes_takes_linear_time() {
    time_is_linear(wide);
}
