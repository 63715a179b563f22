"""How like the candidates of a batch of contexts are to some of its elements: by products, by neighbours, by both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.rnn import RnnParams, jaccard_similarity

OUTWEIGHED = 8.0  # times the range of a row: beyond that float32 products lose the differences, float64 is taken


@dataclass(frozen=True, eq=False)
class Similarity(ABC):
    """Similarity of probes to all candidates: (B, P, N) float32 each, 0 for padding.

    probes: (P,) elements, distinct: 0 is the query, i the candidate i of a context, from 1. lengths: (B,) real
    candidates; params: rNN parameters; threads: None = one per core; nothing depends on it.
    """

    lengths: np.ndarray
    params: RnnParams
    threads: int | None

    @abstractmethod
    def geometric(self, probes: np.ndarray) -> np.ndarray:
        """s(p, c): the inner product, mapped over the candidates or divided as `params` says."""

    @abstractmethod
    def jaccard(self, probes: np.ndarray) -> np.ndarray:
        """J(p, c): what the reciprocal neighbours of both have in common; all probes in one pass."""

    def mixed(self, probes: np.ndarray) -> np.ndarray:
        """s*(p, c) = lambda s + (1 - lambda) J, each computed where it has a weight."""
        if self.params.lam == 1.0:
            return self.geometric(probes)
        neighbourhoods = self.jaccard(probes)
        if self.params.lam == 0.0:
            return neighbourhoods
        near = self.geometric(probes).astype(np.float64)
        return (self.params.lam * near + (1.0 - self.params.lam) * neighbourhoods).astype(np.float32)

    def joint(self, probes: np.ndarray, weight: float) -> np.ndarray:
        """a s*(p, c) + (1 - a) s*(q, c), a = `weight`: similarity to each probe and to the query q together."""
        similarities = self.mixed(np.append(0, probes)).astype(np.float64)
        return (weight * similarities[:, 1:] + (1.0 - weight) * similarities[:, :1]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class VectorSimilarity(Similarity):
    """Similarity from vectors: (B, N + 1, d) float32, row 0 = query, then the candidates."""

    vectors: np.ndarray

    def geometric(self, probes: np.ndarray) -> np.ndarray:
        """As `Similarity.geometric`; InputError: inner products beyond the range of float32."""
        out = np.zeros((len(self.vectors), len(probes), self.vectors.shape[1] - 1), dtype=np.float32)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # infinities are seen in the result
            for b, length in enumerate(self.lengths.tolist()):
                context = self.vectors[b, : length + 1]
                rows = context[probes] @ context.T  # (P, m)
                low, high = rows[:, 1:].min(axis=1, keepdims=True), rows[:, 1:].max(axis=1, keepdims=True)
                if self.params.scale == "minmax":
                    if (np.abs(low + high) / 2 > OUTWEIGHED * (high - low)).any():
                        rows = context[probes].astype(np.float64) @ context.T.astype(np.float64)
                        low, high = rows[:, 1:].min(axis=1, keepdims=True), rows[:, 1:].max(axis=1, keepdims=True)
                    rows = (rows - low) / np.where(high > low, high - low, 1.0)
                elif self.params.normalize is not None:
                    rows = rows / _divisor(rows, self.params.normalize)
                out[b, :, :length] = rows[:, 1:]
                if not np.isfinite(out[b, :, :length]).all():
                    raise InputError("inner products beyond the range of float32; scale the vectors down")
        return out

    def jaccard(self, probes: np.ndarray) -> np.ndarray:
        given = {"probes": probes.tolist(), "lengths": self.lengths, "threads": self.threads}
        similarities = jaccard_similarity(self.vectors, self.params, **given)[:, :, 1:]
        return np.where(np.isfinite(similarities), similarities, np.float32(0.0))


def _divisor(rows: np.ndarray, how: str) -> np.ndarray:
    """(P, 1): the maximum of each row, or 1e-8 + its mean, the query's column included; 1 where it is 0."""
    wide = rows.astype(np.float64)
    divisor = wide.max(axis=1, keepdims=True) if how == "max" else 1e-8 + wide.mean(axis=1, keepdims=True)
    return np.where(divisor == 0.0, 1.0, divisor)
