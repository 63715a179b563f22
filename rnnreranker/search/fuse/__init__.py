"""Fusion of runs of the same queries, and of passages to documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import refuse
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import fuse, fusion
from rnnreranker.search.own_documents import documents_of
from rnnreranker.search.request import passages

USUAL = "rrf"


def fuse_runs(
    runs: Sequence[str | Path | Run], method: Form | None = None, *, aggregate: Form | None = None, hits: int = 1000
) -> Run:
    """Fuse runs, as `python -m rnnreranker.fuse`; queries in the order of the first run, equal scores by ascending
    docid.

    Args:
        runs: two or more files or runs; one if `aggregate` is given.
        method: `rrf:k=60` or `minmax:weights="0.3,0.7"`; None = rrf.
        aggregate: passages to documents, `maxp:passages=mapping.tsv`.
        hits: documents kept of every query.

    Raises:
        InputError: all visible faults at once, unreadable files, passages without a document.
    """
    to = None if aggregate is None else passages(aggregate)
    names = [f"run {number}" if isinstance(run, Run) else str(run) for number, run in enumerate(runs, 1)]
    alone = names[0] if len(names) == 1 else ""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    refuse(
        (not names, f"{argument('runs')}: none; give two or more to fuse"),
        (
            alone and to is None,
            f"{alone}: one run alone; give two or more to fuse, or {argument('aggregate')} for its documents",
        ),
        (alone and method is not None, f"{argument('method', method)}: joins several runs, not {alone} alone"),
        (twice, f"{', '.join(twice)}: given twice; give every run once, with weights to count one more"),
        (hits < 1, f"{argument('hits', hits)}: expected an integer >= 1"),
    )
    how = fusion(method or USUAL, len(names), "method")
    fused, *others = [run if isinstance(run, Run) else Run.read(run) for run in runs]
    if others:
        kept = hits if to is None else None
        fused = fuse([fused, *others], how.fuse, k=how.k, weights=how.weight_of_runs, hits=kept, names=names)
    return fused if to is None else documents_of(fused, to).head(hits)
