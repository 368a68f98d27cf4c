//! A text as a graph: whatever it says, the parser gives a graph or an error; a graph it gives is valid, and prints
//! to a text that reads back to the same graph.

#![no_main]

use rlx::ir::DType;
use rlx::ir::text::{ParseOptions, parse, parse_with, print_with_constants};
use rlx_fuzz as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(graph) = parse(text) else { return };
    assert_eq!(rlx::ir::verify(&graph), Ok(()));
    let printed = print_with_constants(&graph);
    let constant = |hash: u128, _: DType, _: &[usize]| printed.constants.get(&hash).cloned();
    let options = ParseOptions { constant: Some(&constant), custom: None };
    assert_eq!(parse_with(&printed.text, &options), Ok(graph), "{}", printed.text);
});
