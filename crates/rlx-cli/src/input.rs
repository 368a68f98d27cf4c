//! What stands behind `--input`: `name=source`, where the source is a file, a value or random numbers.
//!
//! | source | meaning |
//! |---|---|
//! | `file.npy` | the array in the file |
//! | `file.npz`, `file.npz#member` | the array of the input's name in the archive, or the member named |
//! | `file.wav` | the sound, frames × channels |
//! | `file.png` | the picture, height × width × channels |
//! | `file.json` | nested lists of numbers |
//! | `3`, `true`, `[[1, 2], [3, 4]]` | the value itself, in JSON |
//! | `random`, `random:2,N,8` | random numbers, in the shape that the model declares or the one given |
//!
//! Only the words are looked at here; which element type and which sizes fit is known when the model is.

pub(crate) mod json;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use json::{JsonArray, JsonError};

/// One `--input`: the name of a model's input, and where its value comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InputArgument {
    /// The input's name in the model.
    pub(crate) name: String,
    /// Where its value comes from.
    pub(crate) source: InputSpec,
}

/// Where the value of an input comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputSpec {
    /// A NumPy array file.
    Npy(PathBuf),
    /// An array in a NumPy archive.
    Npz {
        /// The archive.
        path: PathBuf,
        /// The member; the input's own name if none is given.
        member: Option<String>,
    },
    /// A sound file.
    Wav(PathBuf),
    /// A picture file.
    Png(PathBuf),
    /// A file of nested lists of numbers.
    Json(PathBuf),
    /// A value written on the command line.
    Value(JsonArray),
    /// Random numbers: in this shape, or the one that the model declares.
    Random(Option<Vec<Size>>),
}

/// One size of a shape on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Size {
    /// A number.
    Number(usize),
    /// A symbol of the model, set by `--set`.
    Symbol(String),
}

/// Why an `--input` cannot be understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// There is no `=`.
    #[error("`{0}` is not an input: expected name=source, as in x=array.npy")]
    NoSource(String),
    /// Nothing stands before the `=`.
    #[error("`{0}` names no input before the `=`")]
    NoName(String),
    /// The source is neither a file of a known kind, nor a value, nor `random`.
    #[error(
        "input `{name}`: `{source_text}` is not a source: expected a file (.npy .npz .wav .png .json), \
         a number, a list in brackets, or random[:sizes]"
    )]
    UnknownSource {
        /// The input.
        name: String,
        /// What stands after the `=`.
        source_text: String,
    },
    /// A size in `random:sizes` is neither a number nor a symbol's name.
    #[error("input `{name}`: `{size}` is not a size: expected a number or a symbol, as in random:2,N,8")]
    Size {
        /// The input.
        name: String,
        /// The size that is none.
        size: String,
    },
    /// A value on the command line is no list of numbers.
    #[error("input `{name}`: {error}")]
    Value {
        /// The input.
        name: String,
        /// What is wrong with it.
        error: JsonError,
    },
}

impl FromStr for InputArgument {
    type Err = InputError;

    /// Splits at the first `=`: names with that sign are rarer than files with it.
    fn from_str(text: &str) -> Result<Self, InputError> {
        let (name, source) = text.split_once('=').ok_or_else(|| InputError::NoSource(text.to_owned()))?;
        if name.is_empty() {
            return Err(InputError::NoName(text.to_owned()));
        }
        Ok(Self { name: name.to_owned(), source: parse_source(name, source)? })
    }
}

fn parse_source(name: &str, text: &str) -> Result<InputSpec, InputError> {
    let unknown = || InputError::UnknownSource { name: name.to_owned(), source_text: text.to_owned() };
    if let Some(sizes) = text.strip_prefix("random:") {
        return Ok(InputSpec::Random(Some(parse_sizes(name, sizes)?)));
    }
    if text == "random" {
        return Ok(InputSpec::Random(None));
    }
    if let Some(file) = file_source(text) {
        return Ok(file);
    }
    let looks_like_value = text.starts_with(['[', '-', '"'])
        || text.starts_with(|first: char| first.is_ascii_digit())
        || matches!(text, "true" | "false");
    if !looks_like_value {
        return Err(unknown());
    }
    match JsonArray::parse(text) {
        Ok(value) => Ok(InputSpec::Value(value)),
        // `3dogs` is more likely a mistyped file than a mistyped number; a bracket is a list.
        Err(_) if !text.starts_with(['[', '"']) => Err(unknown()),
        Err(error) => Err(InputError::Value { name: name.to_owned(), error }),
    }
}

/// A file, if the text ends as the name of one does.
fn file_source(text: &str) -> Option<InputSpec> {
    if let Some((archive, member)) = text.rsplit_once('#')
        && extension(archive).as_deref() == Some("npz")
    {
        let member = (!member.is_empty()).then(|| member.to_owned());
        return Some(InputSpec::Npz { path: archive.into(), member });
    }
    let path = PathBuf::from(text);
    match extension(text)?.as_str() {
        "npy" => Some(InputSpec::Npy(path)),
        "npz" => Some(InputSpec::Npz { path, member: None }),
        "wav" => Some(InputSpec::Wav(path)),
        "png" => Some(InputSpec::Png(path)),
        "json" => Some(InputSpec::Json(path)),
        _ => None,
    }
}

