"""A run from file to file on one core: reading, reranking with vectors in memory, writing; elapsed time of each."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class FileToFile:
    """Medians of elapsed seconds, for a run of queries x depth with the first `context` candidates reranked.

    processor: seconds that all threads worked in the three steps together, which other processes do not lengthen.
    """

    queries: int
    depth: int
    context: int
    dimension: int
    threads: int
    read: float
    rerank: float
    write: float
    processor: float


def file_to_file(
    queries: int, depth: int, context: int, dimension: int, threads: int, times: int = 3, source: str = "vectors"
) -> FileToFile:
    """The time that a run of `queries` x `depth` takes, each query's candidates drawn from 20,000 clustered documents.

    Args:
        queries, depth: size of the run file, in TREC format.
        context: candidates reranked; the other parameters are the defaults.
        dimension: of the vectors, float32, in the page cache.
        threads: of the kernel; with 1 the whole process keeps to one core, where the system can do that.
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
            reranker = RnnReranker(open_vectors(folder / "vectors.npy"), params, threads=threads)
        else:
            reranker = RnnReranker(_graph(folder, docids), params, queries="run", threads=threads)
        with _kept_to(threads):
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
    return FileToFile(queries, depth, context, dimension, threads, read, rerank, write, used)


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
        times = file_to_file(queries, depth, context, dimension, 1, source=source)
        row: dict[str, Any] = {"from": source, "queries": queries, "depth": depth, "context": context}
        row |= {"read_s": times.read, "rerank_s": times.rerank, "write_s": times.write}
        row["total_s"] = times.read + times.rerank + times.write
        row["processor_s"] = times.processor
        bounded = source == "neighbours" and (queries, depth) == (QUERIES, 60)
        rows.append(judged(row, "total_s", GRAPH_BOUND if bounded else None))
    return rows


def files(settings: Sequence[tuple[int, int, int]], dimension: int) -> list[dict[str, Any]]:
    """Runs from file to file on one core; settings: (queries, depth, context) each. Long ones are measured once."""
    rows = []
    for queries, depth, context in settings:
        times = 1 if queries * context >= 1_000_000 else 3
        spent = file_to_file(queries, depth, context, dimension, 1, times)
        row: dict[str, Any] = {"queries": queries, "depth": depth, "context": context, "d": dimension, "times": times}
        row |= {"read_s": spent.read, "rerank_s": spent.rerank, "write_s": spent.write}
        row["total_s"] = spent.read + spent.rerank + spent.write
        row["processor_s"] = spent.processor
        bound = BOUNDS.get((depth, context)) if (queries, dimension) == (QUERIES, 768) else None
        rows.append(judged(row, "total_s", bound))
    return rows


@contextlib.contextmanager
def _kept_to(threads: int) -> Iterator[None]:
    """This thread, and those that it starts, on one core when `threads` is 1."""
    if threads > 1 or not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
