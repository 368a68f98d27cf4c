//! External data: tensors whose elements are in another file beside the model.
//!
//! The path in the model is not trusted. It must be relative, without `..`, and the file that it leads to, once
//! symlinks are resolved, must lie within one folder: that of the model unless the options name another.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use thiserror::Error;

use crate::file::{self, FileError, MemoryMode};
use crate::load::LoadOptions;
use crate::proto::StringStringEntryProto;

/// Why external data cannot be had.
#[derive(Debug, Error)]
pub enum ExternalError {
    /// The model came from memory, so there is no folder to look in.
    #[error("the model was not read from a file, so it has no folder for external data")]
    NoFolder,
    /// A key is given twice.
    #[error("external data gives {key} twice")]
    DuplicateKey {
        /// The key.
        key: &'static str,
    },
    /// No location is given, or an empty one.
    #[error("external data has no location")]
    NoLocation,
    /// The location is an absolute path or begins with a drive.
    #[error("external data at the absolute path {location:?}")]
    Absolute {
        /// The path in the model.
        location: String,
    },
    /// The location contains `..`.
    #[error("external data at {location:?}, which contains `..`")]
    ParentFolder {
        /// The path in the model.
        location: String,
    },
    /// Symlinks lead out of the folder.
    #[error("external data at {location:?} is {found}, outside {root}")]
    Outside {
        /// The path in the model.
        location: String,
        /// Where it leads.
        found: PathBuf,
        /// The folder that it must be in.
        root: PathBuf,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// An offset or a length is no decimal number of at most 64 bits.
    #[error("external data has the {key} {value:?}, which is no number of bytes")]
    NotANumber {
        /// `offset` or `length`.
        key: &'static str,
        /// The text in the model.
        value: String,
    },
    /// The length given is not what shape and element type need.
    #[error("external data gives {found} bytes where shape and type need {expected}")]
    WrongLength {
        /// Bytes that shape and type need.
        expected: usize,
        /// The length in the model.
        found: u64,
    },
    /// The bytes are not all in the file.
    #[error("external data of {length} bytes at offset {offset} in {path}, which has {file_bytes} bytes")]
    PastEnd {
        /// The file.
        path: PathBuf,
        /// First byte.
        offset: u64,
        /// Bytes needed.
        length: usize,
        /// Bytes there are.
        file_bytes: usize,
    },
}

/// The external data files of one model. Each is mapped or read once, and its bytes are shared.
#[derive(Debug)]
pub struct ExternalFiles {
    folders: Option<Folders>,
    memory: MemoryMode,
    max_bytes: u64,
    opened: Mutex<HashMap<PathBuf, Bytes>>,
}

#[derive(Debug)]
struct Folders {
    /// What locations are relative to.
    base: PathBuf,
    /// What they must lie in.
    root: PathBuf,
}

impl ExternalFiles {
    /// The files of a model in `folder`.
    pub(crate) fn beside(folder: &Path, options: &LoadOptions) -> Self {
        let root = options.external_root.as_deref().unwrap_or(folder);
        Self {
            folders: Some(Folders { base: folder.to_owned(), root: root.to_owned() }),
            memory: options.memory,
            max_bytes: options.max_external_bytes,
            opened: Mutex::default(),
        }
    }

    /// None: every access is [`ExternalError::NoFolder`].
    pub fn none() -> Self {
        Self { folders: None, memory: MemoryMode::Read, max_bytes: 0, opened: Mutex::default() }
    }

    /// The `expected` bytes that `entries`, the `external_data` of a tensor, lead to.
    ///
    /// `location` is needed; `offset` is 0 and `length` is `expected` unless given; other keys (`checksum`, and
    /// what runtimes add) are passed over.
    pub(crate) fn slice(
        &self,
        entries: &[StringStringEntryProto],
        expected: usize,
    ) -> Result<Bytes, ExternalError> {
        let folders = self.folders.as_ref().ok_or(ExternalError::NoFolder)?;
        let location = value(entries, "location")?.filter(|location| !location.is_empty());
        let location = location.ok_or(ExternalError::NoLocation)?;
        let offset = number(entries, "offset")?.unwrap_or(0);
        if let Some(found) = number(entries, "length")?
            && found != expected as u64
        {
            return Err(ExternalError::WrongLength { expected, found });
        }
        let path = folders.resolve(location)?;
        let bytes = self.open(&path)?;
        let end = usize::try_from(offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(expected)?))
            .filter(|range| range.end <= bytes.len());
        match end {
            Some(range) => Ok(bytes.slice(range)),
            None => Err(ExternalError::PastEnd { path, offset, length: expected, file_bytes: bytes.len() }),
        }
    }

    /// The bytes of the file at a resolved path.
    fn open(&self, path: &Path) -> Result<Bytes, FileError> {
        // The table holds no half-made entry, so a panic elsewhere does not spoil it.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = opened.get(path) {
            return Ok(bytes.clone());
        }
        let used: u64 = opened.values().map(|bytes| bytes.len() as u64).sum();
        let bytes = file::read(path, self.memory, self.max_bytes.saturating_sub(used))?;
        opened.insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

impl Folders {
    /// The file that `location` leads to, if it is within the root.
    fn resolve(&self, location: &str) -> Result<PathBuf, ExternalError> {
        let relative = Path::new(location);
        for component in relative.components() {
            match component {
                Component::Normal(_) | Component::CurDir => {}
                Component::ParentDir => {
                    return Err(ExternalError::ParentFolder { location: location.to_owned() });
                }
                Component::RootDir | Component::Prefix(_) => {
                    return Err(ExternalError::Absolute { location: location.to_owned() });
                }
            }
        }
        let root = canonical(&self.root)?;
        let found = canonical(&self.base.join(relative))?;
        if found.starts_with(&root) {
            Ok(found)
        } else {
            Err(ExternalError::Outside { location: location.to_owned(), found, root })
        }
    }
}

fn canonical(path: &Path) -> Result<PathBuf, FileError> {
    path.canonicalize().map_err(|source| FileError::Io { path: path.to_owned(), source })
}

/// The value of `key`, which may be given once.
fn value<'a>(
    entries: &'a [StringStringEntryProto],
    key: &'static str,
) -> Result<Option<&'a str>, ExternalError> {
    let mut values = entries.iter().filter(|entry| entry.key() == key).map(StringStringEntryProto::value);
    let first = values.next();
    match values.next() {
        Some(_) => Err(ExternalError::DuplicateKey { key }),
        None => Ok(first),
    }
}

/// The number of bytes under `key`: decimal digits only, no sign.
fn number(entries: &[StringStringEntryProto], key: &'static str) -> Result<Option<u64>, ExternalError> {
    let Some(text) = value(entries, key)? else {
        return Ok(None);
    };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(Some(number)),
        _ => Err(ExternalError::NotANumber { key, value: text.to_owned() }),
    }
}
