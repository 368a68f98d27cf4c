//! Opens ONNX files: bytes in, checked and decoded messages out.
//!
//! A file is mapped or read, scanned (`scan.rs`), then decoded. Scanning and decoding allocate, beyond the bytes
//! themselves, at most [`LoadOptions::decode_headroom`], and where the file is mapped also as many bytes as the
//! file has; reading each tensor once is within that sum. Weights stay in the file's buffer.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message;
use thiserror::Error;

use crate::external::ExternalFiles;
use crate::file::{self, FileError, MemoryMode};
use crate::proto::{ModelProto, OptionalProto, SequenceProto, SparseTensorProto, TensorProto, schema};
use crate::scan::{self, ScanError, ScanLimits, ScanReport};
use crate::sparse;
use crate::tensor::{self, RawTensor, TensorError};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// How a model is loaded, and what it may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// How files come into memory. Default: [`MemoryMode::Map`].
    pub memory: MemoryMode,
    /// The greatest size of the model file. Default: 2 GiB, above which protobuf writers refuse to write.
    pub max_bytes: u64,
    /// The greatest size of all external data files together. Default: 1 TiB.
    pub max_external_bytes: u64,
    /// The most nodes, all graphs and functions together. Default: 1,000,000.
    pub max_nodes: usize,
    /// The deepest nesting of protobuf messages, the model being level 1. An operator inside `n` nested `If` or
    /// `Loop` bodies is at level 3·n + 3. Default: 90; the decoder itself stops at 100.
    pub max_depth: usize,
    /// Bytes that decoding may allocate beyond the size of the file. Default: 256 MiB.
    pub decode_headroom: u64,
    /// The greatest size of one sparse tensor made dense. Default: 256 MiB.
    pub max_dense_bytes: u64,
    /// The folder in which external data must lie, once symlinks are resolved. Default: none, which is the folder
    /// of the model file. Caches that keep models as symlinks into a common folder need that folder here.
    pub external_root: Option<PathBuf>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            memory: MemoryMode::Map,
            max_bytes: 2 * GIB,
            max_external_bytes: 1024 * GIB,
            max_nodes: 1_000_000,
            max_depth: 90,
            decode_headroom: 256 * MIB,
            max_dense_bytes: 256 * MIB,
            external_root: None,
        }
    }
}

/// Why a file does not load.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The buffer is larger than the limit.
    #[error("the model has {bytes} bytes, above the limit of {limit}")]
    TooLarge {
        /// Bytes given.
        bytes: u64,
        /// [`LoadOptions::max_bytes`].
        limit: u64,
    },
    /// The bytes are not the expected protobuf message, or it asks for too much.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The scan found nothing wrong, but the decoder did: text that is not UTF-8.
    #[error("{0}")]
    Decode(#[from] prost::DecodeError),
    /// A field that every model has is absent, as it is in a file that is cut off.
    #[error("the model has no {field}")]
    Missing {
        /// The field's name in `onnx-ml.proto`.
        field: &'static str,
    },
    /// A tensor that is a file of its own cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// An open model: the decoded message, and access to the tensors in it.
#[derive(Debug)]
pub struct ModelFile {
    model: ModelProto,
    external: ExternalFiles,
    report: ScanReport,
    max_dense_bytes: u64,
}

impl ModelFile {
    /// The model; graph and operator sets are present.
    pub fn model(&self) -> &ModelProto {
        &self.model
    }

    /// Nodes in all graphs and functions together.
    pub fn node_count(&self) -> usize {
        self.report.nodes
    }

    /// The elements of a tensor of this model, from the message or from external data.
    pub fn tensor(&self, tensor: &TensorProto) -> Result<RawTensor, TensorError> {
        tensor::decode(tensor, &self.external)
    }

    /// The elements of a sparse tensor of this model, made dense: within [`LoadOptions::max_dense_bytes`].
    pub fn sparse_tensor(&self, tensor: &SparseTensorProto) -> Result<RawTensor, TensorError> {
        sparse::to_dense(tensor, &self.external, self.max_dense_bytes)
    }
}

/// Opens the model at `path`. External data is looked for beside it.
pub fn open(path: &Path, options: &LoadOptions) -> Result<ModelFile, LoadError> {
    let bytes = file::read(path, options.memory, options.max_bytes)?;
    let backed_by_file = match options.memory {
        MemoryMode::Map => bytes.len() as u64,
        MemoryMode::Read => 0,
    };
    // A bare file name has the empty path as its parent.
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    model(bytes, backed_by_file, ExternalFiles::beside(folder, options), options)
}

/// Decodes a model that is in memory. It has no folder, so external data in it is an error when it is read.
pub fn from_bytes(bytes: Bytes, options: &LoadOptions) -> Result<ModelFile, LoadError> {
    model(bytes, 0, ExternalFiles::none(), options)
}

fn model(
    bytes: Bytes,
    backed_by_file: u64,
    external: ExternalFiles,
    options: &LoadOptions,
) -> Result<ModelFile, LoadError> {
    let (model, report) = decode::<ModelProto>(bytes, backed_by_file, options)?;
    if model.graph.is_none() {
        return Err(LoadError::Missing { field: "graph" });
    }
    if model.opset_import.is_empty() {
        return Err(LoadError::Missing { field: "opset_import" });
    }
    Ok(ModelFile { model, external, report, max_dense_bytes: options.max_dense_bytes })
}

mod sealed {
    /// Gives a message's place in the field tables; it is not for other crates to implement.
    pub trait Root {
        /// Index into the table of messages.
        const SCHEMA: usize;
    }
}

impl sealed::Root for ModelProto {
    const SCHEMA: usize = schema::MODEL_PROTO;
}

impl sealed::Root for TensorProto {
    const SCHEMA: usize = schema::TENSOR_PROTO;
}

impl sealed::Root for SequenceProto {
    const SCHEMA: usize = schema::SEQUENCE_PROTO;
}

impl sealed::Root for OptionalProto {
    const SCHEMA: usize = schema::OPTIONAL_PROTO;
}

/// The messages that stand alone in a file: models, and the tensors, sequences and optionals of test data.
pub trait FileMessage: Message + Default + sealed::Root {}

impl<M: Message + Default + sealed::Root> FileMessage for M {}

/// Scans and decodes one message, under the same limits as a model that is in memory.
pub fn message_from_bytes<M: FileMessage>(bytes: Bytes, options: &LoadOptions) -> Result<M, LoadError> {
    Ok(decode(bytes, 0, options)?.0)
}

/// Decodes a tensor that is a file of its own, as the inputs and outputs of ONNX test data are.
pub fn tensor_from_bytes(bytes: Bytes, options: &LoadOptions) -> Result<RawTensor, LoadError> {
    let tensor: TensorProto = message_from_bytes(bytes, options)?;
    Ok(tensor::decode(&tensor, &ExternalFiles::none())?)
}

fn decode<M: FileMessage>(
    bytes: Bytes,
    backed_by_file: u64,
    options: &LoadOptions,
) -> Result<(M, ScanReport), LoadError> {
    let length = bytes.len() as u64;
    if length > options.max_bytes {
        return Err(LoadError::TooLarge { bytes: length, limit: options.max_bytes });
    }
    let limits = ScanLimits {
        nodes: options.max_nodes,
        depth: options.max_depth,
        heap_bytes: options.decode_headroom.saturating_add(backed_by_file),
    };
    let report = scan::scan(&bytes, M::SCHEMA, limits)?;
    Ok((M::decode(bytes)?, report))
}
