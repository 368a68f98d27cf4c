//! Text. It exists at import only, so its values must be constants; what comes out as numbers goes on as usual.

use std::sync::Arc;

use rlx_ir::Literal;

use super::logical::paired;
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::{Bound, Outputs, Text};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("RegexFullMatch", &[20], regex_full_match),
    onnx("StringConcat", &[20], string_concat),
    onnx("StringNormalizer", &[10], string_normalizer),
    onnx("StringSplit", &[20], string_split),
];

fn text(dims: Vec<usize>, elements: Vec<String>) -> Bound {
    Bound::Text(Arc::new(Text { dims, elements }))
}

fn string_concat(cx: &mut NodeContext<'_, '_>) -> Handled {
    let limit = cx.importer.options.limits.max_folded_elements;
    let (x, y) = (cx.text(0)?, cx.text(1)?);
    let Some((dims, pairs)) = paired(x, y, limit) else {
        let (expected, found) = (format!("sizes that meet {:?}", x.dims), format!("{:?}", y.dims));
        return Err(cx.bad_input(1, "sizes", expected, found));
    };
    let joined = pairs.map(|(x, y)| format!("{x}{y}")).collect();
    Ok(text(dims, joined).into())
}

/// Changes the case and drops stop words. What is left empty becomes one empty text.
fn string_normalizer(cx: &mut NodeContext<'_, '_>) -> Handled {
    let case = match cx.string("case_change_action", "NONE")?.as_str() {
        "NONE" => None,
        "LOWER" => Some(false),
        "UPPER" => Some(true),
        other => return Err(cx.bad_attribute("case_change_action", "LOWER, UPPER or NONE", other)),
    };
    let sensitive = cx.flag("is_case_sensitive", false)?;
    let stop_words = cx.strings("stopwords")?.unwrap_or_default();
    let x = cx.text(0)?;
    let mut dims = x.dims.clone();
    if !matches!(dims.as_slice(), [_] | [1, _]) {
        return Err(cx.bad_input(0, "sizes", "[n] or [1, n]", format!("{dims:?}")));
    }
    let stops = |element: &str| match sensitive {
        true => stop_words.iter().any(|word| word == element),
        false => stop_words.iter().any(|word| word.to_lowercase() == element.to_lowercase()),
    };
    let kept = x.elements.iter().filter(|e| !stops(e));
    let mut kept: Vec<String> = kept
        .map(|e| match case {
            None => e.clone(),
            Some(false) => e.to_lowercase(),
            Some(true) => e.to_uppercase(),
        })
        .collect();
    if kept.is_empty() {
        kept.push(String::new());
    }
    if let Some(last) = dims.last_mut() {
        *last = kept.len();
    }
    Ok(text(dims, kept).into())
}

/// The parts of each element between delimiters, filled up with empty text to one size, and how many there are.
/// Without a delimiter runs of white space divide, and those at the ends count for nothing.
fn string_split(cx: &mut NodeContext<'_, '_>) -> Handled {
    let delimiter = cx.optional_string("delimiter")?.filter(|d| !d.is_empty());
    let limit = match cx.optional_int("maxsplit")? {
        None => usize::MAX,
        Some(limit) => {
            usize::try_from(limit).map_err(|_| cx.bad_attribute("maxsplit", "at least 0", limit))?
        }
    };
    let x = cx.text(0)?;
    let parts: Vec<Vec<&str>> = x
        .elements
        .iter()
        .map(|element| match &delimiter {
            Some(_) if element.is_empty() => Vec::new(),
            Some(delimiter) => element.splitn(limit.saturating_add(1), delimiter.as_str()).collect(),
            None => words(element, limit),
        })
        .collect();
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    let counts: Vec<i64> = parts.iter().map(|p| p.len() as i64).collect();
    let dims = x.dims.clone();
    // The filled-up size can be far above the text's: one long row among many short ones.
    let limit = cx.importer.options.limits.max_folded_elements;
    if parts.len().checked_mul(most).is_none_or(|n| n > limit) {
        return Err(NodeProblem::Unsupported(format!("more than {limit} parts of text")));
    }
    let filled = |p: &Vec<&str>| (0..most).map(|i| p.get(i).copied().unwrap_or("").to_owned()).collect();
    let elements: Vec<String> = parts.iter().flat_map(|p| -> Vec<String> { filled(p) }).collect();
    let split_dims = dims.iter().copied().chain([most]).collect();
    let counts = cx.builder().constant(Literal::from_slice(dims, &counts)?);
    Ok(Outputs(vec![text(split_dims, elements), counts.into()]))
}

fn words(element: &str, limit: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = element.trim();
    while !rest.is_empty() {
        match rest.find(char::is_whitespace).filter(|_| words.len() < limit) {
            Some(end) => {
                words.push(&rest[..end]);
                rest = rest[end..].trim_start();
            }
            None => {
                words.push(rest);
                break;
            }
        }
    }
    words
}

/// Whether the pattern matches each element as a whole.
fn regex_full_match(cx: &mut NodeContext<'_, '_>) -> Handled {
    let pattern = cx.optional_string("pattern")?;
    let pattern = pattern.ok_or_else(|| NodeProblem::MissingAttribute { name: "pattern".to_owned() })?;
    let whole = regex_lite::Regex::new(&format!("^(?:{pattern})$"));
    let whole = whole.map_err(|e| cx.bad_attribute("pattern", "a regular expression", e))?;
    let x = cx.text(0)?;
    let matches: Vec<bool> = x.elements.iter().map(|e| whole.is_match(e)).collect();
    let dims = x.dims.clone();
    Ok(cx.builder().constant(Literal::from_slice(dims, &matches)?).into())
}
