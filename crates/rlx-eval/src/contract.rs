//! Dot products and convolutions. Sums run over the contracted indices in order, one term at a time.

use crate::elementwise::complex_binary;
use crate::error::Fault;
use crate::oracle::Context;
use crate::precision::Precision;
use crate::tensor::{Data, Tensor, strides, walk};
use rlx_ir::DType;
use rlx_ir::op::contract::{Conv, Dot, IntegerDot};
use rlx_ir::op::elementwise::BinaryOp;

/// A product of matrices `[batch, m, k] · [batch, k, n]`.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
}

/// `sums[m, n] = round(sums[m, n] + lhs[m, k] · rhs[k, n])`, k in order. The product is exact before the rounding of
/// the sum for every type up to f32; f64 rounds it first.
fn multiply_floats(lhs: &[f64], rhs: &[f64], sums: &mut [f64], s: Sizes, round: impl Fn(f64) -> f64 + Copy) {
    for b in 0..s.batch {
        for m in 0..s.m {
            let row = &mut sums[(b * s.m + m) * s.n..][..s.n];
            for k in 0..s.k {
                let x = lhs[(b * s.m + m) * s.k + k];
                let column = &rhs[(b * s.k + k) * s.n..][..s.n];
                for (sum, y) in row.iter_mut().zip(column) {
                    *sum = round(*sum + x * y);
                }
            }
        }
    }
}

fn products<T: Copy>(lhs: &[T], rhs: &[T], zero: T, s: Sizes, step: impl Fn(T, T, T) -> T) -> Vec<T> {
    let mut sums = vec![zero; s.batch * s.m * s.n];
    for b in 0..s.batch {
        for m in 0..s.m {
            for k in 0..s.k {
                let x = lhs[(b * s.m + m) * s.k + k];
                for n in 0..s.n {
                    let sum = &mut sums[(b * s.m + m) * s.n + n];
                    *sum = step(*sum, x, rhs[(b * s.k + k) * s.n + n]);
                }
            }
        }
    }
    sums
}

/// Products in the accumulator's type; floats are rounded to it after each step.
fn multiply(precision: Precision, accum: DType, lhs: &Data, rhs: &Data, s: Sizes) -> Result<Data, Fault> {
    let bits = accum.bits().unwrap_or(64);
    let part = accum.complex_part().unwrap_or(accum);
    Ok(match (lhs, rhs) {
        (Data::Float(x), Data::Float(y)) => {
            let mut sums = vec![0.0; s.batch * s.m * s.n];
            match (precision, accum) {
                (Precision::Wide, _) | (_, DType::F64) => multiply_floats(x, y, &mut sums, s, |x| x),
                (_, DType::F32) => multiply_floats(x, y, &mut sums, s, |x| f64::from(x as f32)),
                _ => multiply_floats(x, y, &mut sums, s, |x| precision.round(accum, x)),
            }
            Data::Float(sums)
        }
        (Data::Signed(x), Data::Signed(y)) => {
            use crate::numeric::wrap::Integer;
            Data::Signed(products(x, y, 0, s, |sum: i64, x, y| sum.wrapped_add(x.wrapped_mul(y, bits), bits)))
        }
        (Data::Unsigned(x), Data::Unsigned(y)) => {
            use crate::numeric::wrap::Integer;
            Data::Unsigned(products(x, y, 0, s, |sum: u64, x, y| {
                sum.wrapped_add(x.wrapped_mul(y, bits), bits)
            }))
        }
        (Data::Complex(x), Data::Complex(y)) => Data::Complex(products(x, y, (0.0, 0.0), s, |sum, x, y| {
            let (re, im) = complex_binary(BinaryOp::Mul, x, y).unwrap_or((f64::NAN, f64::NAN));
            (precision.round(part, sum.0 + re), precision.round(part, sum.1 + im))
        })),
        _ => return Err(Fault::Unsupported { what: "dot".into(), found: accum.to_string() }),
    })
}

