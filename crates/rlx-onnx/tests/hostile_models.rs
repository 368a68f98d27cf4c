//! Model files that must be refused with a typed error.

use bytes::Bytes;
use prost::Message;
use rlx_onnx::load::{FileMessage, from_bytes, message_from_bytes, tensor_from_bytes};
use rlx_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, OptionalProto, SequenceProto,
    TensorProto,
};
use rlx_onnx::{LoadError, LoadOptions, ScanError, WireProblem};

const EVERY_TYPE: &[u8] = include_bytes!("data/every_type.onnx");
const PYTORCH_OPERATOR: &[u8] = include_bytes!("data/pytorch_operator.onnx");

fn load(bytes: &[u8]) -> Result<rlx_onnx::ModelFile, LoadError> {
    from_bytes(Bytes::copy_from_slice(bytes), &LoadOptions::default())
}

/// Where and why a message is malformed.
fn malformed<M: FileMessage>(bytes: &[u8]) -> (usize, &'static str, WireProblem) {
    match message_from_bytes::<M>(Bytes::copy_from_slice(bytes), &LoadOptions::default()) {
        Err(LoadError::Scan(ScanError::Malformed { offset, message, problem })) => (offset, message, problem),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the message loads"),
    }
}

fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(13),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(25) }],
        ..ModelProto::default()
    }
}

fn load_model(graph: GraphProto, options: &LoadOptions) -> Result<rlx_onnx::ModelFile, LoadError> {
    from_bytes(Bytes::from(model(graph).encode_to_vec()), options)
}

#[test]
fn real_models_load_and_every_cut_of_them_is_refused() {
    for whole in [EVERY_TYPE, PYTORCH_OPERATOR] {
        assert!(load(whole).unwrap().node_count() > 0);
        for length in 0..whole.len() {
            assert!(load(&whole[..length]).is_err(), "cut to {length} of {} bytes", whole.len());
        }
    }
}

#[test]
fn every_changed_byte_gives_a_model_or_an_error() {
    for position in 0..EVERY_TYPE.len() {
        for flipped in [0x01, 0x80, 0xff] {
            let mut bytes = EVERY_TYPE.to_vec();
            bytes[position] ^= flipped;
            let Ok(model) = load(&bytes) else { continue };
            for tensor in &model.model().graph.as_ref().unwrap().initializer {
                let _ = model.tensor(tensor);
            }
        }
    }
}

#[test]
fn empty_file_and_absent_parts_are_named() {
    assert!(matches!(load(b""), Err(LoadError::Missing { field: "graph" })));
    let mut parts = model(GraphProto::default());
    parts.opset_import.clear();
    assert!(matches!(load(&parts.encode_to_vec()), Err(LoadError::Missing { field: "opset_import" })));
}

#[test]
fn overlong_varints_are_refused_as_key_value_length_and_packed_element() {
    let overlong = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    let problem = WireProblem::OverlongVarint;
    assert_eq!(malformed::<ModelProto>(&overlong), (0, "ModelProto", problem));
    let after = |prefix: &[u8]| [prefix, overlong.as_slice()].concat();
    assert_eq!(malformed::<ModelProto>(&after(&[0x08])), (1, "ModelProto", problem));
    assert_eq!(malformed::<ModelProto>(&after(&[0x3a])), (1, "ModelProto", problem));
    assert_eq!(malformed::<TensorProto>(&after(&[0x3a, 12, 0x05])), (3, "TensorProto", problem));
}

#[test]
fn lengths_beyond_the_enclosing_message_are_refused() {
    // A graph of 4 bytes with a name that claims 3 of the 2 bytes left.
    let bytes = [0x3a, 0x04, 0x12, 0x03, b'a', b'b', 0x08, 0x01];
    let problem = WireProblem::LengthPastEnd { length: 3, left: 2 };
    assert_eq!(malformed::<ModelProto>(&bytes), (2, "GraphProto", problem));
    let mut longest = vec![0x3a];
    prost::encoding::encode_varint(u64::MAX, &mut longest);
    let problem = WireProblem::LengthPastEnd { length: u64::MAX, left: 0 };
    assert_eq!(malformed::<ModelProto>(&longest), (0, "ModelProto", problem));
}

#[test]
fn wrong_wire_types_groups_and_field_numbers_are_refused() {
    let wire_type = |field, found| WireProblem::FieldWireType { field, found };
    assert_eq!(malformed::<ModelProto>(&[0x38, 0x00]).2, wire_type("graph", 0));
    assert_eq!(malformed::<ModelProto>(&[0x0a, 0x00]).2, wire_type("ir_version", 2));
    assert_eq!(malformed::<ModelProto>(&[0x9b, 0x06]).2, WireProblem::WireType(3));
    assert_eq!(malformed::<ModelProto>(&[0x9f, 0x06]).2, WireProblem::WireType(7));
    assert_eq!(malformed::<ModelProto>(&[0x00, 0x00]).2, WireProblem::FieldNumber(0));
    let packed = WireProblem::PackedLength { field: "float_data", length: 3, width: 4 };
    assert_eq!(malformed::<TensorProto>(&[0x22, 0x03, 0, 0, 0]).2, packed);
}

