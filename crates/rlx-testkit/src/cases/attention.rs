//! Cases of attention and linear attention: ONNX's reference implementation where it has the feature, and a formula
//! written pair by pair.

use crate::array::Array;
use crate::case::{Case, FLOATS, Stage, bools, f32s, for_dtypes, i64s, op_case};
use crate::golden::golden;
use crate::random::Domain;

const GOLDEN: &str = include_str!("../../golden/attention.case");

/// What the formula of attention is told besides q, k and v.
#[derive(Clone, Default)]
struct Setting {
    causal: bool,
    /// Query i stands at `position(batch, i)`.
    offset: i64,
    lengths: Option<Vec<usize>>,
    sinks: bool,
    scale: Option<f64>,
}

/// Whether query i of a batch sees key j.
fn sees(setting: &Setting, batch: usize, i: usize, j: usize) -> bool {
    let valid = setting.lengths.as_ref().is_none_or(|l| j < l[batch]);
    valid && (!setting.causal || j as i64 <= i as i64 + setting.offset)
}

/// Attention pair by pair: for each query the keys that it sees, and nothing else, are looked at.
fn pairwise(setting: &Setting, inputs: &[Array]) -> Array {
    let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
    let (heads, width) = (q.dims[1], q.dims[3]);
    let shared = heads / k.dims[1];
    let scale = setting.scale.unwrap_or(1.0 / (width as f64).sqrt());
    let dims = [q.dims[0], heads, q.dims[2], v.dims[3]];
    Array::from_fn(dims, |at| {
        let [batch, head, i, column] = [at[0], at[1], at[2], at[3]];
        let seen: Vec<usize> = (0..k.dims[2]).filter(|j| sees(setting, batch, i, *j)).collect();
        let score = |j: usize| -> f64 {
            (0..width).map(|d| q.at(&[batch, head, i, d]) * k.at(&[batch, head / shared, j, d])).sum::<f64>()
                * scale
        };
        let scores: Vec<f64> = seen.iter().map(|j| score(*j)).collect();
        let sink = setting.sinks.then(|| inputs[3].at(&[head]));
        let greatest = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
        let terms: Vec<f64> = scores.iter().map(|s| (s - greatest).exp()).collect();
        let total: f64 = terms.iter().sum::<f64>() + sink.map_or(0.0, |s| (s - greatest).exp());
        if seen.is_empty() {
            return 0.0;
        }
        let values = seen.iter().map(|j| v.at(&[batch, head / shared, *j, column]));
        terms.iter().zip(values).map(|(t, v)| t / total * v).sum()
    })
}

/// A case of attention on drawn q, k, v, judged by the formula.
fn drawn(name: &str, attributes: &str, operands: &str, setting: Setting, terms: usize) -> Case {
    op_case("attention", name, &format!("empty_row=zeros{attributes}"), operands)
        .formula(move |inputs| pairwise(&setting, inputs))
        .accumulated(terms)
}

/// f32 sizes of q, k, v for a number of batches, heads, kv heads, queries, keys, widths.
fn qkv(dims: [usize; 7]) -> String {
    let [batch, heads, kv_heads, queries, keys, width, value_width] = dims;
    format!(
        "f32[{batch}, {heads}, {queries}, {width}], f32[{batch}, {kv_heads}, {keys}, {width}], \
         f32[{batch}, {kv_heads}, {keys}, {value_width}]"
    )
}

fn sizes() -> Vec<Case> {
    let named = |name: &str, dims: [usize; 7], causal: bool| {
        let attributes = if causal { ", causal=true" } else { "" };
        let setting = Setting { causal, ..Setting::default() };
        drawn(name, attributes, &qkv(dims), setting, dims[4] + dims[5] + 8).random(Domain::Normal)
    };
    let mut cases = vec![
        named("one_query_many_keys", [1, 2, 1, 1, 513, 8, 4], false),
        named("key_width_96_value_width_64", [1, 1, 1, 3, 5, 96, 64], false),
        named("width_576", [1, 1, 1, 2, 3, 576, 2], false),
        named("more_queries_than_keys_causal", [1, 1, 1, 7, 3, 5, 2], true),
        named("no_keys", [2, 2, 1, 3, 0, 4, 2], false),
        named("no_queries", [2, 2, 2, 0, 3, 4, 2], true),
        named("no_sequences", [0, 2, 2, 3, 3, 4, 2], true),
        named("single_key", [1, 3, 3, 2, 1, 1, 1], false),
    ];
    for width in [40, 64, 80, 96, 112, 128, 192, 256] {
        cases.push(named(&format!("width_{width}"), [1, 2, 1, 3, 5, width, width], true));
    }
    let all = usize::MAX >> 1;
    cases.push(
        drawn(
            "windows_wider_than_any_tensor",
            &format!(", window_left={all}, window_right={all}"),
            &qkv([1, 1, 1, 2, 3, 4, 2]),
            Setting::default(),
            16,
        )
        .random(Domain::Normal),
    );
    cases
}

