"""`run_study` and its command: train each arm, test and compare."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rnnreranker.base.command import progress, say
from rnnreranker.base.jobs import CLUSTERS, do_parts
from rnnreranker.base.settings import asked
from rnnreranker.lab.study import comparisons
from rnnreranker.lab.study.request import Arm, StudyRequest, check
from rnnreranker.lab.study.tasks import Task, tasks_of
from rnnreranker.lab.study.trial import Studied
from rnnreranker.train.request import notice_doubts

CHOICE = "nDCG@10"  # of the validation queries


@dataclass(frozen=True)
class StudyOutcome:
    """The result of a study.

    Attributes:
        outcome: plain values: `arms`, `params`, `rows` (see `study_rows`), `queries`, `curves`, `steps` and further
            results of the arms.
        inputs: name → fingerprint of what was read.
    """

    outcome: dict[str, Any]
    inputs: dict[str, str]

    @property
    def conclusion(self) -> str:
        """A sentence: the best arm on queries not trained on."""
        return comparisons.conclusion(self.outcome["rows"])


def run_study(index: Any, topics: Any, qrels: Any, **others: Any) -> StudyOutcome:
    """Train a model in several ways with seeds, test on queries not trained on, and compare; as the command does.

    Args:
        index, topics, qrels, others: as in `StudyRequest`; topics and qrels are for training, and without
            `test_topics` for the test.

    Raises:
        InputError: invalid arguments, or files that do not belong together.
        UnavailableError, MissingDependencyError: an encoder or package that is not available here.
    """
    return study(asked(StudyRequest, {"index": index, "topics": topics, "qrels": qrels} | others))


def study(request: StudyRequest) -> StudyOutcome:
    """`run_study` for a request; raises the same errors."""
    from rnnreranker.evaluate.measures import name_of, parse_measures

    check(request)
    if request.work is None:
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            return study(dataclasses.replace(request, work=folder))
    studied, tasks = load_study(request)
    rates = with_rates(studied, tasks, request.learning_rates) if request.learning_rates else {}
    arms = list(studied.arms.values())
    families = {arm.name: arm.own.family for arm in arms if arm.own.family}
    others = {arm.name: arm.against for arm in arms}
    others |= {family: others[arm] for arm, family in families.items()}
    first = name_of(parse_measures(request.measures)[0])
    records, choices = comparisons.with_chosen(run_arms(studied, tasks, [None, *arms]), families, first)
    table: Any = comparisons.per_query(records)
    if request.fixed:  # settings by labels, of arms with own rates
        own = [arm for arm in arms if arm.own.rates in ("", arm.name)]
        about: Any = {"params": {arm.method.name: arm.training() for arm in reversed(own)}}
    else:
        about = {"encoder": request.encoder, "test_candidates": request.test_candidates, "model": request.written.name}
        about |= {"first_stages": list(request.stages), "params": request.training.params.described()}
    outcome = {
        "arms": request.compares or request.written.name,
        "title": request.title or request.shown("topics"),
        "tasks": sorted({task.name for task in tasks}),
        "seeds": request.seeds,
        "protocol": studied.protocol,
        "training_queries": len(tasks[0].positives) - len(tasks[0].validation),
        "validation_queries": len(tasks[0].validation),
        **about,
        **comparisons.observations(records),
        **{name: own for name, own in (("rates", rates), ("choices", choices)) if own},
        "rows": comparisons.study_rows(table, tasks[0].groups, others),
        "queries": {arm: table[arm].round(4).to_dict() for arm in table.columns.unique(0)},
    }
    unchanged = ", ".join(
        f"{own['unchanged']} of {own['trainings']} trainings of {arm}"
        for arm, own in outcome["steps"].items()
        if own["unchanged"]
    )
    doubt = f"no step was better than the start in {unchanged}" if unchanged else ""
    notice_doubts(min(len(task.validation) for task in tasks), doubt)
    return StudyOutcome(outcome, {"index": studied.index})


def load_study(request: StudyRequest) -> tuple[Studied, list[Task]]:
    """What all trials of a checked request share, and its tasks for every seed.

    Raises:
        InputError: unreadable files, files that do not belong together, an index without a needed part.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    share = getattr(request.training.params, "validation_share", 0.1)
    tasks, tested = tasks_of(request, topics_of(request.topics), qrels_of(request.qrels), share)
    return Studied(request, tasks, tested), tasks


def run_arms(studied: Studied, tasks: Sequence[Task], arms: Iterable[Arm | None]) -> list[dict[str, Any]]:
    """The records of all arms on all tasks, see `Studied.record`; existing files are reused."""
    request = studied.request
    studied.work.mkdir(parents=True, exist_ok=True)
    work = [(studied, task, arm) for arm in arms for task in tasks]
    shown = partial(progress, unit="trials", total=len(work), what="train")
    if request.jobs > 1 or request.backend in CLUSTERS:
        _ = studied.identity  # once, before it goes to every process
        gpus = 0 if request.trained_on == "cpu" else 1
        cluster: Any = {"backend": request.backend, "address": request.address, "gpus": gpus}
        do_parts(Studied.record, iter(work), workers=request.jobs, shown=shown, **cluster)
    return [Studied.record(*one) for one in shown(work)]


def with_rates(studied: Studied, tasks: Sequence[Task], rates: Sequence[float]) -> dict[str, dict[str, dict[str, Any]]]:
    """Choose each arm's learning rate on the validation queries of each fold; of equal rates the lowest.

    The arms of the study get their rates.

    Returns:
        Arm → task name → `rate` and `validation` (learning rate → mean nDCG@10 of the validation queries over the
        seeds), for arms that do not take another arm's rates.
    """
    chosen: dict[str, dict[str, dict[str, Any]]] = {}
    for arm in studied.arms.values():
        if arm.own.rates in ("", arm.name):
            names = sorted({task.name for task in tasks})
            validated: dict[str, dict[float, float]] = {name: {} for name in names}
            for rate in sorted(rates):
                tried = dataclasses.replace(arm, name=f"{arm.name}, {rate:g}", rates=dict.fromkeys(names, rate))
                records = run_arms(studied, tasks, [tried])
                for name, own in validated.items():
                    own[rate] = float(np.mean([one["validation"][CHOICE] for one in records if one["task"] == name]))
            chosen[arm.name] = {
                name: {"rate": max(own, key=own.__getitem__), "validation": {f"{r:g}": v for r, v in own.items()}}
                for name, own in validated.items()
            }
    for arm in studied.arms.values():
        taken = {name: one["rate"] for name, one in chosen[arm.own.rates or arm.name].items()}
        studied.arms[arm.name] = dataclasses.replace(arm, rates=taken)
    for name, tried_on in chosen.items():
        say(f"{name}: learning rate " + ", ".join(f"{one['rate']:g} ({task})" for task, one in tried_on.items()))
    return chosen
