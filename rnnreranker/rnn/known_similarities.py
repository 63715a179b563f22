"""s* of a context whose similarities are known, whatever they were computed from."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.rnn import chunks, mixing, reference, refusals
from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.params import RnnParams


def given_similarity(similarities: np.ndarray, params: RnnParams, *, base: np.ndarray | None = None) -> np.ndarray:
    """(N,) float32: s* of the candidates of one query, in their order, as `rnn_similarity` with these similarities.

    Args:
        similarities: (N + 1, N + 1), symmetric, row 0 the query; they stand for the inner products.
        params: of the similarity.
        base: (N,) scores of a first stage, with the candidates in its order; None = row 0.

    Raises:
        InputError: another shape, NaN or infinity, an exponential weight that would overflow.
    """
    matrix = refusals.vectors(similarities, "similarities", "(m, m)").astype(np.float32)
    m = len(matrix)
    if matrix.shape != (m, m) or m < 2:
        raise InputError(
            f"similarities has shape {matrix.shape}: expected (m, m), the query and at least one candidate"
        )
    if not np.isfinite(matrix).all():
        raise InputError("similarities has NaN or infinite values; expected finite ones")
    sizes, problem = np.array([m]), np.zeros(1)
    known = refusals.base_scores(None if base is None else np.asarray(base)[None], sizes - 1, m - 1)
    setting = EngineSetting.of(params, sizes)
    engine = chunks.ENGINES.for_work(sizes)
    scores = mixing.similarities(engine, matrix.reshape(1, -1), sizes, known, params, setting, problem)
    if problem[0]:
        raise ParameterError(reference.too_large(problem[0]))
    return scores[0].astype(np.float32)
