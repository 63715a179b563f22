"""Exact inner-product retrieval whose results do not depend on batch size, threads or the library that proposes.

A fast float32 product proposes more candidates than are wanted; their scores are computed again, one fixed way, in
float64; and the proposal is widened until rounding cannot have kept a better document out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

Propose = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
Fetch = Callable[[np.ndarray], np.ndarray]
SPARE = 32  # candidates proposed beyond those wanted


def exact_search(
    queries: np.ndarray, hits: int, docids: Sequence[str], propose: Propose, fetch: Fetch
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Scores (float64) and rows (int64) of the `hits` best documents of every query, ties by docid.

    Args:
        queries: (Q, d) float32.
        hits: documents per query; fewer where there are fewer documents.
        docids: row -> docid.
        propose: (queries, count) -> scores (Q, count) float32, non-increasing, and rows (Q, count) int64.
        fetch: rows -> (n, d) float32 vectors.
    """
    scores: list[np.ndarray] = [np.empty(0)] * len(queries)
    rows: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(queries)
    hits = min(hits, len(docids))
    pending = np.arange(len(queries))
    count = min(len(docids), hits + SPARE)
    while len(pending) and count:
        proposed_scores, proposed_rows = propose(queries[pending], count)
        unsettled = []
        for i, query in enumerate(pending):
            vectors = fetch(proposed_rows[i])
            true = inner_products(queries[query], vectors)
            order = best_first(true, proposed_rows[i], docids)[:hits]
            if count < len(docids):
                slack = _rounding(queries[query], vectors)
                if float(proposed_scores[i, -1]) + slack >= true[order[-1]]:
                    unsettled.append(query)
                    continue
            scores[query], rows[query] = true[order], proposed_rows[i][order]
        pending = np.array(unsettled, dtype=np.int64)
        count = min(len(docids), 4 * count)
    return scores, rows


def by_blocks(
    queries: np.ndarray,
    count: int,
    blocks: Iterable[tuple[int, np.ndarray]],
    refuse: Callable[[int, np.ndarray], None],
) -> tuple[np.ndarray, np.ndarray]:
    """What `exact_search` asks of `propose`: the best `count` rows of every query by float32 products, block by block.

    Args:
        queries: (Q, d) float32.
        blocks: the row that each begins with, and its (n, d) float32 vectors.
        refuse: is given a block with products that are not finite, and raises an error where the block is to blame.
    """
    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    for first, block in blocks:
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond float32 is settled in float64
            products = queries @ block.T  # (Q, block)
        if not np.isfinite(products).all():
            refuse(first, block)
        numbers = np.broadcast_to(np.arange(first, first + len(block)), products.shape)
        scores = np.concatenate([scores, products], axis=1)
        rows = np.concatenate([rows, numbers], axis=1)
        if scores.shape[1] > count:
            best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
            scores, rows = np.take_along_axis(scores, best, axis=1), np.take_along_axis(rows, best, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def inner_products(query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(n,) float64: the inner products of (d,) and (n, d) float32, every row summed in one fixed order.

    >>> inner_products(np.float32([1, 2]), np.float32([[3, 4], [0.5, 0]])).tolist()
    [11.0, 0.5]
    """
    return np.multiply(vectors, query, dtype=np.float64).sum(axis=1)


def best_first(scores: np.ndarray, rows: np.ndarray, docids: Sequence[str]) -> np.ndarray:
    """(n,) positions that put scores in descending order, ties by docid.

    >>> best_first(np.array([1.0, 2.0, 1.0]), np.array([0, 1, 2]), ["b", "c", "a"]).tolist()
    [1, 2, 0]
    """
    order = np.argsort(-scores, kind="stable")
    if np.any(np.diff(scores[order]) == 0):
        names = [docids[row] for row in rows]
        order = np.array(sorted(range(len(rows)), key=lambda place: (-scores[place], names[place])), dtype=np.int64)
    return order


def _rounding(query: np.ndarray, vectors: np.ndarray) -> float:
    """A bound on the error of a float32 inner product of d terms, d u |q| |v| with u = 2^-24, doubled.

    The longest proposed vector stands for the longest of all: real errors stay so far below the bound that it also
    covers documents several times longer.
    """
    length = float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max(initial=0.0)))
    return 2.0 * len(query) * 2.0**-24 * float(np.linalg.norm(query.astype(np.float64))) * length
