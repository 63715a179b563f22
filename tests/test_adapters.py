"""Adapters: Pyserini's searchers wrapped, real ones and made-up ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_vectors import ArrayVectors
from query_sets import write_documents, write_index, write_neighbours
from refusals import refusal

from rnnreranker import (
    NeighbourGraph,
    QueryVectors,
    RnnParams,
    RnnReranker,
    RnnSearcher,
    Run,
    open_vectors,
)

DOCUMENTS, DIMENSION = 40, 6
RNG = np.random.default_rng(2)
VECTORS = RNG.standard_normal((DOCUMENTS, DIMENSION)).astype(np.float32)
DOCIDS = [f"d{row:02d}" for row in range(DOCUMENTS)]
TEXTS = ("first", "second", "third")
QUERIES = {text: RNG.standard_normal(DIMENSION).astype(np.float32) for text in TEXTS}
PARAMS = RnnParams(k=4, context=15)
SOURCE = ArrayVectors(VECTORS, DOCIDS)


@dataclass
class Hit:
    docid: str
    score: float


class MadeUp:
    """Searches as Pyserini's searchers do, remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def search(self, q: Any, k: int = 10, **options: Any) -> list[Hit]:
        self.asked.append({"k": k, **options})
        vector = q if isinstance(q, np.ndarray) else QUERIES[q]
        scores = VECTORS.astype(np.float64) @ vector.reshape(-1).astype(np.float64)
        return [Hit(DOCIDS[row], float(scores[row])) for row in np.argsort(-scores)[:k].tolist()]

    def batch_search(
        self, queries: Sequence[Any], qids: Sequence[str], k: int = 10, threads: int = 1, **options: Any
    ) -> dict[str, list[Hit]]:
        self.asked.append({"threads": threads})
        return {qid: self.search(query, k, **options) for qid, query in zip(qids, queries, strict=True)}

    def doc(self, docid: str) -> str:
        return f"text of {docid}"


class MadeUpEncoder:
    def encode(self, text: str) -> np.ndarray:
        return QUERIES[text]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(tmp_path_factory.mktemp("adapters"), VECTORS, DOCIDS)


def expected(text: str, depth: int, params: RnnParams = PARAMS) -> list[tuple[str, float]]:
    run = Run.from_dict({"q": {hit.docid: hit.score for hit in MadeUp().search(text, depth)}})
    return RnnReranker(SOURCE, params).rerank(run, QueryVectors(("q",), QUERIES[text][None]))["q"]


@pytest.mark.parametrize("k", [5, 15, 30])
def test_search_gives_the_reranked_hits_in_the_searchers_own_type(index: Path, k: int) -> None:
    searcher = MadeUp()
    wrapped = RnnSearcher(searcher, index, PARAMS, encoder=MadeUpEncoder())
    hits = wrapped.search("first", k=k, fields={"title": 1.0})
    assert searcher.asked == [{"k": max(k, 15), "fields": {"title": 1.0}}]
    assert all(type(hit) is Hit for hit in hits)
    assert {hit.docid: hit.score for hit in hits} == pytest.approx(dict(expected("first", max(k, 15))[:k]))
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_a_searcher_with_its_own_index_takes_vectors_and_encodes_once() -> None:
    import faiss

    asked: list[str] = []

    class Counting(MadeUpEncoder):
        def encode(self, text: str) -> np.ndarray:
            asked.append(text)
            return super().encode(text)

    searcher: Any = MadeUp()
    searcher.index, searcher.docids, searcher.query_encoder = faiss.IndexFlatIP(DIMENSION), DOCIDS, Counting()
    searcher.index.add(VECTORS)
    wrapped = RnnSearcher(searcher, params=PARAMS)
    ranked = [docid for docid, _ in expected("second", 15)[:10]]
    assert [hit.docid for hit in wrapped.search("second")] == ranked
    assert [hit.docid for hit in wrapped.search(QUERIES["second"])] == ranked
    asked.clear()
    for queries in (np.stack([QUERIES[text] for text in TEXTS]), list(TEXTS)):
        found: Any = wrapped.batch_search(queries, [7, 3, 5])  # type: ignore[list-item]
        assert list(found) == [7, 3, 5]
        assert [hit.docid for hit in found[3]] == ranked
    assert asked == list(TEXTS)
    with refusal("return_vector=True: hits with their vectors are not reranked"):
        wrapped.search("first", return_vector=True)
    with refusal("query vectors: a list whose rows differ in length"):
        wrapped.batch_search([QUERIES["first"], QUERIES["first"][:2]], ["a", "b"])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> NeighbourGraph:
    return write_neighbours(write_index(tmp_path_factory.mktemp("graph"), VECTORS, DOCIDS), 6)


