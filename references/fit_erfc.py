"""Fits the polynomial of `crates/rlx-cpu/src/kernels/region/wide.rs`: erfcx(x) = t·Q(2t − 1) with t = 1 / (1 + x/2).

erfcx(x) = e^(x²)·erfc(x) falls smoothly from 1 to 0, and t carries its tail. Prints the coefficients of Q, lowest first,
and the greatest relative error for x ≥ 0. Needs numpy and scipy (references/requirements.txt).
"""

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from scipy.special import erfcx

DEGREE = 16
NODES = 400

node = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
t = (node + 1) / 2
coefficients = chebyshev.cheb2poly(chebyshev.chebfit(node, erfcx((1 / t - 1) * 2) / t, DEGREE))
t = np.linspace(1e-6, 1, 100_001)
error = np.abs(polynomial.polyval(2 * t - 1, coefficients) * t / erfcx((1 / t - 1) * 2) - 1).max()
print("\n".join(f"{float(c)!r}," for c in coefficients))
print("relative error", error)
