//! A warm run allocates nothing: neither the runtime, nor the native kernels.
#![allow(unsafe_code, reason = "an allocator is unsafe to implement")]

mod models;

use models::{floats, perceptron, session, weight};
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::{Builder, DType, Dim, Graph, TensorType};
use rlx_runtime::{CompileOptions, RunOptions, Slots};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count of this thread's calls.
struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; the counter does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as for `dealloc`; the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of this thread while `action` runs.
fn allocations(action: impl FnOnce()) -> usize {
    let before = CALLS.with(Cell::get);
    action();
    CALLS.with(Cell::get) - before
}

/// exp, a scaled sum with a weight, softmax and a transposed copy, on f32[n, 64].
fn elementwise() -> Graph {
    let build = || {
        let mut b = Builder::new("elementwise");
        let x = b.input("x", TensorType::new(DType::F32, vec![Dim::symbol("n"), 64.into()]))?;
        let e = b.unary(UnaryOp::Tanh, x)?;
        let w = weight(&mut b, &[64], 0.3);
        let y = b.broadcasting(BinaryOp::Mul, e, w)?;
        let most = b.reduce(rlx_ir::op::reduce::ReduceOp::Max, y, &[1], true)?;
        let shifted = b.broadcasting(BinaryOp::Sub, y, most)?;
        let powers = b.unary(UnaryOp::Exp, shifted)?;
        let sum = b.sum(powers, &[1], true)?;
        let softmax = b.broadcasting(BinaryOp::Div, powers, sum)?;
        let transposed = b.transpose(softmax, &[1, 0])?;
        b.finish([("y", transposed), ("sum", sum)])
    };
    build().expect("the types fit")
}

/// The allocations of the fourth run with sizes that were bound before.
fn warm(graph: &Graph, fuse: bool, dims: &[usize]) -> usize {
    let options = CompileOptions { fuse, ..CompileOptions::default() };
    let executable = session(1).compile(graph, &options).expect("it compiles");
    let (x, mut slots) = (floats(dims, 0.0), Slots::default());
    let run = RunOptions::default();
    for _ in 0..3 {
        executable.run_into(&[&x], &mut slots, &run).expect("it runs");
    }
    allocations(|| {
        executable.run_into(&[&x], &mut slots, &run).expect("it runs");
    })
}

#[test]
fn warm_run_of_regions_and_copies_allocates_nothing() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1u8]))) > 0, "the counter counts");
    for fuse in [true, false] {
        assert_eq!(warm(&elementwise(), fuse, &[100, 64]), 0, "fuse: {fuse}");
    }
}

#[test]
fn warm_run_of_products_allocates_nothing() {
    for rows in [1, 7, 130] {
        assert_eq!(warm(&perceptron(&[64, 33, 10]), true, &[rows, 64]), 0, "{rows} rows");
    }
}
