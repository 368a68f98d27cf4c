//! A model from a file: an ONNX model, or a graph in the text form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rlx_ir::text::{ParseError, ParseOptions, Printed, parse_with, print_with_constants};
use rlx_ir::{Graph, Literal};
use rlx_onnx::{ImportError, ImportOptions, LoadError, LoadOptions, OutputForm};
use rlx_runtime::{CompileOptions, Error, Executable, Session};

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// What the file may ask for.
    pub load: LoadOptions,
    /// What importing may ask for, and which inputs become constants.
    pub import: ImportOptions,
}

/// A graph, and what its file says about it.
#[derive(Clone, Debug)]
pub struct Model {
    /// The graph.
    pub graph: Graph,
    /// The model's outputs and which outputs of the graph they are made of; in a text file each is a tensor.
    pub outputs: Vec<(String, OutputForm)>,
    /// The operator sets that an ONNX model imports.
    pub opsets: BTreeMap<String, i64>,
    /// What wrote the file.
    pub producer: String,
    /// The model's metadata.
    pub metadata: Vec<(String, String)>,
}

/// Why a model cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file's ending is of no kind that is known.
    #[error("{}: a model is a file that ends in .onnx or in .rlx (the text form)", path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
    },
    /// The text is no graph.
    #[error("{}: {source}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Where, and what was expected.
        source: ParseError,
    },
    /// The ONNX file does not load.
    #[error("{}: {source}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<LoadError>,
    },
    /// The ONNX model cannot be imported.
    #[error("{}: {source}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<ImportError>,
    },
}

/// The folder beside a text file that holds its large constants, one `HASH.bin` each.
fn constants_folder(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".constants");
    name.into()
}

impl Model {
    /// Opens `.onnx` and `.rlx` files.
    ///
    /// Errors: the file cannot be read, is malformed, beyond the limits, or needs what is not supported.
    pub fn open(path: impl AsRef<Path>, options: &ModelOptions) -> Result<Model, ModelError> {
        let path = path.as_ref();
        match path.extension().and_then(|e| e.to_str()) {
            Some("onnx") => Model::open_onnx(path, options),
            Some("rlx") => Model::open_text(path),
            _ => Err(ModelError::UnknownKind { path: path.to_owned() }),
        }
    }

    fn open_onnx(path: &Path, options: &ModelOptions) -> Result<Model, ModelError> {
        let file = rlx_onnx::load::open(path, &options.load)
            .map_err(|source| ModelError::Load { path: path.to_owned(), source: Box::new(source) })?;
        let imported = rlx_onnx::import(&file, &options.import)
            .map_err(|source| ModelError::Import { path: path.to_owned(), source: Box::new(source) })?;
        Ok(Model {
            graph: imported.graph,
            outputs: imported.outputs,
            opsets: imported.opsets,
            producer: imported.producer,
            metadata: imported.metadata,
        })
    }

    fn open_text(path: &Path) -> Result<Model, ModelError> {
        let refused = |source| ModelError::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(refused)?;
        let folder = constants_folder(path);
        // The text says the type of what the hash names; bytes of another length are refused there.
        let constant = |hash: u128, dtype, dims: &[usize]| {
            let bytes = std::fs::read(folder.join(format!("{hash:032x}.bin"))).ok()?;
            Literal::new(dtype, dims, bytes).ok().filter(|literal| literal.content_hash() == hash)
        };
        let graph = parse_with(&text, &ParseOptions { constant: Some(&constant), custom: None })
            .map_err(|source| ModelError::Text { path: path.to_owned(), source })?;
        Ok(Model::from(graph))
    }

    /// Compiles the graph for the session's device and loads it: weights are packed, and what follows from constants
    /// only is computed.
    ///
    /// # Errors
    /// If a pass fails, memory is short, or a constant computation fails.
    pub fn compile(&self, session: &Session, options: &CompileOptions) -> Result<Executable, Error> {
        session.compile(&self.graph, options)
    }
}

impl From<Graph> for Model {
    /// A model that says nothing but its graph.
    fn from(graph: Graph) -> Model {
        let outputs = graph.outputs().iter().enumerate();
        let outputs = outputs.map(|(i, o)| (o.name.to_string(), OutputForm::Tensor(i))).collect();
        Model { graph, outputs, opsets: BTreeMap::new(), producer: String::new(), metadata: Vec::new() }
    }
}

/// Writes a graph in the text form to `path`, and its large constants to the folder `PATH.constants`, from where
/// [`Model::open`] reads both back.
pub fn write_text(graph: &Graph, path: impl AsRef<Path>) -> std::io::Result<()> {
    let path = path.as_ref();
    let Printed { text, constants } = print_with_constants(graph);
    if !constants.is_empty() {
        let folder = constants_folder(path);
        std::fs::create_dir_all(&folder)?;
        for (hash, literal) in &constants {
            std::fs::write(folder.join(format!("{hash:032x}.bin")), literal.bytes())?;
        }
    }
    std::fs::write(path, text)
}
