//! Regions whose rows are longer than registers give what the oracle gives, with one thread and with two.

use rlx_eval::evaluate;
use rlx_ir::{DType, Literal, text};
use rlx_runtime::{Device, Session, Tensor};

fn check(source: &str, dims: &[usize], tolerance: f64) {
    let graph = text::parse(source).expect("the graph parses");
    let count: usize = dims.iter().product();
    let elements: Vec<f32> = (0..count)
        .map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0 - 0.4)
        .collect();
    let literal = Literal::from_slice(dims, &elements).expect("as many elements as the sizes say");
    let expected = evaluate(&graph, std::slice::from_ref(&literal)).expect("the oracle runs");
    let mut results: Vec<Vec<u8>> = Vec::new();
    for threads in [1, 2] {
        let session = Session::new(Device::Cpu { threads }).expect("threads start");
        let executable = session.compile(&graph, &Default::default()).expect("it compiles");
        let outputs = executable.run(&[("x", Tensor::from(literal.clone()))]).expect("it runs");
        for ((name, found), expected) in outputs.iter().zip(&expected) {
            let numbers = |l: &Literal| -> Vec<f64> {
                match l.dtype() {
                    DType::F32 => l.to_vec::<f32>().unwrap_or_default().into_iter().map(f64::from).collect(),
                    _ => l.to_i64_vec().unwrap_or_default().into_iter().map(|x| x as f64).collect(),
                }
            };
            let (found, expected) = (numbers(&found.to_literal()), numbers(expected));
            let range = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
                assert!((f - e).abs() <= tolerance * range, "{name}[{i}]: {f}, the oracle has {e}");
            }
        }
        results.push(outputs.iter().flat_map(|(_, t)| t.bytes().to_vec()).collect());
    }
    assert_eq!(results[0], results[1], "the number of threads changes the result");
}

#[test]
fn sums_and_extremes_of_a_whole_array() {
    check(
        r#"rlx 1 graph "g"(%x: f32[n, m]) {
            %s = reduce_sum<axes=[0, 1], keep_dims=false>(%x)
            %q = mul(%x, %x)
            %m = reduce_max<axes=[0, 1], keep_dims=true>(%q)
            return "s" = %s, "m" = %m
        }"#,
        &[70, 1001],
        1e-5,
    );
}

#[test]
fn rows_that_are_read_again_in_each_stage() {
    check(
        r#"rlx 1 graph "g"(%x: f32[n, m]) {
            %y = softmax<axis=-1>(%x)
            return "y" = %y
        }"#,
        &[3, 50_021],
        1e-5,
    );
}

#[test]
fn long_axis_that_is_not_the_last() {
    check(
        r#"rlx 1 graph "g"(%x: f32[n, m]) {
            %y = softmax<axis=0>(%x)
            return "y" = %y
        }"#,
        &[40_000, 3],
        1e-5,
    );
}
