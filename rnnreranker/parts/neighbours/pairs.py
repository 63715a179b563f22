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
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.parts.neighbours.nearest import SPARE, DenseNeighbours
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.vectors.npy_files import map_array, put_array
from rnnreranker.rnn.kernel_lists import compiled, kept

ROWS = 1024  # documents that are multiplied with as many others at a time
PROPOSED = np.dtype([("score", "<f4"), ("document", "<u4")])
STRETCHES = 16  # of a large collection; every document has proposals of each
LEAST = 8192  # documents of a stretch, where there are more
SPARE_OF_HALVES = 16  # documents proposed beyond a list and the document itself, of products in half precision
HELD = 2**26  # bytes of the vectors of a stretch that are in memory at a time
SAFE = 1e37  # sums of products below it fit float32
LOWEST = float(np.finfo(np.float32).min)


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
            made = [(scores, documents) for scores, documents, *_ in self._highest(pair)]
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

    def _highest(self, pair: tuple[int, int]) -> list[tuple[np.ndarray, ...]]:
        """The lists of the documents of two stretches, or of one, as `scan` fills them."""
        from rnnreranker.parts.neighbours.pairs import scan

        own, others = (self.stretches[number] for number in pair)
        same = own == others
        lists = [self._lists(number) for number in dict.fromkeys(pair)]
        room = np.empty(ROWS * ROWS, dtype=np.float32)
        for part in _cut(others, max(1, HELD // (4 * self.source.vectors.dimension))):
            vectors = self._fetch(part)
            for block in _cut(own, ROWS):
                mine, rows = self._fetch(block), slice(block.start - own.start, block.stop - own.start)
                for columns in _cut(range(max(part.start, block.start) if same else part.start, part.stop), ROWS):
                    with one_blas_thread():
                        got = multiplied(mine, vectors[columns.start - part.start : columns.stop - part.start], room)
                    begun = min(columns.stop, max(columns.start, block.stop)) if same else columns.start
                    theirs = slice(begun - others.start, columns.stop - others.start)
                    of_rows, of_columns = [one[rows] for one in lists[0]], [one[theirs] for one in lists[-1]]
                    scan(got, *of_rows, columns.start, *of_columns, block.start)
        return lists

    def _lists(self, number: int) -> tuple[np.ndarray, ...]:
        """Empty ones of a stretch; their floors are what so many products are not below, where that is known."""
        file, size = self.files[number, number], len(self.stretches[number])
        return empty_lists(size, self.count, map_array(file)["score"].min(axis=1) if file.is_file() else None)

    def _fetch(self, rows: range) -> np.ndarray:
        return self.source.vectors.fetch(np.array(rows))


def empty_lists(rows: int, count: int, floors: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Lists of the highest products of so many documents, which `scan` fills, `count` of each at most.

    Returns:
        Scores (R, m) float32, in no order, -inf where there are fewer; documents (R, m) int32; (R,) int64 how many a
        list has; (R,) float32 floors: what is not above them is left out, nothing where none are given.
    """
    scores, documents = np.full((rows, count), -np.inf, dtype=np.float32), np.zeros((rows, count), dtype=np.int32)
    floors = np.full(rows, -np.inf, dtype=np.float32) if floors is None else floors
    return scores, documents, np.zeros(rows, dtype=np.int64), floors


def multiplied(vectors: np.ndarray, others: np.ndarray, room: np.ndarray) -> np.ndarray:
    """(R, C) float32: the products of (R, d) and (C, d), where those beyond float32 are the lowest, or infinite.

    What is infinite is settled in float64. room: where they are put, at least R * C float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        shape = len(vectors), len(others)
        products: np.ndarray = np.matmul(vectors, others.T, out=room[: shape[0] * shape[1]].reshape(shape))
        squares = [float(np.dot(values, values)) for values in (vectors.reshape(-1), others.reshape(-1))]
        if not squares[0] * squares[1] < SAFE**2:
            np.nan_to_num(products, copy=False, nan=np.inf, posinf=np.inf, neginf=LOWEST)
    return products


def _cut(rows: range, size: int) -> Iterator[range]:
    for first in range(rows.start, rows.stop, size):
        yield range(first, min(first + size, rows.stop))


STRIP = 32  # products whose maximum is looked at before them


@compiled
def _put(scores, documents, held, floors, line, score, document):  # type: ignore[no-untyped-def]
    """Put a document whose score is above the floor into a list, in place of the lowest where it is full."""
    size, i = scores.shape[1], held[line]
    if i < size:
        held[line] = i + 1
        while i > 0 and scores[line, (i - 1) >> 1] > score:
            above = (i - 1) >> 1
            scores[line, i], documents[line, i] = scores[line, above], documents[line, above]
            i = above
    else:
        i = 0
        while 2 * i + 1 < size:
            below = 2 * i + 1
            if below + 1 < size and scores[line, below + 1] < scores[line, below]:
                below += 1
            if scores[line, below] >= score:
                break
            scores[line, i], documents[line, i] = scores[line, below], documents[line, below]
            i = below
    scores[line, i], documents[line, i] = score, document
    if held[line] == size:
        floors[line] = max(floors[line], scores[line, 0])


@compiled
def _maxima(products, of_rows, of_columns):  # type: ignore[no-untyped-def]
    """The maxima of strips: of row r the strip products[r, s::width], of column c those of so many rows each."""
    rows, columns = products.shape
    width = of_rows.shape[1]
    of_rows[:], of_columns[:] = -np.inf, -np.inf
    for t in range(len(of_columns)):
        for r in range(t * STRIP, min(rows, (t + 1) * STRIP)):
            for j in range(STRIP):
                for s in range(width):
                    value = products[r, j * width + s]
                    of_rows[r, s] = value if value > of_rows[r, s] else of_rows[r, s]
            for c in range(columns):
                value = products[r, c]
                of_columns[t, c] = value if value > of_columns[t, c] else of_columns[t, c]


@kept
def scan(  # type: ignore[no-untyped-def]
    products, scores, documents, held, floors, first, their_scores, their_documents, their_held, their_floors, own_first
):
    """Offer products (R, C) to the lists of R rows, and those of the last columns to their lists.

    Args:
        scores, documents: (R, m); held, floors: (R,): the lists of the rows, changed; first: the document of column 0.
        their_scores, …: the same of the last columns, at most C; own_first: the document of row 0.
    """
    rows, columns = products.shape
    width, before = columns // STRIP, columns - len(their_held)
    of_rows = np.empty((rows, width), dtype=np.float32)
    of_columns = np.empty((-(-rows // STRIP), columns), dtype=np.float32)
    _maxima(products, of_rows, of_columns)
    for r in range(rows):
        for s in range(width):
            if of_rows[r, s] > floors[r]:
                for c in range(s, STRIP * width, width):
                    if products[r, c] > floors[r]:
                        _put(scores, documents, held, floors, r, products[r, c], first + c)
        for c in range(STRIP * width, columns):
            if products[r, c] > floors[r]:
                _put(scores, documents, held, floors, r, products[r, c], first + c)
    for t in range(len(of_columns)):
        for c in range(before, columns):
            if of_columns[t, c] > their_floors[c - before]:
                for r in range(t * STRIP, min(rows, (t + 1) * STRIP)):
                    if products[r, c] > their_floors[c - before]:
                        line, score = c - before, products[r, c]
                        _put(their_scores, their_documents, their_held, their_floors, line, score, own_first + r)
