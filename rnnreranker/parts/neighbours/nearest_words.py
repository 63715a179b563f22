"""The nearest other documents by the weights of their words: cosines, exactly, as products of sparse matrices.

Weights of words have no common length: an inner product would bring every document near the longest ones, and those of
whole numbers are beyond what float16 holds. So the similarity is the cosine. Documents without a word in common are no
neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.impacts.files import check_postings, document_blocks, map_impacts, positions_of
from rnnreranker.parts.impacts.source import BLOCK, KEPT
from rnnreranker.parts.vectors.ids import read_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

QUERIES = 32  # documents that are multiplied with a block at a time


class WordNeighbours:
    """A `GraphSource` of N documents with weights of V words, in the files of impacts.

    Words are summed in ascending order in float64, so that a cosine depends on the two documents alone.

    Args:
        folder: with `offsets.npy`, `terms.npy` and `weights.npy`.
        docids: row -> docid.
        vocabulary: V; None = up to the last word that a document has.
        of: the part that the weights are of.
        mark: the fingerprint of the weights.
        ids: the file that other processes read the docids from; None = they are sent there.

    Raises:
        InputError: files that are missing or do not fit together.
    """

    similarity = "cosine"
    search = "exact"

    def __init__(
        self, folder: Path, docids: Sequence[str], vocabulary: int | None, of: str, mark: str, ids: Path | None = None
    ) -> None:
        self._ids = ids
        self.folder, self.docids, self.of, self.fingerprint = folder, docids, of, mark
        self._offsets, self._terms, self._weights = map_impacts(folder)
        self.vocabulary = int(self._terms.max(initial=0)) + 1 if vocabulary is None else vocabulary
        if len(docids) != len(self._offsets) - 1:
            raise InputError(
                f"{folder}: weights of {len(self._offsets) - 1} documents for {len(docids)} docids; "
                "build the index again"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the weights itself."""
        about = (self.vocabulary, self.of, self.fingerprint)
        if self._ids is None:
            return WordNeighbours, (self.folder, self.docids, *about)
        return _opened, (self.folder, self._ids, *about)

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        edges, scores = np.repeat(rows[:, None], k, axis=1), np.zeros((len(rows), k))
        for begin in range(0, len(rows), QUERIES):
            part = slice(begin, begin + QUERIES)
            self._fill(rows[part], edges[part], scores[part], first)
        return edges, scores

    def bounds(self, rows: np.ndarray, first: int) -> np.ndarray:
        """As `GraphSource`: none are known, the nearest are as quick to look for."""
        return np.full(len(rows), np.inf)

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        similarities = np.zeros(edges.shape)
        for line_number, (row, line) in enumerate(zip(rows.tolist(), edges, strict=True)):
            product = self._unit(np.array([row])) @ self._unit(line).T.tocsr()
            similarities[line_number, product.indices] = product.data
        return similarities

    def _fill(self, rows: np.ndarray, edges: np.ndarray, scores: np.ndarray, start: int) -> None:
        """Put the nearest others from row `start` on into edges and scores."""
        k, own = edges.shape[1], self._unit(rows)
        best = [(np.empty(0, dtype=np.int64), np.empty(0))] * len(rows)
        for first, postings in self._postings():
            if first + postings.shape[1] <= start:
                continue
            products = own @ postings
            for line, row in enumerate(rows.tolist()):
                mine = slice(products.indptr[line], products.indptr[line + 1])
                documents = np.concatenate([best[line][0], products.indices[mine].astype(np.int64) + first])
                values = np.concatenate([best[line][1], products.data[mine]])
                kept = (documents != row) & (documents >= start)
                documents, values = documents[kept], values[kept]
                if len(values) > k:
                    kept = values >= np.partition(values, len(values) - k)[len(values) - k]
                    documents, values = documents[kept], values[kept]
                order = np.lexsort((documents, -values))[:k]
                best[line] = documents[order], values[order]
        for line, (documents, values) in enumerate(best):
            edges[line, : len(documents)], scores[line, : len(documents)] = documents, values

    def _unit(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float64 CSR: the weights of rows, each of length 1 or without words."""
        positions, ends = positions_of(self._offsets, rows)
        return self._scaled(self._terms[positions], self._weights[positions], ends)

    def _scaled(self, terms: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> csr_matrix:
        from scipy.sparse import csr_matrix

        check_postings(terms, weights, self.vocabulary, self.folder)
        values, owners = weights.astype(np.float64), np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        lengths = np.sqrt(np.bincount(owners, values * values, len(offsets) - 1))
        shape = (len(offsets) - 1, self.vocabulary)
        return csr_matrix((values / lengths[owners], terms.astype(np.int32), offsets), shape)

    def _postings(self) -> Iterator[tuple[int, csr_matrix]]:
        """First row and words' documents, (V, n) float64 CSR, of each block of documents."""
        return iter(self._kept) if len(self._terms) <= KEPT else self._read()

    @cached_property
    def _kept(self) -> list[tuple[int, csr_matrix]]:
        return list(self._read())

    def _read(self) -> Iterator[tuple[int, csr_matrix]]:
        for first, last in document_blocks(self._offsets, BLOCK):
            yield first, self._unit(np.arange(first, last)).T.tocsr()


@lru_cache(maxsize=1)
def _opened(folder: Path, ids: Path, vocabulary: int, of: str, mark: str) -> WordNeighbours:
    """The weights in a folder, once in a process for as long as it is of them."""
    return WordNeighbours(folder, read_ids(ids).names, vocabulary, of, mark, ids)