fn symbolic() -> Case {
    let operands = "f32[b, h, n, w], f32[b, g, m, w], f32[b, g, m, u], i64[b]";
    let setting = Setting { lengths: Some(vec![3, 0]), ..Setting::default() };
    drawn("every_size_symbolic", ", operands=[lengths]", operands, setting, 32)
        .sizes([("b", 2), ("h", 4), ("g", 2), ("n", 3), ("m", 5), ("w", 4), ("u", 3)])
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .input(i64s([2], [3, 0]))
}

/// Two queries, four keys of width 2, where key and value 2 hold NaN and infinities.
fn poisoned() -> [rlx_ir::Literal; 3] {
    let bad = [0.5, -1.0, 1.5, 0.25, f32::NAN, f32::INFINITY, 0.75, 1.0];
    [f32s([1, 1, 2, 2], [1.0, 0.5, -0.5, 2.0]), f32s([1, 1, 4, 2], bad), f32s([1, 1, 4, 2], bad)]
}

fn leaks() -> Vec<Case> {
    let two = qkv([1, 1, 1, 2, 4, 2, 2]);
    let without_third = |inputs: &[Array]| {
        let keep = |x: &Array| {
            Array::from_fn([1, 1, 3, 2], |at| x.at(&[0, 0, if at[2] == 2 { 3 } else { at[2] }, at[3]]))
        };
        pairwise(&Setting::default(), &[inputs[0].clone(), keep(&inputs[1]), keep(&inputs[2])])
    };
    let base = |name: &str, listed: &str, operand: &str| {
        op_case(
            "attention",
            name,
            &format!("empty_row=zeros, operands=[{listed}]"),
            &format!("{two}, {operand}"),
        )
        .inputs(poisoned())
        .accumulated(16)
    };
    vec![
        base("nan_key_and_value_hidden_by_a_mask", "keep_mask", "bool[4]")
            .input(bools([4], [true, true, false, true]))
            .formula(without_third),
        base("nan_key_and_value_past_the_length", "lengths", "i64[1]")
            .input(i64s([1], [2]))
            .formula(|inputs| pairwise(&Setting { lengths: Some(vec![2]), ..Setting::default() }, inputs)),
        base("nan_in_an_additive_mask_stays", "additive_mask", "f32[4]")
            .input(f32s([4], [0.0, f32::NAN, 0.0, 0.0]))
            .values([f32s([1, 1, 2, 2], [f32::NAN; 4])]),
        base("hidden_nan_of_an_additive_mask_does_not_leak", "keep_mask, additive_mask", "bool[4], f32[4]")
            .input(bools([4], [true, true, false, true]))
            .input(f32s([4], [0.0, 0.0, f32::NAN, 0.0]))
            .formula(without_third),
        op_case(
            "attention",
            "empty_row_nan",
            "empty_row=nan, operands=[keep_mask]",
            &format!("{two}, bool[2, 4]"),
        )
        .inputs(poisoned())
        .input(bools([2, 4], [true, false, false, false, false, false, false, false]))
        .values([f32s([1, 1, 2, 2], [0.5, -1.0, f32::NAN, f32::NAN])]),
        op_case(
            "attention",
            "empty_row_zeros",
            "empty_row=zeros, operands=[keep_mask]",
            "f32[1, 1, 2, 4], f32[1, 1, 2, 4], f32[1, 1, 2, 4], bool[2, 2]",
        )
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .input(f32s([1, 1, 2, 4], [1.0; 8]))
        .input(bools([2, 2], [false, false, true, true]))
        .values([f32s([1, 1, 2, 4], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])])
        .within(crate::Tolerance::Transcendental),
    ]
}