/// The elements with the axes in this order.
fn arranged(x: &Tensor, order: &[usize]) -> Data {
    let own = strides(&x.dims);
    let dims: Vec<usize> = order.iter().map(|i| x.dims[*i]).collect();
    let steps: Vec<isize> = order.iter().map(|i| own[*i] as isize).collect();
    x.data.pick(&walk(&dims, &steps, 0))
}

fn free_axes(x: &Tensor, batch: &[usize], contract: &[usize]) -> Vec<usize> {
    (0..x.dims.len()).filter(|i| !batch.contains(i) && !contract.contains(i)).collect()
}

fn size(x: &Tensor, axes: &[usize]) -> usize {
    axes.iter().map(|i| x.dims[*i]).product()
}

/// Both sides as batches of matrices.
fn matrices(lhs: &Tensor, rhs: &Tensor, axes: &IntegerDot) -> (Data, Data, Sizes) {
    let lhs_free = free_axes(lhs, &axes.lhs_batch, &axes.lhs_contract);
    let rhs_free = free_axes(rhs, &axes.rhs_batch, &axes.rhs_contract);
    let sizes = Sizes {
        batch: size(lhs, &axes.lhs_batch),
        m: size(lhs, &lhs_free),
        k: size(lhs, &axes.lhs_contract),
        n: size(rhs, &rhs_free),
    };
    let left: Vec<usize> = [&axes.lhs_batch[..], &lhs_free, &axes.lhs_contract].concat();
    let right: Vec<usize> = [&axes.rhs_batch[..], &axes.rhs_contract, &rhs_free].concat();
    (arranged(lhs, &left), arranged(rhs, &right), sizes)
}

/// Rounds what was accumulated to the result's type.
fn finish(precision: Precision, dtype: DType, data: Data) -> Data {
    use crate::numeric::wrap::Integer;
    let bits = dtype.bits().unwrap_or(64);
    match data {
        Data::Float(mut v) => {
            precision.round_all(dtype, &mut v);
            Data::Float(v)
        }
        Data::Signed(v) => Data::Signed(v.into_iter().map(|x| x.wrap(bits)).collect()),
        Data::Unsigned(v) => Data::Unsigned(v.into_iter().map(|x| x.wrap(bits)).collect()),
        Data::Complex(v) => {
            let part = dtype.complex_part().unwrap_or(dtype);
            let round = |(re, im)| (precision.round(part, re), precision.round(part, im));
            Data::Complex(v.into_iter().map(round).collect())
        }
        blocks => blocks,
    }
}

/// The accumulator of a contraction: as given, else f32 for narrower floats, else the operands' or a wider result type.
fn accumulator(operand: DType, accum: Option<DType>, out: DType) -> DType {
    accum.unwrap_or(if operand.is_float() {
        operand.dot_accumulator()
    } else if out.bits() > operand.bits() {
        out
    } else {
        operand
    })
}

pub(crate) fn dot(cx: &Context<'_>, op: &Dot, lhs: &Tensor, rhs: &Tensor) -> Result<Tensor, Fault> {
    let axes = IntegerDot {
        lhs_batch: op.lhs_batch.clone(),
        rhs_batch: op.rhs_batch.clone(),
        lhs_contract: op.lhs_contract.clone(),
        rhs_contract: op.rhs_contract.clone(),
    };
    let (left, right, sizes) = matrices(lhs, rhs, &axes);
    let dtype = cx.dtype(0);
    let accum = accumulator(lhs.dtype, op.accum, dtype);
    let sums = multiply(cx.precision, accum, &left, &right, sizes)?;
    Ok(Tensor::new(dtype, cx.dims(0)?, finish(cx.precision, dtype, sums)))
}

pub(crate) fn integer_dot(
    cx: &Context<'_>,
    op: &IntegerDot,
    lhs: &Tensor,
    rhs: &Tensor,
) -> Result<Tensor, Fault> {
    let signed = |x: &Tensor| Tensor::new(DType::I32, x.dims.clone(), Data::Signed(x.to_i64s()));
    let (left, right, sizes) = matrices(&signed(lhs), &signed(rhs), op);
    let sums = multiply(cx.precision, DType::I32, &left, &right, sizes)?;
    Ok(Tensor::new(DType::I32, cx.dims(0)?, sums))
}

