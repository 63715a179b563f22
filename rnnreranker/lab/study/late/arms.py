"""Arms of a study of late interaction: who teaches, whose candidates negatives are, where the training begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import fields_of, find, make_params, names
from rnnreranker.base.settings import Params
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.query.arms import BASE, settings_said
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.methods.base import needs_of
from rnnreranker.labels.params import LabelParams
from rnnreranker.train.models.late import LateParams

COLBERT, HARD_NEGATIVES, SELF = "ColBERT", "ColBERT-HN", "self-KD"
COLLECTIVE = tuple(f"collective:fb_clusters=24,fb_expansion_weight={beta}" for beta in (0.5, 1))  # of Table 3
PRF_OF_TABLE_3 = "prf:fb_clusters=24"
OWN = ("colbert", "prf", "random", "hn", "self", "ce", "ce-mean", "ce-hn")  # names of arms that are no label method
PRF = "prf"  # no training: what the arm ColBERT trains, searched with twice
READ = frozenset({"tokens", "query tokens", "topics"})  # what a labeler may ask for
TEMPERATURE = 0.25  # of a teacher, in the program of paper 002, whose students have the similarity l2


@dataclass(frozen=True)
class LateArm:
    """One way of training a late-interaction encoder.

    Attributes:
        name: in tables and figures.
        params: of the training; the seed is set by the task.
        of_loss: parameters of its loss that differ from the defaults.
        candidates: what negatives are drawn from: the first stage's, drawn documents, or those of the encoder that the
            arm ColBERT trains.
        begins: as the encoder of the study, or as what the arm ColBERT trains.
        method: of labels; "hard", "cross-encoder" (the mean of `models`), or a labeler's name, on its candidates; or
            `PRF`.
        method_params: of that labeler, or of the feedback; models: cross-encoders; labels: from scores to targets.
        colbert: the training of the arm ColBERT: of itself, and of an arm that begins as its encoder.
        others: names of the arms that it is compared with.
    """

    filter: ClassVar[str] = "none"
    needs: ClassVar[frozenset[str]] = frozenset()  # of an index: its labelers read tokens of the encoder itself

    name: str
    params: LateParams
    of_loss: Mapping[str, Any] = field(default_factory=dict)
    candidates: Literal["first", "random", "own"] = "first"
    begins: Literal["base", "colbert"] = "base"
    method: str = "hard"
    method_params: Params | None = None
    models: tuple[str, ...] = ()
    labels: LabelParams | None = None
    colbert: LateParams | None = None
    others: tuple[str, ...] = (BASE,)

    def params_of(self, task: Task) -> LateParams:
        """The parameters on a task."""
        return dataclasses.replace(self.params, seed=task.seed)

    def described(self, task: Task) -> list[Any]:
        """Everything that it trains with on a task."""
        of_method = [self.method, self.method_params and self.method_params.to_dict(), *self.models]
        before = None if self.colbert is None else dataclasses.replace(self.colbert, seed=task.seed).to_dict()
        chosen = [self.candidates, self.begins, of_method, self.labels and self.labels.to_dict(), before]
        return [*chosen, self.params_of(task).to_dict(), dict(self.of_loss)]


def default_arms(cross_encoders: Sequence[str]) -> list[str]:
    """The arms that are compared where nothing is said: of paper 002's Table 3 those that can be made."""
    of_cross_encoders = [name for name, models in (("ce", 1), ("ce-mean", 2)) if len(cross_encoders) >= models]
    return ["colbert", PRF_OF_TABLE_3, "hn", "self", *of_cross_encoders, *COLLECTIVE]


def late_arms(
    chosen: Sequence[Form], params: LateParams, cross_encoders: Sequence[str] = (), temperature: float = TEMPERATURE
) -> list[LateArm]:
    """The arms of a study, as paper 002's Table 3 has them.

    Args:
        chosen: in their written form. "colbert": hard labels, negatives of the first stage; "prf", with settings of
            `--prf colbert`: no training of its own, but ColBERT's search with it; "random": drawn ones; "hn": begins
            as ColBERT, with negatives of its own first candidates; "self": with its own scores as labels besides;
            "ce", "ce-mean": scores of the first cross-encoder, or the mean of all, for the candidates of the first
            stage; "ce-hn": those of the first one for ColBERT's own, which begins as ColBERT; another name: labels of
            that labeler, with its settings, for ColBERT's own candidates, which begins as ColBERT.
        params: of the trainings, where the arm does not set it: of ColBERT.
        cross_encoders: names, folders or hub ids.
        temperature: of teachers of students of `l2`; see `_arm`.

    Raises:
        InputError: no such arm, or settings that a labeler does not have; an arm of cross-encoders without as many.
    """
    forms = {str(written): written for written in map(Written.read, chosen)}
    made = [_arm(written, params, list(cross_encoders), temperature) for written in forms.values()]
    there = {BASE, *(arm.name for arm in made)}
    return [dataclasses.replace(arm, others=tuple(name for name in arm.others if name in there)) for arm in made]


