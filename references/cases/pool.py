"""Records pooling, unfolding and convolutions by onnxruntime and, for gradients, by sums written out in numpy.

    pip install numpy onnx==1.23.2 onnxruntime
    python references/cases/pool.py
"""

import itertools

import numpy as np
from caselib import Cases
from onnx_node import VERSIONS, run

cases = Cases("pool", 11)
rng = cases.rng


def window(kernel, strides, dilations, pads):
    """The attributes of windows in the text form, and those of ONNX."""
    n = len(kernel)
    padding = ", ".join(f"({pads[i]}, {pads[n + i]})" for i in range(n))
    text = f"window={list(kernel)}, strides={list(strides)}, dilations={list(dilations)}, padding=[{padding}]"
    return text, dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads)


def normal(*dims):
    return rng.standard_normal(dims).astype("float32")


geometries = {
    "plain": ((1, 2, 7, 5), [3, 2], [1, 1], [1, 1], [0, 0, 0, 0], 0),
    "strided_padded": ((2, 3, 9, 8), [3, 3], [2, 2], [1, 1], [1, 0, 1, 2], 0),
    "dilated": ((1, 2, 11, 9), [2, 3], [1, 2], [3, 2], [1, 1, 0, 1], 0),
    "ceil": ((1, 1, 6, 7), [3, 2], [2, 3], [1, 1], [1, 1, 1, 1], 1),
    "ceil_window_in_padding": ((1, 1, 3, 3), [1, 2], [2, 2], [1, 1], [0, 0, 0, 1], 1),
    "one_axis": ((2, 2, 13), [4], [3], [1], [2, 1], 1),
    "three_axes": ((1, 2, 5, 4, 6), [2, 2, 3], [1, 2, 2], [1, 1, 1], [0, 1, 1, 1, 0, 1], 0),
}
for name, (dims, kernel, strides, dilations, pads, ceil) in geometries.items():
    x = normal(*dims)
    text, attributes = window(kernel, strides, dilations, pads)
    mode = f", ceil_mode={str(bool(ceil)).lower()}"
    y, row = run("MaxPool", [x], 2, ceil_mode=ceil, **attributes)
    cases.op("max_pool", name, text + mode, [x], [y])
    cases.op("max_pool", name + "_row_major", text + mode + ", indices=row_major", [x], [y, row])
    if len(kernel) == 2:
        y, column = run("MaxPool", [x], 2, ceil_mode=ceil, storage_order=1, **attributes)
        cases.op("max_pool", name + "_column_major", text + mode + ", indices=column_major", [x], [y, column])
    terms = int(np.prod(kernel))
    for include in (0, 1):
        (y,) = run("AveragePool", [x], ceil_mode=ceil, count_include_pad=include, **attributes)
        flag = f", count_include_pad={str(bool(include)).lower()}"
        cases.op("average_pool", f"{name}_{include}", text + mode + flag, [x], [y], f"accumulated({terms})")
    if not ceil:
        for p in (1, 2, 3) if name == "plain" else (2,):
            (y,) = run("LpPool", [x], p=p, **attributes)
            cases.op("lp_pool", f"{name}_{p}", f"p={float(p)}, " + text + mode, [x], [y],
                     f"accumulated({4 * terms})")

# Of −0 and +0 the greater is +0, whichever comes first; onnxruntime keeps the first: no −0 here.
x = np.round(normal(1, 1, 4, 4) * 0.7).astype("float32") + np.float32(0)
text, attributes = window([2, 2], [1, 1], [1, 1], [1, 1, 1, 1])
y, row = run("MaxPool", [x], 2, **attributes)
cases.op("max_pool", "ties_take_the_first", text + ", ceil_mode=false, indices=row_major", [x], [y, row])
x = np.full((1, 1, 3), -np.inf, "float32")
text, _ = window([2], [1], [1], [1, 1])
cases.op("max_pool", "padding_is_not_chosen", text + ", ceil_mode=false, indices=row_major", [x],
         [np.full((1, 1, 4), -np.inf, "float32"), np.array([[[0, 0, 1, 2]]])])
x = rng.integers(-128, 127, (1, 2, 5)).astype("int8")
y, row = run("MaxPool", [x], 2, kernel_shape=[3], strides=[2], pads=[1, 1])
text, _ = window([3], [2], [1], [1, 1])
cases.op("max_pool", "bytes", text + ", ceil_mode=false, indices=row_major", [x], [y, row])

