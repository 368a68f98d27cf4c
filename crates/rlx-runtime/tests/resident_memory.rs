//! What the process holds stays flat: over sizes, over compiling and dropping, over runs.
#![cfg(target_os = "linux")]

mod models;

use models::{floats, perceptron, session};
use rlx_runtime::{CompileOptions, RunOptions, Slots};
use std::sync::Mutex;

/// One measurement at a time: what is measured belongs to the process.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes of a page on x86-64 and (as Linux is built for it nearly everywhere) AArch64.
const PAGE: usize = 4096;

/// Growth that is noise: the allocator's arenas and what the test's own runner does meanwhile.
const NOISE: usize = 4 << 20;

/// The bytes of the process in memory: the second number of /proc/self/statm, in pages (proc(5)).
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("proc is mounted");
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok()).expect("a number of pages");
    pages * PAGE
}

fn assert_flat(before: usize, what: &str) {
    let after = resident();
    assert!(after <= before + NOISE, "{what}: from {before} to {after} bytes");
}

#[test]
fn memory_stays_flat_over_a_thousand_sizes() {
    let _alone = ALONE.lock();
    let session = session(1);
    let executable =
        session.compile(&perceptron(&[32, 32]), &CompileOptions::default()).expect("it compiles");
    let mut slots = Slots::default();
    let mut run = |n: usize| {
        executable.run_into(&[&floats(&[n, 32], 0.0)], &mut slots, &RunOptions::default()).expect("it runs");
    };
    // The largest first: all others fit in what it needs.
    run(1024);
    run(1);
    let before = resident();
    (1..=1024).for_each(run);
    assert_flat(before, "1,024 sizes");
}

#[test]
fn memory_stays_flat_over_a_thousand_executables() {
    let _alone = ALONE.lock();
    let session = session(2);
    let graph = perceptron(&[32, 32]);
    let x = floats(&[4, 32], 0.0);
    let round = || {
        let executable = session.compile(&graph, &CompileOptions::default()).expect("it compiles");
        executable.run(&[("x", x.clone())]).expect("it runs");
    };
    (0..50).for_each(|_| round());
    let before = resident();
    (0..1000).for_each(|_| round());
    assert_flat(before, "1,000 executables");
    assert_eq!(session.weight_bytes(), 0);
}

#[test]
fn memory_stays_flat_over_sessions() {
    let _alone = ALONE.lock();
    let graph = perceptron(&[32, 32]);
    let x = floats(&[4, 32], 0.0);
    let round = || {
        let executable = session(2).compile(&graph, &CompileOptions::default()).expect("it compiles");
        executable.run(&[("x", x.clone())]).expect("it runs");
    };
    (0..20).for_each(|_| round());
    let before = resident();
    (0..100).for_each(|_| round());
    assert_flat(before, "100 sessions");
}

#[test]
fn memory_stays_flat_over_ten_thousand_runs() {
    let _alone = ALONE.lock();
    let session = session(2);
    let executable =
        session.compile(&perceptron(&[784, 100, 10]), &CompileOptions::default()).expect("it compiles");
    let x = floats(&[1, 784], 0.0);
    let mut slots = Slots::default();
    let mut run = || {
        executable.run_into(&[&x], &mut slots, &RunOptions::default()).expect("it runs");
    };
    (0..100).for_each(|_| run());
    let before = resident();
    (0..10_000).for_each(|_| run());
    assert_flat(before, "10,000 runs");
}
