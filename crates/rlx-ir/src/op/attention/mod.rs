//! Attention: scaled dot products of queries with keys, soft-maxed, weighting values. Scores and softmax are taken in
//! f32 for narrower floats. What a query may not see is selected out, so nothing hidden can leak, NaN included.

mod linear;
mod mask;

pub use linear::{LinearAttention, LinearAttentionRule};

use super::axes::broadcasts_to;
use super::elementwise::{BinaryOp, CompareOp, UnaryOp};
use super::norm::statistics_dtype;
use super::reduce::ReduceOp;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types};
use crate::op::contract::Dot;
use crate::types::{Shape, TensorType};
use crate::{names, operation};

type Built = Result<Value, TypeError>;

names! {
    /// The optional operands of attention, after q, k and v.
    pub enum AttentionOperand {
        /// Where the queries begin among the keys: query i stands at position i + offset. Integers, a scalar or
        /// \[batch\]; 0 without it.
        Offset = "offset",
        /// Where each query stands among the keys, in place of i + offset: integers \[batch, queries\].
        Positions = "positions",
        /// How many keys of each sequence are valid: integers \[batch\]; all without it.
        Lengths = "lengths",
        /// What each query may see: bool, broadcast to the scores.
        KeepMask = "keep_mask",
        /// Added to the scores after the soft cap: floating point, broadcast to the scores.
        AdditiveMask = "additive_mask",
        /// k and v are pages \[pages, kv heads, page size, width\], and these integers \[batch, n\] list each sequence's
        /// pages in order. Entries for pages wholly past `lengths` are not looked at.
        PageTable = "page_table",
        /// Per query head, the score of a key that every query sees and that has no value: floating point \[heads\]
        /// (attention sinks; Xiao et al. 2023).
        Sinks = "sinks",
    }
}

names! {
    /// What a query gives that sees no key, or whose scores are all −∞.
    pub enum EmptyRow {
        /// Zeros.
        Zeros = "zeros",
        /// NaN, as a chain of matrix product, softmax and matrix product gives.
        Nan = "nan",
    }
}

names! {
    /// A stage at which the scores are a second result, as ONNX's `qk_matmul_output_mode` 0 to 3.
    pub enum ScoreStage {
        /// Scaled products.
        Raw = "raw",
        /// After the soft cap.
        Capped = "capped",
        /// After the masks: hidden ones are −∞.
        Masked = "masked",
        /// After the softmax.
        Probabilities = "probabilities",
    }
}

operation! {
    /// y\[i\] = Σⱼ softmaxⱼ(mask(cap(scale · qᵢ·kⱼ))) · vⱼ (Vaswani et al. 2017), with cap(s) = c · tanh(s / c).
    /// Operands: q \[batch, heads, queries, width\], k \[batch, kv heads, keys, width\],
    /// v \[batch, kv heads, keys, value width\], then those listed. Query head h uses kv head h / (heads / kv heads)
    /// (Ainslie et al. 2023). A query sees a key if the keep mask, `lengths`, `causal` and the windows all let it;
    /// value rows that no query of a head sees count as 0. Results: y \[batch, heads, queries, value width\], and if
    /// `scores` says so the scores \[batch, heads, queries, keys\], both of q's type.
    /// C1: q is floating point; k and v have its type. C2: ranks 4. C3: sizes agree. C4: kv heads divide the heads.
    /// C5: each optional operand is listed once, and not both `offset` and `positions`. C6: integers of the sizes above.
    /// C7: the keep mask is bool, the additive one floating point, and both broadcast to the scores. C8: sinks are
    /// floating point \[heads\]. C9: `softmax_dtype` is floating point.
    pub struct Attention = "attention" {
        /// What a query gives that sees no key, or whose scores are all −∞.
        empty_row: EmptyRow,
        /// The optional operands that follow q, k and v, in this order.
        operands: Vec<AttentionOperand>,
        /// The factor of the scores; 1/√width without it.
        scale: Option<Real>,
        /// The bound c of the soft cap.
        soft_cap: Option<Real>,
        /// A query sees no key after its own position.
        causal: bool,
        /// How many positions to the left of its own a query sees; all without it.
        window_left: Option<usize>,
        /// How many positions to the right of its own a query sees; all without it.
        window_right: Option<usize>,
        /// A type that the scores are rounded to before the softmax, and the probabilities after it.
        softmax_dtype: Option<DType>,
        /// Whether, and at which stage, the scores are a second result.
        scores: Option<ScoreStage>,
    }
}

