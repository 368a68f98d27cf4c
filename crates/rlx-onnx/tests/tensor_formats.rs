//! Every element type, from every place that a tensor may keep its elements in.

use bytes::Bytes;
use prost::Message;
use rlx_onnx::LoadOptions;
use rlx_onnx::load::{from_bytes, tensor_from_bytes};
use rlx_onnx::proto::{DataType, PackedValues, Segment, SparseTensorProto, TensorProto};
use rlx_onnx::sparse::SparseProblem;
use rlx_onnx::tensor::{RawTensor, TensorData, TensorError, TensorProblem, decode};

const EVERY_TYPE: &[u8] = include_bytes!("data/every_type.onnx");

fn tensor(data_type: DataType, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: Some("weights".to_owned()),
        data_type: Some(data_type as i32),
        dims: dims.to_vec(),
        ..TensorProto::default()
    }
}

fn read(tensor: &TensorProto) -> Result<RawTensor, TensorError> {
    decode(tensor, &rlx_onnx::external::ExternalFiles::none())
}

fn problem(tensor: &TensorProto) -> TensorProblem {
    let error = read(tensor).expect_err("the tensor is malformed");
    assert_eq!(error.tensor, "weights");
    error.problem
}

fn bytes(tensor: &RawTensor) -> &Bytes {
    match &tensor.data {
        TensorData::Bytes(bytes) => bytes,
        TensorData::Strings(_) => panic!("text in place of numbers"),
    }
}

#[test]
fn typed_fields_and_raw_data_of_the_reference_writer_give_the_same_bytes() {
    let model = from_bytes(Bytes::from_static(EVERY_TYPE), &LoadOptions::default()).unwrap();
    let initializers = &model.model().graph.as_ref().unwrap().initializer;
    let named = |name: &str| {
        let found = initializers.iter().find(|tensor| tensor.name() == name).unwrap();
        model.tensor(found).unwrap()
    };
    let mut types = 0;
    for number in 1..=28 {
        let data_type = DataType::try_from(number).unwrap();
        if data_type == DataType::String {
            continue;
        }
        let name = format!("{data_type:?}").to_uppercase();
        let (raw, typed) = (named(&format!("{name}.raw")), named(&format!("{name}.typed")));
        assert_eq!(raw, typed, "{name}");
        assert_eq!((raw.data_type, raw.dims.as_slice()), (data_type, [5].as_slice()));
        types += 1;
    }
    assert_eq!(types, 27);
    let text = named("STRING.typed");
    assert_eq!(text.data, TensorData::Strings(vec!["a".to_owned(), "é文".to_owned()]));
    assert_eq!(*bytes(&named("INT4.typed")), [0x70, 0xf8, 0x05].as_slice());
    assert_eq!(*bytes(&named("INT2.typed")), [0xe4, 0x01].as_slice());
    assert_eq!(*bytes(&named("FLOAT6E2M3.typed")), [0x04, 0xfb, 0x81, 0x01].as_slice());
}

#[test]
fn raw_and_packed_float_data_share_the_file() {
    let mut raw = tensor(DataType::Int64, &[2]);
    raw.raw_data = Some(Bytes::from(vec![7; 16]));
    let mut floats = tensor(DataType::Float, &[2]);
    floats.float_data = PackedValues::from_f32(&[1.0, 2.0]);
    for message in [raw, floats] {
        let file = Bytes::from(message.encode_to_vec());
        let decoded = tensor_from_bytes(file.clone(), &LoadOptions::default()).unwrap();
        assert!(file.as_ptr_range().contains(&bytes(&decoded).as_ptr()));
    }
}

#[test]
fn numeric_fields_may_be_unpacked_or_in_several_pieces() {
    let shape = [0x08, 0x03, 0x10, 0x01]; // dims: 3, data_type: FLOAT
    let mut split = shape.to_vec();
    split.extend([0x22, 0x04]); // float_data, packed, one element
    split.extend(1.0f32.to_le_bytes());
    split.push(0x25); // float_data, one unpacked element
    split.extend(2.0f32.to_le_bytes());
    split.extend([0x22, 0x04]);
    split.extend(3.0f32.to_le_bytes());
    let decoded = tensor_from_bytes(Bytes::from(split), &LoadOptions::default()).unwrap();
    let expected: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(*bytes(&decoded), expected);

    // dims: 2, data_type: INT64, int64_data: 300 and -1, each by itself.
    let unpacked = [
        0x08, 0x02, 0x10, 0x07, 0x38, 0xac, 0x02, 0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0x01,
    ];
    let decoded = tensor_from_bytes(Bytes::copy_from_slice(&unpacked), &LoadOptions::default()).unwrap();
    let expected: Vec<u8> = [300i64, -1].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(*bytes(&decoded), expected);
}

#[test]
fn tensors_survive_encoding() {
    let model = from_bytes(Bytes::from_static(EVERY_TYPE), &LoadOptions::default()).unwrap();
    for tensor in &model.model().graph.as_ref().unwrap().initializer {
        let again = TensorProto::decode(Bytes::from(tensor.encode_to_vec())).unwrap();
        assert_eq!(again, *tensor);
    }
}

