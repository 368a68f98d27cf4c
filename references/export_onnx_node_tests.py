"""Writes the node conformance tests of the installed `onnx` package to a folder.

The package builds its node tests in Python code; the wheel holds no files of them. This script
writes each one in the layout of the ONNX backend tests:

    OUT/<case>/model.onnx
    OUT/<case>/test_data_set_<n>/input_<i>.pb
    OUT/<case>/test_data_set_<n>/output_<i>.pb

A file is a serialised TensorProto, SequenceProto, OptionalProto or MapProto; which one, the
type of the graph's input or output says. `OUT/index.json` lists the cases with their
tolerances, so that a reader need not walk the folder:

    {"onnx": VERSION, "cases": [{"name", "rtol", "atol", "data_sets"}]}

The package draws its inputs with numpy's generator, seeded per case, so two runs with the same
versions write the same bytes.

Usage: export_onnx_node_tests.py [--expect-onnx VERSION] OUT
"""

import argparse
import json
import pathlib

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader

PROTOS = (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto, onnx.MapProto)


def to_proto(value, declared):
    """The protobuf message of `value`, of the kind that the graph's `declared` value info names."""
    if isinstance(value, PROTOS):
        return value
    kind = declared.type.WhichOneof("value")
    if kind == "map_type":
        return numpy_helper.from_dict(value, declared.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, declared.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, declared.name)
    return numpy_helper.from_array(numpy.asarray(value), declared.name)


def write_values(folder, stem, values, declarations):
    """Writes one `<stem>_<i>.pb` per value."""
    if len(values) > len(declarations):
        raise ValueError(f"{folder}: {len(values)} {stem}s for {len(declarations)} declared")
    for index, (value, declared) in enumerate(zip(values, declarations)):
        message = to_proto(value, declared)
        (folder / f"{stem}_{index}.pb").write_bytes(message.SerializeToString())


def write_case(out, case):
    """Writes one case's model and data sets, and returns its entry of the index."""
    folder = out / case.name
    folder.mkdir(parents=True)
    graph = case.model.graph
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data_set = folder / f"test_data_set_{number}"
        data_set.mkdir()
        write_values(data_set, "input", inputs, graph.input)
        write_values(data_set, "output", outputs, graph.output)
    return {
        "name": case.name,
        "rtol": case.rtol,
        "atol": case.atol,
        "data_sets": len(case.data_sets),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path, help="a folder that does not exist yet")
    parser.add_argument("--expect-onnx", help="fail unless the onnx package has this version")
    arguments = parser.parse_args()
    if arguments.expect_onnx not in (None, onnx.__version__):
        parser.error(f"the onnx package is {onnx.__version__}, not {arguments.expect_onnx}")
    out = arguments.out
    cases = sorted(loader.load_node_model_tests(), key=lambda case: case.name)
    entries = [write_case(out, case) for case in cases]
    index = {"onnx": onnx.__version__, "cases": entries}
    (out / "index.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
