//! Bytes as an ONNX model, and as a tensor: messages and elements, or an error.

#![no_main]

use rlx_fuzz as _;

use bytes::Bytes;
use rlx_onnx::LoadOptions;
use rlx_onnx::load::{from_bytes, tensor_from_bytes};

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
});
