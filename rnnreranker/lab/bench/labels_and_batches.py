"""What labels and training batches cost: the label step beside its Gram product, and gathering document vectors."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from rnnreranker.base.method import Inputs
from rnnreranker.lab.bench.kernel_ratios import a_query, gram
from rnnreranker.lab.bench.summaries import cells, judged, quartiles
from rnnreranker.lab.bench.synthetic import contexts
from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.methods.evidence import EvidenceLabeler
from rnnreranker.parts.vectors import QueryVectors
from rnnreranker.rnn import RnnParams
from rnnreranker.train.query.table import VectorTable

LABELS_BOUND = 250.0  # microseconds a query at N = 60, d = 768, one positive: 4,000 queries/s on a core
GATHER_BOUND = 15.0  # milliseconds for 32 x 1000 vectors of 768 dimensions
QUERIES = 256  # of a batch of labels
BATCH = 32  # queries of a training step


def labels(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Microseconds a query of evidence-based labels from vectors in memory, one positive, beside X Xᵀ alone."""
    rows = []
    for n in sizes:
        vectors = contexts("clustered", max(1, min(QUERIES, 16_000 // n)), n, dimension)
        count = len(vectors)
        batch = JudgedBatch(
            indices=list(range(count)),
            lengths=np.full(count, n),
            grades=np.ones((count, 1)),
            real=np.ones((count, n), dtype=bool),
            rows=np.zeros((count, n), dtype=np.int64),
            ranks=np.tile(np.arange(1, n + 1), (count, 1)),
            scores=np.zeros((count, n)),
            vectors=vectors,
        )
        queries = QueryVectors(tuple(map(str, range(count))), np.ascontiguousarray(vectors[:, 0]))
        labeler = EvidenceLabeler(Inputs(vectors=_Nothing(), query_vectors=queries), RnnParams(context=n), threads=1)
        ratio = a_query((gram(vectors), partial(labeler.label, batch)), count, pairs)
        row: dict[str, Any] = {"N": n, "d": dimension, "positives": 1}
        row |= cells(ratio, "gram_us", "labels_us") | {"queries_per_s": 1 / ratio.other}
        rows.append(judged(row, "labels_us", LABELS_BOUND if (n, dimension) == (60, 768) else None))
    return rows


def gathering(rows_of_table: tuple[int, ...], candidates: int, dimension: int, times: int) -> list[dict[str, Any]]:
    """Elapsed milliseconds to gather the distinct vectors of 32 queries' candidates from a float16 table, warm."""
    measured = []
    for size in rows_of_table:
        rng = np.random.default_rng(0)
        table = VectorTable(rng.standard_normal((size, dimension), dtype=np.float32).astype(np.float16))
        drawn = [rng.integers(size, size=(BATCH, candidates)) for _ in range(times + 1)]
        distinct = len(np.unique(drawn[0]))
        for rows in drawn:
            table.gather_distinct(rows)
        elapsed = []
        for rows in drawn[1:]:
            begun = time.perf_counter()
            table.gather_distinct(rows)
            elapsed.append(1e3 * (time.perf_counter() - begun))
        low, middle, high = quartiles(elapsed)
        row: dict[str, Any] = {"rows": size, "d": dimension, "queries": BATCH, "candidates": candidates}
        row |= {"distinct": distinct, "gather_ms": middle, "low": low, "high": high, "times": times}
        measured.append(judged(row, "gather_ms", GATHER_BOUND if (candidates, dimension) == (1000, 768) else None))
    return measured


class _Nothing:
    """A source of vectors that nothing is fetched from: the benchmark has them in memory."""

    docids: tuple[str, ...] = ()
    dimension = 0
    exact = True
    fingerprint = "benchmark"
