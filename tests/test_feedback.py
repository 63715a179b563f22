"""Feedback: new queries as Pyserini's classes make them, second searches worked out by hand, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_index, write_lines
from refusals import refusal
from scipy.sparse import csr_matrix

from rnnreranker import QueryVectors, open_vectors
from rnnreranker.base.errors import UnavailableError
from rnnreranker.base.java import find_java, start_java
from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.methods.feedback.base import Feedback
from rnnreranker.parts.postings.source import QueryImpacts
from rnnreranker.search.__main__ import main as search
from tests.test_impacts import written


def feedback(name: str, **values: Any) -> Feedback:
    return find("feedback", name)(make_params("feedback", name, values))


@dataclass(frozen=True, eq=False)
class Result:
    """What Pyserini's classes look at in a search result."""

    vectors: np.ndarray


@pytest.fixture(scope="module")
def oracle(jvm: None) -> Any:
    """The module of Pyserini's classes."""
    return pytest.importorskip("pyserini.search.faiss._prf")


@pytest.fixture(scope="module")
def vectors() -> tuple[np.ndarray, list[np.ndarray]]:
    """50 queries, and for each 1 to 8 documents, (n, 24) float32."""
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 9, 50)
    documents = [rng.normal(size=(count, 24)).astype(np.float32) for count in counts]
    return rng.normal(size=(50, 24)).astype(np.float32), documents


@pytest.mark.jvm
@pytest.mark.parametrize("numbers", [(), (0.4, 0.6, 0.1, 5, 0), (0.9, 0.1, 0.1, 3, 0), (1.0, 0.75, 0.15, 2, 2)])
def test_average_and_rocchio_are_those_of_pyserini(oracle: Any, vectors: tuple, numbers: tuple) -> None:
    rule = oracle.DenseVectorRocchioPrf(*numbers) if numbers else oracle.DenseVectorAveragePrf()
    names = ("fb_alpha", "fb_beta", "fb_gamma", "fb_docs", "fb_bottom_docs")[: len(numbers)]
    ours = feedback("rocchio" if numbers else "average", **dict(zip(names, numbers, strict=True)))
    for query, documents in zip(*vectors, strict=True):
        expected = rule.get_prf_q_emb(query, [Result(vector) for vector in documents])
        assert ours.of_vectors(query, documents) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_defaults_are_those_of_pyserinis_reproduction_and_setters() -> None:
    # pyserini/2cr: `--prf-method avg --prf-depth 3`, `--prf-depth 5 --rocchio-alpha 0.4 --rocchio-beta 0.6
    # --rocchio-topk 5`; set_rm3(10, 10, .5, filter_terms=True), set_rocchio(10, 10, ..., 1, .75)
    assert feedback("average").depth("vectors") == 3
    rocchio = feedback("rocchio")
    over = rocchio.params.set_for("vectors")
    assert (over.fb_docs, over.fb_alpha, over.fb_beta, over.fb_bottom_docs) == (5, 0.4, 0.6, 0)
    over = rocchio.params.set_for("words")
    assert (over.fb_docs, over.fb_terms, over.fb_alpha, over.fb_beta, over.fb_bottom_docs) == (10, 10, 1.0, 0.75, 0)
    assert feedback("rocchio", fb_alpha=0.5).params.set_for("words").fb_alpha == 0.5
    assert [rocchio.depth(over) for over in ("vectors", "impacts", "words")] == [5, 10, 10]
    assert feedback("rocchio", fb_docs=4, fb_bottom_docs=3).depth("vectors") == 7
    assert feedback("rocchio", fb_docs=4, fb_depth=9).depth("vectors") == 9
    rm3 = feedback("rm3").params
    assert (rm3.fb_terms, rm3.fb_docs, rm3.fb_weight, rm3.fb_filter) == (10, 10, 0.5, True)


def test_the_second_search_finds_what_the_first_documents_are_like(tmp_path: Path) -> None:
    # q . d: 4, 3, 2, 0; the mean of q, d0 and d1 is (8/3, 3): d2 comes first then, and d3 into the first four
    documents = np.array([[4.0, 0.0], [3.0, 9.0], [2.0, 12.0], [0.0, 8.0], [1.0, -9.0]])
    source = open_vectors(write_index(tmp_path / "index", documents))
    queries = QueryVectors(("q",), np.array([[1.0, 0.0]], dtype=np.float32))
    inputs = Inputs(vectors=source, query_vectors=queries)
    once = find("retriever", "dense")(inputs).retrieve(4)
    twice = find("retriever", "dense")(inputs, feedback=feedback("average", fb_docs=2)).retrieve(4)
    assert once.ranked("q") == ["d0", "d1", "d2", "d4"]
    assert twice.ranked("q") == ["d2", "d1", "d3", "d0"]
    assert [score for _, score in twice["q"]] == pytest.approx([124 / 3, 35, 24, 32 / 3])


def rows(*entries: dict[int, float]) -> Any:
    matrix = np.zeros((len(entries), 6), dtype=np.float32)
    for number, entry in enumerate(entries):
        matrix[number, list(entry)] = list(entry.values())
    return csr_matrix(matrix)


