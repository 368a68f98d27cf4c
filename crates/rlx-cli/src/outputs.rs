//! Outputs, for people and as files.

use anyhow::Context;
use rlx::io::literal::npy_from_literal;
use rlx::io::npy::write_npy;
use rlx::ir::{DType, Literal};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes an output to `FOLDER/NAME.npy`. A slash in its name would be a folder.
pub(crate) fn write(folder: &Path, name: &str, literal: &Literal) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let safe: String =
        name.chars().map(|c| if c == '/' || c == '\\' || c.is_control() { '_' } else { c }).collect();
    let path = folder.join(format!("{safe}.npy"));
    let array = npy_from_literal(literal)
        .with_context(|| format!("output {name:?}: npy files cannot hold {}", literal.tensor_type()))?;
    let mut file = BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
    write_npy(&array, &mut file)?;
    file.flush().with_context(|| path.display().to_string())?;
    Ok(path)
}

/// What a person wants to see of an output first.
pub(crate) struct Summary {
    /// The least finite number.
    pub(crate) least: Option<f64>,
    /// The greatest finite number.
    pub(crate) greatest: Option<f64>,
    /// The mean of the finite numbers.
    pub(crate) mean: Option<f64>,
    first: Vec<f64>,
    not_finite: usize,
}

impl Summary {
    /// Of these numbers; of complex ones nothing.
    pub(crate) fn of(literal: &Literal) -> anyhow::Result<Summary> {
        let mut numbers = Vec::new();
        if !literal.dtype().is_complex() {
            let mut b = rlx::ir::Builder::verbatim("summary");
            let x = b.constant(literal.clone());
            let y = b.cast(x, DType::F64)?;
            let wide = rlx::eval::evaluate(&b.finish([("y", y)])?, &[])?;
            numbers = wide.first().and_then(|l| l.to_vec::<f64>()).unwrap_or_default();
        }
        let finite: Vec<f64> = numbers.iter().copied().filter(|x| x.is_finite()).collect();
        let mean = (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64);
        Ok(Summary {
            least: finite.iter().copied().reduce(f64::min),
            greatest: finite.iter().copied().reduce(f64::max),
            mean,
            not_finite: numbers.len() - finite.len(),
            first: numbers.into_iter().take(6).collect(),
        })
    }

    /// In one line.
    pub(crate) fn text(&self) -> String {
        let (Some(least), Some(greatest), Some(mean)) = (self.least, self.greatest, self.mean) else {
            return String::new();
        };
        let first: Vec<String> = self.first.iter().map(|x| format!("{x:.6}")).collect();
        let odd =
            if self.not_finite > 0 { format!(", {} not finite", self.not_finite) } else { String::new() };
        format!("[{}, …] min {least:.6}, max {greatest:.6}, mean {mean:.6}{odd}", first.join(", "))
    }
}
