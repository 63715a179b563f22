"""Each step of the reference on cases worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rnnreranker.rnn import RnnParams, jaccard_similarity, reference, rnn_similarity

RAW = RnnParams(scale="none")
TWINS = np.float32([[1, 0], [1, 0], [0, 1]])  # the query, its twin, a stranger


def matrix(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def test_lists_are_nearest_first_and_of_equals_the_lower_index_first() -> None:
    assert reference.neighbour_lists(matrix([3, 1, 2], [1, 3, 1], [2, 1, 3]), 2) == [[0, 2], [1, 0], [2, 0]]
    short = matrix([9, 4, 3], [4, 1, 2], [3, 2, 5])  # a short vector is missing from its own list
    assert reference.neighbour_lists(short, 1) == [[0], [0], [2]]


@pytest.mark.parametrize(
    ("k", "tau", "authors", "paper"),  # 10.5; 10 and 9.5; 2.5; 3 and 2.5; …; no more than there are
    [
        (20, 0.5, 12, 10), (19, 0.5, 12, 10), (4, 0.5, 4, 2), (5, 0.5, 5, 2), (3, 0.5, 4, 2), (15, 0.128, 4, 2),
        (9, 1.0, 10, 9),
    ],
)  # fmt: skip
def test_columns_of_the_extension_round_halves_to_even(k: int, tau: float, authors: int, paper: int) -> None:
    assert reference.extension_columns(100, RnnParams(k=k, tau=tau)) == authors
    assert reference.extension_columns(100, RnnParams(k=k, tau=tau, variant="paper")) == paper


def test_extension_at_two_thirds_separates_the_variants() -> None:
    lists = [[0], [1, 2, 3], [2, 1, 3], [3, 1, 2]]  # the short sets of 1, 2 and 3 are all {1, 2, 3}
    sets = [{0, 1, 2}, {1}, {2}, {3}]  # 0 shares two of the three with its members 1 and 2
    assert reference.extend(sets, lists, 3, "authors") == sets
    assert reference.extend(sets, lists, 3, "paper") == [{0, 1, 2, 3}, {1}, {2}, {3}]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (RAW, [2 / 3, 1 / 3, 0.0]),
        (RnnParams(weight="binary"), [0.5, 0.5, 0.0]),
        (RnnParams(weight="exp", weight_scale=math.log(16)), [0.75, 0.25, 0.0]),  # 16**.5 - 1 = 3, 16**.25 - 1 = 1
    ],
)
def test_weights(params: RnnParams, expected: list[float]) -> None:
    rows = reference.weight_rows([{0, 1}, set(), {2}], matrix([0.5, 0.25, 0.9], [1, 1, 1], [0, 0, 0.3]), params)
    np.testing.assert_allclose(rows, [expected, [0, 0, 0], [0, 0, 1]], rtol=1e-12)
    cancelling = reference.weight_rows([{0, 1}, {1}], matrix([1, -1], [0, 2]), RAW)
    assert cancelling.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("rows", "probe", "expected"),
    [
        ([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]], 0, [1, 0.5 / 1.5, 0]),
        ([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]], 2, [0, 0, 0]),  # nothing in common with nothing
        ([[2, -1], [1, 1], [-2, 1]], 0, [1, 0, -1]),
        ([[-1, 0], [-2, 0]], 0, [1, 2]),
        ([[1, -1], [1, -1]], 0, [0, 0]),  # maxima that cancel
    ],
)
def test_jaccard(rows: list[list[float]], probe: int, expected: list[float]) -> None:
    assert reference.jaccard(matrix(*rows), probe).tolist() == expected


def test_mapping_uses_the_off_diagonal_range_and_clips_the_diagonal() -> None:
    raw = np.float32([[9, 2, 4], [2, 3, 3], [4, 3, -1]])
    assert reference.map_to_unit(raw).tolist() == [[1, 0, 1], [0, 0.5, 0.5], [1, 0.5, 0]]
    assert reference.map_to_unit(np.float32([[5, 2], [2, 1]])).tolist() == [[0, 0], [0, 0]]
    ranking, sims = reference.similarities(raw, RnnParams(normalize="max"))
    assert ranking is raw  # lists are sorted by raw similarities
    assert sims.tolist() == [[1, 0, 1], [0, 1, 1], [1, 0.5, 0]]
    ranking, sims = reference.similarities(raw, RnnParams(normalize="max", scale="none"))
    np.testing.assert_allclose(ranking[0], [1, 2 / 9, 4 / 9], rtol=1e-6)
    assert ranking.tolist() == sims.tolist()


def test_row_normalisation() -> None:
    sims = matrix([2, 1, 0], [0, 0, 0], [-1, -2, -4])
    assert reference.normalize_rows(sims, None) is sims
    assert reference.normalize_rows(sims, "max").tolist() == [[1, 0.5, 0], [0, 0, 0], [1, 2, 4]]
    means = reference.normalize_rows(sims, "mean")
    np.testing.assert_allclose(means[[0, 2]], [[2, 1, 0], [3 / 7, 6 / 7, 12 / 7]], rtol=1e-7)
    np.testing.assert_allclose(reference.normalize_rows(matrix([3e-8, 0, 0]), "mean"), [[1.5, 0, 0]])  # 1e-8 + mean


def test_a_whole_context() -> None:
    params = RnnParams(k=1, k_exp=1, tau=0, lam=0.6, scale="none")
    done = reference.steps(TWINS, params)
    assert done.lists == [[0, 1], [0, 1], [2, 0]]
    assert done.sets == [{0, 1}, {0, 1}, {2}]
    assert done.weights.tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]
    assert reference.jaccard_similarity(TWINS, params, [0, 2]).tolist() == [[1, 1, 0], [0, 0, 1]]
    assert reference.rnn_similarity(TWINS[0], TWINS[1:], params).tolist() == [1, 0]
    wider = RnnParams(k=1, k_exp=2, tau=0, lam=0.6, scale="none")
    assert reference.steps(TWINS, wider).expanded.tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]
    np.testing.assert_allclose(reference.rnn_similarity(TWINS[0], TWINS[1:], wider), [1, 0.4 / 3], rtol=1e-12)
    given = reference.steps(TWINS, params, lists=[[1, 0], [1, 2], [2, 1]])
    assert given.sets == [{0}, {1, 2}, {1, 2}]


def printed(vectors: np.ndarray, params: RnnParams) -> tuple[np.ndarray, np.ndarray]:
    """J of every pair and s* of the candidates by paper 000, A.1, eq. 3 to 11, and Section 3.1, eq. 1, sets as sets."""
    sims = (vectors @ vectors.T).astype(np.float64)
    m, weigh = len(sims), {"linear": lambda s: s, "exp": lambda s: math.exp(params.weight_scale * s)}
    weigh["binary"] = lambda s: 1.0

    def nearest(i: int, size: int) -> list[int]:  # eq. 3
        return sorted(range(m), key=lambda j: (-sims[i, j], j))[:size]

    def reciprocal(i: int, size: int) -> set[int]:  # eq. 4
        return {j for j in nearest(i, size) if i in nearest(j, size)}

    rows = np.zeros((m, m))
    for i in range(m):
        found = own = reciprocal(i, params.k)
        for j in own if params.tau else ():  # eq. 5
            short = reciprocal(j, round(params.tau * params.k))
            if len(own & short) * 3 >= len(short) * 2:
                found = found | short
        for j in found:  # eq. 7: f_w of the distance, and nothing else
            rows[i, j] = weigh[params.weight](sims[i, j])
    expanded = rows
    if params.k_exp > 1:
        expanded = np.stack([rows[nearest(i, params.k_exp)].mean(axis=0) for i in range(m)])  # eq. 8
    below = np.minimum(expanded[:, None], expanded).sum(axis=2)  # eq. 9
    above = np.maximum(expanded[:, None], expanded).sum(axis=2)  # eq. 10
    jaccard = np.divide(below, above, out=np.zeros((m, m)), where=above != 0)  # 1 - eq. 11
    return jaccard, params.lam * sims[0, 1:] + (1 - params.lam) * jaccard[0, 1:]


@pytest.mark.parametrize(("k", "k_exp", "tau"), [(4, 3, 0.5), (3, 8, 0.7), (11, 2, 0.4), (12, 30, 1.0), (40, 5, 0.3)])
@pytest.mark.parametrize("weight", ["linear", "exp", "binary"])
def test_the_variant_paper_is_the_printed_text(k: int, k_exp: int, tau: float, weight: Any) -> None:
    """Paper 000, A.1, eq. 3 to 8: k nearest in all, k_exp nearest whatever k, exp(-d) without -1, rows as they are."""
    vectors = np.random.default_rng(k).normal(0.6, 0.5, size=(12, 4)).astype(np.float32)
    params = RnnParams(k=k, k_exp=k_exp, tau=tau, weight=weight, weight_scale=1.0, scale="none", variant="paper")
    jaccard, mixed = printed(vectors, params)
    every, near = range(len(vectors)), {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(reference.jaccard_similarity(vectors, params, every), jaccard, **near)
    np.testing.assert_allclose(jaccard_similarity(vectors[None], params, probes=every)[0], jaccard, **near)
    np.testing.assert_allclose(rnn_similarity(vectors[None, 0], vectors[None, 1:], params)[0], mixed, **near)
