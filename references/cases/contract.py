"""Records convolutions: scipy.signal.correlate in f64 on arrays with the zeros of dilation and padding put in."""

import ml_dtypes
import numpy as np
import scipy
from scipy import signal

from caselib import Cases

cases = Cases("contract")


def dilate(x: np.ndarray, factors: list[int]) -> np.ndarray:
    """Zeros between neighbours of the axes from the third on."""
    sizes = [(n - 1) * f + 1 for n, f in zip(x.shape[2:], factors)]
    out = np.zeros((*x.shape[:2], *sizes))
    out[(..., *[slice(None, None, f) for f in factors])] = x
    return out


def convolve(x, w, strides, padding, lhs_dilation, rhs_dilation, groups):
    x = dilate(x.astype("float64"), lhs_dilation)
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    w = dilate(w.astype("float64"), rhs_dilation)
    per_group, channels = w.shape[0] // groups, w.shape[1]
    results = []
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            first = o // per_group * channels
            full = sum(signal.correlate(x[n, first + c], w[o, c], mode="valid", method="direct") for c in range(channels))
            results.append(full[tuple(slice(None, None, s) for s in strides)])
    return np.stack(results).reshape(x.shape[0], w.shape[0], *results[0].shape)


CONFIGURATIONS = {
    "one_axis": ((2, 3, 12), (4, 3, 4), [2], [(1, 2)], [1], [1], 1),
    "dilations": ((1, 2, 6, 5), (3, 2, 3, 2), [1, 2], [(3, 3), (2, 1)], [2, 3], [2, 1], 1),
    "groups": ((2, 6, 7, 6), (4, 3, 3, 3), [2, 1], [(1, 0), (0, 2)], [1, 1], [1, 2], 2),
    "three_axes": ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), [1, 2, 1], [(0, 1), (1, 1), (0, 0)], [1, 2, 1], [2, 1, 1], 1),
}
for name, (x_shape, w_shape, strides, padding, lhs_dilation, rhs_dilation, groups) in CONFIGURATIONS.items():
    for dtype in ["float32", "float16", ml_dtypes.bfloat16]:
        x = cases.rng.standard_normal(x_shape).astype(dtype)
        w = cases.rng.standard_normal(w_shape).astype(dtype)
        y = convolve(x, w, strides, padding, lhs_dilation, rhs_dilation, groups)
        attributes = (
            f"strides={strides}, padding={padding}, lhs_dilation={lhs_dilation}, "
            f"rhs_dilation={rhs_dilation}, groups={groups}"
        )
        terms = int(np.prod(w_shape[1:]))
        cases.op("conv", f"{name}_{x.dtype.name}", attributes, [x, w], [y], f"summed({terms})")

cases.write(__file__, {"scipy": scipy.__version__, "numpy": np.__version__})
