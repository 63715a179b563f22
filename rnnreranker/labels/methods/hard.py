"""Hard labels: the judgements as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnreranker.labels import targets
from rnnreranker.labels.judged import JudgedContext
from rnnreranker.labels.methods.base import Labeler, Labelled


class HardLabeler(Labeler):
    """The positives share all probability: the softmax of their grades (paper 001, eq. 3), alike where those are equal.

    Needs no vectors, and takes no label parameters.
    """

    name = "hard"

    def describe(self) -> dict[str, Any]:
        return {"method": self.name, "relevant": self.relevant}

    def labelled(self, contexts: Sequence[JudgedContext]) -> Labelled:
        """The grades of the positives, which stand first, as scores, and their softmax; see `Labeler.labelled`."""
        for index, one in enumerate(contexts):
            yield index, one.grades.astype(np.float32), targets.of_grades(one.grades).astype(np.float32)
