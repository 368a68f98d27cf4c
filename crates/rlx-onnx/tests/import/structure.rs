//! Order, names, functions, sizes, weights.

use bytes::Bytes;
use prost::Message;
use rlx_ir::op::{Op, Primitive};
use rlx_ir::{Literal, verify};
use rlx_onnx::load::{LoadOptions, from_bytes};
use rlx_onnx::proto::attribute_proto::AttributeType;
use rlx_onnx::proto::*;
use rlx_onnx::{ImportError, ImportLimits, ImportOptions, NodeProblem, import};

use crate::models::*;

#[test]
fn nodes_out_of_order_are_sorted() {
    let nodes = vec![node("Exp", "second", &["y"], &["z"]), node("Neg", "first", &["x"], &["y"])];
    let imported = imported(graph(nodes, vec![f32s("x", &["n"])], &["z"])).unwrap();
    assert_eq!(operations(&imported), ["input", "neg", "exp"]);
    assert_eq!(verify(&imported.graph), Ok(()));
}

#[test]
fn a_cycle_names_its_nodes() {
    let nodes = vec![node("Add", "a", &["x", "z"], &["y"]), node("Neg", "b", &["y"], &["z"])];
    let error = imported(graph(nodes, vec![f32s("x", &["n"])], &["z"])).unwrap_err();
    let ImportError::Cycle { nodes, .. } = error else { panic!("{error}") };
    assert_eq!(nodes, ["a", "b"]);
}

#[test]
fn a_cycle_through_a_subgraph_is_found() {
    let branch = |from: &str| graph(vec![node("Neg", "inner", &[from], &["r"])], vec![], &["r"]);
    let choose = with(
        with(node("If", "choose", &["c"], &["y"]), subgraph("then_branch", branch("z"))),
        subgraph("else_branch", branch("x")),
    );
    let nodes = vec![choose, node("Exp", "after", &["y"], &["z"])];
    let inputs = vec![value("c", DataType::Bool, &[]), f32s("x", &["n"])];
    assert!(matches!(imported(graph(nodes, inputs, &["z"])), Err(ImportError::Cycle { .. })));
}

#[test]
fn a_name_that_nothing_defines_is_told_with_its_reader() {
    let nodes = vec![node("Add", "sum", &["x", "gone"], &["y"])];
    let error = imported(graph(nodes, vec![f32s("x", &["n"])], &["y"])).unwrap_err();
    let ImportError::Undefined { reader, name } = error else { panic!("{error}") };
    assert_eq!((reader.as_str(), name.as_str()), ("node \"sum\"", "gone"));
}

#[test]
fn a_value_is_defined_once() {
    let twice = vec![node("Neg", "a", &["x"], &["y"]), node("Exp", "b", &["x"], &["y"])];
    let over_input = vec![node("Neg", "a", &["x"], &["x"])];
    for nodes in [twice, over_input] {
        let error = imported(graph(nodes, vec![f32s("x", &["n"])], &["x"])).unwrap_err();
        assert!(matches!(error, ImportError::Duplicate { .. }), "{error}");
    }
}

#[test]
fn all_missing_operators_are_told_at_once() {
    let branch = |op: &str| graph(vec![node(op, "inner", &["x"], &["r"])], vec![], &["r"]);
    let choose = with(
        with(node("If", "choose", &["c"], &["y"]), subgraph("then_branch", branch("Frobnicate"))),
        subgraph("else_branch", branch("Neg")),
    );
    let nodes =
        vec![choose, node("Transmogrify", "t1", &["x"], &["u"]), node("Transmogrify", "t2", &["u"], &["z"])];
    let inputs = vec![value("c", DataType::Bool, &[]), f32s("x", &["n"])];
    let error = imported(graph(nodes, inputs, &["z"])).unwrap_err();
    let ImportError::MissingOperators(missing) = error else { panic!("{error}") };
    let told: Vec<(&str, Vec<&str>)> =
        missing.iter().map(|m| (m.operator.as_str(), m.nodes.iter().map(String::as_str).collect())).collect();
    let inner = "choose/then_branch/inner";
    assert_eq!(told, [("Frobnicate", vec![inner]), ("Transmogrify", vec!["t1", "t2"])]);
}

#[test]
fn an_operator_set_that_is_too_new_is_refused() {
    let mut newer = model(graph(vec![node("Neg", "a", &["x"], &["y"])], vec![f32s("x", &["n"])], &["y"]));
    newer.opset_import = vec![opset("", 1000)];
    let error = import(&file(&newer), &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, ImportError::OpsetVersion { version: 1000, .. }), "{error}");
}

