//! The part of the zip format that npz files use: stored and deflated entries, with 64-bit sizes.
//!
//! Record layouts and numbers are those of PKWARE's APPNOTE.TXT, version 6.3.10. The reader works on the whole file
//! as a slice. It holds entries to what the archive's directory says of them (name, sizes, checksum, place before
//! the directory, no overlap), and allocates for an entry no more than its compressed bytes can unfold to.

use std::io::{Read, Write};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{NpzCompression, NpzError};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DIRECTORY_ENTRY: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const END_64_LOCATOR: u32 = 0x0706_4b50;

const LOCAL_HEADER_BYTES: usize = 30;
const DIRECTORY_ENTRY_BYTES: usize = 46;
const END_BYTES: usize = 22;
const END_64_LOCATOR_BYTES: usize = 20;

/// The extra field that holds 64-bit sizes.
const ZIP_64_EXTRA: u16 = 1;

const METHOD_STORED: u16 = 0;
const METHOD_DEFLATE: u16 = 8;

/// Entry flags: the content is encrypted; the name is UTF-8.
const FLAG_ENCRYPTED: u16 = 1;
const FLAG_UTF8: u16 = 1 << 11;

/// Deflate's greatest ratio: a length code of 258 bytes in two bits (RFC 1951), with room for a last partial byte.
const DEFLATE_RATIO: u64 = 1032;

/// Version 2.0 of the format: deflate.
const VERSION_NEEDED: u16 = 20;

/// 1 January 1980, the first day of the format's calendar, where no time is recorded.
const NO_DATE: u16 = 0x21;

/// What is wrong with an archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveProblem {
    /// There is no end record, or it does not end the file.
    #[error("there is no end record")]
    NoEnd,
    /// A record is not where another says it is, or is cut off.
    #[error("there is no {record} at byte {offset}")]
    Record {
        /// The record.
        record: &'static str,
        /// Where it should be.
        offset: u64,
    },
    /// The archive has several parts.
    #[error("the archive has several parts")]
    SeveralParts,
    /// The directory does not hold as many entries or bytes as the end record says.
    #[error("the directory does not hold what the end record says")]
    Directory,
    /// A name is not UTF-8.
    #[error("the name of an entry is not UTF-8")]
    Name,
    /// An entry is encrypted or compressed in another way than deflate.
    #[error("the entry {name:?} is encrypted or compressed by method {method}")]
    Method {
        /// The entry's name.
        name: String,
        /// The method's number.
        method: u16,
    },
    /// The header before an entry's content names another entry.
    #[error("the entry {name:?} has another name in its own header")]
    LocalName {
        /// The name in the directory.
        name: String,
    },
    /// The content is not within the file, or overlaps another's.
    #[error("the content of {name:?} is not in the file, or overlaps another's")]
    Content {
        /// The entry's name.
        name: String,
    },
    /// The content does not unfold, or not to what the directory says.
    #[error("the content of {name:?} does not unfold to {size} bytes of the checksum given")]
    Unfold {
        /// The entry's name.
        name: String,
        /// The size in the directory.
        size: u64,
    },
}

/// One file in the archive.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    /// Bytes of the content, once unfolded.
    pub(super) size: u64,
    deflated: bool,
    checksum: u32,
    stored: &'a [u8],
}

impl Entry<'_> {
    /// The content.
    pub(super) fn content(&self) -> Result<Vec<u8>, ArchiveProblem> {
        let unfold = || ArchiveProblem::Unfold { name: self.name.to_owned(), size: self.size };
        let size = usize::try_from(self.size).map_err(|_| unfold())?;
        let content = if self.deflated {
            if self.size > (self.stored.len() as u64).saturating_mul(DEFLATE_RATIO) {
                return Err(unfold());
            }
            let mut content = vec![0; size];
            let mut decoder = DeflateDecoder::new(self.stored);
            decoder.read_exact(&mut content).map_err(|_| unfold())?;
            // The stream must end here, and be all that is stored.
            let more = decoder.read(&mut [0]).map_err(|_| unfold())?;
            if more != 0 || decoder.total_in() != self.stored.len() as u64 {
                return Err(unfold());
            }
            content
        } else {
            self.stored.to_vec()
        };
        let mut crc = Crc::new();
        crc.update(&content);
        if content.len() == size && crc.sum() == self.checksum { Ok(content) } else { Err(unfold()) }
    }
}

