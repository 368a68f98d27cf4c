//! The text of recorded cases and file tests.
//!
//! ```text
//! // A comment: a line that begins with two slashes.
//! case "layer_norm/f16_small" accumulated(12)
//! graph "g"(%x: f16[2, 3]) {
//!   %y = layer_norm<axis=-1, eps=1e-5>(%x)
//!   return "y" = %y
//! }
//! run: f16[2, 3] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
//!   -> f64[2, 3] [-1.2247, 0.0, 1.2247, -1.2247, 0.0, 1.2247]
//! ```
//! A file is a list of entries. Each begins with `case "operation/name"` and a tolerance
//! ([`Tolerance::parse`]; `exact` if left out), then has a graph, then directives, each at the start of a line and
//! continued by indented lines:
//! - `run: INPUTS -> RESULTS` or `run: INPUTS -> error "part of the message"`; literals as in the text form, separated
//!   by commas. Results of float type may be given in f64.
//! - `error: "part of the message"`: the graph must not build.
//! - `pass: NAME`, followed by the graph that the pass must give.

use crate::case::split_top_level;
use crate::tolerance::Tolerance;
use rlx_ir::op::{Op, Primitive};
use rlx_ir::{Literal, text};
use std::fmt::Write;

/// One entry of a file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The comment lines before it.
    pub comment: String,
    /// The operation's name, or the subject of a file test.
    pub op: String,
    /// The case's name.
    pub name: String,
    /// The line it begins at, from 1.
    pub line: usize,
    /// How results are judged.
    pub tolerance: Tolerance,
    /// The graph's text, without the version line.
    pub graph: String,
    /// What is asked of it.
    pub directives: Vec<Directive>,
}

/// Something that is asked of a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Directive {
    /// It runs.
    Run {
        /// On these inputs.
        inputs: Vec<Literal>,
        /// And gives these results.
        outcome: Outcome,
    },
    /// It does not build; the message contains this.
    Error(String),
    /// A pass makes another graph of it.
    Pass {
        /// The pass.
        name: String,
        /// The text of the graph that it gives, without the version line.
        graph: String,
    },
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With these results.
    Values(Vec<Literal>),
    /// With an error whose message contains this.
    Error(String),
}

/// A file that is no list of cases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FormatError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// A directive's lines joined, with the line it began at and the comment lines before it.
struct Block {
    comment: String,
    line: usize,
    text: String,
}

/// Lines grouped by the ones that begin at the left margin. A graph ends at the `}` that stands there.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut comment = String::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("//") {
            comment += &format!("{line}\n");
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let continues = line.starts_with([' ', '\t', '}']);
        match blocks.last_mut() {
            Some(block) if continues => {
                block.text.push('\n');
                block.text.push_str(line);
            }
            _ => blocks.push(Block {
                comment: std::mem::take(&mut comment),
                line: i + 1,
                text: line.to_string(),
            }),
        }
    }
    blocks
}

