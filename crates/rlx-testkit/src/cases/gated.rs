//! Cases of gated units, low-rank additions and codebook products.

use crate::array::Array;
use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, for_sizes, op_case, u8s};
use crate::golden::golden;
use crate::random::Domain;

const GOLDEN: &str = include_str!("../../golden/sequence.case");

/// A gate's name and its function.
type Gate = (&'static str, fn(f64) -> f64);

/// Cases of `gated`.
pub(super) fn gated() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "gated");
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu_tanh =
        |x: f64| x * 0.5 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh());
    let gates: [Gate; 5] = [
        ("sigmoid", sigmoid),
        ("silu", |x| x / (1.0 + (-x).exp())),
        ("gelu_tanh", gelu_tanh),
        ("relu", |x| x.max(0.0)),
        ("identity", |x| x),
    ];
    for (name, f) in gates {
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case("gated", name, &format!("gate={name}"), &format!("{dtype}[n, 3], {dtype}[n, 3]"))
                .sizes([("n", 4)])
                .random(Domain::Range(-3.0, 3.0))
                .formula(move |inputs| inputs[0].map(f).zip(&inputs[1], |g, x| g * x))
                .accumulated(8)
        }));
    }
    cases.extend([
        // Φ(1) = 0.8413447460685429 and Φ(−2) = 0.022750131948179195, from tables of the normal distribution.
        op_case("gated", "gelu", "gate=gelu", "f64[2], f64[2]")
            .input(crate::f64s([2], [1.0, -2.0]))
            .input(crate::f64s([2], [3.0, 0.5]))
            .values([crate::f64s([2], [3.0 * 0.8413447460685429, -0.022750131948179195])])
            .accumulated(8),
        op_case("gated", "integers", "gate=relu", "i32[2], i32[2]").fails_build("C1"),
        op_case("gated", "sizes_differ", "gate=relu", "f32[2], f32[1]").fails_build("C2"),
        op_case("gated", "alpha_of_relu", "gate=relu, alpha=2.0", "f32[2], f32[2]").fails_build("C3"),
    ]);
    cases
}

/// The product of the last axis of x with a matrix \[k, n\].
fn product(x: &Array, matrix: &Array) -> Array {
    x.map_rows(x.dims.len() - 1, |row| {
        (0..matrix.dims[1])
            .map(|n| row.iter().enumerate().map(|(k, v)| v * matrix.at(&[k, n])).sum())
            .collect()
    })
}

/// Cases of `lora_matmul`.
pub(super) fn lora_matmul() -> Vec<Case> {
    let formula = |inputs: &[Array]| {
        let [x, weight, down, up] = [0, 1, 2, 3].map(|i| &inputs[i]);
        product(x, weight).zip(&product(&product(x, down), up), |base, low| base + 0.5 * low)
    };
    let mut cases = for_dtypes(FLOATS, move |dtype| {
        let operands = format!("{dtype}[b, 3, 5], {dtype}[5, n], {dtype}[5, r], {dtype}[r, n]");
        op_case("lora_matmul", "batches", "scale=0.5", &operands)
            .sizes([("b", 2), ("n", 4), ("r", 2)])
            .random(Domain::Normal)
            .formula(formula)
            .accumulated(24)
    });
    cases.extend(for_sizes(16, move |k| {
        op_case(
            "lora_matmul",
            "size",
            "scale=0.5",
            &format!("f32[3, {k}], f32[{k}, 2], f32[{k}, 3], f32[3, 2]"),
        )
        .random(Domain::Normal)
        .formula(formula)
        .accumulated(4 * k + 8)
    }));
    let wrong = |name: &str, operands: &str, label: &str| {
        op_case("lora_matmul", name, "scale=1.0", operands).fails_build(label)
    };
    cases.extend([
        wrong("integers", "i32[3], i32[3, 2], i32[3, 1], i32[1, 2]", "C1"),
        wrong("mixed_types", "f32[3], f32[3, 2], f16[3, 1], f32[1, 2]", "C1"),
        wrong("weight_of_one_axis", "f32[3], f32[3], f32[3, 1], f32[1, 2]", "C2"),
        wrong("ranks_differ", "f32[3], f32[3, 2], f32[3, 1], f32[2, 2]", "C3"),
    ]);
    cases
}

/// Cases of `codebook_matmul`.
pub(super) fn codebook_matmul() -> Vec<Case> {
    let formula = |inputs: &[Array]| {
        let [x, indices, centroids] = [0, 1, 2].map(|i| &inputs[i]);
        let (columns, groups, width) = (indices.dims[1], centroids.dims[0], centroids.dims[2]);
        let weight = Array::from_fn([columns * width, indices.dims[0]], |at| {
            let (column, e) = (at[0] / width, at[0] % width);
            let picked = indices.at(&[at[1], column]) as usize;
            centroids.at(&[column * groups / columns, picked, e])
        });
        product(x, &weight)
    };
    let mut cases = for_dtypes(FLOATS, move |dtype| {
        let operands = format!("{dtype}[b, 12], u8[n, 4], {dtype}[2, 5, 3]");
        op_case("codebook_matmul", "groups_of_columns", "", &operands)
            .sizes([("b", 3), ("n", 5)])
            .random_input(Domain::Normal)
            .random_input(Domain::Whole(0, 4))
            .random_input(Domain::Normal)
            .formula(formula)
            .accumulated(16)
    });
    cases.extend([
        op_case("codebook_matmul", "table_of_numbers", "", "f32[2, 3, 7], u8[4, 7], f32[1, 16, 1]")
            .random_input(Domain::Normal)
            .random_input(Domain::Whole(0, 15))
            .random_input(Domain::Normal)
            .formula(formula)
            .accumulated(12),
        op_case("codebook_matmul", "index_outside_is_an_error", "", "f32[2], u8[1, 2], f32[2, 3, 1]")
            .input(f32s([2], [1.0, 1.0]))
            .input(u8s([1, 2], [0, 3]))
            .input(f32s([2, 3, 1], [1.0; 6]))
            .fails(Stage::Run, "gather"),
    ]);
    let wrong = |name: &str, operands: &str, label: &str| {
        op_case("codebook_matmul", name, "", operands).fails_build(label)
    };
    cases.extend([
        wrong("indices_of_i32", "f32[2], i32[1, 2], f32[1, 3, 1]", "C1"),
        wrong("centroids_of_two_axes", "f32[2], u8[1, 2], f32[3, 1]", "C2"),
        wrong("last_size", "f32[3], u8[1, 2], f32[1, 3, 1]", "C3"),
        wrong("groups_do_not_divide", "f32[3], u8[1, 3], f32[2, 3, 1]", "C4"),
    ]);
    cases
}
