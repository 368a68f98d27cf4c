//! Cases of transforms, windows and mel features. Recorded ones by numpy and scipy in f64, and onnx.

use crate::case::{Case, op_case};
use crate::golden::{golden, symbolic_golden};
use crate::random::Domain;

const RECORDED: &str = include_str!("../../golden/audio.case");

pub(super) fn dft() -> Vec<Case> {
    // Whether a signal is complex is a constant size: the cases stay as recorded.
    let mut cases = golden(RECORDED, "dft");
    let forward = "axis=1, inverse=false, onesided=false";
    let onesided = forward.replace("onesided=false", "onesided=true");
    cases.extend([
        op_case("dft", "symbolic_length", &onesided, "f32[n, m, 1]")
            .sizes([("n", 2), ("m", 5)])
            .random(Domain::Normal)
            .formula(|x| {
                crate::array::Array::from_fn([2, 3, 2], |at| {
                    let angle = |t: usize| -2.0 * std::f64::consts::PI * (at[1] * t) as f64 / 5.0;
                    let part = |t: usize| if at[2] == 0 { angle(t).cos() } else { angle(t).sin() };
                    (0..5).map(|t| x[0].at(&[at[0], t, 0]) * part(t)).sum()
                })
            })
            .accumulated(5),
        op_case("dft", "integers", forward, "i32[2, 5, 1]").fails_build("C1"),
        op_case("dft", "last_axis", &forward.replace("axis=1", "axis=-1"), "f32[2, 5, 1]").fails_build("C2"),
        op_case("dft", "parts", forward, "f32[2, 5, 3]").fails_build("C3"),
        op_case("dft", "complex_onesided", &onesided, "f32[2, 5, 2]").fails_build("C3"),
        op_case("dft", "length", &forward.replace("inverse", "length=0, inverse"), "f32[2, 5, 1]")
            .fails_build("C4"),
    ]);
    cases
}

pub(super) fn stft() -> Vec<Case> {
    let mut cases = golden(RECORDED, "stft");
    let real = |case: &Case| !case.name.contains("complex");
    cases.extend(symbolic_golden(RECORDED, "stft").into_iter().filter(real));
    let attributes = "step=2, frame_length=4, onesided=true";
    cases.extend([
        op_case("stft", "types", attributes, "f32[1, 9, 1], f16[4]").fails_build("C1"),
        op_case("stft", "complex", attributes, "f32[1, 9, 2]").fails_build("C2"),
        op_case("stft", "short", attributes, "f32[1, 3, 1]").fails_build("C3"),
        op_case("stft", "window", attributes, "f32[1, 9, 1], f32[5]").fails_build("C4"),
    ]);
    cases
}

pub(super) fn istft() -> Vec<Case> {
    let mut cases = [golden(RECORDED, "istft"), symbolic_golden(RECORDED, "istft")].concat();
    let attributes = "step=2, onesided=true, center=false";
    cases.extend([
        op_case("istft", "parts", attributes, "f32[1, 3, 3, 1], f32[4]").fails_build("C2"),
        op_case("istft", "bins", attributes, "f32[1, 3, 4, 2], f32[4]").fails_build("C3"),
    ]);
    cases
}

pub(super) fn cosine_window() -> Vec<Case> {
    let mut cases = golden(RECORDED, "cosine_window");
    let attributes = "coefficients=[0.5, 0.5], size=4, periodic=true, dtype=i32";
    cases.push(op_case("cosine_window", "integers", attributes, "").fails_build("C1"));
    cases
}

pub(super) fn log_mel_spectrogram() -> Vec<Case> {
    let mut cases = golden(RECORDED, "log_mel_spectrogram");
    cases.extend(symbolic_golden(RECORDED, "log_mel_spectrogram"));
    let attributes = "n_fft=31, step=10, mels=6, sample_rate=16000.0";
    cases.push(op_case("log_mel_spectrogram", "odd", attributes, "f32[1, 99]").fails_build("C3"));
    cases
}

pub(super) fn mel_filters() -> Vec<Case> {
    let mut cases = golden(RECORDED, "mel_filters");
    let attributes =
        "mels=5, n_fft=24, sample_rate=8000.0, low=60.0, high=50.0, scale=htk, unit_area=false, dtype=f32";
    cases.push(op_case("mel_filters", "frequencies", attributes, "").fails_build("C3"));
    let many = attributes.replace("mels=5", "mels=999999999").replace("50.0", "100.0");
    cases.push(op_case("mel_filters", "too_many", &many, "").fails_build("C2"));
    cases
}

pub(super) fn mel_weight_matrix() -> Vec<Case> {
    let mut cases = golden(RECORDED, "mel_weight_matrix");
    let attributes = "mels=8, dft_length=16, sample_rate=8192, low=0.0, high=5000.0, dtype=f32";
    cases.push(op_case("mel_weight_matrix", "frequencies", attributes, "").fails_build("C3"));
    cases
}
