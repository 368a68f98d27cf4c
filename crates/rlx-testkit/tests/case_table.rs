//! The case table itself: it covers every primitive (`cargo xtask cases`: every operation), and the oracle passes all of it.

use rlx_ir::op::{OpKind, catalogue};
use rlx_testkit::{Cost, Eval, cases, run_table};
use std::collections::BTreeSet;

#[test]
fn oracle_passes_every_case() {
    let report = run_table(&Eval, "", Cost::Small, 2);
    for (title, time) in &report.slowest {
        eprintln!("{:.2} s {title}", time.as_secs_f64());
    }
    for (title, reason) in &report.failed {
        eprintln!("FAILED {title}: {reason}");
    }
    assert!(report.failed.is_empty(), "{} of {} cases failed", report.failed.len(), report.cases);
}

#[test]
fn every_primitive_has_a_case() {
    let all = cases::all();
    let covered: BTreeSet<&str> = all.iter().map(|case| case.op.as_str()).collect();
    let primitives = catalogue().into_iter().filter(|op| matches!(op.kind, OpKind::Primitive(_)));
    let missing: Vec<&str> = primitives.map(|op| op.name).filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "operations without cases: {missing:?}");
}

#[test]
fn titles_are_unique() {
    let mut seen = BTreeSet::new();
    let twice: Vec<String> =
        cases::all().iter().map(|case| case.title()).filter(|t| !seen.insert(t.clone())).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
