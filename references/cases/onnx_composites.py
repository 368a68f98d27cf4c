"""What onnxruntime gives for the ONNX operators behind activations, norms, losses and reductions.

Writes golden/activation.case, golden/norm.case, golden/loss.case and golden/statistics.case.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from caselib import Cases

VERSIONS = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}


def run(operator, inputs, outputs=1, opset=20, **attributes):
    """The results of one operator; an input that is None is absent."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {name: x for name, x in zip(names, inputs) if name}
    node = helper.make_node(operator, names, [f"y{i}" for i in range(outputs)], **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in given.items()
        ],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(outputs)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)


def activation():
    cases = Cases("activation")
    x = cases.rng.uniform(-4, 4, (3, 7)).astype("float32")
    slope = cases.rng.uniform(0, 1, (7,)).astype("float32")
    tolerance = "within(5e-7, 1e-5)"
    rows = [
        ("relu", "", "Relu", {}),
        ("gelu", "", "Gelu", {}),
        ("gelu_tanh", "", "Gelu", {"approximate": "tanh"}),
        ("mish", "", "Mish", {}),
        ("softsign", "", "Softsign", {}),
        ("hard_swish", "", "HardSwish", {}),
        ("leaky_relu", "alpha=0.125", "LeakyRelu", {"alpha": 0.125}),
        ("elu", "alpha=1.5", "Elu", {"alpha": 1.5}),
        ("celu", "alpha=0.5", "Celu", {"alpha": 0.5}),
        ("selu", "alpha=1.5, gamma=1.25", "Selu", {"alpha": 1.5, "gamma": 1.25}),
        ("softplus", "beta=1.0", "Softplus", {}),
        ("hard_sigmoid", "alpha=0.25, beta=0.5", "HardSigmoid", {"alpha": 0.25, "beta": 0.5}),
        ("shrink", "lambda=0.5, bias=0.25", "Shrink", {"lambd": 0.5, "bias": 0.25}),
        ("threshold", "threshold=0.5, value=0.0", "ThresholdedRelu", {"alpha": 0.5}),
    ]
    for name, text, operator, attributes in rows:
        cases.op(name, "onnxruntime", text, [x], run(operator, [x], **attributes), tolerance)
    cases.op("prelu", "onnxruntime", "", [x, slope], run("PRelu", [x, slope]), tolerance)
    cases.write(__file__, VERSIONS)


