"""Counted words as a part of an index, and TF-IDF over them: against scikit-learn, loops and runs by hand."""

from __future__ import annotations

import importlib.metadata
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_texts
from refusals import refusal
from scipy.sparse import csr_matrix

from rnnreranker.base.method import Inputs, find, make_params
from rnnreranker.index.__main__ import main as index
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import describe
from rnnreranker.parts.postings.source import bm25_weights
from rnnreranker.runs import Run
from rnnreranker.search.__main__ import main as search

NEEDS_JIEBA = "jieba is not installed: pip install 'rnnreranker[zh]'"
NEEDS_BM25S = "bm25s is not installed: pip install 'rnnreranker[terms]'"
WORDS = ["rain", "rains", "sun", "wind", "cloud", "the", "a", "of", "Snow", "fog", "hail", "storm"]


def made_up(count: int = 60) -> dict[str, str]:
    """Documents of random words, some of the same text and some without a word."""
    random = np.random.default_rng(5)
    lengths = random.integers(0, 12, size=count)
    texts = [" ".join(random.choice(WORDS, size=length)) + "." for length in lengths]
    texts[7] = texts[3] = "the rain of the storm"
    return {f"d{number:02d}": text for number, text in enumerate(texts)}


TOPICS = {
    "q1": "rain, rain and storm",
    "q2": "The fog of the sun?",
    "q3": "snow",
    "q4": "nothing known",
    "q5": "hail wind cloud",
}


def indexed(folder: Path, texts: dict[str, str], *flags: str) -> Path:
    """The folder of an index of texts, made by the command."""
    folder.mkdir(exist_ok=True)
    documents = write_texts(folder / "docs.tsv", texts)
    assert index([*f"--documents {documents} --output {folder}/index --parts terms".split(), *flags]) == 0
    return folder / "index"


def retrieved(
    path: Path, topics: dict[str, str], hits: int = 1000, threads: int = 1, method: str = "tf-idf", **params: Any
) -> Run:
    """The run of a retriever over the words of an index."""
    inputs = Inputs(topics=topics, terms=open_index(str(path)).term_source)
    retriever = find("retriever", method)(inputs, make_params("retriever", method, params), threads=threads)
    retriever.check()
    found: Run = retriever.retrieve(hits)
    return found


def in_order(scores: dict[str, float], hits: int = 1000) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:hits]


def check_same(run: Run, expected: dict[str, list[tuple[str, float]]]) -> None:
    assert list(run) == list(expected)
    for qid, pairs in expected.items():
        assert run.ranked(qid) == [docid for docid, _ in pairs]
        np.testing.assert_allclose([score for _, score in run[qid]], [score for _, score in pairs], rtol=1e-6)


