"""Postings: the weights of words in documents, in three memory-mapped arrays, and exact search over them without Java.

A folder holds `offsets.npy`, `terms.npy` and `weights.npy`: a CSR matrix of documents and words. Products are summed in
float64 by ascending word: a score does not depend on blocks, threads or other queries.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.parts.ragged import Hits, RaggedSource, best_first, write_ragged
from rnnreranker.parts.vectors.ids import positions_of

if TYPE_CHECKING:
    from pathlib import Path

    from scipy.sparse import csr_matrix

TERMS, WEIGHTS = "terms.npy", "weights.npy"
BLOCK = 2**23  # postings that are turned into postings lists together, 100 MB
KEPT = 2**25  # postings up to which the lists of all documents stay in memory
QUERIES = 16  # multiplied together


def arrays_in(matrix: csr_matrix) -> dict[str, np.ndarray]:
    """The arrays of an (n, V) CSR matrix, for a file."""
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def matrix_of(arrays: Mapping[str, np.ndarray], width: int) -> csr_matrix:
    """The (n, width) CSR matrix of `arrays_in`."""
    from scipy.sparse import csr_matrix

    data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
    return csr_matrix((data, indices, indptr), (len(indptr) - 1, width))


def write_postings(
    folder: Path, blocks: Callable[[], Iterable[csr_matrix]], vocabulary: int, exact: bool
) -> np.ndarray:
    """Write the three files; returns (V,) int64 document frequencies.

    Args:
        blocks: each call gives the weights of all documents, (n_i, vocabulary) CSR with ascending columns.
        vocabulary: number of words; up to 65,536 have 16-bit numbers.
        exact: float32 weights; else whole numbers in 8 or 16 bits.
    """
    largest, documents, lengths = 0.0, np.zeros(vocabulary, dtype=np.int64), []
    for block in blocks():
        documents += np.bincount(block.indices, minlength=vocabulary)
        largest = max(largest, float(block.data.max(initial=0)))
        lengths.append(np.diff(block.indptr))
    of_weights = "<f4" if exact else "|u1" if largest < 2**8 else "<u2"
    arrays: dict[str, tuple[str, tuple[int, ...]]] = {
        TERMS: ("<u2" if vocabulary <= 2**16 else "<u4", ()),
        WEIGHTS: (of_weights, ()),
    }
    write_ragged(folder, lengths, arrays, ((block.indices, block.data) for block in blocks()))
    return documents


class Postings(RaggedSource):
    """The weights of words in the documents of an index. `words_count`: number of words V."""

    arrays = TERMS, WEIGHTS

    words_count: int
    _lists: Mapping[Any, list[tuple[int, csr_matrix]]] = MappingProxyType({})

    @property
    def postings(self) -> int:
        return len(self._arrays[0])

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """(V,) int64: in how many documents each word has a weight."""
        terms = (self._arrays[0][first : first + BLOCK] for first in range(0, self.postings, BLOCK))
        none = np.zeros(self.words_count, dtype=np.int64)
        return sum((np.bincount(one, minlength=self.words_count) for one in terms), none)

    def fetch(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the stored numbers of (n,) int64 rows."""
        return self._matrix(*positions_of(self.offsets, rows)).astype(np.float32)

    def blocks(self, first: int = 0) -> Iterator[tuple[int, csr_matrix]]:
        """First row and stored numbers, (n, V) float64 CSR, of each block of documents from row `first` on."""
        count = len(self.docids)
        while first < count:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), count)
            own = self.offsets[first : last + 1]
            yield first, self._matrix(slice(own[0], own[-1]), own - own[0])
            first = last

    def postings_lists(
        self, first: int = 0, weigh: Callable[[csr_matrix], csr_matrix] | None = None
    ) -> Iterable[tuple[int, csr_matrix]]:
        """First row and postings lists, (V, n) float64 CSR, of each block of documents from row `first` on.

        weigh: changes the (n, V) numbers of a block; the last lists of all documents are kept if they are small.
        """
        blocks = self.blocks(first)
        lists = ((start, (weigh(block) if weigh else block).T.tocsr()) for start, block in blocks)
        if first or self.postings > KEPT:
            return lists
        if weigh not in self._lists:
            self._lists = {weigh: list(lists)}
        return self._lists[weigh]

    def _matrix(self, entries: slice | np.ndarray, offsets: np.ndarray) -> csr_matrix:
        terms, weights = (array[entries] for array in self._arrays)
        arrays: dict[str, Any] = {
            "data": weights.astype(np.float64),
            "indices": terms.astype(np.int32),
            "indptr": offsets,
        }
        return matrix_of(arrays, self.words_count)


def best_products(
    queries: csr_matrix, blocks: Iterable[tuple[int, csr_matrix]], hits: int, docid_ranks: np.ndarray, threads: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Scores and rows of every query's best documents that share a word with it, descending, ties by docid.

    Args:
        queries: (Q, V) float64 CSR with ascending columns; threads: queries are divided among them.
        blocks: first row and postings lists, (V, n) float64 CSR, of each block of documents.
        hits: documents a query, at most; docid_ranks: (N,) the rank of each row among the sorted docids.
    """
    best: list[Hits] = [(np.empty(0), np.empty(0, dtype=np.int64))] * queries.shape[0]
    groups = [range(first, min(first + QUERIES, len(best))) for first in range(0, len(best), QUERIES)]
    alone = threads == 1 or len(groups) == 1
    with contextlib.nullcontext() if alone else ThreadPoolExecutor(threads) as pool:
        for first, postings in blocks:
            parts = [queries[group.start : group.stop] for group in groups]
            made = (map if pool is None else pool.map)(operator.matmul, parts, itertools.repeat(postings))
            for group, products in zip(groups, made, strict=True):
                for query, begin, end in zip(group, products.indptr[:-1], products.indptr[1:], strict=True):
                    rows = products.indices[begin:end].astype(np.int64) + first
                    scores = np.concatenate([best[query][0], products.data[begin:end]])
                    best[query] = best_first(scores, np.concatenate([best[query][1], rows]), hits, docid_ranks)
    return [scores for scores, _ in best], [rows for _, rows in best]
