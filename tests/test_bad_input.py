"""Bad input: one line that begins with `error: `, exit code 2, and nothing left behind."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest
from refusals import refusal

from rnnreranker.base import command, java
from rnnreranker.evaluate.__main__ import main as evaluate
from rnnreranker.index.__main__ import main as index
from rnnreranker.regress.__main__ import main as regress
from rnnreranker.search.__main__ import main as search

ROOT = Path(__file__).resolve().parent.parent
DIMENSION = 6
Refusal = Callable[..., None]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a sound index, queries, topics, run and qrels."""
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(20, DIMENSION)).astype(np.float32)
    save_matrix(tmp_path / "docs.npy", vectors, "d")
    save_matrix(tmp_path / "queries.npy", rng.normal(size=(2, DIMENSION)).astype(np.float32), "q")
    (tmp_path / "topics.tsv").write_text("q0\tfirst\nq1\tsecond\n")
    (tmp_path / "run.txt").write_text("q0 Q0 d1 1 2.0 t\nq0 Q0 d2 2 1.0 t\nq1 Q0 d3 1 1.0 t\n")
    (tmp_path / "qrels.txt").write_text("q0 0 d1 1\n")
    flat = faiss.IndexFlatIP(DIMENSION)
    flat.add(vectors)
    (tmp_path / "faiss").mkdir()
    faiss.write_index(flat, str(tmp_path / "faiss" / "index"))
    (tmp_path / "faiss" / "docid").write_text((tmp_path / "docs.ids").read_text())
    (tmp_path / "out").mkdir()
    (tmp_path / "secret").write_text("root\n")
    (tmp_path / "zipped.tsv").write_bytes(gzip.compress(b"q0\tfirst\n"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "ir_datasets"))
    return tmp_path


def save_matrix(path: Path, matrix: np.ndarray, letter: str) -> None:
    np.save(path, matrix)
    path.with_suffix(".ids").write_text("".join(f"{letter}{row}\n" for row in range(len(matrix))))


