"""Methods of another package, a file each: in the help, in YAML, in a plan and on a page, with nothing changed here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from query_sets import write_judged, write_queries, write_texts
from tiny_encoder import (
    LATE_WORDS,
    make_cross_encoder,
    make_encoder,
    make_masked,
    make_qrels,
    make_run,
    make_source,
    make_topics,
    record_of,
    write_text_world,
)

from rnnreranker import Run, SoftLabels
from rnnreranker.train.request import hard_labels

pytestmark = pytest.mark.long  # every test starts commands
Command = Callable[..., subprocess.CompletedProcess[str]]


def flowed(done: subprocess.CompletedProcess[str]) -> str:
    """What it printed, in one line."""
    return " ".join(done.stdout.split()).replace("- ", "-")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A folder with documents.tsv, vectors.npy and .ids, topics.tsv, queries.npy and run.txt."""
    texts = {"d1": "wing", "d2": "wing of a plane", "d3": "the wing"}
    write_texts(tmp_path / "documents.tsv", texts)
    (tmp_path / "topics.tsv").write_text("q1\twing\n")
    write_queries(tmp_path / "vectors.npy", texts, np.eye(3, 4))
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
        for document in load_documents(str(collection / "documents.tsv")):
            writer.add(document)
    return folder


def test_a_reranker_works_on_the_command_line(command: Command, collection: Path) -> None:
    line = f"search --index {made_index(collection)} --topics {collection}/topics.tsv --run {collection}/run.txt"
    line += f" --output {collection}/out.txt --rerank by-length:words_wanted"
    command(f"{line}=2")
    assert Run.read(collection / "out.txt")["q1"] == [("d3", 0.0), ("d1", -1.0), ("d2", -2.0)]
    said = "error: --rerank by-length:words_wanted=0: words_wanted=0: expected an integer >= 1\n"
    assert command(f"{line}=0", 2).stderr == said


def test_an_encoder_makes_an_index_and_its_queries(command: Command, collection: Path) -> None:
    assert "hashed" in command("index --help").stdout
    index = collection / "made"
    making = f"index --documents {collection}/documents.tsv --encoder"
    command(f"{making} hashed --output {index}")
    described = json.loads((index / "rnnreranker.json").read_text())
    assert "hashed" in json.dumps(described)
    searching = f"search --index {index} --topics {collection}/topics.tsv --rerank none"
    command(f"{searching} --output {collection}/dense.txt")
    assert Run.read(collection / "dense.txt").ranked("q1") == ["d1", "d3", "d2"]
    assert "did you mean hashed?" in command(f"{making} hashd --output x", 2).stderr


def test_a_labeler_makes_labels(command: Command, collection: Path) -> None:
    assert "shared-words" in command("labels --help").stdout
    (collection / "qrels.txt").write_text("q1 0 d3 1\n")
    inputs = f"--index {made_index(collection)} --topics {collection}/topics.tsv"
    line = f"--run {collection}/run.txt --qrels {collection}/qrels.txt --output {collection}/labels.parquet"
    line += " --normalization none --method shared-words"
    command(f"labels {inputs} {line}:of_query=0.25 --context 3")
    labels = SoftLabels.read(collection / "labels.parquet")
    assert (labels["q1"].docids, labels["q1"].scores.tolist()) == (["d3", "d1", "d2"], [1.75, 1.0, 1.0])
    assert labels.metadata["params"] == {"of_query": 0.25, "context": 3}
    said = "error: --method shared-words needs --index (where texts come from); "
    said += "--method shared-words needs --topics (the queries)\n"
    assert command(f"labels {line}", 2).stderr == said


def test_a_loss_trains_by_flag_and_by_preset_file(command: Command, tmp_path: Path) -> None:
    shown = flowed(command("train --help"))
    assert "multi-tier, triplet, best-positive (default: kl)" in shown
    make_source(tmp_path / "index")
    topics = make_topics()
    write_texts(tmp_path / "topics.tsv", topics)
    hard_labels(make_run(), topics, make_qrels(), len(topics)).write(tmp_path / "labels.parquet")
    (tmp_path / "my.yaml").write_text("train: {loss: {best-positive: {sharpness: 2}}, max_steps: 2}\n")
    line = f"train --index {tmp_path}/index --topics {tmp_path}/topics.tsv --labels {tmp_path}/labels.parquet"
    line += f" --encoder {make_encoder(tmp_path / 'tiny')}:pooling=mean --device cpu --output {tmp_path}/out"
    command(f"{line} --preset {tmp_path}/my.yaml --loss best-positive:sharpness=0.5")
    record = record_of(tmp_path / "out")
    assert (record["params"]["loss"], record["params"]["sharpness"]) == ("best-positive", 0.5)
    assert record["history"][0]["loss"] != record["history"][0]["kl"]


def test_a_retriever_works_alone_and_joined_with_others(command: Command, collection: Path) -> None:
    shown = flowed(command("search --help"))
    assert "topic-words, hybrid (bm25+dense), A+B, auto (default)" in shown
    settings = flowed(command("__main__ methods topic-words"))
    assert "shortest_word=1 letters of the shortest word that counts" in settings
    (collection / "topics.tsv").write_text("q1\tthe wing of it\n")
    line = f"search --index {made_index(collection)} --topics {collection}/topics.tsv --output {collection}/out.txt"
    line += " --rerank none --retriever"
    command(f"{line} topic-words:shortest_word=3")
    assert Run.read(collection / "out.txt").ranked("q1") == ["d3", "d2", "d1"]
    joined = f"dense+topic-words --encoded-queries {collection}/queries.npy"
    command(f"""{line} {joined} --fuse 'mean-zero:weights="0,1"'""")
    assert dict(Run.read(collection / "out.txt")["q1"]) == pytest.approx({"d2": 2, "d3": 2, "d1": 1})
    assert (collection / "out.txt").read_text().split()[5] == "dense+topic-words.none"


