//! Walks protobuf bytes before they are decoded, and bounds what decoding them will allocate.
//!
//! Two bytes of an encoded file can ask for several hundred bytes of memory (an empty node in a list), so a small
//! file can exhaust the machine without one length in it being wrong. The scan follows the field tables of
//! `proto/schema.rs` without allocating more than its stack of open messages. It adds up what the decoder
//! allocates (structs, list growth, text) and what reading each tensor once allocates, and refuses the file where
//! the sum exceeds the budget. On the way it finds every cut, over-long or misplaced value, with its offset.

use thiserror::Error;

use crate::proto::field::{FIELD_SLOTS, Field, Kind, MessageSchema};
use crate::proto::schema::{MESSAGES, NODE_PROTO};
use crate::proto::wire::{WireProblem, varint};

/// What a file may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanLimits {
    pub(crate) nodes: usize,
    pub(crate) depth: usize,
    /// Bytes that decoding may allocate.
    pub(crate) heap_bytes: u64,
}

/// Why the scan refuses the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScanError {
    /// The bytes are not a protobuf message of the expected kind.
    #[error("malformed {message} at byte {offset}: {problem}")]
    Malformed {
        /// Offset of the offending key or value.
        offset: usize,
        /// The message that it is in, as `onnx-ml.proto` names it.
        message: &'static str,
        /// What is wrong there.
        problem: WireProblem,
    },
    /// More nodes than the limit, all graphs and functions together.
    #[error("more than {limit} nodes")]
    TooManyNodes {
        /// The limit, an option of the load.
        limit: usize,
    },
    /// Messages nested deeper than the limit.
    #[error("messages are nested deeper than {limit} levels at byte {offset}")]
    TooDeep {
        /// Offset of the message that is too deep.
        offset: usize,
        /// The limit, an option of the load.
        limit: usize,
    },
    /// Decoding would allocate more than the budget.
    #[error("decoding the first {offset} bytes takes more than the {limit} bytes of memory allowed")]
    TooMuchMemory {
        /// How far the scan came.
        offset: usize,
        /// The budget: an option of the load, and the file's size where the file is mapped.
        limit: u64,
    },
}

/// What a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanReport {
    /// Nodes in all graphs and functions.
    pub(crate) nodes: usize,
    /// An upper bound of the bytes that decoding, and reading every tensor once, allocates.
    pub(crate) heap_bytes: u64,
}

/// An open message.
struct Frame {
    schema: &'static MessageSchema,
    start: usize,
    end: usize,
    /// Values seen so far, by field number.
    counts: [u64; FIELD_SLOTS],
}

impl Frame {
    fn new(message: usize, start: usize, end: usize) -> Self {
        Self { schema: &MESSAGES[message], start, end, counts: [0; FIELD_SLOTS] }
    }
}

const WIRE_VARINT: u8 = 0;
const WIRE_FIXED64: u8 = 1;
const WIRE_LENGTH: u8 = 2;
const WIRE_FIXED32: u8 = 5;

/// Field numbers have 29 bits.
const MAX_FIELD_NUMBER: u64 = (1 << 29) - 1;

/// A growing vector starts with room for four elements of the sizes that occur here, and doubles.
const FIRST_CAPACITY: u64 = 4;

/// The least that a growing byte buffer allocates.
const FIRST_BYTES: u64 = 8;

/// Buffers that grow by doubling hold, while they grow, the old and the new block: at most three times the content.
const GROWTH: u64 = 3;

/// Bytes of a list element that shares the file (`Bytes`), and of the `String` made when the tensor is read.
const BYTES_ELEMENT: u64 = (size_of::<bytes::Bytes>() + size_of::<String>()) as u64;

/// Scans `bytes` as the message with index `root` in the schema.
pub(crate) fn scan(bytes: &[u8], root: usize, limits: ScanLimits) -> Result<ScanReport, ScanError> {
    let mut scanner = Scanner { bytes, limits, position: 0, report: ScanReport { nodes: 0, heap_bytes: 0 } };
    let mut open = vec![Frame::new(root, 0, bytes.len())];
    scanner.allocate(MESSAGES[root].size as u64)?;
    while let Some(frame) = open.last_mut() {
        if scanner.position == frame.end {
            open.pop();
            continue;
        }
        if let Some(nested) = scanner.field(frame)? {
            if open.len() >= limits.depth {
                return Err(ScanError::TooDeep { offset: nested.start, limit: limits.depth });
            }
            open.push(nested);
        }
    }
    Ok(scanner.report)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    limits: ScanLimits,
    position: usize,
    report: ScanReport,
}

