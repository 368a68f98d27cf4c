"""Records Fourier transforms by numpy, in f64 on inputs as rounded to their type."""

import numpy as np

from caselib import Cases

cases = Cases("spectral")

for real, complex_type in [("float32", "complex64"), ("float64", "complex128")]:
    for n in [1, 2, 5, 8, 12, 17]:
        x = (cases.rng.standard_normal((2, n)) + 1j * cases.rng.standard_normal((2, n))).astype(complex_type)
        size = np.sum(np.abs(x.real) + np.abs(x.imag), axis=1).max()
        wide = x.astype("complex128")
        cases.op("fft", f"{complex_type}_{n}", "axis=1", [x], [np.fft.fft(wide)], f"accumulated({n}, {size})")
        cases.op("ifft", f"{complex_type}_{n}", "axis=1", [x], [np.fft.ifft(wide)], f"accumulated({n}, {size / n})")
        r = cases.rng.standard_normal((2, n)).astype(real)
        size = np.sum(np.abs(r), axis=1).max()
        cases.op("rfft", f"{real}_{n}", "axis=1", [r], [np.fft.rfft(r.astype("float64"))], f"accumulated({n}, {size})")
        half = np.fft.rfft(r.astype("float64")).astype(complex_type)
        size = 2 * np.sum(np.abs(half.real) + np.abs(half.imag), axis=1).max() / n
        back = np.fft.irfft(half.astype("complex128"), n)
        cases.op("irfft", f"{complex_type}_{n}", f"axis=1, length={n}", [half], [back], f"accumulated({n}, {size})")
x = (cases.rng.standard_normal((5, 3)) + 1j * cases.rng.standard_normal((5, 3))).astype("complex64")
cases.op("fft", "first_axis", "axis=0", [x], [np.fft.fft(x.astype("complex128"), axis=0)], "accumulated(5, 10)")

cases.write(__file__, {"numpy": np.__version__})
