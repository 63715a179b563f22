"""The pages of the matrix: every cell once, ours before the published value, nothing from outside, texts escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rnnreranker.base.record import Record, write_records
from rnnreranker.regress.papers.site import write_pages
from rnnreranker.regress.records import records_file

EVIL = "</script><img src=x onerror=alert(1)>"
SPEC = """\
schema: 3
name: small
title: A small spec
about: Three systems.
query_sets:
  few: {topics: topics.tsv, qrels: qrels.txt, protocols: [strict]}
measures: [RR@10, nDCG@10]
indexes: {main: {documents: corpus.jsonl, parts: {dense: {encoder: minilm}, bm25: {}}}}
conditions:
  bm25: {title: BM25, retrieve: {bm25: {}}}
  tas-b: {title: TAS-B, retrieve: {dense: {}}, note: "From the <published> run."}
  r-tas-b: {title: R. TAS-B, rerank: {rnn: {k: 21}}, of: tas-b}
"""
PAPER = f"""\
schema: 3
name: paper-000
title: "{EVIL}"
citation: "{EVIL}"
tables:
  - table: "1"
    caption: "A <caption> & more {EVIL}"
    columns:
      - {{dataset: dev, measures: [RR@10, nDCG@10], decimals: 3, query_set: few, protocol: strict, tuned: [reranking]}}
      - {{dataset: time, measures: [ms], decimals: 0, latency: true}}
    twins: [few]
    rows:
      - {{row: TAS-B, condition: tas-b, values: [[0.659, 0.875], null], twin: tas-b}}
      - {{row: R. TAS-B, condition: r-tas-b, values: [[0.664, 0.886], ["50*"]]}}
      - {{row: Theirs (2020), external: "{EVIL}", values: [[1.0, null], null]}}
  - table: "4"
    caption: Query by query
    columns: [{{dataset: dev, measures: [RR@10], decimals: 1, query_set: few, protocol: strict, queries: QUERIES}}]
    rows:
      - {{row: TAS-B, condition: tas-b, values: [VALUES]}}
"""


def write_matrix(folder: Path) -> Path:
    """The folder with the pages of a paper of 45 cells, two of them measured."""
    specs = folder / "regressions"
    (specs / "papers").mkdir(parents=True)
    (specs / "results").mkdir()
    (specs / "small.yaml").write_text(SPEC, encoding="utf-8")
    text = PAPER.replace("QUERIES", str([*range(40)])).replace("VALUES", str([50 + n / 10 for n in range(40)]))
    (specs / "papers" / "paper-000.yaml").write_text(text, encoding="utf-8")
    values = {"strict": {"RR@10": 0.65912, "nDCG@10": 0.88}}
    outcome = {"query_set": "few", "topics": 2, "values": values, "file": f"{EVIL}.txt"}
    about = {"date": "2026-11-20T01:02:03", "commit": "abc1234", "inputs": {"run": "0123456789abcdef0"}}
    write_records(records_file(specs, "small"), [Record("run", "small", "tas-b", outcome, **about)])  # type: ignore[arg-type]
    write_pages(specs, folder / "docs")
    return folder / "docs" / "matrix"


@pytest.fixture(scope="module")
def pages(module_path: Path) -> Path:
    return write_matrix(module_path)


class Rows(HTMLParser):
    """The texts of the cells of all tables, row by row, a button's after its title."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._inside = self._inside or tag in ("td", "th")
        if tag == "button" and self._inside:
            self.handle_data(f"{dict(attrs)['title']}:")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] = " ".join(f"{self.rows[-1][-1]} {data}".split())


def test_our_values_stand_before_the_published_ones(pages: Path) -> None:
    rows = Rows(pages / "paper-000.html").rows
    assert rows[:3] == [["", "dev", "time"], ["RR@10", "nDCG@10", "ms"], ["ours", "published"] * 3]
    assert rows[3:6] == [
        ["TAS-B", "reproduced (+.0001): ✓ .6591", ".659", "changed (+.00500): ≠ .88000", ".875", ""],
        ["R. TAS-B", "runnable elsewhere: ▸", ".664 †", "runnable elsewhere: ▸", ".886 †", "external: –", "50*"],
        ["Theirs (2020)", "external: –", "1.000", "", ""],
    ]
    assert rows[6:10] == [
        ["", "few"],
        ["RR@10", "nDCG@10"],
        ["TAS-B", ".6591", ".8800"],
        ["pairs of rows in the printed order", "", ""],
    ]
    assert ["0", "runnable elsewhere: ▸", "50.0"] in rows  # the long table has its queries as rows


def test_every_cell_opens_to_its_system(pages: Path) -> None:
    page = (pages / "paper-000.html").read_text(encoding="utf-8")
    opened = re.findall(r'<td class="measured"><button popovertarget="([^"]+)"', page)
    assert len(opened) == 46
    assert {*opened} == {"few-tas-b", "few-r-tas-b", "000-1-r-tas-b", "000-1-theirs-2020"}
    systems = dict(re.findall(r'<section popover role="dialog" id="([^"]+)"(.*?)</section>', page, re.DOTALL))
    assert systems.keys() == {*opened}
    for part in (
        "--rerank rnn:k=21 ",
        'spec <a class="link" href="../regressions/small.md">small</a>',
    ):
        assert part in systems["few-r-tas-b"]
    assert "measured on 2026-11-20 at commit abc1234; run " in systems["few-tas-b"]
    assert "From the &lt;published&gt; run." in systems["few-tas-b"]
    assert "There is nothing to run." in systems["000-1-theirs-2020"]


def test_the_landing_page_counts_the_cells_of_every_table(pages: Path) -> None:
    rows = Rows(pages / "index.html").rows
    assert [(row[0][:7], row[-1]) for row in rows[1:]] == [
        *(("Paper 0", "46"), ("Table 1", "6"), ("Table 4", "40"), ("all pap", "46"))
    ]
    landing = (pages / "index.html").read_text(encoding="utf-8")
    assert 'href="paper-000.html#state=runnable+elsewhere&amp;table=000-table-4">40<' in landing
    assert "The 1 reproduced values are evaluations of published first-stage runs (TAS-B 1); none is" in landing


def test_texts_are_escaped_and_nothing_comes_from_outside(pages: Path) -> None:
    for path in pages.iterdir():
        page = path.read_text(encoding="utf-8")
        assert "<img" not in page
        outside = r'(?:src|href)="(?!(?:index|paper-000)\.html["#]|#|data:,|\.\./regressions/[\w-]+\.md")[^"]*"'
        assert re.findall(rf"{outside}|url\(|@import|https?:", page) == []
