"""LexBoost: against loops over its equation, in any order of the run, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from query_sets import write_index, write_neighbours
from refusals import refusal

from rnnreranker import Run
from rnnreranker.base.method import Inputs
from rnnreranker.methods.rerank.lexboost import LexboostParams, LexboostReranker, boosted
from rnnreranker.parts.neighbours import NeighbourGraph

DOCUMENTS = 120


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> NeighbourGraph:
    """Of 120 documents the 16 nearest."""
    vectors = np.random.default_rng(3).standard_normal((DOCUMENTS, 8))
    return write_neighbours(write_index(tmp_path_factory.mktemp("index"), vectors), 16)


@pytest.fixture(scope="module")
def run() -> Run:
    rng = np.random.default_rng(4)
    return Run.from_dict(
        {f"q{n}": {f"d{row}": float(rng.gamma(3.0)) for row in range(n, DOCUMENTS, n + 1)} for n in range(4)}
    )


def expected(run: Run, graph: NeighbourGraph, qid: str, k: int, weight: float, context: int) -> dict[str, float]:
    """The equation as loops."""
    known = dict(run[qid][:context])
    scores = {}
    for docid, own in known.items():
        [row] = graph.rows([docid])
        total = 0.0
        for near in graph.edges[row, :k].tolist():
            total += known.get(graph.docids[near], 0.0)
        scores[docid] = weight * own + (1 - weight) * total / k
    return scores


@pytest.mark.parametrize(("k", "weight", "context"), [(16, 0.7, 1000), (4, 0.2, 1000), (16, 0.5, 9), (1, 0.0, 1000)])
def test_scores_are_those_of_the_equation(graph: NeighbourGraph, run: Run, k: int, weight: float, context: int) -> None:
    params = LexboostParams(k=k, lam=weight, context=context)
    found = LexboostReranker(Inputs(neighbours=graph), params).rerank(run)
    for qid in run:
        wanted = expected(run, graph, qid, k, weight, context)
        head = found[qid][: len(wanted)]
        assert [docid for docid, _ in head] == sorted(wanted, key=lambda docid: (-wanted[docid], docid))
        np.testing.assert_allclose([score for _, score in head], sorted(wanted.values(), reverse=True), rtol=1e-12)
        assert found.ranked(qid)[len(wanted) :] == run.ranked(qid)[len(wanted) :]


def test_a_document_in_its_own_row_is_no_neighbour() -> None:
    assert boosted(np.array([4.0, 2.0]), np.array([0, 1]), np.array([[0, 1], [1, 1]]), 0.5).tolist() == [2.5, 1.0]


def test_what_the_graph_does_not_have(graph: NeighbourGraph, run: Run) -> None:
    strange = Run.from_dict({"q0": {"d0": 3.0, "elsewhere": 2.0, "d1": 1.0}})
    with refusal(r"1 of 3 docids in the run are not in the index \(first: elsewhere\)"):
        LexboostReranker(Inputs(neighbours=graph)).rows_of(strange)
    kept = LexboostReranker(Inputs(neighbours=graph), missing="skip").rerank(strange)
    assert kept.ranked("q0") == ["d0", "d1", "elsewhere"]
    with refusal(r"k=17: expected at most 16, the neighbours that .* has of a docum"):
        LexboostReranker(Inputs(neighbours=graph), LexboostParams(k=17))
    assert LexboostReranker(Inputs(neighbours=graph)).needs == {"neighbours", "run scores"}
    assert len(LexboostReranker(Inputs(neighbours=graph)).rerank(Run.from_dict({"q0": {}})).ranked("q0")) == 0