fn special_operands() -> Vec<Case> {
    let small = qkv([2, 4, 2, 3, 5, 4, 2]);
    let sinks = Setting { sinks: true, ..Setting::default() };
    let mut cases = vec![
        drawn("sinks", ", operands=[sinks]", &format!("{small}, f32[4]"), sinks, 32).random(Domain::Normal),
        drawn(
            "positions_as_an_offset",
            ", operands=[positions], causal=true",
            &format!("{small}, i32[2, 3]"),
            Setting { causal: true, offset: 2, ..Setting::default() },
            32,
        )
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .input(crate::i32s([2, 3], [2, 3, 4, 2, 3, 4])),
    ];
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case(
            "attention",
            "page_table",
            "empty_row=zeros, operands=[page_table, lengths]",
            &format!("{dtype}[2, 2, 1, 4], {dtype}[5, 1, 3, 4], {dtype}[5, 1, 3, 2], i32[2, 2], i64[2]"),
        )
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        // The second sequence has one page; the entry after it is rubbish that must not be looked at.
        .input(crate::i32s([2, 2], [4, 0, 2, -77]))
        .input(i64s([2], [5, 3]))
        .formula(|inputs| {
            let pages = [[4, 0], [2, 2]];
            let flat = |x: &Array| {
                Array::from_fn([2, 1, 6, x.dims[3]], |at| {
                    x.at(&[pages[at[0]][at[2] / 3], 0, at[2] % 3, at[3]])
                })
            };
            let setting = Setting { lengths: Some(vec![5, 3]), ..Setting::default() };
            pairwise(&setting, &[inputs[0].clone(), flat(&inputs[1]), flat(&inputs[2])])
        })
        .accumulated(32)
    }));
    cases.push(
        op_case(
            "attention",
            "page_that_does_not_exist",
            "empty_row=zeros, operands=[page_table]",
            "f32[1, 1, 1, 2], f32[2, 1, 3, 2], f32[2, 1, 3, 2], i64[1, 1]",
        )
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .random_input(Domain::Normal)
        .input(i64s([1, 1], [2]))
        .fails(Stage::Run, "gather"),
    );
    cases
}

fn wrong() -> Vec<Case> {
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case("attention", name, &format!("empty_row=zeros{attributes}"), operands).fails_build(label)
    };
    let fine = "f32[2, 4, 3, 5], f32[2, 2, 6, 5], f32[2, 2, 6, 7]";
    vec![
        wrong("integers", "", "i32[1, 1, 1, 1], i32[1, 1, 1, 1], i32[1, 1, 1, 1]", "C1"),
        wrong("mixed_types", "", "f32[1, 1, 1, 1], f32[1, 1, 1, 1], f16[1, 1, 1, 1]", "C1"),
        wrong("three_axes", "", "f32[1, 1, 1], f32[1, 1, 1], f32[1, 1, 1]", "C2"),
        wrong("widths_differ", "", "f32[1, 1, 2, 3], f32[1, 1, 2, 4], f32[1, 1, 2, 3]", "C3"),
        wrong("keys_differ", "", "f32[1, 1, 2, 3], f32[1, 1, 2, 3], f32[1, 1, 3, 3]", "C3"),
        wrong("batches_differ", "", "f32[2, 1, 2, 3], f32[1, 1, 2, 3], f32[1, 1, 2, 3]", "C3"),
        wrong("heads_do_not_divide", "", "f32[1, 3, 2, 3], f32[1, 2, 2, 3], f32[1, 2, 2, 3]", "C4"),
        wrong("no_kv_heads", "", "f32[1, 3, 2, 3], f32[1, 0, 2, 3], f32[1, 0, 2, 3]", "C4"),
        wrong("listed_twice", ", operands=[sinks, sinks]", &format!("{fine}, f32[4], f32[4]"), "C5"),
        wrong(
            "offset_and_positions",
            ", operands=[offset, positions]",
            &format!("{fine}, i64[], i64[2, 3]"),
            "C5",
        ),
        wrong("offset_of_floats", ", operands=[offset]", &format!("{fine}, f32[]"), "C6"),
        wrong("lengths_for_another_batch", ", operands=[lengths]", &format!("{fine}, i64[3]"), "C6"),
        wrong("keep_mask_of_floats", ", operands=[keep_mask]", &format!("{fine}, f32[6]"), "C7"),
        wrong("mask_that_does_not_broadcast", ", operands=[keep_mask]", &format!("{fine}, bool[5]"), "C7"),
        wrong("mask_of_five_axes", ", operands=[keep_mask]", &format!("{fine}, bool[1, 1, 1, 1, 6]"), "C7"),
        wrong("sinks_for_other_heads", ", operands=[sinks]", &format!("{fine}, f32[2]"), "C8"),
        wrong("softmax_in_integers", ", softmax_dtype=i32", fine, "C9"),
    ]
}

/// Cases of `attention`.
pub(super) fn attention() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "attention");
    cases.extend(sizes());
    cases.push(symbolic());
    cases.push(
        // 2048 and 2049 are one number in f16: rounded scores weigh both values alike.
        op_case(
            "attention",
            "softmax_of_rounded_scores",
            "empty_row=zeros, scale=1.0, softmax_dtype=f16",
            "f32[1, 1, 1, 1], f32[1, 1, 2, 1], f32[1, 1, 2, 1]",
        )
        .input(f32s([1, 1, 1, 1], [1.0]))
        .input(f32s([1, 1, 2, 1], [2048.0, 2049.0]))
        .input(f32s([1, 1, 2, 1], [0.0, 1.0]))
        .values([f32s([1, 1, 1, 1], [0.5])])
        .declared_types_only(),
    );
    cases.push(
        op_case(
            "attention",
            "heads_that_turn_out_not_to_divide",
            "empty_row=zeros",
            "f32[1, h, 1, 1], f32[1, g, 1, 1], f32[1, g, 1, 1]",
        )
        .sizes([("h", 3), ("g", 2)])
        .random(Domain::Normal)
        .fails(Stage::Run, "floor_div(h, g)"),
    );
    cases.extend(leaks());
    cases.extend(special_operands());
    cases.extend(wrong());
    cases
}

