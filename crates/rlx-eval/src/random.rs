//! Random bits.

use crate::error::Fault;
use crate::numeric::philox;
use crate::oracle::Context;
use crate::tensor::{Data, Tensor};
use rlx_ir::DType;

pub(crate) fn random_bits(cx: &Context<'_>, key: &Tensor, counter: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let (Data::Unsigned(key), Data::Unsigned(counter)) = (&*key.data, &*counter.data) else {
        return Err(Fault::Unsupported { what: "random_bits".into(), found: key.dtype.to_string() });
    };
    let bits = philox::random_bits([key[0], key[1]], counter[0], dims.iter().product());
    Ok(Tensor::new(DType::U32, dims, Data::Unsigned(bits.into_iter().map(u64::from).collect())))
}
