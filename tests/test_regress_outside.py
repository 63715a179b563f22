"""Methods of another package in YAML, in a plan, in a run and on a page, with nothing changed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rnnreranker.base.record import read_records

SPEC = """\
schema: 3
name: small
title: Methods of another package
about: One of each kind.
indexes:
  main: {documents: DOCUMENTS, count: 3, parts: {dense: {encoder: hashed}, codes: {bits: 16}}}
query_sets:
  some: {topics: TOPICS, qrels: QRELS}
measures: [RR@10]
models:
  tuned:
    index: main
    labels: {shared-words: {of_query: 0.25, n_max: 2}}
    train: {query: {loss: {best-positive: {sharpness: 2}}, epochs: 1}}
    topics: TOPICS
    qrels: QRELS
conditions:
  words: {title: words of the topic, retrieve: {topic-words: {shortest_word: 2}}}
  dense: {title: hashed vectors, retrieve: {dense: {}}}
  near: {title: near codes, retrieve: {hamming: {}}}
  length: {title: by length, rerank: {by-length: {words_wanted: 2}}, of: words}
  tuned: {title: tuned, retrieve: {dense: {}}, model: tuned}
"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A folder of specs with one that names a method of each kind of the other package."""
    texts = {"d1": "wing", "d2": "wing of a plane", "d3": "the wing"}
    lines = (f'{{"id": "{docid}", "contents": "{text}"}}\n' for docid, text in texts.items())
    (tmp_path / "documents.jsonl").write_text("".join(lines))
    (tmp_path / "topics.tsv").write_text("q1\twing\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d3 2\n")
    text = SPEC.replace("DOCUMENTS", str(tmp_path / "documents.jsonl")).replace("TOPICS", str(tmp_path / "topics.tsv"))
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "small.yaml").write_text(text.replace("QRELS", str(tmp_path / "qrels.txt")))
    return folder


def regress(environment: dict[str, str], *argv: str | Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "rnnreranker.regress", *map(str, argv)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_their_settings_are_checked_with_file_and_line(outside_methods: dict[str, str], specs: Path) -> None:
    text = (specs / "small.yaml").read_text()
    for before, after in (
        ("shortest_word: 2", "shortest: 2"),
        ("words_wanted: 2", "words_wanted: 0"),
        ("bits: 16", "bits: 4"),
        ("of_query: 0.25", "of_query: 2"),
        ("best-positive", "best-positives"),
    ):
        text = text.replace(before, after)
    (specs / "small.yaml").write_text(text)
    done = regress(outside_methods, "small", "--specs", specs, "--dry-run")
    assert done.returncode == 2
    for said in (
        "small.yaml:6: main: --parts codes:bits=4: bits=4: expected an integer >= 8",
        "small.yaml:13: of_query=2: expected a finite number >= 0 and <= 1",
        "small.yaml:14: --model query: --loss best-positives:sharpness=2: best-positives: no such loss; did you mean",
        "small.yaml:18: no setting shortest, did you mean shortest_word?",
        "small.yaml:21: words_wanted=0: expected an integer >= 1",
    ):
        assert said in done.stderr, done.stderr


@pytest.mark.long
def test_they_run_and_stand_on_the_page(outside_methods: dict[str, str], specs: Path, tmp_path: Path) -> None:
    argv = ["--specs", specs, "--output", tmp_path / "work", "--only", "length", "--only", "near", "--record"]
    done = regress({**outside_methods, "RNNRERANKER_HOME": str(tmp_path / "home")}, "small", *argv)
    assert done.returncode == 0, done.stderr
    records = {record.name: record for record in read_records(specs / "results" / "small.json")}
    assert records["length"].outcome["values"]["trec"]["RR@10"] == 1.0  # d3 alone has two words
    done = regress(outside_methods, "--docs", "--specs", specs, "--docs-folder", tmp_path / "docs")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "docs" / "regressions" / "small.md").read_text()
    assert "| by length | 1.0000 |" in page
    assert "| near codes |" in page
    assert "--parts codes:bits=16" in page
    assert "--rerank by-length:words_wanted=2" in page
