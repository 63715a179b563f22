"""Similarity of candidates, as in `similarity`, from a graph of the collection alone: no document vector is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.labels.similarity import Similarity
from rnnreranker.rnn import RnnParams, mixture
from rnnreranker.rnn.graph import graph_jaccard, probe_similarities

BYTES = 16  # for each neighbour of a candidate, while similarities are made of them


class Edges(Protocol):
    """A graph of D documents, as `NeighbourGraph` has it."""

    @property
    def edges(self) -> np.ndarray:
        """(D, K) uint32."""
        ...

    @property
    def weights(self) -> np.ndarray:
        """(D, K) float16."""
        ...


@dataclass(frozen=True, eq=False)
class Asked:
    """What is known of query and candidates where no graph knows it; anything at padding.

    ranks: (B, N) int64, the candidates' ranks in the run, distinct in a row, padding last; scores: (B, N) float64 of
    the run; products: (B, N) inner products of query and candidates on the scale of the graph's weights, None where
    they are not known.
    """

    ranks: np.ndarray
    scores: np.ndarray
    products: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class GraphSimilarity(Similarity):
    """Similarity from a graph; rows: (B, N) int64, the candidates' rows in it.

    A pair that neither document names counts as the lowest similarity that the context has, a document is as similar to
    itself as the most similar pair is. What is known of the query stands in `asked`: its products are its similarities.
    Without them its neighbours are those of the run's first candidate, dealt out in the order of the run, and s(q, c)
    is what the run says of c: the mean of mm(1 / (10 + rank)) and mm(score), see `RnnParams`. Without `asked` it is
    no probe, and its neighbours are those of the first of `rows`, dealt out in their order.
    """

    graph: Edges
    rows: np.ndarray
    asked: Asked | None = None

    def geometric(self, probes: np.ndarray) -> np.ndarray:
        """As `Similarity.geometric`.

        Raises:
            InputError: rows divided by `normalize` with scale "none", or similarities to the query that are not known
                there; rows of the graph that cannot be used.
        """
        if self.params.scale == "none" and self.params.normalize:
            raise InputError(f"normalize={self.params.normalize}: a graph has no whole rows to divide; expected none")
        edges, weights = np.asarray(self.graph.edges), np.asarray(self.graph.weights)
        asked = np.broadcast_to(probes, (len(self.rows), len(probes)))
        similarities = probe_similarities(edges, weights, self.rows, asked, self.lengths, self.threads)
        if self.params.scale == "minmax":
            similarities = _mapped(similarities, self.lengths)
        if (of_query := probes == 0).any():
            similarities[:, of_query] = self._of_query()[:, None]
        return similarities

    def jaccard(self, probes: np.ndarray) -> np.ndarray:
        """As `Similarity.jaccard`; InputError: rows of the graph that cannot be used."""
        if self.asked is None:
            return self._alike(self.rows, probes, None)
        order = np.argsort(self.asked.ranks, axis=1, kind="stable")
        back = np.argsort(order, axis=1)
        elements = np.where(probes > 0, back[:, probes - 1] + 1, 0)
        products = self.asked.products
        if products is not None:
            products = np.take_along_axis(products, order, axis=1)
        similarities = self._alike(np.take_along_axis(self.rows, order, axis=1), elements, products)
        return np.take_along_axis(similarities, back[:, None], axis=2)

    def _alike(self, rows: np.ndarray, probes: np.ndarray, query: np.ndarray | None) -> np.ndarray:
        """(B, P, N) float32: J of `graph_jaccard` without the query's column, 0 for padding."""
        edges, weights = np.asarray(self.graph.edges), np.asarray(self.graph.weights)
        similarities = graph_jaccard(
            edges,
            weights,
            rows,
            self.params,
            probes=probes,
            query=query,
            lengths=self.lengths,
            threads=self.threads,
        )[:, :, 1:]
        return np.where(np.isfinite(similarities), similarities, np.float32(0.0))

    def _of_query(self) -> np.ndarray:
        """(B, N) float64: s(q, c), 0 for padding."""
        assert self.asked is not None
        counts = self.lengths[:, None]
        real = np.arange(self.rows.shape[1]) < counts
        if (products := self.asked.products) is not None:
            similarities = mixture.unit(products, counts) if self.params.scale == "minmax" else products
            return np.where(real, similarities, 0.0)
        if self.params.scale == "none":
            raise InputError(
                "scale=none: inner products of query and candidates are not known; expected minmax, or queries that "
                "are encoded or the run's scores"
            )
        order = np.argsort(self.asked.ranks, axis=1, kind="stable")
        scores = np.take_along_axis(self.asked.scores, order, axis=1)
        known = mixture.known(None, scores, None, counts, RnnParams().without_query())
        return np.where(real, np.take_along_axis(known, np.argsort(order, axis=1), axis=1), 0.0)


def _mapped(similarities: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(B, P, N) float32: each row mapped so that its lowest real value is 0 and its highest 1; a constant row is 0."""
    real = (np.arange(similarities.shape[2]) < lengths[:, None])[:, None]
    wide = similarities.astype(np.float64)
    low = np.where(real, wide, np.inf).min(axis=2, initial=np.inf, keepdims=True)
    high = np.where(real, wide, -np.inf).max(axis=2, initial=-np.inf, keepdims=True)
    with np.errstate(invalid="ignore"):  # of a context without candidates
        wide = (wide - low) / np.where(high > low, high - low, 1.0)
    return np.where(real, wide, 0.0).astype(np.float32)
