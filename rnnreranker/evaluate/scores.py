"""Measures of runs, topic by topic."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import notice, phase
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.data.qrels import qrels_of
from rnnreranker.evaluate.measures import name_of, parse_measures
from rnnreranker.evaluate.protocols import Judged, apply_protocol, grades_of, protocol_of, topics_that_count
from rnnreranker.runs import Run

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
        missing: (R,) int64, judged topics without entries; they score 0.
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
        return float(self.means[_number(run, self.runs, "run"), _number(measure, self.measures, "measure")])

    def per_topic(self, measure: str, run: str | int = 0) -> np.ndarray:
        """(T,) float64: the values of a measure."""
        return self.values[_number(run, self.runs, "run"), :, _number(measure, self.measures, "measure")]

    def frame(self) -> pandas.DataFrame:
        """A row per run and topic: columns run, topic, and one per measure."""
        import pandas

        pairs = pandas.MultiIndex.from_product([self.runs, self.topics], names=["run", "topic"])
        values = self.values.reshape(len(pairs), len(self.measures))
        return pandas.DataFrame(values, pairs, list(self.measures)).reset_index()


def _number(name: str | int, known: Sequence[str], what: str) -> int:
    if isinstance(name, str) and name not in known:
        raise InputError(f"{what} {name!r}: {nearest(name, known)}")
    return known.index(name) if isinstance(name, str) else name


@phase("evaluating")
def evaluate(
    runs: Run | Mapping[str, Run],
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
        runs: one run, or several by name.
        qrels: see `qrels_of`; measures: see `parse_measures`.
        protocol: see `apply_protocol`; None = that of the judgements.
        common_topics: only the judged topics that every run has entries for.
        topics: judged query ids to measure, in this order; None = all.

    Raises:
        InputError: bad measures, protocol or judgements, a topic without judgements, a run none of whose queries is
            judged, no common topics.
    """
    from ir_measures import Judged as JudgedShare

    named = {"run": runs} if isinstance(runs, Run) else dict(runs)
    if not named:
        raise InputError("no runs: expected at least one")
    qrels, wanted = qrels_of(qrels), parse_measures(measures)
    highest = int(qrels["relevance"].max())
    gdeval = [str(one) for one in wanted if one.NAME == "ERR" or one.params.get("dcg") == "exp-log2"]
    if gdeval and highest > GDEVAL:
        raise InputError(f"{', '.join(gdeval)}: gdeval knows grades up to {GDEVAL}, the highest here is {highest}")
    protocol = protocol_of(qrels, protocol)
    counted = topics_that_count(qrels, protocol)
    if topics is not None:
        if lost := sorted(set(topics) - set(qrels["query_id"])):
            some = ", ".join(lost[:3])
            raise InputError(f"topics: {len(lost)} have no judgements (first: {some}); expected judged ones")
        qrels, known = qrels[qrels["query_id"].isin(topics)], set(counted)
        counted = tuple(topic for topic in topics if topic in known)
    there = np.stack([_has_entries(name, run, counted) for name, run in named.items()])
    if common_topics:
        kept = there.all(axis=0)
        if not kept.any():
            raise InputError(f"no judged topic has entries in all {len(named)} runs; leave --common-topics out")
        counted, there = tuple(np.array(counted, dtype=object)[kept]), there[:, kept]

    extra = JudgedShare @ JUDGED_DEPTH
    asked = wanted if extra in wanted else [*wanted, extra]
    groups, judged = apply_protocol(asked, qrels, protocol), grades_of(qrels)
    values = np.stack([_measure(run, counted, asked, groups, judged) for run in named.values()])
    judged_share, values = values[:, :, asked.index(extra)], values[:, :, : len(wanted)]
    means = np.array([[_mean(one, of[:, m]) for m, one in enumerate(wanted)] for of in values])
    names = tuple(map(name_of, wanted))
    return Scores(tuple(named), counted, names, values, means, judged_share, (~there).sum(axis=1), protocol)


def _has_entries(name: str, run: Run, topics: Sequence[str]) -> np.ndarray:
    """(T,) bool: whether the run has entries for each topic."""
    filled = set(itertools.compress(run.qids, np.diff(run.offsets)))
    there = np.array([topic in filled for topic in topics])
    if not there.any():
        lacking = "has entries" if set(run.qids) & set(topics) else "is judged"
        raise InputError(
            f"run {name}: none of its {len(run)} queries {lacking} (its ids: {', '.join(run.qids[:3])}; judged: "
            f"{', '.join(topics[:3])}); check that qrels and run are of the same topics"
        )
    return there


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
    qids = [qid for qid in itertools.compress(run.qids, np.diff(run.offsets)) if judged.get(qid)]
    if not qids or any(not set(judged[qid]).isdisjoint(run.ranked(qid)) for qid in qids):
        return ""
    return f"its first docid: {run.ranked(qids[0])[0]}; judged: {min(judged[qids[0]])}"


def _measure(
    run: Run,
    topics: Sequence[str],
    measures: Sequence[ir_measures.Measure],
    groups: Sequence[Judged],
    judged: Mapping[str, Collection[str]],
) -> np.ndarray:
    """(T, M) float64; 0 for topics that the run or a group's judgements lack.

    Numbers replace topic ids, as gdeval takes no other ids. Scores fall by 1 from rank to rank, so every tool keeps the
    order.
    """
    import ir_measures

    values = np.zeros((len(topics), len(measures)))
    query_of = {qid: query for query, qid in enumerate(run.qids)}
    deepest, floor = _depth(measures), _depth([one for one in measures if one.NAME not in TO_LAST_JUDGED])
    for first in range(0, len(topics), TOPICS):
        numbers = {topic: str(number) for number, topic in enumerate(topics[first : first + TOPICS], first)}
        ranked: dict[str, dict[str, Any]] = {}
        for topic in numbers:
            if (query := query_of.get(topic)) is None:
                continue
            begin, known = run.offsets[query], judged.get(topic, ())
            docids = run.ids.of_rows(run.rows[begin : min(begin + deepest, run.offsets[query + 1])]).tolist()
            last = max((rank for rank, docid in enumerate(docids) if docid in known), default=0)
            docids = docids[: max(last + 1, floor)]
            if docids:
                ranked[numbers[topic]] = dict(zip(docids, range(len(docids), 0, -1), strict=True))
        for group in groups:
            grades = {number: group.grades[topic] for topic, number in numbers.items() if topic in group.grades}
            columns: dict[ir_measures.Measure, list[int]] = {}  # P@5 and P(rel=1)@5 are one for ir-measures
            for column, measure in enumerate(measures):
                if any(measure is one for one in group.measures):
                    columns.setdefault(measure, []).append(column)
            if shared := {number: entries for number, entries in ranked.items() if number in grades}:
                for metric in ir_measures.iter_calc(list(columns), grades, shared):
                    values[int(metric.query_id), columns[metric.measure]] = metric.value
    return values


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
