//! Cases of the activations. Formulas are the textbook ones, in f64.

use crate::array::Array;
use crate::case::{Case, FLOATS, INTEGERS, Stage, f32s, for_dtypes, literal, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_eval::numeric::special::{log_sigmoid, normal_cdf, sigmoid, softplus};
use rlx_ir::DType;

/// What onnxruntime gives; recorded by `references/cases/onnx_composites.py`.
const RECORDED: &str = include_str!("../../golden/activation.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
pub(super) const PYTORCH: &str = include_str!("../../golden/pytorch/activation.case");

/// The float types whose results one rounding of an f64 formula judges.
const UP_TO_F32: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// A function of one tensor: drawn inputs of every type over `low … high`, special values, no elements, and a wrong
/// element type.
fn elementwise(
    op: &str,
    attributes: &str,
    (low, high): (f64, f64),
    f: impl Fn(f64) -> f64 + Send + Sync + Clone + 'static,
) -> Vec<Case> {
    let tag = attributes.replace(['=', ',', ' ', '.', '-'], "_");
    let named = |name: &str| if tag.is_empty() { name.to_string() } else { format!("{name}_{tag}") };
    let made = |name: &str, dtype: DType, domain: Domain| {
        let f = f.clone();
        op_case(op, &named(name), attributes, &format!("{dtype}[n, 3]"))
            .sizes([("n", 31)])
            .random(domain)
            .formula(move |x| x[0].map(&f))
            .transcendental()
    };
    let mut cases = for_dtypes(UP_TO_F32, |dtype| made("range", dtype, Domain::Range(low, high)));
    cases.extend(for_dtypes(FLOATS, |dtype| made("near_zero", dtype, Domain::Range(-0.5, 0.5))));
    cases.push(made("tiny", DType::F32, Domain::AwayFromZero(1e-8, 1e-6)));
    cases.push(made("special", DType::F32, Domain::Normal.special()));
    let f = f.clone();
    cases.push(
        op_case(op, &named("empty"), attributes, "f32[0]")
            .random(Domain::Normal)
            .formula(move |x| x[0].map(&f)),
    );
    cases.push(op_case(op, &named("text"), attributes, "bool[3]").fails_build("C1"));
    cases
}

/// x/2 · (1 + tanh u) in the form that keeps its digits.
fn gelu_tanh(x: f64) -> f64 {
    x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x))
}

/// x − tanh x = (x·cosh x − sinh x) / cosh x, near 0 by the series Σ 2k·x²ᵏ⁺¹ / (2k + 1)! of the numerator, whose terms do not
/// cancel.
fn tanh_shrink(x: f64) -> f64 {
    if x.abs() > 2.0 || x.is_nan() {
        return x - x.tanh();
    }
    let (mut sum, mut term) = (0.0, x);
    for k in 1..16 {
        let k = f64::from(k);
        term *= x * x / (2.0 * k * (2.0 * k + 1.0));
        sum += 2.0 * k * term;
    }
    sum / x.cosh()
}

/// max(x, 0) that lets NaN through.
fn relu(x: f64) -> f64 {
    clamp(x, 0.0, f64::INFINITY)
}

fn clamp(x: f64, low: f64, high: f64) -> f64 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        // −0 is no more than +0.
        x + 0.0
    }
}

/// Cases of the activations without parameters.
pub(super) fn activation() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(elementwise("relu", "", (-4.0, 4.0), relu));
    cases.extend(for_dtypes(INTEGERS, |dtype| {
        op_case("relu", "integers", "", &format!("{dtype}[20]"))
            .random(Domain::Whole(-50, 50))
            .formula(|x| x[0].map(|x| x.max(0.0)))
    }));
    cases.extend(elementwise("relu6", "", (-4.0, 10.0), |x| clamp(x, 0.0, 6.0)));
    cases.extend(elementwise("squared_relu", "", (-4.0, 10.0), |x| relu(x) * relu(x)));
    cases.extend(elementwise("gelu", "", (-13.0, 13.0), |x| x * normal_cdf(x)));
    cases.extend(elementwise("gelu_tanh", "", (-9.9, 16.0), gelu_tanh));
    cases.extend(elementwise("mish", "", (-80.0, 40.0), |x| x * softplus(x).tanh()));
    cases.extend(elementwise("softsign", "", (-80.0, 80.0), |x| x / (1.0 + x.abs())));
    cases.extend(elementwise("hard_swish", "", (-5.0, 5.0), |x| x * clamp(x + 3.0, 0.0, 6.0) / 6.0));
    cases.extend(elementwise("log_sigmoid", "", (-80.0, 80.0), log_sigmoid));
    cases.extend(elementwise("tanh_shrink", "", (-12.0, 12.0), tanh_shrink));
    cases.extend(elementwise("reciprocal", "", (-12.0, 12.0), |x| 1.0 / x));
    for op in ["relu", "gelu", "gelu_tanh", "mish", "softsign", "hard_swish"] {
        cases.extend(golden(RECORDED, op));
        cases.extend(golden(PYTORCH, op));
    }
    for op in ["relu6", "log_sigmoid", "tanh_shrink"] {
        cases.extend(golden(PYTORCH, op));
    }
    // Where 1 + tanh rounds to 2 the result must be x itself.
    let wide: Vec<f64> = (0..11).map(|i| 10.5 + 0.5 * f64::from(i)).collect();
    let x = literal(DType::BF16, [11], wide);
    cases.push(op_case("gelu_tanh", "large_bf16_gives_x", "", "bf16[11]").input(x.clone()).values([x]));
    cases
}