@pytest.fixture
def expect_refusal(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refusal:
    """Runs a command and checks how it refuses: one line that matches, code 2, no file made."""

    def run(main: Callable[..., int], arguments: str, expected: str) -> None:
        before = {path: path.stat().st_mtime_ns for path in files.rglob("*") if "ir_datasets" not in path.parts}
        monkeypatch.setattr(sys, "argv", ["command", *arguments.split()])
        try:
            code = command.run(main)
        except SystemExit as wrong_flags:
            code = int(wrong_flags.code or 0)
        printed = capsys.readouterr()
        assert code == 2, printed
        assert printed.out == ""
        assert re.fullmatch(rf"error: .*(?:{expected}).*\n", printed.err), printed.err
        after = {path: path.stat().st_mtime_ns for path in files.rglob("*") if "ir_datasets" not in path.parts}
        changed = {path for path in after if before.get(path) != after[path]}
        assert changed <= {files, files / "out"}  # a folder's time moves when its writability is tried
        assert after.keys() == before.keys()

    return run


DENSE = "--index docs.npy --encoded-queries queries.npy --topics topics.tsv --output out/run.txt"


def dense(**other: str) -> str:
    """The flags of a sound search with some of them replaced or added."""
    words = DENSE.split()
    flags = dict(zip(words[::2], words[1::2], strict=True))
    flags.update({"--" + name.replace("_", "-"): value for name, value in other.items()})
    return " ".join(f"{name} {value}" for name, value in flags.items())


def test_the_sound_search_is_not_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(dense(run="run.txt").split()) == 0
    assert sorted(os.listdir(files / "out")) == ["run.txt"]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"index": "pydok"}, r"pydok: no such folder or file, and no prebuilt index of Pyserini; did you mean pydoc\?"),
        (
            {"index": "nowhere"},
            "nowhere: no such folder or file, and no prebuilt index of Pyserini; "
            "make one with python -m rnnreranker.index$",
        ),
        (
            {"index": "qrels.txt"},
            "qrels.txt: a file that is no index; expected a folder, or a .npy matrix with its ids beside it; "
            "of documents make one with python -m rnnreranker.index --documents qrels.txt",
        ),
        ({"index": "out", "output": "new.txt"}, "out: no index in this folder; expected `index` and `docid`"),
        ({"preset": "no.yaml"}, "no.yaml: no such preset file"),
        ({"qrels": "qrels.txt", "measures": "nDGC@10"}, "nDGC@10: no such measure; did you mean nDCG"),
        ({"retriever": "bm25:b=2"}, r"--retriever bm25:b=2: b=2.0: expected a finite number >= 0 and <= 1"),
        ({"b": "0.5"}, "unrecognized arguments: --b 0.5"),
        (
            {"retriever": "sparse"},
            r"--retriever sparse: sparse: no such retriever; known: bm25, bm25s, dense, .*, tf-idf",
        ),
        ({"retriever": "dense+dens"}, "--retriever dens: dens: no such retriever; did you mean dense"),
        (
            {"retriever": "splade", "rerank": "foo", "k": "0", "device": "gpu9"},
            r"--retriever splade: .*; --rerank foo: foo: no such reranker; .*; "
            r"--device gpu9: torch has no device gpu9 here; .*; --k 0: expected an integer >= 1$",
        ),
        ({"retriever": "hybrid:k1=0.1"}, "--retriever hybrid:k1=0.1: hybrid: no such retriever"),
        ({"retriever": "hybrid", "fuse": "rrf:preset=a"}, "--fuse rrf:preset=a: no setting preset"),
        ({"aggregate": "maxp:preset=a"}, "no setting preset"),
        ({"show": "3"}, "--show is of one query: give --query"),
        ({"retriever": "dense+dense"}, r"--retriever dense\+dense: expected different retrievers"),
        ({"fuse": "minmax"}, "--fuse minmax: joins several retrievers, and docs.npy has one part"),
        ({"retriever": "hybrid", "fuse": 'rrf:weights="1,2,3"'}, "3 weights for 2 runs; expected one for each"),
        ({"run": "run.txt", "fuse": "rrf"}, "--fuse rrf: joins several retrievers, not --run"),
        ({"run": "run.txt", "retriever": "dense"}, "--retriever dense: not with --run, whose candidates are there"),
        ({"hits": "1.5"}, "--hits 1.5: expected an integer"),
        ({"lam": "0,1"}, "--lam 0,1: expected a finite number"),
        ({"topics": "zipped.tsv"}, "zipped.tsv: is gzip, but its name does not end in .gz; rename it to zipped.tsv.gz"),
        ({"retreiver": "dense"}, "unrecognized arguments: --retreiver dense; did you mean --retriever"),
        ({"output": "missing/run.txt"}, r"missing/run.txt: cannot be written \(No such file or directory\)"),
        ({"retriever": "bm25"}, "docs.npy: no words in this index; add them with index --parts bm25"),
        ({"retriever": "bm25", "bm25_index": "faiss"}, "faiss: no Lucene index in this folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_what_is_asked_for(expect_refusal: Refusal, other: dict[str, str], expected: str) -> None:
    expect_refusal(search, dense(**other), expected)


def test_an_index_that_is_not_finished(files: Path, expect_refusal: Refusal) -> None:
    (files / "mine.partial").mkdir()
    expect_refusal(search, dense(index="mine"), "mine: this index is not finished; run the command that makes it again")


def test_missing_flags(expect_refusal: Refusal) -> None:
    expect_refusal(search, "--topics topics.tsv", "the following arguments are required: --index")
    expect_refusal(search, "--index docs.npy --topics topics.tsv", "--topics needs --output RUN .* or --qrels")
    judged = "--index docs.npy --topics topics.tsv --qrels qrels.txt"
    expect_refusal(search, f"{judged} --tag mine", "--tag and --output-format are of the written run: give --output$")
    asked = "--index docs.npy --topics topics.tsv --output r.txt"
    for ignored in ("--measures AP", "--protocol dl"):
        expect_refusal(search, f"{asked} {ignored}", "--measures and --protocol are of judgements: give --qrels too$")
    expect_refusal(search, f"{asked} --retriever dense+", "'dense.': a name is missing before or after a separator$")
    expect_refusal(search, f"{asked} --rerank rnn:k=3,k=4", "rnn:k=3,k=4: k=4: expected KEY=VALUE, each key once")
    expect_refusal(search, f"{asked} --rerank rnn:context=100 --context 50", "--context: context twice; give it once")
    expect_refusal(search, "--index docs.npy --output out/run.txt", "give either --topics .* or --query")
    expect_refusal(search, dense(query="words"), "give either --topics .* or --query")
    expect_refusal(
        search, "--index docs.npy --topics topics.tsv --output out/run.txt", "does not say which encoder made it"
    )
    with refusal("--tag 'two words': expected a word without white space"):
        search([*DENSE.split(), "--tag", "two words"])
    expect_refusal(
        regress, "cranfeld", "cranfeld: no such spec, query set or paper .* (did you mean|known:?) .*cranfield"
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("q0 Q0 d1 1 2 t\nq7 Q0 d1 1 2 t\n", r"bad.txt: 1 of its 2 queries are not in topics.tsv \(first: q7\)"),
        (
            "q0 Q0 d1 1 9 t\n" + "".join(f"q1 Q0 x{n} {n} {9 - n} t\n" for n in range(1, 5)),
            r"4 of 5 docids in the run are not in the index \(first: x1, x2, x3\); .* --missing skip",
        ),
    ],
)
def test_runs(files: Path, expect_refusal: Refusal, content: str, expected: str) -> None:
    (files / "bad.txt").write_text(content)
    expect_refusal(search, dense(run="bad.txt"), expected)


