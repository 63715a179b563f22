"""Tokens on disk, searched by MaxSim."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.tokens.files import VECTORS
from rnnreranker.parts.tokens.stored import StoredTokens
from rnnreranker.rnn.maxsim import ragged_maxsim

QUERIES = 8  # that all documents are compared with at a time
Found = tuple[np.ndarray, np.ndarray]  # scores (n,) float64 and rows (n,) int64, best first


class TokenSource(StoredTokens):
    """`StoredTokens`, and how near queries are to them."""

    def scores(
        self,
        queries: np.ndarray,
        query_offsets: np.ndarray,
        rows: np.ndarray | None = None,
        threads: int | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """(Q, n) float32: MaxSim of queries with documents, by `ragged_maxsim`; None = with all of them.

        Args:
            queries: (P, d) float32; query_offsets: (Q + 1,) int64, where the tokens of each query begin.
            rows: (n,) int64; threads: None = one per core; weights: (P,) float64, of the tokens; None = 1.

        Raises:
            InputError: queries of another dimension, stored vectors that are NaN or infinite.
        """
        if queries.shape[1] != self.dimension:
            raise InputError(
                f"the tokens of queries have {queries.shape[1]} dimensions, those of {self.folder / VECTORS} "
                f"{self.dimension}; encode the queries with the encoder that made the index"
            )
        try:
            return ragged_maxsim(
                queries, query_offsets, self.vectors, self.offsets, rows=rows, weights=weights, threads=threads
            )
        except InputError as error:
            raise InputError(f"{self.folder / VECTORS}: {error}; build the index again") from None

    def search(
        self,
        queries: np.ndarray,
        query_offsets: np.ndarray,
        hits: int,
        threads: int | None = None,
        weights: np.ndarray | None = None,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        Exact: every document is compared. One without tokens is not found, and a query without tokens finds nothing.

        Args and Raises: as `scores`; hits: documents per query, at most.
        """
        best: list[Found] = []
        for first in range(0, len(query_offsets) - 1, QUERIES):
            own = query_offsets[first : first + QUERIES + 1]
            part = slice(own[0], own[-1])
            weighed = None if weights is None else weights[part]
            scores = self.scores(queries[part], own - own[0], threads=threads, weights=weighed)
            best += [
                self.best(one, self._filled, hits) if end > start else self.best(one[:0], self._filled[:0], hits)
                for one, start, end in zip(scores[:, self._filled], own[:-1], own[1:], strict=True)
            ]
        return [scores for scores, _ in best], [rows for _, rows in best]

    def best(self, scores: np.ndarray, rows: np.ndarray, hits: int) -> Found:
        """The best of some documents, (n,) scores and rows: scores float64, ties by docid."""
        if len(scores) > hits:
            enough = scores >= np.partition(scores, len(scores) - hits)[len(scores) - hits]
            scores, rows = scores[enough], rows[enough]
        order = np.lexsort((self._order[rows], -scores))[:hits]
        return scores[order].astype(np.float64), rows[order]

    @cached_property
    def _filled(self) -> np.ndarray:
        """(n,) int64: the documents that have tokens."""
        return np.flatnonzero(np.diff(self.offsets))

    @cached_property
    def _order(self) -> np.ndarray:
        """(N,) int64: the place of each row among the docids in their order, for ties."""
        order = np.empty(len(self.docids), dtype=np.int64)
        order[np.argsort(np.array(self.docids, dtype=object), kind="stable")] = np.arange(len(order))
        return order