/// Output positions handled at once, so that the gathered input stays small.
const CONV_CHUNK: usize = 4096;

pub(crate) fn conv(cx: &Context<'_>, op: &Conv, x: &Tensor, w: &Tensor) -> Result<Tensor, Fault> {
    let dims = cx.dims(0)?;
    let dtype = cx.dtype(0);
    let accum = accumulator(x.dtype, op.accum, dtype);
    let (batch, out_channels) = (dims[0], dims[1]);
    let (out_spatial, kernel) = (&dims[2..], &w.dims[2..]);
    let low: Vec<i64> = op.padding.iter().map(|(low, _)| low.eval(cx.bindings)).collect::<Result<_, _>>()?;
    let (positions, taps): (usize, usize) = (out_spatial.iter().product(), kernel.iter().product());
    let group_in = w.dims[1];
    let group_out = out_channels / op.groups;
    let in_plane: usize = x.dims[2..].iter().product();
    let (out_strides, kernel_strides, in_strides) =
        (strides(out_spatial), strides(kernel), strides(&x.dims[2..]));

    // The input position that output `position` reads through kernel tap `tap`, if it is neither padding nor a gap.
    let source = |position: usize, tap: usize| -> Option<usize> {
        let mut at = 0;
        for axis in 0..kernel.len() {
            let o = (position / out_strides[axis] % out_spatial[axis]) as i64;
            let k = (tap / kernel_strides[axis] % kernel[axis]) as i64;
            let dilated = o * op.strides[axis] + k * op.rhs_dilation[axis] - low[axis];
            let i = dilated / op.lhs_dilation[axis];
            if dilated < 0 || dilated % op.lhs_dilation[axis] != 0 || i >= x.dims[axis + 2] as i64 {
                return None;
            }
            at += i as usize * in_strides[axis];
        }
        Some(at)
    };
    // Gaps read the zero that stands after the input.
    let zero = Tensor::new(x.dtype, vec![1], zero_of(&x.data));
    let mut result = Data::empty(dtype);
    let mut planes: Vec<Data> = Vec::new();
    for n in 0..batch {
        for g in 0..op.groups {
            let weights: Vec<usize> =
                (g * group_out * group_in * taps..(g + 1) * group_out * group_in * taps).collect();
            let weights = w.data.pick(&weights);
            let mut chunks = Vec::new();
            for start in (0..positions).step_by(CONV_CHUNK) {
                let end = (start + CONV_CHUNK).min(positions);
                let mut sources = Vec::with_capacity(group_in * taps * (end - start));
                for c in 0..group_in {
                    let plane = (n * x.dims[1] + g * group_in + c) * in_plane;
                    for tap in 0..taps {
                        sources.extend(
                            (start..end).map(|p| source(p, tap).map_or((1, 0), |at| (0, plane + at))),
                        );
                    }
                }
                let columns = Data::pick_from(&[&x.data, &zero.data], &sources);
                let sizes = Sizes { batch: 1, m: group_out, k: group_in * taps, n: end - start };
                chunks.push((multiply(cx.precision, accum, &weights, &columns, sizes)?, end - start));
            }
            // Chunks are [group_out, chunk]: put each output channel's pieces together.
            for o in 0..group_out {
                let mut plane = Data::empty(accum);
                for (chunk, width) in &chunks {
                    let row: Vec<usize> = (o * width..(o + 1) * width).collect();
                    plane.append(&chunk.pick(&row));
                }
                planes.push(plane);
            }
        }
    }
    for plane in planes {
        result.append(&finish(cx.precision, dtype, plane));
    }
    Ok(Tensor::new(dtype, dims, result))
}

fn zero_of(data: &Data) -> Data {
    match data {
        Data::Float(_) => Data::Float(vec![0.0]),
        Data::Signed(_) => Data::Signed(vec![0]),
        Data::Unsigned(_) => Data::Unsigned(vec![0]),
        Data::Complex(_) => Data::Complex(vec![(0.0, 0.0)]),
        Data::Blocks(b) => Data::Blocks(b.clone()),
    }
}
