"""Candidates, texts and a model to a better model: the whole of a training on groups."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.method import find
from rnnreranker.base.process.phases import phase
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.group.groups import check_collection
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.params import GroupParams

if TYPE_CHECKING:
    from rnnreranker.base.settings import Params


def train_on_groups(
    inputs: GroupInputs,
    model: str,
    encoder: str,
    output: str | os.PathLike[str],
    params: GroupParams,
    *,
    loss: Params | None = None,
    checkpoints: bool = True,
    device: str = "cpu",
) -> Trained:
    """Train a model on groups and write it to a folder.

    Args:
        inputs: candidates and texts.
        model, output, params, checkpoints, device: as of `fit`.
        encoder: what it begins as: a name, folder or hub id; "none" = from nothing, where the model can be new.
        loss: parameters of the loss that `params` names, None = its defaults.

    Raises:
        InputError: a model that cannot be trained so, a loss without the targets it needs, and as `fit`.
        MissingDependencyError: without sentence-transformers, accelerate or datasets.
    """
    chosen = find("loss", params.loss)(loss)
    if "teacher" in chosen.needs and not inputs.margins:
        raise InputError(
            f"loss {params.loss}: needs targets of the negatives, and the candidates have none; give "
            f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
        )
    check_collection(params.kind, params.group_size, inputs.collection)
    for package in ("accelerate", "datasets", "sentence_transformers"):
        require(package, "training", "'rnnreranker[train]'")
    with phase("importing torch and transformers", "imports"):
        importlib.import_module("sentence_transformers")
    return fit(
        lambda: find("trained-model", model)().learner(encoder, params, chosen, inputs, device),
        *(model, output, params),
        checkpoints=checkpoints,
        device=device,
    )
