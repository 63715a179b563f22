"""`run_study` and the command: what a request asks for is trained in every way, tested and compared."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import asked
from rnnreranker.base.command import say
from rnnreranker.lab.study.query.arms import BASE
from rnnreranker.lab.study.request import ARMS, StudyRequest, check

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk


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
    qrels: str | Path | Mapping[str, Mapping[str, int]] | pandas.DataFrame,
    arms: str = "labels",
    **others: Any,
) -> Studied:
    """Train a model in every way, several times, test it on queries that training did not see, and compare.

    As `python -m rnnreranker.study`.

    Args:
        index: a folder, `pydoc`, a prebuilt index of Pyserini, or an opened index.
        topics, qrels: of training, and without `test_topics` of the test: names, files or objects.
        arms: what is compared: labels, losses, candidates, pair-losses, negatives, regularisation, late or dual.
        others: as of `StudyRequest`: model, loss, encoder, methods, late_arms, dual_arms, seeds, work, jobs, …

    Raises:
        InputError: everything that can be seen to be wrong, and files that do not belong together.
        UnavailableError, MissingDependencyError: an encoder, or packages of training, that cannot be had here.
    """
    given = {"index": index, "topics": topics, "qrels": qrels, "arms": arms}
    return study(asked(StudyRequest, given | others))


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
        return _of_queries(request) if ARMS[request.arms] == "query" else _of_texts(request)


def _of_queries(request: StudyRequest) -> Studied:
    """A study of query encoders."""
    from rnnreranker.lab.study.comparisons import masses, positives
    from rnnreranker.lab.study.query.arms import Hyperparameters, candidate_arms, label_arms, loss_arms
    from rnnreranker.lab.study.query.loaded import load_study
    from rnnreranker.lab.study.trainings import choose_rates, run_arms

    params: Any = request.training.params
    loaded = load_study(request, params)
    setting, tasks, work = loaded.setting, loaded.tasks, Path(str(request.work))
    rates: dict[str, Any] = {}
    hyperparameters = {"hard": Hyperparameters(params), "evidence": Hyperparameters(params)}
    if request.learning_rates:
        for method in hyperparameters if request.arms == "labels" else ("hard",):
            chosen = choose_rates(setting, tasks, method, params, request.learning_rates, work, request.jobs)
            hyperparameters[method], rates[method] = chosen
            taken = ", ".join(f"{own['rate']:g} ({name})" for name, own in rates[method].items())
            say(f"{method} labels: learning rate {taken}")
    if request.arms == "labels":
        teachers = setting.teachers(request.methods)
        arms = label_arms(
            hyperparameters["hard"], hyperparameters["evidence"], request.methods, request.other_side, teachers
        )
    elif request.arms == "losses":
        arms = loss_arms(hyperparameters["hard"], request.losses)
    else:
        arms = candidate_arms(hyperparameters["hard"], request.counts)
    records = run_arms(setting, tasks, [None, *arms], work, request.jobs)
    about = {
        "params": {name: one.to_dict() for name, one in hyperparameters.items()},
        "rnn": setting.rnn.to_dict(),
        "labels": setting.labels.to_dict(),
        "rates": rates,
        "positives": positives(records),
    }
    about |= {"masses": learnt} if (learnt := masses(records)) else {}
    return Studied(_outcome(request, loaded, records, about), {"index": loaded.fingerprint})


def _of_texts(request: StudyRequest) -> Studied:
    """A study of models that read texts."""
    from rnnreranker.evaluate.measures import name_of, parse_measures
    from rnnreranker.lab.study.chosen import by_degrees, with_chosen
    from rnnreranker.lab.study.comparisons import costs, words
    from rnnreranker.lab.study.dual.arms import DEFAULT, DualArm, dual_arms
    from rnnreranker.lab.study.dual.distances import mean_distances
    from rnnreranker.lab.study.late.arms import default_arms, late_arms
    from rnnreranker.lab.study.text.arms import text_arms
    from rnnreranker.lab.study.text.loaded import load_text_study
    from rnnreranker.lab.study.trainings import run_arms

    model, (_, given, loss) = ARMS[request.arms], request.training
    params: Any = given
    models, stages = list(request.cross_encoders), list(request.stages)
    arms: list[Any]
    if model == "late":
        arms = late_arms(request.late_arms or default_arms(models), params, models, request.teacher_temperature)
    elif model == "dual":
        arms = dual_arms(request.dual_arms or DEFAULT, params, loss.to_dict().get("alpha", 0.5))
    else:
        arms = text_arms(request.arms, params, stages, request.factors, request.losses)
    loaded = load_text_study(request, params, arms)
    records: Any = run_arms(loaded.setting, loaded.tasks, [None, *arms], Path(str(request.work)), request.jobs)
    others = {arm.name: arm.others for arm in arms}
    families = {arm.name: arm.family for arm in arms if isinstance(arm, DualArm) and arm.family}
    records, choices = with_chosen(records, families, name_of(parse_measures(request.measures)[0]))
    others |= {family: others[arm] for arm, family in families.items()}
    about = {
        "model": model,
        "encoder": request.encoder,
        "first_stages": stages,
        "test_candidates": request.test_candidates,
        "params": params.to_dict() | loss.to_dict(),
        "words": words(records),
    }
    if seconds := costs(records):
        about |= {"costs": seconds}
    if far := mean_distances(records, BASE):
        about |= {"distances": far}
    about |= {name: own for name, own in (("by_degrees", by_degrees(records)), ("choices", choices)) if own}
    if model == "late":
        about |= {"cross_encoders": models}
        about |= {"teacher_temperature": request.teacher_temperature}
    return Studied(_outcome(request, loaded, records, about, others), loaded.fingerprints)


def _outcome(
    request: StudyRequest, loaded: Any, records: Any, about: dict[str, Any], others: Any = None
) -> dict[str, Any]:
    from rnnreranker.lab.study.comparisons import by_query, chosen_steps, curves, study_rows

    tasks = loaded.tasks
    return {
        "arms": request.arms,
        "title": request.title or request.shown("topics"),
        "tasks": sorted({task.name for task in tasks}),
        "seeds": request.seeds,
        "training_queries": len(tasks[0].positives) - len(tasks[0].validation),
        "validation_queries": len(tasks[0].validation),
        **about,
        "rows": study_rows(records, loaded.groups, others),
        "queries": by_query(records),
        "curves": curves(records),
        "steps": chosen_steps(records),
    }
