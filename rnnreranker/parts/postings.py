"""Postings: the weights of words in documents, in three memory-mapped arrays, and exact search over them without Java.

A folder holds `offsets.npy`, `terms.npy` and `weights.npy`: a CSR matrix of documents and words. Products are summed in
float64 by ascending word: a score does not depend on blocks, threads or other queries.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.ragged import REPAIR, Hits, RaggedSource, best_first, write_ragged
from rnnreranker.parts.vectors.ids import positions_of

if TYPE_CHECKING:
    from pathlib import Path

    from scipy.sparse import csr_matrix

TERMS, WEIGHTS = "terms.npy", "weights.npy"
BLOCK = 2**23  # postings that are turned into postings lists together, 100 MB
KEPT = 2**25  # postings up to which the lists of all documents stay in memory
QUERIES = 16  # multiplied together


def write_postings(
    folder: Path, blocks: Callable[[], Iterable[csr_matrix]], vocabulary: int, exact: bool
) -> np.ndarray:
    """Write the three files; returns (V,) int64 document frequencies, which count non-zero weights.

    Args:
        folder: made here.
        blocks: each call gives the weights of all documents, (n_i, vocabulary) CSR with ascending columns.
        vocabulary: number of words; up to 65,536 have 16-bit numbers.
        exact: float32 weights; else whole numbers, in 8 bits if all fit, else in 16.
    """
    largest, documents = 0.0, np.zeros(vocabulary, dtype=np.int64)
    lengths = []
    for block in blocks():
        documents += np.bincount(block.indices, minlength=vocabulary)
        largest = max(largest, float(block.data.max(initial=0)))
        lengths.append(np.diff(block.indptr))
    of_weights = "<f4" if exact else "|u1" if largest <= np.iinfo(np.uint8).max else "<u2"
    arrays: dict[str, tuple[str, tuple[int, ...]]] = {
        TERMS: ("<u2" if vocabulary <= 2**16 else "<u4", ()),
        WEIGHTS: (of_weights, ()),
    }
    write_ragged(folder, lengths, arrays, ((block.indices, block.data) for block in blocks()))
    return documents


class Postings(RaggedSource):
    """The weights of words in the documents of an index. `words_count`: number of words V."""

    arrays: ClassVar = {TERMS: (1, (np.uint16, np.uint32)), WEIGHTS: (1, (np.uint8, np.uint16, np.float32))}

    words_count: int

    @property
    def postings(self) -> int:
        """The number of non-zero weights."""
        return len(self._arrays[0])

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """(V,) int64: in how many documents each word has a weight."""
        frequencies = np.zeros(self.words_count, dtype=np.int64)
        for first in range(0, self.postings, BLOCK):
            frequencies += np.bincount(self._checked(slice(first, first + BLOCK))[0], minlength=self.words_count)
        return frequencies

    def fetch(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the stored numbers of rows.

        Raises:
            InputError: a row out of range, a word beyond the vocabulary, a weight that is NaN or infinite.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self.docids)):
            raise InputError(f"rows {rows.min()} to {rows.max()}: expected 0..{len(self.docids) - 1}")
        positions, ends = positions_of(self.offsets, rows)
        return self._matrix(positions, ends).astype(np.float32)

    def blocks(self, first: int = 0) -> Iterator[tuple[int, csr_matrix]]:
        """First row and stored numbers, (n, V) float64 CSR, of each block of documents from row `first` on."""
        count = len(self.docids)
        while first < count:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), count)
            own = slice(self.offsets[first], self.offsets[last])
            yield first, self._matrix(own, self.offsets[first : last + 1] - self.offsets[first])
            first = last

    def postings_lists(self) -> Iterable[tuple[int, csr_matrix]]:
        """First row and postings lists, (V, n) float64 CSR, of each block of documents."""
        return self._kept if self.postings <= KEPT else transposed(self.blocks())

    @cached_property
    def _kept(self) -> list[tuple[int, csr_matrix]]:
        return list(transposed(self.blocks()))

    def _matrix(self, entries: slice | np.ndarray, offsets: np.ndarray) -> csr_matrix:
        from scipy.sparse import csr_matrix

        terms, weights = self._checked(entries)
        shape = (len(offsets) - 1, self.words_count)
        return csr_matrix((weights.astype(np.float64), terms.astype(np.int32), offsets), shape)

    def _checked(self, entries: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Words and weights of some entries; errors as `fetch`."""
        terms, weights = (array[entries] for array in self._arrays)
        if len(terms) and terms.max() >= self.words_count:
            raise InputError(f"{self.folder / TERMS}: has word {terms.max()} of {self.words_count}; {REPAIR}")
        if not np.isfinite(weights).all():
            raise InputError(f"{self.folder / WEIGHTS}: has NaN or infinite weights; {REPAIR}")
        return terms, weights


def transposed(blocks: Iterable[tuple[int, csr_matrix]]) -> Iterator[tuple[int, csr_matrix]]:
    return ((first, block.T.tocsr()) for first, block in blocks)


def best_products(
    queries: csr_matrix, blocks: Iterable[tuple[int, csr_matrix]], hits: int, docid_ranks: np.ndarray, threads: int
) -> list[Hits]:
    """The best documents of every query that share a word with it, by descending score, ties by docid.

    Args:
        queries: (Q, V) float64 CSR with ascending columns.
        blocks: first row and postings lists, (V, n) float64 CSR, of each block of documents.
        hits: documents a query, at most.
        docid_ranks: (N,) the rank of each row among the sorted docids.
        threads: queries are divided among them.
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
    return best
