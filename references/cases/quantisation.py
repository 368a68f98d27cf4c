"""Records linear quantisation and integer products by onnxruntime and onnx's reference evaluator, and products with
weights of few bits by numpy.

    pip install numpy ml_dtypes onnx==1.23.2 onnxruntime
    python references/cases/quantisation.py
"""

import ml_dtypes
import numpy as np
import onnx
from caselib import Cases, literal
from onnx_node import VERSIONS, reference, run

cases = Cases("quantisation", 15)
rng = cases.rng
F8 = {"f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
      "f8e5m2": ml_dtypes.float8_e5m2, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz}
RANGES = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767)}
NAMES = {"u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16"}


def normal(*dims):
    return rng.standard_normal(dims).astype("float32")


def attributes(axis=1, block=0):
    return f"axis={axis}, block_size={block}, "


special = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf, 127.5], "float32")
for to, (low, high) in RANGES.items():
    dtype = NAMES[to]
    zero = np.array(3, dtype)
    y = np.clip(np.rint(special) + 3, low, high).astype(dtype)
    cases.op("quantize_linear", f"{to}_ends", attributes() + f"to={to}, saturate=true",
             [special, np.float32(1), zero], [y])
    x = normal(2, 3, 4) * 40
    scale = np.array([0.3, 0.7, 1.1], "float32")
    zeros = np.array([low // 3, 5, high // 2]).astype(dtype)
    (y,) = reference("QuantizeLinear", [x, scale, zeros], opset=25, axis=1)
    cases.op("quantize_linear", f"{to}_axis", attributes(-2) + f"to={to}, saturate=true", [x, scale, zeros], [y])
    (back,) = reference("DequantizeLinear", [y, scale, zeros], opset=25, axis=1)
    cases.op("dequantize_linear", f"{to}_axis", attributes() + "to=f32", [y, scale, zeros], [back])
    x = normal(3, 7) * 40
    scale = (rng.random((3, 3)) + 0.2).astype("float32")
    zeros = rng.integers(low // 2, high // 2, (3, 3)).astype(dtype)
    (y,) = reference("QuantizeLinear", [x, scale, zeros], opset=25, axis=1, block_size=3)
    cases.op("quantize_linear", f"{to}_blocks", attributes(1, 3) + f"to={to}, saturate=true", [x, scale, zeros], [y])
    (back,) = reference("DequantizeLinear", [y, scale, zeros], opset=25, axis=1, block_size=3)
    cases.op("dequantize_linear", f"{to}_blocks", attributes(1, 3) + "to=f32", [y, scale, zeros], [back])
x = np.array([0.0, 1.0, 2.0, 100000.0, 200.0, -448.0, 464.0, 465.0, 1e-3, np.nan, np.inf, -np.inf], "float32")
for to, dtype in F8.items():
    for saturate in (0, 1):
        zero = np.zeros((1,), dtype)
        (y,) = reference("QuantizeLinear", [x, np.float32(2).reshape(1), zero], opset=25, saturate=saturate)
        cases.op("quantize_linear", f"{to}_{saturate}",
                 attributes() + f"to={to}, saturate={str(bool(saturate)).lower()}",
                 [x, np.float32(2).reshape(1), zero], [y])
    (back,) = reference("DequantizeLinear", [y, np.float32(2)], opset=25)
    cases.op("dequantize_linear", to, attributes() + "to=f32", [y, np.float32(2)], [back])


def packed(values, bits):
    """Rows of numbers of few bits in bytes, low bits first; the last byte of a row is filled with zeros."""
    per = 8 // bits
    rows = values.reshape(-1, values.shape[-1]).astype("int64") & ((1 << bits) - 1)
    rows = np.pad(rows, [(0, 0), (0, -rows.shape[1] % per)])
    weights = 1 << (bits * np.arange(per))
    return (rows.reshape(rows.shape[0], -1, per) * weights).sum(-1).astype("uint8")


def narrow(values, name, bits):
    """The literal of a type that numpy does not have."""
    dims = ", ".join(map(str, values.shape))
    return f'{name}[{dims}] "x{packed(values, bits).tobytes().hex()}"'


for name, bits, low, high in [("u4", 4, 0, 15), ("i4", 4, -8, 7), ("u2", 2, 0, 3), ("i2", 2, -2, 1)]:
    x = normal(3, 5) * high
    scale = np.array([0.5, 0.8, 1.0, 1.5, 0.9], "float32")
    zeros = rng.integers(low, high + 1, (5,))
    y = np.clip(np.rint(x / scale) + zeros, low, high).astype("int64")
    given = [literal(x), literal(scale), narrow(zeros, name, bits)]
    text = f'graph "case"(%x: f32[3, 5], %s: f32[5], %z: {name}[5]) {{\n  %y = quantize_linear<{attributes()}to={name}, '
    text += 'saturate=true>(%x, %s, %z)\n  return "y" = %y\n}'
    cases.entries.append(f'case "quantize_linear/{name}_axis"\n{text}\nrun: {", ".join(given)}\n'
                         f"  -> {narrow(y, name, bits)}\n")
    back = ((y - zeros) * scale).astype("float32")
    text = f'graph "case"(%x: {name}[3, 5], %s: f32[5], %z: {name}[5]) {{\n  %y = dequantize_linear<{attributes()}to=f32>'
    text += '(%x, %s, %z)\n  return "y" = %y\n}'
    given = [narrow(y, name, bits), literal(scale), narrow(zeros, name, bits)]
    cases.entries.append(f'case "dequantize_linear/{name}_axis"\n{text}\nrun: {", ".join(given)}\n'
                         f"  -> {literal(back)}\n")
x = rng.integers(-100000, 100000, (5,)).astype("int32")
cases.op("dequantize_linear", "i32", attributes(0) + "to=f32", [x, np.float32(0.25)], [(x * 0.25).astype("float32")])
x = np.array([1.0, -3.0, 7.5], "float16")
(y,) = reference("QuantizeLinear", [x, np.float32(0.3), np.uint8(9)], opset=25, precision=onnx.TensorProto.FLOAT16)
cases.op("quantize_linear", "precision", attributes(0) + "to=u8, saturate=true, precision=f16",
         [x, np.float32(0.3), np.uint8(9)], [y])
for name, x in [("both_signs", normal(3, 4)), ("positive", np.abs(normal(5)) + 1), ("negative", -np.abs(normal(5)) - 1),
                ("zeros", np.zeros((4,), "float32"))]:
    cases.op("dynamic_quantize_linear", name, "", [x], run("DynamicQuantizeLinear", [x], 3))

# Products.
for name, left, right, a_type, b_type, a_zero, b_zero in [
    ("plain", (3, 4), (4, 2), "uint8", "uint8", None, None),
    ("zero_points", (3, 4), (4, 2), "uint8", "int8", (), ()),
    ("columns", (3, 4), (4, 2), "int8", "int8", (), (2,)),
    ("rows", (3, 4), (4, 2), "uint8", "uint8", (3,), None),
    ("batched", (2, 1, 3, 4), (5, 4, 2), "uint8", "int8", (), (2,)),
]:
    info = [np.iinfo(a_type), np.iinfo(b_type)]
    a = rng.integers(info[0].min, info[0].max + 1, left).astype(a_type)
    b = rng.integers(info[1].min, info[1].max + 1, right).astype(b_type)
    za = None if a_zero is None else rng.integers(1, 100, a_zero).astype(a_type)
    zb = None if b_zero is None else rng.integers(1, 100, b_zero).astype(b_type)
    row = 0 if za is None else za.astype("int64").reshape(za.shape + (1,) * za.ndim)
    y = (a.astype("int64") - row) @ (b.astype("int64") - (0 if zb is None else zb.astype("int64")))
    text = f"lhs_zero_point={str(za is not None).lower()}, rhs_zero_point={str(zb is not None).lower()}"
    inputs = [v for v in (a, b, za, zb) if v is not None]
    cases.op("matmul_integer", name, text, inputs, [y.astype("int32")])
x = rng.integers(0, 256, (1, 2, 5, 6)).astype("uint8")
w = rng.integers(0, 256, (4, 1, 3, 2)).astype("uint8")
zx, zw = np.uint8(7), np.uint8(130)
(y,) = run("ConvInteger", [x, w, zx, zw], group=2, pads=[1, 0, 1, 1], strides=[2, 1])
text = "strides=[2, 1], padding=[(1, 1), (0, 1)], dilations=[1, 1], groups=2"
cases.op("conv_integer", "padded", text + ", x_zero_point=true, w_zero_point=true", [x, w, zx, zw], [y])
for a_type, b_type in [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")]:
    a = rng.integers(np.iinfo(a_type).min, np.iinfo(a_type).max + 1, (2, 3, 5)).astype(a_type)
    b = rng.integers(np.iinfo(b_type).min, np.iinfo(b_type).max + 1, (5, 4)).astype(b_type)
    inputs = [a, np.float32(0.031), np.array(9, a_type), b, np.float32(0.017), np.array(-4 if b_type == "int8" else 4, b_type),
              np.float32(0.29), np.array(21, a_type)]
    cases.op("qlinear_matmul", f"{a_type}_{b_type}", "", inputs, run("QLinearMatMul", inputs, opset=21))
scales = (rng.random(4) * 0.02 + 0.01).astype("float32")
inputs = [x, np.float32(0.05), zx, w, scales, np.full(4, 130, "uint8"), np.float32(1.7), np.uint8(100)]
bias = rng.integers(-3000, 3000, 4).astype("int32")
for name, more in [("plain", []), ("bias", [bias])]:
    (y,) = run("QLinearConv", inputs + more, group=2, pads=[1, 0, 1, 1], strides=[2, 1])
    cases.op("qlinear_conv", name, text, inputs + more, [y])

# Weights of few bits.
for name, bits, n, k, block, zero, grouped, biased in [
    ("u4", 4, 3, 32, 16, None, False, False), ("u4_zero_points", 4, 3, 40, 16, "packed", False, True),
    ("u8_zero_points", 8, 2, 20, 16, "packed", False, False), ("u2", 2, 3, 32, 16, "packed", False, False),
    ("float_zero_points", 4, 3, 32, 16, "float", False, False), ("groups", 4, 2, 32, 16, "packed", True, True),
]:
    blocks = -(-k // block)
    q = rng.integers(0, 1 << bits, (n, blocks * block))
    scales = (rng.random((n, blocks)) + 0.1).astype("float32")
    x = normal(2, 3, k)
    inputs, zeros = [x, packed(q, bits).reshape(n, blocks, -1), scales.ravel()], np.full((n, blocks), 2.0 ** (bits - 1))
    if zero == "packed":
        zeros = rng.integers(0, 1 << bits, (n, blocks))
        inputs.append(packed(zeros, bits).ravel())
    elif zero == "float":
        zeros = (rng.random((n, blocks)) * 15).astype("float32")
        inputs.append(zeros.ravel())
    group = rng.integers(0, blocks, k).astype("int32") if grouped else (np.arange(k) // block).astype("int32")
    if grouped:
        inputs.append(group)
    w = (q[:, :k] - zeros[:, group].astype("float64")) * scales[:, group].astype("float64")
    y = x.astype("float64") @ w.T
    bias = normal(n)
    if biased:
        inputs.append(bias)
        y += bias
    # onnxruntime 1.32 takes 8 for every zero point where group indices are given, whatever the zero points are.
    if bits != 2 and zero != "float" and not grouped:
        given = inputs[:3] + [inputs[3] if zero else None, group if grouped else None, bias if biased else None]
        (ort,) = run("MatMulNBits", given, domain="com.microsoft", opset=21, K=k, N=n, bits=bits, block_size=block)
        assert np.allclose(ort, y, rtol=2e-3, atol=2e-2), name
    attrs = (f"bits={bits}, block_size={block}, zero_points={str(bool(zero)).lower()}, "
             f"group_indices={str(grouped).lower()}, bias={str(biased).lower()}")
    cases.op("matmul_nbits", name, attrs, inputs, [y], f"accumulated({4 * k})")
cases.write(__file__, {**VERSIONS, "ml_dtypes": ml_dtypes.__version__})
