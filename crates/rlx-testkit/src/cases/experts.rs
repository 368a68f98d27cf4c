//! Cases of mixtures of experts.

use crate::array::Array;
use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, i64s, op_case};
use crate::random::Domain;

/// The scores by which experts are chosen and weighed.
#[derive(Clone, Copy, PartialEq)]
enum Score {
    Softmax,
    ChosenSoftmax,
    Sigmoid,
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let terms: Vec<f64> = row.iter().map(|x| (x - greatest).exp()).collect();
    let total: f64 = terms.iter().sum();
    terms.iter().map(|t| t / total).collect()
}

/// Weights and experts, token by token.
fn routed(score: Score, k: usize, renormalise: bool, scale: f64, inputs: &[Array]) -> Vec<Array> {
    let logits = &inputs[0];
    let (tokens, experts) = (logits.dims[0], logits.dims[1]);
    let (mut weights, mut chosen) = (Vec::new(), Vec::new());
    for row in logits.data.chunks(experts) {
        let scores = match score {
            Score::Softmax => softmax(row),
            Score::ChosenSoftmax => row.to_vec(),
            Score::Sigmoid => row.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
        };
        let ranked = |e: usize| scores[e] + inputs.get(1).map_or(0.0, |bias| bias.data[e]);
        let mut order: Vec<usize> = (0..experts).collect();
        order.sort_by(|a, b| ranked(*b).total_cmp(&ranked(*a)));
        let mut own: Vec<f64> = order[..k].iter().map(|e| scores[*e]).collect();
        if score == Score::ChosenSoftmax {
            own = softmax(&own);
        }
        let total: f64 = if renormalise { own.iter().sum() } else { 1.0 };
        weights.extend(own.iter().map(|w| w / total * scale));
        chosen.extend(order[..k].iter().map(|e| *e as f64));
    }
    vec![Array::new([tokens, k], weights), Array::new([tokens, k], chosen)]
}

/// Cases of `routing`.
pub(super) fn routing() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, score) in
        [("softmax", Score::Softmax), ("chosen_softmax", Score::ChosenSoftmax), ("sigmoid", Score::Sigmoid)]
    {
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case("routing", name, &format!("k=2, score={name}"), &format!("{dtype}[t, 5]"))
                .sizes([("t", 6)])
                .random(Domain::Permutation)
                .formulas(move |inputs| routed(score, 2, false, 1.0, inputs))
                .accumulated(16)
        }));
    }
    cases.extend([
        op_case(
            "routing",
            "renormalised_scaled_with_bias",
            "k=3, score=sigmoid, renormalise=true, scale=2.5, bias=true",
            "f32[4, 6], f32[6]",
        )
        .random(Domain::Normal)
        .formulas(|inputs| routed(Score::Sigmoid, 3, true, 2.5, inputs))
        .accumulated(16),
        op_case("routing", "equal_scores_take_the_first", "k=2, score=softmax", "f32[1, 4]")
            .input(f32s([1, 4], [0.0; 4]))
            .values([f32s([1, 2], [0.25, 0.25]), i64s([1, 2], [0, 1])]),
        op_case("routing", "no_tokens", "k=2, score=softmax", "f32[0, 4]")
            .random(Domain::Normal)
            .values([f32s([0, 2], []), i64s([0, 2], [])]),
        op_case("routing", "integers", "k=1, score=softmax", "i32[1, 4]").fails_build("C1"),
        op_case("routing", "one_axis", "k=1, score=softmax", "f32[4]").fails_build("C2"),
        op_case("routing", "more_than_there_are", "k=5, score=softmax", "f32[1, 4]").fails_build("C3"),
        op_case("routing", "bias_of_another_size", "k=1, score=softmax, bias=true", "f32[1, 4], f32[1]")
            .fails_build("C4"),
    ]);
    cases
}

/// Token by token and choice by choice; `capacity` limits how many pairs an expert takes.
fn mixture(gated: bool, capacity: usize, inputs: &[Array]) -> Array {
    let [x, weights, chosen, up, down] = [0, 1, 2, 3, 4].map(|i| &inputs[i]);
    let (tokens, width, inner, width_out) = (x.dims[0], x.dims[1], up.dims[2], down.dims[2]);
    let mut taken = vec![0; up.dims[0]];
    let mut y = Array::new([tokens, width_out], vec![0.0; tokens * width_out]);
    for t in 0..tokens {
        for j in 0..chosen.dims[1] {
            let e = chosen.at(&[t, j]) as usize;
            taken[e] += 1;
            if taken[e] > capacity {
                continue;
            }
            let through = |matrix: &Array, i: usize| -> f64 {
                (0..width).map(|d| x.at(&[t, d]) * matrix.at(&[e, d, i])).sum()
            };
            let hidden: Vec<f64> = (0..inner)
                .map(|i| match gated {
                    true => {
                        let gate = through(&inputs[5], i);
                        gate / (1.0 + (-gate).exp()) * through(up, i)
                    }
                    false => through(up, i).max(0.0),
                })
                .collect();
            for o in 0..width_out {
                let out: f64 = hidden.iter().enumerate().map(|(i, h)| h * down.at(&[e, i, o])).sum();
                y.data[t * width_out + o] += weights.at(&[t, j]) * out;
            }
        }
    }
    y
}

