"""The files of impacts: `offsets.npy`, `terms.npy` and `weights.npy`, a CSR matrix in three memory-mapped arrays.

Document r has the words terms[offsets[r]:offsets[r + 1]], ascending, with the weights at the same positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors.npy_files import map_array, write_array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDER = "impacts"
REPAIR = "build the index again"
OFFSETS, TERMS, WEIGHTS = "offsets.npy", "terms.npy", "weights.npy"


def write_impacts(folder: Path, blocks: Callable[[], Iterable[csr_matrix]], vocabulary: int, exact: bool) -> np.ndarray:
    """Write the three files; (V,) int64, in how many documents each word has a weight, which is not zero.

    Args:
        folder: made here.
        blocks: gives the documents' weights, (n_i, vocabulary) CSR with ascending columns, whenever it is called.
        vocabulary: words; up to 65,536 of them have 16-bit numbers.
        exact: keep weights as float32; otherwise they are whole numbers, kept in 8 bits if all fit, else in 16.
    """
    largest, lengths, documents = 0.0, [np.zeros(1, dtype=np.int64)], np.zeros(vocabulary, dtype=np.int64)
    for block in blocks():
        documents += np.bincount(block.indices, minlength=vocabulary)
        largest = max(largest, float(block.data.max(initial=0)))
        lengths.append(np.diff(block.indptr).astype(np.int64))
    offsets = np.cumsum(np.concatenate(lengths))
    folder.mkdir(parents=True)
    with open(folder / OFFSETS, "wb") as stream:
        write_array(stream, offsets)
    weight_type = "<f4" if exact else "|u1" if largest <= np.iinfo(np.uint8).max else "<u2"
    term_type = "<u2" if vocabulary <= 2**16 else "<u4"
    with open(folder / TERMS, "wb") as terms, open(folder / WEIGHTS, "wb") as weights:
        for stream, kind in ((terms, term_type), (weights, weight_type)):
            described = {"descr": kind, "fortran_order": False, "shape": (int(offsets[-1]),)}
            np.lib.format.write_array_header_1_0(stream, described)
        for block in blocks():
            terms.write(block.indices.astype(term_type).tobytes())
            weights.write(block.data.astype(weight_type).tobytes())
    return documents


def map_impacts(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets (n+1,) int64, terms and weights (p,), memory-mapped.

    Raises:
        InputError: a file that is missing or cut short, or files that do not fit together.
    """
    offsets, terms, weights = (map_array(folder / name, REPAIR) for name in (OFFSETS, TERMS, WEIGHTS))
    expected: tuple[tuple[str, np.ndarray, tuple[Any, ...]], ...] = (
        (OFFSETS, offsets, (np.int64,)),
        (TERMS, terms, (np.uint16, np.uint32)),
        (WEIGHTS, weights, (np.uint8, np.uint16, np.float32)),
    )
    for name, array, kinds in expected:
        if array.ndim != 1 or array.dtype not in kinds:
            raise InputError(f"{folder / name}: has shape {array.shape} and type {array.dtype}; build the index again")
    if len(offsets) < 2 or not len(terms) == len(weights) == offsets[-1]:
        raise InputError(
            f"{folder}: {OFFSETS} ends at {offsets[-1:].tolist()}, {TERMS} has {len(terms)} and {WEIGHTS} "
            f"{len(weights)} numbers; expected three files of the same index: build it again"
        )
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InputError(f"{folder / OFFSETS}: does not ascend from 0; {REPAIR}")
    return offsets, terms, weights


def check_postings(terms: np.ndarray, weights: np.ndarray, vocabulary: int, folder: Path) -> None:
    """Look at words and weights that have been read.

    Raises:
        InputError: a word beyond the vocabulary, a weight that is NaN or infinite.
    """
    if len(terms) and terms.max() >= vocabulary:
        raise InputError(f"{folder / TERMS}: has word {terms.max()} of {vocabulary}; {REPAIR}")
    if not np.isfinite(weights).all():
        raise InputError(f"{folder / WEIGHTS}: has NaN or infinite weights; {REPAIR}")


def positions_of(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the words of some documents are, (p,) int64, one document after the other, and (n+1,) int64 their offsets.

    >>> positions_of(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([3, 4, 5, 0, 1]), array([0, 3, 5]))
    """
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths), ends


def document_blocks(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """First row, and the one after the last, of blocks with `most` words at most, or of one document that has more.

    >>> list(document_blocks(np.array([0, 2, 3, 9, 10]), 3))
    [(0, 2), (2, 3), (3, 4)]
    """
    first, count = 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last
