//! Attention and what goes with it: rotary embeddings, linear attention, the causal convolution with a state, and
//! attention with subgraphs that change scores and probabilities.

use rlx_ir::op::attention::{
    Attention, AttentionOperand, EmptyRow, LinearAttention, LinearAttentionRule, ScoreStage,
};
use rlx_ir::op::contract::Dot;
use rlx_ir::op::convolution::CausalConv;
use rlx_ir::op::rotary::RotaryEmbedding;
use rlx_ir::op::softmax::{Softmax, SoftmaxOp};

use rlx_ir::op::{Axis, Real};
use rlx_ir::{Builder, DType, Dim, TensorType, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain, onnx};
use crate::values::Bound;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Attention", &[23, 24, 25], attention),
    onnx("CausalConvWithState", &[27], causal_conv_with_state),
    onnx("LinearAttention", &[27], linear_attention),
    onnx("RotaryEmbedding", &[23], rotary_embedding),
    of_domain("ai.onnx.preview", "FlexAttention", &[1], flex_attention),
];

/// \[batch, tokens, heads · width\] as \[batch, heads, tokens, width\].
pub(super) fn split_heads(b: &mut Builder, x: Value, heads: &Dim) -> Result<Value, TypeError> {
    let dims = b.shape(x);
    let width = dims[2].floor_div(heads);
    let split = b.reshape(x, &[dims[0].clone(), dims[1].clone(), heads.clone(), width])?;
    b.transpose(split, &[0, 2, 1, 3])
}

/// \[batch, heads, tokens, width\] as \[batch, tokens, heads · width\].
pub(super) fn merge_heads(b: &mut Builder, x: Value) -> Result<Value, TypeError> {
    let dims = b.shape(x);
    let moved = b.transpose(x, &[0, 2, 1, 3])?;
    b.reshape(moved, &[dims[0].clone(), dims[2].clone(), &dims[1] * &dims[3]])
}

/// A required count of heads: at least 1.
pub(super) fn heads(cx: &NodeContext<'_, '_>, name: &str) -> Result<Dim, NodeProblem> {
    let count = cx.required_int(name)?;
    if count < 1 {
        return Err(cx.bad_attribute(name, "at least 1", count));
    }
    Ok(count.into())
}

/// An element type that is absent or 0 ("undefined") by default.
pub(super) fn chosen_type(cx: &NodeContext<'_, '_>, name: &str) -> Result<Option<DType>, NodeProblem> {
    match cx.optional_int(name)? {
        None | Some(0) => Ok(None),
        Some(_) => cx.element_type(name),
    }
}

/// Q, K and V as \[batch, heads, tokens, width\], and whether they came with packed heads.
fn unpacked(cx: &mut NodeContext<'_, '_>) -> Result<([Value; 3], bool), NodeProblem> {
    let mut all = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let rank = cx.rank(all[0]);
    for (i, value) in all.into_iter().enumerate() {
        let found = cx.rank(value);
        if found != rank || !(3..=4).contains(&found) {
            return Err(cx.bad_input(i, "number of axes", "3 or 4, as of Q", found));
        }
    }
    if rank == 4 {
        return Ok((all, false));
    }
    let counts = [heads(cx, "q_num_heads")?, heads(cx, "kv_num_heads")?];
    for (i, value) in all.iter_mut().enumerate() {
        *value = split_heads(cx.builder(), *value, &counts[i.min(1)])?;
    }
    Ok((all, true))
}

/// Input 3 as an operand: bool masks select, others are added. A mask for fewer keys hides the rest.
fn mask(
    cx: &mut NodeContext<'_, '_>,
    q: Value,
    keys: &Dim,
) -> Result<Option<(AttentionOperand, Value)>, NodeProblem> {
    let Some(mut mask) = cx.optional(3)? else { return Ok(None) };
    let (dtype, own) = (cx.dtype(mask), cx.shape(mask));
    let Some(last) = own.last().filter(|_| own.rank() <= 4) else {
        return Err(cx.bad_input(3, "number of axes", "1 to 4", own.rank()));
    };
    let wide = if cx.dtype(q) == DType::F64 { DType::F64 } else { DType::F32 };
    let b = cx.builder();
    if dtype.is_int() {
        mask = b.cast(mask, wide)?;
    }
    let operand =
        if dtype == DType::Bool { AttentionOperand::KeepMask } else { AttentionOperand::AdditiveMask };
    if last != keys {
        let low = vec![Dim::ZERO; own.rank()];
        let mut high = low.clone();
        high[own.rank() - 1] = keys - last;
        let hidden = if dtype == DType::Bool { 0.0 } else { f64::NEG_INFINITY };
        mask = b.pad(mask, &low, &high, hidden)?;
    }
    Ok(Some((operand, mask)))
}

