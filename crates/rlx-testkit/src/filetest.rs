//! File tests: graphs in the text form, with what running them, refusing them, or rewriting them must give.
//!
//! The files of a folder, `*.case`, are written as [`mod@crate::format`] says. The passes that `pass:` may name are
//! - `print`: nothing but reading and printing;
//! - `simplify`: rebuilding through the builder, which folds sizes, scalars and identities;
//! - `lower`: composites replaced by primitives, all the way down.
//!
//! With `bless`, expectations that do not hold are rewritten to what was found.

use crate::backend::Backend;
use crate::compare::{Bound, near_literal};
use crate::format::{self, Directive, Entry, Outcome};
use crate::oracle::Eval;
use crate::tolerance::Tolerance;
use rlx_ir::{Graph, Literal, lower, text, verify};
use std::path::{Path, PathBuf};

/// Why file tests could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum FileTestError {
    /// A file or folder cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file is no list of cases.
    #[error("{}: {cause}", path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: format::FormatError,
    },
}

/// What a run of file tests gave.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// How many directives were checked.
    pub checked: usize,
    /// What does not hold, each with file and line.
    pub failed: Vec<String>,
    /// The files that were rewritten.
    pub blessed: Vec<PathBuf>,
}

/// Runs every `*.case` file of a folder.
pub fn run_folder(folder: &Path, bless: bool) -> Result<FileReport, FileTestError> {
    let file_error = |path: &Path| {
        let path = path.to_path_buf();
        move |cause| FileTestError::File { path, cause }
    };
    let listing = std::fs::read_dir(folder).map_err(file_error(folder))?;
    let mut files: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "case"));
    files.sort();
    let mut report = FileReport::default();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(file_error(&path))?;
        let entries =
            format::parse(&text).map_err(|cause| FileTestError::Format { path: path.clone(), cause })?;
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for entry in &entries {
            let (blessed, messages) = run_entry(entry);
            report.checked += entry.directives.len();
            let place =
                |m: String| format!("{}:{}: {}/{}: {m}", path.display(), entry.line, entry.op, entry.name);
            failed.extend(messages.into_iter().map(place));
            found.push(blessed);
        }
        if bless && !failed.is_empty() {
            let printed: Vec<String> = found.iter().map(format::print).collect();
            std::fs::write(&path, printed.join("\n")).map_err(file_error(&path))?;
            report.blessed.push(path);
        } else {
            report.failed.extend(failed);
        }
    }
    Ok(report)
}

/// Checks one entry: the entry as it would be blessed, and what does not hold.
pub fn run_entry(entry: &Entry) -> (Entry, Vec<String>) {
    let graph = text::parse(&format!("rlx {}\n{}", text::VERSION, entry.graph)).map_err(|e| {
        // The place in the text changes with every edit; what is expected and found does not.
        let whole = e.to_string();
        whole.split_once(": ").map_or(whole.clone(), |(_, message)| message.to_string())
    });
    let mut blessed = entry.clone();
    let mut failed = Vec::new();
    if entry.directives.is_empty() {
        failed.push("nothing is asked of the graph".to_string());
    }
    for directive in &mut blessed.directives {
        let outcome = match &graph {
            Ok(graph) => check(directive, graph, &entry.tolerance),
            Err(message) => refused(directive, message),
        };
        if let Err((found, message)) = outcome {
            failed.push(message);
            *directive = found;
        }
    }
    (blessed, failed)
}

/// The directive that would hold, and how the one given does not.
type Mismatch = (Directive, String);

fn refused(directive: &Directive, message: &str) -> Result<(), Mismatch> {
    match directive {
        Directive::Error(part) if message.contains(part.as_str()) => Ok(()),
        _ => Err((Directive::Error(message.to_string()), format!("the graph does not build: {message}"))),
    }
}

