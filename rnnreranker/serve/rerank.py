"""`POST /rerank`: candidates by docids of the index, by vectors, or by texts that are encoded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.given import is_utf8
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.hits import rerank_hits
from rnnreranker.runs import Run
from rnnreranker.search.searching import request_of, search
from rnnreranker.serve.asked import DocumentsBody, RerankBody, TextsBody
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.question import QID, SearchQuestion, check_work
from rnnreranker.serve.request import Limits

RNN = "rnn"


def rerank_body(collection: ServedIndex, body: RerankBody) -> dict[str, Any]:
    """The answer to a request with docids or vectors: `results`, best first.

    Docids with scores give the answer of `python -m rnnreranker.search --run`, vectors that of `rerank_hits`.

    Raises:
        InputError: no or too many candidates, wrong shapes, docids that the index lacks.
    """
    limits = collection.limits
    count = len(body.docids or ()) if body.vectors is None else len(body.vectors)
    refuse(
        (not count, "docids and vectors are missing or empty: expected at least one candidate"),
        (count > limits.max_candidates, f"{count} candidates: expected {limits.max_candidates} at most"),
        (
            body.query is not None and body.query_vector is not None,
            "query and query_vector: expected one of them",
        ),
        (
            body.scores is not None and len(body.scores) != count,
            f"scores has {len(body.scores or ())} entries for {count} candidates: expected as many",
        ),
        (
            body.vectors is not None and body.docids is not None and len(body.docids) != count,
            f"docids has {len(body.docids or ())} entries for {count} vectors: expected as many",
        ),
        (
            body.docids is not None and len(set(body.docids)) < len(body.docids),
            "docids has one twice: expected different ones",
        ),
        (
            body.query is not None and len(body.query) > limits.max_characters,
            f"query has more than {limits.max_characters} characters",
        ),
    )
    if body.vectors is None and body.scores is not None and body.query is not None:
        order, scores = _of_run(collection, body)
    else:
        params = _params(body.rerank, count, limits)
        vectors = _fetched(collection, body) if body.vectors is None else _matrix(body.vectors, limits.max_dimension)
        given = None if body.scores is None else np.asarray(body.scores, dtype=np.float64)
        order, scores = rerank_hits(_query(collection, body), vectors, given, params)
    named: Sequence[str | None] = body.docids or [None] * count
    results = [
        {"index": row, "docid": named[row], "score": score}
        for row, score in zip(order.tolist(), scores.tolist(), strict=True)
    ]
    return {"results": results[: body.top_n]}


def rerank_texts(collection: ServedIndex, body: TextsBody) -> list[dict[str, Any]]:
    """The answer for clients of text-embeddings-inference; InputError: a text that is too long, unless `truncate` cuts
    it.
    """
    if body.truncate and (body.truncation_direction or "right").lower() == "left":
        raise InputError("truncation_direction=Left: this encoder reads the beginning of a text; expected Right")
    order, scores = _of_texts(collection, body.query, body.texts, RNN, truncate=bool(body.truncate))
    return [
        {"index": row, "score": score} | ({"text": body.texts[row]} if body.return_text else {})
        for row, score in zip(order.tolist(), scores.tolist(), strict=True)
    ]


def rerank_documents(collection: ServedIndex, body: DocumentsBody) -> dict[str, Any]:
    """The answer for clients of Cohere and Jina: `results` with index and relevance_score, best first.

    A `model` in the written form of rnn, `rnn:k=20`, gives the settings; other names count as `rnn`. Long texts are cut
    unless `truncation` is false.
    """
    texts = [_text(number, one, body.rank_fields) for number, one in enumerate(body.documents)]
    model = body.model or RNN
    form = model if model.partition(":")[0] == RNN else RNN
    order, scores = _of_texts(collection, body.query, texts, form, truncate=body.truncation is not False)
    results = [
        {"index": row, "relevance_score": score} | ({"document": {"text": texts[row]}} if body.return_documents else {})
        for row, score in zip(order.tolist(), scores.tolist(), strict=True)
    ]
    usage = {"total_tokens": sum(len(text.split()) for text in [body.query, *texts])}
    return {"model": model, "results": results[: body.top_n], "usage": usage, "meta": {"api_version": {"version": "1"}}}


def _of_run(collection: ServedIndex, body: RerankBody) -> tuple[np.ndarray, np.ndarray]:
    docids, scores, query = body.docids or [], body.scores or [], body.query or ""
    if not all(map(math.isfinite, scores)):
        raise InputError("scores: NaN or infinite ones; expected finite numbers")
    asked = SearchQuestion(query, rerank=body.rerank).request(collection.index)
    check_work(asked.methods.rerankers, len(docids), collection.limits)
    run = Run.from_dict({QID: dict(zip(docids, map(float, scores), strict=True))})
    others: dict[str, Any] = {"encoded_queries": collection.query_vectors(query)} if collection.encodes else {}
    request = request_of(
        collection.index, {QID: query}, run=run, rerank=asked.rerank, hits=len(docids), threads=1, **others
    )
    reranked = search(request).as_written()
    row_of = {docid: row for row, docid in enumerate(docids)}
    order = np.array([row_of[docid] for docid in reranked.ranked(QID)], dtype=np.int64)
    return order, reranked.scores


def _of_texts(
    collection: ServedIndex, query: str, texts: list[str], form: str, *, truncate: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The order and the scores of texts, by the encoder of the index; truncate: cuts the ends of long ones."""
    limits = collection.limits
    if truncate:
        query, texts = query[: limits.max_characters], [text[: limits.max_characters] for text in texts]
    longest = max((len(text) for text in [query, *texts]), default=0)
    refuse(
        (not query.strip(), "query is empty: expected a text"),
        (not texts, "no texts: expected at least one"),
        (len(texts) > limits.max_texts, f"{len(texts)} texts: expected {limits.max_texts} at most"),
        (
            longest > limits.max_characters,
            f"a text of {longest} characters: expected {limits.max_characters} at most, or truncation",
        ),
        (
            not all(map(is_utf8, [query, *texts])),
            "a text that is not UTF-8",
        ),
    )
    params = _params(form, len(texts), limits)
    vectors = collection.encode(texts, "documents")
    return rerank_hits(collection.query_vectors(query).vectors[0], vectors, None, params)


