"""Records what block formats stand for, by the gguf package: random blocks whose scales are finite."""

import importlib.metadata

import gguf
import numpy as np
from gguf import GGMLQuantizationType, quants

from caselib import Cases, literal

cases = Cases("quant")

FORMATS = [
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS",
    "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "IQ1_M", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4",
]  # fmt: skip


def blocks(kind: GGMLQuantizationType, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random blocks that stand for numbers of moderate size, and these numbers."""
    _, size = gguf.GGML_QUANT_SIZES[kind]
    found = []
    while len(found) < rows:
        block = cases.rng.integers(0, 256, (1, size)).astype("uint8")
        numbers = quants.dequantize(block, kind)
        if np.all(np.isfinite(numbers)) and np.max(np.abs(numbers)) < 1e4:
            found.append((block, numbers))
    return np.concatenate([b for b, _ in found]), np.concatenate([n for _, n in found])


for name in FORMATS:
    kind = GGMLQuantizationType[name]
    data, numbers = blocks(kind, 2)
    dtype = f"{name.lower()}[2, {numbers.shape[1]}]"
    graph = f'graph "case"(%x: {dtype}) {{\n  %y = dequantise<to=f32>(%x)\n  return "y" = %y\n}}'
    cases.entries.append(
        f'case "dequantise/{name.lower()}"\n{graph}\nrun: {dtype} "x{data.tobytes().hex()}"\n'
        f"  -> {literal(numbers.astype('float32'))}\n"
    )

cases.write(__file__, {"gguf": importlib.metadata.version("gguf")})
