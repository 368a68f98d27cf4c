//! Cases of the losses. Formulas go position by position; values of PyTorch are in the golden file.

use crate::array::{Array, for_each_index};
use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, i64s, literal, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::DType;

/// What outside references give; recorded by `references/cases/onnx_composites.py`.
const RECORDED: &str = include_str!("../../golden/loss.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../golden/pytorch/loss.case");

/// The result of the losses of all elements.
fn reduced(losses: Array, reduction: &str) -> Array {
    // Not `sum`, which gives −0 for nothing.
    let sum = losses.data.iter().fold(0.0, |sum, x| sum + x);
    match reduction {
        "none" => losses,
        "mean" => Array::scalar(sum / losses.data.len() as f64),
        "batch_mean" => Array::scalar(sum / losses.dims.first().copied().unwrap_or(1) as f64),
        _ => Array::scalar(sum),
    }
}

const REDUCTIONS: [&str; 4] = ["none", "mean", "sum", "batch_mean"];

/// ln softmax along `axis`.
fn log_softmax(x: &Array, axis: usize) -> Array {
    x.map_rows(axis, |row| {
        let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - greatest).exp()).sum();
        row.iter().map(|x| x - greatest - sum.ln()).collect()
    })
}

/// What a position's loss is made of.
struct Labels {
    ignore: Option<f64>,
    smoothing: f64,
}

impl Labels {
    /// The loss of index targets; x are log-probabilities with classes along the second axis (or the only one).
    fn loss(&self, x: &Array, target: &Array, weight: Option<&Array>, reduction: &str) -> Array {
        let axis = usize::from(x.dims.len() > 1);
        let classes = x.dims[axis];
        let of = |class: usize| weight.map_or(1.0, |w| w.data[class]);
        let (mut losses, mut total) = (Vec::new(), 0.0);
        for_each_index(&target.dims, |index| {
            let class = target.at(index);
            if Some(class) == self.ignore {
                losses.push(0.0);
                return;
            }
            let at = |class: usize| {
                let mut full = index.to_vec();
                full.insert(axis, class);
                x.at(&full)
            };
            let class = class as usize;
            let spread: f64 = (0..classes).map(|c| of(c) * at(c)).sum();
            let smoothing = self.smoothing;
            losses.push(-(1.0 - smoothing) * of(class) * at(class) - smoothing / classes as f64 * spread);
            total += of(class);
        });
        let losses = Array::new(target.dims.clone(), losses);
        if reduction == "mean" {
            return Array::scalar(losses.data.iter().sum::<f64>() / total);
        }
        reduced(losses, reduction)
    }
}

/// Targets of `shape`, with −1 in one place out of four if some are ignored.
fn targets(shape: &[usize], classes: usize, ignored: bool) -> rlx_ir::Literal {
    let n: usize = shape.iter().product();
    let class = |i: usize| if ignored && i % 4 == 1 { -1 } else { ((i * 7 + 3) % classes) as i64 };
    i64s(shape, (0..n).map(class).collect::<Vec<i64>>())
}

