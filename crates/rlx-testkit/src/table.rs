//! Running the case table on a backend.

use crate::array::Array;
use crate::backend::Backend;
use crate::case::{Case, Cost, Expect, Stage};
use crate::compare::{Bound, Difference, near, near_literal, same_bits};
use crate::tolerance::{Magnitude, Tolerance, absolute_inputs};
use crate::{cases, oracle, views};
use rlx_ir::op::{Op, Primitive, catalogue};
use rlx_ir::{Graph, Literal, text, verify};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a run of the table gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// The backend's name.
    pub backend: String,
    /// How many cases ran.
    pub cases: usize,
    /// How many were left out as too costly.
    pub left_out: usize,
    /// The cases that failed: title and reason.
    pub failed: Vec<(String, String)>,
    /// The slowest cases, slowest first.
    pub slowest: Vec<(String, Duration)>,
    /// How many operations of the catalogue have cases among those that ran.
    pub ops_covered: usize,
    /// How many operations the catalogue has.
    pub ops_total: usize,
    /// The operations without a case among those that ran.
    pub uncovered: Vec<&'static str>,
}

impl Report {
    /// The figures as JSON: `{"backend", "cases", "failed", "ops_covered", "ops_total"}`.
    pub fn to_json(&self) -> Value {
        json!({
            "backend": self.backend,
            "cases": self.cases,
            "failed": self.failed.len(),
            "ops_covered": self.ops_covered,
            "ops_total": self.ops_total,
        })
    }
}

/// How many of the slowest cases a report names.
const SLOWEST: usize = 10;

/// Runs the cases whose title (`operation/name`) contains `filter`, up to the cost `most`; of a costlier case its
/// twin, if it has one. `threads` run side by side.
pub fn run_table(backend: &dyn Backend, filter: &str, most: Cost, threads: usize) -> Report {
    let all: Vec<Case> = cases::all().into_iter().filter(|case| case.title().contains(filter)).collect();
    let total = all.len();
    let chosen: Vec<Case> = all.into_iter().filter_map(|case| affordable(case, most)).collect();
    let failed = Mutex::new(Vec::new());
    let times = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let outcome = run_case(backend, case);
            if let Ok(mut times) = times.lock() {
                times.push((case.title(), start.elapsed()));
            }
            if let Err(reason) = outcome
                && let Ok(mut failed) = failed.lock()
            {
                failed.push((case.title(), reason));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort();
    let mut slowest = times.into_inner().unwrap_or_default();
    slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    slowest.truncate(SLOWEST);
    let names: BTreeSet<&'static str> = catalogue().iter().map(|op| op.name).collect();
    let covered: BTreeSet<&str> = chosen.iter().map(|case| case.op.as_str()).collect();
    Report {
        backend: backend.name().to_string(),
        cases: chosen.len(),
        left_out: total - chosen.len(),
        failed,
        slowest,
        ops_covered: names.iter().filter(|name| covered.contains(*name)).count(),
        ops_total: names.len(),
        uncovered: names.iter().copied().filter(|name| !covered.contains(name)).collect(),
    }
}

fn affordable(case: Case, most: Cost) -> Option<Case> {
    if case.cost <= most { Some(case) } else { case.twin.and_then(|twin| affordable(*twin, most)) }
}

/// Runs one case; a panic is a failure like any other.
pub fn run_case(backend: &dyn Backend, case: &Case) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| judge(backend, case))).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("")))
    })
}

fn judge(backend: &dyn Backend, case: &Case) -> Result<(), String> {
    let graph = match (&case.graph, &case.expect) {
        (Err(message), Expect::Fails(Stage::Build, part)) if message.contains(part.as_str()) => return Ok(()),
        (Err(message), _) => return Err(format!("the graph does not build: {message}")),
        (Ok(graph), _) => graph,
    };
    sound(case, graph)?;
    let outcome = backend.run(graph, &case.inputs);
    if let Expect::Fails(stage, part) = &case.expect {
        return match outcome {
            Ok(outputs) => Err(format!("expected an error at {stage:?} with {part:?}, found {outputs:?}")),
            Err(e) if e.stage == *stage && e.message.contains(part.as_str()) => Ok(()),
            Err(e) => Err(format!(
                "expected an error at {stage:?} with {part:?}, found at {:?}: {}",
                e.stage, e.message
            )),
        };
    }
    let outputs = outcome.map_err(|e| format!("failed at {:?}: {}", e.stage, e.message))?;
    declared_types(graph, &outputs)?;
    expected(backend, case, graph, &outputs)?;
    oracle_agrees(backend, case, graph, &outputs)?;
    if case.views && case.cost == Cost::Small { views_agree(backend, case, graph, &outputs) } else { Ok(()) }
}