/// The gated delta rule, token by token and element by element, for as many query heads as kv heads.
fn gated_delta(inputs: &[Array]) -> Vec<Array> {
    let [q, k, v, first, decay, rate] = [0, 1, 2, 3, 4, 5].map(|i| &inputs[i]);
    let (width, value_width, tokens) = (q.dims[3], v.dims[3], q.dims[2]);
    let mut state = first.clone();
    let mut y = Array::from_fn([q.dims[0], q.dims[1], tokens, value_width], |_| 0.0);
    for batch in 0..q.dims[0] {
        for head in 0..q.dims[1] {
            for t in 0..tokens {
                for d in 0..width {
                    for e in 0..value_width {
                        let at = state.offset(&[batch, head, d, e]);
                        state.data[at] *= decay.at(&[batch, head, t, 0]).exp();
                    }
                }
                for e in 0..value_width {
                    let held: f64 =
                        (0..width).map(|d| state.at(&[batch, head, d, e]) * k.at(&[batch, head, t, d])).sum();
                    let missing = v.at(&[batch, head, t, e]) - held;
                    for d in 0..width {
                        let at = state.offset(&[batch, head, d, e]);
                        state.data[at] +=
                            rate.at(&[batch, head, t, 0]) * k.at(&[batch, head, t, d]) * missing;
                    }
                    let read: f64 =
                        (0..width).map(|d| state.at(&[batch, head, d, e]) * q.at(&[batch, head, t, d])).sum();
                    let at = y.offset(&[batch, head, t, e]);
                    y.data[at] = read / (width as f64).sqrt();
                }
            }
        }
    }
    vec![y, state]
}

/// Cases of `linear_attention`.
pub(super) fn linear_attention() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "linear_attention");
    cases.extend(golden(super::state_space::SCANS, "linear_attention"));
    cases.extend(for_dtypes(FLOATS, |dtype| {
        let operands = format!(
            "{dtype}[b, 2, n, 3], {dtype}[b, 2, n, 3], {dtype}[b, 2, n, u], {dtype}[b, 2, 3, u], \
             {dtype}[b, 2, n, 1], {dtype}[b, 2, n, 1]"
        );
        op_case("linear_attention", "gated_delta_by_element", "rule=gated_delta", &operands)
            .sizes([("b", 2), ("n", 5), ("u", 4)])
            .random(Domain::Range(-0.8, 0.4))
            .formulas(gated_delta)
            .accumulated(40)
    }));
    for tokens in [0, 1] {
        let operands = format!(
            "f32[1, 1, {tokens}, 2], f32[1, 1, {tokens}, 2], f32[1, 1, {tokens}, 3], f32[1, 1, 2, 3], f32[1, 1, {tokens}, 1], f32[1, 1, {tokens}, 1]"
        );
        cases.push(
            op_case("linear_attention", &format!("tokens_{tokens}"), "rule=gated_delta", &operands)
                .random(Domain::Range(-1.0, 1.0))
                .formulas(gated_delta)
                .accumulated(16),
        );
    }
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case("linear_attention", name, attributes, operands).fails_build(label)
    };
    let fine = "f32[1, 4, 2, 3], f32[1, 2, 2, 3], f32[1, 2, 2, 5]";
    cases.extend([
        wrong(
            "integers",
            "rule=linear",
            "i32[1, 1, 1, 1], i32[1, 1, 1, 1], i32[1, 1, 1, 1], i32[1, 1, 1, 1]",
            "C1",
        ),
        wrong("three_axes", "rule=linear", &format!("{fine}, f32[2, 3, 5]"), "C2"),
        wrong("state_of_other_sizes", "rule=linear", &format!("{fine}, f32[1, 2, 5, 3]"), "C3"),
        wrong(
            "decay_of_other_sizes",
            "rule=gated",
            &format!("{fine}, f32[1, 2, 3, 5], f32[1, 2, 2, 2]"),
            "C3",
        ),
        wrong("missing_rate", "rule=delta", &format!("{fine}, f32[1, 2, 3, 5]"), "C0"),
        wrong(
            "heads_do_not_divide",
            "rule=linear",
            "f32[1, 3, 2, 3], f32[1, 2, 2, 3], f32[1, 2, 2, 5], f32[1, 2, 3, 5]",
            "C4",
        ),
    ]);
    cases
}
