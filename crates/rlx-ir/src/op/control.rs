//! Control flow. Subgraphs are closed: what they capture comes in as operands.

use super::OpDef;
use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Graph;
use crate::infer::{Infer, Types};
use crate::operation;
use crate::types::{Shape, TensorType};
use std::sync::Arc;

operation! {
    /// Runs one of two graphs on operands 1… by the bool scalar in operand 0. Where the branches' sizes differ, the
    /// result's size is a fresh symbol. C1: a bool scalar. C2: both branches take operands 1….
    /// C3: both give results of these element types and ranks.
    pub struct If = "if" {
        /// Runs if true.
        then_branch: Arc<Graph>,
        /// Runs if false.
        else_branch: Arc<Graph>,
        /// The results' types.
        results: Vec<TensorType>,
    }
}

operation! {
    /// Repeats `body` while its condition holds. Operands: the most trips (i64 scalar; negative: no bound), the first
    /// condition (bool scalar), the carried values, then captured ones. The body takes the trip's number (i64 scalar),
    /// the carried and the captured values, and gives the next condition, the next carried values, and what is stacked
    /// along a new first axis, of size `count`. C1: scalars. C2: the body takes the operands. C3: carried values keep
    /// their types. C4: results have the types listed.
    pub struct While = "while" {
        /// The body.
        body: Arc<Graph>,
        /// The number of carried values.
        carried: usize,
        /// The symbol bound to the number of trips.
        count: Symbol,
        /// The types of the results: carried, then stacked.
        results: Vec<TensorType>,
    }
}

operation! {
    /// Runs `body` once for each index of the first axis of the scanned operands. Operands: carried values, scanned
    /// ones, captured ones. The body takes the carried values, a slice of each scanned one, the captured values, and
    /// gives the next carried values, then what is stacked along a new first axis of size `length`.
    /// C2: the body takes the operands. C3: carried values keep their types. C4: scanned sizes agree with `length`.
    pub struct Scan = "scan" {
        /// The body.
        body: Arc<Graph>,
        /// The number of carried values.
        carried: usize,
        /// The number of scanned operands.
        scanned: usize,
        /// The number of trips.
        length: Dim,
        /// From the last index to the first (stacked results are in index order all the same).
        reverse: bool,
    }
}

operation! {
    /// The results of `body` on the operands. C2: the body takes the operands.
    pub struct Call = "call" {
        /// The graph.
        body: Arc<Graph>,
    }
}

/// C2: `body` takes values of these types.
fn takes(cx: &Infer<'_>, body: &Graph, given: &[(Option<usize>, TensorType)]) -> Result<(), TypeError> {
    let n = body.inputs().len();
    cx.ensure(n == given.len(), "C2", None, &format!("inputs of `{}`", body.name()), given.len(), n)?;
    for ((name, takes), (operand, given)) in body.input_types().zip(given) {
        same_type(cx, "C2", *operand, &format!("input `{name}` of `{}`", body.name()), takes, given)?;
    }
    Ok(())
}

fn same_type(
    cx: &Infer<'_>,
    label: &'static str,
    operand: Option<usize>,
    what: &str,
    expected: &TensorType,
    found: &TensorType,
) -> Result<(), TypeError> {
    let alike = expected.dtype == found.dtype && expected.rank() == found.rank();
    cx.ensure(alike, label, operand, what, expected, found)?;
    for (e, f) in expected.shape.iter().zip(found.shape.iter()) {
        let what = format!("{what}: {expected} and {found}");
        cx.equal(label, operand, &what, e, f)?;
    }
    Ok(())
}

fn operands(cx: &Infer<'_>, from: usize) -> Result<Vec<(Option<usize>, TensorType)>, TypeError> {
    (from..cx.count()).map(|i| Ok((Some(i), cx.operand(i)?.clone()))).collect()
}

fn output_types(body: &Graph) -> Vec<TensorType> {
    body.output_types().map(|(_, t)| t.clone()).collect()
}

