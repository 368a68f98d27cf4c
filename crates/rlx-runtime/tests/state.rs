//! States: updated in place, kept between runs, refused where each run would copy them.

use rlx_ir::text;
use rlx_runtime::{Device, Executable, RunOptions, Session, Slots, Tensor};

fn compiled(source: &str) -> Result<Executable, rlx_runtime::Error> {
    let graph = text::parse(source).expect("the graph parses");
    Session::new(Device::Cpu { threads: 1 })?.compile(&graph, &Default::default())
}

const SUM: &str = r#"rlx 1 graph "g"(%s: f32[n], %x: f32[n]) {
    %t = add(%s, %x)
    %y = mul(%t, %x)
    return "next" = %t, "y" = %y
    state 0 -> 0
}"#;

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice([values.len()], values).expect("as many values as the size says")
}

#[test]
fn state_is_updated_from_run_to_run_and_a_fork_goes_its_own_way() {
    let executable = compiled(SUM).expect("it compiles");
    let mut state = executable.new_state(&[("n", 3)]).expect("there is memory");
    let mut slots = Slots::default();
    let options = RunOptions::default();
    let x = floats(&[1.0, 2.0, 3.0]);
    executable.run_stateful(&[&x], &mut state, &mut slots, &options).expect("it runs");
    let mut fork = state.fork().expect("there is memory");
    executable.run_stateful(&[&x], &mut state, &mut slots, &options).expect("it runs");
    assert_eq!(state.get("s").and_then(|t| t.to_vec::<f32>()), Some(vec![2.0, 4.0, 6.0]));
    assert_eq!(fork.get("s").and_then(|t| t.to_vec::<f32>()), Some(vec![1.0, 2.0, 3.0]));
    fork.set("s", &floats(&[10.0, 10.0, 10.0])).expect("it fits");
    executable.run_stateful(&[&x], &mut fork, &mut slots, &options).expect("it runs");
    assert_eq!(fork.get("s").and_then(|t| t.to_vec::<f32>()), Some(vec![11.0, 12.0, 13.0]));
}

#[test]
fn without_a_state_the_input_stays_and_the_next_value_is_an_output() {
    let executable = compiled(SUM).expect("it compiles");
    let (s, x) = (floats(&[1.0, 1.0]), floats(&[2.0, 3.0]));
    let outputs = executable.run(&[("s", s.clone()), ("x", x)]).expect("it runs");
    assert_eq!(outputs["next"].to_vec::<f32>(), Some(vec![3.0, 4.0]));
    assert_eq!(outputs["y"].to_vec::<f32>(), Some(vec![6.0, 12.0]));
    assert_eq!(s.to_vec::<f32>(), Some(vec![1.0, 1.0]));
}

#[test]
fn large_state_that_is_read_after_its_next_value_is_begun_is_refused_by_name() {
    let source = r#"rlx 1 graph "g"(%s: f32[n, 4], %x: f32[n, 4]) {
        %t = add(%s, %x)
        %u = transpose<perm=[1, 0]>(%s)
        %v = reduce_sum<axes=[0], keep_dims=false>(%u)
        %w = reduce_max<axes=[1], keep_dims=false>(%t)
        %z = add(%w, %v)
        return "next" = %t, "z" = %z
        state 0 -> 0
    }"#;
    let error = compiled(source).err().expect("it is refused").to_string();
    assert!(error.contains("\"s\"") && error.contains("reads the state"), "{error}");
}
