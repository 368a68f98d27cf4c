"""Records what onnxruntime gives for older versions of ONNX's operators, which the node tests of onnx do not hold.

FOLDER gets one folder a case, as `onnxruntime_nodes.py` writes it. A case's operator set is the last one in which the
version of the operator that it is named after was in force, or one before that; operator sets before 7 are those
that onnxruntime does not claim to support.

Usage: onnxruntime_versions.py FOLDER
"""

import numpy

from onnxruntime_nodes import Cases, folder_argument

RANDOM = numpy.random.default_rng(20261202)
CASES = Cases()


def floats(*dims, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, dims).astype(numpy.float32)


def vector(dtype, *values):
    return numpy.array(values, dtype)


def longs(*values):
    return vector(numpy.int64, *values)


def case(name, operator, opset, inputs, **rest):
    """Inputs in order; None leaves one out."""
    CASES.add(name, operator, inputs, opsets={"": opset}, **rest)


def batch_normalisation():
    for opset, dims in [
        (7, (2, 3)),
        (7, (2, 3, 4)),
        (8, (2, 3, 2, 4)),
        (9, (2, 3, 4)),
        (13, (1, 3, 2, 2, 2)),
    ]:
        channels = dims[1]
        x = floats(*dims)
        parameters = [floats(channels), floats(channels), floats(channels), floats(channels, low=0.1)]
        name = f"batch_norm_{opset}_rank_{len(dims)}"
        case(name, "BatchNormalization", opset, [x, *parameters], epsilon=0.01, momentum=0.5)
    case("batch_norm_7_spatial", "BatchNormalization", 7, [floats(2, 3, 4, 2), *parameters], spatial=1)
    case("batch_norm_9_default", "BatchNormalization", 9, [floats(2, 3, 4, 2), *parameters])
    half = [value.astype(numpy.float16) for value in [floats(2, 3, 4), *parameters]]
    case("batch_norm_9_f16", "BatchNormalization", 9, half)


def softmaxes():
    x = floats(2, 3, 4, low=-4, high=4)
    for operator in ["Softmax", "LogSoftmax", "Hardmax"]:
        stem = operator.lower()
        case(f"{stem}_1_default", operator, 7, [x])
        for axis in [0, 1, 2]:
            case(f"{stem}_1_axis_{axis}", operator, 10, [x], axis=axis)
        case(f"{stem}_11_default", operator, 12, [x])
        case(f"{stem}_11_from_end", operator, 11, [x], axis=-2)
        case(f"{stem}_11_open", operator, 11, [x], axis=1, open_axes=[0, 1, 2])
    # The first of equal elements is the one that is hit.
    ties = numpy.array([[[1, 2], [2, 0]], [[3, 3], [3, 3]]], numpy.float32)
    case("hardmax_1_ties", "Hardmax", 9, [ties], axis=1)


