"""What onnxruntime, or onnx's reference evaluator, gives for one node."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

VERSIONS = {"numpy": np.__version__, "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}


def model(op_type, inputs, outputs=1, opset=22, domain="", **attributes):
    """A model of one node, and its inputs by name; `None` leaves an optional input out."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, domain=domain, **attributes)
    given = {n: np.asarray(x) for n, x in zip(names, inputs) if x is not None}
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()
    ]
    graph = helper.make_graph([node], "g", values, [helper.make_empty_tensor_value_info(r) for r in results])
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10), given


def run(op_type, inputs, outputs=1, **options):
    """The results of onnxruntime on the CPU."""
    made, given = model(op_type, inputs, outputs, **options)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)


def reference(op_type, inputs, outputs=1, **options):
    """The results of onnx's reference evaluator."""
    made, given = model(op_type, inputs, outputs, **options)
    return [np.asarray(y) for y in ReferenceEvaluator(made).run(None, given)]
