//! Legalise: composites without a kernel on the target are decomposed, calls are inlined.

use crate::rewrite::rewrite;
use crate::target::Target;
use rlx_ir::lower::inline;
use rlx_ir::{Builder, Graph, Op, Primitive, TypeError, lower_typed};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The graph with only primitives and composites that `target` runs natively, and without calls. `notes` gets what was
/// decomposed, how often and why.
pub fn legalise(graph: &Graph, target: &dyn Target, notes: &mut Vec<String>) -> Result<Graph, TypeError> {
    let decomposed: RefCell<BTreeMap<(&'static str, String), usize>> = RefCell::default();
    let native: RefCell<BTreeMap<&'static str, usize>> = RefCell::default();
    let lowered = lower_typed(graph, &|composite, operands| match target.native(composite, operands) {
        Ok(()) => {
            *native.borrow_mut().entry(composite.name()).or_default() += 1;
            true
        }
        Err(reason) => {
            *decomposed.borrow_mut().entry((composite.name(), reason)).or_default() += 1;
            false
        }
    })?;
    for (name, times) in native.into_inner() {
        notes.push(format!("{name} × {times}: native"));
    }
    for ((name, reason), times) in decomposed.into_inner() {
        notes.push(format!("{name} × {times}: decomposed: {reason}"));
    }
    without_calls(&lowered)
}

/// The graph with the bodies of calls in their places.
pub fn without_calls(graph: &Graph) -> Result<Graph, TypeError> {
    rewrite(graph, Builder::new(graph.name()), &mut without_calls, &mut |b, site| {
        let Op::Primitive(Primitive::Call(call)) = &site.node.op else { return Ok(None) };
        let body = without_calls(&call.body)?;
        let names: Vec<String> = body.input_types().map(|(name, _)| name.to_string()).collect();
        inline(b, &body, &|name| {
            names.iter().position(|n| n == name).and_then(|i| site.operands.get(i)).copied()
        })
        .map(Some)
    })
}
