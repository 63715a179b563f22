"""`study`: train each arm, test and compare."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.jobs import CLUSTERS, do_parts
from rnnreranker.base.pages import render
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.study.request import BASE, Arm, StudyRequest, check
from rnnreranker.lab.study.tasks import Task, tasks_of
from rnnreranker.lab.study.trial import Studied
from rnnreranker.train.request import notice_doubts

if TYPE_CHECKING:
    import pandas


RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # where the buckets of ranks begin
SURE = 0.05  # p after Holm's correction, below which a difference is called one
MEANS = ("words", "costs", "distances", "by_degrees")  # entries of records that are averaged
WHEN = ("before", "after")  # training: of the probability of positives
CHOICE = "nDCG@10"  # of validation: what learning rates and arms of a family are chosen by

Records = Sequence[Mapping[str, Any]]


def study(request: StudyRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """Train a model in several ways with seeds, test on queries not trained on, and compare.

    Returns:
        Plain values: `arms`, `params`, `rows` (see `study_rows`), `queries`, `curves`, `steps` and further results of
        the arms. Fingerprints of what was read.

    Raises:
        InputError: invalid arguments, or files that do not belong together.
        UnavailableError, MissingDependencyError: an encoder or package that is not available here.
    """
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
    records, choices = with_chosen(run_arms(studied, tasks, [None, *arms]), families)
    table: Any = per_query(records)
    params: Any = request.training.params.described()
    if request.fixed:  # by labels, of arms with own rates
        own = [arm for arm in reversed(arms) if arm.own.rates in ("", arm.name)]
        unknown = {"learning_rate": None} if rates else {}  # it differs by task
        params = {arm.method.name: arm.params.described() | unknown for arm in own}
    outcome = {
        "arms": request.compares or request.written.name,
        "title": request.title or request.shown("topics"),
        "tasks": sorted({task.name for task in tasks}),
        "seeds": request.seeds,
        "protocol": studied.protocol,
        "training_queries": tasks[0].part(validation=False)["query_id"].nunique(),
        "validation_queries": len(tasks[0].validation),
        "encoder": request.encoder,
        "test_candidates": request.test_candidates,
        "model": request.written.name,
        "first_stages": list(request.stages),
        "params": params,
        **observations(records),
        **{name: own for name, own in (("rates", rates), ("choices", choices)) if own},
        "rows": study_rows(table, tasks[0].groups, others),
        "queries": {arm: table[arm].round(4).to_dict() for arm in table.columns.unique(0)},
    }
    unchanged = ", ".join(
        f"{own['unchanged']} of {own['trainings']} trainings of {arm}"
        for arm, own in outcome["steps"].items()
        if own["unchanged"]
    )
    doubt = f"no step was better than the start in {unchanged}" if unchanged else ""
    notice_doubts(min(len(task.validation) for task in tasks), doubt)
    return outcome, {"index": studied.index}


def conclusion(rows: Records) -> str:
    """A sentence: the best trained arm by the first measure over all test queries, and its comparisons."""
    measure = rows[0]["measure"]
    mine = [row for row in rows if (row["measure"], row["group"]) == (measure, "all") and row["arm"] != BASE]
    best = max(mine, key=lambda row: row["value"])
    return render("lab", "conclusion.txt.j2", best=best, arms=len(mine), sure=SURE).strip()


def load_study(request: StudyRequest) -> tuple[Studied, list[Task]]:
    """What all trials of a checked request share, and its tasks for every seed.

    Raises:
        InputError: unreadable files, files that do not belong together, an index without a needed part.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    tasks, tested = tasks_of(request, topics_of(request.topics), qrels_of(request.qrels))
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
    tried_on: dict[str, dict[str, dict[str, Any]]] = {}
    by_name, names = {f"{rate:g}": rate for rate in sorted(rates)}, [task.name for task in tasks]
    for arm in map(studied.arms.__getitem__, studied.request.rated):
        if arm.own.rates in ("", arm.name):
            tried = [
                dataclasses.replace(arm, name=name, rates=dict.fromkeys(names, rate)) for name, rate in by_name.items()
            ]
            made = chosen(run_arms(studied, tasks, tried))
            tried_on[arm.name] = {task: {"rate": by_name[one.pop("arm")], **one} for task, one in made.items()}
            taken: Mapping[str, float] = {name: one["rate"] for name, one in tried_on[arm.name].items()}
        else:
            taken = studied.arms[arm.own.rates].rates
        studied.arms[arm.name] = dataclasses.replace(arm, rates=taken)
    return {name: tried_on[name] for name in studied.arms if name in tried_on}


def per_query(records: Records) -> pandas.DataFrame:
    """Means over the seeds: one row a query, columns (arm, measure).

    Raises:
        InputError: the arms have different test queries.
    """
    import pandas

    rows = [
        (one["arm"], measure, qid, value)
        for one in records
        for measure, values in one["values"].items()
        for qid, value in values.items()
    ]
    table = pandas.DataFrame(rows, columns=["arm", "measure", "query", "value"])
    table = table.pivot_table("value", "query", ["arm", "measure"], sort=False)
    if table.isna().any(axis=None):
        raise InputError("the arms were not tested on the same queries; give all of them the same tasks and seeds")
    return table