/// The graph verifies, has the case's operation in it, and its text reads back to it.
fn sound(case: &Case, graph: &Graph) -> Result<(), String> {
    verify(graph).map_err(|e| format!("the graph does not verify: {e}"))?;
    let printed = text::print_with_constants(graph);
    let uses = |name: &str| {
        let node = format!("= {name}");
        printed
            .text
            .match_indices(&node)
            .any(|(at, _)| printed.text[at + node.len()..].starts_with(['<', '(']))
    };
    let is_input = case.op == "input" && !graph.inputs().is_empty();
    if !is_input && !uses(&case.op) {
        return Err(format!("the graph has no {}", case.op));
    }
    let custom = graph.nodes().any(|(_, node)| matches!(node.op, Op::Primitive(Primitive::Custom(_))));
    if custom {
        return Ok(());
    }
    let constant = |hash, _, _: &[usize]| printed.constants.get(&hash).cloned();
    let options = text::ParseOptions { constant: Some(&constant), custom: None };
    match text::parse_with(&printed.text, &options) {
        Ok(read) if read == *graph => Ok(()),
        Ok(read) => {
            Err(format!("the text reads back to another graph:\n{}{}", printed.text, text::print(&read)))
        }
        Err(e) => Err(format!("the text does not read back: {e}\n{}", printed.text)),
    }
}

fn declared_types(graph: &Graph, outputs: &[Literal]) -> Result<(), String> {
    let declared: Vec<_> = graph.output_types().collect();
    if outputs.len() != declared.len() {
        return Err(Difference::Count { expected: declared.len(), found: outputs.len() }.to_string());
    }
    for ((name, t), output) in declared.iter().zip(outputs) {
        if output.dtype() != t.dtype || output.dims().len() != t.rank() {
            return Err(format!("output {name:?} is {output:?}, declared {t}"));
        }
    }
    Ok(())
}

/// The magnitudes Σ|terms| of every output, where the tolerance asks for them.
fn magnitudes(case: &Case, graph: &Graph, outputs: usize) -> Result<Option<Vec<Array>>, String> {
    let Tolerance::Accumulated { magnitude, .. } = &case.tolerance else { return Ok(None) };
    Ok(match magnitude {
        Magnitude::OfResult => None,
        Magnitude::Fixed(value) => Some(vec![Array::scalar(*value); outputs]),
        Magnitude::Formula(formula) => Some(formula(&arrays(&case.inputs)?)),
        Magnitude::OnAbsoluteInputs => {
            let inputs = absolute_inputs(&case.inputs).ok_or("inputs without absolute values")?;
            Some(oracle::wide_arrays(graph, &inputs).map_err(|e| format!("on absolute inputs: {e}"))?)
        }
    })
}

fn arrays(literals: &[Literal]) -> Result<Vec<Array>, String> {
    let array = |l: &Literal| Array::from_literal(l).ok_or_else(|| format!("{l:?} has no numbers"));
    literals.iter().map(array).collect()
}

