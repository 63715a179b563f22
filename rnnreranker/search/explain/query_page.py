"""`--explain QID`: what the search has in hand is taken apart, and becomes the page of one query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.methods.rerank.base import inner_products
from rnnreranker.runs.head import why_useless
from rnnreranker.search.explain import graph_neighbourhood, neighbourhood, write_explanation
from rnnreranker.search.show import first_line, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.runs import Run
    from rnnreranker.search.explain import Neighbourhood


def check_query(qid: str, topics: Iterable[str], source: str, base: Run | None) -> None:
    """Refuse a query that cannot be explained, before any work.

    Args:
        qid: the query asked for.
        topics: the ids there are.
        source: where they come from.
        base: the run to be reranked, when it was given.

    Raises:
        InputError: not among the topics (with the nearest ids), or without candidates in the run given.
    """
    known = list(topics)
    if qid not in known:
        raise InputError(f"--explain {qid}: no such query in {source}, {nearest(qid, known)}")
    if base is not None and (qid not in base or not base[qid]):
        raise InputError(f"--explain {qid}: the run of --run has no candidates for this query, so nothing to explain")


def explain(
    path: Path,
    index: IndexOnDisk,
    base: Run,
    reranked: Run,
    reranker: RnnReranker,
    *,
    qid: str,
    text: str,
    source: str,
) -> None:
    """Write the page of one query and say where it is.

    Args:
        path: the HTML file.
        index: the index that candidates have their texts from.
        base, reranked, reranker, qid: as of `taken_apart`.
        text: of the query.
        source: where the candidates come from, for the head of the page.

    Raises:
        InputError: as `taken_apart`.
    """
    explained, useless = taken_apart(base, reranked, reranker, qid)
    known = texts_in(index)
    docids = [candidate.docid for candidate in explained.candidates]
    texts = {docid: first_line(docid, known[docid]) for docid in docids if docid in known}
    write_explanation(path, explained, qid=qid, query=text, texts=texts, source=source, useless=useless)
    say(f"explanation of {qid}: {path}")


def taken_apart(base: Run, reranked: Run, reranker: RnnReranker, qid: str) -> tuple[Neighbourhood, str]:
    """The neighbourhood of one query, and why the scores of the run tell nothing beyond its order; "" where they do.

    Args:
        base: the run before reranking; its first `params.context` candidates that have a vector, or from a graph a row
            in it, are explained.
        reranked: the run after it.
        reranker: what made it; its inputs and parameters are taken.
        qid: the query.

    Raises:
        InputError: the query has no candidates with a vector, or a row in the graph.
    """
    params = reranker.params
    entries = dict(base[qid]) if qid in base.qids else {}
    ranks = {docid: rank for rank, docid in enumerate(entries, 1)}
    rows = (reranker.graph if reranker.source == "neighbours" else reranker.vectors).rows(list(ranks))
    context = [docid for docid, row in zip(ranks, rows, strict=True) if row >= 0][: params.context]
    if not context:
        raise InputError(f"--explain {qid}: no candidates for this query, so there is nothing to explain")
    useless = why_useless(base.scores, base.offsets) if params.uses_run and params.run_weight else None
    now = {docid: rank for rank, (docid, _) in enumerate(reranked[qid], 1)}
    about: dict[str, Any] = {
        "base": [0.0 if useless else entries[docid] for docid in context],
        "before": [ranks[docid] for docid in context],
        "after": [now[docid] for docid in context],
    }
    query, vectors = _vectors(reranker, qid, context)
    if reranker.source == "neighbours":
        of_run = reranker.queries == "run"
        products: Any = None if query is None else inner_products(query, vectors)
        products = [entries[docid] for docid in context] if of_run else products
        explained = graph_neighbourhood(reranker.graph, context, params, query=products, of_run=of_run, **about)
    else:
        explained = neighbourhood(query, vectors, context, params, **about)
    return explained, useless or ""


def _vectors(reranker: RnnReranker, qid: str, context: list[str]) -> tuple[Any, Any]:
    """(d,) and (N, d) float32: the vectors of a query and its candidates; None where the reranker encodes no query."""
    if "query vectors" not in reranker.needs:
        return None, None
    queries, vectors = reranker.inputs.query_vectors, reranker.vectors
    query = np.asarray(queries.vectors[queries.qids.index(qid)], dtype=np.float32)
    return query, vectors.fetch(vectors.rows(context))
