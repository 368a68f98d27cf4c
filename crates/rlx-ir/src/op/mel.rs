//! Mel filter banks: triangles in frequency whose edges are evenly spaced on a scale of pitch.

use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::literal::Literal;
use crate::types::TensorType;
use crate::{names, operation};

/// More coefficients than this are refused: filters are constants of the graph.
const MAX_COEFFICIENTS: i64 = 1 << 24;

names! {
    /// Scales of pitch.
    pub enum MelScale {
        /// 2595 · log₁₀(1 + f/700) (O'Shaughnessy 1987; HTK).
        Htk = "htk",
        /// 3f/200 up to 1000 Hz, then 15 + 27 · ln(f/1000)/ln 6.4 (Slaney's Auditory Toolbox 1998).
        Slaney = "slaney",
    }
}

operation! {
    /// Filters \[n_fft/2 + 1, mels\]: filter m is a triangle over the frequencies of a spectrum that rises from edge m to
    /// edge m + 1 and falls to edge m + 2, the mels + 2 edges being evenly spaced in pitch from low to high.
    /// C1: floating point. C2: at least one filter, n_fft ≥ 1, at most 2²⁴ coefficients. C3: 0 ≤ low < high, and a
    /// sample rate above 0.
    pub struct MelFilters = "mel_filters" {
        /// Filters.
        mels: usize,
        /// Elements of a frame.
        n_fft: i64,
        /// Samples a second.
        sample_rate: Real,
        /// The lowest frequency, in Hz.
        low: Real,
        /// The highest frequency, in Hz.
        high: Real,
        /// The scale of pitch.
        scale: MelScale,
        /// Whether each filter is scaled to area 1 (in Hz), as Slaney does, instead of height 1.
        unit_area: bool,
        /// The result's type.
        dtype: DType,
    }
}

operation! {
    /// ONNX MelWeightMatrix \[dft_length/2 + 1, mels\]: as `mel_filters` on the HTK scale with height 1, but the edges are
    /// rounded down to bins and spaced by (high − low)/(mels + 2). C1: floating point. C2: at least one filter,
    /// dft_length ≥ 1, at most 2²⁴ coefficients. C3: 0 ≤ low < high ≤ half the sample rate.
    pub struct MelWeightMatrix = "mel_weight_matrix" {
        /// Filters.
        mels: usize,
        /// Elements of a frame.
        dft_length: i64,
        /// Samples a second.
        sample_rate: i64,
        /// The lowest frequency, in Hz.
        low: Real,
        /// The highest frequency, in Hz.
        high: Real,
        /// The result's type.
        dtype: DType,
    }
}

/// Slaney's scale is linear below this frequency, in Hz.
const SLANEY_BREAK: f64 = 1000.0;
/// The pitch of that frequency: 3/200 · 1000.
const SLANEY_BREAK_MEL: f64 = 15.0;
/// 27 steps of pitch make a factor of 6.4.
const SLANEY_STEPS: f64 = 27.0;
const SLANEY_FACTOR: f64 = 6.4;

impl MelScale {
    /// The pitch of a frequency in Hz.
    pub fn mel(self, hertz: f64) -> f64 {
        match self {
            MelScale::Htk => 2595.0 * (1.0 + hertz / 700.0).log10(),
            MelScale::Slaney if hertz < SLANEY_BREAK => hertz * 3.0 / 200.0,
            MelScale::Slaney => {
                SLANEY_BREAK_MEL + SLANEY_STEPS * (hertz / SLANEY_BREAK).ln() / SLANEY_FACTOR.ln()
            }
        }
    }

    /// The frequency in Hz of a pitch.
    pub fn hertz(self, mel: f64) -> f64 {
        match self {
            MelScale::Htk => 700.0 * (10f64.powf(mel / 2595.0) - 1.0),
            MelScale::Slaney if mel < SLANEY_BREAK_MEL => mel * 200.0 / 3.0,
            MelScale::Slaney => {
                SLANEY_BREAK * (SLANEY_FACTOR.ln() * (mel - SLANEY_BREAK_MEL) / SLANEY_STEPS).exp()
            }
        }
    }
}

