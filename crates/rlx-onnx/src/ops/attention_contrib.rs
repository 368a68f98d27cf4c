//! Attention as onnxruntime's own domain `com.microsoft` has it, and the rotary and token embeddings beside it. Their
//! meaning is that of onnxruntime's operator documents (ContribOperators.md, MIT).

use rlx_ir::op::attention::{Attention, AttentionOperand, EmptyRow};
use rlx_ir::op::elementwise::{BinaryOp, CompareOp};
use rlx_ir::op::index::{Combine, OutOfBounds, ScatterAlong};
use rlx_ir::op::norm::LayerNorm;
use rlx_ir::op::rotary::RotaryEmbedding;
use rlx_ir::op::{Axis, Real};
use rlx_ir::{Builder, DType, Dim, TensorType, TypeError, Value};

use super::attention::{continued, heads, merge_heads, split_heads};
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain};
use crate::values::Outputs;

const DOMAIN: &str = "com.microsoft";

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    of_domain(DOMAIN, "Attention", &[1], packed_attention),
    of_domain(DOMAIN, "EmbedLayerNormalization", &[1], embed_layer_normalization),
    of_domain(DOMAIN, "GroupQueryAttention", &[1], group_query_attention),
    of_domain(DOMAIN, "MultiHeadAttention", &[1], multi_head_attention),
    of_domain(DOMAIN, "RotaryEmbedding", &[1], rotary_embedding),
];

/// The error of an attribute or input that is not supported, if it is there.
fn refuse(found: bool, what: &str) -> Result<(), NodeProblem> {
    if found { Err(NodeProblem::Unsupported(what.to_owned())) } else { Ok(()) }
}

/// Input `i`, which must have this many axes.
fn ranked(cx: &mut NodeContext<'_, '_>, i: usize, rank: usize) -> Result<Value, NodeProblem> {
    let x = cx.input(i)?;
    let found = cx.rank(x);
    if found == rank { Ok(x) } else { Err(cx.bad_input(i, "number of axes", rank, found)) }
}

/// The attribute `scale`; 0 and absence mean 1/√width.
fn scale(cx: &NodeContext<'_, '_>) -> Result<Option<Real>, NodeProblem> {
    Ok(cx.optional_float("scale")?.filter(|scale| *scale != 0.0).map(Real::new))
}

/// A mask of integers over keys as numbers added to the scores: 0 where it is above 0, else the fill value. Sizes:
/// \[batch\] counts the keys that are valid, \[batch, keys\], \[batch, queries, keys\].
fn filled_mask(
    cx: &mut NodeContext<'_, '_>,
    i: usize,
    keys: &Dim,
    dtype: DType,
) -> Result<Option<Value>, NodeProblem> {
    let Some(mask) = cx.optional(i)? else { return Ok(None) };
    let fill = cx.float("mask_filter_value", -10000.0)?;
    let dims = cx.shape(mask);
    let b = cx.builder();
    let keep = match dims.rank() {
        1 => {
            let all = [dims[0].clone(), Dim::ONE, Dim::ONE, keys.clone()];
            let place = b.iota(DType::I64, &all, 3)?;
            let lengths = b.cast(mask, DType::I64)?;
            let lengths = b.broadcast_in(lengths, &all, &[0])?;
            b.compare(CompareOp::Lt, place, lengths)?
        }
        2 | 3 => {
            let keep = b.compare_scalar(CompareOp::Gt, mask, 0.0)?;
            let mut all = dims.to_vec();
            while all.len() < 4 {
                all.insert(1, Dim::ONE);
            }
            b.reshape(keep, &all)?
        }
        other => return Err(cx.bad_input(i, "number of axes", "1 to 3", other)),
    };
    let zero = b.full(0.0, &TensorType::new(dtype, b.shape(keep)))?;
    let filled = b.like(fill, zero)?;
    Ok(Some(b.select(keep, zero, filled)?))
}

