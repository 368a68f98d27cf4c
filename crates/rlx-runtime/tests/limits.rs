//! Runs that end early: cancelled, late, or out of memory; and executables that work as before after them.

mod models;

use models::{chain, compiled, floats, parsed, session};
use rlx_ir::DType;
use rlx_runtime::{CompileOptions, Executable, RunError, RunOptions, Slots, Tensor};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Eight steps, since nothing is fused.
fn eight_steps() -> Executable {
    let options = CompileOptions { fuse: false, ..CompileOptions::default() };
    session(1).compile(&chain(8), &options).expect("it compiles")
}

fn runs_as_ever(executable: &Executable) {
    let x = floats(&[5], 0.5);
    let outputs = executable.run(&[("x", x.clone())]).expect("it runs");
    let expected: Vec<f32> =
        x.to_vec::<f32>().expect("floats").iter().map(|v| (0..8).fold(*v, |v, _| v.sin())).collect();
    let found = outputs["y"].to_vec::<f32>().expect("floats");
    assert!(found.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 1e-6), "{found:?} {expected:?}");
}

#[test]
fn run_that_is_cancelled_in_the_middle_ends_before_the_next_step() {
    let executable = eight_steps();
    assert_eq!(executable.program().steps.len(), 8);
    let cancel = AtomicBool::new(false);
    let stop_at = |step: usize, _: usize| {
        if step == 3 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let options = RunOptions { cancel: Some(&cancel), progress: Some(&stop_at), ..RunOptions::default() };
    let error = executable.run_with(&[("x", floats(&[5], 0.5))], &options).err();
    assert_eq!(error, Some(RunError::Cancelled { steps: 4 }));
    runs_as_ever(&executable);
}

#[test]
fn run_ends_when_its_deadline_has_passed() {
    let executable = eight_steps();
    let late = RunOptions { deadline: Some(Instant::now()), ..RunOptions::default() };
    let error = executable.run_with(&[("x", floats(&[5], 0.5))], &late).err();
    assert_eq!(error, Some(RunError::Deadline { steps: 0 }));
    let deadline = Instant::now() + Duration::from_millis(200);
    let slow = |_: usize, _: usize| std::thread::sleep(Duration::from_millis(60));
    let options = RunOptions { deadline: Some(deadline), progress: Some(&slow), ..RunOptions::default() };
    match executable.run_with(&[("x", floats(&[5], 0.5))], &options) {
        Err(RunError::Deadline { steps }) => assert!((1..8).contains(&steps), "{steps}"),
        other => panic!("{other:?}"),
    }
    runs_as_ever(&executable);
}

/// A loop that does not end by itself.
const ENDLESS: &str = r#"(%bound: i64[], %go: bool[], %x: f32[n]) {
    %y = while<body=graph "body"(%i: i64[], %c: f32[n]) {
        %d = sin(%c)
        %more = constant<value=bool[] [true]>()
        return "go" = %more, "c" = %d
    }, carried=1, count=trips, results=[f32[n]]>(%bound, %go, %x)
    return "y" = %y
}"#;

#[test]
fn cancelling_and_deadlines_reach_into_loops() {
    let executable = compiled(1, &parsed(ENDLESS));
    let go = Tensor::from_bytes(DType::Bool, [], vec![1u8]).expect("one byte");
    let bound = Tensor::from_slice([], &[-1i64]).expect("one element");
    let inputs = [("bound", bound), ("go", go), ("x", floats(&[5], 0.5))];
    let deadline = Some(Instant::now() + Duration::from_millis(50));
    let error = executable.run_with(&inputs, &RunOptions { deadline, ..RunOptions::default() }).err();
    assert!(matches!(error, Some(RunError::Deadline { .. })), "{error:?}");
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            cancel.store(true, Ordering::Relaxed);
        });
        let error = executable
            .run_with(&inputs, &RunOptions { cancel: Some(&cancel), ..RunOptions::default() })
            .err();
        assert!(matches!(error, Some(RunError::Cancelled { .. })), "{error:?}");
    });
}

/// A temporary and an output of n³ elements from n.
const CUBE: &str = r#"(%x: f32[n]) {
    %a = reshape<dims=[n, 1, 1]>(%x)
    %b = broadcast<dims=[n, n, n]>(%a)
    %t = broadcast<dims=[n, n, n]>(%x)
    %s = add(%b, %t)
    %y = sort<axis=2, descending=false>(%s)
    return "y" = %y
}"#;

#[test]
fn memory_beyond_the_cap_is_an_error_and_what_fits_runs() {
    let executable = compiled(1, &parsed(CUBE));
    // n³ floats of one temporary.
    let capped = |n: usize| {
        let options = RunOptions { memory_cap: Some(4 * 16 * 16 * 16), ..RunOptions::default() };
        executable.run_with(&[("x", floats(&[n], 0.0))], &options)
    };
    assert!(capped(16).is_ok());
    match capped(17).map(|_| ()) {
        Err(RunError::Memory { needed, .. }) => assert!(needed >= 4 * 17 * 17 * 17, "{needed}"),
        other => panic!("{other:?}"),
    }
    assert!(capped(16).is_ok());
}

#[test]
fn memory_that_the_system_does_not_have_is_an_error() {
    let executable = compiled(1, &parsed(CUBE));
    // 2⁵⁶ and 2⁶² bytes, which no address space holds, then 2⁷¹, which no size counts.
    for bits in [18, 20, 23] {
        let error = executable.run(&[("x", floats(&[1 << bits], 0.0))]).err();
        match error {
            Some(RunError::Memory { .. } | RunError::Failed(_)) => {}
            other => panic!("{bits}: {other:?}"),
        }
    }
    assert!(executable.run(&[("x", floats(&[4], 0.0))]).is_ok());
}

#[test]
fn progress_and_profile_tell_each_step_in_order() {
    let executable = eight_steps();
    let (told, timed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = |step: usize, total: usize| {
        assert_eq!((step, total), (told.fetch_add(1, Ordering::Relaxed), 8));
    };
    let profile = |step: usize, _: Duration| {
        assert_eq!(step, timed.fetch_add(1, Ordering::Relaxed));
    };
    let options = RunOptions { progress: Some(&progress), profile: Some(&profile), ..RunOptions::default() };
    let x = floats(&[5], 0.5);
    executable.run_into(&[&x], &mut Slots::default(), &options).expect("it runs");
    assert_eq!((told.into_inner(), timed.into_inner()), (8, 8));
}
