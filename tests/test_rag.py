"""RAG frameworks, the real packages: their documents are reranked as `rerank_hits` reranks the same vectors."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal
from store_worlds import (
    COUNT,
    expected_of,
    nearest,
    query_of,
    run_example,
    same_order,
    unit_of,
    vectors_of_texts,
)

from rnnreranker import RnnParams
from rnnreranker.base.errors import MissingDependencyError

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before Haystack is imported
UNIT = vectors_of_texts(unit=True)
QUERY = unit_of(query_of(UNIT))
PARAMS = RnnParams(k=5, context=20)


# ---- Haystack


@pytest.fixture(scope="module")
def haystack() -> Any:
    return pytest.importorskip("haystack", reason="haystack-ai is not installed")


@pytest.fixture
def documents(haystack: Any) -> list[Any]:
    made = [haystack.Document(id=f"d{row}", content="a", embedding=UNIT[row].tolist()) for row in range(COUNT)]
    for row, document in enumerate(made):
        document.score = float(UNIT[row] @ QUERY)
    return made


@pytest.mark.parametrize("metric", ["dot_product", "cosine", "l2"])
@pytest.mark.parametrize("scored", [True, False])
def test_haystack(documents: list[Any], metric: str, scored: bool) -> None:
    from rnnreranker.adapters.rag import HaystackRnnReranker

    for document in [] if scored else documents:
        document.score = None
    before = [document.score for document in documents]
    reranker = HaystackRnnReranker(metric)
    asked = {"documents": documents[::-1], "query_embedding": QUERY.tolist()}
    expected = expected_of(QUERY, UNIT, range(COUNT))
    best = reranker.run(**asked)["documents"]
    same_order([int(one.id[1:]) for one in best], [one.score for one in best], expected)
    assert [one.id for one in reranker.run(**asked, top_k=3)["documents"]] == [f"d{row}" for row in expected[0][:3]]
    assert [document.score for document in documents] == before
    assert reranker.run([], QUERY.tolist()) == {"documents": []}


def test_a_haystack_pipeline_is_written_and_read(haystack: Any, documents: list[Any]) -> None:
    from haystack.components.joiners import DocumentJoiner

    from rnnreranker.adapters.rag import HaystackRnnReranker

    pipeline = haystack.Pipeline()
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.add_component("reranker", HaystackRnnReranker("cosine", top_k=4, params=PARAMS))
    pipeline.connect("joiner", "reranker.documents")
    again = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["rnnreranker.adapters.rag.haystack"])
    read = again.get_component("reranker")
    assert (read.metric, read.top_k, read.params) == ("cosine", 4, PARAMS.to_dict())
    asked = {"joiner": {"documents": documents}, "reranker": {"query_embedding": QUERY.tolist()}}
    found = [pipeline.run(asked), again.run(asked), asyncio.run(again.run_async(asked))]
    expected, _ = expected_of(QUERY, UNIT, range(COUNT), PARAMS)
    best = [[one.id for one in each["reranker"]["documents"]] for each in found]
    assert best == [[f"d{row}" for row in expected[:4]]] * 3


def test_haystack_refusals(documents: list[Any]) -> None:
    from rnnreranker.adapters.rag import HaystackRnnReranker

    documents[4].embedding = None
    with refusal(r"1 of 30 hits have no vector \(first: 'd4'\); ask the retriever with return_"):
        HaystackRnnReranker().run(documents, QUERY.tolist())
    with refusal("Haystack: metric 'manhattan': expected one of cosine, dot_product, l2"):
        HaystackRnnReranker("manhattan")
    with refusal("top_k=0: expected an integer >= 1"):
        HaystackRnnReranker(top_k=0)


# ---- LangChain


@pytest.fixture(scope="module")
def langchain() -> Any:
    """An InMemoryVectorStore whose texts are numbers of vectors, and what makes vectors of them."""
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Numbers(Embeddings):
        asked = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [UNIT[int(text)].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            self.asked += 1
            return QUERY.tolist()

    store = InMemoryVectorStore(Numbers())
    store.add_texts([str(row) for row in range(COUNT)], [{"row": row} for row in range(COUNT)])
    return store


@pytest.mark.parametrize("metric", ["cosine", "dot_product", "l2"])
def test_langchain(langchain: Any, metric: str) -> None:
    from rnnreranker.adapters.rag import LangChainRnnRetriever

    def vectors_of(hits: list[Any]) -> np.ndarray:
        return UNIT[[hit.metadata["row"] for hit in hits]]

    expected, before = expected_of(QUERY, UNIT, nearest(20, QUERY, UNIT), PARAMS), langchain.embeddings.asked
    retriever = LangChainRnnRetriever(store=langchain, k=None, metric=metric, params=PARAMS)
    given = LangChainRnnRetriever(store=langchain, k=None, metric=metric, params=PARAMS, vectors=vectors_of)
    found = [retriever.invoke("q"), asyncio.run(retriever.ainvoke("q")), given.invoke("q")]
    for best in found:
        same_order([int(one.page_content) for one in best], [one.metadata["rnn_score"] for one in best], expected)
    assert langchain.embeddings.asked == before + len(found)  # once a search
    assert "rnn_score" not in langchain.store[found[0][0].id]["metadata"]
    assert len(given.invoke("q", k=3)) == 3
    assert retriever.invoke("q", filter=lambda document: False) == []
    kept: Any = {"k": 4, "filter": lambda one: one.metadata["row"] % 2 == 0}
    even = LangChainRnnRetriever(store=langchain, search_kwargs=kept).invoke("q")
    assert [one.metadata["row"] % 2 for one in even] == [0] * 4


def test_langchain_refusals(langchain: Any) -> None:
    from langchain_core.vectorstores import VectorStore

    from rnnreranker.adapters.rag import LangChainRnnRetriever

    class Others(VectorStore):
        embeddings = langchain.embeddings
        similarity_search = from_texts = None  # type: ignore[assignment]

        def similarity_search_by_vector(self, *given: Any, **named: Any) -> Any:
            return langchain.similarity_search_by_vector(*given, **named)

    with refusal("a Others gives no vectors with its documents; give vectors=, a function"):
        LangChainRnnRetriever(store=Others()).invoke("q")
    with refusal(r"1 of 30 hits have no vector .*; let vectors= give one for each document"):
        LangChainRnnRetriever(store=langchain, vectors=lambda hits: [None, *UNIT[1:]]).invoke("q")
    for wrong, name in ({"search_kwarg": {}}, "search_kwarg"), ({"store": langchain.embeddings}, "store"):
        with pytest.raises(ValueError, match=name):
            LangChainRnnRetriever(**{"store": langchain, **wrong})


# ---- LlamaIndex


@pytest.fixture(scope="module")
def llama() -> Any:
    """An index of LlamaIndex, whose texts are numbers of vectors, with its model."""
    core = pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Numbers(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return UNIT[int(text)].tolist()

        def _get_query_embedding(self, query: str) -> list[float]:
            return QUERY.tolist()

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return QUERY.tolist()

    nodes = [TextNode(id_=f"n{row}", text=str(row)) for row in range(COUNT)]
    model = Numbers()
    return core.VectorStoreIndex(nodes, embed_model=model), model


@pytest.mark.parametrize("metric", ["cosine", "dot_product", "l2"])
@pytest.mark.parametrize("source", ["index", "store", "mapping", "function"])
def test_llamaindex(llama: Any, metric: str, source: str) -> None:
    from llama_index.core.schema import QueryBundle

    from rnnreranker.adapters.rag import LlamaIndexRnnReranker

    index, model = llama
    mapping = {f"n{row}": UNIT[row] for row in range(COUNT)}
    vectors = {
        "index": index,
        "store": index.vector_store,
        "mapping": mapping,
        "function": lambda names: [mapping[name] for name in names],
    }[source]
    reranker = LlamaIndexRnnReranker(vectors=vectors, embed_model=model, metric=metric, params=PARAMS)
    hits = index.as_retriever(similarity_top_k=20).retrieve("q")
    expected = expected_of(QUERY, UNIT, nearest(20, QUERY, UNIT), PARAMS)
    with_embedding = QueryBundle("q", embedding=QUERY.tolist())
    for best in (
        reranker.postprocess_nodes(hits[::-1], query_str="q"),
        reranker.postprocess_nodes(hits, with_embedding),
        asyncio.run(reranker.apostprocess_nodes(hits, QueryBundle("q"))),
    ):
        same_order([int(one.node.text) for one in best], [one.score for one in best], expected)
    few = LlamaIndexRnnReranker(vectors=vectors, metric=metric, params=PARAMS, top_n=3)
    assert [int(one.node.text) for one in few.postprocess_nodes(hits, with_embedding)] == expected[0][:3]


def test_llamaindex_refusals(llama: Any) -> None:
    from rnnreranker.adapters.rag import LlamaIndexRnnReranker

    index, model = llama
    hits = index.as_retriever(similarity_top_k=5).retrieve("q")
    said = r"5 of 5 hits have no vector \(first: 'n\d+'\); give LlamaIndexRnnReranker vectors=, the index or a mapping"
    with refusal(said):
        LlamaIndexRnnReranker(embed_model=model).postprocess_nodes(hits, query_str="q")
    index.vector_store.data.embedding_dict.pop("n29")
    lost = [*hits, type(hits[0])(node=index.docstore.get_node("n29"), score=0.1)]
    with refusal("LlamaIndex: the vector store has no vector of node 'n29'"):
        LlamaIndexRnnReranker(vectors=index, embed_model=model).postprocess_nodes(lost, query_str="q")
    with pytest.raises(ValueError, match="top_k"):
        LlamaIndexRnnReranker(vectors=index, top_k=3)
    given = {"vectors": index, "embed_model": model}
    with refusal("embed_model=None: the query has no embedding"):
        LlamaIndexRnnReranker(vectors=index).postprocess_nodes(hits, query_str="q")
    assert LlamaIndexRnnReranker(**given).postprocess_nodes([], query_str="q") == []


# ---- without the packages, and the pages of these and of stores


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("rag.haystack", "haystack"),
        ("rag.langchain", "langchain_core"),
        ("rag.llamaindex", "llama_index"),
        ("stores.lancedb", "lancedb"),
    ],
)
def test_without_the_package_the_extra_is_named(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"rnnreranker.adapters.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    said = rf"{package} is needed for .*pip install .*'rnnreranker\[{module.split('.')[1]}\]'"
    with pytest.raises(MissingDependencyError, match=said):
        __import__(f"rnnreranker.adapters.{module}")


@pytest.mark.parametrize(
    ("page", "heading", "package", "name", "count"),
    [
        ("rag.md", "Haystack", "haystack", "documents", 10),
        ("rag.md", "LangChain", "langchain_core", "documents", 10),
        ("rag.md", "LlamaIndex", "llama_index.core", "best", 10),
        ("stores.md", "Faiss", "faiss", "ids", 60),
        ("stores.md", "Qdrant", "qdrant_client", "best", 60),
        ("stores.md", "Chroma", "chromadb", "best", 60),
        ("stores.md", "DuckDB", "duckdb", "best", 60),
        ("stores.md", "LanceDB", "lancedb", "best", 60),
        pytest.param("stores.md", "Milvus", "milvus_lite", "best", 60, marks=pytest.mark.slow),
    ],
)
def test_the_examples_of_the_pages(
    page: str, heading: str, package: str, name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run as printed; other tests say whether the order is right."""
    pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    best = run_example(page, heading)[name]
    assert len(best["ids"][0] if heading == "Chroma" else best) == count
