//! Models that ask for what they do not back: each gives a graph or a typed error, soon and within little memory.

use bytes::Bytes;
use rlx_onnx::load::{LoadOptions, from_bytes};
use rlx_onnx::proto::*;
use rlx_onnx::{ImportOptions, import};

use crate::models::*;

const EVERY_TYPE: &[u8] = include_bytes!("../data/every_type.onnx");
const PYTORCH_OPERATOR: &[u8] = include_bytes!("../data/pytorch_operator.onnx");

#[test]
fn a_changed_byte_gives_a_graph_or_an_error() {
    for model in [EVERY_TYPE, PYTORCH_OPERATOR] {
        for position in 0..model.len() {
            let mut bytes = model.to_vec();
            bytes[position] ^= 0x01;
            if let Ok(file) = from_bytes(Bytes::from(bytes), &LoadOptions::default()) {
                // What it gives does not matter, only that it gives something.
                let _ = import(&file, &ImportOptions::default());
            }
        }
    }
}

#[test]
fn lists_that_are_only_declared_are_not_walked() {
    let long = ["1000000000000"];
    for op in ["Reshape", "Expand", "Tile", "Pad"] {
        let inputs = vec![f32s("x", &["2"]), value("s", DataType::Int64, &long)];
        assert!(imported(graph(vec![node(op, "n", &["x", "s"], &["y"])], inputs, &["y"])).is_err(), "{op}");
    }
    let inputs =
        vec![f32s("x", &["2"]), value("s", DataType::Int64, &long), value("e", DataType::Int64, &long)];
    assert!(imported(graph(vec![node("Slice", "n", &["x", "s", "e"], &["y"])], inputs, &["y"])).is_err());
}

#[test]
fn counts_in_attributes_allocate_nothing() {
    let split = with(node("Split", "n", &["x"], &["y", "z"]), int("num_outputs", 1 << 62));
    assert!(imported(graph(vec![split], vec![f32s("x", &["4"])], &["y"])).is_err());
    let sequence =
        vec![node("SplitToSequence", "n", &["x"], &["s"]), node("SequenceLength", "length", &["s"], &["y"])];
    assert!(imported(graph(sequence, vec![f32s("x", &["1000000000000"])], &["y"])).is_err());
}

#[test]
fn constants_of_any_size_are_not_computed_at_import() {
    let mut g = graph(
        vec![node("ConstantOfShape", "fill", &["s"], &["f"]), node("Neg", "neg", &["f"], &["y"])],
        vec![],
        &["y"],
    );
    g.initializer = vec![i64_tensor("s", &[2], &[1 << 30, 1 << 30])];
    let imported = imported(g).unwrap();
    assert_eq!(imported.graph.output_types().next().unwrap().1.to_string(), "f32[1073741824, 1073741824]");
}

#[test]
fn a_stride_of_zero_is_refused() {
    let inputs = || vec![f32s("x", &["1", "1", "8"]), f32s("w", &["1", "1", "3"])];
    let conv = with(node("Conv", "conv", &["x", "w"], &["y"]), ints("strides", &[0]));
    let error = imported(graph(vec![conv], inputs(), &["y"])).unwrap_err().to_string();
    assert!(error.contains("conv"), "{error}");
    let pool = with(node("MaxPool", "pool", &["x"], &["y"]), ints("kernel_shape", &[2]));
    let pool = with(pool, ints("strides", &[0]));
    let error = imported(graph(vec![pool], inputs(), &["y"])).unwrap_err().to_string();
    assert!(error.contains("pool"), "{error}");
}

#[test]
fn sizes_and_indices_that_only_running_shows_are_errors_then() {
    let run = |g: GraphProto, inputs: &[rlx_ir::Literal]| {
        rlx_eval::evaluate(&imported(g).unwrap().graph, inputs).unwrap_err().to_string()
    };
    let scalar = rlx_ir::Literal::scalar::<i64>;
    let take = graph(
        vec![node("Gather", "take", &["x", "i"], &["y"])],
        vec![f32s("x", &["n"]), value("i", DataType::Int64, &["k"])],
        &["y"],
    );
    let error = run(take, &[rlx_ir::Literal::vector(&[1f32; 4]), rlx_ir::Literal::vector(&[4i64])]);
    assert!(error.contains("take") && error.contains("index 4 is out of range"), "{error}");
    let bounds = ["from", "to", "by"].map(|name| value(name, DataType::Int64, &[]));
    let range =
        || graph(vec![node("Range", "range", &["from", "to", "by"], &["y"])], bounds.to_vec(), &["y"]);
    let error = run(range(), &[scalar(0), scalar(1 << 40), scalar(1)]);
    assert!(error.contains("bytes are needed"), "{error}");
    let error = run(range(), &[scalar(0), scalar(5), scalar(0)]);
    assert!(error.contains("range"), "{error}");
    let expand = graph(
        vec![node("Expand", "grow", &["x", "s"], &["y"])],
        vec![f32s("x", &["1"]), value("s", DataType::Int64, &["1"])],
        &["y"],
    );
    let error = run(expand, &[rlx_ir::Literal::vector(&[1f32]), rlx_ir::Literal::vector(&[1i64 << 40])]);
    assert!(error.contains("bytes are needed"), "{error}");
}
