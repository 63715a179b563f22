"""Python does what the commands do, to the last byte; quiet unless asked, and messages name arguments."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import write_documents, write_judged, write_queries
from refusals import refusal, refusal_with
from tiny_encoder import make_encoder

from rnnreranker import QueryVectors, build_index, evaluate_run, make_labels, open_index
from rnnreranker.evaluate.__main__ import main as evaluate
from rnnreranker.index.__main__ import main as index
from rnnreranker.search.__main__ import main as search

TEXTS = {f"d{number}": f"w{number % 7} w{number % 5} w{number % 3 + 10}" for number in range(60)}
TOPICS = {"q1": "w1 w2", "q2": "w3 w11"}
QRELS = {"q1": {"d1": 1, "d16": 2, "d7": 0}, "q2": {"d3": 1, "d10": 1}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    make_encoder(folder / "encoder")
    corpus = write_documents(folder / "corpus.jsonl", TEXTS)
    write_judged(folder, TOPICS, ((qid, docid, grade) for qid, of in QRELS.items() for docid, grade in of.items()))
    made = ["--documents", str(corpus), "--encoder", f"{folder / 'encoder'}:pooling=mean"]
    assert index([*made, "--output", str(folder / "index")]) == 0
    return folder


def test_an_index_from_python_is_that_of_the_command(world: Path, tmp_path: Path) -> None:
    encoder = f"{world / 'encoder'}:pooling=mean"
    made = build_index(world / "corpus.jsonl", tmp_path / "made", parts=("dense",), encoder=encoder)
    for name in ("index", "docid", "rnnreranker.json"):
        assert (tmp_path / "made" / name).read_bytes() == (world / "index" / name).read_bytes()
    given = build_index(
        TEXTS.items(), tmp_path / "given", parts=("dense",), encoder={str(world / "encoder"): {"pooling": "mean"}}
    )
    np.testing.assert_array_equal(given.vectors.fetch(np.arange(60)), made.vectors.fetch(np.arange(60)))
    again = build_index(TEXTS.items(), tmp_path / "given", parts=("dense",), encoder=encoder)
    assert again.parts == ("dense",)
    with refusal(r"holds an index of other documents \(given in Python"):
        build_index([("d1", "w1")], tmp_path / "given", parts=("dense",), encoder=encoder)


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ([], {}),
        (["--rerank", "none", "--hits", "7"], {"rerank": None, "hits": 7}),
        (["--k", "4", "--context", "20"], {"rerank": "rnn:k=4,context=20"}),
        (["--rerank", "mmr:lam=0.7", "--rerank", "rnn"], {"rerank": ["mmr:lam=0.7", {"rnn": {}}]}),
        (
            ["--retriever", "dense", "--prf", "rocchio:fb_docs=2"],
            {"retrieve": "dense", "prf": {"rocchio": {"fb_docs": 2}}},
        ),
    ],
)
def test_a_search_from_python_is_that_of_the_command(
    world: Path, tmp_path: Path, flags: list[str], arguments: dict
) -> None:
    asked = [
        "--index",
        str(world / "index"),
        "--topics",
        str(world / "topics.tsv"),
        "--output",
        str(tmp_path / "out.txt"),
    ]
    assert search([*asked, *flags]) == 0
    for topics in (world / "topics.tsv", TOPICS):
        run = open_index(world / "index").search(topics, **arguments)
        run.write(tmp_path / "python.txt", tag=(tmp_path / "out.txt").read_text().split()[5])
        assert (tmp_path / "python.txt").read_bytes() == (tmp_path / "out.txt").read_bytes()


def test_query_vectors_in_memory_are_those_of_a_file(world: Path, tmp_path: Path) -> None:
    index = open_index(world / "index")
    vectors = np.random.default_rng(3).normal(size=(2, index.vectors.dimension)).astype(np.float32)
    of_file = index.search(TOPICS, encoded_queries=write_queries(tmp_path / "queries.npy", TOPICS, vectors))
    in_memory = QueryVectors(tuple(reversed(TOPICS)), vectors[::-1])
    run = index.search(TOPICS, encoded_queries=in_memory)
    assert {qid: run[qid] for qid in run} == {qid: of_file[qid] for qid in of_file}
    with refusal(r"1 of 2 queries have no vector \(first: q2\)"):
        index.search(TOPICS, encoded_queries=in_memory.of(["q1"]))
    with refusal(r"query vectors have 3 dimensions, the index .* has 32"):
        index.search({"q1": "w1"}, encoded_queries=QueryVectors(("q1",), np.ones((1, 3), dtype=np.float32)))


def test_measures_are_those_of_the_command(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = open_index(world / "index").search(TOPICS)
    run.write(tmp_path / "run.txt")
    assert (
        evaluate([str(tmp_path / "run.txt"), "--qrels", str(world / "qrels.txt"), "--measures", "nDCG@10 RR@10"]) == 0
    )
    printed = capsys.readouterr().out.splitlines()[1].split("\t")[1:]
    for qrels in (QRELS, str(world / "qrels.txt")):
        table = evaluate_run(tmp_path / "run.txt", qrels, measures=("nDCG@10", "RR@10"))
        assert [f"{value:.4f}" for value in table.loc["run.txt"]] == printed
    both = evaluate_run({"one": run, "other": tmp_path / "run.txt"}, QRELS, per_query=True)
    assert both.shape == (4, 3)
    assert evaluate_run(run, QRELS).index.tolist() == ["run"]


@pytest.mark.long
def test_python_is_quiet_unless_asked(
    world: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    program = (
        "from rnnreranker import build_index\n"
        f"texts, encoder = {list(TEXTS.items())!r}, '{world / 'encoder'}:pooling=mean'\n"
        "index = build_index(texts, 'made', parts=('dense', 'terms'), encoder=encoder)\n"
        "index.search('w1 w2')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=world, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    with caplog.at_level(logging.INFO, logger="rnnreranker"):
        found = open_index(world / "made").search("w1 w2")
    assert "retriever auto: bm25s+dense, fused by minmax" in caplog.text
    assert set(open_index(world / "made").search("w1 w2 " * 80).ranked("query")) == set(found.ranked("query"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retrieve": "dens"}, "retrieve=dens: dens: no such retriever; did you mean dense"),
        ({"rerank": "rnn:k=0"}, "rerank=rnn:k=0: k=0: expected an integer >= 1"),
        ({"hitz": 5}, "no argument hitz, did you mean hits?"),
        ({"retrieve": "dense", "fuse": "rrf"}, "fuse=rrf: joins several retrievers, not retrieve=dense"),
        *(({"hits": wrong}, "expected an integer >= 1") for wrong in (2.5, "ten", True, None, 10**30, np.array([5]))),
        ({"threads": 0}, "threads=0: expected an integer >= 1 or none"),
        ({"remove_query": "maybe"}, "remove_query='maybe': expected true or false"),
        ({"retrieve": 5}, "retrieve=5: expected a text or Mapping or Written or Sequence or none"),
        ({"hits": 0, "device": 5}, "device=5: expected a text or none; hits=0: expected an integer >= 1"),
        ({"encoded_queries": [[1.0]]}, "encoded_queries=[[1.0]]: expected a text or Path or QueryVectors or ndarray"),
        ({"topics": {"q": " "}}, "topics: entry 'q': ' '; expected query id → text, both texts, none empty"),
        ({"topics": {1: "text"}}, "topics: entry 1: 'text'; expected query id → text, both texts"),
        ({"encoded_queries": np.ones((3, 2))}, "encoded_queries: 3 rows for 2 topics; expected one for each"),
        ({"run": {"q1": {"d1": 1.0}}}, "run={'q1': {'d1': 1.0}}: expected a text or Path or Run or none"),
    ],
)
def test_messages_name_arguments(world: Path, arguments: dict, message: str) -> None:
    with refusal_with(message):
        open_index(world / "index").search(**{"topics": TOPICS, **arguments})


def test_numbers_and_arrays_are_those_that_they_equal(world: Path) -> None:
    index = open_index(world / "index")
    vectors = np.random.default_rng(3).normal(size=(2, index.vectors.dimension))
    plain = index.search(TOPICS, hits=7, threads=1, encoded_queries=QueryVectors(tuple(TOPICS), vectors))
    for hits, threads in ((np.int64(7), np.int32(1)), (7.0, 1.0), (np.float32(7), np.uint8(1))):
        same = index.search(TOPICS, hits=hits, threads=threads, batch_size=np.int16(1), encoded_queries=vectors)
        assert same.to_dict() == plain.to_dict()
    with refusal("topics"):  # which row is which query?
        make_labels(plain, QRELS, index, encoded_queries=vectors)
    assert index.search(TOPICS, hits=7, device="cpu", encoded_queries=vectors).to_dict() == plain.to_dict()
    with refusal(r"depth='five': expected an integer >= 1.*; jobs=0: expected"):
        make_labels(plain, QRELS, index, topics=TOPICS, depth="five", jobs=0)
    for name, wrong in (("qrels", 5), ("run", None), ("method", 5)):
        with refusal(f"^{name}.*: expected a (text|name)|^{name}: .*; expected a name"):
            make_labels(**{"run": plain, "qrels": QRELS, "index": index, "topics": TOPICS, name: wrong})
    with refusal("run: got None; expected a Run or its file"):
        index.rerank(None, topics=TOPICS)


@pytest.mark.parametrize("kind", ["arrow", "polars", "tensors"])
def test_frames_and_tensors_are_documents(tmp_path: Path, kind: str) -> None:
    columns = {"docno": ["a", "b"], "text": ["x", "y"], "emb": [[1.0, 2.0], [3.0, 4.0]]}
    if kind == "tensors":
        vectors = pytest.importorskip("torch").tensor(columns["emb"]).bfloat16()
        documents: Any = list(zip(columns["docno"], columns["text"], vectors, strict=True))
    else:
        name, frame = {"arrow": ("pyarrow", "table"), "polars": ("polars", "DataFrame")}[kind]
        documents = getattr(pytest.importorskip(name), frame)(columns)
    index = build_index(documents, tmp_path / "index", parts=("dense",))
    assert index.vectors.docids == ["a", "b"]
    assert index.vectors.fetch(np.arange(2)).tolist() == columns["emb"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([("d1",)], r"documents: entry 1 is \('d1',\); expected a name, a file, \(docid, text\) pairs"),
        ([("d1", "a"), ("d2", 5)], 'documents: entry 2: "text" is a int; expected a string'),
        ([("d1", "a", [1, 2]), ("d2", "b", "no")], "documents: entry 2: a vector that is no list of finite numbers"),
        ([("d1", "a", ["1", "2"])], "documents: entry 1: a vector that is no list of finite numbers"),
        ([("d1", "a", [True, False])], "documents: entry 1: a vector that is no list of finite numbers"),
        ([{"id": "d1", "title": "t"}], "documents: entry 1: keys .'id', 'title'.; expected"),
        (b"x", "documents: a bytes; expected a name"),
        ("", "documents: an empty name"),
        ([("d1", "a"), ("d1", "b")], "d1"),
        ([], "no documents"),
    ],
)
def test_documents_that_are_refused(documents: list, message: str, world: Path, tmp_path: Path) -> None:
    with refusal(message):
        build_index(documents, tmp_path / "index", parts=("dense",), encoder=f"{world / 'encoder'}:pooling=mean")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0, "overwrite": "maybe"}, "threads=0: .*; overwrite='maybe': expected true or false"),
        ({"output": ""}, "output: got ''; expected the name of a folder"),
        ({"parts": 5}, "parts=5: expected a text or Mapping or Written or Sequence"),
        ({"fields": [1]}, "fields [[]1[]]: expected title,text or text"),
        (
            {"device": 5, "compute_dtype": 5, "from_index": 5},
            "device=5: .*compute_dtype=5: .*from_index=5: ",
        ),
        ({"encoder": 5, "parts": "dense"}, "encoder=5"),
        (
            {"encoder": "minilm", "parts": "dense", "documents": [("a", "x", [1.0])]},
            "documents has vectors, which are used",
        ),
        (
            {"dtype": "float16", "parts": "dense", "documents": [("a", "x", [1e5]), ("b", "y", [1.0])]},
            "entry 1: the vector of document a is beyond float16; give dtype=float32",
        ),
    ],
)
def test_odd_arguments_of_a_build_are_one_line(tmp_path: Path, arguments: dict, message: str) -> None:
    with refusal(message):
        build_index(**{"documents": [("a", "x")], "output": tmp_path / "out", "parts": "terms", **arguments})
    assert not any(tmp_path.iterdir())


def test_vectors_of_an_encoder_beyond_the_kept_type_are_refused(tmp_path: Path) -> None:
    import transformers

    folder = make_encoder(tmp_path / "encoder")
    model = transformers.BertModel.from_pretrained(folder)
    model.encoder.layer[-1].output.LayerNorm.weight.data *= 1e6
    model.save_pretrained(folder)
    given: dict[str, Any] = {
        "documents": [("a", "w1 w2")],
        "parts": "dense",
        "encoder": f"{folder}:pooling=mean,normalize=no",
    }
    with refusal("the vector of document a is beyond float16; give dtype=float32"):
        build_index(**given, output=tmp_path / "index", dtype="float16")
    made = build_index(**given, output=tmp_path / "index", dtype="float32")
    assert abs(made.vectors.fetch(np.array([0]))).max() > 65504
