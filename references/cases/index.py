"""Records non-maximum suppression by onnxruntime."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from caselib import Cases

cases = Cases("index")


def suppress(center_point: int, inputs: list[np.ndarray]) -> np.ndarray:
    kinds = [TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT]
    names = ["boxes", "scores", "most", "overlap", "least"]
    infos = [helper.make_tensor_value_info(n, k, list(x.shape)) for n, k, x in zip(names, kinds, inputs)]
    node = helper.make_node("NonMaxSuppression", names, ["chosen"], center_point_box=center_point)
    chosen = helper.make_tensor_value_info("chosen", TensorProto.INT64, [None, 3])
    graph = helper.make_graph([node], "nms", infos, [chosen])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))[0]


for seed in range(4):
    for center_point in [0, 1]:
        # Scores are distinct, so that the order is settled; some corners are given high first.
        boxes = cases.rng.random((2, 12, 4)).astype("float32")
        boxes[..., 2:] = boxes[..., 2:] * 0.5 + (0.1 if center_point else boxes[..., :2] * (seed % 2))
        scores = cases.rng.permutation(2 * 3 * 12).reshape(2, 3, 12).astype("float32") / 72
        most, overlap, least = np.int64(3 + seed), np.float32(0.3 + 0.1 * seed), np.float32(0.2)
        inputs = [boxes, scores, np.array(most), np.array(overlap), np.array(least)]
        chosen = suppress(center_point, [boxes, scores, inputs[2].reshape(1), inputs[3].reshape(1), inputs[4].reshape(1)])
        # onnxruntime gives batches, classes and then descending scores, as the operation does.
        attributes = f"center_point={'true' if center_point else 'false'}, count=k"
        cases.op("non_max_suppression", f"random_{seed}_{center_point}", attributes, inputs, [chosen])

cases.write(__file__, {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__})
