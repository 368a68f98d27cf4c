//! Raise: chains that exporters write are recognised as the composites that they mean.
//!
//! A chain is raised only if the composite means exactly the same: the same axes, the constants of the formula bit for
//! bit (rounded to the chain's type), eps and scales taken from the graph, and no value inside the chain used outside
//! of it. What nearly fits stays as it is, and the notes say why.
//!
//! Composites are raised in the order of the graph, and patterns look at the graph that is being built: a scaled layer
//! norm is a layer norm whose product with a vector is raised again, attention contains a softmax.

mod activation;
mod attention;
mod chain;
mod convolution;
mod norm;
mod quantisation;
mod rotary;
mod softmax;

pub(crate) use activation::is_power_of_two;
pub(crate) use chain::uniform;

use crate::rewrite::{rewrite, with_subgraphs};
use chain::{Chain, Found, Miss};
use rlx_ir::{Builder, Graph, TypeError, Value, Values};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Builds a composite.
type Build<'g> = Box<dyn FnOnce(&mut Builder) -> Result<Value, TypeError> + 'g>;

/// A composite in place of a chain: its name in the notes, and how it is built.
struct Raised<'g> {
    name: &'static str,
    build: Build<'g>,
}

impl<'g> Raised<'g> {
    fn new(
        name: &'static str,
        build: impl FnOnce(&mut Builder) -> Result<Value, TypeError> + 'g,
    ) -> Raised<'g> {
        Raised { name, build: Box::new(build) }
    }
}

/// A pattern: the composite whose last node is `root`.
type Pattern = fn(&Chain<'_>, root: Value) -> Found<Raised<'static>>;

/// Every pattern. Later ones are tried only where no earlier one fits.
const PATTERNS: &[Pattern] = &[
    softmax::softmax,
    softmax::log_softmax,
    norm::normalised,
    norm::scaled,
    norm::shifted,
    norm::grouped,
    activation::sigmoid,
    activation::gelu,
    activation::gelu_tanh,
    activation::hard_swish,
    activation::mish,
    activation::swish,
    activation::softplus,
    activation::gated,
    attention::attention,
    rotary::rotary,
    quantisation::quantised,
    quantisation::dequantised,
    convolution::batch_norm,
];

#[derive(Default)]
struct Tally {
    raised: BTreeMap<&'static str, usize>,
    near: BTreeMap<(&'static str, &'static str), usize>,
}

/// The graph with chains raised to composites. `notes` gets which and how many, and which nearly fitted and why they
/// were left.
pub fn raise(graph: &Graph, notes: &mut Vec<String>) -> Result<Graph, TypeError> {
    let tally = RefCell::new(Tally::default());
    let raised = raise_graph(graph, &tally)?;
    let tally = tally.into_inner();
    notes.extend(tally.raised.into_iter().map(|(name, times)| format!("{name} × {times}: raised")));
    let near = |((name, reason), times)| format!("{name} × {times}: not raised: {reason}");
    notes.extend(tally.near.into_iter().map(near));
    Ok(raised)
}

/// How often each node's results are used, as operands and as outputs.
fn use_counts(graph: &Graph) -> Vec<u32> {
    let mut counts = vec![0u32; graph.nodes().len()];
    let operands = graph.nodes().flat_map(|(_, node)| node.operands.iter().copied());
    for v in operands.chain(graph.outputs().iter().map(|o| o.value)) {
        counts[v.node.index()] += 1;
    }
    counts
}

fn raise_graph(graph: &Graph, tally: &RefCell<Tally>) -> Result<Graph, TypeError> {
    let old_uses = use_counts(graph);
    let mut uses: Vec<u32> = Vec::with_capacity(old_uses.len());
    let mut nested = |g: &Graph| raise_graph(g, tally);
    rewrite(graph, Builder::new(graph.name()), &mut |g| raise_graph(g, tally), &mut |b, site| {
        let built = b.push(with_subgraphs(&site.node.op, &mut nested)?, site.operands)?;
        let results = match built.as_slice() {
            [root] => match recognised(b, &uses, *root, tally)? {
                Some(value) => Values::from_slice(&[value]),
                None => built,
            },
            _ => built,
        };
        uses.resize(b.graph().nodes().len(), 0);
        if let Some(first) = results.first() {
            uses[first.node.index()] += old_uses[site.id.index()];
        }
        Ok(Some(results))
    })
}

/// What `root` is raised to, if it ends a chain.
fn recognised(
    b: &mut Builder,
    uses: &[u32],
    root: Value,
    tally: &RefCell<Tally>,
) -> Result<Option<Value>, TypeError> {
    for pattern in PATTERNS {
        let (raised, locations) = {
            let chain = Chain::new(b.graph(), uses);
            let found = pattern(&chain, root).and_then(|raised| {
                chain.closed(root, raised.name)?;
                Ok(raised)
            });
            match found {
                Ok(raised) => (raised, chain.locations(root)),
                Err(Miss::Other) => continue,
                Err(Miss::Near(name, reason)) => {
                    *tally.borrow_mut().near.entry((name, reason)).or_default() += 1;
                    continue;
                }
            }
        };
        *tally.borrow_mut().raised.entry(raised.name).or_default() += 1;
        b.set_locations(locations);
        return (raised.build)(b).map(Some);
    }
    Ok(None)
}
