//! The small models that the runtime's tests run.
#![allow(dead_code, reason = "each test binary uses some of them")]

use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::{Builder, DType, Dim, Graph, Literal, TensorType, TypeError, Value, text};
use rlx_runtime::{CompileOptions, Device, Executable, Session, Tensor};

/// A session on the CPU.
pub(crate) fn session(threads: usize) -> Session {
    Session::new(Device::Cpu { threads }).expect("the system gives threads")
}

/// `graph` in a session of its own.
pub(crate) fn compiled(threads: usize, graph: &Graph) -> Executable {
    session(threads).compile(graph, &CompileOptions::default()).expect("it compiles")
}

/// The graph of this text, without its first line.
pub(crate) fn parsed(body: &str) -> Graph {
    text::parse(&format!("rlx 1 graph \"g\"{body}")).expect("the graph parses")
}

/// A tensor whose elements vary with `seed`, between −1 and 1.
pub(crate) fn floats(dims: &[usize], seed: f32) -> Tensor {
    let count: usize = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37 + seed).sin()).collect();
    Tensor::from_slice(dims, &values).expect("as many elements as the sizes say")
}

/// A constant of the same elements.
pub(crate) fn weight(b: &mut Builder, dims: &[usize], seed: f32) -> Value {
    b.constant(floats(dims, seed).to_literal())
}

/// x · w + bias.
pub(crate) fn linear(b: &mut Builder, x: Value, dims: [usize; 2], seed: f32) -> Result<Value, TypeError> {
    let w = weight(b, &dims, seed);
    let bias = weight(b, &dims[1..], seed + 1.0);
    let y = b.matmul(x, w)?;
    b.broadcasting(BinaryOp::Add, y, bias)
}

/// A perceptron of these widths with max(x, 0) between its layers, on x: f32[n, widths[0]].
pub(crate) fn perceptron(widths: &[usize]) -> Graph {
    let build = || {
        let mut b = Builder::new("perceptron");
        let x = b.input("x", TensorType::new(DType::F32, vec![Dim::symbol("n"), widths[0].into()]))?;
        let mut y = linear(&mut b, x, [widths[0], widths[1]], 0.0)?;
        for (i, pair) in widths.windows(2).enumerate().skip(1) {
            y = b.binary_scalar(BinaryOp::Max, y, 0.0)?;
            y = linear(&mut b, y, [pair[0], pair[1]], i as f32)?;
        }
        b.finish([("y", y)])
    };
    build().expect("the types fit")
}

/// f32[n, 8] to f32[n, 4].
pub(crate) fn mlp() -> Graph {
    perceptron(&[8, 16, 4])
}

/// `steps` functions of x: f32[n], one after the other.
pub(crate) fn chain(steps: usize) -> Graph {
    let build = || {
        let mut b = Builder::new("chain");
        let mut y = b.input("x", TensorType::new(DType::F32, vec![Dim::symbol("n")]))?;
        for _ in 0..steps {
            y = b.unary(UnaryOp::Sin, y)?;
        }
        b.finish([("y", y)])
    };
    build().expect("the types fit")
}

/// A literal whose bytes begin at an odd address.
pub(crate) fn unaligned(dims: &[usize], seed: f32) -> Literal {
    let aligned = floats(dims, seed);
    let mut bytes = vec![0u8; aligned.bytes().len() + 2];
    let start = 1 + bytes.as_ptr().addr() % 2;
    bytes[start..start + aligned.bytes().len()].copy_from_slice(aligned.bytes());
    let bytes = bytes::Bytes::from(bytes).slice(start..start + aligned.bytes().len());
    assert!(!bytes.as_ptr().addr().is_multiple_of(2));
    Literal::new(DType::F32, dims, bytes).expect("as many bytes as the sizes say")
}
