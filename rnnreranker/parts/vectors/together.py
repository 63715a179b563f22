"""Whether query and document vectors belong together, judged by the first candidates of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.parts.vectors.exact import all_finite
from rnnreranker.rnn.checks import FALL, fall

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

QUERIES, DEPTH = 100, 5  # queries that are looked at, spread evenly over the run, and their first candidates
# A query is more like its own candidates than like those of a share of the other queries. For true pairs the share is
# .93 or more (.97 for 80 queries): BM25, SPLADE, dense and reranked runs of Cranfield, NQ-UTD, SciFact, XQuAD, pydoc.
# It is .32 to .62 where documents or queries are permuted, or rotated as those of another encoder are.
# Vectors are apart where the share and three standard errors are below this limit.
APART = 0.85
CHANCE = 0.29  # the standard deviation of that share of one query by chance
FEWEST = 8  # queries, and for each of them this many others without a candidate in common
UNIT, OTHER = 0.01, 0.2  # lengths differ from 1 at most by the first; a median that differs by the second is another


def mismatch(run: Run, queries: QueryVectors, source: VectorSource) -> str:
    """A sentence for a notice if the scores are distances or the vectors do not belong together, else "".

    Args:
        run: of the queries; queries: in the order of their file; source: of the same dimension.
    """
    row_of = {qid: row for row, qid in enumerate(queries.qids)}
    filled = [one for one in np.flatnonzero(np.diff(run.offsets)).tolist() if run.qids[one] in row_of]
    looked_at = {filled[at] for at in np.linspace(0, len(filled) - 1, QUERIES).astype(int)} if filled else ()
    entries = sorted(
        (row_of[run.qids[one]], at) for one in looked_at for at in range(*run.offsets[one : one + 2])[:DEPTH]
    )
    rows = source.rows([str(run.docids[run.rows[at]]) for _, at in entries])
    asked, at = np.array(entries, dtype=np.int64).reshape(-1, 2)[rows >= 0].T
    scores, rows = run.scores[at], rows[rows >= 0]
    if not len(rows):
        return ""
    distinct, owner = np.unique(asked, return_inverse=True)
    own, candidates = queries.vectors[distinct], source.fetch(rows)
    with np.errstate(over="ignore", invalid="ignore"):  # the user of the vectors reports those that are not finite
        each = np.split(np.arange(len(rows)), np.flatnonzero(np.diff(owner)) + 1)
        if fall((scores[its], query, candidates[its]) for its, query in zip(each, own, strict=True)):
            return FALL
        if said := _other_lengths(own, candidates):
            return said
        apart = _are_apart(own, candidates, rows, owner)
    if apart is None:
        return ""
    return (
        "query and document vectors hardly belong together: a query is more like its own first candidates "
        f"than like those of {apart:.0%} of the other queries (97% or more in true pairs, 50% by chance); "
        "check that ids and rows stand in the same order, that no header line is among the ids, and that one encoder "
        "made both sides"
    )


def notice_mismatch(run: Run, queries: QueryVectors, source: VectorSource) -> None:
    if said := mismatch(run, queries, source):
        notice(said)


def _other_lengths(queries: np.ndarray, documents: np.ndarray) -> str:
    lengths = [("query", np.linalg.norm(queries, axis=1)), ("document", np.linalg.norm(documents, axis=1))]
    for (one, unit), (other, others) in (lengths, lengths[::-1]):
        median = float(np.median(others))
        if (np.abs(unit - 1) <= UNIT).all() and not 1 - OTHER < median < 1 / (1 - OTHER):
            return (
                f"{one} vectors have length 1, but {other} vectors have lengths around {median:.3g}; normalise "
                "both sides or neither, or the longer side decides all neighbourhoods"
            )
    return ""


def _are_apart(queries: np.ndarray, documents: np.ndarray, rows: np.ndarray, owner: np.ndarray) -> float | None:
    """The mean share of other queries whose candidates are less similar to a query than its own; None if it is high.

    Only queries without a common candidate count; None if there are too few. documents: (m, d) candidates, of (m,)
    rows; owner: (m,) ascending query numbers.
    """
    if not (all_finite(queries) and all_finite(documents)):
        return None
    counts = np.bincount(owner)
    means = np.add.reduceat(queries @ documents.T, np.cumsum(counts) - counts, axis=1) / counts
    columns = np.unique(rows, return_inverse=True)[1]
    has = np.zeros((len(counts), int(columns.max()) + 1), dtype=np.float32)
    has[owner, columns] = 1
    compared = has @ has.T == 0
    own = np.diag(means)[:, None]
    less, others = ((means < own) + (means == own) / 2) * compared, compared.sum(axis=1)
    enough = others >= FEWEST
    if np.count_nonzero(enough) < FEWEST:
        return None
    shares = less.sum(axis=1)[enough] / others[enough]
    error = max(float(shares.std(ddof=1)), CHANCE) / float(np.sqrt(len(shares)))
    return float(shares.mean()) if shares.mean() + 3 * error < APART else None
