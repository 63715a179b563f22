"""The files of tokens: `vectors.npy`, `offsets.npy` and `ids.npy`, memory-mapped.

Document r has the rows offsets[r] to offsets[r + 1] of vectors, (T, d) float16, and of ids, (T,) int32, the numbers of
the tokens in the vocabulary of the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors.npy_files import map_array, write_array

FOLDER = "tokens"
VECTORS, OFFSETS, IDS = "vectors.npy", "offsets.npy", "ids.npy"
REPAIR = "build the index again"

Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # vectors (t, d) float16, offsets (n + 1,), ids (t,)


def write_tokens(folder: Path, blocks: Callable[[], Iterable[Block]], dimension: int) -> np.ndarray:
    """Write the three files; (N + 1,) int64, the offsets.

    Args:
        folder: made here; blocks: gives the documents' tokens whenever it is called; dimension: of a vector.
    """
    lengths = [np.zeros(1, dtype=np.int64), *(np.diff(offsets) for _, offsets, _ in blocks())]
    offsets = np.cumsum(np.concatenate(lengths)).astype(np.int64)
    folder.mkdir(parents=True)
    with open(folder / OFFSETS, "wb") as stream:
        write_array(stream, offsets)
    count = int(offsets[-1])
    with open(folder / VECTORS, "wb") as vectors, open(folder / IDS, "wb") as ids:
        for stream, kind, shape in ((vectors, "<f2", (count, dimension)), (ids, "<i4", (count,))):
            described = {"descr": kind, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, described)
        for block_vectors, _, block_ids in blocks():
            vectors.write(block_vectors.astype("<f2").tobytes())
            ids.write(block_ids.astype("<i4").tobytes())
    return offsets


def map_tokens(folder: Path) -> Block:
    """Vectors (T, d) float16, offsets (N + 1,) int64 and ids (T,) int32, memory-mapped.

    Raises:
        InputError: a file that is missing or cut short, or files that do not fit together.
    """
    vectors, offsets, ids = (map_array(folder / name, REPAIR) for name in (VECTORS, OFFSETS, IDS))
    for name, array, kind, axes in (
        (VECTORS, vectors, np.float16, 2),
        (OFFSETS, offsets, np.int64, 1),
        (IDS, ids, np.int32, 1),
    ):
        if array.ndim != axes or array.dtype != kind or not array.flags.c_contiguous:
            raise InputError(f"{folder / name}: has shape {array.shape} and type {array.dtype}; {REPAIR}")
    if len(offsets) < 2 or not len(vectors) == len(ids) == offsets[-1]:
        raise InputError(
            f"{folder}: {OFFSETS} ends at {offsets[-1:].tolist()}, {VECTORS} has {len(vectors)} and {IDS} {len(ids)} "
            "tokens; expected three files of the same index: build it again"
        )
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InputError(f"{folder / OFFSETS}: does not ascend from 0; {REPAIR}")
    return vectors, offsets, ids
