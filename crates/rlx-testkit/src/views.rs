//! Views: `op(view) == op(contiguous copy)`, for every operand of every case.
//!
//! The stored array holds the operand's elements in another arrangement, among others that must not be read; a
//! movement operation at the head of the graph makes the operand of it. An executor that turns these operations into
//! strides runs its kernels on views.

use crate::array::for_each_index;
use crate::case::Case;
use rlx_ir::op::movement::{Broadcast, Reshape, Slice, Transpose};
use rlx_ir::{Builder, Dim, Graph, Literal, TensorType, TypeError, Value, lower};

/// A case with one operand as a view.
#[derive(Clone, Debug)]
pub struct Viewed {
    /// Which operand, and as what.
    pub name: String,
    /// The graph with the view at its head.
    pub graph: Graph,
    /// Its inputs.
    pub inputs: Vec<Literal>,
    /// The inputs of the case's own graph that must give the same, if they are not the case's inputs.
    pub contiguous: Option<Vec<Literal>>,
}

/// What is applied to the stored array, from the first on, to get the operand.
struct View {
    name: &'static str,
    stored: Literal,
    stored_dims: Vec<Dim>,
    steps: Vec<Step>,
    contiguous: Option<Literal>,
}

enum Step {
    Transpose(Vec<usize>),
    Slice(Slice),
    Reshape(Vec<Dim>),
    Broadcast(Vec<Dim>),
}

/// All views of all operands of a case.
pub fn viewed(case: &Case) -> Vec<Viewed> {
    let Ok(graph) = &case.graph else { return Vec::new() };
    let mut all = Vec::new();
    for (i, ((_, t), literal)) in graph.input_types().zip(&case.inputs).enumerate() {
        if literal.dtype().bits().is_none_or(|bits| bits < 8) || literal.dims().is_empty() {
            continue;
        }
        for view in views(t, literal) {
            let Ok(with_view) = with_view(graph, i, &view) else { continue };
            let replaced = |by: &Literal| {
                let mut inputs = case.inputs.clone();
                inputs[i] = by.clone();
                inputs
            };
            all.push(Viewed {
                name: format!("operand {i} {}", view.name),
                graph: with_view,
                inputs: replaced(&view.stored),
                contiguous: view.contiguous.as_ref().map(replaced),
            });
        }
    }
    all
}

/// The graph with operand `operand` made by the view's steps of an input of its own type.
fn with_view(graph: &Graph, operand: usize, view: &View) -> Result<Graph, TypeError> {
    let mut b = Builder::verbatim(graph.name());
    for (symbol, info) in graph.symbols().iter() {
        b.declare(symbol.clone(), info.clone());
    }
    let mut values: Vec<(String, Value)> = Vec::new();
    for (i, (name, t)) in graph.input_types().enumerate() {
        let t = if i == operand { t.with_shape(view.stored_dims.as_slice()) } else { t.clone() };
        values.push((name.to_string(), b.input(name, t)?));
    }
    for step in &view.steps {
        let x = values[operand].1;
        values[operand].1 = match step {
            Step::Transpose(perm) => b.push1(Transpose { perm: perm.clone() }, &[x])?,
            Step::Slice(slice) => b.push1(slice.clone(), &[x])?,
            Step::Reshape(dims) => b.push1(Reshape { dims: dims.clone() }, &[x])?,
            Step::Broadcast(dims) => b.push1(Broadcast { dims: dims.clone() }, &[x])?,
        };
    }
    let find = |name: &str| values.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    let outputs = lower::inline(&mut b, graph, &find)?;
    let names: Vec<String> = graph.output_types().map(|(name, _)| name.to_string()).collect();
    b.finish(names.iter().map(String::as_str).zip(outputs))
}

/// A literal of sizes `dims` whose element at an index is the one of `from` at the index that `source` gives, or
/// one that must not be read.
fn arranged(from: &Literal, dims: &[usize], source: impl Fn(&[usize]) -> Option<Vec<usize>>) -> Literal {
    let width = from.dtype().bits().map_or(0, |bits| bits as usize / 8);
    // All ones: NaN for floats, −1 for integers.
    let unread = if from.dtype() == rlx_ir::DType::Bool { 1 } else { 0xff };
    let mut bytes = Vec::new();
    for_each_index(dims, |index| match source(index) {
        Some(at) => {
            let offset = at.iter().zip(from.dims()).fold(0, |offset, (i, size)| offset * size + i);
            bytes.extend_from_slice(&from.bytes()[offset * width..(offset + 1) * width]);
        }
        None => bytes.resize(bytes.len() + width, unread),
    });
    Literal::new(from.dtype(), dims, bytes).unwrap_or_else(|_| from.clone())
}

fn slice(starts: Vec<Dim>, sizes: Vec<Dim>, steps: Vec<i64>) -> Step {
    Step::Slice(Slice { starts, sizes, steps })
}