def resizes():
    x = floats(1, 2, 4, 5)

    def scales(*values):
        return vector(numpy.float32, *values)

    factors = {
        "up": (1, 1, 2, 3),
        "down": (1, 1, 0.5, 0.6),
        "mixed": (1, 1, 1.5, 0.7),
        "odd": (1, 1, 1.3, 2.7),
    }
    for mode in ["nearest", "linear"]:
        for name, values in factors.items():
            case(f"resize_10_{mode}_{name}", "Resize", 10, [x, scales(*values)], mode=mode)
    case("resize_10_nearest_channels", "Resize", 10, [x, scales(2, 1.5, 1, 2)])
    case("resize_10_nearest_volume", "Resize", 10, [floats(1, 1, 2, 3, 2), scales(1, 1, 2, 0.4, 1.5)])
    case("resize_10_linear_matrix", "Resize", 10, [floats(3, 4), scales(2, 1.5)], mode="linear")
    case("resize_10_open", "Resize", 10, [x, scales(1, 1, 2, 0.5)], open_axes=[2, 3])
    case(
        "resize_10_bytes",
        "Resize",
        10,
        [numpy.arange(12, dtype=numpy.uint8).reshape(1, 1, 3, 4), scales(1, 1, 2, 2)],
    )
    for mode in ["nearest", "linear"]:
        case(f"upsample_7_{mode}", "Upsample", 7, [x], mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
        case(f"upsample_9_{mode}", "Upsample", 9, [x, scales(1, 1, 2, 2.5)], mode=mode)
    case("upsample_7_default_mode", "Upsample", 8, [x], scales=[1.0, 2.0, 1.5, 1.0])
    case("upsample_9_open", "Upsample", 9, [x, scales(1, 1, 2, 2)], mode="linear", open_axes=[2, 3])
    shapes = {
        "cubic": {"mode": "cubic"},
        "cubic_outside": {"mode": "cubic", "exclude_outside": 1},
        "linear": {"mode": "linear"},
    }
    for name, attributes in shapes.items():
        empty = vector(numpy.float32)
        case(f"resize_11_{name}", "Resize", 11, [x, empty, scales(1, 1, 1.5, 0.8)], **attributes)
        case(
            f"resize_11_{name}_sizes",
            "Resize",
            12,
            [x, empty, empty, longs(1, 2, 7, 3)],
            coordinate_transformation_mode="align_corners",
            **attributes,
        )


def clips():
    x = floats(3, 4, low=-3, high=3)
    case("clip_6", "Clip", 6, [x], min=-1.0, max=0.5)
    case("clip_6_min", "Clip", 7, [x], min=-1.0)
    case("clip_6_max", "Clip", 10, [x], max=0.5)
    case("clip_6_neither", "Clip", 10, [x])
    low, high = numpy.array(-1, numpy.float32), numpy.array(0.5, numpy.float32)
    case("clip_11_min", "Clip", 11, [x, low])
    case("clip_11_max", "Clip", 11, [x, None, high])
    case("clip_11_crossed", "Clip", 11, [x, high, low])
    ints = numpy.arange(-6, 6, dtype=numpy.int8)
    case("clip_12_i8", "Clip", 12, [ints, numpy.array(-2, numpy.int8), numpy.array(3, numpy.int8)])


def pads():
    x = floats(2, 3, 4)
    case("pad_2_constant", "Pad", 7, [x], pads=[0, 1, 2, 1, 0, 3], value=0.25)
    case("pad_2_default", "Pad", 10, [x], pads=[1, 0, 0, 0, 0, 1])
    case("pad_2_negative", "Pad", 10, [x], pads=[0, -1, 2, 0, 1, -2], value=-1.0)
    for mode in ["reflect", "edge"]:
        case(f"pad_2_{mode}", "Pad", 10, [x], mode=mode, pads=[0, 1, 3, 1, 2, 2])
        case(f"pad_2_{mode}_open", "Pad", 10, [x], mode=mode, pads=[0, 1, 3, 1, 2, 2], open_axes=[1, 2])
        case(f"pad_11_{mode}_negative", "Pad", 12, [x, longs(0, -1, 2, 0, 1, -1)], mode=mode)
    case("pad_11_constant_negative", "Pad", 12, [x, longs(0, -1, 2, 1, 1, -1)])
    case("pad_11_value", "Pad", 11, [x, longs(0, 1, 0, 0, 0, 2), numpy.array(7, numpy.float32)])


def sizes_of_one():
    x = floats(1, 3, 1, 2, 1)
    case("squeeze_1", "Squeeze", 7, [x], axes=[0, 4])
    case("squeeze_1_all", "Squeeze", 10, [x])
    case("squeeze_11", "Squeeze", 12, [x], axes=[-1, 2])
    case("squeeze_11_open", "Squeeze", 11, [x], axes=[-3], open_axes=[1, 3])
    y = floats(2, 3)
    case("unsqueeze_1", "Unsqueeze", 7, [y], axes=[0, 3])
    case("unsqueeze_1_unsorted", "Unsqueeze", 10, [y], axes=[4, 0, 2])
    case("unsqueeze_11", "Unsqueeze", 12, [y], axes=[-1, 0])
    case("unsqueeze_11_open", "Unsqueeze", 11, [y], axes=[1, -2], open_axes=[0, 1])


def reductions():
    x = floats(2, 3, 4, low=0.1, high=2)
    for operator in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]:
        stem = f"reduce_{operator.lower()}"
        case(f"{stem}_1", f"Reduce{operator}", 7, [x], axes=[0, 2], keepdims=0)
        case(f"{stem}_1_all", f"Reduce{operator}", 10, [x])
        case(f"{stem}_11", f"Reduce{operator}", 11, [x], axes=[-2])
    case("reduce_sum_11_open", "ReduceSum", 12, [x], axes=[1, -1], keepdims=0, open_axes=[0, 1, 2])
    case("reduce_mean_13", "ReduceMean", 17, [x], axes=[-1, 0])
    case("reduce_max_13_negative", "ReduceMax", 13, [-x], axes=[1])
    bytes_ = RANDOM.integers(-128, 127, (2, 3)).astype(numpy.int8)
    case("reduce_max_12_i8", "ReduceMax", 12, [bytes_], axes=[1], keepdims=0)
    ties = numpy.array([[3, 1, 3], [2, 2, 1]], numpy.float32)
    for operator in ["ArgMax", "ArgMin"]:
        stem = operator.lower()
        case(f"{stem}_1", operator, 7, [ties], axis=1)
        case(f"{stem}_11", operator, 11, [ties], axis=-2, keepdims=0)
        case(f"{stem}_12_last", operator, 12, [ties], axis=1, select_last_index=1)


