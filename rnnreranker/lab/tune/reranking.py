"""`tune_reranker`: search settings of rNN reranking for a query set, measure them, and vary some of them in sweeps."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors, VectorSource

FEW = 50  # topics below which the best of many trials is mostly luck


@dataclass(frozen=True, eq=False)
class Objective:
    """Topics that settings are judged by.

    Attributes:
        run: the candidates of the topics, which are ordered by a hash of their ids; queries: vectors of the topics.
        vectors: of documents, threads: of reranking, see `RnnReranker`.
        qrels, measure, protocol: as in `evaluate`.
        fingerprint: of the candidates of all judged topics.
        lacking: number of judged topics without candidates, which score 0 for all settings and are left out.
    """

    run: Run
    queries: QueryVectors
    vectors: VectorSource
    threads: int | None
    qrels: pandas.DataFrame
    measure: str
    protocol: str
    fingerprint: str
    lacking: int

    @classmethod
    def read(cls, request: TuneRequest, index: Any) -> Objective:
        """The objective of a request; index: the opened one.

        Raises:
            InputError: as `read_query_set`; no topic or no candidate is judged.
        """
        with phase("reading what to tune on"):
            run, queries, _, qrels = read_query_set(request, index, request.hits)
        protocol = protocol_of(qrels, request.protocol)
        judged = {*topics_that_count(qrels, protocol)}
        counts = dict(zip(run.qids, np.diff(run.offsets), strict=True))
        usable = [number for number, (qid, count) in enumerate(counts.items()) if qid in judged and count]
        if not usable:
            raise InputError(f"none of the {len(run)} queries with candidates is judged; check topics and qrels")
        check_judged(run, grades_of(qrels), "qrels")
        usable.sort(key=lambda number: hashlib.sha256(run.qids[number].encode()).digest())
        about = (protocol, fingerprint(run.to_dict()), len(judged) - len(usable))
        given = (queries, index.vectors, request.threads, qrels, request.measure)
        return cls(run.of_queries(usable), *given, *about)

    def part(self, chosen: np.ndarray) -> Objective:
        """The objective of some topics; chosen: (T,) bool."""
        return dataclasses.replace(self, run=self.run.of_queries(chosen))

    def folds(self, count: int) -> list[tuple[Objective, Objective]]:
        """The topics to train on and to test on of each fold; each topic is in one test part.

        Raises:
            InputError: fewer than 2 folds, or more folds than topics.
        """
        topics = len(self.run)
        if not 2 <= count <= topics:
            raise InputError(f"{count} folds of {topics} topics: expected 2 to the number of topics")
        fold_of = np.arange(topics) % count
        return [(self.part(fold_of != fold), self.part(fold_of == fold)) for fold in range(count)]

    def rerank(self, params: RnnParams) -> Run:
        """The run after reranking, with scores as files have them."""
        reranker = RnnReranker(self.vectors, params, threads=self.threads)
        reranker.inputs.compared = self.queries  # loading compares them once
        return reranker.rerank(self.run, self.queries).as_written()

    def of(self, run: Run) -> np.ndarray:
        """(T,) float64: the measure of each topic in a run of them."""
        scores = evaluate(run, self.qrels, self.measure, self.protocol, topics=self.run.qids)
        return scores.per_topic(scores.measures[0])

    def values(self, params: RnnParams | None) -> np.ndarray:
        """(T,) float64: the measure of each topic after reranking with the settings; None = in the first stage."""
        return self.of(self.run if params is None else self.rerank(params))

    def compared(self, tuned: RnnParams, default: RnnParams) -> Values:
        """The values of the first stage and of two settings."""
        several = {"base": None, "default": default, "tuned": tuned}
        return {name: self.values(params) for name, params in several.items()}

    @property
    def about(self) -> str:
        """A fingerprint of what the mean over the topics depends on, except the settings."""
        judged = sorted(self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist())
        vectors = (self.vectors.fingerprint, list(self.queries.qids), self.queries.vectors.astype("<f4").tobytes())
        return fingerprint(*vectors, self.fingerprint, self.run.qids, judged, self.measure, self.protocol)


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
    objective = Objective.read(request, index)
    count, trials = len(objective.run), request.trials
    lacking = f"; {objective.lacking} judged ones without candidates, left out" if objective.lacking else ""
    command.say(f"{command.counted(count, 'topic')} with judgements and candidates{lacking}")
    notice_if_few(count, "topics", FEW)
    space = request.searched.within(int(np.diff(objective.run.offsets).max()))
    said: Any = {"measure": request.measure, "protocol": objective.protocol, "topics": count}
    params, study, held_out = space.fixed, None, None
    if trials:
        kept: Any = {"seed": request.seed, "storage": request.storage}
        study, said["seed"] = tune(objective, space, trials, "all topics", **kept), request.seed
        params = study.params
        if apart:
            apart = dataclasses.replace(apart, protocol=objective.protocol)  # that which `said` names
            part = (study, count, Objective.read(apart, index).compared(params, space.fixed))
            held_out = held_out_of("test set", [part])
        else:
            held_out = cross_validate(objective, space, trials, request.folds, **kept)
    sweeps = sweep(request.sweeps, objective, params)
    return Tuned(request, params, said, {"index": objective.vectors.fingerprint}, study, held_out, sweeps)


def tune(objective: Objective, space: Space, trials: int, name: str, **kept: Any) -> Search:
    """Search the settings that rank the topics of an objective best; kept: seed and storage."""

    def mean(params: RnnParams) -> float:
        return float(objective.values(params).mean())

    return search(mean, space, trials, name=name, about=objective.about, **kept)


def cross_validate(objective: Objective, space: Space, trials: int, folds: int, **kept: Any) -> dict[str, Any]:
    """Tune on all folds but one and measure on that one, in turn; kept: seed and storage, see `tune`.

    Raises:
        InputError: as `Objective.folds` and `search`.
    """
    parts = []
    for fold, (train, test) in enumerate(objective.folds(folds)):
        made = tune(train, space, trials, f"fold {fold}", **kept)
        parts.append((made, len(train.run), test.compared(made.params, space.fixed)))
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


def sweep(names: Sequence[str], objective: Objective, params: RnnParams) -> dict[str, Rows]:
    """Name → rows of sweeps of an `Objective`, with value, low, high (95% bootstrap interval over topics).

    context: milliseconds (processor time a query), as in Figures 3 to 9 of paper 000. lambda: lam. grid: context, k.
    ablations: what, difference from all parts, difference_low, difference_high.
    """
    deepest = int(np.diff(objective.run.offsets).max())
    sizes = [size for size in CONTEXTS if size < deepest] + [deepest]
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
            run = objective.rerank(dataclasses.replace(params, **changed))
            spent = 1000 * (time.process_time() - begun) / len(run)
            row = {**changed, **_summary(objective.of(run))}
            made[name].append(row | ({"milliseconds": spent} if name == "context" else {}))
    return made


def ablations(objective: Objective, params: RnnParams) -> Rows:
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
