use super::*;
use crate::builder::Builder;
use crate::dim::{Dim, Symbol, SymbolInfo};
use crate::dtype::DType;
use crate::error::Locations;
use crate::graph::Graph;
use crate::literal::Literal;
use crate::op::control::If;
use crate::op::elementwise::UnaryOp;
use crate::op::norm::RmsNorm;
use crate::op::reduce::TopK;
use crate::op::{Axis, Real};
use crate::types::TensorType;
use std::sync::Arc;

fn branch(name: &str, op: UnaryOp) -> Arc<Graph> {
    let mut b = Builder::new(name);
    let x = b.input("x", TensorType::new(DType::F32, vec![Dim::symbol("n")])).unwrap();
    let y = b.unary(op, x).unwrap();
    Arc::new(b.finish([("y", y)]).unwrap())
}

fn rich_graph() -> Graph {
    let mut b = Builder::new("main \"quoted\"\n");
    b.declare(Symbol::new("n"), SymbolInfo { likely: Some(7), ..SymbolInfo::default() });
    b.declare(Symbol::new("batch size"), SymbolInfo { multiple_of: 8, ..SymbolInfo::default() });
    let n = Dim::symbol("n");
    let odd = (Dim::symbol("batch size") * 2 + 3).floor_div(&n).max(&(n.clone() * &n - 5));
    let x = b.input("x", TensorType::new(DType::F32, vec![odd, n.clone()])).unwrap();
    let v = b.input("v", TensorType::new(DType::F32, vec![n.clone()])).unwrap();
    let c = b.input("c", TensorType::scalar(DType::Bool)).unwrap();
    b.set_locations(Locations::one("/a/Node_1"));
    let op = If {
        then_branch: branch("then", UnaryOp::Exp),
        else_branch: branch("else", UnaryOp::Log),
        results: vec![TensorType::new(DType::F32, vec![n])],
    };
    let y = b.push1(op, &[c, v]).unwrap();
    let y = b.push1(RmsNorm { axis: Axis(-1), eps: Real::new(1e-5) }, &[x, y]).unwrap();
    b.set_locations(Locations::none());
    let top = b.push(TopK { k: 0.into(), axis: 1, smallest: true, unsorted: false }, &[y]).unwrap();
    let values = [1.5, -0.0, f32::NAN, f32::INFINITY, f32::from_bits(0xffc0_1234), 1e-45];
    let constant = b.constant(Literal::vector(&values));
    let large = b.constant(Literal::vector(&vec![3u8; 5000]));
    let bytes = b.constant(Literal::new(DType::I4, [3], vec![0x21, 0x03]).unwrap());
    let state = b.unary(UnaryOp::Neg, v).unwrap();
    let outputs =
        [("values", top[0]), ("indices", top[1]), ("k", constant), ("l", large), ("b", bytes), ("v", state)];
    b.finish_with_states(outputs, &[(1, 5)]).unwrap()
}

#[test]
fn what_is_printed_reads_back_equal() {
    let graph = rich_graph();
    let printed = print_with_constants(&graph);
    let constant = |hash: u128, _: DType, _: &[usize]| printed.constants.get(&hash).cloned();
    let options = ParseOptions { constant: Some(&constant), custom: None };
    let read = parse_with(&printed.text, &options).unwrap_or_else(|e| panic!("{e}\n{}", printed.text));
    assert_eq!(read, graph, "{}", printed.text);
    assert_eq!(print(&read), printed.text);
}

#[test]
fn hand_written_text_may_leave_out_types_and_names() {
    let graph =
        parse("rlx 1 graph \"g\"(%x: f32[n, 4]) { %y = exp(%x) // comment\n return \"y\" = %y }").unwrap();
    assert_eq!(graph.input_types().next().unwrap().0, "x");
    assert_eq!(graph.output_types().next().unwrap().1.to_string(), "f32[n, 4]");
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("rlx 2 graph", "line 1, column 7: expected version 1, found 2"),
        ("rlx 1 graph \"g\"(%x: f99[]) {", "line 1, column 21: expected an element type, found `f99`"),
        ("rlx 1\ngraph \"g\"() {\n  %0 = boom() }", "line 3, column 8: expected an operation, found `boom`"),
        (
            "rlx 1 graph \"g\"() { return \"y\" = %9 }",
            "line 1, column 37: expected a value defined above, found %9",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn type_errors_are_found_while_reading() {
    let text = "rlx 1 graph \"g\"(%x: f32[4], %y: f32[3]) { %z = add(%x, %y) return \"z\" = %z }";
    let message = parse(text).unwrap_err().to_string();
    assert!(message.contains("add: C2: sizes differ: operand 1: expected [4], found [3]"), "{message}");
}

#[test]
fn deep_nesting_is_an_error_not_a_stack_overflow() {
    let dims = "(".repeat(100_000);
    assert!(parse(&format!("rlx 1 graph \"g\"(%x: f32[{dims}")).is_err());
    let graphs = "graph \"g\"() { %0 = call<body=".repeat(100_000);
    assert!(parse(&format!("rlx 1 {graphs}")).is_err());
}

#[test]
fn structural_hash_ignores_names_and_sees_structure() {
    let text = |name: &str, op: &str| {
        parse(&format!("rlx 1 graph \"{name}\"(%{name}: f32[4]) {{ %y = {op}(%{name}) @[\"{name}\"] return \"{name}\" = %y }}"))
            .unwrap()
    };
    let hash = |name, op| crate::structural_hash(&text(name, op));
    assert_eq!(hash("a", "exp"), hash("b", "exp"));
    assert_ne!(hash("a", "exp"), hash("a", "log"));
}
