//! How fast products, convolutions and windows run, in GFLOP/s, for the sizes of real models.
//!
//! ```sh
//! cargo run --release -p rlx-cpu --example contraction_speed -- [THREADS] [FILTER]
//! ```

use rlx_cpu::{Cpu, Input, Instance, Loaded, Outputs, Pool, RunControl, RunError, WeightStore};
use rlx_ir::op::contract::{Conv, Dot, IntegerDot};
use rlx_ir::op::window::{ReduceWindow, WindowOp};
use rlx_ir::{Builder, DType, Dim, Literal, TensorType, Value};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Adds a case's operation to its inputs.
type Build = Box<dyn Fn(&mut Builder, &[Value]) -> Result<Value, rlx_ir::TypeError>>;

/// One graph of one operation on inputs and weights.
struct Case {
    name: String,
    flops: f64,
    inputs: Vec<TensorType>,
    build: Build,
}

/// Numbers of either sign that repeat after a prime number of elements.
fn filled(t: &TensorType) -> Literal {
    let dims: Vec<usize> = t.dims().iter().filter_map(Dim::as_size).collect();
    let count: usize = dims.iter().product();
    let numbers = (0..count).map(|i| (i % 251) as i64 - 125);
    let literal = match t.dtype {
        DType::F32 => Literal::from_slice(dims, &numbers.map(|x| x as f32 / 64.0).collect::<Vec<_>>()),
        DType::F64 => Literal::from_slice(dims, &numbers.map(|x| x as f64 / 64.0).collect::<Vec<_>>()),
        DType::I8 => Literal::from_slice(dims, &numbers.map(|x| x as i8).collect::<Vec<_>>()),
        DType::I32 => Literal::from_slice(dims, &numbers.map(|x| x as i32).collect::<Vec<_>>()),
        _ => Literal::from_slice(dims, &numbers.map(|x| x as u8).collect::<Vec<_>>()),
    };
    literal.unwrap_or_else(|e| panic!("{t}: {e}"))
}

fn tensor(dtype: DType, dims: &[usize]) -> TensorType {
    TensorType::new(dtype, dims)
}

/// x `[m, k]` · a weight `[k, n]`.
fn dense(dtype: DType, m: usize, k: usize, n: usize) -> Case {
    Case {
        name: format!("dot {dtype} {m}x{k}x{n}"),
        flops: 2.0 * (m * k * n) as f64,
        inputs: vec![tensor(dtype, &[m, k])],
        build: Box::new(move |b, v| {
            let w = b.constant(filled(&tensor(dtype, &[k, n])));
            b.push1(Dot::matmul(2), &[v[0], w])
        }),
    }
}

/// x u8 `[m, k]` · a weight i8 `[k, n]`.
fn bytes(m: usize, k: usize, n: usize) -> Case {
    Case {
        name: format!("integer_dot {m}x{k}x{n}"),
        flops: 2.0 * (m * k * n) as f64,
        inputs: vec![tensor(DType::U8, &[m, k])],
        build: Box::new(move |b, v| {
            let w = b.constant(filled(&tensor(DType::I8, &[k, n])));
            let dot = IntegerDot {
                lhs_batch: vec![],
                rhs_batch: vec![],
                lhs_contract: vec![1],
                rhs_contract: vec![0],
            };
            b.push1(dot, &[v[0], w])
        }),
    }
}

/// Heads of attention: q · kᵀ, or scores · v.
fn heads(heads: usize, m: usize, k: usize, n: usize, transposed: bool) -> Case {
    let right = if transposed { [heads, n, k] } else { [heads, k, n] };
    Case {
        name: format!("heads {heads}x{m}x{k}x{n}{}", if transposed { " transposed" } else { "" }),
        flops: 2.0 * (heads * m * k * n) as f64,
        inputs: vec![tensor(DType::F32, &[heads, m, k]), tensor(DType::F32, &right)],
        build: Box::new(move |b, v| {
            let mut dot = Dot::matmul(3);
            if transposed {
                dot.rhs_contract = vec![2];
            }
            b.push1(dot, v)
        }),
    }
}

/// An image `[1, c, size, size]` convolved by `[o, c / groups, k, k]` with padding that keeps its size at stride 1.
fn conv(dtype: DType, (c, o): (usize, usize), size: usize, k: usize, stride: i64, groups: usize) -> Case {
    let out = (size + 2 * (k / 2) - k) / stride as usize + 1;
    Case {
        name: format!("conv {dtype} {k}x{k} {c}->{o} at {size} stride {stride} groups {groups}"),
        flops: 2.0 * (out * out * o * c / groups * k * k) as f64,
        inputs: vec![tensor(dtype, &[1, c, size, size])],
        build: Box::new(move |b, v| {
            let w = b.constant(filled(&tensor(dtype, &[o, c / groups, k, k])));
            let pad = (Dim::from(k / 2), Dim::from(k / 2));
            let conv = Conv {
                strides: vec![stride; 2],
                padding: vec![pad; 2],
                lhs_dilation: vec![1; 2],
                rhs_dilation: vec![1; 2],
                groups,
                accum: None,
                out: None,
            };
            b.push1(conv, &[v[0], w])
        }),
    }
}