/// Both, added, where there are two.
fn summed(b: &mut Builder, x: Option<Value>, y: Option<Value>) -> Result<Option<Value>, TypeError> {
    match (x, y) {
        (Some(x), Some(y)) => b.broadcasting(BinaryOp::Add, x, y).map(Some),
        (x, y) => Ok(x.or(y)),
    }
}

/// Attention of q, k, v \[batch, heads, tokens, width\] after `past` keys, with what is added to the scores.
fn attended(
    cx: &mut NodeContext<'_, '_>,
    qkv: [Value; 3],
    added: Option<Value>,
    past: Option<Dim>,
) -> Result<Value, NodeProblem> {
    let causal = cx.flag("unidirectional", false)?;
    let scale = scale(cx)?;
    let (mut operands, mut values) = (Vec::new(), qkv.to_vec());
    let b = cx.builder();
    if let Some(added) = added {
        operands.push(AttentionOperand::AdditiveMask);
        values.push(added);
    }
    if let (true, Some(past)) = (causal, past) {
        operands.push(AttentionOperand::Offset);
        values.push(b.dim_value(&past)?);
    }
    let op = Attention { operands, scale, causal, empty_row: EmptyRow::Zeros, ..Attention::default() };
    let y = b.push1(op, &values)?;
    Ok(merge_heads(b, y)?)
}

/// Attention with the projections of the input to q, k and v in it. Inputs: x \[batch, tokens, inputs\], weights, bias,
/// mask, past \[2, batch, heads, past tokens, width\], what is added to the scores.
fn packed_attention(cx: &mut NodeContext<'_, '_>) -> Handled {
    refuse(cx.flag("do_rotary", false)?, "attention that turns its own queries")?;
    refuse(cx.flag("past_present_share_buffer", false)? || cx.has(6), "a past in a buffer of its own size")?;
    let heads = heads(cx, "num_heads")?;
    let (x, weights) = (ranked(cx, 0, 3)?, ranked(cx, 1, 2)?);
    let (bias, past, given) = (cx.optional(2)?, cx.optional(4)?, cx.optional(5)?);
    let columns = cx.shape(weights)[1].clone();
    let sizes: Vec<Dim> = match cx.ints("qkv_hidden_sizes")? {
        Some(sizes) if sizes.len() == 3 => sizes.into_iter().map(Dim::constant).collect(),
        Some(sizes) => return Err(cx.bad_attribute("qkv_hidden_sizes", "3 sizes", sizes.len())),
        None => vec![columns.floor_div(&3.into()); 3],
    };
    let dtype = cx.dtype(x);
    let b = cx.builder();
    let mut projected = b.matmul(x, weights)?;
    if let Some(bias) = bias {
        projected = b.broadcasting(BinaryOp::Add, projected, bias)?;
    }
    let mut parts = Vec::with_capacity(3);
    for part in b.split(projected, 2, &sizes)? {
        parts.push(split_heads(b, part, &heads)?);
    }
    let past_tokens = past.map(|past| b.dim(past, 3));
    if let Some(past) = past {
        for (i, part) in parts[1..].iter_mut().enumerate() {
            let own = b.index_axis(past, 0, &i.into())?;
            *part = b.concat(&[own, *part], 2)?;
        }
    }
    let keys = b.dim(parts[1], 2);
    let mask = filled_mask(cx, 3, &keys, dtype)?;
    let added = summed(cx.builder(), mask, given)?;
    let y = attended(cx, [parts[0], parts[1], parts[2]], added, past_tokens)?;
    let present = if cx.wanted(1) {
        let b = cx.builder();
        let both = [b.unsqueeze(parts[1], 0)?, b.unsqueeze(parts[2], 0)?];
        Some(b.concat(&both, 0)?)
    } else {
        None
    };
    Ok([Some(y), present].into_iter().collect::<Outputs>())
}

