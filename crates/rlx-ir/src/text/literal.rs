//! Constants in the text form: a list of numbers, or hexadecimal bytes for what is no plain number.

use crate::dtype::DType;
use crate::literal::{Element, Literal};
use half::{bf16, f16};
use std::fmt::Write;

/// How one element prints and reads.
trait TextElement: Element {
    fn print(self, out: &mut String);
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        impl TextElement for $t {
            fn print(self, out: &mut String) {
                let _ = write!(out, "{self}");
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
plain!(i64, i32, i16, i8, u64, u32, u16, u8, bool);

macro_rules! float {
    ($($t:ty, $wide:ty, $bits:ty, $canonical_nan:expr;)*) => {$(
        impl TextElement for $t {
            fn print(self, out: &mut String) {
                let wide = <$wide>::from(self);
                let _ = if wide.is_finite() {
                    write!(out, "{wide:?}")
                } else if wide.is_infinite() {
                    write!(out, "{}", if wide < 0.0 { "-inf" } else { "inf" })
                } else if self.to_bits() == $canonical_nan {
                    write!(out, "nan")
                } else {
                    write!(out, "{:#x}", self.to_bits())
                };
            }
            fn parse(text: &str) -> Option<Self> {
                match text {
                    "nan" => Some(<$t>::from_bits($canonical_nan)),
                    "inf" => Some(<$t>::INFINITY),
                    "-inf" => Some(<$t>::NEG_INFINITY),
                    _ => match text.strip_prefix("0x") {
                        Some(hex) => <$bits>::from_str_radix(hex, 16).ok().map(<$t>::from_bits),
                        None => text.parse().ok(),
                    },
                }
            }
        }
    )*};
}
float! {
    f64, f64, u64, 0x7ff8_0000_0000_0000;
    f32, f32, u32, 0x7fc0_0000;
    f16, f32, u16, 0x7e00;
    bf16, f32, u16, 0x7fc0;
}

fn print_list<T: TextElement>(literal: &Literal, out: &mut String) {
    out.push('[');
    for (i, chunk) in literal.bytes().chunks_exact(size_of::<T>()).enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        T::read_le(chunk).print(out);
    }
    out.push(']');
}

/// Writes the elements.
pub(super) fn print(literal: &Literal, out: &mut String) {
    match literal.dtype() {
        DType::F64 => print_list::<f64>(literal, out),
        DType::F32 => print_list::<f32>(literal, out),
        DType::F16 => print_list::<f16>(literal, out),
        DType::BF16 => print_list::<bf16>(literal, out),
        DType::I64 => print_list::<i64>(literal, out),
        DType::I32 => print_list::<i32>(literal, out),
        DType::I16 => print_list::<i16>(literal, out),
        DType::I8 => print_list::<i8>(literal, out),
        DType::U64 => print_list::<u64>(literal, out),
        DType::U32 => print_list::<u32>(literal, out),
        DType::U16 => print_list::<u16>(literal, out),
        DType::U8 => print_list::<u8>(literal, out),
        // A bool byte other than 0 and 1 would not read back.
        DType::Bool if literal.bytes().iter().all(|b| *b < 2) => print_list::<bool>(literal, out),
        _ => {
            out.push_str("\"x");
            for byte in literal.bytes() {
                let _ = write!(out, "{byte:02x}");
            }
            out.push('"');
        }
    }
}

/// The bytes of elements given as texts, `Err` with the first that does not read.
pub(super) fn parse_list<'a>(dtype: DType, texts: &[&'a str]) -> Result<Vec<u8>, &'a str> {
    fn all<'a, T: TextElement>(texts: &[&'a str]) -> Result<Vec<u8>, &'a str> {
        let mut bytes = Vec::with_capacity(size_of::<T>() * texts.len());
        for text in texts {
            T::parse(text).ok_or(*text)?.write_le(&mut bytes);
        }
        Ok(bytes)
    }
    match dtype {
        DType::F64 => all::<f64>(texts),
        DType::F32 => all::<f32>(texts),
        DType::F16 => all::<f16>(texts),
        DType::BF16 => all::<bf16>(texts),
        DType::I64 => all::<i64>(texts),
        DType::I32 => all::<i32>(texts),
        DType::I16 => all::<i16>(texts),
        DType::I8 => all::<i8>(texts),
        DType::U64 => all::<u64>(texts),
        DType::U32 => all::<u32>(texts),
        DType::U16 => all::<u16>(texts),
        DType::U8 => all::<u8>(texts),
        DType::Bool => all::<bool>(texts),
        _ => Err(texts.first().copied().unwrap_or("[]")),
    }
}

/// The bytes of `x` followed by hexadecimal digits.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix('x')?.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}
