//! Precision: in which types the floats of a graph are computed, by a policy of the caller.
//!
//! The interface of the graph keeps its types. Within it an operation that the policy covers takes its f32 operands in
//! the narrow type and gives its results in it; a composite is covered as a whole, so that what it keeps in f32 inside
//! (statistics, accumulators) stays so, and no cast stands between its parts. Numbers beyond the narrow type's range
//! that are finite become its greatest number, not an infinity: a mask of −3.4e38 hides, but a row of it is still
//! finite.

use crate::rewrite::{rewrite, with_subgraphs};
use rlx_ir::infer::Infer;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::{Builder, Composite, DType, Graph, Op, Primitive, TensorType, TypeError, Value, Values};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// In which types floats are computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PrecisionPolicy {
    /// As the graph declares them.
    #[default]
    Declared,
    /// What is f32 becomes f16.
    F16,
    /// What is f32 becomes bf16.
    Bf16,
    /// Mixed: the operations named become `to`, all others stay.
    Mixed {
        /// The narrow type, f16 or bf16.
        to: DType,
        /// The operations that become narrow, by name; if there is none, contractions ([`CONTRACTIONS`]).
        allow: Vec<String>,
        /// Operations that stay, though allowed.
        deny: Vec<String>,
    },
    /// Products with block-quantised weights quantise their activations to 8 bits, a block at a time.
    ActivationsQ8,
}

/// What mixed precision makes narrow by itself: where most of the time goes, and where the accumulator stays f32.
pub const CONTRACTIONS: &[&str] =
    &["dot", "conv", "conv_bias", "conv_transpose", "attention", "linear_attention", "lora_matmul"];

impl PrecisionPolicy {
    /// Parses `f32`, `f16`, `bf16`, `mixed_f16`, `mixed_bf16` or `q8`.
    pub fn from_name(name: &str) -> Option<PrecisionPolicy> {
        let mixed = |to| PrecisionPolicy::Mixed { to, allow: Vec::new(), deny: Vec::new() };
        Some(match name {
            "f32" => PrecisionPolicy::Declared,
            "f16" => PrecisionPolicy::F16,
            "bf16" => PrecisionPolicy::Bf16,
            "mixed_f16" => mixed(DType::F16),
            "mixed_bf16" => mixed(DType::BF16),
            "q8" => PrecisionPolicy::ActivationsQ8,
            _ => return None,
        })
    }

    /// The narrow type.
    fn narrow(&self) -> Option<DType> {
        match self {
            PrecisionPolicy::Declared | PrecisionPolicy::ActivationsQ8 => None,
            PrecisionPolicy::F16 => Some(DType::F16),
            PrecisionPolicy::Bf16 => Some(DType::BF16),
            PrecisionPolicy::Mixed { to, .. } => Some(*to),
        }
    }

    /// Whether operations of this name become narrow.
    fn covers(&self, name: &str) -> bool {
        match self {
            PrecisionPolicy::Mixed { allow, deny, .. } => {
                let named = |list: &[String]| list.iter().any(|n| n == name);
                let allowed = if allow.is_empty() { CONTRACTIONS.contains(&name) } else { named(allow) };
                allowed && !named(deny)
            }
            _ => true,
        }
    }
}

#[derive(Default)]
struct Tally {
    narrow: usize,
    kept: BTreeMap<(String, &'static str), usize>,
}

/// The graph under a policy. `notes` gets how much of it is narrow, and what is not and why.
pub fn apply(graph: &Graph, policy: &PrecisionPolicy, notes: &mut Vec<String>) -> Result<Graph, TypeError> {
    if *policy == PrecisionPolicy::ActivationsQ8 {
        report_q8(graph, notes);
    }
    let Some(to) = policy.narrow() else { return Ok(graph.clone()) };
    let tally = RefCell::new(Tally::default());
    let narrowed = apply_within(graph, policy, to, &tally)?;
    let tally = tally.into_inner();
    notes.push(format!("{to}: {} nodes", tally.narrow));
    for ((name, reason), times) in tally.kept {
        notes.push(format!("{name} × {times}: stays f32: {reason}"));
    }
    Ok(narrowed)
}

/// Products whose weights are not block-quantised cannot quantise their activations by blocks.
fn report_q8(graph: &Graph, notes: &mut Vec<String>) {
    let weights = |node: &rlx_ir::Node| {
        node.operands.iter().any(|v| matches!(graph.node(v.node).op, Op::Primitive(Primitive::Dequantise(_))))
    };
    let products = || graph.nodes().filter(|(_, n)| matches!(n.op, Op::Primitive(Primitive::Dot(_))));
    let blocked = products().filter(|(_, n)| weights(n)).count();
    let others = products().count() - blocked;
    if blocked > 0 {
        notes.push(format!("dot × {blocked}: activations may be quantised to 8 bits by block"));
    }
    if others > 0 {
        notes.push(format!("dot × {others}: activations stay f32: the weights are not block-quantised"));
    }
}

/// Why an operation keeps its types under every policy; none if it does not.
fn stays(op: &Op) -> Option<&'static str> {
    match op {
        Op::Primitive(p) => match p {
            Primitive::If(_) | Primitive::While(_) | Primitive::Scan(_) | Primitive::Call(_) => {
                Some("a subgraph keeps its interface")
            }
            Primitive::Custom(_) => Some("its types are its own"),
            Primitive::Bitcast(_) => Some("it is about bits"),
            Primitive::Fft(_) => Some("complex numbers have f32 parts"),
            _ => None,
        },
        Op::Composite(c) => match c {
            Composite::QuantizeLinear(_)
            | Composite::DequantizeLinear(_)
            | Composite::DynamicQuantizeLinear(_)
            | Composite::QlinearMatmul(_)
            | Composite::QlinearConv(_) => Some("scales are f32"),
            _ => None,
        },
    }
}

