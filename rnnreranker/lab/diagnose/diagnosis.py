"""Measurements of a run's contexts, and of what reranking changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.lab.diagnose.graph_coverage import coverage, coverage_of_all, hubs
from rnnreranker.lab.diagnose.measures import PERSISTENCE, Geometry, geometry, rank_biased_overlap, rounded, spread
from rnnreranker.lab.diagnose.terms import KNOWN, NEAR, effects, mean_effects, terms
from rnnreranker.parts.vectors.of_run import query_rows
from rnnreranker.rnn import RnnParams, jaccard_similarity, reference
from rnnreranker.runs.head import order_by_score, why_useless

if TYPE_CHECKING:
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

UNIT = 1e-2  # a norm this near to 1 is taken for 1, so that float16 and quantised vectors count as such


def sampled(run: Run, count: int) -> Run:
    """The run of the `count` queries with the lowest SHA-256, in the order of the run.

    Raises:
        InputError: count below 1.
    """
    if count < 1:
        raise InputError(f"sample={count}: expected an integer >= 1")
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
    state = _Collected(params)
    in_graph = None if graph is None else graph.rows(list(run.docids))
    covered = []
    for number in progress(range(len(run)), unit="queries", what="diagnose"):
        positions = np.arange(run.offsets[number], run.offsets[number + 1])
        positions = positions[rows[run.rows[positions]] >= 0][: params.context]
        entries = run.rows[positions]
        if len(entries) < 2:
            continue
        qid = run.qids[number]
        context = np.vstack([queries[number][None], vectors.fetch(rows[entries])])
        if not np.isfinite(context).all():
            raise InputError(f"NaN or infinite values in a vector of query {qid}; build the index, or encode, again")
        state.add(context, run.docids[entries], entries, base[positions], reranker.threads)
        if graph is not None and in_graph is not None:
            covered.append(coverage(state.geometries[-1].lists, in_graph[entries], graph))
    if not state.geometries:
        raise InputError(
            "no query of the run has two candidates with vectors: nothing to diagnose; check run and index"
        )
    measured = state.summary()
    measured["order"]["only_order"] = useless
    measured["overlap"] = None if state.unsafe else _overlap(run, reranker.rerank(run, query_vectors), params.context)
    measured["graph"] = None
    if graph is not None:
        measured["graph"] = coverage_of_all(covered) | hubs(graph, params.k)
    return {
        "schema": 1,
        "queries": {"run": len(run), "sampled": len(run), "measured": len(state.geometries)},
        "params": params.to_dict(),
        **measured,
    }


class _Collected:
    """Measurements of each context: a row of `contexts` each."""

    def __init__(self, params: RnnParams) -> None:
        self.params = params
        self.geometries: list[Geometry] = []
        self.contexts: list[dict[str, Any]] = []
        self.effects: list[dict[str, dict[str, float | None]]] = []
        self.times_seen = Counter[int]()
        self.unsafe = False

    def add(
        self, context: np.ndarray, docids: np.ndarray, entries: np.ndarray, base: np.ndarray, threads: int | None
    ) -> None:
        """Measure a context (m, d).

        docids, entries, base: names, numbers and run scores of its m-1 candidates, in the order of the run.
        """
        params, measured = self.params, geometry(context, self.params)
        self.geometries.append(measured)
        candidates = context[1:].astype(np.float64)
        norms = np.linalg.norm(candidates, axis=1)
        inside = (candidates / np.where(norms > 0, norms, 1.0)[:, None]).sum(axis=0)
        largest = int(measured.occurrences[1:].argmax()) + 1
        by_similarity = docids[order_by_score(measured.similarity, docids)].tolist()
        row: dict[str, Any] = {"norms": norms, "query_norm": float(np.linalg.norm(context[0])), "unit": inside}
        row |= {"sum": candidates.sum(axis=0), "pairs": len(entries) ** 2}
        row["hub"] = (float(measured.occurrences[largest]) / (len(context) - 1), str(docids[largest - 1]))
        row["agreement"] = rank_biased_overlap(docids.tolist(), by_similarity)
        self.contexts.append(row)
        self.times_seen.update(entries.tolist())
        if params.weight == "exp" and params.weight_scale * measured.largest > reference.EXPONENT_LIMIT:
            self.unsafe = True
            return
        probes = range(1 if params.scale == "none" else min(params.probes, len(context)))
        jaccard = jaccard_similarity(context[None], params, probes=probes, threads=threads)[0]
        added = terms(reference.inner_products(context, params.scale == "minmax"), base, jaccard, params)
        self.effects.append(effects(added, docids))
        one, other = (
            sum((added[name] for name in names if name in added), start=np.zeros(len(base))).std()
            for names in (NEAR, KNOWN)
        )
        row |= {"jaccard": jaccard[0, 1:], "share": float(one / (one + other)) if one + other > 0 else 0.0}

    def summary(self) -> dict[str, Any]:
        """The measurements over all contexts, except the overlap."""
        contexts = self.geometries

        def each(name: str) -> list[Any]:
            return [row[name] for row in self.contexts if name in row]

        norms, sums = np.concatenate(each("norms")), sum(each("unit"))
        count, mean_norm = len(norms), float(norms.mean())
        # pairs of the same document from two queries have cosine 1 and say nothing: left out
        repeats = sum(seen * (seen - 1) for seen in self.times_seen.values())
        pairs = count**2 - sum(each("pairs")) - repeats
        same_query = sum(float(inside @ inside) for inside in each("unit"))
        cosine = (float(sums @ sums) - same_query - repeats) / pairs if pairs > 0 else None
        share, docid = max([(0.0, ""), *each("hub")], key=lambda hub: hub[0])
        spreads = np.array([one.high - one.low for one in contexts])
        levels = np.array([abs(one.level) for one in contexts])
        cohesions = [one.cohesion for one in contexts if one.cohesion is not None]
        exponent = self.params.weight_scale * max(one.largest for one in contexts)
        lengths = [*norms.tolist(), *each("query_norm")]
        low, high = min(lengths), max(lengths)
        jaccard = np.concatenate(each("jaccard") or [np.zeros(0)])
        return {
            "sets": {
                "query": spread(np.array([one.sizes[0] for one in contexts]), ones=True),
                "candidates": spread(np.concatenate([one.sizes[1:] for one in contexts]), ones=True),
                "jaccard_zero": None if self.unsafe else rounded((jaccard == 0).mean()),
                "cohesion": rounded(np.mean(cohesions)) if cohesions else 0.0,
            },
            "hubness": {
                "skewness": spread(np.array([one.skewness for one in contexts])),
                "largest_hub": {"docid": docid, "share_of_lists": rounded(share)},
            },
            "anisotropy": {
                "mean_cosine": None if cosine is None else rounded(cosine),
                "mean_vector": rounded(np.linalg.norm(sum(each("sum"))) / count / mean_norm) if mean_norm else 0.0,
            },
            "scale": {
                "lowest": rounded(min(one.low for one in contexts)),
                "highest": rounded(max(one.high for one in contexts)),
                "level": rounded(levels.mean()),
                "spread": spread(spreads),
                "query_spread": rounded(np.mean([np.ptp(one.similarity) for one in contexts])),
                "spread_to_level": rounded(spreads.mean() / levels.mean()) if levels.mean() > 0 else None,
                "norms": [rounded(low), rounded(high)],
                "unit_norm": bool(low > 1 - UNIT and high < 1 + UNIT),
                "largest_exponent": rounded(exponent),
                "exp_safe": bool(exponent <= reference.EXPONENT_LIMIT),
                "negative_weights": rounded(np.mean([one.negative for one in contexts])),
                "jaccard_share": None if self.unsafe else rounded(np.mean(each("share"))),
            },
            "order": {"agreement": rounded(np.mean(each("agreement")))},
            "terms": mean_effects(self.effects, self.params),
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
