"""Records sorting: numpy's stable argsort, with NaN last when ascending and first when descending."""

import numpy as np

from caselib import Cases

cases = Cases("reduce")


def order(keys: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(keys, axis=axis, kind="stable")
    # A stable descending sort is the reversal of a stable ascending sort of the reversed array.
    flipped = np.flip(keys, axis)
    ascending = np.argsort(flipped, axis=axis, kind="stable")
    return np.flip(keys.shape[axis] - 1 - ascending, axis)


for dtype in ["float32", "float16", "int64", "uint8"]:
    for axis in [0, 1]:
        for descending in [False, True]:
            keys = cases.rng.integers(0, 6, (6, 11)).astype(dtype)
            if dtype.startswith("float"):
                keys[cases.rng.random(keys.shape) < 0.15] = np.nan
                keys[cases.rng.random(keys.shape) < 0.1] = np.inf
                keys[cases.rng.random(keys.shape) < 0.1] = -0.0
            positions = order(keys, axis, descending)
            payload = cases.rng.integers(-99, 99, keys.shape).astype("int32")
            results = [np.take_along_axis(x, positions, axis) for x in (keys, payload)]
            name = f"{dtype}_axis_{axis}_{'descending' if descending else 'ascending'}"
            attributes = f"axis={axis}, descending={str(descending).lower()}"
            cases.op("sort", name, attributes, [keys, payload], results)
            top = np.take(positions, np.arange(4), axis)
            values = np.take_along_axis(keys, top, axis)
            attributes = f"k=4, axis={axis}, smallest={str(not descending).lower()}"
            cases.op("top_k", name, attributes, [keys], [values, top.astype("int64")])

cases.write(__file__, {"numpy": np.__version__})