/// A bound of the window; −1 is none.
fn window(cx: &NodeContext<'_, '_>, name: &str) -> Result<Option<usize>, NodeProblem> {
    match cx.int(name, -1)? {
        -1 => Ok(None),
        size => match usize::try_from(size) {
            Ok(size) => Ok(Some(size)),
            Err(_) => Err(cx.bad_attribute(name, "at least -1", size)),
        },
    }
}

/// The cache followed by what is new, along the tokens.
pub(super) fn continued(
    cx: &mut NodeContext<'_, '_>,
    past: Option<Value>,
    new: Value,
) -> Result<Value, NodeProblem> {
    Ok(match past {
        Some(past) => cx.builder().concat(&[past, new], 2)?,
        None => new,
    })
}

fn attention(cx: &mut NodeContext<'_, '_>) -> Handled {
    let ([q, k, v], packed) = unpacked(cx)?;
    let (past_key, past_value, lengths) = (cx.optional(4)?, cx.optional(5)?, cx.optional(6)?);
    if past_key.is_some() != past_value.is_some() {
        let operand = if past_key.is_some() { 5 } else { 4 };
        return Err(NodeProblem::MissingInput { operand });
    }
    if past_key.is_some() && lengths.is_some() {
        return Err(NodeProblem::Unsupported("both a past and nonpad_kv_seqlen".to_owned()));
    }
    let (k, v) = (continued(cx, past_key, k)?, continued(cx, past_value, v)?);
    let causal = cx.flag("is_causal", false)?;
    let (window_left, window_right) = (window(cx, "left_window_size")?, window(cx, "right_window_size")?);
    let scores = match cx.int("qk_matmul_output_mode", 0)? {
        0 => ScoreStage::Raw,
        1 => ScoreStage::Capped,
        2 => ScoreStage::Masked,
        3 => ScoreStage::Probabilities,
        other => return Err(cx.bad_attribute("qk_matmul_output_mode", "0 to 3", other)),
    };
    let soft_cap = cx.float("softcap", 0.0)?;
    let (queries, keys) = (cx.shape(q)[2].clone(), cx.shape(k)[2].clone());
    let mut listed = Vec::new();
    let mut values = vec![q, k, v];
    if let Some((operand, mask)) = mask(cx, q, &keys)? {
        listed.push(operand);
        values.push(mask);
    }
    if causal || window_left.is_some() || window_right.is_some() {
        let b = cx.builder();
        let offset = match (past_key, lengths) {
            (Some(past), _) => {
                let past = b.dim(past, 2);
                Some(b.dim_value(&past)?)
            }
            (None, Some(lengths)) => {
                let lengths = b.cast(lengths, DType::I64)?;
                let queries = b.dim_value(&queries)?;
                let queries = b.broadcast_to(queries, &b.shape(lengths))?;
                Some(b.sub(lengths, queries)?)
            }
            (None, None) => None,
        };
        if let Some(offset) = offset {
            listed.push(AttentionOperand::Offset);
            values.push(offset);
        }
    }
    if let Some(lengths) = lengths {
        listed.push(AttentionOperand::Lengths);
        values.push(lengths);
    }
    let op = Attention {
        operands: listed,
        scale: cx.optional_float("scale")?.map(Real::new),
        soft_cap: (soft_cap > 0.0).then(|| Real::new(soft_cap)),
        causal,
        window_left,
        window_right,
        softmax_dtype: chosen_type(cx, "softmax_precision")?,
        empty_row: EmptyRow::Zeros,
        scores: cx.wanted(3).then_some(scores),
    };
    let b = cx.builder();
    let results = b.push(op, &values)?;
    let y = if packed { merge_heads(b, results[0])? } else { results[0] };
    Ok([Some(y), Some(k), Some(v), results.get(1).copied()].into_iter().collect())
}

