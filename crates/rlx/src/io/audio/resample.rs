//! Conversion between sample rates by a windowed sinc.

use std::f64::consts::PI;

use super::AudioError;

/// The ratio of two sample rates from which on [`resample`] refuses. Real rates (8 kHz to 384 kHz) stay below
/// 50; the bound keeps the length of the filter, and the result's, in check.
pub const MAX_RATE_RATIO: u32 = 256;

/// Zero crossings of the sinc on each side of a sample, at the lower of the two rates.
const SINC_ZEROS: f64 = 64.0;

/// Shape of the Kaiser window: with β = 10 the stop band lies at −100 dB (β = 0.1102 (A − 8.7), J. F. Kaiser 1974).
const KAISER_BETA: f64 = 10.0;

/// The filter's −6 dB point, as a part of the lower Nyquist frequency. Kaiser's formula gives a transition band of
/// 0.1 Nyquist for this window and length, so the stop band begins at the Nyquist frequency and nothing folds back.
const CUTOFF: f64 = 0.95;

/// Filter phases are kept up to this number (44.1 kHz to 16 kHz has 160); unusual pairs compute each phase anew.
const MAX_KEPT_PHASES: usize = 4096;

/// Converts one channel from one sample rate to another.
///
/// `y[n] = Σ_k x[k] h(n·from/to − k)`, with `h` a sinc cut by a Kaiser window, low-passed below the lower of the two
/// Nyquist frequencies, and scaled so that a constant keeps its value. Outside the given samples the signal is zero.
/// The result has `ceil(len·to/from)` samples; its sample 0 lies at the time of sample 0 of the input. The pass band
/// ends at 0.9 of the lower Nyquist frequency; what lies above that frequency is 100 dB down.
///
/// # Errors
/// [`AudioError::Rate`] if a rate is zero or the two are [`MAX_RATE_RATIO`] times apart or more.
///
/// ```
/// let second = vec![0.25; 44_100];
/// let converted = rlx::io::audio::resample(&second, 44_100, 16_000)?;
/// assert_eq!(converted.len(), 16_000);
/// assert!((converted[8_000] - 0.25).abs() < 1e-6);
/// # Ok::<(), rlx::io::audio::AudioError>(())
/// ```
pub fn resample(samples: &[f32], from: u32, to: u32) -> Result<Vec<f32>, AudioError> {
    let (low, high) = (from.min(to), from.max(to));
    if low == 0 || high / low >= MAX_RATE_RATIO {
        return Err(AudioError::Rate { from, to });
    }
    if from == to {
        return Ok(samples.to_vec());
    }
    let divisor = greatest_common_divisor(from, to);
    let (step, phases) = (u64::from(from / divisor), u64::from(to / divisor));
    let length = (samples.len() as u128 * u128::from(phases)).div_ceil(u128::from(step)) as usize;

    let bandwidth = CUTOFF * (f64::from(to) / f64::from(from)).min(1.0);
    let half_width = SINC_ZEROS / (f64::from(to) / f64::from(from)).min(1.0);
    let filter_at = |phase: u64| phase_filter(phase as f64 / phases as f64, bandwidth, half_width);

    let mut kept: Vec<Option<Vec<f64>>> = vec![None; (phases as usize).min(MAX_KEPT_PHASES)];
    let mut converted = Vec::with_capacity(length);
    let (mut position, mut phase) = (0_usize, 0_u64);
    for _ in 0..length {
        let value = match kept.get_mut(phase as usize) {
            Some(slot) => weighted_sum(samples, position, slot.get_or_insert_with(|| filter_at(phase))),
            None => weighted_sum(samples, position, &filter_at(phase)),
        };
        converted.push(value);
        phase += step;
        position += (phase / phases) as usize;
        phase %= phases;
    }
    Ok(converted)
}

/// Filter weights for an output that lies `fraction` of a sample after input sample `p`: entry `i` belongs to input
/// sample `p - reach + i`, where `2·reach` is the number of entries less one.
fn phase_filter(fraction: f64, bandwidth: f64, half_width: f64) -> Vec<f64> {
    let reach = half_width.ceil() as i64 + 1;
    let mut weights: Vec<f64> = (-reach..=reach)
        .map(|offset| {
            let distance = offset as f64 - fraction;
            let edge = distance / half_width;
            if edge.abs() >= 1.0 {
                return 0.0;
            }
            sinc(bandwidth * distance) * bessel_i0(KAISER_BETA * (1.0 - edge * edge).sqrt())
        })
        .collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

/// `Σ_i samples[position - reach + i] · weights[i]`, with zero outside the samples.
fn weighted_sum(samples: &[f32], position: usize, weights: &[f64]) -> f32 {
    let reach = weights.len() / 2;
    let skipped = reach.saturating_sub(position);
    let first = (position + skipped) - reach;
    let products = samples.iter().skip(first).zip(&weights[skipped..]);
    products.map(|(&sample, &weight)| f64::from(sample) * weight).sum::<f64>() as f32
}

/// `sin(πx) / (πx)`, 1 at 0.
fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// Modified Bessel function of the first kind and order zero, by its power series `Σ ((x/2)^k / k!)²`.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut sum) = (1.0, 1.0);
    let mut k = 1.0;
    while term > sum * f64::EPSILON {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(frequency: f64, rate: u32, frames: usize) -> Vec<f32> {
        (0..frames).map(|n| (2.0 * PI * frequency * n as f64 / f64::from(rate)).sin() as f32).collect()
    }

    /// Largest difference away from the ends, where the filter sees only real samples.
    fn interior_error(found: &[f32], expected: &[f32]) -> f32 {
        let edge = 300;
        assert_eq!(found.len(), expected.len());
        let inside = edge..found.len() - edge;
        found[inside.clone()].iter().zip(&expected[inside]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn a_tone_keeps_its_pitch_level_and_time_across_rates() {
        for (from, to) in
            [(44_100, 22_050), (48_000, 22_050), (44_100, 16_000), (16_000, 48_000), (8000, 8001)]
        {
            let converted = resample(&tone(1000.0, from, from as usize), from, to).unwrap();
            let error = interior_error(&converted, &tone(1000.0, to, to as usize));
            assert!(error < 2e-5, "{from} to {to}: {error}");
        }
    }

    #[test]
    fn what_lies_above_the_new_nyquist_frequency_is_gone() {
        for (frequency, from, to) in [(11_100.0, 44_100, 22_050), (15_000.0, 48_000, 16_000)] {
            let converted = resample(&tone(frequency, from, from as usize), from, to).unwrap();
            let error = interior_error(&converted, &vec![0.0; to as usize]);
            assert!(error < 2e-5, "{frequency} Hz, {from} to {to}: {error}");
        }
    }

    #[test]
    fn the_length_rounds_up_and_nothing_stays_nothing() {
        assert_eq!(resample(&[0.5; 3], 44_100, 22_050).unwrap().len(), 2);
        assert_eq!(resample(&[0.5; 441], 44_100, 16_000).unwrap().len(), 160);
        assert!(resample(&[], 44_100, 16_000).unwrap().is_empty());
        assert_eq!(resample(&[0.5, 0.25], 8000, 8000).unwrap(), [0.5, 0.25]);
    }

    #[test]
    fn impossible_rates_are_refused() {
        assert!(matches!(resample(&[0.0], 0, 8000), Err(AudioError::Rate { from: 0, to: 8000 })));
        assert!(matches!(resample(&[0.0], 8000, 0), Err(AudioError::Rate { .. })));
        assert!(matches!(resample(&[0.0], 1, u32::MAX), Err(AudioError::Rate { .. })));
    }
}
