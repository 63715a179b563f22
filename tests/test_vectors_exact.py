"""Exact search: ties, one fixed way of summing, and proposals widened until rounding cannot matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnreranker.parts.vectors.exact import by_blocks, exact_search, inner_products


def test_search_breaks_ties_by_docid_even_across_the_cut() -> None:
    vectors = np.ones((200, 4), dtype=np.float32)
    vectors[150] = 2
    docids = [f"{199 - row:03d}" for row in range(200)]  # the last row has the first docid

    def propose(queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        scores = (queries @ vectors.T).astype(np.float32)
        rows = np.argsort(-scores, axis=1, kind="stable")[:, :count]  # ties in row order: the wrong ones first
        return np.take_along_axis(scores, rows, axis=1), rows

    scores, rows = exact_search(np.ones((1, 4), np.float32), 3, docids, propose, lambda rows: vectors[rows])
    assert [docids[row] for row in rows[0]] == ["049", "000", "001"]
    assert scores[0].tolist() == [8.0, 4.0, 4.0]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**31))
def test_inner_products_do_not_depend_on_neighbours(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((count, 37)).astype(np.float32)
    query = random.standard_normal(37).astype(np.float32)
    together = inner_products(query, vectors)
    alone = np.concatenate([inner_products(query, vectors[i : i + 1]) for i in range(count)])
    assert together.tobytes() == alone.tobytes()


def test_a_proposal_that_rounding_may_have_spoilt_is_widened() -> None:
    vectors = np.ones((100, 4), dtype=np.float32)
    vectors[99, 0] += 2.0**-23  # the best by one unit in the last place
    asked = []

    def propose(queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores a little too low, and the best document last, as rounding may have it."""
        asked.append(count)
        return np.full((len(queries), count), 4 - 5e-7, np.float32), np.tile(np.arange(count), (len(queries), 1))

    docids = [f"d{row:02d}" for row in range(100)]
    scores, rows = exact_search(np.ones((1, 4), np.float32), 1, docids, propose, lambda rows: vectors[rows])
    assert rows[0].tolist() == [99]
    assert scores[0].tolist() == [4 + 2.0**-23]
    assert asked == [17, 68, 100]


@pytest.mark.parametrize("size", [3, 7, 40, 100])
def test_blocks_propose_the_largest_products_whatever_their_size(size: int) -> None:
    random = np.random.default_rng(size)
    queries, vectors = (random.integers(-3, 4, (count, 5)).astype(np.float32) for count in (6, 100))
    blocks = [(first, vectors[first : first + size]) for first in range(0, 100, size)]
    scores, rows = by_blocks(queries, 9, blocks, lambda first, block: pytest.fail("nothing is wrong"))
    products = queries @ vectors.T
    np.testing.assert_array_equal(scores, -np.sort(-products, axis=1)[:, :9])
    np.testing.assert_array_equal(np.take_along_axis(products, rows, axis=1), scores)
    assert all(len(set(line)) == 9 for line in rows.tolist())
