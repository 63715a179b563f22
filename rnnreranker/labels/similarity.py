"""Similarities of the candidates of contexts to some of their elements: by products, neighbours, or both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.jobs import one_blas_thread
from rnnreranker.rnn import RnnParams, jaccard_similarity, mixture
from rnnreranker.rnn.graph import graph_jaccard, probe_similarities

OUTWEIGHED = 8.0  # times the range of a row: beyond that float32 products lose the differences, float64 is taken


@dataclass(frozen=True, eq=False)
class Similarity(ABC):
    """Similarity of probes to all candidates: (B, P, N) float32 each, 0 at padding.

    probes: (P,) distinct elements, 0 is the query, i candidate i from 1. lengths: (B,); threads: None = one per core.
    """

    lengths: np.ndarray
    params: RnnParams
    threads: int | None

    @abstractmethod
    def geometric(self, probes: np.ndarray) -> np.ndarray:
        """s(p, c): inner products, scaled or divided as `params` says."""

    @abstractmethod
    def jaccard(self, probes: np.ndarray) -> np.ndarray:
        """J(p, c) of reciprocal neighbours, all probes in one pass."""

    def mixed(self, probes: np.ndarray) -> np.ndarray:
        """s*(p, c) = lambda s + (1 - lambda) J."""
        if self.params.lam == 1.0:
            return self.geometric(probes)
        neighbourhoods = self.jaccard(probes)
        if self.params.lam == 0.0:
            return neighbourhoods
        near = self.geometric(probes).astype(np.float64)
        return (self.params.lam * near + (1.0 - self.params.lam) * neighbourhoods).astype(np.float32)

    def joint(self, probes: np.ndarray, weight: float) -> np.ndarray:
        """a s*(p, c) + (1 - a) s*(q, c) with a = `weight` and the query q."""
        similarities = self.mixed(np.append(0, probes)).astype(np.float64)
        return (weight * similarities[:, 1:] + (1.0 - weight) * similarities[:, :1]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class VectorSimilarity(Similarity):
    """Similarity of vectors: (B, N + 1, d) float32, row 0 = query, then the candidates."""

    vectors: np.ndarray

    def geometric(self, probes: np.ndarray) -> np.ndarray:
        """As `Similarity.geometric`. InputError: inner products beyond float32."""
        out = np.zeros((len(self.vectors), len(probes), self.vectors.shape[1] - 1), dtype=np.float32)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # infinities are seen in the result
            for b, length in enumerate(self.lengths.tolist()):
                context = self.vectors[b, : length + 1]
                rows = context[probes] @ context.T  # (P, m)
                if self.params.scale == "minmax":
                    low, high = _range(rows)
                    if (np.abs(low + high) / 2 > OUTWEIGHED * (high - low)).any():
                        rows = context[probes].astype(np.float64) @ context.T.astype(np.float64)
                        low, high = _range(rows)
                    rows = (rows - low) / np.where(high > low, high - low, 1.0)
                elif self.params.normalize is not None:
                    rows = rows / _divisor(rows, self.params.normalize)
                out[b, :, :length] = rows[:, 1:]
                if not np.isfinite(out[b, :, :length]).all():
                    raise InputError("inner products beyond the range of float32; scale the vectors down")
        return out

    def jaccard(self, probes: np.ndarray) -> np.ndarray:
        given = {"probes": probes.tolist(), "lengths": self.lengths, "threads": self.threads}
        return _finite(jaccard_similarity(self.vectors, self.params, **given))


def _range(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest values of each row, (P, 1), without the query's column."""
    return rows[:, 1:].min(axis=1, keepdims=True), rows[:, 1:].max(axis=1, keepdims=True)


def _finite(similarities: np.ndarray) -> np.ndarray:
    """(B, P, N), from (B, P, N + 1) with the query: 0 at padding."""
    own = similarities[:, :, 1:]
    return np.where(np.isfinite(own), own, np.float32(0.0))


def _divisor(rows: np.ndarray, how: str) -> np.ndarray:
    """(P, 1): the maximum of each row, or 1e-8 + its mean, with the query's column; 1 for 0."""
    wide = rows.astype(np.float64)
    divisor = wide.max(axis=1, keepdims=True) if how == "max" else 1e-8 + wide.mean(axis=1, keepdims=True)
    return np.where(divisor == 0.0, 1.0, divisor)