/// Windows of 3 × 3 at stride 2; an element of a window counts as one operation.
fn pool(op: WindowOp, c: usize, size: usize) -> Case {
    let out = (size + 2 - 3) / 2 + 1;
    Case {
        name: format!("{op:?} of 3x3 windows {c} at {size}"),
        flops: (9 * c * out * out) as f64,
        inputs: vec![tensor(DType::F32, &[1, c, size, size])],
        build: Box::new(move |b, v| {
            let fill = b.scalar(if op == WindowOp::Max { f64::NEG_INFINITY } else { 0.0 }, DType::F32)?;
            let (one, none) = (Dim::from(1usize), (Dim::ZERO, Dim::ZERO));
            let pad = (one.clone(), one.clone());
            let windows = ReduceWindow {
                op,
                window: vec![one.clone(), one, Dim::from(3usize), Dim::from(3usize)],
                strides: vec![1, 1, 2, 2],
                dilations: vec![1; 4],
                padding: vec![none.clone(), none, pad.clone(), pad],
            };
            b.push1(windows, &[v[0], fill])
        }),
    }
}

fn cases() -> Vec<Case> {
    use DType::{F32, F64};
    let mut cases = Vec::new();
    for (m, k, n) in [
        (1, 384, 384),
        (1, 384, 1536),
        (4, 384, 384),
        (128, 384, 384),
        (128, 384, 1536),
        (128, 1536, 384),
        (512, 768, 768),
        (1024, 1024, 1024),
    ] {
        cases.push(dense(F32, m, k, n));
        cases.push(bytes(m, k, n));
    }
    cases.extend([dense(F64, 256, 256, 256), dense(DType::I32, 256, 256, 256)]);
    cases.extend([heads(12, 128, 32, 128, true), heads(12, 128, 128, 32, false)]);
    for (channels, size, k, stride, groups) in [
        ((3, 64), 224, 7, 2, 1),
        ((64, 64), 56, 3, 1, 1),
        ((64, 256), 56, 1, 1, 1),
        ((128, 128), 28, 3, 1, 1),
        ((256, 512), 28, 1, 2, 1),
        ((512, 512), 7, 3, 1, 1),
        ((96, 96), 56, 3, 1, 96),
        ((96, 96), 56, 3, 2, 96),
        ((240, 240), 28, 5, 1, 240),
        ((256, 256), 14, 3, 1, 32),
    ] {
        cases.push(conv(F32, channels, size, k, stride, groups));
    }
    cases.push(conv(DType::I32, (64, 64), 56, 3, 1, 1));
    cases.extend([pool(WindowOp::Max, 64, 112), pool(WindowOp::Sum, 64, 112)]);
    cases
}

/// The output's memory.
struct Memory(Vec<u64>);

impl Outputs for Memory {
    fn memory(&mut self, _: usize, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        let bytes = dtype.storage_bytes(dims).unwrap_or(0);
        self.0.resize(bytes.div_ceil(8).max(self.0.len()), 0);
        Ok(self.0.as_mut_ptr().cast())
    }
}

/// The least time of a run, over half a second of runs.
fn time(case: &Case, pool: &Pool) -> Result<(Duration, String), Box<dyn Error>> {
    let mut b = Builder::new("speed");
    let values: Vec<Value> = case
        .inputs
        .iter()
        .enumerate()
        .map(|(i, t)| b.input(&format!("x{i}"), t.clone()))
        .collect::<Result<_, _>>()?;
    let y = (case.build)(&mut b, &values)?;
    let graph = b.finish([("y", y)])?;
    let program = Arc::new(rlx_opt::program::build(&graph, &Cpu, &mut Vec::new())?);
    let kernel = program.steps.last().map_or("", |s| s.kernel).to_string();
    let store = WeightStore::default();
    let loaded = Arc::new(Loaded::new(&program, &store, pool)?);
    let mut instance = Instance::new(&loaded);
    let literals: Vec<Literal> = case.inputs.iter().map(filled).collect();
    let mut output = Memory(Vec::new());
    let mut best = Duration::MAX;
    pool.install(|| -> Result<(), RunError> {
        let inputs: Vec<Input<'_>> = literals
            .iter()
            .map(|l| Input { dtype: l.dtype(), dims: l.dims(), pointer: l.bytes().as_ptr() })
            .collect();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(500) {
            let start = Instant::now();
            instance.run(&inputs, &mut output, None, pool, &RunControl::default())?;
            best = best.min(start.elapsed());
        }
        Ok(())
    })?;
    Ok((best, kernel))
}

fn main() -> Result<(), Box<dyn Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |s| s.parse())?;
    let filter = std::env::args().nth(2).unwrap_or_default();
    let pool = Pool::new(threads)?;
    for case in cases().iter().filter(|c| c.name.contains(&filter)) {
        let (best, kernel) = time(case, &pool)?;
        let rate = case.flops / best.as_secs_f64() / 1e9;
        println!("{:<56} {kernel:<10} {rate:8.1} GFLOP/s {:10.1} µs", case.name, best.as_secs_f64() * 1e6);
    }
    Ok(())
}
