"""Records what ggml itself makes of block-quantised bytes, as goldens for the Rust decoder.

    python3 references/ggml_blocks.py              writes crates/rlx-eval/tests/golden/ggml_blocks.txt
    python3 references/ggml_blocks.py --tables     writes crates/rlx-eval/src/quant/tables.rs

Needs gcc, numpy and gguf==0.19.0. ggml's source (0.25.3, MIT licence) is taken from the source package of
llama-cpp-python 0.3.36, or from a folder given by --ggml (the one that holds include/ and src/).

The judge is ggml's own dequantize_row_* functions, compiled without fused multiply-add. Where the gguf
package decodes the format too, both must agree. ggml has no function for q8_1: its blocks are judged by
q8_0's, after the sum that follows the scale is cut out.

The golden file has, for each format of ggml:
    format NAME ID ELEMENTS BYTES    sizes of a block, as ggml reports them
    block HEX OF BYTES / HEX OF F32  three blocks with finite scales; each f32 as its bits, eight digits
    sweep SEED BLOCKS HASH           FNV-1a (64 bit, over the u32 bits, any NaN as 0x7fc00000) of the values
                                     of that many blocks of bytes from SplitMix64: scales are anything
"""

import argparse
import ctypes
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/rlx-eval/tests/golden/ggml_blocks.txt"
TABLES = ROOT / "crates/rlx-eval/src/quant/tables.rs"
SOURCE_PACKAGE = "llama-cpp-python==0.3.36"
SWEEP_BLOCKS = 1024

# Byte offsets of the f16 fields of a block, which the `block` lines keep finite.
F16_FIELDS = {
    "q1_0": [0], "q2_0": [0], "q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0],
    "q8_1": [0, 2], "q2_k": [80, 82], "q3_k": [108], "q4_k": [0, 2], "q5_k": [0, 2], "q6_k": [208],
    "iq2_xxs": [0], "iq2_xs": [0], "iq2_s": [0], "iq3_xxs": [0], "iq3_s": [0], "iq1_s": [0], "iq4_nl": [0],
    "iq4_xs": [0], "tq1_0": [52], "tq2_0": [64],
}  # fmt: skip

# Functions that ggml.c calls in other files of ggml; decoding reaches none of them.
STUBS = """
#include <stdlib.h>
void ggml_critical_section_start(void) { abort(); }
void ggml_critical_section_end(void) { abort(); }
void ggml_backend_buffer_get_usage(void) { abort(); }
void ggml_backend_tensor_memset(void) { abort(); }
void ggml_backend_tensor_set(void) { abort(); }
"""


def ggml_source(scratch: pathlib.Path) -> pathlib.Path:
    """Fetches the source package and unpacks ggml from it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "llama-cpp-python", "--dest", str(scratch), SOURCE_PACKAGE]
    subprocess.run(command, check=True)
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as package:
        package.extractall(scratch, filter="data")
    (folder,) = scratch.glob("*/vendor/llama.cpp/ggml")
    return folder


def compile_ggml(source: pathlib.Path, scratch: pathlib.Path) -> ctypes.CDLL:
    """Builds the part of ggml that knows types and decodes blocks."""
    (scratch / "ggml-version.h").write_text('#define GGML_VERSION ""\n#define GGML_COMMIT ""\n')
    (scratch / "stubs.c").write_text(STUBS)
    library = scratch / "libggml-blocks.so"
    command = ["gcc", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-o", str(library)]
    command += [f"-I{scratch}", f"-I{source}/include", f"-I{source}/src"]
    command += [f"{source}/src/ggml-quants.c", f"{source}/src/ggml.c", str(scratch / "stubs.c"), "-lm"]
    subprocess.run(command, check=True)
    ggml = ctypes.CDLL(str(library))
    ggml.ggml_type_name.restype = ctypes.c_char_p
    ggml.ggml_type_size.restype = ctypes.c_size_t
    ggml.ggml_blck_size.restype = ctypes.c_int64
    return ggml


def decode(ggml: ctypes.CDLL, name: str, blocks: np.ndarray, elements: int) -> np.ndarray:
    """The f32 values of the rows of `blocks` (u8 [count, bytes]), each row one block."""
    if name == "q8_1":
        return decode(ggml, "q8_0", np.concatenate([blocks[:, 0:2], blocks[:, 4:]], axis=1), elements)
    # ggml writes the K of its K formats as a capital.
    function = getattr(ggml, "dequantize_row_" + re.sub("_k$", "_K", name))
    blocks = np.ascontiguousarray(blocks)
    values = np.zeros((blocks.shape[0], elements), np.float32)
    function(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(values.ctypes.data), ctypes.c_int64(values.size))
    return values


def canonical_bits(values: np.ndarray) -> np.ndarray:
    """The bits of the values, with one pattern for every NaN."""
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


def cross_check(name: str, ggml_id: int, blocks: np.ndarray, values: np.ndarray) -> str:
    """Compares with the gguf package's decoder, if it has one for the format."""
    try:
        with np.errstate(all="ignore"):
            other = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(ggml_id))
    except (NotImplementedError, ValueError):
        return "gguf has no decoder"
    other = np.ascontiguousarray(other, np.float32).reshape(values.shape)
    # gguf gets other signs of zero, so that numbers are compared and not bits.
    if not np.array_equal(other, values, equal_nan=True):
        sys.exit(f"{name}: ggml and gguf disagree")
    return "agrees with gguf"


def split_mix(seed: int, count: int) -> np.ndarray:
    """Bytes of the first outputs of SplitMix64, little-endian."""
    words = (count + 7) // 8
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + np.arange(1, words + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))).view(np.uint8)[:count]