def test_rm3_over_impacts_is_the_relevance_model_by_hand() -> None:
    # d1: 4/5 and 1/5 of two terms (the third is cut), by its score 3; d2: 1/2, 1/2, by 1: terms 1: 2.4, 2: .6 + .5,
    # 3: .5; the two heaviest by their sum: 2.4 / 3.5, 1.1 / 3.5; half of them, half of the query's 3/4 and 1/4
    documents, query = rows({1: 8, 2: 2, 5: 1}, {2: 3, 3: 3}), rows({0: 3, 1: 1})
    found = feedback("rm3", fb_terms=2).of_impacts(query, documents, np.array([3.0, 1.0]))
    expected = [3 / 8, 1 / 8 + 1.2 / 3.5, 0.55 / 3.5, 0, 0, 0]
    assert found.toarray()[0] == pytest.approx(expected)
    assert feedback("rm3", fb_weight=1.0).of_impacts(query, documents, np.ones(2)).toarray()[0, :3].tolist() == [
        0.75,
        0.25,
        0,
    ]


def test_rocchio_and_average_over_impacts_by_hand() -> None:
    documents, query = rows({1: 3, 2: 4}, {1: 5}, {4: 2}), rows({0: 2})
    # the mean of (.6, .8) and (1, 0) is (.8, .4); of length 1 it is (2, 1) / sqrt 5
    found = feedback("rocchio", fb_docs=2).of_impacts(query, documents[:2], np.ones(2))
    assert found.toarray()[0] == pytest.approx([1, 1.5 / 5**0.5, 0.75 / 5**0.5, 0, 0, 0])
    cut = feedback("rocchio", fb_docs=2, fb_terms=1).of_impacts(query, documents[:2], np.ones(2))
    assert cut.toarray()[0] == pytest.approx([1, 0.75, 0, 0, 0, 0])
    less = feedback("rocchio", fb_docs=2, fb_bottom_docs=1).of_impacts(query, documents, np.ones(3))
    assert less.toarray()[0, 4] == 0.0  # it would weigh -.15
    mean = feedback("average").of_impacts(query, documents, np.ones(3))
    assert mean.toarray()[0] == pytest.approx([0.5, 2, 1, 0, 0.5, 0])


def test_impacts_search_again_with_the_words_of_the_first_documents(tmp_path: Path) -> None:
    documents = rows({0: 2, 1: 4}, {0: 1, 1: 1, 2: 1}, {1: 9}, {5: 3})
    inputs = Inputs(impacts=written(tmp_path, documents, ["a", "b", "c", "d"], None))
    again = find("retriever", "impact")(inputs, feedback=feedback("rm3", fb_docs=2))
    queries = QueryImpacts(rows({0: 1}, {4: 1}))  # the second finds nothing
    first = again.search(queries, 2)
    found = again.queries_again(queries, first)
    expected = feedback("rm3").of_impacts(queries.weights[0], documents[first[1][0]], first[0][0])
    assert found.weights.toarray()[0] == pytest.approx(expected.toarray()[0])
    assert found.weights.toarray()[1].tolist() == queries.weights.toarray()[1].tolist()
    assert again.search(queries, 4)[1][0].tolist() == [0, 1]
    assert set(again.search(found, 4)[1][0].tolist()) == {0, 1, 2}  # document 2 has none of the query's words


TEXTS = ("wing of a plane", "a wing lifts", "wing and lift of planes", "lift force", "bread oven", "oven heat", "river")


@pytest.fixture(scope="module")
def lucene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Lucene index of TEXTS, and of as many without their words that no term is in more than a tenth of them."""
    try:
        find_java()
    except UnavailableError as error:
        pytest.skip(str(error))
    from rnnreranker.parts.bm25.part import build_bm25

    folder = tmp_path_factory.mktemp("lucene")
    (folder / "corpus").mkdir()
    texts = [*TEXTS, *(f"nothing{number}" for number in range(60))]
    write_lines(
        folder / "corpus" / "all.jsonl",
        (f'{{"id": "d{number}", "contents": "{text}"}}' for number, text in enumerate(texts)),
    )
    return build_bm25(folder / "corpus", folder / "bm25")


@pytest.mark.jvm
def test_an_index_without_document_vectors_is_named(lucene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_java()

    monkeypatch.setattr("rnnreranker.parts.bm25.searcher.LuceneSearcher.keeps_documents", False)
    inputs = Inputs(words=lucene, topics={"q1": "wing"})
    with refusal("bm25: keeps no document vectors, which prf rm3 reads; make the index with"):
        find("retriever", "bm25")(inputs, feedback=feedback("rm3")).retrieve(4)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--retriever", "dense", "--prf", "rm3"], "prf rm3: is for retriever bm25 or impact, not for dense"),
        (["--retriever", "dense", "--prf", "rochio"], "--prf rochio: rochio: no such feedback; did you mean rocchio"),
        (["--run", "run.txt", "--prf", "rocchio"], "--prf searches again: not with --run"),
    ],
)
def test_the_command_refuses(flags: list[str], message: str) -> None:
    with refusal(message):
        search(["--index", "no-such-index", "--query", "a", *flags])
