//! The case table itself: it covers every operation, and the oracle passes all of it.

use rlx_ir::op::catalogue;
use rlx_testkit::{Cost, Eval, cases, run_table};
use std::collections::BTreeSet;
use std::path::Path;

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
fn every_operation_has_a_case() {
    let all = cases::all();
    let covered: BTreeSet<&str> = all.iter().map(|case| case.op.as_str()).collect();
    let missing: Vec<&str> =
        catalogue().into_iter().map(|op| op.name).filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "operations without cases: {missing:?}");
}

#[test]
fn titles_are_unique() {
    let mut seen = BTreeSet::new();
    let twice: Vec<String> =
        cases::all().iter().map(|case| case.title()).filter(|t| !seen.insert(t.clone())).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// A file of recorded cases serves several operations, and each must ask for its own.
#[test]
fn every_recorded_case_is_in_the_table() {
    let titles: BTreeSet<String> = cases::all().iter().map(|case| case.title()).collect();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")];
    let (mut recorded, mut lost) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder of recorded cases") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file of recorded cases");
            for line in text.lines() {
                let Some((op, name)) = line.strip_prefix("case \"").and_then(|l| l.split_once('/')) else {
                    continue;
                };
                recorded += 1;
                let title = format!("{op}/golden_{}", name.split('"').next().unwrap_or_default());
                if !titles.contains(&title) {
                    lost.push(title);
                }
            }
        }
    }
    assert!(recorded > 0 && lost.is_empty(), "{} of {recorded} recorded cases: {lost:?}", lost.len());
}
