"""Records Fourier transforms, windows and mel features by numpy, scipy and onnx's reference evaluator in f64.

    pip install numpy scipy onnx==1.23.2 onnxruntime
    python references/cases/audio.py
"""

import numpy as np
import scipy
import scipy.signal
from caselib import Cases
from onnx_node import VERSIONS, reference

cases = Cases("audio", 16)
rng = cases.rng


def normal(*dims):
    return rng.standard_normal(dims).astype("float32")


def parts(z):
    return np.stack([z.real, z.imag], -1)


def flag(value):
    return str(bool(value)).lower()


for name, dims, axis, length, inverse, onesided in [
    ("real", (2, 6, 1), 1, None, 0, 0), ("complex", (2, 7, 2), -2, None, 0, 0), ("onesided", (2, 7, 1), 1, None, 0, 1),
    ("padded", (5, 3, 2), 0, 8, 0, 0), ("cut", (9, 3, 1), 0, 4, 0, 1), ("inverse", (2, 6, 2), 1, None, 1, 0),
    ("inverse_onesided", (2, 5, 2), 1, None, 1, 1), ("inverse_onesided_odd", (2, 5, 2), 1, 9, 1, 1),
    ("inverse_onesided_cut", (2, 9, 2), 1, 8, 1, 1), ("inverse_padded", (2, 3, 2), 1, 5, 1, 0),
]:
    x = normal(*dims)
    z = x[..., 0].astype("float64") + (1j * x[..., 1] if dims[-1] == 2 else 0)
    at = axis % (len(dims))
    n = length if length is not None else (2 * (dims[at] - 1) if inverse and onesided else dims[at])
    if inverse and onesided:
        y = np.fft.irfft(z, n, at)[..., None]
    elif inverse:
        y = parts(np.fft.ifft(z, n, at))
    elif onesided:
        y = parts(np.fft.rfft(z, n, at))
    else:
        y = parts(np.fft.fft(z, n, at))
    size = "" if length is None else f"length={length}, "
    cases.op("dft", name, f"axis={axis}, {size}inverse={flag(inverse)}, onesided={flag(onesided)}", [x], [y],
             f"accumulated({n})")

hann = scipy.signal.get_window("hann", 8).astype("float32")
for name, x, window, onesided in [
    ("onesided", normal(2, 21, 1), hann, 1), ("both_sides", normal(1, 20, 1), hann, 0),
    ("complex", normal(2, 19, 2), hann, 0), ("no_window", normal(1, 17, 1), None, 1),
]:
    z = x[..., 0].astype("float64") + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    frames = np.stack([z[:, i:i + 8] for i in range(0, z.shape[1] - 7, 3)], 1)
    frames = frames * (1 if window is None else window.astype("float64"))
    y = parts(np.fft.rfft(frames.real) if onesided else np.fft.fft(frames))
    given = [x, np.int64(3), window, np.int64(8)]
    (onnx,) = reference("STFT", given, opset=17, onesided=onesided)
    assert np.allclose(onnx, y, atol=1e-4), name
    inputs = [x] if window is None else [x, window]
    cases.op("stft", name, f"step=3, frame_length=8, onesided={flag(onesided)}", inputs, [y], "accumulated(8)")

for center in (0, 1):
    for onesided in (0, 1):
        signal = rng.standard_normal((2, 29))
        window = scipy.signal.get_window("hamming", 8).astype("float32")
        frames = np.stack([signal[:, i:i + 8] for i in range(0, 22, 3)], 1) * window.astype("float64")
        spectrum = parts(np.fft.rfft(frames) if onesided else np.fft.fft(frames)).astype("float32")
        y = signal[:, 4:25] if center else signal
        cases.op("istft", f"{center}_{onesided}", f"step=3, onesided={flag(onesided)}, center={flag(center)}",
                 [spectrum, window], [y], "within(4e-6, 4e-6)")

