"""Records special functions: mpmath with 50 digits on inputs as rounded to their type, rounded to f64."""

import ml_dtypes
import mpmath
import numpy as np

from caselib import Cases

cases = Cases("elementwise")
mpmath.mp.dps = 50


def log_gamma(x):
    return mpmath.inf if x <= 0 and x == int(x) else mpmath.log(abs(mpmath.gamma(x)))


def inverse_error(x):
    return mpmath.erfinv(x) if abs(x) < 1 else (mpmath.sign(x) * mpmath.inf if abs(x) == 1 else mpmath.nan)

FUNCTIONS = {
    "erf": (mpmath.erf, [-6, -3.5, -2, -1, -0.5, -1e-3, -1e-20, 0, 1e-20, 1e-7, 1e-3, 0.3, 0.84375, 0.85, 1, 1.25, 2, 2.857, 3, 4, 6]),
    "erfc": (mpmath.erfc, [-6, -3, -1, -0.5, -1e-7, 0, 1e-7, 0.3, 0.5, 0.84375, 0.85, 1, 1.25, 2, 2.857, 3, 4, 6, 8, 9.1]),
    "erfinv": (inverse_error, [-0.9999, -0.99, -0.9, -0.5, -1e-3, -1e-10, 0, 1e-10, 1e-3, 0.25, 0.5, 0.7, 0.75, 0.9, 0.97, 0.999, 0.9999]),
    "lgamma": (log_gamma, [0.01, 0.1, 0.5, 0.9, 1.1, 1.5, 1.9, 2.1, 2.5, 3, 5, 7.99, 8, 10, 33.3, 100, 1000, 20000]),
    "digamma": (mpmath.digamma, [0.01, 0.1, 0.5, 1, 1.2, 1.7, 2, 3, 5, 6, 7.5, 10, 33.3, 100, 1000, 20000, -0.25, -1.75, -3.1]),
}
ENDS = {
    "erf": [-np.inf, np.inf, np.nan],
    "erfc": [-np.inf, np.inf, np.nan],
    "erfinv": [-1.0, 1.0, np.nan, 1.5, -2.0],
    "lgamma": [np.inf, np.nan, 0.0, -1.0, -2.0],
    "digamma": [np.inf, np.nan],
}



def exact(function, x: np.ndarray) -> np.ndarray:
    """The function at each element, NaN passed through."""
    return np.array([np.nan if np.isnan(v) else float(function(mpmath.mpf(float(v)))) for v in x.astype("float64")])


for op, (function, values) in FUNCTIONS.items():
    for dtype in ["float32", "float64", "float16", ml_dtypes.bfloat16]:
        x = np.array(values).astype(dtype)
        cases.op(op, f"values_{x.dtype.name}", "", [x], [exact(function, x)], "transcendental")
    ends = np.array(ENDS[op], "float32")
    cases.op(op, "ends", "", [ends], [exact(function, ends)], "transcendental")

cases.write(__file__, {"mpmath": mpmath.__version__})
