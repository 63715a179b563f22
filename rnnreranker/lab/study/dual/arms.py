"""Arms of a study of dual encoders: hard labels, the other documents of a batch, or labels of some method."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import fields_of, find, make_params, names
from rnnreranker.base.settings import Params, Typed
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.query.arms import BASE, settings_said
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.methods.base import needs_of
from rnnreranker.parts.terms.word_weights import SharedWords
from rnnreranker.train.group.negative_kinds import AT_RANDOM, Kind
from rnnreranker.train.label_scale import LabelScale
from rnnreranker.train.model_files import NOTHING
from rnnreranker.train.models.dual import DualParams
from rnnreranker.train.params import settings_for

PLAIN, IN_BATCH, DISTILLED, SCORED, EMBEDDED = "LE-None", "in-batch", "LE-Distill", "LE-BS", "F-EBR"
OWN = {
    "none": PLAIN,
    "in-batch": IN_BATCH,
    "distill": DISTILLED,
    "bs": SCORED,
    "ebr": EMBEDDED,
}  # no label methods → titles
SHOWN = {"term-weight": "LE-TFIDF"}  # as the paper calls them; others have their names
KIND = "negatives_from"  # a setting of all arms
ONE_OF = re.compile(r"[-+.\de]+(/[-+.\de]+)+")  # numbers that validation questions choose between
READ = frozenset({"topics", "texts", "vectors", "query vectors", "terms"})  # what a labeler may ask for
DEFAULT = ("none", "in-batch", "distill", "term-weight", "bs", "evidence:label_scale=maxmin")


@dataclass(frozen=True)
class DualArm:
    """One way of training a dual encoder.

    Attributes:
        name: in tables and figures.
        params: of the training; the seed is set by the task.
        of_loss: parameters of its loss.
        method: of labels; "distill": the cosines of what LE-None trains; "bs": a term scorer of the task's own.
        method_params: of that labeler; label_scale: how its labels are scaled.
        plain: the training of LE-None, of itself and of what it teaches.
        others: names of the arms that it is compared with.
        encoder: what it begins as; empty = that of the study.
        family: the arms among which validation questions choose, by the name of what they choose; empty = it has none.
    """

    filter: ClassVar[str] = "none"

    name: str
    params: DualParams
    of_loss: Mapping[str, Any] = field(default_factory=dict)
    method: str = "hard"
    method_params: Params | None = None
    label_scale: LabelScale = "scores"
    plain: DualParams | None = None
    others: tuple[str, ...] = (BASE,)
    encoder: str = ""
    family: str = ""

    @property
    def shared(self) -> SharedWords | None:
        """How its labels read the words that a query and a document share; None of labels that are of no words."""
        return self.method_params if isinstance(self.method_params, SharedWords) else None

    @property
    def needs(self) -> frozenset[str]:
        """What its labels read of an index."""
        own = {"distill": frozenset(), "bs": frozenset({"terms"})}
        return own[self.method] if self.method in own else needs_of(self.method, self.method_params)

    def params_of(self, task: Task) -> DualParams:
        """The parameters on a task."""
        return dataclasses.replace(self.params, seed=task.seed)

    def described(self, task: Task) -> list[Any]:
        """Everything that it trains with on a task."""
        of_method = [self.method, self.method_params and self.method_params.to_dict(), self.label_scale]
        before = None if self.plain is None else dataclasses.replace(self.plain, seed=task.seed).to_dict()
        own = [self.encoder] if self.encoder else []
        return [of_method, before, self.params_of(task).to_dict(), dict(self.of_loss), *own]


def dual_arms(chosen: Sequence[Form], params: DualParams, alpha: float) -> list[DualArm]:
    """The arms of a study, as paper 004's Tables 2 and 3 have them.

    Args:
        chosen: in their written form. "none": hard labels and the loss distance; "in-batch": info-nce in its place;
            "distill": the labels are the cosines of what "none" trains; "bs": eq. 5 of the weights of a
            term scorer that is trained on the task; "ebr": new towers of words and the loss triplet, with what the
            preset f-ebr has; its settings are those of training and loss. Another name: the labels of that labeler,
            with its settings. alpha and label_scale may be among these settings, of the loss and of how labels are
            scaled, and of every arm negatives_from. Numbers with a stroke between them, as in
            `scale=1/10,alpha=0.5/1`, are an arm each, all of one family.
        params: of the trainings, where the arm does not set it; alpha: of those that do not set theirs.

    Raises:
        InputError: no such arm, or settings that it does not have.
    """
    forms = {str(written): written for written in map(Written.read, chosen)}
    made = [arm for written in forms.values() for arm in _family(written, params, alpha)]
    there = {BASE, *(arm.name for arm in made)}
    return [dataclasses.replace(arm, others=tuple(name for name in arm.others if name in there)) for arm in made]


def _family(written: Written, params: DualParams, alpha: float) -> list[DualArm]:
    """The arms of what is written once: one, or all that its alternatives make."""
    given: list[list[Any]] = [
        [Typed(one) for one in str(value).split("/")] if ONE_OF.fullmatch(str(value)) else [value]
        for value in written.params.values()
    ]
    if all(len(values) == 1 for values in given):
        return [_arm(written, params, alpha)]
    each = [dict(zip(written.params, values, strict=True)) for values in itertools.product(*given)]
    family = f"{_titled(written)}, chosen"
    made = [_arm(Written(written.name, one, written.preset), params, alpha) for one in each]
    return [dataclasses.replace(arm, family=family) for arm in made]


def _titled(written: Written) -> str:
    """The name of an arm in tables and figures."""
    name = written.name
    return f"{OWN.get(name) or SHOWN.get(name) or f'LE, {name}'}{settings_said(written)}"


def _arm(written: Written, params: DualParams, alpha: float) -> DualArm:
    """An arm by its name.

    Raises:
        InputError: no such arm, or settings that it does not have.
    """
    name, where = written.name, argument("dual_arms", str(written))
    if name not in OWN and name not in names("labeler"):
        raise InputError(f"{where}: no such arm; {nearest(name, [*OWN, *names('labeler')])}")
    if written.preset and name in OWN:
        raise InputError(f"{where}: {name} has no presets")
    try:
        return _made(written, params, alpha)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _made(written: Written, params: DualParams, alpha: float) -> DualArm:
    name, values = written.name, dict(written.params)
    kind = str(values.pop(KIND)) if KIND in values else None
    if kind is not None and kind not in get_args(Kind):
        raise InputError(f"{KIND}={kind}: {nearest(kind, get_args(Kind))}")
    of_kind = f", {KIND}={kind}" if kind else ""
    plain, title, params = f"{PLAIN}{of_kind}", _titled(written), _drawing(params, kind)
    if name == "ebr":
        return _ebr(title, values, params, plain)
    if name in ("none", "in-batch") and values:
        raise InputError(f"{name} has no settings but {KIND}")
    if name == "in-batch":
        return DualArm(title, dataclasses.replace(params, loss="info-nce"), others=(BASE, plain))
    taught = dataclasses.replace(params, loss="distance", inverse_temperature=None)
    if name == "none":
        return DualArm(title, taught, {"alpha": 0.0}, plain=taught)
    if "degrees" in values:
        raise InputError("degrees is label_scale now")
    scale: Any = str(values.pop("label_scale", "cosine" if name == "distill" else params.label_scale))
    if scale not in get_args(LabelScale):
        raise InputError(f"label_scale={scale}: {nearest(scale, get_args(LabelScale))}")
    of_loss = find("loss", "distance").Params.of({"alpha": values.pop("alpha", alpha)}).to_dict()
    compared = (f"{DISTILLED}{of_kind}", f"{SHOWN['term-weight']}{of_kind}")
    others = (BASE, plain, *(other for other in compared if title.partition(",")[0] != other.partition(",")[0]))
    if name == "distill":
        if values:
            raise InputError(f"{next(iter(values))}: {name} has no settings but alpha, label_scale and {KIND}")
        return DualArm(title, taught, of_loss, name, None, scale, taught, others)
    if name == "bs":
        if unknown := sorted(values.keys() - {field.name for field in dataclasses.fields(SharedWords)}):
            has = "alpha, label_scale, products and scale"
            raise InputError(f"{unknown[0]}: {name} has no settings but {has}")
        return DualArm(title, taught, of_loss, name, SharedWords.of(values), scale, others=others)
    if lacking := sorted(find("labeler", name).needs - READ):
        raise InputError(f"needs {' and '.join(lacking)}, which a study of dual encoders has not")
    known = {each.name for each in fields_of(find("labeler", name))}
    several = 2 if taught.kind in AT_RANDOM else 1  # as many random documents are labelled beside the run's
    usual = {"context": several * params.depth + 1} if "context" in known and not written.preset else {}
    of_method = make_params("labeler", name, {**usual, **values}, written.preset or None)
    return DualArm(title, taught, of_loss, name, of_method, scale, others=others)


def _drawing(params: DualParams, kind: Any) -> DualParams:
    """The parameters with negatives of a kind, None = their own."""
    return params if kind is None else dataclasses.replace(params, negatives_from=kind)


def _ebr(title: str, values: Mapping[str, Any], params: DualParams, plain: str) -> DualArm:
    """Towers of words: what the preset has compared the defaults stands before the settings of the study."""
    of_preset = dict(DualParams.preset("f-ebr").to_dict().items() - DualParams().to_dict().items())
    base = dataclasses.replace(params, inverse_temperature=None)
    own, loss = settings_for(DualParams, {**of_preset, **values}, base=base)
    of_loss = {key: value for key, value in loss.to_dict().items() if key in values}
    return DualArm(title, own, of_loss, others=(BASE, plain), encoder=NOTHING)