fn check(directive: &Directive, graph: &Graph, tolerance: &Tolerance) -> Result<(), Mismatch> {
    match directive {
        Directive::Error(part) => {
            Err((directive.clone(), format!("the graph builds; expected an error with {part:?}")))
        }
        Directive::Run { inputs, outcome } => run(graph, inputs, outcome, tolerance),
        Directive::Pass { name, graph: expected } => pass(graph, name, expected),
    }
}

fn run(graph: &Graph, inputs: &[Literal], expected: &Outcome, tolerance: &Tolerance) -> Result<(), Mismatch> {
    let found = match Eval.run(graph, inputs) {
        Ok(outputs) => Outcome::Values(outputs),
        Err(e) => Outcome::Error(e.message),
    };
    let message = match (&found, expected) {
        (Outcome::Error(found), Outcome::Error(part)) if found.contains(part.as_str()) => return Ok(()),
        (Outcome::Values(found), Outcome::Values(expected)) if found.len() == expected.len() => {
            let terms = if let Tolerance::Accumulated { terms, .. } = tolerance { *terms } else { 0 };
            let depth = Eval.summation_depth(terms);
            let bound = Bound { tolerance, magnitudes: None, depth, accumulator: None };
            let differs = found.iter().zip(expected).enumerate().find_map(|(i, (found, expected))| {
                near_literal(found, expected, &bound).err().map(|d| format!("result {i}: {d}"))
            });
            match differs {
                None => return Ok(()),
                Some(message) => message,
            }
        }
        (found, expected) => format!("expected {expected:?}, found {found:?}"),
    };
    Err((Directive::Run { inputs: inputs.to_vec(), outcome: found }, message))
}

fn pass(graph: &Graph, name: &str, expected: &str) -> Result<(), Mismatch> {
    let result = match name {
        "print" => Ok(graph.clone()),
        "simplify" => lower(graph, &|_| true).map_err(|e| e.to_string()),
        "lower" => lower(graph, &|_| false).map_err(|e| e.to_string()),
        _ => Err("there is no such pass".to_string()),
    };
    let verified = result.and_then(|graph| match verify(&graph) {
        Ok(()) => Ok(text::print(&graph)),
        Err(e) => Err(format!("its result does not verify: {e}")),
    });
    let (found, message) = match verified {
        Ok(printed) => {
            let found = printed.split_once('\n').map_or("", |(_, graph)| graph).trim_end().to_string();
            if found == expected.trim_end() {
                return Ok(());
            }
            let message = format!("pass {name}: expected\n{expected}\nfound\n{found}");
            (found, message)
        }
        Err(message) => (expected.to_string(), format!("pass {name}: {message}")),
    };
    Err((Directive::Pass { name: name.to_string(), graph: found }, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> (Entry, Vec<String>) {
        let entries = format::parse(text).unwrap_or_else(|e| panic!("{e}"));
        run_entry(&entries[0])
    }

    const GRAPH: &str = "case \"neg/x\"\ngraph \"g\"(%x: f32[n]) {\n  %y = neg(%x)\n  return \"y\" = %y\n}\n";

    #[test]
    fn wrong_results_fail_and_are_blessed() {
        let text = format!("{GRAPH}run: f32[1] [2.0] -> f32[1] [2.0]\n");
        let (blessed, failed) = outcome(&text);
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(format::print(&blessed).contains("-> f32[1] [-2.0]"));
        assert_eq!(run_entry(&blessed).1, Vec::<String>::new());
    }

    #[test]
    fn wrong_pass_result_fails_and_is_blessed() {
        let text = format!("{GRAPH}pass: print\ngraph \"h\"() {{\n  return\n}}\n");
        let (blessed, failed) = outcome(&text);
        assert!(failed[0].contains("pass print"), "{failed:?}");
        assert_eq!(run_entry(&blessed).1, Vec::<String>::new());
    }

    #[test]
    fn graph_that_builds_where_an_error_is_expected_fails() {
        assert_eq!(outcome(&format!("{GRAPH}error: \"C1\"\n")).1.len(), 1);
    }

    #[test]
    fn entry_that_asks_nothing_fails() {
        assert_eq!(outcome(GRAPH).1.len(), 1);
    }
}
