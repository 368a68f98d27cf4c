//! Linear quantisation from divisions, roundings and clamps, and dequantisation from casts and products.

use super::Raised;
use super::chain::{Chain, Found, Miss, require, require_of};
use rlx_ir::op::Axis;
use rlx_ir::op::elementwise::{BinaryOp, UnaryOp};
use rlx_ir::op::linear_quantisation::{DequantizeLinear, QuantizeLinear};
use rlx_ir::{Composite, DType, Dim, Primitive, Value};

/// x of a cast.
fn cast_from(c: &Chain<'_>, v: Value) -> Found<Value> {
    let Primitive::Cast(_) = c.primitive(v)? else { return Err(Miss::Other) };
    c.enter(v);
    Ok(c.operands(v)[0])
}

/// `cast(min(max(round(x / scale), least), greatest))` to 8 bits, with a constant scale and no zero point.
pub(super) fn quantised(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    let to = c.dtype(root);
    let (least, greatest) = match to {
        DType::I8 => (-128.0, 127.0),
        DType::U8 => (0.0, 255.0),
        _ => return Err(Miss::Other),
    };
    let clamped = cast_from(c, root)?;
    let (inner, high) = c.with_constant(clamped, BinaryOp::Min)?;
    let (rounded, low) = c.with_constant(inner, BinaryOp::Max)?;
    let quotient = c.first(
        || c.unary(rounded, UnaryOp::Round),
        || {
            let (with_zero_point, _) = c.with_constant(rounded, BinaryOp::Add)?;
            c.unary(with_zero_point, UnaryOp::Round)?;
            Err(Miss::Near("quantize_linear", "with a zero point NaN becomes 0, not the zero point"))
        },
    )?;
    let (x, scale) = c.with_constant(quotient, BinaryOp::Div)?;
    let full = low == least && high == greatest;
    require_of(full, "quantize_linear", "the bounds are not the type's")?;
    let dtype = c.dtype(x);
    require(matches!(dtype, DType::F32 | DType::F64) && scale > 0.0 && scale.is_finite())?;
    let op = QuantizeLinear { axis: Axis(0), block_size: 0, to, saturate: true, precision: None };
    Ok(Raised::new("quantize_linear", move |b| {
        let scale = b.scalar(scale, dtype)?;
        b.push1(op, &[x, scale])
    }))
}

/// `cast(x) · scale` or `cast(x − zero point) · scale` of 8-bit and 4-bit constants and of what was quantised.
pub(super) fn dequantised(c: &Chain<'_>, root: Value) -> Found<Raised<'static>> {
    c.commuted(root, BinaryOp::Mul, |whole, scale| {
        let inner = cast_from(c, whole)?;
        let to = c.dtype(root);
        require(to.is_float() && c.dtype(scale) == to)?;
        let (x, zero_point) = c
            .attempt(|| {
                let (x, zero_point) = c.binary(inner, BinaryOp::Sub)?;
                require(matches!(c.dtype(inner), DType::I32 | DType::I16))?;
                let zero_point = c.uniform(zero_point).ok_or(Miss::Other)?;
                Ok((cast_from(c, x)?, Some(zero_point)))
            })
            .unwrap_or((inner, None));
        let dtype = c.dtype(x);
        require(matches!(dtype, DType::I8 | DType::U8 | DType::I4 | DType::U4))?;
        let quantised = matches!(c.composite(x), Ok(Composite::QuantizeLinear(_)));
        require(c.literal(x).is_some() || quantised)?;
        let source = match c.primitive(scale) {
            Ok(Primitive::Broadcast(_)) => c.operands(scale)[0],
            _ => scale,
        };
        let dims = c.dims(source);
        let added = c.rank(x) - dims.len();
        let wide: Vec<usize> = (0..dims.len()).filter(|i| dims[*i] != Dim::ONE).collect();
        let axis = match wide[..] {
            [] => 0,
            [axis] if dims[axis] == c.dims(x)[axis + added] => axis + added,
            _ => return Err(Miss::Near("dequantize_linear", "the scale lies along several axes")),
        };
        let sizes: Vec<Dim> = wide.iter().map(|i| dims[*i].clone()).collect();
        let op = DequantizeLinear { axis: Axis(axis as i64), block_size: 0, to };
        Ok(Raised::new("dequantize_linear", move |b| {
            let mut operands = vec![x, b.reshape(source, &sizes)?];
            if let Some(zero_point) = zero_point {
                let zero_point = b.scalar(zero_point, dtype)?;
                operands.push(b.broadcast_to(zero_point, &sizes)?);
            }
            b.push1(op, &operands)
        }))
    })
}
