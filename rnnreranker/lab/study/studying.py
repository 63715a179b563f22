"""`run_study` and the command: what a request asks for is trained in every way, tested and compared."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import say
from rnnreranker.base.request import asked
from rnnreranker.lab.study.arm import without_repeats
from rnnreranker.lab.study.request import StudyRequest, check
from rnnreranker.train.training import notice_doubts

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.study.loaded import Loaded


@dataclass(frozen=True)
class Studied:
    """What a study came to.

    Attributes:
        outcome: plain values: `arms`, `params`, `rows` (an arm, a measure and a group of test queries each, see
            `study_rows`), `queries`, `curves`, `steps`, and what else the arms have.
        inputs: of what was read, by name, a fingerprint.
    """

    outcome: dict[str, Any]
    inputs: dict[str, str]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The arms by measure and group: see `study_rows`."""
        rows: list[dict[str, Any]] = self.outcome["rows"]
        return rows

    @property
    def conclusion(self) -> str:
        """Which arm is best on queries not trained on, in a sentence."""
        from rnnreranker.lab.study.conclusion import conclusion

        return conclusion(self.rows)


def run_study(
    index: str | Path | IndexOnDisk,
    topics: str | Path | Mapping[str, str],
    qrels: Qrels,
    **others: Any,
) -> Studied:
    """Train a model in every way, several times, test it on queries that training did not see, and compare.

    As `python -m rnnreranker.study`.

    Args:
        index: a folder, `pydoc`, a prebuilt index of Pyserini, or an opened index.
        topics, qrels: of training, and without `test_topics` of the test: names, files or objects.
        others: as of `StudyRequest`: model, arms, against, loss, encoder, seeds, work, jobs, …

    Raises:
        InputError: everything that can be seen to be wrong, and files that do not belong together.
        UnavailableError, MissingDependencyError: an encoder, or packages of training, that cannot be had here.
    """
    return study(asked(StudyRequest, {"index": index, "topics": topics, "qrels": qrels} | others))


def study(request: StudyRequest) -> Studied:
    """What a request asks for, trained, tested and compared.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `run_study`.
    """
    check(request)
    with contextlib.ExitStack() as kept:
        if request.work is None:
            folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="rnnreranker-study-"))
            request = dataclasses.replace(request, work=folder)
        return _studied(request, Path(str(request.work)))


def _studied(request: StudyRequest, work: Path) -> Studied:
    """Choose learning rates where several are given, run every trial, and compare."""
    from rnnreranker.evaluate.measures import name_of, parse_measures
    from rnnreranker.lab.study.chosen import with_chosen
    from rnnreranker.lab.study.loaded import load_study
    from rnnreranker.lab.study.trainings import Workers, run_arms, with_rates

    gpus = 0 if request.trained_on == "cpu" else 1
    workers = Workers(request.jobs, request.backend, request.address, gpus)
    loaded = load_study(request)
    studied, tasks, rates = loaded.studied, loaded.tasks, dict[str, Any]()
    if request.learning_rates:
        arms, rates = with_rates(studied, tasks, request.learning_rates, work, workers)
        studied.arms = {arm.name: arm for arm in arms}
    arms, same = without_repeats(list(studied.arms.values()), tasks)
    for name, other in same.items():
        say(f"{name}: left out, as it comes to the same as {other}")
    studied.arms = {arm.name: arm for arm in arms}
    for name, own in rates.items():
        say(f"{name}: learning rate " + ", ".join(f"{one['rate']:g} ({task})" for task, one in own.items()))
    records: Any = run_arms(studied, tasks, [None, *arms], work, workers)
    families = {arm.name: arm.own.family for arm in arms if arm.own.family}
    others = {arm.name: arm.against for arm in arms}
    others |= {family: others[arm] for arm, family in families.items()}
    records, choices = with_chosen(records, families, name_of(parse_measures(request.measures)[0]))
    about = studied.about(request, arms) | studied.observations(records)
    about |= {name: own for name, own in (("rates", studied.shown(rates)), ("choices", choices)) if own}
    outcome = _outcome(request, loaded, records, about, others)
    of_arms = [(arm, own["unchanged"], own["trainings"]) for arm, own in outcome["steps"].items() if own["unchanged"]]
    unchanged = ", ".join(f"{number} of {count} trainings of {arm}" for arm, number, count in of_arms)
    notice_doubts(
        min(len(task.validation) for task in tasks),
        f"no step was better than the start in {unchanged}" if unchanged else "",
    )
    return Studied(outcome, {"index": studied.index})


def _outcome(
    request: StudyRequest, loaded: Loaded, records: Any, about: dict[str, Any], others: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    from rnnreranker.lab.study.comparisons import by_query, chosen_steps, curves, study_rows

    tasks = loaded.tasks
    return {
        "arms": request.compares or request.written.name,
        "title": request.title or request.shown("topics"),
        "tasks": sorted({task.name for task in tasks}),
        "seeds": request.seeds,
        "protocol": loaded.studied.protocol,
        "training_queries": len(tasks[0].positives) - len(tasks[0].validation),
        "validation_queries": len(tasks[0].validation),
        **about,
        "rows": study_rows(records, loaded.groups, others),
        "queries": by_query(records),
        "curves": curves(records),
        "steps": chosen_steps(records),
    }
