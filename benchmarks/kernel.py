"""The similarity beside the product of its vectors, and from a graph: processor time of one thread, in pairs.

    python benchmarks/kernel.py [--against CHECKOUT] [--rounds 3] [--sizes 60,200,1000] [--record FILE.json]

A ratio is the median over pairs of what `rnn_similarity` takes, everything included, divided by X Xᵀ alone. With
--against, the package of another checkout is measured in turn with this one; the lowest of all rounds counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import options, report

HERE = Path(__file__).resolve().parents[1]
CANDIDATES = 16_000  # of a batch
DIMENSIONS = (384, 768)
BOUNDS = {60: 1.7, 200: 1.7, 1000: 1.4}
GRAPH_BOUND, GRAPH_CANDIDATES = 0.2, 60  # milliseconds a query of so many candidates
PAIRS = {60: 15, 200: 11, 1000: 5}
DOCUMENTS, K = 20_000, 16  # of the graph


def main() -> None:
    """Measure, and print a table."""
    parser = options(__doc__)
    parser.add_argument("--against", metavar="CHECKOUT", help="folder of another checkout, measured in turn")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured (default: 3)")
    parser.add_argument("--sizes", default="60,200,1000", help="candidates of a query (default: 60,200,1000)")
    parser.add_argument("--json", action="store_true", help="measure once and print rows as JSON")
    args = parser.parse_args()
    sizes = tuple(int(size) for size in args.sizes.split(","))
    if args.json:
        print(json.dumps(measured(sizes)))
        return
    begun = time.perf_counter()
    places = [HERE, *([Path(args.against).resolve()] if args.against else [])]
    best: list[dict[tuple[Any, ...], list[float]]] = [{} for _ in places]
    for _ in range(args.rounds):
        for place, found in zip(places, best, strict=True):
            for *name, base, ours, ratio in in_process(place, args.sizes):
                held = found.setdefault(tuple(name), [base, ours, ratio])
                found[tuple(name)] = [min(pair) for pair in zip(held, (base, ours, ratio), strict=True)]
    rows = []
    for (n, d, setting), (base, ours, ratio) in best[0].items():
        bound = BOUNDS.get(n)
        if setting == "graph":
            bound = GRAPH_BOUND * 1e3 / base if n == GRAPH_CANDIDATES else None
        rows.append({"N": n, "d": d, "setting": setting, "product_us": base, "ours_us": ours, "ratio": ratio})
        rows[-1]["bound"] = bound
        if args.against:
            rows[-1]["before_us"] = best[1][n, d, setting][1]
    report("kernel", rows, args.record, begun)


def in_process(place: Path, sizes: str) -> list[list[Any]]:
    """The rows of a fresh process that has the package of a checkout."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    words = [sys.executable, __file__, "--json", "--sizes", sizes]
    done = subprocess.run(words, env=os.environ | threads | {"PYTHONPATH": str(place)}, check=True, stdout=-1)
    return list(json.loads(done.stdout))


def measured(sizes: tuple[int, ...]) -> list[list[Any]]:
    """Rows [N, d, setting, µs of the product, µs of the similarity, ratio], µs a query."""
    import dataclasses

    import numpy as np

    from rnnreranker import RnnParams, rnn_similarity, warm_up

    warm_up()
    published = dataclasses.replace(RnnParams.preset("vectors"), k=21)
    settings = {"k 21, tau 0": dataclasses.replace(published, tau=0.0), "k 21, tau .5": published}
    settings["default"] = RnnParams()
    rows: list[list[Any]] = []
    for n in sizes:
        for dimension in DIMENSIONS:
            vectors = contexts(max(1, min(256, CANDIDATES // n)), n, dimension)
            queries, candidates = np.ascontiguousarray(vectors[:, 0]), np.ascontiguousarray(vectors[:, 1:])
            for name, params in settings.items():

                def ours(params: RnnParams = params, q: Any = queries, c: Any = candidates) -> None:
                    rnn_similarity(q, c, params, threads=1)

                rows.append([n, dimension, name, *in_pairs(product(vectors), ours, len(vectors), PAIRS.get(n, 9))])
        rows.append([n, DIMENSIONS[0], "graph", *graph(n)])
    return rows


def contexts(count: int, candidates: int, dimension: int) -> Any:
    """(B, N + 1, d) float32 vectors of length 1 in eight clusters, row 0 the query."""
    import numpy as np

    rng = np.random.default_rng(candidates)
    centres = rng.standard_normal((count, 8, dimension))
    which = rng.integers(0, 8, (count, candidates + 1))
    vectors = centres[np.arange(count)[:, None], which]
    vectors += 1.2 * rng.standard_normal(vectors.shape)
    return (vectors / np.linalg.norm(vectors, axis=2, keepdims=True)).astype(np.float32)


def product(vectors: Any) -> Callable[[], None]:
    """X Xᵀ of every context, by NumPy's syrk."""
    import numpy as np

    out = np.empty((vectors.shape[1], vectors.shape[1]), dtype=np.float32)

    def work() -> None:
        for context in vectors:
            np.matmul(context, context.T, out=out)

    return work


def graph(candidates: int) -> tuple[float, float, float]:
    """µs a query: the product of its vectors, the similarity from a graph, and their ratio."""
    import numpy as np

    from rnnreranker import RnnParams
    from rnnreranker.rnn.graph import graph_similarity

    rng = np.random.default_rng(candidates)
    documents = contexts(1, DOCUMENTS - 1, 64)[0]
    queries = documents[rng.choice(DOCUMENTS, max(1, min(100, CANDIDATES // candidates)))]
    products = queries @ documents.T
    rows = np.argsort(-products, axis=1)[:, :candidates]
    edges, weights = np.zeros((DOCUMENTS, K), dtype=np.uint32), np.zeros((DOCUMENTS, K), dtype=np.float16)
    for row in np.unique(rows).tolist():
        near = documents @ documents[row]
        near[row] = -1.0
        best = np.argpartition(-near, K)[:K]
        best = best[np.argsort(-near[best])]
        edges[row], weights[row] = best, near[best]
    known = np.take_along_axis(products, rows, axis=1)
    vectors = contexts(len(rows), candidates, DIMENSIONS[0])
    return in_pairs(
        product(vectors),
        lambda: graph_similarity(edges, weights, rows, RnnParams(), query=known, base=known, threads=1),
        len(rows),
        PAIRS.get(candidates, 9),
    )


def in_pairs(base: Callable[[], object], other: Callable[[], object], queries: int, pairs: int) -> tuple[float, ...]:
    """µs a query of both works, the lowest, and the median of their ratios."""
    import statistics

    from threadpoolctl import threadpool_limits

    times: list[tuple[float, float]] = []
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(pairs + 1):
            starts = time.thread_time()
            base()
            middle = time.thread_time()
            other()
            times.append((middle - starts, time.thread_time() - middle))
    lowest = (1e6 * min(one) / queries for one in zip(*times[1:], strict=True))
    return *lowest, statistics.median(ours / product for product, ours in times[1:])


if __name__ == "__main__":
    main()
