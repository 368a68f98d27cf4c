"""Records what onnxruntime's own operators (domain com.microsoft) give, as the tests of rlx-onnx read it.

FOLDER gets one folder a case, as `onnxruntime_nodes.py` writes it.

Usage: onnxruntime_contrib.py FOLDER
"""

import numpy

from onnxruntime_nodes import Cases, folder_argument

RANDOM = numpy.random.default_rng(20261201)


def floats(*dims, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, dims).astype(numpy.float32)


def integers(dtype, low, high, *dims):
    return RANDOM.integers(low, high, dims, endpoint=True).astype(dtype)


def array(dtype, values):
    return numpy.array(values, dtype)


CASES = Cases()


def case(name, operator, inputs, outputs=1, **attributes):
    """Inputs in order; None leaves one out."""
    opsets = {"": 17, "com.microsoft": 1}
    CASES.add(name, operator, inputs, opsets=opsets, domain="com.microsoft", outputs=outputs, **attributes)


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


def gelus():
    # Below −3 the tanh form cancels in f32 to more than a rounding of f16.
    x, bias = floats(2, 3, 5, low=-2, high=4), floats(5)
    case("bias_gelu", "BiasGelu", [x, bias])
    case("gelu", "Gelu", [x])
    case("fast_gelu", "FastGelu", [x])
    case("fast_gelu_bias", "FastGelu", [x, bias])
    case("quick_gelu", "QuickGelu", [x])
    case("quick_gelu_alpha", "QuickGelu", [x], alpha=0.7)
    half = [x.astype(numpy.float16), bias.astype(numpy.float16)]
    case("gelu_f16", "Gelu", half[:1])
    case("bias_gelu_f16", "BiasGelu", half)
    case("fast_gelu_f16", "FastGelu", half)
    case("quick_gelu_f16", "QuickGelu", half[:1])


# Activations with their parameters alpha, beta and gamma: those of both operators, and those of one of them.
ACTIVATIONS = {
    "relu": ("Relu", []),
    "tanh": ("Tanh", []),
    "sigmoid": ("Sigmoid", []),
    "leaky_relu": ("LeakyRelu", [0.2]),
    "hard_sigmoid": ("HardSigmoid", [0.3, 0.4]),
}
OF_CONVOLUTION = {"clip": ("Clip", [-0.25, 0.5])}
OF_PRODUCT = {
    "elu": ("Elu", [0.7]),
    "selu": ("Selu", [0.7, None, 1.2]),
    "softplus": ("Softplus", []),
    "softsign": ("Softsign", []),
    "thresholded_relu": ("ThresholdedRelu", [0.2]),
}


def fused_convolutions():
    x, weights, bias = floats(2, 4, 6, 5), floats(6, 2, 3, 3, low=-0.5, high=0.5), floats(6)
    placed = {"group": 2, "strides": [2, 1], "pads": [1, 0, 0, 1]}
    for name, (activation, parameters) in {**ACTIVATIONS, **OF_CONVOLUTION}.items():
        given = {"activation_params": parameters} if parameters else {}
        case(f"fused_conv_{name}", "FusedConv", [x, weights, bias], activation=activation, **given, **placed)
    case("fused_conv_no_bias", "FusedConv", [x, weights], activation="Relu", **placed)
    addend = floats(2, 6, 3, 4)
    case("fused_conv_sum", "FusedConv", [x, weights, bias, addend], activation="Relu", **placed)
    half = [value.astype(numpy.float16) for value in [x, weights, bias, addend]]
    case("fused_conv_f16", "FusedConv", half, activation="Sigmoid", **placed)
    case("fused_conv_sum_only", "FusedConv", [x, weights, None, addend], **placed)
    same = {"auto_pad": "SAME_LOWER", "strides": [2, 1], "group": 2}
    case("fused_conv_same_lower", "FusedConv", [x, weights, bias], activation="Tanh", **same)


