//! Fourier transforms: computed in f64 and rounded once.

use crate::error::Fault;
use crate::numeric::fft::{Direction, real_forward, real_inverse, transform_axis};
use crate::oracle::Context;
use crate::reduce::for_each_line;
use crate::tensor::{Data, Tensor};
use rlx_ir::op::spectral::{Fft, FftOp};

pub(crate) fn fft(cx: &Context<'_>, op: &Fft, x: &Tensor) -> Result<Tensor, Fault> {
    let (dims, dtype) = (cx.dims(0)?, cx.dtype(0));
    let part = dtype.complex_part().unwrap_or(dtype);
    let round = |(re, im)| (cx.round(part, re), cx.round(part, im));
    let data = match op.op {
        FftOp::Forward | FftOp::Inverse => {
            let direction = if op.op == FftOp::Forward { Direction::Forward } else { Direction::Inverse };
            let mut elements = x.to_complex();
            transform_axis(&mut elements, &x.dims, op.axis, direction);
            Data::Complex(elements.into_iter().map(round).collect())
        }
        FftOp::Real => {
            let elements = x.as_floats();
            let mut lines = Vec::new();
            for_each_line(&x.dims, op.axis, |_, at| {
                lines.push(real_forward(&at.iter().map(|i| elements[*i]).collect::<Vec<_>>()));
            });
            Data::Complex(placed(&dims, op.axis, &lines, (0.0, 0.0)).into_iter().map(round).collect())
        }
        FftOp::RealInverse => {
            let (elements, length) = (x.to_complex(), dims[op.axis]);
            let mut lines = Vec::new();
            for_each_line(&x.dims, op.axis, |_, at| {
                lines.push(real_inverse(&at.iter().map(|i| elements[*i]).collect::<Vec<_>>(), length));
            });
            Data::Float(placed(&dims, op.axis, &lines, 0.0).into_iter().map(|x| cx.round(dtype, x)).collect())
        }
    };
    Ok(Tensor::new(dtype, dims, data))
}

/// Lines put back along an axis of a tensor of these sizes.
fn placed<T: Copy>(dims: &[usize], axis: usize, lines: &[Vec<T>], zero: T) -> Vec<T> {
    let mut all = vec![zero; dims.iter().product()];
    for_each_line(dims, axis, |line, at| {
        for (position, element) in at.iter().zip(&lines[line]) {
            all[*position] = *element;
        }
    });
    all
}
