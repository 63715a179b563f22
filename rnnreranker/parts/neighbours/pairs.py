"""Two stretches of a collection: every two documents of them are multiplied once, and each is offered to the other.

What comes of it is a file, which any process can make. Together the files of all pairs of stretches propose the
nearest of every document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.parts.neighbours.highest import Highest, multiplied
from rnnreranker.parts.neighbours.nearest import SPARE, DenseNeighbours
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.vectors.npy_files import map_array, put_array

ROWS = 1024  # documents that are multiplied with as many others at a time
PROPOSED = np.dtype([("score", "<f4"), ("document", "<u4")])
STRETCHES = 16  # of a large collection; every document has proposals of each
LEAST = 8192  # documents of a stretch, where there are more
SPARE_OF_HALVES = 16  # documents proposed beyond a list and the document itself, of products in half precision
HELD = 2**26  # bytes of the vectors of a stretch that are in memory at a time


@dataclass(frozen=True)
class Pairs:
    """All pairs of stretches of a collection, and the files of their proposals.

    Args:
        source: of the vectors; count: m, products that are kept of a document, from each stretch.
        stretches: all documents; half: what makes products in half precision in turn; none = the processor, in float32.
        files: of the pairs, the first number not above the second; those of a stretch with
            itself stand first, as the others leave out what is not above their floors.
    """

    source: DenseNeighbours
    count: int
    stretches: list[range]
    files: dict[tuple[int, int], Path]
    half: tuple[HalfProducts, ...] = ()

    @classmethod
    def of(cls, source: DenseNeighbours, k: int, block: int, work: Path, half: tuple[HalfProducts, ...] = ()) -> Pairs:
        """Those for a graph with k neighbours; a stretch is whole blocks of so many, files are in the folder `work`."""
        count = len(source.docids)
        size = -(-max(LEAST, -(-count // STRETCHES)) // block) * block
        stretches = list(_cut(range(count), size))
        spare = SPARE_OF_HALVES if half else SPARE
        mark = fingerprint(source.fingerprint, k, size, spare)
        pairs = [(one, one + apart) for apart in range(len(stretches)) for one in range(len(stretches) - apart)]
        files = {(one, other): work / f"{one:03d}x{other:03d}-{mark}.npy" for one, other in pairs}
        return cls(source, min(count, k + 1 + spare), stretches, files, half)

    def make(self, pair: tuple[int, int]) -> None:
        """Write the file of two stretches, (A + B, m) of `PROPOSED`, or of one with itself, (A, m)."""
        own, others = (self.stretches[number] for number in pair)
        if self.half:
            made = self.half[sum(pair) % len(self.half)].highest(self._fetch, own, others, self.count)
        else:
            made = [(one.scores, one.documents) for one in self._highest(pair)]
        proposed = np.empty((sum(len(scores) for scores, _ in made), self.count), dtype=PROPOSED)
        proposed["score"] = np.concatenate([scores for scores, _ in made])
        proposed["document"] = np.concatenate([documents for _, documents in made])
        put_array(self.files[pair], proposed)

    def proposals(self, rows: range) -> tuple[np.ndarray, np.ndarray]:
        """Of documents of one stretch scores (R, m) float32, from the highest on, and documents (R, m) int64."""
        number = next(at for at, one in enumerate(self.stretches) if rows.start in one)
        begin = rows.start - self.stretches[number].start
        proposed = []
        for (one, other), file in self.files.items():
            if number in (one, other):
                first = begin + (len(self.stretches[one]) if number != one else 0)
                proposed.append(map_array(file)[first : first + len(rows)])
        joined = np.concatenate(proposed, axis=1)
        order = np.argsort(-joined["score"], axis=1, kind="stable")[:, : self.count]
        best = np.take_along_axis(joined, order, axis=1)
        return best["score"], best["document"].astype(np.int64)

    def _highest(self, pair: tuple[int, int]) -> list[Highest]:
        own, others = (self.stretches[number] for number in pair)
        same, products = own == others, len(self.source.docids) ** 2
        highest = Highest.empty(len(own), self.count, products, self._floors(pair[0]))
        theirs = highest if same else Highest.empty(len(others), self.count, products, self._floors(pair[1]))
        room = np.empty(ROWS * ROWS, dtype=np.float32)
        for part in _cut(others, max(1, HELD // (4 * self.source.vectors.dimension))):
            vectors = self._fetch(part)
            for block in _cut(own, ROWS):
                mine = self._fetch(block)
                for columns in _cut(range(max(part.start, block.start) if same else part.start, part.stop), ROWS):
                    with one_blas_thread():
                        got = multiplied(mine, vectors[columns.start - part.start : columns.stop - part.start], room)
                    begun = min(columns.stop, max(columns.start, block.stop)) if same else columns.start
                    lists = theirs.of(slice(begun - others.start, columns.stop - others.start))
                    rows = slice(block.start - own.start, block.stop - own.start)
                    highest.of(rows).offer(got, columns.start, lists, block.start)
        return [highest] if same else [highest, theirs]

    def _floors(self, number: int) -> np.ndarray | None:
        """Of the documents of a stretch what so many products are not below; None as long as that is not known."""
        file = self.files[number, number]
        return map_array(file)["score"].min(axis=1) if file.is_file() else None

    def _fetch(self, rows: range) -> np.ndarray:
        return self.source.vectors.fetch(np.array(rows))


def _cut(rows: range, size: int) -> Iterator[range]:
    for first in range(rows.start, rows.stop, size):
        yield range(first, min(first + size, rows.stop))
