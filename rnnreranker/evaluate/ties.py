"""Equal scores: in which order measures see the documents that have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.runs import Run

TIES = ("trec_eval", "docid")
DEFAULT_TIES = TIES[0]  # published figures are computed so
TIES_HELP = "equal scores: as trec_eval sorts them (default), or by ascending docid, as they stand in a run here"


def check_ties(ties: str) -> None:
    """Refuse a word that names no order.

    - `trec_eval`: ir-measures is given the scores, so that every tool behind it sorts them itself: trec_eval by float32
      score, then descending docid; MS MARCO's RR@k, which trec_eval has only without the cutoff, by ascending docid.
    - `docid`: the order of the run, in which equal scores stand by ascending docid.

    Runs that `Run.write` has written have no ties: both orders are the same.

    Raises:
        InputError: another word.
    """
    if ties not in TIES:
        raise InputError(f"ties {ties!r}; {nearest(ties, TIES)}")


def cut(run: Run, depth: int) -> Run:
    """The first `depth` entries of every query and those whose float32 score equals that of the last of them."""
    if not len(run.rows):
        return run
    with np.errstate(over="ignore"):
        single = run.scores.astype(np.float32)
    last = run.offsets[:-1] + np.minimum(np.diff(run.offsets), depth) - 1
    kept = (run.ranks <= depth) | (single == single[last][run.queries])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(run.queries[kept], minlength=len(run)))]).astype(np.int64)
    return Run(run.qids, offsets, run.docids, run.rows[kept], run.scores[kept])


def scored(run: Run, topics: Iterable[str], ties: str) -> dict[str, dict[str, float]]:
    """{topic: {docid: score}} of the topics with entries, with scores that make ir-measures see the order of `ties`."""
    scores = run.scores if ties == "trec_eval" else -run.ranks.astype(np.float64)  # ranks: no tool finds a tie
    bounds = dict(zip(run.qids, zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True), strict=True))
    entries = {}
    for topic in topics:
        first, last = bounds.get(topic, (0, 0))
        if first < last:
            docids = run.docids[run.rows[first:last]].tolist()
            entries[topic] = dict(zip(docids, scores[first:last].tolist(), strict=True))
    return entries
