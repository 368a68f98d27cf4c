//! Audio: transforms with real and imaginary parts as an axis, short-time transforms, windows, mel filters and
//! spectrograms.
//!
//! Complex numbers are a last axis of size 2, as in ONNX. Narrow floats are computed in f32.

use super::elementwise::{CompareOp, MakeComplex, UnaryOp};
use super::norm::statistics_dtype;
use super::reduce::ReduceOp;
use super::spectral::{Fft, FftOp};
use super::unfold::{Col2im, Windows};
use super::{Axis, CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::op::arrange::{PadFrom, PadFromOp};
use crate::op::mel::{MelFilters, MelScale};
use crate::operation;
use crate::types::TensorType;

operation! {
    /// Discrete Fourier transform along an axis (ONNX DFT). x \[…, 1\] is real, \[…, 2\] complex; the result is complex,
    /// but real for `inverse` and `onesided` together (irfft). `onesided` alone gives elements 0 to length/2.
    /// C1: floating point. C2: −rank ≤ axis < rank, and not the last. C3: the last size is 1 or 2; 1 for onesided
    /// forward, 2 for onesided inverse. C4: the length is at least 1.
    pub struct Dft = "dft" {
        /// The axis.
        axis: Axis,
        /// Elements transformed, cut or padded with zeros; without it the axis's (onesided inverse: 2 · (size − 1)).
        length: Option<Dim>,
        /// From frequencies to signal, divided by the length.
        inverse: bool,
        /// Only the half of the spectrum that says all of a real signal.
        onesided: bool,
    }
}

operation! {
    /// Short-time Fourier transform (ONNX STFT): signal \[batch, length, 1 or 2\] cut into frames of `frame_length` every
    /// `step`, times the window (operand 1, if there is one), each transformed: \[batch, frames, bins, 2\].
    /// C1: floating point, one type. C2: rank 3 and a last size of 1 or 2 (1 for onesided). C3: step and frame length
    /// at least 1, no longer than the signal. C4: the window has `frame_length` elements.
    pub struct Stft = "stft" {
        /// Distance of frames.
        step: i64,
        /// Elements of a frame.
        frame_length: Dim,
        /// Only bins 0 to frame_length/2.
        onesided: bool,
    }
}

operation! {
    /// The signal \[batch, length\] whose `stft` with a window (operand 1, \[frame_length\]) this spectrum \[batch, frames,
    /// bins, 2\] is: windowed frames overlapped and added, divided by the overlapped squares of the window (where these
    /// are above 1e−11). C1: floating point, one type. C2: rank 4 with a last size of 2. C3: step at least 1, and
    /// frame_length/2 + 1 bins (onesided) or frame_length.
    pub struct Istft = "istft" {
        /// Distance of frames.
        step: i64,
        /// Whether the spectrum is onesided.
        onesided: bool,
        /// Whether half a frame is cut off at both ends, as of a signal that was padded so.
        center: bool,
    }
}

operation! {
    /// y\[n\] = Σ (−1)^k a_k cos(2πkn/N) over `size` elements; N is the size, or one less if not periodic. A window of one
    /// element is 1. Computed in f64, rounded once. C1: floating point. C2: the size is not negative.
    pub struct CosineWindow = "cosine_window" {
        /// a₀, a₁ ….
        coefficients: Vec<Real>,
        /// Elements.
        size: Dim,
        /// One period without its end, instead of symmetric.
        periodic: bool,
        /// The result's type.
        dtype: DType,
    }
}

operation! {
    /// Whisper's features of a signal \[batch, samples\]: frames of `n_fft` every `step`, centred by reflection, periodic
    /// Hann window, powers of all frames but the last, mel filters (Slaney's scale and areas, 0 to half the sample
    /// rate), log₁₀ not below 1e−10, not below the greatest of the batch item − 8, then (y + 4)/4:
    /// \[batch, mels, samples / step\]. C1: floating point. C2: rank 2. C3: n_fft even and at least 2, step and mels at
    /// least 1, n_fft/2 samples at least.
    pub struct LogMelSpectrogram = "log_mel_spectrogram" {
        /// Elements of a frame.
        n_fft: i64,
        /// Distance of frames.
        step: i64,
        /// Mel filters.
        mels: usize,
        /// Samples a second.
        sample_rate: Real,
    }
}

impl CosineWindow {
    fn with(coefficients: &[f64], size: Dim, periodic: bool, dtype: DType) -> CosineWindow {
        CosineWindow {
            coefficients: coefficients.iter().map(|a| Real::new(*a)).collect(),
            size,
            periodic,
            dtype,
        }
    }

    /// ½ − ½ cos.
    pub fn hann(size: Dim, periodic: bool, dtype: DType) -> CosineWindow {
        Self::with(&[0.5, 0.5], size, periodic, dtype)
    }

    /// 0.54 − 0.46 cos (numpy, scipy, PyTorch).
    pub fn hamming(size: Dim, periodic: bool, dtype: DType) -> CosineWindow {
        Self::with(&[0.54, 0.46], size, periodic, dtype)
    }

    /// 25/46 − 21/46 cos (ONNX).
    pub fn onnx_hamming(size: Dim, periodic: bool, dtype: DType) -> CosineWindow {
        Self::with(&[25.0 / 46.0, 21.0 / 46.0], size, periodic, dtype)
    }

    /// 0.42 − ½ cos + 0.08 cos of twice the angle.
    pub fn blackman(size: Dim, periodic: bool, dtype: DType) -> CosineWindow {
        Self::with(&[0.42, 0.5, 0.08], size, periodic, dtype)
    }
}

impl OpDef for CosineWindow {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(0)?;
        cx.ensure(self.dtype.is_float(), "C1", None, "type", "a floating-point type", self.dtype)?;
        cx.at_most("C2", None, "size is negative", &Dim::ZERO, &self.size)?;
        Ok(one(TensorType::new(self.dtype, vec![self.size.clone()])))
    }
}

