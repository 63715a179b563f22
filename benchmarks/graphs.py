"""Graphs of a collection, exact and by Faiss's inverted lists: seconds, megabytes, and the share of the exact nearest.

    python benchmarks/graphs.py [--sizes 10000,20000,40000] [--record FILE.json]

Vectors are made up: 384 numbers, length 1, around the directions of topics of 200 documents each. Processor time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import options, report, seconds

from rnnreranker import open_vectors
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.nearest import ApproximateNeighbours, DenseNeighbours
from rnnreranker.parts.neighbours.part import write_graph

DIMENSION, K = 384, 16


def vectors(documents: int) -> np.ndarray:
    """(N, 384) float32."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((documents // 200, DIMENSION), dtype=np.float32)
    made = centres[rng.integers(len(centres), size=documents)]
    made = made + 1.5 * rng.standard_normal(made.shape, dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def measured(documents: int, folder: Path) -> list[dict[str, Any]]:
    """A row for each search."""
    np.save(folder / "vectors.npy", vectors(documents))
    (folder / "vectors.ids").write_text("".join(f"d{row}\n" for row in range(documents)))
    source = open_vectors(folder / "vectors.npy")
    exact, rows = DenseNeighbours(source), []
    for search in ("exact", "ivf"):

        def work(search: str = search) -> None:
            chosen = exact if search == "exact" else ApproximateNeighbours(exact, K, folder / "lists")
            write_graph(chosen, folder / search / "neighbours", K, threads=1)

        taken = seconds(work)
        size = sum(path.stat().st_size for path in (folder / search).rglob("*") if path.is_file())
        rows.append({"search": search, "documents": documents, "processor_s": taken, "graph_MB": size / 1e6})
    true, near = (open_neighbours(folder / row["search"]).edges for row in rows)
    same = [np.intersect1d(*pair).size for pair in zip(true, near, strict=True)]
    return [row | {"of_the_exact": share} for row, share in zip(rows, (1.0, float(np.mean(same)) / K), strict=True)]


def main() -> None:
    """Measure all sizes and print the table."""
    parser = options(__doc__)
    parser.add_argument("--sizes", default="10000,20000,40000")
    args, begun, rows = parser.parse_args(), time.perf_counter(), list[dict[str, Any]]()
    for size in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows += measured(size, Path(folder))
        print(rows[-2:], file=sys.stderr, flush=True)
    report("graphs", rows, args.record, begun)


if __name__ == "__main__":
    main()
