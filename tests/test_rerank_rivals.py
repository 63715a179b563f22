"""The rivals of rNN: contexts worked out by hand, Zhong's golden numbers, the same context and errors for all."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, Run
from rnnreranker.base.method import Inputs, choose, find, make_params, names
from rnnreranker.methods.feedback.rocchio import RocchioParams
from rnnreranker.methods.rerank.base import Candidates, Query
from rnnreranker.methods.rerank.prf import PrfParams
from rnnreranker.methods.rerank.regularise import RegulariseParams, regularised
from rnnreranker.methods.rerank.zhong import ZhongParams, zhong_distances
from rnnreranker.rnn import reference
from rnnreranker.search.__main__ import main as search

RIVALS = ("prf", "regularise", "jaccard-plain", "zhong")


def rerank(name: str, query: list[float], candidates: dict[str, list[float]], **values: Any) -> list[tuple[str, float]]:
    """The context of one query, retrieved by inner product, after reranking."""
    source = ArrayVectors(np.array(list(candidates.values())), list(candidates))
    scores = {docid: float(np.dot(query, vector)) for docid, vector in candidates.items()}
    queries = QueryVectors(("q",), np.array([query], dtype=np.float32))
    reranker = find("reranker", name)(source, make_params("reranker", name, values))
    return reranker.rerank(Run.from_dict({"q": scores}), queries)["q"]


def test_average_prf_ranks_by_the_mean_of_query_and_feedback() -> None:
    # in the run: a 4, b 3, c 2; q' = ((1, 0) + (4, 0) + (3, 3)) / 3 = (8/3, 1)
    found = rerank("prf", [1, 0], {"a": [4, 0], "b": [3, 3], "c": [2, 6]}, feedback="average", fb_docs=2)
    assert [docid for docid, _ in found] == ["c", "b", "a"]
    assert [score for _, score in found] == pytest.approx([34 / 3, 11, 32 / 3])


def test_feedback_comes_from_no_more_than_the_context() -> None:
    # only a is in the context: q' = ((1, 0) + (4, 0)) / 2, and b and c follow below
    found = rerank("prf", [1, 0], {"a": [4, 0], "b": [3, 3], "c": [2, 6]}, feedback="average", fb_docs=3, context=1)
    assert [docid for docid, _ in found] == ["a", "b", "c"]
    assert found[0][1] == pytest.approx(10.0)
    assert found[1][1] < 10.0


def test_rocchio_prf_weighs_query_top_and_bottom() -> None:
    values: dict[str, Any] = {"fb_alpha": 1.0, "fb_beta": 0.5, "fb_depth": 3, "fb_docs": 1}
    candidates = {"a": [4.0, 0.0], "b": [3.0, 3.0], "c": [2.0, 6.0]}
    found = rerank("prf", [1, 0], candidates, **values)  # q' = (1, 0) + (2, 0)
    assert found == [("a", 12.0), ("b", 9.0), ("c", 6.0)]
    values |= {"fb_gamma": 0.5, "fb_bottom_docs": 2}  # and less half of ((3, 3) + (2, 6)) / 2
    found = rerank("prf", [1, 0], candidates, **values)  # q' = (3 - 1.25, -2.25)
    assert [docid for docid, _ in found] == ["a", "b", "c"]
    assert [score for _, score in found] == pytest.approx([7.0, -1.5, -10.0])


def test_regularised_scores_solve_the_system() -> None:
    # y = (1, 0, -1) sqrt(3/2); a, b linked, c alone: (1 + alpha) f_a - alpha f_b = y_a, (1 + alpha) f_b - alpha f_a = 0
    unit, weights = math.sqrt(1.5), np.array([[0.0, 0.4, 0.0], [0.4, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = regularised(np.array([5.0, 4.0, 3.0]), weights, 1.0)
    assert found == pytest.approx(np.array([2 / 3, 1 / 3, -1.0]) * unit)
    assert regularised(np.array([5.0, 4.0, 3.0]), weights, 0.0) == pytest.approx(np.array([1.0, 0.0, -1.0]) * unit)
    assert regularised(np.array([2.0, 2.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), 1.0).tolist() == [0.0, 0.0]


def test_plain_neighbours_need_not_be_reciprocal() -> None:
    # inner products: q.a 4, q.b 3, a.b 2; squares 25 (q), 16 (a), 9 (b). k=1: lists q: q a, a: a q, b: b q.
    # b has q, q has not b: rNN leaves {b}, which shares nothing with q; the plain list of b is {b, q}.
    vectors = _with_products([[25, 4, 3], [4, 16, 2], [3, 2, 9]])
    params = RnnParams(k=1, k_exp=1, tau=0.0, lam=0.0, weight="binary", scale="none")
    # q: (1/2, 1/2, 0), a: the same, b: (1/2, 0, 1/2): J(a) = 1, J(b) = (1/2) / (3/2)
    assert _plain(vectors, params) == pytest.approx([1.0, 1 / 3])
    assert reference.rnn_similarity(vectors[0], vectors[1:], params) == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("tau", [0.0, 0.5])
@pytest.mark.parametrize("variant", ["authors", "paper"])
@pytest.mark.parametrize("scale", ["minmax", "none"])
@pytest.mark.parametrize("weight", ["linear", "exp", "binary"])
def test_plain_jaccard_is_rnn_but_for_reciprocity(
    monkeypatch: pytest.MonkeyPatch, tau: float, variant: Any, scale: Any, weight: Any
) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(24, 6)).astype(np.float32)
    params = RnnParams(k=7, k_exp=3, tau=tau, variant=variant, scale=scale, weight=weight, weight_scale=0.3)
    base = np.sort(rng.normal(size=23))[::-1]
    found = _plain(vectors, params, base)
    assert not np.allclose(found, reference.rnn_similarity(vectors[0], vectors[1:], params, base))
    monkeypatch.setattr(reference, "reciprocal_sets", lambda lists: [set(entries) for entries in lists])
    assert found == pytest.approx(reference.rnn_similarity(vectors[0], vectors[1:], params, base), rel=1e-5, abs=1e-6)


def _plain(vectors: np.ndarray, params: RnnParams, base: np.ndarray | None = None) -> np.ndarray:
    """(n,): the scores of `jaccard-plain` for a context, query first."""
    docids = np.array([f"d{i}" for i in range(1, len(vectors))], dtype=object)
    reranker = find("reranker", "jaccard-plain")(Inputs(), params)
    return reranker.scores(Query("q", None, vectors[0]), Candidates(docids, base, vectors=vectors[1:]))


def test_zhong_meets_the_golden_numbers(shared: Path) -> None:
    golden = np.load(shared / "golden" / "reid1_q3_g40.npz")
    params = ZhongParams(k1=8, k2=3, lam=0.3)  # those in golden["params"]
    between = golden["q_g_dist"]
    distances = np.block([[golden["q_q_dist"], between], [between.T, golden["g_g_dist"]]]).astype(np.float64)
    final, jaccard = zhong_distances(distances, len(between), params)
    np.testing.assert_allclose(jaccard, golden["jaccard_dist"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(final, golden["final_dist"], rtol=1e-4)
    np.testing.assert_array_equal(np.argsort(final, axis=1, kind="stable"), golden["ranking"])


@pytest.mark.parametrize("name", RIVALS)
def test_equal_documents_stand_in_the_order_of_their_docids(name: str) -> None:
    alone = {"rank_weight": 0.0, "run_weight": 0.0, "probes": 1} if name == "jaccard-plain" else {}  # not the run
    found = rerank(name, [1, 2], {"b": [1, 1], "a": [1, 1], "c": [0, 1]}, **alone)
    assert [docid for docid, _ in found].index("a") < [docid for docid, _ in found].index("b")
    scores = dict(found)
    assert scores["a"] == scores["b"]


def test_bad_parameters_are_named_all_at_once() -> None:
    with refusal(r"alpha=nan: expected a finite number .*; context=True: expected"):
        RegulariseParams(alpha=math.nan, context=True)
    with refusal(r"fb_bottom_docs=-1: expected .*; fb_beta='x': expected a finite number >= 0"):
        make_params("reranker", "prf", {"fb_bottom_docs": -1, "fb_beta": "x"})
    with refusal("feedback rm3: is over impacts and words; among candidates expected average,"):
        PrfParams("rm3")
    with refusal("feedback rocchio:fb_docs=3 and fb_docs: fb_docs twice; give it once"):
        make_params("reranker", "prf", {"feedback": {"rocchio": {"fb_docs": 3}}, "fb_docs": 4})


def test_defaults_are_the_published_ones_and_one_context_serves_all() -> None:
    assert ZhongParams() == ZhongParams(20, 6, 0.3)
    usual = PrfParams().chosen  # what feedback has where it searches again
    assert (usual.name, usual.params.set_for("vectors")) == ("rocchio", RocchioParams(5, 0, None, 10, 0.4, 0.6, 0.1))
    assert {find("reranker", name).Params().context for name in ("rnn", *RIVALS)} == {RnnParams().context}
    others = {"encoder", "scorer", "cross-encoder", "ensemble", "late", "lexboost", "mmr"}
    assert set(names("reranker")) == {"rnn", *others, *RIVALS}


def _with_products(products: list[list[float]]) -> np.ndarray:
    """Vectors, (m, m) float32, with these inner products."""
    return np.linalg.cholesky(np.array(products, dtype=np.float64)).astype(np.float32)


def test_the_command_refuses_foreign_flags() -> None:
    for flags, message in (
        (["--rerank", "zhong", "--k", "2"], "--k: of rnn, not with --rerank zhong"),
        (["--rerank", "none", "--k", "2"], "--k: of rnn, not with --rerank none"),
    ):
        with refusal(message):
            search(["--index", "no-such-index", "--query", "a", *flags])


def test_rnn_of_vectors_alone_reads_no_run() -> None:
    """So it can be a teacher of labels, whose positives have no scores of a run."""
    assert choose("reranker", "rnn:preset=vectors").needs == {"query vectors", "vectors"}
