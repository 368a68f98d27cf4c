//! Activations from their formulas, and gated units.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of, rounded};
use rlx_ir::op::Real;
use rlx_ir::op::activation::{Activation, ActivationOp, GateFunction, Softplus, Swish};
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::gated::Gated;
use rlx_ir::{Composite, Primitive, Value};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// A product has at most this many factors.
const MAX_FACTORS: usize = 6;

/// The factors of a tree of products, and the product of those that are constant. A division by a constant counts as
/// a product where the constant is a power of two, so that nothing is rounded twice.
struct Factors {
    values: Vec<Value>,
    constant: f64,
}

fn factors(c: &Chain<'_>, root: Value) -> Found<Factors> {
    let mut found = Factors { values: Vec::new(), constant: 1.0 };
    let mut pending = vec![root];
    while let Some(v) = pending.pop() {
        if found.values.len() + pending.len() > MAX_FACTORS {
            return Err(Miss::Other);
        }
        if let Some(number) = c.uniform(v) {
            found.constant *= number;
            continue;
        }
        match c.primitive(v) {
            Ok(Primitive::Binary(b)) if b.op == BinaryOp::Mul => {
                c.enter(v);
                pending.extend(c.operands(v).iter().copied());
            }
            Ok(Primitive::Binary(b)) if b.op == BinaryOp::Div => match c.uniform(c.operands(v)[1]) {
                Some(number) if is_power_of_two(number) => {
                    c.enter(v);
                    found.constant /= number;
                    pending.push(c.operands(v)[0]);
                }
                _ => found.values.push(v),
            },
            _ => found.values.push(v),
        }
    }
    require(found.values.len() <= MAX_FACTORS)?;
    Ok(found)
}

/// Whether multiplying by this number, or dividing by it, loses nothing (within the range).
pub(crate) fn is_power_of_two(number: f64) -> bool {
    number.is_normal() && number.to_bits() & ((1 << 52) - 1) == 0
}

/// x and g(x) as the two factors of a product, with the product of the constants.
fn times<T>(
    c: &Chain<'_>,
    root: Value,
    constant: f64,
    g: impl Fn(Value, Value) -> Found<T>,
) -> Found<(Value, T)> {
    let is_product = matches!(c.primitive(root), Ok(Primitive::Binary(b)) if matches!(b.op, BinaryOp::Mul | BinaryOp::Div));
    require(is_product)?;
    let product = factors(c, root)?;
    let [x, y] = product.values[..] else { return Err(Miss::Other) };
    let (found, part) = c.first(|| g(x, y).map(|part| (x, part)), || g(y, x).map(|part| (y, part)))?;
    require(c.is(product.constant, constant, root))?;
    Ok((found, part))
}

