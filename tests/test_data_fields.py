"""What the texts of documents are: the title in front of the text, or the text alone; the same for whoever reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_module import module_of
from query_sets import write_lines
from refusals import refusal

from rnnreranker.data.documents import load_documents, texts_by_id
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import describe
from rnnreranker.search.inputs import document_texts

TEXTS = ("Ottawa is the capital.", "It lies on a river.", "Winters bring snow.")
ALONE = {f"p0#s{number}": text for number, text in enumerate(TEXTS)}
WHOLE = {docid: f"Canada\n{text}" for docid, text in ALONE.items()}


@pytest.fixture
def sentences(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sentences in BEIR layout, each with the title of its article, as collections/canada-reqa."""
    folder = tmp_path / "kept" / "canada-reqa"
    (folder / "qrels").mkdir(parents=True)
    corpus = ({"_id": docid, "title": "Canada", "text": text} for docid, text in ALONE.items())
    write_lines(folder / "corpus.jsonl", map(json.dumps, corpus))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "Which city is the capital?"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tp0#s0\t1\n")
    monkeypatch.setenv("RNNRERANKER_COLLECTIONS", str(folder.parent))
    return folder


def read(name: str, fields: tuple[str, ...] | None = None) -> dict[str, str]:
    found = {document.docid: document.text for document in load_documents(name, fields)}
    assert texts_by_id(name, fields) == found
    return found


def test_a_sentence_of_reqa_is_searched_without_its_title(sentences: Path) -> None:
    """Paper 004, 4.1: "we split a passage into sentences p = s1 s2 … sn. For a query q, we need to retrieve the correct
    sentence from a candidate set consisting of sentences of all passages."
    """
    shutil.copytree(sentences, sentences.with_name("reqa-squad"))
    for name in (f"reqa:{sentences}", "reqa:collections/canada-reqa", "reqa-squad"):
        assert read(name) == read(name, ("text",)) == ALONE
    assert read("collections/canada-reqa", ("text",)) == ALONE
    assert read("collections/canada-reqa") == read("reqa-squad", ("title", "text")) == WHOLE  # as BEIR has it


def run(module: str, *argv: object) -> None:
    main: Callable[[list[str]], int] = module_of(module).main
    assert main([str(word) for word in argv]) == 0


def test_an_index_says_which_fields_it_has_and_texts_are_read_as_it_has_them(sentences: Path, tmp_path: Path) -> None:
    name, alone, whole = "collections/canada-reqa", tmp_path / "alone", tmp_path / "whole"
    run("index", "--documents", name, "--fields", "text", "--parts", "terms", "--output", alone)
    run("index", "--documents", name, "--parts", "terms", "--output", whole)
    assert describe(alone)["inputs"]["fields"] == ["text"]
    assert "fields" not in describe(whole)["inputs"]  # as indexes that were made before there was a choice
    assert describe(alone)["fingerprint"] != describe(whole)["fingerprint"]
    for folder, texts in ((alone, ALONE), (whole, WHOLE)):
        index = open_index(str(folder))
        assert dict(document_texts(None, index)) == texts
        for source in (name, "reqa:collections/canada-reqa"):
            assert document_texts(source, index) == texts
        assert document_texts(name, index, ("text",)) == ALONE
    with refusal(r"holds an index of other fields; give --overwrite"):
        run("index", "--documents", name, "--fields", "text", "--parts", "terms", "--output", whole)
    run("index", "--documents", name, "--fields", "text", "--parts", "terms", "--output", alone)  # already complete


def test_what_joins_an_index_has_its_fields(sentences: Path, tmp_path: Path) -> None:
    more, output = tmp_path / "more.jsonl", tmp_path / "index"
    more.write_text('{"_id": "p1#s0", "title": "Peru", "text": "Lima is one, too."}\n')
    run("index", "--documents", "reqa:collections/canada-reqa", "--parts", "terms", "--output", output)
    run("index", "--append", more, "--output", output)
    assert dict(document_texts(None, open_index(str(output)))) == ALONE | {"p1#s0": "Lima is one, too."}


def test_labels_read_the_given_fields(sentences: Path) -> None:
    from rnnreranker.labels.make import Job

    nothing: Any = None
    jobs = [Job(nothing, {}, documents="collections/canada-reqa", fields=fields) for fields in (("text",), None)]
    assert [dict(job.texts()) for job in jobs] == [ALONE, WHOLE]
    assert jobs[0]._digest_of_texts() != jobs[1]._digest_of_texts()


def test_fields_without_documents_are_refused(sentences: Path, tmp_path: Path, capsys: Any) -> None:
    for module, argv in {
        "search": ["--index", "pydoc", "--topics", "pydoc", "--output", "x.txt"],
        "labels": ["--run", "x", "--qrels", "pydoc", "--output", "x.parquet"],
        "train": ["--model", "cross", "--output", str(tmp_path / "model"), "--encoder", "minilm"],
    }.items():
        with refusal("--fields goes with --documents; an index keeps the texts"):
            run(module, *argv, "--fields", "text")
    with refusal("--fields without --documents"):
        run("index", "--parts", "neighbours", "--fields", "text", "--output", tmp_path / "index")
    with refusal("--fields beside --append"):
        run("index", "--append", "reqa-squad", "--fields", "text", "--output", tmp_path / "index")
