//! `.npz` files in and out: named arrays, each an npy file in a zip archive, as `numpy.savez` and
//! `numpy.savez_compressed` write them.

mod archive;

use std::collections::HashSet;
use std::io::{self, Write};

pub use archive::ArchiveProblem;

use super::npy::{NpyArray, NpyError, read_owned_npy, write_npy};

/// What a file may unfold to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpzOptions {
    /// The most bytes of all arrays together, with their headers. Compressed zeros take a thousandth of their size,
    /// so a small file can hold a large array. Default: 1 GiB.
    pub max_bytes: u64,
}

impl Default for NpzOptions {
    fn default() -> Self {
        Self { max_bytes: 1 << 30 }
    }
}

/// How [`write_npz`] stores arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NpzCompression {
    /// As they are, like `numpy.savez`.
    Stored,
    /// Compressed, like `numpy.savez_compressed`.
    Deflate,
}

/// Why arrays could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum NpzError {
    /// The file is not a zip archive, or one that is not read.
    #[error("not a readable zip archive: {0}")]
    Archive(#[from] ArchiveProblem),
    /// The arrays are larger than the limit.
    #[error("the arrays have more than {limit} bytes")]
    TooLarge {
        /// [`NpzOptions::max_bytes`].
        limit: u64,
    },
    /// An entry is no array: its name does not end in `.npy`.
    #[error("the entry {name:?} is not an array")]
    NotAnArray {
        /// The entry's name.
        name: String,
    },
    /// Two arrays have the same name.
    #[error("two arrays are named {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// An array cannot be read or written.
    #[error("array {name:?}: {source}")]
    Array {
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: NpyError,
    },
    /// What is written needs sizes or counts that the archive cannot hold: 4 GiB, or 65,535 arrays or bytes of name.
    #[error("an npz file of this size is not written")]
    TooLargeToWrite,
    /// The stream could not be written.
    #[error("{0}")]
    Stream(#[from] io::Error),
}

const SUFFIX: &str = ".npy";

/// Reads an npz file that is in memory: names, without `.npy`, and arrays in the file's order.
///
/// Beyond the file, this takes the memory of the arrays, and for arrays in column-major order twice that.
pub fn read_npz(file: &[u8], options: &NpzOptions) -> Result<Vec<(String, NpyArray)>, NpzError> {
    let entries = archive::entries(file)?;
    let total = entries.iter().try_fold(0u64, |total, entry| total.checked_add(entry.size));
    if total.is_none_or(|total| total > options.max_bytes) {
        return Err(NpzError::TooLarge { limit: options.max_bytes });
    }
    let mut names = HashSet::new();
    let mut arrays = Vec::new();
    for entry in entries {
        let Some(name) = entry.name.strip_suffix(SUFFIX) else {
            return Err(NpzError::NotAnArray { name: entry.name.to_owned() });
        };
        let name = name.to_owned();
        if !names.insert(entry.name) {
            return Err(NpzError::DuplicateName { name });
        }
        match read_owned_npy(entry.content()?) {
            Ok(array) => arrays.push((name, array)),
            Err(source) => return Err(NpzError::Array { name, source }),
        }
    }
    Ok(arrays)
}

/// Writes named arrays as an npz file. The same arrays give the same bytes: no time is recorded.
pub fn write_npz<'a>(
    arrays: impl IntoIterator<Item = (&'a str, &'a NpyArray)>,
    compression: NpzCompression,
    writer: impl Write,
) -> Result<(), NpzError> {
    let mut names = HashSet::new();
    let mut archive = archive::Writer::new(writer);
    for (name, array) in arrays {
        if !names.insert(name) {
            return Err(NpzError::DuplicateName { name: name.to_owned() });
        }
        let mut content = Vec::new();
        write_npy(array, &mut content).map_err(|source| NpzError::Array { name: name.to_owned(), source })?;
        archive.add(&format!("{name}{SUFFIX}"), &content, compression)?;
    }
    archive.finish()
}