def _query(collection: ServedIndex, body: RerankBody) -> np.ndarray | None:
    """The vector of the query; None if scores replace its similarities."""
    if body.query_vector is not None:
        return _matrix([body.query_vector], collection.limits.max_dimension)[0]
    if body.query is None:
        return None
    if not body.query.strip() or not is_utf8(body.query):
        raise InputError("query is empty or not UTF-8: expected a text")
    return collection.query_vectors(body.query).vectors[0]


def _params(form: Any, count: int, limits: Limits) -> RnnParams:
    """The parameters of a written form for a number of candidates; InputError: not rnn, too much work."""
    one = choose("reranker", SearchQuestion("", rerank=form).request("").rerank, "rerank")  # type: ignore[arg-type]
    if one.name != RNN or one.source != "vectors":
        raise InputError(f"rerank={one.name}: expected rnn, from vectors; others need docids with scores and a query")
    params: RnnParams = replace(one.params, context=count)  # all candidates take part
    check_work([one.replaced(params=params)], count, limits)
    return params


def _fetched(collection: ServedIndex, body: RerankBody) -> np.ndarray:
    docids = body.docids or []
    source = collection.index.vectors
    rows = source.rows(docids)
    if (rows < 0).any():
        lost = [docid for docid, row in zip(docids, rows, strict=True) if row < 0]
        raise InputError(f"docids: {len(lost)} are not in {collection.index.name} (first: {', '.join(lost[:3])[:200]})")
    return source.fetch(rows)


def _matrix(rows: list[list[Any]], limit: int) -> np.ndarray:
    """(N, d) float32: vectors of a request."""
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or not 1 <= max(lengths) <= limit:
        shown = ", ".join(map(str, sorted(lengths)[:3]))
        raise InputError(f"vectors of {shown} dimensions: expected the same for all, from 1 to {limit}")
    with np.errstate(over="ignore"):
        try:
            vectors = np.array(rows, dtype=np.float64).astype(np.float32)
        except OverflowError:
            raise InputError("vectors: a number that is too large; expected those of 32 bits") from None
    if not np.isfinite(vectors).all():
        raise InputError("vectors: NaN, infinite or too large numbers; expected finite ones of 32 bits")
    return vectors


def _text(number: int, one: str | dict[str, Any], fields: list[str] | None) -> str:
    if isinstance(one, str):
        return one
    texts = [one.get(name) for name in fields or ["text"]]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"documents[{number}]: has no text in {', '.join(fields or ['text'])[:80]}; expected a text")
    return "\n".join(map(str, texts))
