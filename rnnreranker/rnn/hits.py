"""`rerank_hits`: the hits of a vector store, reranked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, instance_of, numbers_of
from rnnreranker.rnn import checks
from rnnreranker.rnn.api import given_similarity, rnn_similarity
from rnnreranker.rnn.params import RnnParams


class RerankedHits(NamedTuple):
    """The hits of one query, best first: `scores[i]` belongs to `hits[order[i]]`.

    The scores are in the new order already, so `scores[order]` is wrong. Loop over both::

        for row, score in zip(order, scores):
            print(hits[row], score)

    order: (N,) int64, row numbers of the given hits; scores: (N,) float32, their s*.
    """

    order: np.ndarray
    scores: np.ndarray


@np.errstate(over="ignore", invalid="ignore")  # numbers beyond float32 are refused below
def rerank_hits(
    query_vector: Any,
    vectors: Any,
    scores: Any = None,
    params: RnnParams | Mapping[str, Any] | None = None,
) -> RerankedHits:
    """One query's hits by s*, best first.

    Args:
        query_vector: (d,); None = unknown: then `scores` are its similarities to the hits.
        vectors: (N, d) of the hits, of any real type or a torch tensor; cast to float32.
        scores: (N,) of the store, higher is better; None = inner products with the query.
        params: of the similarity, or a mapping of some settings; None = the defaults. `context` is ignored.

    Returns:
        order: (N,) int64 row numbers of `vectors`; scores: (N,) float32, in that order.

    Raises:
        InputError: other shapes, no hits, NaN or infinity, neither query vector nor scores.

    >>> import numpy as np
    >>> order, scores = rerank_hits(np.eye(2)[0], np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> [(row, round(score, 2)) for row, score in zip(order.tolist(), scores.tolist())]
    [(1, 0.74), (0, 0.39)]
    """
    settings = params_of(params)
    hits = checks.vectors(vectors, "vectors", "(N, d)").astype(np.float32)
    if not len(hits):
        raise InputError("vectors has no rows: expected those of at least one hit")
    if query_vector is None and scores is None:
        raise InputError("query_vector and scores are None: expected at least one of them")

    known = None if scores is None else numbers_of(scores, "scores", (len(hits),))
    query = None if query_vector is None else numbers_of(query_vector, "query_vector", hits.shape[1:])
    if query is None:
        assert known is not None
        first = np.argsort(-known, kind="stable")
        similarity = np.empty((len(hits) + 1, len(hits) + 1), dtype=np.float32)
        similarity[1:, 1:] = hits[first] @ hits[first].T
        similarity[0, 1:] = similarity[1:, 0] = known[first]
        similarity[0, 0] = max(similarity.diagonal()[1:].max(), known.max())
        result = given_similarity(similarity, settings, base=known[first])
    else:
        query = query.astype(np.float32)
        if known is not None and checks.fall([(known, query, hits)]):
            notice(checks.FALL)
        first = np.argsort(-(hits.astype(np.float64) @ query if known is None else known), kind="stable")
        base = None if known is None else known[first][None]
        result = rnn_similarity(query[None], hits[first][None], settings, base=base)[0]
    best = np.argsort(-result, kind="stable")
    return RerankedHits(first[best].astype(np.int64), result[best])


def params_of(params: RnnParams | Mapping[str, Any] | None) -> RnnParams:
    """`RnnParams` of an instance, a mapping of some settings, or None; InputError: others."""
    if isinstance(params, Mapping):
        return RnnParams.of(params, "params")
    return instance_of(RnnParams() if params is None else params, RnnParams, "params")
