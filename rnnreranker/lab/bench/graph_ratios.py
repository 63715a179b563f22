"""The similarity from a graph beside the product of the vectors that it does without."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.lab.bench.fresh_process import busy, in_fresh_process
from rnnreranker.lab.bench.kernel_ratios import a_query, gram
from rnnreranker.lab.bench.summaries import cells, judged
from rnnreranker.lab.bench.synthetic import collection
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.graph.similarity import graph_similarity

K = 16
ELEMENTS = 16_000  # candidates of a batch
QUERIES = ("run", "none")
BOUNDS = {60: 0.5, 1000: 0.1}  # N: times the Gram product


class GraphBatch(NamedTuple):
    """Queries with the first N documents of a made-up collection by inner product, and its graph where they are."""

    edges: np.ndarray  # (D, K) uint32
    weights: np.ndarray  # (D, K) float16
    rows: np.ndarray  # (B, N)
    products: np.ndarray  # (B, N)
    vectors: np.ndarray  # (B, N + 1, d), row 0 the query

    @property
    def known(self) -> float:
        """Of the K neighbours of a candidate, how many are candidates of the query on average."""
        return float(np.mean([np.isin(self.edges[rows], rows).sum() / len(rows) for rows in self.rows]))


def batch(candidates: int, dimension: int, size: int) -> GraphBatch:
    """A batch of so many candidates a query, of a collection of so many documents."""
    documents, queries = collection(size, max(1, min(256, ELEMENTS // candidates)), dimension)
    rows, products = _nearest(documents, queries, candidates)
    wanted = np.unique(rows)
    near, similar = _nearest(documents, documents[wanted], K + 1)  # a document is the nearest to itself
    edges = np.repeat(np.arange(size, dtype=np.uint32)[:, None], K, axis=1)
    weights = np.zeros((size, K), dtype=np.float16)
    edges[wanted], weights[wanted] = near[:, 1:], similar[:, 1:]
    vectors = np.concatenate([queries[:, None], documents[rows]], axis=1)
    return GraphBatch(edges, weights, rows, products, vectors)


def _nearest(documents: np.ndarray, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    rows, products = np.empty((2, len(queries), count))
    for first in range(0, len(queries), 512):
        all_products = queries[first : first + 512] @ documents.T
        best = np.argsort(-all_products, axis=1, kind="stable")[:, :count]
        rows[first : first + 512], products[first : first + 512] = best, np.take_along_axis(all_products, best, axis=1)
    return rows.astype(np.int64), products.astype(np.float32)


def graph(sizes: tuple[int, ...], documents: int, dimension: int, pairs: int, times: int) -> list[dict[str, Any]]:
    """The default from a graph, with and without inner products of the query, against the Gram product; one thread.

    Each in so many fresh processes, with nothing else to do and with another process at work: the median of their
    ratios, the lowest and the highest.
    """
    rows = []
    for n in sizes:
        for others in (0, 1):
            with busy(others):
                measured = [
                    in_fresh_process(
                        __name__, "ratios", candidates=n, documents=documents, dimension=dimension, pairs=pairs
                    )
                    for _ in range(times)
                ]
            for queries in QUERIES:
                seen = [one[queries] for one in measured]
                row = {"N": n, "d": dimension, "documents": documents, "K": K, "known": measured[0]["known"]}
                row |= {"queries": queries, "others": others, "processes": times}
                row |= {
                    f"{name}_us": statistics.median(one[f"{name}_us"] for one in seen) for name in ("gram", "graph")
                }
                each = sorted(one["ratio"] for one in seen)
                row |= {"ratio": statistics.median(each), "lowest": each[0], "highest": each[-1], "pairs": pairs}
                rows.append(judged(row, "ratio", BOUNDS.get(n)))
    return rows


def ratios(candidates: int, documents: int, dimension: int, pairs: int) -> dict[str, Any]:
    """In this process: `known` of a batch, and for both kinds of `queries` what the graph takes beside the product."""
    made = batch(candidates, dimension, documents)
    rows: dict[str, Any] = {"known": made.known}
    for queries in QUERIES:
        measured = a_query((gram(made.vectors), _similarity(made, queries)), len(made.rows), pairs)
        rows[queries] = cells(measured, "gram_us", "graph_us")
    return rows


def threads(sizes: tuple[int, ...], documents: int, dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Two threads against one, by elapsed time."""
    rows = []
    for n in sizes:
        made = batch(n, dimension, documents)
        works = [_similarity(made, "run", count) for count in (1, 2)]
        with one_blas_thread():
            ratio = a_query(works, len(made.rows), pairs, time.perf_counter)
        rows.append({"N": n, "d": dimension} | cells(ratio, "one_us", "two_us"))
    return rows


def _similarity(made: GraphBatch, queries: str, count: int = 1) -> Callable[[], object]:
    query = made.products if queries == "run" else None
    work = partial(graph_similarity, made.edges, made.weights, made.rows, RnnParams(), query=query)
    return partial(work, base=made.products, threads=count)
