//! Steps of optimisers (`ai.onnx.preview.training`), as graphs. Learning rates are computed in f64, what is done to
//! tensors in their own type.

use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::{Builder, DType, TypeError, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, of_domain};

const DOMAIN: &str = "ai.onnx.preview.training";

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    of_domain(DOMAIN, "Adagrad", &[1], adagrad),
    of_domain(DOMAIN, "Adam", &[1], adam),
    of_domain(DOMAIN, "Momentum", &[1], momentum),
];

type Built = Result<Value, TypeError>;

/// The rate and the update count as f64 scalars.
fn rate_and_count(cx: &mut NodeContext<'_, '_>) -> Result<[Value; 2], NodeProblem> {
    let (rate, count) = (cx.input(0)?, cx.input(1)?);
    let b = cx.builder();
    let mut scalar = |x: Value| {
        let x = b.reshape(x, &[])?;
        b.cast(x, DType::F64)
    };
    Ok([scalar(rate)?, scalar(count)?])
}

/// The tensors of each optimised tensor, which come grouped by role: all tensors, then all gradients ….
fn grouped(cx: &NodeContext<'_, '_>, roles: usize) -> Result<Vec<Vec<Value>>, NodeProblem> {
    let all = cx.all_inputs()?;
    let all = all.get(2..).unwrap_or_default();
    if all.is_empty() || all.len() % roles != 0 {
        return Err(cx.bad_input(
            2,
            "number of inputs",
            format!("2 and a multiple of {roles}"),
            all.len() + 2,
        ));
    }
    let count = all.len() / roles;
    Ok((0..count).map(|i| (0..roles).map(|role| all[role * count + i]).collect()).collect())
}

/// Results grouped by role, as the inputs are.
fn by_role(results: Vec<Vec<Value>>) -> Vec<Value> {
    let roles = results.first().map_or(0, Vec::len);
    (0..roles).flat_map(|role| results.iter().map(move |own| own[role])).collect()
}

/// A scalar in the type and sizes of x.
fn spread(b: &mut Builder, scalar: Value, x: Value) -> Built {
    let scalar = b.cast(scalar, b.dtype(x))?;
    b.broadcast_to(scalar, &b.shape(x))
}

/// norm · x + g: the gradient with that of the penalty.
fn penalised(b: &mut Builder, norm: f64, x: Value, gradient: Value) -> Built {
    let penalty = b.mul_scalar(x, norm)?;
    b.add(penalty, gradient)
}

/// `then` if the count is above 0, else `otherwise`.
fn after_first(b: &mut Builder, count: Value, then: Value, otherwise: Value) -> Built {
    let later = b.compare_scalar(CompareOp::Gt, count, 0.0)?;
    b.select(later, then, otherwise)
}

/// H' = H + G², X' = X − R/(1 + T·decay) · G / (√H' + ε), with G the penalised gradient.
fn adagrad(cx: &mut NodeContext<'_, '_>) -> Handled {
    let [rate, count] = rate_and_count(cx)?;
    let (decay, epsilon) = (cx.float("decay_factor", 0.0)?, cx.float("epsilon", 1e-6)?);
    let norm = cx.float("norm_coefficient", 0.0)?;
    let groups = grouped(cx, 3)?;
    let b = cx.builder();
    let decayed = b.mul_scalar(count, decay)?;
    let divisor = b.add_scalar(decayed, 1.0)?;
    let rate = b.div(rate, divisor)?;
    let mut results = Vec::new();
    for group in groups {
        let [x, gradient, history] = [group[0], group[1], group[2]];
        let gradient = penalised(b, norm, x, gradient)?;
        let square = b.mul(gradient, gradient)?;
        let history = b.add(history, square)?;
        let root = b.unary(UnaryOp::Sqrt, history)?;
        let root = b.add_scalar(root, epsilon)?;
        let rate = spread(b, rate, x)?;
        let step = b.mul(rate, gradient)?;
        let step = b.div(step, root)?;
        results.push(vec![b.sub(x, step)?, history]);
    }
    Ok(by_role(results).into())
}

