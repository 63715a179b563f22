"""The bodies of requests, and what clients cannot ask for: files, models, too much work."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Chosen, as_list
from rnnreranker.base.settings import Written, is_file_name, read_joined
from rnnreranker.search.request import AUTO, SearchRequest
from rnnreranker.serve.request import Limits

MODEL_SETTINGS = {"encoder", "model", "models"}  # of methods
QID = "query"  # what a question is called, as in the command
WIDE_GRAPH = 64  # neighbours of a document; graphs have no more
MOST_REACHED = 100_000  # documents that an expander looks at

Form = str | dict[str, dict[str, Any] | None]  # of a method: `rnn:k=20`, {"rnn": {"k": 20}}
Forms = Annotated[list[Form], Field(max_length=10)]
Count = Annotated[int, Field(ge=1)]


class Body(BaseModel, extra="forbid", strict=True):
    """A body with these fields only."""


class SearchBody(Body):
    """A question, or a judged topic, and its search."""

    query: str | None = Field(default=None, description="the text of the question")
    topic: str | None = Field(default=None, description="the id of a topic, in place of a text")
    retrieve: Form | Forms | None = Field(default=AUTO, description="first stage, as of search --retriever")
    fuse: Form | None = Field(default=None, description="how several retrievers are fused")
    prf: Form | None = Field(default=None, description="feedback: a second search by the first documents")
    expand: Form | None = Field(default=None, description="more candidates, from the graph of the index")
    rerank: Form | Forms | None = Field(default="rnn", description="rerankers in their written form; null = none")
    hits: Count | None = Field(default=None, description="documents in the output; null = 1000, or the limit below it")
    limit: int = Field(default=10, ge=1, le=1000, description="results of the answer")


class ExplainBody(SearchBody):
    """A question, and the width of the picture's window."""

    size: Literal["wide", "narrow"] = "wide"


class RerankBody(Body):
    """Candidates to rerank: docids of the index for a text, or vectors for a vector."""

    query: str | None = Field(default=None, description="of docids; its text is encoded by the encoder of the index")
    docids: list[str] | None = Field(default=None, description="of the index; with vectors: what they are called")
    query_vector: list[float] | None = Field(
        default=None, description="of vectors; null: scores are the similarities to it"
    )
    vectors: list[list[float]] | None = Field(
        default=None, description="of the candidates, in place of those of the index"
    )
    scores: list[float] | None = Field(default=None, description="of the first stage, higher is better")
    rerank: Form = Field(default="rnn", description="rnn with settings, rnn:k=20; of docids any reranker")
    top_n: Count | None = None


class DocumentsBody(BaseModel, strict=True):
    """The request of clients of Cohere and Jina."""

    query: str
    documents: list[str | dict[Literal["text"], str]]
    model: str = Field(default="rnn", description="rnn with settings, rnn:k=20; other names mean rnn")
    top_n: Count | None = None
    return_documents: bool | None = None


def check_forms(forms: Iterable[Any]) -> None:
    """Refuse written forms that name a file or a model."""
    for form in map(Written.read, forms):
        said = str(form)
        named = {*form.params} & MODEL_SETTINGS or "/" in said or "\\" in said
        if named or (form.preset and is_file_name(form.preset)):
            raise InputError(f"{said[:80]}: names a file or a model, which clients cannot name")


def check_request(request: SearchRequest, limits: Limits, explain: bool = False) -> None:
    """Refuse a search that names a file, names or loads a model, or takes too much work, see `check_work`."""
    retrieve = [] if request.retrieve is None else read_joined(request.retrieve)
    forms = [request.fuse, request.prf, request.expand, *as_list(request.rerank), *retrieve]
    check_forms([form for form in forms if form is not None])
    for one in request.rerankers:
        if one.method.model_setting:
            raise InputError(f"{one.name}: loads a model, which clients cannot name; use python -m rnnreranker.search")
    others = [one for one in (request.feedback, request.expander) if one is not None]
    check_work([*request.retrievers, *others, *request.rerankers], request.depth, limits, explain)


def check_work(methods: Iterable[Chosen], candidates: int, limits: Limits, explain: bool = False) -> None:
    """Refuse methods that would take more than about a second, or 200 MB, for a number of candidates.

    The work of a reranker is its context times the two largest of its other counts, such as k and probes: on one core,
    `max_work` pairs take .1 to .6 s, and an explanation of 200 candidates 1.1 s.

    Raises:
        InputError: a count above `max_candidates`, or contexts beyond these limits.
    """
    together = 0
    for one in methods:
        counts = {name: value for name, value in one.params.to_dict().items() if type(value) is int}
        for name, value in counts.items():
            if value > limits.max_candidates and value != getattr(type(one.params), name, None):  # a default is fine
                raise InputError(f"{one.name}: {name}={value}: expected {limits.max_candidates} at most here")
        hops = counts.get("hops", 1)
        if hops > 1 and candidates * min(counts["k"], WIDE_GRAPH) ** hops > MOST_REACHED:
            raise InputError(f"{one.name}: hops={hops}: reaches too many documents; ask for fewer hops or hits")
        if one.kind != "reranker":
            continue
        context = min(counts.pop("context", candidates), candidates)
        if explain and context > limits.max_explained:
            raise InputError(f"{one.name}: context={context}: expected {limits.max_explained} at most to be explained")
        together += context * math.prod(sorted(min(value, context) for value in counts.values())[-2:])
    if together > limits.max_work:
        raise InputError(
            f"rerank: context × k × k_exp or probes is {together}, expected {limits.max_work} at most here; ask for "
            "smaller ones"
        )
