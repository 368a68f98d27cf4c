//! Counts of n-grams in sequences of tokens.

use std::collections::HashMap;

use rlx_ir::op::elementwise::{BinaryOp, CompareOp};
use rlx_ir::op::index::{Combine, OutOfBounds, ScatterAlong};
use rlx_ir::op::reduce::ReduceOp;
use rlx_ir::{DType, Dim, Literal, TensorType, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};
use crate::values::Bound;

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[onnx("TfIdfVectorizer", &[9], tf_idf_vectorizer)];

/// Each distance of neighbours is counted apart; more are a mistake, and would take a graph of any size.
const MAX_SKIPS: i64 = 64;

/// The n-grams of one length: tokens row by row, and the columns that count them.
struct Grams {
    length: usize,
    tokens: Vec<i64>,
    columns: Vec<i64>,
    weights: Vec<f32>,
}

/// Counts (TF), presence (IDF) or weighted counts (TFIDF) of the n-grams of a pool, as f32. Neighbours of an n-gram
/// may be up to `max_skip_count` tokens apart, all equally far.
fn tf_idf_vectorizer(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mode = cx.optional_string("mode")?;
    let mode = mode.ok_or_else(|| NodeProblem::MissingAttribute { name: "mode".to_owned() })?;
    if !matches!(mode.as_str(), "TF" | "IDF" | "TFIDF") {
        return Err(cx.bad_attribute("mode", "TF, IDF or TFIDF", mode));
    }
    let (shortest, longest) = (cx.required_int("min_gram_length")?, cx.required_int("max_gram_length")?);
    let skips = cx.required_int("max_skip_count")?;
    if shortest < 1 || longest < shortest {
        return Err(cx.bad_attribute("max_gram_length", format!("at least {}", shortest.max(1)), longest));
    }
    if skips > MAX_SKIPS {
        return Err(cx.bad_attribute("max_skip_count", format!("at most {MAX_SKIPS}"), skips));
    }
    let (x, tokens) = tokens(cx)?;
    let grams = grams(cx, tokens, shortest, longest)?;
    let width = cx
        .ints("ngram_indexes")?
        .unwrap_or_default()
        .into_iter()
        .max()
        .map_or(0, |most| most.saturating_add(1));
    let b = cx.builder();
    let flat = b.rank(x) < 2;
    let x = if flat { b.reshape(x, &[Dim::ONE, b.shape(x).element_count()])? } else { x };
    let rows = b.dim(x, 0);
    let mut result = b.full(0.0, &TensorType::new(DType::F32, vec![rows.clone(), width.into()]))?;
    for grams in grams {
        let counts = counted(cx, x, &grams, skips)?;
        let b = cx.builder();
        let dims = b.shape(counts);
        let weights = b.vector(&grams.weights);
        let weights = b.broadcast_in(weights, &dims, &[1])?;
        let values = match mode.as_str() {
            "TF" => counts,
            "TFIDF" => b.mul(counts, weights)?,
            _ => {
                let present = b.compare_scalar(CompareOp::Gt, counts, 0.0)?;
                let zero = b.like(0.0, counts)?;
                b.select(present, weights, zero)?
            }
        };
        let columns = b.vector(&grams.columns);
        let columns = b.broadcast_in(columns, &dims, &[1])?;
        let op = ScatterAlong { axis: 1, combine: Combine::Add, oob: OutOfBounds::Error, wrap: false };
        result = b.push1(op, &[result, columns, values])?;
    }
    let b = cx.builder();
    Ok(if flat { b.reshape(result, &[width.into()])? } else { result }.into())
}

/// The input and the pool as numbers: text is numbered by the pool, and −1 where the pool does not have it.
fn tokens(cx: &mut NodeContext<'_, '_>) -> Result<(Value, Vec<i64>), NodeProblem> {
    if let Some(pool) = cx.ints("pool_int64s")? {
        let x = cx.input(0)?;
        let rank = cx.rank(x);
        if rank > 2 {
            return Err(cx.bad_input(0, "number of axes", "at most 2", rank));
        }
        return Ok((cx.builder().cast(x, DType::I64)?, pool));
    }
    let pool = cx.strings("pool_strings")?;
    let pool = pool.ok_or_else(|| NodeProblem::MissingAttribute { name: "pool_int64s".to_owned() })?;
    let mut numbers: HashMap<&str, i64> = HashMap::new();
    let tokens = pool.iter().map(|word| {
        let next = numbers.len() as i64;
        *numbers.entry(word).or_insert(next)
    });
    let tokens = tokens.collect();
    let Bound::Text(text) = cx.bound(0)? else {
        return Err(cx.bad_input(0, "element type", "text, as the pool is", "numbers"));
    };
    let found: Vec<i64> =
        text.elements.iter().map(|word| numbers.get(word.as_str()).copied().unwrap_or(-1)).collect();
    let dims = text.dims.clone();
    Ok((cx.builder().constant(Literal::from_slice(dims, &found)?), tokens))
}