impl Default for Attention {
    /// Every query sees every key; no optional operand.
    fn default() -> Attention {
        Attention {
            operands: Vec::new(),
            scale: None,
            soft_cap: None,
            causal: false,
            window_left: None,
            window_right: None,
            softmax_dtype: None,
            empty_row: EmptyRow::Zeros,
            scores: None,
        }
    }
}

/// The sizes of one attention.
struct Sizes {
    batch: Dim,
    heads: Dim,
    queries: Dim,
    keys: Dim,
    kv_heads: Dim,
    value_width: Dim,
}

impl Sizes {
    /// \[batch, heads, queries, keys\].
    fn scores(&self) -> Shape {
        Shape::from(vec![self.batch.clone(), self.heads.clone(), self.queries.clone(), self.keys.clone()])
    }

    /// How many query heads share a kv head.
    fn groups(&self) -> Dim {
        self.heads.floor_div(&self.kv_heads)
    }

    /// \[batch, kv heads, groups, rest…\].
    fn grouped(&self, rest: &[Dim]) -> Vec<Dim> {
        let mut dims = vec![self.batch.clone(), self.kv_heads.clone(), self.groups()];
        dims.extend_from_slice(rest);
        dims
    }
}

impl Attention {
    /// The position among all operands of an optional one.
    fn position(&self, which: AttentionOperand) -> Option<usize> {
        self.operands.iter().position(|o| *o == which).map(|i| i + 3)
    }

    fn optional(&self, operands: &[Value], which: AttentionOperand) -> Option<Value> {
        self.position(which).and_then(|i| operands.get(i)).copied()
    }

    /// The sizes, from the types of q, k, v and the page table. The ranks must have been checked.
    fn sizes(&self, q: &TensorType, k: &TensorType, v: &TensorType, table: Option<&TensorType>) -> Sizes {
        Sizes {
            batch: q.shape[0].clone(),
            heads: q.shape[1].clone(),
            queries: q.shape[2].clone(),
            keys: table.map_or_else(|| k.shape[2].clone(), |t| &t.shape[1] * &k.shape[2]),
            kv_heads: k.shape[1].clone(),
            value_width: v.shape[3].clone(),
        }
    }
}

impl OpDef for Attention {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        use AttentionOperand as O;
        cx.arity(3 + self.operands.len())?;
        let (q, k, v) = (cx.float("C1", 0)?, cx.operand(1)?, cx.operand(2)?);
        for i in 0..3 {
            cx.same_dtype("C1", i, 0)?;
            cx.rank("C2", i, 4)?;
        }
        for (i, operand) in self.operands.iter().enumerate() {
            let again = self.operands[..i].contains(operand)
                || (*operand == O::Positions && self.operands.contains(&O::Offset));
            let what = format!("optional operand {}", operand.name());
            cx.ensure(!again, "C5", Some(3 + i), &what, "once, and `offset` or `positions`", "again")?;
        }
        let table = match self.position(O::PageTable) {
            Some(i) => {
                cx.index("C6", i)?;
                Some(cx.rank("C6", i, 2)?)
            }
            None => None,
        };
        let sizes = self.sizes(q, k, v, table);
        cx.equal("C3", Some(1), "widths of q and k differ", &q.shape[3], &k.shape[3])?;
        cx.equal("C3", Some(2), "first sizes of k and v differ", &k.shape[0], &v.shape[0])?;
        cx.equal("C3", Some(2), "kv heads of k and v differ", &k.shape[1], &v.shape[1])?;
        cx.equal("C3", Some(2), "keys of k and v differ", &k.shape[2], &v.shape[2])?;
        match (table, self.position(O::PageTable)) {
            (Some(t), i) => cx.equal("C3", i, "batch sizes differ", &sizes.batch, &t.shape[0])?,
            (None, _) => cx.equal("C3", Some(1), "batch sizes differ", &sizes.batch, &k.shape[0])?,
        }
        cx.at_most("C4", Some(1), "no kv heads", &Dim::ONE, &sizes.kv_heads)?;
        let rest = sizes.heads.modulo(&sizes.kv_heads);
        cx.equal("C4", Some(1), "kv heads do not divide the heads", &Dim::ZERO, &rest)?;
        let scores = sizes.scores();
        for (i, operand) in self.operands.iter().enumerate() {
            let i = i + 3;
            match operand {
                O::PageTable => {}
                O::Offset => {
                    if cx.index("C6", i)?.rank() > 0 {
                        cx.same_dims("C6", i, std::slice::from_ref(&sizes.batch))?;
                    }
                }
                O::Positions => {
                    cx.index("C6", i)?;
                    cx.same_dims("C6", i, &[sizes.batch.clone(), sizes.queries.clone()])?;
                }
                O::Lengths => {
                    cx.index("C6", i)?;
                    cx.same_dims("C6", i, std::slice::from_ref(&sizes.batch))?;
                }
                O::KeepMask => {
                    cx.dtype("C7", i, DType::Bool)?;
                    broadcasts_to(cx, "C7", i, &scores)?;
                }
                O::AdditiveMask => {
                    cx.float("C7", i)?;
                    broadcasts_to(cx, "C7", i, &scores)?;
                }
                O::Sinks => {
                    cx.float("C8", i)?;
                    cx.same_dims("C8", i, std::slice::from_ref(&sizes.heads))?;
                }
            }
        }
        if let Some(dtype) = self.softmax_dtype {
            cx.ensure(dtype.is_float(), "C9", None, "softmax type", "a floating-point type", dtype)?;
        }
        let y = [sizes.batch.clone(), sizes.heads.clone(), sizes.queries.clone(), sizes.value_width.clone()];
        let mut types = Types::from_iter([q.with_shape(y.as_slice())]);
        if self.scores.is_some() {
            types.push(q.with_shape(scores));
        }
        Ok(types)
    }
}

