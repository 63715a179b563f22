"""What was tried in the default's place and is not in it: the default with one thing changed, over cells of a file.

In the folder where the runs are, as the first lines of first-stages.yaml say; `--help` lists the flags.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
from scipy.special import ndtr

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run
from rnnreranker.base.record import made_here, write_records
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.encode.kinds import Encoder
from rnnreranker.evaluate import evaluate
from rnnreranker.index.opening import open_index
from rnnreranker.lab.tune.collections import cells_of
from rnnreranker.parts.vectors import VectorSource
from rnnreranker.rnn import jaccard_similarity
from rnnreranker.runs.head import choose_head, scores_of_use, with_new_head

MEASURE = "nDCG@10"
DEFAULT, MIXTURE = "default", "mixture"
HUB, GRAPH = 10, 16  # neighbours that CSLS takes the mean of; those of a document in the whole collection
BLOCK = 1024  # documents whose nearest are looked for at a time
PARAMS = RnnParams()
SHARE, NEAREST = PARAMS.smoothing, PARAMS.smoothing_neighbours
SLACK = 1e-3  # of nDCG@10, between the default as it is written here and the reranker's: near ties in float32


@dataclass(frozen=True, eq=False)
class Context:
    """A query, element 0, and its n candidates.

    vectors: (n + 1, d) float32. base: (n,) scores of the run. boost: (n,) LexBoost's mean over the collection's graph.
    near: (n + 1, n + 1) Jaccard similarity of all elements.
    """

    vectors: np.ndarray
    base: np.ndarray
    boost: np.ndarray
    near: np.ndarray

    @cached_property
    def products(self) -> np.ndarray:
        """(n + 1, n + 1) float64 inner products."""
        rows = self.vectors.astype(np.float64)
        found: np.ndarray = rows @ rows.T
        return found


Scaling = Callable[[np.ndarray], np.ndarray]
Chosen = Callable[[Context], np.ndarray]  # (n, n): how much of its lent score a row takes from a column


def unit(values: np.ndarray) -> np.ndarray:
    """Min-max, 0 where all are equal."""
    span = np.ptp(values)
    return (values - values.min()) / span if span > 0 else np.zeros(len(values))


def standard(values: np.ndarray) -> np.ndarray:
    """z-scores, 0 where all are equal."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def percentile(values: np.ndarray) -> np.ndarray:
    """Shares of the others that are lower, equal ones counted half."""
    lower = (values[None] < values[:, None]).sum(axis=1) + ((values[None] == values[:, None]).sum(axis=1) - 1) / 2
    return lower / max(len(values) - 1, 1)


def nearest(similarity: np.ndarray, count: int = NEAREST) -> np.ndarray:
    """(n, n) float64: 1 for the `count` others of each row that are most similar to it, else 0."""
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    order = np.argsort(-others.astype(np.float32), axis=1, kind="stable")[:, : min(count, len(others) - 1)]
    found = np.zeros(others.shape)
    found[np.arange(len(others))[:, None], order] = 1.0
    return found


def by_products(one: Context) -> np.ndarray:
    return nearest(one.products[1:, 1:])


def by_jaccard(one: Context) -> np.ndarray:
    return nearest(one.near[1:, 1:])


def reciprocal(one: Context) -> np.ndarray:
    """Those of the nearest that name it among theirs."""
    found = by_products(one)
    return found * found.T


def by_cosine(one: Context) -> np.ndarray:
    """The nearest, weighted by their cosine."""
    unit_rows = one.vectors[1:].astype(np.float64)
    unit_rows /= np.maximum(np.linalg.norm(unit_rows, axis=1, keepdims=True), 1e-12)
    return by_products(one) * np.maximum(unit_rows @ unit_rows.T, 0.0)


def scored(
    one: Context,
    *,
    near: np.ndarray | None = None,
    scaling: Scaling = unit,
    scale_all: bool = False,
    boost: bool = False,
    probes: int = PARAMS.probes,
    chosen: Chosen | None = by_products,
    steps: int = 1,
) -> np.ndarray:
    """(n,) float64: the default's scores, or with one thing changed.

    near: Jaccard similarities in place of the context's. scaling: of score and inner product; scale_all: of every term.
    boost: LexBoost's mean is a fourth term. chosen: whose scores are lent; None = no smoothing.
    """
    near = one.near if near is None else near
    ranks = unit(1.0 / (PARAMS.rank_constant + np.arange(1, len(one.base) + 1)))
    terms = [scaling(ranks) if scale_all else ranks, scaling(one.base), scaling(one.products[0, 1:])]
    weights = [PARAMS.rank_weight, PARAMS.run_weight, PARAMS.query_weight]
    if boost:
        terms, weights = [*terms, unit(one.boost)], [*weights, 1.0]
    agreed = near[: min(probes, len(near)), 1:].copy()
    for place in range(1, len(agreed)):
        agreed[place, place - 1] = 1.0
    mean = np.stack([scaling(row) for row in agreed] if scale_all else agreed).mean(axis=0)
    found = PARAMS.lam * np.average(terms, axis=0, weights=weights) + (1.0 - PARAMS.lam) * mean
    if chosen is None or len(found) < 2:
        return found
    lenders = chosen(one)
    sums = lenders.sum(axis=1)
    for _ in range(steps):
        lent = np.where(sums > 0, lenders @ found / np.where(sums > 0, sums, 1.0), found)
        found = (1.0 - SHARE) * found + SHARE * lent
    return found


