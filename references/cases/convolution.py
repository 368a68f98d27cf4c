"""Records convolutions by onnxruntime, and their gradients by sums written out in numpy.

    pip install numpy onnx==1.23.2 onnxruntime
    python references/cases/convolution.py
"""

import itertools

import numpy as np
from caselib import Cases
from onnx_node import VERSIONS, reference, run

cases = Cases("convolution", 12)
rng = cases.rng


def normal(*dims):
    return rng.standard_normal(dims).astype("float32")


def pairs(pads):
    n = len(pads) // 2
    return "[" + ", ".join(f"({pads[i]}, {pads[n + i]})" for i in range(n)) + "]"


def convolved(x, w, strides, pads, dilations, group):
    """The convolution in f64, and the elements that each product takes."""
    n, d = x.shape[0], x.ndim - 2
    padded = np.pad(x.astype("float64"), [(0, 0), (0, 0)] + [(pads[i], pads[d + i]) for i in range(d)])
    counts = [(padded.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(d)]
    y = np.zeros((n, w.shape[0], *counts))
    inner, outer = w.shape[1], w.shape[0] // group
    for k in itertools.product(*map(range, w.shape[2:])):
        part = tuple(slice(k[i] * dilations[i], k[i] * dilations[i] + (counts[i] - 1) * strides[i] + 1, strides[i])
                     for i in range(d))
        for g in range(group):
            images = padded[(slice(None), slice(g * inner, (g + 1) * inner)) + part]
            weights = w[(slice(g * outer, (g + 1) * outer), slice(None)) + k].astype("float64")
            y[:, g * outer:(g + 1) * outer] += np.einsum("nc...,oc->no...", images, weights)
    return y


# Dims of x, of w, strides, pads, dilations, groups.
geometries = {
    "plain": ((2, 3, 5, 6), (4, 3, 3, 2), [1, 1], [0, 0, 0, 0], [1, 1], 1),
    "strided_grouped": ((1, 4, 7, 8), (6, 2, 3, 3), [2, 3], [1, 0, 1, 2], [1, 1], 2),
    "dilated_depthwise": ((2, 3, 9), (3, 1, 3), [2], [2, 1], [3], 3),
    "three_axes": ((1, 2, 4, 3, 5), (2, 2, 2, 1, 3), [1, 2, 1], [1, 0, 1, 0, 0, 1], [1, 1, 1], 1),
}
for name, (xs, ws, strides, pads, dilations, group) in geometries.items():
    x, w, bias = normal(*xs), normal(*ws), normal(ws[0])
    text = f"strides={strides}, padding={pairs(pads)}, dilations={dilations}, groups={group}"
    y = convolved(x, w, strides, pads, dilations, group)
    terms = int(np.prod(ws[1:])) + 1
    (ort,) = run("Conv", [x, w, bias], strides=strides, pads=pads, dilations=dilations, group=group)
    d = len(strides)
    with_bias = y + bias.reshape(1, -1, *[1] * d)
    assert np.allclose(ort, with_bias, atol=1e-4)
    cases.op("conv_bias", name, text, [x, w, bias], [with_bias], f"summed({terms})")
    # The gradients of Σ y · dy by linearity: one element of x or w at a time.
    dy = normal(*y.shape)
    dx, dw = np.zeros(xs), np.zeros(ws)
    for at in np.ndindex(*xs):
        one = np.zeros(xs)
        one[at] = 1
        dx[at] = (convolved(one, w, strides, pads, dilations, group) * dy).sum()
    for at in np.ndindex(*ws):
        one = np.zeros(ws)
        one[at] = 1
        dw[at] = (convolved(x, one, strides, pads, dilations, group) * dy).sum()
    cases.op("conv_input_grad", name, f"dims={list(xs[2:])}, " + text, [dy, w], [dx], f"summed({terms * 2})")
    cases.op("conv_weight_grad", name, f"window={list(ws[2:])}, " + text, [x, dy], [dw],
             f"summed({int(np.prod(y.shape[2:])) * xs[0]})")

for name, xs, ws, strides, pads, output, dilations, group, biased in [
    ("plain", (1, 2, 3, 3), (2, 3, 3, 3), [1, 1], [0, 0, 0, 0], [0, 0], [1, 1], 1, False),
    ("strided_bias", (2, 2, 3, 4), (2, 3, 3, 2), [3, 2], [1, 0, 1, 1], [1, 0], [1, 1], 1, True),
    ("grouped", (1, 4, 3, 2), (4, 2, 2, 3), [2, 1], [0, 1, 0, 1], [1, 0], [1, 2], 2, False),
    ("one_axis", (2, 3, 5), (3, 2, 4), [3], [2, 1], [2], [2], 1, True),
    ("three_axes", (1, 1, 2, 3, 2), (1, 2, 2, 2, 2), [2, 1, 2], [0] * 6, [0, 0, 1], [1, 1, 1], 1, False),
]:
    x, w = normal(*xs), normal(*ws)
    bias = [normal(ws[1] * group)] if biased else []
    (y,) = run("ConvTranspose", [x, w, *bias], strides=strides, pads=pads, output_padding=output,
               dilations=dilations, group=group)
    text = (f"strides={strides}, padding={pairs(pads)}, output_padding={output}, dilations={dilations}, "
            f"groups={group}")
    terms = xs[1] // group * int(np.prod(ws[2:])) + 1
    cases.op("conv_transpose", name, text, [x, w, *bias], [y], f"summed({terms})")

for name, silu, biased in [("plain", False, False), ("gated", True, True)]:
    x, w, state, bias = normal(2, 3, 5), normal(3, 1, 4), normal(2, 3, 3), normal(3)
    inputs = [x, w, state] + ([bias] if biased else [])
    y = reference("CausalConvWithState", [x, w, bias if biased else None, state], 2, opset=27,
                  activation="silu" if silu else "none")
    cases.op("causal_conv", f"convolved_{name}", f"silu={str(silu).lower()}", inputs, y, "within(2e-6, 1e-6)")

# Deformable: offsets and masks of two groups, against a plain sum over kernel elements.
for name, group, offsets, masked, biased in [("plain", 1, 1, False, False), ("grouped_masked", 2, 2, True, True)]:
    x, w, bias = normal(2, 4, 5, 6), normal(4, 4 // group, 3, 2), normal(4)
    strides, pads, dilations = [2, 1], [1, 0, 1, 1], [1, 2]
    counts = [3, 5]
    offset = normal(2, offsets * 6 * 2, *counts)
    mask = rng.random((2, offsets * 6, *counts)).astype("float32")
    y = np.zeros((2, 4, *counts))
    for n, o, i, j in np.ndindex(*y.shape):
        for c in range(4 // group):
            channel = o // (4 // group) * (4 // group) + c
            og = channel // (4 // offsets)
            for tap, (a, b) in enumerate(itertools.product(range(3), range(2))):
                dh, dw = offset[n, (og * 6 + tap) * 2, i, j], offset[n, (og * 6 + tap) * 2 + 1, i, j]
                h = i * 2 + a - 1 + float(dh)
                v = j + b * 2 + float(dw)
                top, left, value = int(np.floor(h)), int(np.floor(v)), 0.0
                for r, s in itertools.product((top, top + 1), (left, left + 1)):
                    if 0 <= r < 5 and 0 <= s < 6:
                        value += (1 - abs(h - r)) * (1 - abs(v - s)) * float(x[n, channel, r, s])
                scale = float(mask[n, og * 6 + tap, i, j]) if masked else 1.0
                y[n, o, i, j] += value * scale * float(w[o, c, a, b])
    inputs = [x, w, offset]
    given = [x, w, offset, bias if biased else None, mask if masked else None]
    if biased:
        inputs.append(bias)
        y += bias.reshape(1, -1, 1, 1)
    if masked:
        inputs.append(mask)
    (onnx,) = reference("DeformConv", given, strides=strides, pads=pads, dilations=dilations, group=group,
                        offset_group=offsets)
    assert np.allclose(onnx, y, atol=1e-4)
    text = (f"strides={strides}, padding={pairs(pads)}, dilations={dilations}, groups={group}, "
            f"offset_groups={offsets}, bias={str(biased).lower()}, mask={str(masked).lower()}")
    cases.op("deform_conv", name, text, inputs, [y], "accumulated(100)")
cases.write(__file__, VERSIONS)
