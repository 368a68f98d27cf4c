//! Einstein summation of any number of operands, by diagonals, sums and dot products.

use super::contract::Dot;
use super::index::{Gather, OutOfBounds};
use super::norm::statistics_dtype;
use super::unfold::counter;
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::TensorType;
use std::collections::BTreeMap;
use std::sync::Arc;

operation! {
    /// Σ over the labels that are not in the result, of the products of the operands' elements (numpy einsum, ONNX
    /// Einsum). `...` stands for further axes, which broadcast; a label twice in one operand takes its diagonal;
    /// without `->` the result has the axes of `...`, then the labels that occur once, in alphabetical order.
    /// C1: one number type. C2: the equation is well formed, with a term an operand. C3: an operand has as many axes
    /// as its term has labels (at least, with `...`). C4: the sizes of a label agree.
    pub struct Einsum = "einsum" {
        /// The equation, as `bij,bjk->bik`.
        equation: Arc<str>,
    }
}

/// A label, or an axis of the ellipsis counted from the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// The labels of a term, with the place of its ellipsis.
struct Term {
    letters: Vec<char>,
    ellipsis: Option<usize>,
}

fn term(text: &str) -> Option<Term> {
    let mut term = Term { letters: Vec::new(), ellipsis: None };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if term.ellipsis.is_some() {
                return None;
            }
            term.ellipsis = Some(term.letters.len());
            rest = after;
            continue;
        }
        if !c.is_ascii_alphabetic() {
            return None;
        }
        term.letters.push(c);
        rest = &rest[1..];
    }
    Some(term)
}

impl Term {
    /// One label an axis of an operand of this rank.
    fn labels(&self, ellipsis_rank: usize) -> Vec<Label> {
        let letters = |l: &[char]| l.iter().map(|c| Label::Letter(*c)).collect::<Vec<Label>>();
        match self.ellipsis {
            None => letters(&self.letters),
            Some(at) => {
                let mut labels = letters(&self.letters[..at]);
                labels.extend((0..ellipsis_rank).rev().map(Label::Ellipsis));
                labels.extend(letters(&self.letters[at..]));
                labels
            }
        }
    }
}

/// The equation with its labels resolved.
struct Plan {
    operands: Vec<Vec<Label>>,
    result: Vec<Label>,
}

/// Why an equation does not fit operands of these ranks: the constraint, what, expected, found.
type Misfit = (&'static str, Option<usize>, &'static str, String, String);

fn plan(equation: &str, ranks: &[usize]) -> Result<Plan, Misfit> {
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let malformed =
        || ("C2", None, "equation", "terms of letters and `...`".to_string(), equation.to_string());
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (text.as_str(), None),
    };
    let terms: Vec<Term> = left.split(',').map(term).collect::<Option<_>>().ok_or_else(malformed)?;
    if terms.len() != ranks.len() {
        let found = format!("{} in {equation:?}", terms.len());
        return Err(("C2", None, "number of terms", ranks.len().to_string(), found));
    }
    let mut operands = Vec::with_capacity(terms.len());
    let mut widest = 0;
    for (i, (term, rank)) in terms.iter().zip(ranks).enumerate() {
        let extra = rank.checked_sub(term.letters.len()).filter(|n| *n == 0 || term.ellipsis.is_some());
        let Some(extra) = extra else {
            let expected = term.letters.len().to_string();
            return Err(("C3", Some(i), "number of axes", expected, rank.to_string()));
        };
        widest = widest.max(extra);
        operands.push(term.labels(extra));
    }
    let result = match right {
        Some(right) => {
            let result = term(right).ok_or_else(malformed)?;
            let labels = result.labels(widest);
            for (i, label) in labels.iter().enumerate() {
                let known = operands.iter().flatten().any(|l| l == label);
                if !known || labels[..i].contains(label) {
                    let expected = "each label once, from the operands".to_string();
                    return Err(("C2", None, "result's labels", expected, right.to_string()));
                }
            }
            labels
        }
        None => {
            let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
            operands.iter().flatten().for_each(|l| *counts.entry(*l).or_insert(0) += 1);
            let letters = counts.iter().filter(|(l, n)| matches!(l, Label::Letter(_)) && **n == 1);
            (0..widest).rev().map(Label::Ellipsis).chain(letters.map(|(l, _)| *l)).collect()
        }
    };
    Ok(Plan { operands, result })
}

/// The size of every label: axes of the ellipsis broadcast.
fn sizes(plan: &Plan, operands: &[&[Dim]]) -> BTreeMap<Label, Dim> {
    let mut sizes: BTreeMap<Label, Dim> = BTreeMap::new();
    for (label, dim) in plan.operands.iter().zip(operands).flat_map(|(l, d)| l.iter().zip(d.iter())) {
        let size = match (sizes.get(label), label) {
            (None, _) => dim.clone(),
            (Some(known), Label::Letter(_)) => known.clone(),
            (Some(known), Label::Ellipsis(_)) => {
                let both = known.bcast(dim);
                if both.is_overflow() { known.clone() } else { both }
            }
        };
        sizes.insert(*label, size);
    }
    sizes
}

