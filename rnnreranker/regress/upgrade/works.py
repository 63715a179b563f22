"""Options of studies and recoveries of an earlier form, as today's commands take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import former_names
from rnnreranker.lab.recover.teachers import COLLECTIVE
from rnnreranker.methods.feedback.colbert import ColbertParams

OF_ARMS = (  # options that said what the arms of a study are
    *("methods", "other_side", "losses", "counts", "factors", "late_arms", "dual_arms", "cross_encoders"),
    *("teacher_temperature",),
)


def of_study(options: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing is to be written otherwise.

    Raises:
        InputError: arms that are no models, which nobody but the writer of the spec can name.
    """
    given = [name for name in OF_ARMS if name in options] + ["arms"] * isinstance(options.get("arms"), str)
    if given:
        said = (
            "an arm is a model now, with a name of its own: `model: {KIND: {…}}` and `arms: {NAME: {SETTING: VALUE}}`"
        )
        raise InputError(f"{', '.join(given)}: {said}; see docs/study.md")
    return {}


def of_recovery(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options to be written otherwise, None = left out: settings of teachers behind these, that of joint behind it."""
    changes: dict[str, Any] = {}
    now = former_names(ColbertParams)
    collective = {now[name]: options[name] for name in options if name in now}
    model = options.get("beside_model")
    teachers = options.get("beside")
    if isinstance(teachers, list) and (collective or model is not None):
        changes["beside"] = [_teacher(one, collective, model) for one in teachers]
        changes |= dict.fromkeys(name for name in options if name in now or name == "beside_model")
    if "positive_weight" in options and "similarity" not in options:
        changes |= {"positive_weight": None, "similarity": {"joint": {"positive_weight": options["positive_weight"]}}}
    return changes


def _teacher(name: Any, collective: Mapping[str, Any], model: Any) -> Any:
    settings: dict[str, Any] = {}
    if name in COLLECTIVE:
        settings = dict(collective)
    elif model is not None and name in names("reranker") and (key := find("reranker", name).model_setting):
        settings = {key: model}
    return {name: settings} if settings else name