def slices():
    x = floats(4, 5, 3)
    far = 2**31 - 1
    case("slice_1", "Slice", 7, [x], starts=[1, 0], ends=[3, 4])
    case("slice_1_axes", "Slice", 9, [x], axes=[2, 0], starts=[-2, 1], ends=[far, -1])
    case("slice_1_outside", "Slice", 9, [x], axes=[0, 1], starts=[-100, 3], ends=[2, 100])
    case("slice_1_empty", "Slice", 9, [x], axes=[1], starts=[4], ends=[2])
    case("slice_1_open", "Slice", 9, [x], axes=[0, 1], starts=[1, -3], ends=[-1, far], open_axes=[0, 1])
    case("slice_10", "Slice", 10, [x, longs(3, 1), longs(0, 5), longs(0, 1), longs(-2, 2)])
    case("slice_10_no_axes", "Slice", 10, [x, longs(1, -4), longs(far, -1)])
    case("slice_11_i32", "Slice", 11, [x, *(vector(numpy.int32, v) for v in (-1, -(2**31), -2, -1))])


def top_ks():
    x = floats(3, 5)
    case("top_k_1", "TopK", 7, [x], outputs=2, k=2)
    case("top_k_1_axis", "TopK", 9, [x], outputs=2, k=3, axis=0)
    case("top_k_10", "TopK", 10, [x, longs(4)], outputs=2, axis=-1)
    case("top_k_10_open", "TopK", 10, [x, longs(2)], outputs=2, open_axes=[0, 1])
    ties = numpy.array([[1, 3, 3, 1], [2, 2, 2, 2]], numpy.float32)
    case("top_k_10_ties", "TopK", 10, [ties, longs(3)], outputs=2)
    case("top_k_11_smallest", "TopK", 11, [ties, longs(3)], outputs=2, largest=0)


def dropouts():
    x = floats(2, 3)
    # The mask is not recorded: before operator set 12 ONNX does not say what it holds at inference. onnxruntime
    # gives zeros; as of operator set 12 both give ones.
    case("dropout_7", "Dropout", 7, [x], ratio=0.3)
    case("dropout_10", "Dropout", 11, [x], ratio=0.3)
    case("dropout_12", "Dropout", 12, [x, numpy.array(0.3, numpy.float32)], outputs=2)


