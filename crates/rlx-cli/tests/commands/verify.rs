//! `rlx verify`.

use crate::{Folder, SMALL, json, printed, refused, rlx, text};
use serde_json::Value;

/// Sums in an order of their own: the CPU's bits are not the oracle's.
const SUMS: &str = r#"rlx 1
graph "sums"(%x: f32[n, 1000]) {
  %a = abs(%x) @["first"]
  %s = reduce_sum<axes=[1], keep_dims=false>(%a) @["second"]
  %y = neg(%s)
  return "y" = %y
}
"#;

#[test]
fn a_model_that_is_right_is_equal() {
    let folder = Folder::new("verify-right");
    let model = folder.file("m.rlx", SMALL);
    let verdict = json(&["verify", &model, "--set", "n=5", "--json"]);
    assert_eq!(verdict["equal"], true);
    assert_eq!(verdict["outputs"].as_array().unwrap().len(), 2);
    assert!(printed(&["verify", &model, "--set", "n=5", "--no-fuse"]).contains("probabilities: equal"));
}

#[test]
fn the_first_difference_is_named_and_its_case_shows_it_again() {
    let folder = Folder::new("verify-wrong");
    let model = folder.file("m.rlx", SUMS);
    let case = folder.path("case.rlx");
    let case = case.to_str().unwrap();
    let arguments =
        ["verify", &model, "--set", "n=40", "--no-fuse", "--tolerance", "0", "--case", case, "--json"];
    let output = rlx(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).unwrap();
    let verdict: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(verdict["equal"], false);
    let difference = &verdict["difference"];
    assert_eq!(difference["op"], "reduce_sum");
    assert_eq!(difference["locations"][0], "second");
    assert!(difference["max_error"].as_f64().unwrap() > 0.0);
    // The case alone: its inputs are beside it.
    let inputs = format!("x0={}", folder.path("case.npz").display());
    let again = ["verify", case, "--input", &inputs, "--no-fuse", "--tolerance", "0", "--case"];
    let other = folder.path("other.rlx");
    let (code, message) = refused(&[&again[..], &[other.to_str().unwrap()]].concat());
    assert_eq!(code, 1, "{message}");
    assert!(message.contains("differ"), "{message}");
    // Of the difference that is left, nothing smaller can be made: the case stays what it is.
    assert!(text(&other).contains("reduce_sum") && !text(&other).contains("abs"));
    assert_eq!(json(&["verify", case, "--input", &inputs, "--json"])["equal"], true);
}