def test_cosines_are_those_of_scikit_learn(tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = made_up()
    vectorizer = TfidfVectorizer(token_pattern=r"[^\W_]+")
    documents = vectorizer.fit_transform(texts.values())
    cosines = (vectorizer.transform(TOPICS.values()) @ documents.T).toarray().round(12)
    expected = {
        qid: in_order({docid: value for docid, value in zip(texts, row, strict=True) if value > 0})
        for qid, row in zip(TOPICS, cosines.tolist(), strict=True)
    }
    path = indexed(tmp_path, texts)
    check_same(retrieved(path, TOPICS), expected)
    assert expected["q4"] == []
    assert [docid for docid, _ in expected["q1"]].index("d03") + 1 == [d for d, _ in expected["q1"]].index("d07")


def test_eq_1_by_hand(tmp_path: Path) -> None:
    path = indexed(tmp_path, {"a": "rain rain sun", "b": "sun", "c": "wind", "d": "wind fog"})
    run = retrieved(path, {"q": "rain rain sun", "r": "wind"}, variant="paper")
    rain, sun = math.log(4 / 2), math.log(4 / 3)
    assert run["q"] == [("a", pytest.approx(2 * 2 / 3 * rain + 1 / 3 * sun)), ("b", pytest.approx(sun))]
    assert run["r"] == [("c", pytest.approx(sun)), ("d", pytest.approx(sun / 2))]


@pytest.mark.parametrize("variant", ["cosine", "paper"])
def test_runs_depend_on_the_texts_alone(tmp_path: Path, variant: str) -> None:
    texts = made_up()
    run = retrieved(indexed(tmp_path / "a", texts), TOPICS, variant=variant)
    turned = indexed(tmp_path / "b", dict(reversed(texts.items())))
    for threads, path in ((3, tmp_path / "a" / "index"), (1, turned)):
        for qid, query in TOPICS.items():
            assert retrieved(path, {qid: query}, threads=threads, variant=variant)[qid] == run[qid]
    cut = retrieved(turned, TOPICS, hits=5, variant=variant)
    assert {qid: cut[qid] for qid in cut} == {qid: run[qid][:5] for qid in run}


def test_weights_are_those_of_the_library_bm25s() -> None:
    library = pytest.importorskip("bm25s", reason=NEEDS_BM25S)
    counts = csr_matrix(np.random.default_rng(3).integers(0, 4, size=(40, 25)).astype(np.float64) * (np.arange(25) > 4))
    texts = [np.repeat(np.arange(25), row.astype(int)).tolist() for row in counts.toarray()]
    made = library.BM25(k1=1.2, b=0.6, method="lucene", dtype="float64")
    made.index((texts, {word: word for word in range(25)}), create_empty_token=False, show_progress=False)
    scores = made.scores
    theirs = csr_matrix((scores["data"], scores["indices"], scores["indptr"]), (25, 40)).T.toarray()
    np.testing.assert_allclose(bm25_weights(counts, 1.2, 0.6).toarray(), theirs, rtol=1e-15)


@pytest.mark.usefixtures("as_command")
def test_queries_without_a_word_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = indexed(tmp_path, {"a": "rain"})
    capsys.readouterr()
    retrieved(path, {"q": "rain", "r": "sun", "s": "?"})
    assert capsys.readouterr().err == "2 queries of 3 have no word that a document has: nothing is found\n"


CHINESE = {"a": "他来到北京大学。", "b": "北京今天下雨。", "c": "大学的图书馆。", "d": "２０２４年，ＤＮＡ。"}


def test_chinese_words(tmp_path: Path) -> None:
    pytest.importorskip("jieba", reason=NEEDS_JIEBA)
    path = indexed(tmp_path, CHINESE, "--parts", "terms:language=zh")
    source = open_index(str(path)).term_source
    assert {"北京大学", "北京", "大学", "2024", "dna"} < set(source.vocabulary)
    for method in ("tf-idf", "bm25s"):
        run = retrieved(path, {"q": "北京下雨吗", "r": "dna 2024年？"}, method=method)
        assert run.ranked("q") == ["b"]  # 北京大学 is a word of its own
        assert run.ranked("r") == ["d"]
    assert describe(path)["parts"]["terms"]["settings"] == {"language": "zh", "stemmer": "none"}
    assert describe(path)["parts"]["terms"]["encoder"]["name"] == f"jieba {importlib.metadata.version('jieba')}"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--parts", "terms:language=zh,stemmer=porter"], "stemmer porter: of English words, not of language zh"),
        ([], "no document has a word; expected texts in the language en"),
    ],
)
def test_what_no_words_can_be_counted_of(tmp_path: Path, flags: list[str], message: str) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text('{"id": "a", "text": "…"}\n{"id": "b", "text": "。！"}\n')
    arguments = f"--documents {documents} --output {tmp_path}/out --parts terms".split()
    with refusal(re.escape(message)):
        index([*arguments, *flags])
    assert not (tmp_path / "out").exists()


def test_search_by_tf_idf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, topics, output = indexed(tmp_path, made_up()), tmp_path / "topics.tsv", tmp_path / "run.txt"
    write_texts(topics, TOPICS)
    flags = f"--index {path} --rerank none --retriever tf-idf"
    assert search(f"{flags}:variant=paper --topics {topics} --output {output}".split()) == 0
    found, expected = Run.read(output), retrieved(path, TOPICS, variant="paper")
    ranked = ({qid: [docid for docid, _ in run[qid]] for qid in run if run[qid]} for run in (found, expected))
    assert next(ranked) == next(ranked)
    capsys.readouterr()
    assert search(f"{flags} --query rain".split()) == 0
    assert "rain" in capsys.readouterr().out