impl CompositeDef for CosineWindow {
    fn decompose(&self, b: &mut Builder, _: &[Value]) -> Result<Values, TypeError> {
        let n = b.iota(DType::F64, std::slice::from_ref(&self.size), 0)?;
        let period = if self.periodic { self.size.clone() } else { self.size.clone() - 1 };
        let period = b.dim_like(&period.max(&Dim::ONE), n)?;
        let mut sum = b.like(0.0, n)?;
        for (k, a) in self.coefficients.iter().enumerate() {
            let turns = b.mul_scalar(n, k as f64)?;
            let turns = b.div(turns, period)?;
            let angle = b.mul_scalar(turns, std::f64::consts::TAU)?;
            let wave = b.unary(UnaryOp::Cos, angle)?;
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            let term = b.mul_scalar(wave, sign * a.get())?;
            sum = b.add(sum, term)?;
        }
        let size = b.dim_like(&self.size, sum)?;
        let single = b.compare_scalar(CompareOp::Eq, size, 1.0)?;
        let unit = b.like(1.0, sum)?;
        let sum = b.select(single, unit, sum)?;
        Ok(Values::from_slice(&[b.cast(sum, self.dtype)?]))
    }
}

impl Dft {
    fn length(&self, size: &Dim) -> Dim {
        match &self.length {
            Some(length) => length.clone(),
            None if self.inverse && self.onesided => (size.clone() - 1) * 2,
            None => size.clone(),
        }
    }
}

