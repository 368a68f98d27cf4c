"""How the golden files are written: one record a line, numbers as hexadecimal bits."""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "crates/rlx-eval/tests/golden/numeric"


def f64_hex(value: float) -> str:
    return struct.pack(">d", float(value)).hex()


def f32_hex(value: float) -> str:
    return struct.pack(">f", float(value)).hex()


def write(subject: str, lines: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{subject}.txt").write_text("\n".join(lines) + "\n")
