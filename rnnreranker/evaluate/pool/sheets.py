"""`make_sheets`, `read_judgements` and the command: runs to sheets for judges, and filled-in sheets to judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument, in_command
from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.request import Request, asked
from rnnreranker.data.fields import asked_fields

if TYPE_CHECKING:
    from rnnreranker.evaluate.pool.pooling import Agreement, SheetRow
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class PoolRequest(Request):
    """Sheets to be made: the arguments of `make_sheets`, and flags of the command.

    Attributes:
        runs: files or runs.
        topics: a name, a file (with narratives, where it has any), or qid → text.
        documents: texts: a file, an ir_datasets id or `pydoc`; fields: which of theirs, "title,text" or "text".
        depth: ranks taken of every run.
        seed: of the shuffle.
        per_sheet: topics a sheet: FILE-1.tsv, FILE-2.tsv, …; None = all in one.
    """

    runs: Sequence[str | Path | Run] = ()
    topics: str | Path | Mapping[str, str] | None = None
    documents: str | None = None
    fields: str | None = None
    depth: int = 10
    seed: int = 0
    per_sheet: int | None = None


@dataclass(frozen=True)
class Sheets:
    """Sheets that were written: their paths, and qid → docids to judge."""

    paths: list[Path]
    pooled: dict[str, list[str]]


@dataclass(frozen=True)
class Judgements:
    """What judges wrote.

    Attributes:
        rows: of the sheets; ungraded: how many of them have no grade.
        agreement: with the second judge; None without one.
    """

    rows: list[SheetRow]
    ungraded: int
    agreement: Agreement | None

    def write(self, output: str | Path) -> int:
        """Write them as TREC qrels; the number of lines; InputError: a path that cannot be written."""
        from rnnreranker.evaluate.pool.pooling import write_qrels

        return write_qrels(output, self.rows)


def make_sheets(
    runs: Sequence[str | Path | Run],
    topics: str | Path | Mapping[str, str],
    documents: str,
    output: str | Path,
    **others: Any,
) -> Sheets:
    """Sheets for judges of the first documents of runs, as `python -m rnnreranker.pool`.

    They hide runs and ranks: topics stand in their order, the documents of a topic are shuffled.

    Args:
        runs, topics, documents, others: as of `PoolRequest`; output: the sheet to write.

    Raises:
        InputError: everything that can be seen to be wrong, at once; queries of runs that are no topics, documents
            without a text.
        UnavailableError: data that cannot be downloaded here.
    """
    request = asked(PoolRequest, {"runs": runs, "topics": topics, "documents": documents, **others})
    check(request, output)
    return sheets(request, output)


def check(request: PoolRequest, output: str | Path, *others: tuple[object, str]) -> None:
    """Refuse what can be seen to fail, before any work.

    Args:
        request: what is asked for; output: the file to write; others: more faults, reported with those of the request.

    Raises:
        InputError: everything that is wrong.
    """
    asked_fields(request.documents, request.fields)
    needed = [name for name in ("topics", "documents") if not getattr(request, name)]
    refuse(
        *((True, f"{argument(name)} is needed to make a sheet") for name in needed),
        (not request.runs, f"no runs: give at least one to pool{', or --read SHEET' if in_command() else ''}"),
        *others,
        *faults_of_numbers(request.depth, request.seed, request.per_sheet),
    )
    check_writable(output)


def faults_of_numbers(depth: int, seed: int, per_sheet: int | None) -> list[tuple[bool, str]]:
    """What is wrong with the numbers of a sheet, see `refuse`."""
    return [
        (depth < 1, f"{argument('depth', depth)}: expected at least 1"),
        (seed < 0, f"{argument('seed', seed)}: expected 0 or more"),
        (per_sheet is not None and per_sheet < 1, f"{argument('per_sheet', per_sheet)}: expected at least 1"),
    ]


def sheets(request: PoolRequest, output: str | Path) -> Sheets:
    """The sheets of a request that was checked; see `make_sheets`."""
    from rnnreranker.data.documents import load_documents
    from rnnreranker.data.topics import load_narratives, topics_of
    from rnnreranker.evaluate.pool.pooling import pool, write_sheet
    from rnnreranker.runs import Run

    assert request.topics is not None
    assert request.documents is not None
    topics = topics_of(request.topics)
    runs = [run if isinstance(run, Run) else Run.read(run) for run in request.runs]
    pooled = pool(runs, request.depth, topics, request.seed)
    wanted = {docid for docids in pooled.values() for docid in docids}
    texts: dict[str, str] = {}
    source = load_documents(request.documents, asked_fields(request.documents, request.fields))
    for document in progress(source, unit="documents", what="read"):
        if document.docid in wanted:
            texts[document.docid] = document.text
            if len(texts) == len(wanted):
                break
    narratives = {} if isinstance(request.topics, Mapping) else load_narratives(request.topics)
    paths = _paths(Path(output), len(pooled), request.per_sheet)
    qids = list(pooled)
    size = request.per_sheet or max(1, len(qids))
    for number, path in enumerate(paths):
        part = qids[number * size : (number + 1) * size]
        write_sheet(path, {qid: pooled[qid] for qid in part}, topics, narratives, texts)
    return Sheets(paths, pooled)


def read_judgements(
    sheets: Sequence[str | Path], second: Sequence[str | Path] = (), *, allow_missing: bool = False
) -> Judgements:
    """What judges wrote into sheets, as `python -m rnnreranker.pool --read`.

    Args:
        sheets: filled-in ones; second: those of a second judge, for how far both agree.
        allow_missing: rows without a grade are left out in place of refused.

    Raises:
        InputError: rows that cannot be read, each with file:line; rows without a grade, or none with one; second
            sheets of other documents.
    """
    from rnnreranker.evaluate.pool.pooling import agreement, read_sheets

    rows = read_sheets(sheets)
    lost = [row for row in rows if row.grade is None]
    if lost and not allow_missing:
        raise InputError(
            f"{len(lost)} of {len(rows)} rows have no grade (first: {lost[0].where}); "
            f"judge them, or leave them out with {argument('allow_missing')}"
        )
    if len(lost) == len(rows):
        raise InputError(f"{', '.join(map(str, sheets))}: no row has a grade; nothing to write")
    return Judgements(rows, len(lost), agreement(rows, read_sheets(second)) if second else None)


def _paths(output: Path, topics: int, per_sheet: int | None) -> list[Path]:
    if per_sheet is None:
        return [output]
    count = max(1, -(-topics // per_sheet))
    return [output.with_name(f"{output.stem}-{number}{output.suffix}") for number in range(1, count + 1)]