impl CompositeDef for Attention {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        use AttentionOperand as O;
        let [q, k, v] = [operands[0], operands[1], operands[2]];
        let table = self.optional(operands, O::PageTable);
        let table_type = table.map(|t| b.type_of(t).clone());
        let sizes = self.sizes(b.type_of(q), b.type_of(k), b.type_of(v), table_type.as_ref());
        let lengths = self.optional(operands, O::Lengths);
        let (k, v) = match table {
            Some(table) => {
                let pages = mask::pages_in_use(b, table, lengths, &b.dim(k, 2))?;
                (paged(b, k, pages, &sizes)?, paged(b, v, pages, &sizes)?)
            }
            None => (k, v),
        };
        let dtype = b.dtype(q);
        let raw = self.raw_scores(b, q, k, &sizes)?;
        let capped = match self.soft_cap {
            Some(cap) => {
                let ratio = b.binary_scalar(BinaryOp::Div, raw, cap.get())?;
                let bounded = b.unary(UnaryOp::Tanh, ratio)?;
                b.mul_scalar(bounded, cap.get())?
            }
            None => raw,
        };
        let visible = self.visible(b, operands, lengths, &sizes)?;
        let mut masked = capped;
        if let Some(added) = self.optional(operands, O::AdditiveMask) {
            let added = b.cast(added, b.dtype(masked))?;
            let added = b.broadcast_to(added, &sizes.scores())?;
            masked = b.add(masked, added)?;
        }
        if let Some(visible) = visible {
            let hidden = b.like(f64::NEG_INFINITY, masked)?;
            masked = b.select(visible, masked, hidden)?;
        }
        let sinks = self.optional(operands, O::Sinks);
        let probabilities = self.probabilities(b, masked, sinks, &sizes)?;
        let y = weighted_values(b, probabilities, v, visible, &sizes)?;
        let mut results = Values::from_slice(&[b.cast(y, dtype)?]);
        if let Some(stage) = self.scores {
            let scores = match stage {
                ScoreStage::Raw => raw,
                ScoreStage::Capped => capped,
                ScoreStage::Masked => masked,
                ScoreStage::Probabilities => probabilities,
            };
            results.push(b.cast(scores, dtype)?);
        }
        Ok(results)
    }
}

/// k or v \[pages, kv heads, page size, width\] as \[batch, kv heads, keys, width\].
fn paged(b: &mut Builder, pages: Value, table: Value, sizes: &Sizes) -> Built {
    let width = b.dim(pages, 3);
    let taken = b.take(pages, table, 0)?;
    let taken = b.transpose(taken, &[0, 2, 1, 3, 4])?;
    b.reshape(taken, &[sizes.batch.clone(), sizes.kv_heads.clone(), sizes.keys.clone(), width])
}

