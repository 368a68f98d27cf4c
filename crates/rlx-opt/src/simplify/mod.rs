//! Simplify: constants folded below a size and a total of work, equal nodes merged, identities and dead nodes dropped,
//! and algebra that changes no bit: casts in a row, products with powers of two, movement that other movement undoes.
//!
//! The builder folds sizes, scalars and identities by itself; the rules here are what it does not know. They look at the
//! graph that is being built, each at a bounded number of nodes, so that the pass is linear.

mod algebra;
mod constants;
mod movement;
mod sink;

pub use constants::Budget;

use crate::rewrite::{rewrite, with_subgraphs};
use constants::BudgetFolder;
use rlx_ir::{Builder, Graph, Op, TypeError, Value, Values};
use sink::{Wish, Wishes};
use std::sync::Arc;

/// A rule: what stands for an operation on operands, if it knows something better.
type Rule = fn(&mut Builder, &Op, &[Value]) -> Result<Option<Value>, TypeError>;

const RULES: &[Rule] = &[
    algebra::casts,
    algebra::neutral,
    algebra::powers,
    algebra::twice,
    algebra::chains,
    algebra::selections,
    algebra::size_one_reductions,
    constants::with_repeated_constants,
    movement::transposes_of_ones,
    movement::slices,
    movement::concatenations,
    movement::broadcast_weights,
];

/// The simplified graph. Constants of up to `fold_elements` elements are folded.
pub fn simplify(graph: &Graph, fold_elements: usize) -> Result<Graph, TypeError> {
    simplify_within(graph, &Budget::new(fold_elements))
}

fn simplify_within(graph: &Graph, budget: &Budget) -> Result<Graph, TypeError> {
    let mut builder = Builder::new(graph.name());
    builder.set_folder(Arc::new(BudgetFolder::new(budget.clone())));
    let wishes = Wishes::of(graph);
    let mut nested = |g: &Graph| simplify_within(g, budget);
    rewrite(graph, builder, &mut |g| simplify_within(g, budget), &mut |b, site| {
        let op = with_subgraphs(&site.node.op, &mut nested)?;
        built(b, op, site.operands, wishes.of_node(site.id)).map(Some)
    })
}

/// An operation as simple as the rules make it. What rules build goes through here again: each makes its operands
/// fewer, smaller or simpler.
fn built(b: &mut Builder, op: Op, operands: &[Value], wish: Wish) -> Result<Values, TypeError> {
    for rule in RULES {
        if let Some(value) = rule(b, &op, operands)? {
            return Ok(Values::from_slice(&[value]));
        }
    }
    if let Some(value) = sink::sunk(b, &op, operands, wish)? {
        return Ok(Values::from_slice(&[value]));
    }
    b.push(op, operands)
}

/// The one result of an operation as simple as the rules make it.
fn built1(b: &mut Builder, op: impl Into<Op>, operands: &[Value]) -> Result<Value, TypeError> {
    built(b, op.into(), operands, Wish::default()).map(|values| values[0])
}
