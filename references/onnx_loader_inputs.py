"""Writes the ONNX files that the loader of rlx-onnx is tested on, with onnx's own writer.

    pip install onnx==1.23.2
    python references/onnx_loader_inputs.py

`every_type.onnx` holds each element type twice, as `TYPE.raw` (raw_data) and `TYPE.typed` (the typed field), with
five elements so that the narrow types end inside a byte. `pytorch_operator.onnx` is a model that PyTorch exported,
from the test data of the onnx wheel (Apache-2.0).
"""

import pathlib
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DATA = pathlib.Path(__file__).parents[1] / "crates/rlx-onnx/tests/data"

# Values that each type represents exactly, with its ends where it has some. (For 2**-127 as FLOAT8E8M0 the two
# writers of onnx 1.23.2 disagree: make_tensor writes 2**-126.)
VALUES = {
    "FLOAT": [0.5, -1.25, 3.0e38, -0.0, 1.0e-45],
    "DOUBLE": [0.5, -1.25, 1.0e300, -0.0, 5.0e-324],
    "FLOAT16": [0.5, -1.25, 65504.0, -0.0, 2.0**-24],
    "BFLOAT16": [0.5, -1.25, 2.0**100, -0.0, 2.0**-133],
    "FLOAT8E4M3FN": [0.5, -1.25, 448.0, -0.0, 2.0**-9],
    "FLOAT8E4M3FNUZ": [0.5, -1.25, 240.0, 0.0, 2.0**-10],
    "FLOAT8E5M2": [0.5, -1.25, 57344.0, -0.0, 2.0**-16],
    "FLOAT8E5M2FNUZ": [0.5, -1.25, 57344.0, 0.0, 2.0**-17],
    "FLOAT8E8M0": [0.5, 1.0, 2.0, 2.0**127, 2.0**-126],
    "FLOAT4E2M1": [0.5, -1.5, 6.0, -0.0, 4.0],
    "FLOAT6E2M3": [0.5, -1.5, 7.5, -0.0, 0.125],
    "FLOAT6E3M2": [0.5, -1.5, 28.0, -0.0, 0.0625],
    "INT2": [0, 1, -2, -1, 1],
    "UINT2": [0, 1, 2, 3, 1],
    "INT4": [0, 7, -8, -1, 5],
    "UINT4": [0, 7, 8, 15, 5],
    "INT8": [0, 127, -128, -1, 5],
    "UINT8": [0, 127, 128, 255, 5],
    "INT16": [0, 32767, -32768, -1, 5],
    "UINT16": [0, 32767, 32768, 65535, 5],
    "INT32": [0, 2**31 - 1, -(2**31), -1, 5],
    "UINT32": [0, 2**31 - 1, 2**31, 2**32 - 1, 5],
    "INT64": [0, 2**63 - 1, -(2**63), -1, 5],
    "UINT64": [0, 2**63 - 1, 2**63, 2**64 - 1, 5],
    "BOOL": [True, False, True, True, False],
    "COMPLEX64": [0.5 + 1j, -1.25, 3.0e38j, -0.0, 1.0e-45],
    "COMPLEX128": [0.5 + 1j, -1.25, 1.0e300j, -0.0, 5.0e-324],
}


def every_type():
    initializers = []
    for name, values in VALUES.items():
        data_type = getattr(TensorProto, name)
        # numpy would choose float64 for integers that need all 64 bits.
        array = np.array(values, dtype=np.uint64 if name == "UINT64" else None)
        array = array.astype(helper.tensor_dtype_to_np_dtype(data_type))
        initializers.append(numpy_helper.from_array(array, f"{name}.raw"))
        initializers.append(helper.make_tensor(f"{name}.typed", data_type, [5], values))
    initializers.append(helper.make_tensor("STRING.typed", TensorProto.STRING, [2], ["a", "\u00e9\u6587"]))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])
    node = helper.make_node("Identity", ["FLOAT.raw"], ["y"], name="copy")
    graph = helper.make_graph([node], "every_type", [], [output], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)]), DATA / "every_type.onnx")


def pytorch_operator():
    wheel = pathlib.Path(onnx.__file__).parent
    source = wheel / "backend/test/data/pytorch-operator/test_operator_params/model.onnx"
    shutil.copyfile(source, DATA / "pytorch_operator.onnx")


DATA.mkdir(parents=True, exist_ok=True)
every_type()
pytorch_operator()
