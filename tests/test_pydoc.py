"""The built-in collection: what it holds, that it is the same every time, and its topics."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from page_data import judged_twice

from rnnreranker.base.errors import UnavailableError
from rnnreranker.data import pydoc
from rnnreranker.data.document import Document
from rnnreranker.data.documents import load_documents
from rnnreranker.data.names import PYDOC_KINDS
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics


@pytest.fixture(scope="module")
def collection() -> dict[str, Document]:
    return {document.docid: document for document in pydoc.documents()}


def normalised(query: str) -> str:
    return " ".join(re.findall(r"\w+", query.lower()))


def test_size_and_order(collection: dict[str, Document]) -> None:
    docids = [document.docid for document in load_documents("pydoc")]
    assert 2500 <= len(docids) <= 5000
    assert docids == sorted(set(docids))
    assert docids == list(collection)


def test_texts(collection: dict[str, Document]) -> None:
    texts = [document.text for document in collection.values()]
    assert not [text for text in texts if re.search(r" at 0x[0-9a-fA-F]{6,}", text)]
    assert not [text for text in texts if sys.executable in text or os.path.dirname(os.__file__) in text]
    assert max(map(len, texts)) < 4000
    # words and marks, a little fewer than an encoder's tokens; it reads 256 of them
    assert sum(min(256, len(re.findall(r"\w+|[^\w\s]", text))) for text in texts) < 350_000
    assert [text for text, times in Counter(texts).items() if times > 1] == []


def test_names_are_those_that_people_type(collection: dict[str, Document]) -> None:
    present = """dict.fromkeys str.split sorted print range open enumerate zip itertools.groupby pathlib.Path.glob
        pathlib.Path.stem json.dumps collections.Counter.most_common asyncio.gather math.gcd OSError os.path.join"""
    assert [name for name in present.split() if name not in collection] == []
    own = "platform.architecture(executable=..., bits='', linkage='')"  # no default of this machine
    assert collection["platform.architecture"].text.startswith(own)
    absent = """json.encoder.JSONEncoder bytearray.lower pathlib.PurePath.stem IOError list.__len__ dict.__init__
        sysconfig.get_path random.Random.choice this antigravity tkinter"""
    assert [name for name in absent.split() if name in collection] == []


def test_the_fingerprint_is_remembered_while_nothing_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RNNRERANKER_HOME", str(tmp_path))
    here, made = pydoc.fingerprint(), []
    monkeypatch.setattr(pydoc, "_documents", lambda: made.append(1) or ())
    assert pydoc.fingerprint() == here
    assert made == []
    (kept,) = (tmp_path / "digests").glob("pydoc-*.json")
    kept.write_text('{"no": "fingerprint"}')
    other = pydoc.fingerprint()
    assert other != here
    assert made == [1]
    monkeypatch.setattr(sys, "version", "of another Python")
    assert pydoc.fingerprint() == other
    assert made == [1, 1]


def test_python_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pydoc._documents.cache_clear()
    try:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
        with pytest.raises(UnavailableError, match=r"pydoc: .*nowhere cannot be read: .*nowhere"):
            pydoc.documents()
    finally:
        pydoc._documents.cache_clear()


def test_test_topics() -> None:
    topics = load_topics("pydoc")
    assert list(topics) == [f"t{number:03d}" for number in range(1, 151)]
    of_kinds = [load_topics(f"pydoc/{kind}") for kind in PYDOC_KINDS]
    assert list(map(len, of_kinds)) == [75, 38, 37]
    assert [qid for of_kind in of_kinds for qid in of_kind] == list(topics)
    assert load_topics("pydoc/shallow") == of_kinds[0]


def test_training_topics(collection: dict[str, Document]) -> None:
    train, qrels = load_topics("pydoc/train"), load_qrels("pydoc/train")
    assert len(train) >= 300
    assert list(qrels["query_id"]) == list(train)
    assert set(qrels["relevance"]) == {1}
    assert set(qrels["doc_id"]) <= set(collection)
    assert {normalised(query) for query in load_topics("pydoc").values()}.isdisjoint(map(normalised, train.values()))


@pytest.mark.parametrize("name", ["pydoc", "pydoc/shallow"])
def test_judgements(name: str) -> None:
    qrels = load_qrels(name)
    assert set(qrels["query_id"]) == set(load_topics(name))
    assert set(qrels["relevance"]) == {0, 1, 2, 3}
    assert not qrels.duplicated(["query_id", "doc_id"]).any()


@pytest.mark.parametrize("name", ["pydoc", "pydoc/shallow"])
@pytest.mark.long
def test_two_judges_agree(name: str) -> None:
    agreed = judged_twice(name)
    assert agreed.pairs >= 0.1 * len(load_qrels(name))
    assert agreed.kappa > 0.8
