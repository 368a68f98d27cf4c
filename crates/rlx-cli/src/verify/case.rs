//! A difference as files: the graph in the text form, its inputs as an archive of arrays.

use anyhow::Context;
use rlx::io::literal::npy_from_literal;
use rlx::io::npz::{NpzCompression, write_npz};
use rlx::ir::{Graph, Literal};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The archive beside a case.
pub(super) fn inputs_path(case: &Path) -> PathBuf {
    case.with_extension("npz")
}

/// The options that give a case its inputs.
pub(super) fn input_options(case: &Path, graph: &Graph) -> String {
    let archive = inputs_path(case);
    let options = graph.input_types().map(|(name, _)| format!("--input {name}={}", archive.display()));
    options.collect::<Vec<_>>().join(" ")
}

/// Writes `graph` to `case`, which ends in `.rlx`, and `inputs` beside it.
pub(super) fn save(case: &Path, graph: &Graph, inputs: &[Literal]) -> anyhow::Result<()> {
    rlx::write_text(graph, case).with_context(|| case.display().to_string())?;
    let arrays = graph
        .input_types()
        .zip(inputs)
        .map(|((name, t), literal)| {
            let array = npy_from_literal(literal);
            Ok((name, array.with_context(|| format!("input {name:?}: npy files cannot hold {t}"))?))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let path = inputs_path(case);
    let mut file = BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
    write_npz(arrays.iter().map(|(name, array)| (*name, array)), NpzCompression::Deflate, &mut file)?;
    file.flush().with_context(|| path.display().to_string())
}