fn check(
    cx: &Infer<'_>,
    dtype: DType,
    (mels, length): (usize, i64),
    (low, high): (Real, Real),
    sample_rate: f64,
) -> Result<TensorType, TypeError> {
    cx.arity(0)?;
    cx.ensure(dtype.is_float(), "C1", None, "type", "a floating-point type", dtype)?;
    let count = i64::try_from(mels).ok().and_then(|m| m.checked_mul(length / 2 + 1));
    let fits = mels >= 1 && length >= 1 && count.is_some_and(|c| c <= MAX_COEFFICIENTS);
    cx.ensure(fits, "C2", None, "filters and frame", "1 to 2^24 coefficients", format!("{mels}, {length}"))?;
    let (low, high) = (low.get(), high.get());
    let ordered = 0.0 <= low && low < high && high.is_finite() && sample_rate > 0.0;
    cx.ensure(ordered, "C3", None, "frequencies", "0 ≤ low < high", format!("{low}, {high}"))?;
    Ok(TensorType::new(dtype, vec![Dim::from(length / 2 + 1), Dim::from(mels)]))
}

/// The coefficients \[bins, mels\] as a constant of this type.
fn constant(b: &mut Builder, coefficients: &[f64], mels: usize, dtype: DType) -> Result<Values, TypeError> {
    let flat = b.constant(Literal::vector(coefficients));
    let filters = b.reshape(flat, &[(coefficients.len() / mels.max(1)).into(), mels.into()])?;
    Ok(Values::from_slice(&[b.cast(filters, dtype)?]))
}

impl OpDef for MelFilters {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let size = (self.mels, self.n_fft);
        check(cx, self.dtype, size, (self.low, self.high), self.sample_rate.get()).map(one)
    }
}

impl CompositeDef for MelFilters {
    fn decompose(&self, b: &mut Builder, _: &[Value]) -> Result<Values, TypeError> {
        let (low, high) = (self.scale.mel(self.low.get()), self.scale.mel(self.high.get()));
        let edge = |m: usize| self.scale.hertz(low + (high - low) * m as f64 / (self.mels + 1) as f64);
        let edges: Vec<f64> = (0..self.mels + 2).map(edge).collect();
        let mut coefficients = Vec::new();
        for bin in 0..=self.n_fft / 2 {
            let frequency = bin as f64 * self.sample_rate.get() / self.n_fft as f64;
            for m in 0..self.mels {
                let rising = (frequency - edges[m]) / (edges[m + 1] - edges[m]);
                let falling = (edges[m + 2] - frequency) / (edges[m + 2] - edges[m + 1]);
                let area = if self.unit_area { 2.0 / (edges[m + 2] - edges[m]) } else { 1.0 };
                coefficients.push(rising.min(falling).max(0.0) * area);
            }
        }
        constant(b, &coefficients, self.mels, self.dtype)
    }
}

impl OpDef for MelWeightMatrix {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        let size = (self.mels, self.dft_length);
        let t = check(cx, self.dtype, size, (self.low, self.high), self.sample_rate as f64)?;
        let below = self.high.get() <= self.sample_rate as f64 / 2.0;
        cx.ensure(below, "C3", None, "highest frequency", self.sample_rate as f64 / 2.0, self.high.get())?;
        Ok(one(t))
    }
}

impl CompositeDef for MelWeightMatrix {
    fn decompose(&self, b: &mut Builder, _: &[Value]) -> Result<Values, TypeError> {
        let (low, high) = (MelScale::Htk.mel(self.low.get()), MelScale::Htk.mel(self.high.get()));
        let step = (high - low) / (self.mels + 2) as f64;
        let last = (self.dft_length / 2) as usize;
        let bin = |m: usize| {
            let frequency = MelScale::Htk.hertz(low + step * m as f64);
            let bin = (self.dft_length + 1) as f64 * frequency / self.sample_rate as f64;
            (bin.floor() as usize).min(last)
        };
        let bins: Vec<usize> = (0..self.mels + 2).map(bin).collect();
        let mut coefficients = vec![0.0; (last + 1) * self.mels];
        for m in 0..self.mels {
            let (lower, centre, upper) = (bins[m], bins[m + 1], bins[m + 2]);
            for at in lower..centre {
                coefficients[at * self.mels + m] = (at - lower) as f64 / (centre - lower) as f64;
            }
            for at in centre..upper {
                coefficients[at * self.mels + m] = (upper - at) as f64 / (upper - centre) as f64;
            }
            coefficients[centre * self.mels + m] = 1.0;
        }
        constant(b, &coefficients, self.mels, self.dtype)
    }
}
