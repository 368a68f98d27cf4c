//! Control flow built in place: the body of a `scan`, `while`, `if` or `call` is written as a closure on the builder
//! of a closed subgraph. What the body uses from outside is listed as captured and comes in as operands; small
//! constants go in as constants, so that sizes computed from them stay known inside.

use super::{Builder, MAX_KNOWN};
use crate::dim::Dim;
use crate::error::{TypeError, TypeErrorParts};
use crate::graph::{Graph, Value};
use crate::op::control::{Call, If, Scan, While};
use crate::types::TensorType;
use std::sync::Arc;

/// What one trip of a loop is given.
#[derive(Clone, Copy, Debug)]
pub struct Trip<'a> {
    /// The carried values as they are before the trip.
    pub carried: &'a [Value],
    /// This trip's slice of each scanned operand (none in a `while`).
    pub scanned: &'a [Value],
    /// The captured values.
    pub captured: &'a [Value],
}

/// What one trip of a loop gives, or, for a whole loop, its results.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// The carried values after the trip (after the last trip).
    pub carried: Vec<Value>,
    /// What is stacked along a new first axis (the stacks).
    pub stacked: Vec<Value>,
}

/// A subgraph that is being built: its builder, and its inputs so far by what they stand for.
struct Body {
    builder: Builder,
    inputs: usize,
}

impl Body {
    fn input(&mut self, t: TensorType) -> Result<Value, TypeError> {
        self.inputs += 1;
        self.builder.input(&(self.inputs - 1).to_string(), t)
    }

    fn finish(self, outputs: &[Value]) -> Result<Arc<Graph>, TypeError> {
        let names: Vec<String> = (0..outputs.len()).map(|i| i.to_string()).collect();
        let outputs = names.iter().map(String::as_str).zip(outputs.iter().copied());
        self.builder.finish(outputs).map(Arc::new)
    }
}

impl Builder {
    /// A builder for a subgraph of this graph: it knows the same symbols, location and folder, and its fresh symbols
    /// differ from this graph's.
    pub fn subgraph(&self, name: &str) -> Builder {
        let mut body = Builder::new(name);
        for (symbol, info) in self.graph.symbols.iter() {
            body.declare(symbol.clone(), info.clone());
        }
        body.set_locations(self.locations.clone());
        body.folder = self.folder();
        body.fresh = self.fresh;
        body
    }

    fn body(&self, name: &str) -> Body {
        Body { builder: self.subgraph(name), inputs: 0 }
    }

    /// The captured values as the body sees them; those that must come in as operands are added to `operands`.
    fn capture(
        &self,
        body: &mut Body,
        captured: &[Value],
        operands: &mut Vec<Value>,
    ) -> Result<Vec<Value>, TypeError> {
        let mut inside = Vec::with_capacity(captured.len());
        for value in captured {
            inside.push(match self.literal(*value) {
                Some(literal) if literal.element_count() <= MAX_KNOWN => {
                    body.builder.constant(literal.clone())
                }
                _ => {
                    operands.push(*value);
                    body.input(self.type_of(*value).clone())?
                }
            });
        }
        Ok(inside)
    }

