"""Records what onnxruntime's own operators (domain com.microsoft) give, as the tests of rlx-onnx read it.

FOLDER gets one folder a case, in the layout of the ONNX node tests: `model.onnx` with one node, and
`test_data_set_0/{input,output}_I.pb`. onnxruntime runs on one thread without optimisation, so that each node is
the operator's own kernel.

Usage: onnxruntime_contrib.py FOLDER
"""

import argparse
import pathlib
import shutil

import numpy
import onnxruntime
from onnx import ValueInfoProto, helper, numpy_helper

RANDOM = numpy.random.default_rng(20261201)


def floats(*dims, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, dims).astype(numpy.float32)


def integers(dtype, low, high, *dims):
    return RANDOM.integers(low, high, dims, endpoint=True).astype(dtype)


def array(dtype, values):
    return numpy.array(values, dtype)


CASES = []


def case(name, operator, inputs, outputs=1, **attributes):
    """Inputs in order; None leaves one out."""
    CASES.append((name, operator, inputs, outputs, attributes))


def quantised_products():
    u8, i8 = numpy.uint8, numpy.int8
    scale = array(numpy.float32, 0.02)
    for name, dtype, zero in [("i8", i8, 3), ("u8", u8, 120)]:
        weights = integers(dtype, numpy.iinfo(dtype).min, numpy.iinfo(dtype).max, 5, 4)
        case(
            f"dynamic_quantize_matmul_{name}",
            "DynamicQuantizeMatMul",
            [floats(2, 3, 5), weights, array(numpy.float32, [0.02]), array(dtype, [zero]), floats(4)],
        )
    columns = floats(4, low=0.01, high=0.05)
    case(
        "dynamic_quantize_matmul_columns",
        "DynamicQuantizeMatMul",
        [floats(3, 5), integers(i8, -127, 127, 5, 4), columns, None, None],
    )
    case(
        "matmul_integer_to_float",
        "MatMulIntegerToFloat",
        [
            integers(u8, 0, 255, 3, 5),
            integers(i8, -127, 127, 5, 4),
            scale,
            columns,
            array(u8, 100),
            integers(i8, -5, 5, 4),
            floats(4),
        ],
    )
    for name, zero_points in [("symmetric", False), ("zero_points", True)]:
        inputs = [floats(2, 40), integers(u8, 0, 255, 6, 2, 16), floats(12, low=0.01, high=0.1)]
        if zero_points:
            inputs.append(integers(u8, 0, 255, 6))
        case(f"matmul_nbits_{name}", "MatMulNBits", inputs, K=40, N=6, bits=4, block_size=32)


def quantised_elementwise():
    u8 = numpy.uint8
    x, y = integers(u8, 0, 255, 3, 4), integers(u8, 0, 255, 4)
    first = [array(numpy.float32, 0.03), array(u8, 120)]
    second = [array(numpy.float32, 0.02), array(u8, 30)]
    result = [array(numpy.float32, 0.05), array(u8, 90)]
    case("qlinear_add", "QLinearAdd", [x, *first, y, *second, *result])
    case("qlinear_mul", "QLinearMul", [x, *first, y, *second, *result])
    sigmoid = [array(numpy.float32, 1 / 256), array(u8, 0)]
    case("qlinear_sigmoid", "QLinearSigmoid", [x, *first, *sigmoid])
    weights = integers(numpy.int8, -127, 127, 5, 4)
    of_weights = [array(numpy.float32, 0.01), array(numpy.int8, 0)]
    bias = integers(numpy.int32, -500, 500, 5)
    inputs = [x, *first, weights, *of_weights, bias]
    case("qgemm", "QGemm", [*inputs, *result], transB=1)
    case("qgemm_float", "QGemm", inputs, transB=1)


def quantised_lstm():
    hidden, width = 3, 4
    # With a batch of one, how onnxruntime spreads samples over threads does not change what is quantised together.
    for name, directions, dtype in [
        ("forward", 1, numpy.int8),
        ("reverse", 1, numpy.uint8),
        ("bidirectional", 2, numpy.int8),
    ]:
        least, greatest = numpy.iinfo(dtype).min, numpy.iinfo(dtype).max
        zero = 0 if dtype == numpy.int8 else 128
        state = [floats(directions, 1, hidden), floats(directions, 1, hidden)]
        case(
            f"dynamic_quantize_lstm_{name}",
            "DynamicQuantizeLSTM",
            [
                floats(5, 1, width),
                integers(dtype, least, greatest, directions, width, 4 * hidden),
                integers(dtype, least, greatest, directions, hidden, 4 * hidden),
                floats(directions, 8 * hidden),
                None,
                *(state if directions == 2 else [None, None]),
                None,
                floats(directions, low=0.005, high=0.01),
                numpy.full(directions, zero, dtype),
                floats(directions, low=0.005, high=0.01),
                numpy.full(directions, zero, dtype),
            ],
            outputs=3,
            direction=name,
            hidden_size=hidden,
        )