def test_topics(files: Path, expect_refusal: Refusal) -> None:
    (files / "bad.tsv").write_text("q0\tfirst\nq9\tnew\n")
    expect_refusal(search, dense(topics="bad.tsv"), r"1 of 2 queries have no vector \(first: q9\)")


def test_vectors(files: Path, expect_refusal: Refusal) -> None:
    vectors = np.load("docs.npy")
    vectors[3, 2] = np.inf
    save_matrix(files / "inf.npy", vectors, "d")
    expect_refusal(search, dense(index="inf.npy"), "inf.npy: the vector of d3 has NaN or infinite values")


@pytest.mark.parametrize("kept", [0, 300])
@pytest.mark.parametrize("name", ["docs.npy", "faiss/index"])
def test_an_index_cut_short(files: Path, expect_refusal: Refusal, name: str, kept: int) -> None:
    content = (files / name).read_bytes()
    assert len(content) > 300
    (files / name).write_bytes(content[:kept])
    expect_refusal(search, dense(index=name.split("/")[0]), f"{name}: .*(not a whole|is not whole|an empty file)")
    (files / "faiss" / "docid").write_text("d0\nd1\n")
    (files / name).write_bytes(content)
    expect_refusal(search, dense(index="faiss"), "docid: has 2 docids but the index has 20 vectors")


def test_judgements(files: Path, expect_refusal: Refusal) -> None:
    (files / "other.txt").write_text("301 0 d1 1\n")
    expect_refusal(search, dense(qrels="other.txt"), "other.txt: judges none of the 2 topics .*judged: 301")
    (files / "words.txt").write_text("q0 0 d1 1\nq0 0 d2 good\n")
    expect_refusal(evaluate, "run.txt --qrels words.txt", "words.txt:2: .* grade 'good'; expected a whole number")
    expect_refusal(evaluate, "none.txt --qrels qrels.txt", "none.txt: no such ")


