//! The header of an npy file: a Python dictionary of three entries, written as Python would print it.

use super::{NpyError, NpyType};

/// The most axes that a numpy array has.
pub const MAX_RANK: usize = 64;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers are filled up so that the elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// The order of the elements in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The last axis varies fastest.
    RowMajor,
    /// The first axis varies fastest (`fortran_order`).
    ColumnMajor,
}

/// What the header says of the elements after it.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) dtype: NpyType,
    pub(super) big_endian: bool,
    pub(super) order: Order,
    pub(super) shape: Vec<usize>,
}

/// Reads the header at the front of `file`; returns it with the offset of the elements.
pub(super) fn parse(file: &[u8]) -> Result<(Header, usize), NpyError> {
    let after_magic = file.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
    let (&[major, minor], rest) = after_magic.split_first_chunk().ok_or(NpyError::Magic)?;
    let cut = |width: u64| NpyError::HeaderLength { length: width, left: rest.len() };
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(|| cut(2))?;
            (u64::from(u16::from_le_bytes(*length)), rest)
        }
        (2 | 3, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(|| cut(4))?;
            (u64::from(u32::from_le_bytes(*length)), rest)
        }
        _ => return Err(NpyError::Version { major, minor }),
    };
    let header = usize::try_from(length)
        .ok()
        .and_then(|length| rest.get(..length))
        .ok_or(NpyError::HeaderLength { length, left: rest.len() })?;
    let start = file.len() - rest.len() + header.len();
    Ok((Parser { text: header, position: 0 }.dictionary()?, start))
}

/// The bytes before the elements, for a row-major, little-endian array.
pub(super) fn write(dtype: NpyType, shape: &[usize]) -> Vec<u8> {
    let (letter, width) = dtype.letter_and_width();
    let order = if dtype.part_width() == 1 { '|' } else { '<' };
    let dims: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    // Python writes (), (3,) and (3, 4).
    let dims = if shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut text = format!(
        "{{'descr': '{order}{}{width}', 'fortran_order': False, 'shape': ({dims}), }}",
        char::from(letter)
    );
    let preamble = MAGIC.len() + 4;
    let filled = (preamble + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', filled - preamble - text.len() - 1));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // At most MAX_RANK dims of 20 digits: far from 65,535.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

/// Reads the few forms of Python literals that occur.
struct Parser<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Parser<'a> {
    fn dictionary(mut self) -> Result<Header, NpyError> {
        let (mut element, mut order, mut shape) = (None, None, None);
        self.expect(b'{', "`{`")?;
        while !self.accept(b'}') {
            let key_offset = self.position;
            let key = self.string()?;
            self.expect(b':', "`:`")?;
            let repeated = match key {
                b"descr" => element.replace(self.element_type()?).is_some(),
                b"fortran_order" => order.replace(self.order()?).is_some(),
                b"shape" => shape.replace(self.shape()?).is_some(),
                _ => true,
            };
            if repeated {
                let expected = "`descr`, `fortran_order` and `shape`, once each";
                return Err(NpyError::Header { offset: key_offset, expected });
            }
            if !self.accept(b',') {
                self.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        self.spaces();
        if self.position != self.text.len() {
            return Err(self.error("spaces up to the end"));
        }
        let (dtype, big_endian) = element.ok_or_else(|| self.error("`descr`"))?;
        let order = order.ok_or_else(|| self.error("`fortran_order`"))?;
        let shape = shape.ok_or_else(|| self.error("`shape`"))?;
        Ok(Header { dtype, big_endian, order, shape })
    }

    fn error(&self, expected: &'static str) -> NpyError {
        NpyError::Header { offset: self.position, expected }
    }

    fn spaces(&mut self) {
        let spaces = self.text[self.position..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.position += spaces;
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.spaces();
        let found = self.text.get(self.position) == Some(&byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.accept(byte) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn accept_word(&mut self, word: &[u8]) -> bool {
        self.spaces();
        let found = self.text[self.position..].starts_with(word);
        self.position += if found { word.len() } else { 0 };
        found
    }

    fn string(&mut self) -> Result<&'a [u8], NpyError> {
        let quote = match (self.accept(b'\''), self.text.get(self.position)) {
            (true, _) => b'\'',
            (false, Some(b'"')) => {
                self.position += 1;
                b'"'
            }
            _ => return Err(self.error("a string")),
        };
        let rest = &self.text[self.position..];
        let length = rest.iter().position(|&byte| byte == quote || byte == b'\\');
        match length {
            Some(length) if rest[length] == quote => {
                self.position += length + 1;
                Ok(&rest[..length])
            }
            _ => Err(self.error("a string that ends, without escapes")),
        }
    }

    /// The element type, and whether its bytes are big-endian.
    fn element_type(&mut self) -> Result<(NpyType, bool), NpyError> {
        self.spaces();
        if self.text.get(self.position) == Some(&b'[') {
            return Err(NpyError::ElementType("of records".to_owned()));
        }
        let text = self.string()?;
        let (order, name) = match text.split_first() {
            Some((order @ (b'<' | b'>' | b'|' | b'='), name)) => (*order, name),
            _ => (b'=', text),
        };
        let dtype = match name {
            b"b1" => NpyType::Bool,
            b"i1" => NpyType::I8,
            b"i2" => NpyType::I16,
            b"i4" => NpyType::I32,
            b"i8" => NpyType::I64,
            b"u1" => NpyType::U8,
            b"u2" => NpyType::U16,
            b"u4" => NpyType::U32,
            b"u8" => NpyType::U64,
            b"f2" => NpyType::F16,
            b"f4" => NpyType::F32,
            b"f8" => NpyType::F64,
            b"c8" => NpyType::C64,
            b"c16" => NpyType::C128,
            b"V1" => NpyType::Void1,
            b"V2" => NpyType::Void2,
            [b'O', ..] => return Err(NpyError::Objects),
            _ => return Err(NpyError::ElementType(String::from_utf8_lossy(text).into_owned())),
        };
        // Without an order, or with `=`, the writer's own is meant, which the file does not tell.
        let known = dtype.part_width() == 1 || matches!(order, b'<' | b'>');
        if !known {
            return Err(NpyError::ElementType(String::from_utf8_lossy(text).into_owned()));
        }
        Ok((dtype, order == b'>'))
    }

    fn order(&mut self) -> Result<Order, NpyError> {
        if self.accept_word(b"True") {
            Ok(Order::ColumnMajor)
        } else if self.accept_word(b"False") {
            Ok(Order::RowMajor)
        } else {
            Err(self.error("`True` or `False`"))
        }
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        let mut shape = Vec::new();
        self.expect(b'(', "`(`")?;
        loop {
            if self.accept(b')') {
                return Ok(shape);
            }
            if shape.len() == MAX_RANK {
                return Err(NpyError::Rank);
            }
            shape.push(self.dim()?);
            if !self.accept(b',') {
                // In Python `(3)` is a number, not a tuple.
                if shape.len() == 1 {
                    return Err(self.error("`,`"));
                }
                self.expect(b')', "`,` or `)`")?;
                return Ok(shape);
            }
        }
    }

    fn dim(&mut self) -> Result<usize, NpyError> {
        self.spaces();
        let rest = &self.text[self.position..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let value = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
        let value = value.ok_or_else(|| self.error("a dim of at most 64 bits, not negative"))?;
        self.position += digits;
        // Python 2 wrote long integers with a letter.
        if self.text.get(self.position) == Some(&b'L') {
            self.position += 1;
        }
        Ok(value)
    }
}