for name, coefficients in [("hann", [0.5, 0.5]), ("hamming", [0.54, 0.46]), ("blackman", [0.42, 0.5, 0.08])]:
    for periodic in (0, 1):
        for size in (1, 2, 9, 16):
            y = scipy.signal.get_window(name, size, fftbins=bool(periodic))
            for dtype in ("f32", "f64"):
                cases.op("cosine_window", f"{name}_{periodic}_{size}_{dtype}",
                         f"coefficients={coefficients}, size={size}, periodic={flag(periodic)}, dtype={dtype}", [], [y],
                         "within(3e-16, 1e-7)" if dtype == "f32" else "within(3e-16, 1e-15)")
(y,) = reference("HammingWindow", [np.int64(10)], opset=17, periodic=1)
cases.op("cosine_window", "onnx_hamming",
         f"coefficients=[{25 / 46!r}, {21 / 46!r}], size=10, periodic=true, dtype=f32", [], [y], "within(0, 2e-7)")


def mel_of(hertz, htk):
    if htk:
        return 2595 * np.log10(1 + hertz / 700)
    return np.where(hertz < 1000, hertz * 0.015, 15 + 27 * np.log(np.maximum(hertz, 1) / 1000) / np.log(6.4))


def hertz_of(mel, htk):
    if htk:
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, mel / 0.015, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


def filters(mels, n_fft, rate, low, high, htk, unit_area):
    edges = hertz_of(np.linspace(mel_of(low, htk), mel_of(high, htk), mels + 2), htk)
    bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
    triangles = [np.interp(bins, edges[m:m + 3], [0, 1, 0], 0, 0) for m in range(mels)]
    return np.stack([t * (2 / (edges[m + 2] - edges[m]) if unit_area else 1) for m, t in enumerate(triangles)], 1)


for scale in ("htk", "slaney"):
    for area in (0, 1):
        y = filters(5, 24, 8000.0, 60.0, 3900.0, scale == "htk", area)
        cases.op("mel_filters", f"{scale}_{area}",
                 f"mels=5, n_fft=24, sample_rate=8000.0, low=60.0, high=3900.0, scale={scale}, "
                 f"unit_area={flag(area)}, dtype=f64", [], [y], "within(1e-13, 1e-11)")
(y,) = reference("MelWeightMatrix", [np.int64(8), np.int64(16), np.int64(8192), np.float32(0), np.float32(4096)], opset=17)
cases.op("mel_weight_matrix", "small", "mels=8, dft_length=16, sample_rate=8192, low=0.0, high=4096.0, dtype=f32", [],
         [y], "within(0, 1e-7)")
(y,) = reference("MelWeightMatrix", [np.int64(6), np.int64(64), np.int64(16000), np.float32(100), np.float32(7000)],
                 opset=17)
cases.op("mel_weight_matrix", "wide", "mels=6, dft_length=64, sample_rate=16000, low=100.0, high=7000.0, dtype=f32", [],
         [y], "within(0, 1e-7)")

x = normal(2, 100)
padded = np.pad(x.astype("float64"), [(0, 0), (16, 16)], "reflect")
window = scipy.signal.get_window("hann", 32)
frames = np.stack([padded[:, i:i + 32] for i in range(0, padded.shape[1] - 31, 10)], 1) * window
power = np.abs(np.fft.rfft(frames))[:, :-1] ** 2
logarithm = np.log10(np.maximum(power @ filters(6, 32, 16000.0, 0.0, 8000.0, False, True), 1e-10)).transpose(0, 2, 1)
y = (np.maximum(logarithm, logarithm.max((1, 2), keepdims=True) - 8) + 4) / 4
cases.op("log_mel_spectrogram", "small", "n_fft=32, step=10, mels=6, sample_rate=16000.0", [x], [y],
         "within(2e-5, 1e-6)")
cases.write(__file__, {**VERSIONS, "scipy": scipy.__version__})
