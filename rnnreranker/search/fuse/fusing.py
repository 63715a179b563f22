"""`fuse_runs` and the command: runs are read, fused, and their passages made into documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import refuse
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import FuseParams, fuse, fusion
from rnnreranker.search.own_documents import documents_of
from rnnreranker.search.request import passages

if TYPE_CHECKING:
    from rnnreranker.runs.passages import PassageParams

USUAL = "rrf"


def fuse_runs(
    runs: Sequence[str | Path | Run], method: Form | None = None, *, aggregate: Form | None = None, hits: int = 1000
) -> Run:
    """One run with the documents of several, as `python -m rnnreranker.fuse`.

    Queries stand in the order of the first run, equal scores by ascending docid.

    Args:
        runs: files or runs, two or more; one alone where its passages become documents.
        method: how they are fused, `rrf:k=60` or `minmax:weights="0.3,0.7"`; None = rrf.
        aggregate: passages to documents, `maxp:passages=mapping.tsv`; None = they stay what they are.
        hits: documents kept of every query.

    Raises:
        InputError: everything that can be seen to be wrong with these, unreadable files, passages without a document.
        UnavailableError: a mapping of passages that cannot be downloaded here.
    """
    params, to = checked(runs, method, aggregate, hits)
    read = [run if isinstance(run, Run) else Run.read(run) for run in runs]
    fused = read[0]
    if len(read) > 1:
        kept = hits if to is None else None
        fused = fuse(read, params.fuse, k=params.k, weights=params.weight_of_runs, hits=kept, names=_names(runs))
    return fused if to is None else documents_of(fused, to, hits=hits)


def checked(
    runs: Sequence[str | Path | Run], method: Form | None, aggregate: Form | None, hits: int
) -> tuple[FuseParams, PassageParams | None]:
    """How runs are fused and made into documents, looked at before any is read; see `fuse_runs`.

    Raises:
        InputError: too few runs, one twice, methods that there are not, settings that they do not have.
    """
    to = None if aggregate is None else passages(aggregate)
    names = _names(runs)
    alone = names[0] if len(names) == 1 else ""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    refuse(
        (not names, f"{argument('runs')}: none; give two or more to fuse"),
        (
            alone and to is None,
            f"{alone}: one run alone; give two or more to fuse, or {argument('aggregate')} for its documents",
        ),
        (
            alone and to is not None and method is not None,
            f"{argument('method', method)}: joins several runs, not {alone} alone",
        ),
        (twice, f"{', '.join(twice)}: stands there twice; give every run once, with weights to count one more"),
        (hits < 1, f"{argument('hits', hits)}: expected an integer >= 1"),
    )
    return fusion(method or USUAL, len(names), "method"), to


def _names(runs: Sequence[str | Path | Run]) -> list[str]:
    return [f"run {number}" if isinstance(run, Run) else str(run) for number, run in enumerate(runs, 1)]
