"""What must hold for any vectors: freedom from scale and order, the same bytes in any batch, never NaN."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rnnreranker.rnn import RnnParams, jaccard_similarity, reference, rnn_similarity

ANY = settings(derandomize=True, deadline=None, max_examples=60)

SEEDS = st.integers(0, 2**32 - 1)
DEFAULT = RnnParams()
ANY_PARAMS = st.builds(
    RnnParams,
    k=st.integers(1, 40),
    k_exp=st.integers(1, 40),
    tau=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    lam=st.sampled_from([0.0, 0.451, 1.0]),
    weight=st.sampled_from(["linear", "exp", "binary"]),
    weight_scale=st.just(0.1),
    normalize=st.sampled_from([None, "max"]),
    scale=st.sampled_from(["minmax", "none"]),
    variant=st.sampled_from(["authors", "paper"]),
    rank_weight=st.sampled_from([0.0, 1.0, 3.0]),
    run_weight=st.sampled_from([0.0, 1e-300, 1e308]),
    query_weight=st.sampled_from([0.5, 1.0, 1e308]),
    rank_constant=st.sampled_from([1e-3, 10.0, 1e308]),
    probes=st.integers(1, 9),
    smoothing=st.sampled_from([0.0, 0.25, 1.0]),
    smoothing_neighbours=st.integers(1, 30),
)


def encoded(seed: int, batch: int = 1, n: int = 24, d: int = 12, cosine: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Queries (B, d) and candidates (B, N, d) that gather around a topic, as an encoder's do."""
    rng = np.random.default_rng(seed)
    topic = rng.standard_normal((batch, 1, d)) + 1.0
    vectors = topic + 0.8 * rng.standard_normal((batch, n + 1, d))
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    vectors = vectors / norms if cosine else vectors * (10.0 / norms.mean())  # raw: inner products near 100
    vectors = vectors.astype(np.float32)
    return vectors[:, 0], vectors[:, 1:]


def far_from_ties(queries: np.ndarray, candidates: np.ndarray, params: RnnParams, share: float) -> bool:
    """Whether no decision (list bounds, order of the result) hangs on less than `share` of the similarities' range."""
    for query, rows in zip(queries, candidates, strict=True):
        vectors = np.vstack([query[None], rows]).astype(np.float64)
        sims = -np.sort(-(vectors @ vectors.T), axis=1)
        bounds = {
            reference.list_length(len(sims), params),
            reference.extension_columns(len(sims), params),
            params.k_exp,
            *(params.smoothed_over + more for more in range(3)),  # with the element itself and the query
        }
        gaps = [sims[:, b - 1] - sims[:, b] for b in bounds if 0 < b < len(sims)]
        if min(gap.min() for gap in gaps) < share * (sims.max() - sims.min()):
            return False
        if np.diff(np.sort(reference.rnn_similarity(query, rows, params))).min() < share:
            return False
    return True


@pytest.mark.parametrize("cosine", [True, False])
@ANY
@given(seed=SEEDS, factor=st.floats(1e-2, 1e2))
def test_the_default_does_not_depend_on_the_scale(cosine: bool, seed: int, factor: float) -> None:
    queries, candidates = encoded(seed, cosine=cosine)
    assume(far_from_ties(queries, candidates, DEFAULT, 1e-5))
    before = rnn_similarity(queries, candidates, DEFAULT)
    after = rnn_similarity(queries * np.float32(factor), candidates * np.float32(factor), DEFAULT)
    np.testing.assert_array_equal(np.argsort(-after), np.argsort(-before))
    np.testing.assert_allclose(after, before, atol=1e-4)


CONSTANTS = [(True, 1.0, 1e-5), (True, 3.0, 1e-4), (True, 10.0, 1e-5), (True, 100.0, 1e-5), (False, 10.0, 1e-4)]


@pytest.mark.parametrize(("cosine", "root", "share"), CONSTANTS)
@ANY
@given(seed=SEEDS)
def test_the_default_does_not_depend_on_a_constant(cosine: bool, root: float, share: float, seed: int) -> None:
    queries, candidates = encoded(seed, n=12, cosine=cosine)
    params = dataclasses.replace(DEFAULT, k=4)
    assume(far_from_ties(queries, candidates, params, share))
    before = rnn_similarity(queries, candidates, params)
    shifted = [np.concatenate([part, np.full_like(part[..., :1], root)], axis=-1) for part in (queries, candidates)]
    after = rnn_similarity(*shifted, params)
    np.testing.assert_array_equal(np.argsort(-after), np.argsort(-before))
    np.testing.assert_allclose(after, before, atol=10 * share)


def of_a_run(seed: int, n: int) -> np.ndarray:
    """(1, N) scores of a first stage, falling, some of them equal."""
    rng = np.random.default_rng((seed, 1))
    return -np.sort(-np.round(rng.standard_normal((1, n)), 1))


@ANY
@given(seed=SEEDS, factor=st.floats(1e-2, 1e2), constant=st.floats(1.0, 100.0))
def test_the_default_does_not_depend_on_the_scale_of_the_runs_scores(seed: int, factor: float, constant: float) -> None:
    queries, candidates = encoded(seed)
    base = of_a_run(seed, candidates.shape[1])
    before = rnn_similarity(queries, candidates, DEFAULT, base=base)
    for changed in (base * factor, base + constant, base * factor + constant):
        after = rnn_similarity(queries, candidates, DEFAULT, base=changed)
        np.testing.assert_allclose(after, before, atol=1e-6)


@ANY
@given(seed=SEEDS, order=st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(seed: int, order: random.Random) -> None:
    queries, candidates = encoded(seed)
    assume(far_from_ties(queries, candidates, DEFAULT, 1e-5))
    shuffled = list(range(candidates.shape[1]))
    order.shuffle(shuffled)
    before = rnn_similarity(queries, candidates, DEFAULT)
    np.testing.assert_allclose(
        rnn_similarity(queries, candidates[:, shuffled], DEFAULT), before[:, shuffled], atol=1e-4
    )


@ANY
@given(
    seed=SEEDS,
    params=ANY_PARAMS,
    n=st.integers(1, 30),
    kind=st.sampled_from(["signs", "zeros", "tiny", "huge", "equal"]),
)
def test_never_nan(seed: int, params: RnnParams, n: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((1, n + 1, 4)).astype(np.float32)
    if kind == "zeros":
        vectors[rng.random((1, n + 1)) < 0.5] = 0
    elif kind == "tiny":
        vectors *= 1e-22  # inner products below the normal range of float32
    elif kind == "huge" and params.weight != "exp":
        vectors *= 1e18
    elif kind == "equal":
        vectors[:] = vectors[:, :1]
    assert np.isfinite(rnn_similarity(vectors[:, 0], vectors[:, 1:], params)).all()
    for base in (rng.choice([-1e308, 0.0, 1e308, 5e-324], n), np.full(n, 1e308)):
        found = rnn_similarity(vectors[:, 0], vectors[:, 1:], params, base=base[None])
        assert np.isfinite(found).all()
        if params.scale == "minmax":
            assert found.min() >= 0
            assert found.max() <= 1 + 1e-6
    jaccard = jaccard_similarity(vectors, params, probes=(0, n))
    assert np.isfinite(jaccard).all()
    if params.scale == "minmax" or params.weight == "binary":
        assert jaccard.min() >= 0
        assert jaccard.max() <= 1 + 1e-6
