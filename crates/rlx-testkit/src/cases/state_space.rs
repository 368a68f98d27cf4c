//! Cases of state-space scans and of the causal convolution: formulas number by number, and ONNX's reference for the
//! convolution.

use crate::array::Array;
use crate::case::{Case, FLOATS, for_dtypes, op_case};
use crate::golden::golden;
use crate::random::Domain;
use crate::tolerance::Tolerance;

const GOLDEN: &str = include_str!("../../golden/sequence.case");

/// Recurrences written in PyTorch token by token; recorded by `references/cases/pytorch.py`.
pub(super) const SCANS: &str = include_str!("../../golden/pytorch/scan.case");

/// Cases of `causal_conv`.
pub(super) fn causal_conv() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "causal_conv");
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case("causal_conv", name, attributes, operands).fails_build(label)
    };
    cases.extend([
        // Two halves with the state between them give what the whole gives.
        crate::case(
            "causal_conv",
            "state_carries_on",
            "(%x: f32[b, c, 8], %w: f32[c, 1, k + 1], %s: f32[b, c, k]) {
  %a = slice<starts=[0, 0, 0], sizes=[b, c, 4], steps=[1, 1, 1]>(%x)
  %z = slice<starts=[0, 0, 4], sizes=[b, c, 4], steps=[1, 1, 1]>(%x)
  %all = causal_conv(%x, %w, %s)
  %first = causal_conv(%a, %w, %s)
  %second = causal_conv(%z, %w, %first.1)
  %joined = concat<axis=2>(%first.0, %second.0)
  %y = sub(%joined, %all.0)
  %state = sub(%second.1, %all.1)
  return \"y\" = %y, \"state\" = %state
}",
        )
        .sizes([("b", 2), ("c", 3), ("k", 2)])
        .random(Domain::Normal)
        .formulas(|inputs| {
            let zeros = |x: &Array| x.map(|_| 0.0);
            vec![zeros(&inputs[0]), zeros(&inputs[2])]
        })
        .within(Tolerance::Within { absolute: 1e-5, relative: 0.0 }),
        wrong("integers", "", "i32[1, 1, 1], i32[1, 1, 1], i32[1, 1, 0]", "C1"),
        wrong("two_axes", "", "f32[1, 1], f32[1, 1, 1], f32[1, 1, 0]", "C2"),
        wrong("state_too_long", "", "f32[1, 1, 4], f32[1, 1, 3], f32[1, 1, 3]", "C3"),
        wrong("full_convolution_weights", "", "f32[1, 2, 4], f32[2, 2, 3], f32[1, 2, 2]", "C3"),
        wrong("no_taps", "", "f32[1, 1, 4], f32[1, 1, 0], f32[1, 1, 0]", "C3"),
    ]);
    cases
}

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The selective scan, number by number. Operands after the state: skip, step bias, gate.
fn selective(softplus_steps: bool, inputs: &[Array]) -> Vec<Array> {
    let [x, steps, a, into, out, first] = [0, 1, 2, 3, 4, 5].map(|i| &inputs[i]);
    let mut state = first.clone();
    let mut y = x.map(|_| 0.0);
    for batch in 0..x.dims[0] {
        for t in 0..x.dims[1] {
            for c in 0..x.dims[2] {
                let here = [batch, t, c];
                let mut step = steps.at(&here) + inputs.get(7).map_or(0.0, |bias| bias.data[c]);
                if softplus_steps {
                    step = softplus(step);
                }
                let mut read = inputs.get(6).map_or(0.0, |skip| skip.data[c] * x.at(&here));
                for n in 0..a.dims[1] {
                    let at = state.offset(&[batch, c, n]);
                    state.data[at] = state.data[at] * (step * a.at(&[c, n])).exp()
                        + step * x.at(&here) * into.at(&[batch, t, n]);
                    read += state.data[at] * out.at(&[batch, t, n]);
                }
                let at = y.offset(&here);
                y.data[at] = read * inputs.get(8).map_or(1.0, |gate| silu(gate.at(&here)));
            }
        }
    }
    vec![y, state]
}

/// Cases of `selective_scan`.
pub(super) fn selective_scan() -> Vec<Case> {
    let op = "selective_scan";
    let mut cases = for_dtypes(FLOATS, |dtype| {
        let operands = format!(
            "{dtype}[b, n, 3], {dtype}[b, n, 3], {dtype}[3, 4], {dtype}[b, n, 4], {dtype}[b, n, 4], {dtype}[b, 3, 4]"
        );
        op_case(op, "plain", "", &operands)
            .sizes([("b", 2), ("n", 5)])
            .random_input(Domain::Normal)
            .random_input(Domain::Range(0.1, 1.0))
            .random_input(Domain::Range(-1.0, 0.0))
            .random(Domain::Normal)
            .formulas(|inputs| selective(false, inputs))
            .accumulated(40)
    });
    let everything = "f16[b, n, c], f16[b, n, c], f32[c, m], f16[b, n, m], f16[b, n, m], f32[b, c, m], f32[c], f32[c], f16[b, n, c]";
    let attributes = "operands=[skip, step_bias, gate], softplus=true";
    cases.extend([
        op_case(op, "everything_in_mixed_types", attributes, everything)
            .sizes([("b", 2), ("n", 4), ("c", 3), ("m", 2)])
            .random_input(Domain::Normal)
            .random_input(Domain::Range(-1.0, 1.0))
            .random_input(Domain::Range(-1.0, 0.0))
            .random(Domain::Normal)
            .formulas(|inputs| selective(true, inputs))
            .accumulated(40),
        op_case(
            op,
            "no_tokens",
            "",
            "f32[1, 0, 2], f32[1, 0, 2], f32[2, 3], f32[1, 0, 3], f32[1, 0, 3], f32[1, 2, 3]",
        )
        .random(Domain::Normal)
        .formulas(|inputs| selective(false, inputs)),
    ]);
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case(op, name, attributes, operands).fails_build(label)
    };
    let fine = "f32[1, 2, 3], f32[1, 2, 3], f32[3, 4], f32[1, 2, 4], f32[1, 2, 4], f32[1, 3, 4]";
    cases.extend([
        wrong("integers", "", &fine.replace("f32", "i32"), "C1"),
        wrong("four_axes", "", &fine.replacen("f32[1, 2, 3]", "f32[1, 2, 3, 1]", 1), "C2"),
        wrong("state_of_other_sizes", "", &fine.replace("f32[1, 3, 4]", "f32[1, 4, 3]"), "C3"),
        wrong("skip_of_other_sizes", "operands=[skip]", &format!("{fine}, f32[4]"), "C3"),
        wrong("listed_twice", "operands=[skip, skip]", &format!("{fine}, f32[3], f32[3]"), "C4"),
    ]);
    cases.extend(golden(SCANS, "selective_scan"));
    cases
}