/// Inputs: q, k and v \[batch, tokens, heads · width\], a bias for all three, mask, what is added to the scores, the past
/// keys and values. Keys and values may also be \[batch, heads, tokens, width\].
fn multi_head_attention(cx: &mut NodeContext<'_, '_>) -> Handled {
    refuse(cx.has(8) || cx.has(9), "a past in a buffer of its own size")?;
    refuse(cx.wanted(3), "the scores as an output")?;
    refuse(!cx.has(1) || !cx.has(2), "packed queries, keys and values")?;
    let heads = heads(cx, "num_heads")?;
    let (q, bias, given) = (ranked(cx, 0, 3)?, cx.optional(3)?, cx.optional(5)?);
    let (past_key, past_value) = (cx.optional(6)?, cx.optional(7)?);
    let rank = {
        let k = cx.input(1)?;
        cx.rank(k)
    };
    if !(3..=4).contains(&rank) {
        return Err(NodeProblem::Unsupported("packed keys and values".to_owned()));
    }
    let mut parts = vec![q, ranked(cx, 1, rank)?, ranked(cx, 2, rank)?];
    refuse(rank == 4 && bias.is_some(), "a bias for keys and values with their heads apart")?;
    let dtype = cx.dtype(q);
    let b = cx.builder();
    if let Some(bias) = bias {
        let sizes: Vec<Dim> = parts.iter().map(|part| b.dim(*part, 2)).collect();
        for (part, own) in parts.iter_mut().zip(b.split(bias, 0, &sizes)?) {
            *part = b.broadcasting(BinaryOp::Add, *part, own)?;
        }
    }
    for part in &mut parts {
        if b.rank(*part) == 3 {
            *part = split_heads(b, *part, &heads)?;
        }
    }
    let past_tokens = past_key.map(|past| b.dim(past, 2));
    parts[1] = continued(cx, past_key, parts[1])?;
    parts[2] = continued(cx, past_value, parts[2])?;
    let keys = cx.shape(parts[1])[2].clone();
    let mask = filled_mask(cx, 4, &keys, dtype)?;
    let added = summed(cx.builder(), mask, given)?;
    let y = attended(cx, [parts[0], parts[1], parts[2]], added, past_tokens)?;
    Ok(vec![y, parts[1], parts[2]].into())
}

/// Turned by the angles at these positions.
fn turned(
    b: &mut Builder,
    x: Value,
    [cos, sin]: [Value; 2],
    positions: Value,
    interleaved: bool,
) -> Result<Value, TypeError> {
    b.push1(RotaryEmbedding { interleaved, by_position: true }, &[x, cos, sin, positions])
}

/// Attention whose keys and values are kept in a cache, of which the first `seqlens_k` + 1 − tokens are valid before.
/// Inputs: q, k, v \[batch, tokens, heads · width\] (or all in q), the caches, seqlens_k, the total length, the tables
/// of the rotary embedding, positions, what is added to the scores, sinks.
fn group_query_attention(cx: &mut NodeContext<'_, '_>) -> Handled {
    for name in ["k_quant_type", "v_quant_type"] {
        refuse(cx.string(name, "NONE")? != "NONE", "a quantised cache")?;
    }
    refuse(cx.int("qk_output", 0)? != 0 || cx.wanted(3), "the scores as an output")?;
    let (q_heads, kv_heads) = (heads(cx, "num_heads")?, heads(cx, "kv_num_heads")?);
    let mut parts = vec![ranked(cx, 0, 3)?];
    if cx.has(1) {
        parts.extend([ranked(cx, 1, 3)?, ranked(cx, 2, 3)?]);
    } else {
        let width = cx.shape(parts[0])[2].floor_div(&(&q_heads + &(kv_heads.clone() * 2)));
        let sizes = [&q_heads * &width, &kv_heads * &width, &kv_heads * &width];
        parts = cx.builder().split(parts[0], 2, &sizes)?;
    }
    let (lengths, total) = (cx.input(5)?, cx.dim(6, "total")?);
    let b = cx.builder();
    for (part, heads) in parts.iter_mut().zip([&q_heads, &kv_heads, &kv_heads]) {
        *part = split_heads(b, *part, heads)?;
    }
    let dims = b.shape(parts[0]);
    let (batch, tokens) = (dims[0].clone(), dims[2].clone());
    // The valid tokens before these; a first prompt that is padded has none.
    let lengths = b.reshape(lengths, std::slice::from_ref(&batch))?;
    let lengths = b.cast(lengths, DType::I64)?;
    let valid = b.add_scalar(lengths, 1.0)?;
    let count = b.dim_value(&tokens)?;
    let count = b.broadcast_to(count, std::slice::from_ref(&batch))?;
    let before = b.sub(valid, count)?;
    let before = b.binary_scalar(BinaryOp::Max, before, 0.0)?;
    let by_token = [batch.clone(), tokens.clone()];
    let places = b.iota(DType::I64, &by_token, 1)?;
    let before_each = b.broadcast_in(before, &by_token, &[0])?;
    let places = b.add(places, before_each)?;
    if cx.flag("do_rotary", false)? {
        let tables = [cx.input(7)?, cx.input(8)?];
        let interleaved = cx.flag("rotary_interleaved", false)?;
        let positions = cx.optional(9)?.unwrap_or(places);
        let b = cx.builder();
        for part in &mut parts[..2] {
            *part = turned(b, *part, tables, positions, interleaved)?;
        }
    }
    let caches = [cx.optional(3)?, cx.optional(4)?];
    for (part, cache) in parts[1..].iter_mut().zip(caches) {
        *part = cached(cx.builder(), *part, cache, (before, places), &total)?;
    }
    let y = grouped(cx, &parts, before, valid)?;
    Ok(vec![y, parts[1], parts[2]].into())
}

