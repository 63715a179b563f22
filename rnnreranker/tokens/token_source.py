"""Tokens on disk, found by docid and searched by MaxSim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import file_digest, fingerprint
from rnnreranker.rnn.late_interaction import ragged_maxsim
from rnnreranker.tokens.token_files import FOLDER, OFFSETS, VECTORS, map_tokens
from rnnreranker.vectors.ids import read_ids

QUERIES = 8  # that all documents are compared with at a time
Found = tuple[np.ndarray, np.ndarray]  # scores (n,) float64 and rows (n,) int64, best first


class TokenSource:
    """The vectors of the tokens of an index's documents.

    Args:
        index: the folder of the index, with `docid` and a folder `tokens`.
        described: what rnnreranker.json says of this part.

    Attributes:
        folder: of the files; docids: row -> docid; dimension: of a vector.
        vectors: (T, d) float16; offsets: (N + 1,) int64; ids: (T,) int32; all memory-mapped, see `token_files`.
        encoder: its name, settings and digest, for `load_late_encoder(name, **settings)`.

    Raises:
        InputError: files that are missing, cut short or do not fit together, a description that is not one.
    """

    def __init__(self, index: Path, described: Mapping[str, Any]) -> None:
        self.folder = index / FOLDER
        self.vectors, self.offsets, self.ids = map_tokens(self.folder)
        self.dimension = int(self.vectors.shape[1])
        self._ids = read_ids(index / "docid")
        self.docids: Sequence[str] = self._ids.names
        if len(self.docids) != len(self.offsets) - 1:
            raise InputError(
                f"{index / 'docid'}: has {len(self.docids)} docids, {self.folder / OFFSETS} is of "
                f"{len(self.offsets) - 1} documents; expected as many: build the index again"
            )
        encoder = described.get("encoder")
        if not isinstance(encoder, dict) or not {"name", "settings", "digest"} <= set(encoder):
            raise InputError(
                f"{index / 'rnnreranker.json'}: does not describe tokens as this version does; make the index again"
            )
        self.encoder: Mapping[str, Any] = encoder

    @cached_property
    def fingerprint(self) -> str:
        """What tells these tokens from others."""
        return fingerprint("tokens", *(file_digest(path) for path in sorted(self.folder.glob("*.npy"))))

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 where the docid is unknown."""
        return self._ids.rows(docids)

    def scores(
        self, queries: np.ndarray, places: np.ndarray, rows: np.ndarray | None = None, threads: int | None = None
    ) -> np.ndarray:
        """(Q, n) float32: MaxSim of queries with documents, by `ragged_maxsim`; None = with all of them.

        Args:
            queries: (P, d) float32; places: (Q + 1,) int64, where the tokens of each query begin.
            rows: (n,) int64; threads: None = one per core.

        Raises:
            InputError: queries of another dimension, stored vectors that are NaN or infinite.
        """
        if queries.shape[1] != self.dimension:
            raise InputError(
                f"the tokens of queries have {queries.shape[1]} dimensions, those of {self.folder / VECTORS} "
                f"{self.dimension}; encode the queries with the encoder that made the index"
            )
        try:
            return ragged_maxsim(queries, places, self.vectors, self.offsets, rows=rows, threads=threads)
        except InputError as error:
            raise InputError(f"{self.folder / VECTORS}: {error}; build the index again") from None

    def search(
        self, queries: np.ndarray, places: np.ndarray, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        Exact: every document is compared. One without tokens is not found, and a query without tokens finds nothing.

        Args and Raises: as `scores`; hits: documents per query, at most.
        """
        found: list[Found] = []
        for first in range(0, len(places) - 1, QUERIES):
            own = places[first : first + QUERIES + 1]
            scores = self.scores(queries[own[0] : own[-1]], own - own[0], threads=threads)
            found += [
                self.best(one, self._filled, hits) if end > start else self.best(one[:0], self._filled[:0], hits)
                for one, start, end in zip(scores[:, self._filled], own[:-1], own[1:], strict=True)
            ]
        return [scores for scores, _ in found], [rows for _, rows in found]

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