def fnv1a(words: np.ndarray) -> int:
    """64-bit FNV-1a with u32 words in place of bytes."""
    state = 0xCBF29CE484222325
    for word in words.tolist():
        state = ((state ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return state


def finite_blocks(name: str, seed: int, count: int, size: int) -> np.ndarray:
    """Blocks of random bytes whose scales are finite numbers."""
    blocks = split_mix(seed, count * size).reshape(count, size).copy()
    for offset in F16_FIELDS.get(name, []):
        # The top bit of the exponent cleared: magnitudes below 2.
        blocks[:, offset + 1] &= 0xBF
    if name == "q8_k":
        blocks[:, 3] &= 0xBF
    if name == "iq1_m":
        # Its scale's top four bits are the top four bits of the last byte.
        blocks[:, size - 1] &= 0xBF
    return blocks


def goldens(ggml: ctypes.CDLL, type_count: int) -> str:
    """The golden file: every block format among ggml's types."""
    lines = ["# Written by references/ggml_blocks.py from ggml 0.25.3; the format is described there."]
    for ggml_id in range(type_count):
        if not ggml.ggml_is_quantized(ggml_id):
            continue
        name = ggml.ggml_type_name(ggml_id).decode().lower()
        elements, size = ggml.ggml_blck_size(ggml_id), ggml.ggml_type_size(ggml_id)
        if size == 0:
            continue
        lines.append(f"format {name} {ggml_id} {elements} {size}")
        blocks = finite_blocks(name, 1000 + ggml_id, 3, size)
        values = decode(ggml, name, blocks, elements)
        assert np.isfinite(values).all(), name
        agreement = cross_check(name, ggml_id, blocks, values)
        for block, row in zip(blocks, values.view(np.uint32)):
            lines.append(f"block {block.tobytes().hex()} / {''.join(f'{bits:08x}' for bits in row)}")
        seed = 2000 + ggml_id
        sweep = split_mix(seed, SWEEP_BLOCKS * size).reshape(SWEEP_BLOCKS, size)
        digest = fnv1a(canonical_bits(decode(ggml, name, sweep, elements)).ravel())
        lines.append(f"sweep {seed} {SWEEP_BLOCKS} {digest:016x}")
        print(f"{name}: {agreement}")
    return "\n".join(lines) + "\n"


TABLES_HEAD = """\
//! Code books of ggml: the points and levels that codes of the `iq` formats choose, and the 4-bit floats.
//!
//! Written by `references/ggml_blocks.py --tables` from `ggml-common.h` of ggml 0.25.3
//! (<https://github.com/ggml-org/ggml>), which is under the MIT licence:
//!
{licence}

"""

# Rust name, element type, name in ggml-common.h, what it is.
TABLE_LIST = [
    ("IQ2_XXS_GRID", "u64", "iq2xxs_grid", "Points of `iq2_xxs`: eight magnitudes, as bytes, first lowest."),
    ("IQ2_XS_GRID", "u64", "iq2xs_grid", "Points of `iq2_xs`: eight magnitudes, as bytes, first lowest."),
    ("IQ2_S_GRID", "u64", "iq2s_grid", "Points of `iq2_s`: eight magnitudes, as bytes, first lowest."),
    ("IQ3_XXS_GRID", "u32", "iq3xxs_grid", "Points of `iq3_xxs`: four magnitudes, as bytes, first lowest."),
    ("IQ3_S_GRID", "u32", "iq3s_grid", "Points of `iq3_s`: four magnitudes, as bytes, first lowest."),
    ("IQ1_GRID", "u64", "iq1s_grid", "Points of `iq1_s` and `iq1_m`: eight signed bytes in -1, 0, 1, first lowest."),
    ("IQ4_LEVELS", "i8", "kvalues_iq4nl", "Levels of `iq4_nl` and `iq4_xs`."),
    ("DOUBLED_E2M1", "i8", "kvalues_fp4", "Twice the values of the sixteen 4-bit floats; minus zero is zero."),
]  # fmt: skip


def tables(source: pathlib.Path) -> str:
    """The Rust file of code books. The licence is that of llama.cpp, whose tree holds this copy of ggml."""
    licence = (source.parent / "LICENSE").read_text().strip().splitlines()
    text = TABLES_HEAD.format(licence="\n".join(f"//! {line}".rstrip() for line in licence))
    header = (source / "src/ggml-common.h").read_text()
    for rust_name, element, name, meaning in TABLE_LIST:
        body = re.search(rf"GGML_TABLE_BEGIN\(\w+, {name}, \w+\)(.*?)GGML_TABLE_END", header, re.S).group(1)
        entries = re.findall(r"-?\w+", body)
        per_line = 16 if element == "i8" else 5 if element == "u64" else 8
        text += f"/// {meaning}\n#[rustfmt::skip]\npub(super) static {rust_name}: [{element}; {len(entries)}] = [\n"
        for start in range(0, len(entries), per_line):
            text += "    " + ", ".join(entries[start : start + per_line]) + ",\n"
        text += "];\n\n"
    return text.rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ggml", type=pathlib.Path, help="folder of ggml's source, instead of fetching it")
    parser.add_argument("--tables", action="store_true", help="write the code books and not the goldens")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        source = arguments.ggml or ggml_source(scratch)
        if arguments.tables:
            TABLES.write_text(tables(source))
            return
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        header = (source / "include/ggml.h").read_text()
        type_count = int(re.search(r"GGML_TYPE_COUNT\s*=\s*(\d+)", header).group(1))
        GOLDEN.write_text(goldens(compile_ggml(source, scratch), type_count))


if __name__ == "__main__":
    main()