#[test]
fn empty_and_scalar_tensors_need_no_and_one_element() {
    let empty = read(&tensor(DataType::Float, &[3, 0, 2])).unwrap();
    assert_eq!((bytes(&empty).len(), empty.dims), (0, vec![3, 0, 2]));
    let mut scalar = tensor(DataType::Uint8, &[]);
    scalar.int32_data = PackedValues::from_i32(&[9]);
    assert_eq!(*bytes(&read(&scalar).unwrap()), [9].as_slice());
    assert!(matches!(
        problem(&tensor(DataType::Uint8, &[])),
        TensorProblem::WrongCount { field: "int32_data", expected: 1, found: 0 }
    ));
}

#[test]
fn negative_and_overflowing_dims_are_refused() {
    assert!(matches!(
        problem(&tensor(DataType::Float, &[2, -1])),
        TensorProblem::NegativeDim { axis: 1, dim: -1 }
    ));
    let huge = 1i64 << 40;
    for dims in [vec![huge, huge], vec![huge, huge, 0], vec![i64::MAX], vec![i64::MAX, 2, 2]] {
        assert!(
            matches!(problem(&tensor(DataType::Float, &dims)), TensorProblem::Overflow { .. }),
            "{dims:?}"
        );
        assert!(read(&tensor(DataType::String, &dims)).is_err());
    }
    assert!(matches!(problem(&tensor(DataType::Float, &[1; 65])), TensorProblem::Rank { rank: 65 }));
}

#[test]
fn dims_that_the_data_does_not_back_are_refused_before_allocation() {
    let large = 1i64 << 50;
    for data_type in [DataType::Float, DataType::Int8, DataType::Int4, DataType::Float6e3m2, DataType::String]
    {
        assert!(read(&tensor(data_type, &[large])).is_err(), "{data_type:?}");
    }
}

#[test]
fn elements_in_two_places_are_refused() {
    let mut both = tensor(DataType::Float, &[1]);
    both.raw_data = Some(Bytes::from_static(&[0; 4]));
    both.float_data = PackedValues::from_f32(&[0.0]);
    assert!(matches!(problem(&both), TensorProblem::SeveralData { first: "raw_data", second: "float_data" }));
    both.raw_data = None;
    both.double_data = PackedValues::from_f64(&[0.0]);
    assert!(matches!(
        problem(&both),
        TensorProblem::SeveralData { first: "float_data", second: "double_data" }
    ));
    both.double_data.clear();
    both.data_location = Some(1);
    assert!(matches!(problem(&both), TensorProblem::SeveralData { first: "external_data", .. }));
}

#[test]
fn fields_that_the_type_does_not_use_are_refused() {
    let mut floats = tensor(DataType::Int64, &[1]);
    floats.float_data = PackedValues::from_f32(&[0.0]);
    assert!(matches!(problem(&floats), TensorProblem::WrongField { field: "float_data", .. }));
    let mut text = tensor(DataType::Float, &[1]);
    text.string_data = vec![Bytes::from_static(b"a")];
    assert!(matches!(problem(&text), TensorProblem::WrongField { field: "string_data", .. }));
    let mut raw_text = tensor(DataType::String, &[1]);
    raw_text.raw_data = Some(Bytes::from_static(b"a"));
    assert!(matches!(problem(&raw_text), TensorProblem::WrongField { field: "raw_data", .. }));
}

#[test]
fn wrong_lengths_are_refused_with_both_numbers() {
    let mut raw = tensor(DataType::Int4, &[5]);
    for found in [0, 2, 4] {
        raw.raw_data = Some(Bytes::from(vec![0; found]));
        assert!(matches!(
            problem(&raw),
            TensorProblem::WrongBytes { field: "raw_data", expected: 3, found: length } if length == found
        ));
    }
    let mut complex = tensor(DataType::Complex64, &[2]);
    complex.float_data = PackedValues::from_f32(&[0.0; 3]);
    assert!(matches!(problem(&complex), TensorProblem::WrongBytes { expected: 16, found: 12, .. }));
    let mut nibbles = tensor(DataType::Uint4, &[5]);
    nibbles.int32_data = PackedValues::from_i32(&[0; 5]);
    assert!(matches!(problem(&nibbles), TensorProblem::WrongCount { expected: 3, found: 5, .. }));
    let mut text = tensor(DataType::String, &[2]);
    text.string_data = vec![Bytes::from_static(b"a")];
    assert!(matches!(problem(&text), TensorProblem::WrongCount { expected: 2, found: 1, .. }));
}

