//! Constants, counters and sizes.

use crate::error::Fault;
use crate::numeric::wrap::Integer;
use crate::oracle::Context;
use crate::tensor::{Data, Tensor, strides};
use rlx_ir::DType;
use rlx_ir::DTypeClass;
use rlx_ir::op::source::{BindDim, Constant, DimValue, Iota};

pub(crate) fn constant(op: &Constant) -> Result<Tensor, Fault> {
    Tensor::from_literal(&op.value)
        .ok_or_else(|| Fault::Unsupported { what: "constant".into(), found: op.value.dtype().to_string() })
}

pub(crate) fn iota(cx: &Context<'_>, op: &Iota) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let dtype = op.ty.dtype;
    let stride = strides(&dims)[op.axis];
    let size = dims[op.axis].max(1);
    let count: usize = dims.iter().product();
    let along = (0..count).map(|i| i / stride % size);
    let (start, step) = (op.start.get(), op.step.get());
    let bits = dtype.bits().unwrap_or(64);
    let data = match dtype.class() {
        // The product of an index below 2^53 and the step is rounded once in f64, the sum once more.
        DTypeClass::Float => {
            Data::Float(along.map(|i| cx.round(dtype, (i as f64).mul_add(step, start))).collect())
        }
        DTypeClass::Signed => {
            let (start, step) = (start as i64, step as i64);
            Data::Signed(along.map(|i| start.wrapping_add(step.wrapping_mul(i as i64)).wrap(bits)).collect())
        }
        _ => {
            let (start, step) = (start as i64 as u64, step as i64 as u64);
            Data::Unsigned(
                along.map(|i| start.wrapping_add(step.wrapping_mul(i as u64)).wrap(bits)).collect(),
            )
        }
    };
    Ok(Tensor::new(dtype, dims, data))
}

pub(crate) fn dim_value(cx: &Context<'_>, op: &DimValue) -> Result<Tensor, Fault> {
    Ok(Tensor::new(DType::I64, Vec::new(), Data::Signed(vec![op.dim.eval(cx.bindings)?])))
}

pub(crate) fn bind_dim(op: &BindDim, x: &Tensor) -> Result<Tensor, Fault> {
    let value = x.scalar_i64();
    if value < op.min {
        return Err(Fault::BelowMinimum { value, min: op.min });
    }
    Ok(x.clone())
}
