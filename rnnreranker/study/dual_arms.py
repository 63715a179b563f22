"""Arms of a study of dual encoders: hard labels, the other documents of a batch, or labels of some method."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from rnnreranker.errors import InputError, nearest
from rnnreranker.labels.methods.base import needs_of
from rnnreranker.method import find, make_params, names
from rnnreranker.settings import Params
from rnnreranker.study.arms import BASE, settings_behind
from rnnreranker.study.tasks import Task
from rnnreranker.train.degrees import Reading
from rnnreranker.train.dual_params import DualParams
from rnnreranker.train.params import settings_for
from rnnreranker.train.text_start import NOTHING

PLAIN, IN_BATCH, DISTILLED, SCORED, EMBEDDED = "LE-None", "in-batch", "LE-Distill", "LE-BS", "F-EBR"
OWN = {
    "none": PLAIN,
    "in-batch": IN_BATCH,
    "distill": DISTILLED,
    "bs": SCORED,
    "ebr": EMBEDDED,
}  # no label methods → titles
SHOWN = {"term-weight": "LE-TFIDF"}  # as the paper calls them; others have their names
READ = frozenset({"topics", "texts", "vectors", "query vectors", "terms"})  # what a labeler may ask for
DEFAULT = ("none", "in-batch", "distill", "term-weight", "bs", "evidence:degrees=maxmin")


@dataclass(frozen=True)
class DualArm:
    """One way of training a dual encoder.

    Attributes:
        name: in tables and figures.
        params: of the training; the seed is set by the task.
        of_loss: parameters of its loss.
        method: of labels; "distill": the cosines of what LE-None trains; "bs": a term scorer of the task's own.
        method_params: of that labeler; reading: how its labels become degrees of relevance.
        plain: the training of LE-None, of itself and of what it teaches.
        others: names of the arms that it is compared with.
        encoder: what it begins as; empty = that of the study.
    """

    filter: ClassVar[str] = "none"

    name: str
    params: DualParams
    of_loss: Mapping[str, Any] = field(default_factory=dict)
    method: str = "hard"
    method_params: Params | None = None
    reading: Reading = "scores"
    plain: DualParams | None = None
    others: tuple[str, ...] = (BASE,)
    encoder: str = ""

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
        of_method = [self.method, self.method_params and self.method_params.to_dict(), self.reading]
        before = None if self.plain is None else dataclasses.replace(self.plain, seed=task.seed).to_dict()
        own = [self.encoder] if self.encoder else []
        return [of_method, before, self.params_of(task).to_dict(), dict(self.of_loss), *own]


def dual_arms(chosen: Sequence[str], params: DualParams, alpha: float) -> list[DualArm]:
    """The arms of a study, as paper 004's Tables 2 and 3 have them.

    Args:
        chosen: "none": hard labels and the loss distance; "in-batch": info-nce in its place; "distill": the degrees of
            relevance are the cosines of what "none" trains; "bs": eq. 5 of the weights of a term scorer that is trained
            on the task; "ebr": new towers of words and the loss triplet, with what the preset f-ebr has; its settings
            are those of training and loss. Another name: the labels of that labeler, `NAME:KEY=VALUE,KEY=VALUE` with
            its settings. alpha and degrees may be among these settings, of the loss and of how labels are read.
        params: of the trainings, where the arm does not set it; alpha: of those that do not set theirs.

    Raises:
        InputError: no such arm, or settings that it does not have.
    """
    made = [_arm(written, params, alpha) for written in dict.fromkeys(chosen)]
    there = {BASE, *(arm.name for arm in made)}
    return [dataclasses.replace(arm, others=tuple(name for name in arm.others if name in there)) for arm in made]


def _arm(written: str, params: DualParams, alpha: float) -> DualArm:
    name, _, settings = written.partition(":")
    where = f"--dual-arms {written}"
    if name not in OWN and name not in names("labeler"):
        raise InputError(f"{where}: {nearest(name, [*OWN, *names('labeler')])}")
    values = settings_behind(where, settings)
    if name == "ebr":
        return _ebr(where, settings, values, params)
    if name == "in-batch":
        if values:
            raise InputError(f"{where}: settings are for labelers, distill, bs and ebr, not for {name}")
        return DualArm(IN_BATCH, dataclasses.replace(params, loss="info-nce"), others=(BASE, PLAIN))
    taught = dataclasses.replace(params, loss="distance", inverse_temperature=None)
    if name == "none":
        if values:
            raise InputError(f"{where}: settings are for labelers, distill, bs and ebr, not for {name}")
        return DualArm(PLAIN, taught, {"alpha": 0.0}, plain=taught)
    reading = values.pop("degrees", "cosine" if name == "distill" else params.degrees)
    if reading not in get_args(Reading):
        raise InputError(f"{where}: degrees={reading}: {nearest(str(reading), get_args(Reading))}")
    of_loss = find("loss", "distance").Params(alpha=values.pop("alpha", alpha)).to_dict()
    title = f"{OWN.get(name) or SHOWN.get(name) or f'LE, {name}'}{f', {settings}' if settings else ''}"
    others = (BASE, PLAIN, *(other for other in (DISTILLED, SHOWN["term-weight"]) if title.partition(",")[0] != other))
    if name in OWN:
        if values:
            raise InputError(f"{where}: {next(iter(values))}: {name} has no settings but alpha and degrees")
        return DualArm(title, taught, of_loss, name, None, reading, taught if name == "distill" else None, others)
    if lacking := sorted(find("labeler", name).needs - READ):
        raise InputError(f"{where}: needs {' and '.join(lacking)}, which a study of dual encoders has not")
    hints = {each.name for each in dataclasses.fields(find("labeler", name).Params)}
    usual = {"context": params.depth + 1} if "context" in hints else {}
    of_method = make_params("labeler", name, {**usual, **values})
    return DualArm(title, taught, of_loss, name, of_method, reading, others=others)


def _ebr(where: str, settings: str, values: Mapping[str, Any], params: DualParams) -> DualArm:
    """Towers of words: what the preset has besides the defaults stands before the settings of the study."""
    of_preset = dict(DualParams.preset("f-ebr").to_dict().items() - DualParams().to_dict().items())
    base = dataclasses.replace(params, inverse_temperature=None)
    try:
        own, loss = settings_for(DualParams, {**of_preset, **values}, base=base)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    of_loss = {key: value for key, value in loss.to_dict().items() if key in values}
    title = f"{EMBEDDED}{f', {settings}' if settings else ''}"
    return DualArm(title, own, of_loss, others=(BASE, PLAIN), encoder=NOTHING)
