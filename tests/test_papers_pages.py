"""The pages of the regressions: those in docs are what the command writes, and they say what is on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.record import Record, write_records
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.papers.matrix import Matrix, counted
from rnnreranker.regress.papers.site import shown, write_pages
from rnnreranker.regress.records import records_file

SPEC = """\
schema: 3
name: small
title: A small spec
about: Two systems.
query_sets:
  few: {topics: topics.tsv, qrels: qrels.txt, runs: "*"}
measures: [nDCG@10, RR@10]
indexes:
  words: {prebuilt: one, parts: {dense: {encoder: some-encoder}, bm25: {}}, needs: {download_gb: 2.5, disk_gb: 7}}
conditions:
  bm25: {title: BM25, retrieve: {bm25: {k1: 0.9}}, runs: ["bm25.txt"]}
  other: {title: Other, rerank: {rnn: {k: 12}}, of: bm25, runs: ["other.txt"]}
  later: {title: Later, retrieve: {bm25: {}}}
"""
PAPER = """\
schema: 3
name: paper-009
title: A paper
citation: A. Author, Its title, VENUE 2026
tables:
  - table: "1"
    caption: Two systems
    columns: [{dataset: Set, measures: [nDCG@10 x100, RR@10 x100], decimals: 1, query_set: few, tuned: [reranking]}]
    twins: [few]
    twins_note: The same set stands in for another.
    rows:
      - {row: BM25, condition: bm25, values: [[50.0, 40.0]], twin: bm25}
      - {row: Other, condition: other, values: [[60.0, 90.0]], remarks: {"RR@10 x100": another version}, twin: other}
      - {row: Later, condition: later, planned: no method for it, values: [[70.0, null]]}
  - table: "2"
    caption: Query by query
    columns: [{dataset: Set, measures: [nDCG@10 x100], decimals: 1, query_set: few, queries: [1, 2]}]
    rows:
      - {row: BM25, condition: bm25, values: [[33.3, 66.7]], remarks: {"2": cut off}}
"""


def measured(condition: str, ndcg: float, rr: float, **more: Any) -> Record:
    values = {"trec": {"nDCG@10": ndcg, "RR@10": rr}}
    outcome = {"query_set": "few", "depth": 10, "topics": 2, "values": values, "file": f"{condition}.txt", **more}
    about = {"commit": "abc1234", "date": "2026-01-02T03:04:05+00:00", "inputs": {"run": f"sha-{condition}"}}
    return Record("run", "small", condition, outcome, **about)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "regressions"
    (folder / "papers").mkdir(parents=True)
    (folder / "results").mkdir()
    (folder / "small.yaml").write_text(SPEC, encoding="utf-8")
    (folder / "papers" / "paper-009.yaml").write_text(PAPER, encoding="utf-8")
    queries = {"trec": {"nDCG@10": {"1": 0.33333, "2": 0.66649}}}
    bm25 = measured("bm25", 0.5004, 0.4, queries=queries)
    queries = {"trec": {"nDCG@10": {"1": 0.5, "2": 0.7}}}
    other = measured("other", 0.6, 0.8, queries=queries)
    write_records(records_file(folder, "small"), [bm25, other])
    return folder


def test_the_page_of_a_paper(folder: Path, tmp_path: Path) -> None:
    path = folder / "papers" / "paper-009.yaml"
    text = PAPER.replace("caption: Two systems", "caption: Two systems\n    note: Printed twice.")
    path.write_text(text.replace("title: A paper", "title: A paper\nabout: Of two systems."), encoding="utf-8")
    write_pages(folder, out := tmp_path / "out")
    assert sorted(one.name for one in (out / "regressions").iterdir()) == ["README.md", "small.md"]
    page = (out / "matrix" / "paper-009.html").read_text(encoding="utf-8")
    for part in (
        "A. Author, Its title, VENUE 2026.</p>",
        ">Of two systems.</p>",
        ">Printed twice.</p>",
        "† 2 of these values: the paper chose parameters of the system on the very set it reports",
        "The same set stands in for another.",
        '<td title="bm25 on few, 2026-01-02, commit abc1234">.5004</td>',
        "1 of 1<br>τ 1.00",
    ):
        assert part in page, part
    landing = (out / "matrix" / "index.html").read_text(encoding="utf-8")
    assert "The 4 reproduced values are evaluations of published first-stage runs (BM25 3, Other 1)." in landing


@pytest.mark.parametrize(("ndcg", "state"), [(0.50051, "changed"), (0.50049, "reproduced")])
def test_measured_values_are_reproduced_within_half_a_printed_unit(folder: Path, ndcg: float, state: str) -> None:
    """50.051, printed to .1: half a unit is .05."""
    cells = Matrix(folder, measured=[measured("bm25", ndcg, 0.4)]).cells.to_dict("records")
    assert [cell["state"] for cell in cells[:2]] == [state, "reproduced"]
    assert cells[0]["measured"] == pytest.approx(100 * ndcg)
    assert cells[0]["record"].date == "2026-01-02T03:04:05+00:00"


def page_of_small(folder: Path) -> str:
    matrix = Matrix(folder)
    obtained = [shown(cell) for cell in matrix.cells.to_dict("records") if cell["spec"]]
    return spec_page(matrix.specs["small"], matrix.records, obtained, counted(cell["state"] for cell in obtained))


def test_the_page_of_a_spec_shows_what_is_published(folder: Path) -> None:
    text = page_of_small(folder)
    for part in (
        "All of it takes:\n\n- 2.5 GB to download, 7 GB of disk\n",
        "4 reproduced, 2 changed, 1 planned. Published in [paper 009](../matrix/paper-009.html),",
        "| `other` | few | 009 Table 1, Other | RR@10 x100 | 90.0† | 80.000 | −10.000 | changed |",
        "- 009 Table 1, Other, RR@10 x100: another version",
        "| BM25 | 0.5004 | 0.4000 | bm25.txt |",
        "--retriever bm25:k1=0.9 --rerank none ",
    ):
        assert part in text, part


def test_a_changed_parameter_changes_the_pages_and_nothing_else_is_edited(folder: Path, tmp_path: Path) -> None:
    write_pages(folder, tmp_path / "before")
    (folder / "small.yaml").write_text(SPEC.replace("k: 12", "k: 17"), encoding="utf-8")
    write_pages(folder, tmp_path / "after")
    for name in ("regressions/small.md", "matrix/paper-009.html"):
        before, after = ((tmp_path / side / name).read_text(encoding="utf-8") for side in ("before", "after"))
        assert before != after
        assert before.replace("rnn:k=12", "rnn:k=17") == after
