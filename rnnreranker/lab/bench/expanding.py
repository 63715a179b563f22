"""What candidates from a graph cost a query, and LexBoost, which reads the graph too."""

from __future__ import annotations

import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.lab.bench.synthetic import contexts
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.files import write_graph
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.vectors import QueryVectors, open_vectors
from rnnreranker.runs import Run

QUERIES = 50
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {  # as shown → kind, name, settings
    "neighbours": ("expander", "neighbours", {}),
    "gar": ("expander", "gar", {}),
    "ladr, proactive": ("expander", "ladr", {}),
    "ladr, adaptive": ("expander", "ladr", {"variant": "adaptive"}),
    "lexboost": ("reranker", "lexboost", {}),
}


def expanding(documents: int, candidates: int, dimension: int, times: int) -> list[dict[str, Any]]:
    """Processor microseconds a query of each method, median of several times, over a run of a made-up collection.

    Everything between the run before and the run after is included, docids looked up and vectors fetched from memory.
    """
    vectors = contexts("clustered", 1, documents + QUERIES - 1, dimension)[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", vectors[:documents])
        (folder / "docid").write_text("".join(f"d{row}\n" for row in range(documents)), encoding="utf-8")
        source = open_vectors(folder)
        write_graph(DenseNeighbours(source), folder / "neighbours")
        graph = open_neighbours(folder)
        queries = QueryVectors(tuple(f"q{number}" for number in range(QUERIES)), vectors[documents:])
        scores, rows = source.search(queries.vectors, candidates)
        entries = {
            qid: {source.docids[row]: float(score) for row, score in zip(rows[query], scores[query], strict=True)}
            for query, qid in enumerate(queries.qids)
        }
        run, table = Run.from_dict(entries), []
        inputs = Inputs(neighbours=graph, vectors=source, query_vectors=queries)
        for shown, (kind, method, values) in METHODS.items():
            made = find(kind, method)(inputs, make_params(kind, method, values))
            work = partial(made.expand if kind == "expander" else made.rerank, run)
            spent = []
            with one_blas_thread():
                after = work()
                for _ in range(times):
                    begun = time.thread_time()
                    work()
                    spent.append(1e6 * (time.thread_time() - begun) / QUERIES)
            row: dict[str, Any] = {
                "method": shown,
                "documents": documents,
                "N": candidates,
                "d": dimension,
                "K": graph.k,
            }
            table.append(row | {"query_us": statistics.median(spent), "after": len(after.scores) / QUERIES})
    return table
