"""The nearest tokens of a collection, and in how many documents each token of the vocabulary is."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.encode.late import special_tokens
from rnnreranker.parts.tokens.part import VECTORS, TokenSource
from rnnreranker.parts.vectors.ids import Ids
from rnnreranker.parts.vectors.stored import VectorSource

NEAREST = 10  # tokens of the collection that say which of the vocabulary a vector stands for
DOCUMENTS = 1 << 16  # whose tokens are counted at a time


class Lexicon:
    """The vocabulary token nearest to a vector, and in how many documents each token is."""

    def __init__(self, source: TokenSource) -> None:
        self.source = source

    def nearest(self, vectors: np.ndarray) -> np.ndarray:
        """(n,) int64: the most frequent token number among the `NEAREST` tokens of the collection nearest to each
        vector.

        Special tokens do not count; of equally frequent numbers the nearest wins; -1 if no token counts. Nearness is
        the inner product, ties by row.

        Args:
            vectors: (n, d) float32, finite.
        """
        most_frequent = np.full(len(vectors), -1, dtype=np.int64)
        for row, near in enumerate(self._vectors.search(vectors, NEAREST)[1]):
            numbers = self.source.ids[near].astype(np.int64)
            numbers = numbers[~np.isin(numbers, self._special)]
            if len(numbers):
                distinct, first, counts = np.unique(numbers, return_index=True, return_counts=True)
                most_frequent[row] = distinct[np.lexsort((first, -counts))[0]]
        return most_frequent

    def idf(self, numbers: np.ndarray) -> np.ndarray:
        """(n,) float64: ln((N + 1) / (df + 1)); N documents, df of them have a token of this number."""
        values: np.ndarray = np.log((len(self.source.docids) + 1) / (self._frequencies[numbers] + 1))
        return values

    @cached_property
    def _vectors(self) -> VectorSource:
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
