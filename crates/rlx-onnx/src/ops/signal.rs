//! Signals: Fourier transforms, windows and the mel filter matrix.

use rlx_ir::op::Axis;
use rlx_ir::op::audio::{CosineWindow, Dft, Stft};
use rlx_ir::op::mel::MelWeightMatrix;
use rlx_ir::{DType, Dim, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("BlackmanWindow", &[17], |cx| window(cx, CosineWindow::blackman)),
    onnx("DFT", &[17, 20], dft),
    onnx("HammingWindow", &[17], |cx| window(cx, CosineWindow::onnx_hamming)),
    onnx("HannWindow", &[17], |cx| window(cx, CosineWindow::hann)),
    onnx("MelWeightMatrix", &[17], mel_weight_matrix),
    onnx("STFT", &[17], stft),
];

/// A window, in f64 and then cast where the type asked for is no floating-point one.
fn window(cx: &mut NodeContext<'_, '_>, of: fn(Dim, bool, DType) -> CosineWindow) -> Handled {
    let size = cx.dim(0, "window")?;
    let periodic = cx.flag("periodic", true)?;
    let to = cx.element_type("output_datatype")?.unwrap_or(DType::F32);
    let dtype = if to.is_float() { to } else { DType::F64 };
    let b = cx.builder();
    let y = b.push1(of(size, periodic, dtype), &[])?;
    Ok(b.cast(y, to)?.into())
}

fn dft(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let length = if cx.has(1) { Some(cx.dim(1, "dft_length")?) } else { None };
    let axis = match (cx.since() >= 20, cx.has(2)) {
        (true, true) => cx.constant_int(2, "the axis")?,
        (true, false) => -2,
        (false, _) => cx.int("axis", 1)?,
    };
    let (inverse, onesided) = (cx.flag("inverse", false)?, cx.flag("onesided", false)?);
    let op = Dft { axis: Axis(axis), length, inverse, onesided };
    Ok(cx.builder().push1(op, &[x])?.into())
}

fn stft(cx: &mut NodeContext<'_, '_>) -> Handled {
    let signal = cx.input(0)?;
    let step = cx.constant_int(1, "the distance of frames")?;
    let window = cx.optional(2)?;
    let shape = cx.shape(signal);
    if !(2..=3).contains(&shape.rank()) {
        return Err(cx.bad_input(0, "number of axes", 3, shape.rank()));
    }
    let frame_length = match (cx.has(3), window) {
        (true, _) => cx.dim(3, "frame_length")?,
        (false, Some(window)) => cx.shape(window).last().cloned().unwrap_or(Dim::ONE),
        (false, None) => shape[1].clone(),
    };
    let onesided = cx.flag("onesided", true)?;
    let b = cx.builder();
    // The specification's examples leave the last axis of a real signal out.
    let signal = if shape.rank() == 2 { b.unsqueeze(signal, 2)? } else { signal };
    let operands: Vec<Value> = std::iter::once(signal).chain(window).collect();
    Ok(b.push1(Stft { step, frame_length, onesided }, &operands)?.into())
}

fn mel_weight_matrix(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mels = cx.constant_int(0, "the number of filters")?;
    let dft_length = cx.constant_int(1, "the number of frequencies")?;
    let sample_rate = cx.constant_int(2, "the filters")?;
    let low = edge(cx, 3)?;
    let high = edge(cx, 4)?;
    let to = cx.element_type("output_datatype")?.unwrap_or(DType::F32);
    let mels = usize::try_from(mels).map_err(|_| cx.bad_input(0, "filters", "at least 1", mels))?;
    let dtype = if to.is_float() { to } else { DType::F64 };
    let op = MelWeightMatrix { mels, dft_length, sample_rate, low: low.into(), high: high.into(), dtype };
    let b = cx.builder();
    let y = b.push1(op, &[])?;
    Ok(b.cast(y, to)?.into())
}

/// A frequency, which decides the filters.
fn edge(cx: &mut NodeContext<'_, '_>, i: usize) -> Result<f64, NodeProblem> {
    match cx.constant_floats(i, "the filters")?.as_slice() {
        [one] => Ok(*one),
        many => Err(cx.bad_input(i, "number of elements", 1, many.len())),
    }
}
