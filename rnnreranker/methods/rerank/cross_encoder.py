"""Reranking by a cross-encoder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.command import counted
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker

if TYPE_CHECKING:
    from rnnreranker.encode.kinds import PairScorer

MODELS = 16  # kept in memory


@dataclass(frozen=True)
class CrossEncoderRerankerParams(Params):
    """Settings of reranking by a cross-encoder: a score costs a pass through the model."""

    model: str | None = setting(None, "cross-encoder: name, folder or Hugging Face id")
    max_length: int | None = setting(
        None,
        "tokens at which query and text together are cut; none: as the model says",
        at_least=1,
    )
    context: int = context_setting(100)


class CrossEncoderReranker(Reranker):
    """The logit of a cross-encoder for query and text (paper 003, Section 2.2).

    The cache folder keeps scores query by query, so a killed rerank resumes with the same result.

    Raises:
        InputError: also if `model` is none or no cross-encoder of one label; UnavailableError: the model is not here.
    """

    name = "cross-encoder"
    needs = frozenset({"topics", "texts"})
    Params: ClassVar[type[Params]] = CrossEncoderRerankerParams
    params: Any  # a subclass has others
    takes_device = True
    model_setting = "model"

    def prepare(self) -> None:
        from rnnreranker.encode.kinds import PairScorer

        length = self.params.max_length
        self.scorers = [_loaded(name, PairScorer.digest_of(name), self.devices, length) for name in self._models()]
        self._scored = self._cut = 0

    def _models(self) -> list[str]:
        if self.params.model is None:
            raise InputError(
                "rerank cross-encoder: which? write cross-encoder:model=NAME, a folder or "
                "a hub id such as cross-encoder/ms-marco-MiniLM-L-6-v2"
            )
        return [self.params.model]

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"models": [scorer.fingerprint for scorer in self.scorers]}

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: the mean of the models' scores."""
        scored = [scorer.scores_of(query.text, candidates.texts, self.threads) for scorer in self.scorers]
        self._scored += len(candidates) * len(scored)
        self._cut += sum(int(one.cut.sum()) for one in scored)
        return np.stack([one.scores for one in scored]).astype(np.float64).mean(axis=0)

    def remark(self) -> str:
        """How many pairs exceeded the length limit."""
        cut, scored, self._cut, self._scored = self._cut, self._scored, 0, 0
        limit = " or ".join(map(str, sorted({scorer.max_length for scorer in self.scorers})))
        of = f"{self.name}: {cut} of {counted(scored, 'pair')} had more than {limit} tokens and were cut"
        return of if cut else ""


@lru_cache(MODELS)
def _loaded(name: str, digest: str, devices: Devices | None, max_length: int | None) -> PairScorer:
    """The model of a name and digest; loaded once a process."""
    from rnnreranker.encode.kinds import PairScorer

    return PairScorer.open(name, devices=devices, max_length=max_length)