/// Cases of `nll_loss`.
pub(super) fn nll_loss() -> Vec<Case> {
    let mut cases = Vec::new();
    for reduction in REDUCTIONS {
        for (ignored, weighted) in [(false, false), (true, false), (false, true), (true, true)] {
            let ignore = if ignored { "ignore_index=-1, " } else { "" };
            let attributes = format!("{ignore}reduction={reduction}");
            cases.extend(for_dtypes(FLOATS, |dtype| {
                let weight = if weighted { format!(", {dtype}[5]") } else { String::new() };
                let types = format!("{dtype}[n, 5, d], i64[n, d]{weight}");
                op_case("nll_loss", &format!("{reduction}_{ignored}_{weighted}"), &attributes, &types)
                    .sizes([("n", 3), ("d", 4)])
                    .random_input(Domain::Range(-6.0, -0.25))
                    .input(targets(&[3, 4], 5, ignored))
                    .random(Domain::Range(0.5, 2.0))
                    .formula(move |x| {
                        let labels = Labels { ignore: ignored.then_some(-1.0), smoothing: 0.0 };
                        labels.loss(&x[0], &x[1], x.get(2), reduction)
                    })
                    .accumulated(12 + 2)
            }));
        }
    }
    cases.extend([
        op_case("nll_loss", "one_position", "reduction=none", "f32[3], i32[]")
            .inputs([f32s([3], [-1.0, -2.0, -3.0]), crate::case::i32s([], [2])])
            .values([f32s([], [3.0])]),
        op_case(
            "nll_loss",
            "ignored_position_hides_nan",
            "ignore_index=7, reduction=mean",
            "f32[2, 2], i64[2]",
        )
        .inputs([f32s([2, 2], [f32::NAN, f32::NAN, -1.0, -2.0]), i64s([2], [7, 1])])
        .values([f32s([], [2.0])]),
        op_case("nll_loss", "all_ignored_gives_nan", "ignore_index=0, reduction=mean", "f32[1, 2], i64[1]")
            .inputs([f32s([1, 2], [-1.0, -2.0]), i64s([1], [0])])
            .values([f32s([], [f32::NAN])]),
        op_case("nll_loss", "target_outside", "reduction=sum", "f32[1, 2], i64[1]")
            .inputs([f32s([1, 2], [-1.0, -2.0]), i64s([1], [2])])
            .fails(Stage::Run, "gather_along"),
        op_case("nll_loss", "negative_target_does_not_wrap", "reduction=sum", "f32[1, 2], i64[1]")
            .inputs([f32s([1, 2], [-1.0, -2.0]), i64s([1], [-1])])
            .fails(Stage::Run, "gather_along"),
        op_case("nll_loss", "no_positions", "reduction=sum", "f32[0, 2], i64[0]")
            .inputs([f32s([0, 2], []), i64s([0], [])])
            .values([f32s([], [0.0])]),
        op_case("nll_loss", "integers", "reduction=sum", "i32[1, 2], i64[1]").fails_build("C1"),
        op_case("nll_loss", "float_targets", "reduction=sum", "f32[1, 2], f32[1]").fails_build("C2"),
        op_case("nll_loss", "targets_of_other_size", "reduction=sum", "f32[3, 2], i64[2]").fails_build("C3"),
        op_case("nll_loss", "wrong_weights", "reduction=sum", "f32[3, 2], i64[3], f32[3]").fails_build("C4"),
    ]);
    cases.extend(golden(RECORDED, "nll_loss"));
    cases.extend(golden(PYTORCH, "nll_loss"));
    cases
}

