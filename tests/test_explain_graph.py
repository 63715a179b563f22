"""The explanation of a query whose similarities come from a graph: its sums, its page, and what it must not show."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_index, write_neighbours, write_queries, write_texts

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, open_neighbours, open_vectors
from rnnreranker.data.document import Document
from rnnreranker.parts.neighbours import NeighbourGraph
from rnnreranker.parts.texts import CorpusWriter
from rnnreranker.rnn.graph import graph_similarity
from rnnreranker.search.__main__ import main
from rnnreranker.search.explain.neighbourhood import graph_neighbourhood
from rnnreranker.search.explain.page import explanation
from tests.test_explain import check_sums, table_of

DOCUMENTS, K, CONTEXT = 40, 4, 15
RNG = np.random.default_rng(5)
VECTORS = RNG.normal(size=(DOCUMENTS, 8)).astype(np.float32)
QUERY = RNG.normal(size=8).astype(np.float32)
DOCIDS = [f"d{row:02d}" for row in range(DOCUMENTS)]
SETTINGS = [
    RnnParams(),
    RnnParams(k=4, k_exp=1, tau=0.0, lam=0.0),
    RnnParams(k=3, weight="binary", probes=4, rank_constant=60.0),
    RnnParams(k=4, normalize="max"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of vectors with a graph of them, two topics and their vectors."""
    folder = tmp_path_factory.mktemp("index")
    with CorpusWriter(write_index(folder, VECTORS, DOCIDS)) as corpus:
        for docid in DOCIDS:
            corpus.add(Document(docid, f"text of {docid}"))
    write_neighbours(folder, K)
    topics = {"q1": "river boat", "q2": "bread oven"}
    write_queries(folder.parent / "queries.npy", topics, [QUERY, -QUERY])
    write_texts(folder.parent / "topics.tsv", topics)
    return folder


@pytest.fixture(scope="module")
def graph(index: Path) -> NeighbourGraph:
    return open_neighbours(index)


def context() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Candidates, their inner products with the query, and the scores of a run in another order."""
    rows = np.random.default_rng(1).permutation(DOCUMENTS)[:CONTEXT]
    return [DOCIDS[row] for row in rows], VECTORS[rows] @ QUERY, np.linspace(1, 0, CONTEXT) ** 2


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_scores_are_those_of_the_kernel(graph: NeighbourGraph, params: RnnParams, known: bool) -> None:
    docids, products, base = context()
    rows, query = graph.rows(docids), products if known else None
    found = graph_neighbourhood(graph, docids, params, query=query, base=base)
    given = None if query is None else query[None]
    fast = graph_similarity(graph.edges, graph.weights, rows[None], params, query=given, base=base[None])[0]
    check_sums(found, fast)
    assert ("geo" in [part.kind for part in found.parts]) == (known and params.lam > 0)
    assert [one.similarity is not None for one in found.candidates] == [known] * CONTEXT


def test_a_first_candidate_without_neighbours_leaves_the_query_without(graph: NeighbourGraph) -> None:
    first = 0
    far = [row for row in range(1, DOCUMENTS) if row not in graph.edges[first] and first not in graph.edges[row]][:5]
    docids = [DOCIDS[row] for row in (first, *far)]
    found = graph_neighbourhood(graph, docids, RnnParams(), base=[6, 5, 4, 3, 2, 1])
    assert found.reciprocal[0] <= {0}
    page = explanation(found, qid="q", query="text", texts={})
    assert "The query has no reciprocal neighbours among them" in page
    assert "nan" not in page
    alone = graph_neighbourhood(graph, docids[:1], RnnParams(), base=[1.0])
    assert explanation(alone, qid="q", query="text", texts={}).count('<tr id="r') == 1


def run_of(index: Path) -> Run:
    products = VECTORS.astype(np.float64) @ QUERY
    order = np.argsort(-products)[: CONTEXT + 5]
    return Run.from_dict(
        {
            "q1": {DOCIDS[row]: float(products[row]) for row in order},
            "q2": {DOCIDS[row]: 1.0 / (3 + row) for row in range(9)},
        }
    )


@pytest.mark.parametrize("queries", ["encoded", "run", "none"])
def test_the_page_has_the_scores_of_the_run(index: Path, tmp_path: Path, queries: Any) -> None:
    bare = tmp_path / "index"
    shutil.copytree(index, bare)
    if queries != "encoded":
        (bare / "vectors.npy").write_bytes(b"not vectors")
    run_of(index).write(tmp_path / "base.txt")
    page, out = tmp_path / "why.html", tmp_path / "out.txt"
    words = ["--index", str(bare), "--topics", str(index.parent / "topics.tsv"), "--run", str(tmp_path / "base.txt")]
    words += ["--from", "neighbours", "--queries", queries, "--context", str(CONTEXT)]
    words += ["--encoded-queries", str(index.parent / "queries.npy")] if queries == "encoded" else []
    assert main([*words, "--explain", "q1", "--explain-output", str(page), "--output", str(out)]) == 0
    reranker = RnnReranker(
        open_neighbours(index), RnnParams(context=CONTEXT), queries=queries, vectors=open_vectors(index)
    )
    vectors = QueryVectors(("q1", "q2"), np.load(index.parent / "queries.npy"))
    want = reranker.rerank(Run.read(tmp_path / "base.txt"), vectors)["q1"][:CONTEXT]
    text = page.read_text()
    scores, shown = table_of(text)
    assert scores == pytest.approx([score for _, score in want], abs=6e-5)
    assert shown == [(docid, f"text of {docid}") for docid, _ in want]
    assert [docid for docid, _ in want] == Run.read(out).ranked("q1")[:CONTEXT]
    said = {"encoded": "inner products of its vector", "run": "are the scores of the run", "none": "not known"}
    assert [name for name, words in said.items() if words in text] == [queries]