/// The attention of the last tokens, which stand after `before` others, among `valid` in all.
fn grouped(
    cx: &mut NodeContext<'_, '_>,
    parts: &[Value],
    before: Value,
    valid: Value,
) -> Result<Value, NodeProblem> {
    let mut operands = vec![AttentionOperand::Offset, AttentionOperand::Lengths];
    let mut values = parts.to_vec();
    values.extend([before, valid]);
    if let Some(added) = cx.optional(10)? {
        operands.push(AttentionOperand::AdditiveMask);
        values.push(added);
    }
    let sinks = match cx.optional(11)? {
        None if cx.flag("smooth_softmax", false)? => {
            let b = cx.builder();
            let t = TensorType::new(b.dtype(parts[0]), vec![b.dim(parts[0], 1)]);
            Some(b.full(0.0, &t)?)
        }
        sinks => sinks,
    };
    if let Some(sinks) = sinks {
        operands.push(AttentionOperand::Sinks);
        values.push(sinks);
    }
    let window = cx.int("local_window_size", -1)?;
    let soft_cap = cx.float("softcap", 0.0)?;
    let op = Attention {
        operands,
        scale: scale(cx)?,
        soft_cap: (soft_cap > 0.0).then(|| Real::new(soft_cap)),
        causal: true,
        window_left: usize::try_from(window).ok().and_then(|window| window.checked_sub(1)),
        ..Attention::default()
    };
    let b = cx.builder();
    let y = b.push1(op, &values)?;
    Ok(merge_heads(b, y)?)
}

/// The cache with new tokens at their places, after `before` others, and zeros after them; it grows to the total
/// length if that is longer.
fn cached(
    b: &mut Builder,
    new: Value,
    cache: Option<Value>,
    (before, places): (Value, Value),
    total: &Dim,
) -> Result<Value, TypeError> {
    let dims = b.shape(new);
    let t = b.type_of(new).clone();
    let cache = match cache {
        Some(cache) => {
            let own = b.dim(cache, 2);
            let mut high = vec![Dim::ZERO; 4];
            high[2] = own.max(total) - &own;
            b.pad(cache, &vec![Dim::ZERO; 4], &high, 0.0)?
        }
        None => b.full(0.0, &t.with_shape(dims.with_dim(2, total.clone())))?,
    };
    let all = b.shape(cache);
    let place = b.iota(DType::I64, &all, 2)?;
    let before = b.broadcast_in(before, &all, &[0])?;
    let valid = b.compare(CompareOp::Lt, place, before)?;
    let zero = b.like(0.0, cache)?;
    let cache = b.select(valid, cache, zero)?;
    let places = b.broadcast_in(places, &dims, &[0, 2])?;
    let op = ScatterAlong { axis: 2, combine: Combine::Replace, oob: OutOfBounds::Error, wrap: false };
    b.push1(op, &[cache, places, new])
}

