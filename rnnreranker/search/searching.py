"""`Index.search` and the command: topics and a first-stage run are read, and the methods of a request carried out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import first_line
from rnnreranker.base.method import names
from rnnreranker.base.request import asked
from rnnreranker.search.check import check
from rnnreranker.search.request import SearchRequest

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run
    from rnnreranker.search.pipeline import Pipeline

FILES = (".tsv", ".txt", ".json", ".jsonl", ".trec")  # endings of files of topics, plain or .gz


@dataclass(frozen=True, eq=False)
class Searched:
    """A search that was made.

    Attributes:
        topics: query id to text; of a run without topics the ids alone.
        pipeline: what it worked with.
        stages: the run of every stage: retrieved, expanded, reranked; of passages where they are retrieved.
    """

    topics: dict[str, str]
    pipeline: Pipeline
    stages: list[Run]

    @property
    def run(self) -> Run:
        """The run of the last stage, `hits` documents a query."""
        return self.pipeline.documents(self.stages[-1], self.pipeline.hits)


def request_of(index: IndexOnDisk, topics: Any, **others: Any) -> SearchRequest:
    """The request of a search of an index; topics: a name, a file, {qid: text}, or the text of one query.

    Raises:
        InputError: arguments that there are not (with the nearest names).
    """
    one = isinstance(topics, str) and _is_text(topics)
    return asked(SearchRequest, {"index": index, "query" if one else "topics": topics, **others})


def _is_text(topics: str) -> bool:
    """Whether a text is a query, and no name or path of topics: it has white space, and is and looks like no file."""
    path = Path(topics.removesuffix(".gz"))
    return len(topics.split()) > 1 and path.suffix not in FILES and not Path(topics).exists()


def search(request: SearchRequest) -> Run:
    """The run of a request.

    Raises:
        InputError: everything that can be seen to be wrong with it, at once; no such index, topics or run.
        UnavailableError, MissingDependencyError: an index, an encoder or Java that cannot be had here.
    """
    check(request)
    topics, given = read_queries(request)
    return searched(request, topics, given).run


def searched(
    request: SearchRequest, topics: dict[str, str], given: Run | None, qrels: pandas.DataFrame | None = None
) -> Searched:
    """All stages of a request that was checked.

    Args:
        request: what is asked for; topics and given: as of `read_queries`.
        qrels: judgements, for methods that read them.
    """
    from rnnreranker.search.pipeline import open_pipeline

    pipeline = open_pipeline(request, topics, qrels, given)
    return Searched(topics, pipeline, pipeline.stages(given))


def read_queries(request: SearchRequest) -> tuple[dict[str, str], Run | None]:
    """The topics of a request, and its run cut at its candidates, whose queries are all among them.

    Raises:
        InputError: unreadable ones, queries of the run that are no topics.
    """
    topics: dict[str, str] | None = None
    if request.query is not None:
        topics = {"query": request.query}
    elif request.topics is not None:
        from rnnreranker.data.topics import topics_of

        topics = topics_of(request.topics)
    given = None if request.run is None else _given_run(request, topics)
    if topics is None:
        assert given is not None
        topics = dict.fromkeys(given, "")
    return topics, given


def _given_run(request: SearchRequest, topics: dict[str, str] | None) -> Run:
    from rnnreranker.runs import Run
    from rnnreranker.search.own_documents import without_own
    from rnnreranker.search.searching import read_first_stage

    source = request.run
    if isinstance(source, Run):
        run, shown = source, argument("run")
    else:
        run = read_first_stage(str(source)) if request.rerankers else Run.read(Path(str(source)))
        shown = str(source)
    run = (without_own(run, request.passages) if request.remove_query else run).head(request.candidates)
    lost = [qid for qid in run if topics is not None and qid not in topics]
    if lost:
        raise InputError(
            f"{shown}: {len(lost)} of its {len(run)} queries are not in {request.topics_name} "
            f"(first: {', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return run


def first_stage_of(given: str | Path | Run) -> Run:
    """The run of a file, see `read_first_stage`; a run that is read as it is."""
    return read_first_stage(str(given)) if isinstance(given, str | Path) else given


def read_first_stage(path: str) -> Run:
    """The run of a file, as `Run.read` gives it; warns on stderr when its tag names a reranker, as `search` writes it.

    Raises:
        InputError: as `Run.read`.
    """
    from rnnreranker.runs import Run

    run = Run.read(path)
    columns = first_line(path).split()
    tag = columns[5] if len(columns) == 6 else ""
    _, dot, name = tag.rpartition(".")
    if dot and name in names("reranker"):
        say(
            f"{Path(path).name}: was reranked by {name} already (tag {tag}); "
            "expected a first-stage run, made with --rerank none"
        )
    return run
