"""Measures of runs, topic by topic."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.process.phases import phase
from rnnreranker.data.qrels import qrels_of
from rnnreranker.evaluate.measures import name_of, parse_measures
from rnnreranker.evaluate.protocols import Judged, apply_protocol, grades_of, protocol_of, topics_that_count
from rnnreranker.runs import Run
from rnnreranker.runs.arrow import as_numpy, strings
from rnnreranker.runs.ordering import by_docid

if TYPE_CHECKING:
    import ir_measures
    import pandas

    from rnnreranker.data.qrels import Qrels

JUDGED_DEPTH = 10
TOPICS = 500  # measured at a time: bounds the memory of runs as dictionaries
TO_LAST_JUDGED = {"nDCG", "RR", "AP", "R", "P", "Success", "Rprec", "Bpref"}  # nothing below it changes their values
GDEVAL = 4  # its highest grade


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of R runs on T topics in M measures.

    Attributes:
        values: (R, T, M) float64; topics in the order of the qrels.
        means: (R, M) float64 over the topics (sums of counts such as NumRet, as in trec_eval).
        judged: (R, T) float64, the judged share of the first ten entries.
        missing: (R,) int64, judged topics without entries; they score 0, and Judged 1.
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
        """The mean of a measure."""
        return float(self.means[self._run(run), self._measure(measure)])

    def per_topic(self, measure: str, run: str | int = 0) -> np.ndarray:
        """(T,) float64: the values of a measure."""
        return self.values[self._run(run), :, self._measure(measure)]

    def frame(self) -> pandas.DataFrame:
        """A row per run and topic: columns run, topic, and one per measure."""
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
    qrels: Qrels,
    measures: str | Iterable[str | ir_measures.Measure] = "nDCG@10 RR@10",
    protocol: str | None = None,
    common_topics: bool = False,
    *,
    topics: Sequence[str] | None = None,
) -> Scores:
    """The values of runs, topic by topic.

    All judged topics count (`strict-dropped` drops some): one that a run lacks scores 0. Documents are in trec_eval's
    order: by float32 score, then by docid, both descending.

    Args:
        runs: one run, or several by name (a sequence is named "1", "2", ...).
        qrels: see `qrels_of`; measures: see `parse_measures`.
        protocol: see `apply_protocol`; None = that of the judgements.
        common_topics: only the judged topics that every run has entries for.
        topics: judged query ids to measure, in this order; None = all.

    Raises:
        InputError: bad measures, protocol or judgements, a topic without judgements, a run none of whose queries is
            judged, no common topics.
    """
    from ir_measures import Judged as JudgedShare

    named = _named(runs)
    qrels = qrels_of(qrels)
    wanted = parse_measures(measures)
    extra = JudgedShare @ JUDGED_DEPTH
    asked = wanted if extra in wanted else [*wanted, extra]
    _check_gdeval(wanted, qrels)
    names = [name_of(measure) for measure in asked]
    protocol = protocol_of(qrels, protocol)
    counted = topics_that_count(qrels, protocol)
    if topics is not None:
        if lost := sorted(set(topics) - set(qrels["query_id"])):
            some = ", ".join(lost[:3])
            raise InputError(f"topics: {len(lost)} have no judgements (first: {some}); expected judged ones")
        qrels = qrels[qrels["query_id"].isin(topics)]
        known = set(counted)
        counted = tuple(topic for topic in topics if topic in known)
    topics = counted
    there = np.stack([_has_entries(name, run, topics) for name, run in named.items()])
    if common_topics:
        kept = np.logical_and.reduce(there, axis=0)
        if not kept.any():
            raise InputError(f"no judged topic has entries in all {len(named)} runs; leave --common-topics out")
        topics, there = tuple(topic for topic, keep in zip(topics, kept, strict=True) if keep), there[:, kept]

    values = np.zeros((len(named), len(topics), len(asked)))
    groups, judged = apply_protocol(asked, qrels, protocol), judged_documents(qrels)
    for r, run in enumerate(named.values()):
        values[r] = _measure(run, topics, asked, groups, judged)
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


def _has_entries(name: str, run: Run, topics: Sequence[str]) -> np.ndarray:
    """(T,) bool: whether the run has entries for each topic."""
    filled = {qid for qid, count in zip(run.qids, np.diff(run.offsets), strict=True) if count}
    there = np.array([topic in filled for topic in topics])
    if not there.any():
        lacking = "has entries" if set(run.qids) & set(topics) else "is judged"
        raise InputError(
            f"run {name}: none of its {len(run)} queries {lacking} (its ids: {', '.join(run.qids[:3])}; judged: "
            f"{', '.join(topics[:3])}); check that qrels and run are of the same topics"
        )
    return there


def _check_gdeval(measures: Sequence[ir_measures.Measure], qrels: pandas.DataFrame) -> None:
    highest = int(qrels["relevance"].max())
    wrong = [str(one) for one in measures if one.NAME == "ERR" or one.params.get("dcg") == "exp-log2"]
    if wrong and highest > GDEVAL:
        raise InputError(f"{', '.join(wrong)}: gdeval knows grades up to {GDEVAL}, the highest here is {highest}")


def notice_unjudged(
    runs: Mapping[str, Run], judged: Mapping[str, Collection[str]], so: str = "every measure is 0"
) -> None:
    """Report every run without judged documents; judged: query id → docids; so: the consequence."""
    for name, run in runs.items():
        if shown := _unjudged(run, judged):
            notice(f"{name}: no judged docid is in the run, so {so} ({shown}); check that both are of one collection")


def check_judged(run: Run, judged: Mapping[str, Collection[str]], name: str) -> None:
    """Raise InputError if no docid of the run is judged for its query."""
    if shown := _unjudged(run, judged):
        raise InputError(
            f"{name}: no judged docid is among the candidates ({shown}); check that both are of one collection"
        )


def _unjudged(run: Run, judged: Mapping[str, Collection[str]]) -> str:
    """Examples in words if no docid of the run is judged; else ""."""
    qids = [qid for qid, count in zip(run, np.diff(run.offsets), strict=True) if judged.get(qid) and count]
    if not qids or any(not set(judged[qid]).isdisjoint(run.ranked(qid)) for qid in qids):
        return ""
    return f"its first docid: {run.ranked(qids[0])[0]}; judged: {min(judged[qids[0]])}"


def judged_documents(qrels: pandas.DataFrame) -> dict[str, set[str]]:
    """Query id → its judged docids, at any grade."""
    return {qid: set(grades) for qid, grades in grades_of(qrels).items()}


def _as_trec_eval(run: Run) -> np.ndarray:
    """(L,) int32: the rows of a run in trec_eval's order: by float32 score, then by docid, both descending."""
    with np.errstate(over="ignore"):
        single = run.scores.astype(np.float32)
    queries = run.queries
    same = (single[1:] == single[:-1]) & (queries[1:] == queries[:-1])
    if not same.any():
        return run.rows
    backwards = run.rows[::-1]
    rows: np.ndarray = backwards[by_docid(same[::-1], run.ids.names, backwards)][::-1]
    return rows