/// Inputs: x \[batch, tokens, heads · width\] or \[batch, heads, tokens, width\], positions (\[1\]: of the first token), the
/// tables.
fn rotary_embedding(cx: &mut NodeContext<'_, '_>) -> Handled {
    refuse(cx.flag("is_packed_batching", false)?, "packed batches")?;
    refuse(cx.float("scale", 1.0)? != 1.0, "a scale of the rotary embedding")?;
    let (x, mut positions) = (cx.input(0)?, cx.input(1)?);
    let tables = [ranked(cx, 2, 2)?, ranked(cx, 3, 2)?];
    let interleaved = cx.flag("interleaved", false)?;
    let (dims, half) = (cx.shape(x), cx.shape(tables[0])[1].clone());
    let packed = match dims.rank() {
        3 => true,
        4 => false,
        other => return Err(cx.bad_input(0, "number of axes", "3 or 4", other)),
    };
    let partial = cx.int("rotary_embedding_dim", 0)?;
    if partial > 0 && half.as_const().is_some_and(|half| half * 2 != partial) {
        return Err(cx.bad_input(2, "last size", partial / 2, half));
    }
    let heads = match cx.int("num_heads", 0)? {
        // Without a count the tables span a whole head.
        0 if packed => dims[2].floor_div(&(half * 2)),
        count => Dim::constant(count),
    };
    let b = cx.builder();
    let split = if packed { split_heads(b, x, &heads)? } else { x };
    let by_token = [b.dim(split, 0), b.dim(split, 2)];
    if b.rank(positions) == 1 {
        let first = b.reshape(positions, &[])?;
        let first = b.broadcast_to(first, &by_token)?;
        let place = b.iota(b.dtype(first), &by_token, 1)?;
        positions = b.add(first, place)?;
    }
    let y = turned(b, split, tables, positions, interleaved)?;
    Ok(if packed { merge_heads(b, y)? } else { y }.into())
}

/// The norm of the sum of word, position and segment embeddings. Outputs: y, the number of tokens that the mask keeps,
/// the sum.
fn embed_layer_normalization(cx: &mut NodeContext<'_, '_>) -> Handled {
    /// onnxruntime's default.
    const EPS: f32 = 1e-12;
    let (ids, segments) = (ranked(cx, 0, 2)?, cx.optional(1)?);
    let (words, places) = (ranked(cx, 2, 2)?, ranked(cx, 3, 2)?);
    let (of_segments, scale, shift) = (cx.optional(4)?, cx.input(5)?, cx.input(6)?);
    let (mask, positions) = (cx.optional(7)?, cx.optional(8)?);
    let eps = cx.float("epsilon", EPS)?;
    let b = cx.builder();
    let dims = b.shape(ids);
    let mut sum = b.take(words, ids, 0)?;
    let positions = match positions {
        Some(positions) => b.broadcast_to(positions, &dims)?,
        None => b.iota(DType::I64, &dims, 1)?,
    };
    let placed = b.take(places, positions, 0)?;
    sum = b.add(sum, placed)?;
    if let (Some(segments), Some(table)) = (segments, of_segments) {
        let own = b.take(table, segments, 0)?;
        sum = b.add(sum, own)?;
    }
    let norm = LayerNorm { axis: Axis(-1), eps: eps.into(), statistics: false };
    let y = b.push1(norm, &[sum, scale, shift])?;
    let kept = match mask {
        Some(mask) => {
            let mask = b.cast(mask, DType::I32)?;
            let kept = b.compare_scalar(CompareOp::Eq, mask, 1.0)?;
            let kept = b.cast(kept, DType::I32)?;
            b.sum(kept, &[1], false)?
        }
        None => b.full(0.0, &TensorType::new(DType::I32, vec![dims[0].clone()]))?,
    };
    Ok(vec![y, kept, sum].into())
}
