"""Maximal marginal relevance: contexts worked out on paper, duplicates, both ends of lambda, scales, chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors

from rnnreranker import QueryVectors, Run
from rnnreranker.base.method import make_params
from rnnreranker.methods.rerank.mmr import MmrParams, MmrReranker, falling, marginal, similarities

# inner products: a.b 1, a.c .6, b.c .6, a.d 0, b.d 0, c.d .8
FOUR = {"a": [1.0, 0.0], "b": [1.0, 0.0], "c": [0.6, 0.8], "d": [0.0, 1.0]}


def rerank(run: dict[str, float], vectors: dict[str, list[float]], **values: Any) -> list[tuple[str, float]]:
    """The run of one query after it; no query vector is asked for."""
    source = ArrayVectors(np.array(list(vectors.values())), list(vectors))
    return MmrReranker(source, make_params("reranker", "mmr", values)).rerank(Run.from_dict({"q": run}))["q"]


def order(found: list[tuple[str, float]]) -> list[str]:
    return [docid for docid, _ in found]


@pytest.fixture(scope="module")
def collection() -> tuple[ArrayVectors, QueryVectors, Run]:
    rng = np.random.default_rng(12)
    vectors, queries = rng.normal(size=(150, 12)), rng.normal(size=(4, 12)).astype(np.float32)
    vectors[7] = vectors[3]  # a pair of equal documents
    source = ArrayVectors(vectors, [f"d{number:03}" for number in range(150)])
    entries = {}
    for number, query in enumerate(queries):
        scores = source.vectors @ query
        best = np.argsort(-scores)[: 2 + 30 * number]
        entries[f"q{number}"] = {source.docids[row]: float(scores[row]) for row in best}
    return source, QueryVectors(tuple(entries), queries), Run.from_dict(entries)


def test_lambda_1_is_the_order_of_the_run_and_lambda_0_of_its_dissimilarity() -> None:
    run = {"a": 3.0, "d": 3.0, "c": 2.0, "b": 1.0}  # d before a: ties by descending docid
    assert order(rerank(run, FOUR, lam=1.0)) == ["d", "a", "c", "b"]
    # all 0 at first: the run's first, a. Then b 1, c .6, d 0: d; then b 1, c .8: c
    found = rerank({"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0}, FOUR, lam=0.0)
    assert order(found) == ["a", "d", "c", "b"]
    assert [score for _, score in found] == pytest.approx([0.0, 0.0, -0.8, -1.0])


def test_of_equal_values_the_earlier_is_taken_and_the_written_order_is_that_of_taking(tmp_path: Any) -> None:
    # z and a score alike and differ from all in the same way: the run has z first, docids would have a first
    vectors = {"z": [1.0, 0.0, 0.0], "m": [0.0, 1.0, 0.0], "a": [0.0, 0.0, 1.0], "b": [0.0, 0.0, 1.0]}
    source = ArrayVectors(np.array(list(vectors.values())), list(vectors))
    run = Run.from_dict({"q": {"z": 4.0, "m": 3.0, "b": 2.0, "a": 1.0}})
    found = MmrReranker(source, MmrParams(lam=0.0)).rerank(run)
    assert found.ranked("q") == ["z", "m", "b", "a"]  # 0, 0, 0, -1
    scores = [score for _, score in found["q"]]
    assert (np.diff(scores) < 0).all()
    assert scores == pytest.approx([0.0, 0.0, 0.0, -1.0])
    found.write(tmp_path / "run.txt")
    assert Run.read(tmp_path / "run.txt").ranked("q") == ["z", "m", "b", "a"]


def test_one_candidate_none_and_all_alike() -> None:
    assert rerank({"a": 5.0}, FOUR) == [("a", 0.0)]  # a constant is no relevance
    source = ArrayVectors(np.ones((3, 2)), ["a", "b", "c"])
    assert MmrReranker(source).rerank(Run.from_dict({})).to_dict() == {}
    of_others = Run.from_dict({"q": {"gone": 1.0}, "p": {"a": 1.0}})
    assert MmrReranker(source, missing="skip").rerank(of_others).ranked("q") == ["gone"]
    same = MmrReranker(source).rerank(Run.from_dict({"q": {"c": 3.0, "a": 2.0, "b": 1.0}}))
    assert same.ranked("q") == ["c", "a", "b"]
    equal = MmrReranker(source).rerank(Run.from_dict({"q": {"c": 1.0, "a": 1.0, "b": 1.0}}))
    assert [score for _, score in equal["q"]] == pytest.approx([0.0, 0.0, 0.0])
    assert equal.ranked("q") == ["c", "b", "a"]


@pytest.mark.parametrize("weight", [0.3, 0.5, 0.7])
def test_no_scale_counts(weight: float, collection: tuple[ArrayVectors, QueryVectors, Run]) -> None:
    source, _, run = collection
    expected = MmrReranker(source, MmrParams(lam=weight)).rerank(run)
    larger = ArrayVectors(source.vectors * 37.5, source.docids)
    moved = Run.from_dict({qid: {docid: 250.0 * score - 9000.0 for docid, score in run[qid]} for qid in run})
    for vectors, other in ((larger, run), (source, moved), (larger, moved)):
        found = MmrReranker(vectors, MmrParams(lam=weight)).rerank(other)
        for qid in run:
            assert found.ranked(qid) == expected.ranked(qid)
            assert [score for _, score in found[qid]][:60] == pytest.approx(
                [score for _, score in expected[qid]][:60], abs=1e-6
            )
    huge = ArrayVectors(source.vectors * np.float32(1e30), source.docids)
    assert MmrReranker(huge).rerank(run).ranked("q3") == MmrReranker(source).rerank(run).ranked("q3")


def test_it_is_the_greedy_choice_of_loops(collection: tuple[ArrayVectors, QueryVectors, Run]) -> None:
    rng = np.random.default_rng(3)
    vectors, relevance = rng.normal(size=(40, 6)), np.sort(rng.random(40))[::-1]
    alike = similarities(vectors.astype(np.float32))
    for weight in (0.0, 0.25, 0.5, 0.8, 1.0):
        chosen: list[int] = []
        while len(chosen) < 40:
            left = [i for i in range(40) if i not in chosen]
            worth = [
                weight * relevance[i] - (1 - weight) * max((alike[i, j] for j in chosen), default=0.0) for i in left
            ]
            chosen.append(left[worth.index(max(worth))])
        taken, values = marginal(relevance, alike, weight)
        assert taken.tolist() == chosen
        assert (np.diff(values) <= 0).all()
        assert (np.diff(falling(values)) < 0).all()
        assert falling(values) == pytest.approx(values)
