//! Cases of the normalisations.

mod channel;
mod layer;
mod response;

pub(super) use channel::{batch_norm, batch_norm_training, group_norm, instance_norm};
pub(super) use layer::{layer_norm, rms_norm, skip_norm};
pub(super) use response::{lp_normalize, lrn, mean_variance_norm};

/// The mean and the biased variance of these numbers.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

/// (x − mean) / √(variance + eps).
fn standardised(values: &[f64], eps: f64) -> Vec<f64> {
    let (mean, variance) = moments(values);
    values.iter().map(|x| (x - mean) / (variance + eps).sqrt()).collect()
}