impl OpDef for Einsum {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let first = cx.number("C1", 0)?;
        let mut dims = Vec::with_capacity(cx.count());
        for i in 0..cx.count() {
            cx.same_dtype("C1", i, 0)?;
            dims.push(cx.operand(i)?.dims());
        }
        let ranks: Vec<usize> = dims.iter().map(|d| d.len()).collect();
        let plan = plan(&self.equation, &ranks).map_err(|(label, operand, what, expected, found)| {
            cx.error(label, operand, what, expected, found)
        })?;
        let sizes = sizes(&plan, &dims);
        for (i, (labels, dims)) in plan.operands.iter().zip(&dims).enumerate() {
            for (label, dim) in labels.iter().zip(dims.iter()) {
                let size = &sizes[label];
                let fits = if matches!(label, Label::Ellipsis(_)) { dim.bcast(size) } else { dim.clone() };
                cx.equal("C4", Some(i), "sizes of a label differ", size, &fits)?;
            }
        }
        let result: Vec<Dim> = plan.result.iter().map(|l| sizes[l].clone()).collect();
        Ok(one(TensorType::new(first.dtype, result)))
    }
}

/// A value with a label an axis, all different.
struct Labelled {
    value: Value,
    labels: Vec<Label>,
}

impl Labelled {
    fn axis(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|l| *l == label)
    }

    /// Of labels that occur more than once, the diagonal.
    fn new(b: &mut Builder, mut value: Value, mut labels: Vec<Label>) -> Result<Labelled, TypeError> {
        while let Some((second, first)) =
            (0..labels.len()).find_map(|j| Some((j, labels[..j].iter().position(|l| *l == labels[j])?)))
        {
            let size = b.dim(value, first);
            let index = counter(b, &[size, 2.into()], 0, 1)?;
            let gather = Gather { axes: vec![first, second], batch: 0, oob: OutOfBounds::Error, wrap: false };
            value = b.push1(gather, &[value, index])?;
            let label = labels.remove(second);
            labels.remove(first);
            labels.insert(0, label);
        }
        Ok(Labelled { value, labels })
    }

    /// Summed over the labels that `keep` does not name.
    fn summed(self, b: &mut Builder, keep: impl Fn(Label) -> bool) -> Result<Labelled, TypeError> {
        let axes: Vec<usize> = (0..self.labels.len()).filter(|i| !keep(self.labels[*i])).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let value = b.sum(self.value, &axes, false)?;
        Ok(Labelled { value, labels: self.labels.into_iter().filter(|l| keep(*l)).collect() })
    }

    /// With axes of size 1 repeated to the labels' sizes.
    fn spread(self, b: &mut Builder, sizes: &BTreeMap<Label, Dim>) -> Result<Labelled, TypeError> {
        let dims: Vec<Dim> = self.labels.iter().map(|l| sizes[l].clone()).collect();
        Ok(Labelled { value: b.broadcast_to(self.value, &dims)?, ..self })
    }

    /// The product, summed over the shared labels that `keep` does not name.
    fn times(
        self,
        b: &mut Builder,
        other: Labelled,
        keep: impl Fn(Label) -> bool,
    ) -> Result<Labelled, TypeError> {
        let shared: Vec<Label> = self.labels.iter().copied().filter(|l| other.axis(*l).is_some()).collect();
        let (batch, contract): (Vec<Label>, Vec<Label>) = shared.iter().copied().partition(|l| keep(*l));
        let axes = |of: &Labelled, labels: &[Label]| labels.iter().filter_map(|l| of.axis(*l)).collect();
        let dot = Dot {
            lhs_batch: axes(&self, &batch),
            rhs_batch: axes(&other, &batch),
            lhs_contract: axes(&self, &contract),
            rhs_contract: axes(&other, &contract),
            accum: None,
            out: None,
        };
        let value = b.push1(dot, &[self.value, other.value])?;
        let free = self.labels.iter().chain(&other.labels).copied().filter(|l| !shared.contains(l));
        let labels = batch.iter().copied().chain(free).collect();
        Ok(Labelled { value, labels })
    }
}

impl CompositeDef for Einsum {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let shapes: Vec<_> = operands.iter().map(|v| b.shape(*v)).collect();
        let dims: Vec<&[Dim]> = shapes.iter().map(|s| s.dims()).collect();
        let ranks: Vec<usize> = dims.iter().map(|d| d.len()).collect();
        let Ok(plan) = plan(&self.equation, &ranks) else { return Ok(Values::new()) };
        let sizes = sizes(&plan, &dims);
        let dtype = b.dtype(operands[0]);
        // A product of two is one dot, rounded once; in longer ones nothing is rounded before the end.
        let wide = if dtype.is_float() && operands.len() != 2 { statistics_dtype(dtype) } else { dtype };
        let mut product: Option<Labelled> = None;
        for (i, (value, labels)) in operands.iter().zip(&plan.operands).enumerate() {
            let value = b.cast(*value, wide)?;
            let operand = Labelled::new(b, value, labels.clone())?;
            let operand = operand.spread(b, &sizes)?;
            let later = |l: Label| {
                plan.result.contains(&l) || plan.operands[i + 1..].iter().flatten().any(|o| *o == l)
            };
            product = Some(match product {
                None => operand.summed(b, later)?,
                Some(product) => {
                    let operand = operand.summed(b, |l| later(l) || product.labels.contains(&l))?;
                    let product = product.summed(b, |l| later(l) || operand.labels.contains(&l))?;
                    product.times(b, operand, later)?
                }
            });
        }
        let Some(product) = product else { return Ok(Values::new()) };
        let perm: Vec<usize> = plan.result.iter().filter_map(|l| product.axis(*l)).collect();
        let y = b.transpose(product.value, &perm)?;
        Ok(Values::from_slice(&[b.cast(y, dtype)?]))
    }
}