/// The pool by length. It lists all 1-grams, then all 2-grams, …; `ngram_counts` says where each length begins.
fn grams(
    cx: &mut NodeContext<'_, '_>,
    pool: Vec<i64>,
    shortest: i64,
    longest: i64,
) -> Result<Vec<Grams>, NodeProblem> {
    let list = |name: &str, list: Option<Vec<i64>>| {
        list.ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
    };
    let starts = list("ngram_counts", cx.ints("ngram_counts")?)?;
    let columns = list("ngram_indexes", cx.ints("ngram_indexes")?)?;
    let weights = cx.floats("weights")?;
    let mut all = Vec::new();
    let mut first = 0;
    for (i, start) in starts.iter().enumerate() {
        let length = i + 1;
        let end = starts.get(length).copied().unwrap_or(pool.len() as i64);
        let tokens = usize::try_from(*start).ok().zip(usize::try_from(end).ok());
        let tokens = tokens.and_then(|(start, end)| pool.get(start..end));
        let tokens = tokens.ok_or_else(|| cx.bad_attribute("ngram_counts", "ascending places", start))?;
        let count = tokens.len() / length;
        let of = columns.get(first..first + count);
        let of = of.filter(|of| of.iter().all(|column| *column >= 0));
        let of = of.ok_or_else(|| {
            cx.bad_attribute(
                "ngram_indexes",
                "a column for each n-gram",
                format!("{} columns", columns.len()),
            )
        })?;
        let weights = match &weights {
            None => vec![1.0; count],
            Some(weights) => match weights.get(first..first + count) {
                Some(weights) => weights.iter().map(|w| *w as f32).collect(),
                None => return Err(cx.bad_attribute("weights", "one for each n-gram", weights.len())),
            },
        };
        if (shortest..=longest).contains(&(length as i64)) && count > 0 {
            all.push(Grams { length, tokens: tokens.to_vec(), columns: of.to_vec(), weights });
        }
        first += count;
    }
    Ok(all)
}

/// How often each n-gram is in each row: f32 \[rows, n-grams\].
fn counted(cx: &mut NodeContext<'_, '_>, x: Value, grams: &Grams, skips: i64) -> Result<Value, NodeProblem> {
    let b = cx.builder();
    let (rows, length) = (b.dim(x, 0), b.dim(x, 1));
    let number = Dim::from(grams.columns.len());
    let mut total = b.full(0.0, &TensorType::new(DType::F32, vec![rows.clone(), number.clone()]))?;
    // Single tokens have no neighbours to be apart from.
    let skips = if grams.length == 1 { 0 } else { skips.max(0) };
    for skip in 0..=skips {
        let span = (grams.length as i64 - 1).saturating_mul(skip + 1);
        if length.as_const().is_some_and(|length| length <= span) {
            break;
        }
        let places = (&length - &Dim::constant(span)).max(&Dim::ZERO);
        let dims = [rows.clone(), number.clone(), places.clone()];
        let mut all_match = None;
        for i in 0..grams.length {
            let tokens: Vec<i64> = grams.tokens.iter().skip(i).step_by(grams.length).copied().collect();
            let tokens = b.vector(&tokens);
            let tokens = b.broadcast_in(tokens, &dims, &[1])?;
            let start = Dim::constant(i as i64 * (skip + 1));
            let here = b.slice_axis(x, 1, &start, &places)?;
            let here = b.broadcast_in(here, &dims, &[0, 2])?;
            let equal = b.compare(CompareOp::Eq, here, tokens)?;
            all_match = Some(match all_match {
                None => equal,
                Some(so_far) => b.binary(BinaryOp::And, so_far, equal)?,
            });
        }
        if let Some(matches) = all_match {
            let matches = b.cast(matches, DType::F32)?;
            let counts = b.reduce(ReduceOp::Sum, matches, &[2], false)?;
            total = b.add(total, counts)?;
        }
    }
    Ok(total)
}
