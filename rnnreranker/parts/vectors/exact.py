"""Exact inner-product search whose results do not depend on batches, threads or the library that proposes.

A float32 product proposes more candidates than wanted; float64 scores, summed in a fixed order, decide; the proposal
grows until rounding cannot hide a better document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

Propose = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
Fetch = Callable[[np.ndarray], np.ndarray]
SPARE = 16  # candidates proposed beyond those wanted
AT_ONCE = 128  # vectors that a query is multiplied with in float64 at a time, which fit the cache
TOGETHER = 512  # vectors that are multiplied in float64 at a time
STRIP = 32  # products whose maximum is compared before them
SAFE = 1e37  # sums of products below it fit float32
LOWEST = float(np.finfo(np.float32).min)


def exact_search(
    queries: np.ndarray, hits: int, docids: Sequence[str], propose: Propose, fetch: Fetch, spare: int = SPARE
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Scores (float64) and rows (int64) of the `hits` best documents of every query, ties by docid.

    Args:
        queries: (Q, d) float32; docids: row → docid; fetch: rows → (n, d) float32 vectors.
        propose: (queries, count) → scores (Q, count) float32, non-increasing, and rows (Q, count) int64.
        spare: candidates proposed beyond the hits.
    """
    scores: list[np.ndarray] = [np.empty(0)] * len(queries)
    rows: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(queries)
    hits = min(hits, len(docids))
    pending = np.arange(len(queries))
    count = min(len(docids), hits + spare)
    while len(pending) and count:
        proposed_scores, proposed_rows = propose(queries[pending], count)
        unsettled = []
        step = max(1, TOGETHER // count)
        for first in range(0, len(pending), step):
            part = slice(first, first + step)
            own, candidates = queries[pending[part]], proposed_rows[part]
            vectors = fetch(candidates.ravel()).reshape(*candidates.shape, -1)
            products = vectors.astype(np.float64)
            products *= own[:, None]
            true = products.sum(axis=2)  # rows as `inner_products` sums them
            order = best_first(true, candidates, docids)[:, :hits]
            true, candidates = np.take_along_axis(true, order, axis=1), np.take_along_axis(candidates, order, axis=1)
            settled = np.ones(len(own), dtype=bool)
            if count < len(docids):
                settled = proposed_scores[part, -1].astype(np.float64) + rounding(own, vectors) < true[:, -1]
            for i, query in enumerate(pending[part].tolist()):
                if settled[i]:
                    scores[query], rows[query] = true[i], candidates[i]
                else:
                    unsettled.append(query)
        pending = np.array(unsettled, dtype=np.int64)
        count = min(len(docids), 4 * count)
    return scores, rows


def by_blocks(
    queries: np.ndarray,
    count: int,
    blocks: Iterable[tuple[int, np.ndarray]],
    refuse: Callable[[int, np.ndarray], None],
) -> tuple[np.ndarray, np.ndarray]:
    """`propose` of `exact_search` by float32 products: scores and rows (Q, count) of the best rows.

    Args:
        queries: (Q, d) float32; blocks: first row and (n, d) float32 vectors of each; at least `count` rows in all.
        refuse: raises an error for a block with values that are not finite.
    """
    scores, rows = np.empty((len(queries), 0), dtype=np.float32), np.empty((len(queries), 0), dtype=np.int64)
    for first, block in blocks:
        if not all_finite(block):
            refuse(first, block)
        products, held = products_of(queries, block), scores.shape[1]
        floors = scores.min(axis=1) if held == count else np.full(len(queries), -np.inf, dtype=np.float32)
        lines, columns = _above(products, floors, count)
        joining = np.bincount(lines, minlength=len(queries))
        at = held + np.arange(len(lines)) - np.repeat(np.cumsum(joining) - joining, joining)
        shape = len(queries), held + int(joining.max(initial=0))
        joined, numbers = np.full(shape, -np.inf, dtype=np.float32), np.zeros(shape, dtype=np.int64)
        joined[:, :held], numbers[:, :held] = scores, rows
        joined[lines, at], numbers[lines, at] = products[lines, columns], columns + first
        scores, chosen = largest(joined, count)
        rows = np.take_along_axis(numbers, chosen, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def all_finite(vectors: np.ndarray) -> bool:
    """Whether (n, d) float32 has no NaN and no infinity."""
    values = vectors.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.dot(values, values))) or bool(np.isfinite(values).all())