def _arm(written: Written, params: LateParams, models: list[str], temperature: float) -> LateArm:
    """An arm by its name.

    A student of `l2` learns scores that are twice its inner products: from a cross-encoder at temperature T, inner
    products of 1/(2T) its scores. One of inner products learns the same ones at 2T. A teacher that is itself of inner
    products has half the temperature of one of `l2`, whose scores are twice as far apart.
    """
    name, shown = written.name, argument("late_arms", str(written))
    if name not in OWN and name not in names("labeler"):
        raise InputError(f"{shown}: no such arm; {nearest(name, [*OWN, *names('labeler')])}")
    if name not in OWN and (others := sorted(find("labeler", name).needs - READ)):
        raise InputError(f"{shown}: needs {' and '.join(others)}, which late interaction has not")
    if settings_said(written) and name in OWN and name != PRF:
        raise InputError(f"{shown}: settings are for labelers, not for {name}")
    temperature *= 1 if params.similarity == "l2" else 2
    wanted = {"ce": 1, "ce-hn": 1, "ce-mean": 2}.get(name, 0)
    if len(models) < wanted:
        raise InputError(f"{shown}: needs {argument('cross_encoders')}, {wanted} at least; got {len(models)}")
    if name == "colbert":
        return LateArm(COLBERT, params, colbert=params)
    if name == PRF:
        method_params = _of_method("feedback", "colbert", written)
        title = f"ColBERT-PRF{settings_said(written)}"
        given: dict[str, Any] = {"method": PRF, "method_params": method_params, "begins": "colbert", "colbert": params}
        return LateArm(title, params, **given, others=(BASE, COLBERT))
    if name == "random":
        return LateArm("ColBERT, random negatives", params, candidates="random", others=(BASE, COLBERT))
    own: dict[str, Any] = {"candidates": "own", "begins": "colbert", "colbert": params}
    if name == "hn":
        return LateArm(HARD_NEGATIVES, params, **own, others=(BASE, COLBERT))
    if wanted:
        taught = dataclasses.replace(params, loss="kl", contrast=0.0, in_batch_negatives=False)
        chosen = tuple(models if name == "ce-mean" else models[:1])
        kinds = {"ce": "KD, cross-encoder", "ce-mean": f"KD, {len(models)} cross-encoders"}
        labels = _labels(temperature)
        title, before = kinds.get(name, "KD, cross-encoder, from ColBERT"), own if name == "ce-hn" else {}
        return LateArm(
            title, taught, method="cross-encoder", models=chosen, labels=labels, **before, others=(BASE, COLBERT)
        )
    title = SELF if name == "self" else f"{name} self-KD{settings_said(written)}"
    method = name
    usual: dict[str, Any] = {"context": params.depth + 1}
    if name == "self":
        method, usual = "teacher", usual | {"teacher": "late"}
    method_params = _of_method("labeler", method, written, usual)
    by_tokens = "tokens" in needs_of(method, method_params)
    taught = dataclasses.replace(params, loss="kl", in_batch_negatives=True, batch_teacher=by_tokens, contrast=0.0)
    return LateArm(
        title,
        taught,
        {"raise_positives": True},
        method=method,
        method_params=method_params,
        labels=_labels(temperature / 2),
        **own,
        others=(BASE, COLBERT, HARD_NEGATIVES, *((SELF,) if name != "self" else ())),
    )


def _labels(temperature: float) -> LabelParams:
    """Targets that are the softmax of a teacher's scores."""
    return LabelParams(normalization="none", boost=1.0, n_max=None, temperature=temperature)


def _of_method(kind: str, method: str, written: Written, usual: Mapping[str, Any] = MappingProxyType({})) -> Params:
    """The settings of a method: written ones, before the usual ones that it has, unless they name a preset."""
    known = {each.name for each in fields_of(find(kind, method))}
    values = {key: usual[key] for key in usual if key in known and not written.preset} | written.params
    try:
        params: Params = make_params(kind, method, values, written.preset or None)
    except InputError as error:
        raise InputError(f"{argument('late_arms', str(written))}: {error}") from None
    return params
