//! What products and convolutions promise beyond their values: the same bits whatever the batch, the threads, and
//! whether weights were packed when the program was loaded.

use rlx_cpu::{Cpu, Input, Instance, Loaded, Outputs, Pool, RunControl, RunError, WeightStore};
use rlx_ir::op::contract::{Conv, Dot};
use rlx_ir::op::quantised_matmul::ConvInteger;
use rlx_ir::{Builder, DType, Dim, Literal, TensorType, TypeError, Value};
use std::sync::Arc;

/// The output's memory.
#[derive(Default)]
struct Memory {
    words: Vec<u64>,
    bytes: usize,
}

impl Outputs for Memory {
    fn memory(&mut self, _: usize, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        self.bytes = dtype.storage_bytes(dims).unwrap_or(0);
        self.words = vec![u64::MAX; self.bytes.div_ceil(8)];
        Ok(self.words.as_mut_ptr().cast())
    }
}

/// An operand, given to the graph or part of it.
#[derive(Clone)]
enum Operand {
    Given(Literal),
    Constant(Literal),
}

/// The bytes of an operation's result, and the kernel that it ran by.
fn run(
    operands: &[Operand],
    threads: usize,
    build: impl Fn(&mut Builder, &[Value]) -> Result<Value, TypeError>,
) -> (Vec<u8>, &'static str) {
    let mut b = Builder::new("test");
    let mut given = Vec::new();
    let values: Vec<Value> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Constant(literal) => b.constant(literal.clone()),
            Operand::Given(literal) => {
                let name = format!("x{}", given.len());
                given.push(literal.clone());
                b.input(&name, TensorType::new(literal.dtype(), literal.dims())).unwrap()
            }
        })
        .collect();
    let y = build(&mut b, &values).unwrap();
    let graph = b.finish([("y", y)]).unwrap();
    let program = Arc::new(rlx_opt::program::build(&graph, &Cpu, &mut Vec::new()).unwrap());
    let kernel = program.steps.last().unwrap().kernel;
    let pool = Pool::new(threads).unwrap();
    let loaded = Arc::new(Loaded::new(&program, &WeightStore::default(), &pool).unwrap());
    let mut memory = Memory::default();
    pool.install(|| {
        let inputs: Vec<Input<'_>> = given
            .iter()
            .map(|l| Input { dtype: l.dtype(), dims: l.dims(), pointer: l.bytes().as_ptr() })
            .collect();
        Instance::new(&loaded).run(&inputs, &mut memory, None, &pool, &RunControl::default())
    })
    .unwrap();
    let bytes = memory.words.iter().flat_map(|w| w.to_ne_bytes()).take(memory.bytes).collect();
    (bytes, kernel)
}

