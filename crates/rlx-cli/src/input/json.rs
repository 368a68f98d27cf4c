//! Nested lists of numbers in JSON, as an array: a shape and its elements in row-major order.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// An array read from JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonArray {
    /// Its sizes, outermost first; a lone number has none.
    pub(crate) shape: Vec<usize>,
    /// Its elements, as many as the product of the sizes.
    pub(crate) elements: Elements,
}

/// Elements of one kind, as exact as JSON writes them; the model's input says what they become.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Elements {
    /// All are `true` or `false`.
    Bool(Vec<bool>),
    /// All are integers of 64 bits, signed or not. An array without elements is of this kind.
    Integer(Vec<i128>),
    /// Numbers, at least one of which is no such integer.
    Float(Vec<f64>),
}

/// Why JSON is not an array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than [`LARGEST_FILE`].
    #[error("{}: {bytes} bytes of JSON are over the limit of {LARGEST_FILE}; write a .npy file instead", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The text is not JSON.
    #[error("not valid JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// Lists of one level differ in length, or numbers and lists are mixed.
    #[error("element {position} is {found}, the ones before it are {expected}")]
    Ragged {
        /// Where, as `[1][0]`.
        position: String,
        /// What the first element of this level is.
        expected: String,
        /// What this element is.
        found: String,
    },
    /// An element is no number: an object, null, or text other than `"NaN"`, `"Infinity"` and `"-Infinity"`.
    #[error(
        "element {position} is {found}, expected a number, true or false, \"NaN\", \"Infinity\" or \"-Infinity\""
    )]
    NotANumber {
        /// Where, as `[1][0]`; empty for a lone value.
        position: String,
        /// What stands there.
        found: String,
    },
    /// Truth values and numbers are mixed.
    #[error("truth values and numbers are mixed")]
    MixedKinds,
}

/// The longest JSON file that is read: 64 MiB. Parsed, an element takes some ten times its length in the file.
pub(crate) const LARGEST_FILE: u64 = 64 << 20;

