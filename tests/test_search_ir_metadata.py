"""The file of ir_metadata beside a run: its six components, what it keeps to itself, and repro_eval reading it back."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rnnreranker import InputError, Run
from rnnreranker.search.__main__ import main
from rnnreranker.search.ir_metadata import file_beside, local_name, shown_command

COMPONENTS = ("platform", "research goal", "implementation", "method", "actor", "data")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """An index of 20 documents, and 3 queries."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "home-of-ada"
    (folder / "index").mkdir(parents=True)
    np.save(folder / "index" / "vectors.npy", rng.normal(size=(20, 8)).astype(np.float32))
    (folder / "index" / "docid").write_text("".join(f"d{number}\n" for number in range(20)))
    np.save(folder / "queries.npy", rng.normal(size=(3, 8)).astype(np.float32))
    (folder / "queries.ids").write_text("q0\nq1\nq2\n")
    (folder / "topics.tsv").write_text("".join(f"q{number}\tquestion {number}\n" for number in range(3)))
    (folder / "qrels.txt").write_text("".join(f"q{number} 0 d{number} 1\n" for number in range(3)))
    return folder


def search(world: Path, output: str, *more: str) -> dict[str, Any]:
    flags = ["--index", str(world / "index"), "--topics", str(world / "topics.tsv")]
    flags += ["--encoded-queries", str(world / "queries.npy"), "--output", str(world / output), *more]
    assert main(flags) == 0
    beside = file_beside(world / output)
    assert beside is not None
    found: dict[str, Any] = yaml.safe_load(beside.read_text(encoding="utf-8"))
    return found


def test_a_run_has_its_metadata_beside_it(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RNNRERANKER_ACTOR", raising=False)
    found = search(world, "run.txt", "--k", "5", "--qrels", str(world / "qrels.txt"), "--measures", "nDCG@10 RR@10")
    assert (world / "run.ir-metadata.yml").is_file()
    assert list(found) == ["schema-version", "run-version", "tag", *COMPONENTS]
    assert (found["tag"], found["actor"]) == ("dense.rnn", {})
    assert found["method"]["automatic"] is True
    dense, rnn = found["method"]["retrieval"]
    assert (dense["name"], dense["depth"]) == ("dense", 1000)
    assert (rnn["name"], rnn["reranks"]) == ("rnn", "dense")
    assert (rnn["params"]["k"], rnn["params"]["from"]) == (5, "vectors")
    assert rnn["method"].startswith("rnnreranker.methods.rerank.rnn.")
    assert found["research goal"] == {
        "evaluation": {"reported measures": ["nDCG@10", "RR@10"], "protocol": "trec", "baseline": ["dense.none"]}
    }
    assert found["data"]["test collection"] == {"name": "index", "qrels": "qrels.txt", "topics": "topics.tsv"}
    assert set(found["platform"]) == {"hardware", "operating system", "software"}
    assert any(one.startswith("numpy==") for one in found["platform"]["software"]["libraries"]["python"])
    assert found["platform"]["software"]["retrieval toolkit"][0].startswith("rnnreranker==")
    text = (world / "run.ir-metadata.yml").read_text()
    assert "home-of-ada" not in text
    assert "--encoded-queries queries.npy" in found["implementation"]["executable"]["cmd"]
    assert search(world, "run.txt", "--k", "5")["research goal"] == {"evaluation": {"baseline": ["dense.none"]}}


def test_every_stage_names_the_one_before(world: Path) -> None:
    search(world, "first.txt", "--rerank", "none", "--tag", "mine")
    again = search(world, "second.tsv", "--run", str(world / "first.txt"), "--rerank", "rnn", "--rerank", "rnn:k=3")
    given, one, other = again["method"]["retrieval"]
    assert given == {"name": "first.txt", "run": "first.txt", "depth": 1000}
    assert (one["reranks"], other["name"], other["reranks"]) == ("first.txt", "rnn 3", "rnn")
    assert again["research goal"] == {}
    assert again["tag"] == "run.rnn.rnn"


@pytest.mark.parametrize(
    ("run", "file"),
    [
        ("run.txt", "run.ir-metadata.yml"),
        ("a/run.trec.gz", "a/run.ir-metadata.yml"),
        ("bm25.rnn", "bm25.rnn.ir-metadata.yml"),
        (".txt", ".txt.ir-metadata.yml"),
    ],
)
def test_names_of_files(run: str, file: str) -> None:
    assert file_beside(run) == Path(file)


def test_who_made_the_run_is_said_where_it_is_given(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RNNRERANKER_ACTOR", "team=h2oloo,name=Ada,github=https://github.com/ada,fields=ir;nlp")
    found = search(world, "run.txt")["actor"]
    assert found == {"team": "h2oloo", "name": "Ada", "github": "https://github.com/ada", "fields": ["ir", "nlp"]}
    for said, message in (("tem=x", "no setting tem, did you mean team"), ("Ada", "expected KEY=VALUE,KEY=VALUE")):
        monkeypatch.setenv("RNNRERANKER_ACTOR", said)
        shutil.rmtree(world / "out", ignore_errors=True)
        with pytest.raises(InputError, match=message):
            search(world, "not-written.txt")
        assert not (world / "not-written.txt").exists()


def test_paths_of_this_machine_are_not_told() -> None:
    words = ["--index=/home/ada/x", "--run", "~/runs/a b.txt", "--rerank", "scorer:model=/home/ada/m,batch_size=2"]
    assert shown_command(words) == (
        "python -m rnnreranker.search --index=x --run 'a b.txt' --rerank scorer:model=m,batch_size=2"
    )
    assert shown_command(["--aggregate", "maxp:passages=../ada/map.tsv"]).endswith("maxp:passages=map.tsv")
    assert shown_command(["--query", "a /b/c"]).endswith("--query 'a /b/c'")
    assert local_name("C:\\ada\\bm25.txt") == "bm25.txt"


def test_repro_eval_reads_it(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("git", reason="GitPython, which repro_eval asks for, is not installed")
    pytest.importorskip("repro_eval", reason="repro_eval is not installed")
    if importlib.util.find_spec("pkg_resources") is None:  # repro_eval 0.5 imports it; setuptools 82 has none any more
        monkeypatch.setitem(sys.modules, "pkg_resources", types.ModuleType("pkg_resources"))
    from repro_eval.metadata import MetadataHandler

    monkeypatch.setattr("rnnreranker.search.ir_metadata.commit", lambda: "0043e382")  # a number for YAML 1.2
    annotated = world / "annotated"
    annotated.mkdir()
    found = search(world, "one.txt")
    handler = MetadataHandler(str(world / "one.txt"), str(world / "one.ir-metadata.yml"))
    assert handler.get_metadata() == found
    handler.write_metadata(str(annotated / "one.txt"))
    assert MetadataHandler.read_metadata(str(annotated / "one.txt")) == found
    stripped = MetadataHandler.strip_metadata(str(annotated / "one.txt"))
    run = Run.read(world / "one.txt")
    assert {qid: list(own) for qid, own in stripped.items()} == {qid: run.ranked(qid) for qid in run}
