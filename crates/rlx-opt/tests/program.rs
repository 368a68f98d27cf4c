//! From graph to program: what is a step and what a view, whose memory is shared, what runs at load.

use rlx_ir::{Composite, Node, Op, Primitive, TensorType, text};
use rlx_opt::target::{OperandLayout, Route, Target};
use rlx_opt::{CompileOptions, compile};

/// A target that runs primitives only, takes strided operands in elementwise operations, and writes those in place.
struct Plain;

impl Target for Plain {
    fn name(&self) -> &str {
        "plain"
    }

    fn native(&self, _: &Composite, _: &[&TensorType]) -> Result<(), String> {
        Err("no kernel".into())
    }

    fn fusible(&self, _: &Node, _: &[&TensorType]) -> bool {
        true
    }

    fn operand_layout(&self, op: &Op, _: usize, _: &[&TensorType]) -> OperandLayout {
        if rlx_opt::region::is_elementwise(op) { OperandLayout::Strided } else { OperandLayout::Contiguous }
    }

    fn in_place(&self, op: &Op, _: usize, _: usize, _: &[&TensorType]) -> bool {
        rlx_opt::region::is_elementwise(op)
    }

    fn route(&self, op: &Op, _: &[&TensorType]) -> Route {
        let kernel = if matches!(op, Op::Primitive(Primitive::Call(_))) { "region" } else { "plain" };
        Route { kernel, reason: String::new() }
    }
}

fn program(source: &str) -> String {
    let graph = text::parse(source).expect("the graph parses");
    let options = CompileOptions { fuse: false, ..CompileOptions::default() };
    compile(&graph, &Plain, &options).expect("it compiles").program.to_string()
}

#[test]
fn movement_is_a_view_and_a_copy_only_where_the_kernel_needs_one() {
    let found = program(
        r#"rlx 1 graph "g"(%x: f32[n, 4]) {
            %t = transpose<perm=[1, 0]>(%x)
            %y = exp(%t)
            %s = cum_sum<axis=0, exclusive=false, reverse=false>(%t)
            return "y" = %y, "s" = %s
        }"#,
    );
    assert_eq!(
        found,
        "b0 Input(0) 16*n bytes\n\
         b1 Output(0) 16*n bytes\n\
         b2 Temp 16*n bytes\n\
         b3 Output(1) 16*n bytes\n\
         step b1:f32[4, n] = exp b0:f32[4, n]@0(1, 4)\n\
         step b2:f32[4, n] = copy b0:f32[4, n]@0(1, 4)\n\
         step b3:f32[4, n] = cum_sum b2:f32[4, n]\n"
    );
}

#[test]
fn chain_of_results_is_written_over_its_operands() {
    let found = program(
        r#"rlx 1 graph "g"(%x: f32[n]) {
            %a = exp(%x)
            %b = sin(%a)
            %c = add(%b, %x)
            return "c" = %c
        }"#,
    );
    // One buffer besides the input: the output's, from the first step on.
    let steps: Vec<&str> = found.lines().filter(|l| l.starts_with("step")).collect();
    assert_eq!(
        steps,
        [
            "step b3:f32[n] = exp b0:f32[n]",
            "step b3:f32[n] = sin b3:f32[n]",
            "step b3:f32[n] = add b3:f32[n], b0:f32[n]",
        ]
    );
}

#[test]
fn operand_that_is_needed_later_keeps_its_memory() {
    let found = program(
        r#"rlx 1 graph "g"(%x: f32[n]) {
            %a = exp(%x)
            %b = sin(%a)
            %c = mul(%a, %b)
            return "c" = %c
        }"#,
    );
    let sin = found.lines().find(|l| l.contains("= sin")).expect("there is a step");
    let (to, from) = sin.trim_start_matches("step ").split_once(" = sin ").expect("a result and an operand");
    assert_ne!(to, from);
}

#[test]
fn what_follows_from_constants_runs_at_load() {
    let elements = vec!["1.5"; 8192].join(", ");
    let found = program(&format!(
        r#"rlx 1 graph "g"(%x: f32[8192]) {{
            %w = constant<value=f32[8192] [{elements}]>()
            %e = exp(%w)
            %y = add(%x, %e)
            return "y" = %y
        }}"#
    ));
    let init: Vec<&str> = found.lines().filter(|l| l.starts_with("init")).collect();
    assert_eq!(init.len(), 1, "{found}");
    assert!(init[0].contains("= exp"), "{found}");
}

#[test]
fn value_given_twice_is_copied_once() {
    let found = program(
        r#"rlx 1 graph "g"(%x: f32[n]) {
            %a = exp(%x)
            return "a" = %a, "b" = %a, "x" = %x
        }"#,
    );
    let copies = found.lines().filter(|l| l.contains("= copy")).count();
    assert_eq!(copies, 2, "{found}");
}

#[test]
fn constant_that_is_repeated_by_a_size_unknown_at_load_is_summed_in_the_run() {
    let found = program(
        r#"rlx 1 graph "g"(%x: f32[n]) {
            %c = constant<value=f32[] [1.5]>()
            %b = broadcast<dims=[n]>(%c)
            %s = cum_sum<axis=0, exclusive=false, reverse=false>(%b)
            %m = reduce_max<axes=[0], keep_dims=false>(%s)
            %r = reduce_max<axes=[0], keep_dims=false>(%b)
            return "m" = %m, "r" = %r, "x" = %x
        }"#,
    );
    assert!(!found.lines().any(|l| l.starts_with("init")), "{found}");
}
