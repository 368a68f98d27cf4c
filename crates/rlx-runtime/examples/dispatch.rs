//! What a step costs beyond its work: a chain of additions of four numbers, unfused, on one thread; and what fusing the
//! chain gives. Prints nanoseconds a step as JSON.
//!
//! `cargo run --release -p rlx-runtime --example dispatch`

use rlx_ir::{Builder, DType, TensorType};
use rlx_runtime::{CompileOptions, Device, RunOptions, Session, Slots, Tensor};
use std::time::Instant;

/// Additions in the chain.
const STEPS: usize = 200;

/// Runs measured; the median counts.
const RUNS: usize = 2001;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut b = Builder::new("chain");
    let x = b.input("x", TensorType::new(DType::F32, [4]))?;
    let mut y = x;
    for _ in 0..STEPS {
        y = b.add(y, x)?;
    }
    let graph = b.finish([("y", y)])?;
    let session = Session::new(Device::Cpu { threads: 1 })?;
    let x = Tensor::from_slice([4], &[1.0f32, 2.0, 3.0, 4.0])?;
    for (name, fuse) in [("unfused", false), ("fused", true)] {
        let executable = session.compile(&graph, &CompileOptions { fuse, ..CompileOptions::default() })?;
        let mut slots = Slots::default();
        let options = RunOptions::default();
        let mut times: Vec<f64> = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let start = Instant::now();
            executable.run_into(&[&x], &mut slots, &options)?;
            times.push(start.elapsed().as_secs_f64() * 1e9);
        }
        times.sort_unstable_by(f64::total_cmp);
        let steps = executable.program().steps.len();
        println!(
            "{{\"chain\": \"{name}\", \"steps\": {steps}, \"ns_per_step\": {:.1}, \"ns_per_run\": {:.0}}}",
            times[RUNS / 2] / steps as f64,
            times[RUNS / 2]
        );
    }
    Ok(())
}
