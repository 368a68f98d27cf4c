//! TreeEnsemble of `ai.onnx.ml`: all samples walk all trees at once, one level a step, by index into tables.

use rlx_ir::builder::Carried;
use rlx_ir::op::Axis;
use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::op::index::{GatherAlong, OutOfBounds};
use rlx_ir::op::reduce::ReduceOp;
use rlx_ir::op::softmax::{Softmax, SoftmaxOp};
use rlx_ir::{Builder, DType, Dim, Literal, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain};
use crate::values::Constant;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[of_domain("ai.onnx.ml", "TreeEnsemble", &[5], tree_ensemble)];

/// The comparisons of `nodes_modes` 0 to 5.
const COMPARISONS: [CompareOp; 6] =
    [CompareOp::Le, CompareOp::Lt, CompareOp::Ge, CompareOp::Gt, CompareOp::Eq, CompareOp::Ne];

/// The mode of nodes that look for the feature in a set.
const MEMBER: i64 = 6;

/// What the attributes say. Nodes come first in the numbering of places, then leaves.
struct Forest {
    /// Of each node: its feature.
    features: Vec<i64>,
    modes: Vec<i64>,
    /// Of each node: whether a missing value (NaN) goes the true way.
    missing: Vec<i64>,
    /// Of each node: the places on the true and the false side.
    branches: [Vec<i64>; 2],
    roots: Vec<i64>,
    targets: Vec<i64>,
    splits: Literal,
    weights: Literal,
    members: Option<Literal>,
}

fn required(cx: &NodeContext<'_, '_>, name: &str) -> Result<Vec<i64>, NodeProblem> {
    cx.ints(name)?.ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
}

fn literal(cx: &NodeContext<'_, '_>, name: &str) -> Result<Option<Literal>, NodeProblem> {
    match cx.tensor(name)? {
        None => Ok(None),
        Some(Constant::Tensor(literal)) => Ok(Some(literal)),
        Some(_) => Err(cx.bad_attribute(name, "a tensor of numbers", "another value")),
    }
}

fn required_literal(cx: &NodeContext<'_, '_>, name: &str) -> Result<Literal, NodeProblem> {
    literal(cx, name)?.ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
}

impl Forest {
    fn of(cx: &NodeContext<'_, '_>) -> Result<Forest, NodeProblem> {
        let features = required(cx, "nodes_featureids")?;
        let nodes = features.len();
        let targets = required(cx, "leaf_targetids")?;
        let (splits, weights) =
            (required_literal(cx, "nodes_splits")?, required_literal(cx, "leaf_weights")?);
        let modes = required_literal(cx, "nodes_modes")?.to_i64_vec().unwrap_or_default();
        let side = |ids: &str, leaf_flags: &str| {
            let (ids, flags) = (required(cx, ids)?, required(cx, leaf_flags)?);
            Ok::<_, NodeProblem>((ids, flags))
        };
        let mut branches = [Vec::new(), Vec::new()];
        let names = [("nodes_truenodeids", "nodes_trueleafs"), ("nodes_falsenodeids", "nodes_falseleafs")];
        for (branch, (ids_name, flags_name)) in branches.iter_mut().zip(names) {
            let (ids, flags) = side(ids_name, flags_name)?;
            if ids.len() != nodes || flags.len() != nodes {
                return Err(cx.bad_attribute(ids_name, format!("{nodes} numbers"), ids.len()));
            }
            for (id, leaf) in ids.into_iter().zip(flags) {
                let (first, count) = if leaf == 0 { (0, nodes) } else { (nodes, targets.len()) };
                let inside = usize::try_from(id).ok().filter(|id| *id < count);
                let id = inside.ok_or_else(|| cx.bad_attribute(ids_name, format!("below {count}"), id))?;
                branch.push((first + id) as i64);
            }
        }
        let roots = required(cx, "tree_roots")?;
        if let Some(root) = roots.iter().find(|root| usize::try_from(**root).map_or(true, |r| r >= nodes)) {
            return Err(cx.bad_attribute("tree_roots", format!("below {nodes}"), root));
        }
        let missing = cx.ints("nodes_missing_value_tracks_true")?.unwrap_or_else(|| vec![0; nodes]);
        let counts = [
            ("nodes_splits", splits.element_count(), nodes),
            ("nodes_modes", modes.len(), nodes),
            ("nodes_missing_value_tracks_true", missing.len(), nodes),
            ("leaf_weights", weights.element_count(), targets.len()),
        ];
        if let Some((name, found, expected)) =
            counts.into_iter().find(|(_, found, expected)| found != expected)
        {
            return Err(cx.bad_attribute(name, format!("{expected} numbers"), found));
        }
        if let Some(mode) = modes.iter().find(|mode| !(0..=MEMBER).contains(*mode)) {
            return Err(cx.bad_attribute("nodes_modes", "0 to 6", mode));
        }
        let members = literal(cx, "membership_values")?;
        Ok(Forest { features, modes, missing, branches, roots, targets, splits, weights, members })
    }

