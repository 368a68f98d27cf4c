"""Transforms by numpy. Records: `KIND length real imaginary real imaginary ...`.

The input is x[j] = ((7919 j + 13) mod 101)/101 − 0.5, with ((104729 j + 7) mod 97)/97 − 0.5 as its imaginary
part in complex transforms.
"""

import numpy as np

from goldens import f64_hex, write

lines = []
for length in (1, 2, 5, 12, 30, 67, 71 * 2):
    j = np.arange(length)
    real = ((7919 * j + 13) % 101) / 101 - 0.5
    imaginary = ((104729 * j + 7) % 97) / 97 - 0.5
    for kind, result in (
        ("forward", np.fft.fft(real + 1j * imaginary)),
        ("inverse", np.fft.ifft(real + 1j * imaginary)),
        ("real_forward", np.fft.rfft(real)),
    ):
        words = [f64_hex(part) for value in result for part in (value.real, value.imag)]
        lines.append(f"{kind} {length} " + " ".join(words))
write("fft", lines)
