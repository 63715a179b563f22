"""Runs reranked from a graph of neighbours: with vectors of queries, with the run's scores, and with neither."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_index, write_texts
from refusals import refusal

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, open_neighbours, open_vectors
from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import write_graph
from rnnreranker.rnn import reference
from rnnreranker.search.__main__ import main as search

DOCUMENTS, DIMENSION, K = 60, 8, 5
RNG = np.random.default_rng(11)
CENTRES = RNG.standard_normal((6, DIMENSION))
VECTORS = (CENTRES[RNG.integers(6, size=DOCUMENTS)] + 0.4 * RNG.standard_normal((DOCUMENTS, DIMENSION))).astype("f4")
DOCIDS = [f"d{row:02d}" for row in range(DOCUMENTS)]
QUERIES = QueryVectors(("q1", "q2", "q3"), (CENTRES[:3] + 0.3).astype(np.float32))
PARAMS = RnnParams(k=4, context=20)


@pytest.fixture(scope="module")
def index(module_path: Path) -> Path:
    folder = write_index(module_path, VECTORS, DOCIDS)
    write_graph(DenseNeighbours(open_vectors(folder)), folder / "neighbours", K)
    write_texts(folder / "topics.tsv", {qid: f"text {qid}" for qid in QUERIES.qids})
    return folder


@pytest.fixture(scope="module")
def run() -> Run:
    """The runs of dense retrieval, of different depths."""
    products = np.einsum("qd,nd->qn", QUERIES.vectors.astype(np.float64), VECTORS.astype(np.float64))
    return Run.from_dict(
        {
            qid: {DOCIDS[row]: float(scores[row]) for row in np.argsort(-scores)[: 30 - 8 * number]}
            for number, (qid, scores) in enumerate(zip(QUERIES.qids, products, strict=True))
        }
    )


def by_loops(index: Path, run: Run, qid: str, products: Any) -> list[tuple[str, float]]:
    """The head of a query as the loops score it; products: of all documents with the query, None = not known."""
    graph, head = open_neighbours(index), run[qid][: PARAMS.context]
    rows = [DOCIDS.index(docid) for docid, _ in head]
    own = None if products is None else [products[docid] for docid, _ in head]
    done = reference.graph_steps(reference.known_similarities(graph.edges, graph.weights, rows, own), PARAMS)
    scores = reference.parts(done, PARAMS.of_graph(own is not None), [score for _, score in head]).scores
    return sorted(zip([docid for docid, _ in head], scores.tolist(), strict=True), key=lambda one: (-one[1], one[0]))


@pytest.mark.parametrize("queries", ["encoded", "run", "none"])
def test_a_run_is_reranked_as_the_loops_do(index: Path, run: Run, queries: Any) -> None:
    reranker = RnnReranker(open_neighbours(index), PARAMS, queries=queries, vectors=open_vectors(index), threads=2)
    found = reranker.rerank(run, QUERIES)
    for number, qid in enumerate(run.qids):
        vector = QUERIES.vectors[number].astype(np.float64)
        products = {docid: float(row.astype(np.float64) @ vector) for docid, row in zip(DOCIDS, VECTORS, strict=True)}
        want = by_loops(index, run, qid, None if queries == "none" else products)
        assert found.ranked(qid)[: len(want)] == [docid for docid, _ in want]
        np.testing.assert_allclose(
            [score for _, score in found[qid][: len(want)]], [score for _, score in want], rtol=1e-5, atol=1e-6
        )
        assert found.ranked(qid)[len(want) :] == run.ranked(qid)[PARAMS.context :]


def test_a_graph_alone_needs_neither_vectors_nor_queries(index: Path, run: Run) -> None:
    reranker = RnnReranker(open_neighbours(index), PARAMS)
    assert reranker.needs == {"neighbours", "run scores"}
    assert reranker.describe()["queries"] == "none"
    assert set(reranker.rerank(run)["q2"]) != set(run["q2"])


def test_plain_neighbours_of_a_graph_need_not_be_reciprocal(index: Path, run: Run) -> None:
    plain = find("reranker", "jaccard-plain")(open_neighbours(index), PARAMS).rerank(run)
    assert plain.to_dict() != RnnReranker(open_neighbours(index), PARAMS).rerank(run).to_dict()


def test_what_cannot_be_is_refused(index: Path, run: Run) -> None:
    graph, vectors = open_neighbours(index), open_vectors(index)
    with refusal("queries='none': with vectors the query has its own"):
        RnnReranker(vectors, PARAMS, queries="none")
    with refusal("device=cpu: rnn takes none, it computes on the processor"):
        RnnReranker(graph, PARAMS, device="cpu")
    with refusal(r"scale=none.*without query vectors"):
        RnnReranker(graph, RnnParams.preset("tas-b"))
    with refusal(r"1 of 2 docids in the run are not in the index \(first: other\)"):
        RnnReranker(graph, PARAMS).rerank(Run.from_dict({"q": {"d00": 2.0, "other": 1.0}}))
    kept = RnnReranker(graph, PARAMS, missing="skip").rerank(Run.from_dict({"q": {"other": 2.0, "d00": 1.0}}))
    assert kept.ranked("q") == ["d00", "other"]


@pytest.mark.parametrize("method", ["rnn", "gar"])
def test_vectors_of_other_documents_beside_a_graph_are_refused(
    index: Path, run: Run, tmp_path: Path, method: str
) -> None:
    write_index(tmp_path, VECTORS[::-1], DOCIDS[::-1])
    graph, vectors = open_neighbours(index), open_vectors(tmp_path)
    if method == "rnn":
        work = RnnReranker(graph, PARAMS, vectors=vectors).rerank
    else:
        inputs = Inputs(neighbours=graph, vectors=vectors, query_vectors=QUERIES)
        work = find("expander", method)(inputs, make_params("expander", method, {"k": K})).expand
    with refusal(r"docids in the run have other rows in the graph than in the vectors \(first"):
        work(run, QUERIES)


def test_search_without_queries_opens_no_vectors_and_no_model(
    index: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(index, bare)
    (bare / "vectors.npy").write_bytes(b"not vectors")
    run.write(tmp_path / "run.txt")

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("vectors or a model were opened")

    monkeypatch.setattr("rnnreranker.parts.vectors.part.open_vectors", opened)
    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.open", opened)
    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.kept_queries", opened)
    words = f"--index {bare} --topics {index}/topics.tsv --run {tmp_path}/run.txt --output {tmp_path}/out.txt"
    words = f"{words} --from neighbours --k 4 --context 20".split()
    assert search([*words, "--queries", "none"]) == 0
    want = RnnReranker(open_neighbours(index), PARAMS).rerank(Run.read(tmp_path / "run.txt"))
    assert Run.read(tmp_path / "out.txt").ranked("q1") == want.ranked("q1")
    assert search([*words, "--queries", "run"]) == 0
    with pytest.raises(AssertionError, match="were opened"):
        search([*words, "--queries", "encoded", "--encoder", "minilm"])


def test_encoded_queries_need_the_vectors_of_the_graph(index: Path, run: Run, tmp_path: Path) -> None:
    run.write(tmp_path / "run.txt")
    other = tmp_path / "other"
    shutil.copytree(index, other)
    (other / "vectors.npy").unlink()
    (other / "impacts").mkdir()
    words = f"--index {other} --topics {index}/topics.tsv --run {tmp_path}/run.txt --output {tmp_path}/out.txt".split()
    with refusal(r"--queries encoded: .* has no vectors that its graph was made from"):
        search([*words, "--from", "neighbours", "--queries", "encoded"])
    with refusal("--queries none: with vectors queries are encoded; give --from neighbours"):
        search([*words, "--queries", "none"])
    assert not (tmp_path / "out.txt").exists()
    assert search([*words, "--from", "neighbours"]) == 0
