"""`{model: ID}` among the settings of a spec: the folder of a model that the same spec trains."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rnnreranker.base.method import find, names
from rnnreranker.base.written_form import Written
from rnnreranker.regress.specs.spec import Model

KEY = "model"
MODEL_OPTIONS = ("arms", "encoder")  # of works, that may name models


def models_in(value: Any) -> Iterator[str]:
    """The ids of the models that a setting, a method, or settings in lists and mappings name.

    >>> list(models_in({"encoders": ["minilm", {"model": "mine"}], "context": 100}))
    ['mine']
    """
    if isinstance(value, Written):
        yield from models_in(list(value.params.values()))
    elif isinstance(value, dict):
        if set(value) == {KEY}:
            yield str(value[KEY])
        else:
            for inner in value.values():
                yield from models_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from models_in(inner)


def with_folders(value: Any, folder: Callable[[str], str | Path]) -> Any:
    """A setting as its command takes it: folders in place of models, the entries of a list joined by commas.

    >>> with_folders({"encoders": ["minilm", {"model": "mine"}], "context": 100}, "runs/{}".format)
    {'encoders': 'minilm,runs/mine', 'context': 100}
    """
    if isinstance(value, dict):
        if set(value) == {KEY}:
            return str(folder(str(value[KEY])))
        return {name: with_folders(inner, folder) for name, inner in value.items()}
    if isinstance(value, list):
        return ",".join(str(with_folders(inner, folder)) for inner in value)
    return value


def use_with_folders(use: Written, folder: Callable[[str], str | Path] = "runs/models/{}".format) -> Written:
    """A method with its settings as its command takes them."""
    return dataclasses.replace(use, params={key: with_folders(value, folder) for key, value in use.params.items()})


def reads_texts_alone(model: Model) -> bool:
    """Whether a model learns from texts without queries, as masked language models do."""
    kind = model.train.name
    return kind in names("trained-model") and "topics" not in find("trained-model", kind).needs


def start_models(model: Model) -> list[str]:
    """The model of the spec that a training begins with: `{model: ID}`, of a query encoder also the id alone."""
    if model.train.name == "query" and isinstance(model.start, str):
        return [model.start] if model.start else []
    return list(models_in(model.start))
