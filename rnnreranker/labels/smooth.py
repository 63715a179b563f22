"""From similarities of candidates and positives to label distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnreranker.base.errors import InputError, brief
from rnnreranker.base.given import instance_of, numbers_of
from rnnreranker.labels import targets
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.similarity import VectorSimilarity
from rnnreranker.rnn import RnnParams


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
    query, candidates = np.asarray(query), np.asarray(candidates)
    numbers = query.dtype.kind in "fiu" and candidates.dtype.kind in "fiu"
    if not numbers or query.ndim != 1 or candidates.ndim != 2 or candidates.shape[1:] != query.shape:
        raise InputError(
            f"query is {brief(query)} and candidates {brief(candidates)}: expected real numbers of shapes (d,) and "
            "(N, d), one query"
        )
    chosen = np.asarray(positives)
    weights = np.ones(chosen.shape)
    rows = chosen.ndim == 1 and chosen.size and chosen.dtype.kind in "iu" and len(np.unique(chosen)) == len(chosen)
    if not rows or chosen.min() < 0 or chosen.max() >= len(candidates):
        raise InputError(
            f"positives={brief(positives)}: expected row numbers of candidates, each once: 0 to {len(candidates) - 1}"
        )
    if grades is not None and not ((weights := numbers_of(grades, "grades", chosen.shape)) > 0).all():
        raise InputError(f"grades={brief(grades)}: expected numbers above 0")
    instance_of(params, RnnParams, "params")
    labels = instance_of(LabelParams() if label_params is None else label_params, LabelParams, "label_params")
    others = np.setdiff1d(np.arange(len(candidates)), chosen)
    order = np.concatenate([chosen.astype(np.int64), others])
    vectors = np.concatenate([query[None], candidates[order]]).astype(np.float32)[None]
    real = np.ones((1, len(candidates)), dtype=bool)
    similarity = VectorSimilarity(np.array([len(candidates)]), params, None, vectors)
    scores = similarity.mixed(np.arange(1, len(chosen) + 1))
    _, target_rows = from_scores(scores, weights[None], real, labels)
    out = np.empty(len(candidates), dtype=np.float32)
    out[order] = target_rows[0]
    return out


def from_scores(
    scores: np.ndarray, grades: np.ndarray, real: np.ndarray, params: LabelParams
) -> tuple[np.ndarray, np.ndarray]:
    """Aggregated and redistributed scores, and targets: (B, N) float32 each.

    scores: (B, R, N), to each positive, which are the first R candidates; grades: (B, R); real: (B, N).
    """
    return of_candidates(targets.aggregated(scores, grades, params.aggregate), grades, real, params)


def of_candidates(
    raw: np.ndarray, grades: np.ndarray, real: np.ndarray, params: LabelParams
) -> tuple[np.ndarray, np.ndarray]:
    """Redistributed scores, and targets: (B, N) float32 each; raw: (B, N), the rest as in `from_scores`."""
    by_candidate = np.zeros(raw.shape)
    by_candidate[:, : grades.shape[1]] = grades
    labels = targets.redistributed(raw, by_candidate, real, params, literal=params.compat == "coder")
    target_rows = targets.targets(labels, by_candidate > 0, real, params)
    return np.where(real, labels, -np.inf).astype(np.float32), target_rows