/// y = max(x, low) by a function whose bound is an attribute with a default.
fn clamp_function() -> FunctionProto {
    FunctionProto {
        name: Some("Clamp".into()),
        domain: Some("local".into()),
        input: vec!["v".into()],
        output: vec!["w".into()],
        attribute_proto: vec![float("low", -1.0)],
        node: vec![
            with(
                node("Constant", "bound", &[], &["b"]),
                reference("value_float", "low", AttributeType::Float),
            ),
            node("Max", "max", &["v", "b"], &["w"]),
        ],
        opset_import: vec![opset("", 21)],
        ..Default::default()
    }
}

fn calling(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> ModelProto {
    ModelProto { functions, ..model(graph(nodes, vec![f32s("x", &["3"])], &["y"])) }
}

fn call(op: &str, name: &str, input: &str, output: &str) -> NodeProto {
    NodeProto { domain: Some("local".into()), ..node(op, name, &[input], &[output]) }
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    let x = Literal::vector(&[-2.0f32, 0.25, 3.0]);
    let default = calling(vec![call("Clamp", "c", "x", "y")], vec![clamp_function()]);
    let given = calling(vec![with(call("Clamp", "c", "x", "y"), float("low", 0.5))], vec![clamp_function()]);
    for (model, expected) in [(default, [-1.0f32, 0.25, 3.0]), (given, [0.5, 0.5, 3.0])] {
        let imported = import(&file(&model), &ImportOptions::default()).unwrap();
        let y = rlx_eval::evaluate(&imported.graph, std::slice::from_ref(&x)).unwrap();
        assert_eq!(y[0].to_vec::<f32>().unwrap(), expected);
        let max = imported.graph.nodes().find(|(_, n)| n.op.name() == "max").unwrap().1;
        assert_eq!(max.locations.iter().collect::<Vec<_>>(), ["c/max"]);
    }
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let mut clamp = clamp_function();
    clamp.node.push(call("Clamp", "again", "w", "unused"));
    clamp.opset_import.push(opset("local", 1));
    let error =
        import(&file(&calling(vec![call("Clamp", "c", "x", "y")], vec![clamp])), &ImportOptions::default());
    assert!(matches!(error, Err(ImportError::Recursion { .. })), "{error:?}");
}

#[test]
fn functions_that_multiply_meet_the_limit_of_nodes() {
    // Each level calls the one below ten times: 10^12 nodes from a file of a few kilobytes.
    let level = |n: usize| FunctionProto {
        name: Some(format!("F{n}")),
        domain: Some("local".into()),
        input: vec!["v".into()],
        output: vec!["v10".into()],
        node: (0..10)
            .map(|i| {
                let (from, to) =
                    (if i == 0 { "v".to_owned() } else { format!("v{i}") }, format!("v{}", i + 1));
                match n {
                    0 => node("Neg", "", &[&from], &[&to]),
                    n => call(&format!("F{}", n - 1), "", &from, &to),
                }
            })
            .collect(),
        opset_import: vec![opset("", 21), opset("local", 1)],
        ..Default::default()
    };
    let model = calling(vec![call("F11", "top", "x", "y")], (0..12).map(level).collect());
    let limits = ImportLimits { max_nodes: 10_000, ..ImportLimits::default() };
    let error = import(&file(&model), &ImportOptions { limits, ..Default::default() });
    assert!(matches!(error, Err(ImportError::Limit { what: "nodes", .. })), "{error:?}");
}

#[test]
fn functions_too_deep_are_refused() {
    let level = |n: usize| FunctionProto {
        name: Some(format!("F{n}")),
        domain: Some("local".into()),
        input: vec!["v".into()],
        output: vec!["w".into()],
        node: vec![match n {
            0 => node("Neg", "", &["v"], &["w"]),
            n => call(&format!("F{}", n - 1), "", "v", "w"),
        }],
        opset_import: vec![opset("", 21), opset("local", 1)],
        ..Default::default()
    };
    let model = calling(vec![call("F99", "top", "x", "y")], (0..100).map(level).collect());
    let error = import(&file(&model), &ImportOptions::default());
    assert!(matches!(error, Err(ImportError::Limit { .. })), "{error:?}");
}

#[test]
fn computed_shapes_stay_symbolic() {
    // Shape → Gather → Concat → Reshape, as exporters write a flattening that keeps the batch.
    let nodes = vec![
        node("Shape", "shape", &["x"], &["s"]),
        node("Gather", "gather", &["s", "zero"], &["n"]),
        node("Unsqueeze", "unsqueeze", &["n", "axes"], &["n1"]),
        with(node("Concat", "concat", &["n1", "rest"], &["target"]), int("axis", 0)),
        node("Reshape", "reshape", &["x", "target"], &["y"]),
    ];
    let mut g = graph(nodes, vec![f32s("x", &["batch", "2", "3"])], &["y"]);
    g.initializer =
        vec![i64_tensor("zero", &[], &[0]), i64_tensor("axes", &[1], &[0]), i64_tensor("rest", &[1], &[-1])];
    let imported = imported(g).unwrap();
    let (_, t) = imported.graph.output_types().next().unwrap();
    assert_eq!(t.to_string(), "f32[batch, 6]");
    assert!(!operations(&imported).contains(&"bind_dim"));
}

#[test]
fn a_reshape_to_a_shape_from_outside_is_bound_when_it_runs() {
    let nodes = vec![node("Reshape", "reshape", &["x", "target"], &["y"])];
    let inputs = vec![f32s("x", &["2", "6"]), value("target", DataType::Int64, &["3"])];
    let imported = imported(graph(nodes, inputs, &["y"])).unwrap();
    let x = Literal::from_slice([2, 6], &[1.0f32; 12]).unwrap();
    let y = rlx_eval::evaluate(&imported.graph, &[x.clone(), Literal::vector(&[0i64, -1, 3])]).unwrap();
    assert_eq!(y[0].dims(), [2, 2, 3]);
    assert!(rlx_eval::evaluate(&imported.graph, &[x, Literal::vector(&[5i64, -1, 3])]).is_err());
}

#[test]
fn sizes_of_one_name_are_one_symbol_and_anonymous_ones_differ() {
    let inputs = vec![f32s("x", &["n", "?"]), f32s("y", &["n", "?"])];
    let imported = imported(graph(vec![node("Neg", "a", &["x"], &["z"])], inputs, &["z"])).unwrap();
    let types: Vec<_> = imported.graph.input_types().map(|(_, t)| t.clone()).collect();
    assert_eq!(types[0].dims()[0], types[1].dims()[0]);
    assert_ne!(types[0].dims()[1], types[1].dims()[1]);
}

#[test]
fn weights_share_the_bytes_of_the_file() {
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut g = graph(vec![node("Add", "a", &["x", "w"], &["y"])], vec![f32s("x", &["1000"])], &["y"]);
    g.initializer = vec![f32_tensor("w", &[1000], &values)];
    let bytes = Bytes::from(model(g).encode_to_vec());
    let place = bytes.as_ptr_range();
    let file = from_bytes(bytes.clone(), &LoadOptions::default()).unwrap();
    let imported = import(&file, &ImportOptions::default()).unwrap();
    let weights = imported.graph.nodes().find_map(|(_, node)| match &node.op {
        Op::Primitive(Primitive::Constant(c)) => Some(c.value.clone()),
        _ => None,
    });
    assert!(place.contains(&weights.unwrap().bytes().as_ptr()));
}

#[test]
fn an_initializer_gives_an_input_its_value_unless_it_is_pinned() {
    let mut g = graph(
        vec![node("Add", "a", &["x", "w"], &["y"])],
        vec![f32s("x", &["2"]), f32s("w", &["2"])],
        &["y"],
    );
    g.initializer = vec![f32_tensor("w", &[2], &[1.0, 2.0])];
    let file = file(&model(g));
    let mut options = ImportOptions::default();
    let x = Literal::vector(&[10.0f32, 10.0]);
    for (pinned, expected) in [(None, [11.0f32, 12.0]), (Some([5.0f32, 6.0]), [15.0, 16.0])] {
        if let Some(w) = pinned {
            options.pinned.insert("w".into(), Literal::vector(&w).into());
        }
        let imported = import(&file, &options).unwrap();
        assert_eq!(imported.graph.inputs().len(), 1);
        let y = rlx_eval::evaluate(&imported.graph, std::slice::from_ref(&x)).unwrap();
        assert_eq!(y[0].to_vec::<f32>().unwrap(), expected);
    }
    for wrong in [Literal::vector(&[1i64, 2]), Literal::vector(&[1.0f32, 2.0, 3.0]), Literal::scalar(1.0f32)]
    {
        options.pinned.insert("w".into(), wrong.into());
        assert!(matches!(import(&file, &options), Err(ImportError::Interface { what: "pinned input", .. })));
    }
    options.pinned.clear();
    options.pinned.insert("nothing".into(), Literal::scalar(1.0f32).into());
    assert!(matches!(import(&file, &options), Err(ImportError::Undefined { .. })));
}

#[test]
fn an_axis_from_outside_names_the_input_to_pin() {
    let nodes = vec![node("Neg", "neg", &["axes"], &["a"]), node("ReduceSum", "sum", &["x", "a"], &["y"])];
    let inputs = vec![f32s("x", &["2", "3"]), value("axes", DataType::Int64, &["1"])];
    let file = file(&model(graph(nodes, inputs, &["y"])));
    let error = import(&file, &ImportOptions::default()).unwrap_err();
    assert_eq!(error.needs_pinned(), Some(["axes".to_owned()].as_slice()), "{error}");
    let mut options = ImportOptions::default();
    options.pinned.insert("axes".into(), Literal::vector(&[-1i64]).into());
    let imported = import(&file, &options).unwrap();
    assert_eq!(imported.graph.output_types().next().unwrap().1.to_string(), "f32[2, 1]");
}

#[test]
fn attributes_that_are_missing_or_mistyped_are_told_with_the_node() {
    let problem = |node: NodeProto| match imported(graph(vec![node], vec![f32s("x", &["2"])], &["y"])) {
        Err(ImportError::Node { node, problem, .. }) => (node, *problem),
        other => panic!("{other:?}"),
    };
    let (name, missing) = problem(node("Concat", "joined", &["x", "x"], &["y"]));
    assert_eq!(name, "joined");
    assert!(matches!(missing, NodeProblem::MissingAttribute { name } if name == "axis"));
    let (_, mistyped) = problem(with(node("Concat", "joined", &["x", "x"], &["y"]), ints("axis", &[0])));
    assert!(matches!(mistyped, NodeProblem::AttributeType { name, .. } if name == "axis"));
    let (_, outside) = problem(with(node("Concat", "joined", &["x", "x"], &["y"]), int("axis", 3)));
    assert!(matches!(outside, NodeProblem::Axis { axis: 3, rank: 1 }));
}

#[test]
fn malformed_numbers_of_nodes_are_refused() {
    let refused = |node: NodeProto, constants: Vec<TensorProto>| {
        let mut g = graph(vec![node], vec![f32s("x", &["2", "3"])], &["y"]);
        g.initializer = constants;
        imported(g).unwrap_err().to_string()
    };
    let shape = |values: &[i64]| vec![i64_tensor("s", &[values.len() as i64], values)];
    let two_open = refused(node("Reshape", "r", &["x", "s"], &["y"]), shape(&[-1, -1]));
    assert!(two_open.contains("at most one"), "{two_open}");
    let huge = refused(node("Expand", "e", &["x", "s"], &["y"]), shape(&[1 << 40, 1 << 40, 2, 3]));
    assert!(huge.contains("63 bits"), "{huge}");
    let mut constants = shape(&[0]);
    constants.extend([i64_tensor("e", &[1], &[2]), i64_tensor("a", &[1], &[0]), i64_tensor("t", &[1], &[0])]);
    let still = refused(node("Slice", "s0", &["x", "s", "e", "a", "t"], &["y"]), constants);
    assert!(still.contains("step"), "{still}");
}

#[test]
fn the_deepest_nesting_allowed_fits_a_small_stack() {
    // Functions whose only node is an If in whose branch the next one is called: two levels each, in the 2 MiB of a
    // test's thread.
    let level = |n: usize| {
        let branch =
            |inner: NodeProto| GraphProto { name: Some("b".into()), ..graph(vec![inner], vec![], &["r"]) };
        let inner = match n {
            0 => node("Neg", "", &["v"], &["r"]),
            n => NodeProto {
                input: vec!["v".into(), "c".into()],
                ..call(&format!("F{}", n - 1), "", "v", "r")
            },
        };
        let choose = with(
            with(node("If", "", &["c"], &["w"]), subgraph("then_branch", branch(inner))),
            subgraph("else_branch", branch(node("Exp", "", &["v"], &["r"]))),
        );
        FunctionProto {
            name: Some(format!("F{n}")),
            domain: Some("local".into()),
            input: vec!["v".into(), "c".into()],
            output: vec!["w".into()],
            node: vec![choose],
            opset_import: vec![opset("", 21), opset("local", 1)],
            ..Default::default()
        }
    };
    let top = NodeProto { input: vec!["x".into(), "c".into()], ..call("F30", "top", "x", "y") };
    let inputs = vec![f32s("x", &["3"]), value("c", DataType::Bool, &[])];
    let model =
        ModelProto { functions: (0..31).map(level).collect(), ..model(graph(vec![top], inputs, &["y"])) };
    let imported = import(&file(&model), &ImportOptions::default()).unwrap();
    assert_eq!(verify(&imported.graph), Ok(()));
}
