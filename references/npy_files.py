"""Writes the npy and npz files that rlx's readers are tested on, with numpy's own writer.

    pip install numpy==2.4.6 ml_dtypes==0.7.0
    python references/npy_files.py

`arrays.npz` and `arrays_compressed.npz` hold, for each element type, the same 2 x 3 x 2 array as `TYPE` (row-major),
`TYPE.fortran` (column-major) and `TYPE.big` (big-endian), and in `TYPE.bytes` the row-major little-endian bytes.
`version_2.npy` and `version_3.npy` hold arange(3) of f32 under those format versions, `scalar.npy` a scalar,
`empty.npy` an empty 3 x 0 array, `bfloat16.npy` 1, 2 and 3 as ml_dtypes saves them, and `objects.npy` Python
objects, as does `objects.npz` in its second array, `lists`.
"""

import pathlib

import ml_dtypes
import numpy as np

DATA = pathlib.Path(__file__).parents[1] / "crates/rlx/tests/data/npy"

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def every_type():
    arrays = {}
    random = np.random.default_rng(7)
    for name in TYPES:
        width = np.dtype(name).itemsize
        stored = random.integers(0, 256, 12 * width, dtype=np.uint8)
        if name == "?":
            stored &= 1
        array = stored.view(np.dtype(name).newbyteorder("<")).reshape(2, 3, 2)
        key = array.dtype.name
        arrays[key] = array
        arrays[f"{key}.fortran"] = np.asfortranarray(array)
        arrays[f"{key}.big"] = array.view(np.uint8).view(array.dtype).byteswap().view(array.dtype.newbyteorder(">"))
        arrays[f"{key}.bytes"] = stored
    return arrays


def save(name, array, version):
    with open(DATA / name, "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=True)


DATA.mkdir(parents=True, exist_ok=True)
np.savez(DATA / "arrays.npz", **every_type())
np.savez_compressed(DATA / "arrays_compressed.npz", **every_type())
np.savez(DATA / "objects.npz", numbers=np.arange(2), lists=np.array([[], {}], dtype=object))
save("version_2.npy", np.arange(3, dtype="<f4"), (2, 0))
save("version_3.npy", np.arange(3, dtype="<f4"), (3, 0))
save("scalar.npy", np.array(7, dtype="<i2"), (1, 0))
save("empty.npy", np.zeros((3, 0), dtype="<f8"), (1, 0))
save("bfloat16.npy", np.array([1, 2, 3], dtype=ml_dtypes.bfloat16), (1, 0))
save("objects.npy", np.array([[], {}], dtype=object), (1, 0))
