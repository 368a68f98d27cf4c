"""Records matrix factorisations by numpy and scipy (LAPACK), in f64 on inputs as rounded to their type."""

import numpy as np
import scipy
from scipy import linalg

from caselib import Cases

cases = Cases("linalg")


def batched(function, *arrays):
    """The results of a function of matrices, stacked over the leading axis."""
    results = [function(*(a[i] for a in arrays)) for i in range(arrays[0].shape[0])]
    return [np.stack(r) for r in zip(*results)]


def spread(low, high, *shape):
    return cases.rng.uniform(low, high, shape)


def positive_vectors(values, vectors):
    """Each column's component of largest magnitude made positive, as the operation has it."""
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


def pivoted(a):
    packed, exchanges = linalg.lu_factor(a)
    rows = np.arange(a.shape[0])
    for i, j in enumerate(exchanges):
        rows[[i, j]] = rows[[j, i]]
    return packed, rows.astype("int64")


for dtype in ["float32", "float64"]:
    for n in [1, 3, 5]:
        base = spread(-1, 1, 2, n, n)
        definite = (base @ base.transpose(0, 2, 1) + np.eye(n)).astype(dtype)
        wide = definite.astype("float64")
        size = f"accumulated({4 * n}, {float(np.abs(wide).max())})"
        cases.op("cholesky", f"{dtype}_{n}", "", [definite], [np.linalg.cholesky(wide)], size)

        values, vectors = batched(lambda a: positive_vectors(*np.linalg.eigh(a)), wide)
        # Vectors turn by the error over the gap between eigenvalues.
        gap = np.min(np.diff(values, axis=1)) if n > 1 else 1.0
        bound = f"accumulated({8 * n}, {float(np.abs(values).max() / min(gap, 1.0))})"
        cases.op("eigh", f"{dtype}_{n}", "", [definite], [values, vectors], bound)

        triangle = (np.tril(spread(-1, 1, 2, n, n)) + 2 * np.eye(n)).astype(dtype)
        right = spread(-1, 1, 2, n, 3).astype(dtype)
        for upper in [False, True] if n == 5 else [False]:
            for transpose in [False, True]:
                for unit in [False, True]:
                    a = np.ascontiguousarray(triangle.transpose(0, 2, 1)) if upper else triangle
                    solve = lambda a, b: [
                        linalg.solve_triangular(a, b, trans=int(transpose), lower=not upper, unit_diagonal=unit)
                    ]
                    (x,) = batched(solve, a.astype("float64"), right.astype("float64"))
                    flags = f"upper={upper}, transpose={transpose}, unit_diagonal={unit}".lower()
                    name = f"{dtype}_{n}_{int(upper)}{int(transpose)}{int(unit)}"
                    bound = f"accumulated({8 * n}, {float(max(np.abs(x).max(), 1) * 8)})"
                    cases.op("triangular_solve", name, flags, [a, right], [x], bound)

    for m, n in [(1, 1), (4, 4), (5, 3), (3, 5)]:
        a = spread(-1, 1, 2, m, n).astype(dtype)
        wide = a.astype("float64")
        k = min(m, n)
        packed, rows = batched(pivoted, wide)
        cases.op("lu", f"{dtype}_{m}_{n}", "", [a], [packed, rows], f"accumulated({8 * k}, 4)")
        smallest = np.linalg.svd(wide, compute_uv=False).min()
        for full in [False, True]:
            q, r = batched(lambda a: np.linalg.qr(a, "complete" if full else "reduced"), wide)
            flags = f"full={str(full).lower()}"
            bound = f"accumulated({16 * m}, {float(4 / smallest)})"
            cases.op("qr", f"{dtype}_{m}_{n}_{flags[5:]}", flags, [a], [q, r], bound)

cases.write(__file__, {"numpy": np.__version__, "scipy": scipy.__version__})
