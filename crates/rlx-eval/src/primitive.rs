//! The one place that knows which function computes which primitive.

use crate::error::Fault;
use crate::oracle::Context;
use crate::tensor::Tensor;
use crate::{
    contract, control, elementwise, index, linalg, movement, quantised, random, reduce, sort, source,
    spectral, suppression, window,
};
use rlx_ir::Primitive;

/// The results of one primitive.
pub(crate) fn run(
    cx: &Context<'_>,
    primitive: &Primitive,
    operands: &[Tensor],
) -> Result<Vec<Tensor>, Fault> {
    let one = |tensor: Result<Tensor, Fault>| tensor.map(|t| vec![t]);
    match primitive {
        // Inputs are there before any node runs.
        Primitive::Input(_) => Ok(Vec::new()),
        Primitive::Constant(op) => one(source::constant(op)),
        Primitive::Iota(op) => one(source::iota(cx, op)),
        Primitive::DimValue(op) => one(source::dim_value(cx, op)),
        Primitive::BindDim(op) => one(source::bind_dim(op, &operands[0])),
        Primitive::Unary(op) => one(elementwise::unary(cx, op.op, &operands[0])),
        Primitive::Binary(op) => one(elementwise::binary(cx, op.op, &operands[0], &operands[1])),
        Primitive::Compare(op) => one(elementwise::compare(op.op, &operands[0], &operands[1])),
        Primitive::Select(_) => one(elementwise::select(operands)),
        Primitive::Cast(op) => one(elementwise::cast(cx, op, &operands[0])),
        Primitive::Bitcast(op) => one(elementwise::bitcast(op, &operands[0])),
        Primitive::MakeComplex(_) => one(elementwise::make_complex(cx, &operands[0], &operands[1])),
        Primitive::Reshape(_) => one(cx.dims(0).map(|dims| operands[0].reshaped(dims))),
        Primitive::Transpose(op) => one(movement::transpose(op, &operands[0])),
        Primitive::Broadcast(_) => one(movement::broadcast(cx, &operands[0])),
        Primitive::Slice(op) => one(movement::slice(cx, op, &operands[0])),
        Primitive::Pad(op) => one(movement::pad(cx, op, &operands[0], &operands[1])),
        Primitive::Concat(op) => one(movement::concat(cx, op, operands)),
        Primitive::Reverse(op) => one(movement::reverse(op, &operands[0])),
        Primitive::Reduce(op) => one(reduce::reduce(cx, op, &operands[0])),
        Primitive::SumTo(_) => one(reduce::sum_to(cx, &operands[0])),
        Primitive::Cumulative(op) => one(reduce::cumulative(cx, op, &operands[0])),
        Primitive::ArgReduce(op) => one(reduce::arg_reduce(cx, op, &operands[0])),
        Primitive::Sort(op) => sort::sort(op, operands),
        Primitive::TopK(op) => sort::top_k(cx, op, &operands[0]),
        Primitive::Dot(op) => one(contract::dot(cx, op, &operands[0], &operands[1])),
        Primitive::IntegerDot(op) => one(contract::integer_dot(cx, op, &operands[0], &operands[1])),
        Primitive::Conv(op) => one(contract::conv(cx, op, &operands[0], &operands[1])),
        Primitive::ReduceWindow(op) => one(window::reduce_window(cx, op, &operands[0], &operands[1])),
        Primitive::ReduceWindowGrad(op) => {
            one(window::reduce_window_grad(cx, op, &operands[0], &operands[1]))
        }
        Primitive::Gather(op) => one(index::gather(cx, op, operands)),
        Primitive::GatherAlong(op) => one(index::gather_along(cx, op, operands)),
        Primitive::Scatter(op) => one(index::scatter(cx, op, operands)),
        Primitive::ScatterAlong(op) => one(index::scatter_along(cx, op, operands)),
        Primitive::DynamicSlice(op) => one(index::dynamic_slice(cx, op, &operands[0], &operands[1])),
        Primitive::DynamicUpdate(op) => one(index::dynamic_update(op, operands)),
        Primitive::NonZero(_) => one(Ok(index::non_zero(&operands[0]))),
        Primitive::NonMaxSuppression(op) => one(Ok(suppression::non_max_suppression(op, operands))),
        Primitive::RandomBits(_) => one(random::random_bits(cx, &operands[0], &operands[1])),
        Primitive::Fft(op) => one(spectral::fft(cx, op, &operands[0])),
        Primitive::Dequantise(op) => one(quantised::dequantise(cx, op, &operands[0])),
        Primitive::Cholesky(_) => linalg::cholesky(cx, &operands[0]),
        Primitive::TriangularSolve(op) => linalg::triangular_solve(cx, op, &operands[0], &operands[1]),
        Primitive::Lu(_) => linalg::lu(cx, &operands[0]),
        Primitive::Qr(op) => linalg::qr(cx, op, &operands[0]),
        Primitive::Eigh(_) => linalg::eigh(cx, &operands[0]),
        Primitive::Svd(op) => linalg::svd(cx, op, &operands[0]),
        Primitive::If(op) => control::branch(cx, op, operands),
        Primitive::While(op) => control::repeat(cx, op, operands),
        Primitive::Scan(op) => control::scan(cx, op, operands),
        Primitive::Call(op) => control::call(cx, op, operands),
        Primitive::Custom(op) => control::custom(op, operands),
    }
}