def test_documents(files: Path, expect_refusal: Refusal) -> None:
    expect_refusal(
        index, "--documents no.jsonl --output out/index", "no.jsonl: no such file; expected a documents file"
    )
    expect_refusal(index, "--documents pydok --output out/index", r"pydok: neither a file nor .* did you mean pydoc\?")
    (files / "bad.jsonl").write_text('{"id": "a"}\n')
    expect_refusal(index, "--documents bad.jsonl --output out/index", r"bad.jsonl:1: keys \['id'\]; expected \"id\"")
    (files / "bad.jsonl").write_text('{"id": "a", "text": "x"}\n')
    expect_refusal(
        index, "--documents bad.jsonl --output qrels.txt/index", "qrels.txt/index.partial: cannot be written"
    )
    expect_refusal(index, "--documents bad.jsonl --output qrels.txt", "qrels.txt: is a file, expected .* folder")
    expect_refusal(index, "--documents bad.jsonl --output faiss/..", "other things than an index")
    expect_refusal(index, "--documents bad.jsonl --output out/index --encoder minilmm", "did you mean minilm")


@pytest.mark.parametrize("encoder", ["5", '{"name": "minilm", "settings": {"old": 1}}', '{"settings": []}'])
def test_a_description_that_is_not_understood(files: Path, expect_refusal: Refusal, encoder: str) -> None:
    parts = f'{{"dense": {{"encoder": {encoder}}}}}'
    (files / "faiss" / "rnnreranker.json").write_text(f'{{"schema": 3, "parts": {parts}}}')
    expect_refusal(
        search, "--index faiss --topics topics.tsv --output out/run.txt", "rnnreranker.json does not describe"
    )
    (files / "faiss" / "rnnreranker.json").write_text('{"encoder": ')
    expect_refusal(search, "--index faiss --topics topics.tsv --output out/run.txt", "rnnreranker.json:1: not JSON")


def test_a_query_that_is_no_text(expect_refusal: Refusal) -> None:
    expect_refusal(search, "--index docs.npy --query a\udcffb", "--query is not UTF-8 text")


@pytest.mark.model
def test_a_cache_folder_that_cannot_be_made(
    files: Path, expect_refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RNNRERANKER_HOME", str(files / "qrels.txt"))
    monkeypatch.setattr("rnnreranker.index.make.obstacles", None)  # seconds of imports: refused before
    expect_refusal(search, "--index pydoc --query words", "qrels.txt.* cannot be written")


class NoNetwork:
    """Stands in for a socket: nothing can be reached."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise OSError("no network in this test")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", NoNetwork)
    monkeypatch.setattr("socket.create_connection", NoNetwork)


@pytest.mark.usefixtures("offline")
def test_no_network_for_a_data_set(expect_refusal: Refusal) -> None:
    name = "beir/scifact/test"
    said = rf"{name}: the queries are not in .*ir_datasets and cannot be downloaded .*set IR_DATASETS_HOME to a copy"
    expect_refusal(search, dense(topics=name), said)


@pytest.mark.usefixtures("offline")
def test_no_network_for_an_encoder(expect_refusal: Refusal) -> None:
    flags = "--index docs.npy --topics topics.tsv --output out/run.txt --encoder some-group/some-model"
    expect_refusal(search, flags, "encoder some-group/some-model: not on this machine, and the hub does not give it")


def test_a_prebuilt_index_that_is_not_known(expect_refusal: Refusal) -> None:
    if not java.prebuilt_index_names():
        pytest.skip("pyserini is not installed")
    expect_refusal(
        search,
        dense(index="msmarco-v1-passage.tas-b"),
        "no prebuilt index of Pyserini; did you mean msmarco-v1-passage",
    )


def test_a_whole_process_ends_with_one_line_and_code_2(files: Path) -> None:
    words = [sys.executable, "-m", "rnnreranker.search", *dense(run="missing.txt").split()]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: missing.txt: no such .*\n", done.stderr)
    assert os.listdir(files / "out") == []