impl JsonArray {
    /// Reads an array from a file.
    pub(crate) fn read(path: &Path) -> Result<Self, JsonError> {
        let refused = |source| JsonError::File { path: path.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(refused)?.len();
        if bytes > LARGEST_FILE {
            return Err(JsonError::TooLarge { path: path.to_owned(), bytes });
        }
        Self::parse(&std::fs::read_to_string(path).map_err(refused)?)
    }

    /// Reads an array from text. The parser refuses lists more than 127 deep.
    pub(crate) fn parse(text: &str) -> Result<Self, JsonError> {
        let value: Value = serde_json::from_str(text)?;
        let shape = shape_of(&value);
        let mut scalars = Vec::new();
        flatten(&value, &shape, &mut Vec::new(), &mut scalars)?;
        Ok(Self { shape, elements: common_kind(&scalars)? })
    }
}

/// The sizes of the first element of every level.
fn shape_of(value: &Value) -> Vec<usize> {
    let mut shape = Vec::new();
    let mut level = Some(value);
    while let Some(Value::Array(items)) = level {
        shape.push(items.len());
        level = items.first();
    }
    shape
}

/// One element.
#[derive(Clone, Copy)]
enum Scalar {
    Bool(bool),
    Integer(i128),
    Float(f64),
}

/// Collects the elements of a value that should have the given shape; `path` leads to the value.
fn flatten(
    value: &Value,
    shape: &[usize],
    path: &mut Vec<usize>,
    scalars: &mut Vec<Scalar>,
) -> Result<(), JsonError> {
    match (value, shape) {
        (Value::Array(items), [size, inner @ ..]) if items.len() == *size => {
            for (index, item) in items.iter().enumerate() {
                path.push(index);
                flatten(item, inner, path, scalars)?;
                path.pop();
            }
            Ok(())
        }
        (Value::Array(_), _) | (_, [_, ..]) => Err(JsonError::Ragged {
            position: position(path),
            expected: shape.first().map_or("not lists".to_owned(), |size| format!("lists of {size}")),
            found: describe(value),
        }),
        (_, []) => {
            scalars.push(
                scalar(value).ok_or_else(|| JsonError::NotANumber {
                    position: position(path),
                    found: describe(value),
                })?,
            );
            Ok(())
        }
    }
}

fn scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::Bool(truth) => Some(Scalar::Bool(*truth)),
        Value::Number(number) => match number.as_i128() {
            Some(integer) => Some(Scalar::Integer(integer)),
            None => number.as_f64().map(Scalar::Float),
        },
        Value::String(text) => match text.as_str() {
            "NaN" => Some(Scalar::Float(f64::NAN)),
            "Infinity" => Some(Scalar::Float(f64::INFINITY)),
            "-Infinity" => Some(Scalar::Float(f64::NEG_INFINITY)),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The elements in the one kind that holds them all.
fn common_kind(scalars: &[Scalar]) -> Result<Elements, JsonError> {
    let truths: Vec<bool> = scalars
        .iter()
        .filter_map(|scalar| match scalar {
            Scalar::Bool(truth) => Some(*truth),
            _ => None,
        })
        .collect();
    if !truths.is_empty() {
        return if truths.len() == scalars.len() {
            Ok(Elements::Bool(truths))
        } else {
            Err(JsonError::MixedKinds)
        };
    }
    let integers: Option<Vec<i128>> = scalars
        .iter()
        .map(|scalar| match scalar {
            Scalar::Integer(integer) => Some(*integer),
            _ => None,
        })
        .collect();
    if let Some(integers) = integers {
        return Ok(Elements::Integer(integers));
    }
    let floats = scalars.iter().map(|scalar| match scalar {
        Scalar::Bool(truth) => f64::from(u8::from(*truth)),
        Scalar::Integer(integer) => *integer as f64,
        Scalar::Float(float) => *float,
    });
    Ok(Elements::Float(floats.collect()))
}

fn position(path: &[usize]) -> String {
    path.iter().map(|index| format!("[{index}]")).collect()
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "text".to_owned(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<usize>, Elements) {
        let array = JsonArray::parse(text).unwrap();
        (array.shape, array.elements)
    }

    #[test]
    fn nesting_gives_the_shape() {
        assert_eq!(parsed("7"), (vec![], Elements::Integer(vec![7])));
        assert_eq!(parsed("[]"), (vec![0], Elements::Integer(vec![])));
        assert_eq!(parsed("[[], []]"), (vec![2, 0], Elements::Integer(vec![])));
        assert_eq!(parsed("[[[1], [2]], [[3], [4]]]"), (vec![2, 2, 1], Elements::Integer(vec![1, 2, 3, 4])));
    }

    #[test]
    fn integers_of_64_bits_stay_exact() {
        let expected = vec![i128::from(i64::MIN), i128::from(u64::MAX)];
        assert_eq!(
            parsed("[-9223372036854775808, 18446744073709551615]"),
            (vec![2], Elements::Integer(expected))
        );
    }

    #[test]
    fn one_fraction_makes_all_of_them_floats() {
        assert_eq!(parsed("[1, 2.5]"), (vec![2], Elements::Float(vec![1.0, 2.5])));
        assert_eq!(parsed("[1.0]"), (vec![1], Elements::Float(vec![1.0])));
    }

    #[test]
    fn numbers_that_json_lacks_are_written_as_text() {
        let (shape, Elements::Float(values)) = parsed(r#"["NaN", "Infinity", "-Infinity", 1]"#) else {
            panic!("expected floats");
        };
        assert_eq!(shape, [4]);
        assert!(values[0].is_nan());
        assert_eq!(values[1..], [f64::INFINITY, f64::NEG_INFINITY, 1.0]);
    }

    #[test]
    fn ragged_lists_are_refused_with_their_place() {
        for (text, place) in [
            ("[[1, 2], [3]]", "[1]"),
            ("[[1], 2]", "[1]"),
            ("[1, [2]]", "[1]"),
            ("[[[1]], [[1, 2]]]", "[1][0]"),
        ] {
            let refused = JsonArray::parse(text);
            assert!(
                matches!(&refused, Err(JsonError::Ragged { position, .. }) if position == place),
                "{refused:?}"
            );
        }
        let message = JsonArray::parse("[[1, 2], [3]]").unwrap_err().to_string();
        assert_eq!(message, "element [1] is a list of 1, the ones before it are lists of 2");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["null", "[null]", r#"["one"]"#, r#"[{"a": 1}]"#] {
            assert!(matches!(JsonArray::parse(text), Err(JsonError::NotANumber { .. })), "{text}");
        }
        assert!(matches!(JsonArray::parse("[true, 1]"), Err(JsonError::MixedKinds)));
        assert!(matches!(JsonArray::parse("[1,"), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn lists_nested_too_deep_are_refused_without_a_crash() {
        let deep = "[".repeat(100_000);
        assert!(matches!(JsonArray::parse(&deep), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = JsonArray::read(Path::new("no such file.json")).unwrap_err();
        assert!(error.to_string().starts_with("no such file.json: "), "{error}");
    }
}
