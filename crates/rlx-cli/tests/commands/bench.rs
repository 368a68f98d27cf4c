//! `rlx bench`.

use crate::{Folder, SMALL, json, printed, refused, rlx};

#[test]
fn the_json_has_the_keys_that_the_help_names() {
    let folder = Folder::new("bench-json");
    let model = folder.file("m.rlx", SMALL);
    let bench = json(&["bench", &model, "--set", "n=16", "--runs", "5", "--warmup", "1", "--json"]);
    let help = String::from_utf8(rlx(&["bench", "--help"]).stdout).unwrap();
    for key in bench.as_object().unwrap().keys() {
        assert!(help.contains(key.as_str()), "{key} is not in the help");
    }
    let ms = |key: &str| bench[key].as_f64().unwrap();
    assert!(ms("min_ms") > 0.0);
    assert!(
        ms("min_ms") <= ms("median_ms") && ms("median_ms") <= ms("p95_ms") && ms("p95_ms") <= ms("max_ms")
    );
    assert_eq!(bench["runs"], 5);
    assert_eq!(bench["inputs"][0]["type"], "f32[16, 3]");
    assert!(bench["peak_bytes"].as_u64().unwrap() >= bench["lower_bound_bytes"].as_u64().unwrap());
}

#[test]
fn people_get_the_median() {
    let folder = Folder::new("bench-text");
    let model = folder.file("m.rlx", SMALL);
    let text = printed(&["bench", &model, "--set", "n=4", "--runs", "2", "--warmup", "0", "--threads", "1"]);
    assert!(text.contains("median") && text.contains("1 threads"), "{text}");
}

#[test]
fn a_size_that_is_missing_is_asked_for() {
    let folder = Folder::new("bench-size");
    let model = folder.file("m.rlx", SMALL);
    let (code, message) = refused(&["bench", &model]);
    assert_eq!(code, 1);
    assert!(message.contains("--set"), "{message}");
}