def fused_products():
    x, y, addend = floats(3, 4), floats(4, 5), floats(5)
    parameter_names = ["activation_alpha", "activation_beta", "activation_gamma"]
    for name, (activation, parameters) in {**ACTIVATIONS, **OF_PRODUCT}.items():
        given = {n: value for n, value in zip(parameter_names, parameters) if value is not None}
        case(f"fused_gemm_{name}", "FusedGemm", [x, y, addend], activation=activation, **given)
    scaled = {"alpha": 0.5, "beta": -2.0, "transA": 1, "transB": 1}
    inputs = [x.T.copy(), y.T.copy(), floats(3, 1)]
    case("fused_gemm_scaled", "FusedGemm", inputs, activation="Relu", **scaled)
    half = [value.astype(numpy.float16) for value in [x, y, addend]]
    case("fused_gemm_f16", "FusedGemm", half, activation="Relu", alpha=0.3)
    case("fused_gemm_no_addend", "FusedGemm", [x, y], activation="Sigmoid")

    x, y = floats(2, 3, 4, 5), floats(2, 3, 5, 6)
    case("fused_matmul", "FusedMatMul", [x, y], alpha=0.25)
    swapped_x, swapped_y = x.swapaxes(2, 3).copy(), y.swapaxes(2, 3).copy()
    case("fused_matmul_f16", "FusedMatMul", [x.astype(numpy.float16), y.astype(numpy.float16)], alpha=0.3)
    case("fused_matmul_f64", "FusedMatMul", [x.astype(numpy.float64), y.astype(numpy.float64)], alpha=0.3)
    case("fused_matmul_trans_a", "FusedMatMul", [swapped_x, y], transA=1)
    case("fused_matmul_trans_b", "FusedMatMul", [x, swapped_y], transB=1, alpha=-1.5)
    case("fused_matmul_trans_both", "FusedMatMul", [swapped_x, swapped_y], transA=1, transB=1)
    case("fused_matmul_broadcast", "FusedMatMul", [x, floats(6, 5)], transB=1)
    case("fused_matmul_vector", "FusedMatMul", [floats(5), y], transA=1, transB=0)
    case("transpose_matmul", "TransposeMatMul", [swapped_x, y], transA=1, alpha=3.0)
    # The rows of the matrices come first, the batch after them.
    moved_x, moved_y = numpy.moveaxis(x, 2, 0).copy(), numpy.moveaxis(y, 2, 0).copy()
    case("fused_matmul_batch_a", "FusedMatMul", [moved_x, y], transBatchA=1)
    case("fused_matmul_batch_b", "FusedMatMul", [x, moved_y], transBatchB=1)
    first_x = numpy.moveaxis(swapped_x, 2, 0).copy()
    first_y = numpy.moveaxis(swapped_y, 2, 0).copy()
    case(
        "fused_matmul_batch_trans",
        "FusedMatMul",
        [first_x, first_y],
        transA=1,
        transB=1,
        transBatchA=1,
        transBatchB=1,
        alpha=0.5,
    )


def skip_norms():
    x, skip = floats(2, 3, 8), floats(2, 3, 8)
    scale, shift, bias = floats(8), floats(8), floats(8)
    operator = "SkipLayerNormalization"
    case("skip_layer_norm", operator, [x, skip, scale])
    case("skip_layer_norm_shift", operator, [x, skip, scale, shift])
    case("skip_layer_norm_bias", operator, [x, skip, scale, None, bias], outputs=[0, 3], epsilon=0.1)
    case("skip_layer_norm_all", operator, [x, skip, scale, shift, bias], outputs=4)
    case("skip_layer_norm_rows", operator, [floats(6, 8), floats(6, 8), scale, shift, bias])
    case("skip_layer_norm_one_skip", operator, [x, skip[:1].copy(), scale, shift], outputs=[0, 3])
    case("skip_layer_norm_flat_skip", operator, [x, skip[0].copy(), scale, shift, bias], outputs=4)
    half = [value.astype(numpy.float16) for value in [x, skip, scale, shift, bias]]
    case("skip_layer_norm_f16", operator, half, outputs=4)

    operator = "SkipSimplifiedLayerNormalization"
    case("skip_rms_norm", operator, [x, skip, scale])
    case("skip_rms_norm_bias", operator, [x, skip, scale, bias], outputs=[0, 2, 3], epsilon=0.1)
    case("skip_rms_norm_f16", operator, [half[0], half[1], half[2], half[4]], outputs=[0, 2, 3])


def main():
    quantised_products()
    quantised_elementwise()
    quantised_lstm()
    attention()
    grouped_attention()
    embeddings()
    gelus()
    fused_convolutions()
    fused_products()
    skip_norms()
    CASES.record(folder_argument(__doc__.splitlines()[0]))


if __name__ == "__main__":
    main()