x = normal(2, 3, 4, 5)
cases.op("global_max_pool", "plain", "", [x], run("GlobalMaxPool", [x]))
cases.op("global_average_pool", "plain", "", [x], run("GlobalAveragePool", [x]), "accumulated(20)")
cases.op("global_lp_pool", "cubes", "p=3.0", [x], [(np.abs(x.astype("float64")) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)], "accumulated(80)")
y, row = run("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
cases.op("max_unpool", "plain", f"dims={list(x.shape)}", [y, row],
         run("MaxUnpool", [y, row, np.array(x.shape)], kernel_shape=[2, 2], strides=[2, 2]))


def windows_of(dims, kernel, strides, dilations, pads, counts):
    """(window, element) index pairs of all windows."""
    for o in itertools.product(*map(range, counts)):
        inside = []
        for k in itertools.product(*map(range, kernel)):
            at = tuple(o[i] * strides[i] + k[i] * dilations[i] - pads[i] for i in range(len(kernel)))
            if all(0 <= a < d for a, d in zip(at, dims)):
                inside.append((k, at))
        yield o, inside


for name in ("strided_padded", "dilated", "ceil", "one_axis"):
    dims, kernel, strides, dilations, pads, ceil = geometries[name]
    x = normal(*dims)
    text, attributes = window(kernel, strides, dilations, pads)
    y, _ = run("MaxPool", [x], 2, ceil_mode=ceil, **attributes)
    dy = normal(*y.shape)
    dx, average = np.zeros(dims), {0: np.zeros(dims), 1: np.zeros(dims)}
    n = len(kernel)
    for o, inside in windows_of(dims[2:], kernel, strides, dilations, pads, y.shape[2:]):
        # With the padding counted, a window ends at the padded image.
        padded = 1
        for i in range(n):
            reach = [o[i] * strides[i] + k * dilations[i] for k in range(kernel[i])]
            padded *= sum(r < dims[2 + i] + pads[i] + pads[n + i] for r in reach)
        for b, c in itertools.product(range(dims[0]), range(dims[1])):
            best = max(inside, key=lambda e: x[(b, c) + e[1]])[1]
            dx[(b, c) + best] += dy[(b, c) + o]
            for _, at in inside:
                average[0][(b, c) + at] += dy[(b, c) + o] / len(inside)
                average[1][(b, c) + at] += dy[(b, c) + o] / padded
    mode = f", ceil_mode={str(bool(ceil)).lower()}"
    terms = int(np.prod(kernel))
    cases.op("max_pool_grad", name, text + mode, [x, dy], [dx], f"accumulated({terms})")
    for include in (0, 1):
        flag = f", count_include_pad={str(bool(include)).lower()}"
        cases.op("average_pool_grad", f"{name}_{include}", f"dims={list(dims[2:])}, " + text + mode + flag, [dy],
                 [average[include]], f"accumulated({2 * terms})")


def adaptive(x, sizes, combine):
    for i, o in enumerate(sizes):
        axis, s = 2 + i, x.shape[2 + i]
        parts = [combine(np.take(x, range(j * s // o, -(-(j + 1) * s // o)), axis), axis) for j in range(o)]
        x = np.stack(parts, axis)
    return x


for sizes in ([1, 1], [3, 2], [7, 5], [9, 6], [2, 8]):
    x = normal(1, 2, 7, 5)
    name = "x".join(map(str, sizes))
    cases.op("adaptive_average_pool", name, f"sizes={sizes}", [x], [adaptive(x.astype("float64"), sizes, np.mean)],
             "accumulated(35)")
    cases.op("adaptive_max_pool", name, f"sizes={sizes}", [x], [adaptive(x, sizes, np.max)])

# Columns and back.
for name, image, kernel, strides, dilations, pads in [
    ("plain", (5, 5), (1, 5), (1, 1), (1, 1), (0, 0, 0, 0)),
    ("strided", (5, 6), (3, 2), (2, 2), (1, 1), (0, 1, 0, 1)),
    ("dilated", (7, 6), (2, 3), (1, 1), (2, 1), (1, 0, 1, 2)),
    ("three_axes", (4, 5, 3), (2, 1, 3), (1, 2, 1), (1, 1, 1), (0, 0, 1, 1, 0, 0)),
]:
    n = len(kernel)
    x = normal(2, 3, *image)
    counts = [(image[i] + pads[i] + pads[n + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
              for i in range(n)]
    columns = np.zeros((2, 3, *kernel, *counts), "float32")
    for o, inside in windows_of(image, kernel, strides, dilations, pads, counts):
        for k, at in inside:
            columns[(slice(None), slice(None)) + k + o] = x[(slice(None), slice(None)) + at]
    columns = columns.reshape(2, 3 * int(np.prod(kernel)), -1)
    text, _ = window(kernel, strides, dilations, pads)
    cases.op("im2col", name, text, [x], [columns])
    (y,) = run("Col2Im", [columns, np.array(image), np.array(kernel)], strides=strides, dilations=dilations, pads=pads)
    cases.op("col2im", name, f"dims={list(image)}, " + text, [columns], [y], "summed(9)")
cases.write(__file__, VERSIONS)
