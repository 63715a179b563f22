"""Documents of a run: those that are queries themselves, as in ArguAna, and those of passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import counted, notice
from rnnreranker.data.passage_documents import documents_by
from rnnreranker.runs import Run
from rnnreranker.runs.passages import to_documents

if TYPE_CHECKING:
    from rnnreranker.runs.passages import PassageParams


def without_own(run: Run, passages: PassageParams | None = None) -> Run:
    """The run without entries whose docid is the id of their query; all queries stay.

    passages: maps docids to documents; None = they are documents. InputError: passages without a known document.

    >>> without_own(Run.from_dict({"a": {"a": 2.0, "b": 1.0}, "c": {"a": 1.0}})).to_dict()
    {'a': {'b': 1.0}, 'c': {'a': 1.0}}
    """
    numbers = {qid: number for number, qid in enumerate(run.qids)}
    names = run.docids if passages is None else documents_by(passages.passages, run.docids)[0]
    own = np.fromiter((numbers.get(name, -1) for name in names), dtype=np.int64, count=len(run.docids))
    kept = own[run.rows] != run.queries
    return run if kept.all() else run.where(kept)


def notice_own(run: Run, remedy: str) -> None:
    """Report in one line the queries whose first document is their own, with their id as its docid, and the `remedy`.

    Numbers may name a query and another document by chance: they count for three queries or for half of them.
    """
    queries = np.flatnonzero(np.diff(run.offsets))
    first = zip(queries.tolist(), run.docids_of(run.offsets[queries]).tolist(), strict=True)
    own = [docid for query, docid in first if docid == run.qids[query]]
    if own and (2 * len(own) >= min(6, len(run)) or not all(map(str.isdecimal, own))):
        notice(
            f"{len(own)} of {counted(len(run), 'query', 'queries')} found their own document, whose docid is the qid "
            f"(first: {', '.join(own[:3])}); {remedy}"
        )


def documents_of(run: Run, params: PassageParams) -> Run:
    """The documents of a run of passages.

    Raises:
        InputError: passages without a known document, and as `to_documents`.
        UnavailableError: an ir_datasets id whose data are not here.
    """
    names, order = documents_by(params.passages, run.docids, ordered=params.aggregate == "firstp")
    return to_documents(run, names, params.aggregate, order=order)


def best_passages(run: Run, params: PassageParams) -> dict[str, str]:
    """Document → its best passage in the run of one query."""
    (qid,) = run.qids
    ranked = run.ranked(qid)
    return dict(zip(reversed(documents_by(params.passages, ranked)[0].tolist()), reversed(ranked), strict=True))