    /// The most branches from a root to a leaf; `None` if nodes form a cycle.
    fn depth(&self) -> Option<usize> {
        let nodes = self.features.len();
        let mut level: Vec<i64> = self.roots.clone();
        let mut depth = 0;
        while !level.is_empty() {
            if depth > nodes {
                return None;
            }
            let mut below: Vec<i64> = level
                .iter()
                .flat_map(|place| self.branches.iter().map(move |side| side[*place as usize]))
                .filter(|place| (*place as usize) < nodes)
                .collect();
            below.sort_unstable();
            below.dedup();
            (level, depth) = (below, depth + 1);
        }
        Some(depth)
    }

    /// The sets of the nodes that look for members, one row each, filled up with NaN; and of each node its row.
    fn sets(&self, cx: &NodeContext<'_, '_>) -> Result<Option<(Literal, Vec<i64>)>, NodeProblem> {
        let count = self.modes.iter().filter(|mode| **mode == MEMBER).count();
        if count == 0 {
            return Ok(None);
        }
        let Some(members) = &self.members else {
            return Err(NodeProblem::MissingAttribute { name: "membership_values".to_owned() });
        };
        let values = match members.dtype() {
            DType::F64 => members.to_vec::<f64>(),
            _ => members.to_vec::<f32>().map(|all| all.into_iter().map(f64::from).collect()),
        };
        let values =
            values.ok_or_else(|| cx.bad_attribute("membership_values", "f32 or f64", members.dtype()))?;
        // Each set ends with a NaN.
        let mut rows: Vec<&[f64]> = values.split(|value| value.is_nan()).collect();
        rows.truncate(count);
        if rows.len() != count {
            return Err(cx.bad_attribute("membership_values", format!("{count} sets"), rows.len()));
        }
        let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let padded = |row: &&[f64]| -> Vec<f64> {
            row.iter().copied().chain(std::iter::repeat(f64::NAN)).take(width).collect()
        };
        let flat: Vec<f64> = rows.iter().flat_map(padded).collect();
        let mut next = 0;
        let row_of = self.modes.iter().map(|mode| {
            let row = next;
            next += i64::from(*mode == MEMBER);
            row.min(count as i64 - 1)
        });
        let row_of = row_of.collect();
        Ok(Some((Literal::from_slice(vec![count, width], &flat)?, row_of)))
    }
}

/// Positions of what a step reads among the captured values.
struct Tables {
    x: Value,
    features: Value,
    modes: Value,
    missing: Value,
    splits: Value,
    branches: [Value; 2],
    sets: Option<(Value, Value)>,
}

impl Tables {
    fn captured(&self) -> Vec<Value> {
        let mut all = vec![self.x, self.features, self.modes, self.missing, self.splits];
        all.extend(self.branches);
        all.extend(self.sets.into_iter().flat_map(|(rows, row_of)| [rows, row_of]));
        all
    }