def pools():
    x, line, volume = floats(1, 2, 7, 6), floats(2, 1, 9), floats(1, 1, 4, 5, 4)
    placed = {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}
    for operator, stem in [("AveragePool", "average_pool"), ("MaxPool", "max_pool")]:
        for version, opset in [("first", 7), ("10", 10), ("11", 11)]:
            for pad in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
                attributes = {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": pad}
                name = f"{stem}_{version}_{pad.lower()}"
                case(name, operator, opset, [x], **attributes)
                if version != "10":
                    case(f"{name}_open", operator, opset, [x], open_axes=[2, 3], **attributes)
        case(f"{stem}_7", operator, 7, [x], **placed)
        case(f"{stem}_7_line", operator, 7, [line], kernel_shape=[4])
        case(f"{stem}_7_volume", operator, 7, [volume], kernel_shape=[2, 3, 2], strides=[1, 2, 3])
        for opset in [10, 11]:
            case(f"{stem}_{opset}_ceil", operator, opset, [x], ceil_mode=1, **placed)
        case(f"{stem}_10_ceil_open", operator, 10, [x], ceil_mode=1, open_axes=[2, 3], **placed)
        # The last window would begin in the padding, so it is not there.
        tail = {"kernel_shape": [2], "strides": [3], "pads": [1, 1], "ceil_mode": 1}
        case(f"{stem}_11_ceil_tail", operator, 11, [floats(1, 1, 6)], **tail)
    included = {"count_include_pad": 1}
    case("average_pool_7_included", "AveragePool", 7, [x], **placed, **included)
    case("average_pool_10_ceil_included", "AveragePool", 10, [x], ceil_mode=1, **placed, **included)
    same = {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "SAME_UPPER"}
    case("average_pool_7_same_included", "AveragePool", 7, [x], **same, **included)
    dilated = {"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [1, 1, 0, 1]}
    case("average_pool_19_dilated", "AveragePool", 19, [x], **dilated)
    case("max_pool_10_dilated", "MaxPool", 10, [x], **dilated)
    case("max_pool_10_dilated_ceil", "MaxPool", 10, [x], strides=[2, 3], ceil_mode=1, **dilated)
    for order in [0, 1]:
        case(f"max_pool_8_indices_{order}", "MaxPool", 8, [x], outputs=2, storage_order=order, **placed)
    case("max_pool_11_indices_open", "MaxPool", 11, [x], outputs=2, open_axes=[2, 3], **placed)
    bytes_ = RANDOM.integers(0, 255, (1, 1, 4, 4)).astype(numpy.uint8)
    # With VALID and ceil mode onnxruntime has more windows than ONNX says, unless the strides use all elements.
    whole = {"kernel_shape": [4], "strides": [5], "auto_pad": "VALID", "ceil_mode": 1}
    case("max_pool_11_ceil_valid", "MaxPool", 11, [line], **whole)
    case("max_pool_12_bytes", "MaxPool", 12, [bytes_], kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    case("lp_pool_2", "LpPool", 7, [x], p=3, **placed)
    case("lp_pool_11_same", "LpPool", 11, [x], **same)


def convolutions():
    x, weights, bias = floats(1, 2, 6, 5), floats(3, 2, 3, 2), floats(3)
    for pad in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        attributes = {"auto_pad": pad, "strides": [2, 2]}
        case(f"conv_1_{pad.lower()}", "Conv", 7, [x, weights, bias], **attributes)
        case(f"conv_11_{pad.lower()}_open", "Conv", 11, [x, weights], open_axes=[0, 2, 3], **attributes)
    weights = floats(2, 3, 3, 2)
    for version, opset in [(1, 7), (11, 11)]:
        for pad in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
            # 2 · size is less than no padding gives along one axis, and as much along the other.
            attributes = {"auto_pad": pad, "strides": [2, 2]}
            case(
                f"conv_transpose_{version}_{pad.lower()}",
                "ConvTranspose",
                opset,
                [x, weights, bias],
                **attributes,
            )
        shape = {"output_shape": [10, 11], "strides": [2, 2]}
        case(f"conv_transpose_{version}_shape", "ConvTranspose", opset, [x, weights], **shape)
        for pad in ["SAME_UPPER", "SAME_LOWER"]:
            name = f"conv_transpose_{version}_shape_{pad.lower()}"
            case(name, "ConvTranspose", opset, [x, weights], auto_pad=pad, **shape)
    case(
        "conv_transpose_11_same_open",
        "ConvTranspose",
        11,
        [x, weights],
        auto_pad="SAME_UPPER",
        strides=[2, 2],
        open_axes=[2, 3],
    )
    case("conv_transpose_11_odd", "ConvTranspose", 11, [x, weights], auto_pad="SAME_UPPER", strides=[1, 1])
    case(
        "conv_transpose_1_extra",
        "ConvTranspose",
        7,
        [floats(1, 4, 3, 4), floats(4, 2, 2, 3), floats(4)],
        group=2,
        dilations=[2, 1],
        kernel_shape=[2, 3],
        output_padding=[1, 0],
        pads=[1, 0, 0, 2],
        strides=[2, 3],
    )


def casts():
    x = numpy.array([-2.7, -1.0, -0.4, 0.0, 0.5, 1.5, 100.9], numpy.float32)
    types = {"f16": 10, "f64": 11, "i8": 3, "i32": 6, "i64": 7, "bool": 9}
    for name, to in types.items():
        case(f"cast_6_f32_{name}", "Cast", 7, [x], to=to)
    case("cast_6_f32_u8", "Cast", 8, [numpy.abs(x)], to=2)
    case("cast_9_i32_f16", "Cast", 9, [vector(numpy.int32, -70000, -2049, 0, 3, 2049)], to=10)
    case("cast_9_i64_f32", "Cast", 9, [longs(2**24 + 1, -(2**40) - 1, 5)], to=1)
    case("cast_9_i64_i8", "Cast", 12, [longs(300, -129, 7, 128)], to=3)
    case("cast_9_bool_f32", "Cast", 9, [vector(numpy.bool_, True, False)], to=1)
    case("cast_9_f64_f32", "Cast", 9, [vector(numpy.float64, 0.1, 1e-50, 1e300, -1 / 3)], to=1)


def recurrent_layers():
    recurrent("RNN", 1, ["Relu"])
    recurrent("GRU", 3, ["HardSigmoid", "Softsign"])
    recurrent("LSTM", 4, ["Sigmoid", "LeakyRelu", "Tanh"])


def recurrent(operator, gates, functions):
    steps, batch, width, hidden = 4, 2, 3, 2
    lengths = vector(numpy.int32, 4, 2)
    stem = operator.lower()

    def inputs(directions, *rest):
        size = gates * hidden
        x = floats(steps, batch, width)
        return [x, floats(directions, size, width), floats(directions, size, hidden), *rest]

    def bias(directions):
        return floats(directions, 2 * gates * hidden)

    outputs = 3 if operator == "LSTM" else 2
    common = {"hidden_size": hidden, "outputs": outputs}
    state = [floats(2, batch, hidden) for _ in range(outputs - 1)]
    case(f"{stem}_7", operator, 7, inputs(1), **common)
    case(f"{stem}_7_reverse", operator, 7, inputs(1, bias(1), lengths), direction="reverse", **common)
    case(
        f"{stem}_7_both",
        operator,
        13,
        inputs(2, bias(2), lengths, *state),
        direction="bidirectional",
        **common,
    )
    # Of an LSTM, onnxruntime does not clip the cell before the activation that makes h, as ONNX says. After two
    # steps the cell is below 1: σ(1) tanh(1) (1 + σ(1)).
    big = inputs(1, 3 * bias(1))
    big[0] = 3 * big[0][:2]
    case(f"{stem}_7_clip", operator, 7, big, clip=1.0, **common)
    case(f"{stem}_7_open", operator, 7, inputs(1, bias(1)), open_axes=[0, 1], **common)
    case(
        f"{stem}_7_functions",
        operator,
        7,
        inputs(1, bias(1)),
        activations=functions,
        activation_alpha=[0.3],
        activation_beta=[0.4],
        **common,
    )
    if operator == "GRU":
        for direction, count in [("forward", 1), ("bidirectional", 2)]:
            name = f"gru_7_linear_{direction}"
            given = inputs(count, bias(count))
            case(name, operator, 7, given, linear_before_reset=1, direction=direction, **common)
    if operator == "LSTM":
        peepholes = inputs(1, bias(1), None, None, None, floats(1, 3 * hidden))
        case("lstm_7_peepholes", operator, 7, peepholes, **common)
        case("lstm_7_coupled", operator, 7, inputs(1, bias(1)), input_forget=1, **common)


def shapes():
    x = floats(2, 4, 6)
    case("flatten_1_zero", "Flatten", 7, [x], axis=0)
    case("flatten_9_rank", "Flatten", 10, [x], axis=3)
    case("split_2", "Split", 7, [x], outputs=3, axis=2)
    case("split_2_sizes", "Split", 10, [x], outputs=2, axis=1, split=[1, 3])
    case("split_11", "Split", 12, [x], outputs=2, axis=-1, split=[4, 2])
    case("reshape_5_zero", "Reshape", 7, [x, longs(0, -1, 3)])
    case("transpose_1", "Transpose", 7, [x])
    case("depth_to_space_1", "DepthToSpace", 7, [floats(1, 8, 2, 3)], blocksize=2)
    case("scatter_9", "Scatter", 9, [floats(3, 3), numpy.array([[1, 0, 2], [0, 2, 1]]), floats(2, 3)], axis=0)
    case("gather_1", "Gather", 7, [x, numpy.array([[0, 3], [2, 1]])], axis=1)
    case("mvn_9", "MeanVarianceNormalization", 9, [floats(2, 3, 2, 2)])
    case("gemm_7", "Gemm", 7, [floats(3, 4), floats(4, 5), floats(3, 1)], alpha=0.5, beta=2.0)
    case("gemm_9_trans", "Gemm", 10, [floats(4, 3), floats(5, 4), floats(5)], transA=1, transB=1)
    case("prelu_7", "PRelu", 7, [floats(2, 3, 4), floats(3, 1)])
    pair = numpy.array([[0, 2, 1], [-1, -3, 1]])
    case("one_hot_9", "OneHot", 9, [pair[:1].copy(), longs(4), vector(numpy.float32, 0, 1)], axis=1)
    case("one_hot_11", "OneHot", 11, [pair, longs(4), vector(numpy.float32, -1, 5)], axis=-1)
    points = numpy.array([-1.5, -0.5, 0.5, 1.5, 2.5, 127.0, 300.0], numpy.float32)
    scale, zero = numpy.array(0.5, numpy.float32), numpy.array(3, numpy.int8)
    case("quantize_10", "QuantizeLinear", 10, [points, scale, zero])
    case("dequantize_10", "DequantizeLinear", 10, [vector(numpy.int8, -128, 0, 127), scale, zero])


def main():
    batch_normalisation()
    softmaxes()
    resizes()
    clips()
    pads()
    sizes_of_one()
    reductions()
    slices()
    top_ks()
    dropouts()
    pools()
    convolutions()
    casts()
    recurrent_layers()
    shapes()
    CASES.record(folder_argument(__doc__.splitlines()[0]))


if __name__ == "__main__":
    main()
