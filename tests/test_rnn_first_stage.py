"""What the first stage says of candidates: its terms by hand, smoothing, graphs, and what takes its runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, rnn_similarity
from rnnreranker.base.errors import DataWarning
from rnnreranker.base.method import make_params
from rnnreranker.rnn import reference
from rnnreranker.rnn.graph import graph_similarity
from rnnreranker.runs.head import scores_of_use, why_useless

QUERY = np.array([[1.0, 0.0]], dtype=np.float32)


def test_one_term_at_a_time() -> None:
    """Ranks 1, 2, 3 at c = 10 are (n - r)(c + 1) / ((n - 1)(c + r))."""
    candidates = np.array([[[0.2, 0.9], [0.8, 0.1], [0.4, 0.3]]], dtype=np.float32)
    terms = {"rank_weight": [1.0, 11 / 24, 0.0], "run_weight": [1.0, 0.25, 0.0], "query_weight": [0.0, 1.0, 1 / 3]}
    for name, expected in terms.items():
        only = {other: float(other == name) for other in terms}
        found = rnn_similarity(QUERY, candidates, RnnParams(lam=1.0, smoothing=0.0, **only), base=[[9.0, 6.0, 5.0]])
        np.testing.assert_allclose(found[0], expected, atol=1e-6)
    params = dataclasses.replace(RnnParams.preset("mixture"), lam=1.0)
    together = rnn_similarity(QUERY, candidates, params, base=[[9.0, 6.0, 5.0]])
    np.testing.assert_allclose(together[0], np.mean(list(terms.values()), axis=0), atol=1e-6)


def test_one_step_of_smoothing() -> None:
    """s**(i) = (1 - a) s*(i) + a mean of s* over the n candidates nearest to i; the query is none of them."""
    candidates = np.array([[[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]]], dtype=np.float32)
    run: dict[str, Any] = {"lam": 1.0, "rank_weight": 0.0, "query_weight": 0.0}
    base = [[4.0, 3.0, 2.0, 0.0]]  # s* = 1, .75, .5, 0
    expected = {
        1: [0.75 * 1 + 0.25 * 0.75, 0.75 * 0.75 + 0.25 * 0.5, 0.75 * 0.5 + 0.25 * 0.75, 0.75 * 0 + 0.25 * 0.5],
        2: [0.75 + 0.25 * 0.625, 0.5625 + 0.25 * 0.75, 0.375 + 0.25 * 0.375, 0.25 * 0.625],
        3: [0.75 + 0.25 * 1.25 / 3, 0.5625 + 0.25 * 0.5, 0.375 + 0.25 * 1.75 / 3, 0.25 * 0.75],
    }
    for n, values in (expected | {9: expected[3]}).items():  # fewer than n others: all of them
        found = rnn_similarity(QUERY, candidates, RnnParams(smoothing=0.25, smoothing_neighbours=n, **run), base=base)
        np.testing.assert_allclose(found[0], values, atol=1e-6)


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (np.zeros((2, 3)), r"base has shape \(2, 3\): expected \(2, 4\), a score for every candidate"),
        (np.full((2, 4), np.nan), r"base\[0, 0\]=nan: expected a finite score"),
        ([["a"] * 4] * 2, "base: a list of <U1; expected numbers"),
        ([[1.0], [1.0, 2.0]], "base: a list whose rows differ in length"),
    ],
)
def test_scores_that_cannot_be_taken_are_refused(base: Any, said: str) -> None:
    with refusal(said):
        rnn_similarity(np.ones((2, 3)), np.ones((2, 4, 3)), RnnParams(), base=base)


EDGES = np.array([[1, 2], [0, 2], [0, 1], [0, 1]], dtype=np.uint32)
WEIGHTS = np.array([[0.5, 0.75], [0.5, 0.25], [0.75, 0.25], [0.125, 0.0]], dtype=np.float16)


def test_without_a_query_a_graph_deals_out_what_the_first_candidate_knows() -> None:
    known = reference.known_similarities(EDGES, WEIGHTS, [1, 0, 3, 2])
    assert known[0, 1:].tolist() == [0.5, 0.25, 0.0, -np.inf]  # document 1 knows 0, 2 and, from its side, 3
    assert (known[2, 4], known[3, 4]) == (0.75, -np.inf)
    given: dict[str, Any] = {"rows": np.array([[1, 0, 3, 2]]), "params": RnnParams(k=2)}
    found = graph_similarity(EDGES, WEIGHTS, base=[[4.0, 3.0, 2.0, 1.0]], **given)
    assert np.isfinite(found).all()
    query = np.array([[0.5, 0.25, 0.0, -9.0]])  # -9 is known, and inner products have a weight of their own
    assert not np.allclose(found, graph_similarity(EDGES, WEIGHTS, query=query, base=[[4.0, 3.0, 2.0, 1.0]], **given))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.array([[0, 70]])}, r"rows\[0, 1\]=70: expected 0 to 3"),
        ({"rows": np.array([[0.5, 1.0]])}, "rows has type float64: expected integers"),
        ({"base": None}, "neither query nor base"),
        ({"base": [[1.0, np.nan]]}, r"base\[0, 1\]=nan: expected a finite score"),
        ({"query": np.array([[np.inf, 1.0]])}, r"query\[0, 0\]=inf: expected a finite score"),
        ({"weights": np.full((4, 2), np.nan, dtype=np.float16)}, "NaN or infinite; make the graph again"),
        ({"weights": np.zeros((4, 2))}, "expected uint32 and float16"),
        ({"weights": np.zeros((4, 3), dtype=np.float16)}, r"\(D, K\) both"),
        ({"params": RnnParams.preset("tas-b")}, "scale=none.*without query vectors expected scale=minmax"),
        ({"params": RnnParams.preset("vectors")}, "rank_weight=0, run_weight=0: without query vectors"),
        ({"params": RnnParams(scale="none", normalize="max"), "query": np.ones((1, 2))}, "normalize=max: a graph has"),
        ({"params": RnnParams(weight="exp", weight_scale=100.0), "query": np.array([[0.2, 0.1]])}, "weight exp: the l"),
        ({"threads": 0}, "threads=0"),
    ],
)
def test_what_a_graph_cannot_take_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"edges": EDGES, "weights": WEIGHTS, "rows": np.array([[0, 1]]), "params": RnnParams()}
    with refusal(message):
        graph_similarity(**(given | {"base": [[2.0, 1.0]], "query": None} | change))


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        ([[3.0, 2.5, 1.0], [9.0, 8.0, 1.0]], None),
        ([[1.0, 1.0, 1.0], [2.0, 2.0]], "the scores of a query are equal"),
        ([[1.0, 1.0, 1.0], [2.0, 1.5]], None),
        ([[1, 1 / 2, 1 / 3, 1 / 4], [1, 1 / 2, 1 / 3]], "its scores follow from the rank, they are the same for all"),
        ([[4, 3, 2, 1], [3, 2, 1]], "its scores follow from the rank, they are the same for all"),
        ([[1 / (60 + rank) for rank in range(1, 9)]], "its scores follow from the rank"),
        ([[float(10 - rank) for rank in range(6)]], "its scores follow from the rank"),
        ([[9.0, 8.0, 6.5, 6.0, 2.0, 1.0]], None),
        ([[2.0, 1.0]], None),  # two scores are always on a line
        ([[4.0], [2.0]], None),
        ([], None),
    ],
)
def test_scores_that_tell_no_more_than_the_order(queries: list[list[float]], why: str | None) -> None:
    scores = np.array([score for query in queries for score in query])
    offsets = np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64)
    found = why_useless(scores, offsets)
    assert (found is None) == (why is None)
    assert found is None or (why is not None and found.startswith(why))
    assert (scores_of_use(scores, offsets) == (scores if why is None else 0.0)).all()


@pytest.mark.filterwarnings("error")
def test_of_a_run_of_ranks_only_ranks_are_used_and_one_line_says_so() -> None:
    rng = np.random.default_rng(2)
    source = ArrayVectors(rng.standard_normal((40, 6)).astype(np.float32), [f"d{number:02}" for number in range(40)])
    queries = QueryVectors(("a", "b"), rng.standard_normal((2, 6)).astype(np.float32))
    orders = {qid: rng.permutation(source.docids)[:20].tolist() for qid in queries.qids}
    scores = (lambda rank: 1 / rank, lambda rank: 100.0 - rank)
    runs = [
        Run.from_dict({qid: {docid: of(rank) for rank, docid in enumerate(order, 1)} for qid, order in orders.items()})
        for of in scores
    ]
    with pytest.warns(DataWarning) as seen:
        first, second = (RnnReranker(source).rerank(run, queries) for run in runs)
    assert [str(one.message).partition(" (")[0] for one in seen] == ["the run tells only its order"] * 2
    assert {qid: first[qid] for qid in first} == {qid: second[qid] for qid in second}
    rows = source.rows(orders["a"])
    expected = rnn_similarity(queries.vectors[:1], source.fetch(rows)[None], RnnParams(), base=np.zeros((1, 20)))
    assert [dict(first["a"])[docid] for docid in orders["a"]] == expected[0].astype(np.float64).tolist()
    RnnReranker(source, RnnParams.preset("vectors")).rerank(runs[0], queries)  # does not ask


def test_labels_look_at_vectors_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("k: 7\n")
    for method in ("evidence", "jaccard", "query", "geometric"):
        assert make_params("labeler", method, {}) == RnnParams.preset("vectors")
        with refusal("no setting probes"):
            make_params("labeler", method, {"probes": 2})
    assert make_params("labeler", "evidence", {}, str(file)) == dataclasses.replace(RnnParams.preset("vectors"), k=7)
    assert make_params("reranker", "rnn", {}, str(file)) == RnnParams(k=7)