impl OpDef for Dft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        cx.rank_at_least("C2", 0, 2)?;
        let axis = self.axis.resolve(cx, "C2", x.rank())?;
        let last = x.rank() - 1;
        cx.ensure(axis != last, "C2", None, "axis", format!("not {last}"), axis)?;
        let parts = x.shape[last].as_const();
        let fits = match (self.onesided, self.inverse) {
            (true, false) => parts == Some(1),
            (true, true) => parts == Some(2),
            _ => matches!(parts, Some(1 | 2)),
        };
        let expected = if self.onesided && !self.inverse {
            "1"
        } else if self.onesided {
            "2"
        } else {
            "1 or 2"
        };
        cx.ensure(fits, "C3", Some(0), "last size", expected, &x.shape[last])?;
        let length = self.length(&x.shape[axis]);
        cx.at_most("C4", Some(0), "length", &Dim::ONE, &length)?;
        let (size, parts) = match (self.onesided, self.inverse) {
            (true, false) => (length.floor_div(&2.into()) + 1, 2),
            (true, true) => (length, 1),
            _ => (length, 2),
        };
        Ok(one(x.with_shape(x.shape.with_dim(axis, size).with_dim(last, parts.into()))))
    }
}

/// An axis cut, or padded with zeros, to a size.
fn fitted(b: &mut Builder, x: Value, axis: usize, size: &Dim) -> Result<Value, TypeError> {
    let kept = b.dim(x, axis).min(size);
    let x = b.slice_axis(x, axis, &Dim::ZERO, &kept)?;
    let mut high = vec![Dim::ZERO; b.rank(x)];
    high[axis] = size - &kept;
    b.pad(x, &vec![Dim::ZERO; b.rank(x)], &high, 0.0)
}

/// Real and imaginary parts as a last axis.
fn parts(b: &mut Builder, z: Value) -> Result<Value, TypeError> {
    let rank = b.rank(z);
    let real = b.unary(UnaryOp::RealPart, z)?;
    let imaginary = b.unary(UnaryOp::ImagPart, z)?;
    let (real, imaginary) = (b.unsqueeze(real, rank)?, b.unsqueeze(imaginary, rank)?);
    b.concat(&[real, imaginary], rank)
}

impl CompositeDef for Dft {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let (axis, last) = (self.axis.of_rank(t.rank()).unwrap_or(0), t.rank() - 1);
        let length = self.length(&t.shape[axis]);
        let wide = b.cast(operands[0], statistics_dtype(t.dtype))?;
        let needed =
            if self.onesided && self.inverse { length.floor_div(&2.into()) + 1 } else { length.clone() };
        let x = fitted(b, wide, axis, &needed)?;
        let real = b.index_axis(x, last, &Dim::ZERO)?;
        let y = if self.onesided && !self.inverse {
            b.push1(Fft { op: FftOp::Real, axis, length: None }, &[real])?
        } else {
            let imaginary = if t.shape[last].as_const() == Some(2) {
                b.index_axis(x, last, &Dim::ONE)?
            } else {
                b.like(0.0, real)?
            };
            let z = b.push1(MakeComplex {}, &[real, imaginary])?;
            let (op, length) = match (self.inverse, self.onesided) {
                (true, true) => (FftOp::RealInverse, Some(length)),
                (true, false) => (FftOp::Inverse, None),
                _ => (FftOp::Forward, None),
            };
            b.push1(Fft { op, axis, length }, &[z])?
        };
        let y = if self.onesided && self.inverse { b.unsqueeze(y, last)? } else { parts(b, y)? };
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}

/// The frames of a signal as windows of an axis.
fn frames(size: &Dim, frame_length: &Dim, step: i64) -> Dim {
    (size - frame_length).floor_div(&step.into()) + 1
}

impl OpDef for Stft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity_between(1, 2)?;
        let x = cx.float("C1", 0)?;
        cx.rank("C2", 0, 3)?;
        let parts = x.shape[2].as_const();
        let fits = parts == Some(1) || (parts == Some(2) && !self.onesided);
        cx.ensure(fits, "C2", Some(0), "last size", "1, or 2 if not onesided", &x.shape[2])?;
        cx.ensure(self.step >= 1, "C3", None, "step", "at least 1", self.step)?;
        cx.at_most("C3", None, "frame length", &Dim::ONE, &self.frame_length)?;
        cx.at_most("C3", Some(0), "frame length", &self.frame_length, &x.shape[1])?;
        if cx.count() == 2 {
            cx.same_dtype("C1", 1, 0)?;
            cx.same_dims("C4", 1, std::slice::from_ref(&self.frame_length))?;
        }
        let bins = if self.onesided {
            self.frame_length.floor_div(&2.into()) + 1
        } else {
            self.frame_length.clone()
        };
        let count = frames(&x.shape[1], &self.frame_length, self.step);
        Ok(one(x.with_shape(vec![x.shape[0].clone(), count, bins, 2.into()])))
    }
}

