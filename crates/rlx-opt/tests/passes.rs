//! What passes say of themselves, and how their time grows.

use rlx_cpu::Cpu;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::{Builder, DType, Dim, Graph, Literal, TensorType, TypeError, text};
use rlx_opt::pipeline::optimise;
use rlx_opt::{CompileOptions, PrecisionPolicy, precision, raise, simplify};
use std::time::{Duration, Instant};

fn graph(body: &str) -> Graph {
    let text =
        format!("rlx {}\ngraph \"g\"(%x: f32[b, 8]) {{\n{body}\n  return \"y\" = %y\n}}\n", text::VERSION);
    text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn raised(body: &str) -> Vec<String> {
    let mut notes = Vec::new();
    raise::raise(&graph(body), &mut notes).unwrap_or_else(|e| panic!("{e}"));
    notes
}

#[test]
fn raised_composites_are_counted() {
    let notes = raised("%s = sigmoid(%x)\n%a = mul(%x, %s)\n%t = sigmoid(%a)\n%y = mul(%a, %t)");
    assert_eq!(notes, ["swish × 2: raised"]);
}

#[test]
fn chain_that_nearly_fits_is_left_with_the_reason() {
    let notes = raised(
        "%e = exp(%x)\n%z = reduce_sum<axes=[1], keep_dims=true>(%e)\n%zb = broadcast<dims=[b, 8]>(%z)\n\
         %y = div(%e, %zb)",
    );
    let reason = "the greatest element is not subtracted first: it may overflow";
    assert_eq!(notes, [format!("softmax × 1: not raised: {reason}")]);
}

#[test]
fn raised_composite_keeps_the_locations_of_the_whole_chain() -> Result<(), TypeError> {
    let graph = graph("%s = sigmoid(%x) @[\"/act/Sigmoid\"]\n%y = mul(%x, %s) @[\"/act/Mul\"]");
    let raised = raise::raise(&graph, &mut Vec::new())?;
    let last = raised.nodes().last().map(|(_, node)| node.locations.iter().collect::<Vec<_>>());
    assert_eq!(last, Some(vec!["/act/Mul", "/act/Sigmoid"]));
    Ok(())
}

#[test]
fn weights_of_8_bits_with_a_scale_a_column_are_dequantised() -> Result<(), TypeError> {
    let mut b = Builder::new("g");
    let dims = [Dim::symbol("b"), Dim::from(128)];
    let x = b.input("x", TensorType::new(DType::F32, dims.as_slice()))?;
    let (rows, columns) = (128usize, 64usize);
    let weights: Vec<i8> = (0..rows * columns).map(|i| (i % 251) as u8 as i8).collect();
    let weights = Literal::from_slice([rows, columns], &weights).unwrap_or_else(|e| panic!("{e}"));
    let scales: Vec<f32> = (0..columns).map(|i| 0.01 + i as f32).collect();
    let scales = Literal::from_slice([1, columns], &scales).unwrap_or_else(|e| panic!("{e}"));
    let (weights, scales) = (b.constant(weights), b.constant(scales));
    let whole = b.cast(weights, DType::F32)?;
    let w = b.broadcasting(BinaryOp::Mul, whole, scales)?;
    let y = b.matmul(x, w)?;
    let graph = simplify::simplify(&b.finish([("y", y)])?, 4096)?;
    let mut notes = Vec::new();
    let raised = raise::raise(&graph, &mut notes)?;
    assert_eq!(notes, ["dequantize_linear × 1: raised"]);
    assert!(text::print(&raised).contains("dequantize_linear<axis=1, block_size=0, to=f32>"));
    Ok(())
}

#[test]
fn precision_reports_what_cannot_be_narrow() {
    let graph = graph("%y = add(%x, %x)");
    let mut notes = Vec::new();
    precision::apply(&graph, &PrecisionPolicy::F16, &mut notes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(notes, ["f16: 1 nodes"]);
    let policy = PrecisionPolicy::Mixed { to: DType::F16, allow: vec!["mul".into()], deny: Vec::new() };
    notes.clear();
    precision::apply(&graph, &policy, &mut notes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(notes, ["f16: 0 nodes", "add × 1: stays f32: the policy does not name it"]);
}

/// A chain with movement, constants, squares and sums, of about this many nodes.
fn long(nodes: usize) -> Result<Graph, TypeError> {
    let mut b = Builder::new("long");
    let dims = [Dim::symbol("b"), Dim::from(8)];
    let mut x = b.input("x", TensorType::new(DType::F32, dims.as_slice()))?;
    while b.graph().nodes().len() < nodes {
        let y = b.unary(UnaryOp::Tanh, x)?;
        let y = b.transpose(y, &[1, 0])?;
        let y = b.binary_scalar(BinaryOp::Pow, y, 2.0)?;
        let y = b.transpose(y, &[1, 0])?;
        let sum = b.sum(y, &[1], true)?;
        let y = b.broadcasting(BinaryOp::Sub, x, sum)?;
        let s = b.unary(UnaryOp::Sigmoid, y)?;
        x = b.mul(y, s)?;
    }
    b.finish([("y", x)])
}

/// The least time of three.
fn time(mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..3).map(once).min().unwrap_or_default()
}

#[test]
fn passes_are_linear_in_the_nodes() -> Result<(), TypeError> {
    let (small, large) = (long(1_250)?, long(5_000)?);
    let options = CompileOptions { verify: false, ..CompileOptions::default() };
    let simplify = |g: &Graph| time(|| drop(simplify::simplify(g, 4096)));
    let all = |g: &Graph| time(|| drop(optimise(g, &Cpu, &options)));
    // Four times the nodes: sixteen times the time would be quadratic, each time; the rest is for a busy machine, which is
    // tried again.
    assert!((0..5).any(|_| simplify(&large) < simplify(&small) * 9));
    assert!((0..5).any(|_| all(&large) < all(&small) * 9));
    Ok(())
}