fn raised(name: &'static str, op: ActivationOp, x: Value) -> Raised<'static> {
    Raised::new(name, move |b| b.push1(Activation { op }, &[x]))
}

/// `1 / (1 + exp(−x))`.
pub(super) fn sigmoid(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (one, below) = c.binary(root, BinaryOp::Div)?;
    require(c.uniform(one) == Some(1.0))?;
    let x = one_plus_exp_of_negative(c, below)?;
    Ok(Raised::new("sigmoid", move |b| b.unary(UnaryOp::Sigmoid, x)))
}

/// x in 1 + exp(−x).
fn one_plus_exp_of_negative(c: &Chain<'_>, v: Value) -> Found<Value> {
    let e = c.with(v, BinaryOp::Add, 1.0)?;
    c.unary(c.unary(e, UnaryOp::Exp)?, UnaryOp::Neg)
}

/// `x · ½ · (1 + erf(x / √2))`, the factors in any order.
pub(super) fn gelu(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (x, ()) = times(c, root, 0.5, |x, y| {
        let erf = c.with(y, BinaryOp::Add, 1.0)?;
        let argument = c.unary(erf, UnaryOp::Erf)?;
        let of =
            c.first(|| c.with_constant(argument, BinaryOp::Div), || c.with_constant(argument, BinaryOp::Mul));
        let (of, number) = of?;
        require(of == x)?;
        let divided = matches!(c.primitive(argument), Ok(Primitive::Binary(b)) if b.op == BinaryOp::Div);
        let expected = if divided { SQRT_2 } else { FRAC_1_SQRT_2 };
        require_of(c.is(number, expected, x), "gelu", "the factor in erf is not 1/√2 in this type")
    })?;
    Ok(raised("gelu", ActivationOp::Gelu, x))
}

/// √(2/π).
const SQRT_2_OVER_PI: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;

/// The factor of the cubic term in GELU by tanh.
const CUBIC: f64 = 0.044715;

/// `x · ½ · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`, the factors in any order.
pub(super) fn gelu_tanh(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (x, ()) = times(c, root, 0.5, |x, y| {
        let tanh = c.with(y, BinaryOp::Add, 1.0)?;
        let argument = factors(c, c.unary(tanh, UnaryOp::Tanh)?)?;
        let cubic = match argument.values[..] {
            // x + 0.044715 x³
            [sum] => c.commuted(sum, BinaryOp::Add, |linear, cubic| {
                require(linear == x)?;
                power(c, cubic, x, 3)
            })?,
            // x · (1 + 0.044715 x²)
            [a, b] if a == x || b == x => {
                let square = c.with(if a == x { b } else { a }, BinaryOp::Add, 1.0)?;
                power(c, square, x, 2)?
            }
            _ => return Err(Miss::Other),
        };
        let exact = c.is(argument.constant, SQRT_2_OVER_PI, x) && c.is(cubic, CUBIC, x);
        require_of(exact, "gelu_tanh", "the constants are not √(2/π) and 0.044715 in this type")
    })?;
    Ok(raised("gelu_tanh", ActivationOp::GeluTanh, x))
}

/// The constant in constant · xⁿ.
fn power(c: &Chain<'_>, v: Value, x: Value, n: usize) -> Found<f64> {
    let product = factors(c, v)?;
    let mut degree = 0;
    for factor in &product.values {
        if *factor == x {
            degree += 1;
            continue;
        }
        let (of, exponent) = c.with_constant(*factor, BinaryOp::Pow)?;
        require(of == x && (exponent == 2.0 || exponent == 3.0))?;
        degree += exponent as usize;
    }
    require(degree == n)?;
    Ok(product.constant)
}

/// x in min(max(x, low), high) or its composite, with the bounds.
fn clamped(c: &Chain<'_>, v: Value) -> Found<(Value, f64, f64)> {
    if let Ok(composite) = c.composite(v) {
        let operands = c.operands(v);
        c.enter(v);
        return match composite {
            Composite::Clip(clip) if clip.low && clip.high => {
                let bound = |i: usize| operands.get(i).and_then(|o| c.uniform(*o)).ok_or(Miss::Other);
                Ok((operands[0], bound(1)?, bound(2)?))
            }
            Composite::HardTanh(h) => Ok((operands[0], h.low.get(), h.high.get())),
            Composite::Activation(a) if a.op == ActivationOp::Relu6 => Ok((operands[0], 0.0, 6.0)),
            _ => Err(Miss::Other),
        };
    }
    c.first(
        || {
            let (inner, high) = c.with_constant(v, BinaryOp::Min)?;
            let (x, low) = c.with_constant(inner, BinaryOp::Max)?;
            require(low <= high)?;
            Ok((x, low, high))
        },
        || {
            let (inner, low) = c.with_constant(v, BinaryOp::Max)?;
            let (x, high) = c.with_constant(inner, BinaryOp::Min)?;
            require(low <= high)?;
            Ok((x, low, high))
        },
    )
}

/// `x · min(max(x + 3, 0), 6) / 6`, the division anywhere, or `x · hard_sigmoid(x)` with slope 1/6 and offset ½.
pub(super) fn hard_swish(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (upper, lower) = sixths(c, root)?;
    let [x, y] = upper[..] else { return Err(Miss::Other) };
    let gate = |x: Value, y: Value| {
        if let Ok(Composite::HardSigmoid(h)) = c.composite(y) {
            require(c.operands(y)[0] == x && lower == 0)?;
            c.enter(y);
            let exact =
                h.beta.get() == 0.5 && (h.alpha.get() == 1.0 / 6.0 || c.is(h.alpha.get(), 1.0 / 6.0, x));
            require_of(exact, "hard_swish", "the slope is not 1/6, or the offset not ½")?;
            return Ok(x);
        }
        let (shifted, low, high) = clamped(c, y)?;
        require(c.with(shifted, BinaryOp::Add, 3.0)? == x)?;
        require_of(low == 0.0 && high == 6.0 && lower == 1, "hard_swish", "the bounds are not 0 and 6")?;
        Ok(x)
    };
    let x = c.first(|| gate(x, y), || gate(y, x))?;
    Ok(raised("hard_swish", ActivationOp::HardSwish, x))
}

/// The factors of a product, and how often it is divided by six.
fn sixths(c: &Chain<'_>, root: Value) -> Found<(Vec<Value>, usize)> {
    let (mut values, mut divisions) = (Vec::new(), 0);
    let mut pending = vec![root];
    while let Some(v) = pending.pop() {
        require(values.len() + pending.len() <= MAX_FACTORS)?;
        match c.primitive(v) {
            Ok(Primitive::Binary(b)) if b.op == BinaryOp::Mul => {
                c.enter(v);
                for operand in c.operands(v) {
                    match c.uniform(*operand) {
                        Some(number) if c.is(number, 1.0 / 6.0, v) => divisions += 1,
                        Some(_) => return Err(Miss::Other),
                        None => pending.push(*operand),
                    }
                }
            }
            Ok(Primitive::Binary(b)) if b.op == BinaryOp::Div => {
                require(c.uniform(c.operands(v)[1]) == Some(6.0))?;
                c.enter(v);
                divisions += 1;
                pending.push(c.operands(v)[0]);
            }
            _ => values.push(v),
        }
    }
    require(values.len() == 2)?;
    Ok((values, divisions))
}

/// x in ln(1 + eˣ), in a form that never overflows, or (`may_overflow`) in the plain one.
fn softplus_of(c: &Chain<'_>, v: Value, may_overflow: bool) -> Found<Value> {
    if let Ok(Composite::Softplus(s)) = c.composite(v) {
        require(s.beta.get() == 1.0 && s.threshold.is_none())?;
        c.enter(v);
        return Ok(c.operands(v)[0]);
    }
    let log_of_one_plus = |v: Value| {
        c.first(|| c.unary(v, UnaryOp::Log1p), || c.with(c.unary(v, UnaryOp::Log)?, BinaryOp::Add, 1.0))
    };
    c.first(
        || {
            c.commuted(v, BinaryOp::Add, |positive, rest| {
                let x = match c.composite(positive) {
                    Ok(Composite::Activation(a)) if a.op == ActivationOp::Relu => {
                        c.enter(positive);
                        c.operands(positive)[0]
                    }
                    _ => c.with(positive, BinaryOp::Max, 0.0)?,
                };
                let e = log_of_one_plus(rest)?;
                let magnitude = c.unary(c.unary(e, UnaryOp::Exp)?, UnaryOp::Neg)?;
                require(c.unary(magnitude, UnaryOp::Abs)? == x)?;
                Ok(x)
            })
        },
        || {
            let e = log_of_one_plus(v)?;
            let x = c.unary(e, UnaryOp::Exp)?;
            require_of(may_overflow, "softplus", "ln(1 + eˣ) overflows where softplus does not")?;
            Ok(x)
        },
    )
}

/// `max(x, 0) + ln(1 + exp(−|x|))`.
pub(super) fn softplus(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    require(c.composite(root).is_err())?;
    let x = softplus_of(c, root, false)?;
    let op = Softplus { beta: Real::new(1.0), threshold: None };
    Ok(Raised::new("softplus", move |b| b.push1(op, &[x])))
}

/// `x · tanh(ln(1 + eˣ))`; where the exponential overflows the tangent is 1 either way.
pub(super) fn mish(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let x = c.commuted(root, BinaryOp::Mul, |x, y| {
        require(softplus_of(c, c.unary(y, UnaryOp::Tanh)?, true)? == x)?;
        Ok(x)
    })?;
    Ok(raised("mish", ActivationOp::Mish, x))
}

/// `x · sigmoid(alpha · x)`, or `x / (1 + exp(−x))`.
pub(super) fn swish(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (x, alpha) = c.first(
        || {
            c.commuted(root, BinaryOp::Mul, |x, y| {
                let argument = c.unary(y, UnaryOp::Sigmoid)?;
                if argument == x {
                    return Ok((x, 1.0));
                }
                let (of, alpha) = c.with_constant(argument, BinaryOp::Mul)?;
                require(of == x && alpha != 0.0 && alpha.is_finite())?;
                Ok((x, alpha))
            })
        },
        || {
            let (x, below) = c.binary(root, BinaryOp::Div)?;
            require(one_plus_exp_of_negative(c, below)? == x)?;
            Ok((x, 1.0))
        },
    )?;
    require(rounded(alpha, c.dtype(x)) == Some(alpha))?;
    let op = Swish { alpha: Real::new(alpha) };
    Ok(Raised::new("swish", move |b| b.push1(op, &[x])))
}

/// A gate of SwiGLU or GEGLU times another value.
pub(super) fn gated(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let (gate, alpha, g, x) = c.commuted(root, BinaryOp::Mul, |g, x| {
        let (gate, alpha) = match c.composite(g)? {
            Composite::Swish(s) if s.alpha.get() == 1.0 => (GateFunction::Silu, None),
            Composite::Swish(s) => (GateFunction::Silu, Some(s.alpha)),
            Composite::Activation(a) if a.op == ActivationOp::Gelu => (GateFunction::Gelu, None),
            Composite::Activation(a) if a.op == ActivationOp::GeluTanh => (GateFunction::GeluTanh, None),
            _ => return Err(Miss::Other),
        };
        // A scale or a mask is no second half of a gated unit.
        require(!matches!(c.primitive(x), Ok(Primitive::Broadcast(_) | Primitive::Constant(_))))?;
        c.enter(g);
        Ok((gate, alpha, c.operands(g)[0], x))
    })?;
    Ok(Raised::new("gated", move |b| b.push1(Gated { gate, alpha }, &[g, x])))
}
