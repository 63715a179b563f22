"""The models that the words of a step's command name: by flags, and in the settings of methods."""

from __future__ import annotations

from collections.abc import Iterator

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find, names
from rnnreranker.base.written_form import Written, read_listed
from rnnreranker.data.names import is_path
from rnnreranker.encode.named import KnownModel
from rnnreranker.regress.plans.step import Step

MODEL_FLAGS = ("--encoder", "--impact-encoder", "--token-encoder")  # of which the name in front is a model
MODEL_SETTINGS = ("encoder", "encoders", "model", "models", "scorer", "start")  # of methods
ENCODERS = ("encoder", "sparse-encoder", "late-encoder", "cross-encoder")  # kinds of method that are models


def models_of(step: Step) -> Iterator[str]:
    """Names, hub ids and folders of models, those that other steps train among them."""
    for flag in MODEL_FLAGS:
        if given := step.value(flag):
            yield Written.read(given).name
    for form in forms_of(step):
        for key in MODEL_SETTINGS:
            for one in filter(None, str(form.params.get(key, "")).split(",")):
                name = Written.read(one).name
                if "/" in name or is_path(name) or _known(name):  # others say a kind: teacher=late, scorer=encoder
                    yield name


def forms_of(step: Step) -> Iterator[Written]:
    """The methods with settings among the words of a command, and those in their settings."""
    for word in step.argv:
        yield from _read(word)


def _read(word: str) -> Iterator[Written]:
    try:
        forms = read_listed(word)
    except InputError:  # a word that is no method
        return
    for form in forms:
        if form.params:
            yield form
            for value in form.params.values():
                yield from _read(str(value)) if str(value) else ()


def _known(name: str) -> type[KnownModel] | None:
    """The model of files that a short name or a hub id stands for; None for others."""
    for kind in ENCODERS:
        for one in names(kind):
            model = find(kind, one)
            if issubclass(model, KnownModel) and name in (model.name, model.hub):
                return model
    return None


def hub_id(name: str) -> str:
    """The id on the hub that a short name stands for; other names as they are."""
    model = _known(name)
    return model.hub if model is not None and model.hub else name


def is_carried(name: str) -> bool:
    """Whether a name is of no model ("none"), or of one that comes with a Python package."""
    model = _known(name)
    own = any(name in names(kind) for kind in ENCODERS) and model is None  # of its own code
    return name in ("none", "") or own or bool(model and (model.package or not model.hub))
