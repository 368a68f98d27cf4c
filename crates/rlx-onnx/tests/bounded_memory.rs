//! Loading allocates at most the file's size and the headroom of the options, whatever the file claims.
//!
//! The allocator counts for the whole process, so this file has one test.

use bytes::Bytes;
use prost::Message;
use prost::encoding::encode_varint;
use rlx_onnx::load::{from_bytes, tensor_from_bytes};
use rlx_onnx::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto};
use rlx_onnx::{LoadError, LoadOptions, ScanError};
use rlx_testkit::peak_allocation::{PeakAllocator, peak};

#[global_allocator]
static ALLOCATOR: PeakAllocator = PeakAllocator;

/// The scan's stack of open messages, error text and small change.
const CONSTANT: usize = 64 << 10;

/// A message in which field `key` (length-delimited) holds `content`.
fn field(key: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![key];
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

/// `repeated` over and over, in the graph of a model, each as large as `bytes` allow.
fn graph_of(repeated: &[u8], bytes: usize) -> Vec<u8> {
    [field(0x3a, &repeated.repeat(bytes / repeated.len())), field(0x42, &[0x10, 0x19])].concat()
}

/// Loads under a headroom and reads every initializer, all kept at once.
fn load(file: &[u8], decode_headroom: u64) -> (Result<(), LoadError>, usize) {
    let bytes = Bytes::copy_from_slice(file);
    let options = LoadOptions { decode_headroom, ..LoadOptions::default() };
    let (result, peak) = peak(|| {
        let model = from_bytes(bytes, &options)?;
        let graph = model.model().graph.as_ref().ok_or(LoadError::Missing { field: "graph" })?;
        let tensors: Vec<_> = graph.initializer.iter().map(|tensor| model.tensor(tensor)).collect();
        drop(tensors);
        Ok(())
    });
    (result, peak)
}

#[test]
fn peak_allocation_stays_within_file_size_and_headroom() {
    const HEADROOM: usize = 1 << 20;
    const FILE: usize = 1 << 18;
    // Each of these two-byte fields asks for a struct or a string of its own.
    let initializer = |tensor: &[u8]| field(0x2a, tensor);
    let amplifying = [
        ("nodes", graph_of(&[0x0a, 0x00], FILE)),
        ("initializers", graph_of(&[0x2a, 0x00], FILE)),
        ("value infos", graph_of(&[0x6a, 0x00], FILE)),
        ("sparse initializers", graph_of(&[0x7a, 0x00], FILE)),
        ("inputs of one node", graph_of(&field(0x0a, &[0x0a, 0x00].repeat(FILE / 2)), FILE + 16)),
        ("attributes of one node", graph_of(&field(0x0a, &[0x2a, 0x00].repeat(FILE / 2)), FILE + 16)),
        ("one attribute a node", graph_of(&field(0x0a, &[0x2a, 0x00]), FILE)),
        ("nodes with one-letter names", graph_of(&field(0x0a, &[0x1a, 0x01, b'a']), FILE)),
        ("metadata", [0x72, 0x00].repeat(FILE / 2)),
        ("dims", graph_of(&initializer(&[0x08, 0x01].repeat(FILE / 2)), FILE + 16)),
        ("packed dims", graph_of(&initializer(&field(0x0a, &vec![1; FILE])), FILE + 16)),
        ("text elements", graph_of(&initializer(&[0x32, 0x00].repeat(FILE / 2)), FILE + 16)),
        ("packed integers", graph_of(&initializer(&field(0x3a, &vec![1; FILE])), FILE + 16)),
        ("unpacked integers", graph_of(&initializer(&[0x38, 0x01].repeat(FILE / 2)), FILE + 16)),
    ];
    for (name, file) in &amplifying {
        let (result, peak) = load(file, HEADROOM as u64);
        assert!(
            matches!(result, Err(LoadError::Scan(ScanError::TooMuchMemory { .. }))),
            "{name}: {result:?}"
        );
        assert!(peak <= CONSTANT, "{name}: {peak} bytes before the file is refused");
    }
    // The same, small enough to be decoded, shows that the scan's sum is an upper bound of the decoder's.
    for (name, file) in &amplifying {
        let mut refused = 0;
        for headroom in [FILE / 2, FILE, 4 * FILE, 16 * FILE, 64 * FILE, 256 * FILE, 1024 * FILE] {
            let (result, peak) = load(file, headroom as u64);
            assert!(peak <= headroom + CONSTANT, "{name}: {peak} of {headroom}");
            refused += usize::from(matches!(result, Err(LoadError::Scan(ScanError::TooMuchMemory { .. }))));
        }
        assert!((1..7).contains(&refused), "{name}: refused {refused} times");
    }

    // A tensor that claims 2^62 elements and holds none.
    let claim = TensorProto {
        dims: vec![1 << 31, 1 << 31],
        data_type: Some(2),
        raw_data: Some(Bytes::new()),
        ..TensorProto::default()
    };
    let claim = Bytes::from(claim.encode_to_vec());
    let (result, peak_bytes) = peak(|| tensor_from_bytes(claim, &LoadOptions::default()));
    assert!(matches!(result, Err(LoadError::Tensor(_))));
    assert!(peak_bytes <= CONSTANT, "{peak_bytes}");

    // A model of ordinary shape: what it holds is shared, and its graph fits.
    let weights = TensorProto {
        dims: vec![1 << 20],
        data_type: Some(2),
        raw_data: Some(Bytes::from(vec![0; 1 << 20])),
        ..TensorProto::default()
    };
    let node = NodeProto {
        input: vec!["a_name_of_some_length".to_owned(); 3],
        output: vec!["another_name_of_some_length".to_owned()],
        op_type: Some("Add".to_owned()),
        ..NodeProto::default()
    };
    let model = ModelProto {
        graph: Some(GraphProto {
            node: vec![node; 500],
            initializer: vec![weights],
            ..GraphProto::default()
        }),
        opset_import: vec![OperatorSetIdProto::default()],
        ..ModelProto::default()
    };
    let (result, peak_bytes) = load(&model.encode_to_vec(), HEADROOM as u64);
    assert!(result.is_ok(), "{result:?}");
    assert!(peak_bytes < HEADROOM / 2, "{peak_bytes}");
}
