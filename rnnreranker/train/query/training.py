"""Soft labels, vectors and a query encoder to a better query encoder: the whole of CODER training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rnnreranker.base.process.phases import phase
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.query.params import TrainParams

if TYPE_CHECKING:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource


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
