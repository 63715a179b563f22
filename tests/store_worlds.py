"""What the tests of vector stores share: vectors, a query, and what the hits of a store are compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from places import DOCS

from rnnreranker import RnnParams, rerank_hits

COUNT, DIMENSION = 30, 12


def vectors_of_texts(seed: int = 5, unit: bool = False) -> np.ndarray:
    """(30, 12) float32, in three heaps."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(COUNT, DIMENSION)) + 2 * rng.normal(size=(3, DIMENSION))[np.arange(COUNT) % 3]
    return unit_of(made) if unit else made.astype(np.float32)


def query_of(vectors: np.ndarray) -> np.ndarray:
    return (vectors[0] + 0.8 * vectors[4] + 0.3).astype(np.float32)


def unit_of(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def nearest(count: int, query: np.ndarray, vectors: np.ndarray) -> list[int]:
    """The numbers of the vectors with the largest inner products, best first."""
    return np.argsort(-(vectors @ query), kind="stable")[:count].tolist()


def expected_of(
    query: np.ndarray, vectors: np.ndarray, ids: Sequence[int], params: RnnParams | None = None
) -> tuple[list[int], np.ndarray]:
    """Of the vectors with these numbers: the numbers best first, and s*, by `rerank_hits`."""
    rows = np.asarray(ids)
    order, scores = rerank_hits(query, vectors[rows], vectors[rows] @ query, params)
    return rows[order].tolist(), scores


def same_order(ids: Sequence[int], scores: Sequence[float], expected: tuple[list[int], np.ndarray]) -> None:
    """Raises AssertionError where order or s* are others; s* may differ by rounding."""
    np.testing.assert_allclose(scores, expected[1], atol=3e-5)
    assert list(ids) == expected[0]


def examples_of(page: str, heading: str = "") -> str:
    """The Python of a page, as one script: what stands before its first heading, and under one heading."""
    begin, *rest = re.split(r"^## ", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = [begin, *(section for section in rest if heading and section.startswith(f"{heading}\n"))]
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", "\n".join(sections), re.DOTALL | re.MULTILINE))


def run_example(page: str, heading: str) -> dict[str, Any]:
    """The names that an example leaves; AssertionError: the page has none under that heading."""
    code = examples_of(page, heading)
    assert len(code) > len(examples_of(page)), f"{page} has no example under {heading}"
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, f"{page}, {heading}", "exec", dont_inherit=True), names)
    return names