def products_of(queries: np.ndarray, block: np.ndarray) -> np.ndarray:
    """(Q, n) float32; products beyond float32 become its lowest, or infinite, and float64 decides."""
    with np.errstate(over="ignore", invalid="ignore"):
        products: np.ndarray = queries @ block.T
        squares = [float(np.dot(values, values)) for values in (queries.reshape(-1), block.reshape(-1))]
        if not squares[0] * squares[1] < SAFE**2:
            np.nan_to_num(products, copy=False, nan=np.inf, posinf=np.inf, neginf=LOWEST)
    return products


def _above(products: np.ndarray, floors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines, ascending, and columns of the products above the (Q,) floors of their lines.

    A line without a floor gets the lowest of its `count` highest strip maxima.
    """
    width = products.shape[1] // STRIP
    end = STRIP * width
    highest = products[:, :end].reshape(len(products), STRIP, width).max(axis=1)  # of every width-th column
    if width >= count and not np.isfinite(floors).all():
        bound = np.partition(highest, width - count, axis=1)[:, width - count]
        floors = np.maximum(floors, np.nextafter(bound, np.float32(-np.inf)))
    lines, strips = np.nonzero(highest > floors[:, None])
    rest = np.nonzero(products[:, end:] > floors[:, None])
    lines = np.concatenate([np.repeat(lines, STRIP), rest[0]])
    columns = np.concatenate([(strips[:, None] + width * np.arange(STRIP)).ravel(), rest[1] + end])
    kept = np.flatnonzero(products[lines, columns] > floors[lines])
    kept = kept[np.argsort(lines[kept], kind="stable")]
    return lines[kept], columns[kept]


def largest(scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` largest of every line, or all, and their columns, in any order.

    >>> [found.tolist() for found in largest(np.array([[1.0, 3.0, 2.0]]), 1)]
    [[[3.0]], [[1]]]
    """
    if scores.shape[1] <= count:
        return scores, np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    best = np.argpartition(scores, scores.shape[1] - count, axis=1)[:, -count:]
    return np.take_along_axis(scores, best, axis=1), best


def inner_products(query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(n,) float64: the inner products of (d,) and (n, d) float32, every row summed in one fixed order.

    >>> inner_products(np.float32([1, 2]), np.float32([[3, 4], [0.5, 0]])).tolist()
    [11.0, 0.5]
    """
    products = np.empty(len(vectors))
    for first in range(0, len(vectors), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        products[part] = np.multiply(vectors[part], query, dtype=np.float64).sum(axis=1)
    return products


def best_first(scores: np.ndarray, rows: np.ndarray, docids: Sequence[str]) -> np.ndarray:
    """(Q, n) positions that put the (Q, n) scores of each line in descending order, ties by docid.

    >>> best_first(np.array([[1.0, 2.0, 1.0]]), np.array([[0, 1, 2]]), ["b", "c", "a"]).tolist()
    [[1, 2, 0]]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    for line in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)).tolist():
        own = [(-score, docids[row]) for score, row in zip(scores[line], rows[line], strict=True)]
        order[line] = sorted(range(len(own)), key=own.__getitem__)
    return order


def rounding(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(Q,) bounds on the error of a float32 inner product of d terms, 2 d u |q| |v| with u = 2^-24.

    queries: (Q, d); vectors: (Q, n, d), those proposed; the longest represents all, as real errors are far smaller.
    """
    lengths = np.sqrt(np.einsum("qnd,qnd->qn", vectors, vectors).max(axis=1, initial=0.0)).astype(np.float64)
    asked = np.sqrt(np.einsum("qd,qd->q", queries.astype(np.float64), queries.astype(np.float64)))
    return 2.0 * queries.shape[1] * 2.0**-24 * asked * lengths