def study_rows(
    table: pandas.DataFrame, groups: Mapping[str, str], others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """One row for each arm, measure and group of test queries.

    Args:
        table: of `per_query`; groups: test query → group; others: arm → the arms that it is compared with.

    Returns:
        Rows with arm, measure, group, queries, value (mean over queries of the mean over seeds) and `against`: other
        arm → row of `differences`. Holm's correction covers all comparisons of a measure and group.
    """
    arms, measures = (table.columns.unique(level).tolist() for level in (0, 1))
    pairs = [(arm, other) for arm in arms for other in others.get(arm, ())]
    of, rows = table.index.map(lambda qid: groups.get(qid)), []
    for group in [None, *sorted(set(groups.values()))]:
        chosen = table if group is None else table[of == group]
        for measure in measures:
            columns = {arm: chosen[arm, measure].to_numpy() for arm in arms}
            gaps = dict(zip(pairs, differences(columns, pairs), strict=True))
            for arm in arms:
                against = {other: gap for (one, other), gap in gaps.items() if one == arm}
                about = {"arm": arm, "measure": measure, "group": group or "all", "queries": len(chosen)}
                rows.append({**about, "value": float(columns[arm].mean()), "against": against})
    return rows


def observations(records: Records) -> dict[str, Any]:
    """Further known results by arm.

    words, costs, distances, by_degrees: means; masses: of each task; positives: mean probability by rank (000, Figure
    11); curves: step, loss and each validation measure, means over the trainings, since folds of unequal size have
    slightly different steps; steps: trainings, `unchanged` (trainings whose best step is 0), means of best_step, steps
    and seconds.
    """
    import pandas

    table, made = pandas.DataFrame(list(records)), dict[str, Any](words={}, curves={}, steps={})

    def having(name: str) -> Iterator[tuple[Any, Any]]:
        """Each arm with its records that have an entry."""
        yield from table.dropna(subset=name).groupby("arm", sort=False) if name in table else ()

    for name in MEANS:
        for arm, own in having(name):
            means = {key: np.mean([one[key] for one in own[name]], axis=0).tolist() for key in own[name].iloc[0]}
            made.setdefault(name, {})[arm] = means
    for arm, own in having("positives"):
        buckets = {when: _buckets(np.concatenate([one[when] for one in own["positives"]])) for when in WHEN}
        made.setdefault("positives", {})[arm] = buckets
    for arm, own in having("mass"):
        made.setdefault("masses", {})[arm] = own.groupby("task", sort=False)["mass"].agg(list).to_dict()
    for arm, own in having("history"):
        several = [pandas.DataFrame(one).drop(columns="inverse_temperature", errors="ignore") for one in own["history"]]
        curve = pandas.concat(several).groupby(level=0).mean()[: min(map(len, several))]
        made["curves"][arm] = curve.to_dict("list")
        unchanged = int((own["best_step"] == 0).sum())
        steps = own[["best_step", "steps", "seconds"]].mean().to_dict()
        made["steps"][arm] = {"trainings": len(own), "unchanged": unchanged, **steps}
    return made


def chosen(records: Records) -> dict[str, dict[str, Any]]:
    """Task → the arm with the highest mean nDCG@10 of validation over the seeds, and those means by arm.

    Of equal arms the first is taken.
    """
    import pandas

    rows = [(one["task"], one["arm"], one["validation"][CHOICE]) for one in records]
    table: Any = pandas.DataFrame(rows, columns=["task", "arm", "value"])
    means = table.pivot_table("value", "arm", "task", sort=False)
    return {task: {"arm": own.idxmax(), "validation": own.to_dict()} for task, own in means.items()}


def with_chosen(records: Records, families: Mapping[str, str]) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """The records, with those of the arm that validation chooses in each family, task by task, and the choices.

    families: arm → its family. The choices are family → task → as `chosen`.
    """
    more, choices = list(records), dict[str, Any]()
    for family in dict.fromkeys(families.values()):
        mine = [one for one in records if families.get(one["arm"]) == family]
        choices[family] = chosen(mine)
        more += [{**one, "arm": family} for one in mine if one["arm"] == choices[family][one["task"]]["arm"]]
    return more, choices


def _buckets(pairs: np.ndarray) -> list[list[float]]:
    """[first rank, number, mean share] of each bucket of pairs of rank and share."""
    import pandas

    ranks, shares = pairs.reshape(-1, 2).T
    buckets = pandas.Series(shares).groupby(np.searchsorted(RANKS, ranks, side="right") - 1)
    return [[float(RANKS[number]), len(own), float(own.mean())] for number, own in buckets]  # type: ignore[call-overload]