    fn inside(captured: &[Value]) -> Tables {
        Tables {
            x: captured[0],
            features: captured[1],
            modes: captured[2],
            missing: captured[3],
            splits: captured[4],
            branches: [captured[5], captured[6]],
            sets: captured.get(7).copied().zip(captured.get(8).copied()),
        }
    }

    /// The places \[samples, trees\] one level down; leaves stay.
    fn next(&self, b: &mut Builder, place: Value, modes: &[i64]) -> Result<Value, TypeError> {
        let of = |b: &mut Builder, table: Value| b.take(table, place, 0);
        let feature = of(b, self.features)?;
        let gather = GatherAlong { axis: 1, oob: OutOfBounds::Error, wrap: false };
        let value = b.push1(gather, &[self.x, feature])?;
        let (mode, split) = (of(b, self.modes)?, of(b, self.splits)?);
        let missing = of(b, self.missing)?;
        let is_nan = b.compare(CompareOp::Ne, value, value)?;
        let mut goes = b.binary(BinaryOp::And, missing, is_nan)?;
        for which in modes {
            let holds = match (usize::try_from(*which).ok().and_then(|i| COMPARISONS.get(i)), self.sets) {
                (Some(op), _) => b.compare(*op, value, split)?,
                (None, Some((rows, row_of))) => {
                    let row = of(b, row_of)?;
                    let members = b.take(rows, row, 0)?;
                    let dims = b.shape(members);
                    let wide = b.broadcast_in(value, &dims, &[0, 1])?;
                    let equal = b.compare(CompareOp::Eq, wide, members)?;
                    b.reduce(ReduceOp::Any, equal, &[2], false)?
                }
                (None, None) => continue,
            };
            let applies = b.compare_scalar(CompareOp::Eq, mode, *which as f64)?;
            let both = b.binary(BinaryOp::And, applies, holds)?;
            goes = b.binary(BinaryOp::Or, goes, both)?;
        }
        let (yes, no) = (of(b, self.branches[0])?, of(b, self.branches[1])?);
        b.select(goes, yes, no)
    }
}

fn tree_ensemble(cx: &mut NodeContext<'_, '_>) -> Handled {
    let forest = Forest::of(cx)?;
    let x = cx.input(0)?;
    let (t, nodes) = (cx.builder().type_of(x).clone(), forest.features.len());
    if t.rank() != 2 {
        return Err(cx.bad_input(0, "number of axes", 2, t.rank()));
    }
    for (name, tensor) in [("nodes_splits", &forest.splits), ("leaf_weights", &forest.weights)] {
        if tensor.dtype() != t.dtype {
            return Err(cx.bad_attribute(name, t.dtype.to_string(), tensor.dtype()));
        }
    }
    let depth = forest.depth().ok_or_else(|| {
        cx.bad_attribute("nodes_truenodeids", "trees", "nodes that lead back to themselves")
    })?;
    let targets = match cx.optional_int("n_targets")? {
        Some(count) => count,
        None => forest.targets.iter().max().map_or(0, |last| last + 1),
    };
    let outside = forest.targets.iter().find(|target| !(0..targets).contains(*target));
    if let Some(target) = outside {
        return Err(cx.bad_attribute("leaf_targetids", format!("below {targets}"), target));
    }
    let sets = forest.sets(cx)?;
    let leaves = forest.targets.len();
    let mut modes = forest.modes.clone();
    modes.sort_unstable();
    modes.dedup();
    // Leaves lead to themselves, whatever the other tables say of them.
    let extended =
        |table: &[i64]| -> Vec<i64> { table.iter().copied().chain(std::iter::repeat_n(0, leaves)).collect() };
    let to_itself = |side: &[i64]| -> Vec<i64> {
        side.iter().copied().chain((nodes..nodes + leaves).map(|place| place as i64)).collect()
    };
    let b = cx.builder();
    let missing = b.vector(&extended(&forest.missing));
    let splits = b.constant(forest.splits.clone().reshaped(vec![nodes])?);
    let splits = b.pad(splits, &[Dim::ZERO], &[leaves.into()], 0.0)?;
    let sets = match sets {
        Some((rows, row_of)) => {
            let rows = b.constant(rows);
            Some((b.cast(rows, t.dtype)?, b.vector(&extended(&row_of))))
        }
        None => None,
    };
    let tables = Tables {
        x,
        features: b.vector(&extended(&forest.features)),
        modes: b.vector(&extended(&forest.modes)),
        missing: b.cast(missing, DType::Bool)?,
        splits,
        branches: [b.vector(&to_itself(&forest.branches[0])), b.vector(&to_itself(&forest.branches[1]))],
        sets,
    };
    let dims = [t.shape[0].clone(), forest.roots.len().into()];
    let roots = b.vector(&forest.roots);
    let roots = b.broadcast_to(roots, &dims)?;
    let walked = b.scan(&[roots], &[], &tables.captured(), &depth.into(), false, |b, trip| {
        let next = Tables::inside(trip.captured).next(b, trip.carried[0], &modes)?;
        Ok(Carried { carried: vec![next], stacked: Vec::new() })
    })?;
    let leaf = b.add_scalar(walked.carried[0], -(nodes as f64))?;
    let scores = aggregated(cx, &forest, leaf, targets.into())?;
    transformed(cx, scores)
}