impl Scanner<'_> {
    /// Reads one field of `frame`; returns the message that it opens, if it is one.
    fn field(&mut self, frame: &mut Frame) -> Result<Option<Frame>, ScanError> {
        let key_offset = self.position;
        let key = self.varint(frame)?;
        let number = key >> 3;
        let wire_type = (key & 7) as u8;
        let malformed =
            |problem| ScanError::Malformed { offset: key_offset, message: frame.schema.name, problem };
        if number == 0 || number > MAX_FIELD_NUMBER {
            return Err(malformed(WireProblem::FieldNumber(number)));
        }
        let slot = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(field) = frame.schema.fields.get(slot).copied().flatten() else {
            self.skip(frame, wire_type, key_offset)?;
            return Ok(None);
        };
        let packable = field.repeated && wire_type == WIRE_LENGTH;
        let fits = match field.kind {
            Kind::Varint(_) | Kind::PackedVarint(_) => packable || wire_type == WIRE_VARINT,
            Kind::Fixed32 | Kind::PackedFixed32 => packable || wire_type == WIRE_FIXED32,
            Kind::PackedFixed64 => packable || wire_type == WIRE_FIXED64,
            Kind::String | Kind::Bytes | Kind::Message(_) => wire_type == WIRE_LENGTH,
        };
        if !fits {
            return Err(malformed(WireProblem::FieldWireType { field: field.name, found: wire_type }));
        }
        if !field.repeated && frame.counts[slot] > 0 {
            return Err(malformed(WireProblem::DuplicateField { field: field.name }));
        }
        let content = self.skip(frame, wire_type, key_offset)?;
        match field.kind {
            Kind::Message(message) => {
                self.message(frame, slot, field, message)?;
                let end = self.position;
                self.position = end - content;
                return Ok(Some(Frame::new(message, self.position, end)));
            }
            Kind::String => {
                self.elements(frame, slot, field, 1, size_of::<String>() as u64)?;
                self.allocate(if content == 0 { 0 } else { FIRST_BYTES.max(content as u64) })?;
            }
            Kind::Bytes if field.repeated => {
                self.elements(frame, slot, field, 1, BYTES_ELEMENT)?;
                self.allocate(content as u64)?;
            }
            Kind::Bytes => frame.counts[slot] += 1,
            Kind::Varint(size) => {
                let count = self.varints(frame, wire_type, content)?;
                self.elements(frame, slot, field, count, size as u64)?;
            }
            Kind::Fixed32 => {
                let count = self.fixed(frame, field, 4, content)?;
                self.elements(frame, slot, field, count, 4)?;
            }
            Kind::PackedVarint(size) => {
                let count = self.varints(frame, wire_type, content)?;
                self.allocate(count.saturating_mul(size as u64))?;
                self.gathered(frame, slot, wire_type, content)?;
            }
            Kind::PackedFixed32 | Kind::PackedFixed64 => {
                let width = if field.kind == Kind::PackedFixed32 { 4 } else { 8 };
                self.fixed(frame, field, width, content)?;
                self.gathered(frame, slot, wire_type, content)?;
            }
        }
        Ok(None)
    }

    /// Counts a message that the decoder makes, before its fields are walked.
    fn message(
        &mut self,
        frame: &mut Frame,
        slot: usize,
        field: Field,
        message: usize,
    ) -> Result<(), ScanError> {
        let size = MESSAGES[message].size as u64;
        if message == NODE_PROTO {
            self.report.nodes += 1;
            if self.report.nodes > self.limits.nodes {
                return Err(ScanError::TooManyNodes { limit: self.limits.nodes });
            }
        }
        self.elements(frame, slot, field, 1, size)?;
        // One that occurs once may lie in a box of its own.
        self.allocate(if field.repeated { 0 } else { size })
    }

    /// Counts `count` more values of a field whose list elements have `size` bytes, growing as `Vec` does.
    fn elements(
        &mut self,
        frame: &mut Frame,
        slot: usize,
        field: Field,
        count: u64,
        size: u64,
    ) -> Result<(), ScanError> {
        let before = frame.counts[slot];
        let after = before + count;
        frame.counts[slot] = after;
        if !field.repeated {
            return Ok(());
        }
        let capacity =
            |length: u64| if length == 0 { 0 } else { length.next_power_of_two().max(FIRST_CAPACITY) };
        let (old, new) = (capacity(before), capacity(after));
        if new > old {
            self.report.heap_bytes -= old * size;
            // While the list moves, the block before the last growth is still there.
            let moving = if new > FIRST_CAPACITY { new / 2 } else { 0 };
            self.check((new + moving).saturating_mul(size))?;
            self.report.heap_bytes += new * size;
        }
        Ok(())
    }

    /// Counts the copy that a numeric tensor field needs unless it is written in one packed piece.
    fn gathered(
        &mut self,
        frame: &mut Frame,
        slot: usize,
        wire_type: u8,
        content: usize,
    ) -> Result<(), ScanError> {
        let pieces = frame.counts[slot];
        frame.counts[slot] += 1;
        if pieces == 0 && wire_type == WIRE_LENGTH {
            return Ok(());
        }
        // The first piece is copied when the second comes. Its length is not kept: the message so far holds it.
        let first = if pieces == 1 { self.position - frame.start } else { 0 };
        self.allocate(GROWTH * (first as u64 + FIRST_BYTES.max(content as u64)))
    }

    /// Checks the varints of a value of `content` bytes that ends here; returns how many there are.
    fn varints(&self, frame: &Frame, wire_type: u8, content: usize) -> Result<u64, ScanError> {
        if wire_type == WIRE_VARINT {
            return Ok(1);
        }
        let start = self.position - content;
        let (mut at, mut count) = (start, 0);
        while at < self.position {
            let (_, length) = varint(&self.bytes[at..self.position]).map_err(|problem| {
                ScanError::Malformed { offset: at, message: frame.schema.name, problem }
            })?;
            at += length;
            count += 1;
        }
        Ok(count)
    }

    /// Checks that a value of `content` bytes that ends here holds whole numbers; returns how many.
    fn fixed(&self, frame: &Frame, field: Field, width: usize, content: usize) -> Result<u64, ScanError> {
        if !content.is_multiple_of(width) {
            return Err(ScanError::Malformed {
                offset: self.position - content,
                message: frame.schema.name,
                problem: WireProblem::PackedLength { field: field.name, length: content, width },
            });
        }
        Ok((content / width) as u64)
    }

    fn varint(&mut self, frame: &Frame) -> Result<u64, ScanError> {
        let (value, length) = varint(&self.bytes[self.position..frame.end]).map_err(|problem| {
            ScanError::Malformed { offset: self.position, message: frame.schema.name, problem }
        })?;
        self.position += length;
        Ok(value)
    }

    /// Moves past a value; returns the bytes of its content, without the length before it.
    fn skip(&mut self, frame: &Frame, wire_type: u8, key_offset: usize) -> Result<usize, ScanError> {
        let malformed =
            |problem| ScanError::Malformed { offset: key_offset, message: frame.schema.name, problem };
        let content = match wire_type {
            WIRE_VARINT => {
                let start = self.position;
                self.varint(frame)?;
                return Ok(self.position - start);
            }
            WIRE_FIXED32 => 4,
            WIRE_FIXED64 => 8,
            WIRE_LENGTH => self.varint(frame)?,
            other => return Err(malformed(WireProblem::WireType(other))),
        };
        let left = frame.end - self.position;
        match usize::try_from(content) {
            Ok(length) if length <= left => {
                self.position += length;
                Ok(length)
            }
            _ if wire_type == WIRE_LENGTH => {
                Err(malformed(WireProblem::LengthPastEnd { length: content, left }))
            }
            _ => Err(malformed(WireProblem::Truncated)),
        }
    }

    fn allocate(&mut self, bytes: u64) -> Result<(), ScanError> {
        self.check(bytes)?;
        self.report.heap_bytes += bytes;
        Ok(())
    }

    fn check(&self, more: u64) -> Result<(), ScanError> {
        if self.report.heap_bytes.saturating_add(more) > self.limits.heap_bytes {
            return Err(ScanError::TooMuchMemory { offset: self.position, limit: self.limits.heap_bytes });
        }
        Ok(())
    }
}
