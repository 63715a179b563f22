"""Documents of a run: those that are queries themselves, as in ArguAna, and those of passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import counted, notice
from rnnreranker.data.passage_documents import documents_by
from rnnreranker.runs import Run
from rnnreranker.runs.passages import to_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnnreranker.runs.passages import PassageParams

FIRST = 10  # entries of a query among which its own document is looked for


def own_entries(run: Run, documents: Sequence[str] | np.ndarray | None = None) -> np.ndarray:
    """(L,) bool: whether the docid of an entry is the id of its query.

    documents: (V,) the document of each of the run's docids; None = the docids themselves.

    >>> own_entries(Run.from_dict({"a": {"a": 2.0, "b": 1.0}, "c": {"a": 1.0}})).tolist()
    [True, False, False]
    """
    numbers = {qid: number for number, qid in enumerate(run.qids)}
    names = run.docids if documents is None else documents
    own = np.fromiter((numbers.get(name, -1) for name in names), dtype=np.int64, count=len(run.docids))
    return np.asarray(own[run.rows] == run.queries)


def without_own(run: Run, passages: PassageParams | None = None) -> Run:
    """The run without entries whose docid is the id of their query; all queries stay.

    passages: maps docids to documents; None = they are documents. InputError: passages without a known document.
    """
    kept = ~own_entries(run, None if passages is None else documents_by(passages.passages, run.docids)[0])
    return run if kept.all() else run.where(kept)


def notice_own(run: Run, remedy: str) -> None:
    """Report in one line the queries that have their own document among their first entries, and the `remedy`.

    Numbers may name a query and another document by chance. They count if at least half of the own documents come
    first, for three queries or for half of them.
    """
    top = run.head(FIRST)
    rows, numbers = np.unique(top.rows, return_inverse=True)
    own = own_entries(Run(top.qids, top.offsets, run.ids.of_rows(rows), numbers.astype(np.int32), top.scores))
    retrieved, first = int(own.sum()), int((own & (top.ranks == 1)).sum())
    names = [run.qids[query] for query in top.queries[own].tolist()]
    by_chance = all(name.isdecimal() for name in names) and not (
        2 * first >= retrieved and (first >= 3 or 2 * first >= len(run))
    )
    if retrieved and not by_chance:
        notice(
            f"{retrieved} of {counted(len(run), 'query', 'queries')} found their own document, whose docid is the qid "
            f"(first: {', '.join(names[:3])}); {remedy}"
        )


def documents_of(run: Run, params: PassageParams | None) -> Run:
    """The documents of a run of passages; without `params` the run itself.

    Raises:
        InputError: passages without a known document, and as `to_documents`.
        UnavailableError: an ir_datasets id whose data are not here.
    """
    if params is None:
        return run
    names, order = documents_by(params.passages, run.docids, ordered=params.aggregate == "firstp")
    return to_documents(run, names, params.aggregate, order=order)


def best_passages(run: Run, params: PassageParams | None) -> dict[str, str]:
    """Document → its best passage in the run of one query; empty without `params`."""
    if params is None:
        return {}
    (qid,) = run.qids
    ranked = run.ranked(qid)
    return dict(zip(reversed(documents_by(params.passages, ranked)[0].tolist()), reversed(ranked), strict=True))
