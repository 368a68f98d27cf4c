//! Folding constants within a total of work, and without making one number into a tensor of it.

use rlx_eval::OracleFolder;
use rlx_ir::op::movement::Broadcast;
use rlx_ir::{Builder, ConstantFolder, DType, Literal, Op, Primitive, TensorType, TypeError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most elementary operations that one pass spends on folding: some tens of milliseconds of the oracle's loops.
const TOTAL_WORK: u64 = 1 << 22;

/// What a pass may spend on folding, shared with its subgraphs.
#[derive(Clone, Debug)]
pub struct Budget {
    max_elements: usize,
    left: Arc<AtomicU64>,
}

impl Budget {
    /// A fresh budget for constants of up to `max_elements` elements.
    pub fn new(max_elements: usize) -> Budget {
        Budget { max_elements, left: Arc::new(AtomicU64::new(TOTAL_WORK)) }
    }

    fn spend(&self, work: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(work)).is_ok()
    }
}

/// The oracle, within a budget.
#[derive(Debug)]
pub(super) struct BudgetFolder {
    oracle: OracleFolder,
    budget: Budget,
}

impl BudgetFolder {
    pub(super) fn new(budget: Budget) -> BudgetFolder {
        BudgetFolder { oracle: OracleFolder { max_elements: budget.max_elements }, budget }
    }
}

/// About how many elementary operations this is.
fn work(op: &Op, operands: &[&Literal], results: &[TensorType]) -> Option<u64> {
    let read: u64 = operands.iter().map(|l| l.element_count() as u64).sum();
    let mut written = 0u64;
    for t in results {
        written += t.shape.as_const()?.iter().map(|d| *d as u64).product::<u64>();
    }
    let terms = match op {
        Op::Primitive(Primitive::Dot(_) | Primitive::Conv(_) | Primitive::IntegerDot(_)) => read,
        // An unknown algorithm: a power of the size, as matrix factorisations have.
        Op::Primitive(
            Primitive::Cholesky(_)
            | Primitive::TriangularSolve(_)
            | Primitive::Lu(_)
            | Primitive::Qr(_)
            | Primitive::Eigh(_)
            | Primitive::Svd(_),
        )
        | Op::Composite(_) => read.max(1),
        _ => 1,
    };
    Some(read.saturating_add(written.saturating_mul(terms)))
}

impl ConstantFolder for BudgetFolder {
    fn fold(&self, op: &Op, operands: &[&Literal], types: &[TensorType]) -> Option<Vec<Literal>> {
        // A repeated number is better kept as a view of one; indices and sizes are looked into, so they are folded.
        let repeats = matches!(op, Op::Primitive(Primitive::Broadcast(_)));
        if repeats && !operands[0].dtype().is_int() && operands[0].dtype() != DType::Bool {
            return None;
        }
        if !self.budget.spend(work(op, operands, types)?) {
            return None;
        }
        self.oracle.fold(op, operands, types)
    }
}

/// The literal that a value repeats by a broadcast.
fn repeated_literal(b: &Builder, v: Value) -> Option<&Literal> {
    let node = b.graph().node(v.node);
    match node.op {
        Op::Primitive(Primitive::Broadcast(_)) => b.literal(*node.operands.first()?),
        _ => None,
    }
}

/// An operation on constants of which some are repeated and at least one is not: folded on what they stand for.
/// (Where all are repeated, the broadcast sinks instead.)
pub(super) fn with_repeated_constants(
    b: &mut Builder,
    op: &Op,
    operands: &[Value],
) -> Result<Option<Value>, TypeError> {
    let all = operands.iter().all(|v| b.literal(*v).is_some() || repeated_literal(b, *v).is_some());
    let whole = operands.iter().filter(|v| b.literal(**v).is_some()).count();
    if !all || whole == 0 || whole == operands.len() || !crate::region::is_elementwise(op) {
        return Ok(None);
    }
    let Some(folder) = b.folder() else { return Ok(None) };
    let mut literals: Vec<Literal> = Vec::with_capacity(operands.len());
    for v in operands {
        let literal = match (b.literal(*v), repeated_literal(b, *v)) {
            (Some(literal), _) => literal.clone(),
            (None, Some(source)) => match expanded(source, b.type_of(*v)) {
                Some(literal) => literal,
                None => return Ok(None),
            },
            (None, None) => return Ok(None),
        };
        literals.push(literal);
    }
    let types: Vec<TensorType> = literals.iter().map(Literal::tensor_type).collect();
    let types: Vec<&TensorType> = types.iter().collect();
    let Ok(results) = op.infer(&rlx_ir::infer::Infer::new(op.name(), &types, b.graph().symbols())) else {
        return Ok(None);
    };
    let literals: Vec<&Literal> = literals.iter().collect();
    let folded = folder.fold(op, &literals, &results).and_then(|all| all.into_iter().next());
    Ok(folded.map(|literal| b.constant(literal)))
}

/// A literal repeated to a type of constant sizes, if that is small.
fn expanded(source: &Literal, t: &TensorType) -> Option<Literal> {
    let count: usize = t.shape.as_const()?.iter().product();
    let oracle = OracleFolder { max_elements: MAX_EXPANDED };
    if count > MAX_EXPANDED {
        return None;
    }
    let op = Op::from(Broadcast { dims: t.dims().to_vec() });
    oracle.fold(&op, &[source], std::slice::from_ref(t))?.into_iter().next()
}

/// A repeated constant of at most this many elements is written out where another constant is as large anyway.
const MAX_EXPANDED: usize = 4096;
