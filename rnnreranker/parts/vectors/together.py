"""Whether query and document vectors belong together, judged by the first candidates of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.parts.vectors.exact import all_finite

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
# Vectors are shifted where the products of the neighbouring rows are larger by so many standard errors. For true pairs
# they are smaller, by 1.6 or more (20 queries of XQuAD); for vectors that are apart they may be larger by 5.
SHIFTED, SHIFTED_NOT_APART = 3.0, 7.0
UNIT, OTHER = 0.01, 0.2  # lengths differ from 1 at most by the first; a median that differs by the second is another


def mismatch(run: Run, queries: QueryVectors, source: VectorSource) -> str:
    """A sentence for a notice if the vectors do not belong together, else "".

    Args:
        run: its scores are not used; queries: in the order of their file; source: of the same dimension.
    """
    row_of = {qid: row for row, qid in enumerate(queries.qids)}
    filled = np.flatnonzero(np.diff(run.offsets)).tolist()
    numbers = np.array([number for number in filled if run.qids[number] in row_of], dtype=np.int64)
    if not len(numbers):
        return ""
    numbers = numbers[np.unique(np.linspace(0, len(numbers) - 1, QUERIES).astype(np.int64))]
    heads = [run.docids[run.rows[run.offsets[one] : run.offsets[one + 1]][:DEPTH]].tolist() for one in numbers]
    rows = source.rows([docid for head in heads for docid in head])
    known = rows >= 0
    left, owner = np.unique(np.repeat(np.arange(len(numbers)), list(map(len, heads)))[known], return_inverse=True)
    if not len(left):
        return ""
    query_rows = np.array([row_of[run.qids[number]] for number in numbers[left].tolist()])
    rows = rows[known]
    own, candidates = queries.vectors[query_rows], source.fetch(rows)
    with np.errstate(over="ignore", invalid="ignore"):  # the user of the vectors reports those that are not finite
        if said := _other_lengths(own, candidates):
            return said
        apart = _are_apart(own, candidates, rows, owner)
        larger, side, where = max(_shifts(queries.vectors, source, query_rows, rows, owner))
    if larger > (SHIFTED if apart is None else SHIFTED_NOT_APART):
        return (
            f"{side} vectors are shifted against their ids: the vectors of the rows {where} fit the run better; check "
            "that ids and rows stand in the same order, and that no header line is among the ids"
        )
    if apart is not None:
        return (
            "query and document vectors hardly belong together: a query is more like its own first candidates "
            f"than like those of {apart:.0%} of the other queries (97% or more in true pairs, 50% by chance); "
            "check that ids and rows stand in the same order, and that one encoder made both sides"
        )
    return ""


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


def _shifts(
    queries: np.ndarray, source: VectorSource, query_rows: np.ndarray, rows: np.ndarray, owner: np.ndarray
) -> list[tuple[float, str, str]]:
    """For each side and direction: by how many standard errors the products with the neighbouring rows are larger."""
    asked, unmoved, shifts = query_rows[owner], np.empty(0), []
    for side, step in (("", 0), ("query", 1), ("query", -1), ("document", 1), ("document", -1)):
        moved = (asked + step * (side == "query"), rows + step * (side == "document"))
        here = [np.clip(one, 0, most - 1) for one, most in zip(moved, (len(queries), len(source.docids)), strict=True)]
        products = np.einsum("md,md->m", queries[here[0]], source.fetch(here[1]))
        if not side:
            unmoved = products
            continue
        there = (here[0] == moved[0]) & (here[1] == moved[1])
        counts = np.bincount(owner, weights=there)
        means = np.bincount(owner, weights=(products - unmoved) * there)[counts > 0] / counts[counts > 0]
        error = float(means.std(ddof=1)) / np.sqrt(len(means)) if len(means) >= FEWEST else 0.0
        shifts.append((float(means.mean()) / error if error > 0 else 0.0, side, "after" if step > 0 else "before"))
    return shifts