@pytest.mark.parametrize("queries", ["none", "run"])
def test_a_graph_takes_the_place_of_vectors_and_encoder(graph: NeighbourGraph, queries: Any) -> None:
    wrapped = RnnSearcher(MadeUp(), graph, PARAMS, queries=queries)
    run = Run.from_dict({"q": {hit.docid: hit.score for hit in MadeUp().search("first", 15)}})
    want = RnnReranker(graph, PARAMS, queries=queries).rerank(run)["q"]
    assert [(hit.docid, hit.score) for hit in wrapped.search("first", k=15)] == want
    assert [hit.docid for hit in wrapped.batch_search(["first"], ["a"], k=4)["a"]] == [docid for docid, _ in want[:4]]
    with refusal("encoder is for vectors"):
        RnnSearcher(MadeUp(), graph, encoder=MadeUpEncoder())
    with refusal("queries is for a graph"):
        RnnSearcher(MadeUp(), SOURCE, encoder=MadeUpEncoder(), queries="run")


def test_what_the_searcher_lacks_is_said(index: Path) -> None:
    with refusal("MadeUp has no document vectors of its own; give vectors"):
        RnnSearcher(MadeUp(), encoder=MadeUpEncoder())
    with refusal("MadeUp has no dense query encoder of its own; give encoder"):
        RnnSearcher(MadeUp(), index)
    wrapped = RnnSearcher(MadeUp(), index, PARAMS, encoder=MadeUpEncoder())
    with refusal("k=0: expected an integer >= 1"):
        wrapped.search("first", k=0)
    with refusal("3 queries and 1 query ids"):
        wrapped.batch_search(list(TEXTS), ["a"])


@pytest.fixture(scope="module")
def collection(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve texts with BM25 and MiniLM vectors; needs Java."""
    from rnnreranker.index.__main__ import main

    folder = tmp_path_factory.mktemp("pyserini")
    themes = ("boats on the river", "bread in the oven", "violin strings and bows")
    texts = {f"t{n:02d}": f"{themes[n % 3]}, note {n} of the river" for n in range(12)}
    documents = write_documents(folder / "corpus.jsonl", texts)
    assert main(["--documents", str(documents), "--output", str(folder / "index"), "--parts", "dense,bm25"]) == 0
    return folder / "index"


class Shared:
    """Pyserini asks for `encode` of one text."""

    def __init__(self) -> None:
        from rnnreranker.encode.kinds import Encoder

        self.encoder = Encoder.load("minilm")

    def encode(self, text: str) -> np.ndarray:
        return np.asarray(self.encoder.encode([text])[0])


@pytest.mark.long
def test_searchers_of_pyserini(collection: Path) -> None:
    from pyserini.search.faiss import FaissSearcher
    from pyserini.search.hybrid import HybridSearcher
    from pyserini.search.lucene import LuceneSearcher

    encoder, params = Shared(), RnnParams(k=3, context=8)
    bm25 = LuceneSearcher(str(next(collection.rglob("segments_*")).parent))
    dense = FaissSearcher(str(collection), encoder)
    topics = {"1": "boat river", "2": "baking bread"}
    for searcher, flags in (
        (bm25, {"vectors": collection, "encoder": "minilm"}),
        (dense, {}),
        (HybridSearcher(dense, bm25), {}),
    ):
        both = {"k0": 12} if hasattr(searcher, "dense_searcher") else {}
        plain = searcher.batch_search(list(topics.values()), list(topics), k=12, **both)
        wrapped = RnnSearcher(searcher, params=params, **flags)
        found = wrapped.batch_search(list(topics.values()), list(topics), k=12)
        vectors = QueryVectors(tuple(topics), np.stack([encoder.encode(text) for text in topics.values()]))
        run = Run.from_dict({qid: {hit.docid: float(hit.score) for hit in hits} for qid, hits in plain.items()})
        reranked = RnnReranker(open_vectors(collection), params).rerank(run, vectors)
        for qid, text in topics.items():
            assert [hit.docid for hit in found[qid]] == reranked.ranked(qid), type(searcher).__name__
            assert [hit.docid for hit in wrapped.search(text, k=5)] == reranked.ranked(qid)[:5]
            assert type(found[qid][0]) is type(plain[qid][0])
            np.testing.assert_allclose([hit.score for hit in found[qid]], [s for _, s in reranked[qid]], rtol=1e-5)
    bm25_again = RnnSearcher(bm25, collection, params, encoder="minilm")
    assert bm25_again.doc("t00").docid() == "t00"
