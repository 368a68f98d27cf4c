"""Models of one node and what onnxruntime gives for them, in the layout of the ONNX node tests.

Each case is a folder with `model.onnx` and `test_data_set_0/{input,output}_I.pb`. onnxruntime runs on one thread
without optimisation, so that each node is the operator's own kernel.
"""

import argparse
import pathlib
import shutil

import onnxruntime
from onnx import ValueInfoProto, helper, numpy_helper


class Cases:
    """The cases of one folder, in the order in which they are added."""

    def __init__(self):
        self.cases = []

    def add(self, name, operator, inputs, *, opsets, domain="", outputs=1, open_axes=(), **attributes):
        """Adds a case.

        `inputs` are arrays in order, None for one that is left out. `outputs` is how many there are, or which ones are
        named. `open_axes` are axes of the first input whose sizes the model leaves open.
        """
        wanted = range(outputs) if isinstance(outputs, int) else outputs
        results = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
        named = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
        node = helper.make_node(operator, named, results, domain=domain, **attributes)
        given = [(f"x{i}", value) for i, value in enumerate(inputs) if value is not None]
        declared = []
        for n, value in given:
            open_here = open_axes if n == "x0" else ()
            sizes = [f"size{i}" if i in open_here else size for i, size in enumerate(value.shape)]
            declared.append(helper.make_tensor_value_info(n, element_type(value), sizes))
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        self.cases.append((name, node, declared, given, [r for r in results if r], bool(open_axes), imports))

    def record(self, folder):
        """Writes all cases into an emptied folder."""
        if folder.exists():
            shutil.rmtree(folder)
        names = [case[0] for case in self.cases]
        assert len(set(names)) == len(names), "two cases of one name"
        for case in self.cases:
            record(folder, *case)


def element_type(value):
    return helper.np_dtype_to_tensor_dtype(value.dtype)


def session_options():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return options


def record(folder, name, node, declared, given, results, is_open, imports):
    """Writes one case. Where input sizes are open, those of the results are not declared."""

    def model(types):
        graph = helper.make_graph([node], name, declared, types)
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    # onnxruntime infers the types that the first model leaves open.
    first = model([ValueInfoProto(name=result) for result in results]).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(first, session_options(), providers=["CPUExecutionProvider"])
        values = session.run(None, dict(given))
    except Exception as error:
        raise RuntimeError(f"onnxruntime refuses {name}") from error
    types = [
        helper.make_tensor_value_info(n, element_type(v), None if is_open else v.shape)
        for n, v in zip(results, values)
    ]
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(model(types).SerializeToString())
    for i, (n, value) in enumerate(given):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value, n).SerializeToString())
    for i, value in enumerate(values):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value, results[i]).SerializeToString())


def folder_argument(description):
    """The folder that the command line names."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=pathlib.Path)
    return parser.parse_args().folder