fn stacked(t: &TensorType, length: &Dim) -> TensorType {
    let dims: Shape = std::iter::once(length.clone()).chain(t.shape.iter().cloned()).collect();
    t.with_shape(dims)
}

impl OpDef for If {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.dtype("C1", 0, DType::Bool)?;
        cx.rank("C1", 0, 0)?;
        let given = operands(cx, 1)?;
        for branch in [&self.then_branch, &self.else_branch] {
            takes(cx, branch, &given)?;
            let gives = output_types(branch);
            let what = format!("results of `{}`", branch.name());
            cx.ensure(gives.len() == self.results.len(), "C3", None, &what, self.results.len(), gives.len())?;
            for (gives, result) in gives.iter().zip(&self.results) {
                let alike = gives.dtype == result.dtype && gives.rank() == result.rank();
                cx.ensure(alike, "C3", None, &what, result, gives)?;
            }
        }
        Ok(self.results.iter().cloned().collect())
    }
}

impl OpDef for While {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.dtype("C1", 0, DType::I64)?;
        cx.dtype("C1", 1, DType::Bool)?;
        cx.rank("C1", 0, 0)?;
        cx.rank("C1", 1, 0)?;
        let mut given = vec![(None, TensorType::scalar(DType::I64))];
        given.extend(operands(cx, 2)?);
        let enough = given.len() > self.carried;
        cx.ensure(enough, "C0", None, "carried operands", self.carried, given.len() - 1)?;
        takes(cx, &self.body, &given)?;
        let gives = output_types(&self.body);
        let n = 1 + self.results.len();
        cx.ensure(gives.len() == n, "C4", None, "results of the body", n, gives.len())?;
        same_type(cx, "C4", None, "the body's condition", &TensorType::scalar(DType::Bool), &gives[0])?;
        let count = Dim::from(self.count.clone());
        for (i, (gives, result)) in gives[1..].iter().zip(&self.results).enumerate() {
            if i < self.carried {
                same_type(cx, "C3", Some(i + 2), "carried value changes its type", &given[i + 1].1, gives)?;
                same_type(cx, "C4", None, "result", &given[i + 1].1, result)?;
            } else {
                same_type(cx, "C4", None, "result", &stacked(gives, &count), result)?;
            }
        }
        Ok(self.results.iter().cloned().collect())
    }
}

impl OpDef for Scan {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let all = operands(cx, 0)?;
        let n = self.carried.saturating_add(self.scanned);
        cx.ensure(all.len() >= n, "C0", None, "number of operands", format!("at least {n}"), all.len())?;
        cx.at_most("C4", None, "length is negative", &Dim::ZERO, &self.length)?;
        let mut given = all.clone();
        for (operand, t) in &mut given[self.carried..n] {
            let Some((first, rest)) = t.shape.split_first() else {
                return Err(cx.error("C4", *operand, "scanned operand", "at least one axis", &*t));
            };
            cx.equal("C4", *operand, "size of the scanned axis", &self.length, first)?;
            *t = t.with_shape(rest);
        }
        takes(cx, &self.body, &given)?;
        let gives = output_types(&self.body);
        let enough = gives.len() >= self.carried;
        cx.ensure(
            enough,
            "C3",
            None,
            "results of the body",
            format!("at least {}", self.carried),
            gives.len(),
        )?;
        let mut results = Types::new();
        for (i, gives) in gives.iter().enumerate() {
            if i < self.carried {
                same_type(cx, "C3", Some(i), "carried value changes its type", &all[i].1, gives)?;
                results.push(all[i].1.clone());
            } else {
                results.push(stacked(gives, &self.length));
            }
        }
        Ok(results)
    }
}

impl OpDef for Call {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        takes(cx, &self.body, &operands(cx, 0)?)?;
        Ok(output_types(&self.body).into_iter().collect())
    }
}