impl Attention {
    /// scale · q·k, in the type that statistics are taken in.
    fn raw_scores(&self, b: &mut Builder, q: Value, k: Value, sizes: &Sizes) -> Built {
        let width = b.dim(q, 3);
        let wide = statistics_dtype(b.dtype(q));
        let q = b.reshape(q, &sizes.grouped(&[sizes.queries.clone(), width.clone()]))?;
        let dot = Dot { out: Some(wide), ..Dot::along(2, 4, 3) };
        let products = b.push1(dot, &[q, k])?;
        let products = b.reshape(products, &sizes.scores())?;
        b.mul_scale(products, self.scale, &width)
    }

    /// The softmax of the scores along the keys.
    fn probabilities(&self, b: &mut Builder, scores: Value, sinks: Option<Value>, sizes: &Sizes) -> Built {
        let (wide, shape) = (b.dtype(scores), b.shape(scores));
        let rounded = |b: &mut Builder, x: Value| match self.softmax_dtype {
            Some(dtype) => {
                let narrow = b.cast(x, dtype)?;
                b.cast(narrow, wide)
            }
            None => Ok(x),
        };
        let scores = rounded(b, scores)?;
        let mut greatest = b.reduce(ReduceOp::Max, scores, &[3], true)?;
        let sinks = match sinks {
            Some(sinks) => {
                let sinks = b.cast(sinks, wide)?;
                let sinks = b.broadcast_in(sinks, &sizes.scores().with_dim(3, Dim::ONE), &[1])?;
                greatest = b.max(greatest, sinks)?;
                Some(sinks)
            }
            None => None,
        };
        let empty = b.compare_scalar(CompareOp::Eq, greatest, f64::NEG_INFINITY)?;
        let zeros = self.empty_row == EmptyRow::Zeros;
        if zeros {
            // −∞ − 0 keeps an empty row's terms at e^−∞ = 0, where −∞ − (−∞) would be NaN.
            let zero = b.like(0.0, greatest)?;
            greatest = b.select(empty, zero, greatest)?;
        }
        let subtrahend = b.broadcast_to(greatest, &shape)?;
        let shifted = b.sub(scores, subtrahend)?;
        let terms = b.unary(UnaryOp::Exp, shifted)?;
        let mut total = b.sum(terms, &[3], true)?;
        if let Some(sinks) = sinks {
            let shifted = b.sub(sinks, greatest)?;
            let term = b.unary(UnaryOp::Exp, shifted)?;
            total = b.add(total, term)?;
        }
        if zeros {
            let one = b.like(1.0, total)?;
            total = b.select(empty, one, total)?;
        }
        let total = b.broadcast_to(total, &shape)?;
        let probabilities = b.div(terms, total)?;
        rounded(b, probabilities)
    }
}

/// Σⱼ pⱼ · vⱼ, in the type of p. With `visible`, value rows that no query of a head sees are 0.
fn weighted_values(b: &mut Builder, p: Value, v: Value, visible: Option<Value>, sizes: &Sizes) -> Built {
    let v = b.cast(v, b.dtype(p))?;
    let p = b.reshape(p, &sizes.grouped(&[sizes.queries.clone(), sizes.keys.clone()]))?;
    let v_dims = sizes.grouped(&[sizes.keys.clone(), sizes.value_width.clone()]);
    let v = b.broadcast_in(v, &v_dims, &[0, 1, 3, 4])?;
    let v = match visible {
        Some(visible) => {
            let seen = b.reduce(ReduceOp::Any, visible, &[2], false)?;
            let seen = b.reshape(seen, &sizes.grouped(std::slice::from_ref(&sizes.keys)))?;
            let seen = b.broadcast_in(seen, &v_dims, &[0, 1, 2, 3])?;
            let zero = b.like(0.0, v)?;
            b.select(seen, v, zero)?
        }
        None => v,
    };
    let y = b.push1(Dot::matmul(5), &[p, v])?;
    let dims = [sizes.batch.clone(), sizes.heads.clone(), sizes.queries.clone(), sizes.value_width.clone()];
    b.reshape(y, &dims)
}
