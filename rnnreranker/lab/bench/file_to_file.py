"""A run from file to file on one core: reading, reranking with vectors in memory, writing; elapsed time of each."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.lab.bench.summaries import judged, quartiles
from rnnreranker.lab.bench.synthetic import contexts, run_scores
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
from rnnreranker.parts.neighbours.description import EDGES, WEIGHTS, Origin, docids_mark, write_description
from rnnreranker.parts.vectors import QueryVectors, open_vectors
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run

DOCUMENTS = 20_000
QUERIES = 6980
BOUNDS = {(60, 60): 3.0, (1000, 60): 12.0, (1000, 1000): 110.0}  # depth, context: seconds of 6,980 queries, d = 768
GRAPH_BOUND, K = 0.6, 16  # seconds from a graph of so many neighbours, depth and context 60


def file_to_file(
    queries: int, depth: int, context: int, dimension: int, times: int = 3, source: str = "vectors"
) -> dict[str, float]:
    """Seconds that a run of `queries` x `depth` takes, each query's candidates drawn from 20,000 clustered documents.

    Medians of elapsed seconds of every step, on one core where the system can do that, and in all; `processor_s`:
    those that all threads worked, which other processes do not lengthen.

    Args:
        queries, depth: size of the run file, in TREC format.
        context: candidates reranked; the other parameters are the defaults.
        dimension: of the vectors, float32, in the page cache.
        times: how often it is measured, after a short run that is not counted.
        source: "vectors", or "neighbours" for a graph of 16 and the scores of the run, in the page cache too.
    """
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", contexts("clustered", 1, DOCUMENTS - 1, dimension)[0])
        docids = np.array([f"d{row}" for row in range(DOCUMENTS)], dtype=object)
        (folder / "vectors.ids").write_text("".join(f"{docid}\n" for docid in docids))
        qids = tuple(f"q{number}" for number in range(queries))
        vectors = QueryVectors(qids, contexts("clustered", 1, queries, dimension, seed=1)[0, 1:])
        rows = np.concatenate([rng.choice(DOCUMENTS, depth, replace=False) for _ in range(queries)])
        scores = run_scores(queries, depth)
        run = Run.from_parts(qids, np.arange(queries + 1) * depth, docids, rows, scores)
        run.write(folder / "before.txt")

        params = RnnParams(context=context)
        if source == "vectors":
            reranker = RnnReranker(open_vectors(folder / "vectors.npy"), params, threads=1)
        else:
            reranker = RnnReranker(_graph(folder, docids), params, queries="run", threads=1)
        with _one_core():
            few = min(10, queries)
            reranker.rerank(run.of_queries(range(few)), vectors)
            spent = []
            for _ in range(times):
                used = time.process_time()
                clock = [time.perf_counter()]
                run = Run.read(folder / "before.txt")
                clock.append(time.perf_counter())
                reranked = reranker.rerank(run, vectors)
                clock.append(time.perf_counter())
                reranked.write(folder / "after.txt")
                clock.append(time.perf_counter())
                spent.append([*np.diff(clock).tolist(), time.process_time() - used])
    read, rerank, write, used = (quartiles(step)[1] for step in zip(*spent, strict=True))
    return {"read_s": read, "rerank_s": rerank, "write_s": write} | {
        "total_s": read + rerank + write,
        "processor_s": used,
    }


def _graph(folder: Path, docids: np.ndarray) -> NeighbourGraph:
    """A graph of the collection in whose rows neighbours are drawn as candidates are."""
    rng, graph = np.random.default_rng(2), folder / "neighbours"
    graph.mkdir()
    (folder / "docid").write_text("".join(f"{docid}\n" for docid in docids))
    edges = rng.integers(len(docids), size=(len(docids), K), dtype=np.uint32)
    edges.tofile(graph / EDGES)
    rng.random((len(docids), K)).astype(np.float16).tofile(graph / WEIGHTS)
    write_description(graph, len(docids), K, Origin(docids=docids_mark(docids.tolist())))
    return open_neighbours(graph)


def graph_files(settings: Sequence[tuple[int, int, int]], dimension: int) -> list[dict[str, Any]]:
    """As `files`, for the first of the settings, from a graph beside vectors."""
    queries, depth, context = settings[0]
    rows = []
    for source in ("vectors", "neighbours"):
        row: dict[str, Any] = {"from": source, "queries": queries, "depth": depth, "context": context}
        row |= file_to_file(queries, depth, context, dimension, source=source)
        bounded = source == "neighbours" and (queries, depth) == (QUERIES, 60)
        rows.append(judged(row, "total_s", GRAPH_BOUND if bounded else None))
    return rows


def files(settings: Sequence[tuple[int, int, int]], dimension: int) -> list[dict[str, Any]]:
    """Runs from file to file on one core; settings: (queries, depth, context) each. Long ones are measured once."""
    rows = []
    for queries, depth, context in settings:
        times = 1 if queries * context >= 1_000_000 else 3
        row: dict[str, Any] = {"queries": queries, "depth": depth, "context": context, "d": dimension, "times": times}
        row |= file_to_file(queries, depth, context, dimension, times)
        bound = BOUNDS.get((depth, context)) if (queries, dimension) == (QUERIES, 768) else None
        rows.append(judged(row, "total_s", bound))
    return rows


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """This thread, and those that it starts, on one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
