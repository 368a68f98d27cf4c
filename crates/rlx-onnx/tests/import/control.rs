//! Control flow, sequences and optionals.

use rlx_ir::{Literal, verify};
use rlx_onnx::proto::*;
use rlx_onnx::{Assumption, ImportError, ImportOptions, import};

use crate::models::*;

fn choose(then_branch: GraphProto, else_branch: GraphProto, outputs: &[&str]) -> NodeProto {
    with(
        with(node("If", "choose", &["c"], outputs), subgraph("then_branch", then_branch)),
        subgraph("else_branch", else_branch),
    )
}

fn condition() -> ValueInfoProto {
    value("c", DataType::Bool, &[])
}

fn branch(nodes: Vec<NodeProto>) -> GraphProto {
    graph(nodes, vec![], &["r"])
}

fn run(imported: &rlx_onnx::Imported, inputs: &[Literal]) -> Vec<Literal> {
    assert_eq!(verify(&imported.graph), Ok(()));
    rlx_eval::evaluate(&imported.graph, inputs).unwrap()
}

#[test]
fn branches_see_values_from_outside() {
    let then_branch = branch(vec![node("Add", "add", &["x", "w"], &["r"])]);
    let else_branch = branch(vec![node("Sub", "sub", &["y", "x"], &["r"])]);
    let inputs = vec![condition(), f32s("x", &["n"]), f32s("y", &["n"])];
    let mut g = graph(vec![choose(then_branch, else_branch, &["z"])], inputs, &["z"]);
    g.initializer = vec![f32_tensor("w", &[1], &[10.0])];
    let imported = imported(g).unwrap();
    let (x, y) = (Literal::vector(&[1.0f32, 2.0]), Literal::vector(&[5.0f32, 7.0]));
    for (c, expected) in [(true, [11.0f32, 12.0]), (false, [4.0, 5.0])] {
        let z = run(&imported, &[Literal::scalar(c), x.clone(), y.clone()]);
        assert_eq!(z[0].to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn a_constant_condition_takes_its_branch() {
    // The condition is computed from a shape: the rank, which is known.
    let nodes = vec![
        node("Shape", "shape", &["x"], &["s"]),
        node("Size", "size", &["s"], &["rank"]),
        node("Equal", "equal", &["rank", "two"], &["c"]),
        choose(
            branch(vec![node("Neg", "neg", &["x"], &["r"])]),
            branch(vec![node("Exp", "exp", &["x"], &["r"])]),
            &["y"],
        ),
    ];
    let mut g = graph(nodes, vec![f32s("x", &["n", "m"])], &["y"]);
    g.initializer = vec![i64_tensor("two", &[], &[2])];
    assert_eq!(operations(&imported(g).unwrap()), ["input", "neg"]);
}

#[test]
fn branches_of_different_sizes_give_a_size_that_is_found_when_it_runs() {
    let flat = branch(vec![node("Reshape", "flat", &["x", "open"], &["r"])]);
    let first = branch(vec![node("Slice", "first", &["f", "zero", "one"], &["r"])]);
    let nodes = vec![node("Reshape", "outer", &["x", "open"], &["f"]), choose(flat, first, &["y"])];
    let mut g = graph(nodes, vec![condition(), f32s("x", &["2", "n"])], &["y"]);
    g.initializer =
        vec![i64_tensor("open", &[1], &[-1]), i64_tensor("zero", &[1], &[0]), i64_tensor("one", &[1], &[1])];
    let imported = imported(g).unwrap();
    let x = Literal::from_slice([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!(run(&imported, &[Literal::scalar(true), x.clone()])[0].dims(), [4]);
    assert_eq!(run(&imported, &[Literal::scalar(false), x])[0].dims(), [1]);
}

#[test]
fn branches_of_different_ranks_need_the_condition() {
    let flat = branch(vec![node("Reshape", "flat", &["x", "open"], &["r"])]);
    let same = branch(vec![node("Neg", "neg", &["x"], &["r"])]);
    let mut g = graph(vec![choose(flat, same, &["y"])], vec![condition(), f32s("x", &["2", "n"])], &["y"]);
    g.initializer = vec![i64_tensor("open", &[1], &[-1])];
    let file = file(&model(g));
    let error = import(&file, &ImportOptions::default()).unwrap_err();
    assert_eq!(error.needs_pinned(), Some(["c".to_owned()].as_slice()), "{error}");
    let mut options = ImportOptions::default();
    options.pinned.insert("c".into(), Literal::scalar(true).into());
    assert!(import(&file, &options).is_ok());
}

#[test]
fn sequences_of_one_length_pass_through_branches() {
    let pair = |op: &str| {
        branch(vec![
            node(op, "change", &["x"], &["v"]),
            node("SequenceConstruct", "pair", &["v", "x"], &["r"]),
        ])
    };
    let nodes = vec![
        choose(pair("Neg"), pair("Exp"), &["s"]),
        with(node("ConcatFromSequence", "join", &["s"], &["y"]), int("axis", 0)),
    ];
    let imported = imported(graph(nodes, vec![condition(), f32s("x", &["n"])], &["y"])).unwrap();
    let y = run(&imported, &[Literal::scalar(true), Literal::vector(&[2.0f32])]);
    assert_eq!(y[0].to_vec::<f32>().unwrap(), [-2.0, 2.0]);
}

/// next = carried + step (from outside); each carried value is stacked.
fn summing_body(condition: NodeProto) -> GraphProto {
    let nodes = vec![
        condition,
        node("Add", "add", &["carried", "step"], &["next"]),
        node("Identity", "copy", &["next"], &["stacked"]),
    ];
    let inputs =
        vec![value("i", DataType::Int64, &[]), value("go", DataType::Bool, &[]), f32s("carried", &["2"])];
    graph(nodes, inputs, &["go_on", "next", "stacked"])
}

fn loop_model(body: GraphProto, inputs: Vec<ValueInfoProto>) -> GraphProto {
    let node = with(node("Loop", "loop", &["trips", "", "x"], &["last", "all"]), subgraph("body", body));
    graph(vec![node], inputs, &["last", "all"])
}

fn loop_inputs() -> Vec<ValueInfoProto> {
    vec![value("trips", DataType::Int64, &[]), f32s("x", &["2"]), f32s("step", &["2"])]
}

#[test]
fn a_loop_that_runs_its_count_is_a_scan() {
    let body = summing_body(node("Identity", "same", &["go"], &["go_on"]));
    let imported = imported(loop_model(body, loop_inputs())).unwrap();
    assert!(operations(&imported).contains(&"scan"));
    let (x, step) = (Literal::vector(&[0.0f32, 1.0]), Literal::vector(&[1.0f32, 2.0]));
    let results = run(&imported, &[Literal::scalar(3i64), x, step]);
    assert_eq!(results[0].to_vec::<f32>().unwrap(), [3.0, 7.0]);
    assert_eq!(results[1].dims(), [3, 2]);
    assert_eq!(results[1].to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 5.0, 3.0, 7.0]);
}

#[test]
fn a_loop_that_its_body_ends_is_a_while() {
    // Goes on while the trip's number is below 1: two trips of ten.
    let mut body = summing_body(node("Less", "less", &["i", "one"], &["go_on"]));
    body.initializer = vec![i64_tensor("one", &[], &[1])];
    let imported = imported(loop_model(body, loop_inputs())).unwrap();
    assert!(operations(&imported).contains(&"while"));
    let (x, step) = (Literal::vector(&[0.0f32, 1.0]), Literal::vector(&[1.0f32, 2.0]));
    let results = run(&imported, &[Literal::scalar(10i64), x, step]);
    assert_eq!(results[0].to_vec::<f32>().unwrap(), [2.0, 5.0]);
    assert_eq!(results[1].dims(), [2, 2]);
}

/// next = carried ++ step, along the first axis: it grows.
fn growing_body() -> GraphProto {
    let nodes = vec![
        node("Identity", "same", &["go"], &["go_on"]),
        with(node("Concat", "grow", &["carried", "step"], &["next"]), int("axis", 0)),
    ];
    let inputs =
        vec![value("i", DataType::Int64, &[]), value("go", DataType::Bool, &[]), f32s("carried", &["?"])];
    graph(nodes, inputs, &["go_on", "next"])
}

#[test]
fn a_loop_whose_value_grows_is_unrolled_if_its_trips_are_known() {
    let node = with(node("Loop", "loop", &["trips", "", "x"], &["last"]), subgraph("body", growing_body()));
    let file = file(&model(graph(vec![node], loop_inputs(), &["last"])));
    let error = import(&file, &ImportOptions::default()).unwrap_err();
    assert_eq!(error.needs_pinned(), Some(["trips".to_owned()].as_slice()), "{error}");
    let mut options = ImportOptions::default();
    options.pinned.insert("trips".into(), Literal::scalar(3i64).into());
    let imported = import(&file, &options).unwrap();
    assert_eq!(imported.graph.output_types().next().unwrap().1.to_string(), "f32[8]");
    options.limits.max_unrolled_trips = 2;
    assert!(matches!(import(&file, &options), Err(ImportError::Node { .. })));
}

#[test]
fn a_branch_inside_a_loop_sees_both_scopes() {
    // Adds `step` in even trips, takes it away in odd ones.
    let nodes = vec![
        node("Identity", "same", &["go"], &["go_on"]),
        node("Mod", "parity", &["i", "two"], &["odd"]),
        with(node("Cast", "cast", &["odd"], &["c"]), int("to", DataType::Bool as i64)),
        choose(
            branch(vec![node("Sub", "sub", &["carried", "step"], &["r"])]),
            branch(vec![node("Add", "add", &["carried", "step"], &["r"])]),
            &["next"],
        ),
    ];
    let inputs =
        vec![value("i", DataType::Int64, &[]), value("go", DataType::Bool, &[]), f32s("carried", &["2"])];
    let mut body = graph(nodes, inputs, &["go_on", "next"]);
    body.initializer = vec![i64_tensor("two", &[], &[2])];
    let node = with(node("Loop", "loop", &["trips", "", "x"], &["last"]), subgraph("body", body));
    let imported = imported(graph(vec![node], loop_inputs(), &["last"])).unwrap();
    let (x, step) = (Literal::vector(&[0.0f32, 1.0]), Literal::vector(&[1.0f32, 2.0]));
    let last = run(&imported, &[Literal::scalar(3i64), x, step]);
    assert_eq!(last[0].to_vec::<f32>().unwrap(), [1.0, 3.0]);
}

#[test]
fn an_optional_output_that_is_left_out_reads_as_nothing() {
    let nodes = vec![node("OptionalHasElement", "has", &[""], &["y"])];
    let imported = imported(graph(nodes, vec![f32s("x", &["n"])], &["y"])).unwrap();
    let y = run(&imported, &[Literal::vector(&[1.0f32])]);
    assert_eq!(y[0].to_vec::<bool>().unwrap(), [false]);
}

/// As exporters write `x.squeeze(1)`: the axis goes if its size, which is open, is 1.
fn squeeze_model() -> ModelProto {
    let nodes = vec![
        node("Shape", "shape", &["x"], &["s"]),
        node("Gather", "size", &["s", "one"], &["n"]),
        node("Equal", "is_one", &["n", "one"], &["c"]),
        choose(
            branch(vec![node("Squeeze", "squeeze", &["x", "axes"], &["r"])]),
            branch(vec![node("Identity", "same", &["x"], &["r"])]),
            &["y"],
        ),
    ];
    let mut g = graph(nodes, vec![f32s("x", &["2", "n"])], &["y"]);
    g.initializer = vec![i64_tensor("one", &[], &[1]), i64_tensor("axes", &[1], &[1])];
    model(g)
}

#[test]
fn a_branch_is_assumed_where_open_sizes_decide_the_rank_and_checked_when_it_runs() {
    let file = file(&squeeze_model());
    let (one, three) = (
        Literal::from_slice([2, 1], &[1.0f32, 2.0]).unwrap(),
        Literal::from_slice([2, 3], &[1.0f32; 6]).unwrap(),
    );
    let mut options = ImportOptions::default();
    let squeezed = import(&file, &options).unwrap();
    assert_eq!(squeezed.assumptions, [Assumption { node: "choose".into(), condition: true }]);
    assert_eq!(run(&squeezed, std::slice::from_ref(&one))[0].dims(), [2]);
    assert!(rlx_eval::evaluate(&squeezed.graph, std::slice::from_ref(&three)).is_err());

    options.assumed.insert("choose".into(), false);
    let kept = import(&file, &options).unwrap();
    assert_eq!(run(&kept, &[three])[0].dims(), [2, 3]);
    assert!(rlx_eval::evaluate(&kept.graph, &[one]).is_err());
}