#[test]
fn values_outside_their_type_are_refused() {
    let cases = [
        (DataType::Int8, 128),
        (DataType::Uint8, -1),
        (DataType::Uint16, 65536),
        (DataType::Int16, -32769),
        (DataType::Float16, -1),
        (DataType::Bool, 2),
        (DataType::Int4, 256),
        (DataType::Float6e2m3, 64),
        (DataType::Float8e8m0, 256),
    ];
    for (data_type, value) in cases {
        let mut message = tensor(data_type, &[1]);
        message.int32_data = PackedValues::from_i32(&[value]);
        assert!(
            matches!(problem(&message), TensorProblem::OutOfRange { index: 0, value: found, .. } if found == i128::from(value)),
            "{data_type:?}"
        );
    }
    let mut wide = tensor(DataType::Uint32, &[1]);
    wide.uint64_data = PackedValues::from_u64(&[1 << 32]);
    assert!(matches!(problem(&wide), TensorProblem::OutOfRange { .. }));
    let mut boolean = tensor(DataType::Bool, &[2]);
    boolean.raw_data = Some(Bytes::from_static(&[1, 2]));
    assert!(matches!(problem(&boolean), TensorProblem::OutOfRange { index: 1, value: 2, .. }));
}

#[test]
fn unknown_types_segments_and_text_that_is_not_utf8_are_refused() {
    let mut unknown = tensor(DataType::Undefined, &[]);
    assert!(matches!(problem(&unknown), TensorProblem::DataType(0)));
    unknown.data_type = Some(29);
    assert!(matches!(problem(&unknown), TensorProblem::DataType(29)));
    let mut segment = tensor(DataType::Float, &[0]);
    segment.segment = Some(Segment::default());
    assert!(matches!(problem(&segment), TensorProblem::Segment));
    let mut location = tensor(DataType::Float, &[0]);
    location.data_location = Some(2);
    assert!(matches!(problem(&location), TensorProblem::DataLocation(2)));
    let mut text = tensor(DataType::String, &[2]);
    text.string_data = vec![Bytes::from_static(b"a"), Bytes::from_static(b"\xff")];
    assert!(matches!(problem(&text), TensorProblem::NotUtf8 { index: 1 }));
}

/// A 2 × 3 sparse tensor of f32 with these indices, one value an index.
fn sparse(indices: &[i64], index_dims: &[i64]) -> SparseTensorProto {
    let count = index_dims[0];
    let mut values = tensor(DataType::Float, &[count]);
    let numbers: Vec<f32> = (1..=count).map(|number| number as f32).collect();
    values.float_data = PackedValues::from_f32(&numbers);
    let mut positions = tensor(DataType::Int64, index_dims);
    positions.int64_data = PackedValues::from_i64(indices);
    SparseTensorProto { values: Some(values), indices: Some(positions), dims: vec![2, 3] }
}

fn dense(sparse: &SparseTensorProto, limit: u64) -> Result<RawTensor, TensorError> {
    rlx_onnx::sparse::to_dense(sparse, &rlx_onnx::external::ExternalFiles::none(), limit)
}

#[test]
fn sparse_tensors_become_dense_from_positions_and_from_rows() {
    let expected: Vec<u8> = [0.0f32, 1.0, 0.0, 0.0, 0.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    for message in [sparse(&[1, 5], &[2]), sparse(&[0, 1, 1, 2], &[2, 2])] {
        let decoded = dense(&message, 24).unwrap();
        assert_eq!(decoded.dims, [2, 3]);
        assert_eq!(*bytes(&decoded), expected);
    }
}

#[test]
fn malformed_sparse_tensors_are_refused() {
    let problem = |message: &SparseTensorProto, limit| match dense(message, limit) {
        Err(TensorError { problem: TensorProblem::Sparse(problem), .. }) => problem,
        other => panic!("{other:?}"),
    };
    let fits = sparse(&[1, 5], &[2]);
    assert_eq!(problem(&fits, 23), SparseProblem::TooLarge { bytes: 24, limit: 23 });
    assert_eq!(
        problem(&sparse(&[1, 6], &[2]), 24),
        SparseProblem::IndexOutOfRange { value: 1, index: 6, bound: 6 }
    );
    assert_eq!(
        problem(&sparse(&[0, -1, 1, 2], &[2, 2]), 24),
        SparseProblem::IndexOutOfRange { value: 0, index: -1, bound: 3 }
    );
    assert_eq!(problem(&sparse(&[5, 1], &[2]), 24), SparseProblem::NotAscending { value: 1 });
    assert_eq!(problem(&sparse(&[1, 1], &[2]), 24), SparseProblem::NotAscending { value: 1 });
    assert!(matches!(problem(&sparse(&[0; 6], &[2, 3]), 24), SparseProblem::Indices { rank: 2, .. }));
    let mut large = sparse(&[1, 5], &[2]);
    large.dims = vec![1 << 30, 1 << 20];
    assert!(matches!(problem(&large, 1 << 28), SparseProblem::TooLarge { .. }));
    large.dims = vec![1 << 40, 1 << 40];
    assert!(matches!(
        dense(&large, u64::MAX),
        Err(TensorError { problem: TensorProblem::Overflow { .. }, .. })
    ));
    let mut missing = sparse(&[1, 5], &[2]);
    missing.indices = None;
    assert_eq!(problem(&missing, 24), SparseProblem::Missing("indices"));
}
