//! Legalise: composites without a kernel on the target are decomposed, calls are inlined.

use crate::report::{CompositeRecord, Fate};
use crate::rewrite::rewrite;
use crate::target::Target;
use rlx_ir::lower::inline;
use rlx_ir::{Builder, Graph, Op, Primitive, TypeError, lower_typed};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The graph with only primitives and composites that `target` runs natively, and without calls. `composites` gets what
/// was kept and what was decomposed, how often and why.
pub fn legalise(
    graph: &Graph,
    target: &dyn Target,
    composites: &mut Vec<CompositeRecord>,
) -> Result<Graph, TypeError> {
    let fates: RefCell<BTreeMap<(&'static str, Fate), usize>> = RefCell::default();
    let lowered = lower_typed(graph, &|composite, operands| {
        let (fate, kept) = match target.native(composite, operands) {
            Ok(()) => (Fate::Native, true),
            Err(reason) => (Fate::Decomposed { reason }, false),
        };
        *fates.borrow_mut().entry((composite.name(), fate)).or_default() += 1;
        kept
    })?;
    let record = |((name, fate), times)| CompositeRecord { name, fate, times };
    composites.extend(fates.into_inner().into_iter().map(record));
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
