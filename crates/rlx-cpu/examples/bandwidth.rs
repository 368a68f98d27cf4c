//! Memory bandwidth of copies, transpositions and gathers, against that of a plain copy.
//!
//! `cargo run --release -p rlx-cpu --example bandwidth [-- THREADS]`. A line gives bytes read and written over the least
//! time of several runs.
#![allow(unsafe_code)]

use rlx_cpu::Pool;
use rlx_cpu::kernels::transfer::{Axis, Transfer, packed_strides};
use std::time::Instant;

/// Bytes of each array: beyond the caches.
const BYTES: usize = 256 << 20;

/// Runs of which the fastest counts.
const RUNS: usize = 5;

#[derive(Clone, Copy)]
struct Memory(*mut u8);

// SAFETY: the address of an array that outlives all runs; parts of a transfer do not overlap.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

impl Memory {
    fn address(self) -> *mut u8 {
        self.0
    }
}

fn report(name: &str, bytes: usize, mut work: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:<44} {:7.2} GB/s", 2.0 * bytes as f64 / best / 1e9);
}

/// A copy of an array of these sizes whose axes are taken in another order.
fn transposed(dims: &[usize], order: &[usize], width: usize) -> Transfer {
    let from = packed_strides(dims, width);
    let to_dims: Vec<usize> = order.iter().map(|axis| dims[*axis]).collect();
    let to = packed_strides(&to_dims, width);
    Transfer::new(
        width,
        order.iter().zip(&to).map(|(axis, to)| Axis { size: dims[*axis], from: from[*axis], to: *to }),
    )
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let pool = match Pool::new(threads) {
        Ok(pool) => pool,
        Err(error) => return eprintln!("no threads: {error}"),
    };
    println!("{threads} threads, arrays of {} MiB", BYTES >> 20);
    let mut from = vec![1u128; BYTES / 16];
    let mut to = vec![0u128; BYTES / 16];
    let (x, y) = (Memory(from.as_mut_ptr().cast()), Memory(to.as_mut_ptr().cast()));
    let run = |name: &str, transfer: &Transfer| {
        // SAFETY: all transfers here are of at most `BYTES` bytes.
        report(name, transfer.bytes(), || {
            pool.install(|| unsafe { transfer.run(&pool, x.address(), y.address()) })
        });
    };
    run("copy", &transposed(&[BYTES / 4], &[0], 4));
    for (width, side) in [(1, 16_384), (2, 8_192), (4, 8_192), (8, 4_096), (16, 4_096)] {
        run(&format!("transpose {side} x {side}, {width} bytes"), &transposed(&[side, side], &[1, 0], width));
    }
    run("transpose 8191 x 8191, 4 bytes", &transposed(&[8191, 8191], &[1, 0], 4));
    run("rows to columns of images, 3 channels", &transposed(&[8, 1024, 1024, 3], &[0, 3, 1, 2], 4));
    run("columns to rows of images, 3 channels", &transposed(&[8, 3, 1024, 1024], &[0, 2, 3, 1], 4));
    run("columns to rows of images, 64 channels", &transposed(&[8, 64, 256, 256], &[0, 2, 3, 1], 4));
    run("heads of attention, 64 numbers", &transposed(&[8, 1024, 12, 64], &[0, 2, 1, 3], 4));
    run("heads of attention, 64 numbers, transposed", &transposed(&[8, 1024, 12, 64], &[0, 2, 3, 1], 4));
    let half = BYTES / 8;
    let steps = Transfer::new(4, [Axis { size: half, from: 8, to: 4 }]);
    run("every second number", &steps);
    let fill = Transfer::new(4, [Axis { size: BYTES / 4, from: 0, to: 4 }]);
    run("fill (bytes counted twice)", &fill);
}
