"""The highest products of documents with others, gathered while blocks of both are multiplied."""

from __future__ import annotations

import numpy as np

SAFE = 1e37  # sums of products below it fit float32
LOWEST = float(np.finfo(np.float32).min)


def multiplied(vectors: np.ndarray, others: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
    """(R, C) float32: the products of (R, d) and (C, d), where those beyond float32 are the lowest, or infinite.

    What is infinite is settled in float64. room: where they may be put, at least R * C float32.
    """
    if room is not None:
        room = room[: len(vectors) * len(others)].reshape(len(vectors), len(others))
    with np.errstate(over="ignore", invalid="ignore"):
        products: np.ndarray = np.matmul(vectors, others.T, out=room)
        squares = [float(np.dot(values, values)) for values in (vectors.reshape(-1), others.reshape(-1))]
        if not squares[0] * squares[1] < SAFE**2:
            np.nan_to_num(products, copy=False, nan=np.inf, posinf=np.inf, neginf=LOWEST)
    return products


class Highest:
    """At least the `count` highest products of each of R documents, and whose they are.

    What is offered is kept if it is above the floor of its list, which rises to the lowest of the `count` highest
    whenever a list is full: so a list is put in order once for many that it takes.
    """

    def __init__(self, rows: int, count: int) -> None:
        self.count = count
        room = _room(count)
        self._scores = np.full((rows, room), -np.inf, dtype=np.float32)
        self._documents = np.zeros((rows, room), dtype=np.int32)
        self._held = np.zeros(rows, dtype=np.int64)
        self._floors, self._begun = np.full(rows, -np.inf, dtype=np.float32), False

    @staticmethod
    def size(count: int) -> int:
        """Bytes of one list."""
        return 8 * _room(count) + 12

    def offer_rows(self, products: np.ndarray, first: int) -> None:
        """Products (R, C) of these documents with those from `first` on."""
        self._begin(products.T)
        chosen = np.flatnonzero(products > self._floors[:, None])
        lists = chosen // max(1, products.shape[1])
        self._take(lists, chosen - lists * products.shape[1] + first, products.ravel()[chosen])

    def offer_columns(self, products: np.ndarray, first: int) -> None:
        """Products (C, R) of those from `first` on with these documents."""
        self._begin(products)
        chosen = np.flatnonzero(products > self._floors)
        others = chosen // max(1, products.shape[1])
        lists = chosen - others * products.shape[1]
        order = np.argsort(lists.astype(np.uint16), kind="stable")  # in linear time
        self._take(lists[order], others[order] + first, products.ravel()[chosen[order]])

    def join(self, other: Highest) -> None:
        """What another has of the same documents."""
        lists, columns = np.nonzero(np.arange(other._scores.shape[1]) < other._held[:, None])
        self._take(lists, other._documents[lists, columns], other._scores[lists, columns])

    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores (R, count) float32, from the highest on, and documents (R, count) int64."""
        order = np.argsort(-self._scores, axis=1, kind="stable")[:, : self.count]
        documents = np.take_along_axis(self._documents, order, axis=1).astype(np.int64)
        return np.take_along_axis(self._scores, order, axis=1), documents

    def _begin(self, products: np.ndarray) -> None:
        """Set the first floors, below as many maxima of some of (C, R) products as are to be kept."""
        together = len(products) // (2 * self.count)
        if self._begun or together < 2:
            return
        self._begun = True
        maxima = products[: 2 * self.count * together].reshape(2 * self.count, together, -1).max(axis=1)
        maxima.partition(self.count, axis=0)
        self._floors = np.nextafter(maxima[self.count], np.float32(-np.inf))

    def _take(self, lists: np.ndarray, documents: np.ndarray, scores: np.ndarray) -> None:
        """Add documents to lists, ascending numbers; as many of a list as find room, and then the rest."""
        room = self._scores.shape[1]
        while len(lists):
            counts = np.bincount(lists, minlength=len(self._held))
            full = np.flatnonzero(self._held + counts > room)
            if len(full):
                self._shorten(full)
                above = scores > self._floors[lists]
                lists, documents, scores = lists[above], documents[above], scores[above]
                counts = np.bincount(lists, minlength=len(self._held))
            columns = np.arange(len(lists)) - (np.cumsum(counts) - counts)[lists] + self._held[lists]
            now = columns < room
            self._scores[lists[now], columns[now]] = scores[now]
            self._documents[lists[now], columns[now]] = documents[now]
            self._held = np.minimum(self._held + counts, room)
            later = ~now
            lists, documents, scores = lists[later], documents[later], scores[later]

    def _shorten(self, full: np.ndarray) -> None:
        """Keep the highest of some lists alone."""
        own, count = self._scores[full], self.count
        highest = np.argpartition(own, own.shape[1] - count, axis=1)[:, -count:]
        kept = np.take_along_axis(own, highest, axis=1)
        self._documents[full[:, None], np.arange(count)] = np.take_along_axis(self._documents[full], highest, axis=1)
        self._scores[full, :count], self._scores[full, count:] = kept, -np.inf
        self._held[full] = np.minimum(self._held[full], count)
        self._floors[full] = kept.min(axis=1)


def _room(count: int) -> int:
    """Products that a list has room for."""
    return 2 * count + 12