/// The weights of the leaves \[samples, trees\] put together by target: \[samples, targets\].
fn aggregated(
    cx: &mut NodeContext<'_, '_>,
    forest: &Forest,
    leaf: Value,
    targets: Dim,
) -> Result<Value, NodeProblem> {
    let function = cx.int("aggregate_function", 1)?;
    let (op, neutral) = match function {
        0 | 1 => (ReduceOp::Sum, 0.0),
        2 => (ReduceOp::Min, f64::INFINITY),
        3 => (ReduceOp::Max, f64::NEG_INFINITY),
        other => return Err(cx.bad_attribute("aggregate_function", "0 to 3", other)),
    };
    let b = cx.builder();
    let weights = b.constant(forest.weights.clone().reshaped(vec![forest.targets.len()])?);
    let weights = b.take(weights, leaf, 0)?;
    let of_leaf = b.vector(&forest.targets);
    let of_leaf = b.take(of_leaf, leaf, 0)?;
    let dims: Vec<Dim> = b.shape(leaf).iter().cloned().chain([targets]).collect();
    let target = b.iota(DType::I64, &dims, 2)?;
    let of_leaf = b.broadcast_in(of_leaf, &dims, &[0, 1])?;
    let hit = b.compare(CompareOp::Eq, target, of_leaf)?;
    let weights = b.broadcast_in(weights, &dims, &[0, 1])?;
    let other = b.like(neutral, weights)?;
    let weights = b.select(hit, weights, other)?;
    let scores = b.reduce(op, weights, &[1], false)?;
    Ok(match function {
        0 => b.binary_scalar(BinaryOp::Div, scores, forest.roots.len() as f64)?,
        1 => scores,
        _ => {
            // A target that no leaf is of scores 0.
            let any = b.reduce(ReduceOp::Any, hit, &[1], false)?;
            let zero = b.like(0.0, scores)?;
            b.select(any, scores, zero)?
        }
    })
}

/// The scores after `post_transform`.
fn transformed(cx: &mut NodeContext<'_, '_>, scores: Value) -> Handled {
    let which = cx.int("post_transform", 0)?;
    let b = cx.builder();
    Ok(match which {
        0 => scores,
        1 => b.push1(Softmax { op: SoftmaxOp::Softmax, axis: Axis(1) }, &[scores])?,
        2 => b.unary(UnaryOp::Sigmoid, scores)?,
        3 | 4 => return Err(NodeProblem::Unsupported("softmax without zeros, and probit".to_owned())),
        other => return Err(cx.bad_attribute("post_transform", "0 to 4", other)),
    }
    .into())
}
