"""The served index: opened once, with its encoder, texts, judged topics and recent queries."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.rnn import warm_up
from rnnreranker.runs import Run
from rnnreranker.search.inputs import texts_in
from rnnreranker.search.opened import open_index
from rnnreranker.search.queries import QueryEncoding, open_query_encoder, without_query_vectors
from rnnreranker.search.request import check
from rnnreranker.search.show import first_line
from rnnreranker.serve import work
from rnnreranker.serve.question import QID, SearchQuestion, check_work
from rnnreranker.serve.request import ServeRequest

if TYPE_CHECKING:
    from rnnreranker.encode.dense import Encoder
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.search.explain import Neighbourhood
    from rnnreranker.search.pipeline import Pipeline

AT_ONCE = 4  # texts that are encoded before it is another request's turn
QUERIES = 1024  # vectors of queries that are kept
FIRST_STAGES = 128  # runs of single queries
SHOWN_TEXT = 240  # characters of a result


@dataclass(frozen=True, eq=False)
class Answered:
    """An answered question: the first and the last run with the scores of their files, and all runs of the pipeline."""

    question: SearchQuestion
    pipeline: Pipeline
    before: Run
    after: Run
    stages: list[Run]


class ServedIndex:
    """An index that several threads search.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `open_index`, `load_topics`, `load_qrels`.
    """

    def __init__(self, request: ServeRequest) -> None:
        from rnnreranker.data.qrels import load_qrels
        from rnnreranker.data.topics import load_topics
        from rnnreranker.evaluate.protocols import protocol_of

        self.request, self.limits = request, request.limits
        topics, qrels = request.judged
        self.topics: dict[str, str] = {} if topics is None else load_topics(topics)
        self.index = open_index(request.index)
        self.encoding = QueryEncoding.of(request.encoder)
        self.texts: Mapping[str, str] = texts_in(self.index)
        self._judgements: dict[str, Any] = {}  # topic → its rows of the judgements
        self._grades: dict[str, dict[str, int]] = {}
        self.protocol = request.protocol or "trec"
        if qrels is not None:
            judged = load_qrels(qrels)
            self.protocol = judged.attrs["protocol"] = protocol_of(judged, request.protocol)
            self._judgements = {str(qid): rows for qid, rows in judged.groupby("query_id") if str(qid) in self.topics}
            columns = {qid: (rows["doc_id"], rows["relevance"]) for qid, rows in self._judgements.items()}
            self._grades = {qid: dict(zip(of[0].tolist(), of[1].tolist(), strict=True)) for qid, of in columns.items()}
            if not self._judgements:
                raise InputError(f"{qrels}: judges none of the {len(self.topics)} topics of {topics}")
        self.encodes = self._can_encode()
        self._reading, self._evaluating = threading.Lock(), threading.Lock()
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="rnnreranker-encoder")  # a queue: nobody waits long
        self._vector = lru_cache(QUERIES)(lambda text: self.encode([text]))
        self._first: dict[Hashable, Run] = {}  # the last first stages
        self._encoder: Encoder | None = None

    def warm(self) -> None:
        """Load model and kernel, open the files of a search and start Java, so that the first question is fast."""
        warm_up()
        first = next(iter(self.topics.values()), "what is asked first")
        self.answer(SearchQuestion(first, hits=min(self.limits.max_candidates, 100)))

    def answer(self, question: SearchQuestion, explain: bool = False) -> Answered:
        """The runs of a question, as `python -m rnnreranker.search --query`; explain: applies the limit of `explained`.

        Raises:
            InputError: an invalid question for this index.
            UnavailableError, MissingDependencyError: this machine lacks something for it.
        """
        from rnnreranker.search.pipeline import open_pipeline

        question.check(self.limits)
        request = question.request(self.index, threads=1)
        check(request)
        methods = request.methods
        others = [one for one in (methods.feedback, methods.expander) if one is not None]
        check_work([*methods.retrievers, *others, *methods.rerankers], methods.depth, self.limits, explain)
        if self.encodes:
            request = replace(request, encoded_queries=self.query_vectors(question.query))
        work.check()
        pipeline = open_pipeline(request, {QID: question.query})
        pipeline = replace(pipeline, depth=min(pipeline.depth, self.limits.max_candidates))
        work.check()
        key = (*question.first_stage, pipeline.depth)
        if (first := self._first.get(key)) is None:
            first = self._first[key] = pipeline.retrieved()
            for old in list(self._first)[:-FIRST_STAGES]:
                self._first.pop(old, None)
        stages = pipeline.stages(first)
        work.check()
        before, after = stages[0].as_written(), stages[-1].as_written()
        return Answered(question, pipeline, before, after, stages)

    def explained(self, answered: Answered) -> tuple[Neighbourhood, str]:
        """The neighbourhood of a question, and why the run's scores say nothing; InputError: not reranked by rnn."""
        from rnnreranker.methods.rerank import RnnReranker
        from rnnreranker.search.explain import taken_apart

        rerankers = answered.pipeline.rerankers
        if len(rerankers) != 1 or not isinstance(rerankers[0], RnnReranker) or rerankers[0].source == "tokens":
            named = "+".join(one.name for one in rerankers) or "none"
            raise InputError(f"rerank={named}: expected rnn alone, from vectors or neighbours, to be explained")
        return taken_apart(answered.stages[-2], answered.stages[-1], rerankers[0], QID)

    def rows(self, answered: Answered) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The first results before and after reranking: ranks, moves (ranks up), scores, texts and grades."""
        ranks = {docid: rank for rank, docid in enumerate(answered.before.ranked(QID), 1)}
        now = {docid: rank for rank, docid in enumerate(answered.after.ranked(QID), 1)}
        limit = min(answered.question.limit, answered.question.hits)
        before = [
            self._row(rank, docid, score, answered.question.topic) | {"now": now.get(docid)}
            for rank, (docid, score) in enumerate(answered.before[QID][:limit], 1)
        ]
        after = [
            self._row(rank, docid, score, answered.question.topic)
            | {"was": ranks.get(docid), "moved": ranks[docid] - rank if docid in ranks else None}
            for rank, (docid, score) in enumerate(answered.after[QID][:limit], 1)
        ]
        return before, after

    def measured(self, answered: Answered) -> list[dict[str, Any]]:
        """The measures of a judged topic before and after; empty for other questions."""
        from rnnreranker.evaluate import evaluate

        topic = answered.question.topic
        if topic not in self._judgements:
            return []
        runs = {
            name: Run((topic,), run.offsets, run.docids, run.rows, run.scores).head(answered.question.hits)
            for name, run in (("before", answered.before), ("after", answered.after))
        }
        with self._evaluating:
            scores = evaluate(runs, self._judgements[topic], self.request.measures)
        columns = zip(scores.measures, *scores.means, strict=True)
        return [
            {"measure": str(name), "protocol": scores.protocol, "before": float(one), "after": float(two)}
            for name, one, two in columns
        ]

    def judged(self) -> list[dict[str, Any]]:
        """The topics, and their numbers of judged documents."""
        return [
            {"topic": qid, "query": text, "judged": len(self._judgements.get(qid, ()))}
            for qid, text in self.topics.items()
        ]

    def text(self, topic: str) -> str:
        if topic not in self.topics:
            raise InputError(f"topic {topic[:80]}: not offered here, {nearest(topic[:80], self.topics)}")
        return self.topics[topic]

    def document(self, docid: str) -> str | None:
        """The text of a document; None if the index lacks it."""
        with self._reading:
            return self.texts.get(docid)

    def lines(self, docids: Sequence[str]) -> dict[str, str]:
        texts = {docid: self.document(docid) for docid in docids}
        return {docid: first_line(docid, text)[:SHOWN_TEXT] for docid, text in texts.items() if text is not None}

    def query_vectors(self, text: str) -> QueryVectors:
        """The vector of a query, called `QID`; recent ones are cached."""
        from rnnreranker.parts.vectors import QueryVectors

        return QueryVectors((QID,), self._vector(text))

    def encode(self, texts: Sequence[str], what: Literal["queries", "documents"] = "queries") -> np.ndarray:
        """(n, d) float32: the vectors of texts, a few texts of one caller at a time.

        Raises:
            InputError, UnavailableError, MissingDependencyError: the encoder of the index is unknown or not here.
        """
        parts = []
        for first in range(0, len(texts), AT_ONCE):
            work.check()
            parts.append(self._encoding.submit(self._encoded, list(texts[first : first + AT_ONCE]), what).result())
        vectors = np.concatenate(parts)
        if self.index.has("vectors") and vectors.shape[1] != self.index.vectors.dimension:
            raise InputError(
                f"the encoder gives {vectors.shape[1]} dimensions, the vectors of {self.index.name} have "
                f"{self.index.vectors.dimension}; serve it with the encoder that made it"
            )
        return vectors

    def _encoded(self, texts: list[str], what: Literal["queries", "documents"]) -> np.ndarray:
        if self._encoder is None:
            self._encoder = open_query_encoder(self.encoding, self.index)
        return self._encoder.encode(texts, threads=1, what=what)

    def _can_encode(self) -> bool:
        return "dense" in self.index.folders and not without_query_vectors(self.encoding, self.index)

    def _row(self, rank: int, docid: str, score: float, topic: str | None) -> dict[str, Any]:
        row: dict[str, Any] = {"rank": rank, "docid": docid, "score": score, "text": self.lines([docid]).get(docid, "")}
        if topic in self._judgements:
            row["grade"] = self._grades[topic].get(docid)
        return row
