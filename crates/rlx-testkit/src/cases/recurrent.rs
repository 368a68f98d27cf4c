//! Cases of recurrent layers: onnxruntime, and what a layer with simple weights must give.

use crate::array::Array;
use crate::case::{Case, FLOATS, f32s, for_dtypes, i64s, op_case};
use crate::golden::golden;
use crate::random::Domain;

const GOLDEN: &str = include_str!("../../golden/recurrent.case");

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A layer forward without bias, number by number, hidden state by hidden state. `unit` gives the next hidden number from
/// the sums of the input's and of the hidden state's products, block of rows by block, and the hidden and cell numbers;
/// it may change the latter.
fn forward(
    inputs: &[Array],
    has_cell: bool,
    unit: impl Fn(&dyn Fn(usize) -> (f64, f64), f64, &mut f64) -> f64,
) -> Vec<Array> {
    let [x, w, r] = [&inputs[0], &inputs[1], &inputs[2]];
    let (steps, batch, width, hidden) = (x.dims[0], x.dims[1], x.dims[2], r.dims[2]);
    let zeros = || Array::new([1, batch, hidden], vec![0.0; batch * hidden]);
    let (mut h, mut c) = (zeros(), zeros());
    let mut y = Array::new([steps, 1, batch, hidden], vec![0.0; steps * batch * hidden]);
    for t in 0..steps {
        let before = h.clone();
        for n in 0..batch {
            for u in 0..hidden {
                let sums = |block: usize| {
                    let row = block * hidden + u;
                    let given: f64 = (0..width).map(|i| x.at(&[t, n, i]) * w.at(&[0, row, i])).sum();
                    let kept: f64 = (0..hidden).map(|i| before.at(&[0, n, i]) * r.at(&[0, row, i])).sum();
                    (given, kept)
                };
                let at = n * hidden + u;
                h.data[at] = unit(&sums, before.data[at], &mut c.data[at]);
                y.data[t * batch * hidden + at] = h.data[at];
            }
        }
    }
    if has_cell { vec![y, h, c] } else { vec![y, h] }
}

/// The gates are i, o, f, g.
fn lstm_forward(inputs: &[Array]) -> Vec<Array> {
    forward(inputs, true, |sums, _, cell| {
        let gate = |block: usize| sums(block).0 + sums(block).1;
        *cell = sigmoid(gate(2)) * *cell + sigmoid(gate(0)) * gate(3).tanh();
        sigmoid(gate(1)) * cell.tanh()
    })
}

/// The gates are z, r, and the candidate, whose recurrent part the reset gate multiplies.
fn gru_forward(inputs: &[Array]) -> Vec<Array> {
    forward(inputs, false, |sums, hidden, _| {
        let gate = |block: usize| sigmoid(sums(block).0 + sums(block).1);
        let (given, kept) = sums(2);
        let update = gate(0);
        (1.0 - update) * (given + gate(1) * kept).tanh() + update * hidden
    })
}

fn rnn_forward(inputs: &[Array]) -> Vec<Array> {
    forward(inputs, false, |sums, _, _| (sums(0).0 + sums(0).1).tanh())
}

/// A layer in every float type, judged by its formula.
fn every_float(
    op: &'static str,
    attributes: &'static str,
    blocks: usize,
    formula: impl Fn(&[Array]) -> Vec<Array> + Copy + Send + Sync + 'static,
) -> Vec<Case> {
    for_dtypes(FLOATS, move |dtype| {
        let rows = blocks * 2;
        let operands = format!("{dtype}[n, b, 3], {dtype}[1, {rows}, 3], {dtype}[1, {rows}, 2]");
        op_case(op, "number_by_number", attributes, &operands)
            .sizes([("n", 4), ("b", 2)])
            .random(Domain::Normal)
            .formulas(formula)
            .accumulated(64)
    })
}

