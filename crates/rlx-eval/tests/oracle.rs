//! Graphs written as text, run by the oracle.

use rlx_eval::{EvalError, EvalOptions, Oracle, Precision, evaluate};
use rlx_ir::{Literal, text};

fn run(graph: &str, inputs: &[Literal]) -> Result<Vec<Literal>, EvalError> {
    let graph = text::parse(&format!("rlx 1 graph \"g\"{graph}")).unwrap_or_else(|e| panic!("{e}"));
    evaluate(&graph, inputs)
}

fn f32s(dims: &[usize], elements: &[f32]) -> Literal {
    Literal::from_slice(dims, elements).unwrap()
}

fn floats(result: Result<Vec<Literal>, EvalError>) -> Vec<f32> {
    result.unwrap_or_else(|e| panic!("{e}"))[0].to_vec().unwrap()
}

#[test]
fn composites_run_through_their_decomposition() {
    let graph = "(%x: f32[n, 4], %s: f32[4]) { %y = rms_norm<axis=-1, eps=0.0>(%x, %s) return \"y\" = %y }";
    let y = floats(run(graph, &[f32s(&[1, 4], &[1.0, 1.0, 5.0, 3.0]), f32s(&[4], &[1.0, 2.0, 1.0, 1.0])]));
    // Each step is rounded to f32: 5 · (1/3) is not 5/3.
    let third = 1f32 / 3.0;
    assert_eq!(y, [third, third * 2.0, third * 5.0, third * 3.0]);
}

