"""The nearest tokens of a collection by a Faiss index of quantised vectors, and their documents."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import cores, progress
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.threads import one_faiss_thread
from rnnreranker.parts.ragged import Hits, best_first
from rnnreranker.parts.tokens.source import TokenSource
from rnnreranker.parts.vectors.faiss_folder import write_lists

FILE = "neighbours.faiss"  # beside the tokens
NPROBE = 32  # lists of the index that are searched for a token
LISTS, TRAINED = 32_768, 64  # at most; tokens that a list is trained with
BYTES = 16  # of a quantised token, at most
FEWEST = 39 * 256  # tokens that the quantiser is trained with


def write_neighbours(vectors: np.ndarray, folder: Path) -> None:
    """Write the Faiss index of (T, d) float16 tokens, IVF-PQ by inner product; the same bytes every time.

    4 √T lists, at most 32,768; 16 parts of 8 bits a token, or the next number that divides a vector.

    Raises:
        InputError: too few tokens for training.
    """
    faiss = require("faiss", "tokens:search=ivf-pq", "faiss-cpu")
    count, dimension = vectors.shape
    if count < FEWEST:
        raise InputError(f"tokens:search=ivf-pq: {count} tokens; expected at least {FEWEST}: leave it out")
    lists = max(1, min(LISTS, int(4 * np.sqrt(count)), count // TRAINED))
    parts = next(parts for parts in range(min(BYTES, dimension), 0, -1) if dimension % parts == 0)
    index: Any = faiss.IndexIVFPQ(faiss.IndexFlatIP(dimension), dimension, lists, parts, 8, faiss.METRIC_INNER_PRODUCT)
    trained = max(TRAINED * lists, 2 * FEWEST)
    write_lists(index, count, trained, lambda rows: vectors[rows].astype(np.float32), folder / FILE)


class TokenNeighbours:
    """Candidates by nearest tokens, and their exact MaxSim, as ColBERT searches (paper 002).

    Attributes:
        lists: number of lists, of which `nprobe` are searched.
    """

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._faiss = require("faiss", "search by nearest tokens", "faiss-cpu")
        self._index = self._faiss.read_index(str(source.folder / FILE), self._faiss.IO_FLAG_MMAP)
        self.lists = int(self._index.nlist)

    def nearest(self, vectors: np.ndarray, depth: int, nprobe: int) -> np.ndarray:
        """(n, depth) int64: tokens near each of (n, d) float32 vectors, by quantised inner products, best first, padded
        with -1.
        """
        parameters = self._faiss.SearchParametersIVF(nprobe=min(nprobe, self.lists))
        nearest: np.ndarray = self._index.search(np.ascontiguousarray(vectors), depth, params=parameters)[1]
        return nearest

    def documents_of(self, tokens: np.ndarray) -> np.ndarray:
        return np.unique(np.searchsorted(self._source.offsets[1:], tokens[tokens >= 0], side="right"))

    def search(
        self,
        queries: np.ndarray,
        query_offsets: np.ndarray,
        hits: int,
        threads: int | None = None,
        weights: np.ndarray | None = None,
        *,
        depth: int = 1024,
        nprobe: int = NPROBE,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As `TokenSource.search`, over the documents of the `depth` nearest tokens of every query token."""
        source = self._source
        source.scores(queries[:0], np.zeros(1, dtype=np.int64))  # refuses another dimension

        def of_query(number: int) -> Hits:
            part = slice(query_offsets[number], query_offsets[number + 1])
            own, weighed = queries[part], None if weights is None else weights[part]
            rows = self.documents_of(self.nearest(own, depth, nprobe)) if len(own) else np.empty(0, dtype=np.int64)
            scores = source.scores(own, np.array([0, len(own)]), rows, threads=1, weights=weighed)[0]
            return best_first(scores, rows, hits, source.docid_ranks)

        with one_faiss_thread(self._faiss), ThreadPoolExecutor(threads or cores()) as pool:
            best = list(progress(pool.map(of_query, range(len(query_offsets) - 1)), unit="queries", what="search"))
        return [scores for scores, _ in best], [rows for _, rows in best]


def neighbours_in(source: TokenSource) -> TokenNeighbours | None:
    """The Faiss index of some tokens; None without one."""
    return TokenNeighbours(source) if (source.folder / FILE).is_file() else None
