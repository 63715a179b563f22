"""A run from file to file: reading, reranking with vectors in memory, writing; elapsed time of each."""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnreranker.rerank import RnnReranker
from rnnreranker.rnn import RnnParams
from rnnreranker.runs import Run
from rnnreranker.vectors import QueryVectors, open_vectors

DOCUMENTS = 20_000


@dataclass(frozen=True)
class FileToFile:
    """Medians of elapsed seconds, for a run of queries x depth with the first `context` candidates reranked."""

    queries: int
    depth: int
    context: int
    dimension: int
    threads: int
    read: float
    rerank: float
    write: float


def file_to_file(
    queries: int, depth: int, context: int, dimension: int, threads: int, times: int = 3, seed: int = 0
) -> FileToFile:
    """The time that a run of `queries` x `depth` takes, candidates and vectors being random.

    Args:
        queries, depth: size of the run file, in TREC format.
        context: candidates reranked.
        dimension: of the vectors, float32, in the page cache.
        threads: of the kernel.
        times: how often it is measured, after one run that is not counted.
        seed: of run and vectors.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", rng.standard_normal((DOCUMENTS, dimension), dtype=np.float32))
        (folder / "vectors.ids").write_text("".join(f"d{row}\n" for row in range(DOCUMENTS)))
        qids = tuple(f"q{number}" for number in range(queries))
        vectors = QueryVectors(qids, rng.standard_normal((queries, dimension), dtype=np.float32))
        rows = np.concatenate([rng.choice(DOCUMENTS, depth, replace=False) for _ in range(queries)])
        docids = np.array([f"d{row}" for row in range(DOCUMENTS)], dtype=object)
        scores = np.tile(np.arange(depth, 0, -1, dtype=np.float64), queries)
        Run.from_parts(qids, np.arange(queries + 1) * depth, docids, rows, scores).write(folder / "before.txt")

        reranker = RnnReranker(open_vectors(folder / "vectors.npy"), RnnParams(context=context), threads=threads)
        spent = []
        for _ in range(times + 1):
            clock = [time.perf_counter()]
            run = Run.read(folder / "before.txt")
            clock.append(time.perf_counter())
            reranked = reranker.rerank(run, vectors)
            clock.append(time.perf_counter())
            reranked.write(folder / "after.txt")
            clock.append(time.perf_counter())
            spent.append(np.diff(clock))
    read, rerank, write = (statistics.median(step) for step in zip(*spent[1:], strict=True))
    return FileToFile(queries, depth, context, dimension, threads, float(read), float(rerank), float(write))
