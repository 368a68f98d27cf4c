"""Codes of small floats: how each 8-bit code decodes, and how hard f64 values encode.

Decoding is that of ml_dtypes. For encoding, the nearest code (ties to even) is found by exact fractions over
ml_dtypes' decoded values; where f32 holds the input, ml_dtypes (and onnx for `saturate`) must agree, else the
script fails. Records: `decode FORMAT code-values...`, `encode FORMAT saturate input code`, and
`e8m0 round-mode saturate input code`.
"""

import bisect
import math
import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnx.numpy_helper

from goldens import f32_hex, f64_hex, write

warnings.filterwarnings("ignore", category=RuntimeWarning)

FORMATS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}
WIDTHS = {"f16": 16, "bf16": 16, "f4e2m1": 4}
ONNX_SATURATES = {name for name in FORMATS if name.startswith("f8")}


def decoded(name):
    """The values of all codes, as f64."""
    word = np.uint16 if WIDTHS.get(name, 8) == 16 else np.uint8
    codes = np.arange(1 << WIDTHS.get(name, 8)).astype(word)
    return codes.view(FORMATS[name]).astype(np.float32).astype(np.float64)


def code_of(name, array):
    word = np.uint16 if WIDTHS.get(name, 8) == 16 else np.uint8
    return int(array.view(word)[0])


def hard_values(name, finite):
    """Values and midpoints of codes at the ends of binades, each with its f64 neighbours; then specials."""
    top = len(finite) - 1
    picks = set(range(0, 5)) | set(range(max(0, top - 4), top))
    step = max(1, top // 8)
    for start in range(0, top, step):
        picks |= {start, min(start + 1, top - 1)}
    values = []
    for index in sorted(pick for pick in picks if 0 <= pick < top):
        low, high = finite[index], finite[index + 1]
        middle = (low + high) / 2
        values += [low, middle, math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf)]
    greatest = finite[-1]
    beyond = greatest + (greatest - finite[-2]) / 2
    values += [greatest, math.nextafter(beyond, 0), beyond, math.nextafter(beyond, math.inf)]
    values += [greatest * 2, 1e300, math.inf, 5e-324, 1e-310, 1 / 3, math.pi]
    return values + [-value for value in values]


def nearest(name, finite, value):
    """The magnitude code nearest to |value|, where one more code follows the greatest; ties to even."""
    magnitude = Fraction(abs(value))
    extended = finite + [2 * finite[-1] - finite[-2]]
    at = bisect.bisect_right(extended, abs(value)) - 1
    if at == len(extended) - 1:
        return at
    below, above = magnitude - Fraction(extended[at]), Fraction(extended[at + 1]) - magnitude
    if below == above:
        return at + at % 2
    return at if below < above else at + 1


def encode(name, finite, value, saturate):
    dtype = FORMATS[name]
    special = np.array([value], dtype=np.float32).astype(dtype)
    greatest = len(finite) - 1
    sign = (1 << (WIDTHS.get(name, 8) - 1)) if math.copysign(1, value) < 0 else 0
    code = greatest + 1 if math.isinf(value) else nearest(name, finite, value)
    if code > greatest:
        if saturate or name == "f4e2m1":
            code = greatest
        else:
            return code_of(name, np.array([math.copysign(math.inf, value)], dtype=np.float32).astype(dtype))
    if code == 0 and name.endswith("fnuz"):
        sign = 0
    expected = sign | code
    if float(np.float32(value)) == value:
        theirs = onnx.numpy_helper.saturate_cast(np.array([value], np.float32), dtype) if saturate else special
        assert code_of(name, theirs) == expected, (name, value, saturate, code_of(name, theirs), expected)
    return expected


def main():
    lines = []
    for name in FORMATS:
        values = decoded(name)
        if WIDTHS.get(name, 8) <= 8:
            lines.append(f"decode {name} " + " ".join(f32_hex(value) for value in values))
        half = values[: len(values) // 2]
        finite = [float(value) for value in half if math.isfinite(value)]
        for value in hard_values(name, finite):
            for saturate in (False, True) if name in ONNX_SATURATES else (False,):
                code = encode(name, finite, value, saturate)
                lines.append(f"encode {name} {int(saturate)} {f64_hex(value)} {code:04x}")
        # ml_dtypes turns the NaNs into -0 and, for a set sign, +0 in e2m1; a result that hangs on the sign of
        # a NaN is no reference.
        for value in (math.nan,) if name == "f4e2m1" else (math.nan, -math.nan):
            code = code_of(name, np.array([value], dtype=np.float32).astype(FORMATS[name]))
            lines.append(f"encode {name} 0 {f64_hex(value)} {code:04x}")
    scales = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    lines.append("decode e8m0 " + " ".join(f32_hex(value) for value in scales))
    for exponent in (-126, -125, -3, 0, 1, 100, 126, 127):
        for fraction in (1.0, 1.0 + 2**-23, 1.25, 1.5 - 2**-23, 1.5, 1.5 + 2**-23, 2 - 2**-23):
            value = fraction * 2.0**exponent
            for mode in ("up", "down", "nearest"):
                for saturate in (True, False):
                    code = onnx.numpy_helper.to_float8e8m0(np.array([value], np.float32), saturate, mode)
                    lines.append(f"e8m0 {mode} {int(saturate)} {f64_hex(value)} {int(code.view(np.uint8)[0]):04x}")
    write("minifloat", lines)


main()
