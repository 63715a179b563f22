"""Runs measured topic by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.process.phases import phase
from rnnreranker.evaluate.measures import name_of, parse_measures
from rnnreranker.evaluate.protocols import Judged, apply_protocol, relevant_from, topics_that_count
from rnnreranker.evaluate.ties import DEFAULT_TIES, check_ties, cut, scored
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import ir_measures
    import pandas

JUDGED_DEPTH = 10
DEEP = 200  # a run is cut for measures with a cutoff below this
TOPICS = 500  # measured at a time: bounds the memory of runs as dictionaries


@dataclass(frozen=True, eq=False)
class Scores:
    """What R runs score on T topics in M measures.

    Attributes:
        runs: R names.
        topics: T query ids, in the order of the qrels.
        measures: M names, spelt by ir-measures.
        values: (R, T, M) float64.
        means: (R, M) float64, over the topics (the sum for counts such as NumRet, as trec_eval has it).
        judged: (R, T) float64 in [0, 1], the share of the first ten entries that is judged, at any grade.
        missing: (R,) int64, judged topics that a run has no entries for; they score 0, and Judged 1.
        protocol: which grades count, see `measures.apply_protocol`.
    """

    runs: tuple[str, ...]
    topics: tuple[str, ...]
    measures: tuple[str, ...]
    values: np.ndarray
    means: np.ndarray
    judged: np.ndarray
    missing: np.ndarray
    protocol: str

    def mean(self, measure: str, run: str | int = 0) -> float:
        """The mean of a measure over the topics."""
        return float(self.means[self._run(run), self._measure(measure)])

    def per_topic(self, measure: str, run: str | int = 0) -> np.ndarray:
        """(T,) float64: the values of a measure in the order of `topics`."""
        return self.values[self._run(run), :, self._measure(measure)]

    def frame(self) -> pandas.DataFrame:
        """A data frame with a row per run and topic: columns run, topic, and one per measure."""
        import pandas

        pairs = [(run, topic) for run in self.runs for topic in self.topics]
        table = pandas.DataFrame(pairs, columns=["run", "topic"])
        for column, measure in enumerate(self.measures):
            table[measure] = self.values[:, :, column].ravel()
        return table

    def _run(self, run: str | int) -> int:
        if isinstance(run, int):
            return run
        if run not in self.runs:
            raise InputError(f"run {run!r}: {nearest(run, self.runs)}")
        return self.runs.index(run)

    def _measure(self, measure: str) -> int:
        if measure not in self.measures:
            raise InputError(f"measure {measure!r} was not measured; {nearest(measure, self.measures)}")
        return self.measures.index(measure)


@phase("evaluating")
def evaluate(
    runs: Run | Mapping[str, Run] | Sequence[Run],
    qrels: pandas.DataFrame,
    measures: str | Iterable[str | ir_measures.Measure] = "nDCG@10 RR@10",
    protocol: str = "trec",
    common_topics: bool = False,
    ties: str = DEFAULT_TIES,
    *,
    topics: Sequence[str] | None = None,
) -> Scores:
    """The values of runs, topic by topic.

    All judged topics count (`strict-dropped` leaves some out): one that a run lacks scores 0. Nothing depends on the
    order of the queries in a run.

    Args:
        runs: one run, or several under names (a sequence is named "1", "2", ...).
        qrels: columns query_id (str), doc_id (str), relevance (int), every pair once.
        measures: see `parse_measures`.
        protocol: see `apply_protocol`.
        common_topics: only the judged topics that every run has entries for.
        ties: the order of equal scores, see `ties.check_ties`.
        topics: judged query ids to measure, in this order; None = all. From which grade on a document is relevant does
            not depend on them: hand over all judgements, not those of a fold.

    Raises:
        InputError: bad measures, protocol or ties, qrels without the columns or rows, a topic without judgements, a run
            none of whose queries is judged, no common topics.
    """
    from ir_measures import Judged as JudgedShare

    check_ties(ties)
    named = _named(runs)
    _check_qrels(qrels)
    wanted = parse_measures(measures)
    extra = JudgedShare @ JUDGED_DEPTH
    asked = wanted if extra in wanted else [*wanted, extra]
    names = [name_of(measure) for measure in asked]
    level, counted = relevant_from(qrels, protocol), topics_that_count(qrels, protocol)
    if topics is not None:
        if lost := sorted(set(topics) - set(qrels["query_id"])):
            some = ", ".join(lost[:3])
            raise InputError(f"topics: {len(lost)} have no judgements (first: {some}); expected judged ones")
        qrels = qrels[qrels["query_id"].isin(topics)]
        known = set(counted)
        counted = tuple(topic for topic in topics if topic in known)
    topics = counted
    passes = [(depth, part, apply_protocol(part, qrels, protocol, level)) for depth, part in _by_depth(asked)]
    there = np.stack([_has_entries(name, run, topics) for name, run in named.items()])
    if common_topics:
        kept = np.logical_and.reduce(there, axis=0)
        if not kept.any():
            raise InputError(f"no judged topic has entries in all {len(named)} runs; leave --common-topics out")
        topics, there = tuple(topic for topic, keep in zip(topics, kept, strict=True) if keep), there[:, kept]

    values = np.zeros((len(named), len(topics), len(asked)))
    for depth, part, groups in passes:
        shallow = [run if depth is None else cut(run, depth) for run in named.values()]
        columns = [names.index(name_of(measure)) for measure in part]
        values[:, :, columns] = _measure(shallow, topics, part, groups, ties)
    for column, measure in enumerate(asked):
        if measure.NAME == JudgedShare.NAME:
            values[:, :, column][~there] = 1.0  # a share of what a run has: of nothing, nothing is unjudged
    means = np.array([[_mean(measure, values[r, :, m]) for m, measure in enumerate(wanted)] for r in range(len(named))])
    return Scores(
        tuple(named),
        topics,
        tuple(names[: len(wanted)]),
        values[:, :, : len(wanted)],
        means,
        values[:, :, asked.index(extra)],
        (~there).sum(axis=1),
        protocol,
    )


def _named(runs: Run | Mapping[str, Run] | Sequence[Run]) -> dict[str, Run]:
    if isinstance(runs, Run):
        return {"run": runs}
    named = dict(runs) if isinstance(runs, Mapping) else {str(number): run for number, run in enumerate(runs, 1)}
    if not named:
        raise InputError("no runs: expected at least one")
    return named


def _check_qrels(qrels: pandas.DataFrame) -> None:
    lost = [name for name in ("query_id", "doc_id", "relevance") if name not in getattr(qrels, "columns", ())]
    if lost:
        raise InputError(f"qrels: no column {', '.join(lost)}; expected a data frame of query_id, doc_id, relevance")
    if not len(qrels):
        raise InputError("qrels: no judgements; expected at least one row")
    if qrels["relevance"].dtype.kind not in "iu":
        raise InputError(f"qrels: relevance is {qrels['relevance'].dtype}; expected whole numbers")


def _has_entries(name: str, run: Run, topics: Sequence[str]) -> np.ndarray:
    """(T,) bool: whether the run has entries for each topic."""
    filled = {qid for qid, count in zip(run.qids, np.diff(run.offsets), strict=True) if count}
    there = np.array([topic in filled for topic in topics])
    if not there.any():
        raise InputError(
            f"run {name}: none of its {len(run)} queries is judged (its ids: {', '.join(run.qids[:3])}; judged: "
            f"{', '.join(topics[:3])}); check that qrels and run are of the same topics"
        )
    return there


def _by_depth(measures: Sequence[ir_measures.Measure]) -> list[tuple[int | None, list[ir_measures.Measure]]]:
    """Measures with the rank below which nothing counts for them (None = all of a run does): shallow ones are quick."""
    by_depth: dict[int | None, list[ir_measures.Measure]] = {}
    for measure in measures:
        cutoff = measure.params.get("cutoff", DEEP)
        whole = cutoff >= DEEP or measure.params.get("judged_only")
        by_depth.setdefault(None if whole else cutoff, []).append(measure)
    return list(by_depth.items())


def _measure(
    runs: Sequence[Run],
    topics: Sequence[str],
    measures: Sequence[ir_measures.Measure],
    groups: Sequence[Judged],
    ties: str,
) -> np.ndarray:
    """(R, T, M) float64; 0 for topics that a run, or a group's judgements, lack."""
    import ir_measures

    values = np.zeros((len(runs), len(topics), len(measures)))
    columns = {name_of(measure): column for column, measure in enumerate(measures)}
    for first in range(0, len(topics), TOPICS):
        part = topics[first : first + TOPICS]
        rows = {topic: first + row for row, topic in enumerate(part)}
        entries = [scored(run, part, ties) for run in runs]
        for group in groups:
            grades = {topic: group.grades[topic] for topic in part if topic in group.grades}
            if not grades:
                continue
            evaluator = ir_measures.evaluator(group.measures, grades)
            column = {measure: columns[name_of(measure)] for measure in group.measures}
            for r, of_run in enumerate(entries):
                shared = {topic: ranked for topic, ranked in of_run.items() if topic in grades}
                if shared:
                    for metric in evaluator.iter_calc(shared):
                        values[r, rows[metric.query_id], column[metric.measure]] = metric.value
    return values


def _mean(measure: ir_measures.Measure, values: np.ndarray) -> float:
    aggregator = measure.aggregator()
    for value in values.tolist():
        aggregator.add(value)
    return float(aggregator.result())
