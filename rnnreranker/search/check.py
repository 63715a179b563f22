"""What can be seen to fail in a request, before any work."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import as_list, needs_together
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import problems_of, refuse
from rnnreranker.base.method import methods
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.search import sources
from rnnreranker.search.pipeline import FUSION, KINDS
from rnnreranker.search.queries import encoder_of
from rnnreranker.search.request import NO_RERANKING, SearchRequest


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8, which halves of surrogate pairs cannot.

    >>> is_utf8("Ada"), is_utf8("\\ud800")
    (True, False)
    """
    return text.encode(errors="ignore").decode() == text


def check(request: SearchRequest, *others: tuple[object, str]) -> None:
    """Refuse what can be seen to fail.

    Args:
        request: what is asked for.
        others: more faults, reported behind those of the request, see `refuse`.

    Raises:
        InputError: everything that is wrong, unknown methods and settings first.
    """
    query, run, encoded = request.query, request.run, request.encoded_queries
    without_topics = request.topics is None and query is None
    shown_query, shown_run = argument("query"), argument("run")
    wrong = problems_of(
        *(partial(getattr, request, name) for name in ("retrievers", "feedback", "expander", "rerankers", "passages")),
        partial(encoder_of, request.encoder),
        partial(getattr, request, "devices"),
        partial(asked_fields, request.documents, request.fields),
    )
    refuse(
        *((True, problem) for problem in wrong),
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
        *((True, problem) for problem in ([] if wrong else _problems_of_methods(request))),
        *others,
    )


def _problems_of_methods(request: SearchRequest) -> list[str]:
    """What is wrong with methods, each of which is good by itself, beside each other."""
    count = len(KINDS) if request.auto else len(request.retrievers)
    problems = problems_of(partial(request.fusion, 0 if request.auto else count, FUSION if request.auto else None))
    if request.fuse is not None and count < 2:
        source = argument("run") if request.run is not None else argument("retrieve", request.retrieve)
        problems = [f"{argument('fuse', request.fuse)}: joins several retrievers, not {source}"]
    if request.feedback is not None and not request.auto and request.run is None:
        names = [one.name for one in request.retrievers]
        problems += problems_of(partial(check_feedback, request.feedback.name, names))
    return [*problems, *_problems_of_reranking(request)]


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
    needs = needs_together(together) - (set() if request.encoded_queries is None else {"query vectors"})
    if {"query vectors", "query tokens", "impacts"} & needs:
        return []
    if any(one.method.takes_device for one in request.rerankers):
        return []
    given = ("compute_dtype", request.compute_dtype) if request.device is None else ("device", request.device)
    named = " and ".join(one.name for one in together) or "nothing"
    return [f"{argument(*given)}: queries are encoded there, and rerankers of models compute; here {named} works alone"]