#[test]
fn dots_contract_any_axes() {
    let graph = "(%x: f32[b, 2, 3], %y: f32[3, b, 2]) {
        %z = dot<lhs_batch=[0], rhs_batch=[1], lhs_contract=[2], rhs_contract=[0]>(%x, %y) : f32[b, 2, 2]
        return \"z\" = %z }";
    let x = f32s(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = f32s(&[3, 1, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    assert_eq!(floats(run(graph, &[x, y])), [4.0, 5.0, 10.0, 11.0]);
}

#[test]
fn transposed_convolution_is_a_convolution_of_the_dilated_input() {
    let graph = "(%x: f32[1, 1, n], %w: f32[1, 1, 3]) {
        %y = conv<strides=[1], padding=[(2, 2)], lhs_dilation=[2], rhs_dilation=[1], groups=1>(%x, %w)
        return \"y\" = %y }";
    let y = floats(run(graph, &[f32s(&[1, 1, 3], &[1.0, 2.0, 3.0]), f32s(&[1, 1, 3], &[3.0, 2.0, 1.0])]));
    assert_eq!(y, [1.0, 2.0, 5.0, 4.0, 9.0, 6.0, 9.0]);
}

#[test]
fn sizes_found_at_run_time_bind_their_symbols() {
    let graph = "(%x: f32[n]) { symbol count: min=0
        %i = nonzero<count=count>(%x) : i64[1, count]
        %t = transpose<perm=[1, 0]>(%i)
        %y = gather<axes=[0], batch=0, oob=error>(%x, %t) : f32[count]
        return \"y\" = %y }";
    assert_eq!(floats(run(graph, &[f32s(&[5], &[0.0, 2.0, 0.0, -1.0, 0.0])])), [2.0, -1.0]);
}

#[test]
fn scans_carry_and_stack() {
    let graph = "(%x: f32[n]) {
        %z = constant<value=f32[] [0.0]>()
        %r = scan<body=graph \"b\"(%c: f32[], %x: f32[]) { %s = add(%c, %x) %d = mul(%s, %s) return \"c\" = %s, \"y\" = %d },
            carried=1, scanned=1, length=n, reverse=true>(%z, %x)
        return \"y\" = %r.1, \"sum\" = %r.0 }";
    assert_eq!(floats(run(graph, &[f32s(&[3], &[1.0, 2.0, 3.0])])), [36.0, 25.0, 9.0]);
}

#[test]
fn loops_stop_at_their_condition_or_bound() {
    let graph = "(%m: i64[], %x: f32[]) { symbol k: min=0
        %t = constant<value=bool[] [true]>()
        %r = while<body=graph \"b\"(%i: i64[], %v: f32[], %ten: f32[]) {
              %s = add(%v, %v) %c = lt(%s, %ten) return \"c\" = %c, \"v\" = %s, \"y\" = %v },
            carried=1, count=k, results=[f32[], f32[k]]>(%m, %t, %x, %ten0)
        return \"y\" = %r.1 }"
        .replace("%t = const", "%ten0 = constant<value=f32[] [10.0]>() %t = const");
    let doubled = |most: i64| floats(run(&graph, &[Literal::scalar(most), Literal::scalar(1f32)]));
    assert_eq!(doubled(-1), [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(doubled(2), [1.0, 2.0]);
    assert_eq!(doubled(0), [0f32; 0]);
}

#[test]
fn branches_may_differ_in_size() {
    let graph = "(%c: bool[], %x: f32[4]) { symbol k: min=0
        %y = if<then_branch=graph \"t\"(%x: f32[4]) { %y = slice<starts=[0], sizes=[2], steps=[1]>(%x) return \"y\" = %y },
            else_branch=graph \"e\"(%x: f32[4]) { return \"y\" = %x }, results=[f32[k]]>(%c, %x)
        %z = add(%y, %y) : f32[k]
        return \"z\" = %z }";
    let x = f32s(&[4], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(floats(run(graph, &[Literal::scalar(true), x.clone()])), [2.0, 4.0]);
    assert_eq!(floats(run(graph, &[Literal::scalar(false), x])), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn wide_precision_does_not_round() {
    let graph = text::parse("rlx 1 graph \"g\"(%x: f16[]) { %y = exp(%x) return \"y\" = %y }").unwrap();
    let options = EvalOptions { precision: Precision::Wide, ..EvalOptions::default() };
    let y = Oracle::new(&graph, options).unwrap().run(&[Literal::scalar(half::f16::ONE)]).unwrap();
    let y = y[0].to_vec::<f64>().unwrap()[0];
    assert!((y - std::f64::consts::E).abs() < 1e-15, "{y:?}");
}

#[test]
fn wrong_uses_are_errors_that_say_what_where_expected_and_found() {
    let add = "(%x: f32[n], %y: f32[n]) { %z = add(%x, %y) return \"z\" = %z }";
    let (four, three) = (f32s(&[4], &[0.0; 4]), f32s(&[3], &[0.0; 3]));
    let message = |r: Result<Vec<Literal>, EvalError>| r.unwrap_err().to_string();
    assert_eq!(
        message(run(add, &[four.clone(), three.clone()])),
        "input \"y\": expected f32[n], found f32[3]: symbol `n` is 4 and cannot be 3 as well"
    );
    assert_eq!(message(run(add, std::slice::from_ref(&four))), "input \"y\" (f32[n]) is not set");
    assert_eq!(
        message(run(add, &[four.clone(), Literal::vector(&[1i32; 4])])),
        "input \"y\": expected f32[n], found i32[4]"
    );
    let take = "(%x: f32[n], %i: i64[k, 1]) { %y = gather<axes=[0], batch=0, oob=error>(%x, %i) @[\"pick\"] return \"y\" = %y }";
    let index = Literal::from_slice([1, 1], &[4i64]).unwrap();
    assert_eq!(
        message(run(take, &[four.clone(), index])),
        "gather (node \"pick\"): index 4 is out of range for axis 0 of size 4"
    );
    let div = "(%x: i32[], %y: i32[]) { %z = div(%x, %y) return \"z\" = %z }";
    assert_eq!(message(run(div, &[Literal::scalar(1), Literal::scalar(0)])), "div: integer division by zero");
    let sums = "(%x: f32[n], %y: f32[m]) { %z = add(%x, %y) return \"z\" = %z }";
    assert!(message(run(sums, &[four, three])).contains("add: C2: sizes differ"));
}

#[test]
fn what_does_not_fit_in_memory_is_an_error() {
    let graph = "(%n: i64[]) { symbol n: min=0
        %m = bind_dim<symbol=n, min=0>(%n)
        %y = iota<ty=f32[n], axis=0, start=0.0, step=1.0>()
        return \"y\" = %y }";
    let error = run(graph, &[Literal::scalar(1i64 << 40)]).unwrap_err().to_string();
    assert!(error.contains("bytes are needed"), "{error}");
}

#[test]
fn inputs_by_name() {
    let graph = text::parse("rlx 1 graph \"g\"(%x: f32[]) { return \"y\" = %x }").unwrap();
    let oracle = Oracle::new(&graph, EvalOptions::default()).unwrap();
    let one = ("x".to_string(), Literal::scalar(1f32));
    assert_eq!(oracle.run_named(std::slice::from_ref(&one)).unwrap()[0].0, "y");
    let error = oracle.run_named(&[one, ("z".into(), Literal::scalar(1f32))]).unwrap_err();
    assert_eq!(error.to_string(), "there is no input \"z\"; the inputs are [\"x\"]");
}

#[test]
fn empty_tensors_with_huge_other_sizes_are_errors_or_quick() {
    let graph = "(%x: f32[a, b, c]) { %y = cum_sum<axis=1>(%x) return \"y\" = %y }";
    let run_dims =
        |dims: [usize; 3]| run(graph, &[Literal::new(rlx_ir::DType::F32, dims, Vec::new()).unwrap()]);
    assert!(run_dims([0, 1 << 40, 1 << 40]).is_err());
    assert_eq!(run_dims([1 << 20, 0, 1 << 20]).unwrap()[0].dims(), [1 << 20, 0, 1 << 20]);
}

#[test]
fn rows_of_block_formats_are_moved_whole() {
    use rlx_ir::{BlockFormat, DType};
    let block = |n: u8| std::iter::repeat_n(n, BlockFormat::Q8_0.block_bytes());
    let bytes: Vec<u8> = [1u8, 2, 3, 4].into_iter().flat_map(block).collect();
    let x = Literal::new(DType::Block(BlockFormat::Q8_0), [2, 2, 32], bytes).unwrap();
    let first =
        |y: &Literal| y.bytes().chunks(BlockFormat::Q8_0.block_bytes()).map(|c| c[0]).collect::<Vec<_>>();
    for (op, expected) in [
        ("transpose<perm=[1, 0, 2]>", vec![1, 3, 2, 4]),
        ("slice<starts=[1, 0, 0], sizes=[1, 2, 32], steps=[1, 1, 1]>", vec![3, 4]),
        ("reverse<axes=[0]>", vec![3, 4, 1, 2]),
        ("reshape<dims=[4, 32]>", vec![1, 2, 3, 4]),
    ] {
        let graph = format!("(%x: q8_0[2, 2, 32]) {{ %y = {op}(%x) return \"y\" = %y }}");
        assert_eq!(first(&run(&graph, std::slice::from_ref(&x)).unwrap()[0]), expected, "{op}");
    }
    let gather = "(%x: q8_0[2, 2, 32], %i: i64[k, 1]) {
        %y = gather<axes=[0], batch=0, oob=error>(%x, %i) return \"y\" = %y }";
    let picked = run(gather, &[x.clone(), Literal::from_slice([3, 1], &[1i64, 0, 1]).unwrap()]).unwrap();
    assert_eq!(first(&picked[0]), [3, 4, 1, 2, 3, 4]);
    let joined = "(%x: q8_0[2, 2, 32]) { %y = concat<axis=1>(%x, %x) return \"y\" = %y }";
    assert_eq!(first(&run(joined, &[x]).unwrap()[0]), [1, 2, 1, 2, 3, 4, 3, 4]);
    for op in ["transpose<perm=[2, 1, 0]>", "reverse<axes=[2]>", "reshape<dims=[128]>"] {
        let text = format!("rlx 1 graph \"g\"(%x: q8_0[2, 2, 32]) {{ %y = {op}(%x) return \"y\" = %y }}");
        let error = text::parse(&text).unwrap_err().to_string();
        assert!(error.contains("CB: rows of block formats stay whole"), "{op}: {error}");
    }
}