impl CompositeDef for Stft {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let wide = b.cast(operands[0], statistics_dtype(t.dtype))?;
        let windows = Windows {
            window: std::slice::from_ref(&self.frame_length),
            strides: &[self.step],
            dilations: &[1],
            padding: &[(Dim::ZERO, Dim::ZERO)],
            ceil_mode: false,
        };
        let positions = windows.positions(b, 0, &t.shape[1])?;
        let mut framed = b.take(wide, positions, 1)?;
        if let Some(window) = operands.get(1) {
            let window = b.cast(*window, b.dtype(framed))?;
            let window = b.broadcast_in(window, &b.shape(framed), &[2])?;
            framed = b.mul(framed, window)?;
        }
        let dft = Dft { axis: Axis(2), length: None, inverse: false, onesided: self.onesided };
        let y = b.push1(dft, &[framed])?;
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}

impl Istft {
    fn samples(&self, frames: &Dim, frame_length: &Dim) -> Dim {
        (frames - 1) * self.step + frame_length - self.trimmed(frame_length) * 2
    }

    /// What is cut off at each end.
    fn trimmed(&self, frame_length: &Dim) -> Dim {
        if self.center { frame_length.floor_div(&2.into()) } else { Dim::ZERO }
    }
}

impl OpDef for Istft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.float("C1", 0)?;
        cx.same_dtype("C1", 1, 0)?;
        cx.rank("C2", 0, 4)?;
        cx.equal("C2", Some(0), "last size", &2.into(), &x.shape[3])?;
        cx.ensure(self.step >= 1, "C3", None, "step", "at least 1", self.step)?;
        let frame_length = &cx.rank("C3", 1, 1)?.shape[0];
        let bins = if self.onesided { frame_length.floor_div(&2.into()) + 1 } else { frame_length.clone() };
        cx.equal("C3", Some(0), "bins", &bins, &x.shape[2])?;
        let samples = self.samples(&x.shape[1], frame_length);
        cx.at_most("C3", Some(0), "samples", &Dim::ZERO, &samples)?;
        Ok(one(x.with_shape(vec![x.shape[0].clone(), samples])))
    }
}

impl CompositeDef for Istft {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let frame_length = b.dim(operands[1], 0);
        let count = t.shape[1].clone();
        let spectrum = b.slice_axis(operands[0], 3, &Dim::ZERO, &2.into())?;
        let spectrum = b.cast(spectrum, statistics_dtype(t.dtype))?;
        let window = b.cast(operands[1], statistics_dtype(t.dtype))?;
        let length = self.onesided.then(|| frame_length.clone());
        let dft = Dft { axis: Axis(2), length, inverse: true, onesided: self.onesided };
        let framed = b.push1(dft, &[spectrum])?;
        let framed = b.index_axis(framed, 3, &Dim::ZERO)?;
        let wide = b.broadcast_in(window, &b.shape(framed), &[2])?;
        let weighted = b.mul(framed, wide)?;
        let squares = b.mul(window, window)?;
        let squares = b.broadcast_in(squares, &[Dim::ONE, count.clone(), frame_length.clone()], &[2])?;
        let total = (&count - 1) * self.step + &frame_length;
        let overlapped = |b: &mut Builder, framed: Value| {
            let columns = b.transpose(framed, &[0, 2, 1])?;
            let overlap = Col2im {
                dims: vec![total.clone()],
                window: vec![frame_length.clone()],
                strides: vec![self.step],
                dilations: vec![1],
                padding: vec![(Dim::ZERO, Dim::ZERO)],
            };
            let sum = b.push1(overlap, &[columns])?;
            b.squeeze(sum, &[1])
        };
        let signal = overlapped(b, weighted)?;
        let weight = overlapped(b, squares)?;
        let unit = b.like(1.0, weight)?;
        let usable = b.compare_scalar(CompareOp::Gt, weight, 1e-11)?;
        let weight = b.select(usable, weight, unit)?;
        let weight = b.broadcast_to(weight, &b.shape(signal))?;
        let signal = b.div(signal, weight)?;
        let cut = self.trimmed(&frame_length);
        let y = b.slice_axis(signal, 1, &cut, &self.samples(&count, &frame_length))?;
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}

