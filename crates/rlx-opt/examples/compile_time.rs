//! How long compiling takes, pass by pass: BERT encoders as PyTorch exports them, of several depths, without weights
//! (they are inputs), with symbolic batch and length.
//!
//! `cargo run --release -p rlx-opt --example compile_time [LAYERS …]`

use rlx_cpu::Cpu;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::softmax::{Softmax, SoftmaxOp};
use rlx_ir::{Builder, DType, Dim, Graph, TensorType, TypeError, Value};
use rlx_opt::{CompileOptions, compile};
use std::time::{Duration, Instant};

const HIDDEN: i64 = 768;
const HEADS: i64 = 12;
const INNER: i64 = 3072;
/// The median of this many compilations is printed.
const ROUNDS: usize = 5;

struct Encoder {
    b: Builder,
    layer: usize,
}

impl Encoder {
    fn weight(&mut self, name: &str, dims: &[i64]) -> Result<Value, TypeError> {
        let dims: Vec<Dim> = dims.iter().map(|d| Dim::from(*d)).collect();
        self.b.input(&format!("layer.{}.{name}", self.layer), TensorType::new(DType::F32, dims))
    }

    fn linear(&mut self, x: Value, name: &str, from: i64, to: i64) -> Result<Value, TypeError> {
        let w = self.weight(&format!("{name}.weight"), &[from, to])?;
        let bias = self.weight(&format!("{name}.bias"), &[to])?;
        let y = self.b.matmul(x, w)?;
        self.b.broadcasting(BinaryOp::Add, y, bias)
    }

    fn layer_norm(&mut self, x: Value, name: &str) -> Result<Value, TypeError> {
        let scale = self.weight(&format!("{name}.weight"), &[HIDDEN])?;
        let bias = self.weight(&format!("{name}.bias"), &[HIDDEN])?;
        let b = &mut self.b;
        let mean = b.mean(x, &[2], true)?;
        let centred = b.broadcasting(BinaryOp::Sub, x, mean)?;
        let square = b.binary_scalar(BinaryOp::Pow, centred, 2.0)?;
        let variance = b.mean(square, &[2], true)?;
        let shifted = b.add_scalar(variance, 1e-12)?;
        let deviation = b.unary(UnaryOp::Sqrt, shifted)?;
        let normal = b.broadcasting(BinaryOp::Div, centred, deviation)?;
        let scaled = b.broadcasting(BinaryOp::Mul, normal, scale)?;
        b.broadcasting(BinaryOp::Add, scaled, bias)
    }

    fn heads(&mut self, x: Value, perm: &[usize]) -> Result<Value, TypeError> {
        let dims = self.b.shape(x);
        let split = [dims[0].clone(), dims[1].clone(), HEADS.into(), (HIDDEN / HEADS).into()];
        let x = self.b.reshape(x, &split)?;
        self.b.transpose(x, perm)
    }

    fn block(&mut self, x: Value, mask: Value) -> Result<Value, TypeError> {
        let dims = self.b.shape(x);
        let q = self.linear(x, "query", HIDDEN, HIDDEN)?;
        let k = self.linear(x, "key", HIDDEN, HIDDEN)?;
        let v = self.linear(x, "value", HIDDEN, HIDDEN)?;
        let q = self.heads(q, &[0, 2, 1, 3])?;
        let k = self.heads(k, &[0, 2, 3, 1])?;
        let v = self.heads(v, &[0, 2, 1, 3])?;
        let scores = self.b.matmul(q, k)?;
        let scores = self.b.binary_scalar(BinaryOp::Div, scores, 8.0)?;
        let scores = self.b.broadcasting(BinaryOp::Add, scores, mask)?;
        let p = self.b.push1(Softmax { op: SoftmaxOp::Softmax, axis: (-1).into() }, &[scores])?;
        let y = self.b.matmul(p, v)?;
        let y = self.b.transpose(y, &[0, 2, 1, 3])?;
        let y = self.b.reshape(y, &dims)?;
        let y = self.linear(y, "output", HIDDEN, HIDDEN)?;
        let sum = self.b.add(y, x)?;
        let x = self.layer_norm(sum, "attention_norm")?;
        let inner = self.linear(x, "inner", HIDDEN, INNER)?;
        let scaled = self.b.binary_scalar(BinaryOp::Div, inner, std::f64::consts::SQRT_2)?;
        let erf = self.b.unary(UnaryOp::Erf, scaled)?;
        let shifted = self.b.add_scalar(erf, 1.0)?;
        let product = self.b.mul(inner, shifted)?;
        let gelu = self.b.mul_scalar(product, 0.5)?;
        let outer = self.linear(gelu, "outer", INNER, HIDDEN)?;
        let sum = self.b.add(outer, x)?;
        self.layer_norm(sum, "output_norm")
    }
}

fn bert(layers: usize) -> Result<Graph, TypeError> {
    let mut encoder = Encoder { b: Builder::new("bert"), layer: 0 };
    let (batch, length) = (Dim::symbol("batch"), Dim::symbol("length"));
    let dims = [batch.clone(), length.clone(), HIDDEN.into()];
    let mut x = encoder.b.input("embeddings", TensorType::new(DType::F32, dims.as_slice()))?;
    let dims = [batch, Dim::ONE, Dim::ONE, length];
    let mask = encoder.b.input("mask", TensorType::new(DType::F32, dims.as_slice()))?;
    for layer in 0..layers {
        encoder.layer = layer;
        x = encoder.block(x, mask)?;
    }
    encoder.b.finish([("hidden", x)])
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Result<Vec<usize>, _> = std::env::args().skip(1).map(|a| a.parse()).collect();
    let mut depths = given?;
    if depths.is_empty() {
        depths = vec![6, 12, 48, 192];
    }
    let options = CompileOptions { verify: false, ..CompileOptions::default() };
    for layers in depths {
        let graph = bert(layers)?;
        let mut totals = Vec::new();
        let mut passes: Vec<(&'static str, Vec<f64>)> = Vec::new();
        let mut steps = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let compiled = compile(&graph, &Cpu, &options)?;
            totals.push(milliseconds(start.elapsed()));
            steps = compiled.program.steps.len();
            for (i, pass) in compiled.report.passes.iter().enumerate() {
                if passes.len() <= i {
                    passes.push((pass.name, Vec::new()));
                }
                passes[i].1.push(milliseconds(pass.time));
            }
            if totals.len() == ROUNDS && layers == 1 {
                compiled.report.passes.iter().for_each(|p| println!("  {}: {:?}", p.name, p.notes));
            }
        }
        let nodes = graph.nodes().len();
        println!("{layers} layers, {nodes} nodes, {steps} steps: {:.2} ms", median(totals));
        for (name, times) in passes {
            println!("  {:>9.3} ms  {name}", median(times));
        }
    }
    Ok(())
}
