"""Arms of a study of models that read texts: loss, negatives or regularisation that they are trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import methods
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.query.arms import BASE
from rnnreranker.lab.study.tasks import Task
from rnnreranker.train.group.params import GroupParams
from rnnreranker.train.losses.base import BatchLoss, CosineLoss, GroupLoss
from rnnreranker.train.models.sparse import SparseParams

MODELS = {
    "pair-losses": "cross",
    "negatives": "cross",
    "regularisation": "sparse",
    "late": "late",
    "dual": "dual",
}  # what is compared → the model
FILTERS = ("none", "rnn")  # of negatives, as `rnnreranker.negatives` has them
FILTERED = ", without likely positives"


@dataclass(frozen=True)
class TextArm:
    """One way of training a model that reads texts.

    Attributes:
        name: in tables and figures.
        params: of the training; the seed is set by the task.
        stage: the retriever whose candidates the negatives are drawn from.
        filter: which of them are left out, see `rnnreranker.negatives`.
        others: names of the arms that it is compared with.
        of_loss: settings of its loss that it has for itself.
    """

    name: str
    params: GroupParams
    stage: str
    filter: str = "none"
    others: tuple[str, ...] = (BASE,)
    of_loss: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> frozenset[str]:
        """What it reads of an index besides texts and first stages."""
        return frozenset({"vectors", "query vectors"} if self.filter != "none" else ())

    def params_of(self, task: Task) -> GroupParams:
        """The parameters on a task."""
        return dataclasses.replace(self.params, seed=task.seed)

    def described(self, task: Task) -> list[Any]:
        """Everything that it trains with on a task."""
        own = [dict(self.of_loss)] if self.of_loss else []
        return [self.stage, self.filter, self.params_of(task).to_dict(), *own]


def text_arms(
    kind: str,
    params: GroupParams,
    stages: Sequence[str],
    factors: Sequence[float] = (),
    losses: Sequence[Form] | None = None,
) -> list[TextArm]:
    """The arms of a study.

    Args:
        kind: "pair-losses": losses of groups, with negatives of the last first stage; "negatives": those of every first
            stage, all of them and without likely positives; "regularisation": the weights of the FLOPS of queries and
            documents times each factor, with negatives of the last first stage.
        params: of the trainings, where the arm does not set it.
        stages: retrievers; factors: of the regularisation.
        losses: that are compared with that of `params`; None = all of groups that need no teacher and no other queries.

    Raises:
        InputError: a loss that cannot be compared.
    """
    if kind == "negatives":
        return [
            TextArm(
                _of(stage) + (FILTERED if chosen != "none" else ""),
                params,
                stage,
                chosen,
                (BASE, *((_of(stage),) if chosen != "none" else map(_of, stages[: stages.index(stage)]))),
            )
            for stage in stages
            for chosen in FILTERS
        ]
    if kind == "regularisation":
        assert isinstance(params, SparseParams)
        made: list[TextArm] = []
        for factor in factors:
            own = dataclasses.replace(params, lambda_q=params.lambda_q * factor, lambda_d=params.lambda_d * factor)
            before = [arm.name for arm in made[-1:]]
            made.append(TextArm(f"lambda x {factor:g}", own, stages[-1], others=(BASE, *before)))
        return made
    usable = [
        name
        for name, method in methods("loss").items()
        if issubclass(method, GroupLoss)
        and not issubclass(method, BatchLoss | CosineLoss)
        and "teacher" not in method.needs
    ]
    expected = f"expected one of {', '.join(usable)}, which are compared with each other"
    if params.loss not in usable:
        raise InputError(f"{argument('loss', params.loss)}: {expected}")
    chosen = {str(written): written for written in map(Written.read, usable if losses is None else losses)}
    chosen = {params.loss: Written(params.loss)} | chosen
    made = []
    for title, written in sorted(chosen.items(), key=lambda one: (one[0] != params.loss, one[0])):
        loss = choose("loss", written, of="losses")
        if loss.name not in usable:
            raise InputError(f"{argument('losses', title)}: {expected}")
        of_loss = {name: loss.params.to_dict()[name] for name in written.params}
        others = (params.loss,) if title != params.loss else ()
        learnt = dataclasses.replace(params, loss=loss.name)
        made.append(TextArm(title, learnt, stages[-1], others=(BASE, *others), of_loss=of_loss))
    return made


def _of(stage: str) -> str:
    return f"negatives of {stage}"
