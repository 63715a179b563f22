"""Jaccard similarity over plain nearest neighbours: rNN without the demand that neighbours be reciprocal."""

from __future__ import annotations

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.rerank.base import Candidates, Query, Reranker
from rnnreranker.rnn import RnnParams


class PlainJaccardReranker(Reranker):
    """As `RnnReranker` in every step and parameter but one: R(i) is list(i) itself.

    The extension (tau > 0) takes the first columns of a member's list as its T, not the reciprocal ones among them.
    What the difference to rnn shows is therefore what reciprocity is worth.

    Args and Raises: as `Reranker`; params: the rNN parameters.
    """

    name = "jaccard-plain"
    needs = frozenset({"query vectors", "vectors"})
    Params = RnnParams
    params: RnnParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: lambda s(q, c) + (1 - lambda) J(q, c) over plain neighbours."""
        return plain_similarity(query.vector, candidates.vectors, self.params)


def plain_similarity(query: np.ndarray, candidates: np.ndarray, params: RnnParams) -> np.ndarray:
    """(n,) float64: the mixture of geometric and plain Jaccard similarity of every candidate of one query.

    query: (d,) float32; candidates: (n, d) float32, n >= 1.

    Raises:
        InputError: inner products beyond float32, an exponential weight that would overflow.
    """
    from rnnreranker.rnn import fallback, reference
    from rnnreranker.rnn.engine_setting import EngineSetting

    with np.errstate(all="ignore"):
        rows = np.concatenate([query[None], candidates])
        raw = reference.inner_products(rows, shift_free=params.scale == "minmax")
    if not np.isfinite(raw).all():
        raise InputError("inner products beyond the range of float32; scale the vectors down")
    setting = EngineSetting.of(params, np.array([len(raw)]), mix=True)
    ranking, sims = fallback.similarities(raw, setting)
    reference.check_exponent(float(sims.max()), params)
    m, order = len(raw), np.argsort(-ranking, axis=1, kind="stable")
    weights = fallback.weights(_sets(order[:, : setting.lists[m]], setting.columns[m], setting.authors), sims, setting)
    if setting.nearest[m] > 1:
        weights = weights[np.sort(order[:, : setting.nearest[m]], axis=1)].mean(axis=1)
    overlap = fallback.jaccard(weights, 0)[1:]
    return reference.mix(fallback.geometric(raw, sims, setting), overlap, params.lam)


def _sets(order: np.ndarray, columns: int, strict: bool) -> np.ndarray:
    """(m, m) bool: row i = the members of list(i), extended unless columns < 0."""
    members = _mask(order)
    if columns < 0:
        return members
    short = _mask(order[:, :columns]).astype(np.float32)
    shared, sizes = members.astype(np.float32) @ short.T, short.sum(axis=1)  # small integers, exact
    enough = 3 * shared > 2 * sizes if strict else 3 * shared >= 2 * sizes
    return members | ((enough & members).astype(np.float32) @ short > 0)


def _mask(order: np.ndarray) -> np.ndarray:
    listed = np.zeros((len(order), len(order)), dtype=bool)
    listed[np.arange(len(order))[:, None], order] = True
    return listed
