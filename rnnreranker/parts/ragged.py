"""Rows of different lengths in memory-mapped arrays: words with weights, tokens with vectors.

Document r has the entries offsets[r] to offsets[r + 1] of every other array, along the first axis.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import DESCRIPTION, file_digest, fingerprint
from rnnreranker.parts.vectors.ids import HasDocids, read_ids
from rnnreranker.parts.vectors.npy_files import map_array, write_array, write_header

OFFSETS = "offsets.npy"
SAMPLE = 1024  # scores that give a first bound on the best
Hits = tuple[np.ndarray, np.ndarray]  # scores (float64) and rows (int64)


def write_ragged(
    folder: Path,
    lengths: Iterable[np.ndarray],
    arrays: Mapping[str, tuple[Any, tuple[int, ...]]],
    blocks: Iterable[Sequence[np.ndarray]],
) -> np.ndarray:
    """Write the files of a new folder; returns (N + 1,) int64 offsets.

    Args:
        lengths: (n_i,) each, the number of entries of every document of a block.
        arrays: file name → type, and shape of an entry.
        blocks: the entries of a block of documents, one array a file.
    """
    offsets = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        write_array(stack.enter_context(open(folder / OFFSETS, "wb")), offsets)
        streams = [stack.enter_context(open(folder / name, "wb")) for name in arrays]
        for stream, (kind, entry) in zip(streams, arrays.values(), strict=True):
            write_header(stream, kind, (int(offsets[-1]), *entry))
        for block in blocks:
            for stream, (kind, _), values in zip(streams, arrays.values(), block, strict=True):
                stream.write(values.astype(kind).tobytes())
    return offsets


def positions_of(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the entries of some rows, (p,) int64, row after row, and their (n + 1,) offsets.

    >>> positions_of(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([3, 4, 5, 0, 1]), array([0, 3, 5]))
    """
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths), ends


def best_first(scores: np.ndarray, rows: np.ndarray, hits: int, docid_ranks: np.ndarray) -> Hits:
    """The best of some documents by descending score, ties by docid.

    Args:
        scores, rows: (n,) each; docid_ranks: (N,) the rank of each row among the sorted docids.

    >>> [one.tolist() for one in best_first(np.array([1.0, 2.0, 1.0]), np.array([5, 0, 3]), 2, np.arange(6))]
    [[2.0, 1.0], [0, 3]]
    """
    sample = scores[:: 1 + len(scores) // SAMPLE]
    likely = 16 + 3 * hits * len(sample) // (2 * max(1, len(scores)))  # of the sample, half more than needed
    if likely < len(sample):
        best = np.flatnonzero(scores >= np.partition(sample, -likely)[-likely])
        if len(best) >= hits:
            scores, rows = scores[best], rows[best]
    if len(scores) > hits:
        best = np.flatnonzero(scores >= np.partition(scores, -hits)[-hits])
        scores, rows = scores[best], rows[best]
    order = np.lexsort((docid_ranks[rows], -scores))[:hits]
    return scores[order].astype(np.float64), rows[order].astype(np.int64)


class RaggedSource(HasDocids):
    """The ragged rows of all documents of an index; a subclass names the files and searches them.

    Attributes:
        docids: row → docid; offsets: (N + 1,) int64.

    Raises:
        InputError: files that are missing or cut, a description of another form.
    """

    files: ClassVar[str]  # the folder in the index
    arrays: ClassVar[tuple[str, ...]]  # names of files beside the offsets
    _marks: tuple[str, ...] = ()  # of the fingerprint, besides the files

    def __init__(self, index: Path, described: Mapping[str, Any]) -> None:
        self.folder, self.opened = index / self.files, (type(self), (index, described))
        mapped = (map_array(self.folder / name, "build the index again") for name in (OFFSETS, *self.arrays))
        self.offsets, *self._arrays = mapped
        super().__init__(read_ids(index / "docid"))
        try:
            self._take(described)
        except (KeyError, TypeError, ValueError, InputError):
            raise InputError(
                f"{index / DESCRIPTION}: does not describe {self.files} as this version does; make the index again"
            ) from None

    def _take(self, described: Mapping[str, Any]) -> None:
        """Read the description."""

    @cached_property
    def fingerprint(self) -> str:
        files = sorted([*self.folder.glob("*.npy"), *self.folder.glob("*.txt")])
        return fingerprint(self.files, *map(file_digest, files), *self._marks)