/// The entries of an archive, in the directory's order.
pub(super) fn entries(file: &[u8]) -> Result<Vec<Entry<'_>>, ArchiveProblem> {
    let end = find_end(file)?;
    let start = end.directory_offset;
    let directory = part(file, start, end.directory_bytes)
        .ok_or(ArchiveProblem::Record { record: "directory", offset: start })?;
    let mut rest = Record(directory);
    let mut entries = Vec::new();
    let mut places = Vec::new();
    while !rest.0.is_empty() {
        let offset = start + (directory.len() - rest.0.len()) as u64;
        let (entry, place) = directory_entry(file, &mut rest, start)
            .ok_or(ArchiveProblem::Record { record: "directory entry", offset })??;
        places.push((place, entry.name));
        entries.push(entry);
    }
    if entries.len() as u64 != end.entries {
        return Err(ArchiveProblem::Directory);
    }
    // Contents that overlap let a small file unfold many times.
    places.sort_unstable_by_key(|((start, end), _)| (*start, *end));
    match places.windows(2).find(|pair| pair[1].0.0 < pair[0].0.1) {
        Some(pair) => Err(ArchiveProblem::Content { name: pair[1].1.to_owned() }),
        None => Ok(entries),
    }
}

struct End {
    entries: u64,
    directory_bytes: u64,
    directory_offset: u64,
}

/// Finds the end record: the last one whose comment reaches the end of the file.
fn find_end(file: &[u8]) -> Result<End, ArchiveProblem> {
    let last = file.len().checked_sub(END_BYTES).ok_or(ArchiveProblem::NoEnd)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let is_end = |&offset: &usize| {
        let mut record = Record(&file[offset..]);
        let comment = file.len() - offset - END_BYTES;
        record.u32() == Some(END)
            && record.skip(16).is_some()
            && record.u16().map(usize::from) == Some(comment)
    };
    let offset = (first..=last).rev().find(is_end).ok_or(ArchiveProblem::NoEnd)?;
    let cut = ArchiveProblem::Record { record: "end record", offset: offset as u64 };
    let mut record = Record(&file[offset + 4..]);
    let end = (|| {
        let parts = [record.u16()?, record.u16()?];
        let here = record.u16()?;
        let entries = record.u16()?;
        let (directory_bytes, directory_offset) = (record.u32()?, record.u32()?);
        Some((parts, here, entries, directory_bytes, directory_offset))
    })();
    let (parts, here, entries, directory_bytes, directory_offset) = end.ok_or(cut)?;
    if entries == u16::MAX || directory_bytes == u32::MAX || directory_offset == u32::MAX {
        return find_end_64(file, offset);
    }
    if parts != [0, 0] || here != entries {
        return Err(ArchiveProblem::SeveralParts);
    }
    Ok(End {
        entries: u64::from(entries),
        directory_bytes: u64::from(directory_bytes),
        directory_offset: u64::from(directory_offset),
    })
}

