"""Rerankers, feedback and expansion with the same vectors, beside the fusion of BM25 and dense: gains and milliseconds.

    python benchmarks/rivals.py INDEX TOPICS QRELS --encoder NAME [--protocol P] [--title TEXT] [--record FILE.json]

INDEX has the parts dense, bm25 and neighbours. The record replaces one of the same title and encoder. A time is that
of the second of two searches, when queries are encoded, divided by the queries; that of a reranker counts its first
stage too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from measure import options, report

BASE = "BM25 + dense"
RERANKERS = {
    "rNN": "rnn",
    "rNN from the graph": "rnn:from=neighbours",
    "plain neighbours": "jaccard-plain",
    "LexBoost": "lexboost",
    "MMR, .7": "mmr:lam=0.7",
    "regularisation": "regularise",
    "Zhong et al.": "zhong",
    "vector PRF, average": "prf:feedback=average",
    "vector PRF, Rocchio": "prf",
}
SYSTEMS: dict[str, dict[str, Any]] = {
    BASE: {"retrieve": ["bm25", "dense"], "fuse": "minmax"},
    "dense": {"retrieve": "dense"},
    "dense, Rocchio searches again": {"retrieve": "dense", "prf": "rocchio"},
    "BM25": {"retrieve": "bm25"},
    "BM25, RM3": {"retrieve": "bm25", "prf": "rm3"},
    "BM25, GAR, 100 candidates": {"retrieve": "bm25", "expand": "gar", "hits": 100},
    "BM25, LADR, 100 candidates": {"retrieve": "bm25", "expand": "ladr", "hits": 100},
}
MEASURES = ("nDCG@10", "RR@10", "AP")


def measured(index_name: str, topics: str, qrels: str, protocol: str | None) -> tuple[list[dict[str, Any]], int]:
    """A row a system: means, differences from BASE with intervals and p, milliseconds a query; the queries."""
    from rnnreranker import open_index, warm_up
    from rnnreranker.evaluate import evaluate_runs

    warm_up()
    index, runs, times = open_index(index_name), {}, {}
    for name, system in SYSTEMS.items():
        runs[name], times[name] = timed(lambda system=system: index.search(topics, rerank=None, **system))
    for name, form in RERANKERS.items():
        runs[name], taken = timed(lambda form=form: index.rerank(runs[BASE], form, topics=topics))
        times[name] = times[BASE] + taken
    evaluation = evaluate_runs(runs, qrels, MEASURES, protocol=protocol, compare=True)
    means = dict(zip(evaluation.scores.runs, evaluation.scores.means.tolist(), strict=True))
    rows = {name: {"system": name} | dict(zip(MEASURES, means[name], strict=True)) for name in runs}
    for row in evaluation.comparisons:
        kept = {key: getattr(row, key) for key in ("difference", "low", "high", "p", "p_holm")}
        rows[row.run].setdefault("against", {})[row.measure] = kept
    queries = len(runs[BASE].qids)
    return [row | {"ms": times[name] / queries * 1e3} for name, row in rows.items()], queries


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the second call returns, and its seconds."""
    work()
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def main() -> None:
    parser = options(__doc__)
    for name in ("index", "topics", "qrels"):
        parser.add_argument(name)
    parser.add_argument("--encoder", required=True, help="name in the table")
    parser.add_argument("--title", help="of the query set (default: TOPICS)")
    parser.add_argument("--protocol")
    args = parser.parse_args()
    begun = time.perf_counter()
    rows, queries = measured(args.index, args.topics, args.qrels, args.protocol)
    title = args.title or args.topics
    about = {"collection": title, "encoder": args.encoder, "queries": queries}
    report(f"rivals, {title}, {args.encoder}", rows, args.record, begun, **about)


if __name__ == "__main__":
    main()
