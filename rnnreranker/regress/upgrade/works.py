"""Options of studies and recoveries of an earlier form, as today's commands take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import fields_of, find, methods, names
from rnnreranker.base.settings import former_names, hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.lab.recover.teachers import COLLECTIVE
from rnnreranker.lab.study.request import ARMS, EVERYDAY
from rnnreranker.methods.feedback.colbert import ColbertParams
from rnnreranker.parts.terms.word_weights import SharedWords
from rnnreranker.train.models.dual import DualParams

ARMS_OF = ("methods", "late_arms", "dual_arms", "losses", "first_stages")  # options that list methods
MASS = ("share", "confident")  # of labels: `joint:share` was joint:mass=share


def of_study(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options to be written otherwise, None = left out: those of the training in `model`, of its loss in `loss`.

    Raises:
        InputError: settings of losses of a study that compares losses.
    """
    arms = str(options.get("arms", "labels"))
    changes: dict[str, Any] = {}
    if model := ARMS.get(arms):
        kind = find("trained-model", model)
        now = former_names(kind.Params)
        own = {field.name for field in fields_of(kind)} - set(EVERYDAY) - {"loss", "seed", "context"}
        training = {now.get(name, name): options[name] for name in options if now.get(name, name) in own}
        losses = {name for one in methods("loss").values() for name in hints_of(one.Params)} - own
        of_loss = {name: options[name] for name in options if name in losses}
        if of_loss and "losses" in (arms, *options):
            raise InputError(f"{', '.join(of_loss)}: write them in `losses`, as margin:margin=2, of every loss its own")
        if training:
            changes |= dict.fromkeys(name for name in options if now.get(name, name) in own)
            changes["model"] = {model: training}
        if of_loss:
            usual = Written.read(options.get("loss") or kind.Params().loss)
            changes |= dict.fromkeys(of_loss) | {"loss": {usual.name: {**usual.params, **of_loss}}}
    for name in ARMS_OF:
        if isinstance(options.get(name), list):
            new = [_arm(one) if isinstance(one, str) else one for one in options[name]]
            changes |= {name: new} if new != options[name] else {}
    return changes


def _arm(text: str) -> str:
    """An arm with what its settings are called today."""
    name, _, behind = text.partition(":")
    if behind in MASS:
        return f"{name}:mass={behind}"
    try:
        written = Written.read(text)
    except InputError:  # the command says what is wrong with it
        return text
    now = former_names(DualParams) | former_names(SharedWords)  # what an arm of dual encoders has besides its labels'
    for kind in ("labeler", "retriever", "loss"):
        now |= former_names(find(kind, name).Params) if name in names(kind) else {}
    return str(Written(name, {now.get(key, key): value for key, value in written.params.items()}, written.preset))


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
