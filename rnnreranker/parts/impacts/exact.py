"""Exact search over impacts: inner products of sparse vectors, block by block of documents.

Products are summed in float64 in ascending order of words, and whole numbers exactly: a score depends neither on the
blocks nor on the threads nor on the other queries.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

QUERIES = 16  # multiplied together

Hits = tuple[np.ndarray, np.ndarray]  # scores (float64) and rows (int64)


def best_impacts(
    queries: csr_matrix, blocks: Iterable[tuple[int, csr_matrix]], hits: int, docid_ranks: np.ndarray, threads: int
) -> list[Hits]:
    """The best documents of every query that share a word with it, by descending score, ties by docid.

    Args:
        queries: (Q, V) float64 CSR with ascending columns.
        blocks: first row of a block of documents, and its words' documents, (V, n) float64 CSR.
        hits: documents per query, at most.
        docid_ranks: (N,) the rank of each row among the docids in their order.
        threads: queries are divided among them.
    """
    hits_of: list[Hits] = [(np.empty(0), np.empty(0, dtype=np.int64))] * queries.shape[0]
    groups = [slice(first, first + QUERIES) for first in range(0, queries.shape[0], QUERIES)]
    alone = threads == 1 or len(groups) == 1
    with contextlib.nullcontext() if alone else ThreadPoolExecutor(threads) as pool:
        for first, postings in blocks:
            multiply = partial(_products, queries, postings)
            made = map(multiply, groups) if pool is None else pool.map(multiply, groups)
            for group, products in zip(groups, made, strict=True):
                for number, query in enumerate(range(*group.indices(queries.shape[0]))):
                    own = slice(products.indptr[number], products.indptr[number + 1])
                    scores, rows = _highest(products.data[own], products.indices[own], hits)
                    rows, before = rows.astype(np.int64) + first, hits_of[query]
                    if len(before[0]):
                        scores, rows = np.concatenate([before[0], scores]), np.concatenate([before[1], rows])
                    scores, rows = in_order(scores, rows, docid_ranks)
                    hits_of[query] = scores[:hits], rows[:hits]
    return hits_of


def _products(queries: csr_matrix, postings: csr_matrix, group: slice) -> csr_matrix:
    return queries[group] @ postings


def _highest(scores: np.ndarray, rows: np.ndarray, hits: int) -> Hits:
    """The `hits` highest and all that are equal to the lowest of these, in any order."""
    if len(scores) <= hits:
        return scores, rows
    lowest = np.partition(scores, len(scores) - hits)[len(scores) - hits]
    kept = np.flatnonzero(scores >= lowest)
    return scores[kept], rows[kept]


def in_order(scores: np.ndarray, rows: np.ndarray, docid_ranks: np.ndarray) -> Hits:
    """Scores and rows by descending score, ties by docid.

    >>> [found.tolist() for found in in_order(np.array([1.0, 2.0, 1.0]), np.array([5, 0, 3]), np.arange(6))]
    [[2.0, 1.0, 1.0], [0, 3, 5]]
    """
    order = np.argsort(-scores)
    scores, rows = scores[order], rows[order]
    tied = scores[1:] == scores[:-1]
    if tied.any():
        among = np.zeros(len(rows), dtype=bool)
        among[1:] = tied
        among[:-1] |= tied
        entries = np.flatnonzero(among)
        stretches = np.zeros(len(rows), dtype=np.int64)
        np.cumsum(~tied, out=stretches[1:])
        keys = (
            stretches[entries] << 32 | docid_ranks[rows[entries]]
        )  # a rank has fewer bits, as a row of a sparse matrix
        rows[entries] = rows[entries[np.argsort(keys)]]
    return scores, rows
