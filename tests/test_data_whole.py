"""Data that are cut off or lack a file are told before the first step; those yet to be downloaded are not."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from rehearsal.miniatures import Texts, write_datasets

from rnnreranker.regress.plans.obstacles import check_readable

pytest.importorskip("ir_datasets")
CHECKS = """
import json, sys
from rnnreranker.base.errors import RnnrerankerError
from rnnreranker.regress.plans.obstacles import check_readable
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
    ("pydoc", "topics"),
]


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


def test_whole_data_pass_and_each_damaged_file_is_one_line(tmp_path):
    variables = write_datasets(Texts(), tmp_path)
    home = tmp_path / "ir_datasets"
    assert told(tmp_path, variables) == {}
    cut(home / "msmarco-passage/collectionandqueries.tar.gz")
    (home / "msmarco-passage/train/qrels").unlink()
    said = told(tmp_path, variables)
    assert {"documents msmarco-passage", "qrels msmarco-passage/train/judged"} <= said.keys()
    assert all("\n" not in line for line in said.values())
    assert "cut off or damaged" in said["documents msmarco-passage"]
    assert "delete it and get it again" in said["documents msmarco-passage"]
    assert "the qrels are not in" in said["qrels msmarco-passage/train/judged"]


def test_what_nobody_has_begun_to_download_is_not_looked_at(tmp_path):
    assert told(tmp_path, {"IR_DATASETS_HOME": str(tmp_path / "none")}) == {}


def test_a_file_of_judgements_is_read(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    check_readable(str(tmp_path / "qrels.txt"), "qrels")
    with gzip.open(tmp_path / "topics.tsv.gz", "wt") as stream:
        stream.write("q1\twhat\n")
    check_readable(str(tmp_path / "topics.tsv.gz"), "topics")
