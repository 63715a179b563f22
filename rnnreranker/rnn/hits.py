"""`rerank_hits`: what a vector store returned for one query, in the order of its reciprocal nearest neighbours."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import refusals
from rnnreranker.rnn.known_similarities import given_similarity
from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.similarity import rnn_similarity


def rerank_hits(
    query_vector: np.ndarray | None,
    vectors: np.ndarray,
    scores: np.ndarray | None = None,
    params: RnnParams | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The order of one query's hits by s*, best first: (N,) int64 row numbers of `vectors`, and their s*, (N,) float32.

    Args:
        query_vector: (d,); None = the store did not say: `scores` are then its similarities to the hits.
        vectors: (N, d), those of the hits; real numbers, cast to float32.
        scores: (N,) of the store, higher is better; None = inner products with the query. The hits count in the order
            of their scores, equal ones as they stand.
        params: of the similarity; None = the defaults. All hits take part, whatever `context` says.

    Raises:
        InputError: other shapes, no hits, NaN or infinity, neither query vector nor scores.

    >>> import numpy as np
    >>> order, similarities = rerank_hits(np.eye(2)[0], np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> order.tolist()
    [1, 0]
    """
    params = params or RnnParams()
    hits = refusals.vectors(vectors, "vectors", "(N, d)").astype(np.float32)
    if not len(hits):
        raise InputError("vectors has no rows: expected those of at least one hit")
    known = None if scores is None else np.asarray(scores, dtype=np.float32)
    if known is not None and (known.shape != (len(hits),) or not np.isfinite(known).all()):
        raise InputError(f"scores has shape {known.shape}: expected ({len(hits)},) finite numbers, one for each hit")
    if query_vector is None and known is None:
        raise InputError("query_vector and scores are None: expected at least one of them")
    if query_vector is None:
        first = np.argsort(-known, kind="stable")  # type: ignore[operator]  # there, as was looked at
        similarities = _with_query(known[first], hits[first])  # type: ignore[index]
        similarity = given_similarity(similarities, params, base=known[first])  # type: ignore[index]
    else:
        query = np.asarray(query_vector, dtype=np.float32)
        if query.shape != hits.shape[1:]:
            raise InputError(f"query_vector has shape {query.shape}: expected ({hits.shape[1]},), as the hits")
        by = hits.astype(np.float64) @ query if known is None else known
        first = np.argsort(-by, kind="stable")
        base = None if known is None else known[first][None]
        similarity = rnn_similarity(query[None], hits[first][None], params, base=base)[0]
    best = np.argsort(-similarity, kind="stable")
    return first[best].astype(np.int64), similarity[best]


def _with_query(scores: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """(N + 1, N + 1) float32: the inner products of hits, with the scores as those of a query in row 0."""
    similarities = np.empty((len(hits) + 1, len(hits) + 1), dtype=np.float32)
    similarities[1:, 1:] = hits @ hits.T
    similarities[0, 1:] = similarities[1:, 0] = scores
    similarities[0, 0] = max(similarities.diagonal()[1:].max(), scores.max())
    return similarities