/// Reads a file.
pub fn parse(text: &str) -> Result<Vec<Entry>, FormatError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut pass: Option<String> = None;
    for block in blocks(text) {
        let error = |message: String| FormatError { line: block.line, message };
        let body = block.text.trim();
        if let Some(rest) = body.strip_prefix("case ") {
            let (title, tolerance) =
                quoted(rest).ok_or_else(|| error("a case needs a quoted title".into()))?;
            let (op, name) =
                title.split_once('/').ok_or_else(|| error(format!("{title:?} is no \"operation/name\"")))?;
            let tolerance = match tolerance.trim() {
                "" => Tolerance::Exact,
                text => Tolerance::parse(text).ok_or_else(|| error(format!("{text:?} is no tolerance")))?,
            };
            entries.push(Entry {
                comment: block.comment.clone(),
                op: op.to_string(),
                name: name.to_string(),
                line: block.line,
                tolerance,
                graph: String::new(),
                directives: Vec::new(),
            });
            continue;
        }
        let Some(entry) = entries.last_mut() else {
            return Err(error(format!("expected `case`, found {:?}", first_line(body))));
        };
        if body.starts_with("graph ") {
            match pass.take() {
                Some(name) => entry.directives.push(Directive::Pass { name, graph: body.to_string() }),
                None if entry.graph.is_empty() => entry.graph = body.to_string(),
                None => return Err(error("a second graph".into())),
            }
        } else if let Some(rest) = body.strip_prefix("run:") {
            entry.directives.push(run(rest).map_err(error)?);
        } else if let Some(rest) = body.strip_prefix("error:") {
            let (text, _) = quoted(rest).ok_or_else(|| error("an error needs a quoted text".into()))?;
            entry.directives.push(Directive::Error(text));
        } else if let Some(rest) = body.strip_prefix("pass:") {
            pass = Some(rest.trim().to_string());
        } else {
            return Err(error(format!("expected a directive, found {:?}", first_line(body))));
        }
    }
    match pass {
        Some(name) => {
            Err(FormatError { line: text.lines().count(), message: format!("no graph after pass {name}") })
        }
        None => Ok(entries),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

/// The text in quotes that `text` begins with, and what follows. Quotes and backslashes are escaped by a backslash.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.trim_start().strip_prefix('"')?;
    let (mut content, mut escaped) = (String::new(), false);
    for (at, c) in inner.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return Some((content, &inner[at + 1..])),
            _ => {
                content.push(c);
                escaped = false;
            }
        }
    }
    None
}

fn run(text: &str) -> Result<Directive, String> {
    let (inputs, outcome) = text.split_once("->").ok_or("expected `->`")?;
    let outcome = match outcome.trim().strip_prefix("error") {
        Some(rest) => Outcome::Error(quoted(rest).ok_or("an error needs a quoted text")?.0),
        None => Outcome::Values(parse_literals(outcome)?),
    };
    Ok(Directive::Run { inputs: parse_literals(inputs)?, outcome })
}

/// Reads literals separated by commas.
pub fn parse_literals(text: &str) -> Result<Vec<Literal>, String> {
    split_top_level(text).into_iter().map(parse_literal).collect()
}

/// Reads a literal: the text form has literals only as attributes, so this reads a graph of one constant.
pub fn parse_literal(literal: &str) -> Result<Literal, String> {
    let graph =
        format!("rlx {} graph \"literal\"() {{ %v = constant<value={literal}>() return }}", text::VERSION);
    let graph =
        text::parse(&graph).map_err(|e| format!("{}: {e}", literal.chars().take(60).collect::<String>()))?;
    match graph.nodes().next().map(|(_, node)| &node.op) {
        Some(Op::Primitive(Primitive::Constant(constant))) => Ok(constant.value.clone()),
        _ => Err(format!("{literal} is no literal")),
    }
}

/// Writes a literal in full, whatever its size.
pub fn print_literal(literal: &Literal) -> String {
    // The text form gives large literals by hash; their rows print as lists one after the other.
    let count = literal.element_count();
    let width = literal.bytes().len().checked_div(count).unwrap_or(0);
    let mut out = format!("{} ", literal.tensor_type());
    if width == 0
        || width * count != literal.bytes().len()
        || literal.bytes().len() <= rlx_ir::literal::INLINE_BYTES
    {
        return out + &print_elements(literal);
    }
    let per_part = rlx_ir::literal::INLINE_BYTES / width;
    let mut parts = Vec::new();
    let mut hexadecimal = false;
    for start in (0..count).step_by(per_part) {
        let n = per_part.min(count - start);
        let bytes = literal.bytes().slice(start * width..(start + n) * width);
        let Ok(part) = Literal::new(literal.dtype(), [n], bytes) else { continue };
        let printed = print_elements(&part);
        hexadecimal = printed.starts_with('"');
        parts.push(printed.trim_matches(['[', ']', '"']).trim_start_matches('x').to_string());
    }
    let _ = match hexadecimal {
        true => write!(out, "\"x{}\"", parts.concat()),
        false => write!(out, "[{}]", parts.join(", ")),
    };
    out
}

