"""Data that are cut off or lack a file are told before the first step; those yet to be downloaded are not."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from rnnreranker.regress.plans.whole import check_readable
from rnnreranker.regress.rehearsal.datasets.families import write_datasets
from rnnreranker.regress.rehearsal.source import Source

pytest.importorskip("ir_datasets")
CHECKS = """
import json, sys
from rnnreranker.base.errors import RnnrerankerError
from rnnreranker.regress.plans.whole import check_readable
said = {}
for name, part in json.loads(sys.argv[1]):
    try:
        check_readable(name, part)
    except RnnrerankerError as error:
        said[f"{part} {name}"] = f"{type(error).__name__} {error}"
print(json.dumps(said))
"""
READ = [
    ("msmarco-passage", "documents"),
    ("msmarco-passage/dev/small", "qrels"),
    ("msmarco-passage/train/judged", "qrels"),
    ("dl19", "topics"),
    ("msmarco-passage-v2", "documents"),
    ("msmarco-passage-v2/dev1", "topics"),
    ("tripclick", "documents"),
    ("tripclick-head-test", "topics"),
    ("tripclick-head-val-dctr", "qrels"),
    ("reqa-nq:cold-1-train", "topics"),
    ("beir/scifact/test", "documents"),
    ("pydoc", "topics"),
]
WANTED = [name for name, _ in READ if name not in ("pydoc", "dl19")]


@pytest.fixture(scope="module")
def source():
    return Source.of(documents=200, topics=8)


def told(folder, variables):
    """What is said of the names, where nothing can be downloaded."""
    own = {"RNNRERANKER_HOME": str(folder / "home"), "IR_DATASETS_DL_TRIES": "1"}
    own |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-c", CHECKS, json.dumps(READ)],
        env={**os.environ, **variables, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def test_whole_data_pass_and_each_damaged_file_is_one_line(source, tmp_path):
    variables = write_datasets(source, tmp_path, WANTED)
    home = tmp_path / "ir_datasets"
    assert told(tmp_path, variables) == {}
    cut(home / "msmarco-passage/collectionandqueries.tar.gz")
    cut(home / "msmarco-passage-v2/msmarco_v2_passage.tar")
    cut(home / "beir/scifact/source.zip")
    cut(tmp_path / "collections/reqa-nq/simplified-nq-train.jsonl.gz")
    (home / "msmarco-passage/train/qrels").unlink()
    (tmp_path / "tripclick/benchmark/qrels/qrels.dctr.head.val.txt").write_text("1 0 d1\n")
    said = told(tmp_path, variables)
    assert said.keys() == {
        "documents msmarco-passage",
        "qrels msmarco-passage/train/judged",
        "documents msmarco-passage-v2",
        "qrels tripclick-head-val-dctr",
        "topics reqa-nq:cold-1-train",
        "documents beir/scifact/test",
    }
    assert all("\n" not in line for line in said.values())
    for name in ("msmarco-passage", "msmarco-passage-v2", "beir/scifact/test"):
        assert "cut off or damaged" in said[f"documents {name}"]
        assert "delete it and get it again" in said[f"documents {name}"]
    assert "the qrels are not in" in said["qrels msmarco-passage/train/judged"]
    assert "qrels.dctr.head.val.txt:1" in said["qrels tripclick-head-val-dctr"]


def test_what_nobody_has_begun_to_download_is_not_looked_at(tmp_path):
    assert told(tmp_path, {"IR_DATASETS_HOME": str(tmp_path / "none"), "TRIPCLICK_HOME": ""}).keys() <= {
        "topics reqa-nq:cold-1-train"  # the runner has said before that its files are not here
    }


def test_a_file_of_judgements_is_read(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    check_readable(str(tmp_path / "qrels.txt"), "qrels")
    with gzip.open(tmp_path / "topics.tsv.gz", "wt") as stream:
        stream.write("q1\twhat\n")
    check_readable(str(tmp_path / "topics.tsv.gz"), "topics")