def jaccard(vectors: np.ndarray, probes: int = PARAMS.probes) -> np.ndarray:
    rows = range(min(probes, len(vectors)))
    return jaccard_similarity(vectors[None].astype(np.float32), PARAMS, probes=rows, threads=1)[0].astype(np.float64)


def with_products(similarity: np.ndarray) -> np.ndarray:
    """Vectors with these inner products but for the diagonal, which is as large as it has to be."""
    lifted = (similarity + similarity.T) / 2
    np.fill_diagonal(lifted, lifted.max())
    values, axes = np.linalg.eigh(lifted)
    return axes * np.sqrt(np.maximum(values - min(values[0], 0.0), 0.0))


def csls(one: Context) -> np.ndarray:
    """2 s_ij - r_i - r_j, r the mean over the nearest (Conneau et al., ICLR 2018)."""
    products = one.products.copy()
    np.fill_diagonal(products, -np.inf)
    level = np.sort(products, axis=1)[:, -min(HUB, len(products) - 1) :].mean(axis=1)
    np.fill_diagonal(products, 0.0)
    return scored(one, near=jaccard(with_products(2 * products - level[:, None] - level)))


def mutual(one: Context) -> np.ndarray:
    """The product of both places in normal distributions of a row's similarities (Schnitzer et al., JMLR 2012)."""
    products = one.products
    others = products[~np.eye(len(products), dtype=bool)].reshape(len(products), -1)
    place = ndtr((products - others.mean(axis=1)[:, None]) / np.maximum(others.std(axis=1), 1e-12)[:, None])
    return scored(one, near=jaccard(with_products(place * place.T)))


def averaged(one: Context) -> np.ndarray:
    """Every candidate's vector is the mean of its own and of the nearest candidates'."""
    links = by_products(one) + np.eye(len(one.base))
    means = (links / links.sum(axis=1, keepdims=True)) @ one.vectors[1:].astype(np.float64)
    changed = dataclasses.replace(one, vectors=np.concatenate([one.vectors[:1], means]).astype(np.float32))
    return scored(changed, near=jaccard(changed.vectors))


def centred(one: Context) -> np.ndarray:
    """The candidates' mean is taken off every vector, which then has unit length."""
    moved = one.vectors.astype(np.float64) - one.vectors[1:].mean(axis=0, dtype=np.float64)
    moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)
    changed = dataclasses.replace(one, vectors=moved.astype(np.float32))
    return scored(changed, near=jaccard(changed.vectors))


VARIANTS: dict[str, tuple[str, Callable[[Context], np.ndarray]]] = {
    DEFAULT: ("the default", scored),
    MIXTURE: ("without smoothing (preset `mixture`)", lambda one: scored(one, chosen=None)),
    "csls": ("CSLS in place of inner products", csls),
    "mutual": ("mutual proximity in place of inner products", mutual),
    "averaged": ("candidates' vectors averaged with their nearest", averaged),
    "centred": ("vectors centred on the candidates", centred),
    "z-scores": (
        "z-scores of all terms in place of min-max",
        lambda one: scored(one, scaling=standard, scale_all=True),
    ),
    "percentiles": ("percentile ranks of score and similarity", lambda one: scored(one, scaling=percentile)),
    "probes-3": ("three probes", lambda one: scored(one, probes=3)),
    "probes-5": ("five probes", lambda one: scored(one, probes=5)),
    "lexboost": ("LexBoost as a fourth term", lambda one: scored(one, boost=True)),
    "by-jaccard": ("smoothing over the nearest by Jaccard", lambda one: scored(one, chosen=by_jaccard)),
    "reciprocal": ("smoothing over reciprocal neighbours alone", lambda one: scored(one, chosen=reciprocal)),
    "by-cosine": ("smoothing weighted by cosine", lambda one: scored(one, chosen=by_cosine)),
    "two-steps": ("two steps of smoothing", lambda one: scored(one, steps=2)),
}


