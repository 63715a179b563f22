"""The model query: an encoder of queries against fixed document vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.models.base import TrainedModel
from rnnreranker.train.params import TrainingParams
from rnnreranker.train.query.params import TrainParams

if TYPE_CHECKING:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.train.request import TrainRequest


class QueryModel(TrainedModel):
    """A query encoder against fixed document vectors and many candidates a query (CODER), or a scorer on top of it."""

    name = "query"
    trains = "encoder"
    needs = frozenset({"topics", "vectors"})
    Params: ClassVar[type[settings.Params]] = TrainParams
    reads = frozenset({"other_index", "neutrality", "scorer", "on_validation"})
    encoder_settings = frozenset({"pooling", "normalize"})

    def train(self, request: TrainRequest, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        assert isinstance(params, TrainParams)
        self.check(params)
        if lacking := request.lacking("labels", "index", "topics"):
            model = argument("model", self.name)
            raise InputError(f"{', '.join(lacking)} missing: {model} needs labels, document vectors and queries")
        with phase("importing torch and transformers", "imports"):
            from rnnreranker.train.query.fairness import neutrality_of
            from rnnreranker.train.query.samples import load_inputs

        with phase("reading labels and vectors"):
            inputs = load_inputs(request, params)
        return train_encoder(
            inputs.labels,
            inputs.source,
            inputs.topics,
            request.start.name,
            request.output,
            params,
            validation=inputs.validation,
            pooling=request.start.pooling,
            normalize=request.start.normalize,
            neutrality=None if request.neutrality is None else neutrality_of(request.neutrality),
            loss=loss,
            scorer=request.scoring,
            other_index=request.other_index,
            checkpoints=request.checkpoints,
            device=device,
            on_validation=request.on_validation,
        )


def train_encoder(
    labels: SoftLabels,
    source: VectorSource,
    topics: Mapping[str, str],
    encoder: str,
    output: str | os.PathLike[str],
    params: TrainParams | None = None,
    *,
    checkpoints: bool = True,
    device: str = "cpu",
    on_validation: Callable[[int, dict[str, float]], None] | None = None,
    **others: Any,
) -> Trained:
    """Fine-tune a query encoder and write it to a folder.

    Args:
        labels, source, topics, encoder: as of `QueryLearner`, whose other arguments `others` are.
        params: of the training; None = the defaults.
        output, checkpoints, device, on_validation: as of `fit`.

    Raises:
        InputError: as `QueryLearner` and `fit`.
        MissingDependencyError: without transformers or accelerate.
    """
    chosen = params or TrainParams()
    with phase("importing torch and transformers", "imports"):
        from rnnreranker.train.query.learner import QueryLearner
    return fit(
        lambda: QueryLearner(labels, source, topics, encoder, chosen, **others),
        *("query", output, chosen),
        checkpoints=checkpoints,
        device=device,
        on_validation=on_validation,
    )
