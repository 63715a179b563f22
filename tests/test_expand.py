"""Expanders: what joins the candidates, where it stands, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from array_vectors import ArrayVectors
from query_sets import write_index, write_neighbours
from refusals import refusal

from rnnreranker import QueryVectors, Run
from rnnreranker.base.method import Inputs, find, make_params, names
from rnnreranker.methods.rerank.rnn import RnnReranker


def expander(name: str, inputs: Inputs, missing: str = "error", **values: object):  # type: ignore[no-untyped-def]
    return find("expander", name)(inputs, make_params("expander", name, values), missing=missing)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Inputs, Run]:
    """200 documents in 20 dimensions, 6 queries, and a run of every third document that knows nothing of them."""
    rng = np.random.default_rng(3)
    source = ArrayVectors(rng.standard_normal((200, 20)).astype(np.float32))
    graph = write_neighbours(write_index(tmp_path_factory.mktemp("graph"), source.vectors), 16)
    queries = QueryVectors(tuple(f"q{n}" for n in range(6)), rng.standard_normal((6, 20)).astype(np.float32))
    run = {f"q{n}": {f"d{row}": float(rng.standard_normal()) for row in range(n % 3, 200, 3)} for n in range(6)}
    return Inputs(neighbours=graph, vectors=source, query_vectors=queries), Run.from_dict(run)


@pytest.mark.parametrize("name", names("expander"))
def test_every_query_keeps_its_candidates_and_none_stands_twice(name: str, made: tuple[Inputs, Run]) -> None:
    inputs, run = made
    expanded = expander(name, inputs).expand(run)
    assert expanded.qids == run.qids
    for qid in run:
        found = expanded.ranked(qid)
        assert set(run.ranked(qid)) < set(found)
        assert len(set(found)) == len(found)
        scores = [score for _, score in expanded[qid]]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e5])
def test_the_first_candidates_stay_and_are_reranked_as_before(factor: float, made: tuple[Inputs, Run]) -> None:
    """What a reranker of context 60 makes of its candidates does not change, whatever the scale of the run."""
    inputs, run = made
    scaled = Run(run.qids, run.offsets, run.ids, run.rows, run.scores * factor)
    expanded = expander("neighbours", inputs).expand(scaled)
    assert expanded.head(60).to_dict() == scaled.head(60).to_dict()
    reranker = RnnReranker(inputs.vectors)
    before, after = (reranker.rerank(one, inputs.query_vectors) for one in (scaled, expanded))
    assert [after.ranked(qid)[:60] for qid in run] == [before.ranked(qid)[:60] for qid in run]
    for qid in run:
        scores = np.array([score for _, score in expanded[qid]])
        joined = scores[60 : len(scores) - (len(run.ranked(qid)) - 60)]
        step = (scores[0] - scores[59]) / 59
        assert (joined < scores[59]).all()
        assert (joined >= scores[59] - step * (1 + 1e-9)).all()


def test_what_joins_has_one_of_the_first_candidates_as_a_neighbour(made: tuple[Inputs, Run]) -> None:
    inputs, run = made
    graph = inputs.neighbours
    expanded = expander("neighbours", inputs, k=8).expand(run)
    for qid in run:
        first = set(graph.rows(run.ranked(qid)[:20]).tolist())
        for row in graph.rows(sorted(set(expanded.ranked(qid)) - set(run.ranked(qid)))):
            near = set(graph.edges[row, :8].tolist()) & first
            assert any(row in graph.edges[other, :8] for other in near)


def inner(inputs: Inputs, number: int, docids: list[str]) -> np.ndarray:
    vectors = inputs.vectors.fetch(inputs.vectors.rows(docids)).astype(np.float64)
    return vectors @ inputs.query_vectors.vectors[number].astype(np.float64)


def test_ladr_takes_candidates_and_their_neighbours_by_inner_product(made: tuple[Inputs, Run]) -> None:
    """Kulkarni et al. 2023, section 3: the seeds and their neighbours are scored, hop by hop; the best are kept."""
    inputs, run = made
    small = run.head(3)
    for hops, k in ((1, 16), (2, 4)):
        expanded = expander("ladr", inputs, k=k, hops=hops).expand(small)
        for number, qid in enumerate(small):
            rows = set(inputs.neighbours.rows(small.ranked(qid)).tolist())
            for _ in range(hops):
                rows |= {row for one in rows for row in inputs.neighbours.edges[one, :k].tolist()}
            assert set(inputs.neighbours.rows(expanded.ranked(qid)).tolist()) == rows
            np.testing.assert_allclose(
                [score for _, score in expanded[qid]], inner(inputs, number, expanded.ranked(qid)), rtol=1e-6
            )
    assert len(expander("ladr", inputs, hits=10).expand(small).ranked("q0")) == 10


def test_adaptive_ladr_ends_where_the_best_have_no_new_neighbour(made: tuple[Inputs, Run]) -> None:
    """Section 3, adaptive: the neighbours of the best c documents, until these no longer change."""
    inputs, run = made
    expanded = expander("ladr", inputs, variant="adaptive", depth=5).expand(run.head(3))
    for qid in run:
        found = inputs.neighbours.rows(expanded.ranked(qid))
        assert set(inputs.neighbours.edges[found[:5]].ravel().tolist()) <= set(found.tolist())


def test_gar_takes_the_run_and_the_frontier_in_turn(made: tuple[Inputs, Run]) -> None:
    """MacAvaney et al. 2022, algorithm 1, with batches of 2 and a budget of 6, step by step."""
    inputs, run = made
    expanded = expander("gar", inputs, budget=6, batch=333).expand(run)
    graph = inputs.neighbours
    for number, qid in enumerate(run):
        pool = graph.rows(run.ranked(qid)).tolist()
        scored: dict[int, float] = {}
        for turn in range(3):
            best = sorted(scored, key=lambda row: -scored[row])
            frontier = dict.fromkeys(row for one in best for row in graph.edges[one].tolist() if row not in scored)
            chosen = [row for row in (list(frontier) if turn == 1 else pool) if row not in scored][:2]
            scored |= dict(zip(chosen, inner(inputs, number, [graph.docids[row] for row in chosen]), strict=True))
        expected = [graph.docids[row] for row in sorted(scored, key=lambda row: -scored[row])]
        rest = [docid for docid in run.ranked(qid) if docid not in expected]
        assert expanded.ranked(qid) == [*expected, *rest]


@pytest.mark.parametrize("name", names("expander"))
def test_bad_input(name: str, made: tuple[Inputs, Run]) -> None:
    inputs, run = made
    strange = Run.from_dict({"q0": {"d0": 1.0, "elsewhere": 0.5}})
    with refusal(r"1 of 2 docids in the run are not in the index \(first: elsewhere\)"):
        expander(name, inputs).rows_of(strange)
    kept = expander(name, inputs, missing="skip").expand(strange)
    assert "elsewhere" in kept.ranked("q0")
    assert len(kept.ranked("q0")) > 2
    with refusal("k=17: expected at most 16, the neighbours that"):
        expander(name, inputs, k=17).expand(run)
    with refusal("k=0: expected an integer >= 1"):
        expander(name, inputs, k=0)
    with refusal("missing='no': expected 'error' or 'skip'"):
        find("expander", name)(inputs, missing="no")
    with refusal(f"expand {name}: got RnnParams"):
        find("expander", name)(inputs, make_params("reranker", "rnn", {}))
    assert len(find("expander", name)(inputs).expand(Run.from_dict({"q0": {}})).ranked("q0")) == 0


def test_published_parameters() -> None:
    """Those of pyterrier_dr: k 16, GAR's batch 128 of a budget of 1000, LADR's 1 hop and depth 100."""
    gar, ladr = (find("expander", name).Params() for name in ("gar", "ladr"))
    assert (gar.k, gar.batch, gar.budget) == (16, 128, 1000)
    assert (ladr.k, ladr.variant, ladr.hops, ladr.depth) == (16, "proactive", 1, 100)
