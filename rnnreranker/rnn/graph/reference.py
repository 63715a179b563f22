"""The graph form as loops: a context of which only the pairs are known that a graph names; the oracle of its tests.

Element 0 is the query. Two documents are known to each other where one of them is among the other's K neighbours in
the graph. A list holds known elements alone; where a weight asks for a pair that is not known, it counts as the lowest
known similarity of the context, and an element is as similar to itself as the most similar pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnnreranker.rnn import reference, reference_scores
from rnnreranker.rnn.params import RnnParams


def known_similarities(
    edges: np.ndarray, weights: np.ndarray, rows: Sequence[int], query: Sequence[float] | np.ndarray | None = None
) -> np.ndarray:
    """(m, m) float32: the similarities of the pairs of a context, -inf where they are not known and on the diagonal.

    edges, weights: (D, K), the neighbours of D documents and their similarities; rows: N candidates in the order of
    the run. query: their N similarities to the query; None = those of the first candidate to the others, the largest
    dealt to the first, the next to the second, and so on.
    """
    m = len(rows) + 1
    similarities = np.full((m, m), -np.inf, dtype=np.float32)
    for i, row in enumerate(rows, 1):
        for edge, weight in zip(edges[row].tolist(), weights[row].tolist(), strict=True):
            for j, other in enumerate(rows, 1):
                if other == edge and i != j:
                    similarities[i, j] = similarities[j, i] = max(similarities[i, j], np.float32(weight))
    if query is None:
        dealt = sorted((value for value in similarities[1, 1:].tolist() if math.isfinite(value)), reverse=True)
        query = [*dealt, *[-math.inf] * (m - 1 - len(dealt))]
    similarities[0, 1:] = similarities[1:, 0] = query
    return similarities


def steps(known: np.ndarray, params: RnnParams) -> reference.Steps:
    """All steps up to the expanded weights, of what `known_similarities` gives.

    Raises:
        ParameterError: the exponential weight would overflow.
    """
    m = len(known)
    values = [value for value in known.ravel().tolist() if math.isfinite(value)] or [0.0]
    raw = np.where(np.isfinite(known), known, np.float32(min(values)))
    raw[np.diag_indices(m)] = max(values)
    ranking, sims = reference.similarities(raw, params)
    reference.check_exponent(sims.max(), params)
    ranked = []
    for i, row in enumerate(known.tolist()):
        others = sorted((-value, j) for j, value in enumerate(row) if math.isfinite(value))
        ranked.append([i, *(j for _, j in others)])
    made = [entries[: reference.list_length(m, params)] for entries in ranked]
    sets = reference.reciprocal_sets(made)
    if params.tau > 0:
        sets = reference.extend(sets, made, reference.extension_columns(m, params), params.variant)
    weights = reference.weight_rows(sets, sims, params)
    nearest = reference.nearest_taken(m, params)
    filled = [[*entries, *[entries[0]] * nearest][:nearest] for entries in ranked]
    expanded = reference.expand(weights, filled, nearest)
    return reference.Steps(raw, ranking, sims, made, sets, weights, expanded, np.isfinite(known))


def graph_similarity(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: Sequence[int],
    params: RnnParams,
    query: Sequence[float] | np.ndarray | None = None,
    base: reference_scores.Scores = None,
) -> np.ndarray:
    """s* of every candidate of one query, (N,) float64; see `graph_similarity.graph_similarity`."""
    done = steps(known_similarities(edges, weights, rows, query), params)
    return reference_scores.parts(done, params if query is not None else params.without_query(), base).scores