/// The ending of a file's name, in small letters.
fn extension(text: &str) -> Option<String> {
    Some(Path::new(text).extension()?.to_str()?.to_ascii_lowercase())
}

/// Sizes between commas, with or without brackets; nothing at all is the shape of a scalar.
fn parse_sizes(name: &str, text: &str) -> Result<Vec<Size>, InputError> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    let parse = |size: &str| {
        let size = size.trim();
        let refused = || InputError::Size { name: name.to_owned(), size: size.to_owned() };
        let mut letters = size.chars();
        match letters.next() {
            Some(first) if first.is_ascii_digit() => size.parse().map(Size::Number).map_err(|_| refused()),
            Some(first)
                if (first.is_alphabetic() || first == '_')
                    && letters.all(|letter| letter.is_alphanumeric() || "_-./:".contains(letter)) =>
            {
                Ok(Size::Symbol(size.to_owned()))
            }
            _ => Err(refused()),
        }
    };
    inner.split(',').map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::json::Elements;
    use super::*;

    fn source(text: &str) -> InputSpec {
        let argument: InputArgument = format!("x={text}").parse().unwrap();
        assert_eq!(argument.name, "x");
        argument.source
    }

    fn refusal(text: &str) -> InputError {
        text.parse::<InputArgument>().unwrap_err()
    }

    #[test]
    fn a_file_is_known_by_its_ending() {
        assert_eq!(source("a/b.npy"), InputSpec::Npy("a/b.npy".into()));
        assert_eq!(source("B.WAV"), InputSpec::Wav("B.WAV".into()));
        assert_eq!(source("./p.png"), InputSpec::Png("./p.png".into()));
        assert_eq!(source("3.json"), InputSpec::Json("3.json".into()));
    }

    #[test]
    fn an_archive_may_name_its_member() {
        assert_eq!(source("a.npz"), InputSpec::Npz { path: "a.npz".into(), member: None });
        let member = Some("left/ear".to_owned());
        assert_eq!(source("a.npz#left/ear"), InputSpec::Npz { path: "a.npz".into(), member });
        assert_eq!(source("take#2.npy"), InputSpec::Npy("take#2.npy".into()));
    }

    #[test]
    fn the_first_equals_sign_ends_the_name() {
        let argument: InputArgument = "serving_default_input_2:0=run=3.npy".parse().unwrap();
        assert_eq!(argument.name, "serving_default_input_2:0");
        assert_eq!(argument.source, InputSpec::Npy("run=3.npy".into()));
    }

    #[test]
    fn random_takes_numbers_symbols_or_the_models_shape() {
        let number = Size::Number;
        assert_eq!(source("random"), InputSpec::Random(None));
        assert_eq!(source("random:"), InputSpec::Random(Some(vec![])));
        assert_eq!(source("random:[2, 0]"), InputSpec::Random(Some(vec![number(2), number(0)])));
        let symbolic = vec![number(1), Size::Symbol("seq_len".to_owned())];
        assert_eq!(source("random:1,seq_len"), InputSpec::Random(Some(symbolic)));
    }

    #[test]
    fn sizes_that_are_none_are_named() {
        for (text, wrong) in [
            ("x=random:2,-1", "-1"),
            ("x=random:2,,3", ""),
            ("x=random:2x3", "2x3"),
            ("x=random:99999999999999999999", "99999999999999999999"),
            ("x=random:[2", "[2"),
        ] {
            assert!(matches!(refusal(text), InputError::Size { size, .. } if size == wrong), "{text}");
        }
    }

    #[test]
    fn values_can_be_written_out() {
        let value =
            |shape: &[usize], elements| InputSpec::Value(JsonArray { shape: shape.to_vec(), elements });
        assert_eq!(source("16000"), value(&[], Elements::Integer(vec![16_000])));
        assert_eq!(source("-0.5"), value(&[], Elements::Float(vec![-0.5])));
        assert_eq!(source("true"), value(&[], Elements::Bool(vec![true])));
        assert_eq!(source("[[1, 2], [3, 4]]"), value(&[2, 2], Elements::Integer(vec![1, 2, 3, 4])));
    }

    #[test]
    fn what_is_no_input_is_refused_with_what_was_expected() {
        assert!(matches!(refusal("file.npy"), InputError::NoSource(_)));
        assert!(matches!(refusal("=file.npy"), InputError::NoName(_)));
        for text in ["x=", "x=file.txt", "x=file", "x=3dogs", "x=rand:2", "x=.npy"] {
            assert!(matches!(refusal(text), InputError::UnknownSource { .. }), "{text}");
        }
        assert!(matches!(refusal("x=[1, 2"), InputError::Value { .. }));
        assert!(matches!(refusal("x=[[1], 2]"), InputError::Value { error: JsonError::Ragged { .. }, .. }));
        assert!(refusal("x=file.txt").to_string().contains(".npy .npz .wav .png .json"));
    }
}
