//! Reads a file into one shared buffer, by map or by copy, within a limit.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use thiserror::Error;

use crate::map::map;

/// How the bytes of a file come into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryMode {
    /// Map the file. Loading then copies no weights, and the system reads pages when they are first used.
    ///
    /// The file must not change while the model is in use. If another process shortens it, the next access to a
    /// lost page raises SIGBUS (an in-page error on Windows) and ends the process; if another process writes to
    /// it, the weights change. Network file systems can do both when a connection is lost.
    #[default]
    Map,
    /// Read the file into memory: no signal and no surprise, for as many bytes of memory as the file has.
    Read,
}

/// Why a file's bytes cannot be had.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A folder, a device, a pipe.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// What is not a file.
        path: PathBuf,
    },
    /// The file is larger than the limit.
    #[error("{path} has {bytes} bytes, above the limit of {limit}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit, an option of the load.
        limit: u64,
    },
    /// The file became shorter while it was read.
    #[error("{path} changed while it was read")]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// The bytes of the regular file at `path`, of which there may be at most `limit`.
pub(crate) fn read(path: &Path, memory: MemoryMode, limit: u64) -> Result<Bytes, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    // Opening a pipe waits for its writer, so the kind is asked for first, and again of what was opened.
    let regular = |metadata: &fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(FileError::NotAFile { path: path.to_owned() }),
    };
    regular(&fs::metadata(path).map_err(io)?)?;
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    regular(&metadata)?;
    let bytes = metadata.len();
    let (true, Ok(length)) = (bytes <= limit, usize::try_from(bytes)) else {
        return Err(FileError::TooLarge { path: path.to_owned(), bytes, limit });
    };
    if length == 0 {
        return Ok(Bytes::new());
    }
    match memory {
        MemoryMode::Map => map(&file).map_err(io),
        MemoryMode::Read => {
            let mut buffer = vec![0; length];
            match (&file).read_exact(&mut buffer) {
                Err(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                    Err(FileError::Changed { path: path.to_owned() })
                }
                Err(source) => Err(io(source)),
                Ok(()) => Ok(Bytes::from(buffer)),
            }
        }
    }
}
