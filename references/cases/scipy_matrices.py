"""What numpy and scipy give for solvers, matrix functions and the SPD layers, in f64.

Writes golden/solve.case and golden/manifold.case.
"""

import numpy as np
import scipy
import scipy.linalg

from caselib import Cases

VERSIONS = {"numpy": np.__version__, "scipy": scipy.__version__}
TOLERANCE = "within(1e-11, 1e-11)"


def solve():
    cases = Cases("solve")
    a = cases.rng.standard_normal((2, 4, 4))
    right = cases.rng.standard_normal((2, 4, 3))
    cases.op("det", "numpy", "", [a], [np.linalg.det(a)], TOLERANCE)
    cases.op("slog_det", "numpy", "", [a], list(np.linalg.slogdet(a)), TOLERANCE)
    cases.op("inverse", "numpy", "", [a], [np.linalg.inv(a)], TOLERANCE)
    cases.op("solve", "numpy", "", [a, right], [np.linalg.solve(a, right)], TOLERANCE)
    for exponent in (3, -2):
        y = np.linalg.matrix_power(a, exponent)
        cases.op("matrix_power", f"numpy_{exponent + 10}", f"exponent={exponent}", [a], [y], TOLERANCE)
    for name, factor in (("small", 0.1), ("large", 10.0)):
        y = scipy.linalg.expm(factor * a)
        cases.op("matrix_exp", f"scipy_{name}", "", [factor * a], [y], f"within(1e-9, {1e-11})")
    # Rank 2 of 5 × 4, with singular values of 0 that rounding makes about 1e-16.
    deficient = cases.rng.standard_normal((5, 2)) @ cases.rng.standard_normal((2, 4))
    right = cases.rng.standard_normal((5, 3))
    cases.op("pinv", "numpy", "rcond=1e-10", [deficient], [np.linalg.pinv(deficient, rcond=1e-10)], TOLERANCE)
    y = np.linalg.lstsq(deficient, right, rcond=1e-10)[0]
    cases.op("lstsq", "numpy", "rcond=1e-10", [deficient, right], [y], TOLERANCE)
    cases.write(__file__, VERSIONS)


def manifold():
    cases = Cases("manifold")
    factors = cases.rng.standard_normal((4, 5, 5))
    x = factors @ factors.transpose(0, 2, 1) + 0.5 * np.eye(5)
    one, other = x[0], x[1]
    cases.op("log_eig", "scipy", "", [one], [scipy.linalg.logm(one)], TOLERANCE)
    cases.op("exp_eig", "scipy", "", [one / 4], [scipy.linalg.expm(one / 4)], "within(1e-10, 1e-11)")
    cases.op("sqrt_eig", "scipy", "", [one], [scipy.linalg.sqrtm(one)], TOLERANCE)
    cases.op("inverse_sqrt_eig", "scipy", "", [one], [np.linalg.inv(scipy.linalg.sqrtm(one))], TOLERANCE)
    distance = np.sqrt((np.log(scipy.linalg.eigh(other, one, eigvals_only=True)) ** 2).sum())
    cases.op("affine_invariant_distance", "scipy", "", [one, other], [distance], TOLERANCE)
    root = scipy.linalg.sqrtm(one)
    inverse_root = np.linalg.inv(root)
    moved = root @ scipy.linalg.fractional_matrix_power(inverse_root @ other @ inverse_root, 0.3) @ root
    cases.op("spd_geodesic", "scipy", "t=0.3", [one, other], [moved], "within(1e-10, 1e-11)")
    mean = x.mean(axis=0)
    for _ in range(30):
        root = scipy.linalg.sqrtm(mean)
        inverse_root = np.linalg.inv(root)
        tangent = sum(scipy.linalg.logm(inverse_root @ m @ inverse_root) for m in x) / len(x)
        mean = root @ scipy.linalg.expm(tangent) @ root
    cases.op("karcher_mean", "scipy", "iterations=30", [x], [mean], "within(1e-9, 1e-10)")
    cases.write(__file__, VERSIONS)


if __name__ == "__main__":
    solve()
    manifold()
