"""Labels by the weights of shared words: equations 1 and 5 of paper 004 by hand, the command, and bad input."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from query_sets import write_documents, write_judged, write_lines

from rnnreranker import InputError, SoftLabels
from rnnreranker.encode.words.analysis import words
from rnnreranker.index.__main__ import main as index
from rnnreranker.index.opening import open_index
from rnnreranker.labels.__main__ import main

# "the" stands in all five documents, and weighs less than nothing; "a" in four, and weighs nothing
DOCUMENTS = {
    "d1": "The rain, a rain; the sun.",
    "d2": "the sun: a wind",
    "d3": "A fog. The FOG!",
    "d4": "the rain a",
    "d5": "the storm",
}
TOPICS = {"q1": "rain and a sun?", "q2": "wind, wind of the sun", "q3": "...", "q4": "snow"}
QRELS = {"q1": "d1", "q2": "d2", "q3": "d3", "q4": "d4"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with counted words, a run of all documents, topics and judgements."""
    folder = tmp_path_factory.mktemp("words")
    documents = write_documents(folder / "docs.jsonl", DOCUMENTS)
    given = ["--documents", str(documents), "--output", str(folder / "index"), "--parts", "terms"]
    assert index(given) == 0
    write_judged(folder, TOPICS, ((qid, docid, 1) for qid, docid in QRELS.items()))
    ranked = [(qid, docid, place) for qid in TOPICS for place, docid in enumerate(DOCUMENTS, 1)]
    write_lines(folder / "run.txt", (f"{qid} Q0 {docid} {at} {9 - at} x" for qid, docid, at in ranked))
    return folder


def labelled(made: Path, output: Path, *more: str) -> SoftLabels:
    named = {"run": "run.txt", "qrels": "qrels.txt", "topics": "topics.tsv", "index": "index"}
    files = [word for name, file in named.items() for word in (f"--{name}", str(made / file))]
    assert main([*files, "--method", "term-weight", "--output", str(output), *more]) == 0
    return SoftLabels.read(output)


def weight_by_hand(word: str, text: list[str]) -> float:
    """Eq. 1, by counting in the texts."""
    have = sum(word in words(other, "en") for other in DOCUMENTS.values())
    return text.count(word) / len(text) * math.log(len(DOCUMENTS) / (have + 1))


def by_hand(query: str, document: str) -> float:
    """Eq. 5."""
    one, other = words(query, "en"), words(document, "en")
    products = [
        weight_by_hand(word, other) * weight_by_hand(word, one)
        for word in set(one) & set(other)
        if weight_by_hand(word, one) >= 0 and weight_by_hand(word, other) >= 0
    ]
    return math.tanh(sum(products) / len(products)) if products else 0.0


def test_the_scores_of_labels_are_equation_5(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = labelled(made, tmp_path / "labels.parquet")
    said = capsys.readouterr().err
    for one in labels:
        expected = [by_hand(TOPICS[one.qid], DOCUMENTS[docid]) for docid in one.docids]
        np.testing.assert_allclose(one.scores, expected, rtol=1e-6)
        assert one.docids[0] == QRELS[one.qid]
    # rain: (1/4 .510826) (2/6 .510826); sun: (1/4 .510826) (1/6 .510826); a: 0; three words
    assert labels["q1"].scores[0] == pytest.approx(math.tanh(0.510826**2 * (1 / 12 + 1 / 24) / 3), rel=1e-5)
    assert said.count("no word of it is known, so the scores of all candidates are 0") == 1
    about = labels.metadata
    assert about["params"] == {
        **{"products": "mean", "scale": 1.0},
        **{"weights": "tf-idf", "scorer": None, "context": 60},
    }
    assert about["index"] == open_index(str(made / "index")).term_source.fingerprint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--topics"], "--method term-weight needs --index (where terms come from)"),
        (["--index"], "--method term-weight needs --topics (the queries)"),
        (["--index", "--topics", "--method", "term-weight:weights=bm25"], "weights='bm25': expected one of tf-idf, sc"),
    ],
)
def test_bad_input(given: list[str], said: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"--index": [str(made / "index")], "--topics": [str(made / "topics.tsv")]}
    arguments = ["--run", str(made / "run.txt"), "--qrels", str(made / "qrels.txt"), "--method", "term-weight"]
    arguments += ["--output", str(tmp_path / "l.parquet")]
    arguments += [part for word in given for part in [word, *files.get(word, [])]]
    with pytest.raises((InputError, SystemExit)) as raised:
        main(arguments)
    found = capsys.readouterr().err if raised.type is SystemExit else str(raised.value)
    assert said in found
    assert not (tmp_path / "l.parquet").exists()
