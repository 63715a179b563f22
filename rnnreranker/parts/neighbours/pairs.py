"""The nearest of all documents of a collection: every two are multiplied once, and each is offered to the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.parts.neighbours.highest import Highest, multiplied
from rnnreranker.parts.neighbours.nearest import SPARE, DenseNeighbours

HELD = 2**25  # bytes of what is held for a band


def bands(missing: Sequence[range], k: int) -> list[list[range]]:
    """Blocks of documents whose lists are held in memory together, in their order."""
    rows = max(1, HELD // Highest.size(k + 1 + SPARE))
    bands_of: list[list[range]] = []
    held = rows
    for block in missing:
        if held + len(block) > rows:
            bands_of.append([])
            held = 0
        bands_of[-1].append(block)
        held += len(block)
    return bands_of


class Band:
    """The blocks of a band, each multiplied with itself, with those behind it in the band and all others.

    What is proposed is settled as `DenseNeighbours.nearest` does, so that the result is the same.

    Args:
        source: of the vectors; k: neighbours of a document.
        blocks: all documents; own: the blocks of the band, some of them, ascending.
        settled: is given the place of a block in the band, and edges and similarities of its documents, once they are
            known: as soon as all blocks before it are.
    """

    def __init__(
        self,
        source: DenseNeighbours,
        k: int,
        blocks: Sequence[range],
        own: Sequence[range],
        settled: Callable[[int, np.ndarray, np.ndarray], None],
    ) -> None:
        self._source, self._k, self._blocks, self._own, self._settled = source, k, blocks, own, settled
        self._count = min(len(source.docids), k + 1 + SPARE)
        self._numbers = {block.start: number for number, block in enumerate(own)}
        self._highest: list[Highest | None] = [None] * len(own)
        self._locks = [threading.Lock() for _ in own]
        self._order, self._done, self._next = threading.Lock(), set[int](), 0

    def multiply(self, number: int) -> None:
        """Multiply a block of the band; blocks may be multiplied side by side."""
        own = self._own[number]
        vectors = self._fetch(own)
        with self._locks[number]:
            highest, self._highest[number] = self._of(number), None
        room = np.empty(len(own) * max(map(len, self._blocks)), dtype=np.float32)
        for block in self._blocks:
            other = self._numbers.get(block.start)
            if other is not None and other < number:
                continue  # it has multiplied this one
            others = vectors if other == number else self._fetch(block)
            with one_blas_thread():
                products = multiplied(vectors, others, room)
            highest.offer_rows(products, block.start)
            if other is not None and other != number:
                with self._locks[other]:
                    self._highest[other] = of_other = self._of(other)
                    of_other.offer_columns(products, own.start)
        with self._locks[number]:
            if (meanwhile := self._highest[number]) is not None:
                highest.join(meanwhile)
            self._highest[number] = highest
        self._settle(number)

    def _of(self, number: int) -> Highest:
        """What a block has been offered so far."""
        return self._highest[number] or Highest(len(self._own[number]), self._count)

    def _settle(self, number: int) -> None:
        """Settle the blocks that no other will be offered to any more."""
        with self._order:
            self._done.add(number)
            first = self._next
            while self._next in self._done:
                self._next += 1
            ready = range(first, self._next)
        for one in ready:
            highest, self._highest[one] = self._of(one), None
            self._settled(one, *self._source.nearest(np.array(self._own[one]), self._k, proposed=highest.best()))

    def _fetch(self, block: range) -> np.ndarray:
        return self._source.vectors.fetch(np.array(block))
