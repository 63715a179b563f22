"""Would smoothing help what is learnt? Shares of probability compared by the loss on positives that were held out.

In place of an encoder a linear map of the query vectors is fitted to the labels, which is a convex problem and takes
seconds; documents stay where they are, as in CODER. It is fitted on the queries of all folds but one and judged by what
it says of the positives of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.process.blas import one_blas_thread

SHARES = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6)  # that are compared
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003)  # of the map's squared norm; of each share the best is taken
FOLDS = 5
STEPS = 30  # of a fit
SURE = 1.645  # standard errors below a mean that a normal variable exceeds 95 times in 100


@dataclass(frozen=True, eq=False)
class Listwise:
    """C queries with N candidates each: what a map is fitted to.

    queries: (C, d) float32; documents: (C, N, d) float32, 0 for padding; real: (C, N) bool. hard: (C, N) float64, the
    targets of hard labels; others: (C, N) float64, what the method gives other candidates, rows sum to 1, or 0 where it
    gives nothing.
    """

    queries: np.ndarray
    documents: np.ndarray
    real: np.ndarray
    hard: np.ndarray
    others: np.ndarray

    def __len__(self) -> int:
        return len(self.queries)

    def targets(self, share: float) -> np.ndarray:
        """(C, N): labels of which a share leaves the positives, where others take any."""
        given = share * (self.others.sum(axis=1, keepdims=True) > 0)
        targets: np.ndarray = (1.0 - given) * self.hard + given * self.others
        return targets

    def of(self, chosen: np.ndarray) -> Listwise:
        """Some of the queries."""
        parts = (getattr(self, name)[chosen] for name in ("queries", "documents", "real", "hard", "others"))
        return Listwise(*parts)


def held_out_losses(queries: Listwise, folds: np.ndarray, shares: Sequence[float] = SHARES) -> np.ndarray:
    """(S, C) float64: cross-entropy of the hard targets of every query, by maps that were fitted without its fold.

    Of every share that of its best penalty, by the mean over all queries.

    queries: the queries; folds: (C,) from 0.
    """
    with one_blas_thread():
        scale = _scale(queries)
        parts = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]
        splits = [(queries.of(rest), queries.of(out), out) for rest, out in parts]
        return np.stack([_best_penalty(splits, len(queries), share, scale) for share in shares])


def best_share(losses: np.ndarray, shares: Sequence[float] = SHARES) -> float:
    """The share whose gain over the first, 0, is surest: the largest one-sided 95% bound; 0 where none is above 0.

    losses: (S, C), of each share and query.
    """
    gains = losses[0] - losses
    errors = gains.std(axis=1) / np.sqrt(max(gains.shape[1], 1))
    return shares[int(np.argmax(gains.mean(axis=1) - SURE * errors))]


def _best_penalty(
    splits: Sequence[tuple[Listwise, Listwise, np.ndarray]], count: int, share: float, scale: float
) -> np.ndarray:
    """(C,): the losses with the best penalty, from the strongest on; beyond the first that is worse none is tried."""
    d = splits[0][0].queries.shape[1]
    maps = [np.zeros(d * d) for _ in splits]
    best = np.full(count, np.inf)
    for penalty in PENALTIES:
        losses = np.empty(count)
        for fold, (rest, out, rows) in enumerate(splits):
            maps[fold] = fitted(rest, rest.targets(share), maps[fold], penalty, scale)
            losses[rows] = _losses(_products(out, maps[fold]), out, scale)
        if losses.mean() > best.mean():
            break
        best = losses
    return best


def fitted(queries: Listwise, targets: np.ndarray, start: np.ndarray, penalty: float, scale: float) -> np.ndarray:
    """(d * d,) float64: the map W whose q + W q has the lowest mean cross-entropy plus penalty |W|^2."""
    from scipy.optimize import minimize

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        logs = _log_shares(scale * _products(queries, flat), queries.real)
        rest = ((np.exp(logs) - targets) * (scale / len(queries)))[:, None].astype(np.float32)
        gradient = np.matmul(rest, queries.documents)[:, 0].T @ queries.queries
        loss = -(targets * np.where(queries.real, logs, 0.0)).sum() / len(queries)
        return loss + penalty * float(flat @ flat), gradient.astype(np.float64).ravel() + 2 * penalty * flat

    done: np.ndarray = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return done


def _products(queries: Listwise, flat: np.ndarray) -> np.ndarray:
    """(C, N) float64: inner products of mapped queries and candidates."""
    d = queries.queries.shape[1]
    mapped = queries.queries + queries.queries @ flat.reshape(d, d).astype(np.float32).T
    return np.matmul(queries.documents, mapped[:, :, None])[:, :, 0].astype(np.float64)


def _log_shares(scores: np.ndarray, real: np.ndarray) -> np.ndarray:
    """(C, N): logarithms of the softmax over the real candidates, -inf for padding."""
    scores = np.where(real, scores, -np.inf)
    falling = scores - scores.max(axis=1, keepdims=True)
    logs: np.ndarray = falling - np.log(np.exp(falling).sum(axis=1, keepdims=True))
    return logs


def _losses(products: np.ndarray, queries: Listwise, scale: float) -> np.ndarray:
    """(C,): the cross-entropy of the hard targets."""
    logs = np.where(queries.real, _log_shares(scale * products, queries.real), 0.0)
    losses: np.ndarray = -(queries.hard * logs).sum(axis=1)
    return losses


def _scale(queries: Listwise) -> float:
    """What inner products are multiplied by before the softmax: the positives are the likeliest with it."""
    from scipy.optimize import minimize_scalar

    products = _products(queries, np.zeros(queries.queries.shape[1] ** 2))
    spread = np.where(queries.real, products, np.nan)
    unit = 1.0 / max(float(np.nanmean(np.nanstd(spread, axis=1))), 1e-12)
    done = minimize_scalar(
        lambda power: _losses(products, queries, unit * 10.0**power).mean(), bounds=(-1.0, 2.0), method="bounded"
    )
    return float(unit * 10.0**done.x)