    /// Runs `body` once for each of the `length` indices of the first axis of the scanned values (from the last to the
    /// first if `reverse`; stacks are in index order all the same). Errors are those of [`Scan`] and of the body.
    ///
    /// ```
    /// use rlx_ir::{Builder, DType, Dim, TensorType, builder::Carried};
    ///
    /// // The running sum of the rows of x, and the total.
    /// let mut b = Builder::new("running_sum");
    /// let n = Dim::symbol("n");
    /// let x = b.input("x", TensorType::new(DType::F32, vec![n.clone(), 3.into()]))?;
    /// let zero = b.full(0.0, &TensorType::new(DType::F32, [3]))?;
    /// let sums = b.scan(&[zero], &[x], &[], &n, false, |b, trip| {
    ///     let sum = b.add(trip.carried[0], trip.scanned[0])?;
    ///     Ok(Carried { carried: vec![sum], stacked: vec![sum] })
    /// })?;
    /// assert_eq!(b.type_of(sums.carried[0]).to_string(), "f32[3]");
    /// assert_eq!(b.type_of(sums.stacked[0]).to_string(), "f32[n, 3]");
    /// # Ok::<(), rlx_ir::TypeError>(())
    /// ```
    pub fn scan(
        &mut self,
        carried: &[Value],
        scanned: &[Value],
        captured: &[Value],
        length: &Dim,
        reverse: bool,
        body: impl FnOnce(&mut Builder, Trip<'_>) -> Result<Carried, TypeError>,
    ) -> Result<Carried, TypeError> {
        let mut inner = self.body("scan");
        let mut operands = [carried, scanned].concat();
        let carried_inside =
            carried.iter().map(|v| inner.input(self.type_of(*v).clone())).collect::<Result<Vec<_>, _>>()?;
        let mut scanned_inside = Vec::with_capacity(scanned.len());
        for value in scanned {
            let t = self.type_of(*value);
            let slice = t.with_shape(t.dims().get(1..).unwrap_or_default());
            scanned_inside.push(inner.input(slice)?);
        }
        let captured = self.capture(&mut inner, captured, &mut operands)?;
        let trip = Trip { carried: &carried_inside, scanned: &scanned_inside, captured: &captured };
        let step = body(&mut inner.builder, trip)?;
        self.carries("scan", carried.len(), step.carried.len())?;
        self.fresh = inner.builder.fresh;
        let scan = Scan {
            body: inner.finish(&[step.carried, step.stacked].concat())?,
            carried: carried.len(),
            scanned: scanned.len(),
            length: length.clone(),
            reverse,
        };
        Ok(split(self.push(scan, &operands)?.to_vec(), carried.len()))
    }

    /// Repeats `body` while its condition holds: at most `trips` times (an i64 scalar; negative: no bound), and not at
    /// all if `condition` (a bool scalar) is false. The body is given the trip's number (an i64 scalar) and gives the
    /// next condition. Stacks have a fresh symbol, the number of trips, as their first size; it is returned too.
    /// Errors are those of [`While`] and of the body.
    pub fn while_loop(
        &mut self,
        trips: Value,
        condition: Value,
        carried: &[Value],
        captured: &[Value],
        body: impl FnOnce(&mut Builder, Value, Trip<'_>) -> Result<(Value, Carried), TypeError>,
    ) -> Result<(Carried, Dim), TypeError> {
        let count = self.fresh_symbol("trips");
        let mut inner = self.body("while");
        let mut operands = [&[trips, condition], carried].concat();
        let index = inner.input(TensorType::scalar(crate::dtype::DType::I64))?;
        let carried_inside =
            carried.iter().map(|v| inner.input(self.type_of(*v).clone())).collect::<Result<Vec<_>, _>>()?;
        let captured = self.capture(&mut inner, captured, &mut operands)?;
        let trip = Trip { carried: &carried_inside, scanned: &[], captured: &captured };
        let (next, step) = body(&mut inner.builder, index, trip)?;
        self.carries("while", carried.len(), step.carried.len())?;
        self.fresh = inner.builder.fresh;
        let length = Dim::from(count.clone());
        let mut results: Vec<TensorType> = carried.iter().map(|v| self.type_of(*v).clone()).collect();
        for value in &step.stacked {
            let t = inner.builder.type_of(*value);
            let dims: Vec<Dim> = std::iter::once(&length).chain(t.dims()).cloned().collect();
            results.push(t.with_shape(dims));
        }
        let outputs = [vec![next], step.carried, step.stacked].concat();
        let op = While { body: inner.finish(&outputs)?, carried: carried.len(), count, results };
        Ok((split(self.push(op, &operands)?.to_vec(), carried.len()), length))
    }

    /// The results of `then_branch` if `condition` (a bool scalar) holds, else those of `else_branch`; both see the
    /// captured values. Where the branches' sizes differ, the result's size is a fresh symbol. Errors are those of
    /// [`If`] and of the branches.
    pub fn branch(
        &mut self,
        condition: Value,
        captured: &[Value],
        then_branch: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>, TypeError>,
        else_branch: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>, TypeError>,
    ) -> Result<Vec<Value>, TypeError> {
        let mut operands = vec![condition];
        let mut inner = self.body("then");
        let inside = self.capture(&mut inner, captured, &mut operands)?;
        let outputs = then_branch(&mut inner.builder, &inside)?;
        let mut results: Vec<TensorType> =
            outputs.iter().map(|v| inner.builder.type_of(*v).clone()).collect();
        self.fresh = inner.builder.fresh;
        let then_branch = inner.finish(&outputs)?;

        let mut inner = self.body("else");
        // The same values are captured in the same order, so the operands are those of the first branch.
        let inside = self.capture(&mut inner, captured, &mut Vec::new())?;
        let outputs = else_branch(&mut inner.builder, &inside)?;
        self.fresh = inner.builder.fresh;
        for (result, value) in results.iter_mut().zip(&outputs) {
            let other = inner.builder.type_of(*value).clone();
            if other.rank() != result.rank() {
                continue;
            }
            for (axis, dim) in other.dims().iter().enumerate() {
                if result.dims()[axis] != *dim {
                    let fresh = Dim::from(self.fresh_symbol("branch"));
                    result.shape = result.shape.with_dim(axis, fresh);
                }
            }
        }
        let else_branch = inner.finish(&outputs)?;
        Ok(self.push(If { then_branch, else_branch, results }, &operands)?.to_vec())
    }

    /// The results of a graph that stands alone, on these operands.
    pub fn call(&mut self, body: Arc<Graph>, operands: &[Value]) -> Result<Vec<Value>, TypeError> {
        Ok(self.push(Call { body }, operands)?.to_vec())
    }

    /// A body gives as many carried values as it takes; otherwise a stacked result would pass for a carried one.
    fn carries(&self, op: &str, expected: usize, found: usize) -> Result<(), TypeError> {
        if expected == found {
            return Ok(());
        }
        Err(TypeError::new(TypeErrorParts {
            op: op.to_string(),
            label: "C3",
            operand: None,
            what: "carried values that the body gives".to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
            locations: self.locations.clone(),
        }))
    }
}

fn split(mut results: Vec<Value>, carried: usize) -> Carried {
    let stacked = results.split_off(carried.min(results.len()));
    Carried { carried: results, stacked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::op::elementwise::CompareOp;

    fn f32s(dims: &[Dim]) -> TensorType {
        TensorType::new(DType::F32, dims)
    }

    #[test]
    fn a_scan_stacks_along_its_length_and_keeps_the_carried_type() {
        let mut b = Builder::new("g");
        let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
        let start = b.input("start", f32s(std::slice::from_ref(&m))).unwrap();
        let steps = b.input("steps", f32s(&[n.clone(), m.clone()])).unwrap();
        let factor = b.scalar(2.0, DType::F32).unwrap();
        let loop_ = b
            .scan(&[start], &[steps], &[factor], &n, false, |b, trip| {
                let factor = b.broadcast_to(trip.captured[0], &b.shape(trip.carried[0]))?;
                let scaled = b.mul(trip.scanned[0], factor)?;
                let next = b.add(trip.carried[0], scaled)?;
                Ok(Carried { carried: vec![next], stacked: vec![next] })
            })
            .unwrap();
        assert_eq!(b.type_of(loop_.carried[0]), &f32s(std::slice::from_ref(&m)));
        assert_eq!(b.type_of(loop_.stacked[0]), &f32s(&[n, m]));
        let graph = b.finish([("last", loop_.carried[0]), ("all", loop_.stacked[0])]).unwrap();
        assert_eq!(crate::verify(&graph), Ok(()));
        // The factor is a constant of the body, not an operand.
        let scan = graph.nodes().find(|(_, node)| node.op.name() == "scan").unwrap().1;
        assert_eq!(scan.operands.len(), 2);
    }

    #[test]
    fn a_body_that_forgets_a_carried_value_is_an_error() {
        let mut b = Builder::new("g");
        let start = b.input("start", f32s(&[])).unwrap();
        let error = b
            .scan(&[start], &[], &[], &3.into(), false, |_, trip| {
                Ok(Carried { carried: vec![], stacked: vec![trip.carried[0]] })
            })
            .unwrap_err();
        assert_eq!(error.parts().label, "C3");
    }

    #[test]
    fn a_while_loop_gives_its_trip_count_as_a_size() {
        let mut b = Builder::new("g");
        let start = b.input("start", f32s(&[])).unwrap();
        let limit = b.input("limit", f32s(&[])).unwrap();
        let trips = b.scalar(-1.0, DType::I64).unwrap();
        let go = b.compare(CompareOp::Lt, start, limit).unwrap();
        let (results, count) = b
            .while_loop(trips, go, &[start], &[limit], |b, _, trip| {
                let next = b.add_scalar(trip.carried[0], 1.0)?;
                let go = b.compare(CompareOp::Lt, next, trip.captured[0])?;
                Ok((go, Carried { carried: vec![next], stacked: vec![next] }))
            })
            .unwrap();
        assert_eq!(b.type_of(results.stacked[0]), &f32s(&[count]));
        let graph = b.finish([("all", results.stacked[0])]).unwrap();
        assert_eq!(crate::verify(&graph), Ok(()));
    }

    #[test]
    fn branches_of_different_sizes_give_a_fresh_size() {
        let mut b = Builder::new("g");
        let c = b.input("c", TensorType::scalar(DType::Bool)).unwrap();
        let x = b.input("x", f32s(&[4.into(), 6.into()])).unwrap();
        let results = b
            .branch(
                c,
                &[x],
                |b, x| Ok(vec![b.slice_axis(x[0], 0, &Dim::ZERO, &Dim::ONE)?]),
                |_, x| Ok(vec![x[0]]),
            )
            .unwrap();
        let dims = b.shape(results[0]);
        assert!(dims[0].as_symbol().is_some());
        assert_eq!(dims[1], 6.into());
        let graph = b.finish([("y", results[0])]).unwrap();
        assert_eq!(crate::verify(&graph), Ok(()));
    }
}
