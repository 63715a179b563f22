"""The default that keeps what the first stage knew: golden numbers, by every engine, and through what takes runs."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors

from rnnreranker import LabelParams, QueryVectors, RnnParams, RnnReranker, Run
from rnnreranker.base.errors import DataWarning, InputError
from rnnreranker.base.method import Inputs, make_params
from rnnreranker.labels.methods.base import make_labeler
from rnnreranker.rnn import reference_scores, rnn_similarity
from rnnreranker.rnn.engines import numpy as fallback
from rnnreranker.rnn.similarity import similarity_by
from rnnreranker.runs.score_use import scores_of_use, why_useless

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("RNNRERANKER_SHARED") or ROOT.parent / "shared") / "golden"
CASES = sorted(path.stem for how in ("fp", "sm") for path in FOLDER.glob(f"{how}*.npz"))


@pytest.mark.parametrize("name", CASES or ["(no cases)"])
def test_golden_numbers(name: str, shared: Path) -> None:
    assert CASES, f"no fp*.npz and sm*.npz in {shared / 'golden'}"
    case = dict(np.load(shared / "golden" / f"{name}.npz"))
    told: dict[str, Any] = json.loads(str(case["params"]))
    params = RnnParams(**told, smoothing=0.25 if name.startswith("sm") else 0.0, smoothing_neighbours=5)
    usual = dataclasses.replace(RnnParams(), smoothing=params.smoothing, smoothing_neighbours=5)
    assert dataclasses.replace(params, context=60) == usual  # the default but for its smoothing
    query, candidates, base = case["query"], case["candidates"], case["run_scores"]
    found = [
        rnn_similarity(query[None], candidates[None], params, base=base[None])[0],
        similarity_by(fallback.score_contexts, query[None], candidates[None], params, base[None])[0],
        reference_scores.rnn_similarity(query, candidates, params, base),
    ]
    for scores in found:
        np.testing.assert_allclose(scores, case["expected"], atol=1e-6)
    if len(np.unique(base)) == len(base):  # else docids would decide the order of the run
        source = _source(candidates)
        run = Run.from_dict({"q": {docid: float(score) for docid, score in zip(source.docids, base, strict=True)}})
        reranked = dict(RnnReranker(source, params).rerank(run, QueryVectors(("q",), query[None]))["q"])
        np.testing.assert_allclose([reranked[docid] for docid in source.docids], case["expected"], atol=1e-6)


def test_by_hand() -> None:
    """One term at a time over three candidates: ranks 1, 2, 3 at c = 10 are (n - r)(c + 1) / ((n - 1)(c + r))."""
    query = np.array([[1.0, 0.0]], dtype=np.float32)
    candidates = np.array([[[0.2, 0.9], [0.8, 0.1], [0.4, 0.3]]], dtype=np.float32)
    terms = {"rank_weight": [1.0, 11 / 24, 0.0], "run_weight": [1.0, 0.25, 0.0], "query_weight": [0.0, 1.0, 1 / 3]}
    for name, expected in terms.items():
        only = {other: float(other == name) for other in terms}
        found = rnn_similarity(query, candidates, RnnParams(lam=1.0, smoothing=0.0, **only), base=[[9.0, 6.0, 5.0]])
        np.testing.assert_allclose(found[0], expected, atol=1e-6)
    params = RnnParams.preset("mixture")
    together = rnn_similarity(query, candidates, dataclasses.replace(params, lam=1.0), base=[[9.0, 6.0, 5.0]])
    np.testing.assert_allclose(together[0], np.mean(list(terms.values()), axis=0), atol=1e-6)


def test_one_step_of_smoothing_by_hand() -> None:
    """s**(i) = (1 - a) s*(i) + a mean of s* over the n candidates nearest to i; the query is none of them."""
    query = np.array([[1.0, 0.0]], dtype=np.float32)
    candidates = np.array([[[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]]], dtype=np.float32)
    run = {"lam": 1.0, "rank_weight": 0.0, "query_weight": 0.0}
    base = [[4.0, 3.0, 2.0, 0.0]]  # s* = 1, .75, .5, 0
    expected = {
        1: [0.75 * 1 + 0.25 * 0.75, 0.75 * 0.75 + 0.25 * 0.5, 0.75 * 0.5 + 0.25 * 0.75, 0.75 * 0 + 0.25 * 0.5],
        2: [0.75 + 0.25 * 0.625, 0.5625 + 0.25 * 0.75, 0.375 + 0.25 * 0.375, 0.25 * 0.625],
        3: [0.75 + 0.25 * 1.25 / 3, 0.5625 + 0.25 * 0.5, 0.375 + 0.25 * 1.75 / 3, 0.25 * 0.75],
    }
    for n, values in (expected | {9: expected[3]}).items():  # fewer than n others: all of them
        found = rnn_similarity(query, candidates, RnnParams(smoothing=0.25, smoothing_neighbours=n, **run), base=base)
        np.testing.assert_allclose(found[0], values, atol=1e-6)
    alone = rnn_similarity(query, candidates[:, :1], RnnParams(smoothing=0.25, **run), base=[[4.0]])
    np.testing.assert_allclose(alone, rnn_similarity(query, candidates[:, :1], RnnParams(smoothing=0.0, **run)))


def test_of_equally_near_candidates_the_earlier_lend_their_scores() -> None:
    query, candidates = np.ones((1, 2), dtype=np.float32), np.ones((1, 5, 2), dtype=np.float32)
    params = RnnParams(lam=1.0, rank_weight=0.0, query_weight=0.0, smoothing=1.0, smoothing_neighbours=2)
    found = rnn_similarity(query, candidates, params, base=[[4.0, 3.0, 2.0, 1.0, 0.0]])
    np.testing.assert_allclose(found[0], [0.625, 0.75, 0.875, 0.875, 0.875], atol=1e-6)


def test_eq_1_as_published_asks_nothing_of_the_run() -> None:
    """Paper 000, Section 3.1, eq. 1: lambda s(q, c) + (1 - lambda) J(q, c); so the terms act on the mapped scale."""
    rng = np.random.default_rng(0)
    query, candidates = rng.standard_normal((1, 8)), rng.standard_normal((1, 30, 8))
    published = RnnParams.preset("tas-b")
    other = dataclasses.replace(published, rank_weight=1.0, run_weight=5.0, query_weight=0.0, probes=4)
    expected = rnn_similarity(query, candidates, published)
    for params in (published, other):
        for base in (None, rng.standard_normal((1, 30))):
            assert rnn_similarity(query, candidates, params, base=base).tobytes() == expected.tobytes()
    vectors = RnnParams.preset("vectors")
    alone = rnn_similarity(query, candidates, vectors)
    assert rnn_similarity(query, candidates, vectors, base=rng.standard_normal((1, 30))).tobytes() == alone.tobytes()


def test_more_probes_than_elements() -> None:
    rng = np.random.default_rng(1)
    query, candidates = rng.standard_normal((2, 4)), rng.standard_normal((2, 3, 4))
    base, lengths = rng.standard_normal((2, 3)), [3, 1]
    most = rnn_similarity(query, candidates, RnnParams(probes=4), base=base, lengths=lengths)
    more = rnn_similarity(query, candidates, RnnParams(probes=50), base=base, lengths=lengths)
    assert most.tobytes() == more.tobytes()
    np.testing.assert_allclose(most[1], [(1 - RnnParams().lam) / 2, -np.inf, -np.inf], rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (np.zeros((2, 3)), r"base has shape \(2, 3\): expected \(2, 4\), a score for every candidate"),
        (np.full((2, 4), np.nan), r"base\[0, 0\]=nan: expected a finite score"),
        ([["a"] * 4] * 2, "base has type <U1: expected numbers"),
        ([[1.0], [1.0, 2.0]], "base cannot be made an array: expected rows of one length"),
    ],
)
def test_scores_that_cannot_be_taken_are_refused(base: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        rnn_similarity(np.ones((2, 3)), np.ones((2, 4, 3)), RnnParams(), base=base)


def test_weights_that_are_all_0_are_refused() -> None:
    with pytest.raises(InputError, match="rank_weight=0, run_weight=0, query_weight=0: expected at least one above 0"):
        RnnParams(rank_weight=0, run_weight=0, query_weight=0)


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        ([[3.0, 2.5, 1.0], [9.0, 8.0, 1.0]], None),
        ([[1.0, 1.0, 1.0], [2.0, 2.0]], "the scores of a query are equal"),
        ([[1.0, 1.0, 1.0], [2.0, 1.5]], None),
        ([[1.0, 2.0], [2.0, 1.0]], "its scores rise with the rank"),
        ([[1, 1 / 2, 1 / 3, 1 / 4], [1, 1 / 2, 1 / 3]], "its scores follow from the rank, they are the same for all"),
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


def test_of_a_run_of_ranks_only_ranks_are_used_and_one_line_says_so() -> None:
    rng = np.random.default_rng(2)
    source = _source(rng.standard_normal((40, 6)).astype(np.float32))
    queries = QueryVectors(("a", "b"), rng.standard_normal((2, 6)).astype(np.float32))
    orders = {qid: rng.permutation(source.docids)[:20].tolist() for qid in queries.qids}
    runs = [
        Run.from_dict(
            {qid: {docid: score(rank) for rank, docid in enumerate(order, 1)} for qid, order in orders.items()}
        )
        for score in (lambda rank: 1 / rank, lambda rank: 100.0 - rank)
    ]
    with pytest.warns(DataWarning) as seen:
        first, second = (RnnReranker(source).rerank(run, queries) for run in runs)
    assert len(seen) == 2
    assert str(seen[0].message) == (
        "the run tells only its order (its scores follow from the rank, they are the same for all queries): "
        "ranks are used, scores are not"
    )
    assert {qid: first[qid] for qid in first} == {qid: second[qid] for qid in second}
    rows = source.rows(orders["a"])
    expected = rnn_similarity(queries.vectors[:1], source.fetch(rows)[None], RnnParams(), base=np.zeros((1, 20)))
    assert [dict(first["a"])[docid] for docid in orders["a"]] == expected[0].astype(np.float64).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RnnReranker(source, RnnParams.preset("vectors")).rerank(runs[0], queries)  # does not ask


def test_labels_look_at_vectors_alone() -> None:
    rng = np.random.default_rng(3)
    source = _source(rng.standard_normal((30, 6)).astype(np.float32))
    queries = QueryVectors(("a", "b"), rng.standard_normal((2, 6)).astype(np.float32))
    run = Run.from_dict({qid: {docid: float(rng.random()) for docid in source.docids} for qid in queries.qids})
    import pandas

    qrels = pandas.DataFrame({"query_id": ["a", "b"], "doc_id": ["d01", "d05"], "relevance": [1, 1]})
    before = RnnParams(k_exp=3, rank_weight=0, run_weight=0, probes=1)  # what the default was
    inputs = Inputs(vectors=source, query_vectors=queries)
    for method in ("evidence", "jaccard", "query", "geometric"):
        usual, explicit = (
            make_labeler(method, inputs, params, LabelParams()).infer(run, qrels) for params in (None, before)
        )
        assert usual.targets.tobytes() == explicit.targets.tobytes()
        assert usual.scores.tobytes() == explicit.scores.tobytes()
        assert make_params("labeler", method, {}) == RnnParams.preset("vectors")
        with pytest.raises(InputError, match=f"unknown parameters of {method}: probes"):
            make_params("labeler", method, {"probes": 2})


def test_what_a_preset_file_of_labels_leaves_out_is_that_of_vectors_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("k: 7\n")
    assert make_params("labeler", "evidence", {}, str(file)) == dataclasses.replace(RnnParams.preset("vectors"), k=7)
    assert make_params("reranker", "rnn", {}, str(file)) == RnnParams(k=7)


def _source(vectors: np.ndarray) -> ArrayVectors:
    return ArrayVectors(vectors, [f"d{number:02}" for number in range(len(vectors))])
