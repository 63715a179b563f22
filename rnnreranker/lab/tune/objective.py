"""What is maximised: the mean of one measure over some topics, reranked with the parameters of a trial."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.protocols import protocol_of, topics_that_count
from rnnreranker.evaluate.scores import check_judged, judged_documents
from rnnreranker.lab.tune.identity import of_qrels
from rnnreranker.lab.tune.kept_contexts import Contexts

if TYPE_CHECKING:
    import pandas

    from rnnreranker.rnn import RnnParams
    from rnnreranker.runs import Run

STEPS = 4  # parts of the topics after each of which a hopeless trial may end


class Objective:
    """A query set that parameters are judged by.

    Judged topics without candidates score 0 for every parameter and are left out; `lacking` says how many.

    Args:
        contexts: the candidates of the queries.
        qrels: columns query_id, doc_id, relevance.
        measure: one, as `parse_measures` takes it.
        protocol: which grades count, see `apply_protocol`; None = that of the judgements.

    Attributes:
        topics: judged query ids with candidates, in the order of a hash of the id, so that the first n are no
            particular ones and halves are the same halves everywhere.

    Raises:
        InputError: more than one measure, no topic judged, no candidate judged.
    """

    def __init__(self, contexts: Contexts, qrels: pandas.DataFrame, measure: str, protocol: str | None = None) -> None:
        protocol = protocol_of(qrels, protocol)
        judged = set(topics_that_count(qrels, protocol))
        usable = [qid for qid in contexts.run if qid in judged and len(contexts.run.ranked(qid))]
        if not usable:
            raise InputError(
                f"none of the {len(contexts.run)} queries with candidates is judged; check topics and qrels"
            )
        check_judged(contexts.run, judged_documents(qrels), "qrels")
        self.contexts, self.measure, self.protocol = contexts, measure, protocol
        self.topics: tuple[str, ...] = tuple(sorted(usable, key=_shuffled))
        self.lacking = len(judged) - len(usable)
        self._numbers = {qid: number for number, qid in enumerate(contexts.run.qids)}
        self._qrels = qrels

    def values(self, params: RnnParams, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of every topic, reranked with the parameters."""
        topics = self.topics if topics is None else topics
        return self.of(self.contexts.rerank(params, [self._numbers[qid] for qid in topics]).as_written(), topics)

    def base(self, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of every topic as retrieved."""
        return self.of(self.contexts.run, self.topics if topics is None else topics)

    def of(self, run: Run, topics: Sequence[str]) -> np.ndarray:
        """(T,) float64: the measure of every topic in a run."""
        scores = evaluate(run, self._qrels, self.measure, self.protocol, topics=topics)
        if len(scores.measures) != 1:
            raise InputError(f"{self.measure!r} names {len(scores.measures)} measures; expected one to maximise")
        return scores.per_topic(scores.measures[0])

    def mean(
        self, params: RnnParams, topics: Sequence[str], report: Callable[[int, float], None] | None = None
    ) -> float:
        """The mean over topics; `report(step, mean so far)` is called after each part and may raise to end it."""
        parts: list[np.ndarray] = []
        for step, part in enumerate(_parts(topics, STEPS if report else 1)):
            parts.append(self.values(params, part))
            if report:
                report(step, float(np.concatenate(parts).mean()))
        return float(np.concatenate(parts).mean())

    def about(self, topics: Sequence[str]) -> dict[str, str]:
        """What the mean over some topics depends on besides the parameters: name -> fingerprint or value."""
        measured = {"measure": self.measure, "protocol": self.protocol, "deepest context": str(self.contexts.deepest)}
        return {**self.contexts.about, "topics": fingerprint(list(topics)), "qrels": of_qrels(self._qrels), **measured}

    def folds(self, count: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """(train, test) topics of each fold; every topic is in one test part.

        Raises:
            InputError: fewer than 2 folds, or more than topics.
        """
        if not 2 <= count <= len(self.topics):
            raise InputError(f"{count} folds of {len(self.topics)} topics: expected 2 to the number of topics")
        tests = [self.topics[fold::count] for fold in range(count)]
        return [(tuple(qid for qid in self.topics if qid not in set(test)), test) for test in tests]


def _shuffled(qid: str) -> tuple[bytes, str]:
    return hashlib.sha256(qid.encode()).digest(), qid


def _parts(topics: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    size = -(-len(topics) // count)
    for first in range(0, len(topics), size):
        yield topics[first : first + size]
