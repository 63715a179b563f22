"""Feedback over vectors: a part of the way from the query to the best of its first documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.plugins import Feedback, Params, setting


@dataclass(frozen=True)
class SofterParams(Params):
    """Settings of Softer."""

    share: float = setting(0.5, "of the way that is gone", at_least=0, at_most=1)


class Softer(Feedback):
    """The query moved towards its first document."""

    name = "softer"
    over = frozenset({"vectors"})
    Params = SofterParams

    def depth(self, over: str) -> int:
        """One document is read."""
        return 1

    def of_vectors(self, query: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """(d,) float32."""
        return ((1 - self.params.share) * query + self.params.share * documents[0]).astype(np.float32)