/// Cases of `softmax_cross_entropy`.
pub(super) fn softmax_cross_entropy() -> Vec<Case> {
    let mut cases = Vec::new();
    for reduction in ["none", "mean", "sum"] {
        for (smoothing, ignored, weighted) in
            [(0.0, false, false), (0.0, true, true), (0.25, false, false), (0.25, true, true)]
        {
            let ignore = if ignored { "ignore_index=-1, " } else { "" };
            let attributes = format!(
                "{ignore}label_smoothing={smoothing:?}, reduction={reduction}, log_probabilities=true"
            );
            let name = format!("{reduction}_{}_{ignored}", 100.0 * smoothing);
            cases.extend(for_dtypes(FLOATS, |dtype| {
                let weight = if weighted { format!(", {dtype}[5]") } else { String::new() };
                op_case(
                    "softmax_cross_entropy",
                    &name,
                    &attributes,
                    &format!("{dtype}[n, 5, d], i64[n, d]{weight}"),
                )
                .sizes([("n", 3), ("d", 4)])
                .random_input(Domain::Range(-4.0, 4.0))
                .input(targets(&[3, 4], 5, ignored))
                .random(Domain::Range(0.5, 2.0))
                .formulas(move |x| {
                    let log_p = log_softmax(&x[0], 1);
                    let labels = Labels { ignore: ignored.then_some(-1.0), smoothing };
                    vec![labels.loss(&log_p, &x[1], x.get(2), reduction), log_p]
                })
                .accumulated(12 + 10)
            }));
        }
        for smoothing in [0.0, 0.25] {
            let attributes = format!("label_smoothing={smoothing:?}, reduction={reduction}");
            let name = format!("probabilities_{reduction}_{}", 100.0 * smoothing);
            cases.extend(for_dtypes(FLOATS, |dtype| {
                let types = format!("{dtype}[3, 5], {dtype}[3, 5], {dtype}[5]");
                op_case("softmax_cross_entropy", &name, &attributes, &types)
                    .random_input(Domain::Range(-4.0, 4.0))
                    .random_input(Domain::Range(0.0, 0.4))
                    .random_input(Domain::Range(0.5, 2.0))
                    .formula(move |x| {
                        let target = x[1].map(|t| t * (1.0 - smoothing) + smoothing / 5.0);
                        let terms = log_softmax(&x[0], 1).zip(&target, |p, t| -p * t);
                        let weighted = terms.zip(&x[2].broadcast([3, 5]), |l, w| l * w);
                        reduced(weighted.map_rows(1, |row| vec![row.iter().sum()]).reshape([3]), reduction)
                    })
                    .accumulated(15 + 10)
            }));
        }
    }
    let attributes = "label_smoothing=0.0, reduction=mean";
    cases.extend([
        op_case("softmax_cross_entropy", "large_scores", attributes, "f16[1, 2], i64[1]")
            .inputs([literal(DType::F16, [1, 2], [60000.0, -60000.0]), i64s([1], [0])])
            .values([literal(DType::F16, [], [0.0])]),
        op_case("softmax_cross_entropy", "integers", attributes, "i32[1, 2], i64[1]").fails_build("C1"),
        op_case("softmax_cross_entropy", "bool_targets", attributes, "f32[1, 2], bool[1]").fails_build("C2"),
        op_case("softmax_cross_entropy", "targets_of_other_size", attributes, "f32[3, 2], f32[3]")
            .fails_build("C3"),
        op_case("softmax_cross_entropy", "wrong_weights", attributes, "f32[3, 2], i64[3], f32[3]")
            .fails_build("C4"),
        op_case(
            "softmax_cross_entropy",
            "too_smooth",
            "label_smoothing=1.5, reduction=mean",
            "f32[3, 2], i64[3]",
        )
        .fails_build("C5"),
        op_case(
            "softmax_cross_entropy",
            "ignored_index_of_probabilities",
            "ignore_index=0, label_smoothing=0.0, reduction=mean",
            "f32[3, 2], f32[3, 2]",
        )
        .fails_build("C6"),
    ]);
    cases.extend(golden(RECORDED, "softmax_cross_entropy"));
    cases.extend(golden(PYTORCH, "softmax_cross_entropy"));
    cases
}

/// ln(1 + eˣ).
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Wrong operands of the binary losses.
fn wrong_binary(op: &str) -> [Case; 3] {
    [
        op_case(op, "integers", "reduction=mean", "i32[3], i32[3]").fails_build("C1"),
        op_case(op, "mixed_types", "reduction=mean", "f32[3], f16[3]").fails_build("C2"),
        op_case(op, "targets_of_other_size", "reduction=mean", "f32[3], f32[2]").fails_build("C3"),
    ]
}

/// Cases of `binary_cross_entropy` and of that with logits.
pub(super) fn binary_cross_entropy() -> Vec<Case> {
    let mut cases = Vec::new();
    for reduction in REDUCTIONS {
        let attributes = format!("reduction={reduction}");
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case(
                "binary_cross_entropy",
                reduction,
                &attributes,
                &format!("{dtype}[n, 5], {dtype}[n, 5], {dtype}[5]"),
            )
            .sizes([("n", 3)])
            .random_input(Domain::Range(0.05, 0.95))
            .random_input(Domain::Range(0.0, 1.0))
            .random_input(Domain::Range(0.5, 2.0))
            .formula(move |x| {
                let losses = x[0].zip(&x[1], |p, t| -(t * p.ln() + (1.0 - t) * (-p).ln_1p()));
                reduced(losses.zip(&x[2].broadcast([3, 5]), |l, w| l * w), reduction)
            })
            .accumulated(15 + 5)
        }));
    }
    cases.push(
        op_case("binary_cross_entropy", "logarithm_is_bounded", "reduction=none", "f32[3], f32[3]")
            .inputs([f32s([3], [0.0, 1.0, 0.0]), f32s([3], [1.0, 0.5, 0.0])])
            .values([f32s([3], [100.0, 50.0, 0.0])]),
    );
    cases.extend(wrong_binary("binary_cross_entropy"));
    cases.push(
        op_case("binary_cross_entropy", "wrong_weights", "reduction=mean", "f32[3], f32[3], f32[2]")
            .fails_build("C4"),
    );
    cases.extend(golden(PYTORCH, "binary_cross_entropy"));
    cases
}