/// Cases of `mixture_of_experts`.
pub(super) fn mixture_of_experts() -> Vec<Case> {
    let op = "mixture_of_experts";
    let mut cases = for_dtypes(FLOATS, |dtype| {
        let operands = format!(
            "{dtype}[t, 3], {dtype}[t, 2], i64[t, 2], {dtype}[4, 3, 5], {dtype}[4, 5, 2], {dtype}[4, 3, 5]"
        );
        op_case(op, "gated", "activation=silu, gated=true", &operands)
            .sizes([("t", 6)])
            .random_input(Domain::Normal)
            .random_input(Domain::Range(0.0, 1.0))
            .random_input(Domain::Whole(0, 3))
            .random(Domain::Normal)
            .formula(|inputs| mixture(true, usize::MAX, inputs))
            .accumulated(40)
    });
    let plain = "f32[7, 3], f32[7, 2], i32[7, 2], f32[3, 3, 4], f32[3, 4, 3]";
    for capacity in [0, 1, 3, 20] {
        cases.push(
            op_case(
                op,
                &format!("capacity_{capacity}"),
                &format!("activation=relu, capacity={capacity}"),
                plain,
            )
            .random_input(Domain::Normal)
            .random_input(Domain::Range(0.0, 1.0))
            .random_input(Domain::Whole(0, 2))
            .random(Domain::Normal)
            .formula(move |inputs| mixture(false, capacity, inputs))
            .accumulated(40),
        );
    }
    let one = |name: &str, attributes: &str| {
        op_case(op, name, attributes, "f32[2, 1], f32[2, 1], i64[2, 1], f32[2, 1, 1], f32[2, 1, 1]")
            .input(f32s([2, 1], [f32::NAN, 2.0]))
            .input(f32s([2, 1], [1.0, 0.5]))
            .input(i64s([2, 1], [0, 1]))
            .input(f32s([2, 1, 1], [f32::INFINITY, 3.0]))
            .input(f32s([2, 1, 1], [1.0, 1.0]))
            .values([f32s([2, 1], [f32::NAN, 3.0])])
    };
    cases.extend([
        one("nan_of_another_expert_does_not_leak", "activation=identity"),
        one("nan_of_another_expert_does_not_leak_when_dispatched", "activation=identity, capacity=1"),
        op_case(
            op,
            "no_tokens",
            "activation=relu",
            "f32[0, 3], f32[0, 2], i64[0, 2], f32[3, 3, 4], f32[3, 4, 5]",
        )
        .random(Domain::Normal)
        .values([f32s([0, 5], [])]),
        op_case(
            op,
            "expert_outside_is_an_error",
            "activation=relu, capacity=2",
            "f32[1, 1], f32[1, 1], i64[1, 1], f32[2, 1, 1], f32[2, 1, 1]",
        )
        .input(f32s([1, 1], [1.0]))
        .input(f32s([1, 1], [1.0]))
        .input(i64s([1, 1], [2]))
        .input(f32s([2, 1, 1], [1.0, 1.0]))
        .input(f32s([2, 1, 1], [1.0, 1.0]))
        .fails(Stage::Run, "gather"),
    ]);
    let wrong = |name: &str, operands: &str, label: &str| {
        op_case(op, name, "activation=relu", operands).fails_build(label)
    };
    cases.extend([
        wrong("integers", "i32[2, 1], f32[2, 1], i64[2, 1], i32[2, 1, 1], i32[2, 1, 1]", "C1"),
        wrong("experts_as_floats", "f32[2, 1], f32[2, 1], f32[2, 1], f32[2, 1, 1], f32[2, 1, 1]", "C1"),
        wrong("three_axes", "f32[1, 2, 1], f32[2, 1], i64[2, 1], f32[2, 1, 1], f32[2, 1, 1]", "C2"),
        wrong("inner_sizes_differ", "f32[2, 1], f32[2, 1], i64[2, 1], f32[2, 1, 3], f32[2, 2, 1]", "C3"),
        wrong("no_gate", "f32[2, 1], f32[2, 1], i64[2, 1], f32[2, 1, 3]", "C0"),
    ]);
    cases
}