def boosts(run: Run, source: VectorSource) -> np.ndarray:
    """(L,) float64: the mean score of the nearest documents in the collection, 0 for those not in the run."""
    vectors = source.fetch(np.arange(len(source.docids)))
    rows = source.rows(run.docids.tolist())
    near = np.empty((len(rows), GRAPH), dtype=np.int64)
    for first in range(0, len(rows), BLOCK):
        part = rows[first : first + BLOCK]
        products = vectors[part] @ vectors.T
        products[np.arange(len(part)), part] = -np.inf
        near[first : first + BLOCK] = np.argpartition(-products, GRAPH, axis=1)[:, :GRAPH]
    found = np.empty(len(run.scores))
    for number in range(len(run)):
        part = slice(run.offsets[number], run.offsets[number + 1])
        scores = np.zeros(len(source.docids))
        scores[rows[run.rows[part]]] = run.scores[part]
        found[part] = scores[near[run.rows[part]]].mean(axis=1)
    return found


def measure_cell(entry: Mapping[str, Any], queries: QueryVectors) -> dict[str, float]:
    """nDCG@10 of the run of a cell, "", and of every variant."""
    qrels, whole = load_qrels(entry["qrels"]), Run.read(entry["run"])
    source = open_index(entry["index"]).vectors
    boost, base = boosts(whole, source), scores_of_use(whole.scores, whole.offsets)
    chosen = choose_head(whole, PARAMS.context)
    head, base, boost = whole.head(PARAMS.context), base[chosen], boost[chosen]
    rows, vectors = source.rows(head.docids.tolist()), queries.of(head.qids).vectors
    new = {name: np.empty(len(head.rows)) for name in VARIANTS}
    for number in range(len(head)):
        part = slice(head.offsets[number], head.offsets[number + 1])
        context = np.concatenate([vectors[number][None], source.fetch(rows[head.rows[part]])])
        one = Context(context, base[part], boost[part], jaccard(context, len(context)))
        for name, (_, scores) in VARIANTS.items():
            new[name][part] = scores(one)
    all_entries = np.ones(len(head.rows), dtype=bool)
    runs = {"": head, **{name: with_new_head(head, all_entries, scores) for name, scores in new.items()}}
    protocol = entry.get("protocol")
    found = evaluate(runs, qrels, MEASURE, protocol)
    values = {name: found.mean(MEASURE, name) for name in runs}
    ours = evaluate(RnnReranker(source).rerank(whole, queries), qrels, MEASURE, protocol).means[0, 0]
    if abs(values[DEFAULT] - ours) > SLACK:
        raise SystemExit(f"{entry['run']}: {values[DEFAULT]:.4f} as written here, {ours:.4f} by the reranker")
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", required=True, metavar="FILE.yaml", help="as of `tune --collections`")
    parser.add_argument("--collections", nargs="+", metavar="NAME", help="of the file; default: all")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--output", metavar="FILE.json", help="write the record here")
    args = parser.parse_args()
    begun = time.perf_counter()
    cells = {
        name: entry
        for name, entry in cells_of(args.cells).items()
        if not args.collections or entry["collection"] in args.collections
    }
    encoder, known = Encoder.load(args.encoder), {}
    values = {}
    for name, entry in cells.items():
        if entry["topics"] not in known:
            topics = load_topics(entry["topics"])
            known[entry["topics"]] = QueryVectors(tuple(topics), encoder.encode(list(topics.values())))
        values[name] = measure_cell(entry, known[entry["topics"]])
        print(name, *(f"{one:.4f}" for one in values[name].values()), flush=True)
    rows = []
    for variant, (title, _) in VARIANTS.items():
        gains = {name: found[variant] - found[""] for name, found in values.items()}
        away = [found[variant] - found[DEFAULT] for found in values.values()]
        rows.append({"name": variant, "title": title, "gain": fmean(gains.values()), "to_default": fmean(away)})
        rows[-1] |= {"below": sum(gain < 0 for gain in gains.values()), "gains": gains}
        print(f"{title:50} {rows[-1]['gain']:+.4f} {rows[-1]['to_default']:+.4f} {rows[-1]['below']:3}")
    outcome = {"measure": MEASURE, "params": PARAMS.to_dict(), "encoder": args.encoder, "rows": rows}
    outcome["cells"] = {
        name: {"collection": cells[name]["collection"], "base": one[""]} for name, one in values.items()
    }
    if args.output:
        seconds = time.perf_counter() - begun
        write_records(args.output, [made_here("sweep", "", "negative-results", outcome, seconds=seconds)])


if __name__ == "__main__":
    main()
