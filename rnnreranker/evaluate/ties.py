"""Equal scores: every tool behind ir-measures sorts them itself, as published figures are computed.

trec_eval by float32 score, then descending docid; MS MARCO's RR@k, which trec_eval has only without the cutoff, by
ascending docid. Runs that `Run.write` has written have no ties.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rnnreranker.runs import Run


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


def scored(run: Run, topics: Iterable[str]) -> dict[str, dict[str, float]]:
    """{topic: {docid: score}} of the topics with entries."""
    bounds = dict(zip(run.qids, zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True), strict=True))
    entries = {}
    for topic in topics:
        first, last = bounds.get(topic, (0, 0))
        if first < last:
            docids = run.docids[run.rows[first:last]].tolist()
            entries[topic] = dict(zip(docids, run.scores[first:last].tolist(), strict=True))
    return entries
