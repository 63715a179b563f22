"""Methods of another package in YAML, in a plan, in a run and on a page, with nothing changed here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from query_sets import write_texts

from rnnreranker.base.record import read_records

Command = Callable[..., Any]
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
    write_texts(tmp_path / "documents.tsv", texts)
    (tmp_path / "topics.tsv").write_text("q1\twing\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d3 2\n")
    text = SPEC.replace("DOCUMENTS", str(tmp_path / "documents.tsv")).replace("TOPICS", str(tmp_path / "topics.tsv"))
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "small.yaml").write_text(text.replace("QRELS", str(tmp_path / "qrels.txt")))
    return folder


def test_their_settings_are_checked_with_file_and_line(command: Command, specs: Path) -> None:
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
    done = command(f"regress small --specs {specs} --dry-run", 2)
    for said in (
        "small.yaml:6: main: --parts codes:bits=4: bits=4: expected an integer >= 8",
        "small.yaml:13: of_query=2: expected a finite number >= 0 and <= 1",
        "small.yaml:14: --model query: --loss best-positives:sharpness=2: best-positives: no such loss; did you mean",
        "small.yaml:18: no setting shortest, did you mean shortest_word?",
        "small.yaml:21: words_wanted=0: expected an integer >= 1",
    ):
        assert said in done.stderr, done.stderr


@pytest.mark.long
def test_they_run_and_stand_on_the_page(command: Command, specs: Path, tmp_path: Path) -> None:
    command(f"regress small --specs {specs} --output {tmp_path}/work --only length --only near --record")
    records = {record.name: record for record in read_records(specs / "results" / "small.json")}
    assert records["length"].outcome["values"]["trec"]["RR@10"] == 1.0  # d3 alone has two words
    command(f"regress --docs --specs {specs} --docs-folder {tmp_path}/docs")
    page = (tmp_path / "docs" / "regressions" / "small.md").read_text()
    assert "| by length | 1.0000 |" in page
    assert "| near codes |" in page
    assert "--parts codes:bits=16" in page
    assert "--rerank by-length:words_wanted=2" in page
