"""Writes golden files of the case table: graphs with inputs and the results of an outside reference.

A script of this folder records the cases of one family:

    from caselib import Cases
    cases = Cases("norm")                               # writes crates/rlx-testkit/golden/norm.case
    x = cases.rng.standard_normal((2, 3)).astype("float32")
    cases.op("layer_norm", "last_axis", "axis=-1, eps=1e-5", [x], [torch_result], "accumulated(8)")
    cases.write(__file__, {"torch": torch.__version__})

The format is described in crates/rlx-testkit/src/format.rs. Results of float type are best given in f64 (computed by
the reference in f64 on the inputs as rounded to their type), so that they are judged within the tolerance.
"""

import pathlib

import numpy as np

try:
    import ml_dtypes
except ImportError:  # only bf16 and the 8-bit floats need it
    ml_dtypes = None

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "crates/rlx-testkit/golden"

NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
    "complex64": "c64", "complex128": "c128",
}
LISTED = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"}


def type_of(array: np.ndarray) -> str:
    """The type in the text form, say `f32[2, 3]`."""
    return f"{NAMES[array.dtype.name]}[{', '.join(map(str, array.shape))}]"


def number(value: float, dtype: str) -> str:
    if np.isnan(value):
        return "nan"
    if np.isinf(value):
        return "-inf" if value < 0 else "inf"
    # The shortest text that reads back to the same number of the type. Types narrower than f32 print exactly.
    return repr(float(value)) if dtype != "f32" else repr(float(str(np.float32(value))))


def literal(array) -> str:
    """The literal in the text form."""
    array = np.asarray(array)
    name = NAMES[array.dtype.name]
    if name == "bool":
        elements = "[" + ", ".join("true" if v else "false" for v in array.ravel()) + "]"
    elif name not in LISTED:
        elements = '"x' + np.ascontiguousarray(array).tobytes().hex() + '"'
    elif name[0] in "iu":
        elements = "[" + ", ".join(str(int(v)) for v in array.ravel()) + "]"
    else:
        elements = "[" + ", ".join(number(float(v), name) for v in array.ravel()) + "]"
    return f"{type_of(array)} {elements}"


class Cases:
    """The cases of one family."""

    def __init__(self, family: str, seed: int = 0):
        self.family = family
        self.rng = np.random.default_rng(seed)
        self.entries: list[str] = []

    def graph(self, op: str, name: str, graph: str, inputs, outputs, tolerance: str = "exact") -> None:
        """A case with the text of its graph, which begins with `graph "…"` and ends with a `}` at the margin."""
        suffix = "" if tolerance == "exact" else f" {tolerance}"
        inputs = ",\n     ".join(literal(x) for x in inputs)
        outputs = ",\n     ".join(literal(x) for x in outputs)
        self.entries.append(f'case "{op}/{name}"{suffix}\n{graph.strip()}\nrun: {inputs}\n  -> {outputs}\n')

    def op(self, op: str, name: str, attributes: str, inputs, outputs, tolerance: str = "exact") -> None:
        """A case of one operation on inputs; every result is an output."""
        inputs = [np.asarray(x) for x in inputs]
        parameters = ", ".join(f"%x{i}: {type_of(x)}" for i, x in enumerate(inputs))
        operands = ", ".join(f"%x{i}" for i in range(len(inputs)))
        results = ['"y" = %y'] if len(outputs) == 1 else [f'"y{i}" = %y.{i}' for i in range(len(outputs))]
        attributes = f"<{attributes}>" if attributes else ""
        text = (
            f'graph "case"({parameters}) {{\n  %y = {op}{attributes}({operands})\n'
            f"  return {', '.join(results)}\n}}"
        )
        self.graph(op, name, text, inputs, outputs, tolerance)

    def write(self, script: str, versions: dict[str, str]) -> None:
        """Writes the file; `versions` are those of the packages that gave the results."""
        file = FOLDER / f"{self.family}.case"
        file.parent.mkdir(parents=True, exist_ok=True)
        source = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        header = f"// Recorded by references/cases/{pathlib.Path(script).name} with {source}.\n"
        file.write_text(header + "".join(self.entries))
