"""An arm of a study: a model, what it is trained on, from where, with which loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import fields_of, find, names
from rnnreranker.base.settings import Params, hints_of, setting
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.params import LabelParams, unlearnt
from rnnreranker.labels.request import LABEL_PRESET, SOURCE, ChosenLabeler, choose_labeler
from rnnreranker.train.request import training_of

BASE = "base"  # the model as it is
SIGN = "|"  # between names of arms


@dataclass(frozen=True)
class ArmParams(Params):
    """Settings of an arm beside those of its training."""

    labels: str = setting("hard", "what it learns from: a method of labels in its written form", tunable=False)
    start: str = setting("", "what it begins as: an arm, or an encoder; empty = that of the study")
    negatives: str = setting("", "whose: of a first stage, random, of an arm; empty = of the last first stage")
    filter: Literal["none", "rnn"] = setting("none", "of negatives: likely positives are left out")
    prf: str = setting("", "no training: what it starts from, searched with twice, by this feedback")
    rates: str = setting("", "the arm whose chosen learning rates it takes; empty = its own")
    against: str = setting("", f"arms that it is compared with, {SIGN} between them; empty = that of the study")
    family: str = setting("", "of arms among which validation chooses: the name of what it chooses")


@dataclass(frozen=True)
class ArmLabels(Params):
    """Labels of another arm: the scores of what it trained."""

    name: str = setting("", "of the arm")


@dataclass(frozen=True)
class Arm:
    """One way of training.

    Attributes:
        name: in tables and figures.
        params: of the training; the seed is set by the task, the learning rate by `rates`. loss: of its loss.
        labels: what it learns from, a labeler or what the kind of model has besides.
        own: its other settings.
        against: names of the arms that it is compared with.
        rates: task name → the learning rate that is taken there; empty = that of `params`.
        taught: fingerprint of what its labels read beside the vectors; empty where they read nothing else.
    """

    name: str
    params: Any
    loss: Params
    labels: ChosenLabeler
    own: ArmParams = field(default_factory=ArmParams)
    against: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    taught: str = ""

    @property
    def hard(self) -> bool:
        """Whether it learns from judgements alone."""
        return self.labels.name == "hard"

    @property
    def mass(self) -> str | None:
        """ "share" or "confident" where how much leaves the positives is learnt, see `labels.mass`."""
        return self.labels.label_params.mass if unlearnt(self.labels.label_params) else None

    @property
    def refers(self) -> list[str]:
        """What it starts from, and whose negatives and scores it takes: names, of arms perhaps."""
        given = (self.own.start, self.own.negatives, self.teacher)
        return [name for name in dict.fromkeys(given) if name and name != self.name]

    @property
    def teacher(self) -> str:
        """The arm whose scores it learns from; "" = none."""
        return self.labels.params.name if isinstance(self.labels.params, ArmLabels) else ""

    def params_of(self, task: Task) -> Any:
        """The parameters of its training on a task."""
        values = {"seed": task.seed} | ({"learning_rate": self.rates[task.name]} if task.name in self.rates else {})
        return dataclasses.replace(
            self.params, **{key: values[key] for key in values if key in hints_of(type(self.params))}
        )

    def described(self, task: Task) -> list[Any]:
        """What it trains with on a task, but for what the arms are that it refers to."""
        labels = [self.labels.name, self.labels.params.to_dict(), self.labels.label_params.to_dict()]
        own = [self.own.start, self.own.negatives, self.own.filter, self.own.prf, self.taught]
        learnt = sorted(task.known_of_validation) if self.mass else []
        return [self.params_of(task).to_dict(), self.loss.to_dict(), labels, own, learnt]

    def training(self) -> dict[str, Any]:
        """The parameters, plain values; the learning rate is None where tasks differ in it."""
        rates = set(self.rates.values())
        taken = {"learning_rate": rates.pop() if len(rates) == 1 else None} if rates else {}
        return self.params.to_dict() | self.loss.to_dict() | taken


def forms_of(arms: Sequence[Form] | Mapping[str, Any]) -> Iterator[Written]:
    """Arms in their written form, `NAME:KEY=VALUE`, or a mapping of names to settings as YAML has it.

    Raises:
        InputError: another form.
    """
    for form in [{name: settings} for name, settings in arms.items()] if isinstance(arms, Mapping) else arms:
        written = Written.read(form)
        yield dataclasses.replace(written, params=dict(written.params))


def arms_of(
    forms: Sequence[Form] | Mapping[str, Any],
    kind: Any,
    model: Written,
    loss: Form | None,
    context: int,
    against: str | None = None,
) -> list[Arm]:
    """The arms of a study.

    Args:
        forms: of each its name and what it has otherwise than the model: settings of the training, and `ArmParams`.
        model: what all have, in its written form; loss, context: where neither arm nor model, or no label, says.
        against: the arm that the others are compared with where they do not say; None = none.

    Raises:
        InputError: a name twice, settings that an arm does not have, labels or arms that there are not.
    """
    made: dict[str, Arm] = {}
    for written in forms_of(forms):
        shown = argument("arms", str(written))
        if written.name in (BASE, *made):
            raise InputError(f"{shown}: {written.name}: an arm of that name is there; give it another")
        try:
            made[written.name] = _arm(written, kind, model, loss, context)
        except InputError as error:
            raise InputError(f"{shown}: {error}") from None
    if not made:
        raise InputError(f"{argument('arms')}: expected an arm")
    families = {arm.own.family for arm in made.values() if arm.own.family}
    if against is not None and against not in made:
        raise InputError(f"{argument('against', against)}: no such arm; {nearest(against, made)}")
    earlier: list[str] = []
    for name, arm in made.items():
        named = arm.own.against.split(SIGN) if arm.own.against else [against] if against else []
        wanted = [one for one in (*named, arm.own.rates, arm.teacher) if one]
        late = [one for one in arm.refers if one in made and one not in earlier]
        if wrong := [one for one in wanted if one not in (BASE, *made)]:
            raise InputError(f"{argument('arms', name)}: {wrong[0]}: no such arm; {nearest(wrong[0], made)}")
        if late or name in families:
            said = f"{late[0]}: stands behind it; put it before" if late else "is the name of a family; give it another"
            raise InputError(f"{argument('arms', name)}: {said}")
        made[name] = dataclasses.replace(arm, against=(BASE, *(one for one in named if one not in (BASE, name))))
        earlier.append(name)
    return list(made.values())


def _arm(written: Written, kind: Any, model: Written, loss: Form | None, context: int) -> Arm:
    values = {**model.params, **written.params}
    if "seed" in values:
        raise InputError(f"seed: a study draws its own; give {argument('seeds')}, trainings of every arm")
    given = {name: values.pop(name) for name in hints_of(ArmParams) if name in values}
    if strange := [name for name in given if name not in (*kind.takes, "labels", "rates", "against")]:
        raise InputError(f"{strange[0]}: is not for a study of the model {kind.name}")
    own = ArmParams.of({key: str(Written.read(one)) if isinstance(one, Mapping) else one for key, one in given.items()})
    if loss is not None and "loss" not in values:
        values["loss"] = loss
    usual = find("trained-model", model.name).Params(**kind.usual)
    _, params, of_loss = training_of(Written(model.name, values, written.preset or model.preset), base=usual)
    if own.prf:
        choose("feedback", own.prf, of="prf")
    return Arm(written.name, params, of_loss, labels_of(own.labels, kind, kind.context_of(params, context)), own)


def labels_of(form: Form, kind: Any, context: int) -> ChosenLabeler:
    """The labels of an arm: a labeler with its settings, or what a kind of model has besides.

    Raises:
        InputError: no such method, settings that it does not have, values out of range, what is not there to be read;
            sources of similarities, which a study does not take.
    """
    written = Written.read(form)
    if written.name in kind.labels:
        values = {name: value for name, value in written.params.items() if name not in hints_of(LabelParams)}
        of_labels = {name: value for name, value in written.params.items() if name not in values}
        own = kind.labels[written.name].of(values, f"labels={written.name}")
        if lacking := [name for name, value in own.to_dict().items() if value == ""]:
            raise InputError(f"labels={written.name}: {' and '.join(lacking)} missing")
        return ChosenLabeler(written.name, own, LabelParams.of(of_labels, f"labels={written.name}"))
    if written.name not in names("labeler"):
        raise InputError(
            f"labels={written.name}: no such labels; {nearest(written.name, [*kind.labels, *names('labeler')])}"
        )
    if strange := [name for name in (SOURCE, LABEL_PRESET) if name in written.params]:
        raise InputError(f"labels={written}: {strange[0]}: a study takes none; give settings")
    known = {each.name for each in fields_of(find("labeler", written.name))}
    if "context" in known and "context" not in written.params and not written.preset:
        written = dataclasses.replace(written, params={"context": context, **written.params})
    try:
        chosen = choose_labeler(written)
    except InputError as error:
        raise InputError(f"labels={form}: {error}") from None
    if lacking := sorted(chosen.needs - kind.reads):
        raise InputError(f"labels={written.name}: needs {' and '.join(lacking)}, which a study of {kind.name} has not")
    return chosen


def without_repeats(arms: Sequence[Arm], tasks: Sequence[Task]) -> tuple[list[Arm], dict[str, str]]:
    """The arms without those that come to the same as an earlier one on every task; and name → that arm."""
    kept: dict[str, Arm] = {}
    same: dict[str, str] = {}
    for arm in arms:
        of_tasks = repr([arm.described(task) for task in tasks])
        if of_tasks in kept:
            same[arm.name] = kept[of_tasks].name
        else:
            kept[of_tasks] = arm
    renamed = [
        dataclasses.replace(
            arm,
            against=tuple(dict.fromkeys(same.get(one, one) for one in arm.against if same.get(one, one) != arm.name)),
        )
        for arm in kept.values()
    ]
    return renamed, same