/// What all three layers refuse; `rows` is how many blocks of rows the weights have.
fn refused(op: &str, rows: usize) -> Vec<Case> {
    let weights = format!("f32[1, {}, 3], f32[1, {}, 2]", rows * 2, rows * 2);
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case(op, name, &format!("direction=forward{attributes}"), operands).fails_build(label)
    };
    let mut cases = vec![
        wrong("integers", "", &format!("i32[4, 1, 3], {weights}").replace("f32", "i32"), "C1"),
        wrong("mixed_types", "", &format!("f16[4, 1, 3], {weights}"), "C1"),
        wrong("two_axes", "", &format!("f32[4, 3], {weights}"), "C2"),
        wrong("inputs_differ", "", &format!("f32[4, 1, 2], {weights}"), "C3"),
        wrong(
            "bias_of_one_set",
            ", operands=[bias]",
            &format!("f32[4, 1, 3], {weights}, f32[1, {}]", rows * 2),
            "C3",
        ),
        wrong(
            "listed_twice",
            ", operands=[lengths, lengths]",
            &format!("f32[4, 1, 3], {weights}, i64[1], i64[1]"),
            "C4",
        ),
        wrong(
            "too_few_activations",
            ", activations=[(tanh, (0.0, 0.0)), (tanh, (0.0, 0.0)), (tanh, (0.0, 0.0)), (tanh, (0.0, 0.0))]",
            &format!("f32[4, 1, 3], {weights}"),
            "C5",
        ),
        wrong("lengths_of_floats", ", operands=[lengths]", &format!("f32[4, 1, 3], {weights}, f32[1]"), "C6"),
    ];
    if op != "lstm" {
        let operands = format!("f32[4, 1, 3], {weights}, f32[1, 1, 2]");
        cases.push(wrong("cell_of_a_layer_without", ", operands=[initial_cell]", &operands, "C4"));
    }
    cases
}

/// Cases of `rnn`.
pub(super) fn rnn() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "rnn");
    cases.extend(every_float("rnn", "direction=forward", 1, rnn_forward));
    cases.extend([
        // Sums of what has come so far, over the valid steps only, in both directions; NaN beyond a length is not read.
        op_case(
            "rnn",
            "running_sums_with_lengths",
            "direction=bidirectional, operands=[lengths], activations=[(affine, (1.0, 0.0)), (affine, (1.0, 0.0))]",
            "f32[n, b, 1], f32[2, 1, 1], f32[2, 1, 1], i64[b]",
        )
        .input(f32s([3, 3, 1], [1.0, 2.0, f32::NAN, 10.0, 20.0, f32::NAN, 100.0, f32::NAN, f32::NAN]))
        .input(f32s([2, 1, 1], [1.0, 1.0]))
        .input(f32s([2, 1, 1], [1.0, 1.0]))
        .input(i64s([3], [3, 2, 0]))
        .values([
            f32s(
                [3, 2, 3, 1],
                [1.0, 2.0, 0.0, 111.0, 22.0, 0.0, 11.0, 22.0, 0.0, 110.0, 20.0, 0.0, 111.0, 0.0, 0.0, 100.0, 0.0, 0.0],
            ),
            f32s([2, 3, 1], [111.0, 22.0, 0.0, 111.0, 22.0, 0.0]),
        ]),
        op_case("rnn", "no_steps", "direction=forward, operands=[initial_hidden]", "f32[0, 2, 3], f32[1, 4, 3], f32[1, 4, 4], f32[1, 2, 4]")
            .random(Domain::Normal)
            .formulas(|inputs| vec![Array::new([0, 1, 2, 4], []), inputs[3].clone()]),
    ]);
    cases.extend(refused("rnn", 1));
    cases
}

/// Cases of `gru`.
pub(super) fn gru() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "gru");
    cases.extend(every_float("gru", "direction=forward, linear_before_reset=true", 3, gru_forward));
    cases.extend(refused("gru", 3));
    cases
}

/// Cases of `lstm`.
pub(super) fn lstm() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "lstm");
    cases.extend(every_float("lstm", "direction=forward", 4, lstm_forward));
    cases.push(
        op_case(
            "lstm",
            "every_size_symbolic",
            "direction=forward",
            "f32[n, b, i], f32[1, 4*h, i], f32[1, 4*h, h]",
        )
        .sizes([("n", 3), ("b", 2), ("i", 1), ("h", 3)])
        .random(Domain::Normal)
        .formulas(lstm_forward)
        .accumulated(64),
    );
    cases.extend(refused("lstm", 4));
    cases
}