def norm():
    cases = Cases("norm")
    rng = cases.rng
    x = rng.standard_normal((2, 6, 3, 4)).astype("float32")
    scale, bias, mean = (rng.standard_normal(6).astype("float32") for _ in range(3))
    variance = rng.uniform(0.5, 2, 6).astype("float32")
    tolerance = "accumulated(40)"
    last_scale, last_bias = (rng.standard_normal((3, 4)).astype("float32") for _ in range(2))
    cases.op(
        "layer_norm", "onnxruntime", "axis=2, eps=1e-5, statistics=true", [x, last_scale, last_bias],
        run("LayerNormalization", [x, last_scale, last_bias], 3, axis=2, epsilon=1e-5), tolerance,
    )
    cases.op(
        "instance_norm", "onnxruntime", "eps=1e-5", [x, scale, bias],
        run("InstanceNormalization", [x, scale, bias], epsilon=1e-5), tolerance,
    )
    cases.op(
        "group_norm", "onnxruntime", "groups=3, eps=1e-5", [x, scale, bias],
        run("GroupNormalization", [x, scale, bias], opset=21, num_groups=3, epsilon=1e-5), tolerance,
    )
    cases.op(
        "batch_norm", "onnxruntime", "axis=1, eps=1e-5", [x, scale, bias, mean, variance],
        run("BatchNormalization", [x, scale, bias, mean, variance], epsilon=1e-5), tolerance,
    )
    for size in (3, 4):
        attributes = {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 2.0}
        text = f"size={size}, alpha=0.5, beta=0.75, bias=2.0"
        # onnxruntime takes odd sizes only; for the others the formula of the operator's page.
        if size % 2:
            y = run("LRN", [x], **attributes)
        else:
            square = np.zeros_like(x)
            for c in range(6):
                first = max(0, c - (size - 1) // 2)
                last = min(5, c + -(-(size - 1) // 2))
                square[:, c] = (x[:, first : last + 1] ** 2).sum(axis=1)
            y = [x / (2.0 + 0.5 / size * square) ** 0.75]
        cases.op("lrn", f"onnxruntime_{size}", text, [x], y, tolerance)
    for p in (1, 2):
        y = run("LpNormalization", [x], axis=1, p=p)
        cases.op("lp_normalize", f"onnxruntime_{p}", f"axes=[1], p={p}.0, eps=0.0", [x], y, tolerance)
    y = run("MeanVarianceNormalization", [x], axes=[0, 2, 3])
    cases.op("mean_variance_norm", "onnxruntime", "axes=[0, 2, 3], eps=1e-9", [x], y, tolerance)
    cases.write(__file__, VERSIONS)


def loss():
    cases = Cases("loss")
    rng = cases.rng
    x = rng.standard_normal((3, 5, 4)).astype("float32")
    log_p = (x - np.log(np.exp(x).sum(axis=1, keepdims=True))).astype("float32")
    target = rng.integers(0, 5, (3, 4))
    ignored = target.copy()
    ignored[0, 1] = ignored[2, 2] = -1
    weight = rng.uniform(0.5, 2, 5).astype("float32")
    from onnx.reference import ReferenceEvaluator

    def evaluate(operator, inputs, outputs=1, **attributes):
        """By the evaluator of the specification: onnxruntime has no kernel for all forms."""
        names = [f"x{i}" for i in range(len(inputs))]
        node = helper.make_node(operator, names, [f"y{i}" for i in range(outputs)], **attributes)
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in zip(names, inputs)
        ]
        results = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(outputs)]
        graph = helper.make_graph([node], "one", infos, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))]

    tolerance = "accumulated(60)"
    for reduction in ("none", "mean", "sum"):
        for name, targets, extra in (("plain", target, []), ("weighted", target, [weight]), ("ignored", ignored, [weight])):
            ignore = "ignore_index=-1, " if name == "ignored" else ""
            attributes = {"reduction": reduction} | ({"ignore_index": -1} if name == "ignored" else {})
            cases.op(
                "nll_loss", f"onnx_{name}_{reduction}", f"{ignore}reduction={reduction}", [log_p, targets, *extra],
                evaluate("NegativeLogLikelihoodLoss", [log_p, targets, *extra], **attributes), tolerance,
            )
            cases.op(
                "softmax_cross_entropy", f"onnx_{name}_{reduction}",
                f"{ignore}label_smoothing=0.0, reduction={reduction}, log_probabilities=true", [x, targets, *extra],
                evaluate("SoftmaxCrossEntropyLoss", [x, targets, *extra], 2, **attributes), tolerance,
            )
    cases.write(__file__, VERSIONS)


def statistics():
    cases = Cases("statistics")
    x = cases.rng.uniform(0.5, 3, (3, 4, 5)).astype("float32")
    rows = [
        ("reduce_mean", "ReduceMean"),
        ("reduce_l1", "ReduceL1"),
        ("reduce_l2", "ReduceL2"),
        ("reduce_log_sum", "ReduceLogSum"),
        ("reduce_log_sum_exp", "ReduceLogSumExp"),
        ("reduce_sum_square", "ReduceSumSquare"),
    ]
    for name, operator in rows:
        for axes, keep in (([1], 0), ([-1, 0], 1)):
            text = f"axes={axes}" + (", keep_dims=true" if keep else "")
            y = run(operator, [x, np.array(axes, dtype="int64")], keepdims=keep)
            cases.op(name, f"onnxruntime_{keep}", text, [x], y, "accumulated(20)")
    cases.write(__file__, VERSIONS)


if __name__ == "__main__":
    activation()
    norm()
    loss()
    statistics()