/// Scores and probabilities that subgraphs may change.
fn flex_attention(cx: &mut NodeContext<'_, '_>) -> Handled {
    let [q, k, v] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    for (i, value) in [q, k, v].into_iter().enumerate() {
        let rank = cx.rank(value);
        if rank != 4 {
            return Err(cx.bad_input(i, "number of axes", 4, rank));
        }
    }
    let dtype = cx.dtype(q);
    let default = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let precision = chosen_type(cx, "softmax_precision")?.unwrap_or(default);
    let scale = cx.optional_float("scale")?;
    let (q_dims, k_dims, v_dims) = (cx.shape(q), cx.shape(k), cx.shape(v));
    let groups = q_dims[1].floor_div(&k_dims[1]);
    let grouped = |rest: [&Dim; 2]| -> Vec<Dim> {
        [&q_dims[0], &k_dims[1], &groups].into_iter().chain(rest).cloned().collect()
    };
    let score_dims = [q_dims[0].clone(), q_dims[1].clone(), q_dims[2].clone(), k_dims[2].clone()];
    let b = cx.builder();
    let query = b.reshape(q, &grouped([&q_dims[2], &q_dims[3]]))?;
    let products = Dot { out: Some(default), ..Dot::along(2, 4, 3) };
    let scores = b.push1(products, &[query, k])?;
    let scores = b.reshape(scores, &score_dims)?;
    let scale = match scale {
        Some(scale) => b.scalar(scale, default)?,
        None => {
            let width = b.dim_as(&q_dims[3], default)?;
            b.unary(rlx_ir::op::elementwise::UnaryOp::Rsqrt, width)?
        }
    };
    let scale = b.broadcast_to(scale, &score_dims)?;
    let scores = b.mul(scores, scale)?;
    let scores = b.cast(scores, precision)?;
    let scores = modified(cx, "score_mod", scores)?;
    let softmax = Softmax { op: SoftmaxOp::Softmax, axis: Axis(3) };
    let probabilities = cx.builder().push1(softmax, &[scores])?;
    let probabilities = modified(cx, "prob_mod", probabilities)?;
    let b = cx.builder();
    let probabilities = b.cast(probabilities, default)?;
    let probabilities = b.reshape(probabilities, &grouped([&q_dims[2], &k_dims[2]]))?;
    let v = b.cast(v, default)?;
    let weighted = Dot::along(2, 4, 2);
    let y = b.push1(weighted, &[probabilities, v])?;
    let y = b.reshape(y, &[q_dims[0].clone(), q_dims[1].clone(), q_dims[2].clone(), v_dims[3].clone()])?;
    Ok(b.cast(y, dtype)?.into())
}

/// A tensor changed by a subgraph of the node, if it has this one; its type stays.
fn modified(cx: &mut NodeContext<'_, '_>, attribute: &str, x: Value) -> Result<Value, NodeProblem> {
    if cx.attribute(attribute).is_none() {
        return Ok(x);
    }
    let graph = cx.graph(attribute)?;
    let expected = cx.builder().type_of(x).clone();
    let outputs = cx.inline(graph, vec![Bound::Tensor(x)], attribute)?;
    let [output] = outputs.as_slice() else {
        return Err(cx.bad_attribute(attribute, "a graph with one output", outputs.len()));
    };
    let y = output.as_tensor().ok_or_else(|| cx.bad_attribute(attribute, "a tensor", output.kind()))?;
    let found = cx.builder().type_of(y).clone();
    if found.dtype != expected.dtype || found.rank() != expected.rank() {
        return Err(cx.bad_attribute(attribute, format!("a result of type {expected}"), found));
    }
    // Sizes may be written otherwise; the reshape checks them.
    Ok(cx.builder().reshape(y, expected.dims())?)
}

fn rotary_embedding(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, cos, sin) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let positions = cx.optional(3)?;
    let interleaved = cx.flag("interleaved", false)?;
    let turned = cx.int("rotary_embedding_dim", 0)?;
    let rank = cx.rank(x);
    let packed = match rank {
        3 => true,
        4 => false,
        other => return Err(cx.bad_input(0, "number of axes", "3 or 4", other)),
    };
    let split = if packed {
        let heads = heads(cx, "num_heads")?;
        split_heads(cx.builder(), x, &heads)?
    } else {
        x
    };
    let width = cx.shape(split)[3].clone();
    let expected = if turned == 0 { width } else { turned.into() };
    let half = cx.shape(cos).last().cloned();
    // Where both are known they must agree; the operation itself checks that the tables fit the width.
    if let (Some(expected), Some(half)) = (expected.as_const(), half.and_then(|half| half.as_const()))
        && expected != half * 2
    {
        return Err(cx.bad_input(1, "last size", expected / 2, half));
    }
    let by_position = positions.is_some();
    let operands: Vec<Value> = [split, cos, sin].into_iter().chain(positions).collect();
    let b = cx.builder();
    let y = b.push1(RotaryEmbedding { interleaved, by_position }, &operands)?;
    Ok(if packed { merge_heads(b, y)? } else { y }.into())
}

