"""An expander: the nearest neighbour of the first candidate joins below all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.plugins import Expander, Params, setting


@dataclass(frozen=True)
class NearestOneParams(Params):
    """Settings of NearestOne."""

    of_first: int = setting(1, "first candidates, whose nearest neighbours join", at_least=1)


class NearestOne(Expander):
    """The nearest neighbours of the first candidates, below the run."""

    name = "nearest-one"
    Params = NearestOneParams

    @property
    def above(self) -> int:
        """All candidates stay."""
        return 10**6

    def brought(self, candidates) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
        """Rows and scores below the last candidate's."""
        near = self.graph.neighbours(candidates.known[: self.params.of_first], 1).ravel().astype(np.int64)
        rows = np.array([row for row in dict.fromkeys(near.tolist()) if row not in candidates.rows], dtype=np.int64)
        return rows, float(candidates.scores[-1]) - 1.0 - np.arange(len(rows), dtype=np.float64)
