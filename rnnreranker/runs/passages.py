"""Runs of passages as runs of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rnnreranker.base.command import notice, phase
from rnnreranker.base.settings import Params, hints_of, setting
from rnnreranker.runs.columns import Docids, encode
from rnnreranker.runs.ordering import ascending
from rnnreranker.runs.run import Run

AGGREGATE_HELP = (
    "passages to documents, as the last step: the score of the best passage, of the first one that the run has, or the "
    "sum of all"
)
PASSAGES_HELP = (
    "what document a passage is of: its id up to the last such sign or signs, a file passage<TAB>document, or the "
    "ir_datasets id of the passages"
)


@dataclass(frozen=True)
class PassageParams(Params):
    """How passages become documents."""

    aggregate: Literal["maxp", "firstp", "sump"] = setting("maxp", AGGREGATE_HELP)
    passages: str = setting("#", PASSAGES_HELP)
    hits: int | None = setting(
        None, "passages a query before that (none: 10 times the documents; all of a given run)", at_least=1
    )


AGGREGATES = tuple(hints_of(PassageParams)["aggregate"].words)


@phase("passages to documents")
def to_documents(
    run: Run, documents: Sequence[str] | np.ndarray, aggregate: str = "maxp", *, order: np.ndarray | None = None
) -> Run:
    """The run of the documents of a run's passages.

    For a document d and its passages P(d) in the run of a query, with scores s: maxp = max s(p), firstp = s(the p of
    lowest `order`), sump = sum s(p). Scores are rounded to float32, the precision of trec_eval; ties by ascending
    docid.

    Args:
        documents: (V,) the document of each distinct passage, in the order of `run.docids`.
        aggregate: "maxp", "firstp" or "sump".
        order: (V,) integers, the position of a passage in its document, for firstp.

    Raises:
        InputError: sums beyond float32.

    >>> run = Run.from_dict({"q": {"a#1": 3.0, "b#0": 2.0, "a#0": 1.5}})
    >>> to_documents(run, ["a", "b", "a"])["q"]
    [('a', 3.0), ('b', 2.0)]
    >>> to_documents(run, ["a", "b", "a"], "firstp", order=np.array([1, 0, 0]))["q"]
    [('b', 2.0), ('a', 1.5)]
    """
    names, codes = encode(documents, "documents")
    span = max(len(names), 1)
    pairs = run.queries * span + codes[run.rows]
    if aggregate == "firstp":
        assert order is not None
        at = np.unique(order, return_inverse=True)[1]  # equal positions: the better one
        entries = np.lexsort((at[run.rows], pairs))
    else:
        entries = ascending(pairs, len(run.qids) * span)  # of a document: best first
    pairs = pairs[entries]
    first = np.flatnonzero(np.append(True, np.diff(pairs) > 0)[: len(pairs)])
    if aggregate == "sump":
        sizes = np.diff(np.append(first, len(pairs)))
        if below := np.count_nonzero((run.scores[entries] < 0) & np.repeat(sizes > 1, sizes)):
            notice(
                f"sump: {below:,} of {len(pairs):,} scores are below 0: every such passage lowers its document; "
                "use maxp, or scores of 0 or more"
            )
    with np.errstate(over="ignore"):
        if aggregate == "sump":
            scores = np.add.reduceat(run.scores[entries], first) if len(first) else run.scores[:0]
        else:
            scores = run.scores[entries[first]]
    return Run.from_pairs(run.qids, Docids(names), pairs[first], scores, f"{aggregate}: a document's score")
