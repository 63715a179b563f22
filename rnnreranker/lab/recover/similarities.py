"""Scores of each similarity when one judged positive is visible and the others are hidden among the candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.method import Inputs
from rnnreranker.base.settings import Written
from rnnreranker.lab.query_set import read_query_set
from rnnreranker.lab.recover.request import COLLECTIVE, RecoverRequest
from rnnreranker.labels import LabelParams
from rnnreranker.labels.methods.simple import JointParams
from rnnreranker.labels.similarity import Asked, GraphSimilarity, VectorSimilarity
from rnnreranker.labels.targets import targets
from rnnreranker.rnn import RnnParams, jaccard_similarity

if TYPE_CHECKING:
    import pandas

    from rnnreranker.lab.query_set import JudgedQueries
    from rnnreranker.search.opened import Index

OF_GRAPH = "graph-"  # before the names of those that a graph has, too
LAMBDAS = (0.3, 0.5, 0.7)  # of joint similarity, in place of its own
WEIGHTS = (0.0, 0.33, 0.67, 1.0)  # of the positive, in place of its own

Scores = dict[str, np.ndarray]  # name → (R, n) float64
Beside = Callable[[str, Sequence[str], np.ndarray], Scores]  # of a query, n docids and R positives


def joints(request: RecoverRequest) -> dict[str, JointParams]:
    """Name → settings of each joint similarity that differs in its weights alone."""
    changes: Any = {"joint-geometric": {"lam": 1.0}, "joint-jaccard": {"lam": 0.0}, "joint": {}}
    if request.ablations:
        lam, a = request.joint.lam, request.joint.positive_weight
        changes |= {f"joint, lambda {other:g}": {"lam": other} for other in LAMBDAS if other != lam}
        changes |= {f"joint, a {other:g}": {"positive_weight": other} for other in WEIGHTS if other != a}
    return {name: dataclasses.replace(request.joint, **changed) for name, changed in changes.items()}


def of_vectors(request: RecoverRequest, context: np.ndarray, positives: np.ndarray) -> Scores:
    """Name → (R, n) from each positive to the candidates; "query" is the same for all positives.

    context: (1, n + 1, d) float32, row 0 = query; positives: (R,) int64, candidate numbers from 0.
    """
    probes, lengths = positives + 1, np.array([context.shape[1] - 1])

    def near(params: RnnParams) -> VectorSimilarity:
        return VectorSimilarity(lengths, params, request.threads, context)

    own = near(request.params)
    scores = {"query": own.geometric(np.zeros(1, dtype=np.int64))[0].repeat(len(probes), axis=0)}
    scores |= {"geometric": own.geometric(probes)[0], "jaccard": own.jaccard(probes)[0], "mixed": own.mixed(probes)[0]}
    scores |= {name: near(one).joint(probes, one.positive_weight)[0] for name, one in joints(request).items()}
    if request.ablations:
        both, lam, a = np.append(0, probes), request.joint.lam, request.joint.positive_weight
        plain = jaccard_similarity(context, request.joint, probes=both.tolist(), reciprocal=False)[0, :, 1:]
        mixed = lam * near(request.joint).geometric(both)[0].astype(np.float64) + (1.0 - lam) * plain
        scores["joint, plain neighbours"] = a * mixed[1:] + (1.0 - a) * mixed[:1]
    return scores


def of_graph(request: RecoverRequest, graph: Any, rows: np.ndarray, positives: np.ndarray, asked: Asked) -> Scores:
    """The same from the graph: single positives each in front, joint in the order of the run; rows: (n,) int64."""
    order = np.array([[row, *np.delete(np.arange(len(rows)), row)] for row in positives.tolist()])
    lengths, first, back = np.full(len(order), len(rows)), np.ones(1, dtype=np.int64), np.argsort(order, axis=1)
    single = GraphSimilarity(lengths, request.params, request.threads, graph, rows[order])
    scores = {
        OF_GRAPH + name: np.take_along_axis(getattr(single, name)(first)[:, 0], back, axis=1)
        for name in ("geometric", "jaccard", "mixed")
    }
    joint = GraphSimilarity(lengths[:1], request.joint, request.threads, graph, rows[None], asked)
    return scores | {OF_GRAPH + "joint": joint.joint(positives + 1, request.joint.positive_weight)[0]}


@phase("ranking by the positives")
def cases_of(request: RecoverRequest) -> tuple[pandas.DataFrame, dict[str, str]]:
    """Each positive of each query in turn visible, if a hidden positive and a judged negative remain.

    With several visible positives, each is joined by those that follow it in the run, in a circle. The first
    `params.context` candidates form neighbourhoods; unjudged ones are ranked only if they count as negatives.

    Returns:
        A row for each candidate of each case but the visible ones, in the order of the run: qid, case, visible
        (docids), docid, hidden (positive), mass (probability in joint labels), raw (inner product with the query),
        margin (raw minus that of the visible ones), and a column for each scorer, mean over the visible ones.
        Fingerprints of what was read.

    Raises:
        InputError: a candidate or query without a vector, a candidate missing from the graph, no usable query.
    """
    import pandas

    from rnnreranker.search.opened import open_index

    index = open_index(request.index)  # type: ignore[arg-type]  # `check` refuses None
    vectors, graph, size = index.vectors, index.graph if request.source == "both" else None, request.params.context
    read = read_query_set(request, index, size)
    beside = teachers_of(request, index, read) if request.teachers else None
    grades = read.qrels.set_index("doc_id").groupby("query_id")["relevance"].agg(dict).to_dict()
    frames = []
    for qid in read.run.qids:
        judged, names = grades.get(qid, {}), read.run.ranked(qid)[:size]
        docids = np.array(names, dtype=object)
        known = np.array([docid in judged or request.unjudged == "negative" for docid in names], dtype=bool)
        positive = np.array([judged.get(docid, 0) >= request.relevant for docid in names], dtype=bool)
        if positive.sum() <= request.visible or not (known & ~positive).any():
            continue
        rows = {name: source.rows(names) for name, source in (("index", vectors), ("graph", graph)) if source}
        for name, own in rows.items():
            if (own < 0).any():
                raise InputError(f"query {qid}: {docids[own < 0][0]} is not in the {name}; use the run's own index")
        context = np.concatenate([read.queries.of([qid]).vectors, vectors.fetch(rows["index"])])
        context = context.astype(np.float32)[None]
        raw = context[0, 1:].astype(np.float64) @ context[0, 0].astype(np.float64)
        positives = np.flatnonzero(positive)
        scores = of_vectors(request, context, positives)
        if graph is not None:
            in_run = np.array([[score for _, score in read.run[qid][: len(docids)]]])
            asked = Asked(np.arange(len(docids))[None], in_run, raw[None])
            scores |= of_graph(request, graph, rows["graph"], positives, asked)
        if beside is not None:
            scores |= beside(qid, names, positives)
        for first in range(len(positives)):
            chosen = np.sort((first + np.arange(request.visible)) % len(positives))
            shown = np.isin(np.arange(len(docids)), positives[chosen])
            means = {name: each[chosen].mean(axis=0, dtype=np.float64) for name, each in scores.items()}
            mass = targets(means["joint"], shown, LabelParams()).astype(np.float64)
            about = {"qid": qid, "case": first, "visible": " ".join(docids[shown]), "docid": docids}
            margin = raw - raw[shown].mean()
            case = pandas.DataFrame({**about, "hidden": positive, "mass": mass, "raw": raw, "margin": margin, **means})
            frames.append(case[known & ~shown])
    if not frames:
        names = [argument("unjudged", "negative"), f"a lower {argument('relevant')}", argument("context")]
        raise InputError(
            f"no query has {request.visible + 1} positives and a judged negative among its first {size} candidates: "
            f"nothing can be hidden; give {', '.join(names)} or more judgements"
        )
    inputs = {"index": vectors.fingerprint} | ({} if graph is None else {"graph": graph.fingerprint})
    return pandas.concat(frames, ignore_index=True), inputs


def teachers_of(request: RecoverRequest, index: Index, read: JudgedQueries) -> Beside:
    """A function (qid, n docids, R positives) → name → (R, n) float64 scores of teachers.

    Raises:
        InputError: an index without a needed part, and errors of the rerankers.
    """
    from rnnreranker.methods.rerank.prf import PrfReranker
    from rnnreranker.parts.tokens.source import query_tokens

    deepest = int(np.diff(read.run.offsets).max(initial=1))
    reranked: Any = {}
    knowing: dict[str, PrfReranker] = {}
    for name, chosen in request.teachers:
        if COLLECTIVE.get(name):
            tokens = index.token_vectors
            inputs = Inputs(tokens=tokens, query_tokens=query_tokens(tokens, read.texts, request.threads))
            knowing[name] = PrfReranker(inputs, chosen.params, threads=request.threads)
            continue
        settings = chosen.params.to_dict()
        settings |= {"context": deepest} if "context" in settings else {}
        how: Any = {"hits": deepest, "threads": request.threads, "encoded_queries": read.queries}
        if "texts" in chosen.needs:
            how |= {"documents": request.documents, "fields": request.fields}
        reranked[name] = index.rerank(read.run, Written(chosen.name, settings), read.texts, **how).to_dict()

    def of(qid: str, docids: Sequence[str], positives: np.ndarray) -> Scores:
        scores = {}
        for name, _ in request.teachers:
            if name in knowing:
                asked = knowing[name].alone(qid, docids)
                several: Any = [knowing[name].scores_knowing(*asked, [number]) for number in positives.tolist()]
            else:
                several = [[reranked[name][qid][docid] for docid in docids]] * len(positives)
            scores[name] = np.array(several)
        return scores

    return of