/// The elements of a literal of at most [`rlx_ir::literal::INLINE_BYTES`].
fn print_elements(literal: &Literal) -> String {
    let mut b = rlx_ir::Builder::new("literal");
    let value = b.constant(literal.clone());
    let Ok(graph) = b.finish([("v", value)]) else { return String::new() };
    let printed = text::print(&graph);
    let marker = format!("value={} ", literal.tensor_type());
    let start = printed.find(&marker).map_or(0, |at| at + marker.len());
    let end = printed[start..].find(">()").map_or(printed.len(), |at| start + at);
    printed[start..end].to_string()
}

/// Writes an entry as [`parse`] reads it.
pub fn print(entry: &Entry) -> String {
    let mut out = format!("{}case \"{}/{}\"", entry.comment, entry.op, entry.name);
    if !matches!(entry.tolerance, Tolerance::Exact) {
        let _ = write!(out, " {}", entry.tolerance);
    }
    let _ = write!(out, "\n{}\n", entry.graph);
    for directive in &entry.directives {
        let _ = match directive {
            Directive::Error(text) => writeln!(out, "error: {}", quote(text)),
            Directive::Pass { name, graph } => writeln!(out, "pass: {name}\n{graph}"),
            Directive::Run { inputs, outcome } => {
                let inputs: Vec<String> = inputs.iter().map(print_literal).collect();
                let outcome = match outcome {
                    Outcome::Error(text) => format!("error {}", quote(text)),
                    Outcome::Values(values) => {
                        values.iter().map(print_literal).collect::<Vec<_>>().join(",\n     ")
                    }
                };
                writeln!(out, "run: {}\n  -> {outcome}", inputs.join(",\n     "))
            }
        };
    }
    out
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::f32s;

    const TEXT: &str = "\
// What a file looks like.
case \"add/two\" accumulated(3)
graph \"g\"(%x: f32[n], %y: f32[n]) {
  %z = add(%x, %y)
  return \"z\" = %z
}
run: f32[2] [1.0, 2.0],
     f32[2] [0.5, -inf]
  -> f32[2] [1.5, -inf]
run: f32[1] [1.0], f32[2] [0.0, 0.0]
  -> error \"C2\"
case \"add/wrong\"
graph \"g\"(%x: f32[1], %y: f32[2]) {
  %z = add(%x, %y)
  return \"z\" = %z
}
error: \"add: C2\"
";

    #[test]
    fn what_is_read_prints_the_same() {
        let entries = parse(TEXT).unwrap_or_else(|e| panic!("{e}"));
        let printed: String = entries.iter().map(print).collect();
        assert_eq!(
            printed,
            TEXT.lines()
                .map(|l| format!("{l}\n"))
                .collect::<String>()
                .replace("f32[1] [1.0], ", "f32[1] [1.0],\n     ")
        );
        assert_eq!(entries[0].directives.len(), 2);
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text| parse(text).map(|_| ()).unwrap_err().to_string();
        assert_eq!(message("// a\nrun: 3"), "line 2: expected `case`, found \"run: 3\"");
        assert_eq!(message("case \"a/b\" nearly"), "line 1: \"nearly\" is no tolerance");
        assert_eq!(message("case \"a/b\"\nrun: f32[1] [1.0]"), "line 2: expected `->`");
    }

    #[test]
    fn large_literals_print_in_full() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 / 8.0).collect();
        let literal = f32s([10, 100], values);
        assert_eq!(parse_literal(&print_literal(&literal)), Ok(literal));
        let bytes = Literal::new(rlx_ir::DType::C64, [200], vec![7u8; 1600]).unwrap();
        assert_eq!(parse_literal(&print_literal(&bytes)), Ok(bytes));
    }
}
