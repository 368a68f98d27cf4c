"""Cases of recurrent layers by onnxruntime, in f32."""

import numpy as np
import onnx
import onnxruntime
from caselib import Cases
from onnx import TensorProto, helper

cases = Cases("recurrent")
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
# Our names of ONNX's activations, and which of alpha and beta each takes.
ACTIVATIONS = {
    "relu": ("Relu", ""), "tanh": ("Tanh", ""), "sigmoid": ("Sigmoid", ""), "affine": ("Affine", "ab"),
    "leaky_relu": ("LeakyRelu", "a"), "thresholded_relu": ("ThresholdedRelu", "a"), "scaled_tanh": ("ScaledTanh", "ab"),
    "hard_sigmoid": ("HardSigmoid", "ab"), "elu": ("Elu", "a"), "softsign": ("Softsign", ""), "softplus": ("Softplus", ""),
}


def draw(*dims, scale=1.0):
    return (cases.rng.standard_normal(dims) * scale).astype("float32")


def layer(
    op, name, direction="forward", given=(), activations=(), clip=None, batch_first=False,
    steps=4, batch=3, inputs=2, hidden=3, lengths=None, **flags,
):
    """`given` names the optional operands; `activations` are (name, alpha, beta)."""
    directions = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * hidden
    x = draw(steps, batch, inputs)
    w, r = draw(directions, rows, inputs), draw(directions, rows, hidden)
    optional = {
        "bias": ("B", lambda: draw(directions, 2 * rows)),
        "lengths": ("sequence_lens", lambda: np.array(lengths, dtype="int32")),
        "initial_hidden": ("initial_h", lambda: draw(directions, batch, hidden)),
        "initial_cell": ("initial_c", lambda: draw(directions, batch, hidden)),
        "peepholes": ("P", lambda: draw(directions, 3 * hidden)),
    }
    feeds = {"X": x, "W": w, "R": r}
    feeds |= {optional[o][0]: optional[o][1]() for o in given}
    order = ["X", "W", "R", "B", "sequence_lens", "initial_h"] + (["initial_c", "P"] if op == "lstm" else [])
    node_inputs = [n if n in feeds else "" for n in order]
    while not node_inputs[-1]:
        node_inputs.pop()
    attributes = {"hidden_size": hidden, "direction": direction, **{k: int(v) for k, v in flags.items()}}
    if clip is not None:
        attributes["clip"] = clip
    if activations:
        attributes["activations"] = [ACTIVATIONS[a][0] for a, _, _ in activations]
        alpha = [float(a) for n, a, _ in activations if "a" in ACTIVATIONS[n][1]]
        beta = [float(b) for n, _, b in activations if "b" in ACTIVATIONS[n][1]]
        if alpha:
            attributes["activation_alpha"] = alpha
        if beta:
            attributes["activation_beta"] = beta
    results = ["Y", "Y_h"] + (["Y_c"] if op == "lstm" else [])
    graph = helper.make_graph(
        [helper.make_node(op.upper(), node_inputs, results, **attributes)],
        "layer",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    outputs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    text = [f"direction={direction}"]
    if given:
        text.append(f"operands=[{', '.join(given)}]")
    if activations:
        listed = ", ".join(f"({n}, ({float(a)}, {float(b)}))" for n, a, b in activations)
        text.append(f"activations=[{listed}]")
    if clip is not None:
        text.append(f"clip={float(clip)}")
    text += [f"{flag}=true" for flag, value in flags.items() if value]
    arrays = [x, w, r] + [feeds[optional[o][0]] for o in given]
    if batch_first:
        text.append("batch_first=true")
        arrays[0] = x.transpose(1, 0, 2)
        for i, o in enumerate(given):
            if o.startswith("initial"):
                arrays[3 + i] = arrays[3 + i].transpose(1, 0, 2)
        outputs = [outputs[0].transpose(2, 0, 1, 3)] + [state.transpose(1, 0, 2) for state in outputs[1:]]
    cases.op(op, name, ", ".join(text), arrays, outputs, "accumulated(64)")


for op in GATES:
    states = ["initial_hidden"] + (["initial_cell"] if op == "lstm" else [])
    layer(op, "forward")
    layer(op, "reverse", "reverse", ["bias"])
    layer(op, "bidirectional", "bidirectional", ["bias", *states])
    layer(op, "lengths", "bidirectional", ["lengths", "bias"], lengths=[4, 1, 2])
    layer(op, "lengths_reverse_with_states", "reverse", ["bias", "lengths", *states], lengths=[2, 3, 4])
    layer(op, "batch_first", "bidirectional", ["bias", *states], batch_first=True)
    layer(op, "clip", given=["bias"], clip=0.4)
    layer(op, "one_step_one_of_each", steps=1, batch=1, inputs=1, hidden=1)
layer("gru", "linear_before_reset", "bidirectional", ["bias", "initial_hidden"], linear_before_reset=True)
layer("lstm", "peepholes", "bidirectional", ["bias", "peepholes"])
layer("lstm", "input_forget", given=["bias", "peepholes"], input_forget=True)
layer("rnn", "relu_and_affine", "bidirectional", ["bias"], [("relu", 0, 0), ("affine", 0.5, 0.25)])
for name, alpha, beta in (
    ("leaky_relu", 0.1, 0), ("thresholded_relu", 0.5, 0), ("scaled_tanh", 1.5, 0.7), ("elu", 0.8, 0), ("softsign", 0, 0),
    ("softplus", 0, 0),
):
    layer("rnn", f"activation_{name}", given=["bias"], activations=[(name, alpha, beta)])
layer("gru", "hard_sigmoid_and_softsign", given=["bias"], activations=[("hard_sigmoid", 0.3, 0.45), ("softsign", 0, 0)])
layer(
    "lstm", "activations_each_direction", "bidirectional", ["bias"],
    [("sigmoid", 0, 0), ("tanh", 0, 0), ("relu", 0, 0), ("hard_sigmoid", 0.2, 0.5), ("elu", 0.9, 0), ("softsign", 0, 0)],
)
cases.write(__file__, {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__})
