"""`Index.search` and its topics and first-stage run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.settings import asked
from rnnreranker.runs import Run
from rnnreranker.search.own_documents import documents_of, without_own
from rnnreranker.search.request import SearchRequest

if TYPE_CHECKING:
    from rnnreranker.index.opening import Index

FILES = (".tsv", ".txt", ".json", ".jsonl", ".trec")  # endings of files of topics, plain or .gz


def search_index(index: str | Path | Index, topics: Any, **others: Any) -> Run:
    """Retrieve and rerank, as `python -m rnnreranker.search`; a run with the scores of the command's file.

    index: open, or what `open_index` takes; topics: a name, a file, {qid: text}, or the text of one query, which gets
    the id `query`; others: as in `SearchRequest`.

    Raises:
        InputError: all visible faults at once; unknown arguments, with the nearest names.
        UnavailableError, MissingDependencyError: an index, an encoder or Java is missing here.
    """
    one = isinstance(topics, str) and _is_text(topics)
    return search(asked(SearchRequest, {"index": index, "query" if one else "topics": topics, **others})).as_written()


def _is_text(topics: str) -> bool:
    """Whether a text is a query: it has white space, and is and looks like no file."""
    path = Path(topics.removesuffix(".gz"))
    is_file = os.path.exists(topics)  # False if the name is too long for one
    return len(topics.split()) > 1 and path.suffix not in FILES and not is_file


def search(request: SearchRequest) -> Run:
    """The run of a request.

    Raises:
        InputError: all visible faults at once; no such index, topics or run.
        UnavailableError, MissingDependencyError: an index, an encoder or Java is missing here.
    """
    from rnnreranker.search.pipeline import Pipeline

    request.check()
    topics, given = read_queries(request)
    run = Pipeline(request, topics, given=given).stages()[-1]
    return (run if request.passages is None else documents_of(run, request.passages)).head(request.hits)


def read_queries(request: SearchRequest) -> tuple[dict[str, str], Run | None]:
    """The topics of a request, and its run cut at the number of candidates; of passages the whole one without `hits`.

    Raises:
        InputError: unreadable ones, queries of the run that are no topics.
    """
    topics: dict[str, str] | None = None
    if request.query is not None:
        topics = {"query": request.query}
    elif request.topics is not None:
        from rnnreranker.data.topics import topics_of

        topics = topics_of(request.topics)
    if request.run is None:
        return topics or {}, None
    run = first_stage_of(request.run)
    run = without_own(run, request.passages) if request.remove_query else run
    run = run if request.passages and request.passages.hits is None else run.head(request.depth)
    shown = argument("query") if request.topics is None else request.shown("topics")
    if lost := [qid for qid in run if topics is not None and qid not in topics]:
        raise InputError(
            f"{request.shown('run')}: {len(lost)} of its {len(run)} queries are not in {shown} "
            f"(first: {', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return dict.fromkeys(run, "") if topics is None else topics, run


def first_stage_of(given: str | Path | Run) -> Run:
    """The run of a file, or a run unchanged."""
    return given if isinstance(given, Run) else Run.read(given)
