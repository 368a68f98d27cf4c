//! Block-quantised formats.

use crate::error::Fault;
use crate::oracle::Context;
use crate::quant;
use crate::tensor::{Data, Tensor};
use rlx_ir::op::quant::Dequantise;

pub(crate) fn dequantise(cx: &Context<'_>, op: &Dequantise, x: &Tensor) -> Result<Tensor, Fault> {
    let Data::Blocks(blocks) = &*x.data else {
        return Err(Fault::Unsupported { what: "dequantise".into(), found: x.dtype.to_string() });
    };
    let mut elements = vec![0f32; x.count()];
    quant::dequantise(blocks.format, &blocks.bytes, &mut elements)?;
    let elements = elements.into_iter().map(|e| cx.round(op.to, e.into())).collect();
    Ok(Tensor::floats(op.to, x.dims.clone(), elements))
}
