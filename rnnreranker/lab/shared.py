"""What commands of the laboratory share: query sets with their candidates and judgements, printed reports, records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnreranker.base.command import print_table
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import check_writable
from rnnreranker.base.pages import render
from rnnreranker.base.settings import Request, setting
from rnnreranker.search.request import QueriesRequest

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import Index
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True, kw_only=True)
class VectorsRequest(QueriesRequest):
    """Queries with vectors and candidates; run: a Run or a file, None = dense retrieval."""

    run: str | Path | Run | None = setting(None, "candidates (default: retrieved densely)")
    threads: int | None = setting(None, "default: one per core; results do not depend on it", at_least=1)

    def lacking(self, *names: str) -> list[tuple[object, str]]:
        """Faults, as in `refuse`: arguments that are missing."""
        return [(getattr(self, name) is None, f"{argument(name)} is missing") for name in names]

    def query_vectors(self, index: Index, topics: Mapping[str, str], wanted: Iterable[str] | None) -> QueryVectors:
        """The vectors of the wanted topics, as `search` makes them; the one way into vectors of the laboratory."""
        from rnnreranker.search.queries import query_vectors

        return query_vectors(self.encoding, index, topics, wanted, threads=self.threads)


class JudgedQueries(NamedTuple):
    """Candidates of the judged topics, their vectors, their texts, and the judgements."""

    run: Run
    queries: QueryVectors
    texts: dict[str, str]
    qrels: pandas.DataFrame


def judged_topics(request: Any) -> dict[str, str]:
    """The topics of a request that its qrels judge: query id → text.

    Raises:
        InputError: unreadable files, no topic with a judgement.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    texts, judged = topics_of(request.topics), set(qrels_of(request.qrels)["query_id"].tolist())
    if not (chosen := {qid: text for qid, text in texts.items() if qid in judged}):
        shown = request.shown("topics")
        raise InputError(f"{request.shown('qrels')}: judges none of the {len(texts)} topics of {shown}")
    return chosen


def read_query_set(request: Any, index: Index, hits: int) -> JudgedQueries:
    """The query set of a `VectorsRequest` with `qrels`; topics without judgements or candidates are not encoded.

    hits: candidates a query.

    Raises:
        InputError: unreadable files, or files that do not belong together.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.own_documents import notice_own
    from rnnreranker.search.searching import first_stage_of

    chosen, threads = judged_topics(request), request.threads
    whole = None if request.run is None else first_stage_of(request.run)
    if whole is not None:
        chosen = {qid: text for qid, text in chosen.items() if qid in whole}
        if not chosen:
            shown = f"none of its queries is a judged topic of {request.shown('topics')}"
            raise InputError(f"{request.shown('run')}: {shown}")
    queries = request.query_vectors(index, topics_of(request.topics), chosen)
    if whole is None:
        candidates = dense_run(index.vectors, queries, hits, threads=threads).as_written()
    else:
        candidates = whole.only(chosen).head(hits)
        notice_mismatch(candidates, queries, index.vectors)
    notice_own(candidates, f"give {argument('run')} of a search with --remove-query to leave it out")
    return JudgedQueries(candidates, queries, chosen, qrels_of(request.qrels))


@dataclass(frozen=True)
class LabFlags(Request):
    """Flags of commands that measure with settings of rNN; the Python functions have no such arguments."""

    output: str | None = setting(None, "write the record of everything measured", metavar="FILE.json")
    preset: str | None = setting(None, "published parameters (tas-b, cocondenser, …) or a YAML file")


def print_report(template: str, **values: Any) -> None:
    """Print the tables of a report: blank lines of its template divide them, tabs their cells; the header is first."""
    for table in render("lab", f"{template}.txt.j2", **values).strip().split("\n\n"):
        header, *rows = (line.split("\t") for line in table.splitlines())
        print_table(header, rows)


@contextmanager
def recorded(path: str | None, module: str, kind: str, argv: Sequence[str], **about: Any) -> Iterator[dict[str, Any]]:
    """A block that gives name, outcome and inputs of the record of a command, which is written if a file is given.

    Args:
        path: a file that no other process writes; it is replaced as a whole.
        module, kind, argv, about: as in `record.of_command`.

    Raises:
        InputError: the file cannot be written.
    """
    from rnnreranker.base.record import of_command, write_records

    check_writable(path)
    made: Any = {"module": module, "kind": kind, "argv": argv, "begun": time.perf_counter(), **about}
    yield made
    if path:
        write_records(path, [of_command(**made)])
