"""Cases of attention by ONNX's reference implementation, in f64 on inputs as rounded to their type."""

import ml_dtypes
import numpy as np
import onnx
from caselib import Cases
from onnx.reference.ops.op_attention import _compute_attention
from onnx.reference.ops.op_linear_attention import LinearAttention

cases = Cases("attention")


def draw(*dims, dtype="float32"):
    return cases.rng.standard_normal(dims).astype(dtype)


def wide(array):
    """The array in f64, so that the reference computes in f64; masks and lengths stay."""
    if array is None or array.dtype == np.bool_ or array.dtype.kind in "iu":
        return array
    return array.astype(np.float64)


def attention(name, attributes, q, k, v, operands=(), terms=64, **reference):
    """`operands` are (name, array) pairs; `reference` are the arguments of ONNX's function."""
    mode = reference.get("qk_matmul_output_mode")
    arguments = {key: wide(value) if isinstance(value, np.ndarray) else value for key, value in reference.items()}
    keys, values = k, v
    if "past_key" in reference:
        keys = np.concatenate([reference["past_key"], k], axis=2)
        values = np.concatenate([reference["past_value"], v], axis=2)
    y, _, _, scores = _compute_attention(wide(q), wide(k), wide(v), **arguments)
    listed = [f"operands=[{', '.join(n for n, _ in operands)}]"] if operands else []
    attributes = ", ".join(["empty_row=zeros", *listed] + ([attributes] if attributes else []))
    outputs = [y] if mode is None else [y, scores]
    inputs = [q, keys, values] + [array for _, array in operands]
    cases.op("attention", name, attributes, inputs, outputs, f"accumulated({terms})")



def options(**given):
    """The attributes that differ from their defaults."""
    return ", ".join(f"{name}={value}" for name, value in given.items())


for dtype in ("float64", "float32", "float16", ml_dtypes.bfloat16):
    q, k, v = (draw(2, 3, n, 4, dtype=dtype) for n in (5, 7, 7))
    attention(f"plain_{q.dtype.name}", options(), q, k, v)
q, k, v = draw(2, 6, 3, 4), draw(2, 2, 5, 4), draw(2, 2, 5, 3)
attention("grouped_heads_other_value_width", options(), q, k, v)
STAGES = ["raw", "capped", "masked", "probabilities"]
for mode, stage in enumerate(STAGES):
    mask = np.where(cases.rng.random((3, 5)) < 0.7, draw(3, 5), -np.inf).astype("float32")
    # The reference gives capped scores for the raw ones too, against its specification: compared without a cap.
    cap = {} if stage == "raw" else {"soft_cap": 1.5}
    attention(
        f"scores_{stage}", options(scale=0.8, **cap, causal="true", scores=stage), q, k, v, [("additive_mask", mask)],
        qk_matmul_output_mode=mode, scale=0.8, softcap=cap.get("soft_cap", 0.0), is_causal=True, attn_mask=mask,
    )
attention("causal_square", options(causal="true"), draw(1, 2, 5, 4), draw(1, 2, 5, 4), draw(1, 2, 5, 4), is_causal=True)
past = {"past_key": draw(2, 2, 4, 4), "past_value": draw(2, 2, 4, 3)}
attention(
    "causal_after_a_cache", options(causal="true"), q, k, v, [("offset", np.array(4))], is_causal=True, **past
)
lengths = np.array([5, 2])
attention(
    "lengths_and_an_offset_each", options(causal="true"), q, k, v,
    [("offset", lengths - 3), ("lengths", lengths)], is_causal=True, nonpad_kv_seqlen=lengths,
)
for left, right, causal in ((2, -1, True), (1, 1, False), (-1, 0, False), (0, 2, True)):
    given = {"causal": str(causal).lower()}
    if left >= 0:
        given["window_left"] = left
    if right >= 0:
        given["window_right"] = right
    attention(
        "_".join(["window"] + [f"{key}_{value}" for key, value in given.items()]), options(**given), q, k, v,
        [("lengths", lengths), ("offset", lengths - 3)], is_causal=causal, nonpad_kv_seqlen=lengths,
        left_window_size=left, right_window_size=right,
    )
keep = cases.rng.random((2, 1, 3, 5)) < 0.6
keep[1, 0, 2] = False
attention("keep_mask_with_an_empty_row", options(), q, k, v, [("keep_mask", keep)], attn_mask=keep)
attention(
    "empty_row_probabilities", options(scores="probabilities"), q, k, v, [("keep_mask", keep)], attn_mask=keep,
    qk_matmul_output_mode=3,
)
mask = draw(6, 1, 5)
attention("additive_mask_each_head", options(), q, k, v, [("additive_mask", mask)], attn_mask=mask)
lowest = np.full((3, 5), np.finfo("float32").min, dtype="float32")
attention("additive_row_at_the_least_float", options(), q, k, v, [("additive_mask", lowest)], attn_mask=lowest)
sixteen = np.full((1, 1, 2, 256), 16, dtype="float16")
attention("scores_beyond_f16", options(scale=1.0), sixteen, sixteen, draw(1, 1, 2, 2, dtype="float16"), scale=1.0)


class Linear(LinearAttention):
    """ONNX's reference without the machinery around it."""

    def __init__(self):
        pass


def unpacked(x, heads):
    b, t, w = x.shape
    return np.ascontiguousarray(x.reshape(b, t, heads, w // heads).transpose(0, 2, 1, 3))


heads, kv_heads, width, value_width, batch, tokens = 4, 2, 3, 5, 2, 6
q, k = draw(batch, tokens, heads * width), draw(batch, tokens, kv_heads * width)
k = k / 2
v, state = draw(batch, tokens, kv_heads * value_width), draw(batch, kv_heads, width, value_width)
decay_head = -cases.rng.random((batch, tokens, kv_heads)).astype("float32")
decay_key = -cases.rng.random((batch, tokens, kv_heads * width)).astype("float32")
beta = cases.rng.random((batch, tokens, kv_heads)).astype("float32")
beta_shared = cases.rng.random((batch, tokens, 1)).astype("float32")
for name, rule, decay, rate, scale in (
    ("linear", "linear", None, None, None),
    ("gated_by_key", "gated", decay_key, None, 0.5),
    ("delta", "delta", None, beta, None),
    ("gated_delta", "gated_delta", decay_head, beta, None),
    ("gated_delta_shared_rate", "gated_delta", decay_key, beta_shared, 0.7),
):
    y, last = Linear()._run(
        q, k, v, state, decay, rate, q_num_heads=heads, kv_num_heads=kv_heads, update_rule=rule, scale=scale
    )
    inputs = [unpacked(q, heads), unpacked(k, kv_heads), unpacked(v, kv_heads), state]
    if decay is not None:
        inputs.append(unpacked(decay, kv_heads))
    if rate is not None:
        inputs.append(unpacked(rate, rate.shape[-1]))
    cases.op(
        "linear_attention", name, f"rule={rule}" + (f", scale={scale}" if scale else ""), inputs, [unpacked(y, heads), last],
        "accumulated(64)",
    )

cases.write(__file__, {"onnx": onnx.__version__, "numpy": np.__version__})
