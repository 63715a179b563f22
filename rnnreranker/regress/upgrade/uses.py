"""A method with settings, as a spec of an earlier form has it, written as it is today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import fields_of, find, methods, names
from rnnreranker.base.settings import former_names, hints_of
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.regress.specs.methods import check_negatives, check_training, check_use, labels_options
from rnnreranker.regress.specs.model_names import use_with_folders

KINDS = {  # key of a condition or a model → kind of method
    **{"retrieve": "retriever", "first": "retriever", "prf": "feedback", "expand": "expander", "rerank": "reranker"},
    **{"fuse": "fusion", "aggregate": "aggregation", "labels": "labeler", "negatives": "filter"},
    "train": "trained-model",
}
USUAL: dict[str, dict[str, Any]] = {  # reranker that is no more → its defaults, in the words of today
    "prf-rocchio": {"fb_docs": 5, "fb_alpha": 0.4, "fb_beta": 0.6},
    "prf-average": {"fb_docs": 3},
    "colbert-prf": {"context": 1000},
}
LOSS = "loss"


def renamed(kind: str, name: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, str], dict[str, Any]]:
    """What a method is called today, its settings that are called otherwise, and settings that are to be added.

    Raises:
        InputError: settings that have no form today.
    """
    if kind in ("filter", "aggregation"):
        return name, {}, {}
    if kind == "fusion":
        from rnnreranker.runs.fuse import FuseParams

        return name, _in(settings, former_names(FuseParams)), {}
    form = _today(kind, name)
    if form.name not in names(kind):
        return name, {}, {}
    method = find(kind, form.name)
    now = former_names(method.Params)
    if inner := getattr(method, "inner", None):
        other = Written.read(settings.get(inner[0]) or form.params.get(inner[0]) or method.Params().to_dict()[inner[0]])
        now |= _of_inner(inner[1], other.name, settings)
    others = _in(settings, now)
    said = {others.get(one, one) for one in settings}
    added = {key: str(value) for key, value in form.params.items()} | USUAL.get(name, {}) if form.name != name else {}
    return form.name, others, {key: value for key, value in added.items() if key not in said}


def _today(kind: str, name: str) -> Written:
    """The written form of a method of an earlier name."""
    if name not in names(kind):
        for one in methods(kind).values():
            if form := getattr(one, "former_names", {}).get(name):
                return Written.read(form)
    return Written(name)


def _of_inner(kind: str, name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """What settings of the method inside another are called, beside which they stand."""
    form = _today(kind, name)
    if "teacher_params" in settings:
        raise InputError("teacher_params: write the settings that the file has beside `teacher`, or its preset")
    if form.name != name:
        raise InputError(f"{name} is {form} now: write it so, with its settings")
    if name not in names(kind):
        return {}
    method = find(kind, name)
    model = getattr(method, "model_setting", "")
    return former_names(method.Params) | ({"teacher_model": model} if model else {})


def _in(settings: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, str]:
    return {name: now[name] for name in settings if name in now}


def of_training(model: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The loss with its settings, where these stand among those of a training; and what they were.

    >>> of_training("dual", {"preset": "le-bs", "alpha": 0.2})
    ({'loss': {'distance': {'alpha': 0.2}}}, ['alpha'])
    """
    if model not in names("trained-model"):
        return {}, []
    method = find("trained-model", model)
    own = [field.name for field in fields_of(method)]
    losses = {name for one in methods("loss").values() for name in hints_of(one.Params)}
    moved = [name for name in settings if name in losses and name not in own]
    if not moved:
        return {}, []
    usual = method.Params.named(str(settings[PRESET])) if settings.get(PRESET) else method.Params()
    loss = Written.read(settings.get(LOSS) or usual.loss)
    return {LOSS: {loss.name: {**loss.params, **{name: settings[name] for name in moved}}}}, moved


def check(kind: str, name: str, settings: Mapping[str, Any]) -> None:
    """Nothing, when there is a method today that takes these settings.

    Raises:
        InputError: there is none.
    """
    own = dict(settings)
    use = Written(name, own, str(own.pop(PRESET, None) or ""))
    if kind == "filter":
        check_negatives(use)
    elif kind == "trained-model":
        check_training(use)
    elif kind == "labeler":
        from rnnreranker.labels.request import choose_labeler

        choose_labeler(labels_options(use_with_folders(use))[0])
    else:
        check_use(kind, use)
