//! Inputs that do not fit, that lie unaligned, and outputs in memory that was made for larger ones.

mod models;

use models::{compiled, floats, mlp, parsed, unaligned};
use rlx_eval::EvalError;
use rlx_ir::DType;
use rlx_runtime::{RunError, RunOptions, Slots, Tensor};

fn failure(outcome: Result<impl Sized, RunError>) -> EvalError {
    match outcome {
        Err(RunError::Failed(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it ran"),
    }
}

#[test]
fn input_that_is_missing_is_named_with_what_it_should_be() {
    let executable = compiled(1, &mlp());
    let error = failure(executable.run(&[]));
    assert!(
        matches!(&error, EvalError::MissingInput { name, expected }
        if name == "x" && expected.to_string() == "f32[n, 8]"),
        "{error}"
    );
    let error = failure(executable.run_into(&[], &mut Slots::default(), &RunOptions::default()));
    assert!(matches!(&error, EvalError::MissingInput { name, .. } if name == "x"), "{error}");
}

#[test]
fn input_that_the_model_does_not_have_is_named_with_those_it_has() {
    let executable = compiled(1, &mlp());
    let x = floats(&[2, 8], 0.0);
    let error = failure(executable.run(&[("x", x.clone()), ("z", x.clone())]));
    assert!(matches!(&error, EvalError::UnknownInput { name, known } if name == "z" && known == &["x"]));
    let error = failure(executable.run_into(&[&x, &x], &mut Slots::default(), &RunOptions::default()));
    assert!(matches!(&error, EvalError::UnknownInput { known, .. } if known == &["x"]), "{error}");
}

#[test]
fn input_of_another_type_rank_or_size_is_refused_and_the_next_run_is_right() {
    let executable = compiled(1, &mlp());
    let right = floats(&[2, 8], 0.0);
    let before = executable.run(&[("x", right.clone())]).expect("it runs")["y"].bytes().to_vec();
    let integers = Tensor::from_slice([2, 8], &[1i32; 16]).expect("sixteen");
    assert!(matches!(failure(executable.run(&[("x", integers)])), EvalError::InputType { .. }));
    assert!(matches!(failure(executable.run(&[("x", floats(&[16], 0.0))])), EvalError::InputType { .. }));
    assert!(matches!(failure(executable.run(&[("x", floats(&[2, 7], 0.0))])), EvalError::InputSize { .. }));
    let after = executable.run(&[("x", right)]).expect("it runs")["y"].bytes().to_vec();
    assert_eq!(after, before);
}

#[test]
fn one_symbol_with_two_sizes_is_refused() {
    let graph = parsed("(%x: f32[n], %y: f32[n]) { %z = add(%x, %y) return \"z\" = %z }");
    let executable = compiled(1, &graph);
    let error = failure(executable.run(&[("x", floats(&[2], 0.0)), ("y", floats(&[3], 0.0))]));
    assert!(matches!(&error, EvalError::InputSize { name, .. } if name == "y"), "{error}");
}

#[test]
fn input_at_an_odd_address_gives_what_an_aligned_one_gives() {
    let executable = compiled(1, &mlp());
    let aligned = executable.run(&[("x", floats(&[3, 8], 0.5))]).expect("it runs");
    let odd = executable.run(&[("x", Tensor::from(unaligned(&[3, 8], 0.5)))]).expect("it runs");
    assert_eq!(odd["y"].bytes(), aligned["y"].bytes());
}

#[test]
fn input_without_elements_gives_an_output_without_elements() {
    let executable = compiled(1, &mlp());
    let outputs = executable.run(&[("x", floats(&[0, 8], 0.0))]).expect("it runs");
    assert_eq!((outputs["y"].dims(), outputs["y"].bytes().len()), (&[0, 4][..], 0));
}

#[test]
fn memory_of_a_larger_run_serves_a_smaller_one() {
    let executable = compiled(1, &mlp());
    let (options, mut slots) = (RunOptions::default(), Slots::default());
    for n in [9, 2, 5, 1, 9] {
        let x = floats(&[n, 8], n as f32);
        executable.run_into(&[&x], &mut slots, &options).expect("it runs");
        let fresh = executable.run(&[("x", x)]).expect("it runs");
        assert_eq!(slots.output(0), Some((DType::F32, &[n, 4][..], fresh["y"].bytes())));
    }
}

#[test]
fn rows_of_packed_nibbles_begin_at_bytes_whatever_the_reshape() {
    let graph = parsed(
        "(%x: i4[3, 3]) {
            %r = reshape<dims=[9, 1]>(%x)
            %t = transpose<perm=[1, 0]>(%r)
            %y = cast<to=i32>(%t)
            return \"y\" = %y, \"t\" = %t
        }",
    );
    // 1 2 3, 4 5 6, 7 -8 -7: two bytes a row, low bits first.
    let x =
        Tensor::from_bytes(DType::I4, [3, 3], vec![0x21, 0x03, 0x54, 0x06, 0x87, 0x09]).expect("six bytes");
    let outputs = compiled(1, &graph).run(&[("x", x)]).expect("it runs");
    assert_eq!(outputs["y"].to_vec::<i32>(), Some(vec![1, 2, 3, 4, 5, 6, 7, -8, -7]));
    assert_eq!(outputs["t"].bytes(), [0x21, 0x43, 0x65, 0x87, 0x09]);
}
