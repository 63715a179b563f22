"""What can be seen to fail in a request, before any work."""

from __future__ import annotations

import itertools
from pathlib import Path

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import as_list, needs_together
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.method import methods
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.search import sources
from rnnreranker.search.auto import FUSION, candidates
from rnnreranker.search.request import NO_RERANKING, SearchRequest


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8, which halves of surrogate pairs cannot.

    >>> is_utf8("Ada"), is_utf8("\\ud800")
    (True, False)
    """
    return text.encode(errors="ignore").decode() == text


def check(request: SearchRequest) -> None:
    """Refuse what can be seen to fail.

    Raises:
        InputError: everything that is wrong; methods that there are not, settings that they do not have.
    """
    query, run, encoded = request.query, request.run, request.encoded_queries
    without_topics = request.topics is None and query is None
    shown_query, shown_run = argument("query"), argument("run")
    refuse(
        (
            request.topics is not None and query is not None,
            f"give either {argument('topics')} (many queries) or {shown_query} (one)",
        ),
        (
            without_topics and run is None,
            f"give either {argument('topics')} (many queries) or {shown_query} (one query's text)",
        ),
        (
            without_topics and isinstance(encoded, str | Path) and not Path(encoded).with_suffix(".ids").is_file(),
            f"{argument('encoded_queries', encoded)}: which query is which row? give {argument('topics')}, or write "
            f"the query ids to {Path(str(encoded)).with_suffix('.ids')}, one a line",
        ),
        (
            request.retrieve is not None and run is not None,
            f"{argument('retrieve', request.retrieve)}: not with {shown_run}, whose candidates are there already",
        ),
        (query is not None and not query.strip(), f"{shown_query} is empty: expected the text of a query"),
        (query and not is_utf8(query), f"{shown_query} is not UTF-8 text"),
        (
            request.prf is not None and run is not None,
            f"{argument('prf')} searches again: not with {shown_run}, whose candidates are there already",
        ),
        *((True, problem) for problem in _problems_of_reranking(request)),
    )
    count = len(candidates()) if request.auto else len(request.retrievers)
    if request.fuse is not None and count < 2:
        source = shown_run if run is not None else argument("retrieve", request.retrieve)
        raise InputError(f"{argument('fuse', request.fuse)}: joins several retrievers, not {source}")
    request.fusion(0 if request.auto else count, FUSION if request.auto else None)
    if request.feedback is not None and not request.auto:
        check_feedback(request.feedback.name, [one.name for one in request.retrievers])
    asked_fields(request.documents, request.fields)
    for name in ("passages", "expander", "encoding", "devices"):
        getattr(request, name)  # read now: each says what is wrong with its written form


def _problems_of_reranking(request: SearchRequest) -> list[str]:
    """What is wrong with the choice of rerankers."""
    problems = []
    forms = [Written.read(form) for form in as_list(request.rerank)]
    if len(forms) > 1 and (others := [str(one) for one in forms if one.name != NO_RERANKING]) != list(map(str, forms)):
        problems.append(f"{argument('rerank', 'none')} beside {', '.join(others)}; leave none out, or give it alone")
    if any(one == other for one, other in itertools.pairwise(forms)):
        problems.append(f"{argument('rerank')}: the same reranker twice in a row would change nothing; give it once")
    shown = " ".join(argument("rerank", str(one)) for one in forms) or argument("rerank", "none")
    chosen = request.rerankers
    if request.documents and not any("texts" in one.needs for one in chosen):
        takers = " and ".join(name for name, kind in methods("reranker").items() if "texts" in kind.needs)
        problems.append(f"{argument('documents')} gives texts to {takers}: not with {shown}")
    return [*problems, *sources.problems(request), *_problems_of_devices(request)]


def _problems_of_devices(request: SearchRequest) -> list[str]:
    """A device or a type beside methods none of which computes by a model."""
    retrieving, expanding = request.retrievers, [request.expander] if request.expander else []
    if (request.device is None and request.compute_dtype == EXACT) or request.auto:
        return []
    together = [*retrieving, *expanding, *request.rerankers]
    needs = needs_together(together) - ({"query vectors"} if request.encoded_queries else set())
    if {"query vectors", "query tokens", "impacts"} & needs:
        return []
    if any(one.method.takes_device for one in request.rerankers):
        return []
    given = ("compute_dtype", request.compute_dtype) if request.device is None else ("device", request.device)
    named = " and ".join(one.name for one in together) or "nothing"
    return [f"{argument(*given)}: queries are encoded there, and rerankers of models compute; here {named} works alone"]
