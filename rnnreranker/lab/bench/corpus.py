"""What the size of the corpus costs: the same queries over matrices of more and more rows on disk, each by itself."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.lab.bench.fresh_process import in_fresh_process, most_anonymous
from rnnreranker.lab.bench.summaries import judged
from rnnreranker.lab.bench.synthetic import contexts, run_scores

RESIDENT_BOUND = 1200.0  # MB besides mapped pages, for 1,000 queries x 1,000 candidates of a million rows
BLOCK = 8192  # different rows; the matrix repeats them with their dimensions shifted


def write_corpus(folder: Path, rows: int, dimension: int) -> Path:
    """A float16 matrix of so many clustered rows, written block by block, and its ids; the path of the matrix."""
    block = contexts("clustered", 1, min(BLOCK, rows) - 1, dimension)[0].astype(np.float16)
    path = folder / "vectors.npy"
    matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(rows, dimension))
    for copy, start in enumerate(range(0, rows, len(block))):
        part = matrix[start : start + len(block)]
        part[:] = np.roll(block, copy, axis=1)[: len(part)]
    matrix.flush()
    path.with_suffix(".ids").write_text("".join(f"d{row}\n" for row in range(rows)), encoding="ascii")
    return path


def rerank_corpus(path: str, queries: int, depth: int, threads: int) -> dict[str, float]:
    """Seconds a query the first and the second time, and the most anonymous MB meanwhile."""
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.vectors import QueryVectors, open_vectors
    from rnnreranker.rnn import RnnParams, chunks
    from rnnreranker.runs import Run

    source = open_vectors(path)
    rng = np.random.default_rng(0)
    qids = tuple(f"q{number}" for number in range(queries))
    drawn = np.concatenate([rng.choice(len(source.docids), depth, replace=False) for _ in range(queries)])
    distinct, rows = np.unique(drawn, return_inverse=True)
    docids = np.array([source.docids[row] for row in distinct], dtype=object)
    scores = run_scores(queries, depth)
    run = Run.from_parts(qids, np.arange(queries + 1) * depth, docids, rows.astype(np.int32), scores)
    vectors = QueryVectors(qids, contexts("clustered", 1, queries, source.dimension, seed=1)[0, 1:])
    reranker = RnnReranker(source, RnnParams(context=depth), threads=threads)
    chunks.ENGINES.now()

    spent = []

    def once() -> None:
        started = time.perf_counter()
        reranker.rerank(run, vectors)
        spent.append((time.perf_counter() - started) / queries)

    _, most = most_anonymous(once, every=0.005)
    once()
    return {"most": most, "first": spent[0], "warm": spent[1]}


def corpus(sizes: tuple[int, ...], queries: int, depth: int, dimension: int, threads: int) -> list[dict[str, Any]]:
    """The cost of a query over corpora of these sizes, float16 on disk, and the memory of the process besides pages."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            path = write_corpus(Path(name), size, dimension)
            measured = in_fresh_process(
                __name__, "rerank_corpus", path=str(path), queries=queries, depth=min(depth, size), threads=threads
            )
        row = {"rows": size, "d": dimension, "queries": queries, "depth": min(depth, size), "threads": threads}
        row |= {"first_ms": 1e3 * measured["first"], "warm_ms": 1e3 * measured["warm"], "RssAnon_MB": measured["most"]}
        bounded = (queries, min(depth, size), size, dimension) == (1000, 1000, 1_000_000, 768)
        rows.append(judged(row, "RssAnon_MB", RESIDENT_BOUND if bounded else None))
    return rows