/// Cases of the activations with parameters and one operand.
pub(super) fn parametric() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(elementwise(
        "leaky_relu",
        "alpha=0.25",
        (-4.0, 4.0),
        |x| if x >= 0.0 { x } else { 0.25 * x },
    ));
    cases.extend(elementwise(
        "elu",
        "alpha=1.5",
        (-20.0, 4.0),
        |x| if x > 0.0 { x } else { 1.5 * x.exp_m1() },
    ));
    cases.extend(elementwise("celu", "alpha=0.5", (-20.0, 4.0), |x| {
        if x > 0.0 { x } else { 0.5 * (x / 0.5).exp_m1() }
    }));
    cases.push(op_case("celu", "zero_alpha", "alpha=0.0", "f32[2]").fails_build("C2"));
    cases.extend(elementwise("selu", "alpha=1.67, gamma=1.05", (-20.0, 4.0), |x| {
        1.05 * if x > 0.0 { x } else { 1.67 * x.exp_m1() }
    }));
    cases.extend(elementwise("swish", "alpha=1.0", (-80.0, 20.0), |x| x * sigmoid(x)));
    cases.extend(elementwise("swish", "alpha=1.702", (-50.0, 20.0), |x| x * sigmoid(1.702 * x)));
    cases.extend(elementwise("softplus", "beta=1.0", (-80.0, 80.0), softplus));
    cases.extend(elementwise("softplus", "beta=2.0, threshold=20.0", (-30.0, 30.0), |x| {
        if 2.0 * x > 20.0 { x } else { softplus(2.0 * x) / 2.0 }
    }));
    cases.push(op_case("softplus", "zero_beta", "beta=0.0", "f32[2]").fails_build("C2"));
    cases.push(
        op_case("softplus", "large_f16_stays_finite", "beta=1.0", "f16[2]")
            .input(literal(DType::F16, [2], [12.0, 60000.0]))
            .values([literal(DType::F16, [2], [12.0, 60000.0])]),
    );
    cases.extend(elementwise("hard_sigmoid", "alpha=0.25, beta=0.5", (-4.0, 4.0), |x| {
        clamp(0.25 * x + 0.5, 0.0, 1.0)
    }));
    cases.extend(elementwise("hard_tanh", "low=-2.0, high=0.5", (-4.0, 4.0), |x| clamp(x, -2.0, 0.5)));
    let shrink = |lambda: f64, bias: f64| {
        move |x: f64| {
            if x.abs() <= lambda {
                0.0
            } else if x > 0.0 {
                x - bias
            } else {
                x + bias
            }
        }
    };
    cases.extend(elementwise("shrink", "lambda=0.5, bias=0.0", (-4.0, 4.0), shrink(0.5, 0.0)));
    cases.extend(elementwise("shrink", "lambda=1.5, bias=1.5", (-4.0, 4.0), shrink(1.5, 1.5)));
    cases.push(op_case("shrink", "negative_lambda", "lambda=-1.0, bias=0.0", "f32[2]").fails_build("C2"));
    cases.extend(elementwise("threshold", "threshold=0.25, value=0.0", (-4.0, 4.0), |x| {
        if x <= 0.25 { 0.0 } else { x }
    }));
    let logit =
        |x: f64| if (x - 0.5).abs() < 0.3 { 2.0 * (2.0 * x - 1.0).atanh() } else { x.ln() - (-x).ln_1p() };
    cases.extend(elementwise("logit", "", (0.0, 1.0), logit));
    cases.extend(elementwise("logit", "eps=0.0625", (-0.5, 1.5), move |x| logit(clamp(x, 0.0625, 0.9375))));
    cases.push(op_case("logit", "eps_above_half", "eps=0.75", "f32[2]").fails_build("C2"));
    for op in ["leaky_relu", "elu", "celu", "selu", "softplus", "hard_sigmoid", "shrink", "threshold"] {
        cases.extend(golden(RECORDED, op));
        cases.extend(golden(PYTORCH, op));
    }
    for op in ["swish", "hard_tanh", "logit"] {
        cases.extend(golden(PYTORCH, op));
    }
    cases
}