def attention():
    batch, tokens, heads, width = 2, 3, 2, 4
    size = heads * width
    x, weights, bias = floats(batch, tokens, 5), floats(5, 3 * size), floats(3 * size)
    case("attention", "Attention", [x, weights, bias], num_heads=heads)
    masks = {
        "lengths": array(numpy.int32, [2, 3]),
        "keys": array(numpy.int32, [[1, 1, 0], [0, 1, 1]]),
        "queries": integers(numpy.int32, 0, 1, batch, tokens, tokens),
    }
    for name, mask in masks.items():
        case(f"attention_mask_{name}", "Attention", [x, weights, bias, mask], num_heads=heads)
    past = floats(2, batch, heads, 2, width)
    case(
        "attention_past_causal",
        "Attention",
        [x, weights, bias, None, past],
        outputs=2,
        num_heads=heads,
        unidirectional=1,
    )
    sizes = [6, 6, 4]
    case(
        "attention_sizes",
        "Attention",
        [x, floats(5, 16), floats(16), None, None, floats(1, heads, tokens, tokens)],
        num_heads=heads,
        qkv_hidden_sizes=sizes,
        scale=0.3,
    )
    q, k, v = floats(batch, tokens, size), floats(batch, 4, size), floats(batch, 4, size)
    case("multi_head_attention", "MultiHeadAttention", [q, k, v], num_heads=heads)
    case(
        "multi_head_attention_bias_mask",
        "MultiHeadAttention",
        [q, k, v, bias, array(numpy.int32, [[1, 1, 1, 0], [1, 0, 1, 1]]), floats(1, heads, tokens, 4)],
        num_heads=heads,
    )
    cache = [floats(batch, heads, 2, width), floats(batch, heads, 2, width)]
    case(
        "multi_head_attention_past_causal",
        "MultiHeadAttention",
        [q, q[:, ::-1].copy(), floats(batch, tokens, size), None, None, None, *cache],
        outputs=3,
        num_heads=heads,
        unidirectional=1,
    )


def grouped_attention():
    batch, heads, kv_heads, width = 2, 4, 2, 16
    tables = [floats(10, width // 2), floats(10, width // 2)]

    def inputs(tokens, past, total, lengths, extra=()):
        cache = [floats(batch, kv_heads, past, width), floats(batch, kv_heads, past, width)]
        return [
            floats(batch, tokens, heads * width),
            floats(batch, tokens, kv_heads * width),
            floats(batch, tokens, kv_heads * width),
            *cache,
            array(numpy.int32, lengths),
            array(numpy.int32, total),
            *extra,
        ]

    counts = {"num_heads": heads, "kv_num_heads": kv_heads, "outputs": 3}
    operator = "GroupQueryAttention"
    case("group_query_attention_prompt", operator, inputs(3, 0, 3, [2, 2]), **counts)
    case("group_query_attention_padded", operator, inputs(3, 0, 3, [2, 1]), **counts)
    case("group_query_attention_past", operator, inputs(1, 4, 5, [4, 4], tables), do_rotary=1, **counts)
    case("group_query_attention_buffer", operator, inputs(1, 6, 4, [3, 3]), softcap=2.0, **counts)
    case("group_query_attention_ragged", operator, inputs(1, 4, 5, [4, 2]), **counts)
    case(
        "group_query_attention_interleaved",
        operator,
        inputs(3, 0, 3, [2, 2], tables),
        do_rotary=1,
        rotary_interleaved=1,
        scale=0.1,
        **counts,
    )
    case("group_query_attention_window", operator, inputs(5, 0, 5, [4, 4]), local_window_size=2, **counts)
    case("group_query_attention_smooth", operator, inputs(3, 0, 3, [2, 2]), smooth_softmax=1, **counts)
    packed = [floats(batch, 3, (heads + 2 * kv_heads) * width), None, None, *inputs(3, 0, 3, [2, 2])[3:]]
    case("group_query_attention_packed", operator, packed, **counts)


def embeddings():
    tables = [floats(6, 2), floats(6, 2)]
    x = floats(2, 3, 8)
    first, each = array(numpy.int64, [1]), array(numpy.int64, [[0, 1, 2], [3, 4, 5]])
    case("rotary_embedding_first", "RotaryEmbedding", [x, first, *tables])
    case("rotary_embedding_each", "RotaryEmbedding", [x, each, *tables], interleaved=1)
    case("rotary_embedding_heads", "RotaryEmbedding", [floats(2, 2, 3, 4), each, *tables])
    case(
        "rotary_embedding_partial",
        "RotaryEmbedding",
        [floats(2, 3, 12), each, *tables],
        num_heads=2,
        rotary_embedding_dim=4,
    )
    ids = integers(numpy.int32, 0, 6, 2, 3)
    segments, mask = integers(numpy.int32, 0, 1, 2, 3), array(numpy.int32, [[1, 1, 0], [1, 1, 1]])
    words, places, of_segments = floats(7, 8), floats(5, 8), floats(2, 8)
    norm = [floats(8), floats(8)]
    case(
        "embed_layer_normalization",
        "EmbedLayerNormalization",
        [ids, segments, words, places, of_segments, *norm, mask],
        outputs=2,
    )
    case(
        "embed_layer_normalization_plain",
        "EmbedLayerNormalization",
        [ids, None, words, places, None, *norm],
        outputs=2,
        epsilon=1e-5,
    )


def session_options():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return options


def record(folder, name, operator, inputs, outputs, attributes):
    """Writes one case."""
    given = [(f"x{i}", value) for i, value in enumerate(inputs) if value is not None]
    results = [f"y{i}" for i in range(outputs)]
    named = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    node = helper.make_node(operator, named, results, domain="com.microsoft", **attributes)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given
    ]

    def model(types):
        graph = helper.make_graph(
            [node],
            name,
            declared,
            types,
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    # onnxruntime infers the types that the first model leaves open.
    first = model([ValueInfoProto(name=result) for result in results]).SerializeToString()
    session = onnxruntime.InferenceSession(first, session_options(), providers=["CPUExecutionProvider"])
    values = session.run(None, dict(given))
    types = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip(results, values)
    ]
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(model(types).SerializeToString())
    for i, (n, value) in enumerate(given):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value, n).SerializeToString())
    for i, value in enumerate(values):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value, results[i]).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    if folder.exists():
        shutil.rmtree(folder)
    quantised_products()
    quantised_elementwise()
    quantised_lstm()
    attention()
    grouped_attention()
    embeddings()
    for each in CASES:
        record(folder, *each)


if __name__ == "__main__":
    main()
