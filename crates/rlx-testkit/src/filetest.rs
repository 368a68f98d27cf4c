//! File tests: graphs in the text form, with what running them, refusing them, or rewriting them must give.
//!
//! The files of a folder, `*.case`, are written as [`mod@crate::format`] says. The passes that `pass:` may name are
//! - `print`: nothing but reading and printing;
//! - `rebuild`: rebuilding through the builder, which folds sizes, scalars and identities;
//! - `lower`: composites replaced by primitives, all the way down;
//! - `simplify`, `raise`, `precision(POLICY)`, `legalise`, `fuse`: the compiler's passes for the CPU, each with what comes
//!   before it: `raise` sees a simplified graph, and its result is simplified; `legalise` and `fuse` do not raise;
//! - `optimise`: all of them, with the default options.
//!
//! A pass must also leave what the graph computes as it is: the graphs before and after are run by the oracle in f64, on
//! random inputs.
//!
//! With `bless`, expectations that do not hold are rewritten to what was found.

use crate::backend::Backend;
use crate::compare::{Bound, near_literal};
use crate::format::{self, Directive, Entry, Outcome};
use crate::oracle::{Eval, wide_arrays};
use crate::random::{Domain, Random};
use crate::tolerance::Tolerance;
use rlx_cpu::Cpu;
use rlx_ir::{Bindings, DType, Graph, Literal, lower, text, verify};
use rlx_opt::pipeline::optimise;
use rlx_opt::{CompileOptions, PrecisionPolicy, fuse, legalise, precision, raise, simplify};
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

/// The graph after a pass.
fn passed(graph: &Graph, name: &str) -> Result<Graph, String> {
    let fold = CompileOptions::default().fold_elements;
    let said = |e: rlx_ir::TypeError| e.to_string();
    let simplified = || simplify::simplify(graph, fold).map_err(said);
    let legal = || {
        let legal = legalise::legalise(&simplified()?, &Cpu, &mut Vec::new()).map_err(said)?;
        simplify::simplify(&legal, fold).map_err(said)
    };
    if let Some(policy) = name.strip_prefix("precision(").and_then(|rest| rest.strip_suffix(')')) {
        let policy = PrecisionPolicy::from_name(policy).ok_or("there is no such policy")?;
        let narrow = precision::apply(&simplified()?, &policy, &mut Vec::new()).map_err(said)?;
        return simplify::simplify(&narrow, fold).map_err(said);
    }
    match name {
        "print" => Ok(graph.clone()),
        "rebuild" => lower(graph, &|_| true).map_err(said),
        "lower" => lower(graph, &|_| false).map_err(said),
        "simplify" => simplified(),
        "raise" => {
            let raised = raise::raise(&simplified()?, &mut Vec::new()).map_err(said)?;
            simplify::simplify(&raised, fold).map_err(said)
        }
        "legalise" => legal(),
        "fuse" => fuse::fuse(&legal()?, &Cpu, &mut Vec::new()).map_err(said),
        "optimise" => optimise(graph, &Cpu, &CompileOptions::default())
            .map(|(graph, _)| graph)
            .map_err(|e| e.to_string()),
        _ => Err("there is no such pass".to_string()),
    }
}

/// Sizes for a graph's symbols, and inputs of those sizes; none if the interface is not that of sizes alone.
fn random_inputs(graph: &Graph) -> Option<Vec<Literal>> {
    let mut random = Random::named(graph.name());
    let mut bindings = Bindings::new();
    let mut next = 2;
    for (_, t) in graph.input_types() {
        for symbol in t.dims().iter().filter_map(|d| d.as_symbol()) {
            if bindings.get(symbol).is_none() {
                let info = graph.symbols().info(symbol);
                let size = (next + info.multiple_of - 1) / info.multiple_of.max(1) * info.multiple_of.max(1);
                bindings.set(symbol.clone(), size.max(info.range.min));
                next += 1;
            }
        }
    }
    let mut inputs = Vec::new();
    for (_, t) in graph.input_types() {
        let dims = t.shape.eval(&bindings).ok()?;
        let domain = match t.dtype {
            DType::Bool => Domain::Whole(0, 1),
            d if d.is_float() => Domain::Normal,
            d if d.is_int() => Domain::Whole(0, 3),
            _ => return None,
        };
        inputs.push(random.literal(t.dtype, &dims, &domain));
    }
    Some(inputs)
}

/// The greatest difference of two graphs' results, over the range of a result: formulas with constants of f32 differ
/// from the composites they mean by less.
const PASS_ERROR: f64 = 1e-6;

/// How two graphs differ on random inputs, if they do.
fn differs(before: &Graph, after: &Graph) -> Option<String> {
    let inputs = random_inputs(before)?;
    // What the graph refuses by itself is no fault of the pass.
    let expected = wide_arrays(before, &inputs).ok()?;
    let found = match wide_arrays(after, &inputs) {
        Ok(found) => found,
        Err(e) => return Some(format!("it fails on random inputs: {}", e.message)),
    };
    let range = |data: &[f64]| data.iter().filter(|x| x.is_finite()).fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if found.dims != expected.dims {
            return Some(format!("output {i} has sizes {:?}, expected {:?}", found.dims, expected.dims));
        }
        let bound = PASS_ERROR * range(&expected.data);
        let apart = |(x, y): (&f64, &f64)| {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound;
            (!same).then(|| format!("output {i}: found {x}, expected {y}"))
        };
        if let Some(difference) = found.data.iter().zip(&expected.data).find_map(apart) {
            return Some(difference);
        }
    }
    None
}

fn pass(graph: &Graph, name: &str, expected: &str) -> Result<(), Mismatch> {
    let printed = passed(graph, name).and_then(|after| {
        verify(&after).map_err(|e| format!("its result does not verify: {e}"))?;
        match differs(graph, &after) {
            Some(difference) => Err(format!("it changes the results: {difference}\n{}", text::print(&after))),
            None => Ok(text::print(&after)),
        }
    });
    let (found, message) = match printed {
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
    fn pass_that_changes_results_is_seen() {
        let graph = |op: &str| {
            let text = format!(
                "rlx {}\ngraph \"g\"(%x: f32[n]) {{\n  %y = {op}(%x)\n  return \"y\" = %y\n}}\n",
                text::VERSION
            );
            text::parse(&text).unwrap_or_else(|e| panic!("{e}"))
        };
        assert_eq!(differs(&graph("neg"), &graph("neg")), None);
        assert!(differs(&graph("neg"), &graph("abs")).is_some());
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
