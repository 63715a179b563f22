"""What a vector store returned for one query: reranked as a run is, in whatever order it came."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, rerank_hits, rnn_similarity
from rnnreranker.base.errors import DataWarning


def made(count: int = 40, dimension: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[0] + 0.7 * vectors[1], vectors


@pytest.mark.parametrize("params", [None, RnnParams.preset("mixture"), RnnParams(k=5, scale="none")])
def test_as_the_similarity_of_its_hits(params: RnnParams | None) -> None:
    query, vectors = made()
    scores = vectors @ query
    best = np.argsort(-scores, kind="stable")
    order, similarities = rerank_hits(query, vectors, scores, params)
    expected = rnn_similarity(query[None], vectors[best][None], params or RnnParams(), base=scores[best][None])[0]
    np.testing.assert_array_equal(similarities, np.sort(expected)[::-1])
    np.testing.assert_array_equal(order, best[np.argsort(-expected, kind="stable")])
    assert (order.dtype, similarities.dtype) == (np.int64, np.float32)


def test_scores_stand_for_a_query_that_is_not_said() -> None:
    query, vectors = made()
    query /= np.linalg.norm(query)
    with_query = rerank_hits(query, vectors, vectors @ query)
    without = rerank_hits(None, vectors, vectors @ query)
    np.testing.assert_allclose(without[1], with_query[1], atol=1e-5)
    assert np.mean(without[0] == with_query[0]) > 0.9  # all but near ties


@pytest.mark.parametrize("kind", ["list", "float16", "bfloat16", "a list of tensors", "a tensor with a gradient"])
def test_what_stands_for_arrays(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    query, vectors = made()
    exact = [torch.from_numpy(one).bfloat16().float().numpy() for one in (query, vectors, vectors @ query)]
    given = {
        "list": lambda one: one.tolist(),
        "float16": lambda one: torch.from_numpy(one).half(),
        "bfloat16": lambda one: torch.from_numpy(one).bfloat16(),
        "a list of tensors": lambda one: [*torch.from_numpy(one).bfloat16()],
        "a tensor with a gradient": lambda one: torch.from_numpy(one).requires_grad_(),
    }[kind]
    order, scores = rerank_hits(*map(given, exact), {"k": 5})
    expected = rerank_hits(*exact, RnnParams(k=5))
    np.testing.assert_allclose(scores, expected.scores, atol=1e-5)
    np.testing.assert_array_equal(order, expected.order)
    if kind == "bfloat16":
        np.testing.assert_array_equal(QueryVectors(["a"], given(exact[0][None])).vectors[0], exact[0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [5, 8, 60])
@pytest.mark.parametrize("unit", [True, False])
def test_distances_for_scores_are_reported(count: int, unit: bool) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(4, 8))[rng.integers(0, 4, 400)] + 0.7 * rng.normal(size=(400, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors *= 1 if unit else np.exp(0.15 * rng.normal(size=(400, 1)))
    query = vectors[0] + 0.1 * rng.normal(size=8)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
    distances = np.linalg.norm(vectors - query, axis=1)
    for far in (1 - vectors @ query, 1 - cosines, distances, distances**2):
        best = np.argsort(far)[:count]
        with pytest.raises(DataWarning, match="give distances as -d"):
            rerank_hits(query, vectors[best], far[best])
        for scores in (-far[best], 1 / (1 + far[best] - far.min()), rng.normal(size=count), np.ones(count)):
            rerank_hits(query, vectors[best], scores)


def test_params_that_are_neither_a_mapping_nor_rnn_params() -> None:
    query, vectors = made()
    for params, message in (
        ({"kk": 3}, "params: no setting kk, did you mean k?"),
        ("k=3", "params='k=3': expected RnnParams"),
    ):
        with refusal(message.replace("?", r"\?")):
            rerank_hits(query, vectors, None, params)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("query", "vectors", "scores", "message"),
    [
        (np.ones(3), np.ones((2, 4)), None, r"query_vector=.*: expected finite numbers of shape \(4,\)"),
        (np.ones(4), np.ones((0, 4)), None, "vectors has no rows: expected those of at least one hit"),
        (None, np.ones((2, 4)), None, "query_vector and scores are None: expected at least one of them"),
        (np.ones(4), np.ones((2, 4)), np.ones(3), r"scores=.*: expected finite numbers of shape \(2,\)"),
        (np.ones(4), np.ones((2, 4)), [1.0, np.nan], r"scores=.*: expected finite numbers of shape \(2,\)"),
        (None, np.ones((2, 4)), [1.0, 1e39], "similarities has shape .*, or NaN or infinite values"),
        (
            np.ones(4),
            np.ones((2, 4)),
            np.ma.masked_array([1.0, 2.0], [False, True]),
            "scores: a masked array; expected",
        ),
        (np.ones(4) * 1e39, np.ones((2, 4)), [1.0, 2.0], "query"),
        (np.ones(4), np.full((2, 4), 1e39), [1.0, 2.0], "NaN or infinite"),
        (np.ones(4), np.ones((2, 4)), [1.0, None], "scores: a list of object; expected numbers"),
        (np.ones(4), np.ones((2, 4)), ["a", "b"], "scores: a list of <U1; expected numbers"),
        ("text", np.ones((2, 4)), None, "query_vector: a str of <U4; expected numbers"),
        (np.ones(4), [[1.0], [1.0, 2.0]], None, "vectors: a list whose rows differ in length"),
        (np.ones(4), np.full((2, 4), np.inf), None, "NaN or infinite"),
        (np.ones(4), np.ones(4), None, r"vectors has shape \(4,\)"),
    ],
)
def test_what_is_refused(query: object, vectors: object, scores: object, message: str) -> None:
    with refusal(message):
        rerank_hits(query, vectors, scores)  # type: ignore[arg-type]
