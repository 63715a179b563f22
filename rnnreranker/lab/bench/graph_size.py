"""What the graph of a collection costs as it grows: to make it, to keep it, and to read the rows of candidates."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.lab.bench.fresh_process import in_fresh_process, most_resident
from rnnreranker.lab.bench.synthetic import documents
from rnnreranker.parts.neighbours.approximate import EXACT

BLOCK = 8192  # vectors made together
APPROXIMATE = 100_000  # documents from which an approximate search is measured


def write_vectors(folder: Path, rows: int, dimension: int) -> None:
    """A float16 matrix of made-up documents, block by block, and its docids, as an index has them."""
    matrix = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float16, shape=(rows, dimension))
    for first in range(0, rows, BLOCK):
        last = min(first + BLOCK, rows)
        matrix[first:last] = documents(first, last - first, rows, dimension)
    matrix.flush()
    (folder / "docid").write_text("".join(f"d{row}\n" for row in range(rows)), encoding="ascii")


def make_graph(folder: str, search: str, k: int, threads: int) -> dict[str, Any]:
    """Make the graph beside the vectors in a folder: seconds, recall, and the most resident MB of this process."""
    from rnnreranker.parts.neighbours.description import read_description
    from rnnreranker.parts.neighbours.files import write_graph
    from rnnreranker.parts.neighbours.part import graph_source

    index = Path(folder)
    begun, used = time.perf_counter(), time.process_time()
    source = graph_source(index, "dense", index / "work", search, k)
    write_graph(source, index / "neighbours", k, threads=threads, work=index / "work")
    seconds, used = time.perf_counter() - begun, time.process_time() - used
    origin = read_description(index / "neighbours")[2]
    return {"seconds": seconds, "processor": used, "recall": origin.recall, "most": most_resident()}


def read_graph(folder: str, queries: int, candidates: int) -> dict[str, float]:
    """Seconds to open the graph, and a query to read the rows of its candidates the first and the second time.

    Before the first time the system is asked to forget the files; it is free not to.
    """
    from rnnreranker.parts.neighbours import open_neighbours
    from rnnreranker.parts.neighbours.description import EDGES, WEIGHTS

    for name in (EDGES, WEIGHTS):
        _forget(Path(folder) / "neighbours" / name)
    begun = time.perf_counter()
    graph = open_neighbours(folder)
    seconds = {"open": time.perf_counter() - begun}
    rng = np.random.default_rng(1)
    drawn = [rng.choice(len(graph), min(candidates, len(graph)), replace=False) for _ in range(queries)]
    for name in ("cold", "warm"):
        begun = time.perf_counter()
        for rows in drawn:
            graph.fetch(rows)
        seconds[name] = (time.perf_counter() - begun) / queries
    return seconds


def graph_size(
    sizes: tuple[int, ...], dimension: int, k: int, candidates: int, queries: int, threads: int
) -> list[dict[str, Any]]:
    """The cost of graphs of so many documents, each made in one fresh process and read in another.

    Search is exact where it is by default, and approximate ("ivf") from `APPROXIMATE` documents on: a size may be
    measured both ways, and sizes beyond all measured have something to be computed from.
    """
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            write_vectors(Path(name), size, dimension)
            ways = [*(["exact"] if size <= EXACT else []), *(["ivf"] if size >= APPROXIMATE else [])]
            for search in ways:
                shutil.rmtree(Path(name) / "neighbours", ignore_errors=True)
                made = in_fresh_process(__name__, "make_graph", folder=name, search=search, k=k, threads=threads)
                size_of = sum(file.stat().st_size for file in (Path(name) / "neighbours").iterdir())
                read = in_fresh_process(__name__, "read_graph", folder=name, queries=queries, candidates=candidates)
                row = {"documents": size, "d": dimension, "K": k, "threads": threads, "search": search}
                row |= {"make_s": made["seconds"], "processor_s": made["processor"], "recall": made["recall"]}
                row |= {"graph_MB": size_of / 1e6, "resident_MB": made["most"], "open_ms": 1e3 * read["open"]}
                row |= {
                    "candidates": min(candidates, size),
                    "cold_us": 1e6 * read["cold"],
                    "warm_us": 1e6 * read["warm"],
                }
                rows.append(row)
    return rows


def _forget(path: Path) -> None:
    """Ask the system to drop the pages of a file from memory."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