@pytest.fixture
def coded(command: Command, collection: Path) -> Path:
    """An index of the collection with hashed vectors and codes of them."""
    line = f"index --documents {collection}/documents.tsv --encoder hashed --output {collection}/coded"
    assert "dense and codes of 3 documents" in command(f"{line} --parts codes:bits=16,dense").stderr
    return collection / "coded"


def test_a_part_is_made_searched_and_made_again(command: Command, collection: Path, coded: Path) -> None:
    assert "neighbours, codes, NAME:KEY=VALUE" in flowed(command("index --help"))
    settings = flowed(command("__main__ methods codes"))
    assert "part codes: A bit for each of some drawn directions" in settings
    assert "bits=64 bits of a code: signs of products with drawn directions an integer >= 8" in settings
    described = json.loads((coded / "rnnreranker.json").read_text())
    assert list(described["parts"]) == ["dense", "codes"]
    assert sorted(described["files"]["codes"]) == [
        f"codes/{one}" for one in ("codes.npy", "directions.npy", "docids.txt")
    ]
    searching = f"search --index {coded} --topics {collection}/topics.tsv --rerank none --retriever hamming --output"
    command(f"{searching} {collection}/near.txt")
    assert Run.read(collection / "near.txt")["q1"][0] == ("d1", 0.0)  # the same text
    again = f"index --output {coded} --parts"
    assert "already complete, 3 documents" in command(f"{again} codes:bits=16").stderr
    assert "codes of 3 documents" in command(f"{again} codes:bits=24").stderr
    assert np.load(coded / "codes" / "codes.npy").shape == (3, 3)
    write_texts(collection / "more.tsv", {"d4": "another wing"})
    command(f"index --append {collection}/more.tsv --output {coded}")
    assert np.load(coded / "codes" / "codes.npy").shape == (4, 3)
    said = "error: --parts code: code: no such part; did you mean codes?\n"
    assert command(f"{again} code", 2).stderr == said
    (coded / "codes" / "codes.npy").write_bytes(b"damaged")
    assert "codes.npy: has 7 bytes, but was written with" in command(f"{searching} {collection}/lost.txt", 2).stderr


def test_feedback_and_an_expander(command: Command, collection: Path, coded: Path) -> None:
    shown = flowed(command("search --help"))
    assert "softer: search again" in shown
    assert "nearest-one: more candidates" in shown
    command(f"index --output {coded} --parts neighbours:k=2")
    searching = f"search --index {coded} --topics {collection}/topics.tsv --retriever dense --rerank none"
    for flags in ("--prf softer:share=1", "--hits 2 --expand nearest-one:of_first=1"):
        command(f"{searching} {flags} --output {collection}/out.txt")
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
    snapshots["late"].rmdir()
    make_late_base(str(make_encoder(tmp_path / "bert", LATE_WORDS)), snapshots["late"], 16)
    return cache


def test_models_of_theirs_encode_and_score(hub: Path, command: Command, collection: Path) -> None:
    """A sparse and a late encoder make parts of an index that is searched, a cross-encoder reranks what comes of it."""
    cache, parts = {"HF_HUB_CACHE": str(hub)}, "impact:encoder=sparse-files,tokens:encoder=late-files"
    command(f"index --documents {collection}/documents.tsv --output {collection}/new --parts {parts}", **cache)
    kept = json.loads((collection / "new" / "rnnreranker.json").read_text())["parts"]
    assert "sparse-files" in json.dumps(kept["impact"])
    assert "late-files" in json.dumps(kept["tokens"])
    for retriever in ("impact", "late"):
        line = f"search --index {collection}/new --topics {collection}/topics.tsv --retriever {retriever}"
        command(f"{line} --output {collection}/{retriever}.txt --rerank cross-encoder:model=cross-files", **cache)
        assert {*Run.read(collection / f"{retriever}.txt").ranked("q1")} <= {"d1", "d2", "d3"}
    assert len(Run.read(collection / "late.txt").ranked("q1")) == 3


def test_a_kind_of_model_in_a_study(command: Command, tmp_path: Path) -> None:
    """One file says how it is tested; its arms are YAML, or words of a line."""
    pytest.importorskip("sentence_transformers")
    world = write_text_world(tmp_path)
    encoder = make_encoder(world / "dense")
    write_judged(world, make_topics(), make_qrels().itertuples(index=False))
    command(f"index --documents {world}/documents.jsonl --encoder {encoder}:pooling=mean --output {world}/index")
    line = f"study --index {world}/index --topics {world}/topics.tsv --qrels {world}/qrels.txt --folds 2 --seeds 1"
    line += " --model as-it-is:note=one --arms first second:note=two,labels=run --against first"
    command(f"{line} --encoder {encoder} --first-stages dense --output {world}/study.json")
    (record,) = json.loads((world / "study.json").read_text())["records"]
    values = {row["arm"]: row["value"] for row in record["outcome"]["rows"] if row["measure"] == "nDCG@10"}
    assert list(values) == ["base", "first", "second"]
    assert values["base"] == values["first"] == values["second"] > 0
    last = record["outcome"]["rows"][-1]
    assert set(last["against"]) == {"base", "first"}
