"""The labels that an arm of a study trains on, with a mass that is learnt on the training side of a task alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from rnnreranker.base.method import Inputs
from rnnreranker.lab.study.arm import Arm
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.judged import positives_of
from rnnreranker.labels.mass.learnt import learn_mass
from rnnreranker.labels.methods.base import make_labeler
from rnnreranker.labels.params import LabelParams

if TYPE_CHECKING:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.runs import Run


def training_labels(task: Task, arm: Arm, inputs: Inputs, run: Run) -> tuple[SoftLabels, dict[str, Any]]:
    """The labels of a task's training queries, and `mass`, what was learnt for them, where the arm has it learnt.

    It is learnt from all positives of the validation queries, or from the one positive of every query of training and
    validation; see `learn_mass`. No test query has a say.
    """
    name, params, labels = arm.labels.name, arm.labels.params, arm.labels.label_params
    if arm.mass is None:
        labeler = make_labeler(name, inputs, params, labels, threads=1)
        return labeler.infer(run, task.part(validation=False)), {}
    labels = dataclasses.replace(labels, mass=LabelParams().mass)
    labeler = make_labeler(name, inputs, params, labels, threads=1)
    validation: dict[str, list[tuple[str, int]]] = {}
    for qid, docid, grade in task.known_of_validation:
        validation.setdefault(qid, []).append((docid, grade))
    learnt = learn_mass(labeler, arm.mass, run, validation, positives_of(task.positives))
    made = make_labeler(name, inputs, params, learnt.params, threads=1)
    mass = learnt.to_dict() | {"share": learnt.params.share, "threshold": learnt.params.threshold}
    return made.infer(run, task.part(validation=False)), {"mass": mass}
