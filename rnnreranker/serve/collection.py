"""The served index: opened once, with its encoder, texts, judged topics and recent queries, and its answers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.jobs import one_blas_thread
from rnnreranker.index.opening import open_index
from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.rnn import warm_up
from rnnreranker.runs import Run
from rnnreranker.search.explain.neighbourhood import taken_apart
from rnnreranker.search.explain.page import drawing, membership, title
from rnnreranker.search.inputs import texts_in
from rnnreranker.search.pipeline import Pipeline
from rnnreranker.search.queries import QueryEncoding, open_query_encoder, without_query_vectors
from rnnreranker.search.request import NO_RERANKING, SearchRequest
from rnnreranker.search.show import first_line
from rnnreranker.serve.guard import check as check_time
from rnnreranker.serve.question import QID, SearchBody, check_request
from rnnreranker.serve.request import ServeRequest

AT_ONCE = 4  # texts that are encoded before it is another request's turn
QUERIES = 1024  # vectors of queries that are kept
SHOWN_TEXT = 240  # characters of a result
EXPLAINED = ("docid", "before", "after", "moved", "score")  # of a candidate


@dataclass(frozen=True, eq=False)
class Answered:
    """An answered question: the first and the last run with the scores of their files, and all runs of the pipeline."""

    body: SearchBody
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
        from rnnreranker.evaluate.protocols import grades_of, protocol_of

        self.request, self.limits, self.protocol = request, request.limits, request.protocol
        topics, qrels = request.judged
        self.topics: dict[str, str] = {} if topics is None else load_topics(topics)
        self.grades: dict[str, dict[str, int]] = {}  # topic → docid → grade
        if qrels is not None:
            judged = load_qrels(qrels)
            self.protocol = protocol_of(judged, request.protocol)
            self.grades = {qid: grades for qid, grades in grades_of(judged).items() if qid in self.topics}
            if not self.grades:
                raise InputError(f"{qrels}: judges none of the {len(self.topics)} topics of {topics}")
        self.index = open_index(request.index)
        self.encoding = QueryEncoding(request.encoder)
        self.texts = texts_in(self.index)
        self.encodes = "dense" in self.index.folders and not without_query_vectors(self.encoding, self.index)
        self._reading, self._evaluating, self._encoding, self._drawing = (threading.Lock() for _ in range(4))
        self._encoder = cache(lambda named: open_query_encoder(QueryEncoding(named), self.index))
        self.vector_of = lru_cache(QUERIES)(lambda text: self.encode([text]))  # (1, d)

    def warm(self) -> None:
        """Load model and kernel, open the files of a search and start Java, so that the first question is fast."""
        warm_up()
        first = next(iter(self.topics.values()), "what is asked first")
        self.answer(SearchBody(query=first, hits=min(self.limits.max_candidates, 100)))

    def asked(self, text: str, explain: bool = False, **others: Any) -> SearchRequest:
        """The checked request of a search for a text; explain: applies the limit of an explanation.

        Raises:
            InputError: an invalid question for this index, or one that clients cannot ask, see `check_request`.
        """
        from rnnreranker.parts.vectors import QueryVectors

        size, most, hits = len(text), self.limits.max_candidates, others["hits"]
        if size > self.limits.max_characters or hits > most:
            limits = f"{self.limits.max_characters} and {most} at most"
            raise InputError(f"query of {size} characters, hits={hits}: expected {limits}")
        request = SearchRequest(index=self.index, query=text, threads=1, **others)
        check_request(request, self.limits, explain)
        request.check()
        if not self.encodes:
            return request
        return replace(request, encoded_queries=QueryVectors((QID,), self.vector_of(text)))

    def answer(self, body: SearchBody, explain: bool = False) -> Answered:
        """The runs of a question, as `python -m rnnreranker.search --query`.

        Raises:
            InputError: as `asked`; neither a text nor a topic, or both.
            UnavailableError, MissingDependencyError: this machine lacks something for it.
        """
        if (body.query is None) == (body.topic is None):
            raise InputError("query and topic: expected one of them")
        if body.topic is not None and body.topic not in self.topics:
            shown = body.topic[:80]
            raise InputError(f"topic {shown}: not offered here, {nearest(shown, self.topics)}")
        text = body.query if body.topic is None else self.topics[body.topic]
        hits = body.hits or min(SearchRequest.hits, self.limits.max_candidates)
        forms = body.model_dump(include={"retrieve", "fuse", "prf", "expand", "rerank"})
        request = self.asked(str(text), explain, hits=hits, **forms)
        check_time()
        pipeline = Pipeline(request, {QID: str(text)})
        pipeline.depth = min(pipeline.depth, self.limits.max_candidates)
        check_time()
        stages = pipeline.stages()
        check_time()
        return Answered(body, pipeline, stages[0].as_written(), stages[-1].as_written(), stages)

    def search(self, body: SearchBody) -> dict[str, Any]:
        """Both runs of a question, and the measures of a judged topic."""
        answered = self.answer(body)
        pipeline, (before, after) = answered.pipeline, self.rows(answered)
        return {
            "query": pipeline.request.query,
            "topic": body.topic,
            "retriever": pipeline.retrieved_by,
            "reranker": "+".join(one.name for one in pipeline.rerankers) or NO_RERANKING,
            "candidates": len(answered.before.ranked(QID)),
            "before": before,
            "after": after,
            "measures": self.measured(answered),
        }

    def explain(self, body: SearchBody, size: str | None = "wide") -> dict[str, Any]:
        """The context of a question, taken apart, and its picture.

        size: of the picture, None = without one. InputError: not reranked by rnn.
        """
        answered = self.answer(body, explain=True)
        rerankers = answered.pipeline.rerankers
        if len(rerankers) != 1 or not isinstance(rerankers[0], RnnReranker) or rerankers[0].source == "tokens":
            named = "+".join(one.name for one in rerankers) or NO_RERANKING
            raise InputError(f"rerank={named}: expected rnn alone, from vectors or neighbours, to be explained")
        with self._drawing, one_blas_thread():  # others work beside it
            neighbourhood, _ = taken_apart(answered.stages[-2], answered.stages[-1], rerankers[0], QID)
            texts = {one.docid: self.line(one.docid) for one in neighbourhood.candidates}
            query = str(answered.pipeline.request.query)
            svg = "" if size is None else drawing(neighbourhood, size, query=query, texts=texts)
        candidates = [
            {name: getattr(one, name) for name in EXPLAINED}
            | {"summands": [f"{amount:.4f}" for amount in one.amounts], "sets": membership(neighbourhood, one)}
            for one in neighbourhood.candidates
        ]
        return {
            "svg": svg,
            "elements": {one.element: one.docid for one in neighbourhood.candidates},  # number in the picture → docid
            "parts": [f"{part.weight:.4g} × {title(neighbourhood, part)}" for part in neighbourhood.parts],
            "candidates": candidates,
        }

    def rows(self, answered: Answered) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The first results before and after reranking: ranks, moves (ranks up, None = only in one of both), scores,
        texts, and grades (None = not judged).
        """
        body, grades = answered.body, self.grades.get(answered.body.topic or "", {})
        runs = (answered.before, answered.after)
        was, now = ({docid: rank for rank, docid in enumerate(run.ranked(QID), 1)} for run in runs)
        limit = min(body.limit, answered.pipeline.request.hits)

        def row(rank: int, docid: str, score: float) -> dict[str, Any]:
            moved = was[docid] - now[docid] if docid in was and docid in now else None
            shown = {"text": self.line(docid), "grade": grades.get(docid)}
            return {"rank": rank, "docid": docid, "score": score, "moved": moved, **shown}

        before, after = ([row(rank, *one) for rank, one in enumerate(run[QID][:limit], 1)] for run in runs)
        return before, after

    def measured(self, answered: Answered) -> list[dict[str, Any]]:
        """The measures of a judged topic before and after; empty for other questions."""
        from rnnreranker.evaluate import evaluate

        if (grades := self.grades.get(answered.body.topic or "")) is None:
            return []
        hits = answered.pipeline.request.hits
        runs = {"before": answered.before.head(hits), "after": answered.after.head(hits)}
        with self._evaluating:
            scores = evaluate(runs, {QID: grades}, self.request.measures, self.protocol)
        return [
            {"measure": str(name), "protocol": scores.protocol, "before": float(one), "after": float(two)}
            for name, one, two in zip(scores.measures, *scores.means, strict=True)
        ]

    def document(self, docid: str) -> str | None:
        """The text of a document; None if the index lacks it."""
        with self._reading:
            return self.texts.get(docid)

    def line(self, docid: str) -> str:
        """The first line of a document, shortened; "" if the index lacks it."""
        return first_line(docid, self.document(docid) or "")[:SHOWN_TEXT]

    def encode(self, texts: Sequence[str], what: Literal["queries", "documents"] = "queries") -> np.ndarray:
        """(n, d) float32: the vectors of texts, a few texts of one caller at a time; those of documents are by the
        encoder of the index, if it names one.

        Raises:
            InputError, UnavailableError, MissingDependencyError: the encoder of the index is unknown or not here.
        """
        parts = []
        for first in range(0, len(texts), AT_ONCE):
            check_time()
            with self._encoding:
                encoder = self._encoder(None if what == "documents" and self.index.encoder else self.request.encoder)
                parts.append(encoder.encode(list(texts[first : first + AT_ONCE]), threads=1, what=what))
        return np.concatenate(parts)
