"""Decompositions by numpy and scipy. Records: `CASE NAME rows columns entries...`; `a` is the input."""

import numpy as np
import scipy.linalg

from goldens import f64_hex, write

lines = []


def record(case, name, array):
    array = np.atleast_2d(np.asarray(array, dtype=np.float64))
    words = " ".join(f64_hex(entry) for entry in array.ravel())
    lines.append(f"{case} {name} {array.shape[0]} {array.shape[1]} {words}")


generator = np.random.default_rng(20240117)
for case, (rows, columns) in {"tall": (6, 4), "wide": (3, 5), "square": (5, 5), "single": (1, 1)}.items():
    a = generator.standard_normal((rows, columns))
    record(case, "a", a)
    record(case, "singular_values", np.linalg.svd(a, compute_uv=False))
    q, r = np.linalg.qr(a, mode="complete")
    record(case, "q", q)
    record(case, "r", r)
    packed, pivots = scipy.linalg.lapack.dgetrf(a)[:2]
    record(case, "lu", packed)
    record(case, "pivots", pivots)
    if rows == columns:
        record(case, "determinant", np.linalg.det(a))
        record(case, "eigenvalues", np.linalg.eigvalsh(a))
        record(case, "cholesky", np.linalg.cholesky(a @ a.T + np.eye(rows)))
write("linalg", lines)
