"""The answer to a question: results with their moves, measures, explanations, and what gives the same elsewhere."""

from __future__ import annotations

import shlex
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.jobs import one_blas_thread
from rnnreranker.base.method import as_list
from rnnreranker.base.settings import Written, read_joined
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.search.explain import drawing, taken_apart
from rnnreranker.search.explain.page import membership, title
from rnnreranker.search.request import AUTO, NO_RERANKING, SearchRequest
from rnnreranker.serve.collection import Answered, ServedIndex
from rnnreranker.serve.question import QID, SearchBody

FORMS = ("fuse", "prf", "expand")  # of a question
SHOWN = ("docid", "before", "after", "moved", "score")  # of a candidate that is explained


def search_answer(collection: ServedIndex, body: SearchBody) -> dict[str, Any]:
    """Both runs of a question, the measures of a judged topic, and the command and the Python of the same search."""
    answered = collection.answer(body)
    before, after = collection.rows(answered)
    return {
        "query": answered.pipeline.request.query,
        "topic": body.topic,
        "retriever": answered.pipeline.retrieved_by,
        "reranker": "+".join(one.name for one in answered.pipeline.rerankers) or NO_RERANKING,
        "candidates": len(answered.before.ranked(QID)),
        "before": before,
        "after": after,
        "measures": collection.measured(answered),
        "copy": copied(collection, answered),
    }


def explained_answer(collection: ServedIndex, body: SearchBody, size: str | None = "wide") -> dict[str, Any]:
    """The context of a question, taken apart, and its picture.

    size: of the picture, None = without one. InputError: not reranked by rnn.
    """
    answered = collection.answer(body, explain=True)
    rerankers = answered.pipeline.rerankers
    if len(rerankers) != 1 or not isinstance(rerankers[0], RnnReranker) or rerankers[0].source == "tokens":
        named = "+".join(one.name for one in rerankers) or NO_RERANKING
        raise InputError(f"rerank={named}: expected rnn alone, from vectors or neighbours, to be explained")
    with collection.drawing, one_blas_thread():  # others work beside it
        neighbourhood, _ = taken_apart(answered.stages[-2], answered.stages[-1], rerankers[0], QID)
        texts = {one.docid: collection.line(one.docid) for one in neighbourhood.candidates}
        query = str(answered.pipeline.request.query)
        svg = "" if size is None else drawing(neighbourhood, size, query=query, texts=texts)
    candidates = [
        {name: getattr(one, name) for name in SHOWN}
        | {"summands": [f"{amount:.4f}" for amount in one.amounts], "sets": membership(neighbourhood, one)}
        for one in neighbourhood.candidates
    ]
    return {
        "svg": svg,
        "elements": {one.element: one.docid for one in neighbourhood.candidates},  # number in the picture → docid
        "parts": [f"{part.weight:.4g} × {title(neighbourhood, part)}" for part in neighbourhood.parts],
        "candidates": candidates,
    }


def copied(collection: ServedIndex, answered: Answered) -> dict[str, str]:
    """The command of a search, with the flags that differ from the defaults, and its Python."""
    body, request, index = answered.body, answered.pipeline.request, collection.request.index
    rerank = [str(Written.read(one)) for one in as_list(body.rerank)] or [NO_RERANKING]
    auto = body.retrieve in (None, AUTO)
    given: dict[str, Any] = {
        "encoder": collection.request.encoder,
        "retrieve": None if auto else "+".join(str(one) for one in read_joined(body.retrieve or AUTO)),
        **{name: str(Written.read(form)) for name, form in vars(body).items() if form and name in FORMS},
        "hits": None if request.hits == SearchRequest.hits else request.hits,
        "rerank": None if rerank == ["rnn"] else rerank[0] if len(rerank) == 1 else rerank,
    }
    given = {name: value for name, value in given.items() if value is not None}
    words = ["python", "-m", "rnnreranker.search", "--index", index, f"--query={request.query}"]
    for name, value in given.items():
        flag = "--retriever" if name == "retrieve" else f"--{name}"
        words += [word for one in as_list(value) for word in (flag, str(one))]
    words += [] if body.limit == 10 else ["--show", str(body.limit)]
    arguments = "".join(f", {name}={value!r}" for name, value in given.items())
    python = (
        "from rnnreranker import open_index\n\n"
        f"index = open_index({index!r})\n"
        f"run = index.search({{'query': {request.query!r}}}{arguments})\n"
        f"for rank, (docid, score) in enumerate(run['query'][:{body.limit}], 1):\n"
        "    print(rank, docid, f'{score:.6f}', sep='\\t')\n"
    )
    return {"shell": shlex.join(words), "python": python}
