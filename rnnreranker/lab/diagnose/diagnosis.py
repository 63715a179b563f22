"""Measurements of a run's contexts, and of what reranking changes."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.process.phases import phase
from rnnreranker.lab.diagnose.graph_coverage import coverage, coverage_of_all, hubs
from rnnreranker.lab.diagnose.measures import (
    PERSISTENCE,
    cohesion,
    listed,
    rank_biased_overlap,
    rounded,
    skewness,
    spread,
)
from rnnreranker.lab.diagnose.terms import KNOWN, NEAR, effects, mean_effects, terms
from rnnreranker.parts.vectors.of_run import query_rows
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score, why_useless

if TYPE_CHECKING:
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

UNIT = 1e-2  # a norm this near to 1 is taken for 1, so that float16 and quantised vectors count as such


def sampled(run: Run, count: int) -> Run:
    """The run of the `count` queries with the lowest SHA-256, in the order of the run."""
    by_hash = sorted(range(len(run)), key=lambda number: hashlib.sha256(run.qids[number].encode()).digest())
    return run.of_queries(sorted(by_hash[:count]))


@phase("diagnosing")
def measure_run(
    run: Run,
    query_vectors: QueryVectors,
    reranker: RnnReranker,
    *,
    graph: NeighbourGraph | None = None,
) -> dict[str, Any]:
    """All measurements as plain values for JSON (docs/tables/diagnose.html explains each); `verdict` judges them.

    Args:
        run: Q queries; those with two or more candidates with vectors are measured.
        query_vectors: a vector for each query, in any order.
        reranker: gives vectors, settings, threads and the rule for candidates without a vector.
        graph: of the collection; None = no measurements of it.

    Raises:
        InputError: as `RnnReranker.rerank`; an unusable graph, no query with two candidates.
    """
    reranker.check(run)
    params, vectors = reranker.params, reranker.vectors
    queries = query_rows(run, query_vectors, vectors.dimension)
    rows = vectors.rows(list(run.docids))
    useless = why_useless(run.scores, run.offsets)
    base = np.zeros(len(run.scores)) if useless else run.scores
    contexts = []
    for number in progress(range(len(run)), unit="queries", what="diagnose"):
        positions = np.arange(run.offsets[number], run.offsets[number + 1])
        positions = positions[rows[run.rows[positions]] >= 0][: params.context]
        entries = run.rows[positions]
        if len(entries) < 2:
            continue
        vectors_of = np.vstack([queries[number][None], vectors.fetch(rows[entries])])
        if not np.isfinite(vectors_of).all():
            qid = run.qids[number]
            raise InputError(f"NaN or infinite values in a vector of query {qid}; build the index, or encode, again")
        docids = run.docids[entries]
        contexts.append(_context(vectors_of, docids, base[positions], params) | {"entries": entries})
        if graph is not None:
            contexts[-1]["covered"] = coverage(contexts[-1]["lists"], graph.rows(docids.tolist()), graph)
    if not contexts:
        raise InputError(
            "no query of the run has two candidates with vectors: nothing to diagnose; check run and index"
        )
    measured = _summary(contexts, params)
    measured["order"]["only_order"] = useless
    safe = all("effects" in one for one in contexts)
    measured["overlap"] = _overlap(run, reranker.rerank(run, query_vectors), params.context) if safe else None
    measured["graph"] = None
    if graph is not None:
        measured["graph"] = coverage_of_all([one["covered"] for one in contexts]) | hubs(graph, params.k)
    return {
        "schema": 1,
        "queries": {"run": len(run), "sampled": len(run), "measured": len(contexts)},
        "params": params.to_dict(),
        **measured,
    }


def _context(vectors: np.ndarray, docids: np.ndarray, base: np.ndarray, params: RnnParams) -> dict[str, Any]:
    """Measure one context, vectors (m, d); docids, base: names and run scores of its m - 1 candidates.

    Without what depends on scores if the exponential weight overflows.
    """
    m, row = len(vectors), dict[str, Any]()
    try:
        done = reference.steps(vectors, params)
        made = reference.parts(done, params, base)
        added, weights = terms(made, params)
        near, known = (
            float(sum((added[name] for name in names if name in added), start=np.zeros(m - 1)).std())
            for names in (NEAR, KNOWN)
        )
        row = {"effects": effects(added, weights, docids), "jaccard": made.jaccard[0]}
        row["share"] = near / (near + known) if near + known > 0 else 0.0
    except ParameterError:
        done = reference.steps(vectors, dataclasses.replace(params, weight="linear"))
    raw, lists = reference.inner_products(vectors), np.array(done.lists)
    others, named = raw[~np.eye(m, dtype=bool)].astype(np.float64), listed(lists, m)
    row["cohesion"] = cohesion((named & named.T)[1:, 1:])
    np.fill_diagonal(named, False)
    occurrences = named.sum(axis=0)
    hub = int(occurrences[1:].argmax()) + 1
    members = [done.sims[i, j] < 0 for i, own in enumerate(done.sets) for j in own if j != i]
    candidates, similarity = vectors[1:].astype(np.float64), raw[0, 1:].astype(np.float64)
    norms = np.linalg.norm(candidates, axis=1)
    by_similarity = docids[order_by_score(similarity, docids)].tolist()
    return row | {
        "lists": lists,
        "sizes": np.array([len(own - {i}) for i, own in enumerate(done.sets)]),
        "skewness": skewness(occurrences),
        "hub": (float(occurrences[hub]) / (m - 1), str(docids[hub - 1])),
        "low": others.min(),
        "high": others.max(),
        "level": abs(others.mean()),
        "largest": done.sims.max(),
        "negative": np.mean(members) if members else 0.0,
        "range": np.ptp(similarity),
        "agreement": rank_biased_overlap(docids.tolist(), by_similarity),
        "norms": norms,
        "query_norm": float(np.linalg.norm(vectors[0])),
        "sum": candidates.sum(axis=0),
        "unit": (candidates / np.where(norms > 0, norms, 1.0)[:, None]).sum(axis=0),
    }


def _summary(contexts: list[dict[str, Any]], params: RnnParams) -> dict[str, Any]:
    """The measurements over all contexts, except overlap and graph."""

    def each(name: str) -> list[Any]:
        return [row[name] for row in contexts if row.get(name) is not None]

    safe = len(each("effects")) == len(contexts)
    norms, unit, sizes = np.concatenate(each("norms")), sum(each("unit")), each("sizes")
    count, mean_norm = len(norms), float(norms.mean())
    # pairs of the same document from two queries have cosine 1 and say nothing: left out
    seen = np.bincount(np.concatenate(each("entries")))
    repeats = int((seen * (seen - 1)).sum())
    pairs = count**2 - sum(len(own) ** 2 for own in each("norms")) - repeats
    same_query = sum(float(one @ one) for one in each("unit"))
    cosine = (float(unit @ unit) - same_query - repeats) / pairs if pairs > 0 else None
    share, docid = max([(0.0, ""), *each("hub")], key=lambda hub: hub[0])
    spreads, level = np.array(each("high")) - np.array(each("low")), np.mean(each("level"))
    lengths = [*norms.tolist(), *each("query_norm")]
    low, high = min(lengths), max(lengths)
    exponent = params.weight_scale * max(each("largest"))
    return {
        "sets": {
            "query": spread(np.array([own[0] for own in sizes]), ones=True),
            "candidates": spread(np.concatenate([own[1:] for own in sizes]), ones=True),
            "jaccard_zero": rounded((np.concatenate(each("jaccard")) == 0).mean()) if safe else None,
            "cohesion": rounded(np.mean(each("cohesion") or [0.0])),
        },
        "hubness": {
            "skewness": spread(np.array(each("skewness"))),
            "largest_hub": {"docid": docid, "share_of_lists": rounded(share)},
        },
        "anisotropy": {
            "mean_cosine": None if cosine is None else rounded(cosine),
            "mean_vector": rounded(np.linalg.norm(sum(each("sum"))) / count / mean_norm) if mean_norm else 0.0,
        },
        "scale": {
            "lowest": rounded(min(each("low"))),
            "highest": rounded(max(each("high"))),
            "level": rounded(level),
            "spread": spread(spreads),
            "query_spread": rounded(np.mean(each("range"))),
            "spread_to_level": rounded(spreads.mean() / level) if level > 0 else None,
            "norms": [rounded(low), rounded(high)],
            "unit_norm": bool(low > 1 - UNIT and high < 1 + UNIT),
            "largest_exponent": rounded(exponent),
            "exp_safe": bool(exponent <= reference.EXPONENT_LIMIT),
            "negative_weights": rounded(np.mean(each("negative"))),
            "jaccard_share": rounded(np.mean(each("share"))) if safe else None,
        },
        "order": {"agreement": rounded(np.mean(each("agreement")))},
        "terms": mean_effects(each("effects")),
    }


def _overlap(before: Run, after: Run, context: int) -> dict[str, Any]:
    """How far the contexts of two runs with the same entries differ."""
    rbo, first, ten, moves = [], [], [], []
    for qid in before:
        old, new = before.ranked(qid)[:context], after.ranked(qid)[:context]
        if set(old) != set(new):  # candidates without a vector went below
            known = set(new)
            old = [docid for docid in before.ranked(qid) if docid in known]
        if len(old) < 2:
            continue
        rank_of = {docid: rank for rank, docid in enumerate(new)}
        rbo.append(rank_biased_overlap(old, new))
        first.append(old[0] != new[0])
        ten.append(set(old[:10]) != set(new[:10]))
        moves.append(np.mean([abs(rank - rank_of[docid]) for rank, docid in enumerate(old)]))
    return {
        "p": PERSISTENCE,
        "rbo": spread(np.array(rbo)),
        "top_1_changed": rounded(np.mean(first)),
        "top_10_changed": rounded(np.mean(ten)),
        "mean_displacement": rounded(np.mean(moves)),
    }