/// Cases of `binary_cross_entropy_with_logits`.
pub(super) fn binary_cross_entropy_with_logits() -> Vec<Case> {
    let mut cases = Vec::new();
    for reduction in REDUCTIONS {
        for (weight, positive) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut attributes = String::new();
            let mut extra = String::new();
            for (present, name) in [(weight, "weight"), (positive, "positive_weight")] {
                if present {
                    attributes += &format!("{name}=true, ");
                    extra += ", f[5]";
                }
            }
            attributes += &format!("reduction={reduction}");
            cases.extend(for_dtypes(FLOATS, |dtype| {
                let types = format!("f[n, 5], f[n, 5]{extra}").replace("f[", &format!("{dtype}["));
                let name = format!("{reduction}_{weight}_{positive}");
                op_case("binary_cross_entropy_with_logits", &name, &attributes, &types)
                    .sizes([("n", 3)])
                    .random_input(Domain::Range(-6.0, 6.0))
                    .random_input(Domain::Range(0.0, 1.0))
                    .random(Domain::Range(0.5, 2.0))
                    .formula(move |x| {
                        let dims = x[0].dims.clone();
                        let one = Array::scalar(1.0);
                        let w = if weight { &x[2] } else { &one }.broadcast(dims.clone());
                        let q = if positive { &x[x.len() - 1] } else { &one }.broadcast(dims.clone());
                        let losses = Array::from_fn(dims, |i| {
                            let (x, t) = (x[0].at(i), x[1].at(i));
                            w.at(i) * ((1.0 - t) * x + (1.0 + (q.at(i) - 1.0) * t) * softplus(-x))
                        });
                        reduced(losses, reduction)
                    })
                    .accumulated(15 + 6)
            }));
        }
    }
    cases.push(
        op_case("binary_cross_entropy_with_logits", "large_scores", "reduction=none", "f32[4], f32[4]")
            .inputs([f32s([4], [1e6, -1e6, 1e6, -1e6]), f32s([4], [1.0, 0.0, 0.0, 1.0])])
            .values([f32s([4], [0.0, 0.0, 1e6, 1e6])]),
    );
    cases.extend(wrong_binary("binary_cross_entropy_with_logits"));
    cases.push(
        op_case(
            "binary_cross_entropy_with_logits",
            "wrong_weights",
            "weight=true, reduction=mean",
            "f32[3], f32[3], f32[2]",
        )
        .fails_build("C4"),
    );
    cases.extend(golden(PYTORCH, "binary_cross_entropy_with_logits"));
    cases
}

