//! Bytes as an ONNX model, and as a tensor: a graph and elements, or an error. A graph that comes out is valid.

#![no_main]

use rlx_fuzz as _;

use bytes::Bytes;
use rlx_onnx::load::{from_bytes, tensor_from_bytes};
use rlx_onnx::{ImportLimits, ImportOptions, LoadOptions, import};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options =
        LoadOptions { decode_headroom: 64 << 20, max_dense_bytes: 16 << 20, ..LoadOptions::default() };
    let bytes = Bytes::copy_from_slice(bytes);
    let _ = tensor_from_bytes(bytes.clone(), &options);
    let Ok(model) = from_bytes(bytes, &options) else { return };
    let graph = model.model().graph.as_ref().expect("a model that loads has a graph");
    for tensor in &graph.initializer {
        let _ = model.tensor(tensor);
    }
    for tensor in &graph.sparse_initializer {
        let _ = model.sparse_tensor(tensor);
    }
    let limits = ImportLimits { max_nodes: 1000, max_unrolled_trips: 16, ..ImportLimits::default() };
    if let Ok(imported) = import(&model, &ImportOptions { limits, ..ImportOptions::default() }) {
        assert_eq!(rlx::ir::verify(&imported.graph), Ok(()));
    }
});