/// V' = α·V + (1 − α)·G, H' = β·H + (1 − β)·G², X' = (1 − post) · (X − R' · V' / (√H' + ε)), with
/// R' = R · √(1 − β^T) / (1 − α^T) after the first update and G the penalised gradient.
fn adam(cx: &mut NodeContext<'_, '_>) -> Handled {
    let [rate, count] = rate_and_count(cx)?;
    let (alpha, beta, epsilon) =
        (cx.float("alpha", 0.9)?, cx.float("beta", 0.999)?, cx.float("epsilon", 1e-6)?);
    let (norm, post) = (cx.float("norm_coefficient", 0.0)?, cx.float("norm_coefficient_post", 0.0)?);
    let groups = grouped(cx, 4)?;
    let b = cx.builder();
    let remainder = |b: &mut Builder, base: f64| {
        let base = b.scalar(base, DType::F64)?;
        let power = b.binary(BinaryOp::Pow, base, count)?;
        let one = b.scalar(1.0, DType::F64)?;
        b.sub(one, power)
    };
    let (of_alpha, of_beta) = (remainder(b, alpha)?, remainder(b, beta)?);
    let root = b.unary(UnaryOp::Sqrt, of_beta)?;
    let corrected = b.mul(rate, root)?;
    let corrected = b.div(corrected, of_alpha)?;
    let rate = after_first(b, count, corrected, rate)?;
    let mixed = |b: &mut Builder, share: f64, old: Value, new: Value| {
        let old = b.mul_scalar(old, share)?;
        let new = b.mul_scalar(new, 1.0 - share)?;
        b.add(old, new)
    };
    let mut results = Vec::new();
    for group in groups {
        let [x, gradient, momentum, history] = [group[0], group[1], group[2], group[3]];
        let gradient = penalised(b, norm, x, gradient)?;
        let momentum = mixed(b, alpha, momentum, gradient)?;
        let square = b.mul(gradient, gradient)?;
        let history = mixed(b, beta, history, square)?;
        let root = b.unary(UnaryOp::Sqrt, history)?;
        let root = b.add_scalar(root, epsilon)?;
        let rate = spread(b, rate, x)?;
        let step = b.div(momentum, root)?;
        let step = b.mul(rate, step)?;
        let x = b.sub(x, step)?;
        results.push(vec![b.mul_scalar(x, 1.0 - post)?, momentum, history]);
    }
    Ok(by_role(results).into())
}

/// V' = α·V + β'·G with β' = 1 at the first update, X' = X − R·V', or X − R·(G + α·V') in mode "nesterov"; G is the
/// penalised gradient.
fn momentum(cx: &mut NodeContext<'_, '_>) -> Handled {
    let [rate, count] = rate_and_count(cx)?;
    let required = |name: &str| {
        let value = cx.optional_float(name)?;
        value.ok_or_else(|| NodeProblem::MissingAttribute { name: name.to_owned() })
    };
    let (alpha, beta, norm) = (required("alpha")?, required("beta")?, required("norm_coefficient")?);
    let nesterov = match cx.string("mode", "")?.as_str() {
        "standard" => false,
        "nesterov" => true,
        other => return Err(cx.bad_attribute("mode", "standard or nesterov", other)),
    };
    let groups = grouped(cx, 3)?;
    let b = cx.builder();
    let (beta, one) = (b.scalar(beta, DType::F64)?, b.scalar(1.0, DType::F64)?);
    let beta = after_first(b, count, beta, one)?;
    let mut results = Vec::new();
    for group in groups {
        let [x, gradient, momentum] = [group[0], group[1], group[2]];
        let gradient = penalised(b, norm, x, gradient)?;
        let kept = b.mul_scalar(momentum, alpha)?;
        let beta = spread(b, beta, gradient)?;
        let added = b.mul(beta, gradient)?;
        let momentum = b.add(kept, added)?;
        let direction = if nesterov {
            let ahead = b.mul_scalar(momentum, alpha)?;
            b.add(gradient, ahead)?
        } else {
            momentum
        };
        let rate = spread(b, rate, x)?;
        let step = b.mul(rate, direction)?;
        results.push(vec![b.sub(x, step)?, momentum]);
    }
    Ok(by_role(results).into())
}
