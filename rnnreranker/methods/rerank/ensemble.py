"""Reranking by several cross-encoders."""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.cross_encoder import CrossEncoderReranker


@dataclass(frozen=True)
class EnsembleParams(Params):
    """Settings of reranking by several cross-encoders."""

    models: str | None = setting(None, "cross-encoders: two or more, joined by commas")
    max_length: int | None = setting(
        None,
        "tokens at which query and text together are cut; none: as each model says",
        at_least=1,
    )
    context: int = context_setting(100)


class EnsembleReranker(CrossEncoderReranker):
    """The mean of two or more cross-encoders' scores (paper 003, Section 2.3: mean over runs)."""

    name = "ensemble"
    Params = EnsembleParams
    model_setting = "models"

    def _models(self) -> list[str]:
        given = self.params.models
        models = [name.strip() for name in (given or "").split(",")]
        if len(models) < 2 or not all(models) or len(set(models)) < len(models):
            raise InputError(
                f"rerank ensemble: models={given}: expected two or more different models, joined by commas "
                "('ensemble:models=\"A,B,C\"')"
            )
        return models
