"""Cases of rotary embedding, gated units and causal convolution by ONNX's reference implementations, in f64 on inputs as
rounded to their type (the convolution's own activation is f32 there)."""

import ml_dtypes
import numpy as np
import onnx
from caselib import Cases
from onnx.reference.ops.op_causal_conv_with_state import CausalConvWithState
from onnx.reference.ops.op_rotary_embedding import rotary_embedding
from onnx.reference.ops.op_swiglu import SwiGLU

cases = Cases("sequence")


def draw(*dims, dtype="float32"):
    return cases.rng.standard_normal(dims).astype(dtype)


def wide(array):
    return array.astype(np.float64)


class Bare:
    """ONNX's reference classes without the machinery around them."""

    def __init__(self):
        pass


class Conv(Bare, CausalConvWithState):
    pass


class Swiglu(Bare, SwiGLU):
    pass


def rotary(name, x, cos, sin, positions=None, interleaved=False):
    y = rotary_embedding(
        wide(x), wide(cos), wide(sin), positions, interleaved=interleaved, rotary_embedding_dim=2 * cos.shape[-1]
    )
    attributes = ["interleaved=true"] if interleaved else []
    inputs = [x, cos, sin]
    if positions is not None:
        attributes.append("by_position=true")
        inputs.append(positions)
    cases.op("rotary_embedding", name, ", ".join(attributes), inputs, [y], "accumulated(4)")


def angles(*dims):
    angle = cases.rng.uniform(-3, 3, dims)
    return np.cos(angle).astype("float32"), np.sin(angle).astype("float32")


positions = np.array([[0, 3, 1], [6, 6, 2]])
for interleaved in (False, True):
    suffix = "neighbours" if interleaved else "halves"
    rotary(f"{suffix}", draw(2, 2, 3, 8), *angles(2, 3, 4), interleaved=interleaved)
    rotary(f"{suffix}_by_position", draw(2, 2, 3, 8), *angles(7, 4), positions, interleaved)
    rotary(f"{suffix}_in_part", draw(2, 2, 3, 8), *angles(7, 3), positions, interleaved)
    for dtype in ("float64", "float16", ml_dtypes.bfloat16):
        x = draw(2, 1, 3, 4, dtype=dtype)
        cos, sin = (t.astype(dtype) for t in angles(7, 2))
        rotary(f"{suffix}_{x.dtype.name}", x, cos, sin, positions, interleaved)

for alpha in (1.0, 1.5):
    for dtype in ("float64", "float32", "float16", ml_dtypes.bfloat16):
        gate, x = draw(3, 5, dtype=dtype), draw(3, 5, dtype=dtype)
        (y,) = Swiglu()._run(wide(gate), wide(x), alpha)
        cases.op(
            "gated", f"swiglu_alpha_{alpha}_{gate.dtype.name}", f"gate=silu, alpha={alpha}", [gate, x], [y],
            "accumulated(4)",
        )


def conv(name, tokens, taps, bias=False, silu=False, dtype="float32", channels=3):
    x, w, state = draw(2, channels, tokens, dtype=dtype), draw(channels, 1, taps, dtype=dtype), draw(2, channels, taps - 1, dtype=dtype)
    b = draw(channels, dtype=dtype) if bias else None
    y, last = Conv()._run(wide(x), wide(w), wide(b) if bias else None, wide(state), "silu" if silu else "none")
    cases.op("causal_conv", name, "silu=true" if silu else "", [x, w, state] + [b] * bias, [y, last], f"accumulated({taps + 4})")


conv("plain", 5, 4)
conv("bias_silu", 5, 4, True, True)
conv("one_token", 1, 4, True, True)
conv("one_tap", 5, 1)
conv("fewer_tokens_than_taps", 2, 5, True)
for dtype in ("float64", "float16", ml_dtypes.bfloat16):
    conv(f"bias_{np.dtype(dtype).name}", 5, 3, True, False, dtype)

cases.write(__file__, {"onnx": onnx.__version__, "numpy": np.__version__})
