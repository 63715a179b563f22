"""Reranking by a trained scorer of the words of a query and the vectors of all its candidates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_json
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.encode.params import RECORD
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker


@dataclass(frozen=True)
class ScorerRerankerParams(Params):
    """Settings of reranking by a trained scorer."""

    model: str | None = setting(None, "folder of train --scorer")
    context: int = context_setting(1000)


class ScorerReranker(Reranker):
    """Scores of a folder of `train --scorer`, candidates in the order of their docids.

    Raises:
        InputError: also if `model` is none, no such folder, or of another dimension.
    """

    name = "scorer"
    needs = frozenset({"topics", "vectors"})
    Params = ScorerRerankerParams
    params: ScorerRerankerParams
    takes_device = True
    model_setting = "model"

    def prepare(self) -> None:
        if self.params.model is None:
            raise InputError("rerank scorer: which? write scorer:model=FOLDER, a folder of train --scorer")
        from rnnreranker.encode.coder import TrainedScorer

        self.model = TrainedScorer(self.params.model, (self.devices and self.devices.of_tensors) or "cpu")
        if self.vectors.dimension != self.model.dimension:
            raise InputError(
                f"{self.params.model} scores vectors of {self.model.dimension} dimensions, the index has "
                f"{self.vectors.dimension}; give the index that it was trained on"
            )
        if read_json(Path(self.params.model).expanduser() / RECORD)["index"] != self.vectors.fingerprint:
            notice(f"{self.params.model}: was trained on other vectors than those of this index")

    def describe(self) -> dict[str, Any]:
        from rnnreranker.encode.model_folder import content_of

        return super().describe() | {"models": [content_of(Path(str(self.params.model)).expanduser())]}

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        by_docid = np.argsort(candidates.docids.astype(str), kind="stable")
        scores = np.empty(len(candidates))
        scores[by_docid] = self.model.score(query.text, candidates.vectors[by_docid])
        return scores
