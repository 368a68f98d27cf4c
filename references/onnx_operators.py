"""Writes the operators of the onnx package, each with the operator set versions that changed its schema.

    python references/onnx_operators.py crates/rlx-onnx/src/registry/operators.txt

The test of the importer's table compares with the file. It is made anew when onnx's release changes.
"""

import argparse
import collections
import pathlib

import onnx
import onnx.defs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    output = parser.parse_args().output
    versions = collections.defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        versions[schema.domain or "ai.onnx", schema.name].add(schema.since_version)
    lines = [
        f"# Operators of onnx {onnx.__version__}: domain, type, versions. Made by references/onnx_operators.py.",
        *(
            " ".join([domain, name, *map(str, sorted(since))])
            for (domain, name), since in sorted(versions.items())
        ),
    ]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