/// The end record with 64-bit numbers, which a locator before the `end` record points to.
fn find_end_64(file: &[u8], end: usize) -> Result<End, ArchiveProblem> {
    let locator_offset = end.saturating_sub(END_64_LOCATOR_BYTES) as u64;
    let locator = part(file, locator_offset, END_64_LOCATOR_BYTES as u64).and_then(|bytes| {
        let mut record = Record(bytes);
        (record.u32()? == END_64_LOCATOR).then_some(())?;
        record.skip(4)?;
        record.u64()
    });
    let offset = locator.ok_or(ArchiveProblem::Record { record: "locator", offset: locator_offset })?;
    let found = part(file, offset, 56).and_then(|bytes| {
        let mut record = Record(bytes);
        (record.u32()? == END_64).then_some(())?;
        record.skip(12)?;
        let parts = (record.u32()?, record.u32()?);
        let here = record.u64()?;
        let entries = record.u64()?;
        let end = End { entries, directory_bytes: record.u64()?, directory_offset: record.u64()? };
        Some((parts == (0, 0) && here == entries, end))
    });
    match found {
        Some((true, end)) => Ok(end),
        Some((false, _)) => Err(ArchiveProblem::SeveralParts),
        None => Err(ArchiveProblem::Record { record: "64-bit end record", offset }),
    }
}

type Place = (u64, u64);

/// Reads the entry at the front of the directory; `None` where the record is cut off.
fn directory_entry<'a>(
    file: &'a [u8],
    directory: &mut Record<'a>,
    directory_offset: u64,
) -> Option<Result<(Entry<'a>, Place), ArchiveProblem>> {
    if directory.u32()? != DIRECTORY_ENTRY {
        return None;
    }
    directory.skip(4)?;
    let flags = directory.u16()?;
    let method = directory.u16()?;
    directory.skip(4)?;
    let checksum = directory.u32()?;
    let sizes = [directory.u32()?, directory.u32()?];
    let name_bytes = usize::from(directory.u16()?);
    let extra_bytes = usize::from(directory.u16()?);
    let comment_bytes = usize::from(directory.u16()?);
    directory.skip(8)?;
    let header = directory.u32()?;
    let name = directory.take(name_bytes)?;
    let extra = directory.take(extra_bytes)?;
    directory.skip(comment_bytes)?;
    // The 64-bit field holds, in this order, what does not fit above.
    let mut wide = Record(zip_64(extra));
    let mut widen = |value: u32| if value == u32::MAX { wide.u64() } else { Some(u64::from(value)) };
    let (size, stored_size, header) = (widen(sizes[1])?, widen(sizes[0])?, widen(header)?);
    let Ok(name) = std::str::from_utf8(name) else {
        return Some(Err(ArchiveProblem::Name));
    };
    let deflated = match method {
        METHOD_STORED if flags & FLAG_ENCRYPTED == 0 => false,
        METHOD_DEFLATE if flags & FLAG_ENCRYPTED == 0 => true,
        _ => return Some(Err(ArchiveProblem::Method { name: name.to_owned(), method })),
    };
    Some(
        local_content(file, name, header, stored_size, directory_offset)
            .map(|(stored, place)| (Entry { name, size, deflated, checksum, stored }, place)),
    )
}

/// The content behind the header at `offset`, and the place of both.
fn local_content<'a>(
    file: &'a [u8],
    name: &str,
    offset: u64,
    stored_size: u64,
    directory_offset: u64,
) -> Result<(&'a [u8], Place), ArchiveProblem> {
    let cut = || ArchiveProblem::Record { record: "entry", offset };
    let header = part(file, offset, LOCAL_HEADER_BYTES as u64).ok_or_else(cut)?;
    let mut record = Record(header);
    let lengths = (|| {
        (record.u32()? == LOCAL_HEADER).then_some(())?;
        record.skip(22)?;
        Some((record.u16()?, record.u16()?))
    })();
    let (name_bytes, extra_bytes) = lengths.ok_or_else(cut)?;
    let name_offset = offset + LOCAL_HEADER_BYTES as u64;
    if part(file, name_offset, u64::from(name_bytes)) != Some(name.as_bytes()) {
        return Err(ArchiveProblem::LocalName { name: name.to_owned() });
    }
    let start = name_offset + u64::from(name_bytes) + u64::from(extra_bytes);
    let end = start.checked_add(stored_size).filter(|&end| end <= directory_offset);
    match (part(file, start, stored_size), end) {
        (Some(stored), Some(end)) => Ok((stored, (offset, end))),
        _ => Err(ArchiveProblem::Content { name: name.to_owned() }),
    }
}