fn views(t: &TensorType, literal: &Literal) -> Vec<View> {
    let (dims, rank) = (literal.dims(), literal.dims().len());
    let symbolic = t.dims();
    let constant = t.shape.as_const().is_some();
    let mut views = Vec::new();
    if rank >= 2 {
        views.push(transposed(literal, symbolic));
    }
    views.push(reversed(literal, symbolic));
    views.push(row_of_larger(literal, symbolic));
    if constant {
        views.push(View {
            name: "with an offset",
            stored: arranged(literal, &dims.iter().map(|n| n + 3).collect::<Vec<_>>(), |index| {
                index.iter().zip(dims).map(|(i, n)| i.checked_sub(1).filter(|i| i < n)).collect()
            }),
            stored_dims: symbolic.iter().map(|n| n + 3).collect(),
            steps: vec![slice(vec![Dim::ONE; rank], symbolic.to_vec(), vec![1; rank])],
            contiguous: None,
        });
        views.push(View {
            name: "with step 2",
            stored: arranged(literal, &dims.iter().map(|n| 2 * n + 1).collect::<Vec<_>>(), |index| {
                index.iter().map(|i| (i % 2 == 1).then_some(i / 2)).collect()
            }),
            stored_dims: symbolic.iter().map(|n| n * 2 + 1).collect(),
            steps: vec![slice(vec![Dim::ONE; rank], symbolic.to_vec(), vec![2; rank])],
            contiguous: None,
        });
    }
    let repeatable = |axis: &usize| dims[*axis] > 1 && symbolic[*axis].as_const().is_some();
    let first = (0..rank).find(repeatable);
    let last = (0..rank).rev().find(repeatable);
    for (axis, name) in [
        (first, "with stride 0 along its first axis"),
        (last.filter(|_| last != first), "with stride 0 along its last axis"),
    ] {
        views.extend(axis.map(|axis| repeated(literal, symbolic, axis, name)));
    }
    views
}

fn transposed(literal: &Literal, symbolic: &[Dim]) -> View {
    let rank = symbolic.len();
    // A rotation, which unlike a reversal is not its own inverse.
    let perm: Vec<usize> = (0..rank).map(|i| (i + 1) % rank).collect();
    let mut inverse = vec![0; rank];
    perm.iter().enumerate().for_each(|(i, p)| inverse[*p] = i);
    let dims: Vec<usize> = perm.iter().map(|p| literal.dims()[*p]).collect();
    View {
        name: "transposed",
        stored: arranged(literal, &dims, |index| Some(inverse.iter().map(|p| index[*p]).collect())),
        stored_dims: perm.iter().map(|p| symbolic[*p].clone()).collect(),
        steps: vec![Step::Transpose(inverse.clone())],
        contiguous: None,
    }
}

fn reversed(literal: &Literal, symbolic: &[Dim]) -> View {
    let dims = literal.dims();
    let starts = symbolic.iter().map(|n| n.clone() - 1).collect();
    View {
        name: "with step -1",
        stored: arranged(literal, dims, |index| {
            Some(index.iter().zip(dims).map(|(i, n)| n - 1 - i).collect())
        }),
        stored_dims: symbolic.to_vec(),
        steps: vec![slice(starts, symbolic.to_vec(), vec![-1; dims.len()])],
        contiguous: None,
    }
}

/// The middle one of three, and stored transposed, so that several views meet.
fn row_of_larger(literal: &Literal, symbolic: &[Dim]) -> View {
    let rank = symbolic.len();
    let mut dims = literal.dims().to_vec();
    dims.push(3);
    let mut stored_dims = symbolic.to_vec();
    stored_dims.push(3.into());
    let perm: Vec<usize> = std::iter::once(rank).chain(0..rank).collect();
    let starts = std::iter::once(Dim::ONE).chain(vec![Dim::ZERO; rank]).collect();
    let sizes = std::iter::once(Dim::ONE).chain(symbolic.iter().cloned()).collect();
    View {
        name: "as a row of a larger transposed array",
        stored: arranged(literal, &dims, |index| (index[rank] == 1).then(|| index[..rank].to_vec())),
        stored_dims,
        steps: vec![
            Step::Transpose(perm),
            slice(starts, sizes, vec![1; rank + 1]),
            Step::Reshape(symbolic.to_vec()),
        ],
        contiguous: None,
    }
}

/// The first element along `axis` repeated; the contiguous copy repeats it too.
fn repeated(literal: &Literal, symbolic: &[Dim], axis: usize, name: &'static str) -> View {
    let mut dims = literal.dims().to_vec();
    dims[axis] = 1;
    let mut stored_dims = symbolic.to_vec();
    stored_dims[axis] = Dim::ONE;
    let first = |index: &[usize]| {
        let mut index = index.to_vec();
        index[axis] = 0;
        Some(index)
    };
    View {
        name,
        stored: arranged(literal, &dims, first),
        stored_dims,
        steps: vec![Step::Broadcast(symbolic.to_vec())],
        contiguous: Some(arranged(literal, literal.dims(), first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{f32s, op_case};

    fn names(case: &Case) -> Vec<String> {
        viewed(case).into_iter().map(|v| v.name).collect()
    }

    #[test]
    fn every_operand_is_viewed_in_every_way() {
        let case = op_case("add", "x", "", "f32[2, 3], f32[2, 3]")
            .inputs([f32s([2, 3], [1.0; 6]), f32s([2, 3], [2.0; 6])]);
        assert_eq!(names(&case).len(), 14);
        let symbolic = op_case("add", "x", "", "f32[n, 3], f32[n, 3]")
            .inputs([f32s([2, 3], [1.0; 6]), f32s([2, 3], [2.0; 6])]);
        assert_eq!(names(&symbolic).len(), 8);
    }

    #[test]
    fn elements_that_must_not_be_read_are_nan() {
        let case = op_case("neg", "x", "", "f32[2]").input(f32s([2], [1.0, 2.0]));
        let strided = viewed(&case).into_iter().find(|v| v.name.contains("step 2")).map(|v| v.inputs);
        let stored = strided.and_then(|inputs| inputs[0].to_vec::<f32>()).unwrap_or_default();
        assert_eq!(stored.iter().map(|x| x.is_nan()).collect::<Vec<_>>(), [true, false, true, false, true]);
    }
}
