"""The labels that an arm of a study trains on, with a mass that is learnt on the training side of a task alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from rnnreranker.base.method import Inputs, defaults_of, find
from rnnreranker.lab.study.query.arms import QueryArm
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.judged import positives_of
from rnnreranker.labels.mass.learnt import learn_mass
from rnnreranker.labels.methods.base import make_labeler
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    from rnnreranker.labels import LabelParams, SoftLabels
    from rnnreranker.runs import Run


def training_labels(
    task: Task, arm: QueryArm, inputs: Inputs, run: Run, rnn: RnnParams, labels: LabelParams
) -> tuple[SoftLabels, dict[str, Any]]:
    """The labels of a task's training queries, and `mass`, what was learnt for them, where the arm has it learnt.

    It is learnt from all positives of the validation queries, or from the one positive of every query of training and
    validation; see `learn_mass`. No test query has a say.

    Args:
        task: what is trained on.
        arm: names the method.
        inputs: what the method needs.
        run: candidates of all queries.
        rnn: parameters of the method; of one with settings of its own only their context counts.
        labels: from similarities to targets.
    """
    params = dataclasses.replace(params_of(arm.method, rnn), **arm.of_method)
    labels = dataclasses.replace(labels, **arm.of_labels)
    labeler = make_labeler(arm.method, inputs, params, labels, threads=1)
    if arm.mass is None:
        return labeler.infer(run, task.part(validation=False)), {}
    validation: dict[str, list[tuple[str, int]]] = {}
    for qid, docid, grade in task.known_of_validation:
        validation.setdefault(qid, []).append((docid, grade))
    learnt = learn_mass(labeler, arm.mass, run, validation, positives_of(task.positives))
    made = make_labeler(arm.method, inputs, params, learnt.params, threads=1)
    mass = learnt.to_dict() | {"share": learnt.params.share, "threshold": learnt.params.threshold}
    return made.infer(run, task.part(validation=False)), {"mass": mass}


def params_of(method: str, rnn: RnnParams) -> Any:
    """The parameters of a method of labels in a study: `rnn`, or its defaults with the same context."""
    kind = find("labeler", method)
    if kind.Params is RnnParams:
        return rnn
    usual: Any = defaults_of(kind)
    return dataclasses.replace(usual, context=rnn.context) if hasattr(usual, "context") else usual