/// Sources and casts: they have no arithmetic, and are narrowed where they are used.
fn is_source(op: &Op) -> bool {
    matches!(
        op,
        Op::Primitive(
            Primitive::Constant(_)
                | Primitive::Iota(_)
                | Primitive::Cast(_)
                | Primitive::RandomBits(_)
                | Primitive::DimValue(_)
                | Primitive::BindDim(_)
        )
    )
}

fn apply_within(
    graph: &Graph,
    policy: &PrecisionPolicy,
    to: DType,
    tally: &RefCell<Tally>,
) -> Result<Graph, TypeError> {
    let mut narrow: FxHashMap<Value, Value> = FxHashMap::default();
    let mut nested = |g: &Graph| apply_within(g, policy, to, tally);
    rewrite(graph, Builder::new(graph.name()), &mut |g| apply_within(g, policy, to, tally), &mut |b, site| {
        let op = &site.node.op;
        let is_f32 = |t: &TensorType| t.dtype == DType::F32;
        let wide_operands = site.operands.iter().any(|v| is_f32(b.type_of(*v)));
        let kept = |reason| {
            *tally.borrow_mut().kept.entry((op.name().to_string(), reason)).or_default() += 1;
        };
        if !wide_operands || is_source(op) {
            return b.push(with_subgraphs(op, &mut nested)?, site.operands).map(Some);
        }
        if let Some(reason) = stays(op) {
            kept(reason);
            return b.push(with_subgraphs(op, &mut nested)?, site.operands).map(Some);
        }
        if !policy.covers(op.name()) {
            if matches!(policy, PrecisionPolicy::Mixed { .. }) {
                kept("the policy does not name it");
            }
            return Ok(None);
        }
        let types: Vec<TensorType> = site
            .operands
            .iter()
            .map(|v| b.type_of(*v).clone())
            .map(|t| if is_f32(&t) { t.with_dtype(to) } else { t })
            .collect();
        let types: Vec<&TensorType> = types.iter().collect();
        if op.infer(&Infer::new(op.name(), &types, b.graph().symbols())).is_err() {
            kept("it is not defined on the narrow type");
            return Ok(None);
        }
        let mut operands = Vec::with_capacity(site.operands.len());
        for v in site.operands {
            operands.push(match is_f32(b.type_of(*v)) {
                true => narrowed(b, &mut narrow, *v, to)?,
                false => *v,
            });
        }
        tally.borrow_mut().narrow += 1;
        let results = b.push(op.clone(), &operands)?;
        let mut wide = Values::new();
        for (result, declared) in results.iter().zip(&site.node.types) {
            let back = b.cast(*result, declared.dtype)?;
            if back != *result {
                narrow.insert(back, *result);
            }
            wide.push(back);
        }
        Ok(Some(wide))
    })
}

/// An f32 value in the narrow type: the one that it was widened from, or rounded, finite numbers staying finite.
fn narrowed(
    b: &mut Builder,
    known: &mut FxHashMap<Value, Value>,
    v: Value,
    to: DType,
) -> Result<Value, TypeError> {
    if let Some(narrow) = known.get(&v) {
        return Ok(*narrow);
    }
    let greatest = match to {
        DType::F16 => f64::from(half::f16::MAX),
        _ => f64::from(half::bf16::MAX),
    };
    let within = b.literal(v).is_some_and(|l| fits(l, greatest)) || is_small(b, v);
    let bounded = if within {
        v
    } else {
        let below = b.binary_scalar(BinaryOp::Min, v, greatest)?;
        let bounded = b.binary_scalar(BinaryOp::Max, below, -greatest)?;
        let infinite = b.unary(UnaryOp::IsInf, v)?;
        b.select(infinite, v, bounded)?
    };
    let narrow = b.cast(bounded, to)?;
    known.insert(v, narrow);
    Ok(narrow)
}

/// Whether a value is cast from a type whose numbers all lie in the range of f16.
fn is_small(b: &Builder, v: Value) -> bool {
    use DType::*;
    let node = b.graph().node(v.node);
    matches!(node.op, Op::Primitive(Primitive::Cast(_)))
        && node.operands.iter().all(|x| matches!(b.dtype(*x), Bool | I2 | U2 | I4 | U4 | I8 | U8 | I16 | F16))
}

/// How many elements of a constant are looked at: weights of a file are not read while compiling.
const MAX_LOOK: usize = 4096;

/// Whether a literal is seen to have no finite number beyond the bound.
fn fits(literal: &rlx_ir::Literal, greatest: f64) -> bool {
    literal.element_count() <= MAX_LOOK
        && literal
            .to_vec::<f32>()
            .is_some_and(|all| all.iter().all(|x| !x.is_finite() || f64::from(x.abs()) <= greatest))
}