/// A loss of two tensors: every reduction and type, no elements, wrong operands.
fn pairwise(
    op: &str,
    attributes: &str,
    targets: Domain,
    f: impl Fn(f64, f64) -> f64 + Send + Sync + Clone + 'static,
) -> Vec<Case> {
    let mut cases = Vec::new();
    let tag = attributes.replace(['=', ',', ' ', '.', '-'], "_");
    for reduction in REDUCTIONS {
        let all = format!("{attributes}reduction={reduction}");
        cases.extend(for_dtypes(FLOATS, |dtype| {
            let f = f.clone();
            op_case(op, &format!("{tag}{reduction}"), &all, &format!("{dtype}[n, 5], {dtype}[n, 5]"))
                .sizes([("n", 3)])
                .random_input(Domain::Range(-3.0, -0.125))
                .random_input(targets.clone())
                .formula(move |x| reduced(x[0].zip(&x[1], &f), reduction))
                .accumulated(15 + 5)
        }));
        let f = f.clone();
        cases.push(
            op_case(op, &format!("{tag}{reduction}_of_nothing"), &all, "f32[n, 5], f32[n, 5]")
                .sizes([("n", 0)])
                .random(Domain::Normal)
                .formula(move |x| reduced(x[0].zip(&x[1], &f), reduction)),
        );
    }
    cases.extend([
        op_case(op, &format!("{tag}integers"), &format!("{attributes}reduction=mean"), "i32[3], i32[3]")
            .fails_build("C1"),
        op_case(op, &format!("{tag}other_size"), &format!("{attributes}reduction=mean"), "f32[3], f32[2]")
            .fails_build("C2"),
    ]);
    cases
}

/// Cases of `mse_loss` and `l1_loss`.
pub(super) fn element_loss() -> Vec<Case> {
    let mut cases = pairwise("mse_loss", "", Domain::Normal, |x, t| (x - t) * (x - t));
    cases.extend(pairwise("l1_loss", "", Domain::Normal, |x, t| (x - t).abs()));
    cases.extend(golden(PYTORCH, "mse_loss"));
    cases.extend(golden(PYTORCH, "l1_loss"));
    cases
}

/// Cases of `huber_loss`.
pub(super) fn huber_loss() -> Vec<Case> {
    let mut cases = pairwise("huber_loss", "delta=1.5, ", Domain::Normal, |x, t| {
        let d = (x - t).abs();
        if d <= 1.5 { d * d / 2.0 } else { 1.5 * (d - 0.75) }
    });
    cases.push(
        op_case("huber_loss", "zero_delta", "delta=0.0, reduction=mean", "f32[3], f32[3]").fails_build("C3"),
    );
    cases.extend(golden(PYTORCH, "huber_loss"));
    cases
}

/// Cases of `smooth_l1_loss`.
pub(super) fn smooth_l1_loss() -> Vec<Case> {
    let mut cases = pairwise("smooth_l1_loss", "beta=1.5, ", Domain::Normal, |x, t| {
        let d = (x - t).abs();
        if d < 1.5 { d * d / 3.0 } else { d - 0.75 }
    });
    cases.extend(pairwise("smooth_l1_loss", "beta=0.0, ", Domain::Normal, |x, t| (x - t).abs()));
    cases.push(
        op_case("smooth_l1_loss", "negative_beta", "beta=-1.0, reduction=mean", "f32[3], f32[3]")
            .fails_build("C3"),
    );
    cases.extend(golden(PYTORCH, "smooth_l1_loss"));
    cases
}

/// Cases of `kl_divergence`.
pub(super) fn kl_divergence() -> Vec<Case> {
    let mut cases =
        pairwise(
            "kl_divergence",
            "",
            Domain::Range(0.0, 1.0),
            |x, t| {
                if t == 0.0 { 0.0 } else { t * (t.ln() - x) }
            },
        );
    cases.extend(pairwise("kl_divergence", "log_target=true, ", Domain::Range(-3.0, -0.1), |x, t| {
        t.exp() * (t - x)
    }));
    cases.push(
        op_case("kl_divergence", "impossible_target_costs_nothing", "reduction=none", "f32[2], f32[2]")
            .inputs([f32s([2], [-1.0, f32::NEG_INFINITY]), f32s([2], [0.0, 0.0])])
            .values([f32s([2], [0.0, 0.0])]),
    );
    cases.extend(golden(PYTORCH, "kl_divergence"));
    cases
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Rows of the last axis of two arrays.
fn rows<'a>(x: &'a Array, y: &'a Array) -> impl Iterator<Item = (&'a [f64], &'a [f64])> {
    let n = x.dims.last().copied().unwrap_or(1);
    x.data.chunks(n).zip(y.data.chunks(n))
}

