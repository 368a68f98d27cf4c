//! A row of a batch has the bits that it has alone: an element's tree of sums depends on neither the batch nor the
//! threads.

use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::reduce::{Cumulative, CumulativeOp, ReduceOp, Sort};
use rlx_ir::{Builder, DType, Dim, Graph, Literal, TensorType, TypeError, Value};
use rlx_testkit::{Backend, Cpu, Domain, Random};

const BATCH: usize = 7;

/// A graph from x: f32[n, …] to y: [n, …] in which rows do not meet.
fn graph(row: &[usize], build: impl FnOnce(&mut Builder, Value) -> Result<Value, TypeError>) -> Graph {
    let made = || {
        let mut b = Builder::new("rows");
        let dims: Vec<Dim> =
            std::iter::once(Dim::symbol("n")).chain(row.iter().map(|d| (*d).into())).collect();
        let x = b.input("x", TensorType::new(DType::F32, dims))?;
        let y = build(&mut b, x)?;
        b.finish([("y", y)])
    };
    made().expect("the types fit")
}

fn constant(b: &mut Builder, dims: &[usize], seed: u64) -> Value {
    b.constant(Random::new(seed).literal(DType::F32, dims, &Domain::Normal))
}

/// x · w + bias over the last axis.
fn linear(b: &mut Builder, x: Value, inner: usize, outer: usize) -> Result<Value, TypeError> {
    let w = constant(b, &[inner, outer], 1);
    let bias = constant(b, &[outer], 2);
    let y = b.matmul(x, w)?;
    b.broadcasting(BinaryOp::Add, y, bias)
}

fn softmax(b: &mut Builder, x: Value, axis: usize) -> Result<Value, TypeError> {
    let most = b.reduce(ReduceOp::Max, x, &[axis], true)?;
    let shifted = b.broadcasting(BinaryOp::Sub, x, most)?;
    let powers = b.unary(UnaryOp::Exp, shifted)?;
    let sum = b.sum(powers, &[axis], true)?;
    b.broadcasting(BinaryOp::Div, powers, sum)
}

fn normalised(b: &mut Builder, x: Value, axis: usize) -> Result<Value, TypeError> {
    let mean = b.mean(x, &[axis], true)?;
    let centred = b.broadcasting(BinaryOp::Sub, x, mean)?;
    let squares = b.mul(centred, centred)?;
    let variance = b.mean(squares, &[axis], true)?;
    let above = b.add_scalar(variance, 1e-5)?;
    let deviation = b.unary(UnaryOp::Sqrt, above)?;
    b.broadcasting(BinaryOp::Div, centred, deviation)
}

/// softmax(x · xᵀ) · x, as attention over the second axis.
fn attention(b: &mut Builder, x: Value) -> Result<Value, TypeError> {
    let keys = b.matrix_transpose(x)?;
    let scores = b.matmul(x, keys)?;
    let weights = softmax(b, scores, 2)?;
    b.matmul(weights, x)
}

fn graphs() -> Vec<(&'static str, Vec<usize>, Graph)> {
    let make = |name, row: &[usize], graph| (name, row.to_vec(), graph);
    vec![
        make("linear", &[300], graph(&[300], |b, x| linear(b, x, 300, 33))),
        make(
            "perceptron",
            &[65],
            graph(&[65], |b, x| {
                let h = linear(b, x, 65, 130)?;
                let h = b.binary_scalar(BinaryOp::Max, h, 0.0)?;
                linear(b, h, 130, 10)
            }),
        ),
        make("sum", &[1000], graph(&[1000], |b, x| b.sum(x, &[1], false))),
        make("mean of two axes", &[13, 77], graph(&[13, 77], |b, x| b.mean(x, &[1, 2], false))),
        make("mean of an outer axis", &[130, 5], graph(&[130, 5], |b, x| b.mean(x, &[1], false))),
        make("softmax", &[129], graph(&[129], |b, x| softmax(b, x, 1))),
        make("softmax of an outer axis", &[129, 3], graph(&[129, 3], |b, x| softmax(b, x, 1))),
        make("norm", &[257], graph(&[257], |b, x| normalised(b, x, 1))),
        make("attention", &[37, 24], graph(&[37, 24], attention)),
        make(
            "running sum",
            &[100],
            graph(&[100], |b, x| {
                b.push1(Cumulative { op: CumulativeOp::Sum, axis: 1, exclusive: false, reverse: false }, &[x])
            }),
        ),
        make("sort", &[50], graph(&[50], |b, x| b.push1(Sort { axis: 1, descending: true }, &[x]))),
        make(
            "transpose and exp",
            &[6, 11],
            graph(&[6, 11], |b, x| {
                let t = b.transpose(x, &[0, 2, 1])?;
                b.unary(UnaryOp::Exp, t)
            }),
        ),
    ]
}

#[test]
fn row_of_a_batch_has_the_bits_that_it_has_alone() {
    for threads in [1, 2] {
        for fuse in [true, false] {
            let cpu = Cpu::new(threads, fuse).expect("the system gives threads");
            for (name, row, graph) in graphs() {
                let dims: Vec<usize> = std::iter::once(BATCH).chain(row).collect();
                let x = Random::new(7).literal(DType::F32, &dims, &Domain::Normal);
                let run = |x: &Literal| {
                    let outputs = cpu.run(&graph, std::slice::from_ref(x));
                    outputs.unwrap_or_else(|e| panic!("{name}: {e}")).remove(0)
                };
                let whole = run(&x);
                let bytes = x.bytes().len() / BATCH;
                let rows = whole.bytes().chunks(whole.bytes().len() / BATCH);
                for (i, expected) in rows.enumerate() {
                    let mut dims = dims.clone();
                    dims[0] = 1;
                    let alone = x.bytes().slice(i * bytes..(i + 1) * bytes);
                    let found = run(&Literal::new(DType::F32, dims, alone).expect("a row"));
                    assert!(
                        found.bytes()[..] == *expected,
                        "{name}, row {i}, threads {threads}, fuse {fuse}"
                    );
                }
            }
        }
    }
}
