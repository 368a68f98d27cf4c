//! Batch norm after a convolution, taken into the convolution's weights.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of};
use rlx_ir::op::convolution::ConvBias;
use rlx_ir::op::elementwise::UnaryOp;
use rlx_ir::{Builder, Composite, Primitive, TypeError, Value};

const NAME: &str = "conv with batch norm";

/// `batch_norm(conv(x, w) + bias)` with constant parameters, as a convolution with `w · s` and
/// `(bias − mean) · s + shift`, where `s = scale / √(variance + eps)`. The new weights are computed once, when the
/// program is loaded.
pub(super) fn batch_norm(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let Composite::BatchNorm(norm) = c.composite(root)? else { return Err(Miss::Other) };
    let [conv, scale, shift, mean, variance] = c.operands(root)[..] else { return Err(Miss::Other) };
    let (op, bias) = match (c.primitive(conv), c.composite(conv)) {
        (Ok(Primitive::Conv(conv_op)), _) => {
            let plain = conv_op.lhs_dilation.iter().all(|d| *d == 1);
            require(plain && conv_op.accum.is_none() && conv_op.out.is_none())?;
            let op = ConvBias {
                strides: conv_op.strides.clone(),
                padding: conv_op.padding.clone(),
                dilations: conv_op.rhs_dilation.clone(),
                groups: conv_op.groups,
            };
            (op, None)
        }
        (_, Ok(Composite::ConvBias(op))) => (op.clone(), c.operands(conv).get(2).copied()),
        _ => return Err(Miss::Other),
    };
    c.enter(conv);
    require_of(norm.axis.of_rank(c.rank(root)) == Some(1), NAME, "the norm is not along the channels")?;
    let (x, w) = (c.operands(conv)[0], c.operands(conv)[1]);
    let mut parameters = vec![w, scale, shift, mean, variance];
    parameters.extend(bias);
    let constant = parameters.iter().all(|v| c.literal(*v).is_some());
    require_of(constant, NAME, "the weights are not constant")?;
    let dtype = c.dtype(x);
    require(parameters.iter().all(|v| c.dtype(*v) == dtype))?;
    let eps = norm.eps.get();
    Ok(Raised::new(NAME, move |b| {
        let (w, bias) = folded(b, [w, scale, shift, mean, variance], bias, eps)?;
        b.push1(op, &[x, w, bias])
    }))
}

fn folded(
    b: &mut Builder,
    [w, scale, shift, mean, variance]: [Value; 5],
    bias: Option<Value>,
    eps: f64,
) -> Result<(Value, Value), TypeError> {
    let shifted = b.add_scalar(variance, eps)?;
    let deviation = b.unary(UnaryOp::Sqrt, shifted)?;
    let factor = b.div(scale, deviation)?;
    let dims = b.shape(w);
    let factors = b.broadcast_in(factor, &dims, &[0])?;
    let w = b.mul(w, factors)?;
    let centred = match bias {
        Some(bias) => b.sub(bias, mean)?,
        None => b.unary(UnaryOp::Neg, mean)?,
    };
    let scaled = b.mul(centred, factor)?;
    Ok((w, b.add(scaled, shift)?))
}
