"""`tune_reranker`: search settings of rNN reranking for a query set, measure them, and vary some of them in sweeps."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import yaml

from rnnreranker.base import command
from rnnreranker.base.command import phase, progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.comparison import bootstrap_intervals, differences
from rnnreranker.evaluate.protocols import grades_of, protocol_of, topics_that_count
from rnnreranker.evaluate.scores import check_judged
from rnnreranker.lab.shared import judged_topics, read_query_set
from rnnreranker.lab.tune.request import Space, TuneRequest, check
from rnnreranker.lab.tune.trials import Rows, Search, Tuned, Values, held_out_of, notice_if_few, search
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run

FEW = 50  # topics below which the best of many trials is mostly luck


class Objective:
    """A query set that settings are judged by.

    Judged topics without candidates score 0 for all settings and are left out; `lacking` is their number.

    Args:
        request: a `TuneRequest`; index: the opened one.

    Attributes:
        run: candidates of the queries, with their fingerprint; vectors: of documents; queries: vectors of the queries.
        topics: judged query ids with candidates, ordered by a hash of the id.

    Raises:
        InputError: as `read_query_set`; no topic or no candidate is judged.
    """

    def __init__(self, request: TuneRequest, index: Any) -> None:
        with phase("reading what to tune on"):
            self.run, self.queries, _, self._qrels = read_query_set(request, index, request.hits)
        self.vectors, self.threads, self.measure = index.vectors, request.threads, request.measure
        self.fingerprint = fingerprint(self.run.to_dict())
        self.protocol = protocol_of(self._qrels, request.protocol)
        judged = set(topics_that_count(self._qrels, self.protocol))
        usable = [qid for qid in self.run if qid in judged and len(self.run.ranked(qid))]
        if not usable:
            raise InputError(f"none of the {len(self.run)} queries with candidates is judged; check topics and qrels")
        check_judged(self.run, grades_of(self._qrels), "qrels")
        self.lacking, self.deepest = len(judged) - len(usable), int(np.diff(self.run.offsets).max(initial=1))
        self.topics = tuple(sorted(usable, key=lambda qid: (hashlib.sha256(qid.encode()).digest(), qid)))

    def values(self, params: RnnParams | None, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of each topic after reranking with the settings; None = in the first stage."""
        topics = self.topics if topics is None else topics
        return self.of(self.run if params is None else self.rerank(params, topics), topics)

    def of(self, run: Run, topics: Sequence[str]) -> np.ndarray:
        """(T,) float64: the measure of each topic in a run."""
        scores = evaluate(run, self._qrels, self.measure, self.protocol, topics=topics)
        return scores.per_topic(scores.measures[0])

    def rerank(self, params: RnnParams, topics: Sequence[str]) -> Run:
        """The run of some topics after reranking, with scores as files have them."""
        reranker = RnnReranker(self.vectors, params, threads=self.threads)
        reranker.inputs.compared = self.queries  # loading compares them once
        chosen = set(topics)
        return reranker.rerank(self.run.of_queries([qid in chosen for qid in self.run.qids]), self.queries).as_written()

    def compared(self, tuned: RnnParams, default: RnnParams, topics: Sequence[str] | None = None) -> Values:
        """The values of the first stage and of two settings."""
        several = {"base": None, "default": default, "tuned": tuned}
        return {name: self.values(params, topics) for name, params in several.items()}

    def about(self, topics: Sequence[str]) -> str:
        """A fingerprint of what the mean over some topics depends on, except the settings."""
        judged = sorted(self._qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist())
        asked = (list(self.queries.qids), self.queries.vectors.astype("<f4").tobytes(), list(topics), judged)
        return fingerprint(self.vectors.fingerprint, self.fingerprint, *asked, self.measure, self.protocol)

    def folds(self, count: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """(train, test) topics of each fold; each topic is in one test part.

        Raises:
            InputError: fewer than 2 folds, or more folds than topics.
        """
        if not 2 <= count <= len(self.topics):
            raise InputError(f"{count} folds of {len(self.topics)} topics: expected 2 to the number of topics")
        tests = [self.topics[fold::count] for fold in range(count)]
        return [(tuple(qid for qid in self.topics if qid not in set(test)), test) for test in tests]


def tune_reranker(request: TuneRequest) -> Tuned:
    """Search the settings of rNN reranking on a query set and measure them on topics that the search did not see.

    Raises:
        InputError: all faults of the arguments, files that do not belong together, topics both searched and tested.
        UnavailableError, MissingDependencyError: an index, an encoder or optuna is not available here.
    """
    check(request)
    from rnnreranker.data.topics import check_held_out
    from rnnreranker.index.opening import open_index

    index: Any = open_index(request.index)  # type: ignore[arg-type]  # `check` refuses None
    if apart := request.apart:
        check_held_out(judged_topics(request), judged_topics(apart))
    objective = Objective(request, index)
    count = len(objective.topics)
    lacking = f"; {objective.lacking} judged ones without candidates, left out" if objective.lacking else ""
    command.say(f"{command.counted(count, 'topic')} with judgements and candidates{lacking}")
    notice_if_few(count, "topics", FEW)
    space, trials = request.searched.within(objective.deepest), request.trials
    said: Any = {"measure": request.measure, "protocol": objective.protocol, "topics": count}
    params, study, held_out = space.fixed, None, None
    if trials:
        kept: Any = {"seed": request.seed, "storage": request.storage}
        study, said["seed"] = tune(objective, space, trials, **kept), request.seed
        params = study.params
        if apart:
            part = (study, count, Objective(apart, index).compared(params, space.fixed))
            held_out = held_out_of("test set", [part])
        else:
            held_out = cross_validate(objective, space, trials, request.folds, **kept)
    sweeps = sweep(request.sweeps, objective, params)
    return Tuned(request, params, said, {"index": objective.vectors.fingerprint}, study, held_out, sweeps)


def tune(
    objective: Objective,
    space: Space,
    trials: int,
    *,
    topics: tuple[str, ...] | None = None,
    name: str = "all topics",
    **kept: Any,
) -> Search:
    """Search the settings that rank some topics best (None = all); kept: seed and storage."""
    chosen = objective.topics if topics is None else topics

    def mean(params: RnnParams) -> float:
        return float(objective.values(params, chosen).mean())

    return search(mean, space, trials, name=name, about=objective.about(chosen), **kept)


def cross_validate(objective: Objective, space: Space, trials: int, folds: int, **kept: Any) -> dict[str, Any]:
    """Tune on all folds but one and measure on that one, in turn; kept: seed and storage, see `tune`.

    Raises:
        InputError: as `Objective.folds` and `search`.
    """
    parts = []
    for fold, (train, test) in enumerate(objective.folds(folds)):
        made = tune(objective, space, trials, topics=train, name=f"fold {fold}", **kept)
        parts.append((made, len(train), objective.compared(made.params, space.fixed, test)))
    return held_out_of(f"{folds}-fold cross-validation", parts)


CONTEXTS = (10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1000)
LAMBDAS = tuple(round(0.05 * step, 2) for step in range(21))
NEIGHBOURS = (3, 5, 7, 10, 15, 21, 30)
WHOLE = "all parts"  # the row that ablations are compared with
# What is left out of similarity, or changed.
PARTS = """
weights all equal: {weight: binary}
no extension (tau 0): {tau: 0.0}
no expansion (k_exp 1): {k_exp: 1}
Jaccard alone (lambda 0): {lam: 0.0}
no Jaccard (lambda 1): {lam: 1.0}
raw scale: {scale: none}
printed variant: {variant: paper}
no rank: {rank_weight: 0.0}
no run scores: {run_weight: 0.0}
no inner products: {query_weight: 0.0}
the query the only probe: {probes: 1}
no smoothing: {smoothing: 0.0}
"""


def sweep(names: Sequence[str], objective: Any, params: RnnParams) -> dict[str, Rows]:
    """Name → rows of sweeps of an `Objective`, with value, low, high (95% bootstrap interval over topics).

    context: milliseconds (processor time a query), as in Figures 3 to 9 of paper 000. lambda: lam. grid: context, k.
    ablations: what, difference from all parts, difference_low, difference_high.
    """
    sizes = [size for size in CONTEXTS if size < objective.deepest] + [objective.deepest]
    changes: dict[str, list[dict[str, Any]]] = {
        "context": [{"context": size} for size in sizes],
        "lambda": [{"lam": lam} for lam in LAMBDAS],
        "grid": [{"context": size, "k": k} for size in sizes for k in NEIGHBOURS if k < size],
    }
    made: dict[str, Rows] = {}
    for name in names:
        if name == "ablations":
            made[name] = ablations(objective, params)
            continue
        made[name] = []
        for changed in progress(changes[name], unit="settings", what=name):
            begun = time.process_time()
            run = objective.rerank(dataclasses.replace(params, **changed), objective.topics)
            spent = 1000 * (time.process_time() - begun) / len(objective.topics)
            row = {**changed, **_summary(objective.of(run, objective.topics))}
            made[name].append(row | ({"milliseconds": spent} if name == "context" else {}))
    return made


def ablations(objective: Any, params: RnnParams) -> Rows:
    """What is lost without each part of the settings that can be left out."""
    variants = {WHOLE: params}
    for what, changed in yaml.safe_load(PARTS).items():
        with contextlib.suppress(InputError):  # a mixture keeps its only term
            if (variant := dataclasses.replace(params, **changed)) != params:
                variants[what] = variant
    shown = progress(variants.items(), unit="variants", what="ablations")
    measured = {what: objective.values(one) for what, one in shown}
    gaps = differences(measured, [(what, WHOLE) for what in measured])
    return [
        {"what": what, **_summary(own), "difference": gap["difference"]}
        | {f"difference_{end}": gap[end] for end in ("low", "high")}
        for (what, own), gap in zip(measured.items(), gaps, strict=True)
    ]


def _summary(values: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_intervals(values[None])[0]
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}