fn linear_attention(cx: &mut NodeContext<'_, '_>) -> Handled {
    let rule = match cx.string("update_rule", "gated_delta")?.as_str() {
        "linear" => LinearAttentionRule::Linear,
        "gated" => LinearAttentionRule::Gated,
        "delta" => LinearAttentionRule::Delta,
        "gated_delta" => LinearAttentionRule::GatedDelta,
        other => return Err(cx.bad_attribute("update_rule", "linear, gated, delta or gated_delta", other)),
    };
    let gated = matches!(rule, LinearAttentionRule::Gated | LinearAttentionRule::GatedDelta);
    let corrects = matches!(rule, LinearAttentionRule::Delta | LinearAttentionRule::GatedDelta);
    let (q_heads, kv_heads) = (heads(cx, "q_num_heads")?, heads(cx, "kv_num_heads")?);
    let packed = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    for (i, value) in packed.into_iter().enumerate() {
        let rank = cx.rank(value);
        if rank != 3 {
            return Err(cx.bad_input(i, "number of axes", 3, rank));
        }
    }
    let b = cx.builder();
    let q = split_heads(b, packed[0], &q_heads)?;
    let (k, v) = (split_heads(b, packed[1], &kv_heads)?, split_heads(b, packed[2], &kv_heads)?);
    let state = match cx.optional(3)? {
        Some(state) => state,
        None => {
            let b = cx.builder();
            let dims = [b.dim(q, 0), kv_heads.clone(), b.dim(k, 3), b.dim(v, 3)];
            let t = TensorType::new(b.dtype(q), dims.as_slice());
            b.full(0.0, &t)?
        }
    };
    let mut operands = vec![q, k, v, state];
    for (i, wanted) in [(4, gated), (5, corrects)] {
        if cx.has(i) && !wanted {
            return Err(cx.bad_input(i, "presence", "absent under this update rule", "present"));
        }
        if wanted {
            operands.push(per_token(cx, i, &kv_heads)?);
        }
    }
    let scale = cx.float("scale", 0.0)?;
    let scale = (scale != 0.0).then(|| Real::new(scale));
    let b = cx.builder();
    let results = b.push(LinearAttention { rule, scale }, &operands)?;
    let y = merge_heads(b, results[0])?;
    Ok(vec![y, results[1]].into())
}

/// The decay or the rate, \[batch, tokens, n\], as \[batch, heads, tokens, n / heads\]; n may be 1 for all heads.
fn per_token(cx: &mut NodeContext<'_, '_>, i: usize, heads: &Dim) -> Result<Value, NodeProblem> {
    let x = cx.input(i)?;
    let dims = cx.shape(x);
    if dims.rank() != 3 {
        return Err(cx.bad_input(i, "number of axes", 3, dims.rank()));
    }
    let shared = dims[2].as_const() == Some(1);
    let heads = if shared { Dim::ONE } else { heads.clone() };
    Ok(split_heads(cx.builder(), x, &heads)?)
}

fn causal_conv_with_state(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let (bias, state) = (cx.optional(2)?, cx.optional(3)?);
    let silu = match cx.string("activation", "none")?.as_str() {
        "none" => false,
        "silu" | "swish" => true,
        other => return Err(cx.bad_attribute("activation", "none, silu or swish", other)),
    };
    for (i, value) in [x, w].into_iter().enumerate() {
        let rank = cx.rank(value);
        if rank != 3 {
            return Err(cx.bad_input(i, "number of axes", 3, rank));
        }
    }
    let b = cx.builder();
    let state = match state {
        Some(state) => state,
        None => {
            let dims = [b.dim(x, 0), b.dim(x, 1), b.dim(w, 2) - 1];
            let t = TensorType::new(b.dtype(x), dims.as_slice());
            b.full(0.0, &t)?
        }
    };
    let operands: Vec<Value> = [x, w, state].into_iter().chain(bias).collect();
    Ok(b.push(CausalConv { silu }, &operands)?.to_vec().into())
}
