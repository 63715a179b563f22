"""The objective of a tuning: one measure of a query set after reranking."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.phases import phase
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.protocols import protocol_of, topics_that_count
from rnnreranker.evaluate.scores import check_judged, judged_documents
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.tune.request import TuneRequest
    from rnnreranker.parts.vectors import QueryVectors, VectorSource

Topics = str | Path | Mapping[str, str]


class Objective:
    """A query set that settings are judged by.

    Judged topics without candidates score 0 for all settings and are left out; `lacking` is their number.

    Args:
        run: candidates of the queries; vectors: of the candidates; queries: vectors of the queries.
        qrels: columns query_id, doc_id, relevance.
        measure: one, as in `parse_measures`; protocol: None = that of the judgements.

    Attributes:
        topics: judged query ids with candidates, ordered by a hash of the id.

    Raises:
        InputError: no topic or no candidate is judged.
    """

    def __init__(
        self,
        run: Run,
        vectors: VectorSource,
        queries: QueryVectors,
        qrels: pandas.DataFrame,
        measure: str,
        protocol: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.protocol = protocol_of(qrels, protocol)
        judged = set(topics_that_count(qrels, self.protocol))
        usable = [qid for qid in run if qid in judged and len(run.ranked(qid))]
        if not usable:
            raise InputError(f"none of the {len(run)} queries with candidates is judged; check topics and qrels")
        check_judged(run, judged_documents(qrels), "qrels")
        self.run, self.vectors, self.queries, self.threads = run, vectors, queries, threads
        self.measure, self._qrels, self.lacking = measure, qrels, len(judged) - len(usable)
        self.deepest = int(np.diff(run.offsets).max(initial=1))
        self.topics = tuple(sorted(usable, key=lambda qid: (hashlib.sha256(qid.encode()).digest(), qid)))

    def values(self, params: RnnParams, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of each topic after reranking with the settings."""
        topics = self.topics if topics is None else topics
        return self.of(self.rerank(params, topics), topics)

    def rerank(self, params: RnnParams, topics: Sequence[str]) -> Run:
        """The run of some topics after reranking, with scores as files have them."""
        reranker = RnnReranker(self.vectors, params, threads=self.threads)
        reranker.inputs.compared = self.queries  # loading compares them once
        chosen = set(topics)
        return reranker.rerank(self.run.of_queries([qid in chosen for qid in self.run.qids]), self.queries).as_written()

    def base(self, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of each topic in the first stage."""
        return self.of(self.run, self.topics if topics is None else topics)

    def of(self, run: Run, topics: Sequence[str]) -> np.ndarray:
        """(T,) float64: the measure of each topic in a run."""
        scores = evaluate(run, self._qrels, self.measure, self.protocol, topics=topics)
        return scores.per_topic(scores.measures[0])

    def about(self, topics: Sequence[str]) -> dict[str, str]:
        """What the mean over some topics depends on, except the settings: name → fingerprint or value."""
        judged = sorted(self._qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist())
        asked = (list(self.queries.qids), self.queries.vectors.astype("<f4").tobytes())
        data = fingerprint(self.vectors.fingerprint, self.fingerprint, *asked, list(topics), judged)
        return {"input": data, "measure": self.measure, "protocol": self.protocol}

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the candidates and their scores."""
        return fingerprint(self.run.to_dict())

    def folds(self, count: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """(train, test) topics of each fold; each topic is in one test part.

        Raises:
            InputError: fewer than 2 folds, or more folds than topics.
        """
        if not 2 <= count <= len(self.topics):
            raise InputError(f"{count} folds of {len(self.topics)} topics: expected 2 to the number of topics")
        tests = [self.topics[fold::count] for fold in range(count)]
        return [(tuple(qid for qid in self.topics if qid not in set(test)), test) for test in tests]


def judged_topics(topics: Topics, qrels: Qrels) -> dict[str, str]:
    """The topics with judgements: query id → text.

    Raises:
        InputError: unreadable files, no topic with a judgement.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    texts, judged = topics_of(topics), set(qrels_of(qrels)["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged}
    if not chosen:
        shown = _name(topics, "topics")
        raise InputError(f"{_name(qrels, 'qrels')}: judges none of the {len(texts)} topics of {shown}")
    return chosen


@phase("reading what to tune on")
def load_objective(
    request: TuneRequest,
    index: IndexOnDisk,
    topics: Topics,
    qrels: Qrels,
    run: str | Path | Run | None = None,
    encoded: str | Path | None = None,
) -> Objective:
    """The objective of a query set; topics without judgements are not encoded.

    Raises:
        InputError: unreadable files, or files that do not belong together.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.own_documents import notice_own
    from rnnreranker.search.queries import QueryEncoding, query_vectors
    from rnnreranker.search.searching import first_stage_of

    chosen = judged_topics(topics, qrels)
    how = QueryEncoding.of(request.encoder, encoded, topics, request.devices)
    queries = query_vectors(how, index, topics_of(topics), chosen, threads=request.threads)
    if run is None:
        candidates = dense_run(index.vectors, queries, request.hits, threads=request.threads).as_written()
    else:
        whole = first_stage_of(run)
        candidates = whole.of_queries([qid in chosen for qid in whole.qids]).head(request.hits)
        if not len(candidates):
            raise InputError(f"{_name(run, 'run')}: none of its queries is a judged topic of {_name(topics, 'topics')}")
        notice_mismatch(candidates, queries, index.vectors)
    notice_own(candidates, f"give {argument('run')} of a search with --remove-query to leave it out")
    own = (request.measure, request.protocol, request.threads)
    return Objective(candidates, index.vectors, queries, qrels_of(qrels), *own)


def _name(given: Any, name: str) -> str:
    """The given file or name for messages; the argument for an object."""
    return str(given) if isinstance(given, str | Path) else argument(name)