#[test]
fn fields_that_occur_once_may_not_occur_twice() {
    let twice = [model(GraphProto::default()).encode_to_vec(), vec![0x3a, 0x00]].concat();
    assert_eq!(malformed::<ModelProto>(&twice).2, WireProblem::DuplicateField { field: "graph" });
    let raw = [0x4a, 0x01, 0x00, 0x4a, 0x01, 0x01];
    assert_eq!(malformed::<TensorProto>(&raw).2, WireProblem::DuplicateField { field: "raw_data" });
}

#[test]
fn unknown_fields_are_passed_over() {
    let mut bytes = model(GraphProto::default()).encode_to_vec();
    // Field 100, as a varint, eight bytes, bytes, and four bytes.
    bytes.extend([
        0xa0, 0x06, 0x05, 0xa1, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0xa2, 0x06, 0x01, 0x07, 0xa5, 0x06, 0, 0, 0, 0,
    ]);
    assert!(load(&bytes).is_ok());
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    assert!(matches!(
        tensor_from_bytes(Bytes::from_static(&[0x42, 0x01, 0xff]), &LoadOptions::default()),
        Err(LoadError::Decode(_))
    ));
}

/// A graph whose one node holds a graph, and so on, `levels` graphs in all.
fn nested_graphs(levels: usize) -> GraphProto {
    let mut graph = GraphProto::default();
    for _ in 1..levels {
        let body = AttributeProto { g: Some(Box::new(graph)), ..AttributeProto::default() };
        let node = NodeProto { attribute: vec![body], ..NodeProto::default() };
        graph = GraphProto { node: vec![node], ..GraphProto::default() };
    }
    graph
}

#[test]
fn nesting_is_refused_above_the_limit_and_not_below() {
    // Model, then graph, node, attribute by turns: the innermost of n graphs is at level 3·n − 1.
    let options = |max_depth| LoadOptions { max_depth, ..LoadOptions::default() };
    assert_eq!(load_model(nested_graphs(10), &options(29)).unwrap().node_count(), 9);
    assert!(matches!(
        load_model(nested_graphs(10), &options(28)),
        Err(LoadError::Scan(ScanError::TooDeep { limit: 28, .. }))
    ));
    assert!(load_model(nested_graphs(30), &LoadOptions::default()).is_ok());
    assert!(load_model(nested_graphs(31), &LoadOptions::default()).is_err());
    // The decoder's own limit ends it where the option allows more.
    assert!(matches!(load_model(nested_graphs(40), &options(1000)), Err(LoadError::Decode(_))));
}

/// One million messages, each the only field of the one around it.
fn deep<M: FileMessage>(key: u8) -> Result<M, LoadError> {
    let mut reversed: Vec<u8> = Vec::new();
    for _ in 0..1_000_000 {
        let mut length = Vec::new();
        prost::encoding::encode_varint(reversed.len() as u64, &mut length);
        reversed.extend(length.iter().rev());
        reversed.push(key);
    }
    reversed.reverse();
    message_from_bytes(Bytes::from(reversed), &LoadOptions::default())
}

#[test]
fn a_million_nested_messages_are_refused_without_recursion() {
    assert!(matches!(deep::<SequenceProto>(0x2a), Err(LoadError::Scan(ScanError::TooDeep { .. }))));
    assert!(matches!(deep::<OptionalProto>(0x3a), Err(LoadError::Scan(ScanError::TooDeep { .. }))));
}

#[test]
fn nodes_are_counted_in_all_graphs_and_functions() {
    let nodes = |count| vec![NodeProto::default(); count];
    let mut whole = model(nested_graphs(3));
    whole.graph.as_mut().unwrap().node.extend(nodes(2));
    whole.functions.push(rlx_onnx::proto::FunctionProto { node: nodes(3), ..Default::default() });
    let bytes = Bytes::from(whole.encode_to_vec());
    let options = |max_nodes| LoadOptions { max_nodes, ..LoadOptions::default() };
    assert_eq!(from_bytes(bytes.clone(), &options(7)).unwrap().node_count(), 7);
    assert!(matches!(
        from_bytes(bytes, &options(6)),
        Err(LoadError::Scan(ScanError::TooManyNodes { limit: 6 }))
    ));
}

#[test]
fn files_above_the_byte_limit_are_refused() {
    let options = LoadOptions { max_bytes: EVERY_TYPE.len() as u64 - 1, ..LoadOptions::default() };
    assert!(matches!(from_bytes(Bytes::from_static(EVERY_TYPE), &options), Err(LoadError::TooLarge { .. })));
}
