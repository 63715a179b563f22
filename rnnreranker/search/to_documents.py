"""The last step of a search: a run of passages, as a run of the documents that they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.data.passage_documents import documents_by
from rnnreranker.runs.passages import to_documents

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.runs.passages import PassageParams


def documents_of(run: Run, params: PassageParams, hits: int | None = None) -> Run:
    """The documents of a run of passages, `hits` of every query.

    Raises:
        InputError: passages whose document is not known, and as `to_documents`.
        UnavailableError: an ir_datasets id whose data are not here.
    """
    names, order = documents_by(params.passages, run.docids, ordered=params.aggregate == "firstp")
    return to_documents(run, names, params.aggregate, order=order, hits=hits)


def best_passages(run: Run, params: PassageParams) -> dict[str, str]:
    """Document → the best of its passages, in a run of one query."""
    (qid,) = run.qids
    ranked = run.ranked(qid)
    names, _ = documents_by(params.passages, ranked)
    return dict(zip(reversed(names.tolist()), reversed(ranked), strict=True))
