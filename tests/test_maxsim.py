"""MaxSim beside its equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from query_sets import unit
from refusals import refusal

from rnnreranker import maxsim
from rnnreranker.rnn.maxsim import ragged_maxsim, token_similarities

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 11, 12, 13, 17, 23, 24, 25, 40, 0, 180]


def by_equation(query: np.ndarray, documents: list[np.ndarray], weights: np.ndarray) -> list[float]:
    """Equation 1 of paper 002, a weight before every term."""
    return [float(weights @ (query @ document.T).max(axis=1)) if len(document) else 0.0 for document in documents]


def scored(queries: np.ndarray, tokens: np.ndarray, offsets: np.ndarray, **how: Any) -> np.ndarray:
    """(Q, n): MaxSim of queries of one length, (Q, q, d)."""
    return ragged_maxsim(
        np.concatenate(queries), np.arange(len(queries) + 1) * queries.shape[1], tokens, offsets, **how
    )


def made_up(d: int, dtype: type, queries: int = 1, q: int = 32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d + q)
    return unit(rng, queries, q, d), unit(rng, sum(LENGTHS), d).astype(dtype), np.cumsum([0, *LENGTHS])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("d", "q"), [(128, 32), (48, 5), (20, 33), (1, 1)])
def test_equals_the_equation(d: int, q: int, dtype: type) -> None:
    queries, tokens, offsets = made_up(d, dtype, 2, q)
    weights = np.random.default_rng(1).standard_normal((2, q))
    documents = np.split(tokens.astype(np.float64), offsets[1:-1])
    found = scored(queries, tokens, offsets, weights=weights.ravel())
    assert (found.dtype, found.shape) == (np.float32, (2, len(LENGTHS)))
    for query in range(2):
        expected = by_equation(queries[query].astype(np.float64), documents, weights[query])
        np.testing.assert_allclose(found[query], expected, atol=1e-5)
        assert found[query, 0] == found[query, 15] == 0
        alone = maxsim(queries[query], tokens, offsets=offsets)
        np.testing.assert_allclose(alone, by_equation(queries[query], documents, np.ones(q)), atol=1e-5)


def test_padding_is_never_looked_at() -> None:
    queries, tokens, offsets = made_up(64, np.float32)
    padded = np.full((len(LENGTHS), max(LENGTHS), 64), np.nan, dtype=np.float32)
    mask = np.zeros(padded.shape[:2], dtype=bool)
    for row, length in enumerate(LENGTHS):
        mask[row, max(LENGTHS) - length :] = True
    padded[mask] = tokens
    expected = maxsim(queries[0], tokens, offsets=offsets)
    np.testing.assert_array_equal(maxsim(queries[0], padded, mask), expected)
    whole = np.stack([tokens[-180:], tokens[:180]])
    np.testing.assert_array_equal(maxsim(queries[0], whole)[0], expected[-1])


@pytest.mark.parametrize(("d", "dtype"), [(7, np.float32), (128, np.float16), (384, np.float32), (1024, np.float16)])
def test_depends_on_neither_batch_nor_threads(d: int, dtype: type) -> None:
    queries, tokens, offsets = made_up(d, dtype, 3)
    whole = scored(queries, tokens, offsets, threads=1)
    np.testing.assert_array_equal(scored(queries, tokens, offsets, threads=3), whole)
    rows = np.array([16, 3, 0, 3])
    np.testing.assert_array_equal(scored(queries[1:2], tokens, offsets, rows=rows)[0], whole[1, rows])
    np.testing.assert_array_equal(maxsim(queries[2], tokens[offsets[2] : offsets[3]][None])[0], whole[2, 2])
    assert scored(queries, tokens, offsets, rows=rows[:0]).shape == (3, 0)


@pytest.mark.parametrize(("value", "dtype"), [(np.nan, np.float32), (np.inf, np.float16), (-np.inf, np.float32)])
def test_tokens_that_are_not_finite_are_refused(value: float, dtype: type) -> None:
    queries, tokens, offsets = made_up(16, dtype)
    last = np.array([16])
    expected = scored(queries, tokens, offsets, rows=last)
    tokens[offsets[9] + 7, 3] = value
    with refusal(r"^document 9 has NaN or infinite values"):
        maxsim(queries[0], tokens, offsets=offsets)
    np.testing.assert_array_equal(scored(queries, tokens, offsets, rows=last), expected)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query_tokens": np.ones((2, 9))}, "the dimension of query_tokens is 9, that of document_tokens 8: expected"),
        ({"query_tokens": np.ones(8)}, r"query_tokens has shape \(8,\): expected \(q, d\)"),
        ({"query_tokens": np.full((2, 8), np.nan)}, "query_tokens has NaN or infinite values"),
        ({"offsets": [0, 5, 4, 6]}, "offsets: expected whole numbers that ascend from 0 to 6"),
        ({"offsets": [0, 5]}, "offsets: expected whole numbers that ascend from 0 to 6"),
        ({"offsets": None}, r"document_tokens has shape \(6, 8\): expected \(N, t, d\)"),
        ({"mask": np.ones((1, 6))}, "mask beside offsets"),
        ({"threads": 0}, "threads=0: expected an integer >= 1"),
    ],
)
def test_bad_input(change: dict[str, object], said: str) -> None:
    given = {"query_tokens": np.ones((2, 8)), "document_tokens": np.ones((6, 8)), "offsets": [0, 2, 6]} | change
    with refusal(f"^{said}"):
        maxsim(**given)  # type: ignore[arg-type]
    with refusal(r"mask has shape \(2, 3\): expected \(2, 4\)"):
        maxsim(np.ones((2, 8)), np.ones((2, 4, 8)), np.ones((2, 3)))


def test_contexts_are_as_alike_as_maxsim_both_ways() -> None:
    queries, tokens, offsets = made_up(32, np.float16, q=6)
    rows = np.array([16, 3, 0, 9])
    found = token_similarities(queries[0], tokens, offsets, rows=rows)
    texts = [
        queries[0].astype(np.float64),
        *(tokens[offsets[row] : offsets[row + 1]].astype(np.float64) for row in rows),
    ]
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            ways = [(one, other)] if i == 0 else [(other, one)] if j == 0 else [(one, other), (other, one)]
            terms = [by_equation(a, [b], np.ones(len(a)))[0] / len(a) if len(a) else 0.0 for a, b in ways]
            assert found[i, j] == pytest.approx(np.mean(terms), abs=1e-5)
    np.testing.assert_array_equal(found, found.T)
