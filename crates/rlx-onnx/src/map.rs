//! Maps a file into memory. The one place of this crate that needs `unsafe`.

#![allow(unsafe_code, reason = "a memory map is only as constant as the file")]

use std::fs::File;
use std::io;

use bytes::Bytes;

/// Maps the whole of `file`, read only and private.
pub(crate) fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the map is read-only, private and owned by the returned buffer, so that nothing in this process
    // writes to it or outlives it. What remains is a file that another process changes while it is mapped: bytes
    // may then change under a reader, and reading beyond a new, shorter end raises SIGBUS. No `&str`, length or
    // index is kept unchecked from a map: text is copied before it is validated, and the decoder checks each
    // length where it uses it. `MemoryMode::Map` documents this, and `MemoryMode::Read` is there to avoid it.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
