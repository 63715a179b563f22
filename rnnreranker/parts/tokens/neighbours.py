"""The nearest tokens of a collection by a Faiss index of quantised vectors, their documents and vocabulary."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import require
from rnnreranker.base.jobs import one_faiss_thread
from rnnreranker.encode.late import special_tokens
from rnnreranker.parts.tokens.part import FILE, VECTORS, TokenSource
from rnnreranker.parts.vectors.ids import Ids
from rnnreranker.parts.vectors.stored import VectorSource

NEAREST = 10  # tokens of the collection that say which of the vocabulary a vector stands for
DOCUMENTS = 1 << 16  # whose tokens are counted at a time
NPROBE = 32  # lists of the index that are searched for a token


class TokenNeighbours:
    """Candidates by nearest tokens, as ColBERT searches (paper 002).

    Attributes:
        lists: number of lists, of which `nprobe` are searched.
    """

    def __init__(self, source: TokenSource) -> None:
        self._offsets, self._faiss = source.offsets, require("faiss", "search by nearest tokens", "faiss-cpu")
        self._index = self._faiss.read_index(str(source.folder / FILE), self._faiss.IO_FLAG_MMAP)
        self.lists = int(self._index.nlist)

    def nearest(self, vectors: np.ndarray, depth: int, nprobe: int = NPROBE) -> np.ndarray:
        """(n, depth) int64: tokens near each of (n, d) float32 vectors, by quantised inner products, best first, padded
        with -1.
        """
        parameters = self._faiss.SearchParametersIVF(nprobe=min(nprobe, self.lists))
        with one_faiss_thread(self._faiss):
            nearest: np.ndarray = self._index.search(np.ascontiguousarray(vectors), depth, params=parameters)[1]
        return nearest

    def documents(self, vectors: np.ndarray, depth: int, nprobe: int = NPROBE) -> np.ndarray:
        """(m,) int64, ascending: the rows of documents with one of the tokens that `nearest` finds."""
        tokens = self.nearest(vectors, depth, nprobe)
        return np.unique(np.searchsorted(self._offsets[1:], tokens[tokens >= 0], side="right"))


def neighbours_in(source: TokenSource) -> TokenNeighbours | None:
    """The Faiss index of some tokens; None without one."""
    return TokenNeighbours(source) if (source.folder / FILE).is_file() else None


class Lexicon:
    """The vocabulary token nearest to a vector, and in how many documents each token is.

    Args:
        neighbours: finds the nearest tokens; None = exact comparison with all. nprobe: lists that it searches.
    """

    def __init__(self, source: TokenSource, neighbours: TokenNeighbours | None = None, nprobe: int = NPROBE) -> None:
        self.source, self._neighbours, self._nprobe = source, neighbours, nprobe

    def nearest(self, vectors: np.ndarray) -> np.ndarray:
        """(n,) int64: the most frequent token number among the `NEAREST` tokens of the collection nearest to each
        vector.

        Special tokens do not count; of equally frequent numbers the nearest wins; -1 if no token counts. Nearness is
        the inner product, ties by row.

        Args:
            vectors: (n, d) float32, finite.
        """
        most_frequent = np.full(len(vectors), -1, dtype=np.int64)
        if self._neighbours is None:
            several: Any = self._exact.search(vectors, NEAREST)[1]
        else:
            several = self._neighbours.nearest(vectors, NEAREST, self._nprobe)
        for row, near in enumerate(several):
            numbers = self.source.ids[near[near >= 0]].astype(np.int64)
            numbers = numbers[~np.isin(numbers, self._special)]
            if len(numbers):
                distinct, first, counts = np.unique(numbers, return_index=True, return_counts=True)
                most_frequent[row] = distinct[np.lexsort((first, -counts))[0]]
        return most_frequent

    def idf(self, numbers: np.ndarray) -> np.ndarray:
        """(n,) float64: ln((N + 1) / (df + 1)); N documents, df of them have a token of this number."""
        return np.log((len(self.source.docids) + 1) / (self._frequencies[numbers] + 1))

    @cached_property
    def _exact(self) -> VectorSource:
        stored, path = self.source.vectors, self.source.folder / VECTORS
        numbers: Any = range(len(stored))
        return VectorSource(path, Ids(numbers, str(path)), stored, files=[path])

    @cached_property
    def _special(self) -> np.ndarray:
        return special_tokens(self.source.encoder["name"])

    @cached_property
    def _frequencies(self) -> np.ndarray:
        """(size,) int64: in how many documents each token is."""
        ids, offsets = self.source.ids, self.source.offsets
        size = int(ids.max(initial=-1)) + 1
        frequencies = np.zeros(size, dtype=np.int64)
        for first in progress(range(0, len(offsets) - 1, DOCUMENTS), unit="blocks", what="frequencies of tokens"):
            own = np.asarray(offsets[first : first + DOCUMENTS + 1])
            documents = np.repeat(np.arange(len(own) - 1), np.diff(own))
            pairs = np.unique(documents * size + ids[own[0] : own[-1]])
            frequencies += np.bincount(pairs % max(size, 1), minlength=size)
        return frequencies
