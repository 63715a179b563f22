"""From scores of a query's N candidates to targets: aggregation, redistribution, normalisation, cut, softmax.

`_total` sums from left to right, so the last digit does not depend on how NumPy splits a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnreranker.base.errors import InputError, brief, instance_of, numbers_of
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.similarity import VectorSimilarity
from rnnreranker.rnn import RnnParams, checks


def smooth_labels(
    query: np.ndarray,
    candidates: np.ndarray,
    positives: Sequence[int],
    params: RnnParams,
    label_params: LabelParams | None = None,
    *,
    grades: Sequence[float] | None = None,
) -> np.ndarray:
    """The target distribution over a query's candidates: (N,) float32 in candidate order, sums to 1.

    Evidence-based label smoothing (paper 000, Algorithm 1): candidates share relevance by s*(l, c) = lambda s(l, c) +
    (1 - lambda) J(l, c) to the positives l. All candidates take part, without `params.context`.

    query: (d,); candidates: (N, d); positives: distinct row numbers of candidates; grades: > 0, one per positive (None
    = all 1).

    Raises:
        InputError: other types, shapes or row numbers, no positives, grades not above 0, NaN or infinity in a vector.

    >>> import numpy as np
    >>> query = np.array([1.0, 0.0], dtype=np.float32)
    >>> near_and_far = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]], dtype=np.float32)
    >>> smooth_labels(query, near_and_far, [0], RnnParams(k=1), LabelParams(n_max=2)).argsort().tolist()
    [2, 1, 0]
    """
    query, candidates = checks.vectors(query, "query", "(d)"), checks.vectors(candidates, "candidates", "(N, d)")
    chosen = checks.integers(positives, "positives")
    weights, count = np.ones(chosen.shape), len(candidates)
    if candidates.shape[1:] != query.shape:
        raise InputError(f"query is {brief(query)} and candidates {brief(candidates)}: expected the same dimension")
    once = chosen.ndim == 1 and len(np.unique(chosen)) == chosen.size > 0
    if not once or chosen.min() < 0 or chosen.max() >= count:
        raise InputError(
            f"positives={brief(positives)}: expected row numbers of candidates, each once: 0 to {count - 1}"
        )
    if grades is not None and not ((weights := numbers_of(grades, "grades", chosen.shape)) > 0).all():
        raise InputError(f"grades={brief(grades)}: expected numbers above 0")
    instance_of(params, RnnParams, "params")
    labels = instance_of(LabelParams() if label_params is None else label_params, LabelParams, "label_params")
    order = np.concatenate([chosen.astype(np.int64), np.setdiff1d(np.arange(len(candidates)), chosen)])
    vectors = np.concatenate([query[None], candidates[order]]).astype(np.float32)[None]
    similarity = VectorSimilarity(np.array([len(candidates)]), params, None, vectors)
    [scores] = similarity.mixed(np.arange(1, len(chosen) + 1))
    out = np.empty(len(candidates), dtype=np.float32)
    out[order] = labels_of(aggregated(scores, weights, labels.aggregate), weights, labels)[1]
    return out


def labels_of(scores: np.ndarray, grades: np.ndarray, params: LabelParams) -> tuple[np.ndarray, np.ndarray]:
    """Redistributed scores, and targets: (N,) float32 each; grades: (R,) > 0, of the first R candidates."""
    by_candidate = np.zeros(len(scores))
    by_candidate[: len(grades)] = grades
    labels = redistributed(scores, by_candidate, params, literal=params.compat == "coder")
    return labels.astype(np.float32), targets(labels, by_candidate > 0, params)


def aggregated(scores: np.ndarray, grades: np.ndarray, how: str) -> np.ndarray:
    """(N,) float64: scores times grades, as mean, max or sum over the positives.

    scores: (R, N), positive l against candidate c; grades: (R,) > 0.
    """
    weighted = scores.astype(np.float64) * grades[:, None]
    if how == "max":
        return weighted.max(axis=0)
    total: np.ndarray = np.cumsum(weighted, axis=0)[-1]
    return total / len(weighted) if how == "mean" else total


def redistributed(scores: np.ndarray, grades: np.ndarray, params: LabelParams, literal: bool = False) -> np.ndarray:
    """(N,) float64 labels: the scores ("radically"), or the grades of which a share is given away ("fully").

    grades: (N,), 0 for other candidates. Fully: a positive keeps (1 - rho) of its grade; the others share rho times all
    grades in proportion to their scores. Unless `literal`, negative scores count as 0, and all-zero scores share
    equally.
    """
    if params.redistribute == "radically":
        return scores
    others = grades == 0
    shares = np.where(others, scores if literal else np.maximum(scores, 0.0), 0.0)
    if (total := _total(shares)) == 0.0:
        shares, total = others, max(others.sum(), 1)
    return np.where(others, params.rho * _total(grades) * (shares / total), (1.0 - params.rho) * grades)


def of_grades(grades: np.ndarray) -> np.ndarray:
    """Hard targets of positives, float64: the softmax of their grades (001, eq. 3).

    >>> of_grades(np.array([1.0, 3.0])).round(2).tolist()
    [0.12, 0.88]
    """
    odds = np.exp(grades - grades.max())
    return odds / odds.sum()


def targets(labels: np.ndarray, positive: np.ndarray, params: LabelParams) -> np.ndarray:
    """(N,) float32 probabilities that sum to 1; 0 for candidates that are cut.

    labels: (N,) float64; positive: (N,) bool, one at least. Earlier candidates win ties. If all are cut, positives
    share alike.
    """
    values = transformed(labels, positive, params) / params.temperature
    if not np.isfinite(values).any():
        values = np.where(positive, 0.0, -np.inf)
    odds = np.exp(values - values.max())
    return (odds / _total(odds)).astype(np.float32)


def transformed(labels: np.ndarray, positive: np.ndarray, params: LabelParams) -> np.ndarray:
    """(N,) float64: input of the softmax, -inf for candidates without probability."""
    level = -np.inf if params.include_level is None else params.include_level
    most = len(labels) if params.n_max is None else params.n_max
    if params.compat == "paper":
        values = normalized(labels, np.ones(len(labels), dtype=bool), params.normalization)
        boosted = np.maximum(values * params.boost, values)  # never lowers a positive whose value is negative
        values = np.where(positive, boosted, values)
        kept = (_ranks(labels) < most) & (values >= level)
        return np.where(kept | positive, values, -np.inf)
    ranks = _ranks(np.where(labels >= level, labels, -np.inf))
    kept = (labels >= level) & (ranks < most)
    values = normalized(labels, kept, params.normalization)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16).astype(np.float64)
    values = np.where(np.isinf(half), values, half)  # raw inner products may be beyond float16
    values = np.where(kept & (ranks < positive.sum()), values * params.boost, values)
    return np.where(kept & (values >= level), values, -np.inf)


def normalized(labels: np.ndarray, kept: np.ndarray, how: str) -> np.ndarray:
    """(N,) float64: labels normalised over the kept entries, (N,) bool; -inf elsewhere.

    maxmin (s - min) / (max - min); std (s - min) / population sigma; max s / max; maxminmax: maxmin times max; none.
    Equal labels become 1 by maxmin and std; a maximum of 0 or less divides by 1.
    """
    out, values = np.full(len(labels), -np.inf), labels[kept].astype(np.float64)
    if len(values) and how != "none":
        low, high = values.min(), values.max()
        divisor = high - low
        if how == "std":
            divisor = np.sqrt(_total((values - _total(values) / len(values)) ** 2) / len(values))
        if how == "max":
            values = values / (high if high > 0.0 else 1.0)
        else:
            values = (values - low) / divisor if high > low and divisor else np.ones(len(values))
            values = values * high if how == "maxminmax" else values
    out[kept] = values
    return out


def with_mass_of(control: np.ndarray, evidence: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """(N,) float32: the control's targets, with positives and others scaled to evidence's shares of both.

    If the control gives one side nothing, the other has all.
    """
    share = min(_total(np.where(positive, evidence, 0.0)), 1.0)  # float32 may sum to more
    out = np.zeros(len(control))
    for side, wanted in ((positive, share), (~positive, 1.0 - share)):
        part = np.where(side, control, 0.0).astype(np.float64)
        out += part * (wanted / (_total(part) or np.inf))
    return (out / (_total(out) or 1.0)).astype(np.float32)


def with_share(own: np.ndarray, hard: np.ndarray, takers: np.ndarray, share: float) -> np.ndarray:
    """(N,) float32: (1 - share) hard + share times `own` over the takers, normalised; hard if that is 0.

    own, hard: (N,), sum to 1; takers: (N,) bool, without positives.
    """
    given = np.where(takers, own, 0.0).astype(np.float64)
    total = _total(given)
    share = share if total > 0.0 else 0.0
    return ((1.0 - share) * hard + share * given / (total or 1.0)).astype(np.float32)


def _ranks(labels: np.ndarray) -> np.ndarray:
    """(N,) int64: ranks by descending value, from 0; earlier ties first."""
    return np.argsort(np.argsort(-labels, kind="stable"))


def _total(values: np.ndarray) -> float:
    return float(np.cumsum(values, dtype=np.float64)[-1]) if len(values) else 0.0
