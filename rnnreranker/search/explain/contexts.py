"""The context of one query taken apart, with similarities of vectors or of a graph of the collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams, checks, reference
from rnnreranker.search.explain.neighbourhood import Known, Neighbourhood, Values, taken_apart

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph


def neighbourhood(
    query: np.ndarray,
    candidates: np.ndarray,
    docids: Sequence[str],
    params: RnnParams,
    *,
    base: Values = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
) -> Neighbourhood:
    """The context of one query taken apart; its scores are those of `rnn_similarity`, in float64.

    Args:
        query: (d,) float32.
        candidates: (N, d) float32, N >= 1, all of which take part, in the order of the first stage; `params.context`
            is not applied here.
        docids: N distinct names of the candidates.
        params: the parameters of the reranker.
        base: N scores of the first stage, 0 where they tell nothing (None = it ranks by the inner products, in any
            order of the candidates).
        before: N ranks from 1 before reranking (None = the order given).
        after: N ranks after it (None = by s* descending, ties by docid).

    Raises:
        InputError: no candidates, vectors of other dimensions, as many docids or ranks as candidates are not given,
            NaN or infinite vectors or scores.
    """
    query, candidates = np.asarray(query, dtype=np.float32), np.asarray(candidates, dtype=np.float32)
    if query.ndim != 1 or candidates.ndim != 2 or not len(candidates) or candidates.shape[1] != len(query):
        raise InputError(
            f"query has shape {query.shape} and candidates {candidates.shape}: expected (d,) and (N, d), N >= 1"
        )
    _check(len(candidates), docids=docids, base=base, before=before, after=after)
    if not (np.isfinite(query).all() and np.isfinite(candidates).all()):
        raise InputError("NaN or infinite values in a vector; build the index, or encode the queries, again")
    done = reference.steps(np.vstack([query[None], candidates]), params)
    return taken_apart(done, list(docids), params, base, before, after)


def graph_neighbourhood(
    graph: NeighbourGraph,
    docids: Sequence[str],
    params: RnnParams,
    *,
    query: Values = None,
    of_run: bool = False,
    base: Values = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
) -> Neighbourhood:
    """As `neighbourhood`, from a graph of the collection; its scores are those of `graph_similarity`, in float64.

    Args:
        graph: of `open_neighbours`.
        docids: N >= 1 distinct docids of the graph, the candidates in the order of the first stage.
        params: the parameters of the reranker.
        query: N inner products of query and candidates; None = not known (`RnnParams.without_query`), and then `base`
            must be given.
        of_run: these are the scores of the run.
        base, before, after: as in `neighbourhood`.

    Raises:
        InputError: no candidates, docids that are not in the graph, as many values as candidates are not given or they
            are not finite, neither query nor base, parameters that need more than is known.
    """
    rows = graph.rows(list(docids))
    if not len(rows) or (rows < 0).any():
        lost = next((docid for docid, row in zip(docids, rows, strict=True) if row < 0), "none")
        raise InputError(f"docids: {lost}; expected one or more, all of them in {graph.path}")
    if query is None and base is None:
        raise InputError("neither query nor base: expected inner products with the query, or scores of a run")
    _check(len(rows), query=query, base=base, before=before, after=after)
    checks.rows_of_graph(params)
    params = params if query is not None else params.without_query()
    edges, weights = graph.fetch(rows)
    element_of = {int(row): element for element, row in enumerate(rows)}
    inside = np.array([[element_of.get(int(edge), len(rows)) for edge in line] for line in edges])
    similarities = reference.known_similarities(inside, weights, range(len(rows)), query)
    known_pairs = np.isfinite(similarities)
    done = reference.graph_steps(similarities, params)
    known = Known(
        k=graph.k,
        pairs=int(known_pairs[1:, 1:].sum()) // 2,
        of=len(rows) * (len(rows) - 1) // 2,
        lowest=float(done.raw.min()),
        query="dealt" if query is None else "run" if of_run else "vectors",
        dealt=int(known_pairs[0].sum()) if query is None else 0,
    )
    return taken_apart(done, list(docids), params, base, before, after, known)


def _check(count: int, **given: Sequence[object] | np.ndarray | None) -> None:
    """Look that there are as many values as candidates, and that scores are finite."""
    for name, values in given.items():
        if values is not None and len(values) != count:
            raise InputError(f"{name} has {len(values)} entries for {count} candidates: expected as many")
    for name, said in (("query", "inner products"), ("base", "those of the first stage")):
        values = given.get(name)
        if values is not None and not np.isfinite(np.asarray(values, dtype=np.float64)).all():
            raise InputError(f"NaN or infinite scores in {name}; expected {said}")