/// Cases of `cosine_similarity`.
pub(super) fn cosine_similarity() -> Vec<Case> {
    let cosine = |x: &[f64], y: &[f64]| dot(x, y) / (dot(x, x).sqrt().max(1e-8) * dot(y, y).sqrt().max(1e-8));
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case(
            "cosine_similarity",
            "last_axis",
            "axis=-1, eps=1e-8",
            &format!("{dtype}[n, 7], {dtype}[n, 7]"),
        )
        .sizes([("n", 5)])
        .random(Domain::Normal)
        .formula(move |x| Array::new([5], rows(&x[0], &x[1]).map(|(x, y)| cosine(x, y)).collect::<Vec<_>>()))
        .magnitudes(7 + 4, |_| vec![Array::new([5], [1.0; 5])])
    });
    cases.extend([
        op_case("cosine_similarity", "first_axis", "axis=0, eps=1e-8", "f32[7, 5], f32[7, 5]")
            .random(Domain::Normal)
            .formula(move |x| {
                let (x, y) = (x[0].transpose(&[1, 0]), x[1].transpose(&[1, 0]));
                Array::new([5], rows(&x, &y).map(|(x, y)| cosine(x, y)).collect::<Vec<_>>())
            })
            .magnitudes(7 + 4, |_| vec![Array::new([5], [1.0; 5])]),
        op_case("cosine_similarity", "zero_vector", "axis=0, eps=1e-8", "f32[2], f32[2]")
            .inputs([f32s([2], [0.0, 0.0]), f32s([2], [1.0, 2.0])])
            .values([f32s([], [0.0])]),
        op_case("cosine_similarity", "integers", "axis=0, eps=1e-8", "i32[2], i32[2]").fails_build("C1"),
        op_case("cosine_similarity", "other_size", "axis=0, eps=1e-8", "f32[2], f32[3]").fails_build("C2"),
        op_case("cosine_similarity", "bad_axis", "axis=1, eps=1e-8", "f32[2], f32[2]").fails_build("C3"),
    ]);
    cases.extend(golden(PYTORCH, "cosine_similarity"));
    cases
}

/// Cases of `cosine_embedding_loss`.
pub(super) fn cosine_embedding_loss() -> Vec<Case> {
    let mut cases = Vec::new();
    for reduction in REDUCTIONS {
        cases.extend(for_dtypes(FLOATS, |dtype| {
            let types = format!("{dtype}[n, 7], {dtype}[n, 7], {dtype}[n]");
            op_case(
                "cosine_embedding_loss",
                reduction,
                &format!("margin=0.125, reduction={reduction}"),
                &types,
            )
            .sizes([("n", 5)])
            .random_input(Domain::Normal)
            .random_input(Domain::Normal)
            .input(literal(dtype, [5], [1.0, -1.0, 1.0, -1.0, -1.0]))
            .formula(move |x| {
                let losses = rows(&x[0], &x[1]).zip(&x[2].data).map(|((x, y), s)| {
                    let cosine = dot(x, y) / ((dot(x, x) + 1e-12) * (dot(y, y) + 1e-12)).sqrt();
                    if *s == 1.0 { 1.0 - cosine } else { (cosine - 0.125).max(0.0) }
                });
                reduced(Array::new([5], losses.collect::<Vec<_>>()), reduction)
            })
            .magnitudes(7 + 8, move |_| vec![reduced(Array::new([5], [2.0; 5]), reduction)])
        }));
    }
    cases.extend([
        op_case(
            "cosine_embedding_loss",
            "integers",
            "margin=0.0, reduction=mean",
            "i32[2, 3], i32[2, 3], i32[2]",
        )
        .fails_build("C1"),
        op_case(
            "cosine_embedding_loss",
            "other_size",
            "margin=0.0, reduction=mean",
            "f32[2, 3], f32[3, 3], f32[2]",
        )
        .fails_build("C2"),
        op_case(
            "cosine_embedding_loss",
            "signs_of_other_size",
            "margin=0.0, reduction=mean",
            "f32[2, 3], f32[2, 3], f32[3]",
        )
        .fails_build("C3"),
    ]);
    cases.extend(golden(PYTORCH, "cosine_embedding_loss"));
    cases
}
