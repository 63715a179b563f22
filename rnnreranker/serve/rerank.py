"""`POST /rerank`: candidates by docids of the index, by vectors, or by texts that are encoded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rnnreranker.base.command import notices
from rnnreranker.base.errors import InputError, is_utf8, refuse
from rnnreranker.base.method import choose
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.hits import rerank_hits
from rnnreranker.runs import Run
from rnnreranker.search.searching import search
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.guard import sentence
from rnnreranker.serve.question import QID, DocumentsBody, RerankBody, check_forms, check_work
from rnnreranker.serve.request import Limits


def rerank_body(collection: ServedIndex, body: RerankBody) -> dict[str, Any]:
    """The answer to a request with docids or vectors: `results`, best first, and `warnings`, if there are any.

    Docids with scores give the answer of `python -m rnnreranker.search --run`, without scores they are first ordered by
    the encoder; vectors give that of `rerank_hits`.

    Raises:
        InputError: no or too many candidates, wrong shapes, docids that the index lacks.
    """
    limits, by_vectors = collection.limits, body.vectors is not None
    count = len((body.vectors if by_vectors else body.docids) or ())
    refuse(
        (not 0 < count <= limits.max_candidates, f"{count} candidates: expected 1 to {limits.max_candidates}"),
        (
            by_vectors == (body.query is not None) or (body.query_vector and not by_vectors),
            "expected docids with query, a text, or vectors with query_vector or scores",
        ),
        *(
            (given is not None and len(given) != count, f"{name} has {len(given or ())} entries for {count} candidates")
            for name, given in (("scores", body.scores), ("docids", body.docids))
        ),
        (len(set(body.docids or ())) < len(body.docids or ()), "docids has one twice: expected different ones"),
    )
    with notices() as said:
        if by_vectors:
            params = rnn_of(body.rerank, count, limits)
            order, similarities = rerank_hits(body.query_vector, body.vectors, body.scores, params)
            results = list(zip(order.tolist(), similarities.tolist(), strict=True))
        else:
            docids = body.docids or []
            row_of = {docid: row for row, docid in enumerate(docids)}
            run = Run.from_dict({QID: dict(zip(docids, body.scores or [0.0] * count, strict=True))})
            rerank: Any = body.rerank if body.scores is not None else [f"encoder:context={count}", body.rerank]
            asked = collection.asked(str(body.query), run=run, rerank=rerank, hits=count)
            results = [(row_of[docid], score) for docid, score in search(asked).as_written()[QID]]
    named: list[Any] = list(body.docids) if body.docids else [None] * count
    rows = [{"index": row, "docid": named[row], "score": score} for row, score in results]
    warned = {"warnings": [sentence(InputError(one)) for one in said]} if said else {}
    return {"results": rows[: body.top_n], **warned}


def rerank_documents(collection: ServedIndex, body: DocumentsBody) -> dict[str, Any]:
    """The answer for clients of Cohere and Jina: `results`, best first.

    A `model` in the written form of rnn, `rnn:k=20`, gives the settings. Long texts are refused.
    """
    limits, query = collection.limits, body.query
    texts = [one if isinstance(one, str) else one.get("text", "") for one in body.documents]
    longest = max(map(len, [query, *texts]))
    refuse(
        (not query.strip() or not all(texts), "query or a text is empty: expected a text"),
        (not 0 < len(texts) <= limits.max_texts, f"{len(texts)} texts: expected 1 to {limits.max_texts}"),
        (longest > limits.max_characters, f"a text of {longest} characters: expected {limits.max_characters} at most"),
        (not all(map(is_utf8, [query, *texts])), "a text that is not UTF-8"),
    )
    params = rnn_of(body.model if body.model.partition(":")[0] == "rnn" else "rnn", len(texts), limits)
    order, scores = rerank_hits(collection.vector_of(query)[0], collection.encode(texts, "documents"), None, params)
    results = [
        {"index": row, "relevance_score": score} | ({"document": {"text": texts[row]}} if body.return_documents else {})
        for row, score in zip(order.tolist(), scores.tolist(), strict=True)
    ]
    return {"model": body.model, "results": results[: body.top_n]}


def rnn_of(form: Any, count: int, limits: Limits) -> RnnParams:
    """The parameters of a written form for a number of candidates; InputError: not rnn, too much work."""
    check_forms([form])
    one = choose("reranker", form, "rerank")
    if one.name != "rnn" or one.source != "vectors":
        raise InputError(f"rerank={one.name}: expected rnn, from vectors; others need docids with a query")
    params: RnnParams = replace(one.params, context=count)  # all candidates take part
    check_work([one.replaced(params=params)], count, limits)
    return params
