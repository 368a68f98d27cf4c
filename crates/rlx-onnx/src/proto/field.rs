//! The vocabulary of the generated field tables (`schema.rs`).

/// The greatest field number of the ONNX messages, plus one; a table longer than this does not compile.
pub(crate) const FIELD_SLOTS: usize = 32;

/// How a field is written, and what its values take in memory once decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A varint; in a list it takes so many bytes.
    Varint(usize),
    /// Four bytes.
    Fixed32,
    /// UTF-8 text, copied.
    String,
    /// Bytes that stay in the file.
    Bytes,
    /// A message: index into `MESSAGES`.
    Message(usize),
    /// Varints that stay in the file until the tensor is decoded, then so many bytes each.
    PackedVarint(usize),
    /// 32-bit floats that stay in the file.
    PackedFixed32,
    /// 64-bit floats that stay in the file.
    PackedFixed64,
}

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// Name in the `.proto` file.
    pub(crate) name: &'static str,
    /// How it is written.
    pub(crate) kind: Kind,
    /// Whether it may occur more than once.
    pub(crate) repeated: bool,
}

/// One message: its fields by number.
#[derive(Debug)]
pub(crate) struct MessageSchema {
    /// Name in the `.proto` file, without the package.
    pub(crate) name: &'static str,
    /// Bytes of the decoded struct.
    pub(crate) size: usize,
    /// Fields; the index is the field number.
    pub(crate) fields: &'static [Option<Field>],
}

/// A field number that is not in use.
pub(crate) const fn absent() -> Option<Field> {
    None
}

/// A field that occurs at most once.
pub(crate) const fn one(name: &'static str, kind: Kind) -> Option<Field> {
    Some(Field { name, kind, repeated: false })
}

/// A field that may occur any number of times.
pub(crate) const fn many(name: &'static str, kind: Kind) -> Option<Field> {
    Some(Field { name, kind, repeated: true })
}