def padded(rows: Sequence[np.ndarray], fill: int = 0) -> np.ndarray:
    """(B, N): arrays of different lengths, with `fill` behind the shorter ones."""
    out = np.full((len(rows), max(map(len, rows))), fill, dtype=rows[0].dtype)
    for own, row in zip(out, rows, strict=True):
        own[: len(row)] = row
    return out


BYTES = 16  # for each neighbour of a candidate, while similarities are made of them


@dataclass(frozen=True, eq=False)
class Asked:
    """Known similarities of query and candidates that a graph lacks; any values at padding.

    ranks: (B, N) int64 in the run, distinct, padding last; scores: (B, N) float64 of the run; products: (B, N) inner
    products with the query in the graph's scale, or None.
    """

    ranks: np.ndarray
    scores: np.ndarray
    products: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class GraphSimilarity(Similarity):
    """Similarity of a graph; rows: (B, N) int64, the candidates' rows.

    A pair without an edge has the lowest similarity of the context, a document with itself the highest. Without
    products in `asked` the query's neighbours are those of the run's first candidate, and s(q, c) is the mean of mm(1 /
    (10 + rank)) and mm(score), see `RnnParams`. Without `asked` the query is no probe, and the first of `rows` is the
    first candidate.
    """

    graph: Any  # a NeighbourGraph
    rows: np.ndarray
    asked: Asked | None = None

    def geometric(self, probes: np.ndarray) -> np.ndarray:
        """As `Similarity.geometric`.

        Raises:
            InputError: `normalize` with scale "none", unknown similarities to the query with it, or invalid rows.
        """
        self.params.of_graph()
        edges, weights, asked = self.graph.edges, self.graph.weights, np.tile(probes, (len(self.rows), 1))
        similarities = probe_similarities(edges, weights, self.rows, asked, self.lengths)
        if self.params.scale == "minmax":
            flat, counts = similarities.reshape(-1, similarities.shape[2]), np.repeat(self.lengths, len(probes))
            similarities = _unit(flat, counts[:, None]).astype(np.float32).reshape(similarities.shape)
        if (of_query := probes == 0).any():
            similarities[:, of_query] = self._of_query()[:, None]
        return similarities

    def jaccard(self, probes: np.ndarray) -> np.ndarray:
        """As `Similarity.jaccard`. InputError: invalid rows."""
        ranks = np.broadcast_to(np.arange(self.rows.shape[1]), self.rows.shape)
        query, ranks = (None, ranks) if self.asked is None else (self.asked.products, self.asked.ranks)
        order = np.argsort(ranks, axis=1, kind="stable")
        back = np.argsort(order, axis=1)
        similarities = graph_jaccard(
            self.graph.edges,
            self.graph.weights,
            np.take_along_axis(self.rows, order, axis=1),
            self.params,
            probes=np.where(probes > 0, back[:, probes - 1] + 1, 0),
            query=None if query is None else np.take_along_axis(query, order, axis=1),
            lengths=self.lengths,
            threads=self.threads,
        )
        return np.take_along_axis(_finite(similarities), back[:, None], axis=2)

    def _of_query(self) -> np.ndarray:
        """(B, N) float64: s(q, c), 0 at padding."""
        assert self.asked is not None
        counts, products, scores = self.lengths[:, None], self.asked.products, self.asked.scores
        if products is not None:
            minmax = self.params.scale == "minmax"
            return _unit(products, counts) if minmax else np.where(_real(products, counts), products, 0.0)
        if self.params.scale == "none":
            raise InputError(
                "scale=none: inner products of query and candidates are not known; expected minmax, or queries that "
                "are encoded or the run's scores"
            )
        order = np.argsort(self.asked.ranks, axis=1, kind="stable")
        scores = np.take_along_axis(scores, order, axis=1)
        known = mixture.known(None, scores, counts, RnnParams().without_query())
        known = np.take_along_axis(known, np.argsort(order, axis=1), axis=1)
        return np.where(_real(known, counts), known, 0.0)


def _real(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(B, N) bool: the first values of each row; counts: (B, 1)."""
    return np.arange(values.shape[1]) < counts


def _unit(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(B, N) float64: min-max over the first values of each row, 0 at padding; counts: (B, 1)."""
    return np.where(_real(values, counts), mixture.unit(values.astype(np.float64), counts), 0.0)
