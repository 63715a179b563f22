"""Methods of another package, a file each: in the help, in YAML, in a plan and on a page, with nothing changed here."""

from __future__ import annotations

import json
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_encoder import (
    WORDS,
    make_cross_encoder,
    make_encoder,
    make_masked,
    make_qrels,
    make_run,
    make_source,
    make_topics,
    write_text_world,
)

from rnnreranker import Run, SoftLabels
from rnnreranker.train.request import hard_labels

pytestmark = pytest.mark.long  # every test starts commands
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(outside_methods: dict[str, str], home: Path) -> Command:
    """Runs `python -m rnnreranker.X ARGV…` where the other package is installed; the finished process."""

    def run(module: str, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", f"rnnreranker.{module}", *map(str, argv)]
        environment = {**outside_methods, "RNNRERANKER_HOME": str(home), "HF_HUB_OFFLINE": "1"}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A folder with documents.jsonl, vectors.npy and .ids, topics.tsv, queries.npy and run.txt."""
    texts = {"d1": "wing", "d2": "wing of a plane", "d3": "the wing"}
    lines = (f'{{"id": "{docid}", "contents": "{text}"}}\n' for docid, text in texts.items())
    (tmp_path / "documents.jsonl").write_text("".join(lines))
    (tmp_path / "topics.tsv").write_text("q1\twing\n")
    np.save(tmp_path / "vectors.npy", np.eye(3, 4, dtype=np.float32))
    (tmp_path / "vectors.ids").write_text("".join(f"{docid}\n" for docid in texts))
    np.save(tmp_path / "queries.npy", np.ones((1, 4), dtype=np.float32))
    Run.from_dict({"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}).write(tmp_path / "run.txt")
    return tmp_path


def made_index(collection: Path) -> Path:
    """An index of the collection's documents, with texts, whose vectors are those of the collection."""
    faiss = pytest.importorskip("faiss")
    from rnnreranker.data.documents import load_documents
    from rnnreranker.parts.texts import CorpusWriter

    folder = collection / "index"
    folder.mkdir()
    index = faiss.IndexFlatIP(4)
    index.add(np.load(collection / "vectors.npy"))
    faiss.write_index(index, str(folder / "index"))
    (folder / "docid").write_text((collection / "vectors.ids").read_text())
    with CorpusWriter(folder) as writer:
        for document in load_documents(str(collection / "documents.jsonl")):
            writer.add(document)
    return folder


def test_a_reranker_works_on_the_command_line(command: Command, collection: Path) -> None:
    argv = ["--index", made_index(collection), "--topics", collection / "topics.tsv", "--run", collection / "run.txt"]
    argv += ["--output", collection / "out.txt"]
    done = command("search", *argv, "--rerank", "by-length:words_wanted=2")
    assert done.returncode == 0, done.stderr
    assert Run.read(collection / "out.txt")["q1"] == [("d3", 0.0), ("d1", -1.0), ("d2", -2.0)]
    wrong = command("search", *argv, "--rerank", "by-length:words_wanted=0")
    said = "error: --rerank by-length:words_wanted=0: words_wanted=0: expected an integer >= 1\n"
    assert (wrong.returncode, wrong.stderr) == (2, said)


def test_an_encoder_makes_an_index_and_its_queries(command: Command, collection: Path) -> None:
    assert "hashed" in command("index", "--help").stdout
    index = collection / "made"
    argv = ["--documents", collection / "documents.jsonl", "--encoder", "hashed", "--output", index]
    assert command("index", *argv).returncode == 0
    described = json.loads((index / "rnnreranker.json").read_text())
    assert "hashed" in json.dumps(described)
    searching = ["--index", index, "--topics", collection / "topics.tsv", "--rerank", "none"]
    done = command("search", *searching, "--output", collection / "dense.txt")
    assert done.returncode == 0, done.stderr
    assert Run.read(collection / "dense.txt").ranked("q1") == ["d1", "d3", "d2"]
    unknown = command("index", "--documents", collection / "documents.jsonl", "--encoder", "hashd", "--output", "x")
    assert (unknown.returncode, "did you mean hashed?" in unknown.stderr) == (2, True)


def test_a_labeler_makes_labels(command: Command, collection: Path) -> None:
    assert "shared-words" in command("labels", "--help").stdout
    (collection / "qrels.txt").write_text("q1 0 d3 1\n")
    argv = ["--index", made_index(collection), "--topics", collection / "topics.tsv", "--run", collection / "run.txt"]
    argv += ["--qrels", collection / "qrels.txt", "--output", collection / "labels.parquet", "--normalization", "none"]
    done = command("labels", "--method", "shared-words:of_query=0.25", *argv, "--context", "3")
    assert done.returncode == 0, done.stderr
    labels = SoftLabels.read(collection / "labels.parquet")
    assert (labels["q1"].docids, labels["q1"].scores.tolist()) == (["d3", "d1", "d2"], [1.75, 1.0, 1.0])
    assert labels.metadata["params"] == {"of_query": 0.25, "context": 3}
    without = command("labels", "--method", "shared-words", *argv[4:])
    said = "error: --method shared-words needs --index (where texts come from); "
    assert (without.returncode, without.stderr) == (
        2,
        f"{said}--method shared-words needs --topics (the queries)\n",
    )


def test_a_loss_trains_by_flag_and_by_preset_file(command: Command, tmp_path: Path) -> None:
    shown = " ".join(command("train", "--help").stdout.split()).replace("- ", "-")
    assert "multi-tier, triplet, best-positive (default: kl)" in shown
    for name in ("index", "tiny"):
        (tmp_path / name).mkdir()
    make_source(tmp_path / "index")
    topics = make_topics()
    (tmp_path / "topics.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in topics.items()))
    hard_labels(make_run(), topics, make_qrels(), len(topics)).write(tmp_path / "labels.parquet")
    (tmp_path / "my.yaml").write_text("train: {loss: {best-positive: {sharpness: 2}}, max_steps: 2}\n")
    argv = ["--index", tmp_path / "index", "--topics", tmp_path / "topics.tsv", "--labels", tmp_path / "labels.parquet"]
    argv += ["--encoder", f"{make_encoder(tmp_path / 'tiny')}:pooling=mean", "--device", "cpu"]
    argv += ["--output", tmp_path / "out", "--preset", tmp_path / "my.yaml"]
    done = command("train", *argv, "--loss", "best-positive:sharpness=0.5")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    assert (record["params"]["loss"], record["params"]["sharpness"]) == ("best-positive", 0.5)
    assert record["history"][0]["loss"] != record["history"][0]["kl"]


def test_a_retriever_works_alone_and_joined_with_others(command: Command, collection: Path) -> None:
    shown = " ".join(command("search", "--help").stdout.split()).replace("- ", "-")
    assert "topic-words, hybrid (bm25+dense), A+B, auto (default)" in shown
    settings = " ".join(command("__main__", "methods", "topic-words").stdout.split())
    assert "shortest_word=1 letters of the shortest word that counts" in settings
    (collection / "topics.tsv").write_text("q1\tthe wing of it\n")
    argv = [
        "--index",
        made_index(collection),
        "--topics",
        collection / "topics.tsv",
        "--output",
        collection / "out.txt",
    ]
    done = command("search", *argv, "--retriever", "topic-words:shortest_word=3", "--rerank", "none")
    assert done.returncode == 0, done.stderr
    assert Run.read(collection / "out.txt").ranked("q1") == ["d3", "d2", "d1"]
    joined = [
        "--retriever",
        "dense+topic-words",
        "--encoded-queries",
        collection / "queries.npy",
        "--fuse",
        'mean-zero:weights="0,1"',
    ]
    done = command("search", *argv, *joined, "--rerank", "none")
    assert done.returncode == 0, done.stderr
    assert dict(Run.read(collection / "out.txt")["q1"]) == pytest.approx({"d2": 2, "d3": 2, "d1": 1})
    assert (collection / "out.txt").read_text().split()[5] == "dense+topic-words.none"


@pytest.fixture
def coded(command: Command, collection: Path) -> Path:
    """An index of the collection with hashed vectors and codes of them."""
    argv = ["--documents", collection / "documents.jsonl", "--encoder", "hashed", "--output", collection / "coded"]
    done = command("index", *argv, "--parts", "codes:bits=16,dense")
    assert done.returncode == 0, done.stderr
    assert "dense and codes of 3 documents" in done.stderr
    return collection / "coded"


def test_a_part_is_made_searched_and_made_again(command: Command, collection: Path, coded: Path) -> None:
    assert "neighbours, codes, NAME:KEY=VALUE" in " ".join(command("index", "--help").stdout.split()).replace("- ", "-")
    settings = " ".join(command("__main__", "methods", "codes").stdout.split())
    assert "part codes: A bit for each of some drawn directions" in settings
    assert "bits=64 bits of a code: signs of products with drawn directions an integer >= 8" in settings
    described = json.loads((coded / "rnnreranker.json").read_text())
    assert list(described["parts"]) == ["dense", "codes"]
    assert sorted(described["files"]["codes"]) == [
        f"codes/{one}" for one in ("codes.npy", "directions.npy", "docids.txt")
    ]
    searching = ["--index", coded, "--topics", collection / "topics.tsv", "--rerank", "none"]
    done = command("search", *searching, "--retriever", "hamming", "--output", collection / "near.txt")
    assert done.returncode == 0, done.stderr
    assert Run.read(collection / "near.txt")["q1"][0] == ("d1", 0.0)  # the same text
    again = ["--output", coded, "--parts"]
    assert "already complete, 3 documents" in command("index", *again, "codes:bits=16").stderr
    assert "codes of 3 documents" in command("index", *again, "codes:bits=24").stderr
    assert np.load(coded / "codes" / "codes.npy").shape == (3, 3)
    assert command("index", "--append", *_more(collection), "--output", coded).returncode == 0
    assert np.load(coded / "codes" / "codes.npy").shape == (4, 3)
    said = "error: --parts code: code: no such part; did you mean codes?\n"
    assert command("index", *again, "code").stderr == said
    (coded / "codes" / "codes.npy").write_bytes(b"damaged")
    done = command("search", *searching, "--retriever", "hamming", "--output", collection / "lost.txt")
    assert (done.returncode, "codes.npy: has 7 bytes, but was written with" in done.stderr) == (2, True)


def _more(collection: Path) -> list[Path]:
    (collection / "more.jsonl").write_text('{"id": "d4", "contents": "another wing"}\n')
    return [collection / "more.jsonl"]


def test_feedback_and_an_expander(command: Command, collection: Path, coded: Path) -> None:
    shown = " ".join(command("search", "--help").stdout.split()).replace("- ", "-")
    assert "softer: search again" in shown
    assert "nearest-one: more candidates" in shown
    assert command("index", "--output", coded, "--parts", "neighbours:k=2").returncode == 0
    searching = ["--index", coded, "--topics", collection / "topics.tsv", "--retriever", "dense", "--rerank", "none"]
    for flags in (["--prf", "softer:share=1"], ["--hits", "2", "--expand", "nearest-one:of_first=1"]):
        done = command("search", *searching, *flags, "--output", collection / "out.txt")
        assert done.returncode == 0, done.stderr
    assert Run.read(collection / "out.txt").ranked("q1") == ["d1", "d3"]


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A cache of the hub in which the other package's three models are, made of a few numbers."""
    pytest.importorskip("sentence_transformers")
    from rnnreranker.encode.late import make_late_base

    cache = tmp_path / "hub"
    snapshots = {
        name: cache / f"models--somebody--{name}-files" / "snapshots" / "0" for name in ("sparse", "late", "cross")
    }
    for snapshot in snapshots.values():
        snapshot.mkdir(parents=True)
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("0")
    make_masked(snapshots["sparse"])
    make_cross_encoder(snapshots["cross"])
    words = [*WORDS, *string.punctuation, "[unused0]", "[unused1]"]
    (tmp_path / "bert").mkdir()
    snapshots["late"].rmdir()
    make_late_base(str(make_encoder(tmp_path / "bert", words)), snapshots["late"], 16)
    return cache


def test_models_of_theirs_encode_and_score(
    hub: Path, outside_methods: dict[str, str], home: Path, collection: Path
) -> None:
    """A sparse and a late encoder make parts of an index that is searched, a cross-encoder reranks what comes of it."""
    environment = {**outside_methods, "RNNRERANKER_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(hub)}

    def run(module: str, *argv: str) -> None:
        words = [sys.executable, "-m", f"rnnreranker.{module}", *argv]
        done = subprocess.run(words, cwd=collection, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    parts = "impact:encoder=sparse-files,tokens:encoder=late-files"
    run("index", "--documents", "documents.jsonl", "--output", "new", "--parts", parts)
    kept = json.loads((collection / "new" / "rnnreranker.json").read_text())["parts"]
    assert "sparse-files" in json.dumps(kept["impact"])
    assert "late-files" in json.dumps(kept["tokens"])
    for retriever in ("impact", "late"):
        argv = ["--index", "new", "--topics", "topics.tsv", "--retriever", retriever, "--output", f"{retriever}.txt"]
        run("search", *argv, "--rerank", "cross-encoder:model=cross-files")
        assert {*Run.read(collection / f"{retriever}.txt").ranked("q1")} <= {"d1", "d2", "d3"}
    assert len(Run.read(collection / "late.txt").ranked("q1")) == 3


def test_a_kind_of_model_in_a_study(command: Command, tmp_path: Path) -> None:
    """One file says how it is tested; its arms are YAML, or words of a line."""
    pytest.importorskip("sentence_transformers")
    world = write_text_world(tmp_path)
    encoder = make_encoder(world / "dense")
    rows = make_qrels().itertuples(index=False)
    (world / "qrels.txt").write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in rows))
    argv = ["--documents", world / "documents.jsonl", "--encoder", f"{encoder}:pooling=mean"]
    made = command("index", *argv, "--output", world / "index")
    assert made.returncode == 0, made.stderr
    argv = [
        "--index",
        world / "index",
        "--topics",
        world / "topics.tsv",
        "--qrels",
        world / "qrels.txt",
        "--folds",
        "2",
    ]
    argv += ["--model", "as-it-is:note=one", "--arms", "first", "second:note=two,labels=run", "--against", "first"]
    argv += ["--encoder", str(encoder), "--first-stages", "dense", "--seeds", "1", "--output", world / "study.json"]
    done = command("study", *argv)
    assert done.returncode == 0, done.stderr
    (record,) = json.loads((world / "study.json").read_text())["records"]
    values = {row["arm"]: row["value"] for row in record["outcome"]["rows"] if row["measure"] == "nDCG@10"}
    assert list(values) == ["base", "first", "second"]
    assert values["base"] == values["first"] == values["second"] > 0
    last = record["outcome"]["rows"][-1]
    assert set(last["against"]) == {"base", "first"}