/// The content of the extra field with 64-bit sizes; empty where there is none.
fn zip_64(extra: &[u8]) -> &[u8] {
    let mut record = Record(extra);
    while let (Some(kind), Some(length)) = (record.u16(), record.u16()) {
        match record.take(usize::from(length)) {
            Some(content) if kind == ZIP_64_EXTRA => return content,
            Some(_) => {}
            None => break,
        }
    }
    &[]
}

/// `length` bytes of `file` at `offset`, if they are there.
fn part(file: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    file.get(start..end)
}

/// Reads little-endian numbers off the front of a slice.
struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.take(length).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Writes an archive whose sizes fit 32 bits.
pub(super) struct Writer<W> {
    writer: W,
    position: u32,
    entries: u16,
    directory: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, position: 0, entries: 0, directory: Vec::new() }
    }

    /// Adds one entry.
    pub(super) fn add(
        &mut self,
        name: &str,
        content: &[u8],
        compression: NpzCompression,
    ) -> Result<(), NpzError> {
        let mut crc = Crc::new();
        crc.update(content);
        let deflated;
        let (method, stored) = match compression {
            NpzCompression::Stored => (METHOD_STORED, content),
            NpzCompression::Deflate => {
                let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(content)?;
                deflated = encoder.finish()?;
                (METHOD_DEFLATE, deflated.as_slice())
            }
        };
        let too_large = |_| NpzError::TooLargeToWrite;
        let name_bytes = u16::try_from(name.len()).map_err(too_large)?;
        // The fields that the header of the entry and the directory have in common.
        let mut common = Vec::new();
        for field in [VERSION_NEEDED, FLAG_UTF8, method, 0, NO_DATE] {
            common.extend(field.to_le_bytes());
        }
        common.extend(crc.sum().to_le_bytes());
        for size in [size(stored.len())?, size(content.len())?] {
            common.extend(size.to_le_bytes());
        }
        common.extend(name_bytes.to_le_bytes());
        common.extend([0; 2]);

        let header = [&LOCAL_HEADER.to_le_bytes(), common.as_slice(), name.as_bytes()].concat();
        self.directory.extend(DIRECTORY_ENTRY.to_le_bytes());
        self.directory.extend(VERSION_NEEDED.to_le_bytes());
        self.directory.extend(&common);
        // No comment, first part, no attributes.
        self.directory.extend([0; DIRECTORY_ENTRY_BYTES - LOCAL_HEADER_BYTES - 2 - 4]);
        self.directory.extend(self.position.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.write(&header)?;
        self.write(stored)?;
        // The greatest number stands for a 64-bit one.
        let entries = self.entries.checked_add(1).filter(|&entries| entries < u16::MAX);
        self.entries = entries.ok_or(NpzError::TooLargeToWrite)?;
        Ok(())
    }

    /// Writes the directory and the end.
    pub(super) fn finish(mut self) -> Result<(), NpzError> {
        let directory = std::mem::take(&mut self.directory);
        let offset = self.position;
        self.write(&directory)?;
        let mut end = Vec::new();
        end.extend(END.to_le_bytes());
        for field in [0, 0, self.entries, self.entries] {
            end.extend(field.to_le_bytes());
        }
        end.extend(size(directory.len())?.to_le_bytes());
        end.extend(offset.to_le_bytes());
        end.extend([0; 2]);
        self.writer.write_all(&end)?;
        Ok(self.writer.flush()?)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), NpzError> {
        self.position = self.position.checked_add(size(bytes.len())?).ok_or(NpzError::TooLargeToWrite)?;
        Ok(self.writer.write_all(bytes)?)
    }
}

/// A size that the 32-bit fields hold; the greatest of them stands for a 64-bit size.
fn size(bytes: usize) -> Result<u32, NpzError> {
    match u32::try_from(bytes) {
        Ok(size) if size < u32::MAX => Ok(size),
        _ => Err(NpzError::TooLargeToWrite),
    }
}