/// Judges each output by `check`, with the bound that the case's tolerance allows.
fn each_output(
    backend: &dyn Backend,
    case: &Case,
    graph: &Graph,
    outputs: &[Literal],
    against: &str,
    count: usize,
    check: impl Fn(usize, &Literal, &Bound<'_>) -> Result<(), Difference>,
) -> Result<(), String> {
    if count != outputs.len() {
        let difference = Difference::Count { expected: count, found: outputs.len() };
        return Err(format!("against {against}: {difference}"));
    }
    let magnitudes = magnitudes(case, graph, outputs.len())?;
    let terms = if let Tolerance::Accumulated { terms, .. } = case.tolerance { terms } else { 0 };
    for (i, output) in outputs.iter().enumerate() {
        // A fixed magnitude is one number for all elements.
        let own = magnitudes.as_ref().and_then(|m| m.get(i)).map(|m| match m.dims.is_empty() {
            true => Array::new(
                [output.element_count().max(1) * 2],
                vec![m.data[0]; output.element_count().max(1) * 2],
            ),
            false => m.clone(),
        });
        let bound = Bound {
            tolerance: &case.tolerance,
            magnitudes: own.as_ref(),
            depth: backend.summation_depth(terms),
            accumulator: case.accumulator,
        };
        check(i, output, &bound).map_err(|difference| {
            let name = graph.outputs().get(i).map_or("", |o| &o.name);
            format!("output {name:?} against {against} ({}): {difference}", case.tolerance)
        })?;
    }
    Ok(())
}

fn expected(backend: &dyn Backend, case: &Case, graph: &Graph, outputs: &[Literal]) -> Result<(), String> {
    match &case.expect {
        Expect::Oracle | Expect::Fails(..) => Ok(()),
        Expect::Values(values) => each_output(
            backend,
            case,
            graph,
            outputs,
            "the values given",
            values.len(),
            |i, output, bound| near_literal(output, &values[i], bound),
        ),
        Expect::Formula(formula) => {
            let wanted = formula(&arrays(&case.inputs)?);
            each_output(backend, case, graph, outputs, "the formula", wanted.len(), |i, output, bound| {
                near(output, &wanted[i], bound)
            })
        }
        Expect::Property(property) => property(&arrays(&case.inputs)?, &arrays(outputs)?),
    }
}

/// The oracle in f64 agrees within the tolerance; where the graph rounds on purpose, the oracle in declared types.
fn oracle_agrees(
    backend: &dyn Backend,
    case: &Case,
    graph: &Graph,
    outputs: &[Literal],
) -> Result<(), String> {
    let (against, reference) = match case.agrees_in_f64 {
        true => ("the oracle in f64", oracle::wide(graph, &case.inputs)),
        false => ("the oracle", oracle::declared(graph, &case.inputs)),
    };
    let reference = reference.map_err(|e| format!("{against} fails: {e}"))?;
    each_output(backend, case, graph, outputs, against, reference.len(), |i, output, bound| {
        near_literal(output, &reference[i], bound)
    })
}

/// Each operand as each view gives the same bits as its contiguous copy.
fn views_agree(backend: &dyn Backend, case: &Case, graph: &Graph, outputs: &[Literal]) -> Result<(), String> {
    for viewed in views::viewed(case) {
        let other = viewed.contiguous.as_ref().map(|inputs| backend.run(graph, inputs));
        let contiguous = match &other {
            Some(Ok(outputs)) => outputs.as_slice(),
            // The repeated elements are outside the operation's domain.
            Some(Err(_)) => continue,
            None => outputs,
        };
        let found = backend
            .run(&viewed.graph, &viewed.inputs)
            .map_err(|e| format!("{}: fails at {:?}: {}", viewed.name, e.stage, e.message))?;
        for (i, (found, wanted)) in found.iter().zip(contiguous).enumerate() {
            same_bits(found, wanted).map_err(|d| {
                format!("{}: output {i} differs from the contiguous copy's: {d}", viewed.name)
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendError;
    use crate::case::{f32s, i32s, op_case};
    use crate::oracle::Eval;

    /// The oracle with one fault.
    struct Faulty(fn(&Graph, Vec<Literal>) -> Vec<Literal>);

    impl Backend for Faulty {
        fn name(&self) -> &str {
            "faulty"
        }
        fn run(&self, graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
            Eval.run(graph, inputs).map(|outputs| (self.0)(graph, outputs))
        }
    }

    fn add() -> Case {
        let x = f32s([2, 2], [1.0, 2.0, 3.0, 4.0]);
        op_case("add", "x", "", "f32[2, 2], f32[2, 2]").inputs([x.clone(), x])
    }

    #[test]
    fn right_results_pass() {
        let right = add().values([f32s([2, 2], [2.0, 4.0, 6.0, 8.0])]);
        assert_eq!(run_case(&Eval, &right), Ok(()));
        assert_eq!(run_case(&Eval, &add().formula(|x| x[0].map(|v| 2.0 * v))), Ok(()));
    }

    #[test]
    fn wrong_expectations_fail_with_the_place() {
        let message = run_case(&Eval, &add().values([f32s([2, 2], [2.0, 4.0, 6.0, 9.0])])).unwrap_err();
        assert!(message.contains("at [1, 1] got 8.0, want 9.0"), "{message}");
        let missing = run_case(&Eval, &add().fails(Stage::Run, "C2")).unwrap_err();
        assert!(missing.contains("expected an error"), "{missing}");
    }

    #[test]
    fn fault_of_a_backend_is_found_without_an_expectation() {
        let wrong = Faulty(|_, _| vec![f32s([2, 2], [0.0; 4])]);
        assert!(run_case(&wrong, &add()).unwrap_err().contains("the oracle in f64"));
    }

    #[test]
    fn fault_on_views_only_is_found() {
        let wrong = Faulty(|graph, outputs| {
            let viewed = graph.nodes().any(|(_, n)| n.op.name() == "transpose");
            if viewed { vec![f32s([2, 2], [0.0; 4])] } else { outputs }
        });
        let message = run_case(&wrong, &add()).unwrap_err();
        assert!(message.contains("operand 0 transposed"), "{message}");
    }

    #[test]
    fn panic_is_a_failure_of_the_case() {
        let panics = Faulty(|_, _| panic!("boom"));
        assert_eq!(run_case(&panics, &add()), Err("panic: boom".to_string()));
    }

    #[test]
    fn wrong_type_rule_label_fails() {
        let wrong = op_case("add", "x", "", "f32[2], i32[2]");
        assert_eq!(run_case(&Eval, &wrong.clone().fails_build("C2")), Ok(()));
        assert!(run_case(&Eval, &wrong.fails_build("C1")).is_err());
    }

    #[test]
    fn costly_case_gives_way_to_its_twin() {
        let twin = op_case("neg", "small", "", "i32[1]").input(i32s([1], [1]));
        let costly = op_case("neg", "large", "", "i32[1]").cost(Cost::Expensive).twin(twin);
        assert_eq!(affordable(costly.clone(), Cost::Small).map(|c| c.name), Some("small".to_string()));
        assert_eq!(affordable(costly, Cost::Expensive).map(|c| c.name), Some("large".to_string()));
    }
}