/// The headwise scan, number by number. Operands after the state: skip, step bias, gate.
fn headwise(softplus_steps: bool, inputs: &[Array]) -> Vec<Array> {
    let [x, steps, a, into, out, first] = [0, 1, 2, 3, 4, 5].map(|i| &inputs[i]);
    let heads_of_group = x.dims[2] / into.dims[2];
    let mut state = first.clone();
    let mut y = x.map(|_| 0.0);
    for batch in 0..x.dims[0] {
        for t in 0..x.dims[1] {
            for h in 0..x.dims[2] {
                let mut step = steps.at(&[batch, t, h]) + inputs.get(7).map_or(0.0, |bias| bias.data[h]);
                if softplus_steps {
                    step = softplus(step);
                }
                for p in 0..x.dims[3] {
                    let here = [batch, t, h, p];
                    let mut read = inputs.get(6).map_or(0.0, |skip| skip.data[h] * x.at(&here));
                    for n in 0..into.dims[3] {
                        let shared = [batch, t, h / heads_of_group, n];
                        let at = state.offset(&[batch, h, p, n]);
                        state.data[at] =
                            state.data[at] * (step * a.data[h]).exp() + step * x.at(&here) * into.at(&shared);
                        read += state.data[at] * out.at(&shared);
                    }
                    let at = y.offset(&here);
                    y.data[at] = read * inputs.get(8).map_or(1.0, |gate| silu(gate.at(&here)));
                }
            }
        }
    }
    vec![y, state]
}

/// Cases of `headwise_scan`.
pub(super) fn headwise_scan() -> Vec<Case> {
    let op = "headwise_scan";
    let mut cases = for_dtypes(FLOATS, |dtype| {
        let operands = format!(
            "{dtype}[b, n, 4, p], {dtype}[b, n, 4], {dtype}[4], {dtype}[b, n, 2, 3], {dtype}[b, n, 2, 3], \
             {dtype}[b, 4, p, 3]"
        );
        op_case(op, "two_groups", "", &operands)
            .sizes([("b", 2), ("n", 5), ("p", 2)])
            .random_input(Domain::Normal)
            .random_input(Domain::Range(0.1, 1.0))
            .random_input(Domain::Range(-1.0, 0.0))
            .random(Domain::Normal)
            .formulas(|inputs| headwise(false, inputs))
            .accumulated(40)
    });
    let everything = "f32[2, 3, 4, 2], f32[2, 3, 4], f32[4], f32[2, 3, 1, 3], f32[2, 3, 1, 3], f32[2, 4, 2, 3], \
                      f32[4], f32[4], f32[2, 3, 4, 2]";
    let attributes = "operands=[skip, step_bias, gate], softplus=true";
    cases.push(
        op_case(op, "everything", attributes, everything)
            .random_input(Domain::Normal)
            .random_input(Domain::Range(-1.0, 1.0))
            .random_input(Domain::Range(-1.0, 0.0))
            .random(Domain::Normal)
            .formulas(|inputs| headwise(true, inputs))
            .accumulated(40),
    );
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case(op, name, attributes, operands).fails_build(label)
    };
    let fine = "f32[1, 2, 4, 5], f32[1, 2, 4], f32[4], f32[1, 2, 2, 3], f32[1, 2, 2, 3], f32[1, 4, 5, 3]";
    cases.extend([
        wrong("integers", "", &fine.replace("f32", "i32"), "C1"),
        wrong("three_axes", "", &fine.replacen("f32[1, 2, 4, 5]", "f32[1, 2, 4]", 1), "C2"),
        wrong("state_of_other_sizes", "", &fine.replace("f32[1, 4, 5, 3]", "f32[1, 4, 3, 5]"), "C3"),
        wrong(
            "listed_twice",
            "operands=[gate, gate]",
            &format!("{fine}, f32[1, 2, 4, 5], f32[1, 2, 4, 5]"),
            "C4",
        ),
        wrong("groups_do_not_divide", "", &fine.replace("f32[1, 2, 2, 3]", "f32[1, 2, 3, 3]"), "C5"),
    ]);
    cases.extend(golden(SCANS, "headwise_scan"));
    cases
}