def _measure(
    run: Run,
    topics: Sequence[str],
    measures: Sequence[ir_measures.Measure],
    groups: Sequence[Judged],
    judged: Mapping[str, set[str]],
) -> np.ndarray:
    """(T, M) float64; 0 for topics that the run or a group's judgements lack.

    Numbers replace topic ids, as gdeval takes no other ids. Scores fall by 1 from rank to rank, so every tool keeps the
    order.
    """
    import ir_measures

    values = np.zeros((len(topics), len(measures)))
    names = [name_of(measure) for measure in measures]
    query_of = {qid: query for query, qid in enumerate(run.qids)}
    begins = run.offsets[:-1]
    rows = _as_trec_eval(run)
    to_judged = np.minimum(_after_judged(run, rows, judged), begins + _depth(measures))
    others = [measure for measure in measures if measure.NAME not in TO_LAST_JUDGED]
    ends = np.minimum(np.maximum(to_judged, begins + _depth(others)), run.offsets[1:])
    for first in range(0, len(topics), TOPICS):
        numbers = {topic: str(number) for number, topic in enumerate(topics[first : first + TOPICS], first)}
        there = [topic for topic in numbers if topic in query_of]
        spans = [slice(begins[query_of[topic]], ends[query_of[topic]]) for topic in there]
        docids = iter(run.ids.of_rows(np.concatenate([rows[:0], *(rows[span] for span in spans)])).tolist())
        ranked: dict[str, dict[str, Any]] = {
            numbers[topic]: {next(docids): score for score in range(span.stop - span.start, 0, -1)}
            for topic, span in zip(there, spans, strict=True)
            if span.stop > span.start
        }
        for group in groups:
            grades = {number: group.grades[topic] for topic, number in numbers.items() if topic in group.grades}
            columns: dict[ir_measures.Measure, list[int]] = {}  # P@5 and P(rel=1)@5 are one for ir-measures
            for measure in group.measures:
                columns.setdefault(measure, []).append(names.index(name_of(measure)))
            if shared := {number: entries for number, entries in ranked.items() if number in grades}:
                for metric in ir_measures.iter_calc(list(columns), grades, shared):
                    values[int(metric.query_id), columns[metric.measure]] = metric.value
    return values


def _after_judged(run: Run, rows: np.ndarray, judged: Mapping[str, set[str]]) -> np.ndarray:
    """(Q,) int64: the entry behind the last judged one of each query, or behind the first."""
    import pyarrow.compute

    every = {docid: code for code, docid in enumerate(dict.fromkeys(docid for of in judged.values() for docid in of))}
    codes = as_numpy(pyarrow.compute.index_in(run.ids.names, strings(every)).fill_null(-1))[rows]
    entries = np.flatnonzero(codes >= 0)
    queries = run.queries[entries]
    pairs = [query * len(every) + every[docid] for query, qid in enumerate(run.qids) for docid in judged.get(qid, ())]
    own = np.isin(queries * len(every) + codes[entries], np.array(pairs, dtype=np.int64))
    ends = np.minimum(run.offsets[:-1] + 1, run.offsets[1:])
    np.maximum.at(ends, queries[own], entries[own] + 1)
    return ends


def _depth(measures: Sequence[ir_measures.Measure]) -> int:
    """The rank below which nothing counts for any of the measures."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    whole = None in cutoffs or any(measure.params.get("judged_only") for measure in measures)
    return sys.maxsize // 2 if whole else max(cutoffs, default=0)


def _mean(measure: ir_measures.Measure, values: np.ndarray) -> float:
    aggregator = measure.aggregator()
    for value in values.tolist():
        aggregator.add(value)
    return float(aggregator.result())