/// Cases of `prelu`.
pub(super) fn prelu() -> Vec<Case> {
    let formula = |x: &[Array]| {
        let slope = x[1].broadcast(x[0].dims.clone());
        x[0].zip(&slope, |x, s| if x >= 0.0 { x } else { x * s })
    };
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("prelu", "by_channel", "", &format!("{dtype}[n, c, 5], {dtype}[c, 1]"))
            .sizes([("n", 2), ("c", 3)])
            .random(Domain::Normal)
            .formula(formula)
    });
    cases.push(
        op_case("prelu", "one_slope", "", "f32[n], f32[1]")
            .sizes([("n", 0)])
            .random(Domain::Normal)
            .formula(formula),
    );
    cases.extend([
        op_case("prelu", "integers", "", "i32[3], i32[3]").fails_build("C1"),
        op_case("prelu", "mixed_types", "", "f32[3], f16[3]").fails_build("C2"),
        op_case("prelu", "slope_of_more_axes", "", "f32[3], f32[1, 3]").fails_build("C3"),
        op_case("prelu", "slope_of_other_size", "", "f32[2, 3], f32[2]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "prelu"));
    cases.extend(golden(PYTORCH, "prelu"));
    cases
}

/// a · f(g) for the halves of the second axis.
fn glu_of(f: impl Fn(f64) -> f64, gate_first: bool) -> impl Fn(&[Array]) -> Array {
    move |x| {
        x[0].map_rows(1, |row| {
            let (first, second) = row.split_at(row.len() / 2);
            let (value, gate) = if gate_first { (second, first) } else { (first, second) };
            value.iter().zip(gate).map(|(v, g)| v * f(*g)).collect()
        })
    }
}

/// Cases of `glu`.
pub(super) fn glu() -> Vec<Case> {
    type Gate = (&'static str, fn(f64) -> f64);
    let gates: [Gate; 6] = [
        ("sigmoid", sigmoid),
        ("silu", |x| x * sigmoid(x)),
        ("gelu", |x| x * normal_cdf(x)),
        ("gelu_tanh", gelu_tanh),
        ("relu", relu),
        ("identity", |x| x),
    ];
    let mut cases = Vec::new();
    for (gate, f) in gates {
        for first in [false, true] {
            let attributes = format!("axis=1, gate={gate}{}", if first { ", gate_first=true" } else { "" });
            cases.extend(for_dtypes(UP_TO_F32, |dtype| {
                op_case("glu", &format!("{gate}_{first}"), &attributes, &format!("{dtype}[2, n, 3]"))
                    .sizes([("n", 10)])
                    .random(Domain::Normal)
                    .formula(glu_of(f, first))
                    .transcendental()
            }));
        }
    }
    cases.extend([
        op_case("glu", "nothing", "axis=-1, gate=sigmoid", "f32[3, 0]")
            .random(Domain::Normal)
            .formula(glu_of(sigmoid, false)),
        op_case("glu", "odd_size_at_run_time", "axis=0, gate=relu", "f32[n]")
            .input(f32s([3], [0.0; 3]))
            .fails(Stage::Run, "glu: C3"),
        op_case("glu", "integers", "axis=0, gate=relu", "i32[4]").fails_build("C1"),
        op_case("glu", "bad_axis", "axis=1, gate=relu", "f32[4]").fails_build("C2"),
        op_case("glu", "odd_size", "axis=0, gate=relu", "f32[5]").fails_build("C3"),
    ]);
    cases.extend(golden(PYTORCH, "glu"));
    cases
}

/// Cases of `clip`.
pub(super) fn clip() -> Vec<Case> {
    let both = |x: &[Array]| {
        let (low, high) = (x[1].data[0], x[2].data[0]);
        x[0].map(|x| if x < low { low } else { x }).map(|x| if x > high { high } else { x })
    };
    let mut cases =
        for_dtypes(&[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I8], |dtype| {
            op_case("clip", "both", "low=true, high=true", &format!("{dtype}[n], {dtype}[], {dtype}[]"))
                .sizes([("n", 23)])
                .random_input(Domain::Range(-9.0, 9.0))
                .random_input(Domain::Constant(-3.0))
                .random_input(Domain::Constant(2.0))
                .formula(both)
        });
    cases.extend([
        op_case("clip", "low_above_high_gives_high", "low=true, high=true", "f32[3], f32[], f32[]")
            .inputs([f32s([3], [-1.0, 2.5, f32::NAN]), f32s([], [3.0]), f32s([], [2.0])])
            .values([f32s([3], [2.0, 2.0, f32::NAN])]),
        op_case("clip", "low_only", "low=true", "f32[3], f32[]")
            .inputs([f32s([3], [-1.0, 2.5, f32::INFINITY]), f32s([], [1.0])])
            .values([f32s([3], [1.0, 2.5, f32::INFINITY])]),
        op_case("clip", "high_only", "high=true", "i32[3], i32[]")
            .inputs([crate::case::i32s([3], [-1, 2, 9]), crate::case::i32s([], [2])])
            .values([crate::case::i32s([3], [-1, 2, 2])]),
        op_case("clip", "neither", "", "f32[1]").input(f32s([1], [5.0])).values([f32s([1], [5.0])]),
        op_case("clip", "missing_bound", "low=true", "f32[3]").fails_build("C0"),
        op_case("clip", "bools", "", "bool[3]").fails_build("C1"),
        op_case("clip", "bound_of_other_type", "low=true", "f32[3], f16[]").fails_build("C2"),
        op_case("clip", "bound_with_axis", "low=true", "f32[3], f32[1]").fails_build("C2"),
    ]);
    cases
}
