//! Runs at once: of one executable, and of two sessions.

mod models;

use models::{compiled, floats, mlp, session};
use rlx_runtime::{CompileOptions, RunOptions, Slots, Tensor};

/// The bits of an output.
fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().expect("floats").iter().map(|x| x.to_bits()).collect()
}

#[test]
fn threads_that_run_one_executable_at_once_get_what_each_would_get_alone() {
    for threads in [1, 2] {
        let executable = session(threads).compile(&mlp(), &CompileOptions::default()).expect("it compiles");
        // Other sizes in each thread, so that each needs an instance with other plans.
        let inputs: Vec<Tensor> = (1..=4).map(|n| floats(&[n, 8], n as f32)).collect();
        let alone: Vec<Vec<u32>> = inputs
            .iter()
            .map(|x| bits(&executable.run(&[("x", x.clone())]).expect("it runs")["y"]))
            .collect();
        std::thread::scope(|scope| {
            for (x, alone) in inputs.iter().zip(&alone) {
                let executable = &executable;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let outputs = executable.run(&[("x", x.clone())]).expect("it runs");
                        assert_eq!(bits(&outputs["y"]), *alone);
                    }
                });
            }
        });
    }
}

#[test]
fn sessions_run_at_once_without_knowing_of_each_other() {
    let x = floats(&[3, 8], 1.0);
    let expected = bits(&compiled(1, &mlp()).run(&[("x", x.clone())]).expect("it runs")["y"]);
    std::thread::scope(|scope| {
        for threads in [1, 2] {
            let (x, expected) = (&x, &expected);
            scope.spawn(move || {
                let executable = compiled(threads, &mlp());
                let mut slots = Slots::default();
                for _ in 0..50 {
                    executable.run_into(&[x], &mut slots, &RunOptions::default()).expect("it runs");
                    let (_, dims, bytes) = slots.output(0).expect("an output");
                    assert_eq!(dims, [3, 4]);
                    let found: Vec<u32> =
                        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
                    assert_eq!(found, *expected);
                }
            });
        }
    });
}