impl OpDef for LogMelSpectrogram {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.float("C1", 0)?;
        cx.rank("C2", 0, 2)?;
        let even = self.n_fft >= 2 && self.n_fft % 2 == 0;
        cx.ensure(even, "C3", None, "n_fft", "even and at least 2", self.n_fft)?;
        let positive = self.step >= 1 && self.mels >= 1;
        cx.ensure(
            positive,
            "C3",
            None,
            "step and mels",
            "at least 1",
            format!("{}, {}", self.step, self.mels),
        )?;
        cx.at_most("C3", Some(0), "half a frame", &(self.n_fft / 2).into(), &x.shape[1])?;
        let frames = x.shape[1].floor_div(&self.step.into());
        Ok(one(x.with_shape(vec![x.shape[0].clone(), self.mels.into(), frames])))
    }
}

impl CompositeDef for LogMelSpectrogram {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let dtype = statistics_dtype(t.dtype);
        let x = b.cast(operands[0], dtype)?;
        let half = Dim::from(self.n_fft / 2);
        let (low, high) = (vec![Dim::ZERO, half.clone()], vec![Dim::ZERO, half]);
        let padded = b.push1(PadFrom { op: PadFromOp::Reflect, low, high }, &[x])?;
        let signal = b.unsqueeze(padded, 2)?;
        let window = b.push1(CosineWindow::hann(self.n_fft.into(), true, dtype), &[])?;
        let stft = Stft { step: self.step, frame_length: self.n_fft.into(), onesided: true };
        let spectrum = b.push1(stft, &[signal, window])?;
        let frames = t.shape[1].floor_div(&self.step.into());
        let spectrum = b.slice_axis(spectrum, 1, &Dim::ZERO, &frames)?;
        let squares = b.mul(spectrum, spectrum)?;
        let power = b.sum(squares, &[3], false)?;
        let filters = MelFilters {
            mels: self.mels,
            n_fft: self.n_fft,
            sample_rate: self.sample_rate,
            low: Real::new(0.0),
            high: Real::new(self.sample_rate.get() / 2.0),
            scale: MelScale::Slaney,
            unit_area: true,
            dtype,
        };
        let filters = b.push1(filters, &[])?;
        let mel = b.matmul(power, filters)?;
        let floor = b.like(1e-10, mel)?;
        let mel = b.max(mel, floor)?;
        let logarithm = b.unary(UnaryOp::Log, mel)?;
        let logarithm = b.mul_scalar(logarithm, std::f64::consts::LOG10_E)?;
        let greatest = b.reduce(ReduceOp::Max, logarithm, &[1, 2], true)?;
        let least = b.add_scalar(greatest, -8.0)?;
        let least = b.broadcast_to(least, &b.shape(logarithm))?;
        let y = b.max(logarithm, least)?;
        let y = b.add_scalar(y, 4.0)?;
        let y = b.mul_scalar(y, 0.25)?;
        let y = b.transpose(y, &[0, 2, 1])?;
        Ok(Values::from_slice(&[b.cast(y, t.dtype)?]))
    }
}