/// Numbers without a pattern that a blocked sum could hide behind.
fn floats(dims: &[usize], seed: u32) -> Literal {
    let mut state = seed;
    let numbers: Vec<f32> = (0..dims.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Literal::from_slice(dims, &numbers).unwrap()
}

fn bytes(dims: &[usize]) -> Literal {
    let numbers: Vec<u8> = (0..dims.iter().product::<usize>()).map(|i| (i * 37 % 251) as u8).collect();
    Literal::from_slice(dims, &numbers).unwrap()
}

/// The rows `at..at + 1` of a literal's first axis.
fn part(literal: &Literal, at: usize) -> Literal {
    let row = literal.bytes().len() / literal.dims()[0];
    let dims: Vec<usize> = std::iter::once(1).chain(literal.dims()[1..].iter().copied()).collect();
    Literal::new(literal.dtype(), dims, literal.bytes().slice(at * row..(at + 1) * row)).unwrap()
}

fn dot(b: &mut Builder, v: &[Value]) -> Result<Value, TypeError> {
    b.push1(Dot::matmul(2), v)
}

fn conv(groups: usize, stride: i64) -> impl Fn(&mut Builder, &[Value]) -> Result<Value, TypeError> {
    move |b, v| {
        let conv = Conv {
            strides: vec![stride; 2],
            padding: vec![(Dim::from(1usize), Dim::from(2usize)); 2],
            lhs_dilation: vec![1; 2],
            rhs_dilation: vec![1, 2],
            groups,
            accum: None,
            out: None,
        };
        b.push1(conv, v)
    }
}

#[test]
fn a_row_gives_the_same_bits_in_any_batch() {
    for (k, n) in [(1000, 70), (17, 33), (385, 5)] {
        let (x, w) = (floats(&[7, k], 1), floats(&[k, n], 2));
        let whole = run(&[Operand::Given(x.clone()), Operand::Constant(w.clone())], 2, dot);
        assert_eq!(whole.1, "gemm");
        for (i, row) in whole.0.chunks_exact(4 * n).enumerate() {
            let alone = run(&[Operand::Given(part(&x, i)), Operand::Constant(w.clone())], 1, dot);
            assert_eq!(alone.0, row, "row {i} of {k} × {n}");
        }
    }
}

#[test]
fn an_image_gives_the_same_bits_in_any_batch() {
    for (channels, out, groups, stride) in [(8, 20, 1, 1), (8, 8, 8, 2), (6, 4, 2, 2)] {
        let x = floats(&[7, channels, 13, 11], 3);
        let w = floats(&[out, channels / groups, 3, 3], 4);
        let whole = run(&[Operand::Given(x.clone()), Operand::Constant(w.clone())], 2, conv(groups, stride));
        assert_eq!(whole.1, "conv");
        for (i, image) in whole.0.chunks_exact(whole.0.len() / 7).enumerate() {
            let operands = [Operand::Given(part(&x, i)), Operand::Constant(w.clone())];
            assert_eq!(run(&operands, 1, conv(groups, stride)).0, image, "image {i}, {groups} groups");
        }
    }
}

#[test]
fn weights_give_the_bits_of_operands() {
    let (x, w) = (floats(&[19, 801], 5), floats(&[801, 45], 6));
    let [given, constant] = [Operand::Given(w.clone()), Operand::Constant(w)]
        .map(|w| run(&[Operand::Given(x.clone()), w], 2, dot).0);
    assert_eq!(given, constant);
    let (x, w) = (floats(&[2, 6, 9, 9], 7), floats(&[10, 3, 3, 3], 8));
    let [given, constant] = [Operand::Given(w.clone()), Operand::Constant(w)]
        .map(|w| run(&[Operand::Given(x.clone()), w], 2, conv(2, 1)).0);
    assert_eq!(given, constant);
}

#[test]
fn a_transposed_weight_is_packed_as_it_lies() {
    let (x, w) = (floats(&[4, 50], 9), floats(&[30, 50], 10));
    let transposed = |b: &mut Builder, v: &[Value]| {
        let w = b.transpose(v[1], &[1, 0])?;
        b.push1(Dot::matmul(2), &[v[0], w])
    };
    let across = |b: &mut Builder, v: &[Value]| b.push1(Dot { rhs_contract: vec![1], ..Dot::matmul(2) }, v);
    let operands = [Operand::Given(x), Operand::Constant(w)];
    assert_eq!(run(&operands, 1, transposed), run(&operands, 1, across));
}

#[test]
fn a_sum_of_nothing_is_zero() {
    let (x, w) = (floats(&[3, 0], 1), floats(&[0, 5], 1));
    for w in [Operand::Given(w.clone()), Operand::Constant(w)] {
        assert_eq!(run(&[Operand::Given(x.clone()), w], 1, dot).0, vec![0; 60]);
    }
}

#[test]
fn zero_points_of_bytes_are_taken_when_loaded_or_on_each_run() {
    let conv = ConvInteger {
        strides: vec![1, 2],
        padding: vec![(Dim::from(1usize), Dim::from(1usize)); 2],
        dilations: vec![1, 1],
        groups: 2,
        x_zero_point: true,
        w_zero_point: true,
    };
    let operands = |wrap: fn(Literal) -> Operand| {
        [
            Operand::Given(bytes(&[2, 6, 7, 8])),
            wrap(bytes(&[14, 3, 3, 3])),
            Operand::Given(Literal::from_slice([], &[113u8]).unwrap()),
            wrap(bytes(&[14])),
        ]
    };
    let build = |b: &mut Builder, v: &[Value]| b.push1(conv.clone(), v);
    let (given, kernel) = run(&operands(Operand::Given), 2, build);
    assert_eq!(kernel, "conv");
    assert_eq!(run(&operands(Operand::Constant), 1, build).0, given);
    let graph_of_oracle = oracle(&operands(Operand::Given), build);
    assert_eq!(given, graph_of_oracle);
}

/// The bytes that the oracle gives.
fn oracle(
    operands: &[Operand],
    build: impl Fn(&mut Builder, &[Value]) -> Result<Value, TypeError>,
) -> Vec<u8> {
    let mut b = Builder::new("test");
    let mut named = Vec::new();
    for (i, operand) in operands.iter().enumerate() {
        let (Operand::Given(literal) | Operand::Constant(literal)) = operand;
        named.push((format!("x{i}"), literal.clone()));
    }
    let values: Vec<Value> =
        named.iter().map(|(name, l)| b.input(name, TensorType::new(l.dtype(), l.dims())).unwrap()).collect();
    let y = build(&mut b, &values).unwrap();
    let graph = b.finish([("y", y)]).unwrap();
    let oracle = rlx_eval::Oracle::new(&graph, rlx_eval::EvalOptions::default()).unwrap();
    oracle.run_named(&named).unwrap()[0].1.bytes().to_vec()
}
