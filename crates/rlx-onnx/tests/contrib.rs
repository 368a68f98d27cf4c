//! Operators of `com.microsoft` against what onnxruntime 1.32 gives, as `references/onnxruntime_contrib.py` recorded it.

use std::path::Path;

use rlx_testkit::onnx_nodes::{Outcome, oracle, run_case};

#[test]
fn operators_of_onnxruntime_give_what_it_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/contrib");
    let mut cases: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    cases.sort();
    assert!(cases.len() >= 95, "{} cases", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| match run_case(&folder.join(case), &oracle).outcome {
            Outcome::Pass => None,
            other => Some(format!("{}: {other:?}", case.to_string_lossy())),
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
