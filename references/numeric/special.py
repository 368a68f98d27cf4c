"""Special functions by mpmath with 50 digits. Records: `FUNCTION input value`."""

import math
import random

from mpmath import mp, mpf
import mpmath

from goldens import f64_hex, write

mp.dps = 50

WIDE = [1e-300, 1e-20, 1e-5, 0.01, 0.1, 0.3, 0.5, 0.75, 1.0, 1.25, 1.7, 2.0, 2.5, 3.0, 4.5, 6.0, 8.0, 15.0, 25.0]
SIGNED = WIDE + [-x for x in WIDE]
TAILS = [-27.0, -30.3, -37.5, -1.1, -2.2, -5.5, -9.9, -13.37, -20.02, 26.5, 27.2]
POSITIVE = [1e-300, 1e-10, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0, 1.001, 1.2, 1.4, 1.46, 1.4616321449683622, 1.4617]
POSITIVE += [1.5, 1.75, 1.999, 2.0, 2.001, 2.3, 2.5, 3.0, 3.7, 4.2, 5.0, 6.1, 7.9, 9.99, 10.0, 10.01, 12.5, 20.0, 33.3]
POSITIVE += [50.0, 100.5, 150.25, 1e3, 1e6, 1e15]
NEGATIVE = [-0.001, -0.1, -0.3, -0.5, -0.9, -1.2, -1.5, -2.457, -3.25, -7.75, -10.5, -33.3, -100.5]
UNIT = [1e-300, 1e-200, 1e-160, 1e-17, 1e-8, 1e-4, 0.01, 0.1, 0.25, 0.49, 0.5, 0.51, 0.7, 0.9, 0.99, 0.9999]
UNIT += [1 - 1e-8, 1 - 1e-12, 1 - 2**-52, 1 - 2**-53]


def erfinv(x):
    if x < 1e-100:
        return x * mpmath.sqrt(mp.pi) / 2
    mp.dps = 80
    y = mpmath.findroot(lambda y: mpmath.erf(y) - x, mpmath.erfinv(x))
    mp.dps = 50
    return y


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


FUNCTIONS = {
    "erf": (mpmath.erf, [x for x in SIGNED if abs(x) < 10]),
    "erfc": (mpmath.erfc, [x for x in SIGNED if x < 26] + [26.5, -0.7]),
    "erfinv": (erfinv, UNIT),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [x for x in POSITIVE if x != 1 and x != 2] + NEGATIVE),
    "gamma": (mpmath.gamma, [x for x in POSITIVE if x < 170] + NEGATIVE),
    "digamma": (mpmath.digamma, POSITIVE + NEGATIVE),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), SIGNED + [-700.0, 40.0, -36.5]),
    "softplus": (softplus, SIGNED + [-700.0, 40.0, 750.0, -36.5]),
    "log_sigmoid": (lambda x: -softplus(-x), SIGNED + [-700.0, 700.0]),
    "normal_cdf": (mpmath.ncdf, SIGNED + TAILS),
}

SCATTERED = {
    "erf": (-6, 6),
    "erfc": (-6, 26),
    "erfinv": (0, 1),
    "lgamma": (0, 40),
    "gamma": (0, 40),
    "digamma": (0, 20),
    "sigmoid": (-40, 40),
    "softplus": (-40, 40),
    "log_sigmoid": (-40, 40),
    "normal_cdf": (-37, 8),
}
SCATTERED_INPUTS = 60

lines = []
generator = random.Random(7)
for name, (function, inputs) in FUNCTIONS.items():
    for x in inputs + [generator.uniform(*SCATTERED[name]) for _ in range(SCATTERED_INPUTS)]:
        value = float(function(mpf(x)))
        if value != 0 and abs(value) > 2.3e-308 and math.isfinite(value):
            lines.append(f"{name} {f64_hex(x)} {f64_hex(value)}")
write("special", lines)
